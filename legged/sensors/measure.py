"""Every sensor along a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.dynamics.frames import Frame
from legged.dynamics.kinematics import center_of_mass, momentum, required_wrench
from legged.errors import DefinitionError, UnknownNameError
from legged.robot.robot import Robot
from legged.sensors.contact import contact_switches
from legged.sensors.imu import gyro, specific_force
from legged.sensors.points import caught, point_of_wrench, pressing
from legged.sensors.support import support_margin
from legged.simulation.records import ContactRecord
from legged.simulation.run import Run
from legged.spatial import Array

_TOUCHING = 0.02  # of the robot's weight


class Foot(NamedTuple):
    """What a foot sensed: force of the ground, (T, 3), [N], world; whether it touched, (T,), bool."""

    force: Array
    touching: Array


@dataclass(frozen=True, eq=False)
class Readings:
    """What sensors read along a run, sampled as the run is; world axes but for the inertial unit's.

    Points on the ground lie in the plane through the center of pressure along the ground's mean normal; in flight the
    plane stays where it was. NaN stands for what does not exist: pressure points in flight, margins without feet.

    Attributes:
        times: (T,), [s].
        gyro: Angular velocity, (T, 3), [rad/s], sensor axes.
        specific_force: a - g, (T, 3), [m/s^2], sensor axes.
        contacts: Contact points and the forces on them, see `ContactRecord`.
        touching: States of the contact switches, (T, n), bool.
        center_of_mass: (T, 3), [m].
        center_of_pressure: From the contact forces, (T, 3), [m].
        zero_moment_point: From the motion, (T, 3), [m]; pushes move it away from the center of pressure.
        capture_point: (T, 3), [m].
    """

    times: Array
    gyro: Array
    specific_force: Array
    contacts: ContactRecord
    touching: Array
    center_of_mass: Array
    center_of_pressure: Array
    zero_moment_point: Array
    capture_point: Array

    def foot(self, name: str) -> Foot:
        """Return the force on a contact point, or the sum on a link's, and whether (any of) it touched."""
        among = self.contacts.names if name in self.contacts.names else self.contacts.on
        own = [k for k, other in enumerate(among) if other == name]
        if not own:
            raise UnknownNameError("foot", name, dict.fromkeys((*self.contacts.names, *self.contacts.on)))
        return Foot(self.contacts.forces[:, own].sum(axis=1), np.logical_or.reduce(self.touching[:, own], axis=1))

    def margin(self, points: Array) -> Array:
        """Return how far points, (T, 3), [m], lie inside the polygon of the touching feet, (T,), [m].

        See `support_margin`; NaN where no foot touches or a point is NaN.
        """
        margins = np.full(len(self.times), np.nan)
        for k, (point, on) in enumerate(zip(points, self.touching, strict=True)):
            if on.any() and np.isfinite(point).all():
                margins[k] = support_margin(point, self.contacts.points[k, on])
        return margins


def measure(robot: Robot, run: Run, imu: str | Frame | None = None, threshold: float | None = None) -> Readings:
    """Return what sensors read along a run of the robot.

    Args:
        robot: The robot that ran. run: The run.
        imu: Where the inertial unit sits: a link, a contact point or a `legged.Frame`; on the base by default.
        threshold: Normal force that closes a foot's switch, [N]; it opens at half of it. 2 % of the weight by default.

    Raises:
        DefinitionError: for a run of another robot. UnknownNameError: for an inertial unit nowhere.
    """
    if run.robot != robot.name or run.q.shape[1:] != (robot.nq,) or run.v.shape[1:] != (robot.nv,):
        raise DefinitionError(f"the run is one of {run.robot!r}, not of {robot.name!r}; pass the robot that ran")
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    normal = run.ground.normal
    seen = _seen(robot, run, robot.links[0].name if imu is None else imu)
    pressed = run.center_of_pressure
    origin = _held(pressed, run.contacts.points)
    load = seen.wrench[:, 3:] @ normal
    load = np.where(load > pressing(robot), load, np.nan)
    return Readings(
        times=run.times,
        gyro=seen.gyro,
        specific_force=seen.specific_force,
        contacts=run.contacts,
        touching=contact_switches(run.contacts.forces @ normal, _TOUCHING * weight if threshold is None else threshold),
        center_of_mass=seen.center,
        center_of_pressure=pressed,
        zero_moment_point=point_of_wrench(seen.wrench.T, load, origin.T, normal[:, None]).T,
        capture_point=caught(robot, seen.center.T, seen.velocity.T, origin.T, normal).T,
    )


class _Seen(NamedTuple):
    gyro: Any
    specific_force: Any
    wrench: Any
    center: Any
    velocity: Any


def _seen(robot: Robot, run: Run, imu: str | Frame) -> _Seen:
    """Return what follows from (q, v, vdot), one row a sample; one kernel computes it."""

    def at(robot: Robot, q: Array, v: Array, vdot: Array) -> _Seen:
        velocity = momentum(robot, q, v)[3:] / robot.mass
        specific = specific_force(robot, q, v, vdot, imu)
        return _Seen(
            gyro(robot, q, v, imu), specific, required_wrench(robot, q, v, vdot), center_of_mass(robot, q), velocity
        )

    return compile_function(at, robot)(run.q, run.v, run.vdot)


def _held(pressed: Array, points: Array) -> Array:
    """Return the center of pressure, (T, 3), in flight the one before, ahead of the first contact that one.

    Without any contact, a place at the height of the lowest contact point at the start.
    """
    known = np.flatnonzero(np.isfinite(pressed).all(axis=1))
    if not len(known):
        return np.broadcast_to(points[0].min(axis=0) if points.shape[1] else np.zeros(3), pressed.shape)
    last = np.maximum(np.searchsorted(known, np.arange(len(pressed)), side="right") - 1, 0)
    return pressed[known[last]]
