"""Logs of robots: measurements and commands over time, which are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from legged.arguments import known_name, shown
from legged.checked import checked
from legged.errors import ArgumentError, NotFiniteError, ShapeError, UnknownNameError
from legged.output import visible, write_file
from legged.robot.robot import Robot
from legged.spatial import Array

PER_JOINT = ("positions", "rates", "desired", "torques")
OTHERS = {"gyro": 3, "accelerometer": 3, "base": 7, "twist": 6, "contacts": None}
"""Channels that do not belong to joints -> number of columns, or None for any."""
MOST_SAMPLES = 10_000_000  # of a log, so that a wrong file or period does not exhaust the memory
_NORM_TOLERANCE = 1e-3  # largest deviation of a measured quaternion's norm from 1, e.g. of single precision


@checked
@dataclass(frozen=True, eq=False)
class Log:
    """Samples of a robot's sensors and commands. All channels but times and positions may be missing.

    Attributes:
        times: Increasing times, (T,), [s].
        joints: Names of the joints, which have one degree of freedom.
        positions: Readings of the encoders, (T, n), [rad] or [m], in the order of `joints`.
        rates: Joint rates, (T, n), [rad/s] or [m/s].
        desired: Commanded joint positions, (T, n), [rad] or [m].
        torques: Torques of the motors, (T, n), [N m] or [N]; commands if there are no desired positions.
        gyro: Angular velocity, (T, 3), [rad/s], sensor axes.
        accelerometer: Specific force, (T, 3), [m/s^2], sensor axes.
        base: Pose of the base, (T, 7): unit quaternion, w first, base to world, and position [m], world axes.
        twist: Angular and linear velocity of the base, (T, 6), [rad/s] and [m/s], base axes.
        contacts: Loads or states of the feet's contact sensors, (T, k), [N] or 0 and 1. Fits do not use them.

    Raises:
        ShapeError: Channels of wrong shape, times that do not increase, or quaternions of another norm than 1.
        NotFiniteError: A sample is not finite; the message names its channel, time and column.
        ArgumentError: A joint occurs twice.
    """

    times: Array
    joints: tuple[str, ...]
    positions: Array
    rates: Array | None = None
    desired: Array | None = None
    torques: Array | None = None
    gyro: Array | None = None
    accelerometer: Array | None = None
    base: Array | None = None
    twist: Array | None = None
    contacts: Array | None = None

    def __post_init__(self) -> None:
        times = np.array(self.times, float)
        if times.ndim != 1 or len(times) < 2:
            raise ShapeError(f"times of a log must be (T,) with at least two samples, got shape {times.shape}")
        if not np.isfinite(times).all():
            raise NotFiniteError(f"times of a log must be finite, got {times[~np.isfinite(times)][0]}")
        wrong = np.flatnonzero(np.diff(times) <= 0.0)
        if len(wrong):
            k = int(wrong[0])
            raise ShapeError(
                f"times of a log must increase, but sample {k + 1} at {times[k + 1]:.6f} s follows {times[k]:.6f} s"
            )
        object.__setattr__(self, "times", times)
        if isinstance(self.joints, str) or not all(isinstance(name, str) for name in self.joints):
            raise ArgumentError(f"joints must be a sequence of texts, the names of joints, got {shown(self.joints)}")
        object.__setattr__(self, "joints", tuple(self.joints))
        repeated = [name for name in self.joints if self.joints.count(name) > 1]
        if repeated:
            raise ArgumentError(f"joint {visible(repeated[0])!r} of the log occurs twice")
        for name in (*PER_JOINT, *OTHERS):
            value = getattr(self, name)
            if value is not None:
                columns = len(self.joints) if name in PER_JOINT else OTHERS[name]
                object.__setattr__(self, name, self._channel(name, np.array(value, float), columns))

    def _channel(self, name: str, value: Array, columns: int | None) -> Array:
        shape = (len(self.times), columns)
        if value.ndim != 2 or len(value) != shape[0] or (columns is not None and value.shape[1] != columns):
            meaning = "a column for each joint" if name in PER_JOINT else "a row for each time"
            raise ShapeError(f"{name} of a log must be {shape}, {meaning}, got shape {value.shape}")
        bad = np.argwhere(~np.isfinite(value))
        if len(bad):
            k, j = map(int, bad[0])
            column = f"joint {visible(self.joints[j])!r}" if name in PER_JOINT else f"column {j}"
            raise NotFiniteError(
                f"{name} of the log is {value[k, j]} at {self.times[k]:.6f} s, {column}; cut it out with `part`, or "
                f"repair it in the file"
            )
        return unit_poses(self.times, value) if name == "base" else value

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels that the log has."""
        return tuple(name for name in (*PER_JOINT, *OTHERS) if getattr(self, name) is not None)

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, [s]."""
        return float(self.times[-1] - self.times[0])

    @property
    def period(self) -> float:
        """Mean time between samples, [s]."""
        return self.duration / (len(self.times) - 1)

    def part(self, start: float = -np.inf, end: float = np.inf) -> Log:
        """Return the samples from a time to another, both included.

        Args:
            start, end: Times, [s].

        Raises:
            ShapeError: Fewer than two samples remain.
        """
        kept = (self.times >= start) & (self.times <= end)
        return replace(self, times=self.times[kept], **{name: getattr(self, name)[kept] for name in self.channels})

    @property
    def is_uniform(self) -> bool:
        """Whether the samples have one period, up to a thousandth of it."""
        steps = np.diff(self.times)
        return bool(np.ptp(steps) <= 1e-3 * steps.mean())

    def resampled(self, period: float) -> Log:
        """Return the log at a constant period; samples are interpolated linearly, quaternions scaled to unit length.

        Args:
            period: Time between samples, [s].

        Raises:
            ArgumentError: The period is not positive, or would give more than ten million samples.
        """
        if period <= 0.0 or self.duration / period > MOST_SAMPLES:
            raise ArgumentError(f"a period must be positive and give at most {MOST_SAMPLES} samples, got {period} s")
        times = self.times[0] + period * np.arange(int(np.floor(self.duration / period * (1.0 + 1e-9))) + 1)
        channels = {}
        for name in self.channels:
            value = getattr(self, name)
            value = np.stack([np.interp(times, self.times, column) for column in value.T], axis=1)
            if name == "base":
                value[:, :4] /= np.linalg.norm(value[:, :4], axis=1, keepdims=True)
            channels[name] = value
        return replace(self, times=times, **channels)

    def ordered(self, robot: Robot, names: Sequence[str] | None = None) -> Log:
        """Return the log with its joints in the order of a robot; further joints of the log are left out.

        Args:
            robot: The robot. names: Names in the log of the robot's joints, in the robot's order; by default the same.

        Raises:
            UnknownNameError: The log lacks a joint of the robot.
        """
        wanted = [joint.name for joint in robot.joints]
        given = list(wanted if names is None else names)
        if len(given) != len(wanted):
            raise ShapeError(f"names must have an entry for each of the {len(wanted)} joints, got {len(given)}")
        order = [self.joints.index(known_name("joint of the log", name, self.joints)) for name in given]
        channels = {name: getattr(self, name)[:, order] for name in PER_JOINT if getattr(self, name) is not None}
        return replace(self, joints=tuple(wanted), **channels)

    def save(self, path: str | Path) -> Path:
        """Write the log to an npz file, which `read` reads, and return its path.

        Args:
            path: The file; .npz is appended where it is missing.
        """
        import io

        buffer = io.BytesIO()
        channels = {field.name: getattr(self, field.name) for field in fields(self) if field.name in self.channels}
        np.savez_compressed(buffer, times=self.times, joints=np.array(self.joints), **channels)
        return write_file(path, buffer.getvalue(), ".npz")


@checked
def joined(logs: Sequence[Log]) -> Log:
    """Return logs one after the other as one log, whose times go on by one period from a log to the next one.

    Args:
        logs: Logs with the same joints and channels.

    Raises:
        ArgumentError: There is no log, or joints or channels differ.
    """
    if not logs:
        raise ArgumentError("give at least one log")
    if len(logs) == 1:
        return logs[0]
    for other in logs[1:]:
        for name in ("joints", "channels"):
            one, another = getattr(logs[0], name), getattr(other, name)
            if one != another:
                raise ArgumentError(f"logs of one fit must have the same {name}, got {one} and {another}")
    times, end = [], 0.0
    for log in logs:
        times.append(end + log.times - log.times[0])
        end = times[-1][-1] + log.period
    channels = {name: np.concatenate([getattr(log, name) for log in logs]) for name in logs[0].channels}
    return replace(logs[0], times=np.concatenate(times), **channels)


@checked
def unit_poses(times: Array, poses: Array) -> Array:
    """Return poses, (T, 7), whose quaternions have norm 1 and signs that do not change from one to the next.

    Args:
        times: Times, (T,), [s]. poses: Measured quaternions, w first, and positions, (T, 7), [m], world axes; q and -q
            are the same orientation.

    Raises:
        ShapeError: A quaternion has another norm than 1, beyond rounding to single precision.
    """
    norms = np.linalg.norm(poses[:, :4], axis=1)
    if (np.abs(norms - 1.0) > _NORM_TOLERANCE).any():
        k = int(np.argmax(np.abs(norms - 1.0)))
        raise ShapeError(f"base of the log has a quaternion of norm {norms[k]:.6g} at {times[k]:.6f} s, not 1")
    quaternions = poses[:, :4] / norms[:, None]
    changes = np.where((quaternions[1:] * quaternions[:-1]).sum(axis=1) < 0.0, -1.0, 1.0)
    signs = np.concatenate([[1.0], np.cumprod(changes)])[:, None]
    return np.concatenate([signs * quaternions, poses[:, 4:]], axis=1)


def missing_channel(log: Log, name: str) -> UnknownNameError:
    """Return the error for a channel that a log does not have."""
    return UnknownNameError("channel of the log", name, log.channels)
