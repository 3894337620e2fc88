"""Time of a step of ten boxes on each other, ours beside MuJoCo's: `python -m benchmarks.contact --speed`, a minute.

At rest, and in the 0.2 s after all boxes but the lowest get random horizontal velocities. Times are least processor
times of a time step of 1 ms, ours and MuJoCo's in turn: of one tower by calls from Python, and of a batch on one core.
Neighbors alone may collide, in one kernel, or all pairs, which is more than one kernel takes and runs in parts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

import legged
from benchmarks.contact.scenes import World, mujoco_file, placed
from benchmarks.contact.stacks import tower_of
from benchmarks.simulation import compiled_rollout
from legged.spatial import Array

STEP, STEPS, MEMBERS, REPEATS = 1e-3, 200, 64, 8
"""Time step, [s], number of steps and of members of a batch, and of measurements."""
SPEED = 1.0
"""Largest component of the initial velocities of towers in motion, [m/s]."""


def tower(moves: bool, seed: int, boxes: int, neighbors: bool = True) -> World:
    """Return a tower, at rest or with random horizontal velocities of its boxes.

    Args:
        moves: Whether it has velocities. seed: Of the velocities. boxes: Number of boxes.
        neighbors: Whether neighbors alone may collide, not every pair.
    """
    world, rng = tower_of([1.0] * boxes, neighbors), np.random.default_rng(seed)
    if not moves:
        return world
    fast = [replace(solid, velocity=(*rng.uniform(-SPEED, SPEED, 2), 0.0)) for solid in world.solids[1:]]
    return replace(world, solids=[world.solids[0], *fast])


def speed_table(short: bool = False) -> str:
    """Return a Markdown table of the times of a step.

    Args:
        short: Two boxes and few steps, which show that the program runs.
    """
    boxes, steps = (2, 10) if short else (10, STEPS)
    lines = ["| scene | program | ours [us] | MuJoCo [us] | MuJoCo / ours |", f"| --- | --- |{' ---: |' * 3}"]
    for moves, scene in ((False, "at rest"), (True, "in motion")):
        world, every = (tower(moves, 0, boxes, neighbors) for neighbors in (True, False))
        for words, pair, work in (
            ("one tower", (_one(world, steps), _mujoco_one(world, steps)), steps),
            ("one tower, all pairs, in parts", (_one(every, steps), _mujoco_one(every, steps)), steps),
            ("batch on one core", (_batch(world, steps), _mujoco_batch(world, steps)), steps * MEMBERS),
        ):
            ours, other = (1e6 * x / work for x in least_times(pair, 1 if short else REPEATS))
            lines.append(f"| {boxes} boxes {scene} | {words} | {ours:.1f} | {other:.1f} | {other / ours:.2f} |")
    return "\n".join(lines) + "\n"


def least_times(programs: tuple[Callable[[], Any], ...], repeats: int) -> list[float]:
    """Return the least processor time of each program, [s], which run in turn, after one run without measurement."""
    least = [np.inf] * len(programs)
    for k in range(repeats + 1):
        for i, program in enumerate(programs):
            start = time.process_time()
            program()
            least[i] = min(least[i], time.process_time() - start) if k else least[i]
    return least


def _one(world: World, steps: int) -> Callable[[], None]:
    robot, q, v, bodies, ground = placed(world)
    return stepping(steps, robot, None, ground=ground, bodies=bodies, q=q, v=v)


def stepping(steps: int, robot: legged.Robot, law: Any, **options: Any) -> Callable[[], None]:
    """Return a function that takes time steps by calls from Python, always from the same state.

    Args:
        steps: Number of steps. robot, law, options: As in `legged.Simulation`.
    """
    sim = legged.Simulation(robot, law, integrator=legged.TimeStepping(STEP), fall=False, **options)
    start = sim.state

    def run() -> None:
        sim.state = start
        for _ in range(steps):
            sim.step()

    return run


def _batch(world: World, steps: int) -> Callable[[], Any]:
    robot, q, v, bodies, ground = placed(world)
    states = np.tile(v, (MEMBERS, 1))
    if any(any(solid.velocity) for solid in world.solids):
        states[:, 3:5] = _first_velocities()
    run = compiled_rollout(robot, None, ground, states, steps, STEP, q=np.tile(q, (MEMBERS, 1)), bodies=bodies)
    return lambda: run(1)


def _first_velocities() -> Array:
    """Return a horizontal velocity of the lowest box of each member in motion, (MEMBERS, 2), [m/s]."""
    return np.random.default_rng(1).uniform(-SPEED, SPEED, (MEMBERS, 2))


def _mujoco(world: World) -> tuple[Any, Any, Any, Array]:
    """Return the library, the model, its data, and the initial velocities of all bodies."""
    library: Any = import_module("mujoco")
    model = library.MjModel.from_xml_string(mujoco_file(world, STEP))
    return library, model, library.MjData(model), np.array([[*s.velocity, *s.spin] for s in world.solids]).ravel()


def _mujoco_one(world: World, steps: int) -> Callable[[], None]:
    library, model, data, v = _mujoco(world)

    def run() -> None:
        library.mj_resetData(model, data)
        data.qvel[:] = v
        for _ in range(steps):
            library.mj_step(model, data)

    return run


def _mujoco_batch(world: World, steps: int) -> Callable[[], Any]:
    library, model, data, v = _mujoco(world)
    module, kind = import_module("mujoco.rollout"), library.mjtState.mjSTATE_FULLPHYSICS
    states = np.zeros((MEMBERS, library.mj_stateSize(model, kind)))
    states[:, 1 : 1 + model.nq], states[:, 1 + model.nq : 1 + model.nq + model.nv] = data.qpos, v
    if v.any():
        states[:, 1 + model.nq : 3 + model.nq] = _first_velocities()
    return lambda: module.rollout(model, [data], states, nstep=steps)
