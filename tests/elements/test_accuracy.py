"""The certified accuracy of the algorithms, and that docs/reference/algorithms.md prints what is computed."""

import re

import pytest

from benchmarks.pages.parts import differences
from benchmarks.studies import accuracy

PAGE = accuracy.PAGE.read_text(encoding="utf-8")
ROWS = [(section, name) for section, (_, functions) in accuracy.SECTIONS.items() for name in functions]


def printed(section: str) -> dict[str, float]:
    """Return the bounds of a section as the page prints them."""
    block = PAGE.partition(f"<!-- accuracy: {section} -->")[2].partition("<!-- accuracy: end -->")[0]
    return {name: float(error) for name, error in re.findall(r"^\| `(.*?)` \| (\S+) \|", block, re.MULTILINE)}


def test_every_section_with_tables_of_numerical_algorithms_prints_its_accuracy():
    """The wires are an example with equations of their own; the table of operators compares definitions.

    Closed loops need states on their constraints, which floats have to rounding only: see `test_any_element`.
    """
    headings = [line[3:] for line in PAGE.splitlines() if line.startswith("## ")]
    without = {heading for heading in headings if not any(heading.startswith(section) for section in accuracy.SECTIONS)}
    examples = {"Shape-memory-alloy wires", "Operators and DeNOC matrices", "Closed loops in DeNOC form"}
    assert without == examples
    for section, (_, functions) in accuracy.SECTIONS.items():
        assert set(printed(section)) == set(functions), f"run python -m benchmarks.studies.accuracy --write: {section}"


@pytest.mark.parametrize(
    ("section", "name"), [pytest.param(*row, marks=[pytest.mark.slow] if k % 8 else []) for k, row in enumerate(ROWS)]
)
def test_the_page_prints_the_certified_accuracy(section, name):
    """Sums of small arrays may be added in another order on another machine, which changes a few units of rounding."""
    robot, functions = accuracy.SECTIONS[section]
    interval = accuracy.bound(robot, functions[name])
    assert interval.width < 1e-40  # the bound is that of the floats
    assert interval.error < max(3.0 * printed(section)[name], 4e-16)
    assert interval.error > 1e-18  # of floats: the same numbers would have no error


def test_the_page_prints_the_claims_on_branches_and_the_reduced_models():
    """Counts and the choice of terms may differ by a few on another machine, where sums have other rounding.

    Terms are merged where constants are equal, so that counts of one robot differ by up to 1 %.
    """
    branches = PAGE[PAGE.index("<!-- accuracy: branches") :].partition("<!-- accuracy: end")[0]
    assert differences(branches, accuracy.text_of("branches").partition("<!-- accuracy: end")[0], relative=0.02) == []
    reduced, shown = (
        re.findall(r"\| (\S+ %) \| (\d+), (\d+) \|", text)
        for text in (accuracy.text_of("reduced models"), PAGE.partition("<!-- accuracy: reduced models -->")[2])
    )
    for (tolerance, *ours), (same, *theirs) in zip(reduced, shown, strict=True):
        assert tolerance == same
        assert [int(x) for x in ours] == pytest.approx([int(x) for x in theirs], rel=0.05)
