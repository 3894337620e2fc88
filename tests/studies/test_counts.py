"""Published operation counts, counts of families of robots, and the tables that place them beside each other."""

import numpy as np
import pytest

import robots
from examples.studies.operations import counts, published
from examples.studies.operations.counts import figure_7
from examples.studies.operations.published import Formula
from legged.counting import module_counts
from legged.counting.robot_counts import PAPER, measure


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        (published.PROPOSED_FORWARD_FLOATING, {6: (1314, 1272), 12: (2568, 2478), 30: (6330, 6096)}),
        (published.MCMILLAN_ORIN_LINEAR, {6: (1502, 1361), 12: (2846, 2591), 30: (6878, 6281)}),
        (published.MCMILLAN_ORIN_CUBIC, {6: (1855, 1560), 12: (5049, 4181), 30: (25647, 21116)}),
        (published.PROPOSED_INVERSE_FLOATING, {6: (1044, 1002), 12: (2028, 1938), 30: (4980, 4746)}),
        (published.PROPOSED_FORWARD_FIXED, {6: (1056, 1021), 12: (2310, 2227), 30: (6072, 5845)}),
        (published.FEATHERSTONE_FORWARD, {6: (1533, 1415), 12: (3333, 3089), 30: (8733, 8111)}),
        (published.CUBIC_FIXED, {6: (996, 846), 12: (3176, 2555), 30: (18140, 14162)}),
        (published.PROPOSED_INVERSE_FIXED, {6: (483, 417), 12: (1047, 909), 30: (2739, 2385)}),
        (published.BALAFOUTIS_PATEL, {6: (450, 386), 12: (1008, 872), 30: (2682, 2330)}),
    ],
)
def test_formula_gives_the_tabulated_values(formula: Formula, values: dict[int, tuple[int, int]]) -> None:
    assert {n: formula.at(n) for n in values} == values


@pytest.mark.parametrize(
    ("name", "at_six"),
    [
        ("Hollerbach 1980", (2195, 1719)),
        ("Luh, Walker, Paul 1980", (852, 738)),
        ("Walker, Orin 1982", (800, 595)),
        ("Saha 1999, DeNOC", (676, 527)),
        ("Angeles, Ma, Rojas 1989", (521, 435)),
        ("Khalil, Kleinfinger 1987", (538, 478)),
        ("Balafoutis, Patel, Misra 1988", (489, 421)),
        ("Brandl, Johanni, Otter 1988", (1278, 1122)),
        ("Featherstone 1983", (996, 871)),
        ("Stejskal, Valasek 1996", (1013, 891)),
        ("Saha 2003, DeNOC", (862, 797)),
    ],
)
def test_literature_gives_its_well_known_values_for_six_joints(name: str, at_six: tuple[int, int]) -> None:
    (formula,) = [f for f in published.LITERATURE if f.algorithm == name]
    assert formula.at(6) == at_six


def test_formulas_are_written_as_printed() -> None:
    assert str(published.PROPOSED_INVERSE_FLOATING) == "164n + 60 M, 156n + 66 A"
    assert str(published.MCMILLAN_ORIN_CUBIC) == (
        "n^3/6 + 17.5n^2 + (175 1/3)n + 137 M, n^3/6 + 13n^2 + (160 5/6)n + 91 A"
    )
    assert str(published.FACTOR_AND_SOLVE) == "n^3/6 + 1.5n^2 - 2n/3 M, n^3/6 + n^2 - (1 1/6)n A"


def test_every_formula_says_how_far_it_was_checked() -> None:
    assert {f.status for f in (*published.TABLE_1, *published.LITERATURE)} == set(published.CHECKED)


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
        totals = [sum(getattr(actual, task)) for actual in counts]
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
