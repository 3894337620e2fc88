"""Outlined kernels: the same results as plain NumPy, and code whose length does not grow with the robot."""

import gc
import re

import numpy as np
import pytest

import legged
import robots
from legged.compiler import record
from legged.compiler.codegen import selection
from legged.compiler.ir import repeat_while, where
from legged.compiler.ir.annotations import item
from legged.compiler.passes import pipeline
from legged.compiler.passes.call_batching import call_batches
from legged.compiler.passes.outline.templates import outline
from legged.errors import NotFiniteError

FUNCTIONS = ("forward_dynamics", "inverse_dynamics", "floating_inverse_dynamics", "inertia_matrix", "link_poses")


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch, tmp_path):
    """Outline graphs of every size."""
    for name in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
        monkeypatch.setattr(selection, name, 0)
    monkeypatch.setattr(pipeline, "OUTLINE_ALWAYS_NODES", 0)
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))


def _flat(result):
    return np.concatenate([np.ravel(x) for x in (result if isinstance(result, tuple) else (result,))])


def _states(kernel, robot, count, rng):
    """Return random arguments, a row for each state."""
    q = np.array([legged.random_configuration(robot, rng) for _ in range(count)])
    return [q if a.name == "q" else rng.normal(size=(count, *a.shape)) for a in kernel.arguments]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("seed", range(2))
def test_outlined_kernels_equal_plain_numpy_for_one_state_and_for_many(name, seed):
    """Chains of some hundred operations round by 1e-16 each; 19 states are no multiple of a vector's lanes."""
    robot = legged.random_tree(seed, links=5) if seed else robots.centipede(3)
    function = getattr(legged, name)
    kernel = legged.compile(function, robot)
    states = _states(kernel, robot, 19, np.random.default_rng(seed))
    plain = np.array([_flat(function(robot, *state)) for state in zip(*states, strict=True)])
    one = np.array([_flat(kernel(*state)) for state in zip(*states, strict=True)])
    many = kernel(*states)
    many = np.concatenate([x.reshape(19, -1) for x in (many if isinstance(many, tuple) else (many,))], axis=1)
    assert np.abs(one - plain).max() <= 1e-12 * np.abs(plain).max()
    assert np.abs(many - plain).max() <= 1e-12 * np.abs(plain).max()


def test_templates_are_simplified_also_where_a_result_is_an_operand_or_a_constant():
    """Each item has the values a*c + b*c = c*(a + b), d, and 0, of which only the first takes operations."""

    def law(x):
        results = []
        for k in range(6):
            with item(k):
                a, b, c, d, e, f, g, h, i = x[9 * k : 9 * k + 9]
                results += [a * c + b * c, ((d + e) + f) - (e + f), ((g + h) + i) - (g + (h + i))]
        return np.stack(results)

    kernel = legged.compile(law, x=(54,))
    assert len(kernel.graph.nodes) > kernel.counts.total == 6 * 2
    x = np.random.default_rng(0).integers(-9, 9, (19, 54)).astype(float)  # without rounding
    wanted = np.array([law(y) for y in x])
    assert np.array_equal(kernel(x), wanted) and np.array_equal([kernel(y) for y in x], wanted)
    module = selection.single_state_module(kernel.graph)
    operations = re.findall(r"%v\d+ = (fadd|fsub|fmul|fdiv) ", module)
    assert set(operations) == {"fadd", "fmul"} and operations.count("fadd") == operations.count("fmul"), operations


def test_alike_legs_share_a_bundle_for_one_state():
    """The two legs of the head differ from the six behind it, which fill a bundle of four lanes."""
    graph = legged.compile(legged.forward_dynamics, robots.centipede(4)).graph
    sections = outline(graph, list(call_batches(graph)), 4)
    rows = [bundle for section in sections for bundle in section.bundles if bundle.lanes == 4]
    modules = [{graph.nodes[s.nodes[0] - graph.input_size].label.module for s in row.segments} for row in rows]
    assert max(map(len, modules)) == 4


@pytest.mark.parametrize("signs", [(1, -1, 1), (-1, 1, 1), (-1, -1, -1)])
def test_signs_of_constants_do_not_change_the_operations(signs):
    """Bodies on the left and on the right therefore share a template."""

    def operations(c):
        def law(x, y):
            a = c[0] * x[0] + c[1] * x[1]
            b = (c[2] * x[2] - a) * y[0] - c[0] * (x[1] * y[1])
            return np.array([a, b, c[1] * b - c[2] * y[2]])

        return [node.operation for node in legged.compile(law, x=(3,), y=(3,)).graph.nodes]

    assert operations(np.array([0.3, 0.7, 1.9]) * signs) == operations(np.array([0.3, 0.7, 1.9]))


def test_conditions_reach_across_segments():
    """Memory between segments holds numbers only; a condition is computed again in each segment that needs it."""

    def law(x):
        positive = (x[0] > 0.0) & ~(x[1] > 2.0)
        total = x[0]
        for k in range(100):
            with item(k):
                total = total * 0.9 + where(positive, x[k % 3], 0.25)
        return where(positive, total, -total) + np.sin(total)

    kernel = legged.compile(law, x=(3,))
    rows = np.random.default_rng(1).normal(size=(20, 3)) * 2
    assert kernel(rows) == pytest.approx([law(row) for row in rows], rel=1e-13)
    assert [kernel(row) for row in rows] == pytest.approx([law(row) for row in rows], rel=1e-13)


