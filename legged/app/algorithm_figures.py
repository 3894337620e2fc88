"""Figures of the algorithms: operations over the number of links, and the condition of the inertia matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from legged.app import style
from legged.app.algorithms import ALGORITHMS, FAMILIES, SIZES, Cost, growth
from legged.compiler import count_and_depth
from legged.dynamics.inertia import inertia_matrix
from legged.robot.base import Base, FixedBase, FloatingBase
from legged.robot.configuration import random_configuration
from legged.robot.robot import Robot
from robots import chain, tree

SHOWN = {
    "modular": ("black", "-"),
    "articulated bodies": (style.BLUE, "--"),
    "spatial operators": (style.GREEN, ":"),
    "inertia matrix, L^T D L": (style.ORANGE, "-"),
}
PARALLEL = {
    "articulated bodies": (style.BLUE, "--"),
    "sparse system": (style.GREY, "-."),
    "constraint forces": (style.GREEN, ":"),
    "divide and conquer, inverse": (style.ORANGE, "-"),
    "divide and conquer, pivoted": (style.RED, "-"),
}
BODIES = (4, 8, 16, 32)
LINKS = (2, 4, 8, 16, 32)
STUDY: dict[str, dict[str, Callable[[int], Robot]]] = {
    "branching, fixed base": {f"{b:g}": lambda n, b=b: _study(n, b, 1.0, FixedBase()) for b in (1, 1.5, 2, 4)},
    "branching, floating base": {f"{b:g}": lambda n, b=b: _study(n, b, 1.0, FloatingBase()) for b in (1, 1.5, 2, 4)},
    "taper of a chain, fixed base": {f"{t:g}": lambda n, t=t: _study(n, 1, t, FixedBase()) for t in (1.0, 0.95, 0.9)},
}
"""Panel -> curve -> robot of n links."""
_CONFIGURATIONS = 20
_COLORS = (
    "black",
    style.BLUE,
    "#7fb8dd",
    style.ORANGE,
    style.GREEN,
    style.PURPLE,
    style.GREY,
    "#e8a33d",
    style.RED,
    "#f0a8a8",
)


def _study(n: int, branching: float, taper: float, base: Base) -> Robot:
    return tree(n, branching=branching, taper=taper, base=base)


def growth_figure() -> Figure:
    """Return M + A of forward dynamics over the number of links, one panel for each family of trees."""
    made = style.figure(2, 2, width=9.5, height=3.4)
    for ax, family in zip(made.axes, FAMILIES, strict=True):
        for name, (color, dashes) in SHOWN.items():
            ax.plot(SIZES, growth(family, name), dashes, color=color, linewidth=1.5, label=name)
        style.label(ax, f"Forward dynamics: {family}", "links without the base, n", "operations, M + A")
    return style.legend(made)


def depth_figure() -> Figure:
    """Return depth and operations of forward dynamics of chains on a floating base over the number of bodies."""
    made = style.figure(1, 2, width=9.5, height=3.8)
    chains = [chain(n - 1, twist=0.7) for n in BODIES]
    for name, (color, dashes) in PARALLEL.items():
        function = ALGORITHMS["forward dynamics"][name]
        found = [count_and_depth(function, robot) for robot in chains]
        for ax, values in zip(made.axes, ([d for _, d in found], [c.M + c.A for c, _ in found]), strict=True):
            ax.loglog(BODIES, values, dashes, marker="o", markersize=3, color=color, linewidth=1.5, label=name)
    for ax, title in zip(made.axes, ("depth", "operations, M + A"), strict=True):
        style.label(ax, f"Forward dynamics of a chain: {title}", "bodies, the base among them", title)
        ax.set_xticks(BODIES, [str(n) for n in BODIES])
        ax.minorticks_off()
    return style.legend(made, columns=3)


def time_figure(found: Sequence[Cost]) -> Figure:
    """Return the times of forward dynamics on each robot, a group of bars each."""
    timed = [c for c in found if c.task == "forward dynamics" and c.time is not None]
    robots = list(dict.fromkeys(c.robot for c in timed))
    names = list(dict.fromkeys(c.algorithm for c in timed))
    made = style.figure(1, 1, width=11.0, height=4.4)
    (ax,) = made.axes
    width = 0.85 / max(1, len(names))
    for k, name in enumerate(names):
        own = [
            (robots.index(c.robot) + (k - len(names) / 2 + 0.5) * width, c.time) for c in timed if c.algorithm == name
        ]
        ax.bar(*zip(*own, strict=True), width=width, color=_COLORS[k % len(_COLORS)], label=name)
    ax.set_yscale("log")
    ax.set_axisbelow(True)
    marks = [m for m in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0) if _reaches(timed, m)]
    ax.set_yticks(marks, [f"{m:g}" for m in marks])
    ax.minorticks_off()
    ax.grid(False, axis="x")
    ax.set_xticks(range(len(robots)), robots)
    style.label(ax, "Forward dynamics, one state, compiled", "", "time [us]")
    return style.legend(made, columns=4)


def _reaches(timed: Sequence[Cost], mark: float) -> bool:
    """Tell whether a mark lies among the times, or next to them."""
    times = [c.time for c in timed if c.time is not None]
    return 0.5 * min(times) <= mark <= 1.5 * max(times)


def condition_numbers(robot: Robot, configurations: int = _CONFIGURATIONS) -> np.ndarray:
    """Return the condition numbers of the inertia matrix at random configurations, (configurations,)."""
    rng = np.random.default_rng(0)
    return np.array(
        [np.linalg.cond(inertia_matrix(robot, random_configuration(robot, rng))) for _ in range(configurations)]
    )


def condition_figure() -> Figure:
    """Return how the condition number of the inertia matrix grows with size, branching, base and taper.

    Lines are medians over random configurations, bands their range. Source of the questions: Featherstone, "An
    empirical study of the joint space inertia matrix", International Journal of Robotics Research 23(9), 2004.
    """
    made = style.figure(1, len(STUDY), width=12.0, height=4.0)
    colors = (style.BLUE, style.GREEN, style.ORANGE, style.RED)
    for ax, (panel, curves) in zip(made.axes, STUDY.items(), strict=True):
        for (name, make), color in zip(curves.items(), colors, strict=False):
            found = np.array([condition_numbers(make(n)) for n in LINKS])
            ax.loglog(LINKS, np.median(found, axis=1), "o-", color=color, markersize=3, linewidth=1.2, label=name)
            ax.fill_between(LINKS, found.min(axis=1), found.max(axis=1), color=color, alpha=0.15, linewidth=0)
        ax.set_xticks(LINKS, [str(n) for n in LINKS])
        ax.minorticks_off()
        ax.legend(title=panel.split(",")[0].split(" ")[0], fontsize=8, title_fontsize=8, frameon=False)
        style.label(ax, panel, "links without the base, n", "condition number of the inertia matrix")
    return made
