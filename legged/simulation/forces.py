"""Forces of joints that act only in simulations: stops at the ends of joint ranges, and motor limits.

On rigid ground stops are rigid, with the coefficient `JointPhysics.restitution`; see `loop.joint_laws`. On compliant
ground and without ground a stop is a one-sided spring k with critical damping d = 2 sqrt(k I), where I is the inertia
at the joint: its diagonal entry of the inertia matrix with every joint at zero or at the nearest stop. A body with
this inertia that reaches a stop at speed v overshoots it by v / (e sqrt(k / I)). Unless `JointPhysics.stop_stiffness`
states it, k is the largest of

    I / T^2,      tau / s,      I v_max^2 / (e s)^2      with v_max^2 = min(2 tau R / I, speed^2),

with T = `STOP_TIME` and s = `STOP_DEFLECTION`: a motor that presses against the stop with its whole effort tau deflects
it by s or less, and also one that has accelerated the joint over its whole range R with this effort.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.inertia import inertia_matrix
from legged.errors import SimulationWarning, StateError, warn_caller
from legged.robot.body import Body
from legged.robot.configuration import as_vector, scatter_add
from legged.robot.construction.group import RobotGroup
from legged.robot.physics import motor_force
from legged.robot.robot import Robot
from legged.spatial import is_finite, is_zero

Array = np.ndarray
STOP_TIME = 0.005
"""Largest time constant of a stop on compliant ground, [s]."""
STOP_DEFLECTION = {"angle": np.radians(0.5), "length": 1e-3}
"""Deflection of a stop on compliant ground under the effort of the joint's motor, [rad] and [m]."""
_OPEN_RANGE = {"angle": np.pi, "length": 1.0}  # [rad] and [m], over which a motor accelerates a joint with one stop
_ROUNDING = 1e-6  # of the largest force: forces on a base up to it come from rounding in a law
_RANGE_TOLERANCE = 1e-3  # [rad] or [m], by which an initial configuration may exceed a stop


# Joint stops.


@dataclass(frozen=True, eq=False)
class Stop:
    """The stops at both ends of the range of a joint.

    Attributes:
        body: The body behind the joint.
        lower, upper: Ends of the range, [rad] or [m]; infinite without a stop.
        stiffness: [N m/rad] or [N/m]. damping: [N m s/rad] or [N s/m]; both on compliant ground and without ground.
        restitution: Newton's coefficient of restitution on rigid ground.
    """

    body: Body
    lower: float
    upper: float
    stiffness: float
    damping: float
    restitution: float = 0.0

    def force(self, q: Array, v: Array) -> Any:
        """Return the generalized force on the joint's entry of v, [N m] or [N]; it only pushes back into the range.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        below, above = self._forces(q, v)
        return self.body.ratio * (below - above)

    def _forces(self, q: Array, v: Array) -> tuple[Any, Any]:
        """Return the magnitudes of the forces of the lower and the upper stop in the joint's own coordinate."""
        x, rate = self.body.joint_position(q)[0], self.body.ratio * v[self.body.v.start]
        below = self._force(self.lower - x, -rate) if is_finite(self.lower) else 0.0
        above = self._force(x - self.upper, rate) if is_finite(self.upper) else 0.0
        return below, above

    def _force(self, depth: Any, rate: Any) -> Any:
        return where(depth > 0.0, np.maximum(self.stiffness * depth + self.damping * rate, 0.0), 0.0)


def inertias_at_stops(robot: Robot) -> Array:
    """Return the diagonal of the inertia matrix with every joint at zero or at the nearest stop, (nv,), mixed units.

    Args:
        robot: The robot.
    """
    position: list[Any] = robot.neutral().tolist()
    for body, lower, upper in limited(robot):
        if not body.follows:
            position[body.q.start] = np.minimum(np.maximum(0.0, lower), upper)
    return np.diag(inertia_matrix(robot, as_vector(position)))


def stops_of(robot: Robot, inertias: Array | None = None) -> tuple[Stop, ...]:
    """Return the stops of all joints with a limited range.

    Args:
        robot: The robot. inertias: Those of `inertias_at_stops` if they are known, (nv,), mixed units.
    """
    ranges, stops = limited(robot), list[Stop]()
    if not ranges:
        return ()
    inertias = inertias_at_stops(robot) if inertias is None else inertias
    motors = {i: (effort, speed) for body in robot.bodies for i, effort, speed in body.motor_limits}
    for body, lower, upper in ranges:
        ratio, number = abs(body.ratio), body.v.start
        inertia: Any = inertias[number] / ratio**2
        effort, speed = motors.get(number, (np.inf, np.inf))
        stiffness = _default_stiffness(body, lower, upper, inertia, effort / ratio, speed * ratio)
        own, e = (np.ravel(x).tolist()[0] for x in (body.physics.stop_stiffness, body.physics.restitution))
        if not is_zero(own):
            stiffness = where(own > 0.0, own, stiffness)
        stops.append(Stop(body, lower, upper, stiffness, 2.0 * np.sqrt(stiffness * inertia), e))
    return tuple(stops)


