"""The largest step at which an explicit method is stable: contacts on compliant ground, joint friction, and stops.

Near rest on the ground, the contact points are pressed against springs and dampers: with the Jacobian J of the points,
their stiffness K and damping D, the velocities of the points follow u_dot = -A (D u + K x) with A = J M^-1 J^T. The
fastest mode, with eigenvalues d of A D and k of A K, limits the step h of an explicit method:

    semi-implicit Euler    h^2 k + 2 h d < 4
    Runge-Kutta 4          h |lambda| < 2.78,  lambda^2 + d lambda + k = 0

A controller that reacts to the contact forces, such as `ComputedTorque`, changes the acceleration that they cause.
Where the step exceeds the limit of the robot alone, `stable_step_of_loop` takes A from the closed loop: the derivative
of the accelerations of the points with respect to the contact forces. Without reaction both agree.

Runge-Kutta steps also take friction and stops of joints explicitly. Regularized dry friction F and damping c are stable
for h lambda < 2.78 with the largest eigenvalue lambda of M^-1 diag(F / v_s + c); a stop k, d for the fastest mode of
lambda^2 + a d lambda + a k = 0 with the mobility a of the joint. Other steps with fixed length take both implicitly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import point_jacobian
from legged.dynamics.passive import friction_slopes
from legged.errors import NotFiniteError, SingularError
from legged.ground.ground import Ground, contact_wrenches
from legged.robot.configuration import scatter_add
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.simulation.checks.law import independent_copy
from legged.simulation.controller import needs_command
from legged.simulation.forces import Stop, joint_name, stops_of
from legged.simulation.integrators import FixedStep
from legged.simulation.loop.joint_laws import dry_friction
from legged.simulation.variable_step import BDF

if TYPE_CHECKING:
    from legged.simulation.loop.closed_loop import ClosedLoop

Array = np.ndarray
_MARGIN = 1.2  # of the estimated stable step, below which runs passed; see the table in docs/explanation/simulation.md
_RUNGE_KUTTA_LIMIT = 2.78  # stability limit of the classical method on the negative real axis
_SMALL_SPEED = 1e-6  # [m/s], increment of the difference quotients of damping


def contact_modes(
    robot: Robot, ground: Ground, q: Array, response: Callable[[Array, float], Array] | None = None
) -> tuple[float, float]:
    """Return the largest eigenvalues of A K and A D, [1/s^2] and [1/s]; see the module.

    Stiffness and damping are those of contact points that carry the robot's weight, half of the points at a time.

    Args:
        robot: The robot. ground: The ground. q: Configuration, (nq,).
        response: Returns the change of the generalized acceleration per contact force, (nv, 3 n), mixed units, from the
            Jacobian of the points (3 n, nv), world axes, and the load of a point, [N]; by default M^-1 J^T.
    """
    points, load = len(robot.contacts), _load(robot)
    depth = ground.normal.rest_penetration(load)

    def normal(p: float, rate: float) -> float:
        return float(ground.normal.force(np.float64(p), np.float64(rate)))

    def friction(speed: float, deflection: float) -> float:
        memory = np.full(ground.friction.memory, deflection)
        return -float(ground.friction.force(np.float64(load), np.array([speed, 0.0]), memory)[0][0])

    small = 1e-3 * depth
    stiffness = (normal(depth + small, 0.0) - normal(depth - small, 0.0)) / (2.0 * small)
    damping = (normal(depth, _SMALL_SPEED) - load) / _SMALL_SPEED
    k_t, d_t = friction(0.0, 1e-9) / 1e-9, friction(_SMALL_SPEED, 0.0) / _SMALL_SPEED
    J = np.concatenate([np.asarray(point_jacobian(robot, q, c.link, c.position))[3:] for c in robot.contacts])
    A = J @ (np.linalg.solve(inertia_matrix(robot, q), J.T) if response is None else response(J, load))
    pairs = [[k_t, k_t, stiffness] * points, [d_t, d_t, damping] * points]
    k, d = (float(np.linalg.eigvals(A * np.array(diagonal)).real.max()) for diagonal in pairs)
    return max(k, 0.0), max(d, 0.0)


def largest_stable_step(robot: Robot, ground: Any, q: Array, integrator: type[FixedStep]) -> float:
    """Return the largest stable step of the robot alone on the ground near rest, [s]; infinite without such a ground.

    Harder impacts and stiff gains may need shorter steps; half of it is a good choice.

    Args:
        robot: The robot. ground: The ground. q: Configuration, (nq,). integrator: Class of the integrator.
    """
    if not isinstance(ground, Ground) or not robot.contacts or not robot.gravity.any():
        return np.inf
    return _limit(*contact_modes(robot, ground, q), integrator)


def stable_step_of_loop(loop: ClosedLoop, q: Array, s: Array, integrator: FixedStep) -> float:
    """Return the largest stable step on the ground near rest under the controller, [s].

    The reaction of the controller is evaluated if the step of the integrator exceeds `largest_stable_step`; that of a
    law whose command is not known yet is left out.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        integrator: The integrator.
    """
    robot, ground, kind = loop.robot, loop.ground, type(integrator)
    alone = largest_stable_step(robot, ground, q, kind)
    if integrator.step <= alone or not isinstance(ground, Ground) or needs_command(loop.controller):
        return alone
    controlled = replace(loop, controller=independent_copy(loop.controller))
    h = 0.0 if integrator.rule == "runge_kutta" else integrator.step  # Runge-Kutta steps take no gains implicitly

    def acceleration(forces: Array) -> Array:
        wrenches = contact_wrenches(robot, q, forces.reshape(-1, 3))
        tau, damping, _ = controlled.step_actuation(0.0, h, 0, q, s, wrenches)
        return controlled.smooth_acceleration(q, s[: robot.nv], tau, wrenches, h * damping)

    def response(J: Array, load: float) -> Array:
        rest = np.tile([0.0, 0.0, load], len(robot.contacts))
        before, increment = acceleration(rest), 1e-3 * load
        return np.stack([(acceleration(rest + f) - before) / increment for f in increment * np.eye(len(J))], axis=1)

    try:
        return _limit(*contact_modes(robot, ground, q, response), kind)
    except (NotFiniteError, SingularError):
        return alone


def stable_step_of_friction(robot: Robot, q: Array) -> float:
    """Return the largest stable Runge-Kutta step of joint friction near rest, [s]; infinite without friction.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    slopes = scatter_add(robot, [friction_slopes(body, np.zeros(robot.nv)) for body in robot.bodies])
    if not slopes.any():
        return np.inf
    return _RUNGE_KUTTA_LIMIT / float(
        np.linalg.eigvals(np.linalg.solve(inertia_matrix(robot, q), np.diag(slopes))).real.max()
    )


