"""Short versions of the tests of `make bench-contact` run, and rows name the programs that are better."""

import numpy as np
import pytest

from benchmarks.contact.__main__ import CASES, markdown
from benchmarks.contact.growth import candidates, growth_table
from benchmarks.contact.rows import DRAKE, MUJOCO, OURS, Row
from benchmarks.contact.stacks import LEAN, critical_friction


@pytest.mark.parametrize("name", ["feet", pytest.param("arch", marks=pytest.mark.slow)])
def test_a_short_test_runs(name):
    rows = CASES[name](True)
    assert rows and all(MUJOCO in row.values for row in rows)
    assert markdown(rows).count("\n") == len(rows) + 2


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(CASES))
@pytest.mark.filterwarnings("ignore")
def test_every_short_test_runs(name):
    for row in CASES[name](True):
        assert name == "arch" or np.isfinite(row.values[OURS])


def test_a_row_names_the_programs_that_are_better():
    row = Row("t", "q", {OURS: 1.2, MUJOCO: 1.1, DRAKE: float("nan")}, exact=1.0)
    assert row.verdict == "worse than MuJoCo"
    assert Row("t", "q", {OURS: 1.2, MUJOCO: 1.1}, exact=1.0, negligible=0.3).verdict == ""
    assert Row("t", "q", {OURS: float("nan"), MUJOCO: 1.1}).verdict == "worse than MuJoCo"


def test_critical_friction_of_thin_cards():
    assert abs(critical_friction() / (0.5 * np.tan(np.radians(LEAN))) - 1.0) < 0.06  # cards without thickness


@pytest.mark.slow
def test_the_table_of_growth_has_a_row_and_a_figure_for_numbers_of_boxes(tmp_path):
    memory_of_this_process = np.ones(50_000_000)  # 400 MB, which do not count as memory of the new processes
    table = growth_table(tmp_path / "growth.png", (2, 8))
    numbers = [[float(x) for x in line.strip("| ").split(" | ")] for line in table.splitlines()[2:]]
    assert [row[1] for row in numbers] == [candidates(2), candidates(8)] == [12, 144]
    assert all(0.0 < warm < cold < 60.0 and memory < 300.0 for _, _, cold, warm, memory in numbers)
    assert memory_of_this_process.all()
    assert (tmp_path / "growth.png").stat().st_size > 10_000
