"""The growth of times as figures: lines through medians, bands over the spread."""

from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks import growth
from benchmarks.record import Quantity, Record
from benchmarks.subjects import FORWARD
from legged.app import figures

COLORS = {
    growth.OURS_ONE: figures.BLUE,
    growth.OURS_BATCH: figures.GREEN,
    growth.OURS_ALL: figures.PURPLE,
    growth.OURS_LOOP: figures.BLUE,
    growth.PIN_ONE: figures.ORANGE,
    growth.PIN_BATCH: figures.RED,
    growth.PIN_ALL: figures.GREY,
    growth.MUJOCO_LOOP: figures.ORANGE,
}


def links(record: Record) -> Figure:
    """Return time for one state, and time to compile, over the number of links."""
    made = figures.figure(1, 3, width=11.0, height=3.6)
    made.axes[1].sharey(made.axes[0])
    for ax, shape in zip(made.axes, growth.ROBOTS, strict=False):
        for way in (growth.PIN_ONE, growth.PIN_BATCH, growth.OURS_ONE, growth.OURS_BATCH):
            _line(ax, way, _over(record.below(growth.LINKS, shape), 2, FORWARD, way))
        _logarithmic(ax)
        title = {"chain": "Chains", "tree": "Random trees"}[shape]
        figures.label(
            ax, f"{title}: forward dynamics, one core", "links", "one state [us]" if ax is made.axes[0] else ""
        )
    last = made.axes[-1]
    for shape, mark in zip(growth.ROBOTS, ("-", "--"), strict=True):
        points = _over(record.below(growth.LINKS, shape), 2, FORWARD, growth.COMPILATION)
        _line(last, f"{shape}s", points, color="black", dashes=mark)
    _logarithmic(last)
    figures.label(last, "From the robot to its first result, cold", "links", "[s]")
    last.legend(fontsize=8, frameon=False)
    return figures.legend(made)


def batch(record: Record) -> Figure:
    """Return time for one state over the number of states in a call."""
    made = figures.figure(1, 1, width=7.0, height=4.0)
    ax = made.axes[0]
    for way in (growth.PIN_BATCH, growth.PIN_ALL, growth.OURS_BATCH, growth.OURS_ALL):
        _line(ax, way, _over(record.below(growth.BATCH), 1, way))
    _logarithmic(ax)
    figures.label(ax, "Quadruped, 18 degrees of freedom: forward dynamics", "states in a call", "one state [us]")
    return figures.legend(made)


def threads(record: Record) -> Figure:
    """Return rates over the number of threads, in parts of that of one thread."""
    made = figures.figure(1, 1, width=6.0, height=4.0)
    ax = made.axes[0]
    most = 1.0
    for way in (growth.OURS_BATCH, growth.OURS_LOOP, growth.PIN_BATCH, growth.MUJOCO_LOOP):
        points = _over(record.below(growth.THREADS), 1, way)
        if points:
            most = max(most, points[-1][0])
            _line(ax, way, [(x, _over_first(q, points[0][1])) for x, q in points])
    ax.plot([1, most], [1, most], ":", color="black", linewidth=1.0, label="as many times as threads")
    figures.label(ax, "Quadruped: forward dynamics, closed loops", "threads", "rate over that of one thread")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figures.legend(made, columns=3)


Points = Sequence[tuple[float, Quantity]]


def _over(quantities: Iterable[Quantity], place: int, *rest: str) -> Points:
    """Return (x, quantity) for the names that end with `rest`, x being the part of the name at a place."""
    return [(float(q.name[place]), q) for q in quantities if q.name[place + 1 :] == rest]


def _over_first(quantity: Quantity, first: Quantity) -> Quantity:
    return quantity._replace(**{part: getattr(quantity, part) / first.median for part in ("median", "low", "high")})


def _line(ax: Axes, label: str, points: Points, color: str = "", dashes: str = "-") -> None:
    if not points:
        return
    color = color or COLORS[label]
    x = [x for x, _ in points]
    ax.plot(x, [q.median for _, q in points], dashes, marker="o", markersize=3, color=color, linewidth=1.3, label=label)
    ax.fill_between(x, [q.low for _, q in points], [q.high for _, q in points], color=color, alpha=0.2, linewidth=0)


def _logarithmic(ax: Axes) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
