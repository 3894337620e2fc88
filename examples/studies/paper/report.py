"""Report on the reproduction of the paper: demonstrations, figures and tables beside the published results.

The reference data are the output shipped with the authors' toolbox for the quadruped (computed torque, swing height
0.09 m; x forward, y left, z up; roll, pitch, yaw of R = Rx Ry Rz) and, for the planar biped, an independent computation
with the same ground model and prescribed joints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import controllers
import robots
from controllers import Gait
from examples.studies.balance.experiment import paper_experiment
from examples.studies.balance.report import BalanceReport
from examples.studies.operations import counts
from examples.studies.operations.branches import branches_table
from examples.studies.paper import stiff_ground, timing
from examples.studies.paper.demonstrations import (
    LINE_STYLES,
    SHOWN,
    Demonstration,
    Runs,
    Say,
    add_demonstrations,
    write,
)
from legged.app.scenario import on_gait
from legged.counting import module_counts, module_figures
from legged.counting.robot_counts import robot_table
from legged.ground import paper_ground
from legged.loops import ClosedRobot
from legged.robot.diagram.tables import module_table
from legged.robot.robot import Robot
from legged.simulation import Run
from legged.simulation.plots import pages
from legged.simulation.plots.pages import Page
from legged.simulation.results.summary import joint_error
from legged.table import Table

QUADRUPED = {  # t: x, y, z [m], roll, pitch, yaw [rad]
    0.0: (-0.15, 0.0, 0.5, 0.0, 0.0, 0.0),
    0.5: (-0.007554, 0.016987, 0.492386, -0.034039, -0.016653, -0.000254),
    2.0: (0.427204, -0.000350, 0.498376, 0.000337, 0.000425, -0.000061),
}
BIPED = {  # t: x, z [m], pitch, nose down [degree]
    0.5: (-0.0073, 1.2029, -0.36),
    1.0: (0.1809, 1.2152, 2.84),
    2.0: (0.4104, 1.2093, 0.17),
    4.0: (0.9665, 1.2072, -0.65),
}


def report(folder: Path, duration: float = 12.0, say: Say = print) -> Path:
    """Compute the report, print the main results, write `report.md` and its figures, and return the path of the page.

    Args:
        folder: Output folder, created if missing.
        duration: Duration of the runs, [s]; 12 s in the paper.
        say: Function that prints a line.
    """
    page = Page(folder, "The paper's demonstrations, computed here")
    _modules(page, say)
    biped, quadruped = add_demonstrations(page, duration, say)
    _after(page, biped, quadruped)
    _references(page, biped, say)
    _stiff_floor(page, duration * 5 / 3, say)
    _counts(page, say)
    _branches(page, say)
    comparisons = _times(page, biped, quadruped, say)
    _contradictions(page, biped, comparisons, say)
    _balance(page, duration, say)
    return write(page, (biped, quadruped), say)


_ARGUMENTS = {"chain": {"n": 6}, "tree": {"n": 12, "branching": 2}, "star": {"legs": 6}, "centipede": {"pairs": 4}}
"""Arguments of the robots of any size."""


def ready_made_robots() -> Iterator[tuple[str, Robot | ClosedRobot]]:
    """Yield (name, robot) for each robot of `robots`."""
    for name in robots.__all__:
        yield name, getattr(robots, name)(**_ARGUMENTS.get(name, {}))


def _modules(page: Page, say: Say) -> None:
    """Add the modules of each robot to the page, and print their tables."""
    page.heading("Kinematic modules: Figures 1, 5 and 15")
    page.text(
        "The robots of `robots` as graphs of links, partitioned by the rules of section 2: M_0 is the base; a module "
        "is a run of serial links from the last link of its parent; its number is higher than its parent's. #k^i is "
        "body k of module i, where a joint of several degrees of freedom counts as several bodies. Robots with closed "
        "loops are partitioned after their loops are cut at the joints drawn as dashed lines."
    )
    for name, made in ready_made_robots():
        robot = made if isinstance(made, Robot) else made.robot
        table = replace(module_table(robot), title=f"{robot.name}: kinematic modules")
        page.table(table)
        page.figure(made.draw_modules(), f"modules-{name.replace('_', '-')}", f"The modules of the {robot.name}")
        say(f"{table.text()}\n")


def _branches(page: Page, say: Say) -> None:
    """Add the claims of Featherstone 2005 on humanoids beside counts."""
    table = branches_table()
    say(f"\n{table.text()}\n")
    page.heading("Branch-induced sparsity of a humanoid")
    page.text(
        "Featherstone, *Efficient factorization of the joint-space inertia matrix for branched kinematic trees* "
        "(2005): the claims of the abstract, and what is counted here for a humanoid and a chain of 30 degrees of "
        "freedom with equal links."
    )
    page.table(table)


def _after(page: Page, *shown: Demonstration) -> None:
    page.heading("Beyond 4 s")
    page.text(
        "Computed torque keeps the joints at their references to the solver's tolerance. Feed-forward control has "
        "feedback of the joints only, and its reference of the trunk is independent of the simulated trunk: small "
        "errors grow from step to step, so that the late motion depends on tolerances. The paper ran 12 s and shows 4."
    )
    errors = {one.robot.name: one.runs for one in shown}
    page.figure(figure_errors(errors), "joint-errors", "Largest joint error over the whole of the runs")


def figure_errors(runs: Mapping[str, Runs]) -> Figure:
    """Return the largest joint error over the whole of the runs, robot by robot, on a logarithmic scale."""
    made = pages.figure(1, len(runs), width=10.0, height=3.0, sharey=True)
    for ax, (robot, controlled) in zip(made.axes, runs.items(), strict=True):
        for name, run in controlled.items():
            color, dashes, _ = LINE_STYLES[name]
            error = np.maximum(np.degrees(joint_error(run)), 1e-7)
            ax.semilogy(run.times, error, dashes, color=color, linewidth=1.2, label=name)
        pages.label(ax, robot, "time [s]", "largest joint error [degree]")
    return pages.legend(made)


def _references(page: Page, biped: Demonstration, say: Say) -> None:
    robot = robots.spatial_quadruped()
    authors = on_gait(robot, controllers.authors_trot(), "computed-torque", paper_ground(robot), 2.0)
    tables = reference_tables(authors, biped.runs["computed-torque"])
    page.heading("Against the authors' own numbers")
    for table in tables:
        page.table(table)
        say(f"{table.text()}\n")


def reference_tables(quadruped: Run, biped: Run) -> tuple[Table, Table]:
    """Return tables of the authors' output for the quadruped, and of an independent computation for the biped."""
    theirs, ours = [], []
    for t, row in QUADRUPED.items():
        i = quadruped.at(t)
        values = (*quadruped.base.position[i], *quadruped.base.angles("xyz")[i])
        theirs += _two_rows(t, row, values, 6)
    for t, row in BIPED.items():
        if t > biped.times[-1] + 1e-9:
            continue
        i = biped.at(t)
        values = (*biped.base.position[i, [0, 2]], float(np.degrees(biped.base.angles("xyz")[i, 1])))
        ours += _two_rows(t, row, values, 4)
    one = ("t [s]", "x [m]", "y [m]", "z [m]", "roll [rad]", "pitch [rad]", "yaw [rad]")
    two = ("t [s]", "x [m]", "z [m]", "phi [deg]")
    return (
        Table("Quadruped, swing height 0.09 m: the authors' output, and here", one, tuple(theirs)),
        Table("Biped: independent computation on the authors' ground, and here", two, tuple(ours)),
    )


