"""What is measured: robots, and functions of them."""

from collections.abc import Callable
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import legged
import robots

PACKAGE, FOLDER = "example-robot-data", "cmeel.prefix/share/example-robot-data/robots"


class NotInstalled(Exception):
    """A robot's file comes with a package that is not installed."""


class Subject(NamedTuple):
    """A robot to measure.

    Attributes:
        name: Of the robot. make: Returns it, or raises `NotInstalled`.
        kind: What the targets call it: "quadruped", "humanoid", or nothing.
    """

    name: str
    make: Callable[[], legged.Robot]
    kind: str = ""


class Function(NamedTuple):
    """A function to measure: plain NumPy code of ours, and how many of (q, v, x) it takes."""

    plain: Callable[..., Any]
    takes: int


FORWARD, INVERSE, INERTIA = "forward dynamics", "inverse dynamics", "inertia matrix"
FUNCTIONS = {
    FORWARD: Function(legged.forward_dynamics, 3),
    INVERSE: Function(legged.inverse_dynamics, 3),
    INERTIA: Function(legged.inertia_matrix, 1),
}


def _file(path: str) -> legged.Robot:
    """Return a robot of the package `example-robot-data`, on a floating base, its joints without friction."""
    try:
        folder = Path(str(metadata.distribution(PACKAGE).locate_file(FOLDER)))
    except metadata.PackageNotFoundError:
        raise NotInstalled(f"the package {PACKAGE} is not installed") from None
    return legged.load(folder / path, joint_physics=False)


SUBJECTS = (
    Subject("planar biped", robots.planar_biped),
    Subject("spatial quadruped", robots.spatial_quadruped, "quadruped"),
    Subject("hexapod", robots.hexapod),
    Subject("humanoid", robots.humanoid, "humanoid"),
    Subject("Solo12", partial(_file, "solo_description/robots/solo12.urdf"), "quadruped"),
    Subject("Go2", partial(_file, "go2_description/urdf/go2.urdf"), "quadruped"),
    Subject("G1", partial(_file, "g1_description/urdf/g1_29dof_rev_1_0.urdf"), "humanoid"),
)


def present(subjects: tuple[Subject, ...] = SUBJECTS) -> dict[Subject, legged.Robot]:
    """Return the robots that are there, and say which are not."""
    found = {}
    for subject in subjects:
        try:
            found[subject] = subject.make()
        except NotInstalled as why:
            print(f"{subject.name} is left out: {why}.")
    return found
