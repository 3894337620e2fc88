"""Lookups of constant tables: the same entries in plain NumPy, in graphs and in every kind of machine code."""

import copy
import pickle

import numpy as np
import pytest

import legged
from legged.compiler import LookupTable, compile, depth, record
from legged.compiler.cache import machine_code
from legged.compiler.codegen import selection, tables
from legged.compiler.ir.annotations import item
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.time_loop import Members, Schedule, TimeLoop
from legged.errors import ArgumentError, NotFiniteError, ShapeError

NUMBERS = np.array([3.0, -1.0, 4.0, -1.5, 9.0])
TABLE = LookupTable(NUMBERS)
INDICES = np.array([-np.inf, -1e300, -0.5, 0.0, 0.999, 1.0, 2.5, 4.0, 4.7, 5.0, 1e300, np.inf])
ENTRIES = NUMBERS[[0, 0, 0, 0, 0, 1, 2, 4, 4, 4, 4, 4]]


def read(x):
    """Read the table at an index and between two entries."""
    return np.stack([TABLE(x), TABLE(2.0 * x + 1.0) * x])


def test_plain_lookups_round_down_and_clip():
    np.testing.assert_array_equal(TABLE(INDICES), ENTRIES)
    assert [TABLE(x) for x in INDICES] == ENTRIES.tolist()
    assert TABLE(2) == 4.0 and TABLE(INDICES.reshape(3, 4)).shape == (3, 4)
    assert np.isnan(TABLE(np.nan)) and np.isnan(TABLE(np.array([0.0, np.nan]))).tolist() == [False, True]


