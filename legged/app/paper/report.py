"""Report on the reproduction of the paper: demonstrations, figures and tables beside the published results.

The reference data are the output shipped with the authors' toolbox for the quadruped (computed torque, swing height
0.09 m; x forward, y left, z up; roll, pitch, yaw of R = Rx Ry Rz) and, for the planar biped, an independent computation
with the same ground model and prescribed joints.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import controllers
import robots
from controllers import Gait
from legged.app.balance.experiment import paper_experiment
from legged.app.balance.report import BalanceReport
from legged.app.figures import Page
from legged.app.operations import counts, module_counts
from legged.app.operations.branches import branches_table
from legged.app.operations.counts import figure_7
from legged.app.paper import plots, stiff_ground, timing
from legged.app.paper.architecture import architecture
from legged.app.scenario import Scenario
from legged.ground import paper_ground
from legged.robot.robot import Robot
from legged.simulation import Run
from legged.simulation.plots import animate
from legged.simulation.results.summary import joint_error, lean
from legged.table import Table
from legged.version import __version__

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


Say = Callable[[str], None]
LAWS = ("computed-torque", "feed-forward", "none")
COMPARED_UNTIL = 4.0  # [s], how long feed-forward and computed torque are compared: what the paper's figures show
LEFT = 2.0  # [degree], joint error above which a robot has left its gait


@dataclass(frozen=True)
class Demonstration:
    """Runs of a robot on its gait on the authors' ground, by controller."""

    robot: Robot
    gait: Gait
    runs: dict[str, Run]

    @property
    def controlled(self) -> dict[str, Run]:
        """The runs with feedback."""
        return {name: run for name, run in self.runs.items() if name != "none"}

    @property
    def left_at(self) -> float:
        """Time at which the run without control leaves its gait, [s]; infinity for never."""
        run = self.runs["none"]
        left = np.flatnonzero(np.degrees(joint_error(run)) > LEFT)
        return float(run.times[left[0]]) if len(left) else np.inf


def run_demonstration(robot: Robot, gait: Gait, duration: float, say: Say = print) -> Demonstration:
    """Return the runs of a robot on its gait under each controller, on the authors' ground."""
    runs = {}
    for name in LAWS:
        runs[name] = Scenario(robot, gait, name, paper_ground(robot), duration).run()
        say(f"  {robot.name}, {name}: {runs[name].ended or f'upright for {duration:g} s'}")
    return Demonstration(robot, gait, runs)


def report(folder: Path, duration: float = 12.0, say: Say = print) -> Path:
    """Compute the report, print the main results, write `report.md` and its figures, and return the path of the page.

    Args:
        folder: Output folder, created if missing.
        duration: Duration of the runs, [s]; 12 s in the paper.
        say: Function that prints a line.
    """
    page = Page(folder, "The paper's demonstrations, computed here")
    page.text(
        "Shah, Saha, Dutt, *Modular framework for dynamic modeling and analyses of legged robots* (2012). Robots, "
        "gaits, ground and gains are the paper's, completed from the authors' toolbox; see "
        "`docs/reference/paper.md`. What the paper's figures show is taken from their captions and the text, since its "
        "pictures were not at hand."
    )
    architecture(page, say)
    say("Simulating")
    biped = run_demonstration(robots.planar_biped(), controllers.paper_walk(), duration, say)
    quadruped = run_demonstration(robots.spatial_quadruped(), controllers.paper_trot(), duration, say)
    results = run_table([biped, quadruped])
    say(f"\n{results.text()}\n")
    page.heading("Walking and trotting")
    page.table(results)
    used = biped.runs["computed-torque"]
    page.text(f"Made with legged {__version__}: {used.backend}, {used.integrator}.")
    _biped_figures(page, biped)
    _quadruped_figures(page, quadruped)
    _after(page, biped, quadruped)
    _references(page, biped, say)
    _stiff_floor(page, duration * 5 / 3, say)
    _counts(page, say)
    _branches(page, say)
    comparisons = _times(page, biped, quadruped, say)
    _contradictions(page, biped, comparisons, say)
    _balance(page, duration, say)
    _moving(page, biped, quadruped)
    path = page.write()
    say(f"report: {path}\nfigures: {folder / 'figures'}, {len(page.figures)} of them")
    say(f"animations, for a browser: {folder / 'animations'}\nruns, for legged.Run.load: {folder / 'runs'}")
    return path


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


