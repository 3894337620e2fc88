"""The report of the algorithms reproduces the statements of the papers about their costs."""

import csv
import io

import pytest
from typer.testing import CliRunner

import robots
from examples.studies.commands import app
from examples.studies.operations import algorithms as field
from examples.studies.operations.algorithm_report import (
    condition_numbers,
    detail_table,
    published_table,
    task_table,
    write,
)
from legged.app.cli import MOVED
from legged.errors import UnknownNameError

SIZES = (2, 4, 8, 12, 16)


def test_every_algorithm_is_counted_and_the_modular_one_is_the_cheapest_of_its_task():
    costs = field.costs(robots.planar_biped())
    every = {(task, name) for task, group in field.ALGORITHMS.items() for name in group}
    singular = ("sparse system", "constraint forces", "divide and conquer, inverse")  # thin rods
    refused = {("forward dynamics", name) for name in singular}
    assert {(cost.task, cost.algorithm) for cost in costs} == every - refused
    for task in field.ALGORITHMS:
        group = {cost.algorithm: cost.M + cost.A for cost in costs if cost.task == task}
        assert "modular" not in group or min(group.values()) == group["modular"]


def test_times_without_forward_dynamics_are_reported_without_their_figure(tmp_path):
    costs = field.costs(robots.chain(2), ["Newton-Euler"], timed=True)
    paths = write(tmp_path, costs, whole=False)
    assert [path.name for path in paths] == ["algorithms.md", "algorithms.csv"]
    assert "time [us]" in paths[0].read_text()


def test_constraint_forces_have_less_depth_and_more_operations_on_a_chain():
    """Featherstone and Fijany 1999."""
    costs = {c.algorithm: c for c in field.costs(robots.chain(12), ["articulated bodies", "constraint"])}
    serial, parallel = costs["articulated bodies"], costs["constraint forces"]
    assert parallel.depth < serial.depth and parallel.M > serial.M


def test_the_inertia_matrix_method_loses_to_recursion_on_chains_of_a_dozen_links():
    """Featherstone 1987: beyond n = 9 on a fixed base, by his counts."""
    crossing = field.crossover("chain, fixed base", "inertia matrix, L^T D L", "articulated bodies", SIZES)
    assert crossing is not None and 6 < crossing < 14


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_branches_favor_the_inertia_matrix_method(base):
    """Featherstone 2005: a branched tree costs it much less than a chain of the same size."""
    (chain, tree) = (
        field.growth(f"{family}, {base} base", "inertia matrix, L^T D L", [16])[0]
        / field.growth(f"{family}, {base} base", "articulated bodies", [16])[0]
        for family in ("chain", "binary tree")
    )
    assert tree < 0.9 * chain


@pytest.mark.slow
def test_the_cubic_method_is_closer_to_the_linear_one_on_a_humanoid_than_on_a_chain_of_its_size():
    """Featherstone 2005: 15 % slower on a 30-DoF humanoid, 2.6 times slower on a chain."""
    ratio = {}
    for robot in (robots.humanoid(), robots.chain(30)):
        costs = {c.algorithm: c.M + c.A for c in field.costs(robot, ["inertia matrix", "articulated bodies"])}
        ratio[robot.name] = costs["inertia matrix, L^T D L"] / costs["articulated bodies"]
    assert ratio["humanoid"] < 1.5 < 2.5 < ratio["30-link chain"]


def test_every_algorithm_costs_less_here_than_its_authors_published():
    """Plain Newton-Euler recursion costs more than Balafoutis and Patel's, which rearranges it."""
    for _, author, _, _, share in published_table(6).rows:
        assert 60 < float(share.rstrip(" %")) < (120 if "Patel 1991" in author else 100)


def test_condition_numbers_grow_with_length_and_shrink_with_branches():
    """Featherstone 2004."""
    short, long, bushy = (robots.tree(4), robots.tree(16), robots.tree(16, branching=2))
    medians = [sorted(condition_numbers(robot, 5))[2] for robot in (short, long, bushy)]
    assert medians[1] > 4 * medians[0] and medians[1] > 2 * medians[2]


def test_data_is_written_as_csv_and_as_a_table(tmp_path):
    costs = field.costs(robots.planar_biped(), ["Newton"])
    rows = list(csv.DictReader(io.StringIO(field.write_costs(tmp_path / "costs", costs).read_text(encoding="utf-8"))))
    assert [row["algorithm"] for row in rows] == ["Newton-Euler", "Newton-Euler, absolute"]
    assert int(rows[0]["M"]) == costs[0].M
    assert "Newton-Euler, absolute" in detail_table(costs).text()
    assert [row[0] for row in task_table(costs, "inverse dynamics").rows] == ["Newton-Euler", "Newton-Euler, absolute"]
    with pytest.raises(UnknownNameError, match="algorithm named 'Lagrange'"):
        field.costs(robots.planar_biped(), ["Lagrange"])


def test_a_timed_algorithm_has_a_time():
    (costs,) = field.costs(robots.planar_biped(), ["composite bodies, absolute"], timed=True)
    assert costs.time is not None and 0 < costs.time < 1e4


def test_every_study_is_a_command_with_an_example():
    names = [command.name or command.callback.__name__.replace("_", "-") for command in app.registered_commands]
    assert len(names) == 13 and set(MOVED) < set(names)
    for name, command in zip(names, app.registered_commands, strict=True):
        assert command.epilog.startswith(f"Example: python -m examples.studies {name}")
        shown = CliRunner().invoke(app, [name, "--help"])
        assert shown.exit_code == 0 and "Usage" in shown.output


def test_the_command_compares_chosen_algorithms_on_chosen_robots(tmp_path):
    line = ["algorithms", "--algorithms", "Newton,modular", "--robots", "chain(2); chain(3)", "--base", "fixed"]
    result = CliRunner().invoke(app, [*line, "-o", str(tmp_path)])
    assert result.exit_code == 0 and "2-link chain, 2 DoF" in result.output and "3-link chain, 3 DoF" in result.output
    assert "Newton-Euler, absolute" in (tmp_path / "algorithms.md").read_text()


@pytest.mark.slow
def test_the_command_of_operations_gives_table_1_and_figure_7(tmp_path):
    result = CliRunner().invoke(app, ["operations", "-o", str(tmp_path)])
    assert result.exit_code == 0 and "164n + 60" in result.output and "300n - 267" in result.output
    assert "measured, arbitrary twist" in result.output and "Hollerbach 1980" in result.output
    assert "forward, divide and conquer" in (tmp_path / "operations.md").read_text()
    assert (tmp_path / "figures" / "figure-07-operations.png").stat().st_size > 10_000
