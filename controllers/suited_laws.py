"""Gains of control laws for any robot, from its time constant of falling and the inertia at its joints; their table."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from controllers.balance import Balanced
from controllers.gaits.gait import Gait
from controllers.gaits.numerical_gait import NumericalGait
from controllers.gaits.standing import Stand
from controllers.law import GaitLaw
from controllers.tracking import ComputedTorque, FeedForward, JointPD
from legged.algorithms.legs.leg_chains import leg_chains
from legged.arguments import number, rounded_array
from legged.checked import checked
from legged.dynamics.inertia import inertia_matrix
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.table import Table

Array = np.ndarray
Law = TypeVar("Law", bound=GaitLaw)
# Natural frequencies of the feedback as multiples of the frequency of falling, sqrt(g / hip height):
_TRUNK = 2.2  # trunk and posture under `Balanced`
_FEET = 4.4  # swinging feet under `Balanced`
_JOINTS = 4.0  # joints under `ComputedTorque`
_SERVOS = 3.0  # joint servos
_CAPTURE_GAIN = 2.0  # `Balanced.gain`; with a larger one the feet of a pushed standing robot lift off
_GAIN_WORDS = {
    "kp": "joint stiffness",
    "kd": "joint damping",
    "attitude": "trunk's attitude",
    "height": "trunk's height",
    "foot": "swinging feet",
    "posture": "joints of no leg",
}


@checked
def suited_law(kind: type[Law], gait: NumericalGait) -> Law:
    """Return a control law of this kind on a gait, with gains for the gait's robot.

    All feedback is critically damped, with natural frequencies proportional to sqrt(g / hip height), the frequency at
    which the robot falls.

    Args:
        kind: `Balanced`, `ComputedTorque`, `JointPD`, `JointPID`, `FeedForward` or `OpenLoop`, or a subclass. Gains of
            the last four are those of `servo_gains`.
        gait: A gait as `suited` returns it.

    Raises:
        DefinitionError: There is no rule for the gains of this kind.
    """
    fall = float(np.sqrt(gait.gait.gravity / gait.gait.height))
    trunk, feet, joints = (_critical(factor * fall) for factor in (_TRUNK, _FEET, _JOINTS))
    gains: dict[str, Any]
    if issubclass(kind, Balanced):
        gains = {"attitude": trunk, "height": trunk, "foot": feet, "posture": trunk, "gain": _CAPTURE_GAIN}
    elif issubclass(kind, ComputedTorque):
        gains = dict(zip(("kp", "kd"), joints, strict=True))
    elif issubclass(kind, (JointPD, FeedForward)):
        gains = dict(zip(("kp", "kd"), servo_gains(gait.robot, gait.home, gait.gait.height), strict=True))
    else:
        raise DefinitionError(f"there is no rule for the gains of {kind.__name__}; construct it with your own gains")
    return kind(gait, **gains)


@checked
def servo_gains(robot: Robot, home: Array, hip_height: float) -> tuple[Array, Array]:
    """Return gains (kp, kd) of joint servos for a standing robot, (nj,) each, [N m/rad] and [N m s/rad].

    The inertia at a joint is the diagonal entry of the inertia matrix, plus the leg's share of the robot's mass at the
    hip height for joints of legs:

        J = I_kk + (m / legs) h^2,      kp = J omega^2,      kd = 2 J omega,      omega = 3 sqrt(g / h)

    Args:
        robot: The robot.
        home: Joint positions of the standing posture, (nj,), [rad] or [m], joint coordinates.
        hip_height: h, [m].
    """
    home = rounded_array("home", home, (robot.nj,), "one entry per joint coordinate")
    number("hip_height", hip_height, "m", above=0)
    legs = leg_chains(robot)
    J = np.diag(inertia_matrix(robot, np.concatenate([robot.base.neutral(), home])))[robot.base.nv :].copy()
    J[[column for leg in legs for column in leg.columns]] += robot.mass / len(legs) * hip_height**2
    kp, kd = _critical(_SERVOS * float(np.sqrt(np.linalg.norm(robot.gravity) / hip_height)))
    return J * kp, J * kd


def _critical(omega: float) -> tuple[float, float]:
    return omega**2, 2 * omega


def gait_table(gait: Gait | NumericalGait, law: Any) -> Table:
    """Return a table of the parameters of a gait and the gains of a controller."""
    plan = gait.gait if isinstance(gait, NumericalGait) else gait
    name = type(plan).__name__ + (", suited to the robot's size" if isinstance(gait, NumericalGait) else "")
    rows = [("height of the hips", f"{plan.height:.3f} m")]
    if not isinstance(plan, Stand):
        speed, froude = plan.stride / plan.period, (plan.stride / plan.period) ** 2 / (plan.gravity * plan.height)
        rows += [
            ("period, stride of a step", f"{plan.period:.3f} s, {plan.stride:.3f} m"),
            ("speed", f"{speed:.3f} m/s, Froude number {froude:.2g}"),
            ("clearance of the feet", f"{plan.clearance:.3f} m"),
        ]
    return Table(name, ("", ""), (*rows, *_gain_rows(law)), left=2)


def _gain_rows(law: Any) -> list[tuple[str, str]]:
    """Return the gains of a controller, one row each: a number, a pair, or the range over the joints."""
    gains = [(item.name, getattr(law, item.name)) for item in fields(law) if item.name in _GAIN_WORDS]
    return [(f"{_GAIN_WORDS[name]} ({name})", _gain(value)) for name, value in gains if value is not None]


def _gain(value: Any) -> str:
    low, high = float(np.min(value)), float(np.max(value))
    if isinstance(value, tuple):
        return ", ".join(f"{x:.4g}" for x in value)
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
