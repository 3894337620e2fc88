"""Algorithms 1 and 2: where the links are, how they move, and what that takes, outward from the central body."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.compiler.ir.annotations import stage
from legged.dynamics.passive import friction_forces, rotor_forces, spring_forces
from legged.dynamics.sweeps import base_rate, joint_rate, newton_euler, outward, transforms
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, cross, join

STAGE_1 = "1 initialization"
STAGE_2 = "2 velocities"


class Outward(NamedTuple):
    """What the outward pass leaves, body by body.

    Attributes:
        X: A of the paper: the transform from the parent.
        R, o: Body axes to base axes, (3, 3), and the body's origin in them, (3,), [m].
        t: V of the paper, the twist, (6,).
        td: Its rate at vdot = 0, with gravity as an upward acceleration, (6,): what the a of all joints up to here sum
            up to.
        gravity: Free fall as a rate of twist, (6,).
        z: b + M td of the paper: what the body's motion takes at vdot = 0, (6,).
        f: What friction, springs and rotors take at its joint, (nv of the joint,).
    """

    X: list[Transform]
    R: list[Array]
    o: list[Array]
    t: list[Array]
    td: list[Array]
    gravity: list[Array]
    z: list[Array]
    f: list[Array]

    def rate_at(self, body: int, r: Array) -> Array:
        """Return [omega dot; c] of a body at vdot = 0, (6,), body axes, c + omega dot x r being how its point r moves.

        Without gravity; c has the centripetal part of the point's acceleration in it.
        """
        omega = self.t[body][:3]
        return self.td[body] + self.gravity[body] + join(np.zeros(3), cross(omega, cross(omega, r)))


def outward_pass(robot: Robot, q: Array, v: Array) -> Outward:
    """Return positions, twists and bias forces of all bodies.

        V_k = A V + H qd,      a_k = Ad V + Hd qd,      b_k = Omega M V - F^e

    The paper adds P a where it goes inward; here a is summed up outward, td_k = A td + a_k, and gravity with it, so
    that z_k = b_k + M_k td_k is one Newton-Euler step. Both give the same workspace dynamics.

    Source: Wendlandt 1997, algorithms 1 and 2.
    """
    with stage(STAGE_1):
        X = transforms(robot, q)
        R_0, _ = robot.base.pose(q)
        fall = R_0.T @ robot.gravity
        start = base_rate(robot, q, v)
    found = Outward(X, [np.eye(3)], [np.zeros(3)], [start[0]], [start[1]], [], [], [])
    for body in outward(robot):
        with stage(STAGE_2 if body.kind != "base" else STAGE_1):
            if body.kind != "base":
                _move(found, body, q, v)
            k = body.index
            found.gravity.append(join(np.zeros(3), found.R[k].T @ fall))
            moment, force = rotor_forces(body, v, None, found.t[k], found.td[k])
            found.z.append(newton_euler(body, found.t[k], found.td[k]) + join(moment, np.zeros(3)))
            found.f.append(force + friction_forces(body, v) + spring_forces(body, q))
    return found


def _move(found: Outward, body: Body, q: Array, v: Array) -> None:
    t, td = joint_rate(body, q, v, None, found.t[body.parent], found.td[body.parent])
    R, o = found.X[body.index].child_pose(found.R[body.parent], found.o[body.parent])
    for values, value in zip((found.R, found.o, found.t, found.td), (R, o, t, td), strict=True):
        values.append(value)


def check_tree(robot: Robot) -> None:
    """Raise DefinitionError for a robot that these passes do not suit."""
    if robot.followers:
        raise DefinitionError(
            f"joints of robot {robot.name!r} follow others ({robot.followers[0].name!r}); workspace control eliminates "
            f"joints one by one, build it without them"
        )
    if robot.base.nv == 0:
        raise DefinitionError(f"robot {robot.name!r} stands on a fixed base; there is nothing to balance")