def _default_stiffness(body: Body, lower: Any, upper: Any, inertia: Any, effort: Any, speed: Any) -> Any:
    """Return the stiffness of a stop that holds the effort of the joint's motor, [N m/rad] or [N/m]; see the module."""
    kind = "length" if body.motion.unit == "m" else "angle"
    least, s = inertia / STOP_TIME**2, STOP_DEFLECTION[kind]
    if not is_finite(effort):
        return least
    closed = is_finite(lower) and is_finite(upper)
    energy = effort * (upper - lower if closed else _OPEN_RANGE[kind])
    if is_finite(speed):
        energy = np.minimum(energy, 0.5 * inertia * speed**2)
    return np.maximum(np.maximum(least, effort / s), 2.0 * energy / (np.e * s) ** 2)


def stop_forces(robot: Robot, stops: Sequence[Stop], q: Array, v: Array) -> Array:
    """Return the generalized forces of the stops, (nv,), [N m] or [N].

    Args:
        robot: The robot. stops: See `stops_of`. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    values: list[Any] = [np.zeros(body.nv) for body in robot.bodies]
    for stop in stops:
        values[stop.body.index] = [stop.force(q, v)]
    return scatter_add(robot, values)


def check_range(robot: Robot, q: Array) -> None:
    """Raise StateError if a joint is beyond its stop.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    for body, lower, upper in limited(robot):
        x = float(body.joint_position(q)[0])
        if not lower - _RANGE_TOLERANCE <= x <= upper + _RANGE_TOLERANCE:
            unit = body.motion.unit
            raise StateError(
                f"joint {joint_name(robot, body)!r} is at {x:.4g} {unit}, beyond its stop at "
                f"{lower if x < lower else upper:.4g} {unit}; a run must start within the joints' ranges, so give a q"
            )


def beyond_range(robot: Robot, q: Array) -> Array:
    """Return whether a joint is beyond its stop in each of some configurations, (k,), bool.

    Args:
        robot: The robot. q: Configurations, (k, nq), mixed units.
    """
    beyond = np.zeros(len(q), dtype=bool)
    for body, lower, upper in limited(robot):
        x = body.joint_position(q.T)[0]
        beyond |= (x < lower - _RANGE_TOLERANCE) | (x > upper + _RANGE_TOLERANCE)
    return beyond


def limited(robot: Robot) -> list[tuple[Body, float, float]]:
    """Return (body, lower, upper) of each joint with a stop at one end or both.

    Args:
        robot: The robot.
    """
    return [(body, *body.stops) for body in robot.bodies if body.stops]


def joint_name(robot: Robot, body: Body) -> str:
    """Return the name of the joint in front of a body.

    Args:
        robot: The robot. body: The body.
    """
    if body.coupling is not None:
        return body.coupling.follower
    return next(joint.name for joint in robot.joints if joint.v.start <= body.v.start < joint.v.stop)


# Motors.


def motor_forces(robot: Robot, v: Array, tau: Array) -> Array:
    """Return commanded generalized forces within the limits of the motors, (nv,), [N m] or [N].

    In the direction of motion a motor gives at most effort * (1 - v / speed): its whole effort at rest, nothing at its
    maximum speed and beyond. Against the motion it gives up to its whole effort.

    Args:
        robot: The robot. v: Velocity, (nv,). tau: Commanded generalized forces, (nv,), [N m] or [N].
    """
    limited: list[Any] = list(tau)
    for body in robot.bodies:
        for i, effort, speed in body.motor_limits:
            forward, backward = motor_force(effort, speed, v[i]), motor_force(effort, speed, -v[i])
            limited[i] = np.minimum(np.maximum(limited[i], -backward), forward)
    return as_vector(limited)


def unactuated_entries(robot: Robot) -> list[int]:
    """Return the entries of v along which no motor acts: those of the base, and of the bases of a group's robots.

    Args:
        robot: The robot.
    """
    members = robot.members if isinstance(robot, RobotGroup) else ()
    bases = [range(m.v.start, m.v.start + m.robot.base.nv) for m in members]
    return [*range(robot.base.nv), *(i for base in bases for i in base)]


def base_force_text(robot: Robot, tau: Array) -> str:
    """Return the warning that a controller returned forces for a base without motors, or "" for none but rounding.

    Args:
        robot: The robot. tau: Generalized forces of the controller, (nv,), [N m] or [N], joint axes.
    """
    entries = unactuated_entries(robot)
    forces = np.abs(tau[entries])
    if not len(entries) or not forces.max() > _ROUNDING * max(float(np.abs(tau).max()), 1.0):
        return ""
    k = int(forces.argmax())
    return (
        f"the controller returns forces for the base of {robot.name!r}, on which no motor acts: {tau[entries[k]]:.3g} "
        f"N or N m in entry {entries[k]} of the generalized forces; they are left out. Return the joint forces alone"
    )


def actuator_forces(robot: Robot, tau: Array, notices: dict[str, str]) -> Array:
    """Return the generalized forces of a controller, (nv,), without those for a base, on which no motor acts.

    Where they are numbers that are no rounding, a warning is given, once for a robot.

    Args:
        robot: The robot. tau: Generalized forces of the controller, (nv,), [N m] or [N], joint axes.
        notices: Warnings given, by their subject; see `ClosedLoop.notices`.
    """
    entries = unactuated_entries(robot)
    if not entries or all(is_zero(tau[i]) for i in entries):
        return tau
    if tau.dtype != object and "base forces" not in notices and (text := base_force_text(robot, tau)):
        notices["base forces"] = text
        warn_caller(text, SimulationWarning)
    forces = list(tau)
    for i in entries:
        forces[i] = 0.0
    return as_vector(forces)
