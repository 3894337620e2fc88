"""Stacks: a large ratio of masses, a tower, a card house, an arch of wedges, and the loads of redundant feet."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

import legged
from benchmarks.contact.rows import MUJOCO, OURS, PINOCCHIO, Row, programs
from benchmarks.contact.scenes import SOLREF, G, Motion, Program, Solid, World
from legged.contact import Box, Hull, Rigid

EDGE = 0.1
"""Edge of the boxes of stacks, [m]."""


def tower_of(masses: list[float], neighbors: bool = True) -> World:
    """Return boxes on top of each other at rest.

    Args:
        masses: From the lowest to the top, [kg]. neighbors: Whether neighbors alone may collide, not every pair.
    """
    cube = Box((EDGE,) * 3)
    solids = [Solid(f"box{k}", cube, m, (0.0, 0.0, (k + 0.5) * EDGE)) for k, m in enumerate(masses)]
    names = ["ground", *(solid.name for solid in solids)]
    return World(solids, 0.6, pairs=list(zip(names[1:], names[:-1], strict=True)) if neighbors else None)


def _rows(test: str, motions: dict[str, Motion], top: str, bodies: list[str]) -> list[Row]:
    sag = {n: 1e3 * float(np.ptp(m.position[top][:, 2])) for n, m in motions.items()}
    tilt = {n: float(max(m.tilt(name).max() for name in bodies)) for n, m in motions.items()}
    return [
        Row(test, "largest change of the height of the top, mm", sag, negligible=1e-4),
        Row(test, "largest tilt, degrees", tilt, negligible=1e-4),
    ]


def heavy_top(short: bool = False) -> list[Row]:
    """Return sag and tilt in 1 s of two boxes of 1 kg under one of 1000 kg."""
    world = tower_of([1.0, 1000.0] if short else [1.0, 1.0, 1000.0])
    motions = {name: program(world, 0.1 if short else 1.0, 1e-3) for name, program in programs().items()}
    return _rows("mass ratio 1000", motions, world.solids[-1].name, [solid.name for solid in world.solids])


def tower(short: bool = False) -> list[Row]:
    """Return sag and tilt in 1 s of ten equal boxes."""
    world = tower_of([1.0] * (2 if short else 10))
    motions = {name: program(world, 0.1 if short else 1.0, 1e-3) for name, program in programs().items()}
    return _rows("tower of ten", motions, world.solids[-1].name, [solid.name for solid in world.solids])


CARD = (0.01, 0.3, 0.4)
"""Thickness, width and height of the cards, [m]."""
LEAN = 25.0
"""Angle of the cards to the vertical, [deg]."""


def _cards(friction: float) -> World:
    """Return two cards that lean against each other along their upper inner edges."""
    angle, (thick, _, high) = np.radians(LEAN), CARD
    solids = []
    for name, side in (("left", -1.0), ("right", 1.0)):
        turn = -side * angle  # about y; the top of each card leans towards the other
        across = 0.5 * thick * np.array([np.cos(turn), -np.sin(turn)])
        along = 0.5 * high * np.array([np.sin(turn), np.cos(turn)])
        corners = [a * across + b * along for a in (-1, 1) for b in (-1, 1)]
        inner = max(-side * x for x, _ in corners)
        lowest = min(z for _, z in corners)
        quaternion = (float(np.cos(turn / 2)), 0.0, float(np.sin(turn / 2)), 0.0)
        solids.append(Solid(name, Box(CARD), 0.1, (side * inner, 0.0, -lowest), quaternion))
    return World(solids, friction)


def critical_friction() -> float:
    """Return the least friction at the ground for which the cards stand.

    Moments about the lower edge: the weight acts at the horizontal distance of the center, the horizontal force of the
    other card at the height of the upper inner edge.
    """
    angle, (thick, _, high) = np.radians(LEAN), CARD
    across = 0.5 * thick * np.array([np.cos(angle), -np.sin(angle)])
    along = 0.5 * high * np.array([np.sin(angle), np.cos(angle)])
    foot, top = across - along, across + along  # of the left card from its center, x and z
    return float(-foot[0] / (top[1] - foot[1]))


def _falls(program: Program, friction: float, until: float) -> bool:
    """Return whether the cards move by 2 mm in a given time, or the program ends with an error."""
    try:
        height = program(_cards(friction), until, 1e-3).position["left"][:, 2]
    except RuntimeError:  # Drake, for numbers that are not finite
        return True
    return bool(np.abs(height - height[0]).max() > 2e-3)


def card_house(short: bool = False) -> list[Row]:
    """Return the least friction at which two cards stand for 1 s, relative to the exact one."""
    exact, values = critical_friction(), {}
    for name, program in programs().items():
        low, high = 0.6 * exact, 3.0 * exact
        for _ in range(1 if short else 7):
            friction = float(0.5 * (low + high))
            if _falls(program, friction, 0.2 if short else 1.0):
                low = friction
            else:
                high = friction
        values[name] = 0.5 * (low + high) / exact
    return [
        Row(
            "card house",
            "least friction at which it stands, relative to the exact one",
            values,
            exact=1.0,
            negligible=0.02,
        )
    ]


def arch(short: bool = False) -> list[Row]:
    """Return the sag of the keystone of a half circle of seven wedges in 1 s, [mm]."""
    library: Any = import_module("mujoco")
    inner, outer, width, count = 0.4, 0.55, 0.2, 7
    steps = np.linspace(0.0, np.pi, count + 1)
    contact = f'condim="3" friction="0.8 0 0" solref="{SOLREF}" solimp="0.99 0.999 0.0001"'
    assets, bodies, solids = [], [], []
    for k in range(count):
        middle = 0.5 * (steps[k] + steps[k + 1])
        center = 0.5 * (inner + outer) * np.array([np.cos(middle), 0.0, np.sin(middle)])
        points = [
            np.array([r * np.cos(a), y, r * np.sin(a)]) - center
            for a in steps[k : k + 2]
            for r in (inner, outer)
            for y in (-width / 2, width / 2)
        ]
        numbers = " ".join(repr(float(x)) for point in points for x in point)
        assets.append(f'<mesh name="wedge{k}" vertex="{numbers}"/>')
        at = " ".join(repr(float(x)) for x in center)
        solids.append(Solid(f"wedge{k}", Hull(np.array(points)), 1.0, tuple(center)))
        bodies.append(f'<body pos="{at}"><freejoint/><geom type="mesh" mesh="wedge{k}" mass="1" {contact}/></body>')
    model = library.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.001" cone="elliptic" impratio="100" integrator="implicitfast" iterations="200" '
        f'tolerance="1e-12"/><asset>{"".join(assets)}</asset><worldbody><geom type="plane" size="9 9 1" {contact}/>'
        f"{''.join(bodies)}</worldbody></mujoco>"
    )
    data = library.MjData(model)
    key = 7 * (count // 2) + 2
    start = float(data.qpos[key])
    library.mj_step(model, data, 50 if short else 1000)
    names = [solid.name for solid in solids]
    world = World(solids, 0.8, pairs=[(names[0], "ground"), (names[-1], "ground"), *pairwise(names)])
    sag = {MUJOCO: 1e3 * (start - float(data.qpos[key]))}
    for name in (OURS, PINOCCHIO):
        if program := programs().get(name):
            height = program(world, 0.05 if short else 1.0, 1e-3).position[names[count // 2]][:, 2]
            sag[name] = 1e3 * float(height[0] - height[-1])
    return [Row("arch of wedges", "sag of the keystone, mm", sag, negligible=1e-4)]


def feet(short: bool = False) -> list[Row]:
    """Return the error of the loads of four corners under an eccentric weight, relative to the largest load.

    The exact loads are those of least norm: linear in the coordinates of the corners.
    """
    size, mass, center, until = (0.4, 0.3, 0.1), 5.0, (0.06, 0.03, 0.0), 0.05 if short else 0.5
    inertia = legged.box_inertia(mass, size, center)
    robot = legged.RobotBuilder("box", legged.Link("box", inertia, shapes=[Box(size)])).build()
    q = robot.neutral()
    q[6] = 0.05
    run = legged.simulate(robot, None, ground=Rigid(0.5, pairs=(("box", "terrain"),)), q=q, until=until, fall=False)
    corners, loads = run.contacts.points[-1], run.contacts.forces[-1]
    tensor = " ".join(repr(float(x)) for x in np.diag(np.asarray(inertia.tensor)))
    contact = f'condim="3" friction="0.5 0 0" solref="{SOLREF}" solimp="0.99 0.999 0.0001"'
    library: Any = import_module("mujoco")
    model = library.MjModel.from_xml_string(
        '<mujoco><option timestep="0.001" cone="elliptic" impratio="100" iterations="200" tolerance="1e-12"/>'
        f'<worldbody><geom type="plane" size="9 9 1" {contact}/><body pos="0 0 0.05"><freejoint/>'
        f'<inertial pos="0.06 0.03 0" mass="5" diaginertia="{tensor}"/>'
        f'<geom type="box" size="0.2 0.15 0.05" {contact}/></body></worldbody></mujoco>'
    )
    data = library.MjData(model)
    library.mj_step(model, data, round(until / 1e-3))
    shares, places = [], []
    for k in range(data.ncon):
        force = np.zeros(6)
        library.mj_contactForce(model, data, k, force)
        shares.append(np.array([force[1], force[2], force[0]]))
        places.append(data.contact[k].pos.copy())
    values, sideways = {}, {}
    for name, at, f in ((OURS, corners, loads), (MUJOCO, np.array(places), np.array(shares))):
        xy = at[:, :2] - at[:, :2].mean(axis=0)
        mean, moments = mass * G / len(at), mass * G * (np.array(center[:2]) - at[:, :2].mean(axis=0))
        exact = mean + xy @ np.linalg.solve(xy.T @ xy, moments)
        values[name] = 100.0 * float(np.abs(f[:, 2] - exact).max() / exact.max())
        sideways[name] = float(np.abs(f[:, :2]).max())
    return [
        Row("redundant feet", "largest error of a load, % of the largest load", values, negligible=1e-3),
        Row("redundant feet", "largest tangential force without tangential load, N", sideways, negligible=1e-6),
    ]
