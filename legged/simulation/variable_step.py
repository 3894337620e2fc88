"""Variable time steps: the implicit solver of SciPy for stiff equations, restarted where the chart needs it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError, DivergenceError, SimulationError
from legged.simulation.integrators import DynamicalSystem, SmoothInterval, StateSample
from legged.simulation.loop.external_wrenches import External, loads_at

if TYPE_CHECKING:
    from scipy.integrate import BDF as ScipyBDF  # imported where it is used: the import takes long

Array = np.ndarray
_MAX_ROTATION = 1.0  # [rad], of a rotation vector of the chart before the chart gets a new reference
_ATTEMPTS = 3  # restarts without progress before the solution is declared divergent
_PROGRESS = 1e-6  # [s]: a restart that advances by less has made no progress
_WINDOW = 2000  # steps over which the budget is averaged
_WRENCH = 6  # entries of torque and force in the loads of external wrenches
_MARGIN = 1e-9  # of an interval: distance from its ends at which loads there are evaluated


@checked
@dataclass(frozen=True)
class BDF:
    """Implicit solver of variable order (1 to 5) and step by backward differentiation formulas, from SciPy.

    Of the same family as ode15s, which the paper uses. The torques must be continuous functions of time and state
    between switches: noise, or a controller with a discrete update, makes the steps tiny; use a fixed step for those.
    `Stiff` is another name of this class.

    The solver starts anew where an external wrench begins or ends. At the end of each such interval, its error in the
    impulses of external wrenches is applied as an impulse, so that these are exact to rounding; the error in the
    impulses of contacts is within the tolerances.

    Attributes:
        rtol: Relative tolerance of a step.
        atol: Absolute tolerance of a step, in SI units of each state.
        max_step: Longest time step, [s].
        budget: Most steps per second of simulated time, on average over 2000 steps. A solver that needs more ends the
            run with a `SimulationError`, since it would take minutes per second; infinity for no limit.
    """

    rtol: float = 1e-6
    atol: float = 1e-8
    max_step: float = np.inf
    budget: float = 1e5

    def __post_init__(self) -> None:
        if not (self.rtol > 0.0 and self.atol > 0.0 and self.max_step > 0.0 and self.budget > 0.0):
            raise DefinitionError(f"BDF needs positive rtol, atol, max_step and budget, got {self}")

    def solve(
        self, system: DynamicalSystem, q: Array, s: Array, intervals: Sequence[SmoothInterval]
    ) -> Iterator[StateSample]:
        """Yield the state at every sample time; see `Integrator.solve`.

        Args:
            system: The equations of motion. intervals: Consecutive intervals.
            q, s: Initial state, (nq,) and (n,).
        """
        work = _Work(self.budget, float(intervals[0].start) if intervals else 0.0)
        for phase, start, end, samples in intervals:
            state, stuck = StateSample(start, phase, q, s), 0
            if len(samples) and samples[0] == start:
                yield state
                samples = samples[1:]
            while state.t < end:
                before = state.t
                for reached in self._solve(system, state, (start, end), samples, work):
                    if len(samples) and samples[0] == reached.t:
                        yield reached
                        samples = samples[1:]
                    state = reached
                stuck = stuck + 1 if state.t - before < _PROGRESS else 0
                if stuck == _ATTEMPTS:
                    reason = f"the time step of the solver fell to zero; {system.failure}".rstrip("; ")
                    raise DivergenceError(reason, t=state.t, state=state.s)
            q, s = state.q, state.s

    def _solve(
        self,
        system: DynamicalSystem,
        state: StateSample,
        interval: tuple[float, float],
        times: Array,
        work: _Work,
    ) -> Iterator[StateSample]:
        """Yield states at `times`, then the last state of one solver: at the end, a large rotation, or a failure."""
        unknowns = _Unknowns(system, state, interval)
        solver = self._start(unknowns, state, interval[1])
        t, y = solver.t, solver.y
        while solver.status == "running" and unknowns.rotation(y) < _MAX_ROTATION and _advance(solver):
            unknowns.add_impulses(t, solver.t - t)
            t, y = solver.t, solver.y
            work.count(float(t))
            reached = times[times < t] if solver.status == "finished" else times[times <= t]  # the last state is below
            if len(reached):
                times, dense = times[len(reached) :], solver.dense_output()
                yield from (unknowns.at(sample, dense(sample)) for sample in reached)
            unknowns.record(t, y)
        yield unknowns.last(t, y)

    def _start(self, unknowns: _Unknowns, state: StateSample, end: float) -> ScipyBDF:
        from scipy.integrate import BDF as ScipyBDF

        def jacobian(t: float, y: Array) -> Array:
            return _difference_jacobian(unknowns.rate, t, y, unknowns.count)

        try:
            tolerances = self.max_step, self.rtol, self.atol
            return ScipyBDF(unknowns.rate, state.t, unknowns.start, end, *tolerances, jacobian)
        except (ValueError, ArithmeticError) as error:
            raise DivergenceError(
                f"the equations of motion have no solution ({error})", t=state.t, state=state.s
            ) from error


class _Unknowns:
    """The unknowns y of one solver, in a chart around the configuration at its start, and their rates.

    They are [xi; s] without the second half of the history of contacts, which holds peaks and times of contacts and is
    updated after each step of the solver, and then the impulses of the external wrenches. The exact values of these
    impulses are known; `last` adds the difference to the state.

    Args:
        system: The equations of motion. state: The state at the start.
        interval: Bounds of the time in which the equations are smooth, [s].

    Attributes:
        start: Unknowns at the start, (n,), mixed units.
        count: Number of unknowns, the first ones, on which rates depend: those before the history of contacts.
    """

    def __init__(self, system: DynamicalSystem, state: StateSample, interval: tuple[float, float]):
        self._system, self._state, self._interval = system, state, interval
        n, self._pushes = system.nv, tuple[External, ...]()
        self._first = self._after = self.count = n + len(state.s)  # entries of [xi; s] that are left out
        if system.loop is not None:
            history, self._pushes = system.loop.history_entries, tuple(system.loop.pushes)
            self.count, self._after = n + history.start, n + history.stop
            self._first = self._after - system.loop.history_size // 2
        self._recorded = state.s[self._first - n : self._after - n]
        self._points = loads_at(self._pushes, state.t)[:, _WRENCH:]  # the loads are rows [torque; force; point]
        self._exact = np.zeros((len(self._pushes), _WRENCH))  # impulses since the start
        rest = state.s[: self._first - n], state.s[self._after - n :]
        self.start = np.concatenate([np.zeros(n), *rest, np.zeros(self._exact.size)])

    def rate(self, t: float, y: Array) -> Array:
        """Return the time derivatives of unknowns, (..., n), mixed units, at a time, [s]."""
        q_ref, phase = self._state.q, self._state.phase
        if self._first == self._after and not self._pushes:
            return self._system.rate(t, phase, y, q_ref)
        loads = loads_at(self._pushes, _inside(t, self._interval))
        rates = self._system.rate(t, phase, self._full(y), q_ref, loads)
        forces = np.broadcast_to(loads[:, :_WRENCH].ravel(), (*y.shape[:-1], self._exact.size))
        return np.concatenate([rates[..., : self._first], rates[..., self._after :], forces], axis=-1)

    def _full(self, y: Array) -> Array:
        """Return [xi; s] with the recorded peaks and times of contacts, (..., nv + n)."""
        recorded = np.broadcast_to(self._recorded, (*y.shape[:-1], len(self._recorded)))
        end = y.shape[-1] - self._exact.size
        return np.concatenate([y[..., : self._first], recorded, y[..., self._first : end]], axis=-1)

    def at(self, t: float, y: Array) -> StateSample:
        """Return the state at a time, [s], from the unknowns, (n,), mixed units."""
        n = self._system.nv
        q = self._system.configuration(self._state.q, y[:n])
        return StateSample(float(t), self._state.phase, q, self._full(y)[n:])

    def rotation(self, y: Array) -> float:
        """Return the length of the longest rotation vector of the chart, [rad], from the unknowns, (n,)."""
        return self._system.largest_rotation(y[: self._system.nv])

    def add_impulses(self, t: float, h: float) -> None:
        """Add the exact impulses of the external wrenches in a step h from t, [s]."""
        if self._system.loop is not None and self._pushes:
            self._exact += h * self._system.loop.loads(t, h)[:, :_WRENCH]

    def record(self, t: float, y: Array) -> None:
        """Record peaks and times of contacts in a new state; arguments as in `at`."""
        if len(self._recorded):
            _, _, q, s = self.at(t, y)
            n = self._system.nv
            self._recorded = self._system.recorded(float(t), q, s)[self._first - n : self._after - n]

    def last(self, t: float, y: Array) -> StateSample:
        """Return the last state, in which the impulses of external wrenches are exact; arguments as in `at`."""
        state, loop = self.at(t, y), self._system.loop
        missing = self._exact - y[len(y) - self._exact.size :].reshape(self._exact.shape)
        if loop is None or not missing.any():
            return state
        return state._replace(s=loop.after_impulse(state.q, state.s, np.concatenate([missing, self._points], axis=1)))


def _inside(t: float, interval: tuple[float, float]) -> float:
    """Return a time in the open interval next to t, [s]: at its ends, external wrenches may jump."""
    start, end = interval
    margin = _MARGIN * (end - start)
    return min(max(t, start + margin), end - margin)


class _Work:
    """Counts the steps of a solver with variable steps and compares them with its budget."""

    def __init__(self, budget: float, t: float):
        self.budget, self.start, self.steps = budget, t, 0

    def count(self, t: float) -> None:
        """Count a step that ends at a time t, [s]; raise SimulationError if the last 2000 exceed the budget."""
        self.steps += 1
        if self.steps < _WINDOW:
            return
        advance = t - self.start
        if advance * self.budget < _WINDOW:
            raise SimulationError(
                f"the solver with variable steps stalled at t = {t:.6g} s: its last {_WINDOW} steps advanced by "
                f"{advance:.3g} s; torques or contact forces that switch or change too fast force such steps; use "
                f"fixed steps, integrator=legged.SemiImplicitEuler(1e-4), lower gains, or BDF with a larger budget"
            )
        self.start, self.steps = t, 0


Stiff = BDF
"""Another name of `BDF`."""


def _difference_jacobian(rate: Callable[[float, Array], Array], t: float, y: Array, count: int) -> Array:
    """Return d rate / d y, (n, n), by forward differences, all columns in one call; rates depend on y[:count] alone.

    The increment of an entry is sqrt(eps) max(|y_i|, 1), so that entries near zero, such as those of a newly centered
    chart, change by more than rounding error; SciPy's own increments do not.
    """
    h = np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(y[:count]), 1.0)
    f = rate(t, np.vstack([y, y + np.eye(count, len(y)) * h[:, None]]))
    return np.concatenate([(f[1:] - f[0]) / h[:, None], np.zeros((len(y) - count, len(y)))]).T


def _advance(solver: ScipyBDF) -> bool:
    """Take a step; return whether it succeeded."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            solver.step()
    except (ValueError, ArithmeticError):  # NaN in a matrix, singular dynamics
        return False
    return solver.status != "failed" and bool(np.isfinite(solver.y).all())
