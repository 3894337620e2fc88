"""Friction: threshold of sliding, stopping distance, creep of a pinched object and of a robot on a slope."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import legged
from benchmarks.contact.rows import MUJOCO, OURS, Row, programs
from benchmarks.contact.scenes import SOLREF, G, Solid, World
from legged.contact import Box, FreeBody, Rigid

CUBE = Box((0.2, 0.2, 0.1))
"""Body that slides, [m]."""
NOTICEABLE = 1e-3
"""Gain of speed in half a second that counts as sliding, [m/s]; a box at 0.012 degrees above the threshold has it."""


def _inclined(angle: float) -> tuple[float, float, float]:
    return (G * float(np.sin(angle)), 0.0, -G * float(np.cos(angle)))


def threshold(short: bool = False) -> list[Row]:
    """Return the largest error of the angle at which a box begins to slide, over three coefficients of friction."""
    angles, until = np.radians([20.0] if short else [10.0, 25.0, 40.0]), 0.4 if short else 1.0
    worst: dict[str, float] = {}
    for angle in angles:
        worst[OURS] = max(worst.get(OURS, 0.0), _ours_threshold(angle, until))
        for name, program in programs().items():
            if name == OURS:
                continue
            low, high = np.tan(angle - np.radians(0.5)), np.tan(angle + np.radians(0.5))
            for _ in range(3 if short else 10):
                friction = float(0.5 * (low + high))
                world = World([Solid("box", CUBE, 1.0, (0.0, 0.0, 0.05))], friction, gravity=_inclined(angle))
                speed = program(world, until, 1e-3).velocity["box"][:, 0]
                if speed[-1] - speed[len(speed) // 2] > NOTICEABLE:
                    low = friction
                else:
                    high = friction
            error = abs(np.degrees(np.arctan(0.5 * (low + high)) - angle))
            worst[name] = max(worst.get(name, 0.0), error)
    return [Row("friction ramp", "largest error of the angle of sliding, degrees", worst, negligible=0.02)]


def _ours_threshold(angle: float, until: float) -> float:
    """Return the error of the angle of sliding, [deg], from a batch of coefficients of friction at 0.001 degrees."""
    link = legged.Link("box", legged.box_inertia(1.0, CUBE.size), shapes=[CUBE])
    robot = legged.RobotBuilder("box", link, gravity=_inclined(angle)).build()
    q = robot.neutral()
    q[6] = 0.05
    offsets = np.linspace(-0.02, 0.02, 41)
    ground = Rigid(0.5, pairs=(("box", "terrain"),))
    friction = np.tan(angle + np.radians(offsets))
    runs = legged.rollout(
        robot, None, ground=ground, q=q, vary={"ground.friction": friction}, until=until, sample=0.1, fall=False
    )
    speed = runs.v[:, :, 3]
    slides = speed[:, -1] - speed[:, speed.shape[1] // 2] > NOTICEABLE
    return float(np.abs(offsets[slides].max(initial=-0.02)))


def stopping(short: bool = False) -> list[Row]:
    """Return the largest relative error of the distance v^2 / (2 mu g) in which a sliding box stops."""
    worst: dict[str, float] = {}
    for friction, speed in [(0.5, 1.0)] if short else [(0.2, 1.0), (0.5, 3.0), (0.9, 2.0)]:
        exact = speed**2 / (2.0 * friction * G)
        world = World([Solid("box", CUBE, 1.0, (0.0, 0.0, 0.05), velocity=(speed, 0.0, 0.0))], friction)
        for name, program in programs().items():
            x = program(world, speed / friction / G + 0.1, 1e-3).position["box"][-1, 0]
            worst[name] = max(worst.get(name, 0.0), 100.0 * abs(x / exact - 1.0))
    return [Row("stopping distance", "largest error, %", worst, negligible=1e-3)]


CONTACT = f'condim="3" friction="0.5 0 0" solref="{SOLREF}" solimp="0.99 0.999 0.0001"'
PINCH = f"""<mujoco><option timestep="0.001" cone="elliptic" impratio="100" integrator="implicitfast" iterations="200"
tolerance="1e-12"/><worldbody><body name="left" pos="-0.075 0 1"><joint name="l" type="slide" axis="1 0 0"/>
<geom type="box" size="0.025 0.05 0.05" mass="0.3" {CONTACT}/></body>
<body name="right" pos="0.075 0 1"><joint name="r" type="slide" axis="-1 0 0"/>
<geom type="box" size="0.025 0.05 0.05" mass="0.3" {CONTACT}/></body>{{}}</worldbody></mujoco>"""
OBJECT = f"""<body name="object" pos="0 0 1"><freejoint/>
<geom type="box" size="0.05 0.03 0.03" mass="0.5" {CONTACT}/></body>"""
PRESS = 20.0
"""Force of each finger, [N]: friction can hold 20 N, the object weighs 4.9 N."""


def pinch(short: bool = False) -> list[Row]:
    """Return the speed of an object that two fingers hold in the middle of the friction cone, [um/s]."""
    until = 0.3 if short else 4.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fingers.xml"
        path.write_text(PINCH.format(""))
        robot = legged.load(path, shapes=True)
    block = Box((0.1, 0.06, 0.06))
    held = FreeBody("object", legged.box_inertia(0.5, block.size), [block], position=(0.0, 0.0, 1.0))
    ground = Rigid(0.5, pairs=(("left", "object"), ("right", "object")))
    run = legged.simulate(
        robot, lambda t, q, v, w: PRESS + 0.0 * q, ground=ground, bodies=[held], until=until, fall=False
    )
    half = len(run.times) // 2
    z = run.body("object").position[:, 2]
    speeds = {OURS: 1e6 * (z[half] - z[-1]) / (run.times[-1] - run.times[half])}
    library: Any = import_module("mujoco")
    model = library.MjModel.from_xml_string(PINCH.format(OBJECT))
    data = library.MjData(model)
    heights = []
    for _ in range(round(until / 1e-3)):
        data.qfrc_applied[:2] = PRESS
        library.mj_step(model, data)
        heights.append(data.qpos[4])
    middle = len(heights) // 2
    speeds[MUJOCO] = 1e6 * (heights[middle - 1] - heights[-1]) / (until / 2.0)
    return [Row("pinched object", "speed of creep, um/s", speeds, negligible=1e-3)]


LEGS = "".join(
    f"""<body name="thigh{k}" pos="{x} {y} 0"><joint name="hip{k}" axis="0 1 0" armature="0.02"/>
