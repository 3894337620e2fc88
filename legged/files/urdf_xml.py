"""Parse the XML of a URDF safely and check it against the URDF schema.

External entities and document types are rejected. The schema covers the elements that `legged` uses; unknown elements
are counted and reported in the audit.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legged.errors import FileError

MAX_BYTES = 64 * 2**20
"""Largest size of a robot file, [byte]; the largest public ones have a few million."""


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file; raise FileError if it is missing, unreadable, empty or larger than `MAX_BYTES`."""
    source = str(path)
    try:
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise FileError(source, f"cannot be read: {reason}") from error
    if not content.strip():
        raise FileError(source, "the file is empty")
    if len(content) > MAX_BYTES:
        raise FileError(source, f"the file is larger than {MAX_BYTES // 2**20} MiB, the limit for robot files")
    return content


def parse(content: bytes, source: str) -> Any:
    """Return the root element (lxml) of a document without comments; raise FileError if it is not well-formed.

    Document types are rejected, since they allow entity expansion attacks. libxml2 rejects nesting of more than 256
    elements and texts of more than 10 MB.
    """
    etree = _etree(source)
    safe = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(content, safe)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FileError(source, f"is not well-formed XML: {error}; is the file complete?") from error
    if root.getroottree().docinfo.doctype:
        raise FileError(source, "declares a document type (<!DOCTYPE ...>), which robot files do not need; remove it")
    return root


def serialize(root: Any) -> bytes:
    """Return an element as an XML document."""
    return _etree("").tostring(root)


def root_tag(content: bytes) -> str:
    """Return the name of the root element, found without an XML parser, or "" if there is none."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    while True:
        space = _SPACE.match(content, at)
        at = space.end() if space else at
        end = next((end for start, end in _SKIPPED if content.startswith(start, at)), None)
        if end is None:
            found = _TAG.match(content, at)
            return found[1].decode() if found else ""
        at = content.find(end, at) + len(end)
        if at < len(end):
            return ""


_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"\s*")
_SKIPPED = ((b"<!--", b"-->"), (b"<?", b"?>"))
_TAG = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def _etree(source: str) -> Any:
    try:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise FileError(source, "reading it needs lxml and yourdfpy: pip install 'legged[urdf]'") from error
    return etree


KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
LARGEST = 1e9
"""Largest number in a robot file, in SI units, except for limits."""
SMALLEST = 1e-100
"""Smallest nonzero magnitude; smaller divisors would overflow."""


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
        dropped: Children and attributes without effect on the motion, which are ignored without a report.
        unlimited: Whether the numbers may be infinite or exceed `LARGEST`.
    """

    names: tuple[str, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    children: dict[str, ElementRule] = field(default_factory=dict)
    many: dict[str, ElementRule] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    unlimited: bool = False


_ORIGIN = ElementRule(numbers={"xyz": 3, "rpy": 3})
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_INERTIAL = ElementRule(
    children={
        "origin": _ORIGIN,
        "mass": ElementRule(numbers={"value": 1}, needed=("value",)),
        "inertia": ElementRule(numbers=dict.fromkeys(_MOMENTS, 1), needed=_MOMENTS),
    },
    required=("mass", "inertia"),
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
    names=("name",), children={"inertial": _INERTIAL}, many={"collision": _COLLISION}, dropped=("visual",)
)
_JOINT = ElementRule(
    names=("name", "type"),
    children={
        "parent": ElementRule(names=("link",)),
        "child": ElementRule(names=("link",)),
        "origin": _ORIGIN,
        "axis": ElementRule(numbers={"xyz": 3}, needed=("xyz",)),
        "limit": ElementRule(numbers={"lower": 1, "upper": 1, "effort": 1, "velocity": 1}, unlimited=True),
        "dynamics": ElementRule(numbers={"damping": 1, "friction": 1}),
        "mimic": ElementRule(names=("joint",), numbers={"multiplier": 1, "offset": 1}),
    },
    required=("parent", "child"),
    dropped=("dont_collapse", "physics"),
)
ROBOT = ElementRule(
    names=("name",), many={"link": _LINK, "joint": _JOINT}, dropped=("material", "transmission", "version")
)


def check_schema(root: Any, source: str) -> Counter[str]:
    """Remove unknown elements from a URDF, and return how often each occurs, such as {"<sensor>": 12}.

    Args:
        root: Root element (lxml); changed in place to hold known elements with effect on the motion only.
        source: Path, for messages.

    Raises:
        FileError: a missing or duplicate element, a missing attribute, or an attribute that is not a finite number.
    """
    if root.tag != "robot":
        what = "an SDF" if root.tag == "sdf" else "no URDF"
        raise FileError(source, f"its outermost element is <{root.tag}>, so it is {what}; a URDF starts with <robot>")
    if any("xacro" in (uri or "") for uri in root.nsmap.values()) and root.find("link") is None:
        raise FileError(source, "has no links but names xacro: expand it first, with `xacro FILE.xacro > FILE.urdf`")
    lost: Counter[str] = Counter()
    _check(root, ROBOT, "<robot>", source, lost)
    return lost


def _check(element: Any, rule: ElementRule, where: str, source: str, lost: Counter[str]) -> None:
    here = f"{where} (line {element.sourceline})"
    for name in (*rule.names, *rule.needed):
        if not (element.get(name) or "").strip():
            raise FileError(source, f"{here} has no attribute {name!r}; add it")
    for name, value in element.attrib.items():
        if name in rule.numbers:
            _check_numbers(value, rule.numbers[name], rule.unlimited, f"{name!r} of {here}", source)
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


def _check_numbers(text: str, count: int, unlimited: bool, what: str, source: str) -> None:
    words = text.split()
    wanted = "one finite number" if count == 1 else f"{count} finite numbers"
    if len(words) != count or not all(
        _NUMBER.fullmatch(word) or (unlimited and _INFINITE.fullmatch(word)) for word in words
    ):
        raise FileError(source, f"{what} must be {wanted}, got {text!r}")
    sizes = [abs(float(word)) for word in words]
    if not unlimited and max(sizes) > LARGEST:
        raise FileError(source, f"{what} is {text!r}: numbers must not exceed {LARGEST:g} in SI units")
    if any(0.0 < size < SMALLEST for size in sizes):
        raise FileError(source, f"{what} is {text!r}: magnitudes below {SMALLEST:g} are not allowed; write 0")


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A number as in C and XML; Python's own notation (1_000, full-width digits) is excluded."""
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
