"""How long things take on a computer that does other things as well: ways are timed in turns, round after round.

A round gives one time for each way, so ratios are formed round by round: what slows a whole round down cancels. Of
these the median counts, and the spread is the range of the rounds but for the two outermost.
"""

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from legged.compiler import Kernel
from legged.compiler.runtime.threads import limited

LEAST = 0.02  # [s], of one way in one round
_COARSE = time.get_clock_info("process_time").resolution > 1e-4  # Windows counts processor time in steps of 16 ms

Name = TypeVar("Name", bound=Hashable)


class Way(NamedTuple):
    """One way to a result.

    Attributes:
        run: Goes it as often as its argument says.
        states: How many states one run takes care of.
        threads: Whether it uses several; its time is that on the wall then, else that of the processor.
    """

    run: Callable[[int], Any]
    states: int = 1
    threads: bool = False


def calls(function: Callable[..., Any], *arguments: Any) -> Callable[[int], None]:
    """Return what calls a function again and again."""

    def run(times: int) -> None:
        for _ in itertools.repeat(None, times):
            function(*arguments)

    return run


def in_threads(threads: int, kernel: Kernel, arrays: Sequence[np.ndarray], out: np.ndarray) -> Callable[[int], None]:
    """Return what calls a kernel again and again, its batch shared by so many threads."""

    def run(times: int) -> None:
        with limited(threads):
            for _ in itertools.repeat(None, times):
                kernel(*arrays, out=out)

    return run


class Spread(NamedTuple):
    """A median, and the range of the rounds but for the lowest and the highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of some values; fewer than four keep their whole range."""
        ordered = sorted(values)
        inner = ordered[1:-1] if len(ordered) > 3 else ordered
        return cls(statistics.median(ordered), inner[0], inner[-1])


class Times(NamedTuple):
    """The time for one state, [s], in each round."""

    rounds: tuple[float, ...]

    def spread(self, scale: float = 1.0) -> Spread:
        """Return the spread, times a factor."""
        return Spread.of([scale * t for t in self.rounds])

    def rate(self, scale: float = 1.0) -> Spread:
        """Return the spread of states per second, times a factor."""
        return Spread.of([scale / t for t in self.rounds])

    def over(self, other: "Times") -> Spread:
        """Return how many times longer this takes than another, round by round."""
        return Spread.of([a / b for a, b in zip(self.rounds, other.rounds, strict=True)])


def race(ways: Mapping[Name, Way], rounds: int, least: float = LEAST) -> dict[Name, Times]:
    """Return the times of all ways, taken in turns; each is run before it is timed."""
    repeats = {name: _repeats(way, least) for name, way in ways.items()}
    taken: dict[Name, list[float]] = {name: [] for name in ways}
    with _no_collections():
        for _ in range(rounds):
            for name, way in ways.items():
                taken[name].append(_time(way, repeats[name]) / repeats[name] / way.states)
    return {name: Times(tuple(times)) for name, times in taken.items()}


def _repeats(way: Way, least: float) -> int:
    """Return how often a way must be run to take about `least` seconds."""
    way.run(1)
    times = 1
    while (taken := _time(way, times)) < least / 4:
        times = max(2 * times, int(times * least / 2 / max(taken, 1e-7)))
    return max(1, round(times * least / taken))


def _time(way: Way, times: int) -> float:
    clock = time.perf_counter if way.threads or _COARSE else time.process_time
    begun = clock()
    way.run(times)
    return clock() - begun


@contextmanager
def _no_collections() -> Iterator[None]:
    """Keep Python's garbage collector out of the times."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
