"""Laws that hold for every robot, each as a relative error that is zero except for rounding.

Most hold in every state. `flight_drift` integrates a short free motion, in which energy is constant and only gravity
changes momentum.

Errors of forces are relative to the largest row of |I| |vdot| + |h|, the size of the terms before cancellation. Errors
of entries of the inertia matrix are relative to sqrt(I_ii I_jj), which does not depend on units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged import denoc
from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.frames import Frame, frame_jacobian, frame_pose
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces, floating_inverse_dynamics, inverse_dynamics
from legged.dynamics.kinematics import kinetic_energy, link_poses, momentum, potential_energy
from legged.robot.configuration import configuration_rate, normalized, random_configuration
from legged.robot.construction.reduced import joint_placement
from legged.robot.robot import Robot
from legged.spatial import Array, mass_matrix


@dataclass(frozen=True, eq=False)
class Sample:
    """A random state, acceleration and generalized force, with the results of the recursions.

    Attributes:
        robot: The robot.
        q, v, vdot, tau: Random configuration, velocity, acceleration and generalized force.
        inertia: Inertia matrix I, (nv, nv).
        bias: Bias forces h, (nv,).
        acceleration: Forward dynamics under tau, (nv,).
        compiled: Compiled forward dynamics, inverse dynamics and inertia matrix, by name.
    """

    robot: Robot
    q: Array
    v: Array
    vdot: Array
    tau: Array
    inertia: Array
    bias: Array
    acceleration: Array
    compiled: Mapping[str, Callable[..., Any]]

    def force_error(self, one: Array, two: Array, vdot: Array) -> float:
        """Return the relative difference of two generalized forces, dimensionless.

        Args:
            one, two: Generalized forces, (nv,), mixed units.
            vdot: Acceleration that determines the size of the terms, (nv,).
        """
        size = float(np.max(np.abs(self.inertia) @ np.abs(vdot) + np.abs(self.bias), initial=0.0))
        return float(np.max(np.abs(one - two), initial=0.0)) / size if size else 0.0

    def inertia_error(self, other: Array) -> float:
        """Return the relative difference of an inertia matrix to I.

        Args:
            other: Inertia matrix, (nv, nv), mixed units.
        """
        size = np.sqrt(np.abs(np.diag(self.inertia)))
        return float(np.max(np.abs(other - self.inertia) / np.outer(size, size), initial=0.0))


def sample(robot: Robot, seed: int, compiled: Mapping[str, Callable[..., Any]]) -> Sample:
    """Return the robot in a random state."""
    rng = np.random.default_rng(seed)
    q = random_configuration(robot, rng)
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    inertia, bias = inertia_matrix(robot, q), bias_forces(robot, q, v)
    tau = bias + inertia @ tau  # accelerations of order 1 for any robot
    return Sample(robot, q, v, vdot, tau, inertia, bias, forward_dynamics(robot, q, v, tau), compiled)


def inverse_of_forward(s: Sample) -> float:
    return s.force_error(inverse_dynamics(s.robot, s.q, s.v, s.acceleration), s.tau, s.acceleration)


def forward_of_inverse(s: Sample) -> float:
    tau = inverse_dynamics(s.robot, s.q, s.v, s.vdot)
    vdot = forward_dynamics(s.robot, s.q, s.v, tau)
    return s.force_error(s.inertia @ vdot, s.inertia @ s.vdot, s.vdot)


def floating_base_undriven(s: Sample) -> float:
    n = s.robot.base.nv
    vdot_0, tau = floating_inverse_dynamics(s.robot, s.q, s.v, s.vdot[n:])
    vdot = np.concatenate([vdot_0, s.vdot[n:]])
    return s.force_error(inverse_dynamics(s.robot, s.q, s.v, vdot), np.concatenate([np.zeros(n), tau]), vdot)


def inertia_by_unit_accelerations(s: Sample) -> float:
    rest = 0.0 * s.v
    h = bias_forces(s.robot, s.q, rest)
    columns = [inverse_dynamics(s.robot, s.q, rest, e) - h for e in np.eye(s.robot.nv)]
    return s.inertia_error(np.array(columns).reshape(s.robot.nv, s.robot.nv).T)


def inertia_of_dense_theory(s: Sample) -> float:
    return s.inertia_error(denoc.generalized_inertia_matrix(s.robot, s.q))


def bias_of_dense_theory(s: Sample) -> float:
    return s.force_error(denoc.bias_forces(s.robot, s.q, s.v), s.bias, 0.0 * s.v)


def forward_of_dense_theory(s: Sample) -> float:
    I, h = denoc.generalized_inertia_matrix(s.robot, s.q), denoc.bias_forces(s.robot, s.q, s.v)
    return s.force_error(I @ s.acceleration + h, s.tau, s.acceleration)


def inertia_of_links(s: Sample) -> float:
    """Compare with the sum over links and rotors as defined, not over the bodies of the recursions."""
    robot, total = s.robot, np.zeros_like(s.inertia)
    for link in robot.links:
        i, J = link.inertia, frame_jacobian(robot, s.q, link.name, axes="local")
        total += J.T @ mass_matrix(i.mass, i.mass * np.asarray(i.center), i.about_origin) @ J
    return s.inertia_error(total + _rotors(robot, s.q))


def _rotors(robot: Robot, q: Array) -> Array:
    """Return the contribution of rotors and armature to the inertia matrix, (nv, nv)."""
    total, connections = np.zeros((robot.nv, robot.nv)), {c.joint.name: c for c in robot.connections}
    total[: robot.base.nv, : robot.base.nv] = robot.base.physics.armature * np.eye(robot.base.nv)
    for joint in (*robot.joints, *robot.followers):
        ratio, physics, c = getattr(joint, "ratio", 1.0), joint.definition.physics, connections[joint.name]
        rotor = physics.rotor
        reflected = np.asarray(physics.armature) + (0.0 if rotor is None else rotor.gear**2 * rotor.inertia)
        total[joint.v, joint.v] += ratio**2 * np.diag(np.broadcast_to(reflected, joint.nv))
        if rotor is not None and rotor.gyroscopic:
            axis = c.start.rotation @ joint.definition.stages[0].axis
            spin = ratio * rotor.gear * rotor.inertia * axis @ frame_jacobian(robot, q, c.parent, axes="local")[:3]
            total[joint.v.start] += spin
            total[:, joint.v.start] += spin
    return total


def poses_of_definitions(s: Sample) -> float:
    """Return the largest difference of rotations, and of positions relative to the size of the robot."""
    robot = s.robot
    _, origins = link_poses(robot, s.q)
    apart, reach = [0.0], 1.0 + np.abs(origins - origins[0]).max()
    values = robot.joint_values(s.q) | {f.name: f.ratio * s.q[f.q.start] + f.offset for f in robot.followers}
    for c in robot.connections:
        wanted = c.start @ joint_placement(c.joint, np.atleast_1d(values.get(c.joint.name, ())))
        seen = frame_pose(robot, s.q, Frame(c.child), relative_to=Frame(c.parent))
        turned, moved = seen.rotation - wanted.rotation, seen.position - wanted.position
        apart += [np.abs(turned).max(), np.abs(moved).max() / reach]
    return float(np.max(apart))


def compiled_forward(s: Sample) -> float:
    return s.force_error(s.inertia @ s.compiled["forward"](s.q, s.v, s.tau), s.inertia @ s.acceleration, s.acceleration)


def compiled_inverse(s: Sample) -> float:
    plain = inverse_dynamics(s.robot, s.q, s.v, s.vdot)
    return s.force_error(s.compiled["inverse"](s.q, s.v, s.vdot), plain, s.vdot)


def compiled_inertia(s: Sample) -> float:
    return s.inertia_error(s.compiled["inertia"](s.q))


DURATION = 0.05  # [s], of the free motion
_PRECISION = 1e-12  # of the solver, relative


class FlightDrift(NamedTuple):
    """Drift of energy relative to the largest kinetic energy, and of momentum relative to its largest value."""

    energy: float
    momentum: float


def without_friction(robot: Robot) -> Robot:
    """Return the robot without damping and dry friction, which dissipate energy."""
    still = {"damping": 0.0, "friction": 0.0}
    bodies = tuple(replace(body, physics=replace(body.physics, **still)) for body in robot.bodies)
    return replace(robot, bodies=bodies)


def flight_drift(robot: Robot, q: Array, v: Array) -> FlightDrift:
    """Return the drift of energy and momentum in a free motion of `DURATION`, without friction and joint forces.

    Only components of momentum along free directions of the base count; a fixed base has none, and neither has a base
    with armature, whose own momentum is not that of the links.

    Args:
        robot: The robot.
        q: Initial configuration, (nq,).
        v: Initial velocity, (nv,).
    """
    from scipy.integrate import solve_ivp  # imported here, since its import is slow

    robot = without_friction(robot)

    def motion(robot: Robot, q: Array, v: Array) -> Array:
        q = normalized(robot, q)  # inside a step of the solver, quaternions do not have norm 1
        vdot = forward_dynamics(robot, q, v, np.zeros(robot.nv))
        return np.concatenate([configuration_rate(robot, q, v), vdot])

    rate, nq = compile_function(motion, robot), robot.nq
    path = solve_ivp(
        lambda _, y: rate(y[:nq], y[nq:]),
        (0.0, DURATION),
        np.concatenate([q, v]),
        method="DOP853",
        rtol=_PRECISION,
        atol=_PRECISION,
    )
    states = path.y.T[:: max(1, len(path.t) // 5)]
    times = path.t[:: max(1, len(path.t) // 5)]
    kinetic = np.array([kinetic_energy(robot, y[:nq], y[nq:]) for y in states])
    energy = kinetic + [potential_energy(robot, y[:nq]) for y in states]
    fallen = np.outer(times, np.concatenate([np.zeros(3), robot.mass * robot.gravity]))
    each = np.array([momentum(robot, y[:nq], y[nq:]) for y in states]) - fallen
    free = {"fixed": [], "planar": [1, 3, 5]}.get(robot.base.kind, list(range(6)))
    each = each[:, [] if np.any(robot.base.physics.armature) else free]
    return FlightDrift(_drift(energy[:, None], kinetic.max()), _drift(each, np.abs(each).max(initial=0.0)))


def _drift(values: Array, size: float) -> float:
    return float(np.max(np.abs(values - values[0]), initial=0.0)) / size if size else 0.0
