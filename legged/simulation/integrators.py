"""Integrators, and the interface between them and the equations of motion.

A `DynamicalSystem` evaluates the equations in a chart around a reference configuration; an `Integrator` yields its
state at sample times. Time is divided into intervals without discontinuities, see `smooth_intervals`. Methods with
fixed steps are in this file, the solver with variable steps in `variable_step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol

import numpy as np

from legged.checked import checked
from legged.compiler import Members, Schedule
from legged.errors import DefinitionError, DivergenceError, NotFiniteError, SingularError

if TYPE_CHECKING:
    from legged.simulation.loop.closed_loop import ClosedLoop

Array = np.ndarray
_ROUNDING = 1e-9  # of a time step: a shorter remainder is rounding error
NEXT_NOT_FINITE = "the next state is not finite"
"""Reason of a divergence without another one."""


class StateSample(NamedTuple):
    """State at one time.

    Attributes:
        t: Time, [s].
        phase: Number of the controller's switch times that have passed.
        q: Configuration, (nq,).
        s: Rest of the state, (n,): velocity, memories and work; see `ClosedLoop`.
    """

    t: float
    phase: int
    q: Array
    s: Array


class SmoothInterval(NamedTuple):
    """Time interval in which the equations are smooth functions of time.

    Attributes:
        phase: Number of the controller's switch times before it.
        start, end: Its bounds, [s].
        samples: Sample times in [start, end), for the last interval in [start, end], [s].
    """

    phase: int
    start: float
    end: float
    samples: Array


class DynamicalSystem(Protocol):
    """Equations of motion in a chart: y = [xi; s] with q = integrate(q_ref, xi), see `chart`.

    Attributes:
        failure: Why the last evaluation had no result.
    """

    failure: str

    @property
    def loop(self) -> ClosedLoop | None:
        """The closed loop whose equations of motion these are; None for equations of another system."""
        ...

    @property
    def nv(self) -> int:
        """Length of xi."""
        ...

    def rate(self, t: float, phase: int, y: Array, q_ref: Array, loads: Array | None = None) -> Array:
        """Return the time derivatives of states, (..., n); NaN where the equations have no solution.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: States, (..., n). q_ref: Reference configuration of all of them, (nq,), mixed units.
            loads: Loads of the external wrenches of `loop`, (k, 9), mixed units and frames, by default those at t.
        """
        ...

    def step_function(self, rule: str) -> Callable[[float, float, float, Array, Array], tuple[Array, Array]]:
        """Return the function (t, h, phase, q, s) -> (q, s) of one time step.

        Args:
            rule: Name of a method of `ClosedLoop`, such as "semi_implicit".
        """
        ...

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return the configuration q, (nq,), with unit quaternions.

        Args:
            q_ref: Reference configuration, (nq,), mixed units. xi: Chart coordinates, (nv,).
        """
        ...

    def largest_rotation(self, xi: Array) -> float:
        """Return the length of the longest rotation vector in xi, [rad].

        Args:
            xi: Chart coordinates, (nv,).
        """
        ...

    def recorded(self, t: float, q: Array, s: Array) -> Array:
        """Return s, (n,), whose history of contacts includes the contact forces at time t; see `ClosedLoop.recorded`.

        Args:
            t: Time, [s]. q, s: State of `loop`, (nq,) and (n,).
        """
        ...


class Integrator(Protocol):
    """Solver of initial value problems."""

    def solve(
        self, system: DynamicalSystem, q: Array, s: Array, intervals: Sequence[SmoothInterval]
    ) -> Iterator[StateSample]:
        """Yield the state at every sample time, in order.

        Args:
            system: The equations of motion.
            q, s: State at the start of the first interval, (nq,) and (n,).
            intervals: Consecutive intervals; the integrator restarts at the start of each.

        Raises:
            DivergenceError: The solution cannot be continued.
        """
        ...


