"""`legged.load`: a robot's file to a Robot."""

from __future__ import annotations

from pathlib import Path

from legged.errors import UnknownNameError
from legged.files.build import BASES, build
from legged.files.feet import Feet, feet_of
from legged.files.tree import tree_of
from legged.files.urdf import read_urdf
from legged.robot.inertia import Vector
from legged.robot.robot import Robot


def load(path: str | Path, base: str = "floating", *, feet: Feet | None = None, gravity: Vector | None = None) -> Robot:
    """Return the robot that a URDF describes; meshes are never opened.

    Args:
        path: The file.
        base: "floating", or "fixed" for a robot bolted to the world at its root link.
        feet: Contact points: names of links, or {name: (link, position (3,), [m], link axes)}; found by names, ends
            of limbs and collision shapes when None.
        gravity: (3,), [m/s^2], world axes; the file's or (0, 0, -9.81) when None.

    Raises:
        FileError: for a file that cannot be read, or whose robot cannot be; it says what to do.
        UnknownNameError: for a base that is none.
    """
    if base not in BASES:
        raise UnknownNameError("base", base, BASES)
    tree = tree_of(read_urdf(path))
    return build(tree, base, feet_of(tree, feet, walks=base == "floating"), gravity)