def _two_rows(t: float, wanted: Sequence[float], got: Sequence[float], digits: int) -> list[tuple[str, ...]]:
    """Return the rows of a table with published and computed values at a time, [s]."""
    return [
        (f"{t:g}, theirs", *(f"{value:.{digits}f}" for value in wanted)),
        (f"{t:g}, here", *(f"{value + 0.0:.{digits}f}" for value in got)),
    ]


def _stiff_floor(page: Page, duration: float, say: Say) -> None:
    shown = stiff_ground.stiff_ground_runs(duration)
    table = stiff_ground.stiff_ground_table(shown)
    page.heading("Beyond the paper: stiff ground, a push, and balance")
    page.text(
        "The authors' ground is soft and very viscous, and their controllers have no feedback of the trunk. On stiff "
        "ground the gait needs feedback of trunk and foot placement; the paper's controller is shown for comparison."
    )
    page.table(table)
    for case in shown:
        page.text("```text\n" + str(case.ground) + "\n```")
    page.figure(
        stiff_ground.stiff_ground_figure(shown), "stiff-floor", "A stiff floor and a push, with and without balance"
    )
    say(f"{table.text()}\n")


def _counts(page: Page, say: Say) -> None:
    measured = counts.walking_robots()
    page.heading("Operation counts: Table 1 and Figure 7")
    for table in (counts.family_table(), robot_table(measured)):
        page.table(table)
        say(f"{table.text()}\n")
    page.text(
        "The cubic formula is for a chain; branching, as in a robot with short legs, makes the inertia matrix sparse "
        "and that route cheaper. Featherstone's curve is our reading of the paper's straightforward floating base: six "
        "more joints in front of a fixed one."
    )
    page.figure(counts.figure_7(measured), "figure-07-operations", "Figure 7, computed here")
    page.table(counts.literature_table(12))
    for table in module_counts.module_tables():
        page.table(table)
    page.figure(module_figures.module_figure(), "operations-modules", module_figures.CAPTION)


