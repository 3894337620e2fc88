"""Robot and loop for processes of their own, without physics.

The robot records time, first torque and first damping gain of every command; the loop commands torques of one.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from legged import deployment, estimation
from legged.deployment.row_file import RowFile, read_rows

NJ, SILENCE, WATCHDOG = 12, 0.2, 0.5  # SILENCE and WATCHDOG: [s], the pauses of busy computers are shorter


def at_rest(t: float) -> deployment.Measurement:
    """Return the measurement of a robot at rest at a time, [s]."""
    force, zero = np.array([0.0, 0.0, 9.81]), np.zeros((3, NJ))
    return deployment.Measurement(
        t, estimation.Reading(np.zeros(3), force, *zero, np.zeros((4, 3)), np.ones(4)), np.zeros(0)
    )


class RecordingRobot:
    """A robot that does not move and records its commands."""

    nj, step = NJ, 2e-3

    def __init__(self, path: Path):
        self.file, self.time = RowFile(path, {"time": (), "torque": (), "kd": ()}), 0.0

    def measured(self) -> deployment.Measurement:
        """Return the measurement at rest."""
        return at_rest(self.time)

    def advance(self, command: deployment.JointCommand) -> None:
        """Record a command."""
        self.time += self.step
        self.file.write(np.array([self.time, command.torques[0], command.kd[0]]))


def robot(port: int, path: Path, say: Callable[[Any], None]) -> None:
    """Serve the robot until the process ends, after saying its port."""
    deployment.serve(RecordingRobot(path), port, silence=SILENCE, started=say)


def loop(port: int, path: Path, say: Callable[[Any], None]) -> None:
    """Run the loop for a long time, and say why it ends."""
    say(runner(port, path).run(60.0).reason)


def runner(port: int, path: Path | None = None) -> deployment.Runner:
    """Return a loop with torques of one."""
    interface = deployment.UdpRobot(("127.0.0.1", port), NJ, 4)

    def law(t: float, memory: np.ndarray, reading: estimation.Reading, command: np.ndarray) -> object:
        return memory, np.ones(NJ), np.zeros(0)

    return deployment.Runner(interface, law, np.zeros(1), watchdog=WATCHDOG, log=path)


class Process:
    """A function (port, path, say) in another process, which writes a file of rows."""

    def __init__(self, function: Callable[..., None], port: int, path: Path):
        context = multiprocessing.get_context("fork")
        self.path, (self._said, said) = path, context.Pipe(duplex=False)
        self.running = context.Process(target=function, args=(port, path, said.send), daemon=True)
        self.running.start()

    def says(self) -> Any:
        """Return the next message of the process."""
        assert self._said.poll(30.0)
        return self._said.recv()

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self.running.pid is not None
        os.kill(self.running.pid, number)

    def rows(self) -> np.ndarray:
        """Return the rows of its file."""
        return read_rows(self.path)[1] if self._has_begun() else np.zeros((0, 3))

    def _has_begun(self) -> bool:
        return self.path.exists() and self.path.stat().st_size > 0

    def await_rows(self, count: int) -> None:
        """Wait until its file has a number of further rows."""
        end, before = time.monotonic() + 30.0, len(self.rows())
        while len(self.rows()) < before + count:
            assert time.monotonic() < end and self.running.is_alive(), "the process does not run"
            time.sleep(0.01)

    def end(self) -> None:
        """Kill the process if it runs."""
        self.running.kill()
        self.running.join()
