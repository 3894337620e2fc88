"""What bounds a joint in a simulation: the stops at the ends of its range, and what its motor can give.

A stop is a one-sided spring and damper of stiffness I / T^2 and damping 2 I / T, T = `STOP_TIME`; I is the inertia that
the joint carries, its entry on the diagonal of the inertia matrix with every joint at zero or at the stop next to it.
What has this inertia and hits a stop at speed v goes v T / e beyond it, and leaves it after 2 T at v / e^2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.inertia import inertia_matrix
from legged.errors import StateError
from legged.robot.body import Body
from legged.robot.configuration import as_vector, scatter_add
from legged.robot.robot import Robot

Array = np.ndarray
STOP_TIME = 0.005
"""Time constant of a stop, [s]."""
_BEYOND = 1e-3  # [rad] or [m], how far beyond a stop a run may start


@dataclass(frozen=True, eq=False)
class Stop:
    """The ends of a joint's range.

    Attributes:
        body: The body behind the joint.
        lower, upper: [rad] or [m]; infinite where there is none.
        stiffness: [N m/rad] or [N/m]. damping: [N m s/rad] or [N s/m].
    """

    body: Body
    lower: float
    upper: float
    stiffness: float
    damping: float

    def force(self, q: Array, v: Array) -> Any:
        """Return the generalized force on the joint's entry of v: it only pushes back into the range."""
        below, above = self._pushes(q, v)
        return self.body.ratio * (below - above)

    def slope(self, h: Any, q: Array, v: Array) -> Any:
        """Return how much the force falls per rate of v in a step of length h: damping + h stiffness, if it pushes."""
        below, above = self._pushes(q, v)
        return where(below + above > 0.0, self.body.ratio**2 * (self.damping + h * self.stiffness), 0.0)

    def _pushes(self, q: Array, v: Array) -> tuple[Any, Any]:
        """Return how hard the lower stop pushes up and the upper stop down, in the joint's own coordinate."""
        x, rate = self.body.joint_position(q)[0], self.body.ratio * v[self.body.v.start]
        below = self._push(self.lower - x, -rate) if np.isfinite(self.lower) else 0.0
        above = self._push(x - self.upper, rate) if np.isfinite(self.upper) else 0.0
        return below, above

    def _push(self, depth: Any, rate: Any) -> Any:
        return where(depth > 0.0, np.maximum(self.stiffness * depth + self.damping * rate, 0.0), 0.0)


def stops_of(robot: Robot) -> tuple[Stop, ...]:
    """Return the stops of all joints that have some."""
    ends = _ranges(robot)
    if not ends:
        return ()
    carried, stops = np.diag(inertia_matrix(robot, _inside(robot))), []
    for body, lower, upper in ends:
        inertia = float(carried[body.v.start]) / body.ratio**2
        stops.append(Stop(body, lower, upper, inertia / STOP_TIME**2, 2.0 * inertia / STOP_TIME))
    return tuple(stops)


def stop_forces(robot: Robot, stops: Sequence[Stop], q: Array, v: Array) -> Array:
    """Return the forces of stops, (nv,), [N m] or [N]."""
    return _by_stop(robot, stops, lambda stop: stop.force(q, v))


def stop_slopes(robot: Robot, stops: Sequence[Stop], h: Any, q: Array, v: Array) -> Array:
    """Return how much the forces of stops fall per rate of v over a step of length h, (nv,)."""
    return _by_stop(robot, stops, lambda stop: stop.slope(h, q, v))


def _by_stop(robot: Robot, stops: Sequence[Stop], share: Callable[[Stop], Any]) -> Array:
    shares: list[Any] = [np.zeros(body.nv) for body in robot.bodies]
    for stop in stops:
        shares[stop.body.index] = [share(stop)]
    return scatter_add(robot, shares)


def check_range(robot: Robot, q: Array) -> None:
    """Raise StateError if a configuration, (nq,), lies beyond a stop."""
    for body, lower, upper in _ranges(robot):
        x = float(body.joint_position(q)[0])
        if not lower - _BEYOND <= x <= upper + _BEYOND:
            unit = "m" if body.kind == "prismatic" else "rad"
            raise StateError(
                f"joint {_joint_name(robot, body)!r} is at {x:.4g} {unit}, beyond its stop at "
                f"{lower if x < lower else upper:.4g} {unit}; a run must start within the joints' ranges, so give a q"
            )


def motor_forces(robot: Robot, v: Array, tau: Array) -> Array:
    """Return what motors give of the forces asked of them, (nv,): no more than their effort, less at speed.

    A motor that drives gives at most effort * (1 - v / speed), from its whole effort at rest to nothing at its speed
    and beyond; one that brakes gives up to its whole effort.
    """
    given: list[Any] = list(tau)
    for body in robot.bodies:
        for i, effort, speed in body.motor_limits:
            ahead, back = _available(effort, speed, v[i]), _available(effort, speed, -v[i])
            given[i] = np.minimum(np.maximum(given[i], -back), ahead)
    return as_vector(given)


def _available(effort: float, speed: float, rate: Any) -> Any:
    """Return the largest force in the direction of a rate."""
    if not np.isfinite(speed):
        return effort
    return effort * np.minimum(np.maximum(1.0 - rate / speed, 0.0), 1.0)


def _ranges(robot: Robot) -> list[tuple[Body, float, float]]:
    """Return (body, lower, upper) of each joint with a stop at one end or both."""
    return [(body, *body.stops) for body in robot.bodies if body.stops]


def _inside(robot: Robot) -> Array:
    """Return a configuration with joints at zero, or at the stop next to it."""
    q = robot.neutral()
    for body, lower, upper in _ranges(robot):
        if not body.follows:
            q[body.q] = min(max(0.0, lower), upper)
    return q


def _joint_name(robot: Robot, body: Body) -> str:
    if body.coupling is not None:
        return body.coupling.follower
    return next(joint.name for joint in robot.joints if joint.v.start <= body.v.start < joint.v.stop)
