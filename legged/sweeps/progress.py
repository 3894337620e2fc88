"""`Bar`: the progress of a study on the terminal."""

from __future__ import annotations

import sys
from typing import Any


class Bar:
    """A bar on stderr with the number of trials and the remaining time.

    Args:
        total, finished: Numbers of trials. shown: Whether it is shown; by default if stderr is a terminal.
    """

    def __init__(self, total: int, finished: int, shown: bool | None):
        self._total, self._finished = total, finished
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._bar: Any = None

    def __enter__(self) -> Bar:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task("trials", total=self._total, completed=self._finished)
            self._bar.start()
        return self

    def update(self, finished: int) -> None:
        """Show the number of finished trials."""
        if self._bar is not None:
            self._bar.update(self._task, completed=finished)

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.stop()
