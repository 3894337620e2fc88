"""Closed-form geometry of a robot's legs, for gaits with closed-form inverse kinematics."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from controllers.gaits.leg import Leg
from legged.algorithms.legs.leg_chains import JointAxis, foot_links, joint_axes, leg_name
from legged.checked import checked
from legged.dynamics.kinematics import link_poses
from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray
_TOLERANCE = 1e-9  # [m] or a cosine: deviation of a closed-form leg from the vertical, and of its axes from x and y


@checked
def legs_of(robot: Robot, knee: str = "forward") -> tuple[Leg, ...]:
    """Return the closed-form geometry of the legs, in the order of the robot's links.

    A leg leads from the base to a link with contact points: an optional abduction joint about x, a hip and a knee about
    y, and an optional ankle about y. With every joint at zero it is straight down. Its name is the common beginning of
    its joints' names, up to an underscore, or else the name of its last link.

    Args:
        robot: The robot.
        knee: Direction of the bent knees, "forward" or "backward".

    Raises:
        DefinitionError: The robot has no legs, or a leg is not of this kind; use `NumericalGait` for such robots.
    """
    rotations, origins = link_poses(robot, robot.neutral())
    legs = []
    for end in foot_links(robot):
        axes = joint_axes(robot, end, rotations, origins)
        points = np.array(
            [origins[end] + rotations[end] @ point.position for point in robot.contacts if point.link == end]
        )
        legs.append(_closed_form(leg_name(robot, end), axes, points, knee))
    return tuple(legs)


def _closed_form(name: str, axes: list[JointAxis], points: Array, knee: str) -> Leg:
    if any(axis.kind == "following" for axis in axes):
        _refuse(name, "it has a joint that follows another")
    if any(axis.kind != "revolute" for axis in axes):
        _refuse(name, "it has a joint that is not revolute")
    along = "".join("?xyz"[_direction(axis.direction)] for axis in axes)
    if along.removeprefix("x") not in ("yy", "yyy"):
        _refuse(name, f"its axes run along {', '.join(along) or 'nothing'}")
    abducts, flat = along.startswith("x"), along.endswith("yyy")
    pitch = axes[1:] if abducts else axes
    hip, bend = pitch[0].origin, pitch[1].origin
    end = pitch[2].origin if flat else points.mean(axis=0)
    for a, b in ((hip, bend), (bend, end)):
        if abs(a[0] - b[0]) > _TOLERANCE or b[2] >= a[2]:
            _refuse(name, "it is not straight down with its joints at zero")
    if np.ptp(points[:, 2]) > _TOLERANCE:
        _refuse(name, "its contact points are not level with its joints at zero")
    if abducts and abs(axes[0].origin[2] - hip[2]) > _TOLERANCE:
        _refuse(name, "its hip axis and its abduction axis are not equally high")
    side = axes[0].origin[1] if abducts else end[1]
    return Leg(
        name,
        (float(hip[0]), float(side), float(hip[2])),
        thigh=float(hip[2] - bend[2]),
        shank=float(bend[2] - end[2]),
        knee=knee,
        abducts=abducts,
        offset=float(end[1] - side) if abducts else 0.0,
        flat_foot=flat,
        sole=float(end[2] - points[0, 2]) if flat else 0.0,
        signs=tuple(round(axis.direction[0] if i < abducts else -axis.direction[1]) for i, axis in enumerate(axes)),
        columns=tuple(axis.column for axis in axes),
    )


def _direction(axis: Array) -> int:
    """Return 1, 2 or 3 for an axis along x, y or z, 0 for any other."""
    along = int(np.argmax(np.abs(axis)))
    return along + 1 if abs(abs(axis[along]) - 1) < _TOLERANCE else 0


def _refuse(name: str, reason: str) -> NoReturn:
    raise DefinitionError(
        f"leg {name!r} has no closed-form inverse kinematics: {reason}; pass `legs` explicitly or use NumericalGait"
    )
