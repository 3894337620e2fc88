"""Robot and loop in two processes that are killed, paused, continued, terminated, restarted and sent garbage."""

import os
import signal
import socket
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from deployment.processes import SILENCE, WATCHDOG, Process, loop, robot, runner

from legged import deployment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
STEP = 2e-3  # of the robot, [s]


@pytest.fixture
def started(tmp_path):
    """Return a function that starts a function of `processes` in a process, which ends with the test."""
    running = []

    def start(function, port=0):
        running.append(Process(function, port, tmp_path / f"{len(running)}.rows"))
        return running[-1]

    yield start
    for process in running:
        process.end()


def is_damped(plant):
    """Return whether the last command of a robot damps its joints."""
    return plant.rows()[-1, 1:].tolist() == [0.0, 2.0]


def test_a_killed_robot_stops_the_loop_and_a_restarted_one_is_found_again(started):
    plant = started(robot)
    port = plant.says()
    control = runner(port)
    threading.Timer(0.2, plant.running.kill).start()
    assert "no measurement for" in control.run(30.0).reason
    again = started(robot, port)
    time.sleep(0.5)  # after which another sender is accepted
    operation = control.run(0.3)
    assert not operation.stopped and len(operation.durations) > 1, operation
    again.await_rows(round(2 * SILENCE / STEP))
    assert is_damped(again)
    control.interface.close()


def test_a_killed_loop_leaves_a_damped_robot_and_its_log_and_a_new_one_is_served(started):
    plant = started(robot)
    port = plant.says()
    control = started(loop, port)
    plant.await_rows(100)
    control.await_rows(20)
    control.running.kill()
    control.running.join()
    commanded = STEP * (plant.rows()[:, 1] == 1.0).sum()
    plant.await_rows(round(2 * SILENCE / STEP))
    assert is_damped(plant)
    log = deployment.LoopLog.load(control.path)
    # The last command acts until the robot has been without one for SILENCE; a busy computer adds some steps.
    assert log.times[-1] > commanded - SILENCE - 0.1 and len(log.times) > 5
    assert (log.commands[:, 0] == 1.0).all()
    time.sleep(0.5)
    started(loop, port).await_rows(10)
    assert plant.rows()[-1, 1] == 1.0


@pytest.mark.parametrize("paused", [robot, loop])
def test_a_paused_process_ends_in_a_safe_stop(started, paused):
    plant = started(robot)
    control = started(loop, plant.says())
    control.await_rows(20)
    process = plant if paused is robot else control
    process.signal(signal.SIGSTOP)
    time.sleep(2.5 * WATCHDOG)
    process.signal(signal.SIGCONT)
    reason = control.says()
    assert ("no measurement for" if paused is robot else "the loop paused for") in reason, reason
    plant.await_rows(10)
    assert is_damped(plant)
    control.running.join(10.0)
    assert control.running.exitcode == 0


def test_a_terminated_loop_damps_the_robot_before_its_end(started):
    plant = started(robot)
    control = started(loop, plant.says())
    control.await_rows(20)
    before = (plant.rows()[:, 1] == 1.0).sum()
    control.signal(signal.SIGTERM)
    assert "interrupted" in control.says()
    assert is_damped(plant)
    # The damping commands of the loop came before the silence after which the robot damps by itself.
    assert (plant.rows()[:, 1] == 1.0).sum() - before < 0.5 * SILENCE / STEP


def test_garbage_to_both_sides_changes_nothing(started):
    plant = started(robot)
    port = plant.says()
    control: Any = runner(port)
    ports, rng, flooding = (port, control.interface._socket.getsockname()[1]), np.random.default_rng(1), [True]

    def flood():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as foreign:
            while flooding:
                for each in ports:
                    foreign.sendto(os.urandom(int(rng.integers(1, 1000))), ("127.0.0.1", each))
                time.sleep(2e-4)

    noise = threading.Thread(target=flood)
    noise.start()
    operation = control.run(0.5)
    flooding.clear()
    noise.join()
    assert not operation.stopped and control.interface.refused > 100, operation
    assert set(map(tuple, plant.rows()[:, 1:])) <= {(1.0, 0.0), (0.0, 0.0), (0.0, 2.0)}
    assert np.isfinite(operation.log.commands).all()
    control.interface.close()
