"""`python -m legged` is the command `legged`."""

from legged.cli import main

main()
