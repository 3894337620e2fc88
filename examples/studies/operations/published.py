"""Published operation counts as polynomials in n, the number of links without the base.

M counts multiplications and divisions, A additions and subtractions; sines and cosines are not counted. All formulas
are for revolute joints, general inertias and Denavit-Hartenberg transforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from legged.counting.robot_counts import PAPER

Task = Literal["inverse", "forward", "inertia matrix", "solve"]
Coefficients = tuple[Fraction | int, ...]
"""Coefficients of n^0, n^1, n^2, ..."""

CHECKED = {
    "paper": "printed in Table 1 of Shah, Saha, Dutt 2012",
    "quoted": "seen in another publication that quotes it",
    "unchecked": "from memory of the literature, not seen in print for this report",
}
"""Sources of the formulas."""


@dataclass(frozen=True)
class Formula:
    """A published operation count.

    Attributes:
        algorithm: Authors and year.
        task: Computed quantity.
        floating: Whether the base is floating (six degrees of freedom) or fixed.
        M, A: Multiplications and divisions; additions and subtractions.
        status: A key of `CHECKED`.
        remark: Remark for the reader.
    """

    algorithm: str
    task: Task
    floating: bool
    M: Coefficients
    A: Coefficients
    status: str
    remark: str = ""

    def at(self, n: float) -> tuple[float, float]:
        """Return (M, A) for n links."""
        return _value(self.M, n), _value(self.A, n)

    def total(self, n: float) -> float:
        """Return M + A for n links."""
        return sum(self.at(n))

    def __str__(self) -> str:
        return f"{polynomial(self.M)} M, {polynomial(self.A)} A"


def _value(coefficients: Coefficients, n: float) -> float:
    return float(sum(c * n**k for k, c in enumerate(coefficients)))


def polynomial(coefficients: Coefficients) -> str:
    """Return a polynomial in n as text, highest power first."""
    words = ""
    for power in reversed(range(len(coefficients))):
        c = Fraction(coefficients[power])
        if c == 0:
            continue
        variable = {0: "", 1: "n"}.get(power, f"n^{power}")
        sign = ("-" if c < 0 else "") if not words else (" - " if c < 0 else " + ")
        words += sign + _term(abs(c), variable)
    return words or "0"


def _term(c: Fraction, variable: str) -> str:
    if not variable:
        return _number(c)
    if c < 1:
        return f"{'' if c.numerator == 1 else c.numerator}{variable}/{c.denominator}"
    return variable if c == 1 else _number(c) + variable


def _number(c: Fraction) -> str:
    whole, rest = divmod(c.numerator, c.denominator)
    if not rest:
        return str(whole)
    return f"{float(c):g}" if c.denominator == 2 else f"({whole} {rest}/{c.denominator})"


SIXTH = Fraction(1, 6)


def _proposed(task: Literal["inverse", "forward"], floating: bool) -> Formula:
    return Formula("Shah, Saha, Dutt 2012", task, floating, *PAPER[task, floating], "paper")


PROPOSED_INVERSE_FLOATING = _proposed("inverse", True)
PROPOSED_FORWARD_FLOATING = _proposed("forward", True)
PROPOSED_INVERSE_FIXED = _proposed("inverse", False)
PROPOSED_FORWARD_FIXED = _proposed("forward", False)
MCMILLAN_ORIN_LINEAR = Formula("McMillan, Orin 1998, O(n)", "forward", True, (158, 224), (131, 205), "paper")
MCMILLAN_ORIN_CUBIC = Formula(
    "McMillan, Orin 1998, O(n^3)",
    "forward",
    True,
    (137, Fraction(526, 3), Fraction(35, 2), SIXTH),
    (91, Fraction(965, 6), 13, SIXTH),
    "paper",
    "for a chain; branching lowers it",
)
FEATHERSTONE_INVERSE = Formula(
    "Featherstone 1987",
    "inverse",
    False,
    (-68, 130),
    (-56, 101),
    "paper",
    "the paper dates it 2008; it is Featherstone's estimate of 1987",
)
FEATHERSTONE_FORWARD = Formula(
    "Featherstone 1987, articulated bodies",
    "forward",
    False,
    (-267, 300),
    (-259, 279),
    "paper",
    "the paper dates it 2008",
)

TABLE_1 = (
    PROPOSED_INVERSE_FLOATING,
    PROPOSED_FORWARD_FLOATING,
    MCMILLAN_ORIN_LINEAR,
    MCMILLAN_ORIN_CUBIC,
    PROPOSED_INVERSE_FIXED,
    FEATHERSTONE_INVERSE,
    PROPOSED_FORWARD_FIXED,
    FEATHERSTONE_FORWARD,
)
"""Table 1 of the paper."""

BALAFOUTIS_PATEL = Formula("Balafoutis, Patel 1991", "inverse", False, (-108, 93), (-100, 81), "quoted")
CRBA = Formula("composite bodies, Featherstone 2005", "inertia matrix", False, (-32, 22, 10), (-43, 37, 6), "quoted")
FACTOR_AND_SOLVE = Formula(
    "factor and solve",
    "solve",
    False,
    (0, Fraction(-2, 3), Fraction(3, 2), SIXTH),
    (0, Fraction(-7, 6), 1, SIXTH),
    "quoted",
)

LITERATURE = (
    Formula("Hollerbach 1980", "inverse", False, (-277, 412), (-201, 320), "unchecked"),
    Formula("Luh, Walker, Paul 1980", "inverse", False, (-48, 150), (-48, 131), "unchecked", "852 M at n = 6 was seen"),
    Formula("Walker, Orin 1982", "inverse", False, (-22, 137), (-11, 101), "unchecked"),
    Formula("Craig, Newton-Euler", "inverse", False, (-99, 126), (-92, 106), "unchecked"),
    Formula("Saha 1999, DeNOC", "inverse", False, (-44, 120), (-55, 97), "unchecked"),
    Formula("Angeles, Ma, Rojas 1989", "inverse", False, (-109, 105), (-105, 90), "unchecked"),
    Formula("Khalil, Kleinfinger 1987", "inverse", False, (-92, 105), (-86, 94), "unchecked"),
    Formula("Balafoutis, Patel, Misra 1988", "inverse", False, (-69, 93), (-65, 81), "unchecked"),
    BALAFOUTIS_PATEL,
    Formula("McMillan, Orin 1995", "forward", False, (-259, 224), (-248, 205), "quoted"),
    Formula("Brandl, Johanni, Otter 1988", "forward", False, (-222, 250), (-198, 220), "unchecked"),
    Formula("Featherstone 1983", "forward", False, (-198, 199), (-173, 174), "unchecked"),
    Formula("Stejskal, Valasek 1996", "forward", False, (-343, 226), (-345, 206), "unchecked"),
    Formula("Saha 2003, DeNOC", "forward", False, (-284, 191), (-325, 187), "unchecked"),
    CRBA,
    FACTOR_AND_SOLVE,
)
"""Fixed-base formulas of the literature beyond Table 1."""


def _sum(name: str, task: Task, parts: tuple[Formula, ...], remark: str) -> Formula:
    def total(letter: str) -> Coefficients:
        longest = max(len(getattr(part, letter)) for part in parts)
        padded = [getattr(part, letter) + (0,) * (longest - len(getattr(part, letter))) for part in parts]
        return tuple(sum(terms, Fraction(0)) for terms in zip(*padded, strict=True))

    return Formula(name, task, False, total("M"), total("A"), "quoted", remark)


CUBIC_FIXED = _sum(
    "Balafoutis, Patel + composite bodies + solve, O(n^3)",
    "forward",
    (BALAFOUTIS_PATEL, CRBA, FACTOR_AND_SOLVE),
    "for a chain; branching lowers it",
)
"""The cheapest tabulated O(n^3) forward dynamics of a fixed-base chain."""


def published(task: Task, floating: bool) -> list[Formula]:
    """Return all formulas for a task, those of Table 1 first."""
    every = (*TABLE_1, *LITERATURE, CUBIC_FIXED)
    return [f for f in every if f.task == task and f.floating == floating]
