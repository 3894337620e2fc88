"""Simulation of robots with closed kinematic loops: constrained accelerations, and projection after each fixed step.

`legged.simulate` takes a `legged.loops.ClosedRobot` in place of a robot and uses the closed loops of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from legged.contact.impulses.dense import DenseInertia, LoopRows
from legged.dynamics.inverse import bias_forces
from legged.errors import LoopError
from legged.loops.assembly import project_state, rounding_allowance
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import jacobian, residual
from legged.loops.dynamics import Stabilization, constraint_acceleration, simulation_acceleration
from legged.loops.redundancy import independent_flags
from legged.simulation.forces import stop_forces
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.momentum import FreePart
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.spatial import Array

CLOSURE_TOLERANCE = 1e-6
"""Largest constraint residual of an initial configuration, [m] or 1; of a velocity, relative to its largest entry."""
PROJECTION_STEPS = 2
"""Newton steps that project a configuration onto the constraints after a time step; each squares the error."""


@dataclass(frozen=True, eq=False)
class ClosedChainLoop(ClosedLoop):
    """The closed loop of a robot with closed kinematic loops.

    Attributes:
        closed: The robot with its loops, its rows ordered at the initial configuration by `independent_first`.
        stabilization: Baumgarte stabilization of the accelerations.
    """

    closed: ClosedRobot = field(kw_only=True)
    stabilization: Stabilization = field(kw_only=True)

    def semi_implicit(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q (nq,), s (size,)) after a step, projected onto the loops; see `ClosedLoop.semi_implicit`."""
        return _projected(self.closed, *super().semi_implicit(t, h, phase, q, s))

    def runge_kutta(self, t: Any, h: Any, phase: Any, q: Array, s: Array) -> tuple[Array, Array]:
        """Return (q (nq,), s (size,)) after a step, projected onto the loops; see `ClosedLoop.runge_kutta`."""
        return _projected(self.closed, *super().runge_kutta(t, h, phase, q, s))

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        """Return vdot, (nv,), which satisfies the loop constraints; see `ClosedLoop.acceleration`."""
        tau = tau + stop_forces(self.robot, self._stops, q, v)
        return simulation_acceleration(self.closed, q, v, tau, wrenches, self.stabilization)

    def smooth_acceleration(
        self, q: Array, v: Array, tau: Array, wrenches: Any, extra: Array, masses: Mapping[int, Array] | None = None
    ) -> Array:
        """Return vdot, (nv,), which satisfies the loop constraints; see `ClosedLoop.smooth_acceleration`."""
        b = tau - bias_forces(self.smooth_robot, q, v, wrenches)
        inertia = DenseInertia(self.robot, q, extra, _loop_rows(self.closed, q))
        return inertia.constrained(b, constraint_acceleration(self.closed, q, v, self.stabilization))


@dataclass(frozen=True, eq=False)
class ClosedRigidLoop(RigidLoop):
    """The closed loop of a robot with closed kinematic loops on a `Rigid` ground, among free bodies.

    The impulses of a time step include those of the closing joints: no velocity change opens the loops. After the step
    the state is projected onto them.

    Attributes:
        closed: The robot with its loops, its rows ordered at the initial configuration by `independent_first`.
    """

    closed: ClosedRobot = field(kw_only=True)

    def loops(self, q: Array) -> LoopRows:
        """Return the loop constraints; see `RigidLoop.loops`."""
        return _loop_rows(self.closed, q)

    def frictionless_acceleration(self, q: Array, v: Array, tau: Array, wrenches: Any, extra: Array) -> Array:
        """Return vdot, (nv,), which satisfies the loop constraints; see `RigidLoop.frictionless_acceleration`."""
        b = tau - bias_forces(self.frictionless_robot, q, v, wrenches)
        inertia = DenseInertia(self.robot, q, extra, self.loops(q))
        return inertia.constrained(b, constraint_acceleration(self.closed, q, v))

    @cached_property
    def free_parts(self) -> tuple[tuple[FreePart, ...], ...]:
        """The freely moving parts; see `RigidLoop.free_parts`. No loop connects them to anything else."""
        parts, link = super().free_parts, self.robot.link
        ends = [
            [0 if name is None else link(name).body for name in (loop.parent, loop.child)] for loop in self.closed.loops
        ]
        own = [part for part in parts[0] if all(len({k in part.bodies for k in pair}) == 1 for pair in ends)]
        return tuple(own), *parts[1:]

    def closed_state(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (q (nq,), v (nv,)) projected onto the loops; see `RigidLoop.closed_state`."""
        return project_state(self.closed, q, v, PROJECTION_STEPS)


def _loop_rows(closed: ClosedRobot, q: Array) -> LoopRows:
    J = jacobian(closed, q)
    return LoopRows(J, independent_flags(closed, J))


def _projected(closed: ClosedRobot, q: Array, s: Array) -> tuple[Array, Array]:
    """Return (q (nq,), s (size,)) with configuration and velocity projected onto the loop constraints."""
    n = closed.robot.nv
    q, v = project_state(closed, q, s[:n], PROJECTION_STEPS)
    return q, np.concatenate([v, s[n:]])


def check_closed(closed: ClosedRobot, q: Array, v: Array) -> None:
    """Raise LoopError if a state does not satisfy the loop constraints.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    phi, accepted = residual(closed, q), np.maximum(CLOSURE_TOLERANCE, rounding_allowance(closed))
    J = jacobian(closed, q)
    accepted[np.array(independent_flags(closed, J), bool)] = CLOSURE_TOLERANCE
    error = float(np.abs(phi).max(initial=0.0))
    if (np.abs(phi) > accepted).any():
        raise LoopError(
            f"q does not close the loops of {closed.name!r}: constraint residual {error:.3g}; call `assemble(closed, "
            f"q)` to satisfy the constraints",
            error,
        )
    rates = np.abs(J @ v)
    rate = float(rates.max(initial=0.0))
    if (rates > accepted * max(1.0, float(np.abs(v).max(initial=0.0)))).any():
        raise LoopError(
            f"v opens the loops of {closed.name!r}: constraint rate {rate:.3g}; call `consistent_velocity(closed, q, "
            f"v)` to satisfy the constraints",
            rate,
        )