def run_table(demonstrations: list[Demonstration]) -> Table:
    """Return the main results of each run as a table."""
    rows = []
    for shown in demonstrations:
        for name, run in shown.runs.items():
            early, height = run.times <= COMPARED_UNTIL, run.base.position[:, 2]
            rows.append(
                (
                    f"{shown.robot.name}, {name}",
                    f"{run.duration:.2f}" + (", fell" if run.ended else ""),
                    f"{run.base.position[-1, 0] - run.base.position[0, 0]:.3f}",
                    f"{height.min():.3f} to {height.max():.3f}",
                    f"{np.degrees(lean(run).max()):.1f}",
                    f"{np.degrees(joint_error(run)[early].max()):.0e}",
                    f"{np.degrees(joint_error(run).max()):.0e}",
                    f"{run.energy_drift:.0e}",
                )
            )
    header = (
        "robot and controller",
        "upright [s]",
        "distance [m]",
        "base height [m]",
        "lean [deg]",
        f"error to {COMPARED_UNTIL:g} s",
        "to end [deg]",
        "energy drift [J]",
    )
    notes = (
        f"Error: the largest of any joint against its reference, in the first {COMPARED_UNTIL:g} s and to the end.",
        "The gaits plan 0.3 m/s. Controller none replays the torques of the inverse dynamics without feedback.",
    )
    return Table("Runs on the authors' ground", header, tuple(rows), notes)


def _biped_figures(page: Page, biped: Demonstration) -> None:
    page.heading("Planar biped: Figures 11 to 14")
    page.text("**Figure 11.** The paper: six curves from inverse kinematics, both legs alike, half a cycle apart.")
    page.figure(plots.figure_11(biped.gait), "figure-11-biped-references", "Figure 11, computed here")
    none = biped.runs["none"]
    page.text(
        "**Figure 12.** The paper: without control the motion is uncontrollable after 1 s. Here the largest joint "
        f"error passes {LEFT:g} degrees at {biped.left_at:.2f} s, and {none.ended or 'the biped did not fall'}."
    )
    leg = ("a_hip", "a_knee", "a_ankle")
    page.figure(plots.figure_12(none, leg), "figure-12-biped-no-control", "Figure 12, computed here")
    run = biped.runs["computed-torque"]
    page.text(
        "**Figure 13.** The paper: the trunk moves forward in a stable periodic motion, shown for 4 s of 12 s. "
        f"Here it stays upright with computed torque for {run.duration:g} s; then x = {run.base.position[-1, 0]:.3f} m."
    )
    page.figure(plots.figure_13(biped.controlled), "figure-13-biped-trunk", "Figure 13, computed here")
    page.text(f"**Figure 14.** The paper: both controllers match closely. Here {_agreement(biped)}.")
    joints = plots.figure_joints(biped.controlled, leg, ("hip", "knee", "ankle"))
    page.figure(joints, "figure-14-biped-joints", "Figure 14, computed here")


def _quadruped_figures(page: Page, quadruped: Demonstration) -> None:
    page.heading("Spatial quadruped: Figures 16 and 17")
    run = quadruped.runs["computed-torque"]
    page.text(
        "**Figure 16.** The paper: the trunk travels forward in a periodic motion. Here it stays up for "
        f"{run.duration:g} s and reaches x = {run.base.position[-1, 0]:.3f} m."
    )
    page.figure(plots.figure_16(quadruped.controlled), "figure-16-quadruped-trunk", "Figure 16, computed here")
    page.text(f"**Figure 17.** The paper: joint angles follow under both laws. Here {_agreement(quadruped)}.")
    names = ("hip abduction", "hip", "knee")
    joints = plots.figure_joints(quadruped.controlled, ("leg4_hip", "leg4_knee"), names)
    page.figure(joints, "figure-17-quadruped-joints", "Figure 17 (leg 4, module M4), computed here")


def _agreement(shown: Demonstration) -> str:
    """Return the difference of the two controllers over the time shown in the paper, as text."""
    one, other = shown.controlled.values()
    n = int(min((one.times <= COMPARED_UNTIL).sum(), (other.times <= COMPARED_UNTIL).sum()))
    apart = np.degrees(np.abs(one.joint_positions[:n] - other.joint_positions[:n]).max())
    return f"they differ by at most {apart:.1g} degrees in the first {one.times[n - 1]:g} s"