@pytest.mark.parametrize("outlined", [False, True])
def test_compiled_lookups_equal_plain_ones_for_one_state_and_for_many(outlined, monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    if outlined:
        for name in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
            monkeypatch.setattr(selection, name, 0)

    def law(x):
        parts = []
        for k in range(len(x)):
            with item(k):  # alike regions, which share a template of an outlined kernel
                parts.append(TABLE(x[k]) + 0.25 * x[k])
        return np.stack(parts)

    finite = np.clip(INDICES, -1e6, 1e6)
    for _ in range(2):  # compiled, and read from the cache folder
        kernel = compile(law, x=len(finite))
        np.testing.assert_array_equal(kernel(finite), ENTRIES + 0.25 * finite)
        many = np.array([np.roll(finite, k) for k in range(19)])
        np.testing.assert_array_equal(kernel(many), TABLE(many) + 0.25 * many)
        del kernel
        machine_code.unload()


def test_a_template_of_outlined_code_may_have_more_lookups_than_are_inlined(monkeypatch, tmp_path):
    """Beyond `tables.MOST_INLINED` a template calls a function of its module, as below a robot on a height map."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    for name in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
        monkeypatch.setattr(selection, name, 0)
    most = tables.MOST_INLINED + 6

    def law(x):
        parts = []
        for k in range(len(x)):
            with item(k):
                parts.append(sum(TABLE(x[k] + 0.1 * j) * (j + 1.0) for j in range(most)))
        return np.stack(parts)

    x = np.linspace(-1.0, 5.0, 12)
    kernel = compile(law, x=len(x))
    np.testing.assert_allclose(kernel(x), law(x), rtol=1e-14)  # sums of 70 terms
    many = np.array([np.roll(x, k) for k in range(19)])
    np.testing.assert_allclose(kernel(many), [law(row) for row in many], rtol=1e-14)


def test_an_index_beyond_every_integer_reads_the_edge():
    kernel = compile(read, x=())
    for x in (1e300, -1e300):
        np.testing.assert_array_equal(kernel(x), read(x))
        np.testing.assert_array_equal(kernel(np.full(9, x)), np.stack([read(x)] * 9))


def test_an_index_that_is_nan_is_an_error():
    """An entry in its place would hide the root of a negative number."""
    kernel = compile(lambda x: TABLE(np.sqrt(x)), x=())
    assert kernel(4.0) == 4.0
    with pytest.raises(NotFiniteError, match=r"sqrt\(-1\)"):
        kernel(-1.0)
    with pytest.raises(NotFiniteError, match="state 3"):
        kernel(np.array([1.0, 2.0, 3.0, -1.0, 5.0, 6.0, 7.0, 8.0, 9.0]))


def test_lookups_are_counted_and_part_of_the_key():
    counts = legged.count(read, x=())
    assert (counts.lookups, counts.multiplications, counts.additions) == (2, 2, 1)
    assert counts.total == 5 and "lookups" in str(counts)
    assert depth(read, x=()) == 4
    same, other = LookupTable(NUMBERS), LookupTable(NUMBERS + 1.0)
    graphs = [record(table, {"x": ()}) for table in (TABLE, same, other)]
    assert graphs[0].digest == graphs[1].digest != graphs[2].digest
    twice = record(lambda x: TABLE(x) - same(x), {"x": ()})
    assert twice.nodes == () and twice.results == (0.0,)  # equal tables are one operation


def test_the_graph_evaluates_simplifies_and_folds_lookups():
    graph = record(read, {"x": ()})
    for x in (-1.0, 0.3, 1.0, 7.0):
        np.testing.assert_array_equal(graph.evaluate(x), read(x))
    factored = simplify(record(lambda x: TABLE(x) * x + TABLE(x) * 3.0, {"x": ()}))
    assert [node.operation.split("_")[0] for node in factored.nodes] == ["gather", "add", "multiply"]
    assert record(lambda x: x + TABLE(1.0), {"x": ()}).nodes[0].arguments == (0, -1.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_the_derivative_is_that_of_the_weights(mode):
    """Linear interpolation: the slope is the difference of neighboring entries, the index has no derivative."""

    def interpolated(x):
        i = np.floor(x)
        return TABLE(i) + (x - i) * (TABLE(i + 1.0) - TABLE(i))

    slope = legged.jacobian(interpolated, mode=mode)
    kernel = compile(slope, x=())
    for x in (0.2, 1.5, 3.9):
        expected = NUMBERS[int(x) + 1] - NUMBERS[int(x)]
        assert slope(x) == expected and kernel(x) == expected
    assert legged.jacobian(TABLE.__call__, mode=mode)(1.5) == 0.0


def test_time_loops_read_tables():
    """A step that adds the entry at the state, run by machine code of one member and of a vector of members."""
    step = TimeLoop.of(lambda clock, parameters, state: (state + 0.1 * TABLE(state), 0.0), 0, 1)
    step_in_python = 1.2
    kernel = compile(lambda state: state + 0.1 * TABLE(state), state=())
    for _ in range(5):
        step_in_python = float(kernel(step_in_python))
    for count in (1, 9):
        members = Members.at(np.full((count, 1), 1.2), 1)
        step.run(members, np.zeros((count, 0)), Schedule(np.array([[[0.0, 0.1, 5.0, 0.0]]]), np.array([0])), threads=1)
        np.testing.assert_array_equal(members.stored[:, 0, 0], step_in_python)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_tables_and_kernels_are_copied(copied):
    assert copied(TABLE)(2.0) == 4.0
    kernel = compile(read, x=())
    again = copied(kernel)
    assert again.graph.digest == kernel.graph.digest
    np.testing.assert_array_equal(again(1.5), read(1.5))


def test_a_table_outlives_the_object_that_it_was_made_of():
    numbers = np.arange(1e5)
    table = LookupTable(numbers)
    kernel = compile(table, x=())
    numbers[:] = -1.0
    del table
    assert kernel(77777.5) == 77777.0


@pytest.mark.parametrize(
    ("numbers", "error", "words"),
    [
        ([], ShapeError, "1 to"),
        ([[1.0]], ShapeError, "must be"),
        ([1.0, np.nan], NotFiniteError, "entry 1"),
        ("abc", ArgumentError, "real numbers"),
    ],
)
def test_numbers_that_are_no_table_are_refused(numbers, error, words):
    with pytest.raises(error, match=words):
        LookupTable(numbers)
