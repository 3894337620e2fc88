"""What `legged balance` prints and writes."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np

from legged.app import balance_figures, style
from legged.app.balance import Experiment
from legged.app.balance_events import NEAR, UPRIGHT, Foot, errors, feet, hit, settled
from legged.app.timing import race
from legged.compiler import Counts, count
from legged.compiler import compile as compile_function
from legged.table import Table

PAPER = {"hit": 0.08, "rises": 0.13, "left_foot_7": 0.38, "right_foot_13": 0.36}
"""Times that the paper tells, [s]: the hit, when both feet begin to rise, when each lands."""
PAPER_RUN, PAPER_LAW = 2066.0, 7e-3
"""What three seconds, and one evaluation of the law, took the paper's computer, [s]."""


class Account:
    """What an experiment comes to.

    Attributes:
        experiment: The experiment. run: Its motion. hit: How the block met the robot, or None. feet: What they did.
    """

    def __init__(self, experiment: Experiment):
        self.experiment, self.run = experiment, experiment.run
        throw = experiment.throw
        self.hit = None if throw is None else hit(self.run, throw.mass, experiment.robot.gravity)
        self.feet: list[Foot] = feet(experiment.robot, self.run, self.hit.time if self.hit else 0.05)

    @property
    def of_paper(self) -> bool:
        """Whether the robot is the paper's."""
        return self.experiment.robot.name == "spatial biped"

    def event_table(self) -> Table:
        """Return when things happened, beside the paper's times."""
        rows = []
        if self.experiment.throw is not None:
            found = f"{self.hit.time:.3f}" if self.hit else "never"
            rows.append(("the block hits the trunk", found, self._paper("hit")))
        for foot in self.feet:
            rows.append((f"{foot.name} begins to rise", _times(foot.rises), self._paper("rises")))
        for foot in self.feet:
            rows.append((f"{foot.name} lands", _times(foot.lands), self._paper(foot.name)))
        words = f"settled within {1e3 * NEAR:g} mm and {np.degrees(UPRIGHT):g} degree"
        when = settled(self.experiment)
        rows.append((words, f"{when:.3f}" if np.isfinite(when) else "never", "-"))
        header = ("", "here [s]", *(["paper [s]"] if self.of_paper else []))
        return Table(str(self.run), header, tuple(row[: len(header)] for row in rows))

    def result_table(self) -> Table:
        """Return how the motion went, in numbers."""
        run, (away, angle) = self.run, errors(self.experiment)
        rows = [("ended", run.ended or f"upright after {run.duration:g} s")]
        if self.hit:
            x, y, z = self.hit.impulse
            rows.append(("impulse of the block", f"({x:.2f}, {y:.2f}, {z:.2f}) N s in {self.hit.touches} touches"))
        for foot in self.feet:
            tips = f"{1e3 * foot.highest:.1f} mm, its lowest point {1e3 * foot.front:.1f} mm"
            rows.append((f"{foot.name} rose", tips))
            slid = f"{1e3 * foot.slip:.2f} mm, in the end at {1e3 * foot.drift:.1g} mm/s"
            rows.append((f"{foot.name} slid", slid))
        rows += [
            ("error of the base in the end", f"{1e3 * away[-1]:.2g} mm, {np.degrees(angle[-1]):.2g} degrees"),
            (
                "contacts' residual, largest, median",
                f"{run.contact_residual.max():.2g}, {np.median(run.contact_residual):.1g} m/s",
            ),
            ("energy drift", f"{run.energy_drift:.1e} J of {run.kinetic.max() + np.ptp(run.potential):.0f} J"),
        ]
        return Table("How it went", ("", ""), tuple(rows), left=2)

    def cost_table(self) -> Table:
        """Return what the motion and the law cost, beside the paper's."""
        took, law = self.experiment.seconds(), self.law_seconds()
        length, counts = self.experiment.duration, self.law_counts
        faster = f"{1e3 * took:.0f} ms, {length / took:.0f} times faster than life"
        slower = f"{PAPER_RUN:.0f} s for 3 s, {PAPER_RUN / 3:.0f} times slower than life"
        rows = [
            (f"{length:g} s of motion, contacts and all", faster, slower),
            ("the law once", f"{1e6 * law:.1f} us", f"{1e3 * PAPER_LAW:.0f} ms"),
            ("its operations", f"{counts.M} M, {counts.A} A", "-"),
        ]
        header = ("", "here", *(["paper"] if self.of_paper else []))
        notes = ("Compiled; without tracing and compiling, which are done once. The law is called from Python.",)
        return Table("Cost", header, tuple(row[: len(header)] for row in rows), notes, left=2)

    def law_seconds(self) -> float:
        """Return what one evaluation of the law takes, compiled and called from Python, [s]."""
        (q, v), robot = self.experiment.start, self.experiment.robot
        kernel = compile_function(self._torque, None, q=robot.nq, v=robot.nv)
        return race([lambda: kernel(q, v)])[0]

    @cached_property
    def law_counts(self) -> Counts:
        """Operations of the law."""
        robot = self.experiment.robot
        return count(self._torque, None, q=robot.nq, v=robot.nv)

    @cached_property
    def _torque(self):
        experiment = self.experiment
        law, robot = experiment.balance(), experiment.robot
        controller, memory = law.start(robot, None, *experiment.start)
        wrenches = np.zeros((len(robot.links), 6))
        return lambda q, v: controller.torque(0.0, 0, q, v, wrenches, memory)

    def write(self, folder: Path) -> list[Path]:
        """Write figures, animations and the run into a folder, and return the paths."""
        marks, run = balance_figures.marks(self.hit, self.feet), self.run
        figures = {
            "figure-3-joint-angles": balance_figures.figure_3(run, marks),
            "figure-4-joint-torques": balance_figures.figure_4(run, marks),
            "figure-5-position": balance_figures.figure_5(self.experiment, marks),
            "figure-6-orientation": balance_figures.figure_6(self.experiment, marks),
            "snapshots": balance_figures.snapshots(run, self._moments()),
            "feet": balance_figures.feet_figure(run, [foot.name for foot in self.feet], marks),
        }
        paths = [style.save(figure, folder / f"{name}.png") for name, figure in figures.items()]
        paths += [run.animate(folder / f"animation.{kind}", fps=20.0, speed=0.5) for kind in ("gif", "html")]
        return [*paths, run.save(folder / "run.npz")]

    def _moments(self) -> list[float]:
        """Return the times of the snapshots, [s]: the start, the hit, some while feet are up, after, and the end."""
        end = self.run.times[-1]
        first = self.hit.time if self.hit else 0.1
        return [t for t in (0.0, first, *(first + dt for dt in (0.06, 0.15, 0.3)), 0.6, 1.0) if t < end] + [end]

    def _paper(self, key: str) -> str:
        return f"{PAPER[key]:.2f}" if key in PAPER else "-"


def _times(times: tuple[float, ...]) -> str:
    return ", ".join(f"{t:.3f}" for t in times) or "never"
