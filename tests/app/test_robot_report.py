"""`legged report ROBOT`, tables as LaTeX and CSV, growth of counts, and the figures of a walk in its table."""

import csv
import re

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.app.report import report_robot
from legged.app.scenario import commanded, on_gait, simulated
from legged.errors import ArgumentError
from legged.ground import Flat, paper_ground
from legged.simulation.results.run_table import heading_velocities, run_table
from legged.table import Table

HOSTILE = ("100 % & a_b", "\\input{x} ~ ^ # $ {y} <z> |")


def test_latex_has_a_cell_per_column_and_escapes_every_special_character():
    latex = Table("A_1 & B", ("what", "[m]"), (HOSTILE, ("[x]", "1")), ("50 % less",)).to_latex()
    body = latex[latex.index("\\toprule") : latex.index("\\bottomrule")]
    rows = [row for row in body.splitlines() if row.endswith(r" \\")]
    assert len(rows) == 3 and all(len(re.findall(r"(?<!\\)&", row)) == 1 for row in rows)
    assert r"100 \% \& a\_b" in latex and r"\textbackslash{}input\{x\}" in latex
    assert not re.search(r"\\input|(?<!\\)[#$]|(?<!\\)%", latex)
    assert any(row.startswith("{}[x]") for row in rows), "a bracket behind a line break would be its argument"
    assert latex.count("{tabular}") == 2 and r"\caption{A\_1 \& B}" in latex and r"50 \% less" in latex


def test_csv_has_the_header_and_the_rows(tmp_path):
    path = Table("T", ("what", "n"), (("a, b", "1"), HOSTILE)).to_csv(tmp_path / "t")
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["what", "n"], ["a, b", "1"], list(HOSTILE)]


def test_growth_counts_each_size_and_fits_the_exponent():
    """The inertia matrix of a chain takes O(n^2) operations, the recursion O(n) with a constant, thus below 1."""
    functions = {"inertia": legged.inertia_matrix, "forward": legged.forward_dynamics}
    growth = legged.count_growth(functions, robots.chain, [8, 16, 32])
    assert growth.counts["forward"][1] == legged.count(legged.forward_dynamics, robots.chain(16))
    assert 1.8 < growth.exponents["inertia"] < 2.0 and 0.9 < growth.exponents["forward"] < 1.0
    assert growth.table.rows[0][0] == "8" and growth.table.rows[-1][-1] == f"{growth.exponents['forward']:.2f}"
    axes = growth.plot().axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log") and len(axes.lines) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((legged.forward_dynamics, robots.chain, [4]), "two numbers that increase"),
        ((legged.forward_dynamics, robots.chain, [4, 4]), "two numbers that increase"),
        ((legged.forward_dynamics, lambda n: n, [1, 2]), r"build\(1\) must be a Robot"),
        (({}, robots.chain, [1, 2]), "at least one function"),
    ],
)
def test_growth_refuses_what_it_cannot_count(arguments, words):
    with pytest.raises(ArgumentError, match=words):
        legged.count_growth(*arguments)


def test_report_of_a_robot_has_its_parts(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("import robots\nrobot = robots.spatial_quadruped()\n")
    folder = tmp_path / "out"
    said = []
    page = report_robot(f"{mine}:robot", folder, 0.3, say=said.append).read_text()
    for heading in ("Modules", "Conditioning", "Operations", "Walk"):
        assert f"## {heading}" in page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (folder / link).is_file(), link
    assert "distance, sideways" in page
    names = {path.name for path in (folder / "tables").iterdir()}
    assert {"kinematic-modules.csv", "kinematic-modules.tex"} <= names
    assert len(names) == 2 * page.count("\n\n**"), "each table of the page as CSV and LaTeX"


def test_report_says_why_a_robot_does_not_walk(tmp_path):
    page = report_robot("chain(2)", tmp_path, 0.2, say=lambda line: None).read_text()
    assert "a walk needs at least two legs" in page
    summary = page.split("\n\n")[1].split("  \n")  # lines of one paragraph
    assert [line.split()[-1] for line in summary] == ["kg", "8", "none"]


def test_the_table_of_a_walk_shows_the_command_beside_what_was_reached():
    """A walk starts from rest, so that its mean speed is below the command that it reaches."""
    law, options = commanded("trot", (0.4, 0.0, 0.3), Flat())
    run = simulated(robots.spatial_quadruped(), law, until=3.0, **options)
    rows = dict(run_table(run, command=(0.4, 0.0, 0.3)).rows)
    assert rows["commanded: forward, left, turn"] == "0.400 m/s, 0.000 m/s, 0.300 rad/s"
    forward, left, turn = (float(x) for x in re.findall(r"-?\d+\.\d+", rows["reached in the last 1.5 s"]))
    assert abs(forward - 0.4) < 0.02 and abs(left) < 0.02 and abs(turn - 0.3) < 0.02  # 5 % of the command
    assert float(rows["mean speed, start included"].split()[0]) < 0.36
    assert "it does not matter" in rows["energy drift"] and "contact residual, largest" in rows
    assert float(rows["cost of transport"]) == pytest.approx(run.cost_of_transport, abs=5e-4)
    assert float(rows["sliding of loaded feet, mean"].split()[0]) < 20.0


def test_velocities_of_the_heading_are_those_of_a_circle():
    """A base on a circle with its heading along the tangent moves forward at constant speed."""
    robot, t = robots.spatial_quadruped(), np.linspace(0.0, 4.0, 401)
    q = np.tile(robot.neutral(), (len(t), 1))
    rate, radius = 2.5, 0.8  # [rad/s], [m]; more than a full turn
    for k, angle in enumerate(rate * t):
        c, s = np.cos(angle), np.sin(angle)
        place = np.array([radius * s, radius * (1.0 - c), 0.4])
        q[k, : robot.base.nq] = robot.base.configuration(place, np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]))
    run = legged.Run.from_motion(robot, t, q)
    # chords are shorter than arcs by (rate dt)^2 / 24
    np.testing.assert_allclose(heading_velocities(run), np.tile([radius * rate, 0.0, rate], (400, 1)), atol=1e-4)


