"""Present and desired motion of the body and the feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.choice import Jump
from controllers.locomotion.gait.footsteps import GroundPlane, Sway
from controllers.locomotion.gait.step_sequence import StepResponse
from controllers.locomotion.gait.swing import Swing
from legged.rotations import heading
from legged.spatial import Array, cross, join

_FLAT = 0.03
"""Roll of a sole on the ground from which on it stands on an edge, [rad]."""
_TILT = 0.05
"""Angle by which the end of a sole that carries alone points down, [rad]."""


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot and its points that carry the robot.

    They are its contact points if the leg can keep the sole at rest while the base moves. The sole of a leg without
    ankle roll turns about a line forward when the base moves sideways: the points are then the contact points projected
    onto this line. The sole of a leg with three joints turns about all axes, and carries the robot in its middle alone.

    Attributes:
        link: Index of the link. sole: Mean of the contact points, (3,), [m], link axes.
        outline: Contact points relative to it in the standing posture, (m, 3), [m], base axes.
        points: Points that carry the robot: index of the link, and position, (3,), [m], link axes.
        offsets: These points relative to the sole's center in the standing posture, (k, 3), [m], base axes.
        turns: Orthogonal unit vectors of the axes about which the leg turns the foot at a fixed place, in the standing
            posture, (r, 3), dimensionless, base axes; three of them with six joints.
        rotation: Orientation of the link in the standing posture, (3, 3), link to base axes.
        columns: Indices of the joints of the leg among the robot's joint coordinates.
        links: Indices of the links with these contact points: `link`, and toes.
        pivot: Index of the point that carries the robot alone while it turns; None if the leg turns the foot about the
            vertical axis, or with a single point.
        edge: From the line through the points to an edge of the sole, (3,), [m], base axes; zero without `pivot`.
        ankle: Index of the third pitch joint of the leg, as `columns`; None without one.
        heading_share: Weight of its rotation about the vertical axis in a swing, over that about other axes.
        room: Angles about the vertical axis by which the leg turns the foot to the right and to the left from the
            standing posture, (2,), [rad]; infinite if no joint bounds them.
    """

    link: int
    sole: Array
    outline: Array
    points: tuple[tuple[int, Array], ...]
    offsets: Array
    turns: Array
    rotation: Array
    columns: tuple[int, ...]
    links: tuple[int, ...]
    pivot: int | None = None
    edge: Array = field(default_factory=lambda: np.zeros(3))
    ankle: int | None = None
    heading_share: float = 1.0
    room: Array = field(default_factory=lambda: np.full(2, np.inf))

    def turned(self, rate: Any, time: Any, stance: Any) -> Any:
        """Return the angle from the heading of the body to that of the foot in a turn, [rad].

        It is zero in the middle of a stance, or as small as the range of the leg allows: if hip yaws turn feet inward
        by little, both feet point outward.

        Args:
            rate: Yaw rate, [rad/s]. time: Until the middle of the stance, [s]. stance: Duration of a stance, [s].
        """
        right, left = np.maximum(0.0, 0.5 * np.abs(rate) * stance - self.room)
        return rate * time + right - left

    @property
    def turn_weights(self) -> Array:
        """Weights of the rotations about `turns` in a swing, relative to each other, (r,), dimensionless."""
        return 1.0 - (1.0 - self.heading_share) * self.turns[:, 2] ** 2

    @property
    def is_flat(self) -> bool:
        """Whether several points keep the foot level, about one axis or both."""
        return len(self.points) > 1

    def carrying(self, turning: Any, rotation: Array, normal: Array) -> CarryingPoints:
        """Return the points that carry the robot now.

        A foot on which the body turns has to turn with it if the leg cannot turn it, but the friction of a sole resists
        this rotation. In turns one end of the sole carries the robot, at the edge on which the sole stands.

        Args:
            turning: As in `MotionPlanner.turning`.
            rotation: Orientation of the link, a rotation matrix, (3, 3), link to world axes.
            normal: Unit normal of the ground, (3,), dimensionless, world axes.
        """
        points = [point for _, point in self.points]
        if self.pivot is None:
            return CarryingPoints(self.sole, points, [1.0] * len(points), np.zeros(3), np.eye(3), 0.0)
        end, side = turning * self.offsets[self.pivot], self.rotation.T @ self.edge
        roll = normal @ (rotation @ side) / float(np.linalg.norm(self.edge))
        shift = -turning * np.minimum(np.maximum(roll / _FLAT, -1.0), 1.0) * side
        shares = [1.0 if k == self.pivot else 1.0 - turning for k in range(len(points))]
        x, y, _ = self.offsets[self.pivot] / np.linalg.norm(self.offsets[self.pivot])
        tilt = np.eye(3) + turning * _TILT * np.array([[0.0, 0.0, x], [0.0, 0.0, y], [-x, -y, 0.0]])
        center = self.sole + self.rotation.T @ end + shift
        return CarryingPoints(center, [point + shift for point in points], shares, end, tilt, turning)


