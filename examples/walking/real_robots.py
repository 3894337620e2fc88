"""Stand, crawl and trot of robots from URDF files, each with a sideways push; no parameter depends on the robot.

Run `python examples/walking/real_robots.py go2.urdf solo12.urdf`. Without files it uses quadrupeds of
example-robot-data.
"""

import sys
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np

import controllers
import legged
from controllers import Balanced, ComputedTorque, Crawl, Stand, Trot, suited, suited_law
from legged.ground import realistic_ground
from legged.sensors import sliding_per_stance

KNOWN = ("solo12.urdf", "go2.urdf", "anymal.urdf", "hyq_no_sensors.urdf", "a1.urdf")
CASES = ((Stand, Balanced, 4.0), (Crawl, ComputedTorque, 12.0), (Trot, Balanced, 20.0))  # gait, law, seconds


def known_robots() -> list[Path]:
    """Return the paths of the files in `KNOWN` of the package example-robot-data."""
    try:
        entries = files("example-robot-data") or []
    except PackageNotFoundError:
        sys.exit("name URDF files, or `pip install example-robot-data` for some")
    return [Path(str(entry.locate())) for name in KNOWN for entry in entries if entry.name == name]


def run(robot: legged.Robot, kind: type[controllers.Gait], law: type[controllers.GaitLaw], until: float) -> str:
    """Return one row of the table: gait, duration, speed, push, lean, slide and torque of a run."""
    gait = suited(kind, robot)
    push = 0.3 if kind is not Crawl else 0.1  # [m/s], sideways change of velocity at half time
    pushes = [legged.Push(robot.links[0].name, (0.0, push * robot.mass, 0.0), at=until / 2)]  # [N s]
    ran = legged.simulate(
        robot, suited_law(law, gait), ground=realistic_ground(robot), until=until, pushes=pushes, sample=0.005
    )
    lean = np.degrees(np.abs(ran.base.angles()[:, :2]).max())
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    slide = 1e3 * sliding_per_stance(ran, 0.02 * weight).max()
    desired = gait.gait.stride / gait.period
    speed = f"{ran.mean_velocity[0]:.3f} of {desired:.3f}"
    torque = np.abs(ran.joint_tau).max()
    return f"{kind.__name__:6}{until:4.0f} s  {speed:15} {push:8.1f} {lean:9.2f} {slide:9.2f} {torque:9.1f}"


for path in [Path(name) for name in sys.argv[1:]] or known_robots():
    robot = legged.load(path)
    print(f"{robot.name}: {robot.mass:.1f} kg, hips at {controllers.home_of(robot).hip_height:.2f} m when it stands")
    print("gait  time    speed [m/s]    push [m/s]  lean [deg]  slide [mm]  torque [N m]")
    for case in CASES:
        print(run(robot, *case))
    print()