def test_cost_of_transport_is_positive_work_over_weight_and_distance():
    robot = robots.planar_biped()
    run = legged.simulate(
        robot, controllers.ComputedTorque(controllers.Walk()), ground=legged.ground.paper_ground(robot), until=0.5
    )
    power = np.maximum(run.tau * run.v, 0.0).sum(axis=1)
    work = sum((a + b) / 2 * dt for a, b, dt in zip(power[1:], power[:-1], np.diff(run.times), strict=True))
    way = float(np.linalg.norm((run.base.position[-1] - run.base.position[0])[:2]))
    weight = robot.mass * float(np.linalg.norm(robot.gravity))
    assert run.cost_of_transport == pytest.approx(work / (weight * way), rel=1e-12)
    still = legged.Run.from_motion(robot, [0.0, 1.0], np.tile(robot.neutral(), (2, 1)))
    assert np.isnan(still.cost_of_transport)


def test_a_fall_keeps_its_run_and_says_why():
    robot = robots.planar_biped()
    run = on_gait(robot, controllers.paper_walk(), "none", paper_ground(robot), 3.0)
    assert run.ended.startswith("the trunk leaned over") and 1.5 < run.times[-1] < 2.5
    rows = dict(run_table(run).rows)
    assert "the trunk leaned over" in rows["simulated time"]


def test_the_table_of_a_run_has_the_figures_of_a_sliding_block():
    """Without friction it keeps its velocity, while a motor slows down a slider with a contact point in the air."""
    points = {f"{x} {y}": (0.2 * x, 0.1 * y, -0.05) for x in (-1, 1) for y in (-1, 1)}
    builder = legged.RobotBuilder("block", legged.Link("block", legged.box_inertia(2.0, (0.4, 0.2, 0.1)), points))
    slider = legged.Link("slider", legged.point_mass(0.001), {"top": (0.0, 0.0, 0.0)})
    motor = legged.Prismatic("slide", "x", physics=legged.JointPhysics(effort=0.01, speed=4.0))
    robot = builder.add(motor, slider, to="block").build()
    q, v = robot.state(base_position=(0.0, 0.0, 0.05)).q, [0.0, 0.0, 0.0, 0.25, 0.0, 0.0, 1.0]
    options = {"q": q, "v": v, "until": 0.1, "ground": legged.Rigid(friction=0.0)}
    run = legged.simulate(robot, lambda t, q, v, wrenches: np.stack([-0.002 + 0.0 * t]), **options)
    expected = {
        "distance, sideways": "0.025 m, 0.000 m",
        "mean speed, start included": "0.250 m/s",
        "height of the base": "0.0500 to 0.0500 m",
        "largest torque of a motor": "20 % of its limit (slide)",
        "largest speed of a motor": "25 % of its limit (slide)",
        "sliding of loaded feet, mean": "2.5e+02 mm/s",
    }
    assert dict(run.table().rows).items() >= expected.items()


def test_the_table_of_a_run_has_the_work_of_pushes():
    robot = robots.planar_hopper()
    push = legged.Push("trunk", (3.0, 0.0, 0.0), at=0.005)
    for pushes in ((), (push,)):
        run = legged.simulate(robot, q=robot.neutral(), until=0.02, pushes=pushes, fall=False)
        assert dict(run.table().rows).get("work of pushes") == (f"{run.energy.push_work[-1]:.3g} J" if pushes else None)
