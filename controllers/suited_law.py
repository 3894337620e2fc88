"""Gains for a robot nobody has tuned: from how fast it falls, and from what its joints have to turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from controllers.balance import Balanced
from controllers.computed_torque import ComputedTorque
from controllers.feed_forward import FeedForward
from controllers.gaits.leg_detection import leg_chains
from controllers.gaits.numerical_gait import NumericalGait
from controllers.joint_servo import JointPD
from controllers.law import GaitLaw
from legged.dynamics.inertia import inertia_matrix
from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray
_TASKS = 2.2  # how much faster than the fall: trunk and posture under balance,
_FEET = 4.4  # swinging feet,
_JOINTS = 4.0  # joints under computed torque,
_SERVOS = 3.0  # and servos
_PRESSURE = 2.0  # feedback of the fall by pressure; more would lift the feet of a standing robot that is pushed


def suited_law(kind: type[GaitLaw], gait: NumericalGait) -> Any:
    """Return a control law of this kind on a gait, with gains that suit its robot.

    All are critically damped, and faster by a constant factor than the robot falls, omega = sqrt(g / hip height).

    Args:
        kind: `Balanced`, `ComputedTorque`, or a servo (`JointPD` and its kin, `FeedForward`), see `servo_gains`.
        gait: As `suited` returns it.

    Raises:
        DefinitionError: A kind without known gains; give them yourself.
    """
    fall = float(np.sqrt(gait.gait.gravity / gait.gait.hip_height))
    trunk, feet, joints = (_critical(factor * fall) for factor in (_TASKS, _FEET, _JOINTS))
    if kind is Balanced:
        return Balanced(gait, attitude=trunk, height=trunk, foot=feet, posture=trunk, gain=_PRESSURE)
    if kind is ComputedTorque:
        return ComputedTorque(gait, *joints)
    if issubclass(kind, (JointPD, FeedForward)):
        kp, kd = servo_gains(gait.robot, gait.home, gait.gait.hip_height)
        return kind(gait, kp=kp, kd=kd)
    raise DefinitionError(f"no gains are known for {kind.__name__}; make it yourself, with its own numbers")


def servo_gains(robot: Robot, home: Array, hip_height: float) -> tuple[Array, Array]:
    """Return gains (kp, kd) of servos at the joints, (nj,) each, [N m/rad], [N m s/rad], for a standing robot.

    A joint turns what hangs on it, and in a standing leg its share of the robot over that leg's height:

        J = I_kk + (m / legs) h^2,      kp = J omega^2,      kd = 2 J omega,      omega = 3 sqrt(g / h)

    Joints of no leg have the first term alone.

    Args:
        robot: The robot. home: Joint positions it stands in, (nj,).
        hip_height: h, [m].
    """
    legs = leg_chains(robot)
    felt = np.diag(inertia_matrix(robot, np.concatenate([robot.base.neutral(), home])))[robot.base.nv :].copy()
    felt[[column for leg in legs for column in leg.columns]] += robot.mass / len(legs) * hip_height**2
    kp, kd = _critical(_SERVOS * float(np.sqrt(np.linalg.norm(robot.gravity) / hip_height)))
    return felt * kp, felt * kd


def _critical(omega: float) -> tuple[float, float]:
    return omega**2, 2 * omega
