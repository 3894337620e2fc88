"""Contact forces and probabilities of contact from joint torques, by an observer of the generalized momentum."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from legged.arguments import number, shown
from legged.checked import checked
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import jacobian_at, motion, on_bodies
from legged.dynamics.modules import inward, transforms
from legged.dynamics.passive import velocity_forces
from legged.errors import ArgumentError, DefinitionError
from legged.estimation.contacts import contact_probabilities
from legged.estimation.readings import Reading, SensedRobot
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, cross, factor_symmetric, join, mirror, solve_factored

_SINGULAR = 0.02
"""Least distance from a joint axis to a foot that counts, [m]: the Jacobian of a stretched leg is regularized by it."""


def momentum_and_rate(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return (p, beta), (nv,) each: the generalized momentum and its rate without applied and external forces.

        p = M v,     dp/dt = tau + J^T w + beta,     beta_i = (t x P_i)^T h_i - g_i - f_i

    with the motion axes P_i of joint i, the twist t of the body behind it, the momentum h_i of this body and all of its
    descendants about the joint, gravity and springs g, and friction f. Neither a Coriolis matrix nor an acceleration is
    needed.

    Args:
        robot: The robot, with a floating or fixed base.
        q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.

    Source:
        De Luca, Mattone 2003, "Actuator failure detection and isolation using generalized momenta", ICRA, where
        beta = C^T v - g.
    """
    X, twists = transforms(robot, q), motion(robot, q, v).twist
    composite = [body.M @ t + body.rotor_momentum @ v[body.v] for body, t in zip(robot.bodies, twists, strict=True)]
    rates: list[Array] = [np.zeros(0)] * len(robot.bodies)
    for body in inward(robot):
        h, t = composite[body.index], twists[body.index]
        t_cross_h = join(cross(t[:3], h[:3]) + cross(t[3:], h[3:]), cross(t[:3], h[3:]))  # (t x P)^T h = -P^T (t x* h)
        rates[body.index] = -body.motion_matrix(robot.base, q).T @ t_cross_h - velocity_forces(body, v)
        if not body.is_base:
            composite[body.parent] = composite[body.parent] + X[body.index].T @ h
    return inertia_matrix(robot, q) @ v, scatter_add(robot, rates) - bias_forces(robot, q, np.zeros(len(v)))


