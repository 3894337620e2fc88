"""The log of a loop: arrays over time, files in the formats npz and MCAP, and runs for the viewer."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from legged.deployment.interface import JointCommand, Measurement
from legged.errors import FileError, MissingError, ShapeError
from legged.estimation.readings import Reading
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
        """Return a log from an npz file.

        Args:
            path: The file, untrusted: it is read without running code.
            most: Largest size of the arrays together, [byte]; by default as for `legged.Run.load`.

        Raises:
            FileError: The file does not exist, is too large, is damaged, or is no log.
        """
        parts, lengths = dict[str, Array](), set[int]()
        with opened(path, most, "log of a loop") as (archive, source, limit):
            left = limit
            for field in fields(cls):
                part = stored_array(archive, field.name, source, left, limit)
                axes = {"times": 1, "forces": 3}.get(field.name, 2)
                if part.dtype.kind not in "fiu" or (part.size and part.ndim != axes):
                    raise FileError(source, f"is no log of a loop: {field.name!r} must hold numbers on {axes} axes")
                left -= part.nbytes
                lengths.add(len(part))
                parts[field.name] = part.astype(float)
        if len(lengths) != 1:
            raise FileError(source, "is no log of a loop: its arrays have different lengths")
        return cls(**parts)

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


class Recorder:
    """Collects the rows of a log."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, Measurement, JointCommand, Array, Array]] = []

    def add(self, t: float, measured: Measurement, command: JointCommand, q: Array, wanted: Array) -> None:
        """Add a row.

        Args:
            t: Time since the first measurement, [s]. measured: The measurement. command: The command that was written.
            q: Estimated configuration, (nq,), mixed units. wanted: Command that the law received, (nc,), any unit.
        """
        self._rows.append((t, measured, command, q, wanted))

    def log(self) -> LoopLog:
        """Return the log."""
        readings = Reading(*(np.array([row[1].reading[k] for row in self._rows]) for k in range(len(Reading._fields))))
        rest = (
            np.array([row[2].flat() for row in self._rows]),
            np.array([row[3] for row in self._rows]),
            np.array([row[1].truth for row in self._rows]),
            np.array([row[4] for row in self._rows]),
        )
        return LoopLog(np.array([row[0] for row in self._rows]), *readings, *rest)
