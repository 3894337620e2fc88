"""Contents and places of the boxes in a picture of a robot's modules; lengths in inches, y downward.

A module is a column of link boxes, each below its joint. The modules that emerge from a module stand beside each other
below it, as close as their outlines allow, so that legs and a long spine share the height of the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from legged.robot.joint import Closure, Follower
from legged.robot.modules import Module
from legged.robot.robot import Robot

FONT = "DejaVu Sans"
NAME, SMALL, HEADER, TITLE = 8.2, 6.8, 9.5, 11.0  # [point]
LETTERS = {
    "revolute": "R",
    "prismatic": "P",
    "screw": "H",
    "cylindrical": "C",
    "universal": "U",
    "constantvelocity": "CV",
    "spherical": "S",
    "planar": "E",
    "free": "F",
    "fixed": "W",
}
"""Letters of the types of joints, those of the theory of mechanisms where it has one."""
WORDS = {
    "screw": "screw (helical)",
    "constantvelocity": "constant velocity",
    "planar": "planar (E)",
    "fixed": "fixed (weld)",
}
PAD, SPINE, RADIUS = 0.10, 0.20, 0.105
_HEADER, _JOINT, _BOX, _ROW, _FOOT = 0.21, 0.30, 0.25, 0.145, 0.04
_BESIDE, _BELOW = 0.16, 0.36  # gaps between modules
_MOST_NAMES, _MOST_LETTERS = 3, 34


@lru_cache(maxsize=10_000)
def width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text, [inch].

    Args:
        text: The text. size: [point]. bold: Whether the font is bold.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    return 1.03 * text_to_path.get_text_width_height_descent(text, font, False)[0] / 72.0  # 3 % for hinting


def shortened(name: str) -> str:
    """Return a name in one line of limited length, with an ellipsis in the middle of a longer one."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    half = _MOST_LETTERS // 2
    return name if len(name) <= _MOST_LETTERS else f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[-half + 1 :]}"


