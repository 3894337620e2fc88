"""The tests that docs/reference/situations.md names run every day, in as many cases as the page states."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "situations.md").read_text(encoding="utf-8")
KINDS = [
    (int(number), int(cases), int(wrong))
    for number, cases, wrong in re.findall(r"^\| (\d+) \| [^`|][^|]*\| [^|]+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
]
TESTS = [
    (int(number), name, int(cases))
    for number, name, cases in re.findall(r"^\| (\d+) \| `([\w/.:]+)` \| (\d+) \|$", PAGE, re.MULTILINE)
]
EXTRAS = ("lxml", "mujoco", "pinocchio", "trimesh", "viser")


@pytest.fixture(scope="module")
def collected():
    """Return the number of cases that pytest collects of each test of the named files, without those marked slow."""
    for name in EXTRAS:
        pytest.importorskip(name)
    files = sorted({f"tests/{name.partition('::')[0]}" for _, name, _ in TESTS})
    options = ["-p", "no:xdist", "-p", "no:cacheprovider", "--collect-only"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *files], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    nodes = (line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line)
    return Counter(node.removeprefix("tests/") for node in nodes)


def test_every_row_of_both_tables_is_read():
    rows = re.findall(r"^\| \d+ \|", PAGE, re.MULTILINE)
    assert len(rows) == len(KINDS) + len(TESTS)
    assert [number for number, *_ in KINDS] == list(range(1, len(KINDS) + 1))
    assert len({name for _, name, _ in TESTS}) == len(TESTS)


def test_every_kind_has_tests_and_the_sum_of_their_cases_and_no_wrong_result():
    cases = Counter()
    for number, _, count in TESTS:
        cases[number] += count
    assert [(number, cases[number], 0) for number, *_ in KINDS] == KINDS
    (total,) = re.findall(r"All\s+cases\s+together:\s+(\d+)", PAGE)
    assert int(total) == sum(cases.values())


def test_every_test_runs_every_day_in_the_stated_number_of_cases(collected):
    wrong = {name: collected[name] for _, name, count in TESTS if collected[name] != count}
    assert not wrong, f"the page states other numbers of cases than are collected: {wrong}"