def test_functions_of_functions_and_constant_results():
    """Nested calls need several batches of calls; results may be constants, arguments and the same value twice."""

    def law(x, y):
        inner = np.sin(x) * 2.0 + y
        outer = np.arctan2(np.cos(inner), 0.5) + np.exp(np.tanh(inner))
        return outer, np.array([0.0, 3.0, 0.0]), x, outer[0], np.zeros((0, 2))

    kernel = legged.compile(law, x=(5,), y=(5,))
    x, y = np.random.default_rng(2).normal(size=(2, 13, 5))
    for k in range(13):
        for outlined, plain in zip(kernel(x[k], y[k]), law(x[k], y[k]), strict=True):
            assert np.shape(outlined) == np.shape(plain)
            assert outlined == pytest.approx(plain, rel=1e-13)
    assert kernel(x, y)[0] == pytest.approx(law(x, y)[0], rel=1e-13)


def test_results_that_are_inputs_and_constants_of_the_same_number():
    """Input 0 and the constant 0.0 are different results, as are input 3 and 3.0."""
    kernel = legged.compile(lambda x: np.array([x[0], x[3], 0.0, 3.0, x[0] * x[3]], dtype=object), x=(4,))
    assert list(kernel(np.array([7.0, 0.0, 0.0, 2.0]))) == [7.0, 2.0, 0.0, 3.0, 14.0]


def test_results_do_not_depend_on_batch_or_threads():
    robot = legged.random_tree(4, links=4)
    kernel = legged.compile(legged.forward_dynamics, robot)
    states = _states(kernel, robot, 3000, np.random.default_rng(0))
    whole = kernel(*states, threads=2)
    assert np.array_equal(whole, kernel(*states, threads=1))
    assert np.array_equal(whole[1000:1013], kernel(*[x[1000:1013] for x in states]))


def test_a_state_without_a_finite_answer_is_named():
    robot = robots.chain(3)
    kernel = legged.compile(legged.inverse_dynamics, robot)
    q, v, vdot = _states(kernel, robot, 21, np.random.default_rng(0))
    v[17, 4] = np.nan
    with pytest.raises(NotFiniteError, match="17"):
        kernel(q, v, vdot)
    with pytest.raises(NotFiniteError):
        kernel(q[17], v[17], vdot[17])


def _code(assembly):
    """Return the instructions of a module, without its tables."""
    return [line for line in assembly.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics", "floating_inverse_dynamics"])
def test_code_for_a_uniform_chain_does_not_grow_with_its_length(name):
    """The first and the last links have templates of their own."""
    short, long = (legged.compile(getattr(legged, name), robots.chain(n, twist=0.7)).graph for n in (20, 50))
    assert len(long.nodes) > 2 * len(short.nodes)
    for program in (selection.single_state_module, selection.batch_module):
        assert len(_code(program(long))) <= 1.02 * len(_code(program(short)))


def test_code_for_the_inertia_matrix_of_a_chain_does_not_grow_though_its_entries_do():
    short, long = (legged.compile(legged.inertia_matrix, robots.chain(n, twist=0.7)).graph for n in (12, 24))
    assert len(long.nodes) > 3 * len(short.nodes)
    assert len(_code(selection.batch_module(long))) <= 1.02 * len(_code(selection.batch_module(short)))


def test_outlining_leaves_no_reference_cycles():
    """The segments of a large graph would otherwise wait for the garbage collector."""
    graph = record(legged.forward_dynamics, {"q": (12,), "v": (11,), "tau": (11,)}, (robots.chain(5, twist=0.7),))
    gc.collect()
    gc.disable()
    try:
        outline(graph, list(call_batches(graph)), 1)
        assert gc.collect() < 20
    finally:
        gc.enable()


def test_a_graph_whose_items_differ_is_not_outlined_to_learn_its_share(monkeypatch):
    """The main kernels of robots on their feet were outlined in vain, which took a twentieth of their start."""

    def unlike(x):
        for k in range(12):
            with item(k):
                for _ in range(k + 1):
                    x = np.sqrt(1.0 + x * x) / (2.0 + x)
        return x

    for name in ("OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
        monkeypatch.setattr(selection, name, 10**6)
    made, inner = [], selection.OutlinedKernelWriter
    monkeypatch.setattr(selection, "OutlinedKernelWriter", lambda *a: (made.append(1), inner(*a))[1])
    graph = record(lambda x: repeat_while(lambda s: np.append(unlike(s[:3]), s[3] - 1.0), x, 5), {"x": (4,)})
    (loop,) = graph.loops
    assert 0.95 < selection._estimated_share(loop.body) <= 1.0
    selection.body_writer(loop, 1)
    selection.kernel_writer(loop.body, 1)
    assert not made
    monkeypatch.setattr(selection, "_ESTIMATE", 1.0)
    selection.body_writer(loop, 1)
    assert len(made) == 1  # the simplified body, whose share is no smaller, is not outlined as well
