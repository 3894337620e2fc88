"""Readings of all sensors along a run, and the sliding of feet in their stances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import known_name, real_array
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.dynamics.frames import Frame
from legged.dynamics.kinematics import center_of_mass, momentum, required_wrench
from legged.errors import DefinitionError, ShapeError
from legged.robot.robot import Robot
from legged.sensors.balance_points import capture_point_of_mass, least_load, support_margin, zero_moment_of_wrench
from legged.sensors.instruments import contact_switches, gyro, specific_force
from legged.simulation.results.records import ContactRecord
from legged.simulation.results.run import Run
from legged.spatial import Array

_CONTACT_LOAD = 0.02  # of the robot's weight: default threshold of a contact switch


class FootSensor(NamedTuple):
    """Readings at one foot.

    Attributes:
        force: Contact force, (T, 3), [N], world axes.
        touching: State of its contact switch, (T,), bool.
    """

    force: Array
    touching: Array


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of sensors at the samples of a run; world axes except for the inertial measurement unit.

    Points on the ground lie in the plane through the center of pressure with the mean normal of the ground; in flight
    the plane stays at its last position. Missing values are NaN: pressure points in flight, margins without feet,
    capture points without gravity and of a center of mass below the plane.

    Attributes:
        times: Sample times, (T,), [s].
        gyro: Angular velocity, (T, 3), [rad/s], sensor axes.
        specific_force: Specific force a - g, (T, 3), [m/s^2], sensor axes.
        contacts: Contact points and the forces on them, see `ContactRecord`.
        touching: States of the contact switches, (T, n), bool.
        center_of_mass: Center of mass, (T, 3), [m].
        center_of_pressure: Center of pressure of the contact forces, (T, 3), [m].
        zero_moment_point: Zero-moment point of the motion, (T, 3), [m]; pushes move it off the center of pressure.
        capture_point: Instantaneous capture point, (T, 3), [m].
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

    def foot(self, name: str) -> FootSensor:
        """Return the readings at a contact, or the sum of forces on a link and whether any of its contacts touches.

        Args:
            name: Name of a contact or of a link.
        """
        known_name("foot", name, dict.fromkeys((*self.contacts.names, *self.contacts.on)))
        names = self.contacts.names if name in self.contacts.names else self.contacts.on
        own = [k for k, other in enumerate(names) if other == name]
        return FootSensor(self.contacts.forces[:, own].sum(axis=1), np.logical_or.reduce(self.touching[:, own], axis=1))

    def margin(self, points: Array) -> Array:
        """Return the margin of points in the support polygon, (T,), [m]; see `support_margin`.

        Args:
            points: A point for each sample, (T, 3), [m], world axes. NaN points give NaN margins, as do samples
                without contact.
        """
        points, margins = real_array("points", points), np.full(len(self.times), np.nan)
        if points.shape != (len(margins), 3):
            raise ShapeError(f"points must be ({len(margins)}, 3), a point for each sample, got shape {points.shape}")
        for k, (point, on) in enumerate(zip(points, self.touching, strict=True)):
            if on.any() and np.isfinite(point).all():
                margins[k] = support_margin(point, self.contacts.points[k, on])
        return margins


@checked
def measure(robot: Robot, run: Run, imu: str | Frame | None = None, threshold: float | None = None) -> Readings:
    """Return the readings of all sensors along a run.

    Args:
        robot: The robot of the run. run: The run.
        imu: Frame of the inertial measurement unit: a link, a contact point or a `legged.Frame`; default the base.
        threshold: Normal force that closes a contact switch, [N]; it opens at half of it. Default 2 % of the weight.

    Raises:
        DefinitionError: The run is that of another robot, or the robot has contact points, no weight and no threshold.
        UnknownNameError: The frame of the inertial measurement unit does not exist.
    """
    if run.robot != robot.name or run.q.shape[1:] != (robot.nq,) or run.v.shape[1:] != (robot.nv,):
        raise DefinitionError(f"the run is one of {run.robot!r}, not of {robot.name!r}; pass the robot that ran")
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    if threshold is None and not weight and run.contacts.names:
        raise DefinitionError(f"robot {robot.name!r} has no weight; give the threshold of its contact switches, [N]")
    normal, pressure = run.ground.normal, run.center_of_pressure
    state = _evaluate(robot, run, robot.links[0].name if imu is None else imu)
    origin = _plane_points(pressure, run.contacts.points)
    load = state.wrench[:, 3:] @ normal
    load = np.where(load > least_load(robot), load, np.nan)
    closing = _CONTACT_LOAD * weight if threshold is None else threshold
    return Readings(
        times=run.times,
        gyro=state.gyro,
        specific_force=state.specific_force,
        contacts=run.contacts,
        touching=contact_switches(run.contacts.forces @ normal, closing),
        center_of_mass=state.center,
        center_of_pressure=pressure,
        zero_moment_point=zero_moment_of_wrench(state.wrench.T, load, origin.T, normal[:, None]).T,
        capture_point=capture_point_of_mass(robot, state.center.T, state.velocity.T, origin.T, normal).T,
    )


class _StateReadings(NamedTuple):
    gyro: Any
    specific_force: Any
    wrench: Any
    center: Any
    velocity: Any


def _evaluate(robot: Robot, run: Run, imu: str | Frame) -> _StateReadings:
    """Return the readings that depend on (q, v, vdot) alone, one row per sample, from one compiled kernel."""

    def readings(robot: Robot, q: Array, v: Array, vdot: Array) -> _StateReadings:
        return _StateReadings(
            gyro=gyro(robot, q, v, imu),
            specific_force=specific_force(robot, q, v, vdot, imu),
            wrench=required_wrench(robot, q, v, vdot),
            center=center_of_mass(robot, q),
            velocity=momentum(robot, q, v)[3:] / robot.mass,
        )

    return compile_function(readings, robot)(run.q, run.v, run.vdot)


def _plane_points(pressure: Array, points: Array) -> Array:
    """Return a point of the ground plane at each sample, (T, 3), [m]: the last center of pressure, or the first.

    Without any contact it is a point at the height of the lowest contact point at the start.
    """
    valid = np.flatnonzero(np.isfinite(pressure).all(axis=1))
    if not len(valid):
        return np.broadcast_to(points[0].min(axis=0) if points.shape[1] else np.zeros(3), pressure.shape)
    last = np.maximum(np.searchsorted(valid, np.arange(len(pressure)), side="right") - 1, 0)
    return pressure[valid[last]]


@checked
def sliding_per_stance(run: Run, threshold: float) -> Array:
    """Return the mean sliding distance of each contact point per stance, (n,), [m]; zero for points without a stance.

    The distance is the sum of the displacements along the ground between samples, so motion to and fro adds up.

    Args:
        run: The run. threshold: Normal force at which a stance begins, [N]; it ends at half of it.
    """
    normal = run.ground.normal
    stance = contact_switches(run.contacts.forces @ normal, threshold)
    moves = np.diff(run.contacts.points, axis=0)
    along = moves - (moves @ normal)[..., None] * normal
    distance = (np.linalg.norm(along, axis=2) * (stance[1:] & stance[:-1])).sum(axis=0)
    stances = stance[0].astype(int) + (stance[1:] & ~stance[:-1]).sum(axis=0)
    return distance / np.maximum(stances, 1)