def _after(page: Page, *shown: Demonstration) -> None:
    page.heading("Beyond 4 s")
    page.text(
        "Computed torque keeps the joints at their references to the solver's tolerance. Feed-forward control has "
        "feedback of the joints only, and its reference of the trunk is independent of the simulated trunk: small "
        "errors grow from step to step, so that the late motion depends on tolerances. The paper ran 12 s and shows 4."
    )
    errors = {one.robot.name: one.runs for one in shown}
    page.figure(plots.figure_errors(errors), "joint-errors", "Largest joint error over the whole of the runs")


def _references(page: Page, biped: Demonstration, say: Say) -> None:
    robot = robots.spatial_quadruped()
    authors = Scenario(robot, controllers.authors_trot(), "computed-torque", paper_ground(robot), 2.0).run()
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


def _two_rows(t: float, wanted, got, digits: int) -> list[tuple[str, ...]]:
    return [
        (f"{t:g}, theirs", *(f"{value:.{digits}f}" for value in wanted)),
        (f"{t:g}, here", *(f"{value + 0.0:.{digits}f}" for value in got)),
    ]


def _moving(page: Page, *shown: Demonstration) -> None:
    """Write the runs and their animations beside the page."""
    page.heading("Runs and animations")
    lines = []
    for one in shown:
        for law, run in one.runs.items():
            name = f"{one.robot.name}-{law}".replace(" ", "-")
            run.save(page.folder / "runs" / f"{name}.npz")
            animate(run, page.folder / "animations" / f"{name}.html")
            lines.append(f"- [{one.robot.name}, {law}](animations/{name}.html), [data](runs/{name}.npz)")
    page.text("\n".join(lines))


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
    measured = [
        counts.measure(robot) for robot in (robots.planar_biped(), robots.spatial_quadruped(), robots.hexapod())
    ]
    page.heading("Operation counts: Table 1 and Figure 7")
    for table in (counts.family_table(), counts.robot_table(measured)):
        page.table(table)
        say(f"{table.text()}\n")
    page.text(
        "The cubic formula is for a chain; branching, as in a robot with short legs, makes the inertia matrix sparse "
        "and that route cheaper. Featherstone's curve is our reading of the paper's straightforward floating base: six "
        "more joints in front of a fixed one."
    )
    page.figure(figure_7(measured), "figure-07-operations", "Figure 7, computed here")
    page.table(counts.literature_table(12))
    for table in module_counts.module_tables():
        page.table(table)
    page.figure(
        module_counts.module_figure(),
        "operations-modules",
        "Operations of forward dynamics over the number of modules with equally many joints (the paper: independent), "
        "over the number of legs, and depth over the number of legs; dashed: formulas of Table 1",
    )


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
    low = Scenario(robot, printed, "computed-torque", paper_ground(robot), COMPARED_UNTIL).run()
    errors = np.degrees(joint_error(biped.runs["feed-forward"]))
    early = errors[biped.runs["feed-forward"].times <= COMPARED_UNTIL].max()
    lines = [
        f"- **Table 2, acceleration.** In plain NumPy the O(n^3) route takes {plain[0]} (biped) and {plain[1]} "
        "(quadruped) of the time of the recursion, since NumPy's overhead per operation outweighs the operations "
        "saved; compiled, the recursion is faster, as in the paper.",
        "- **Table 2, simulation.** With the stiff solver BDF the route makes little difference, because the solver's "
        "own work dominates; with fixed steps, where the dynamics dominate, the recursion is faster (table above).",
        f"- **Figure 13.** The trunk's motion is not periodic in the {COMPARED_UNTIL:g} s shown: its height changes by "
        f"up to {early_change:.1f} mm from the first cycle (a step of each leg) to the second, and by up to "
        f"{late_change:.1f} mm between the last two; its final speed is {speed:.3f} m/s, where the gait plans "
        f"{gait.stride / gait.period:.3f} m/s.",
        "- **Hip height.** With the hip height as printed in Appendix B, "
        + (f"{low.ended}." if low.ended else f"the biped stays upright for {low.duration:g} s."),
        f"- **Feed-forward over {biped.runs['feed-forward'].duration:g} s.** The largest joint error of the biped is "
        f"{early:.1g} degrees in the first {COMPARED_UNTIL:g} s, which the paper shows, and {errors.max():.1g} "
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
        "-1 cm. `legged balance` runs this experiment with other masses, velocities and robots."
    )
    for table in (balance.event_table(), balance.result_table(), balance.cost_table()):
        page.table(table)
        say(f"{table.text()}\n")
    for name, figure in balance.figures().items():
        page.figure(figure, f"balance-{name}", f"{name.replace('-', ' ').capitalize()}, computed here")
