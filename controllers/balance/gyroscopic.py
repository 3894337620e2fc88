"""Balance of a robot on a point by a gyroscope: tilting the axis of a spinning wheel takes the place of a motion.

A body on a pivot about y carries a gimbal about an axis normal to y, and the gimbal a wheel that spins with the angular
momentum h about an axis normal to both. With the gimbal at the angle gamma from where the wheel's axis is normal to y,

    L   = H11 q1' + s h sin(gamma)          L'  = s m g c_x,   angular momentum about the pivot
    s h sin(gamma) = L - T_c^2 L''          to first order in q1, with T_c = sqrt(H11 / (m g c_z))

This is the plant of planar balance, q2' = Y1 L + Y2 L'', with s h sin(gamma) in place of q2', Y1 = 1, Y2 = -T_c^2. The
velocity of the center of mass therefore changes with the angle of the gimbal, by -c_z h / H11 per rad, and not with its
rate: the velocity gain of `legged.velocity_gains` is zero for the gimbal. In balance at rest L = s h sin(gamma), so a
robot with any angle of the gimbal rests, until pushes have turned it by 90 degrees, where it has no effect.

Source: Featherstone 2016, IJRR, "Quantitative measures of a robot's physical ability to balance", whose abstract names
a discussion of gyroscopic balancing; model and law are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged import arguments, taylor
from legged.algorithms.inverse_kinematics import center_of_mass_jacobian
from legged.checked import checked
from legged.dynamics.frames import frame_jacobian, frame_pose
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum_rate
from legged.errors import DefinitionError, SingularError
from legged.robot.base import FixedBase
from legged.robot.configuration import read
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, solve_factored

_ALIGNED = 1e-9
"""Largest deviation of axes from their directions, and coupling of pivot and gimbal relative to their inertias."""


@checked
@dataclass(frozen=True, eq=False)
class GyroscopicBalance:
    """A controller that balances a robot on a pivot by tilting a spinning wheel.

    The motor of the gimbal produces L'''' = -4 p L''' - 6 p^2 L'' - 4 p^3 L' - p^4 (L - L_u), with L_u the momentum of
    the wheel at the commanded angle of the gimbal. The law is exact: all four poles of the robot are at -p, as far as
    the gimbal turns. The wheel has no torque; its spin is that of the initial state.

    Attributes:
        robot: A robot on a fixed base with three revolute joints in one chain: the pivot about y, without a motor, the
            gimbal, and the wheel.
        command: Angle of the gimbal at rest, within 90 degrees: a number, or a function of time that can be traced,
            [rad].
        pole: p, [1/s]; 1 / T_c for None.
        limit: Largest torque of the gimbal, [N m]; infinite for none.

    Raises:
        DefinitionError: The robot has other joints or axes, or the acceleration of the gimbal turns the pivot.
    """

    robot: Robot
    command: Any = 0.0
    pole: float | None = None
    limit: float = np.inf

    def __post_init__(self) -> None:
        robot = self.robot
        if not isinstance(robot.base, FixedBase) or robot.nv != 3 or len(robot.joints) != 3 or robot.nq != 3:
            raise DefinitionError(
                f"robot {robot.name!r} must have a fixed base and three joints in a chain: pivot, gimbal and wheel"
            )
        if not robot.gravity.any():
            raise DefinitionError(f"robot {robot.name!r} has no gravity; give it gravity, against which it can balance")
        pivot, gimbal, wheel = (frame_jacobian(robot, np.zeros(3), j.child)[:3, k] for k, j in enumerate(robot.joints))
        normal = max(abs(pivot @ gimbal), abs(pivot @ wheel), abs(gimbal @ wheel), abs(abs(pivot[1]) - 1.0))
        if normal > _ALIGNED:
            raise DefinitionError(
                f"the pivot of robot {robot.name!r} must turn about the world's y axis, and at zero the gimbal and the "
                f"wheel about axes normal to it and to each other"
            )
        for angle in (0.0, 0.5):
            H = inertia_matrix(robot, np.array([0.0, angle, 0.3]))
            if abs(H[0, 1]) > _ALIGNED * np.sqrt(H[0, 0] * H[1, 1]):
                raise DefinitionError(
                    f"the gimbal of robot {robot.name!r} is not balanced: its acceleration turns the pivot; place the "
                    f"center of mass of gimbal and wheel on the gimbal's axis"
                )
        if not callable(self.command):
            arguments.number("command", self.command, "rad", least=-np.pi / 2, most=np.pi / 2)
        if self.pole is not None:
            arguments.number("pole", self.pole, "1/s", above=0.0)
        if self.limit != np.inf:
            arguments.number("limit", self.limit, "N m", above=0.0)

    @property
    def mass(self) -> float:
        """The moving mass, [kg], without that of the fixed base."""
        return self.robot.mass - self.robot.bodies[0].moments.mass

    @property
    def weight(self) -> float:
        """s m g, [N], so that L' = s m g c_x; s is 1 if a positive rotation of the pivot moves the mass to +x."""
        axis = frame_jacobian(self.robot, np.zeros(3), self.robot.joints[0].child)[1, 0]
        return float(np.sign(axis)) * self.mass * float(np.linalg.norm(self.robot.gravity))

    def momentum(self, q: Array, v: Array) -> Array:
        """Return L, L', L'' and L''' with a free wheel, (4,), [kg m^2/s, N m, N m/s, N m/s^2], about the pivot's axis.

        Args:
            q: Configuration, (3,). v: Velocity, (3,).
        """
        q, v = read(self.robot, q=q, v=v)
        L = (inertia_matrix(self.robot, q) @ v)[0]
        M, h = inertia_matrix(self.robot, q), bias_forces(self.robot, q, v)
        vdot = solve_factored(factor_symmetric(M), -h)
        J = center_of_mass_jacobian(self.robot, q)[0] * (self.robot.mass / self.mass)
        rates = self._center(q), J @ v, self._center_acceleration(q, v, vdot)
        return np.stack([L, *(self.weight * rate for rate in rates)])

    def time_constant(self, q: Array) -> Any:
        """Return T_c, [s], of toppling about the upright posture.

        Args:
            q: Configuration, (3,), whose gimbal has its angle.
        """
        (q,) = read(self.robot, q=q)
        upright = np.concatenate([0.0 * q[:1], q[1:]])
        c_rate = center_of_mass_jacobian(self.robot, upright)[0, 0] * (self.robot.mass / self.mass)
        return np.sqrt(inertia_matrix(self.robot, upright)[0, 0] / (self.weight * c_rate))

    def wheel_momentum(self, q: Array, v: Array) -> Any:
        """Return h, [kg m^2/s], the angular momentum about the wheel's axis.

        Args:
            q: Configuration, (3,). v: Velocity, (3,).
        """
        q, v = read(self.robot, q=q, v=v)
        return (inertia_matrix(self.robot, q) @ v)[2]

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (3,), [N m]; zero at the pivot and the wheel.

        Args:
            t: Time, [s]. q: Configuration, (3,). v: Velocity, (3,). wrenches: Not used.

        Raises:
            SingularError: The wheel does not spin, or its axis is along the pivot. Not for traced values.
        """
        factors = factor_symmetric(inertia_matrix(self.robot, q))
        free = solve_factored(factors, -bias_forces(self.robot, q, v))
        answer = solve_factored(factors, np.array([0.0, 1.0, 0.0]) + 0.0 * free)
        # c_x'' does not depend on the torque, its rate does: c_x''' = rate + slope * torque.
        rate = self._center_jerk(q, v, free)
        slope = self._center_jerk(q, v, free + answer) - rate
        if isinstance(slope, float | np.floating) and slope == 0.0:
            raise SingularError(
                f"the gimbal of robot {self.robot.name!r} has no effect on its balance: the wheel does not spin, or "
                f"its axis is along the pivot"
            )
        L, L1, L2, L3 = self.momentum(q, v)
        pole = 1.0 / self.time_constant(q) if self.pole is None else self.pole
        angle = self.command(t) if callable(self.command) else self.command
        at_rest = self._gimbal_share(q, angle) * self.wheel_momentum(q, v)
        L4 = -4.0 * pole * L3 - 6.0 * pole**2 * L2 - 4.0 * pole**3 * L1 - pole**4 * (L - at_rest)
        torque = (L4 / self.weight - rate) / slope
        if self.limit != np.inf:
            torque = np.minimum(np.maximum(torque, -self.limit), self.limit)
        return np.stack([0.0 * torque, torque, 0.0 * torque])

    def _gimbal_share(self, q: Array, angle: Any) -> Any:
        """Return the cosine between the axes of the wheel and the pivot, at an angle of the gimbal."""
        turned = np.stack([q[0], angle + 0.0 * q[1], q[2]])
        pivot, wheel = (frame_jacobian(self.robot, turned, self.robot.joints[k].child)[:3, k] for k in (0, 2))
        return pivot @ wheel

    def _center(self, q: Array) -> Any:
        """Return c_x of the moving mass from the pivot, [m]."""
        robot, fixed = self.robot, self.robot.bodies[0].moments.h
        support = frame_pose(robot, q, robot.joints[0].child).position
        return ((robot.mass * center_of_mass(robot, q) - fixed) / self.mass - support)[0]

    def _center_acceleration(self, q: Array, v: Array, vdot: Array) -> Any:
        """Return c_x'' of the moving mass, [m/s^2]."""
        return momentum_rate(self.robot, q, v, vdot)[3] / self.mass

    def _center_jerk(self, q: Array, v: Array, vdot: Array) -> Any:
        """Return the rate of c_x'' along the motion with a constant torque, [m/s^3].

        Args:
            q: Configuration, (3,). v: Velocity, (3,). vdot: Acceleration, (3,), joint axes, [rad/s^2].
        """
        there, rates = taylor.moving(q, v, vdot), taylor.moving(v, vdot, 0.0 * v)
        M, h = inertia_matrix(self.robot, there), bias_forces(self.robot, there, rates)
        later = solve_factored(factor_symmetric(M), -h)
        return taylor.derivatives(momentum_rate(self.robot, there, rates, later)[3])[1] / self.mass
