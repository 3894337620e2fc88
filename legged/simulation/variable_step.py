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
        """Yield states at `times`, then the last state of one solver: at the end, a large rotation, or a failure.

        The unknowns are [xi; s] without peaks and times of contacts, the second half of their history, and the impulses
        of the external wrenches, whose exact values are known. No rate depends on the history or on what follows it.
        """
        q_ref, n, seen, end, loop = state.q, system.nv, state.s, interval[1], system.loop
        first = after = count = size = n + len(seen)
        pushes: Sequence[External] = ()
        if loop is not None:
            history, pushes = loop.history_entries, loop.pushes
            count, first, after = n + history.start, n + history.stop - loop.history_size // 2, n + history.stop
        given = loads_at(pushes, state.t)  # (k, 9): rows [torque; force; point]
        exact = np.zeros((len(given), _WRENCH))

        def full(y: Array) -> Array:
            recorded = np.broadcast_to(seen[first - n : after - n], (*y.shape[:-1], after - first))
            return np.concatenate([y[..., :first], recorded, y[..., first : size - after + first]], axis=-1)

        def at(t: float, y: Array) -> StateSample:
            s = full(y)[n:]
            return StateSample(float(t), state.phase, system.configuration(q_ref, y[:n]), s)

        def rate(t: float, y: Array) -> Array:
            if first == after and not len(given):
                return system.rate(t, state.phase, y, q_ref)
            loads = loads_at(pushes, _inside(t, interval))
            rates = system.rate(t, state.phase, full(y), q_ref, loads)
            known = np.broadcast_to(loads[:, :_WRENCH].ravel(), (*y.shape[:-1], exact.size))
            return np.concatenate([rates[..., :first], rates[..., after:], known], axis=-1)

        start = np.concatenate([np.zeros(n), state.s[: first - n], state.s[after - n :], np.zeros(exact.size)])
        solver = self._start(rate, state, start, end, count)
        t, y = solver.t, solver.y
        while solver.status == "running" and system.largest_rotation(y[:n]) < _MAX_ROTATION and _advance(solver):
            if loop is not None and len(given):
                exact += (solver.t - t) * loop.loads(t, solver.t - t)[:, :_WRENCH]
            t, y = solver.t, solver.y
            work.count(float(t))
            reached = times[times < t] if solver.status == "finished" else times[times <= t]  # the last state is below
            if len(reached):
                times, dense = times[len(reached) :], solver.dense_output()
                yield from (at(sample, dense(sample)) for sample in reached)
            seen = system.recorded(float(t), *at(t, y)[2:]) if first < after else seen
        last = at(t, y)
        missing = exact - y[len(y) - exact.size :].reshape(exact.shape)
        if loop is not None and missing.any():
            impulses = np.concatenate([missing, given[:, _WRENCH:]], axis=1)
            last = last._replace(s=loop.after_impulse(last.q, last.s, impulses))
        yield last

    def _start(
        self, rate: Callable[[float, Array], Array], state: StateSample, y: Array, end: float, count: int
    ) -> ScipyBDF:
        from scipy.integrate import BDF as ScipyBDF

        tolerances = self.max_step, self.rtol, self.atol
        try:
            return ScipyBDF(rate, state.t, y, end, *tolerances, lambda t, y: _difference_jacobian(rate, t, y, count))
        except (ValueError, ArithmeticError) as error:
            raise DivergenceError(
                f"the equations of motion have no solution ({error})", t=state.t, state=state.s
            ) from error


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