def smooth_intervals(
    samples: Array, switches: Sequence[float], break_times: Sequence[float] = ()
) -> list[SmoothInterval]:
    """Return the smooth intervals of a run.

    Args:
        samples: Increasing sample times, (T,), [s]; the run lasts from the first to the last.
        switches: Times at which the controller's reference jumps, [s]; they count the phases.
        break_times: Further times at which the integrator restarts, [s].
    """
    begin, until = float(samples[0]), float(samples[-1])
    inside = sorted({float(t) for t in (*switches, *break_times) if begin < t < until})
    bounds = np.array([begin, *inside, until])
    first = np.searchsorted(samples, bounds)
    first[-1] = len(samples)
    phases = np.searchsorted(sorted(float(t) for t in switches if t > begin), bounds, side="right")
    intervals = zip(pairwise(bounds.tolist()), pairwise(first.tolist()), phases.tolist(), strict=False)
    return [SmoothInterval(phase, start, end, samples[i:j]) for (start, end), (i, j), phase in intervals]


class StepSequence(NamedTuple):
    """Consecutive time steps of equal length.

    Attributes:
        phase: Number of the controller's switch times before them.
        start: Start of the first step, [s]. h: Length of each, [s]. count: Number of steps.
        sample: Sample time at the end of the last step, [s], or None.
    """

    phase: int
    start: float
    h: float
    count: int
    sample: float | None


@dataclass(frozen=True)
class FixedStep:
    """Base class of integrators with fixed time steps.

    Between two consecutive sample, switch or break times, the step is the longest that divides the interval evenly and
    does not exceed `step`.

    Attributes:
        step: Longest time step, [s].
    """

    step: float = 1e-4
    rule: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.step > 0.0:
            raise DefinitionError(f"a fixed step must be longer than 0 s, got {self.step}")

    def solve(
        self, system: DynamicalSystem, q: Array, s: Array, intervals: Sequence[SmoothInterval]
    ) -> Iterator[StateSample]:
        """Yield the state at every sample time; see `Integrator.solve`.

        Args:
            system: The equations of motion. intervals: Consecutive intervals.
            q, s: Initial state, (nq,) and (n,).
        """
        return self.take(system, q, s, self.step_sequences(intervals))

    def step_sequences(self, intervals: Sequence[SmoothInterval]) -> list[StepSequence]:
        """Return the time steps between samples, switches and break times.

        Args:
            intervals: Consecutive intervals.
        """
        sequences = []
        for phase, start, end, samples in intervals:
            for sample in samples.tolist():
                sequences.append(self._sequence(phase, start, sample, True))
                start = sample
            if end > start:
                sequences.append(self._sequence(phase, start, end, False))
        return sequences

    def _sequence(self, phase: int, start: float, end: float, sampled: bool) -> StepSequence:
        count = int(np.ceil((end - start) / self.step - _ROUNDING))
        return StepSequence(phase, start, (end - start) / max(count, 1), count, end if sampled else None)

    def take(
        self, system: DynamicalSystem, q: Array, s: Array, sequences: Sequence[StepSequence]
    ) -> Iterator[StateSample]:
        """Yield the state at the end of each sequence that has a sample, taking one step after the other.

        Args:
            system: The equations of motion. q, s: Initial state, (nq,) and (n,). sequences: Time steps.

        Raises:
            DivergenceError: A step has no finite result; its `state` is that before the step.
        """
        zero, step = np.zeros(system.nv), system.step_function(self.rule)
        for phase, start, h, count, sample in sequences:
            for k in range(count):
                t, before = start + k * h, s
                try:
                    q, s = step(t, h, float(phase), q, s)
                except (NotFiniteError, SingularError) as error:
                    raise DivergenceError(str(error), t=t, state=before) from error
                if not (np.isfinite(s).all() and np.isfinite(q).all()):
                    raise DivergenceError(NEXT_NOT_FINITE, t=t, state=before)
            if sample is not None:
                q = system.configuration(q, zero)
                yield StateSample(sample, phase, q, s)


