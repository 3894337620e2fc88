"""Loops that end by a condition: `repeat_while` in plain Python, in kernels and in batches."""

import pickle

import numpy as np
import pytest

from legged.compiler import compile as compile_function
from legged.compiler import count, trace
from legged.compiler.codegen import selection
from legged.compiler.ir import LookupTable, call, loops_and_tables, repeat_while, where
from legged.compiler.ir.graph import record
from legged.compiler.ir.operations import CallResult, nested_loops
from legged.compiler.passes.counting import count_graph
from legged.errors import TraceError


def square_root(x, scale):
    """Return (scale sqrt(x), iterations) by Newton's method; `b` is computed before the loop, `c` in each iteration."""
    b = np.sin(scale) * x

    def step(s):
        c = b / np.sin(scale)
        y = 0.5 * (s[0] + c / s[0])
        positive = x > 0.0  # a condition that the loop does not change
        return np.stack([y, s[1] + 1.0, where((np.abs(y - s[0]) > 1e-13 * y) & positive, 1.0, 0.0)])

    state = repeat_while(step, np.stack([x, 0.0 * x, where(x > 0.0, 1.0, 0.0)]), 60)
    return scale * state[0], state[1]


@pytest.fixture(scope="module")
def kernel():
    return compile_function(square_root, None, x=(), scale=())


@pytest.mark.parametrize("x", [1e-3, 1.0, 2.0, 1e6])
def test_a_compiled_loop_equals_the_plain_one(kernel, x):
    root, iterations = kernel(x, 3.0)
    assert abs(root - 3.0 * np.sqrt(x)) < 1e-14 * root
    assert (root, iterations) == square_root(x, 3.0)


def test_a_loop_without_initial_condition_does_nothing(kernel):
    assert kernel(0.0, 2.0) == (0.0, 0.0)


def test_members_of_a_batch_end_by_their_own_conditions(kernel):
    """Seventeen members, two blocks of lanes: bitwise those computed alone."""
    x = np.logspace(-3, 6, 17)
    roots, iterations = kernel(x, np.linspace(1.0, 3.0, 17))
    alone = [kernel(a, b) for a, b in zip(x, np.linspace(1.0, 3.0, 17), strict=True)]
    assert [(r, n) for r, n in zip(roots, iterations, strict=True)] == alone
    assert len(set(iterations)) > 3


def test_the_largest_number_of_iterations_holds():
    def power(x):
        return repeat_while(lambda s: np.stack([2.0 * s[0], s[1]]), np.stack([x, 1.0 + 0.0 * x]), 5)[0]

    assert power(3.0) == compile_function(power, None, x=())(3.0) == 96.0


def test_a_loop_in_an_outlined_kernel(monkeypatch):
    """Two loops after each other, in code of tables for one state and for a batch."""
    for name in ("OUTLINE_NODES", "OUTLINE_ALWAYS_NODES", "OUTLINE_BATCH_NODES"):
        monkeypatch.setattr(selection, name, 0)

    def twice(x, scale):
        root, _ = square_root(x, scale)
        return square_root(root, scale + 1.0)[0]

    code = compile_function(twice, None, x=(), scale=())
    x = np.linspace(0.5, 9.0, 11)
    assert code(2.0, 3.0) == twice(2.0, 3.0)
    np.testing.assert_allclose(code(x, np.full(11, 3.0)), [twice(a, 3.0) for a in x], rtol=1e-15)


def test_a_loop_reads_a_table():
    """The table is read in the loop alone, or before it as well; loops are modules of their own."""
    table = LookupTable([1.0, 2.0, 4.0, 8.0])
    for outside in (0.0, 1.0):

        def total(x, outside=outside):
            start = outside * table(x)
            return repeat_while(lambda s: np.stack([s[0] + table(s[1]), s[1] - 1.0]), np.stack([start, x]), 9)[0]

        kernel, x = compile_function(total, None, x=()), np.array([0.5, 1.5, 3.5])
        expected = [total(number) for number in x]
        assert [kernel(number) for number in x] == kernel(x).tolist() == expected
        assert expected[-1] == 15.0 + 8.0 * outside


def test_graphs_with_loops_are_evaluated_and_have_no_derivative():
    graph = record(square_root, {"x": (), "scale": ()})
    assert graph.evaluate(2.0, 3.0) == square_root(2.0, 3.0)
    assert len(graph.loops) == 1
    with pytest.raises(TraceError, match="has no derivative"):
        from legged.compiler import jacobian

        compile_function(jacobian(lambda x: square_root(x, 2.0)[0]), None, x=())


