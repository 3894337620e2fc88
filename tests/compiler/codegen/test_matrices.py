"""Products with large constant matrices: one operation, with the results of NumPy, in every form of code."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import controllers
import legged
from legged.compiler import compile, count, jacobian, record
from legged.compiler.codegen import selection
from legged.compiler.ir.loops_and_tables import repeat_while
from legged.errors import TraceError
from tests.compiler.codegen.test_c_export import run

RNG = np.random.default_rng(5)
SHAPES = ((40, 50), (128, 48), (131, 9), (3, 200), (17, 33))
"""Shapes whose rows fill vectors exactly and in part."""


def rounding(W: np.ndarray, x: np.ndarray, dtype: str = "float64") -> np.ndarray:
    """Return the largest rounding error of W x: as many roundings as terms, of the sum of their magnitudes."""
    return W.shape[1] * np.finfo(dtype).eps * (np.abs(x) @ np.abs(W).T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_one_state_and_of_many_have_the_same_bits(shape, dtype):
    W, x = RNG.normal(size=shape), RNG.normal(size=(37, shape[1])).astype(dtype)
    kernel = compile(lambda x: (W @ x, x @ W.T, np.dot(W, x)), None, x=shape[1], dtype=dtype)
    assert len(kernel.graph.nodes) == shape[0]  # equal products are one
    many = kernel(x)
    assert (np.abs(many[0] - x @ W.T) <= rounding(W, x, dtype)).all()
    for k, state in enumerate(x):
        assert all((one == all_states[k]).all() for one, all_states in zip(kernel(state), many, strict=True))


def test_products_with_a_traced_matrix():
    W, x = RNG.normal(size=(30, 40)), RNG.normal(size=(40, 3))
    kernel = compile(lambda x: (W @ x, x.T @ W.T), None, x=(40, 3))
    y, transposed = kernel(x)
    assert (np.abs(y - W @ x) <= rounding(W, x.T).T).all() and (transposed == y.T).all()


def test_arguments_may_be_constants_and_other_products():
    W, V = RNG.normal(size=(30, 40)), RNG.normal(size=(20, 30))

    def function(x):
        return V @ np.tanh(W @ np.concatenate([x, np.ones(20)]))

    x = RNG.normal(size=(11, 20))
    wanted = np.array([function(state) for state in x])
    assert compile(function, None, x=20)(x) == pytest.approx(wanted, rel=1e-13, abs=1e-13)
    assert record(function, {"x": (20,)}).evaluate(x[0]) == pytest.approx(wanted[0], rel=1e-13, abs=1e-13)


def test_the_count_is_that_of_the_terms():
    W = RNG.normal(size=(40, 50))
    counts = count(lambda x: W @ x + 1.0, None, x=50)
    assert (counts.multiplications, counts.additions) == (2000, 40 * 49 + 40)
    assert count(lambda x: (W @ x)[3], None, x=50).multiplications == 50
    assert record(lambda x: W @ x, {"x": (50,)}).depth() == 1 + 6  # a product and a tree of additions


def test_small_and_sparse_matrices_stay_single_operations():
    for W in (RNG.normal(size=(10, 20)), np.kron(np.eye(20), np.ones((2, 2)))):
        graph = record(lambda x, W=W: W @ x, {"x": (W.shape[1],)})
        assert not graph.matrices and not any(str(node.operation).startswith("dot_") for node in graph.nodes)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_derivatives_are_products_too(mode):
    """The Jacobian of V tanh(W x) is V diag(1 - tanh^2) W."""
    W, V = RNG.normal(size=(30, 40)), RNG.normal(size=(20, 30))
    x = RNG.normal(size=40)
    kernel = compile(jacobian(lambda x: V @ np.tanh(W @ x), "x", mode), None, x=40)
    assert kernel(x) == pytest.approx(V @ np.diag(1.0 - np.tanh(W @ x) ** 2) @ W, rel=1e-12, abs=1e-12)


def test_the_gradient_of_a_network_is_a_few_operations():
    W, V = RNG.normal(size=(64, 48)), RNG.normal(size=(64, 64))
    graph = record(jacobian(lambda x: np.sum(np.tanh(V @ np.tanh(W @ x))), "x", "reverse"), {"x": (48,)})
    assert len(graph.nodes) < 1000 and len(graph.matrices) == 4  # W, V and their transposes
    x = RNG.normal(size=48)
    inner, outer = np.tanh(W @ x), np.tanh(V @ np.tanh(W @ x))
    assert graph.evaluate(x) == pytest.approx(((1 - outer**2) @ V * (1 - inner**2)) @ W, rel=1e-11, abs=1e-11)


def test_outlined_code_calls_products(monkeypatch):
    W, x = RNG.normal(size=(40, 50)), RNG.normal(size=(11, 50))

    def function(x):
        return np.tanh(W @ x)[:20] * np.sin(x[:20]) + x[20:40] ** 3

    wanted = np.array([function(state) for state in x])
    for limit in ("OUTLINE_NODES", "OUTLINE_BATCH_NODES", "OUTLINE_ALWAYS_NODES"):
        monkeypatch.setattr(selection, limit, 10)
    kernel = compile(function, None, x=50)
    assert kernel(x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert kernel(x[0]) == pytest.approx(wanted[0], rel=1e-12, abs=1e-12)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("precision", ["double", "float"])
def test_products_in_c_are_loops(tmp_path, precision):
    W, x = RNG.normal(size=(40, 50)), RNG.normal(size=50)
    kernel = compile(lambda x: np.sin(W @ (2.0 * x)) + W @ np.concatenate([x[:49], np.ones(1)]), None, x=50)
    answer, (got,) = run(kernel, tmp_path, x, precision=precision)
    error = 3.0 * rounding(W, np.append(x, 1.0)[:50], "float64" if precision == "double" else "float32")
    assert answer == 0 and (np.abs(got - kernel(x)) <= 3.0 * error + 1e-6 * (precision == "float")).all()
    assert (tmp_path / "code.c").read_text().count("for (int j") == 2


def test_networks_in_time_steps():
    """A policy in a simulation gives the motion of its plain function."""
    network = controllers.Network.of_layers(
        [(RNG.normal(size=(32, 17)) * 0.1, np.zeros(32)), (RNG.normal(size=(17, 32)) * 0.1, np.zeros(17))]
    )
    x = RNG.normal(size=(9, 17))
    kernel = compile(lambda x: network(x)[0], None, x=17)
    assert kernel(x) == pytest.approx(np.array([network(state)[0] for state in x]), rel=1e-13, abs=1e-13)


def test_products_are_refused_in_the_step_of_a_loop():
    W = RNG.normal(size=(30, 30))
    with pytest.raises(TraceError, match="step of a loop"):
        record(lambda x: repeat_while(lambda s: W @ s, x, 5), {"x": (30,)})


def test_other_shapes_are_refused_as_by_numpy():
    W = RNG.normal(size=(30, 40))
    with pytest.raises(ValueError, match="mismatch"):
        record(lambda x: W @ x, {"x": (30,)})
    assert legged.compile(lambda x: W @ x, None, x=40)(np.zeros(40)).tolist() == [0.0] * 30
