"""Growth of run times with the links of a robot, the states of a batch and the threads: `python -m benchmarks growth`.

`measure_growth` adds the times to the record of the command, and `FIGURES` draws them for its page.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import legged
import robots
from benchmarks import compilation, simulation
from benchmarks.harness.record import Quantity, Record, quantity_table
from benchmarks.harness.references import PinocchioRobot, mujoco, pinocchio
from benchmarks.harness.subjects import FORWARD, FUNCTIONS, INVERSE, Settings
from benchmarks.harness.timing import Spread, Workload, check_agreement, repeat, repeat_batch, time_in_turns
from examples.studies.paper.timing import states
from legged.compiler import default_threads
from legged.simulation.plots import pages
from legged.table import Table

LINKS, BATCH, THREADS = "growth with links", "growth with the batch", "growth with threads"
OURS_ONE, OURS_BATCH, OURS_ALL = "ours, one state", "ours, batch", "ours, batch, all cores"
PINOCCHIO_ONE, PINOCCHIO_BATCH = "Pinocchio, one state", "Pinocchio, batch"
PINOCCHIO_ALL = "Pinocchio, batch, all cores"
OURS_LOOP, MUJOCO_LOOP = "ours, closed loop", "mujoco.rollout"
COMPILATION = "compilation"
ROBOTS: dict[str, Callable[[int], legged.Robot]] = {
    "chain": lambda n: robots.chain(n, twist=0.7),
    "tree": lambda n: legged.random_tree(1, n, joints=("revolute",), bases=("floating",), branching=0.3),
}
_MIN_LINKS, _BATCH_STATES, _MAX_BATCH_STATES = 4, 256, 16384
"""Links of the smallest robot; states of a batch for each robot; states of the largest batch."""
_MAX_PINOCCHIO_LINKS = 256
"""Links of the largest robot for Pinocchio, whose memory grows with the cube: 9 GB for 512 links."""
_TOLERANCES = {FORWARD: 1e-8, INVERSE: 1e-11}
"""Relative tolerances: a chain of hundreds of links is ill-conditioned, which affects the accelerations."""


def measure_growth(record: Record, settings: Settings) -> list[Table]:
    """Add the times over links, batch sizes and threads to the record, and return them as tables."""
    return [_measure_links(record, settings), _measure_batch(record, settings), _measure_threads(record, settings)]


def _measure_links(record: Record, settings: Settings) -> Table:
    for shape, make in ROBOTS.items():
        for n in doubling_sizes(_MIN_LINKS, settings.links):
            robot = make(n)
            start = compilation.start_time(robot)
            record.add((LINKS, shape, str(n), FORWARD, COMPILATION), "s", Spread.of([start]))
            for name in _TOLERANCES:
                times = time_in_turns(_robot_workloads(robot, name), settings.rounds)
                for workload, measured in times.items():
                    record.add((LINKS, shape, str(n), name, workload), "us", measured.spread(1e6))
    shown = {name: name for name in (OURS_ONE, OURS_BATCH, PINOCCHIO_ONE, PINOCCHIO_BATCH, COMPILATION)}
    notes = (
        f"Microseconds for one state, on one core; batches of {_BATCH_STATES}.",
        "Compilation: seconds until the first result for one state, cold start.",
    )
    return quantity_table(record, LINKS, ("robot", "links", "function"), shown, "Growth with links", notes)


def _robot_workloads(robot: legged.Robot, name: str) -> dict[str, Workload]:
    """Return the workloads for a robot, after checking that their results agree."""
    batch = states(robot, _BATCH_STATES)
    kernel, out = legged.compile(FUNCTIONS[name].plain, robot), np.empty_like(batch[1])
    workloads = {
        OURS_ONE: Workload(repeat(kernel, *(array[0] for array in batch))),
        OURS_BATCH: Workload(repeat_batch(1, kernel, batch, out), _BATCH_STATES),
    }
    workloads[OURS_BATCH].run(1)
    plain = FUNCTIONS[name].plain(robot, *(array[0] for array in batch))
    check_agreement(f"{robot.name}, {name}, compiled and plain", out[:1], plain[None], _TOLERANCES[name])
    if pinocchio() and robot.nj <= _MAX_PINOCCHIO_LINKS:
        theirs = PinocchioRobot(robot, batch)
        workloads[PINOCCHIO_ONE] = theirs.single(name)
        workloads[PINOCCHIO_BATCH], results = theirs.batch(name)
        check_agreement(f"{robot.name}, {name}, Pinocchio", out, results, _TOLERANCES[name])
    return workloads


def _measure_batch(record: Record, settings: Settings) -> Table:
    robot = robots.spatial_quadruped()
    kernel, batch = legged.compile(legged.forward_dynamics, robot), states(robot, _MAX_BATCH_STATES)
    kernel(*batch)  # compile the code for batches
    for n in doubling_sizes(1, _MAX_BATCH_STATES):
        part = [array[:n] for array in batch]
        out = np.empty_like(part[1])
        workloads = {
            name: Workload(repeat_batch(threads, kernel, part, out), n, threads > 1)
            for name, threads in ((OURS_BATCH, 1), (OURS_ALL, default_threads()))
        }
        if pinocchio():
            theirs = PinocchioRobot(robot, part)
            workloads[PINOCCHIO_BATCH], _ = theirs.batch(FORWARD)
            workloads[PINOCCHIO_ALL], _ = theirs.batch(FORWARD, default_threads())
        for name, measured in time_in_turns(workloads, settings.rounds).items():
            record.add((BATCH, str(n), name), "us", measured.spread(1e6))
    shown = {name: name for name in (OURS_BATCH, OURS_ALL, PINOCCHIO_BATCH, PINOCCHIO_ALL)}
    notes = (f"Microseconds for one state: forward dynamics of the {robot.name}, called from Python.",)
    return quantity_table(record, BATCH, ("states",), shown, "Growth with the batch", notes)


def _measure_threads(record: Record, settings: Settings) -> Table:
    robot = robots.spatial_quadruped()
    kernel, batch = legged.compile(legged.forward_dynamics, robot), states(robot, _MAX_BATCH_STATES)
    out, loop = np.empty_like(batch[1]), simulation.trot(robot, settings.states)
    workloads = {}
    for n in range(1, default_threads() + 1):
        workloads[n, OURS_BATCH] = Workload(repeat_batch(n, kernel, batch, out), _MAX_BATCH_STATES, True)
        workloads[n, OURS_LOOP] = Workload(repeat(loop, n), settings.states * simulation.STEPS, True)
        if pinocchio():
            workload, _ = PinocchioRobot(robot, batch).batch(FORWARD, n)
            workloads[n, PINOCCHIO_BATCH] = workload._replace(threads=True)
        if mujoco():
            workloads[n, MUJOCO_LOOP] = simulation.standing_in_mujoco(robot, n)._replace(threads=True)
    for (n, name), measured in time_in_turns(workloads, settings.rounds).items():
        record.add((THREADS, str(n), name), "per s", measured.rate())
    shown = {name: name for name in (OURS_BATCH, PINOCCHIO_BATCH, OURS_LOOP, MUJOCO_LOOP)}
    notes = (
        f"{robot.name}: states per second in batches of {_MAX_BATCH_STATES} (forward dynamics), time steps per second",
        "(closed loops).",
    )
    return quantity_table(record, THREADS, ("threads",), shown, "Growth with threads", notes)


def doubling_sizes(first: int, last: int) -> list[int]:
    """Return first, 2 first, 4 first, ..., and last."""
    sizes = []
    while first < last:
        sizes.append(first)
        first *= 2
    return [*sizes, last]


# Figures: lines through the medians, bands over the spread.

_COLORS = {
    OURS_ONE: pages.BLUE,
    OURS_BATCH: pages.GREEN,
    OURS_ALL: pages.PURPLE,
    OURS_LOOP: pages.BLUE,
    PINOCCHIO_ONE: pages.ORANGE,
    PINOCCHIO_BATCH: pages.RED,
    PINOCCHIO_ALL: pages.GREY,
    MUJOCO_LOOP: pages.ORANGE,
}


def links_figure(record: Record) -> Figure:
    """Return the time for one state, and the compilation time, over the number of links."""
    figure = pages.figure(1, 3, width=11.0, height=3.6)
    figure.axes[1].sharey(figure.axes[0])
    for ax, shape in zip(figure.axes, ROBOTS, strict=False):
        for name in (PINOCCHIO_ONE, PINOCCHIO_BATCH, OURS_ONE, OURS_BATCH):
            _plot(ax, name, _points(record.find_all(LINKS, shape), 2, FORWARD, name))
        _set_log_scales(ax)
        title = {"chain": "Chains", "tree": "Random trees"}[shape]
        y_label = "one state [us]" if ax is figure.axes[0] else ""
        pages.label(ax, f"{title}: forward dynamics, one core", "links", y_label)
    last = figure.axes[-1]
    for shape, line_style in zip(ROBOTS, ("-", "--"), strict=True):
        points = _points(record.find_all(LINKS, shape), 2, FORWARD, COMPILATION)
        _plot(last, f"{shape}s", points, color="black", line_style=line_style)
    _set_log_scales(last)
    pages.label(last, "Cold start: from the robot to the first result", "links", "[s]")
    last.legend(fontsize=8, frameon=False)
    return pages.legend(figure)


def batch_figure(record: Record) -> Figure:
    """Return the time for one state over the number of states in a call."""
    figure = pages.figure(1, 1, width=7.0, height=4.0)
    ax = figure.axes[0]
    for name in (PINOCCHIO_BATCH, PINOCCHIO_ALL, OURS_BATCH, OURS_ALL):
        _plot(ax, name, _points(record.find_all(BATCH), 1, name))
    _set_log_scales(ax)
    pages.label(ax, "Quadruped, 18 degrees of freedom: forward dynamics", "states in a call", "one state [us]")
    return pages.legend(figure)


def threads_figure(record: Record) -> Figure:
    """Return the rates relative to one thread over the number of threads."""
    figure = pages.figure(1, 1, width=6.0, height=4.0)
    ax = figure.axes[0]
    max_threads = 1.0
    for name in (OURS_BATCH, OURS_LOOP, PINOCCHIO_BATCH, MUJOCO_LOOP):
        points = _points(record.find_all(THREADS), 1, name)
        if points:
            max_threads = max(max_threads, points[-1][0])
            _plot(ax, name, [(x, _relative(q, points[0][1])) for x, q in points])
    ax.plot([1, max_threads], [1, max_threads], ":", color="black", linewidth=1.0, label="proportional")
    pages.label(ax, "Quadruped: forward dynamics, closed loops", "threads", "rate relative to one thread")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return pages.legend(figure, columns=3)


FIGURES: dict[str, tuple[str, Callable[[Record], Figure], str]] = {
    LINKS: ("growth_links", links_figure, "Time over the number of links; bands are the spread."),
    BATCH: ("growth_batch", batch_figure, "Time for one state over the number of states in a call."),
    THREADS: ("growth_threads", threads_figure, "Rate over the number of threads."),
}
"""Kinds of quantities -> file name, function that draws the figure, caption."""

Points = Sequence[tuple[float, Quantity]]


def _points(quantities: Iterable[Quantity], position: int, *suffix: str) -> Points:
    """Return (x, quantity) for names that end with `suffix` after a position, where the part of the name is x."""
    return [(float(q.name[position]), q) for q in quantities if q.name[position + 1 :] == suffix]


def _relative(quantity: Quantity, first: Quantity) -> Quantity:
    return quantity._replace(**{part: getattr(quantity, part) / first.median for part in ("median", "low", "high")})


def _plot(ax: Axes, label: str, points: Points, color: str = "", line_style: str = "-") -> None:
    if not points:
        return
    color = color or _COLORS[label]
    x, y = [x for x, _ in points], [q.median for _, q in points]
    ax.plot(x, y, line_style, marker="o", markersize=3, color=color, linewidth=1.3, label=label)
    ax.fill_between(x, [q.low for _, q in points], [q.high for _, q in points], color=color, alpha=0.2, linewidth=0)


def _set_log_scales(ax: Axes) -> None:
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("")
