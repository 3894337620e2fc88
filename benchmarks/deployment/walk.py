"""A robot in MuJoCo in another process that walks by commands over UDP, with the estimator in the loop.

    python -m benchmarks.deployment [ROBOT] [--seconds 60] [--delay 5] [--loss 1] [--speed 1] [--output FOLDER]

The plant takes steps of 1 ms and sends readings of simulated sensors at 500 Hz; the loop estimates the state,
evaluates `Locomotion` and sends torques. Half of the delay is added in each direction. `--speed 0.1` runs both sides at
a tenth of real time, for computers that are busy. A log and a page with true and estimated robot are written.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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


_HELD = 1e6
"""Armature of each degree of freedom of a held base, [kg] and [kg m^2]: it moves by less than a micrometer."""


class Scene(NamedTuple):
    """A robot in MuJoCo in the other process.

    Attributes:
        name: Name of the walker. q: Initial configuration, (nq,), mixed units.
        changes: Name -> value of parameters of the robot, in place of those of its file.
        is_held: Whether the base is held where it is, as if by a stand.
        network: Losses and delay of measurements and commands. speed: Of the clocks, seconds per second.
    """

    name: str
    q: Array
    changes: dict[str, Any]
    is_held: bool
    network: deployment.Network
    speed: float


def serve(scene: Scene, port: Any) -> None:
    """Serve a robot in MuJoCo; the main function of the other process."""
    (walker,) = walkers([scene.name])
    robot = walker.robot.with_parameters(scene.changes) if scene.changes else walker.robot
    plant = deployment.MujocoPlant(robot, scene.q, instruments=estimation.Instruments(seed=1))
    if scene.is_held:
        plant.model.dof_armature[: robot.base.nv] = _HELD
    deployment.serve(plant, 0, network=scene.network, speed=scene.speed, started=port.put)


@contextmanager
def connected(scene: Scene, robot: legged.Robot) -> Iterator[deployment.UdpRobot]:
    """Context manager: the interface to a robot in another process, which ends with the context."""
    context = multiprocessing.get_context("spawn")
    port: Any = context.Queue()
    process = context.Process(target=serve, args=(scene, port), daemon=True)
    process.start()
    try:
        address = ("127.0.0.1", port.get(timeout=600.0))
        feet, truth = len(robot.contacts), robot.nq + robot.nv
        yield deployment.UdpRobot(address, robot.nj, feet, truth, scene.network, scene.speed)
    finally:
        process.terminate()
        process.join()


def walk(
    walker: Walker,
    seconds: float,
    network: deployment.Network,
    speed: float,
    changes: dict[str, Any] | None = None,
    model: legged.Robot | None = None,
) -> deployment.Operation:
    """Return the statistics and the log of a walk over UDP.

    Args:
        walker: The robot. seconds: Duration, [s]. network: Losses and delay. speed: Of the clocks, seconds per second.
        changes: Name -> value of parameters of the robot in MuJoCo, in their units.
        model: Robot of estimator and law; None for that of the walker.
    """
    robot = walker.robot if model is None else model
    law = controllers.Estimated(controllers.Locomotion(walker.gait, command=None), estimation.InvariantFilter())
    q, v = law.initial_state(robot)
    kernel, memory = law.kernel(robot, q, v, command=5)
    base = robot.base.nv

    def evaluate(t: float, memory: Array, reading: Reading, command: Array) -> Any:
        after, force, estimate, _ = kernel(t, memory, *reading, command)
        return after, force[base:], estimate

    scene = Scene(walker.name, q, changes or {}, False, network, speed)
    with connected(scene, robot) as interface:
        command = partial(command_at, seconds=seconds)
        limits = deployment.SafetyLimits.of(robot)
        runner = deployment.Runner(interface, evaluate, memory, limits=limits, watchdog=0.1, command=command)
        return runner.run(seconds)


def report(operation: deployment.Operation, robot: legged.Robot, folder: Path) -> None:
    """Print the errors of a walk, and write its log and a page with true and estimated robot."""
    print(operation)
    log = operation.log
    true, estimate = log.truth[:, : robot.nq], log.estimate
    way = float(np.linalg.norm(np.diff(true[:, 4:6], axis=0), axis=1).sum())
    error = np.linalg.norm(estimate[-1, 4:7] - true[-1, 4:7])
    print(f"time {log.times[-1]:.1f} s, path {way:.2f} m, error of the position at the end {error:.3f} m")
    log.save(folder / "log.npz")
    legged.save_html([log.true_run(robot), log.estimated_run(robot)], folder / "walk.html", ["truth", "estimate"])


def options_of(parser: argparse.ArgumentParser) -> tuple[argparse.Namespace, deployment.Network]:
    """Add the options of walks over UDP to a parser, and return the options and the network of the command line."""
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--delay", type=float, default=5.0, help="of a round trip, ms")
    parser.add_argument("--loss", type=float, default=1.0, help="of packets in each direction, %%")
    parser.add_argument("--speed", type=float, default=1.0, help="of the clocks")
    parser.add_argument("--output", type=Path, default=Path("results/deployment"), metavar="FOLDER")
    options = parser.parse_args()
    return options, deployment.Network(options.loss / 100.0, options.delay / 2000.0, 5e-4)


def main() -> None:
    """Walk, print errors and times, and write the log and the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployment", description=__doc__.splitlines()[0])
    parser.add_argument("robot", nargs="?", default="Go2")
    options, network = options_of(parser)
    (walker,) = walkers([options.robot])
    report(walk(walker, options.seconds, network, options.speed), walker.robot, options.output)
