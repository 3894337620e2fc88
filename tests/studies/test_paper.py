"""The report of `make run` on the paper with short runs; `tests/app/test_paper_runs.py` has the runs of full length."""

import re
from functools import partial

import numpy as np
import pytest

import controllers
import legged
import robots
from examples.studies.operations import counts
from examples.studies.paper import demonstrations, report, stiff_ground, timing
from examples.studies.paper.timing import AccelerationTimes
from legged.app import scenario, selection
from legged.counting import module_counts
from legged.simulation.plots.pages import Page

QUICK = "test_cycle_change_is_zero_for_a_periodic_height_and_the_growth_of_another"


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Return (folder, page, printed lines) of a report on short runs, its timings replaced."""
    folder, lines = tmp_path_factory.mktemp("results"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "compare", lambda robot, rounds: AccelerationTimes(robot.name, 3.0, 6.0, 1.0, 2.0, 1.5))
        patch.setattr(timing, "simulation_times", lambda *_, **__: (2.0, 1.0))
        patch.setattr(counts, "family_table", partial(counts.family_table, sizes=(4, 8)))  # the lines are exact
        stars = module_counts.star_counts  # of these, tests/studies/test_counts.py has the counts
        patch.setattr(module_counts, "star_counts", lambda legs, joints: stars(min(legs, 3), min(joints, 2)))
        path = report.report(folder, 0.6, lines.append)
    return folder, path.read_text(), "\n".join(lines)


def test_report_has_every_figure_and_table_of_the_paper(short):
    folder, page, _ = short
    for number in ("07", "11", "12", "13", "14", "16", "17"):
        (path,) = (folder / "figures").glob(f"figure-{number}-*.png")
        assert path.stat().st_size > 10_000
        assert f"figures/{path.name}" in page
    for number in ("3-joint-angles", "4-joint-torques", "5-position", "6-orientation"):
        assert f"figures/balance-figure-{number}.png" in page
    sentences = ("**Table 2, acceleration.**", "**Figure 13.**", "**Hip height.**", "**Feed-forward over 0.6 s.**")
    tables = ("Table 1: operations for n links", "Table 2: time for one acceleration", "On a stiff floor")
    for words in (*tables, *sentences):
        assert words in page


def test_report_shows_only_figures_that_it_wrote(short):
    folder, page, _ = short
    shown = re.findall(r"!\[[^]]*\]\((figures/[^)]+)\)", page)
    modules = [path for path in shown if path.startswith("figures/modules-")]
    assert len(modules) == len(robots.__all__)
    assert len(shown) == len(set(shown)) == 16 + len(modules)  # ten of the paper on modules, six of that on balance
    linked = re.findall(r"\]\(((?:animations|runs)/[^)]+)\)", page)
    assert len(linked) == 12  # two robots, three laws, an animation and the data of each
    assert all((folder / path).exists() for path in [*shown, *linked])


def test_report_prints_its_results_and_where_it_is(short):
    folder, _, printed = short
    assert "planar biped, computed-torque: upright for 0.6 s" in printed
    assert f"report: {folder / 'report.md'}" in printed
    assert "spatial quadruped: kinematic modules" in printed and "four-bar linkage: kinematic modules" in printed
    assert "164n + 60" in printed and "0.5, theirs" in printed


def test_reference_tables_agree_where_the_runs_are_the_same(short):
    _, page, _ = short
    rows = re.findall(r"\| 0.5, (?:theirs|here) \|(.+)\|", page)
    theirs, ours = ([float(cell) for cell in row.split("|")] for row in rows[:2])
    assert theirs == list(report.QUADRUPED[0.5])
    assert ours == pytest.approx(theirs, abs=1e-4)  # [m], [rad]


def test_cycle_change_is_zero_for_a_periodic_height_and_the_growth_of_another():
    robot, gait = robots.planar_biped(), controllers.paper_walk()
    run = legged.simulate(robot, None, until=4.0, ground=None, q=gait.initial_state(robot)[0])
    height = np.sin(np.pi * run.times)  # one cycle in 2 s
    for slope in (0.0, 1e-3):
        run.base.position[:, 2] = height + slope * run.times
        assert report.cycle_change(run, gait, 0.0) == pytest.approx(2.0 * slope, abs=1e-12)


def test_stiff_floor_runs_are_compared_with_the_bare_law(short):
    _, page, _ = short
    table = page.partition("On a stiff floor")[2].partition("Table")[0]
    rows = re.findall(r"^\| ([a-z ]+, [a-z-]+) \|.*\| +([\d.]+) \|$", table, re.M)
    cases = [f"{robot}, {law}" for robot in ("planar biped", "spatial quadruped") for law in stiff_ground.LAWS]
    assert [name for name, _ in rows] == cases
    assert all(0.0 < float(penetration) < 1.0 for _, penetration in rows)  # [mm], standing


def test_the_page_has_figures_and_runs(tmp_path):
    lines, page = [], Page(tmp_path, "The paper's demonstrations")
    path = demonstrations.write(page, demonstrations.add_demonstrations(page, 0.3, lines.append), lines.append)
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
    shown = demonstrations.run_demonstration(robot, gait, 0.3, lambda words: None)
    run = shown.runs["computed-torque"]
    row = dict(zip((table := demonstrations.run_table([shown])).header, table.rows[0], strict=True))
    assert float(row["distance [m]"]) == pytest.approx(np.ptp(run.base.position[[0, -1], 0]), abs=5e-4)
    low, high = map(float, row["base height [m]"].split(" to "))
    assert (low, high) == pytest.approx((run.base.position[:, 2].min(), run.base.position[:, 2].max()), abs=5e-4)
    error = np.degrees(np.abs(run.joint_positions - run.joints.reference)).max()
    assert float(row["to end [deg]"]) == pytest.approx(error, rel=0.5)  # printed with one digit


def test_leaving_the_gait_is_seen_in_the_run_without_control():
    shown = demonstrations.run_demonstration(robots.planar_biped(), controllers.paper_walk(), 1.6, lambda words: None)
    assert 1.0 < shown.left_at < 1.3
    assert set(shown.controlled) == {"computed-torque", "feed-forward"}


def test_standing_joints_are_not_drawn_as_noise():
    robot = robots.spatial_quadruped()
    floor = selection.select_ground("paper", robot)
    run = scenario.on_gait(robot, controllers.paper_trot(), "feed-forward", floor, 0.3)
    figure = demonstrations.figure_joints({"feed-forward": run}, ("leg4_hip",), ("abduction", "hip"))
    assert np.ptp(figure.axes[0].get_ylim()) == pytest.approx(2.0)  # [degree], about a reference that stands still
