"""Readings of simulated instruments along recorded motions, and the estimates of a filter along readings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.arguments import real_array, rounded_array, shown
from legged.checked import checked
from legged.compiler import Kernel
from legged.compiler import compile as compile_function
from legged.dynamics.kinematics import link_poses
from legged.errors import ArgumentError, ShapeError
from legged.estimation.contacts import link_wrenches
from legged.estimation.instruments import Instruments
from legged.estimation.readings import Reading
from legged.robot.robot import Robot
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates of a state at the times of readings.

    Attributes:
        times: (T,), [s].
        q: Configurations, (T, ..., nq), mixed units. v: Velocities, (T, ..., nv), mixed units.
        memory: Memories of the filter after the last reading, (..., k), mixed units.
    """

    times: Array
    q: Array
    v: Array
    memory: Array


@checked
def instrument_readings(
    robot: Robot,
    instruments: Instruments,
    times: Array,
    q: Array,
    v: Array,
    forces: Array,
    torques: Array | None = None,
    seeds: Array | None = None,
) -> Reading:
    """Return the readings of simulated instruments along a motion: arrays (T, ...) or, with seeds, (T, B, ...).

    Args:
        robot: The robot. instruments: The sensors.
        times: Equally spaced times, (T,), [s].
        q: Configurations, (T, nq). v: Velocities, (T, nv).
        forces: Force on each foot of the instruments, (T, n, 3), [N], world axes.
        torques: Joint torques before each time, (T, nj), [N m] or [N], joint coordinates; zero by default.
        seeds: Seeds of B independent sets of errors, (B,), dimensionless; None for that of the instruments.

    Raises:
        ArgumentError, NotFiniteError: Readings are no real numbers, or not finite.
        ShapeError: Arrays do not match, or times are not equally spaced.
    """
    times, dt = _period(times)
    q, v = rounded_array("q", q, (None, robot.nq)), rounded_array("v", v, (None, robot.nv))
    if not (len(q) and len(v)):
        raise ShapeError(f"q and v must have {len(times)} rows, one for each time, got {len(q)} and {len(v)}")
    started, memory = instruments.start(robot, q[0], v[0])
    count = len(started.sensed.feet)
    forces = real_array("forces", forces)
    torques = np.zeros((len(times), robot.nj)) if torques is None else real_array("torques", torques)
    shapes: dict[str, Any] = {"q": (robot.nq,), "v": (robot.nv,), "torques": (robot.nj,), "forces": (count, 3)}
    for (name, shape), array in zip(shapes.items(), (q, v, torques, forces), strict=True):
        if array.shape != (len(times), *shape):
            raise ShapeError(f"{name} must be {(len(times), *shape)}, one row for each time, got shape {array.shape}")
    kernel = instrument_kernel(started, dt)
    given = np.asarray(instruments.seed if seeds is None else seeds, dtype=float)
    rows = []
    for k in range(len(times)):
        reading, memory = kernel(given, float(k), memory, q[k], v[k], torques[k], forces[k])
        rows.append(reading)
    return Reading(*(np.array(parts) for parts in zip(*rows, strict=True)))


def instrument_kernel(started: Instruments, dt: float) -> Kernel:
    """Return the reading k of instruments as machine code.

    The kernel is a function (seed, k, memory, q, v, torques, forces) -> (reading, memory), with the forces on the feet
    in world axes.

    Args:
        started: The instruments that `start` has returned. dt: Time between readings, [s].
    """
    sensed = started.sensed
    robot, nj = sensed.robot, sensed.robot.nj

    def read(seed: Any, k: Any, memory: Any, q: Any, v: Any, torques: Any, forces: Any) -> Any:
        sensors = replace(started, seed=seed)
        rotations, _ = link_poses(robot, q)
        wrenches = link_wrenches(sensed, rotations, [rotations[0].T @ force for force in forces])
        return sensors.read(memory, k, dt, q, v, torques, wrenches), sensors.memory(q, v)

    shapes: dict[str, Any] = {"q": (robot.nq,), "v": (robot.nv,), "torques": (nj,), "forces": (len(sensed.feet), 3)}
    return compile_function(read, seed=(), k=(), memory=(10,), **shapes)


@checked
def run_estimator(robot: Robot, estimator: Any, times: Array, readings: Reading, q: Array, v: Array) -> Estimates:
    """Return the estimates of a filter along readings.

    The estimate at the first time is the first guess; the first reading is not used.

    Args:
        robot: The robot. estimator: The filter. times: Equally spaced times, (T,), [s].
        readings: Arrays (T, ...) or, of B sets, (T, B, ...).
        q: First guess of the configuration, (nq,) or (B, nq), mixed units.
        v: First guess of the velocity, (nv,) or (B, nv), mixed units.

    Raises:
        ShapeError: Arrays do not match, or times are not equally spaced.
    """
    if not hasattr(estimator, "start"):
        raise ArgumentError(f"estimator must be a filter of legged.estimation, got {shown(estimator)}")
    times, dt = _period(times)
    readings = Reading(*(rounded_array(f"readings.{name}", part) for name, part in readings._asdict().items()))
    joints = readings.joints
    if joints.shape[0] != len(times):
        raise ShapeError(f"there are {len(times)} times, but readings at {joints.shape[0]}")
    q, v = (_guess(*guess, joints.shape[1:-1]) for guess in (("q", q, robot.nq), ("v", v, robot.nv)))
    guesses = [
        estimator.start(robot, *guess) for guess in zip(q.reshape(-1, robot.nq), v.reshape(-1, robot.nv), strict=True)
    ]
    started, memory = guesses[0][0], np.reshape([memory for _, memory in guesses], (*q.shape[:-1], -1))
    kernel = estimator_kernel(started, len(guesses[0][1]), dt)
    qs, vs = [q], [v]
    for k in range(1, len(times)):
        memory, q, v = kernel(memory, *(part[k] for part in readings))
        qs.append(q)
        vs.append(v)
    return Estimates(times, np.array(qs), np.array(vs), memory)


def estimator_kernel(started: Any, size: int, dt: float) -> Kernel:
    """Return an update of a started filter as machine code: (memory, *reading) -> (memory, q, v).

    Args:
        started: The filter that `start` has returned. size: Length of its memory. dt: Time between readings, [s].
    """

    def update(
        memory: Any,
        gyro: Any,
        specific_force: Any,
        joints: Any,
        joint_rates: Any,
        torques: Any,
        forces: Any,
        contacts: Any,
    ) -> Any:
        reading = Reading(gyro, specific_force, joints, joint_rates, torques, forces, contacts)
        following = started.update(memory, reading, dt)
        return following, *started.state(following, reading)

    return compile_function(update, memory=(size,), **started.sensed.shapes._asdict())


def _guess(name: str, value: Any, size: int, sets: tuple[int, ...]) -> Array:
    """Return first guesses, (*sets, size), mixed units, from one or one for each set of readings."""
    guess = real_array(name, value)
    if guess.shape not in ((size,), (*sets, size)):
        raise ShapeError(f"{name} must be {(size,)}, or {(*sets, size)} for each set, got shape {guess.shape}")
    return np.broadcast_to(guess, (*sets, size))


def _period(times: Any) -> tuple[Array, float]:
    """Return equally spaced times, (T,), [s], and the time between them, [s]."""
    times = rounded_array("times", times, (None,))
    steps = np.diff(times)
    if len(steps) < 1 or not np.allclose(steps, steps[0], rtol=1e-6) or steps[0] <= 0.0:
        raise ShapeError("times must be at least two that increase in equal steps")
    return times, float((times[-1] - times[0]) / len(steps))
