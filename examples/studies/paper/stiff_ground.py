"""Runs beyond the paper: walking and trotting on stiff ground, with and without balance, and a push."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

import robots
from controllers import Gait
from legged.app.scenario import on_gait
from legged.app.selection import BALANCED_GAITS
from legged.ground import Ground, realistic_ground
from legged.robot.robot import Robot
from legged.simulation import Push, Run, Stiff
from legged.simulation.plots import pages
from legged.simulation.results.summary import lean
from legged.table import Table

LAWS = {"balanced": pages.BLUE, "computed-torque": pages.RED}
PUSHES = {"planar biped": (0.1, 0.0, 0.0), "spatial quadruped": (0.0, 0.3, 0.0)}
"""Change of velocity of the whole robot by the push, (3,), [m/s], world axes: biped forward, quadruped sideways."""


@dataclass(frozen=True)
class StiffGroundRuns:
    """Runs of a pushed robot on its gait on stiff ground, by controller."""

    robot: Robot
    gait: Gait
    ground: Ground
    push: Push
    runs: dict[str, Run]


def stiff_ground_runs(duration: float = 20.0) -> list[StiffGroundRuns]:
    """Return the runs of biped and quadruped with a push at two fifths of the duration, [s]."""
    shown = []
    for robot, gait in (
        (robots.planar_biped(), BALANCED_GAITS["Walk"]),
        (robots.spatial_quadruped(), BALANCED_GAITS["Trot"]),
    ):
        ground = realistic_ground(robot)
        push = Push("trunk", tuple(robot.mass * np.array(PUSHES[robot.name])), at=0.4 * duration)
        runs = {
            law: on_gait(robot, gait, law, ground, duration, pushes=[push], integrator=Stiff(rtol=1e-4, atol=1e-6))
            for law in LAWS
        }
        shown.append(StiffGroundRuns(robot, gait, ground, push, runs))
    return shown


def stiff_ground_table(shown: list[StiffGroundRuns]) -> Table:
    """Return the main results of the runs as a table."""
    rows = []
    for case in shown:
        plan = case.gait.stride / case.gait.period
        for law, run in case.runs.items():
            speed = float(run.mean_velocity[0])
            rows.append(
                (
                    f"{case.robot.name}, {law}",
                    f"{run.duration:.2f}" + (", fell" if run.ended else ""),
                    f"{speed:.3f}",
                    f"{plan:.3f}",
                    f"{100 * (speed / plan - 1):+.1f} %",
                    f"{np.degrees(lean(run).max()):.2f}",
                    f"{1e3 * _standing_penetration(case):.2f}",
                )
            )
    header = (
        "robot and law",
        "upright [s]",
        "speed [m/s]",
        "planned",
        "off",
        "lean [deg]",
        "standing penetration [mm]",
    )
    pushes = ", ".join(f"{case.robot.name} {np.linalg.norm(case.push.impulse):.2g} N s" for case in shown)
    notes = (
        f"Pushes at t = {shown[0].push.at:g} s on the trunk: {pushes}. Friction coefficient 0.8, with sticking.",
        "balanced: feedback of trunk and foot placement added to the gait (controllers.Balanced).",
        "computed-torque: the controller of the paper alone, on the same gait, ground and push.",
    )
    return Table("On a stiff floor", header, tuple(rows), notes)


def _standing_penetration(case: StiffGroundRuns) -> float:
    """Return the static penetration of the contact points, [m], when half of them carry the weight."""
    weight = case.robot.mass * float(np.linalg.norm(case.robot.gravity))
    return case.ground.normal.rest_penetration(weight / (len(case.robot.contacts) // 2))


def stiff_ground_figure(shown: list[StiffGroundRuns]) -> Figure:
    """Return the figure of distance, beside the planned one, and of lean over time."""
    made = pages.figure(2, len(shown), width=10.0, height=2.6, sharex=True)
    for column, case in enumerate(shown):
        advance, leaning = made.axes[column], made.axes[len(shown) + column]
        for law, run in case.runs.items():
            color = LAWS[law]
            advance.plot(run.times, run.base.position[:, 0] - run.base.position[0, 0], color=color, label=law)
            leaning.plot(run.times, np.degrees(lean(run)), color=color, linewidth=0.9)
        end = case.runs["balanced"].times[-1]
        advance.plot([0, end], [0, end * case.gait.stride / case.gait.period], ":", color="black", label="plan")
        for ax in (advance, leaning):
            ax.axvline(case.push.at, color=pages.GREY, linewidth=1.0, linestyle="--", label="push")
        leaning.set_ylim(0, 1.3 * np.degrees(max(lean(case.runs["balanced"]).max(), 0.08)))
        pages.label(advance, case.robot.name, "", "advance [m]" if column == 0 else "")
        pages.label(leaning, "", "time [s]", "lean of the trunk [degree]" if column == 0 else "")
    return pages.legend(made)
