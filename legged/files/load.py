"""`legged.load`: a robot's file, URDF or MJCF, to a Robot."""

from __future__ import annotations

from pathlib import Path

from legged.errors import UnknownNameError
from legged.files import mjcf, xml
from legged.files.build import BASES, build
from legged.files.description import Description
from legged.files.feet import Feet, feet_of
from legged.files.tree import tree_of
from legged.files.urdf import parse_urdf
from legged.robot.inertia import Vector
from legged.robot.robot import Robot


def load(
    path: str | Path, base: str | None = None, *, feet: Feet | None = None, gravity: Vector | None = None
) -> Robot:
    """Return the robot that a URDF or an MJCF file describes; meshes of a URDF are never opened.

    Args:
        path: The file.
        base: "floating", or "fixed" for a robot bolted to the world at its root link; what the file says when None, and
            floating where it says nothing, as URDF does.
        feet: Contact points: names of links, or {name: (link, position (3,), [m], link axes)}; found by names, ends
            of limbs and collision shapes when None.
        gravity: (3,), [m/s^2], world axes; the file's or (0, 0, -9.81) when None.

    Raises:
        FileError: for a file that cannot be read, or whose robot cannot be; it says what to do.
        UnknownNameError: for a base that is none.
    """
    if base is not None and base not in BASES:
        raise UnknownNameError("base", base, BASES)
    description = describe(path)
    if base is None:
        base = "fixed" if description.floating is False else "floating"
    tree = tree_of(description)
    return build(tree, base, feet_of(tree, feet, walks=base == "floating"), gravity)


def describe(path: str | Path) -> Description:
    """Return what a URDF or an MJCF file says, told apart by its outermost element; errors are FileErrors."""
    content = xml.read_bytes(path)
    if xml.outermost(content) == "mujoco":
        return mjcf.read(path)
    return parse_urdf(content, str(path))
