"""Operation counts of robots, and the tables of `legged count`."""

import numpy as np

import legged
import robots
from legged.counting import robot_counts as counts
from legged.table import Table


def test_tables_are_aligned_text_and_markdown():
    table = Table("Title", ("what", "number"), (("a", "1"), ("longer", "10")), ("A note.",))
    assert table.text().splitlines()[2:6] == ["what    number", "--------------", "a            1", "longer      10"]
    assert "| longer | 10 |" in table.markdown() and "| --- | ---: |" in table.markdown()


def test_measured_counts_are_those_of_the_algorithms():
    robot = robots.planar_biped()
    measured = counts.measure(robot)
    assert measured.n == 6 and measured.floating
    assert measured.forward == legged.count(legged.forward_dynamics, robot)
    assert measured.inverse == legged.count(legged.floating_inverse_dynamics, robot)
    fixed = counts.measure(robots.chain(3, base=legged.FixedBase()))
    assert not fixed.floating
    assert fixed.inverse == legged.count(legged.inverse_dynamics, robots.chain(3, base=legged.FixedBase()))


def test_robots_are_beside_the_formulas_of_the_paper():
    """Table 1 at n = 6: 164 n + 60 M and 156 n + 66 A of inverse dynamics, 209 n + 60 M and 201 n + 66 A of forward."""
    table = counts.robot_table([counts.measure(robots.planar_biped())])
    assert [(row[2], row[4]) for row in table.rows] == [("1044", "1002"), ("1314", "1272")]


def test_parts_add_up_to_the_whole():
    tables = counts.part_tables(counts.measure(robots.spatial_quadruped()))
    assert [table.title.split(": ")[1] for table in tables] == [
        f"{task} dynamics by {by}" for task in ("inverse", "forward") for by in ("stage", "module")
    ]
    for table in (*tables, counts.closed_table(robots.four_bar())):
        *parts, whole = [[int(cell) for cell in row[1:]] for row in table.rows]
        assert list(np.sum(parts, axis=0)) == whole
