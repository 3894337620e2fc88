"""Accuracy and cost of the derivatives of time steps on rigid ground: `python -m benchmarks.contact.derivatives`.

The tables are those of `docs/explanation/contact_derivatives.md`; `python -m benchmarks.pages --write NAME` writes the
first two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

import controllers
import legged
from legged.contact import Box, FreeBody, Sphere
from legged.differentiation import MODES, DifferentiableRollout, DifferentiableSimulation
from legged.differentiation.equations import moved
from legged.rotations import quaternion_exp

STEPS = 10.0 ** np.arange(-2, -10, -1)
"""Steps of central differences, [m], [rad], and the units of velocities, torques and parameters."""
EXACT: dict[str, Any] = {"tolerance": 1e-13, "sweeps": 100}
"""Options of `Rigid` with which impulses are exact to rounding, so that differences show the error of derivatives."""
G, HALF, WALKING_SAMPLES = 9.81, 0.05, 24
"""Gravitational acceleration, [m/s^2], half of the side of the cube, [m], and number of samples of the walk."""
Array = np.ndarray


class Row(NamedTuple):
    """Errors of a scene: largest error of an entry of the Jacobian over max(1, entry), for each of `STEPS`."""

    name: str
    errors: Array


def cube() -> legged.Robot:
    """Return a cube of 1 kg with contact points at its corners."""
    at = (-HALF, HALF)
    points = {f"corner{i}": corner for i, corner in enumerate((x, y, z) for x in at for y in at for z in at)}
    return legged.RobotBuilder("cube", legged.Link("cube", legged.box_inertia(1.0, (2 * HALF,) * 3), points)).build()


def ball(gravity: float = G, **options: Any) -> legged.Robot:
    """Return a ball of 1 kg and a radius of 0.1 m."""
    link = legged.Link("ball", legged.sphere_inertia(1.0, 0.1), {"skin": Sphere(0.1)}, **options)
    return legged.RobotBuilder("ball", link, gravity=(0.0, 0.0, -gravity)).build()


def differences(run: DifferentiableRollout, jacobian: Array, ends: int = 1) -> Array:
    """Return the largest error of a Jacobian beside central differences, for each of `STEPS`, (8,); see `Row`.

    Args:
        run: A motion.
        jacobian: Derivative of the state after `ends` time steps by [deviation of the first state; commands of the
            first step; parameters].
        ends: Number of time steps.
    """
    sim, size = run.simulation, run.simulation.nx + run.simulation.nu + run.simulation.np
    motion = sim.nx - 3 * len(sim.loop.scene.candidates) - sim.loop.memory  # a robot's [dq; dv]
    errors = []
    for d in STEPS:
        x = d * np.concatenate([np.eye(size), -np.eye(size)])
        state = np.stack([moved(sim.loop, run.states[0], row[: sim.nx]) for row in x])
        values = run.parameters + x[:, sim.nx + sim.nu :]
        for k in range(ends):
            change = x[:, sim.nx : sim.nx + sim.nu] if k == 0 else 0.0
            state = sim.step(run.clocks[k], values, run.commands[k] + change, state).state
        deviations = sim.deviation(run.states[ends], state)
        central = (deviations[:size] - deviations[size:]).T[:motion] / (2 * d)
        errors.append(np.abs(central - jacobian[:motion]) / np.maximum(1.0, np.abs(jacobian[:motion])))
    return np.array([x.max() for x in errors])


def of_step(run: DifferentiableRollout) -> Array:
    """Return the errors of the Jacobian of the first step of a motion; see `differences`."""
    return differences(run, np.hstack([x[0] for x in run.jacobians()]))


def of_motion(run: DifferentiableRollout) -> Array:
    """Return the errors of the Jacobian of the last state of a motion; see `differences`."""
    sim, T = run.simulation, len(run.commands)
    first = np.zeros((T, sim.nu, sim.nu))
    first[0] = np.eye(sim.nu)
    parts = run.sensitivities(np.eye(sim.nx))[-1], np.zeros((sim.nx, 0)), np.zeros((sim.nx, 0))
    by_command = run.sensitivities(commands=first)[-1] if sim.nu else parts[1]
    by_values = run.sensitivities(parameters=np.eye(sim.np))[-1] if sim.np else parts[2]
    return differences(run, np.hstack([parts[0], by_command, by_values]), T)


def _scenes() -> Iterable[Row]:
    numbers = ["robot.cube.mass", "ground.friction", "ground.terrain.elevation"]
    tilt = quaternion_exp(np.array([0.3, 0.2, 0.1]))
    robot = cube()
    plastic = DifferentiableSimulation(robot, ground=legged.Rigid(friction=0.5, **EXACT), parameters=numbers)
    elastic = DifferentiableSimulation(
        robot, ground=legged.Rigid(friction=0.5, restitution=0.5, **EXACT), parameters=[*numbers, "ground.restitution"]
    )
    lowest = min(plastic.loop.scene.contact_geometry([np.concatenate([tilt, np.zeros(3)])]).gap)
    corner, flat = np.concatenate([tilt, [0.0, 0.0, 1e-3 - lowest]]), np.array([1.0, 0, 0, 0, 0, 0, HALF - 1e-4])
    cases: list[tuple[str, DifferentiableSimulation, Array, list[float]]] = [
        ("free flight, turning", plastic, corner + np.array([0, 0, 0, 0, 0, 0, 1.0]), [3.0, 2.0, 1.0, 1.0, 2.0, 3.0]),
        ("cube at rest on four corners: sticking", plastic, flat, [0.0] * 6),
        ("cube on four corners: sliding", plastic, flat, [0.0, 0.0, 0.0, 0.5, 0.2, 0.0]),
        ("impact of a corner, sticking", plastic, corner, [0.1, 0.0, 0.0, 0.5, 0.2, -5.0]),
        ("impact of a corner, sliding", plastic, corner, [0.1, 0.0, 0.0, -2.0, 0.2, -2.0]),
        ("impact of a corner with restitution, sticking", elastic, corner, [0.1, 0.0, 0.0, 0.5, 0.2, -5.0]),
        ("impact of a corner with restitution, sliding", elastic, corner, [0.1, 0.0, 0.0, -2.0, 0.2, -2.0]),
    ]
    for name, sim, q, v in cases:
        yield Row(name, of_step(sim.rollout(until=1e-3, q=q, v=v)))
    toss = np.array([0.6, 1.1, 0.4, 0.5, 0.2, -1.0])
    high = corner + np.array([0, 0, 0, 0, 0, 0, 0.02])
    yield Row("toss of a cube, 60 steps with impacts", of_motion(elastic.rollout(until=0.06, q=high, v=toss)))
    pushed = legged.RobotBuilder("pushed", legged.Link("rail"), base=legged.FixedBase())
    box = legged.Link("box", legged.box_inertia(1.0, (0.2, 0.2, 0.1)), {"left": (-0.1, 0, 0), "right": (0.1, 0, 0)})
    pushed.add(legged.Prismatic("lift", "z"), legged.Link("carriage"), to="rail")
    robot = pushed.add(legged.Prismatic("slide", "x"), box, to="carriage").build()
    sim = DifferentiableSimulation(robot, ground=legged.Rigid(friction=0.4, **EXACT), parameters=["ground.friction"])
    forces = np.array([[0.0, 6.0]] * 100 + [[0.0, 0.0]] * 50)
    yield Row("pushed and sliding box, 150 steps", of_motion(sim.rollout(forces, q=[-1e-6, 0.0], v=[0.0, 0.05])))


def walking() -> tuple[DifferentiableSimulation, list[DifferentiableRollout]]:
    """Return (simulation of Go2 under torques, its motions of one step at samples of a trot of `Locomotion`)."""
    from benchmarks.environments.scene import go2

    robot = go2()
    law = controllers.Locomotion("trot", command=controllers.Command(vx=0.4))
    ground = legged.Rigid(friction=0.7)
    run = legged.simulate(robot, law, ground=ground, until=1.5, sample=5e-3)
    sim = DifferentiableSimulation(robot, ground=legged.Rigid(friction=0.7, **EXACT), q=run.q[0])
    chosen = np.linspace(len(run.times) // 3, len(run.times) - 2, WALKING_SAMPLES).astype(int)
    return sim, [sim.rollout(run.tau[i][None, 6:], q=run.q[i], v=run.v[i]) for i in chosen.tolist()]


def accuracy() -> str:
    """Return the table of errors by mode and by the step of central differences."""
    rows = list(_scenes())
    by_modes: dict[str, list[Array]] = {}
    sim, steps = walking()
    for run in steps:
        m = len(sim.loop.scene.candidates)
        modes = " and ".join(sorted({MODES[int(x)] for x in run.modes[0, :m]}))
        by_modes.setdefault(modes, []).append(of_step(run))
    for modes, group_errors in sorted(by_modes.items()):
        rows.append(Row(f"trot of Go2, {len(group_errors)} steps, feet {modes}: largest", np.max(group_errors, axis=0)))
    head = "| scene | " + " | ".join(f"{d:.0e}" for d in STEPS) + " |"
    lines = [f"| {row.name} | " + " | ".join(f"{x:.0e}" for x in row.errors) + " |" for row in rows]
    return "\n".join([head, "| --- |" + " ---: |" * len(STEPS), *lines])


# Continuous time.


def _gradient(run: DifferentiableRollout, body: int, entries: list[int]) -> Array:
    """Return the derivative of the position of a body along x or z by entries of the first state."""
    return run.sensitivities(np.eye(run.simulation.nx)[:, entries])[-1][body]


def _limits(h: float, impact_times: bool) -> dict[str, tuple[Array, Array]]:
    """Return name -> (derivatives of time steps of h by position and velocity, those of continuous time)."""
    gradients, step = {}, legged.TimeStepping(h)
    e, z, v, T = 0.8, 0.3, 0.5, 0.5
    fall = DifferentiableSimulation(ball(), ground=legged.Rigid(restitution=e, **EXACT), integrator=step)
    run = fall.rollout(until=T, q=[1.0, 0, 0, 0, 0, 0, z + 0.1], v=[0, 0, 0, 0, 0, -v], impact_times=impact_times)
    speed = np.sqrt(v * v + 2 * G * z)
    late, slope = T - (speed - v) / G, np.array([G, -v]) / speed  # by z, and by the velocity upward
    exact = slope * e * late - (e * speed - G * late) * (slope + np.array([0.0, 1.0])) / G
    gradients["height of a ball after a bounce"] = _gradient(run, 5, [5, 11]), exact
    wall = (("wall", Box((0.2, 4.0, 4.0), (0.6, 0.0, 0.0))),)  # its face is at x = 0.5 m
    ground = legged.Rigid(friction=0.0, restitution=1.0, obstacles=wall, terrain=legged.ground.Flat(-9.0), **EXACT)
    thrown = DifferentiableSimulation(ball(0.0), ground=ground, integrator=step)
    run = thrown.rollout(until=T, q=[1.0, 0, 0, 0, 0, 0, 0], v=[0, 0, 0, 1.37, 0, 0], impact_times=impact_times)
    gradients["position of a ball after a wall"] = _gradient(run, 3, [3, 9]), np.array([-1.0, -T])
    other = FreeBody("other", legged.sphere_inertia(1.0, 0.1), [Sphere(0.1)], position=(0.52, 0.0, 0.0))
    ground = legged.Rigid(friction=0.0, restitution=1.0, pairs=(("ball", "other"),), **EXACT)
    two = DifferentiableSimulation(ball(0.0, shapes=[Sphere(0.1)]), ground=ground, bodies=[other], integrator=step)
    run = two.rollout(until=1.0, v=[0, 0, 0, 1.0, 0, 0], q=two.robot.neutral(), impact_times=impact_times)
    n = two.nx
    gradients["position of a second ball of equal mass after a collision"] = (
        _gradient(run, n - 9, [3, 9]),
        np.array([1.0, 1.0]),
    )
    mass = legged.Link("mass", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), {"left": (-0.1, 0, 0), "right": (0.1, 0, 0)})
    rail = legged.RobotBuilder("sled", legged.Link("rail"), base=legged.FixedBase())
    sled = rail.add(legged.Prismatic("lift", "z"), legged.Link("carriage"), to="rail")
    robot = sled.add(legged.Prismatic("slide", "x"), mass, to="carriage").build()
    slide = DifferentiableSimulation(
        robot, ground=legged.Rigid(friction=0.5, **EXACT), integrator=step, parameters=["ground.friction"]
    )
    run = slide.rollout(until=0.2, q=[-1e-9, 0.0], v=[0.0, 0.5], impact_times=False)
    by_friction = run.sensitivities(parameters=np.eye(1))[-1][1]
    stop = np.concatenate([_gradient(run, 1, [1, 3]), by_friction])
    gradients["place where a sliding box stops"] = stop, np.array([1.0, 0.5 / (0.5 * G), -(0.5**2) / (2 * 0.5**2 * G)])
    return gradients


def continuous() -> str:
    """Return the table of errors beside the derivatives of continuous time, by the length of the time steps."""
    lengths = (4e-3, 2e-3, 1e-3, 5e-4)
    lines = ["| scene | derivatives | " + " | ".join(f"{1e3 * h:g} ms" for h in lengths) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(lengths))
    tables = {key: [_limits(h, key) for h in lengths] for key in (False, True)}
    for name in tables[False][0]:
        for key, words in ((False, "of the steps"), (True, "with times of impacts")):
            if "sliding" in name and key:
                continue
            errors = [np.abs(x[name][0] - x[name][1]).max() for x in tables[key]]
            lines.append(f"| {name} | {words} | " + " | ".join(f"{x:.1e}" for x in errors) + " |")
    return "\n".join(lines)


# Cost.


def _time(call: Callable[[], Any], count: int) -> float:
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count


def cost() -> str:
    """Return the table of processor times of a step and of its derivatives: least times, and medians of ratios."""
    sliding = DifferentiableSimulation(cube(), ground=legged.Rigid(friction=0.5))
    flat = np.array([1.0, 0, 0, 0, 0, 0, HALF - 1e-4])
    runs = {
        "cube, 8 contacts": sliding.rollout(until=1e-3, q=flat, v=[0, 0, 0, 0.5, 0, 0]),
        "Go2, 4 contacts, 12 joints with stops": walking()[1][0],
    }
    lines = ["| robot | freedoms | step [us] | product [us] | product / step | Jacobian [us] | Jacobian / step |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, run in runs.items():
        times = np.array([_times(run) for _ in range(15)])
        step, product, jacobian = np.min(times, axis=0) * 1e6
        ratios = np.median(times[:, 1:] / times[:, :1], axis=0)
        lines.append(
            f"| {name} | {run.simulation.robot.nv} | {step:.0f} | {product:.0f} | {ratios[0]:.1f} | {jacobian:.0f} | "
            f"{ratios[1]:.0f} |"
        )
    return "\n".join(lines)


def _times(run: DifferentiableRollout) -> list[float]:
    """Return the processor times of a step, of a product with one weight, and of the Jacobian, [s]."""
    sim, weights = run.simulation, np.ones(run.simulation.nx)
    arrays = run.clocks[0], run.parameters, run.commands[0], run.states[0]
    result = sim.step(*arrays)
    calls = (lambda: sim.step(*arrays), lambda: sim.products(*arrays, result, weights), run.jacobians)
    return [_time(call, n) for call, n in zip(calls, (200, 200, 20), strict=True)]


def main() -> None:
    """Print the tables."""
    for compute in (accuracy, continuous, cost):
        print(f"{(compute.__doc__ or '').splitlines()[0]}\n\n{compute()}\n", flush=True)


if __name__ == "__main__":
    main()
