"""Computing time of a study in core hours (`Cost`), estimated from short batches of its trials (`Pilot`).

`ChunkSizes` divides the samples into chunks that take a wanted time.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.compiler import optimized_at_once
from legged.errors import SimulationWarning
from legged.sweeps.samples import Samples
from legged.sweeps.setup import Setup, TrialMotion

Array = np.ndarray
FEW, MANY = 8, 24
"""Trials of two batches. Their difference is two vectors of machine code with 8 numbers, one with 16, four with 4."""
_LONG_ENOUGH = 0.05
"""Processor time of the samples of the smaller batch, [s], which resolves it to some per cent."""
_TRIED = 3  # samples that are tried one by one
_OF_RUNS = 10  # samples of the runs that metrics of runs are given
_MOST_ROWS = 10_000  # largest number of rows of a chunk whose size is not given
_ROWS_OF_UNKNOWN_COST = 100  # rows of a chunk if the first samples, from which the cost would follow, fail
_ROWS_OF_A_VECTOR = 8  # least rows of a chunk of simulations: machine code computes as many of them together


class Cost(NamedTuple):
    """The cost of a study.

    Attributes:
        core_hours: Of all trials, [h] on one core. remaining: Of those that are missing, [h].
        seconds: Of one trial, with its part of the start of its chunk, [s].
        source: What it follows from: "short batches" of trials, or "finished chunks".
    """

    core_hours: float
    remaining: float
    seconds: float
    source: str

    def __str__(self) -> str:
        words = f"{self.core_hours:.3g} core hours, {self.remaining:.3g} of them remaining"
        return f"{words} ({self.seconds:.3g} s a trial, from {self.source})"


class Pilot(NamedTuple):
    """Processor times of the trials of a setup on this machine.

    Attributes:
        start: Of a chunk besides its trials, [s]: tracing, and the calls from Python at each sample.
        trial: Of a trial in a chunk, [s].
    """

    start: float
    trial: float

    @classmethod
    def of(cls, setup: Setup, columns: Mapping[str, Array]) -> Pilot:
        """Return the times that short batches of trials show, in one thread.

        The processor time of a batch of B trials and n samples is (a + b B) for its start and (c + d B) n for its
        motion; two batches give the four numbers. They run the machine code of the chunks, with its vectors. The motion
        up to the end time is in proportion to the samples: the result is too large where trials end early, and too
        small where later steps take longer, such as those of a solver of contacts that needs more iterations.

        Args:
            setup: The setup. columns: Samples, name -> (B,), any unit; they are repeated if they are fewer than `MANY`.

        Raises:
            LeggedError, or an error of a user's function: The trials cannot be simulated.
        """
        count, total = len(next(iter(columns.values()))), len(setup.times())
        many = {name: x[np.arange(MANY) % count] for name, x in columns.items()}
        few = {name: x[:FEW] for name, x in many.items()}
        others = {name: metric for name, metric in setup.metrics.items() if not metric.signals and not metric.result}
        start = trial = 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SimulationWarning)  # those of chunks are stored
            if len(others) < len(setup.metrics) or not others:
                _motion(setup, many, 1)  # compiles
                small = _motion(setup, few, 1, _LONG_ENOUGH)
                large = _motion(setup, many, small.samples)
                ratio = total / large.samples
                start += (
                    large.tracing + _at_zero(small.start, large.start) + _at_zero(small.motion, large.motion) * ratio
                )
                trial += _slope(small.start, large.start) + _slope(small.motion, large.motion) * ratio
            if others:  # they simulate the trials again
                samples = min(_OF_RUNS, total)
                runs = replace(setup, until=setup.times()[samples - 1], metrics=others)
                _, small, large = (_evaluation(runs, x) for x in (many, few, many))  # the first one compiles
                start += _at_zero(small, large)
                trial += _slope(small, large) * total / samples
        return cls(start, trial)


class ChunkSizes(NamedTuple):
    """Division of a study into chunks. *Bounds* are the rows at which chunks begin, and the end of the last one.

    Attributes:
        rows: Number of samples of the study.
        chunk: Rows of each chunk, None for those of the wanted duration.
        seconds: Wanted duration of a chunk on one core, [s].
    """

    rows: int
    chunk: int | None
    seconds: float

    def equal(self) -> list[int]:
        """Return the bounds of chunks of `chunk` rows."""
        assert self.chunk is not None
        return [*range(0, self.rows, self.chunk), self.rows]

    def after(self, first: Sequence[int], trial: float, start: float = 0.0, least: int = 1) -> list[int]:
        """Return bounds that go on after the first ones with chunks of the wanted duration.

        Args:
            first: The first bounds. trial: Time of a trial, [s]. start: Time of a chunk besides its trials, [s].
            least: Least number of rows of a chunk.
        """
        seconds = max(self.seconds - start, start)
        size = int(np.clip(round(seconds / max(trial, 1e-9)), least, _MOST_ROWS))
        return list(dict.fromkeys([*first, *range(first[-1] + size, self.rows, size), self.rows]))

    def after_pilots(self, first: Sequence[int], pilots: Sequence[Pilot]) -> list[int]:
        """Return the bounds of `after` for the measured times of the trials of setups; without any, for a usual time.

        Args:
            first: The first bounds. pilots: The times.
        """
        pilots = pilots or [Pilot(0.0, self.seconds / _ROWS_OF_UNKNOWN_COST)]
        start, trial = max(pilot.start for pilot in pilots), max(pilot.trial for pilot in pilots)
        return self.after(first, trial, start, _ROWS_OF_A_VECTOR)


def pilot_of(setup: Setup, samples: Samples, order: Array) -> Pilot:
    """Return the pilot of a setup at samples that are spread over a study.

    If one of them cannot be simulated, which stops a batch, single ones are tried.

    Args:
        setup: The setup. samples: The samples, n rows. order: Order in which they are computed, (n,), dimensionless.

    Raises:
        LeggedError, or an error of a user's function: None of these can be simulated; the first error.
    """
    rows = np.linspace(0, len(samples) - 1, min(MANY, len(samples))).astype(int)
    problem: Exception | None = None
    for tried in (rows, *rows[np.linspace(len(rows) - 1, 0, _TRIED).astype(int), None]):
        try:
            return Pilot.of(setup, samples.rows(order[tried]))
        except Exception as error:  # laws of users raise anything
            problem = problem or error
    assert problem is not None
    raise problem


class _Batch(NamedTuple):
    """Processor times of a batch, [s]: its start, tracing and loading, and the motion up to a number of samples."""

    start: float
    tracing: float
    motion: float
    samples: int


@optimized_at_once()
def _motion(setup: Setup, columns: Mapping[str, Array], samples: int, seconds: float = 0.0) -> _Batch:
    """Return the times of a batch of trials.

    Args:
        setup: The setup. columns: Samples of the batch, name -> (B,), any unit.
        samples: Least number of samples of the motion.
        seconds: Least time of the motion, [s], if its end does not come first.
    """
    count = len(next(iter(columns.values())))
    clock, reached = [time.process_time()], 0
    motion = TrialMotion(setup, setup.arguments(columns), count, 1)
    clock.append(time.process_time())
    motion.begin()
    clock.append(time.process_time())
    for t in setup.times():
        motion.advance(t)
        reached += 1
        if reached >= samples and time.process_time() - clock[2] >= seconds:
            break
    clock.append(time.process_time())
    start, tracing, moved = np.diff(clock).tolist()
    return _Batch(start, tracing, moved, reached)


def _evaluation(setup: Setup, columns: Mapping[str, Array]) -> float:
    """Return the processor time of the metrics of a batch of trials, [s]."""
    begin = time.process_time()
    setup.evaluate(columns, 1)
    return time.process_time() - begin


def _slope(small: float, large: float) -> float:
    """Return the time of each further trial, [s], from the times of batches of `FEW` and `MANY`, [s]."""
    return max(large - small, 0.0) / (MANY - FEW)


def _at_zero(small: float, large: float) -> float:
    """Return the time of a batch besides its trials, [s], from the times of batches of `FEW` and `MANY`, [s]."""
    return max(large - MANY * _slope(small, large), 0.0)