@checked
@dataclass(frozen=True)
class SemiImplicitEuler(FixedStep):
    """Semi-implicit (symplectic) Euler method: velocities first, then positions with the new velocities.

    Order 1, one evaluation per step. Joint friction and stops are integrated implicitly and do not limit the step.
    """

    rule: ClassVar[str] = "semi_implicit"


@checked
@dataclass(frozen=True)
class LinearlyImplicitEuler(FixedStep):
    """Semi-implicit Euler method with the contact forces of a compliant ground at the end of the step.

    Order 1, one evaluation per step. Stiffness, damping and friction of contacts do not limit the step, nor do joint
    friction, stops and the gains that a controller states; other feedback does. The forces are linear in the change of
    velocity in a step, so that no equations are solved iteratively.
    """

    step: float = 1e-3
    rule: ClassVar[str] = "linearly_implicit"


@checked
@dataclass(frozen=True)
class RungeKutta4(FixedStep):
    """Classical Runge-Kutta method in a chart around the start of each step: order 4, four evaluations per step."""

    rule: ClassVar[str] = "runge_kutta"


@checked
@dataclass(frozen=True)
class TimeStepping(FixedStep):
    """Time stepping with impulses, for a `Rigid` ground: order 1 at contacts, 2 in flight; see `rigid_loop`.

    Joint friction and stops are integrated implicitly. Contacts do not limit the step; the controller's gains do.
    """

    step: float = 1e-3
    rule: ClassVar[str] = "time_stepping"


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
    def of_loops(cls, times: Array, loops: Sequence[ClosedLoop], edges: bool = False) -> Plan:
        """Return the plan of robots.

        Args:
            times: Sample times, (T,), [s]. loops: The closed loop of each robot; break times are those of controllers.
            edges: As in `ClosedLoop.break_times`.
        """
        known = {id(loop.controller): loop for loop in loops}
        break_times = {key: loop.break_times(float(times[-1]), edges) for key, loop in known.items()}
        different = {key: k for k, key in enumerate(dict.fromkeys(break_times.values()))}
        of = np.array([different[break_times[id(loop.controller)]] for loop in loops])
        return cls(times, [smooth_intervals(times, *key) for key in different], of)

    def schedule(self, integrator: FixedStep) -> Schedule:
        """Return the fixed time steps of all robots between the samples.

        A robot without a break time where another one has one gets an empty sequence of steps.
        """
        parts = [_split_at_samples(integrator.step_sequences(x)) for x in self.intervals]
        ends = list(accumulate(max(map(len, own)) for own in zip(*parts, strict=True)))
        pieces, samples = np.zeros((len(parts), ends[-1], 4)), np.full(ends[-1], -1)
        for piece, own in zip(pieces, parts, strict=True):
            for part, end in zip(own, ends, strict=True):
                piece[end - len(part) : end] = [(p.start, p.h, p.count, p.phase) for p in part]
        samples[[end - 1 for end in ends]] = range(len(ends))
        return Schedule(pieces if len(parts) == 1 else pieces[self.of], samples)

    def states(self, members: Members, nq: int, i: int = 0) -> list[StateSample]:
        """Return the stored states of a robot.

        Args:
            members: All robots. nq: Length of a configuration. i: Index of the robot.
        """
        phases = (x.phase for x in self.intervals[self.of[i]] for _ in x.samples)
        rows = members.stored[i, : int(members.outcome[i, 2])]
        times = self.times[: len(rows)].tolist()
        return [StateSample(t, phase, y[:nq], y[nq:]) for t, phase, y in zip(times, phases, rows, strict=False)]


def _split_at_samples(plan: Sequence[StepSequence]) -> list[list[StepSequence]]:
    """Return the step sequences up to each sample."""
    parts: list[list[StepSequence]] = [[]]
    for sequence in plan:
        parts[-1].append(sequence)
        if sequence.sample is not None:
            parts.append([])
    return parts[:-1]
