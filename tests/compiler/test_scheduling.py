"""FMA fusion and depth-first order: fewer instructions, the same values."""

from __future__ import annotations

import numpy as np
import pytest

from legged.compiler import record
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import evaluate
from legged.compiler.passes.scheduling import FUSED, depth_first_order, fuse_multiply_adds


def sums_of_products(seed: int):
    """Return a function of x (8,) that multiplies, adds and subtracts at random; products may have many uses."""

    def program(x):
        rng = np.random.default_rng(seed)
        values = list(x)
        for _ in range(50):
            a, b = (values[i] for i in rng.integers(len(values), size=2))
            values.append((a * b, a + b, a - b, 0.5 * a)[rng.integers(4)])
        return np.stack(values[-6:])

    return program


def graph_of(seed: int) -> Graph:
    return record(sums_of_products(seed), {"x": (8,)})


def values_of(graph: Graph, x: np.ndarray) -> list[float]:
    """Return the values of all nodes of a graph with fused operations."""
    merged = {
        "fmadd": lambda a, b, c: a * b + c,
        "fmsub": lambda a, b, c: a * b - c,
        "fnmadd": lambda a, b, c: c - a * b,
    }
    values = [float(entry) for entry in x]
    for operation, arguments, _ in graph.nodes:
        numbers = [a if isinstance(a, float) else values[a] for a in arguments]
        values.append(merged[operation](*numbers) if operation in FUSED else evaluate(operation, *numbers))
    return values


def operations(function, **shapes) -> list[str]:
    """Return the names of the operations that a function needs after fusion."""
    graph = fuse_multiply_adds(record(function, shapes))
    return sorted(graph.nodes[i - graph.input_size].operation for i in depth_first_order(graph))


@pytest.mark.parametrize("seed", range(20))
def test_fusion_changes_no_value_and_never_adds_an_operation(seed):
    graph = graph_of(seed)
    merged = fuse_multiply_adds(graph)
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, 8)
    assert values_of(merged, x) == values_of(graph, x)
    assert len(depth_first_order(merged)) <= len(depth_first_order(graph))


def test_one_product_of_a_sum_is_fused():
    assert operations(lambda a, b, c, d: a * b + c * d, a=(), b=(), c=(), d=()) == ["fmadd", "multiply"]
    assert operations(lambda a, b, c: c - a * b, a=(), b=(), c=()) == ["fnmadd"]
    assert operations(lambda a, b, c: a * b - (b + c), a=(), b=(), c=()) == ["add", "fmsub"]


def test_a_product_that_two_sums_use_is_fused_with_both():
    def both(a, b, c, d):
        return (a * b + c) / (d + a * b)

    assert operations(both, a=(), b=(), c=(), d=()) == ["divide", "fmadd", "fmadd"]


def test_a_product_with_other_uses_is_not_fused():
    def needed(a, b, c):
        return np.stack([a * b, a * b + c])

    assert operations(needed, a=(), b=(), c=()) == ["add", "multiply"]
    assert operations(lambda a, b, c: (a * b + c) / (a * b), a=(), b=(), c=()) == ["add", "divide", "multiply"]


@pytest.mark.parametrize("seed", range(20))
def test_depth_first_order_is_a_topological_order_of_the_needed_nodes(seed):
    graph = graph_of(seed)
    needed = {r for r in graph.results if isinstance(r, int)}
    for i in range(graph.input_size + len(graph.nodes) - 1, graph.input_size - 1, -1):
        if i in needed:
            needed.update(a for a in graph.nodes[i - graph.input_size].arguments if isinstance(a, int))
    order = depth_first_order(graph)
    assert sorted(order) == [i for i in sorted(needed) if i >= graph.input_size]
    place = {i: k for k, i in enumerate(order)}
    for i in order:
        for a in graph.nodes[i - graph.input_size].arguments:
            assert not isinstance(a, int) or a < graph.input_size or place[a] < place[i]
