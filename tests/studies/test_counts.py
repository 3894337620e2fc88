"""Operation counts of families of robots, and the tables that place them beside the published ones."""

import numpy as np
import pytest

import robots
from examples.studies.operations import counts, module_counts
from examples.studies.operations.counts import figure_7
from legged.app.counts import PAPER, measure


def test_line_is_recovered_with_its_residual():
    assert counts.line([1, 2, 3], [5, 7, 9]) == pytest.approx((2.0, 3.0, 0.0), abs=1e-12)
    assert counts.line([1, 2, 3], [5, 8, 9])[2] == pytest.approx(2 / 3)


def test_costs_of_chains_are_lines_in_n_under_the_papers():
    sizes = (4, 8, 12, 16)
    for floating in (True, False):
        chains = counts.family(counts.TWISTS["perpendicular axes"], floating, sizes)
        for task in ("inverse", "forward"):
            measured = [getattr(m, task) for m in chains]
            slope, _, residual = counts.line(sizes, [c.M + c.A for c in measured])
            M, A = PAPER[task, floating]
            assert residual < 10  # operations, of hundreds: shared factors come and go at the chain's ends
            assert slope < M[1] + A[1]


def test_literature_table_marks_what_was_not_checked():
    rows = {row[0]: row for row in counts.literature_table(6).rows}
    assert rows["inverse, fixed: Hollerbach 1980"][-1] == "unchecked"
    assert rows["forward, floating: Shah, Saha, Dutt 2012"][3:5] == ("1314", "1272")


def test_figure_7_draws_formulas_families_and_robots():
    figure = figure_7([measure(robots.planar_biped())])
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "Shah, Saha, Dutt 2012" in labels and "measured: arbitrary twist" in labels
    assert any("planar biped" in text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize("n", [4, 6, 8, 12, 20, 30])
def test_no_published_count_is_lower(n):
    """In M + A, for chains of arbitrary twist, the general case of the formulas."""
    here = {}
    for row in counts.literature_table(n).rows:
        kind, algorithm = row[0].split(": ", 1)
        total = int(row[3]) + int(row[4])
        if algorithm == "here":
            here[kind] = total
        elif not kind.startswith("solve"):
            assert here[kind] <= total, row[0]


def test_counts_do_not_depend_on_the_number_of_modules_and_grow_linearly_with_the_legs():
    """The sentence below Table 1 of the paper, for robots of equally many joints."""
    counts = [module_counts.star_counts(modules, 24 // modules) for modules in (1, 4, 24)]
    for task in ("inverse", "forward"):
        totals = [sum(getattr(found, task)) for found in counts]
        assert max(totals) - min(totals) < 0.05 * max(totals)  # the first joints of modules differ from the others
    legs = [sum(module_counts.star_counts(number, 2).forward) for number in (3, 5, 7, 9)]
    assert np.ptp(np.diff(legs)) < 0.04 * np.mean(np.diff(legs))  # common factors of the sums at the trunk differ


def test_tables_of_modules_state_counts_and_depth():
    tables = (
        module_counts.module_table(4, (1, 2)),
        module_counts.leg_table(1, (2, 3)),
        module_counts.depth_table(1, (2, 4)),
    )
    assert [len(table.rows) for table in tables] == [3, 3, 2]
    operations, depth = (int(tables[2].rows[1][k]) for k in (1, 2))
    assert operations > depth > 0
