"""Published operation counts, compared with the numbers printed with them."""

import pytest

from examples.studies.operations import published
from examples.studies.operations.published import Formula


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
