"""The command `python -m benchmarks.deployment`."""

from benchmarks.deployment.walk import main

if __name__ == "__main__":
    main()
