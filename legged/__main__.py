"""`python -m legged` is the command `legged`."""

from legged.app.cli import main

main()
