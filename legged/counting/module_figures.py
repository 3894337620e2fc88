"""Figures of operation counts."""

from __future__ import annotations

from matplotlib.figure import Figure

from legged.counting import module_counts
from legged.simulation.plots import pages

CAPTION = (
    "Operations of forward dynamics over the number of modules with equally many joints (the paper: independent), "
    "over the number of legs, and depth over the number of legs; dashed: formulas of Table 1"
)


def module_figure() -> Figure:
    """Return counts over the number of modules at equal numbers of joints, over the number of legs, and the depth."""
    made = pages.figure(1, 3, width=11.0, height=3.6)
    left, middle, right = made.axes
    for letter, color in (("M", pages.BLUE), ("A", pages.ORANGE)):
        k = "MA".index(letter)
        words = {"M": "multiplications and divisions", "A": "additions"}[letter]
        left.plot(
            module_counts.MODULES,
            [module_counts.star_counts(s, module_counts.JOINTS // s).forward[k] for s in module_counts.MODULES],
            "o-",
            color=color,
            label=words,
        )
        paper = module_counts.paper_counts(module_counts.JOINTS)[k]
        left.axhline(paper, color=color, linestyle="--", linewidth=1.0, label=f"paper, {words}")
        middle.plot(
            module_counts.LEGS,
            [module_counts.star_counts(n, 3).forward[k] for n in module_counts.LEGS],
            "o-",
            color=color,
        )
        paper_line = [module_counts.paper_counts(3 * n)[k] for n in module_counts.LEGS]
        middle.plot(module_counts.LEGS, paper_line, "--", color=color, linewidth=1.0)
    right.plot(
        module_counts.MANY_LEGS,
        [module_counts.star_counts(n, 3).depth for n in module_counts.MANY_LEGS],
        "o-",
        color=pages.GREEN,
    )
    right.set_xscale("log", base=2)
    right.set_xticks(module_counts.MANY_LEGS, [str(n) for n in module_counts.MANY_LEGS])
    left.set_ylim(bottom=0)
    middle.set_ylim(bottom=0)
    right.set_ylim(bottom=0)
    pages.label(left, f"forward dynamics, {module_counts.JOINTS} joints", "modules")
    pages.label(middle, "forward dynamics, 3 joints a leg", "legs")
    pages.label(right, "depth, 3 joints a leg", "legs")
    return pages.legend(made)