def _times(page: Page, biped: Demonstration, quadruped: Demonstration, say: Say) -> list[timing.AccelerationTimes]:
    say("Timing")
    subjects = [biped.robot, quadruped.robot, robots.humanoid(), robots.chain(12, twist=0.7)]
    comparisons = [timing.compare(robot, rounds=5) for robot in subjects]
    acceleration = timing.acceleration_table(comparisons)
    cases = [(shown.robot, shown.gait, paper_ground(shown.robot)) for shown in (biped, quadruped)]
    laws = {"feed-forward": controllers.FeedForward, "computed-torque": controllers.ComputedTorque}
    page.heading("Times: Table 2")
    for table in (acceleration, timing.simulation_table(cases, laws)):
        page.table(table)
        say(f"{table.text()}\n")
    return comparisons


def _contradictions(page: Page, biped: Demonstration, comparisons: list[timing.AccelerationTimes], say: Say) -> None:
    plain = [timing.ratio(one.plain_cubic, one.plain_linear) for one in comparisons[:2]]
    run, gait = biped.runs["computed-torque"], biped.gait
    last = run.duration - 4 * gait.period
    early_change, late_change = (1e3 * cycle_change(run, gait, start) for start in (0.0, max(0.0, last)))
    x = run.base.position[:, 0]
    speed = (x[-1] - x[run.at(max(0.0, last))]) / min(run.duration, 4 * gait.period)
    robot, printed = biped.robot, controllers.paper_walk(printed=True)
    low = on_gait(robot, printed, "computed-torque", paper_ground(robot), SHOWN)
    errors = np.degrees(joint_error(biped.runs["feed-forward"]))
    early = errors[biped.runs["feed-forward"].times <= SHOWN].max()
    lines = [
        f"- **Table 2, acceleration.** In plain NumPy the O(n^3) route takes {plain[0]} (biped) and {plain[1]} "
        "(quadruped) of the time of the recursion, since NumPy's overhead per operation outweighs the operations "
        "saved; compiled, the recursion is faster, as in the paper.",
        "- **Table 2, simulation.** With the stiff solver BDF the route makes little difference, because the solver's "
        "own work dominates; with fixed steps, where the dynamics dominate, the recursion is faster (table above).",
        f"- **Figure 13.** The trunk's motion is not periodic in the {SHOWN:g} s shown: its height changes by "
        f"up to {early_change:.1f} mm from the first cycle (a step of each leg) to the second, and by up to "
        f"{late_change:.1f} mm between the last two; its final speed is {speed:.3f} m/s, where the gait plans "
        f"{gait.stride / gait.period:.3f} m/s.",
        "- **Hip height.** With the hip height as printed in Appendix B, "
        + (f"{low.ended}." if low.ended else f"the biped stays upright for {low.duration:g} s."),
        f"- **Feed-forward over {biped.runs['feed-forward'].duration:g} s.** The largest joint error of the biped is "
        f"{early:.1g} degrees in the first {SHOWN:g} s, which the paper shows, and {errors.max():.1g} "
        "degrees over the whole run.",
    ]
    page.heading("Where these results contradict the paper")
    page.text("\n".join(lines))
    say("\n".join(lines))


def cycle_change(run: Run, gait: Gait, start: float) -> float:
    """Return the largest change of the trunk's height from one cycle, a step of each leg, to the next, [m].

    Args:
        run: The run.
        gait: The gait that it follows.
        start: Time at which the first of the two cycles begins, [s].
    """
    first, second, end = (run.at(start + 2 * k * gait.period) for k in range(3))
    one, other = run.base.position[first:second, 2], run.base.position[second:end, 2]
    n = min(len(one), len(other))
    return float(np.abs(one[:n] - other[:n]).max(initial=0.0))


def _balance(page: Page, duration: float, say: Say) -> None:
    balance = BalanceReport(paper_experiment(duration=min(3.0, duration)))
    page.heading("Balance of a biped hit by a block: Wendlandt 1997, Figures 3 to 6")
    page.text(
        "J. M. Wendlandt, *A recursive workspace balancing controller for a 3D multibody model of a biped* (1997), "
        "section 4: a biped rises to a set point and is hit by a thrown block. The paper's biped faces -x, the one "
        "here +x: in Figures 5 and 6 x, q_y and q_z have the opposite sign of the paper's, whose set point is at x = "
        "-1 cm. `python -m examples.studies balance` runs this experiment with other masses, velocities and robots."
    )
    for table in (balance.event_table(), balance.result_table(), balance.cost_table()):
        page.table(table)
        say(f"{table.text()}\n")
    for name, figure in balance.figures().items():
        page.figure(figure, f"balance-{name}", f"{name.replace('-', ' ').capitalize()}, computed here")
