"""The paper's demonstrations: runs of its robots, their table and figures."""

import re

import numpy as np
import pytest

import controllers
import legged
import robots
from examples.studies.paper import demonstrations as report
from legged.app import scenario, selection
from legged.simulation.plots.pages import Page


def test_the_page_has_figures_and_runs(tmp_path):
    lines, page = [], Page(tmp_path, "The paper's demonstrations")
    path = report.write(page, report.add_demonstrations(page, 0.3, lines.append), lines.append)
    out, text = "\n".join(lines), path.read_text()
    assert path == tmp_path / "report.md" and "planar biped, computed-torque: upright for 0.3 s" in out
    assert f"report: {path}" in out and "Runs on the authors' ground" in text
    shown = re.findall(r"!\[[^]]*\]\((figures/[^)]+)\)", text)
    assert [name[:17] for name in shown] == [f"figures/figure-{n}" for n in (11, 12, 13, 14, 16, 17)]
    linked = re.findall(r"\]\(((?:animations|runs)/[^)]+)\)", text)
    assert len(linked) == 12  # two robots, three laws, an animation and the data of each
    assert all((tmp_path / path).stat().st_size > 1_000 for path in [*shown, *linked])
    assert legged.Run.load(tmp_path / "runs" / "planar-biped-none.npz").duration == pytest.approx(0.3)


def test_the_table_of_runs_states_their_results():
    robot, gait = robots.planar_biped(), controllers.paper_walk()
    shown = report.run_demonstration(robot, gait, 0.3, lambda words: None)
    run = shown.runs["computed-torque"]
    row = dict(zip((table := report.run_table([shown])).header, table.rows[0], strict=True))
    assert float(row["distance [m]"]) == pytest.approx(np.ptp(run.base.position[[0, -1], 0]), abs=5e-4)
    low, high = map(float, row["base height [m]"].split(" to "))
    assert (low, high) == pytest.approx((run.base.position[:, 2].min(), run.base.position[:, 2].max()), abs=5e-4)
    error = np.degrees(np.abs(run.joint_positions - run.joints.reference)).max()
    assert float(row["to end [deg]"]) == pytest.approx(error, rel=0.5)  # printed with one digit


def test_leaving_the_gait_is_seen_in_the_run_without_control():
    shown = report.run_demonstration(robots.planar_biped(), controllers.paper_walk(), 1.6, lambda words: None)
    assert 1.0 < shown.left_at < 1.3
    assert set(shown.controlled) == {"computed-torque", "feed-forward"}


def test_standing_joints_are_not_drawn_as_noise():
    robot = robots.spatial_quadruped()
    floor = selection.select_ground("paper", robot)
    run = scenario.on_gait(robot, controllers.paper_trot(), "feed-forward", floor, 0.3)
    figure = report.figure_joints({"feed-forward": run}, ("leg4_hip",), ("abduction", "hip"))
    assert np.ptp(figure.axes[0].get_ylim()) == pytest.approx(2.0)  # [degree], about a reference that stands still
