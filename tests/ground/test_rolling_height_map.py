"""Height maps that move with robots: the surface of `HeightMap`, several robots, and changes under machine code."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import legged
from legged.compiler import ChangingTable, PrecisionError
from legged.errors import ArgumentError, NotFiniteError, ShapeError, TraceError
from legged.ground import HeightMap, RollingHeightMap
from legged.ground.height_map import upward

HEIGHTS = np.random.default_rng(4).uniform(-0.1, 0.2, size=(12, 10))
SPACING = 0.25
X, Y = np.random.default_rng(5).uniform(2 * SPACING, 8 * SPACING, size=(2, 40))


def test_the_surface_is_that_of_a_height_map_wherever_the_grid_is():
    here = HeightMap(HEIGHTS, SPACING)
    for corner in ((0, 0), (5, -7), (-31, 24)):
        moved, entries = RollingHeightMap(HEIGHTS.shape, SPACING), np.array(corner) % HEIGHTS.shape
        moved.write(0, np.roll(HEIGHTS, entries, axis=(0, 1)))
        x, y = X + SPACING * corner[0], Y + SPACING * corner[1]
        np.testing.assert_allclose(moved.height(x, y), here.height(X, Y), atol=1e-12)  # rounding of places
        np.testing.assert_allclose(moved.normal(x, y), here.normal(X, Y), atol=1e-11)


def test_compiled_code_reads_the_map_of_its_robot_as_it_was_written_last():
    terrain = RollingHeightMap(HEIGHTS.shape, SPACING, count=2)
    second = copy.copy(terrain)
    second.robot = 1.0
    kernel = legged.compile(lambda x, y: (terrain.height(x, y), second.height(x, y), second.offset(x, y)), x=(), y=())
    for shift in (0.0, 0.3):
        terrain.write(1, HEIGHTS + shift, np.full((2, *HEIGHTS.shape), shift))
        first, other, offset = kernel(X, Y)
        assert (first == 0.0).all()
        np.testing.assert_allclose(other, HeightMap(HEIGHTS, SPACING).height(X, Y) + shift, atol=1e-14)
        assert (offset == shift).all()


def test_slopes_are_those_of_the_nearest_entry_and_by_default_those_of_the_surface():
    terrain, places = RollingHeightMap(HEIGHTS.shape, SPACING), SPACING * np.array([3.0, 6.0])
    terrain.write(0, HEIGHTS)
    x, y = terrain.slopes(*(places + 0.4 * SPACING))
    np.testing.assert_allclose(upward(x, y), terrain.normal(*places), atol=1e-12)
    terrain.write(0, HEIGHTS, slopes=np.arange(2.0 * HEIGHTS.size).reshape(2, *HEIGHTS.shape))
    assert terrain.slopes(*(places - 0.4 * SPACING)) == [36.0, 156.0]


def test_a_refused_map_changes_nothing():
    terrain = RollingHeightMap(HEIGHTS.shape, SPACING)
    terrain.write(0, HEIGHTS)
    before = terrain.height(X, Y)
    infinite = np.full((2, *HEIGHTS.shape), np.inf)
    for heights, offsets, slopes, error in (
        (HEIGHTS[:-1], None, None, ShapeError),
        (np.where(HEIGHTS > 0.1, np.nan, HEIGHTS), None, None, NotFiniteError),
        (HEIGHTS + 1.0, infinite, None, NotFiniteError),
        (HEIGHTS + 1.0, None, infinite, NotFiniteError),
    ):
        with pytest.raises(error):
            terrain.write(0, heights, offsets, slopes)
    with pytest.raises(ArgumentError, match="robot"):
        terrain.write(1, HEIGHTS + 1.0)
    assert (terrain.height(X, Y) == before).all()


def test_a_table_does_not_get_the_code_of_another_length_from_the_cache(tmp_path):
    """The first table of a process has the same name in all of them, but for its length."""
    program = """
import sys, numpy as np, legged
from legged.compiler import ChangingTable
length = int(sys.argv[1])
table = ChangingTable(np.arange(float(length)))
kernel = legged.compile(lambda x: table(x) + 0.123, x=())
assert kernel(length - 1.0) == length - 1.0 + 0.123
"""
    for length in ("10", "30"):
        command, variables = [sys.executable, "-c", program, length], {**os.environ, "LEGGED_CACHE": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=120)
        assert done.returncode == 0, done.stderr


def test_code_that_would_read_a_copy_of_a_changing_table_is_refused(tmp_path):
    table = ChangingTable([1.0, 2.0])
    assert copy.deepcopy(table) is table and ChangingTable([1.0, 2.0]) != table
    kernel = legged.compile(lambda x: table(x), x=())
    table.numbers[1] = 5.0
    assert kernel(1.0) == 5.0 and table(1.0) == 5.0
    with pytest.raises(TraceError, match="ChangingTable"):
        kernel.to_c(tmp_path / "kernel")
    with pytest.raises(TraceError, match="pickled"):
        pickle.dumps(table)
    with pytest.raises(PrecisionError, match="float64"):
        legged.compile(lambda x: table(x), x=(), dtype="float32")(0.0)
