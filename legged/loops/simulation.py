"""Runs of robots with closed loops: the simulation of trees, with their accelerations and steps bound to the loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.errors import LoopError
from legged.ground.ground import Ground
from legged.loops.consistent import assemble, projected
from legged.loops.constraints import jacobian, residual
from legged.loops.dynamics import Stabilization, by_pivots
from legged.loops.loop import ClosedRobot
from legged.loops.rank import independent_rows, ordered
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import ControllerLike, adapt
from legged.simulation.disturbance import Push
from legged.simulation.engine import choose
from legged.simulation.fall import Fall, Watch
from legged.simulation.fixed import RungeKutta4
from legged.simulation.limits import stop_forces
from legged.simulation.run import Run
from legged.simulation.simulate import follow, initial_state, sample_times
from legged.simulation.skeleton import stick_figure
from legged.simulation.system import Integrator
from legged.spatial import Array

_OPEN = 1e-6  # [m] or 1; rates relative to the largest velocity
PROJECTIONS = 2
"""Newton steps that bring a configuration back onto the loops after a time step; each squares the error."""


@dataclass(frozen=True, eq=False)
class BoundLoop(ClosedLoop):
    """A robot with closed loops under a controller on a ground; friction of joints is explicit.

    Attributes:
        closed: The robot's loops, their rows in order of importance at the start.
        stabilization: Of the accelerations.
    """

    closed: ClosedRobot = field(kw_only=True)
    stabilization: Stabilization = field(kw_only=True)

    def semi_implicit(self, t: Any, h: Any, step: Any, q: Array, s: Array) -> tuple[Array, Array]:
        return self._back(*super().semi_implicit(t, h, step, q, s))

    def runge_kutta(self, t: Any, h: Any, step: Any, q: Array, s: Array) -> tuple[Array, Array]:
        return self._back(*super().runge_kutta(t, h, step, q, s))

    def _back(self, q: Array, s: Array) -> tuple[Array, Array]:
        n = self.robot.nv
        q, v = projected(self.closed, q, s[:n], PROJECTIONS)
        return q, np.concatenate([v, s[n:]])

    def _vdot(self, q: Array, v: Array, tau: Array, wrenches: Array, extra: Array) -> Array:
        tau = tau + stop_forces(self.robot, self._stops, q, v)
        return by_pivots(self.closed, q, v, tau, wrenches, self.stabilization)

    def _slope(self, h: Any, q: Array, v: Array) -> Array:
        return np.zeros(self.robot.nv)


def simulate(
    closed: ClosedRobot,
    controller: ControllerLike | Any = None,
    *,
    until: float,
    ground: Ground | None = None,
    q: Any = None,
    v: Any = None,
    integrator: Integrator | None = None,
    sample: float = 0.01,
    time_constant: float = 0.05,
    fall: Fall | Watch | bool | None = None,
    pushes: Sequence[Push] = (),
    compiled: bool | None = None,
    progress: bool | None = None,
) -> Run:
    """Return the motion of a robot with closed loops from t = 0 to `until`; `run.q` and the rest are its tree's.

    Accelerations obey the loops, with Baumgarte's terms; after each fixed step the state is brought back onto them.
    `Stiff` has no such steps: it keeps to the loops by these terms alone. Which constraints are superfluous is decided
    anew at every evaluation, compiled or not, so that a run may start in and pass through postures where that changes.

    Args:
        closed: The robot with its loops.
        q, v: As in `legged.simulate`; they must fit the loops. Without q, `assemble` finds one near the neutral one.
        integrator: `RungeKutta4(step=1e-3)` by default, `SemiImplicitEuler(...)`, `Stiff(...)`.
        time_constant: Of Baumgarte's terms, [s], see `Stabilization`.
        controller, until, ground, sample, fall, pushes, compiled, progress: As in `legged.simulate`.

    Raises:
        LoopError: for a state that does not fit the loops. Others as in `legged.simulate`.
    """
    robot, times, adapted = closed.robot, sample_times(until, sample), adapt(controller)
    if q is None and not hasattr(controller, "initial_state"):
        q = assemble(closed, robot.neutral())
    q, v = initial_state(robot, controller, q, v)
    _refuse_open(closed, q, v)
    memory = adapted.start(robot, ground, q, v)
    loop = BoundLoop(
        robot,
        adapted,
        ground,
        len(memory),
        tuple(pushes),
        stick_figure(robot)[0],
        closed=ordered(closed, q),
        stabilization=Stabilization(time_constant),
    )
    s = loop.initial(v, memory)
    engine = choose(loop, q, s, compiled)
    integrator = RungeKutta4(step=1e-3) if integrator is None else integrator
    return follow(engine, controller, q, s, times, integrator, fall, progress)


def loop_errors(closed: ClosedRobot, run: Run) -> Array:
    """Return the largest row of phi at each sample of a run, (T,), [m] or 1."""
    phi = compile_function(partial(residual, closed), None, q=closed.robot.nq)
    return np.abs(phi(run.q)).max(axis=1, initial=0.0)


def ranks(closed: ClosedRobot, run: Run) -> Array:
    """Return the rank of the loops' constraints at each sample of a run, (T,): it falls where the loops gain a freedom.

    At such a posture several motions fit, and the run takes the one that the velocities already have.
    """
    J = compile_function(partial(jacobian, closed), None, q=closed.robot.nq)(run.q)
    return np.array([independent_rows(rows, np.zeros(len(rows))).L.shape[0] for rows in J])


def _refuse_open(closed: ClosedRobot, q: Array, v: Array) -> None:
    open_by = float(np.abs(residual(closed, q)).max(initial=0.0))
    if open_by > _OPEN:
        raise LoopError(
            f"the loops of {closed.name!r} are open at q: a row of {open_by:.3g} is left; `assemble` finds a q", open_by
        )
    rate = float(np.abs(jacobian(closed, q) @ v).max(initial=0.0))
    if rate > _OPEN * max(1.0, float(np.abs(v).max(initial=0.0))):
        raise LoopError(
            f"v opens the loops of {closed.name!r}: a rate of {rate:.3g} is left; `consistent_velocity` finds a v", rate
        )