def test_equal_loops_are_one_operation():
    graph = record(lambda x: square_root(x, 2.0)[0] - square_root(x, 2.0)[0], {"x": ()})
    assert graph.nodes == ()


def test_all_results_of_a_loop_share_one_tuple_of_arguments():
    """Passes read it once: a loop of n results may have thousands of arguments."""

    def function(x):
        state = repeat_while(lambda s: np.append(s[:3] * x, s[3] - 1.0), np.append(x, x[0]), 5)
        return (x + x[0] * x[1]) * x[1] + state[:3]

    for graph in (record(function, {"x": (3,)}), trace(function, {"x": (3,)})):
        for same in (graph, pickle.loads(pickle.dumps(graph))):
            arguments = [node.arguments for node in same.nodes if isinstance(node.operation, CallResult)]
            assert len(arguments) == 3 and len({id(each) for each in arguments}) == 1
            assert same.digest == graph.digest


def test_elementary_functions_inside_a_step_are_refused():
    def wave(x):
        return repeat_while(lambda s: np.stack([np.sin(s[0]), s[1] - 1.0]), np.stack([x, 1.0 + 0.0 * x]), 5)[0]

    with pytest.raises(TraceError, match="cannot contain the operation 'sin'"):
        compile_function(wave, None, x=())


def test_counts_hold_one_iteration_of_each_loop():
    counted = count(square_root, None, x=(), scale=())
    assert counted.divisions == 2
    assert counted.trigonometric == 1


def _sum_of_products(count, x, matrix):
    """Return matrix x + count x, the function that loops call."""
    return matrix @ x + count * x


def fixed_point(x, k):
    """Return the ends of three loops that call a function, which is called after them as well."""
    halves, zeros, ends = np.array([[0.25, k], [k, 0.25]]), np.zeros((2, 2)), [x]

    def shrunk(state):
        return np.append(call(_sum_of_products, 0.5, state[:2], halves), state[2] - 1.0)

    def halved(state):
        return np.append(call(_sum_of_products, 0.5, state[:2], zeros), state[2] - 1.0)

    for step in (shrunk, halved, shrunk):
        ends.append(repeat_while(step, np.append(ends[-1] + 1.0, 3.0 + 0.0 * k), 9 - len(ends))[:2])
    return np.concatenate([*ends[1:], call(_sum_of_products, 0.5, ends[-1], halves)])


@pytest.fixture
def short(monkeypatch):
    """Functions of a few operations are called."""
    monkeypatch.setattr(loops_and_tables, "LONG", 1)


def test_loops_share_the_code_of_a_function_that_they_call(short):
    """It is a module of its own for all calls with alike arguments, for one state, in lanes and in plain Python."""
    graph = record(fixed_point, {"x": (2,), "k": ()})
    functions = [loop for loop in nested_loops(graph) if loop.most == 1]
    assert len(functions) == 2 and len(nested_loops(graph)) == 5  # zeros in the matrix are part of the code
    kernel = compile_function(fixed_point, None, x=(2,), k=())
    x, k = np.random.default_rng(0).normal(size=(11, 2)), np.linspace(-0.2, 0.2, 11)
    expected = np.array([fixed_point(*pair) for pair in zip(x, k, strict=True)])
    np.testing.assert_allclose(kernel(x, k), expected, rtol=1e-14, atol=1e-15)  # products and sums are fused
    np.testing.assert_allclose(kernel(x[3], k[3]), expected[3], rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(graph.evaluate(x[3], k[3]), expected[3], rtol=1e-14, atol=1e-15)


def test_counts_contain_the_functions_that_loops_call(short, monkeypatch):
    """They equal those of functions that are copied into the loops."""
    called = record(fixed_point, {"x": (2,), "k": ()})
    monkeypatch.setattr(loops_and_tables, "LONG", 1000)
    inlined = record(fixed_point, {"x": (2,), "k": ()})
    assert all(loop.most > 1 for loop in nested_loops(inlined)) and any(loop.most == 1 for loop in nested_loops(called))
    assert count_graph(called).kinds() == count_graph(inlined).kinds()


def test_a_function_that_is_called_uses_its_arguments_alone(short):
    def wrong(x):
        return call(lambda _, y: y * x, None, x[:1])

    with pytest.raises(TraceError, match="uses traced values that are not its arguments"):
        record(wrong, {"x": (2,)})
