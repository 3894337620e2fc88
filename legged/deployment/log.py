"""The log of a loop: arrays over time, files in the formats npz and MCAP, and runs for the viewer."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from legged.deployment.interface import Measurement
from legged.deployment.row_file import ROWS, RowFile, read_rows
from legged.errors import FileError, MissingError, ShapeError
from legged.output import output_file, replaced
from legged.robot.robot import Robot
from legged.simulation.results.run import Run
from legged.simulation.results.run_files import opened, stored_array
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class LoopLog:
    """Measurements, commands and estimates of a loop, one row for each evaluation of the law.

    Attributes:
        times: Times of the measurements since the first one, (T,), [s].
        gyro, specific_force: Readings, (T, 3), [rad/s] and [m/s^2], sensor axes; see `Reading` for these and the next.
        joints, joint_rates, torques: Readings, (T, nj), in units of the joints.
        forces: Contact forces on n feet, (T, n, 3), [N], base axes.
        contacts: Probabilities of contact, (T, n), dimensionless.
        commands: Commands that were written to the servos, (T, 5 nj), mixed units; see `JointCommand.flat`.
        estimate: Estimated configurations, (T, nq), mixed units, or (T, 0).
        truth: (q, v) of a simulated robot, (T, nq + nv), mixed units, or (T, 0).
        wanted: Commands that the law received, such as velocities, (T, nc), any unit.
        parameters: Values of the live parameters, (T, np), mixed units, or (T, 0).
    """

    times: Array
    gyro: Array
    specific_force: Array
    joints: Array
    joint_rates: Array
    torques: Array
    forces: Array
    contacts: Array
    commands: Array
    estimate: Array
    truth: Array
    wanted: Array
    parameters: Array

    def save(self, path: str | Path) -> Path:
        """Write the log to an npz file, or to an MCAP file if the name ends in .mcap; return the path.

        Args:
            path: The file.

        Raises:
            MissingError: The extra `logs` is not installed, for MCAP.
        """
        target = output_file(path, ".npz", ".mcap")
        with replaced(target) as draft, draft.open("wb") as stream:
            if target.suffix == ".mcap":
                self._write_mcap(stream)
            else:
                np.savez_compressed(stream, **{field.name: getattr(self, field.name) for field in fields(self)})
        return target

    @classmethod
    def load(cls, path: str | Path, most: int | None = None) -> LoopLog:
        """Return a log from an npz file, or from the file of a `Runner` if the name ends in .rows.

        Args:
            path: The file, untrusted: it is read without running code. An incomplete last row of a .rows file, which
                the end of a process leaves, is left out.
            most: Largest size of the arrays together, [byte]; by default as for `legged.Run.load`.

        Raises:
            FileError: The file does not exist, is too large, is damaged, or is no log.
        """
        if Path(path).suffix == ROWS:
            shapes, rows = read_rows(path, most)
            if [(name, len(shape)) for name, shape in shapes.items()] != list(_AXES.items()):
                raise FileError(str(path), "is no log of a loop: it has other columns")
            return cls._of_rows(shapes, rows)
        parts, lengths = dict[str, Array](), set[int]()
        with opened(path, most, "log of a loop") as (archive, source, limit):
            left = limit
            for field in fields(cls):
                part = stored_array(archive, field.name, source, left, limit)
                axes = _AXES[field.name] + 1
                if part.dtype.kind not in "fiu" or (part.size and part.ndim != axes):
                    raise FileError(source, f"is no log of a loop: {field.name!r} must hold numbers on {axes} axes")
                left -= part.nbytes
                lengths.add(len(part))
                parts[field.name] = part.astype(float)
        if len(lengths) != 1:
            raise FileError(source, "is no log of a loop: its arrays have different lengths")
        return cls(**parts)

    def channels(self, robot: Robot) -> dict[str, Any]:
        """Return the fields of a `legged.identification.Log` of this log: `identification.Log(**log.channels(robot))`.

        The desired positions are the targets of the servos, (T, nj), [rad] or [m]; without servos the torques are those
        that were commanded. Lost measurements leave gaps: call `Log.resampled` before a fit.

        Args:
            robot: The robot.

        Raises:
            ShapeError: The log has another number of joints.
        """
        if self.joints.ndim != 2 or self.joints.shape[1] != robot.nj:
            raise ShapeError(
                f"the log has readings of shape {self.joints.shape}, robot {robot.name!r} {robot.nj} joints"
            )
        torques, targets, _, kp, _ = np.split(self.commands, 5, axis=1)
        servos = {"desired": targets, "torques": self.torques} if kp.any() else {"torques": torques}
        return {
            "times": self.times,
            "joints": tuple(joint.name for joint in robot.joints),
            "positions": self.joints,
            "rates": self.joint_rates,
            "gyro": self.gyro,
            "accelerometer": self.specific_force,
            "contacts": self.contacts,
            **servos,
        }

    def estimated_run(self, robot: Robot) -> Run:
        """Return the estimated motion as a run; `legged.view` shows it as a ghost beside the true one.

        Args:
            robot: The robot.

        Raises:
            ShapeError: The log has no estimates of this robot.
        """
        return self._run(robot, self.estimate[:, : robot.nq], "estimates")

    def true_run(self, robot: Robot) -> Run:
        """Return the motion of the simulated robot as a run, for the viewer.

        Args:
            robot: The robot.

        Raises:
            ShapeError: The log has no true states of this robot.
        """
        return self._run(robot, self.truth[:, : robot.nq], "states of a simulated robot")

    @classmethod
    def _of_rows(cls, shapes: Mapping[str, tuple[int, ...]], rows: Array) -> LoopLog:
        """Return the log of rows, (T, n); empty arrays if no row was written."""
        if not shapes:
            return cls(*(np.zeros(0) for _ in fields(cls)))
        ends = np.cumsum([prod(shape) for shape in shapes.values()])
        parts = np.split(rows, ends[:-1], axis=1)
        return cls(*(x.reshape(len(rows), *shape) for x, shape in zip(parts, shapes.values(), strict=True)))

    def _run(self, robot: Robot, q: Array, words: str) -> Run:
        if q.shape[1] != robot.nq or len(q) < 2:
            raise ShapeError(f"the log has no {words} of robot {robot.name!r}")
        q = q.copy()
        q[:, :4] /= np.linalg.norm(q[:, :4], axis=1, keepdims=True)
        return Run.from_motion(robot, self.times, q)

    def _write_mcap(self, stream: Any) -> None:
        """Write one JSON message for each row on the channel "loop"."""
        try:
            writer_class = import_module("mcap.writer").Writer
        except ImportError as error:
            raise MissingError("mcap is not installed: pip install 'legged[logs]'") from error
        writer = writer_class(stream)
        writer.start()
        number = {"type": "array", "items": {"type": "number"}}
        names = [field.name for field in fields(self)]
        schema = {"type": "object", "properties": dict.fromkeys(names, number)}
        kind = writer.register_schema(name="legged.Loop", encoding="jsonschema", data=json.dumps(schema).encode())
        topic = writer.register_channel(topic="loop", message_encoding="json", schema_id=kind)
        for k, time in enumerate(self.times):
            row = {name: np.ravel(getattr(self, name)[k]).tolist() for name in names}
            stamp = round(1e9 * float(time))
            writer.add_message(topic, log_time=stamp, publish_time=stamp, sequence=k, data=json.dumps(row).encode())
        writer.finish()


_AXES = {field.name: {"times": 0, "forces": 2}.get(field.name, 1) for field in fields(LoopLog)}
"""Number of axes of one row of each field."""


class Recorder:
    """Collects the rows of a log: the last ones in memory, and all of them in a file if there is one.

    Args:
        kept: Number of rows that are kept in memory.
        path: File for all rows, see `RowFile`; None for none.
    """

    def __init__(self, kept: int, path: str | Path | None = None):
        self._rows: deque[Array] = deque(maxlen=kept)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._path = path
        self._file: RowFile | None = None

    @property
    def path(self) -> Path | None:
        """The file, once it has a row."""
        return self._file.path if self._file is not None else None

    def add(self, t: float, measured: Measurement, command: Array, q: Array, wanted: Array, parameters: Array) -> None:
        """Add a row.

        Args:
            t: Time since the first measurement, [s]. measured: The measurement.
            command: Command that was written, (5 nj,), mixed units. q: Estimated configuration, (nq,), mixed units.
            wanted: Command that the law received, (nc,), any unit. parameters: Live parameters, (np,), mixed units.

        Raises:
            ShapeError: An array has another shape than in the first row.
            FileError: The file cannot be written.
        """
        parts = [
            np.asarray(x, dtype=float) for x in (t, *measured.reading, command, q, measured.truth, wanted, parameters)
        ]
        shapes = {field.name: part.shape for field, part in zip(fields(LoopLog), parts, strict=True)}
        if not self._shapes:
            self._shapes = shapes
            if self._path is not None:
                self._file = RowFile(self._path, shapes)
        if shapes != self._shapes:
            name = next(name for name, shape in shapes.items() if shape != self._shapes[name])
            raise ShapeError(f"{name} of the log must keep its shape {self._shapes[name]}, got {shapes[name]}")
        row = np.concatenate([part.ravel() for part in parts])
        if self._file is not None:
            self._file.write(row)
        self._rows.append(row)

    def log(self) -> LoopLog:
        """Return the log of the rows in memory, and close the file."""
        if self._file is not None:
            self._file.close()
        return LoopLog._of_rows(self._shapes if self._rows else {}, np.array(self._rows))