def step_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    """Return a warning of the integrator at the start of a run, or "".

    A fixed step is too long for the stiffness and damping of compliant ground; joint friction is too steep for the step
    of an explicit integrator, or dry friction is regularized.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        integrator: The integrator.
    """
    return _ground_warning(loop, q, s, integrator) or _friction_warning(loop, q, integrator)


def _ground_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    if not isinstance(integrator, FixedStep) or integrator.rule in ("time_stepping", "linearly_implicit"):
        return ""
    largest = stable_step_of_loop(loop, q, s, integrator)
    if integrator.step <= _MARGIN * largest:
        return ""
    return (
        f"a step of {integrator.step:g} s is too long for this ground: feet in contact are stable up to {largest:.2g} "
        f"s; take {0.5 * largest:.1g} s, a softer ground, or a legged.Rigid ground"
    )


def _friction_warning(loop: ClosedLoop, q: Array, integrator: Any) -> str:
    robot = loop.robot
    is_explicit = getattr(integrator, "rule", "") == "runge_kutta"
    if is_explicit and integrator.step > (limit := stable_step_of_friction(robot, q)):
        return (
            f"a step of {integrator.step:g} s is too long for the friction of the joints, which is stable up to "
            f"{limit:.2g} s; take {0.5 * limit:.1g} s, or legged.SemiImplicitEuler, which takes friction implicitly"
        )
    if not (is_explicit or isinstance(integrator, BDF)) or not dry_friction(loop.robot):
        return ""
    return (
        f"{integrator} regularizes the dry friction of joints: one that friction should hold creeps at up to "
        f"{TRANSITION_SPEED:g} rad/s or m/s; legged.SemiImplicitEuler holds it"
    )


class StiffStops:
    """The stops of a robot that are too stiff for the steps of an integrator.

    Args:
        robot: The robot. q: Configuration, (nq,), at which steps are judged. integrator: The integrator.
    """

    def __init__(self, robot: Robot, q: Array, integrator: object):
        self._robot, self._stops = robot, list[tuple[Stop, float]]()
        self._step = float(getattr(integrator, "step", 0.0))
        if getattr(integrator, "rule", "") != "runge_kutta":
            return
        stops = stops_of(robot)
        mobilities = np.diag(np.linalg.inv(inertia_matrix(robot, q))) if stops else np.zeros(0)
        for stop in stops:
            a = float(mobilities[stop.body.v.start]) * stop.body.ratio**2
            limit = _limit(a * stop.stiffness, a * stop.damping, integrator)  # type: ignore[arg-type]
            if self._step > limit:
                self._stops.append((stop, limit))

    def warning(self, q: Array) -> str:
        """Return the warning about a joint that is beyond such a stop in some configurations, or "".

        Args:
            q: Configurations, (k, nq), mixed units.
        """
        for stop, limit in self._stops:
            x = stop.body.joint_position(q.T)[0]
            depth = np.maximum(stop.lower - x, x - stop.upper)
            if (depth > 0.0).any():
                name, unit = joint_name(self._robot, stop.body), stop.body.motion.unit
                return (
                    f"a step of {self._step:g} s is too long for the stop of joint {name!r}, which is stable up to "
                    f"{limit:.2g} s and which the joint exceeds by up to {np.nanmax(depth):.2g} {unit}; take "
                    f"{0.5 * limit:.1g} s, or legged.SemiImplicitEuler, which takes stops implicitly"
                )
        return ""


def _load(robot: Robot) -> float:
    """Return the weight that a contact point carries if half of the points carry the robot, [N]."""
    return robot.mass * float(np.linalg.norm(robot.gravity)) / max(len(robot.contacts) // 2, 1)


def _limit(k: float, d: float, integrator: type[FixedStep]) -> float:
    """Return the largest stable step, [s], for the eigenvalues of `contact_modes`."""
    if not (np.isfinite([k, d]).all() and (k > 0.0 or d > 0.0)):
        return np.inf
    if integrator.rule == "runge_kutta":
        fastest = max(np.abs(np.roots([1.0, d, k])).tolist())
        return _RUNGE_KUTTA_LIMIT / fastest
    return float(4.0 / (d + np.sqrt(d * d + 4.0 * k)))
