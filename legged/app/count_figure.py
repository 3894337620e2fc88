"""Figure 7 of the paper: operations of forward dynamics over the number of links."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from legged.app import formulas, style
from legged.app.counts import SIZES, TWISTS, Measured, family


def figure_7(robots: Sequence[Measured] = ()) -> Figure:
    """Return the counterpart of Figure 7: published formulas as lines, measured counts as markers.

    Args:
        robots: Counts of robots to mark as well; those with a fixed base are left out.
    """
    n = list(range(1, SIZES[-1] + 1))
    made = style.figure(1, 2, width=10.0, height=4.8)
    for ax, letter, words in zip(made.axes, "MA", ("multiplications and divisions", "additions"), strict=True):
        for formula, color, dashes in (
            (formulas.MCMILLAN_ORIN_CUBIC, style.RED, "--"),
            (formulas.MCMILLAN_ORIN_LINEAR, style.GREY, "-."),
            (formulas.PROPOSED_FORWARD_FLOATING, "black", "-"),
        ):
            values = [formula.at(k)["MA".index(letter)] for k in n]
            ax.plot(n, values, dashes, color=color, linewidth=1.2, label=formula.algorithm)
        six_more = [formulas.FEATHERSTONE_FORWARD.at(k + 6)["MA".index(letter)] for k in n]
        ax.plot(
            n, six_more, ":", color=style.PURPLE, linewidth=1.2, label="Featherstone 1987, six more joints for the base"
        )
        for (name, twist), color, mark in zip(
            TWISTS.items(), (style.GREEN, style.BLUE, style.ORANGE), "v^o", strict=True
        ):
            values = [getattr(m.forward, letter) for m in family(twist)]
            ax.plot(SIZES, values, mark, color=color, markersize=5, label=f"measured: {name}")
        _mark(ax, [m for m in robots if m.floating], letter)
        ax.set_ylim(0, 1.15 * formulas.FEATHERSTONE_FORWARD.at(n[-1] + 6)["MA".index(letter)])
        style.label(ax, f"Forward dynamics, floating base: {words}", "links without the base, n")
    return style.legend(made)


def _mark(ax, robots: Sequence[Measured], letter: str) -> None:
    for m in robots:
        count = getattr(m.forward, letter)
        ax.plot(m.n, count, "*", color="black", markersize=8)
    for place in sorted({m.n for m in robots}):
        here = sorted((m for m in robots if m.n == place), key=lambda m: getattr(m.forward, letter))
        words = ", ".join(m.name for m in here)
        right = place > 0.7 * SIZES[-1]  # the name goes to the left of its mark
        ax.annotate(
            words,
            (place, getattr(here[0].forward, letter)),
            (-7 if right else 7, -3),
            textcoords="offset points",
            fontsize=8,
            ha="right" if right else "left",
        )
