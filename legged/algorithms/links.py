"""A robot's transforms, motion subspaces and inertias at a configuration, in link or in absolute coordinates.

In link coordinates, every spatial vector is expressed in the frame of its body, and transforms carry it from body to
body. In absolute coordinates, all are expressed in the world frame at the world origin, and the transforms are
identities. An algorithm therefore has the same code in both coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.kinematics import motion
from legged.dynamics.modules import outward, transforms
from legged.errors import UnknownNameError
from legged.robot.robot import Robot
from legged.spatial import Array, Rotation, Transform, Translation, cross, join

COORDINATES = ("link", "absolute")
_IDENTITY = Transform(())


@dataclass(frozen=True, eq=False)
class Links:
    """A robot's bodies at a configuration, each list in the order of `robot.bodies`.

    Attributes:
        robot: The robot.
        X: Transform from the parent's frame to the body's; identity in absolute coordinates.
        h: Motion subspace of the joint, (6, nv of the joint), the paper's h_i.
        I: Spatial inertia, (6, 6), regrouped as `Body.regrouped`.
        H: Momentum per joint rate of the joint's rotor, (6, nv of the joint), see `Body.rotor_momentum`.
        to_link: Transform from these coordinates to the body's frame; identity in link coordinates.
        from_base: Transform from the base frame to these coordinates.
    """

    robot: Robot
    X: list[Transform]
    h: list[Array]
    I: list[Array]
    H: list[Array]
    to_link: list[Transform]
    from_base: Transform

    def wrenches(self, wrenches: Wrenches) -> dict[int, Array]:
        """Return external wrenches by body, (6,), in these coordinates; `wrenches` as in `legged.inverse_dynamics`."""
        own = body_wrenches(self.robot, wrenches)
        return {k: self.to_link[k].T @ w for k, w in own.items()}


def links_at(robot: Robot, q: Array, coordinates: str = "link") -> Links:
    """Return the robot's bodies at a configuration.

    Args:
        robot: The robot. q: Configuration, (nq,).
        coordinates: "link" or "absolute".

    Raises:
        UnknownNameError: For other coordinates.
    """
    if coordinates not in COORDINATES:
        raise UnknownNameError("kind of coordinates", coordinates, COORDINATES)
    h = [body.motion_matrix(robot.base, q) for body in robot.bodies]
    I = [body.regrouped.M for body in robot.bodies]
    H = [np.zeros((6, body.nv)) if body.is_base else body.rotor_momentum for body in robot.bodies]
    identities = [_IDENTITY] * len(robot.bodies)
    if coordinates == "link":
        return Links(robot, transforms(robot, q), h, I, H, identities, _IDENTITY)
    pose = motion(robot, q)
    to_link, to_world = [], []
    for body in outward(robot):
        R, o = pose.rotation[body.index], pose.origin[body.index]
        to_link.append(Transform((Translation(o), Rotation(R))))
        to_world.append(Transform((Rotation(R.T), Translation(-o))))
    return Links(
        robot,
        identities,
        [transform_motions(X, part) for X, part in zip(to_world, h, strict=True)],
        [X.transform_inertia(part) for X, part in zip(to_link, I, strict=True)],
        [transform_forces(X, part) for X, part in zip(to_link, H, strict=True)],
        to_link,
        to_world[0],
    )


def transform_motions(X: Transform, motions: Array) -> Array:
    """Return X M, (6, n), for a matrix of motion vectors.

    Args:
        X: Transform from parent to child. motions: M, (6, n), mixed units, in parent axes.
    """
    return np.array([X @ column for column in motions.T]).reshape(motions.shape[1], 6).T


def transform_forces(X: Transform, forces: Array) -> Array:
    """Return X^T F, (6, n), for a matrix of force vectors.

    Args:
        X: Transform from parent to child. forces: F, (6, n), mixed units, in child axes.
    """
    return np.array([X.T @ column for column in forces.T]).reshape(forces.shape[1], 6).T


def base_bias(links: Links, q: Array, v: Array) -> Array:
    """Return the base's spatial acceleration at vdot = 0, (6,), with gravity as an upward acceleration.

    A spatial acceleration [omega dot; v dot] holds the rates of the twist's components in axes fixed to the body, so
    that the acceleration of the origin is v dot + omega x v.

    Args:
        links: The robot's bodies. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    base = links.robot.base
    R, _ = base.pose(q)
    twist = base.motion_matrix(q) @ v[: base.nv] if base.nv else np.zeros(6)
    bias = base.motion_bias(q, v)
    return links.from_base @ join(bias[:3], bias[3:] - cross(twist[:3], twist[3:]) - R.T @ links.robot.gravity)
