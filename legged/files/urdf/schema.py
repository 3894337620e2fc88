"""Check the XML of a URDF against the URDF schema.

The schema covers the elements that `legged` uses; unknown elements are counted and reported in the audit.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from legged.errors import FileError

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
LARGEST = 1e9
"""Largest number in a robot file, in SI units, except for limits."""
LARGEST_OF_PHYSICS = 1e15
"""Largest damping, friction or armature, which files also use to hold a joint, in SI units."""
MOST_LINKS = 2000
"""Largest number of links of a robot."""
SMALLEST = 1e-100
"""Smallest nonzero magnitude; smaller numbers, whose reciprocals might overflow, are read as zero."""


@dataclass(frozen=True)
class ElementRule:
    """Schema of an element.

    Attributes:
        names: Required attributes with nonempty text.
        numbers: Numerical attributes and how many numbers each holds.
        needed: Attributes of `numbers` that are required.
        children: Rules of child elements that may occur once.
        many: Rules of child elements that may be repeated.
        required: Required children.
        first: Children of which the first counts if there are several, as in the parser of ROS (urdfdom).
        dropped: Children and attributes without effect on the motion, which are ignored without a report.
        unlimited: Whether the numbers may be infinite or exceed `LARGEST`.
        largest: Largest number otherwise.
    """

    names: tuple[str, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    children: dict[str, ElementRule] = field(default_factory=dict)
    many: dict[str, ElementRule] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    unlimited: bool = False
    largest: float = LARGEST


_ORIGIN = ElementRule(numbers={"xyz": 3, "rpy": 3})
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_INERTIAL = ElementRule(
    children={
        "origin": _ORIGIN,
        "mass": ElementRule(numbers={"value": 1}, needed=("value",)),
        "inertia": ElementRule(numbers=dict.fromkeys(MOMENTS, 1), needed=MOMENTS),
    },
    required=("mass", "inertia"),
    first=("origin", "mass", "inertia"),
)
_GEOMETRY = ElementRule(
    children={
        "box": ElementRule(numbers={"size": 3}, needed=("size",)),
        "cylinder": ElementRule(numbers={"radius": 1, "length": 1}, needed=("radius", "length")),
        "sphere": ElementRule(numbers={"radius": 1}, needed=("radius",)),
        "mesh": ElementRule(names=("filename",), dropped=("scale",)),
    },
    dropped=("name",),
)
_COLLISION = ElementRule(
    children={"origin": _ORIGIN, "geometry": _GEOMETRY},
    required=("geometry",),
    dropped=("name", "material", "verbose"),
)
_LINK = ElementRule(
    names=("name",),
    children={"inertial": _INERTIAL},
    many={"collision": _COLLISION},
    first=("inertial",),
    dropped=("visual",),
)
_JOINT = ElementRule(
    names=("name", "type"),
    children={
        "parent": ElementRule(names=("link",)),
        "child": ElementRule(names=("link",)),
        "origin": _ORIGIN,
        "axis": ElementRule(numbers={"xyz": 3}, needed=("xyz",)),
        "limit": ElementRule(numbers={"lower": 1, "upper": 1, "effort": 1, "velocity": 1}, unlimited=True),
        "dynamics": ElementRule(numbers={"damping": 1, "friction": 1}, largest=LARGEST_OF_PHYSICS),
        "mimic": ElementRule(names=("joint",), numbers={"multiplier": 1, "offset": 1}),
    },
    required=("parent", "child"),
    first=("origin", "axis", "limit", "dynamics"),
    dropped=("dont_collapse", "physics"),
)
ROBOT = ElementRule(
    names=("name",), many={"link": _LINK, "joint": _JOINT}, dropped=("material", "transmission", "version", "legged")
)


def check_schema(root: Any, source: str) -> Counter[str]:
    """Remove unknown elements from a URDF, and return how often each occurs, such as {"<sensor>": 12}.

    Of the children in `ElementRule.first`, those after the first are removed without a report; see `repeated_elements`.

    Args:
        root: Root element (lxml); changed in place to hold known elements with effect on the motion only.
        source: Path, for messages.

    Raises:
        FileError: a missing or duplicate element, a missing attribute, or an attribute that is not a finite number.
    """
    if root.tag != "robot":
        what = "an SDF" if root.tag == "sdf" else "no URDF"
        raise FileError(source, f"its outermost element is <{root.tag}>, so it is {what}; a URDF starts with <robot>")
    expand = "expand it first, with `xacro FILE.xacro > FILE.urdf`"
    if any("xacro" in (uri or "") for uri in root.nsmap.values()) and root.find("link") is None:
        raise FileError(source, f"has no links but names xacro: {expand}")
    macro = next((e for e in root.iter() if isinstance(e.tag, str) and _XACRO.match(e.tag)), None)
    if macro is not None:
        name = macro.tag.split("}")[-1]
        raise FileError(source, f"is xacro, with <xacro:{name}> on line {macro.sourceline}: {expand}")
    lost: Counter[str] = Counter()
    for mesh in root.iter("mesh"):
        words = mesh.get("scale", "1").split()
        if len(words) not in (1, 3) or not all(map(_NUMBER.fullmatch, words)):
            mesh.set("scale", "nan")  # `legged.files.collision` refuses it, where the mesh is needed
            lost["the scale of a <mesh> that is not three numbers"] += 1
    _check(root, ROBOT, "<robot>", source, lost)
    return lost


def repeated_elements(root: Any) -> tuple[tuple[str, str, str], ...]:
    """Return the elements of a URDF that are stated more than once, of which the first counts.

    Args:
        root: Root element (lxml), before `check_schema`.

    Returns:
        "link" or "joint", its name, and the tag, such as ("joint", "left_hip", "axis"), of each such element.
    """
    owners = [("link", link, link, _LINK) for link in root.iterfind("link")]
    owners += [
        ("link", link, inertial, _INERTIAL) for _, link, *_ in owners for inertial in link.findall("inertial")[:1]
    ]
    owners += [("joint", joint, joint, _JOINT) for joint in root.iterfind("joint")]
    return tuple(
        (kind, owner.get("name") or "", tag)
        for kind, owner, element, rule in owners
        for tag in rule.first
        if len(element.findall(tag)) > 1
    )


def _check(element: Any, rule: ElementRule, where: str, source: str, lost: Counter[str]) -> None:
    here = f"{where} (line {element.sourceline})"
    for name in (*rule.names, *rule.needed):
        if not (element.get(name) or "").strip():
            raise FileError(source, f"{here} has no attribute {name!r}; add it")
    for name, value in element.attrib.items():
        if name in rule.numbers:
            largest = np.inf if rule.unlimited else rule.largest
            tiny = _check_numbers(value, rule.numbers[name], largest, f"{name!r} of {here}", source)
            if tiny:
                element.set(name, " ".join("0" if 0.0 < abs(float(w)) < SMALLEST else w for w in value.split()))
                lost[f"numbers below {SMALLEST:g}, read as 0"] += tiny
        elif name not in rule.names and name not in rule.dropped:
            lost[f"attribute {name!r} of <{element.tag}>"] += 1
    _check_children(element, rule, where, source, lost)


def _check_children(element: Any, rule: ElementRule, where: str, source: str, lost: Counter[str]) -> None:
    seen: set[str] = set()
    for child in list(element):
        below = rule.children.get(child.tag) or rule.many.get(child.tag)
        if below is None:
            if child.tag not in rule.dropped:
                lost.update(_unknown(child))
            element.remove(child)
            continue
        if child.tag in seen and child.tag in rule.first:
            element.remove(child)
            continue
        if child.tag in seen and child.tag in rule.children:
            raise FileError(source, f"{where} has a second <{child.tag}> on line {child.sourceline}; remove one")
        seen.add(child.tag)
        _check(child, below, _location(child, where), source, lost)
    missing = next((tag for tag in rule.required if tag not in seen), None)
    if missing:
        raise FileError(source, f"{where} (line {element.sourceline}) has no <{missing}>; add it")


def _unknown(child: Any) -> list[str]:
    """Return the names under which an unknown element is reported; children of <gazebo> by their own names."""
    parent = child.getparent().tag
    if child.tag == "gazebo":
        return [f"<{setting.tag}> of <gazebo>" for setting in child] or ["<gazebo>"]
    return [f"<{child.tag}>" if parent == "robot" else f"<{child.tag}> of <{parent}>"]


def _location(child: Any, where: str) -> str:
    named = child.tag in ("link", "joint") and child.get("name")
    return f"{child.tag} {child.get('name')!r}" if named else f"<{child.tag}> of {where}"


def _check_numbers(text: str, count: int, largest: float, what: str, source: str) -> int:
    """Return how many nonzero numbers are so small that they are read as zero; raise FileError for invalid ones."""
    words = text.split()
    wanted = "one finite number" if count == 1 else f"{count} finite numbers"
    if len(words) != count or not all(
        _NUMBER.fullmatch(word) or (largest == np.inf and _INFINITE.fullmatch(word)) for word in words
    ):
        hint = "; expand xacro first, with `xacro FILE.xacro > FILE.urdf`" if "${" in text else ""
        raise FileError(source, f"{what} must be {wanted}, got {text!r}{hint}")
    sizes = [abs(float(word)) for word in words]
    if max(sizes) > largest:
        raise FileError(source, f"{what} is {text!r}: numbers must not exceed {largest:g} in SI units")
    return sum(0.0 < size < SMALLEST for size in sizes)


_XACRO = re.compile(r"\{[^}]*xacro[^}]*\}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A number as in C and XML; Python's own notation (1_000, full-width digits) is excluded."""
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