<inertial pos="0 0 -0.1" mass="0.5" diaginertia="0.002 0.002 0.0002"/>
<body name="shank{k}" pos="0 0 -0.2"><joint name="knee{k}" axis="0 1 0" armature="0.02"/>
<inertial pos="0 0 -0.1" mass="0.3" diaginertia="0.001 0.001 0.0001"/>
<geom name="foot{k}" type="sphere" size="0.02" pos="0 0 -0.2" mass="0" {CONTACT.replace("0.5 0 0", "0.8 0 0")}/>
</body></body>"""
    for k, (x, y) in enumerate(((0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)))
)
WALKER = f"""<mujoco><option timestep="0.001" cone="elliptic" impratio="100" integrator="implicitfast" iterations="200"
tolerance="1e-12" gravity="{{}}"/><worldbody>{{}}<body name="trunk" pos="0 0 0.38"><freejoint/>
<inertial pos="0 0 0" mass="10" diaginertia="0.05 0.15 0.18"/>{LEGS}</body></worldbody></mujoco>"""
FLOOR = f'<geom type="plane" size="9 9 1" {CONTACT.replace("0.5 0 0", "0.8 0 0")}/>'
STANDING = np.tile([0.5, -1.0], 4)
"""Angles of hips and knees, [rad]."""
STIFFNESS, DAMPING = 200.0, 10.0
"""Of the joint servos, [N m/rad] and [N m s/rad]."""


def slope(short: bool = False) -> list[Row]:
    """Return the creep of the feet of a quadruped under servos on a slope of 20 degrees with mu = 0.8, [um/s]."""
    until, angle = 0.3 if short else 6.0, np.radians(20.0)
    gravity = _inclined(angle)
    text = WALKER.format(" ".join(map(repr, gravity)), "{}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walker.xml"
        path.write_text(text.format(""))
        feet = {f"foot{k}": (f"shank{k}", legged.Sphere(0.02, (0.0, 0.0, -0.2))) for k in range(4)}
        robot = legged.load(path, feet=feet)
    height = 0.4 * np.cos(0.5) + 0.02
    q = robot.neutral()
    q[6], q[7:] = height, STANDING

    def servo(t: Any, q: Any, v: Any, wrenches: Any) -> Any:
        return STIFFNESS * (STANDING - q[7:]) - DAMPING * v[6:]

    run = legged.simulate(robot, servo, ground=Rigid(0.8), q=q, until=until, fall=False)
    points = [(contact.link, contact.position) for contact in robot.contacts]
    at = [legged.point_positions(robot, run.q[k], points) for k in (2 * len(run.times) // 3, -1)]
    speeds = {OURS: 1e6 * float(np.linalg.norm(at[1] - at[0], axis=1).mean()) / (until / 3.0)}
    library: Any = import_module("mujoco")
    model = library.MjModel.from_xml_string(text.format(FLOOR))
    data = library.MjData(model)
    data.qpos[2], data.qpos[7:] = height, STANDING
    seen, steps = [], round(until / 1e-3)
    for k in range(steps):
        data.qfrc_applied[6:] = STIFFNESS * (STANDING - data.qpos[7:]) - DAMPING * data.qvel[6:]
        library.mj_step(model, data)
        if k in (2 * steps // 3 - 1, steps - 1):
            library.mj_kinematics(model, data)
            seen.append(data.geom_xpos[1:].copy())
    speeds[MUJOCO] = 1e6 * float(np.linalg.norm(seen[1] - seen[0], axis=1).mean()) / (until / 3.0)
    return [Row("robot on a slope", "mean speed of its feet, um/s", speeds, negligible=1e-3)]
