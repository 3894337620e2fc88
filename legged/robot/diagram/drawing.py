"""The picture of a robot's modules, drawn with matplotlib at the places that `layout` computes.

All lengths are in inches, from the upper left corner of the picture.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
from matplotlib.patches import Rectangle as Square
from matplotlib.path import Path

from legged.robot.diagram.layout import (
    FONT,
    HEADER,
    NAME,
    PAD,
    RADIUS,
    SMALL,
    TITLE,
    WORDS,
    Block,
    LinkBox,
    Mark,
    arranged,
    letter_of,
    lowered,
    shortened,
    width,
)
from legged.robot.joint import Closure
from legged.robot.modules import COLORS
from legged.robot.robot import Robot

_BASE, _INK, _QUIET = "#1f3d66", "#222222", "#555555"
_MARGIN, _TOP, _LINE = 0.15, 0.62, 0.26  # around the picture, of the title and its summary, of a line of the legend
_LOOP = "#c1272d"


def draw(robot: Robot, closures: Sequence[Closure] = ()) -> Figure:
    """Return the picture of the modules of a robot; see `Robot.draw_modules`.

    Args:
        robot: The robot. closures: Joints that close loops.
    """
    blocks = arranged(robot, closures)
    title, words = shortened(robot.name), _summary(robot)
    right = max(block.x + block.width for block in blocks)
    inner = max(right, width(title, TITLE, True), width(words, NAME), 3.2)
    lines = _legend_lines(_legend(robot, closures), inner)
    lower = max(block.y + block.height for block in blocks)
    size = inner + 2 * _MARGIN, _TOP + lower + 0.1 + _LINE * len(lines) + _MARGIN
    figure = Figure(figsize=size, facecolor="white")
    picture = _Picture(figure, size)
    picture.text(_MARGIN, 0.21, title, TITLE, weight="bold")
    picture.text(_MARGIN, 0.43, words, NAME, color=_QUIET)
    for block in blocks:
        block.x, block.y = block.x + _MARGIN + (inner - right) / 2, block.y + _TOP
    for block in blocks:
        picture.module(block)
    for closure in closures:
        picture.closure(closure, blocks)
    for k, line in enumerate(lines):
        picture.legend(line, _TOP + lower + 0.1 + _LINE * (k + 0.5))
    return figure


def svg_element(robot: Robot, closures: Sequence[Closure] = ()) -> str:
    """Return an HTML element with the picture, scaled to the width of its container between limits of legibility.

    Args:
        robot: The robot. closures: Joints that close loops.
    """
    figure, buffer = draw(robot, closures), io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    source = base64.b64encode(buffer.getvalue()).decode("ascii")
    least, most = (f"{scale * figure.get_figwidth():.0f}px" for scale in (75.0, 100.0))  # [pixel/inch]
    return (
        f'<div style="overflow-x: auto"><img alt="kinematic modules" style="width: 100%; min-width: {least}; '
        f'max-width: {most}" src="data:image/svg+xml;base64,{source}"></div>'
    )


def _summary(robot: Robot) -> str:
    counts = {
        "module": len(robot.modules),
        "link": len(robot.links),
        "body": len(robot.bodies),
        "degree of freedom": robot.nv,
    }
    plurals = {"body": "bodies", "degree of freedom": "degrees of freedom"}
    return ", ".join(f"{n} {what if n == 1 else plurals.get(what, what + 's')}" for what, n in counts.items())


def _legend(robot: Robot, closures: Sequence[Closure]) -> list[tuple[str, str]]:
    """Return the entries of the legend, (letter, words); the letter "foot" stands for the symbol of contact points."""
    kinds = [joint.kind for joint in (*robot.joints, *robot.followers)] + [closure.kind for closure in closures]
    entries = [(letter_of(kind), WORDS.get(kind, kind)) for kind in dict.fromkeys(kinds)]
    if closures:
        entries.append(("loop", "closes a loop"))
    if robot.contacts:
        entries.append(("foot", "contact points"))
    return entries


def _legend_lines(entries: list[tuple[str, str]], most: float) -> list[list[tuple[float, str, str]]]:
    """Return the entries in lines that are not longer than `most`, each with its distance from the left."""
    lines: list[list[tuple[float, str, str]]] = []
    x = most
    for letter, words in entries:
        needed = 0.42 + width(words, SMALL)
        if x + needed > most:
            lines.append([])
            x = 0.0
        lines[-1].append((x, letter, words))
        x += needed
    return lines


class _Picture:
    """Axes over a whole figure, in inches from its upper left corner, and the symbols drawn there."""

    def __init__(self, figure: Figure, size: tuple[float, float]):
        self.axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set(xlim=(0.0, size[0]), ylim=(size[1], 0.0))
        self.axes.set_axis_off()

    def text(self, x: float, y: float, words: str, size: float, **options: Any) -> None:
        """Write a line; a dollar sign in a name starts no formula."""
        options = {"color": _INK, "va": "center", "zorder": 5} | options
        self.axes.text(x, y, words, fontsize=size, family=FONT, parse_math=False, **options)

    def line(self, *points: tuple[float, float], color: str = _INK) -> None:
        """Draw a line between joints."""
        self.axes.plot(*zip(*points, strict=True), color=color, linewidth=1.3, zorder=2, solid_capstyle="round")

    def module(self, block: Block) -> None:
        """Draw a module and the lines to those that emerge from it."""
        index = block.module.index
        color = COLORS[(index - 1) % len(COLORS)] if index else _BASE
        box = FancyBboxPatch(
            (block.x, block.y), block.width, block.height, boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=_tint(color, 0.07), edgecolor=color, linewidth=1.2, linestyle=(0, (1.2, 1.6)), zorder=1,
        )  # fmt: skip
        self.axes.add_patch(box)
        at = block.spine + 0.14 if index else block.x + PAD
        self.text(at, block.y + 0.15, f"M{lowered(index)}", HEADER, color=color, weight="bold")
        above = block.y
        for link in block.links:
            top = block.y + link.y
            if link.joint is not None:
                self.line((block.spine, above), (block.spine, top))
                self._joint(block.spine, top - 0.15, link.joint)
            self._link(block, link, top, color)
            above = top + link.height
        self._branches(block, above)

    def _branches(self, block: Block, start: float) -> None:
        """Draw the lines from the last link of a module to the modules that emerge from it."""
        spines = [child.spine for child in block.children]
        if block.module.index and len(spines) > 1:
            at, middle = block.x + block.width / 2, block.children[0].y - 0.14
            self.line((at, start), (at, middle))
            self.line((min(at, *spines), middle), (max(at, *spines), middle))
            start = middle
        for child in block.children:
            self.line((child.spine, start), (child.spine, child.y))

    def _link(self, block: Block, link: LinkBox, top: float, color: str) -> None:
        left = block.x + PAD
        box = FancyBboxPatch(
            (left, top), block.width - 2 * PAD, link.height, boxstyle="round,pad=0,rounding_size=0.05",
            facecolor=_tint(color, 0.22), edgecolor=color, linewidth=1.0, zorder=3,
        )  # fmt: skip
        self.axes.add_patch(box)
        self.text(left + 0.08, top + 0.13, link.label, SMALL, color=color, weight="bold")
        self.text(left + 0.14 + width(link.label, SMALL, True), top + 0.13, shortened(link.name), NAME)
        y = top + 0.25 + 0.06
        for mark, words in link.rows:
            if mark == "foot":
                self._foot(left + 0.16, y - 0.055)
            elif mark:
                self._symbol(left + 0.16, y, mark, 0.065, 4.8, color=_LOOP)
            self.text(left + (0.28 if mark else 0.08), y, words, SMALL, color=_QUIET)
            y += 0.145
        if link.feet:
            y = top + link.height
            self._foot(left + 0.17, y, 1.4)
            for words in link.feet:
                self.text(left + 0.34, y + 0.085, words, SMALL, color=_INK)
                y += 0.145

    def _joint(self, x: float, y: float, joint: Mark) -> None:
        self._symbol(x, y, joint.letter, RADIUS, 6.6, dashed=joint.follows)
        self.text(x + RADIUS + 0.06, y, joint.name, SMALL, color=_QUIET)

    def _symbol(self, x: float, y: float, letter: str, r: float, size: float, dashed=False, color: str = _INK) -> None:
        """Draw a joint: a square for translation alone, otherwise a circle, with a letter."""
        style: dict[str, Any] = {"facecolor": "white", "edgecolor": color, "linewidth": 1.2 if r > 0.1 else 0.8}
        style |= {"zorder": 4, "linestyle": (0, (1.5, 1.0)) if dashed else "-"}
        shape = Square((x - r, y - r), 2 * r, 2 * r, **style) if letter == "P" else Circle((x, y), r, **style)
        self.axes.add_patch(shape)
        size = size if len(letter) == 1 else 0.78 * size
        self.text(x, y, letter, size, ha="center", va="center_baseline", weight="bold", color=color)

    def _foot(self, x: float, y: float, scale: float = 1.0) -> None:
        """Draw a foot whose upper edge is at (x, y)."""
        a, b, h = 0.035 * scale, 0.085 * scale, 0.085 * scale
        corners = [(x - a, y), (x + a, y), (x + b, y + h), (x - b, y + h)]
        self.axes.add_patch(Polygon(corners, closed=True, facecolor=_INK, edgecolor="none", zorder=4))

    def closure(self, closure: Closure, blocks: list[Block]) -> None:
        """Draw the line of a joint that closes a loop between the sides of its links."""
        ends = []
        for name in (closure.parent, closure.child):
            for block in blocks:
                if name in block.module.links:
                    own = [k for k, link in enumerate(block.links) if _carries(block, k, name)]
                    link = block.links[own[0]]
                    middle = block.y + link.y + link.height / 2
                    ends.append((block.x + PAD, block.x + block.width - PAD, middle))
        if len(ends) < 2:
            return
        (left, right, y), (left_of_child, right_of_child, z) = ends
        if right < left_of_child:
            x, w, bend = right, left_of_child, 0.5 * (left_of_child - right)
            controls = (x + bend, y), (w - bend, z)
        elif right_of_child < left:
            x, w, bend = left, right_of_child, 0.5 * (left - right_of_child)
            controls = (x - bend, y), (w + bend, z)
        else:
            x, w = right, right_of_child
            out = max(x, w) + 0.2
            controls = (out, y), (out, z)
        path = Path([(x, y), *controls, (w, z)], [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        style = {"facecolor": "none", "edgecolor": _LOOP, "linewidth": 1.2, "linestyle": (0, (4.0, 2.0)), "zorder": 2.5}
        self.axes.add_patch(PathPatch(path, **style))

    def legend(self, entries: list[tuple[float, str, str]], y: float) -> None:
        """Write a line of the legend."""
        for x, letter, words in entries:
            at = _MARGIN + x + 0.11
            if letter == "foot":
                self._foot(at, y - 0.06, 1.4)
            elif letter == "loop":
                self.axes.plot([at - 0.1, at + 0.1], [y, y], color=_LOOP, linewidth=1.2, linestyle=(0, (3.0, 1.5)))
            else:
                self._symbol(at, y, letter, RADIUS, 6.6)
            self.text(at + 0.17, y, words, SMALL, color=_QUIET)


def _carries(block: Block, k: int, name: str) -> bool:
    """Return whether a link of a module belongs to its k-th box, which lists the head of a rigid group."""
    links = block.module.links
    first = links.index(block.links[k].name)
    after = links.index(block.links[k + 1].name) if k + 1 < len(block.links) else len(links)
    return first <= links.index(name) < after


def _tint(color: str, share: float) -> str:
    """Return a color mixed with white."""
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in parts)
