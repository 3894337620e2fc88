"""The interface of step engines, and the plan of sample times that they follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from legged.compiler import ENDED, EXCEEDED, Members, Schedule
from legged.errors import SimulationError
from legged.simulation.integrators import FixedStep, SmoothInterval, StateSample, smooth_intervals
from legged.simulation.loop.results import BreakTimes
from legged.simulation.stepping.batch import InitialStates
from legged.simulation.stepping.compiled_batch import StepInput, aligned_schedule

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Plan:
    """Sample times of all robots, and the smooth intervals between the break times of each.

    Attributes:
        times: Sample times, (T,), [s].
        intervals: The different lists of intervals. of: Index of the list of each robot, (N,).
    """

    times: Array
    intervals: Sequence[list[SmoothInterval]]
    of: Array

    @classmethod
    def of_break_times(cls, times: Array, break_times: Sequence[BreakTimes]) -> Plan:
        """Return the plan of robots.

        Args:
            times: Sample times, (T,), [s]. break_times: Switch times and other break times of each robot, [s].
        """
        different = {key: k for k, key in enumerate(dict.fromkeys(break_times))}
        intervals = [smooth_intervals(times, *key) for key in different]
        return cls(times, intervals, np.array([different[key] for key in break_times]))

    def schedule(self, integrator: FixedStep) -> Schedule:
        """Return the fixed time steps of all robots between the samples."""
        return aligned_schedule([integrator.step_sequences(x) for x in self.intervals], self.of)

    def states(self, members: Members, nq: int, i: int = 0) -> list[StateSample]:
        """Return the stored states of a robot.

        Args:
            members: All robots. nq: Length of a configuration. i: Index of the robot.
        """
        phases = (x.phase for x in self.intervals[self.of[i]] for _ in x.samples)
        rows = members.stored[i, : int(members.outcome[i, 2])]
        times = self.times[: len(rows)].tolist()
        return [StateSample(t, phase, y[:nq], y[nq:]) for t, phase, y in zip(times, phases, rows, strict=False)]


class StepEngine(Protocol):
    """Interface of the objects that advance all robots of a rollout or a `Simulation`.

    Attributes:
        name: Description of the code that runs.
        given: What each step is given: command and external wrenches.
        commands: This for each robot, (N, given.size), which `run` reads; another array may replace it.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

    name: str
    given: StepInput
    commands: Array
    intervals: Array

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample in place; yield whenever new samples are stored.

        Args:
            plan: Samples and intervals. threads: Maximal number of threads.
        """
        ...

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots in place, store the states of samples, and end robots.

        Args:
            schedule: The intervals [start, h, count, phase], (N, P, 4) or (1, P, 4), and samples; or the number of rows
                of the attribute `intervals` that hold them, N or 1, after which robots that have fallen end.
            threads: Maximal number of threads.

        Returns:
            `ENDED` if any robot has ended, else -1 if joints and base are known to be slower than `SLOW`, else
            `EXCEEDED`.
        """
        ...

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states, as `run` does from the present ones.

        Args:
            members: States and outcomes, which change in place. schedule: As in `run`.
            threads: Maximal number of threads.
        """
        ...

    def failure(self, i: int) -> SimulationError | None:
        """Return the error that ended the motion of robot i; None if its next state is not finite."""
        ...

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set controllers, grounds, pushes and limits.

        Args:
            starts: All robots at the start; their states are not used.
            robots: Indices of those that have changed.
        """
        ...


def run_result(members: Members) -> int:
    """Return the result of `StepEngine.run` if the speeds are not known."""
    return ENDED if members.outcome[:, 0].any() else EXCEEDED
