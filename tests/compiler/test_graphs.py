"""Graphs agree with plain NumPy, in the interpreter and as machine code; operation counts; passes on whole graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from legged.compiler import Counts, Kernel, count, module, record, stage
from legged.compiler.ir import where
from legged.compiler.ir.graph import Graph
from legged.compiler.passes.counting import count_graph
from legged.compiler.passes.simplify import simplify

TIE = 0.0137
"""Offset in comparisons: without it the comparison of equal values would depend on rounding."""


def random_program(seed: int):
    """Return a function of x (6,) and y (3,) of random operations whose values have the magnitude of one."""

    def program(x, y):
        rng = np.random.default_rng(seed)
        values = [*x, *y, 0.0, 1.0, -1.0, 0.5]
        for _ in range(60):
            a, b, c = (values[i] for i in rng.integers(len(values), size=3))
            steps = (
                lambda a=a, b=b: 0.5 * (a + b),
                lambda a=a, b=b: 0.5 * (a - b),
                lambda a=a, b=b: a * b,
                lambda a=a, b=b, c=c: 0.5 * (a * b - c * b),
                lambda a=a, b=b: a / (1.0 + b * b),
                lambda a=a: -a,
                lambda a=a: np.sin(a),
                lambda a=a: np.cos(a),
                lambda a=a, b=b: np.arctan2(a, 1.5 + np.abs(b)),
                lambda a=a: np.sqrt(1.0 + a**2) - 1.0,
                lambda a=a: np.tanh(a) + np.exp(-(a**2)) - np.log(2.0 + a**2),
                lambda a=a, b=b: np.maximum(a, b) * np.minimum(a, 0.25),
                lambda a=a, b=b, c=c: where((a < b + TIE) | (c >= 0.3 + TIE), a, c),
                lambda a=a, b=b, c=c: where(~(a <= b - TIE) & (b != c + TIE), 0.5, b),
                lambda a=a: a**3 - np.floor(a + TIE),
            )
            values.append(steps[rng.integers(len(steps))]())
        matrix = np.stack([np.stack(values[-k - 3 : -k]) for k in (1, 4, 7)])
        return matrix @ y, np.stack(values[-5:]), values[-1]

    return program


@pytest.mark.parametrize("seed", range(40))
def test_floats_interpreter_and_machine_code_agree(seed):
    program = random_program(seed)
    rng = np.random.default_rng(seed + 1000)
    graph = record(program, {"x": (6,), "y": (3,)})
    kernel = Kernel(simplify(graph))
    for _ in range(3):
        x, y = rng.uniform(-1, 1, 6), rng.uniform(-1, 1, 3)
        wanted = program(x, y)
        for got in (graph.evaluate(x, y), kernel.graph.evaluate(x, y), kernel(x, y)):
            for a, b in zip(got, wanted, strict=True):
                # 60 steps; few of them amplify an error, by a factor of about 3
                assert a == pytest.approx(b, rel=1e-12, abs=1e-12)


def test_nodes_follow_their_arguments_and_none_is_dead():
    graph = record(random_program(3), {"x": (6,), "y": (3,)})
    used = {a for node in graph.nodes for a in node.arguments if isinstance(a, int)}
    used |= {r for r in graph.results if isinstance(r, int)}
    for i, node in enumerate(graph.nodes, graph.input_size):
        assert i in used
        assert all(a < i for a in node.arguments if isinstance(a, int))
    assert len({repr(node[:2]) for node in graph.nodes}) == len(graph.nodes)


# Structure of the results


class Pair(NamedTuple):
    """A result with names."""

    force: np.ndarray
    energy: float


def test_results_keep_their_structure():
    def function(x):
        return Pair(2.0 * x, x @ x), (x[0], [np.eye(2), 3]), {"a": x}

    pair, (first, (eye, three)), named = record(function, {"x": (2,)}).evaluate([1.0, 2.0])
    assert isinstance(pair, Pair) and pair.force == pytest.approx([2.0, 4.0]) and pair.energy == 5.0
    assert first == 1.0 and eye == pytest.approx(np.eye(2)) and three == 3.0 and named["a"] == pytest.approx([1.0, 2.0])


def test_scalar_arguments_are_scalars():
    graph = record(lambda t: np.sin(t) if np.ndim(t) == 0 else None, {"t": ()})
    assert graph.evaluate(0.5) == np.sin(0.5)


# Counts, by hand


def test_a_product_of_full_matrices():
    counts = count(lambda a, b: a @ b, a=(3, 3), b=(3, 3))
    assert (counts.M, counts.A, counts.total) == (27, 18, 45)


def test_a_cross_product():
    counts = count(np.cross, a=(3,), b=(3,))
    assert (counts.multiplications, counts.additions) == (6, 3)


def test_zeros_and_ones_of_a_rotation_are_folded():
    def turn(angle, x):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ x

    counts = count(turn, angle=(), x=(3,))
    assert counts == Counts(multiplications=4, additions=2, trigonometric=2)


def test_symmetry_saves_the_second_half_of_a_congruence_transformation():
    def congruence(x, s):
        full = np.stack([np.stack([s[0], s[1]]), np.stack([s[1], s[2]])])
        return x.T @ full @ x

    lower_is_upper = count(lambda x, s: congruence(x, s)[[0, 0, 1], [0, 1, 1]], x=(2, 2), s=(3,))
    assert lower_is_upper.M == 8 + 6


def test_every_kind_is_counted():
    counts = count(
        lambda x: (1.0 / x[0], np.sqrt(x[0]), np.exp(x[0]), where(x[0] < x[1], x[0], 0.0), -x[1], abs(x[1])), x=2
    )
    assert counts == Counts(divisions=1, square_roots=1, other=1, comparisons=1, selections=1)


def test_counts_by_stage_and_module_add_up_to_the_whole():
    def function(x):
        total = 0.0
        for k in range(3):
            with stage("1 outward"), module(k):
                total = total + x[k] * x[k]
        with stage("2 inward"):
            return np.sqrt(total) / x[0]

    counts = count(function, x=(3,))
    assert list(counts.by_stage) == ["1 outward", "2 inward"]
    assert counts.by_stage["1 outward"] == Counts(multiplications=3, additions=2)
    assert counts.by_module[None] == Counts(divisions=1, square_roots=1)
    assert list(counts.by_module) == [0, 1, 2, None]
    for parts in (counts.by_stage, counts.by_module):
        assert sum(parts.values(), Counts()) == counts
    assert function(np.ones(3)) == pytest.approx(np.sqrt(3.0))  # the labels have no effect without tracing


def test_counts_add_and_print():
    def function(x):
        with stage("only"):
            return x[0] * x[1] + 1.0

    counts = count(function, x=2)
    both = counts + counts
    assert both.M == 2 and both.by_stage["only"].A == 2
    lines = str(both).splitlines()
    assert lines[0].split() == ["multiplications", "additions"] and lines[-1].split() == ["all", "2", "2"]
    assert lines[1].split() == ["only", "2", "2"]


def test_depth_is_the_longest_chain():
    assert record(lambda x: np.sin(x[0] * x[1]) + x[2], {"x": (3,)}).depth() == 3
    assert record(lambda x: -x, {"x": (3,)}).depth() == 0


# Simplification


def cost(graph: Graph) -> int:
    """Return the number of operations of a graph."""
    return count_graph(graph).total


def test_common_factors_are_factored_out():
    graph = record(lambda a, x: a * x[0] + a * x[1] - 2.0 * (a * x[2]), {"a": (), "x": (3,)})
    assert count_graph(graph).M == 4 and count_graph(simplify(graph)).M == 2
    assert simplify(graph).evaluate(3.0, [1.0, 2.0, 4.0]) == graph.evaluate(3.0, [1.0, 2.0, 4.0]) == -15.0


def test_products_with_other_uses_are_not_factored():
    graph = record(lambda a, x: (a * x[0] + a * x[1], a * x[0], a * x[1]), {"a": (), "x": (2,)})
    assert simplify(graph) is graph


@pytest.mark.parametrize("seed", range(40))
def test_simplification_adds_no_operations(seed):
    graph = record(random_program(seed), {"x": (6,), "y": (3,)})
    simplified = simplify(graph)
    assert cost(simplify(simplified)) <= cost(simplified) <= cost(graph)


def test_long_sums_do_not_exhaust_the_stack():
    x = np.linspace(0.0, 1.0, 3000)
    graph = record(lambda x, y: np.sum(x * np.tile(y, 1000)), {"x": (3000,), "y": (3,)})
    y = np.array([1.0, 2.0, 3.0])
    # 3000 terms, each rounded once or twice
    assert simplify(graph).evaluate(x, y) == pytest.approx(x @ np.tile(y, 1000), rel=1e-12)
