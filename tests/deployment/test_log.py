"""The file of a log that grows while a loop runs: complete after any end, and never longer in memory than stated."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from deployment.processes import at_rest

import legged
from legged import deployment, identification
from legged.deployment.row_file import RowFile, read_rows
from legged.errors import FileError, ShapeError


class Interface:
    """A robot at rest whose clock advances with `sleep_until`."""

    def __init__(self):
        self.time, self.commands = 0.0, []

    def read(self):
        """Return the measurement at rest."""
        return at_rest(self.time)

    def write(self, command):
        """Keep the command."""
        self.commands.append(command)

    def clock(self):
        """Return the time, [s]."""
        return self.time

    def sleep_until(self, time):
        """Set the time, [s]."""
        self.time = max(self.time, time)

    def close(self):
        """Do nothing."""


def runner(**given):
    interface: Any = Interface()
    return deployment.Runner(
        interface, lambda t, memory, *rest: (memory, np.full(12, t), np.zeros(0)), np.zeros(1), **given
    )


def test_memory_keeps_the_last_rows_and_the_file_all_of_them(tmp_path):
    loop = runner(log=tmp_path / "walk", kept=50)
    operation = loop.run(1.0)
    log = deployment.LoopLog.load(operation.path)
    assert operation.path == tmp_path / "walk.rows" and len(log.times) == 500
    assert len(operation.log.times) == len(operation.durations) == 50 and len(operation.periods) == 49
    assert np.array_equal(log.commands[-50:], operation.log.commands) and np.allclose(log.times, 2e-3 * np.arange(500))
    assert loop.run(0.1).path == tmp_path / "walk-2.rows" and len(deployment.LoopLog.load(operation.path).times) == 500


def test_channels_of_a_log_are_those_of_identification():
    builder = legged.RobotBuilder("chain", legged.Link("base"), base=legged.FixedBase())
    for k in range(12):
        link = legged.Link(f"link{k}", legged.cylinder_inertia(1.0, 0.05, (0.0, 0.0, 0.0), (0.0, 0.0, -0.1)))
        builder.add(legged.Revolute(f"joint{k}", "y"), link, to="base" if k == 0 else f"link{k - 1}")
    robot, zero, ones = builder.build(), np.zeros(12), np.ones(12)
    interface: Any = Interface()
    for kp, wanted in ((20.0, "desired"), (0.0, "torques")):

        def law(t, memory, *rest, kp=kp):
            return memory, deployment.JointCommand(5.0 * ones, t * ones, zero, kp * ones, ones), zero[:0]

        log = deployment.Runner(interface, law, np.zeros(1)).run(0.1).log
        converted = identification.Log(**log.channels(robot))
        assert converted.joints == tuple(joint.name for joint in robot.joints) and converted.is_uniform
        assert np.array_equal(converted.positions, log.joints) and ("desired" in converted.channels) == (kp > 0.0)
        expected = np.outer(log.times, ones) if kp else np.full((len(log.times), 12), 5.0)
        assert np.allclose(getattr(converted, wanted), expected, atol=1e-9)
    with pytest.raises(ShapeError, match="12 joints"):
        dataclasses.replace(log, joints=log.joints[:, :3]).channels(robot)


def test_a_full_disk_ends_in_a_safe_stop_and_leaves_whole_rows(tmp_path):
    resource = pytest.importorskip("resource")
    loop: Any = runner(log=tmp_path / "walk")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        operation = loop.run(1.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot be written" in operation.reason and loop.interface.commands[-1].kd[0] == 2.0
    log = deployment.LoopLog.load(tmp_path / "walk.rows")
    assert 10 < len(log.times) < 500 and np.array_equal(log.times, operation.log.times[: len(log.times)])


def test_damaged_files_of_rows_are_refused_and_incomplete_rows_left_out(tmp_path):
    file = RowFile(tmp_path / "a", {"x": (), "y": (2,)})
    for k in range(3):
        file.write(np.full(3, float(k)))
    file.close()
    content = file.path.read_bytes()
    file.path.write_bytes(content[:-5])
    shapes, rows = read_rows(file.path)
    assert shapes == {"x": (), "y": (2,)} and rows.tolist() == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(FileError, match="has other columns"):
        deployment.LoopLog.load(file.path)
    header = b'{"legged rows": 1, "columns": %s}\n'
    for damaged in (
        b"",
        content[10:],
        content[:20],
        header % b'{"x": [-1]}',
        header % b'{"x": [1e400]}',
        header % b'{"x": [99999999999]}',
        header % b'{"x": [0]}',
        header % b"3",
        content.replace(b"rows", b"raws"),
    ):
        file.path.write_bytes(damaged)
        with pytest.raises(FileError, match="is no file of rows"):
            read_rows(file.path)
    file.path.write_bytes(content)
    with pytest.raises(FileError, match="larger than"):
        read_rows(file.path, most=10)
    with pytest.raises(FileError, match="cannot be read"):
        read_rows(tmp_path / "missing.rows")
