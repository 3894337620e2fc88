"""What the command line chooses."""

from typing import NamedTuple


class Settings(NamedTuple):
    """How much is measured.

    Attributes:
        rounds: How often every way is timed.
        states: In a batch.
        links: Of the largest robot of the growth plots.
    """

    rounds: int
    states: int
    links: int
