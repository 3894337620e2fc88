"""Boxes: a free box on the ground that the trunk pushes, and one that it carries on its back without a fixture."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged.contact import Box, FreeBody
from legged.errors import LeggedError
from legged.spatial import Array
from legged.table import Table

_TRUNK = (1.7, 0.55, 0.35)
"""Edges of the box that the trunk has for contact, [h], about the origin of the base."""
_PUSHED, _CARRIED = (1.8, 1.5, 1.2), (0.8, 0.5, 0.3)
"""Edges of the boxes, [h]; the base pushes at its height, and a shorter box tips over."""
_LIGHT, _HEAVY, _ON_BACK = 0.1, 0.25, 0.15
"""Masses of the boxes, of the robot's."""
_FRICTION, _SPEED, _TURNING, _UNTIL = 0.6, 0.16, 0.06, 6.0  # -, [sqrt(g h)], [sqrt(g / h)], [s]
_STEP = legged.TimeStepping(2e-3)


def box_table(walkers: list[Walker]) -> Table:
    """Return how far boxes move that are pushed, and how far those slide that are carried."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers if walker.feet > 2]
    notes = (
        f"Trots of {_UNTIL:g} s at {_SPEED:g} sqrt(g h), friction {_FRICTION:g}. Pushed: way of a free box of 0.1 and",
        "0.25 of the robot's mass along the ground, and mean speed in the last half over the commanded one. Carried:",
        "largest way of a box of 0.15 of the mass on the back, in axes of the base, while the robot also turns with",
        f"{_TURNING:g} sqrt(g / h). The controller does not know the boxes. -: the robot falls.",
    )
    heads = ("robot", "pushed 0.1 m, way", "speed", "pushed 0.25 m, way", "speed", "carried, slides, mm")
    return Table("Locomotion, boxes", heads, tuple(lines), notes, left=1)


def _measure(walker: Walker) -> list[str]:
    h, cells = walker.height, list[str]()
    shape = Box((h * _TRUNK[0], h * _TRUNK[1], h * _TRUNK[2]))
    robot = walker.robot.edit().change_link(walker.trunk, shapes=[shape]).build()
    law = replace(walker.law("trot"), command=controllers.Command(vx=_SPEED * walker.speed))
    q, v = law.initial_state(robot)
    ahead, over = 0.5 * h * (_TRUNK[0] + _PUSHED[0]) + 0.1 * h, 0.5 * h * (_TRUNK[2] + _CARRIED[2]) + 1e-3 * h
    for share in (_LIGHT, _HEAVY):
        body = _box(h, _PUSHED, share * robot.mass, (ahead, 0.0, 0.5 * h * _PUSHED[2]))
        run = _run(robot, law, q, v, body)
        if run is None:
            cells += ["-", "-"]
            continue
        half = len(run.times) // 2
        speed = (run.q[-1, 4] - run.q[half, 4]) / (run.times[-1] - run.times[half])
        way = run.bodies.q[-1, 0, 4] - run.bodies.q[0, 0, 4]
        cells += [f"{way:.2f} m", f"{100.0 * speed / (_SPEED * walker.speed):.0f} %"]
    turns = replace(law, command=controllers.Command(vx=_SPEED * walker.speed, yaw_rate=_TURNING * walker.turning))
    run = _run(robot, turns, q, v, _box(h, _CARRIED, _ON_BACK * robot.mass, (0.0, 0.0, float(q[6]) + over)))
    if run is None:
        return [*cells, "-"]
    poses = [robot.base.pose(row[:7]) for row in run.q]
    own = np.array([R.T @ (x[4:] - origin) for (R, origin), x in zip(poses, run.bodies.q[:, 0], strict=True)])
    return [*cells, f"{1e3 * np.linalg.norm(own - own[0], axis=1).max():.1f}"]


def _box(h: float, edges: tuple[float, float, float], mass: float, position: tuple[float, float, float]) -> FreeBody:
    size = (h * edges[0], h * edges[1], h * edges[2])
    return FreeBody("box", legged.box_inertia(mass, size), [Box(size)], position=position)


def _run(robot: legged.Robot, law: controllers.Locomotion, q: Array, v: Array, body: FreeBody) -> legged.Run | None:
    """Return the run, or None after a fall."""
    ground = legged.Rigid(friction=_FRICTION)
    try:
        return legged.simulate(robot, law, ground=ground, bodies=[body], until=_UNTIL, q=q, v=v, integrator=_STEP)
    except LeggedError as error:
        print(f"{robot.name}, boxes: {error}", flush=True)
        return None
