"""Whole robots inside robot files, as `robot.describe()` in an element that other programs ignore.

URDF and MJCF cannot represent all properties of a robot, and round its rotations. `save_urdf` adds the element
`<legged base="..." gravity="..." digest="...">`, and `save_mjcf` two texts in `<custom>`, with the description as JSON.
The digest covers the description and all other elements. If somebody has changed either, the elements alone count.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from legged.errors import DefinitionError, LeggedError
from legged.robot.base import FloatingBase
from legged.robot.construction.description import from_description
from legged.robot.robot import Robot
from legged.spatial import Array

TAG = "legged"
"""Name of the element of a URDF, and of the text of an MJCF that contains the description."""
DIGEST = "legged_digest"


def add_to_urdf(root: ET.Element, robot: Robot) -> bool:
    """Add the base, gravity and description of a robot to a URDF; return whether it has a description."""
    base = "floating" if isinstance(robot.base, FloatingBase) else "fixed"
    element = ET.SubElement(root, TAG, base=base, gravity=" ".join(map(repr, robot.gravity.tolist())))
    element.text = _json(robot)
    if element.text:
        element.set("digest", _digest(root, element.text))
    return bool(element.text)


def add_to_mjcf(root: ET.Element, robot: Robot) -> bool:
    """Add the description of a robot to an MJCF; return whether it has one."""
    text = _json(robot)
    if text:
        digest = _digest(root, text)
        custom = ET.SubElement(root, "custom")
        ET.SubElement(custom, "text", name=TAG, data=text)
        ET.SubElement(custom, "text", name=DIGEST, data=digest)
    return bool(text)


def read(root: Any) -> Robot | None:
    """Return the robot that a file contains besides its elements, or None.

    Args:
        root: Root element (lxml) of a URDF or MJCF. The texts are removed from an MJCF.

    Returns:
        The robot, or None if there is no description, or if it or another element was changed.
    """
    if root.tag == "robot":
        element = root.find(TAG)
        if element is None:
            return None
        text, digest = element.text or "", element.get("digest")
    else:
        texts = {each.get("name"): each for each in root.iterfind("custom/text")}
        if TAG not in texts or DIGEST not in texts:
            return None
        text, digest = texts[TAG].get("data") or "", texts[DIGEST].get("data")
        custom = texts[TAG].getparent()
        custom.getparent().remove(custom)
    if not text or digest != _digest(root, text):
        return None
    try:
        return from_description(json.loads(text))
    except (LeggedError, ValueError, RecursionError):
        return None  # of another version of the toolkit


def stated_base(root: Any) -> tuple[bool | None, Array | None]:
    """Return the kind of base and the gravity stated in the extension element of a URDF; None for a missing value.

    Args:
        root: The root element.

    Returns:
        Whether the base floats, and the gravitational acceleration, (3,), [m/s^2], world axes.
    """
    element = root.find(TAG)
    if element is None:
        return None, None
    try:
        gravity = np.array([float(word) for word in (element.get("gravity") or "").split()])
    except ValueError:
        gravity = np.zeros(0)
    is_valid = gravity.shape == (3,) and bool(np.isfinite(gravity).all())
    return {"floating": True, "fixed": False}.get(element.get("base")), gravity if is_valid else None


def _json(robot: Robot) -> str:
    """Return the description of a robot as text; empty for joints or bases of a user's own class."""
    try:
        return json.dumps(robot.describe(), allow_nan=False)
    except DefinitionError:
        return ""


def _digest(root: Any, text: str) -> str:
    """Return the hash of a description and of the tags, attributes and texts of a document."""
    lines = [text]
    waiting = [(root, 0)]
    while waiting:
        element, depth = waiting.pop()
        if not isinstance(element.tag, str):  # a comment
            continue
        own = "" if element.tag == TAG else (element.text or "").strip()
        attributes = sorted((name, value) for name, value in element.attrib.items() if name != "digest")
        lines.append(json.dumps([depth, element.tag, attributes, own]))
        waiting += [(child, depth + 1) for child in element]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
