"""Detection of joints near gimbal lock, where their rates and the error of time steps have no bound.

Let e_1, e_2, e_3 be the axes of three rotations in succession that have no mass between them, such as those of a
`Spherical` joint with a sequence. At a distance d from lock, the rates of an angular velocity omega grow as omega / d,
and steps that resolve omega do not resolve them:

    d = |det[e_1, e_2, e_3]| = |A cos(b) + B sin(b)|

with the second angle b. With armature the rates are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from legged.robot.base import EulerBase
from legged.robot.body import Body
from legged.robot.joint import ConstantVelocity
from legged.robot.robot import Robot

Array = np.ndarray
NEAR = 0.3
"""d below which an error is attributed to gimbal lock: rates are more than three times those of perpendicular axes."""


class EulerAngles(NamedTuple):
    """Coordinates that can lock.

    Attributes:
        name: Of the joints, or of the base.
        v: Entries of v.
        middle: Entry of q, b.
        cosine, sine: A and B.
    """

    name: str
    v: range
    middle: int
    cosine: float
    sine: float

    def distance(self, q: Array) -> float:
        """Return the smallest d at successive configurations, 0.0 if it vanishes between them, dimensionless.

        Args:
            q: Configurations, (k, nq), mixed units.
        """
        d = self.cosine * np.cos(q[:, self.middle]) + self.sine * np.sin(q[:, self.middle])
        return float(np.abs(d).min(initial=np.inf)) if (d > 0.0).all() or (d < 0.0).all() else 0.0


def euler_angles_of(robot: Robot) -> Iterator[EulerAngles]:
    """Yield the coordinates of a robot that can lock.

    Args:
        robot: The robot.
    """
    base = robot.base
    if isinstance(base, EulerBase) and not base.armature:
        is_cardan = base.sequence[0] != base.sequence[2]
        yield EulerAngles("the base", range(3), 1, float(is_cardan), float(not is_cardan))
    for joint in robot.joints:
        if isinstance(joint.definition, ConstantVelocity) and not np.any(joint.definition.physics.armature):
            v = range(joint.v.start, joint.v.stop)
            yield EulerAngles(f"joint {joint.name!r}", v, joint.q.start + 1, 1.0, 0.0)
    for third in robot.bodies:
        second = robot.bodies[third.parent]
        first = robot.bodies[second.parent]
        if third.parent > 0 and second.parent > 0 and _are_free(first, second, third):
            names = dict.fromkeys(_joint_name(robot, body) for body in (first, second, third))
            name = f"{'joint' if len(names) == 1 else 'joints'} {', '.join(map(repr, names))}"
            entries = range(first.v.start, third.v.stop)
            yield EulerAngles(
                name, entries, second.q.start, *(_determinant(second, third, b) for b in (0.0, np.pi / 2))
            )


def _are_free(first: Body, second: Body, third: Body) -> bool:
    """Return whether three rotations in succession have neither mass nor armature between them."""
    stages = (first, second, third)
    if any(body.kind != "revolute" or body.follows or body.is_traced for body in stages):
        return False
    return not (first.M.any() or second.M.any() or any(body.reflected_inertia.any() for body in stages))


def _determinant(second: Body, third: Body, b: float) -> float:
    """Return det[e_1, e_2, e_3] at an angle b, [rad], of the second rotation."""
    q = np.zeros(max(second.q.stop, third.q.stop))
    q[second.q] = b
    to_first, to_second = (body.transform(q).child_pose(np.eye(3), np.zeros(3))[0] for body in (second, third))
    return float(np.linalg.det(np.stack([to_first[2], [0.0, 0.0, 1.0], to_second[:, 2]])))  # axes of the second body


def _joint_name(robot: Robot, body: Body) -> str:
    return next(joint.name for joint in robot.joints if joint.v.start <= body.v.start < joint.v.stop)


def gimbal_lock_text(robot: Robot, q: Array, entry: int | None = None) -> str:
    """Return a message that names the joint or base near gimbal lock and a remedy, "" if there is none.

    Args:
        robot: The robot. q: Successive configurations, (k, nq), mixed units; (0, nq) if they are not known.
        entry: Entry of v that the coordinates must have; any by default.
    """
    angles = [a for a in euler_angles_of(robot) if entry is None or entry in a.v]
    nearest = min(angles, key=lambda a: a.distance(q), default=None)
    if nearest is None or (len(q) and not nearest.distance(q) < NEAR):
        return ""
    d = f"the determinant of its three axes, a function of q[{nearest.middle}], "
    d += f"fell to {nearest.distance(q):.2g}" if len(q) else "falls to zero"
    remedy = "a quaternion (legged.FloatingBase)"
    if nearest.name != "the base":
        remedy = "stops (JointPhysics.lower, upper) of its second angle, or a joint legged.Spherical without a sequence"
    came = f"{nearest.name} {'came' if len(q) else 'may have come'} near gimbal lock"
    return f"{came}, where rates have no bound: {d}; give it {remedy}"
