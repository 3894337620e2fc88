"""Frames by name: pose, Jacobian, twist and acceleration of a link, a contact point or any frame fixed to a link.

A frame is a link's name, a contact point's name (link axes with the origin at the point; a link of the same name takes
precedence) or a `Frame`. Twists, accelerations and Jacobians are those of the frame's origin relative to the world;
`axes` gives the axes they are written in: "world", "local" (the frame's own), or any frame. Use `Frame("world")` for a
link with one of these two names.

For a run, or any batch of states: `legged.compile(partial(legged.frame_pose, frame="FL_foot"), robot)(run.q)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import motion, point_jacobian, point_twist_rates
from legged.elements import has_elements
from legged.errors import UnknownNameError
from legged.robot.placement import Vector, rotation3, vector3
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


@checked
@dataclass(frozen=True, eq=False)
class Frame:
    """A frame fixed to a link, such as a sensor's.

    Attributes:
        on: Name of a link or of a contact point.
        at: Origin of this link or contact point to the frame's origin, (3,), [m], link axes.
        rotation: Rotation matrix, (3, 3), frame axes to link axes; the identity by default.
    """

    on: str
    at: Vector = field(default_factory=lambda: np.zeros(3))
    rotation: Array | None = None

    def __post_init__(self) -> None:
        at, rotation = np.asarray(self.at), np.asarray(self.rotation)
        if not has_elements(at):
            object.__setattr__(self, "at", vector3(f"at, the position of a frame on {self.on!r}", self.at))
        if not has_elements(rotation):
            object.__setattr__(self, "rotation", rotation3(f"the rotation of a frame on {self.on!r}", self.rotation))


class Mechanism(Protocol):
    """A robot with closed loops, `legged.loops.ClosedRobot`; its frames are those of its spanning tree.

    Attributes:
        robot: The spanning tree.
    """

    robot: Robot


class Pose(NamedTuple):
    """Pose of a frame in another one.

    Attributes:
        rotation: Rotation matrix, (3, 3), frame axes to the other frame's axes.
        position: The frame's origin, (3,), [m], in the other frame.
    """

    rotation: Array
    position: Array


class ResolvedFrame(NamedTuple):
    """A frame on a link.

    Attributes:
        link: Index of the link.
        position: Link origin to the frame's origin, (3,), [m], link axes.
        body: Index of the link's body.
        in_body: Pose of the frame in the body.
    """

    link: int
    position: Array
    body: int
    in_body: Pose


@checked
def frame_pose(robot: Robot | Mechanism, q: Array, frame: str | Frame, relative_to: str | Frame = "world") -> Pose:
    """Return the pose (rotation, position) of a frame in the world or in another frame.

    Args:
        robot: The robot, or one with closed loops. q: Configuration, (nq,).
        frame: Name or `Frame`, see the module. relative_to: Name, `Frame` or "world".

    Raises:
        UnknownNameError: For a name that is neither a link's nor a contact point's.
    """
    robot = _tree(robot)
    (q,) = read(robot, q=q)
    R, o = _world_pose(robot, q, frame)
    if _is_world(relative_to):
        return Pose(R, o)
    R_other, o_other = _world_pose(robot, q, relative_to)
    return Pose(R_other.T @ R, R_other.T @ (o - o_other))


@checked
def frame_jacobian(robot: Robot | Mechanism, q: Array, frame: str | Frame, axes: str | Frame = "world") -> Array:
    """Return J, (6, nv), with [omega; velocity of the frame's origin] = J @ v, written in the given axes.

    Args:
        robot: The robot, or one with closed loops. q: Configuration, (nq,).
        frame: Name or `Frame`, see the module. axes: "world", "local" or a frame.
    """
    robot = _tree(robot)
    (q,) = read(robot, q=q)
    at = resolve_frame(robot, frame)
    return _written(robot, q, frame, axes, point_jacobian(robot, q, at.link, at.position))


@checked
def frame_twist(robot: Robot | Mechanism, q: Array, v: Array, frame: str | Frame, axes: str | Frame = "world") -> Array:
    """Return [omega; velocity of the frame's origin], (6,), [rad/s], [m/s], written in the given axes.

    Args:
        robot: The robot, or one with closed loops. q: Configuration, (nq,). v: Velocity, (nv,).
        frame: Name or `Frame`, see the module. axes: "world", "local" or a frame.
    """
    robot = _tree(robot)
    q, v = read(robot, q=q, v=v)
    at, moving = resolve_frame(robot, frame), motion(robot, q, v)
    R, t = moving.rotation[at.body], moving.twist[at.body]
    world = join(R @ t[:3], R @ (t[3:] + cross(t[:3], at.in_body.position)))
    return _written(robot, q, frame, axes, world)


@checked
def frame_acceleration(
    robot: Robot | Mechanism, q: Array, v: Array, vdot: Array, frame: str | Frame, axes: str | Frame = "world"
) -> Array:
    """Return [omega dot; acceleration of the frame's origin], (6,), [rad/s^2], [m/s^2], written in the given axes.

    It is the coordinate acceleration in the world, without gravity, in any axes: not the rate of the components of a
    twist in moving axes. With vdot = 0 it is Jdot @ v of the Jacobian in world axes.

    Args:
        robot: The robot, or one with closed loops.
        q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        frame: Name or `Frame`, see the module. axes: "world", "local" or a frame.
    """
    robot = _tree(robot)
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at = resolve_frame(robot, frame)
    return _written(robot, q, frame, axes, point_twist_rates(robot, q, v, vdot, [(at.link, at.position)])[0])


def _tree(robot: Robot | Mechanism) -> Robot:
    return robot if isinstance(robot, Robot) else robot.robot


def _is_world(frame: str | Frame) -> bool:
    return isinstance(frame, str) and frame == "world"


def _world_pose(robot: Robot, q: Array, frame: str | Frame) -> Pose:
    at, poses = resolve_frame(robot, frame), motion(robot, q)
    R = poses.rotation[at.body]
    return Pose(R @ at.in_body.rotation, poses.origin[at.body] + R @ at.in_body.position)


def _written(robot: Robot, q: Array, frame: str | Frame, axes: str | Frame, world: Array) -> Array:
    """Return spatial vectors or a Jacobian, (6,) or (6, nv), in the given axes, from world axes."""
    if _is_world(axes):
        return world
    R, _ = _world_pose(robot, q, frame if isinstance(axes, str) and axes == "local" else axes)
    return join(R.T @ world[:3], R.T @ world[3:])


def resolve_frame(robot: Robot, frame: str | Frame) -> ResolvedFrame:
    """Return the link and pose of a frame, or raise UnknownNameError."""
    name, r, R = (frame.on, frame.at, frame.rotation) if isinstance(frame, Frame) else (frame, np.zeros(3), np.eye(3))
    links, contacts = {link.name: link for link in robot.links}, {point.name: point for point in robot.contacts}
    if name in links:
        link = links[name]
    elif name in contacts:
        link, r = robot.links[contacts[name].link], contacts[name].position + r
    else:
        raise UnknownNameError("link or contact point", name, [*links, *contacts])
    in_body = Pose(link.rotation @ R, link.position + link.rotation @ r)
    return ResolvedFrame(link.index, np.asarray(r), link.body, in_body)