@checked
@dataclass(frozen=True, eq=False)
class TorqueContacts:
    """A filter for robots without force sensors in the feet: forces and contacts follow from the joint torques.

    An observer of the generalized momentum p of the joints, with the rate beta of `momentum_and_rate`,

        d p^/dt = tau + beta + r,     r = gain (p - p^),

    gives the torques r of external forces, filtered with the time constant 1 / gain. The force on a foot is the one
    whose torques about the joints of its leg fit them best. Forces and probabilities of contact replace those of the
    reading. The memory is [memory of the filter; p^; r; forces].

    Attributes:
        filter: A filter of `legged.estimation`, with the velocity of the base.
        gain: Of the observer, [1/s]. Errors of joint velocities appear in the torques multiplied by it and by inertias.
    """

    filter: Any
    gain: float = 50.0
    _sensed: SensedRobot | None = field(default=None, repr=False, kw_only=True)
    _size: int = field(default=0, repr=False, kw_only=True)  # length of the memory of the filter

    def __post_init__(self) -> None:
        number("gain", self.gain, "1/s", above=0.0)
        if not hasattr(self.filter, "start"):
            raise ArgumentError(f"filter must be a filter of legged.estimation, got {shown(self.filter)}")

    def start(self, robot: Robot, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (estimator, memory), (k,); arguments and errors as in `ContactKalmanFilter.start`.

        The observer starts with the weight of the robot on all feet.
        """
        started, memory = self.filter.start(robot, q, v)
        sensed, base = started.sensed, robot.base.nv
        momentum, _ = momentum_and_rate(robot, q, v)
        weight = -robot.mass * np.asarray(robot.gravity) / len(sensed.feet)
        forces = np.tile(robot.base.pose(q[: robot.base.nq])[0].T @ weight, (len(sensed.feet), 1))
        # The feet of one link carry equal forces, which act at their common center.
        residual = sum(J.T @ (forces[i] * len(feet)) for J, feet in _leg_jacobians(sensed, q) for i in feet[:1])
        own = replace(self, filter=started, _sensed=sensed, _size=len(memory))
        return own, np.concatenate([memory, momentum[base:] - residual / self.gain, residual, forces.ravel()])

    @property
    def sensed(self) -> SensedRobot:
        """The robot with its sensors, after `start`."""
        if self._sensed is None:
            raise DefinitionError("this TorqueContacts has no robot; use the one that start(robot, ...) returns")
        return self._sensed

    def update(self, memory: Array, reading: Reading, dt: Any, unread: Any = 0.0) -> Array:
        """Return the memory after a reading, (k,), mixed units.

        Args:
            memory: (k,), mixed units. reading: The reading; its forces and contacts are not used.
            dt: Time since the last reading, [s]. unread: As in `ContactKalmanFilter.update`.
        """
        robot, nj = self.sensed.robot, self.sensed.robot.nj
        estimate, observed, residual, _ = np.split(memory, np.cumsum([self._size, nj, nj]))
        q, v = self.filter.state(estimate, reading)
        momentum, rate = (x[robot.base.nv :] for x in momentum_and_rate(robot, q, v))
        observed = observed + dt * (reading.torques + rate + residual)
        residual = self.gain * (momentum - observed)
        forces = self._forces(q, residual)
        complete = self.completed(forces.ravel(), reading)
        return np.concatenate([self.filter.update(estimate, complete, dt, unread), observed, residual, forces.ravel()])

    def completed(self, memory: Array, reading: Reading) -> Reading:
        """Return a reading with the observed forces and contacts.

        Args:
            memory: Memory after the update with the reading, (k,), mixed units. reading: The reading.
        """
        count = len(self.sensed.feet)
        forces = memory[len(memory) - 3 * count :].reshape(count, 3)
        return reading._replace(forces=forces, contacts=contact_probabilities(self.sensed, forces))

    def state(self, memory: Array, reading: Reading) -> tuple[Array, Array]:
        """Return the estimate (q, v) of the filter, (nq,) and (nv,), mixed units; arguments as in its `state`."""
        return self.filter.state(memory[: self._size], reading)

    def _forces(self, q: Array, residual: Array) -> Array:
        """Return the force on each foot, (n, 3), [N], base axes, from the torques of external forces, (nj,)."""
        forces: list[Any] = [np.zeros(3)] * len(self.sensed.feet)
        for J, feet in _leg_jacobians(self.sensed, q):
            A = mirror(J @ J.T + _SINGULAR**2 * np.eye(3))
            total = solve_factored(factor_symmetric(A), J @ residual)
            for i in feet:
                forces[i] = total * (1.0 / len(feet))
        return np.array(forces)


def _leg_jacobians(sensed: SensedRobot, q: Array) -> list[tuple[Array, list[int]]]:
    """Return (Jacobian, feet) of the feet of each link: velocity of their center per joint rate, (3, nj), base axes."""
    robot, base = sensed.robot, sensed.robot.base
    level = np.concatenate([base.neutral(), q[base.nq :]])
    at, links = motion(robot, level), dict[int, list[int]]()
    for i, foot in enumerate(sensed.feet):
        links.setdefault(foot.link, []).append(i)
    centers = [(k, np.mean([sensed.feet[i].position for i in feet], axis=0)) for k, feet in links.items()]
    return [
        (jacobian_at(robot, level, at, k, r)[3:, base.nv :], feet)
        for (k, r), feet in zip(on_bodies(robot, centers), links.values(), strict=True)
    ]