def raised(number: int) -> str:
    """Return a number in superscript digits."""
    return "".join("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[int(d)] for d in str(number))


def lowered(number: int) -> str:
    """Return a number in subscript digits."""
    return "".join(chr(0x2080 + int(d)) for d in str(number))


Rectangle = tuple[float, float, float, float]
"""Left, upper, right and lower edge."""


class Mark(NamedTuple):
    """A joint as it is drawn: its letter, its name, and whether it follows another joint."""

    letter: str
    name: str
    follows: bool = False


@dataclass
class LinkBox:
    """A link with the links fixed to it.

    Attributes:
        name: Of the link whose joint moves. label: Its number and, raised, that of its module.
        joint: Its joint; None for the base.
        rows: Further lines of the box: (marker, text), where the marker is "" or the letter of a joint.
        feet: Names of the contact points drawn below the box, at the end of a limb.
        y, height: Of the box.
    """

    name: str
    label: str
    joint: Mark | None
    rows: list[tuple[str, str]] = field(default_factory=list)
    feet: list[str] = field(default_factory=list)
    y: float = 0.0

    @property
    def height(self) -> float:
        return _BOX + _ROW * len(self.rows) + (0.03 if self.rows else 0.0)

    @property
    def width(self) -> float:
        """Width that the texts of the box, its joint and its feet need."""
        lines = [0.28 + width(self.label, SMALL, True) + width(shortened(self.name), NAME)]
        lines += [0.2 + (0.22 if mark else 0.0) + width(text, SMALL) for mark, text in self.rows]
        lines += [0.36 + width(text, SMALL) for text in self.feet]
        if self.joint is not None:
            lines.append(SPINE + RADIUS + 0.12 + width(self.joint.name, SMALL))
        return max(lines)


@dataclass
class Block:
    """A module in the picture.

    Attributes:
        module: The module. links: Its links, parent before child. children: The modules that emerge from it.
        x, y, width, height: Its place and size.
        shift: Place of its outline along x, in that of its parent until all modules are placed.
        outline: The rectangles that it and all modules outward of it cover.
    """

    module: Module
    links: list[LinkBox]
    children: list[Block] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    shift: float = 0.0
    outline: list[Rectangle] = field(default_factory=list)

    @property
    def spine(self) -> float:
        """Where the joints of the module are."""
        return self.x + PAD + SPINE


def letter_of(kind: str) -> str:
    """Return the letters that stand for a type of joint."""
    return LETTERS.get(kind, kind[:2].title())


def arranged(robot: Robot, closures: Sequence[Closure] = ()) -> list[Block]:
    """Return all modules, parent before child, in their places at x >= 0 and y >= 0.

    Args:
        robot: The robot. closures: Joints that close loops.
    """
    blocks = [Block(module, _boxes(robot, module, closures)) for module in robot.modules]
    for block in blocks:
        _measure(block)
        if block.module.parent >= 0:
            parent = blocks[block.module.parent]
            parent.children.append(block)
            block.y = parent.y + parent.height + _BELOW
    for block in reversed(blocks):
        _gather(block)
    blocks[0].shift = -min(left for left, *_ in blocks[0].outline)
    for block in blocks:
        block.x += block.shift
        for child in block.children:
            child.shift += block.shift
    return blocks


def _boxes(robot: Robot, module: Module, closures: Sequence[Closure]) -> list[LinkBox]:
    joints = {joint.child: joint for joint in (*robot.joints, *robot.followers)}
    parents = {joint.parent for joint in joints.values()}
    boxes: list[LinkBox] = []
    members: list[list[str]] = []
    for name in module.links:
        if name in joints or not boxes:
            joint = joints.get(name)
            number = 0 if joint is None else module.bodies.index(robot.link(name).body) + 1
            mark = None
            if joint is not None:
                mark = Mark(letter_of(joint.kind), shortened(joint.name), isinstance(joint, Follower))
            boxes.append(LinkBox(name, "#0" if joint is None else f"#{number}{raised(module.index)}", mark))
            members.append([name])
            if isinstance(joint, Follower):
                boxes[-1].rows.append(("", f"follows {shortened(joint.master)}"))
        else:
            members[-1].append(name)
    if module.index == 0:
        boxes[0].rows.append(("", _base_words(robot)))
    for box, own in zip(boxes, members, strict=True):
        box.rows += [("", words) for words in _listed(own[1:], "+ ", "links on fixed joints")]
        for c in closures:
            if c.child in own:
                box.rows.append((letter_of(c.kind), f"{shortened(c.name)}, from {shortened(c.parent or 'the world')}"))
            if c.parent in own:
                box.rows.append((letter_of(c.kind), f"{shortened(c.name)}, to {shortened(c.child)}"))
        points = [point.name for point in robot.contacts if robot.links[point.link].name in own]
        is_end = not parents.intersection(own)
        words = _listed(points, "", "contact points")
        if is_end:
            box.feet = words
        else:
            box.rows += [("foot", text) for text in words]
    return boxes


def _base_words(robot: Robot) -> str:
    nv = robot.base.nv
    return f"{robot.base.kind} base" + (f", {nv} degrees of freedom" if nv else "")


def _listed(names: Sequence[str], before: str, what: str) -> list[str]:
    """Return lines with names, or with their number if there are many."""
    if len(names) > _MOST_NAMES:
        return [f"{before}{len(names)} {what}"]
    return [before + shortened(name) for name in names]


def _measure(block: Block) -> None:
    """Set the size of a module and the heights of its boxes, relative to its upper edge."""
    block.width = 2 * PAD + max(box.width for box in block.links)
    y = PAD / 2 + _HEADER
    for box in block.links:
        y += _JOINT if box.joint is not None else 0.02
        box.y = y
        y += box.height + (_FOOT + _ROW * len(box.feet) if box.feet else 0.0)
    block.height = y + PAD


def _gather(block: Block) -> None:
    """Place the modules that emerge from a module, whose own are placed, beside each other, and the module above them.

    Places along x are relative to the outline of the module, which they form.
    """
    for child in _drawn_order(block):
        own = child.outline
        child.shift = max(
            (b[2] - a[0] + _BESIDE for a in own for b in block.outline if a[1] < b[3] and b[1] < a[3]), default=0.0
        )
        block.outline += [(left + child.shift, top, right + child.shift, bottom) for left, top, right, bottom in own]
    lower = block.y + block.height
    if block.children:
        left = min(child.shift + child.x for child in block.children)
        right = max(child.shift + child.x + child.width for child in block.children)
        if block.module.index == 0:
            block.width = max(block.width, right - left)
        block.x = left if len(block.children) == 1 else (left + right - block.width) / 2
        block.outline.append((left, lower, right, lower + _BELOW))
    block.outline.append((block.x, block.y, block.x + block.width, lower))


def _drawn_order(block: Block) -> list[Block]:
    """Return the modules that emerge from a module from left to right: those that branch stand between the others."""
    ends = [child for child in block.children if not child.children]
    half = (len(ends) + 1) // 2
    return [*ends[:half], *(child for child in block.children if child.children), *ends[half:]]
