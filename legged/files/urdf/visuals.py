"""Visual shapes of a URDF, which its schema leaves unchecked."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import FileError
from legged.files.description import Shape
from legged.robot.construction.builder import rpy
from legged.spatial import Array

_SIZES = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


def visual_shape(element: Any, source: str) -> Shape | None:
    """Return the shape of a <visual>, a mesh with the name of its file; None for a shape that URDF does not define.

    Args:
        element: The element. source: Path of the robot file, for messages.

    Raises:
        FileError: An attribute is not the right number of finite numbers.
    """
    origin, geometry = element.find("origin"), element.find("geometry")
    angles, xyz = (_numbers(origin, name, "0 0 0", source) for name in ("rpy", "xyz"))
    place: Any = xyz, rpy(*angles)
    geometry = next((child for child in (() if geometry is None else geometry) if isinstance(child.tag, str)), None)
    if geometry is None:
        return None
    if geometry.tag == "mesh":
        scale = _numbers(geometry, "scale", "1 1 1", source)
        return Shape("mesh", (), *place, mesh=geometry.get("filename") or "", scale=tuple(scale.tolist()))
    if geometry.tag == "box":
        return Shape("box", tuple(_numbers(geometry, "size", "0 0 0", source).tolist()), *place)
    if geometry.tag not in _SIZES:
        return None
    size = [float(_numbers(geometry, name, "0", source)[0]) for name in _SIZES[geometry.tag]]
    return Shape(geometry.tag, tuple(size), *place)


def _numbers(element: Any, name: str, default: str, source: str) -> Array:
    """Return the numbers in an attribute of an element, as many as `default` has."""
    text, count = default if element is None else element.get(name) or default, len(default.split())
    try:
        numbers = np.array([float(word) for word in text.split()])
    except ValueError:
        numbers = np.zeros(0)
    if len(numbers) != count or not np.isfinite(numbers).all():
        wanted = "one finite number" if count == 1 else f"{count} finite numbers"
        raise FileError(source, f"{name!r} on line {element.sourceline} must be {wanted}, got {text!r}")
    return numbers
