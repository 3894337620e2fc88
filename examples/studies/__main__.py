"""`python -m examples.studies` runs a study."""

from examples.studies.commands import main

main()
