"""What the classical algorithms read: transforms, motion subspaces and inertias, in link or in absolute coordinates.

In link coordinates every spatial vector is written in the frame of the body that it belongs to, and goes from body to
body through a transform. In absolute coordinates all are written in the world's frame, at the world's origin, and no
transform is needed. An algorithm is the same text in both: in absolute coordinates its transforms have no steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.kinematics import motion
from legged.dynamics.sweeps import outward, transforms
from legged.errors import UnknownNameError
from legged.robot.robot import Robot
from legged.spatial import Array, Rotation, Transform, Translation, cross, join

COORDINATES = ("link", "absolute")
_STAY = Transform(())


@dataclass(frozen=True, eq=False)
class Links:
    """A robot's bodies at a configuration, each list in the order of `robot.bodies`.

    Attributes:
        robot: The robot.
        X: From the parent's frame to the body's; without steps in absolute coordinates.
        h: Motion subspace of the joint, (6, nv of the joint), the paper's h_i.
        I: Spatial inertia, (6, 6), regrouped as `Body.regrouped`.
        H: What the joint's rotor adds to momentum, (6, nv of the joint), see `Body.rotor_momentum`.
        to_link: From these coordinates to the body's own; without steps in link coordinates.
        from_base: From the base's own coordinates to these.
    """

    robot: Robot
    X: list[Transform]
    h: list[Array]
    I: list[Array]
    H: list[Array]
    to_link: list[Transform]
    from_base: Transform

    def wrenches(self, wrenches: Wrenches) -> dict[int, Array]:
        """Return external wrenches by body, (6,), in these coordinates; see `inverse_dynamics`."""
        own = body_wrenches(self.robot, wrenches)
        return {k: self.to_link[k].T @ w for k, w in own.items()}


def links_at(robot: Robot, q: Array, coordinates: str = "link") -> Links:
    """Return the robot's bodies at a configuration.

    Args:
        robot: The robot. q: Configuration, (nq,).
        coordinates: "link" or "absolute".

    Raises:
        UnknownNameError: for coordinates that are neither.
    """
    if coordinates not in COORDINATES:
        raise UnknownNameError("kind of coordinates", coordinates, COORDINATES)
    h = [robot.base.motion_matrix(q) if body.kind == "base" else body.P for body in robot.bodies]
    I = [body.regrouped.M for body in robot.bodies]
    H = [np.zeros((6, body.nv)) if body.kind == "base" else body.rotor_momentum for body in robot.bodies]
    if coordinates == "link":
        return Links(robot, transforms(robot, q), h, I, H, [_STAY] * len(robot.bodies), _STAY)
    at = motion(robot, q)
    to_link, to_world = [], []
    for body in outward(robot):
        R, o = at.rotation[body.index], at.origin[body.index]
        to_link.append(Transform((Translation(o), Rotation(R))))
        to_world.append(Transform((Rotation(R.T), Translation(-o))))
    return Links(
        robot,
        [_STAY] * len(robot.bodies),
        [_columns(X, part) for X, part in zip(to_world, h, strict=True)],
        [X.transform_inertia(part) for X, part in zip(to_link, I, strict=True)],
        [_wrenches(X, part) for X, part in zip(to_link, H, strict=True)],
        to_link,
        to_world[0],
    )


def _columns(X: Transform, h: Array) -> Array:
    return np.array([X @ column for column in h.T]).reshape(h.shape[1], 6).T


def _wrenches(X: Transform, H: Array) -> Array:
    return np.array([X.T @ column for column in H.T]).reshape(H.shape[1], 6).T


def base_bias(links: Links, q: Array, v: Array) -> Array:
    """Return the base's spatial acceleration at vdot = 0, (6,): gravity as an upward one.

    A spatial acceleration [omega dot; v dot] holds the rates of the twist's components as the body moves on, so that
    the acceleration of the origin is v dot + omega x v.
    """
    base = links.robot.base
    R, _ = base.pose(q)
    twist = base.motion_matrix(q) @ v[: base.nv] if base.nv else np.zeros(6)
    bias = base.motion_bias(q, v)
    return links.from_base @ join(bias[:3], bias[3:] - cross(twist[:3], twist[3:]) - R.T @ links.robot.gravity)


def cross_motion(v: Array, m: Array) -> Array:
    """Return v x m, (6,): the rate of a motion vector that is fixed to a body of twist v."""
    return join(cross(v[:3], m[:3]), cross(v[:3], m[3:]) + cross(v[3:], m[:3]))


def cross_force(v: Array, f: Array) -> Array:
    """Return v x f, (6,): the rate of a force vector that is fixed to a body of twist v."""
    return join(cross(v[:3], f[:3]) + cross(v[3:], f[3:]), cross(v[:3], f[3:]))
