"""Times and phases of the robots of a `Simulation`, and the time steps of one call.

Each robot has its own time t = origin + ticks h. A step never crosses a time at which the controller's
reference switches or an update is due, nor, with variable steps, one at which an external wrench begins or ends: where
such a break time lies inside a step, the call is divided there, as in `FixedStep.step_sequences`. Break times at the
ends of steps need no division.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from legged.compiler import CODES_ONLY, Schedule
from legged.simulation.integrators import FixedStep, SmoothInterval, StepSequence
from legged.simulation.loop.closed_loop import ClosedLoop

Array = np.ndarray
_TOLERANCE = 1e-6  # of a time step: a break time that is nearer to the end of a step coincides with it
_FIRST_HORIZON = 10.0  # [s]: break times are found up to a horizon, which doubles


class _BreakTimes:
    """The break times of a closed loop up to a horizon that grows.

    Attributes:
        switches: Times after 0 at which the controller's reference jumps, (n,), [s].
        all: These and the other break times, (m,), [s].
    """

    def __init__(self, edges: bool) -> None:
        self._edges, self._horizon = edges, 0.0
        self.switches = self.all = np.zeros(0)

    def extend(self, loop: ClosedLoop, until: float) -> None:
        """Find the break times of the loop up to a time, [s], at least."""
        if until < self._horizon:
            return
        self._horizon = max(2.0 * until, _FIRST_HORIZON)
        edges = {"edges": True} if self._edges else {}
        switches, others = loop.break_times(self._horizon, **edges)
        self.switches = np.unique([t for t in switches if t > 0.0])
        self.all = np.unique([t for t in (*switches, *others) if t > 0.0])

    def next(self, t: float, origin: float, h: float) -> float:
        """Return the next time that divides a call or changes the phase, [s]; at most the horizon."""
        for time in self.all[np.searchsorted(self.all, t + _TOLERANCE * h) :].tolist():
            if not _on_grid(time, origin, h) or self._is_switch(time):
                return time
        return self._horizon

    def phase(self, t: float) -> int:
        """Return the number of switch times up to a time, [s]."""
        return int(np.searchsorted(self.switches, t, side="right"))

    def _is_switch(self, t: float) -> bool:
        k = int(np.searchsorted(self.switches, t))
        return k < len(self.switches) and float(self.switches[k]) == t


class Clock:
    """Time and phase of each robot.

    Args:
        integrator: The time steps. loops: Closed loop of each robot.
        edges: Whether external wrenches have break times, see `ClosedLoop.break_times`.

    Attributes:
        phase: Number of switch times that have passed, (N,).
        free_steps: Number of steps that all robots can take before a break time of one of them.
    """

    def __init__(self, integrator: FixedStep, loops: Sequence[ClosedLoop], edges: bool = False):
        count = len(loops)
        self.integrator, self.free_steps = integrator, 0
        self._origin, self._ticks = np.zeros(count), np.zeros(count)
        self._passed = 0  # time steps of all robots besides `_ticks`
        self._common: tuple[float, float] | None = None  # origin and ticks if these and phases are equal
        self.phase, self._next = np.zeros(count), np.zeros(count)
        self._written: Array | None = None  # the intervals that hold the phases, and their number of steps
        self._written_steps = 0
        self._loops, self._breaks, self._edges = list(loops), WeakKeyDictionary[ClosedLoop, _BreakTimes](), edges
        self._find_breaks(np.arange(count))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without break times, which are found again."""
        return {name: value for name, value in vars(self).items() if name != "_breaks"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _breaks=WeakKeyDictionary())

    @property
    def times(self) -> Array:
        """Time of each robot, (N,), [s]."""
        self._count_passed()
        return self._origin + self.integrator.step * self._ticks

    def _count_passed(self) -> None:
        """Add the time steps of all robots to the ticks of each."""
        if self._passed:
            self._ticks += self._passed
            if self._common is not None:
                self._common = self._common[0], self._common[1] + self._passed
            self._passed = 0

    def set(
        self, robots: Array, origin: Any = None, ticks: Any = 0.0, loops: Sequence[ClosedLoop] | None = None
    ) -> None:
        """Set the times of some robots, and use other closed loops from now on.

        Args:
            robots: Their indices, (k,), dimensionless. origin: Their times before `ticks` steps, (k,), [s], if they
                change. loops: Their closed loops, if these change.
        """
        self._count_passed()
        if origin is not None:
            self._origin[robots], self._ticks[robots] = origin, ticks
        for i, loop in zip(robots.tolist(), loops or (), strict=loops is not None):
            self._loops[i] = loop
        self._find_breaks(robots)

    def snapshot(self) -> tuple[Array, Array, list[ClosedLoop]]:
        """Return a copy of the clock's state: origins (N,), [s], numbers of steps (N,), and closed loops."""
        self._count_passed()
        return self._origin.copy(), self._ticks.copy(), list(self._loops)

    def restore(self, origin: Any, ticks: Any, loops: Sequence[ClosedLoop]) -> None:
        """Return to a snapshot, whose parts these are; that of one robot holds for all."""
        count = len(self._loops)
        self.set(np.arange(count), origin, ticks, loops if len(loops) == count else [*loops] * count)

    def write(self, intervals: Array, steps: int) -> int:
        """Write the intervals of at most `free_steps` next steps, and return the number of rows: 1 if all are equal.

        Args:
            intervals: Receives [start, h, count, phase] of each robot, (N, 1, 4), mixed units.
            steps: Number of steps.
        """
        if self._common is not None:  # several times faster than on arrays
            origin, ticks = self._common
            intervals[0, 0, 0] = origin + self.integrator.step * (ticks + self._passed)
        else:
            intervals[:, 0, 0] = self.times
        if self._written is not intervals or self._written_steps != steps:
            intervals[:, 0, 1], intervals[:, 0, 2], intervals[:, 0, 3] = self.integrator.step, steps, self.phase
            self._written, self._written_steps = intervals, steps
        return len(intervals) if self._common is None else 1

    def schedule(self, steps: int) -> Schedule:
        """Return the schedule of the next steps of each robot, after which robots that have fallen end."""
        h, start = self.integrator.step, self.times  # `times` brings the ticks up to date
        end = self._origin + h * (self._ticks + steps)
        plain = np.stack([start, np.full(len(start), h), np.full(len(start), float(steps)), self.phase], axis=1)
        divided = np.flatnonzero(self._next < end - _TOLERANCE * h)
        return _schedule(plain, {i: self._divided(i, float(start[i]), float(end[i])) for i in divided.tolist()})

    def until(self, end: float, running: Array) -> Schedule:
        """Return the schedule of the steps of each robot up to a time, after which robots that have fallen end.

        Args:
            end: Time, [s]; the intervals of robots that have passed it are empty.
            running: Robots that have not ended, (N,), bool, dimensionless; the intervals of others are empty, too.
        """
        times = self.times.tolist()
        parts = {i: self._divided(i, times[i], max(end, times[i])) for i in np.flatnonzero(running).tolist()}
        return _schedule(np.zeros((len(times), 4)), parts)

    def _divided(self, i: int, start: float, end: float) -> list[StepSequence]:
        """Return the time steps of a robot between two times, divided at its break times."""
        breaks, margin = self._break_times(i, end), _TOLERANCE * self.integrator.step
        inside = breaks.all[(breaks.all > start + margin) & (breaks.all < end - margin)].tolist()
        bounds = [start, *inside, end]
        none = np.zeros(0)
        return self.integrator.step_sequences(
            [SmoothInterval(breaks.phase(a + margin), a, b, none) for a, b in pairwise(bounds)]
        )

    def _break_times(self, i: int, until: float) -> _BreakTimes:
        """Return the break times of a robot, known up to a time, [s], at least."""
        loop = self._loops[i]
        breaks = self._breaks.setdefault(loop, _BreakTimes(self._edges))
        breaks.extend(loop, until)
        return breaks

    def advance(self, steps: int, passed: Array | None = None, running: Array | None = None) -> None:
        """Let time steps pass.

        Args:
            steps: Number of steps. passed: Mask of the robots whose time passes, (N,), dimensionless; None for all.
            running: Mask of the robots that go on, (N,), dimensionless; None for all.
        """
        if passed is None:
            self._passed += steps
        else:
            self._count_passed()
            self._ticks[passed] += steps
        self.free_steps -= steps
        if self.free_steps <= 0 or running is not None:
            due = np.flatnonzero(self._next <= self.times + _TOLERANCE * self.integrator.step)
            self._find_breaks(due, running)

    def _find_breaks(self, robots: Array, running: Array | None = None) -> None:
        """Find phase and next break time of some robots, and the number of steps before the first break time."""
        h, times, self._written = self.integrator.step, self.times, None
        known: dict[tuple[int, float, float], tuple[int, float]] = {}
        for i in robots.tolist():
            t, origin = float(times[i]), float(self._origin[i])
            key = id(self._loops[i]), t, origin
            if key not in known:
                breaks = self._break_times(i, t + h)
                known[key] = breaks.phase(t + _TOLERANCE * h), breaks.next(t, origin, h)
            self.phase[i], self._next[i] = known[key]
        are_equal = all((x == x[0]).all() for x in (self._origin, self._ticks, self.phase))
        self._common = (float(self._origin[0]), float(self._ticks[0])) if are_equal else None
        left = self._next - times if running is None else (self._next - times)[running]
        self.free_steps = int(left.min(initial=np.inf) / h + _TOLERANCE) if len(left) else 1 << 62


def _schedule(plain: Array, parts: dict[int, list[StepSequence]]) -> Schedule:
    """Return the schedule of robots with a single interval each, (N, 4), or with several step sequences."""
    most = max([1, *(len(sequences) for sequences in parts.values())])
    intervals, samples = np.zeros((len(plain), most, 4)), np.full(most, -1)
    intervals[:, -1], samples[-1] = plain, CODES_ONLY
    for i, sequences in parts.items():
        if sequences:
            intervals[i, most - len(sequences) :] = [(p.start, p.h, p.count, p.phase) for p in sequences]
    return Schedule(intervals, samples)


def _on_grid(t: float, origin: float, h: float) -> bool:
    ticks = (t - origin) / h
    return abs(ticks - round(ticks)) < _TOLERANCE
