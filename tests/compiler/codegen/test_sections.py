"""Long kernels of batches in sections, each of which is executed for several vectors of states before the next."""

import numpy as np
import pytest

import legged
from legged.compiler.codegen.kernels import streamed
from legged.compiler.ir import where
from legged.compiler.ir.operations import CONDITIONS
from legged.compiler.passes.scheduling import cut_schedule, depth_first_order
from legged.errors import NotFiniteError
from tests.compiler.codegen.test_targets import AVAILABLE

TOLERANCE = {"float64": 1e-9, "float32": 2e-3}
"""Relative to the largest acceleration: the condition of the inertia matrix times the rounding."""


@pytest.fixture(autouse=True)
def short_sections(monkeypatch, tmp_path):
    """Write all graphs in sections of about 100 nodes, for the longest vectors too, with an empty cache."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    monkeypatch.setattr(streamed, "_SECTION", 100)
    monkeypatch.setattr(streamed, "most_vectors", lambda graph, width, element: min(streamed._VECTORS, 64 // width))
    monkeypatch.setattr("legged.compiler.codegen.selection.most_vectors", streamed.most_vectors)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("target", AVAILABLE)
def test_batches_of_any_size_agree_with_single_states(target, dtype):
    robot = legged.random_tree(731, links=8)
    kernel = legged.compile(legged.forward_dynamics, robot, target=target, dtype=dtype)
    rng = np.random.default_rng(1)
    count = 150  # more than two times eight vectors of eight lanes, and a rest
    q = np.stack([legged.random_configuration(robot, rng) for _ in range(count)]).astype(dtype)
    v, tau = rng.normal(size=(2, count, robot.nv)).astype(dtype)
    single = np.array([kernel(*state) for state in zip(q, v, tau, strict=True)])
    for n in (1, 2, 3, 5, 16, 17, 31, 64, 67, 150):
        np.testing.assert_allclose(
            kernel(q[:n], v[:n], tau[:n]), single[:n], atol=TOLERANCE[dtype] * np.abs(single).max()
        )
    whole = kernel(q, v, tau)
    assert np.array_equal(kernel(q[::-1], v[::-1], tau[::-1]), whole[::-1])
    every = np.repeat(v, 2, axis=0)[::2]  # rows at a distance of two
    assert np.array_equal(kernel(q, every, tau), whole)


@pytest.mark.parametrize("target", AVAILABLE)
def test_conditions_inputs_and_constants_among_results(target):
    """Results are stored in groups, which sections may divide; truth values are never passed between sections."""

    def function(x, y):
        z = x
        for _ in range(15):  # continuous, and errors at most double in seven steps
            z = where(z[::-1] > y, z[::-1] - y, 0.5 * (y - z[::-1])) + 0.1 * np.sin(z)
        return np.concatenate([x[:3], z, np.zeros(3), y[::-1], [1.5]])

    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 77, 9))
    kernel = legged.compile(function, x=9, y=9, target=target)
    np.testing.assert_allclose(kernel(x, y), [function(*row) for row in zip(x, y, strict=True)], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("place", [0, 15, 16, 63, 64, 90, 149])
@pytest.mark.parametrize("target", AVAILABLE)
def test_the_first_state_that_is_not_finite_is_named(target, place):
    def function(x):
        z = x
        for _ in range(30):
            z = np.sqrt(z * z + 1.0) - z[::-1] * 0.1
        return np.concatenate([np.log(x), z])

    x = np.random.default_rng(5).uniform(0.5, 2.0, (150, 12))
    kernel = legged.compile(function, x=12, target=target)
    assert np.isfinite(kernel(x)).all()
    x[place, 3] = x[-1, 2] = 0.0
    with pytest.raises(NotFiniteError, match=rf"\b{place}\b"):
        kernel(x)


def test_sections_contain_all_nodes_in_order_and_no_condition_crosses_a_cut():
    def function(x):
        return sum((np.where(x[k] > x[k - 1], x[k] * x[k - 2], np.sin(x[k])) for k in range(12)), x[0])

    graph = legged.compile(function, x=12).graph
    order = depth_first_order(graph)
    sections = cut_schedule(graph, order, 8)
    assert [i for section in sections for i in section] == order
    assert len(sections) > 2
    for k, section in enumerate(sections):
        earlier = {i for before in sections[:k] for i in before}
        used = {a for i in section for a in graph.nodes[i - graph.input_size].arguments}
        assert not [i for i in used & earlier if graph.nodes[i - graph.input_size].operation in CONDITIONS]
