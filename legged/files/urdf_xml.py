"""Parse the XML of a URDF and check it against the URDF schema."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legged.errors import FileError

MAX_BYTES = 64 * 2**20
"""Bytes that a robot's file may have; the largest public ones have a few million."""


def read_bytes(path: str | Path) -> bytes:
    """Return what a file holds, or raise FileError: not there, not readable, empty or larger than `MAX_BYTES`."""
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
        raise FileError(source, f"the file is larger than {MAX_BYTES // 2**20} MiB, which no robot's description is")
    return content


def parse(content: bytes, source: str) -> Any:
    """Return the root element (of lxml) of a document without comments, or raise FileError.

    Document types are refused, since they are what entity bombs are made of and robots need none. Nesting of more than
    256 elements, and texts of more than 10 MB, are refused by libxml2 itself.
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
        raise FileError(source, "declares a document type (<!DOCTYPE ...>), which a robot needs none of; remove it")
    return root


def text(root: Any) -> bytes:
    """Return an element as a document."""
    return _etree("").tostring(root)


def outermost(content: bytes) -> str:
    """Return the name of a document's outermost element, as far as it can be told without reading it as XML, or ""."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    while True:
        space = _SPACE.match(content, at)
        at = space.end() if space else at
        end = next((end for start, end in _ASIDES if content.startswith(start, at)), None)
        if end is None:
            found = _TAG.match(content, at)
            return found[1].decode() if found else ""
        at = content.find(end, at) + len(end)
        if at < len(end):
            return ""


_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"\s*")
_ASIDES = ((b"<!--", b"-->"), (b"<?", b"?>"))
_TAG = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def _etree(source: str) -> Any:
    try:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise FileError(source, "reading it needs lxml and yourdfpy: pip install 'legged[urdf]'") from error
    return etree


KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
LARGEST = 1e9
"""Largest number, in SI units, that a robot's file may have but for its limits."""
LEAST = 1e-100
"""Least number that is not zero; smaller ones would overflow as divisors."""


@dataclass(frozen=True)
class Rule:
    """What an element may have.

    Attributes:
        names: Attributes that must be there and not be empty.
        numbers: Attributes that hold so many numbers, if they are there.
        needed: Attributes of `numbers` that must be there.
        children: Rules of child elements, which may stand there once.
        many: Rules of child elements that may be repeated.
        required: Children that must be there.
        dropped: Children and attributes known to have no bearing on the motion, which go without a word.
        unlimited: Whether the numbers may be infinite, or beyond `LARGEST`.
    """

    names: tuple[str, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    children: dict[str, Rule] = field(default_factory=dict)
    many: dict[str, Rule] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    unlimited: bool = False


_ORIGIN = Rule(numbers={"xyz": 3, "rpy": 3})
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_INERTIAL = Rule(
    children={
        "origin": _ORIGIN,
        "mass": Rule(numbers={"value": 1}, needed=("value",)),
        "inertia": Rule(numbers=dict.fromkeys(_MOMENTS, 1), needed=_MOMENTS),
    },
    required=("mass", "inertia"),
)
_GEOMETRY = Rule(
    children={
        "box": Rule(numbers={"size": 3}, needed=("size",)),
        "cylinder": Rule(numbers={"radius": 1, "length": 1}, needed=("radius", "length")),
        "sphere": Rule(numbers={"radius": 1}, needed=("radius",)),
        "mesh": Rule(names=("filename",), dropped=("scale",)),
    },
    dropped=("name",),
)
_COLLISION = Rule(
    children={"origin": _ORIGIN, "geometry": _GEOMETRY},
    required=("geometry",),
    dropped=("name", "material", "verbose"),
)
_LINK = Rule(names=("name",), children={"inertial": _INERTIAL}, many={"collision": _COLLISION}, dropped=("visual",))
_JOINT = Rule(
    names=("name", "type"),
    children={
        "parent": Rule(names=("link",)),
        "child": Rule(names=("link",)),
        "origin": _ORIGIN,
        "axis": Rule(numbers={"xyz": 3}, needed=("xyz",)),
        "limit": Rule(numbers={"lower": 1, "upper": 1, "effort": 1, "velocity": 1}, unlimited=True),
        "dynamics": Rule(numbers={"damping": 1, "friction": 1}),
        "mimic": Rule(names=("joint",), numbers={"multiplier": 1, "offset": 1}),
    },
    required=("parent", "child"),
    dropped=("dont_collapse", "physics"),
)
ROBOT = Rule(names=("name",), many={"link": _LINK, "joint": _JOINT}, dropped=("material", "transmission", "version"))


def check(root: Any, source: str) -> Counter[str]:
    """Return how often each unknown thing stands in a URDF, such as {"<sensor>": 12}, and take it out of `root`.

    Args:
        root: Element of lxml; keeps only what the rules know and what has a bearing on the motion.
        source: Path, for messages.

    Raises:
        FileError: for what a URDF must have and has not, has twice, or has as something else than finite numbers.
    """
    if root.tag != "robot":
        what = "an SDF" if root.tag == "sdf" else "no URDF"
        raise FileError(source, f"its outermost element is <{root.tag}>, so it is {what}; a URDF starts with <robot>")
    if any("xacro" in (uri or "") for uri in root.nsmap.values()) and root.find("link") is None:
        raise FileError(source, "has no links but names xacro: expand it first, with `xacro FILE.xacro > FILE.urdf`")
    lost: Counter[str] = Counter()
    _check(root, ROBOT, "<robot>", source, lost)
    return lost


def _check(element: Any, rule: Rule, where: str, source: str, lost: Counter[str]) -> None:
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


def _check_children(element: Any, rule: Rule, where: str, source: str, lost: Counter[str]) -> None:
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
        _check(child, below, _place(child, where), source, lost)
    missing = next((tag for tag in rule.required if tag not in seen), None)
    if missing:
        raise FileError(source, f"{where} (line {element.sourceline}) has no <{missing}>; add it")


def _unknown(child: Any) -> list[str]:
    """Return what to call an unknown element; settings of simulators go by their own names."""
    parent = child.getparent().tag
    if child.tag == "gazebo":
        return [f"<{setting.tag}> of <gazebo>" for setting in child] or ["<gazebo>"]
    return [f"<{child.tag}>" if parent == "robot" else f"<{child.tag}> of <{parent}>"]


def _place(child: Any, where: str) -> str:
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
        raise FileError(source, f"{what} is {text!r}: in SI units no robot has more than {LARGEST:g} of anything")
    if any(0.0 < size < LEAST for size in sizes):
        raise FileError(source, f"{what} is {text!r}: nothing of a robot is as small as {LEAST:g}; write 0")


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A number as C and XML write it; Python's own spellings (1_000, full-width digits) are none."""
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