class CarryingPoints(NamedTuple):
    """The points of a foot that carry the robot at one time.

    Attributes:
        center: Their mean, or the one that carries alone, (3,), [m], link axes.
        points: Their positions, (k, 3), [m], link axes.
        shares: Fraction of its force that each may have, (k,).
        end: Distance of the center from that of the sole along the line of points, (3,), [m], base axes.
        tilt: Rotation of the foot from its orientation in the standing posture, (3, 3), base axes.
        held: Weight of this orientation while the foot stands, dimensionless.
    """

    center: Array
    points: Sequence[Array]
    shares: Sequence[Any]
    end: Array
    tilt: Array
    held: Any


class BodyState(NamedTuple):
    """The robot as a rigid body.

    Attributes:
        position, velocity: Of the center of mass, (3,), [m], [m/s], world axes.
        rotation: Of the base, (3, 3), base to world axes.
        angular_velocity: Of the base, (3,), [rad/s], world axes; of robots with flat feet the average angular velocity
            I^-1 L, with the angular momentum L about the center of mass and the inertia I of the standing robot.
        lean: Average rotation by the joints outside the legs, (3,), [rad], world axes; see `MotionPlanner.lean`.
    """

    position: Array
    velocity: Array
    rotation: Array
    angular_velocity: Array
    lean: Array

    @property
    def heading(self) -> Array:
        """Forward and left unit vectors of the heading, (2, 2), dimensionless, world axes."""
        forward = heading(self.rotation)
        return np.array([forward, [-forward[1], forward[0]]])


class BodyReference(NamedTuple):
    """The desired motion of the body: a mean velocity that turns with the heading, and the sway of the gait.

    Attributes:
        position: Of the center of mass now without sway, (3,), [m], world axes.
        velocity: Of the center of mass without sway, (3,), [m/s], world axes, now; it turns with the heading.
        rotation: Orientation now, (3, 3), base to world axes.
        yaw_rate: [rad/s].
        heading: Cosine and sine of the heading now, (2,), dimensionless.
        sway: Periodic motion of the center of mass.
        jump: The present jump; None for none.
        response: Motion over displaced footholds in addition; None for none.
    """

    position: Array
    velocity: Array
    rotation: Array
    yaw_rate: Any
    heading: Array
    sway: Sway
    jump: Jump | None = None
    response: StepResponse | None = None

    def after(self, time: Any) -> tuple[Array, Array]:
        """Return (position, velocity) of the center of mass after a time from now, (3,) each, [m], [m/s], world axes.

        Args:
            time: [s].
        """
        half = 0.5 * self.yaw_rate * time
        c_half, s_half = np.cos(half), np.sin(half)
        c, s = c_half * c_half - s_half * s_half, 2.0 * s_half * c_half
        along = np.array([c * self.heading[0] - s * self.heading[1], s * self.heading[0] + c * self.heading[1]])
        offset, rate = self.sway.after(time)
        chord = turned(np.stack([c_half, s_half]), time * self.velocity[:2])
        place = self.position[:2] + chord + turned(along, offset)
        speed = turned(np.stack([c, s]), self.velocity[:2]) + turned(along, rate)
        if self.response is not None:
            offset, rate = self.response.after(time)
            place, speed = place + offset, speed + rate
        climb = self.velocity[2]
        rise, rate = (0.0, 0.0) if self.jump is None else self.jump.after(time)
        return join(place, np.stack([self.position[2] + time * climb + rise])), join(speed, np.stack([climb + rate]))


class FeetMotion(NamedTuple):
    """Present and desired motion of the feet.

    Attributes:
        positions: (n, 3), [m], world axes.
        contact: 1 for each foot that stands on the ground, (n,).
        stance: 1 for each foot that is to stand, (n,).
        swings: Desired motion of each foot in the air, (n,).
        places: Last place of contact of each foot, (n, 3), [m], world axes.
        footsteps: Next landing place of each foot, (n, 3), [m], world axes.
        axes: Contact axes of each foot, (n, 3, 3), columns forward, left and normal, world axes; see `tangent_axes`.
        progress: Fraction of the swing of each foot in the air that has passed, (n,).
        carrying: Points of each foot that carry the robot, (n,).
        released: Share of the orientation of each sole in the air that it does not keep where its ankle would leave its
            range, (n,), from 0 to 1, see `InclinedWalk.released`; empty for none.
    """

    positions: Sequence[Array]
    contact: Sequence[Any]
    stance: Sequence[Any]
    swings: Sequence[Swing]
    places: Sequence[Array]
    footsteps: Sequence[Array]
    axes: Sequence[Array]
    progress: Sequence[Any]
    carrying: Sequence[CarryingPoints]
    released: Sequence[Any] = ()


