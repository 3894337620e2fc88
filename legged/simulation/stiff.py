"""The paper's solver: variable-order numerical differentiation formulas, for stiff ground."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from legged.errors import DefinitionError
from legged.simulation.system import Diverged, Segment, State, System

if TYPE_CHECKING:
    from scipy.integrate import BDF  # imported where it is used, since that takes half as long as all else

Array = np.ndarray
_WIDEST_TURN = 1.0  # [rad], of a rotation vector before a new reference is taken
_ATTEMPTS = 3  # fresh starts without progress before giving up
_PROGRESS = 1e-6  # [s], what counts as progress of one solver


@dataclass(frozen=True)
class Stiff:
    """Implicit solver of variable order (1 to 5) and step, the family of the paper's ode15s, from SciPy.

    It wants torques that are a continuous function of time and state between switches: noise, or a controller with a
    clock of its own, makes it crawl; those want a fixed step.

    Attributes:
        rtol: Relative tolerance of a step.
        atol: Absolute tolerance of a step, in SI units of each state.
        max_step: Longest step, [s].
    """

    rtol: float = 1e-6
    atol: float = 1e-8
    max_step: float = np.inf

    def __post_init__(self) -> None:
        if not (self.rtol > 0.0 and self.atol > 0.0 and self.max_step > 0.0):
            raise DefinitionError(f"Stiff needs positive rtol, atol and max_step, got {self}")

    def march(self, system: System, q: Array, s: Array, segments: Sequence[Segment]) -> Iterator[State]:
        """Yield the state at every sample time; see `Integrator`."""
        for phase, start, end, times in segments:
            state, waiting, stuck = State(start, phase, q, s), times, 0
            if len(waiting) and waiting[0] == start:
                yield state
                waiting = waiting[1:]
            while state.t < end:
                begun = state.t
                for reached in self._solve(system, state, end, waiting):
                    if len(waiting) and waiting[0] == reached.t:
                        yield reached
                        waiting = waiting[1:]
                    state = reached
                stuck = stuck + 1 if state.t - begun < _PROGRESS else 0
                if stuck == _ATTEMPTS:
                    raise Diverged(state.t, f"the solver's step shrank to nothing; {system.trouble}".rstrip("; "))
            q, s = state.q, state.s

    def _solve(self, system: System, state: State, end: float, times: Array) -> Iterator[State]:
        """Yield states at `times` while one solver lasts, then where it stopped: at the end, a wide turn, or stuck."""
        q_ref, n = state.q, system.nv

        def at(t: float, y: Array) -> State:
            return State(float(t), state.phase, system.configuration(q_ref, y[:n]), y[n:])

        def rate(t: float, y: Array) -> Array:
            return system.rate(t, state.phase, y, q_ref)

        solver = self._start(rate, state, end, n)
        t, y = solver.t, solver.y
        while solver.status == "running" and system.turn(y[:n]) < _WIDEST_TURN and _advance(solver):
            t, y = solver.t, solver.y
            reached = times[times <= t]
            if len(reached):
                times, dense = times[len(reached) :], solver.dense_output()
                yield from (at(sample, dense(sample)) for sample in reached)
        yield at(t, y)

    def _start(self, rate: Callable[[float, Array], Array], state: State, end: float, n: int) -> BDF:
        y = np.concatenate([np.zeros(n), state.s])

        def jacobian(t: float, y: Array) -> Array:
            return difference_jacobian(rate, t, y)

        from scipy.integrate import BDF

        try:
            return BDF(rate, state.t, y, end, self.max_step, self.rtol, self.atol, jacobian)
        except (ValueError, ArithmeticError) as error:
            raise Diverged(state.t, f"the equations of motion have no answer ({error})") from error


def difference_jacobian(rate: Callable[[float, Array], Array], t: float, y: Array) -> Array:
    """Return d rate / d y, (n, n), by forward differences, all columns in one call.

    The increment of an entry is sqrt(eps) max(|y_i|, 1): entries near zero, as those of a fresh chart are, must still
    be moved by more than the rounding of what they are added to. (SciPy's own differences are not.)
    """
    h = np.sqrt(np.finfo(float).eps) * np.maximum(np.abs(y), 1.0)
    f = rate(t, np.vstack([y, y + np.diag(h)]))
    return ((f[1:] - f[0]) / h[:, None]).T


def _advance(solver: BDF) -> bool:
    """Take a step; return whether it worked."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            solver.step()
    except (ValueError, ArithmeticError):  # NaN in a matrix, singular dynamics
        return False
    return solver.status != "failed" and bool(np.isfinite(solver.y).all())
