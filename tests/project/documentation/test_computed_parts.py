"""Tables and sentences of the documentation that are marked as computed state what their functions compute."""

import re

import pytest

from benchmarks.pages import PARTS
from benchmarks.pages.parts import DOCS, Part, differences, replaced, written

TEXT = """# Title

<!-- computed: first -->

| friction | flight [ms] |
| --- | ---: |
| 0.8 | 225 |

<!-- end -->

<!-- computed: second -->

Errors are 2e-11.

<!-- end -->
"""
FAST = {name: part for name, part in PARTS.items() if not part.slow}
SLOW = {name: part for name, part in PARTS.items() if part.slow}


def test_parts_are_found_and_replaced():
    assert written(TEXT) == {
        "first": "| friction | flight [ms] |\n| --- | ---: |\n| 0.8 | 225 |",
        "second": "Errors are 2e-11.",
    }
    assert written(replaced(TEXT, "second", "None.")) == written(TEXT) | {"second": "None."}


@pytest.mark.parametrize(
    ("old", "new", "tolerances", "count"),
    [
        ("It takes 225 ms\nand 3.", "It takes 225 ms and 3.", (0.0,), 0),
        ("225 and 3", "226 and 3", (0.0,), 1),  # counts are exact
        ("1.46 m/s", "1.47 m/s", (0.0,), 0),  # the last digit
        ("1.46 m/s", "1.41 m/s", (0.0,), 1),
        ("2.1e-11", "5.0e-11", (0.9,), 0),
        ("2.1e-11", "5.0e-10", (0.9,), 1),
        ("1e-13 N", "2e-13 N", (0.0,), 0),
        ("230 ms", "225 ms", (0.05,), 0),
        ("falls", "-", (0.0,), 1),
        ("63, 120", "63", (0.0,), 1),
        ("6.9e-18", "0.0e+00", (0.9, 1e-15), 0),
    ],
)
def test_numbers_are_compared_by_the_tolerance_and_words_exactly(old, new, tolerances, count):
    assert len(differences(old, new, *tolerances)) == count


def test_every_part_stands_once_in_its_page():
    marks = {
        str(path.relative_to(DOCS)): re.findall(r"<!-- computed: ([\w-]+) -->", path.read_text(encoding="utf-8"))
        for path in DOCS.rglob("*.md")
    }
    assert sorted((page, name) for page, names in marks.items() for name in names) == sorted(
        (part.page, name) for name, part in PARTS.items()
    )


def check(name: str, part: Part) -> None:
    stated = written((DOCS / part.page).read_text(encoding="utf-8"))[name]
    assert differences(stated, part.compute(), part.relative, part.absolute) == [], (
        f"run `python -m benchmarks.pages --write {name}`"
    )


@pytest.mark.parametrize("name", FAST)
def test_the_documentation_states_what_is_computed(name):
    check(name, FAST[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_the_documentation_states_what_takes_minutes_to_compute(name):
    check(name, SLOW[name])