def body_reference(
    path: Array,
    command: Array,
    plane: GroundPlane,
    position: Array,
    height: float,
    sway: Sway,
    jump: Jump | None = None,
) -> BodyReference:
    """Return the desired motion of the body over the ground.

    Args:
        path: Desired x, y, [m], and heading, [rad], of the center of mass without sway, (3,), world axes.
        command: As from `limited_command`, (7,), units of `Command`.
        plane: The ground under the robot.
        position: Center of mass, (3,), [m], world axes.
        height: Of the center of mass over the ground, [m], at which the base has the height of the standing robot.
        sway: Periodic motion of the center of mass. jump: As in `BodyReference`.
    """
    heading = np.stack([np.cos(path[2]), np.sin(path[2])])
    velocity, rotation = turned(heading, command[:2]), desired_rotation(path[2], command, plane)
    desired = np.array([path[0], path[1], plane.height(position[:2]) + height + command[3]])
    velocity = np.array([*velocity, plane.slope @ velocity])
    return BodyReference(desired, velocity, rotation, command[2], heading, sway, jump)


def desired_rotation(heading: Any, command: Array, plane: GroundPlane) -> Array:
    """Return the desired orientation of the base, (3, 3), base to world axes.

    Args:
        heading: [rad]. command: As in `body_reference`.
        plane: The ground under the robot, to which the base is parallel without a commanded pitch and roll.
    """
    axes = tangent_axes(plane.normal, np.array([np.cos(heading), np.sin(heading), 0.0 * heading]))
    (cp, sp), (cr, sr) = ((np.cos(angle), np.sin(angle)) for angle in (command[4], command[5]))
    pitched = axes @ np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
    return pitched @ np.array([[1.0, 0.0, 0.0], [0.0, cr, -sr], [0.0, sr, cr]])


def advanced_path(
    path: Array, aside: Array, command: Array, position: Array, sway: Sway, bounds: Sequence[float], dt: float
) -> tuple[Array, Array]:
    """Return the desired place and heading after a time step without sway, and the way from there back to the line.

    They are (3,), [m] and [rad], and (2,), [m], world axes. The line is that of the commanded velocity. A desired place
    that stays behind or ahead of the robot moves with it, but from one that is far to its side the robot returns.

    Args:
        path: Desired place and heading before, (3,), [m] and [rad], world axes.
        aside: The way back to the line before, (2,), [m], world axes.
        command: As in `body_reference`.
        position: As in `body_reference`.
        sway: As in `body_reference`.
        bounds: Largest distance of the desired place from the actual one, [m], and of the line from the desired place,
            [m], and a speed that is low, [m/s]: below it the latter becomes smaller with the commanded speed.
        dt: Time step, [s].
    """
    most, farthest, slow = bounds
    heading = np.stack([np.cos(path[2]), np.sin(path[2])])
    actual, velocity = position[:2] - turned(heading, sway.after(0.0)[0]), turned(heading, command[:2])
    ahead = path[:2] + aside + dt * velocity - actual
    near = np.minimum(1.0, most / np.sqrt(ahead @ ahead + 1e-12)) * ahead
    square = velocity @ velocity
    side = np.stack([-velocity[1], velocity[0]]) / np.sqrt(square + 1e-12)
    farthest, place = farthest * square / (square + slow * slow), actual + near
    beside = np.minimum(np.maximum((ahead - near) @ side, -farthest), farthest)
    return np.stack([place[0], place[1], path[2] + dt * command[2]]), beside * side


def turned(direction: Array, vector: Array) -> Array:
    """Return a vector turned by the angle of a direction, (2,), any unit, world axes.

    Args:
        direction: Cosine and sine of the angle, (2,), dimensionless.
        vector: (2,), any unit, world axes.
    """
    c, s = direction
    return np.stack([c * vector[0] - s * vector[1], s * vector[0] + c * vector[1]])


def tangent_axes(normal: Array, forward: Array, turn: Any = 0.0) -> Array:
    """Return contact axes, (3, 3), columns forward, left and normal, world axes.

    Args:
        normal: Unit normal of the ground, (3,), dimensionless, world axes.
        forward: A direction that is not the normal's, (3,), dimensionless, world axes.
        turn: Angle about the normal from this direction to the first axis, [rad].
    """
    along = forward - (forward @ normal) * normal
    along = along / np.sqrt(along @ along)
    along = np.cos(turn) * along + np.sin(turn) * cross(normal, along)
    return np.array([along, cross(normal, along), normal]).T
