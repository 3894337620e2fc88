"""A progress bar for runs that take long, on terminals only."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

_PATIENCE = 1.0  # [s] before a bar appears


class ProgressBar:
    """Shows simulated time on stderr once a run takes more than a second; silent where stderr is no terminal."""

    def __init__(self, title: str, until: float, shown: bool | None = None):
        self.title, self.until = title, until
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.begun = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def reach(self, t: float) -> None:
        """Tell that the run has come to time t, [s]."""
        if not self.shown or time.monotonic() - self.begun < _PATIENCE:
            return
        if self._bar is None:
            self._bar = _bar()
            self._task = self._bar.add_task(self.title, total=self.until)
            self._bar.start()
        self._bar.update(self._task, completed=t)


def _bar() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    times = TextColumn("{task.completed:.2f} of {task.total:g} s")
    console = Console(stderr=True, force_terminal=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), times, TimeRemainingColumn(), console=console, transient=True
    )
