"""From a log to a robot: a Go2 in another process, identified from its own log, then walks by the identified model.

    python -m benchmarks.deployment.identified [--seconds 60] [--delay 5] [--loss 1] [--speed 1] [--output FOLDER]

The robot in MuJoCo has joints with damping, armature and dry friction and heavier shanks, which the file of the robot
does not state. Its base is held, its joints follow an excitation, and the loop writes the log, all over UDP. A fit of
this log gives the model of estimator and law, with which the robot walks by commands over the same UDP interface.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import legged
from benchmarks.deployment.walk import Scene, connected, options_of, report, walk
from benchmarks.identification.go2 import go2
from benchmarks.locomotion.walkers import Walker, walkers
from legged import deployment, identification
from legged.identification import Motors, Parameter
from legged.spatial import Array

TRUTH = {
    "hip": {"damping": 0.15, "armature": 0.012, "friction": 0.2},
    "thigh": {"damping": 0.10, "armature": 0.015, "friction": 0.15},
    "calf": {"damping": 0.20, "armature": 0.025, "friction": 0.3},
}
"""Damping, [N m s/rad], armature, [kg m^2], and dry friction, [N m], of the joints of all legs."""
MASS = 0.25  # [kg] of a shank; 0.154 in the file
BOUNDS = {"damping": (0.05, 0.0, 1.0), "armature": (0.005, 1e-4, 0.1), "friction": (0.05, 0.0, 1.0)}
LEGS = ("FL", "FR", "RL", "RR")
_KP, _KD = 40.0, 1.0  # of the servos during the experiment, [N m/rad], [N m s/rad]
_DURATION, _PERIOD = 8.0, 2e-3  # [s]
_HEIGHT = 1.0  # [m] of the held base


def parameters() -> dict[str, Parameter]:
    """Return the parameters to identify, one value for the same joints of all legs."""
    chosen = {f"robot.*_{j}_joint.{field}": Parameter(*bounds) for j in TRUTH for field, bounds in BOUNDS.items()}
    chosen |= {"robot.*_calf.mass": Parameter(None, 0.05, 1.0), "motors.*.delay": Parameter(0.005, 0.0, 0.03)}
    return chosen


def of_all_legs(values: dict[str, float]) -> dict[str, float]:
    """Return values of parameters of the robot, name -> value, from those shared by the legs, "robot.*_" + name."""
    shared = {name.removeprefix("robot.*_"): x for name, x in values.items() if name.startswith("robot.")}
    return {f"{leg}_{name}": x for leg in LEGS for name, x in shared.items()}


def true_values() -> dict[str, float]:
    """Return the values of the robot in MuJoCo, with the names of `parameters`."""
    values = {f"robot.*_{j}_joint.{field}": x for j, own in TRUTH.items() for field, x in own.items()}
    return values | {"robot.*_calf.mass": MASS}


def experiment(walker: Walker, network: deployment.Network, speed: float) -> identification.Log:
    """Return the log of an excitation of the held robot over UDP, at one period."""
    robot, held = walker.robot, go2()
    plan = identification.excitation(held, duration=_DURATION, period=_PERIOD, speed=6.0)
    print(f"before the experiment: {model_of(held).plan(plan.log)}", flush=True)
    q, _ = walker.law().initial_state(robot)
    q = q.copy()
    q[4:7], q[7:] = (0.0, 0.0, _HEIGHT), plan.q[0]
    zero, gains = np.zeros(robot.nj), (np.full(robot.nj, _KP), np.full(robot.nj, _KD))

    def evaluate(t: float, memory: Array, reading: Any, command: Array) -> Any:
        return memory, deployment.JointCommand(zero, command, zero, *gains), np.zeros(0)

    def target(t: float) -> Array:
        return np.array([np.interp(t, plan.times, column) for column in plan.q.T])

    scene = Scene(walker.name, q, of_all_legs(true_values()), True, network, speed)
    with connected(scene, robot) as interface:
        limits = deployment.SafetyLimits.of(robot, margin=0.3)
        runner = deployment.Runner(interface, evaluate, zero, limits=limits, watchdog=0.1, command=target)
        operation = runner.run(_DURATION)
    print(f"experiment: {operation}", flush=True)
    if operation.stopped:
        raise SystemExit("the experiment ended early; a lower --speed lets a busy computer follow")
    return identification.Log(**operation.log.channels(robot)).resampled(_PERIOD)


def model_of(robot: legged.Robot) -> identification.Model:
    """Return the model whose parameters are identified."""
    motors = Motors(kp=_KP, kd=_KD)
    noise, channels = {"positions": 1e-3, "rates": 0.1}, ("positions", "rates")
    return identification.Model(robot, parameters(), motors=motors, noise=noise, channels=channels, time_step=_PERIOD)


def identified(log: identification.Log, folder: Path) -> dict[str, float]:
    """Return the values of parameters of the robot, name -> value, and print them beside the true ones."""
    half = 0.75 * log.duration
    fit = model_of(go2()).fit(log.part(0.0, half))
    intervals, truth = fit.intervals(0.95, robust=True), true_values()
    for name, value in fit.values.items():
        low, high = intervals[name]
        true = f", true {truth[name]:.4f}" if name in truth else ""
        print(f"  {name}: {value:.4f} (95 %: {low:.4f} to {high:.4f}){true}")
    errors = [fit.error(log.part(half), fitted=own)["positions"] for own in (False, True)]
    print(f"error of positions of the last quarter, not fitted: {1e3 * errors[0]:.1f} to {1e3 * errors[1]:.1f} mrad")
    fit.save_html(folder / "identification.html", held_out=log.part(half))
    return of_all_legs(fit.values)


def main() -> None:
    """Make the log, identify the robot, and walk."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deployment.identified", description=__doc__)
    options, network = options_of(parser)
    (walker,) = walkers(["Go2"])
    log = experiment(walker, network, options.speed)
    log.save(options.output / "experiment.npz")
    values = identified(log, options.output)
    model = walker.robot.with_parameters(values)
    operation = walk(walker, options.seconds, network, options.speed, of_all_legs(true_values()), model)
    report(operation, model, options.output)


if __name__ == "__main__":
    main()
