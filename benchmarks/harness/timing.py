"""Time several workloads on a computer that runs other programs too, and check that they compute the same numbers.

The workloads are timed in turns, round after round. A ratio of two times is formed within each round, so that a load
which slows a whole round down cancels. The result is the median over the rounds; its spread is the range of the rounds
without the lowest and the highest.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from legged.compiler import Kernel, thread_limit

MIN_TIME = 0.02
"""Shortest time of a workload in one round, [s]; short workloads are repeated."""
_IS_COARSE = time.get_clock_info("process_time").resolution > 1e-4  # Windows counts processor time in steps of 16 ms

Name = TypeVar("Name", bound=Hashable)


class Workload(NamedTuple):
    """A computation to time.

    Attributes:
        run: Function of the number of repetitions.
        states: Number of states that one repetition processes.
        threads: Whether it uses several threads; wall time is measured then, otherwise processor time.
    """

    run: Callable[[int], Any]
    states: int = 1
    threads: bool = False


def repeat(function: Callable[..., Any], *arguments: Any) -> Callable[[int], None]:
    """Return a function of the number of repetitions that calls `function` with the arguments."""

    def run(times: int) -> None:
        for _ in itertools.repeat(None, times):
            function(*arguments)

    return run


def repeat_batch(threads: int, kernel: Kernel, arrays: Sequence[np.ndarray], out: Any) -> Callable[[int], None]:
    """Return a function of the number of repetitions that calls a kernel with a batch.

    Args:
        threads: Number of threads.
        kernel: The kernel.
        arrays: Its arguments, (B, ...) each, in any unit that the kernel takes.
        out: Arrays for the results.
    """

    def run(times: int) -> None:
        with thread_limit(threads):
            for _ in itertools.repeat(None, times):
                kernel(*arrays, out=out)

    return run


class Spread(NamedTuple):
    """A median, and the range of the rounds without the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of some values; the range of fewer than four values contains all of them."""
        ordered = sorted(values)
        inner = ordered[1:-1] if len(ordered) > 3 else ordered
        return cls(statistics.median(ordered), inner[0], inner[-1])


class Times(NamedTuple):
    """The time for one state in each round, [s]."""

    rounds: tuple[float, ...]

    def spread(self, scale: float = 1.0) -> Spread:
        """Return the spread of the times, multiplied by a factor."""
        return Spread.of([scale * t for t in self.rounds])

    def rate(self, scale: float = 1.0) -> Spread:
        """Return the spread of the states per second, multiplied by a factor."""
        return Spread.of([scale / t for t in self.rounds])

    def ratio_to(self, other: "Times") -> Spread:
        """Return the spread of the ratios of these times to others, formed round by round."""
        return Spread.of([a / b for a, b in zip(self.rounds, other.rounds, strict=True)])


def time_in_turns(workloads: Mapping[Name, Workload], rounds: int, min_time: float = MIN_TIME) -> dict[Name, Times]:
    """Return the times of all workloads, measured in turns after a first run of each."""
    repetitions = {name: _repetitions(workload, min_time) for name, workload in workloads.items()}
    times: dict[Name, list[float]] = {name: [] for name in workloads}
    with _garbage_collection_disabled():
        for _ in range(rounds):
            for name, workload in workloads.items():
                count = repetitions[name]
                times[name].append(_time(workload, count) / count / workload.states)
    return {name: Times(tuple(measured)) for name, measured in times.items()}


def _repetitions(workload: Workload, min_time: float) -> int:
    """Return the number of repetitions that take about `min_time`, [s].

    The last count is timed twice, since the first run of it may take memory from the operating system: with the time of
    that run a workload of large results would be repeated too few times to fill the caches again in each round.
    """
    workload.run(1)
    count = 1
    while (taken := _time(workload, count)) < min_time / 4:
        count = max(2 * count, int(count * min_time / 2 / max(taken, 1e-7)))
    return max(1, round(count * min_time / min(taken, _time(workload, count))))


def _time(workload: Workload, count: int) -> float:
    clock = time.perf_counter if workload.threads or _IS_COARSE else time.process_time
    start = clock()
    workload.run(count)
    return clock() - start


@contextmanager
def _garbage_collection_disabled() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Disagreement(Exception):
    """Two programs compute different numbers, so that a comparison of their times is meaningless."""


def check_agreement(what: str, ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> float:
    """Return the relative difference of two results, the largest over all states.

    The difference of a state is the largest difference of its entries divided by its largest entry.

    Args:
        what: Description for the error message.
        ours: First result, (states, ...), in any unit.
        theirs: Second result, (states, ...), in any unit, the same as the first.
        tolerance: Largest relative difference.

    Raises:
        Disagreement: If the difference is larger.
    """
    difference = np.inf
    a, b = (np.reshape(x, (len(x), -1)) for x in (ours, theirs))
    if a.shape == b.shape and np.isfinite(a).all():
        difference = float((np.abs(a - b).max(axis=1) / np.abs(b).max(axis=1)).max())
    if not difference <= tolerance:
        raise Disagreement(f"{what}: relative difference {difference:.1e} exceeds {tolerance:.0e}; not timed")
    return difference
