"""Numbers, placements and shapes of the elements of a URDF."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import FileError
from legged.files.description import Shape
from legged.robot.construction.builder import rpy
from legged.spatial import Array

_SIZES = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def shape_of(element: Any, source: str) -> Shape | None:
    """Return the shape of a <visual> or <collision>; None for a shape that URDF does not define.

    A mesh has the name of its file. Its scale is NaN if the attribute is not one finite number or three; then
    `legged.files.collision` raises an error when it reads the mesh.

    Args:
        element: The element (lxml). Only the first shape in its <geometry> is read.
        source: Path of the robot file, for messages.

    Raises:
        FileError: An attribute is not the right number of finite numbers.
    """
    place = placement(element.find("origin"), source)
    geometry = element.find("geometry")
    geometry = next((child for child in (() if geometry is None else geometry) if isinstance(child.tag, str)), None)
    if geometry is None:
        return None
    if geometry.tag == "mesh":
        return Shape("mesh", (), *place, mesh=geometry.get("filename") or "", scale=_scale(geometry, source))
    if geometry.tag == "box":
        return Shape("box", tuple(numbers(geometry, "size", "0 0 0", source).tolist()), *place)
    if geometry.tag not in _SIZES:
        return None
    size = [float(numbers(geometry, name, "0", source)[0]) for name in _SIZES[geometry.tag]]
    return Shape(geometry.tag, tuple(size), *place)


def visual_shape(element: Any, source: str) -> Shape | None:
    """Return the shape of a <visual>; arguments as in `shape_of`.

    Raises:
        FileError: An attribute, also the scale of a mesh, is not the right number of finite numbers.
    """
    shape = shape_of(element, source)
    if shape is not None and not np.isfinite(shape.scale).all():
        mesh = element.find("geometry/mesh")
        words = f"'scale' on line {mesh.sourceline} must be one finite number or three, got {mesh.get('scale')!r}"
        raise FileError(source, words)
    return shape


def placement(origin: Any, source: str) -> tuple[Array, Array]:
    """Return the position, (3,) [m], and the rotation, (3, 3), of an <origin>; zero and the identity for None.

    Raises:
        FileError: An attribute is not three finite numbers.
    """
    return numbers(origin, "xyz", "0 0 0", source), rpy(*numbers(origin, "rpy", "0 0 0", source))


def numbers(element: Any, name: str, default: str, source: str) -> Array:
    """Return the numbers in an attribute of an element, (n,), in its unit in URDF.

    n is the number of numbers in `default`, which is used if the element is None or the attribute is missing or empty.

    Raises:
        FileError: The attribute is not the right number of finite numbers.
    """
    text, count = default if element is None else element.get(name) or default, len(default.split())
    try:
        read = np.array([float(word) for word in text.split()])
    except ValueError:
        read = np.zeros(0)
    if len(read) != count or not np.isfinite(read).all():
        wanted = "one finite number" if count == 1 else f"{count} finite numbers"
        raise FileError(source, f"{name!r} on line {element.sourceline} must be {wanted}, got {text!r}")
    return read


def _scale(mesh: Any, source: str) -> tuple[float, ...]:
    """Return the scale of a mesh along x, y and z; NaN if the attribute is not one finite number or three."""
    count = len(mesh.get("scale", "1").split())
    try:
        return tuple(np.broadcast_to(numbers(mesh, "scale", "1 1 1" if count == 3 else "1", source), 3).tolist())
    except FileError:
        return (np.nan,) * 3
