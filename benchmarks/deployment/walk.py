"""A robot in MuJoCo in another process that walks by commands over UDP, with the estimator in the loop.

    python -m benchmarks.deployment [ROBOT] [--seconds 60] [--delay 5] [--loss 1] [--speed 1] [--output FOLDER]

The plant takes steps of 1 ms and sends readings of simulated sensors at 500 Hz; the loop estimates the state,
evaluates `Locomotion` and sends torques. Half of the delay is added in each direction. `--speed 0.1` runs both sides at
a tenth of real time, for computers that are busy. A log and a page with true and estimated robot are written.
"""

from __future__ import annotations

import argparse
import multiprocessing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker, walkers
from legged import deployment, estimation
from legged.estimation.readings import Reading
from legged.spatial import Array

_COMMANDS = ((0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.5, 0.0, 0.4), (0.0, 0.2, 0.0), (-0.3, 0.0, 0.0), (0.4, 0.0, -0.4))
"""Velocity forward and to the left, [m/s], and yaw rate, [rad/s], of equal parts of the time."""


def command_at(t: float, seconds: float) -> Array:
    """Return the command at a time, [s], of a walk of some seconds, (5,); see `controllers.Command`."""
    part = min(int(t / seconds * len(_COMMANDS)), len(_COMMANDS) - 1)
    return np.array([*_COMMANDS[part], 0.0, 0.0])


def plant(name: str, q: Array, network: deployment.Network, speed: float, port: Any) -> None:
    """Serve a robot in MuJoCo; the main function of the other process."""
    (walker,) = walkers([name])
    robot = deployment.MujocoPlant(walker.robot, q, instruments=estimation.Instruments(seed=1))
    deployment.serve(robot, 0, network=network, speed=speed, started=port.put)


def walk(
    walker: Walker, seconds: float, network: deployment.Network, speed: float
) -> tuple[deployment.Operation, legged.Robot]:
    """Return the statistics and the log of a walk over UDP, and the robot."""
    robot = walker.robot
    law = controllers.Estimated(controllers.Locomotion(walker.gait, command=None), estimation.InvariantFilter())
    q, v = law.initial_state(robot)
    kernel, memory = law.kernel(robot, q, v, command=5)
    base = robot.base.nv

    def evaluate(t: float, memory: Array, reading: Reading, command: Array) -> Any:
        after, force, estimate, _ = kernel(t, memory, *reading, command)
        return after, force[base:], estimate

    context = multiprocessing.get_context("spawn")
    port: Any = context.Queue()
    process = context.Process(target=plant, args=(walker.name, q, network, speed, port), daemon=True)
    process.start()
    try:
        address = ("127.0.0.1", port.get(timeout=300.0))
        feet, truth = len(robot.contacts), robot.nq + robot.nv
        interface = deployment.UdpRobot(address, robot.nj, feet, truth, network, speed)
        limits = deployment.SafetyLimits.of(robot)
        command = partial(command_at, seconds=seconds)
        runner = deployment.Runner(interface, evaluate, memory, limits=limits, watchdog=0.1, command=command)
        return runner.run(seconds), robot
    finally:
        process.terminate()
        process.join()


def main() -> None:
    """Walk, print errors and times, and write the log and the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployment", description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="Go2")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--delay", type=float, default=5.0, help="of a round trip, ms")
    parser.add_argument("--loss", type=float, default=1.0, help="of packets in each direction, %%")
    parser.add_argument("--speed", type=float, default=1.0, help="of the clocks")
    parser.add_argument("--output", type=Path, default=Path("results/deployment"), metavar="FOLDER")
    options = parser.parse_args()
    network = deployment.Network(options.loss / 100.0, options.delay / 2000.0, 5e-4)
    operation, robot = walk(walkers([options.robot])[0], options.seconds, network, options.speed)
    print(operation)
    log = operation.log
    true, estimate = log.truth[:, : robot.nq], log.estimate
    way = float(np.linalg.norm(np.diff(true[:, 4:6], axis=0), axis=1).sum())
    error = np.linalg.norm(estimate[-1, 4:7] - true[-1, 4:7])
    print(f"time {log.times[-1]:.1f} s, path {way:.2f} m, error of the position at the end {error:.3f} m")
    log.save(options.output / "log.npz")
    legged.save_html(
        [log.true_run(robot), log.estimated_run(robot)], options.output / "walk.html", ["truth", "estimate"]
    )
