"""The report of `make run` on the paper with short runs; `tests/app/test_paper_runs.py` has the runs of full length."""

import re
from functools import partial

import numpy as np
import pytest

import controllers
import legged
import robots
from examples.studies.operations import counts
from examples.studies.paper import report, stiff_ground, timing
from examples.studies.paper.timing import AccelerationTimes

QUICK = "test_cycle_change_is_zero_for_a_periodic_height_and_the_growth_of_another"


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    """Return (folder, page, printed lines) of a report on short runs, its timings replaced."""
    folder, lines = tmp_path_factory.mktemp("results"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "compare", lambda robot, rounds: AccelerationTimes(robot.name, 3.0, 6.0, 1.0, 2.0, 1.5))
        patch.setattr(timing, "simulation_times", lambda *_, **__: (2.0, 1.0))
        patch.setattr(counts, "family_table", partial(counts.family_table, sizes=(4, 8)))  # the lines are exact
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
