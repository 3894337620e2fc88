"""Optional mechanisms: without them results have the same bits, and their switches refuse unknown names."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import legged
import robots
from legged.compiler import compile, mechanisms
from legged.compiler.codegen import selection
from legged.compiler.codegen.cpython import entry_point
from legged.compiler.runtime.result_memory import LARGE_RESULT, new_array
from legged.errors import LeggedError, UnknownNameError

ROUNDED = {mechanisms.PACKING, mechanisms.OUTLINING}
"""Mechanisms without which other sums are fused with products."""


def run_python(*lines: str, **environment: str) -> str:
    """Return the output of a new Python process."""
    given = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], env=given, check=True, capture_output=True, text=True
    ).stdout


def results(count: int) -> list[np.ndarray]:
    """Return results of forward and inverse dynamics for one state and for many."""
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(0)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(count)])
    v, tau = rng.normal(size=(2, count, robot.nv))
    kernels = [legged.compile(function, robot) for function in (legged.forward_dynamics, legged.inverse_dynamics)]
    return [values for kernel in kernels for values in (kernel(q[0], v[0], tau[0]), kernel(q, v, tau))]


@pytest.mark.parametrize("name", sorted(mechanisms.MECHANISMS.keys() - ROUNDED))
def test_without_a_mechanism_results_have_the_same_bits(name):
    wanted = results(37)
    with mechanisms.without(name):
        actual = results(37)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(actual, wanted, strict=True))


def test_without_outlining_results_agree_up_to_rounding(monkeypatch):
    """Graphs of this size are outlined only here; values that pass between segments are not fused with products."""
    for limit in ("OUTLINE_NODES", "OUTLINE_BATCH_NODES", "OUTLINE_ALWAYS_NODES"):
        monkeypatch.setattr(selection, limit, 100)
    wanted = outlined_results()
    with mechanisms.without(mechanisms.OUTLINING):
        actual = outlined_results()
    for a, b in zip(actual, wanted, strict=True):
        assert a == pytest.approx(b, rel=1e-11, abs=1e-11 * np.abs(b).max())


def outlined_results() -> tuple[np.ndarray, np.ndarray]:
    """Return forward dynamics of a chain, for one state and for many."""
    robot, rng = robots.chain(20, twist=0.7), np.random.default_rng(1)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(11)])
    v, tau = rng.normal(size=(2, 11, robot.nv))
    kernel = legged.compile(legged.forward_dynamics, robot)
    return kernel(q[0], v[0], tau[0]), kernel(q, v, tau)


def test_without_packing_results_agree_up_to_rounding():
    """Other sums are fused with products, since a vector has one operation for all lanes; batches are never packed."""
    wanted = results(3)
    with mechanisms.without(mechanisms.PACKING):
        actual = results(3)
    for k, (a, b) in enumerate(zip(actual, wanted, strict=True)):
        assert np.array_equal(a, b) if k % 2 else a == pytest.approx(b, rel=1e-11, abs=1e-11 * np.abs(b).max())


def test_without_streaming_long_kernels_have_the_same_bits():
    """Forward dynamics of this size is evaluated in sections, for several vectors of states together."""
    robot, rng = robots.chain(14, twist=0.7), np.random.default_rng(2)
    q = np.array([legged.random_configuration(robot, rng) for _ in range(67)])
    v, tau = rng.normal(size=(2, 67, robot.nv))
    wanted = legged.compile(legged.forward_dynamics, robot)(q, v, tau)
    with mechanisms.without(mechanisms.STREAMING):
        assert legged.compile(legged.forward_dynamics, robot)(q, v, tau).tobytes() == wanted.tobytes()


def test_without_result_memory_large_results_are_new_arrays():
    with mechanisms.without(mechanisms.RESULT_MEMORY):
        assert new_array((LARGE_RESULT,), np.dtype(float)).base is None


@pytest.mark.parametrize("given", ["", "entry point", " entry point , packing "])
def test_an_environment_variable_switches_mechanisms_off(given):
    lines = (
        "from legged.compiler import compile",
        "kernel = compile(lambda x: (x + 1.5, x @ x), x=2)",
        "print([float(x.sum()) for x in kernel([1.0, 2.0])], type(kernel.__call__) is type(len))",
    )
    result, entry = run_python(*lines, LEGGED_WITHOUT=given).rsplit(maxsplit=1)
    assert result == "[6.0, 5.0]"
    assert (entry == "True") == (not given and entry_point.is_supported())


def test_the_former_variable_warns(monkeypatch):
    monkeypatch.setenv("LEGGED_CALLS", "ctypes")
    with pytest.warns(DeprecationWarning, match="LEGGED_WITHOUT='entry point'"):
        assert not mechanisms.is_on(mechanisms.ENTRY_POINT)


def test_unknown_mechanisms_are_refused(monkeypatch):
    with pytest.raises(UnknownNameError, match="packing"), mechanisms.without("paking"):
        pass
    monkeypatch.setenv("LEGGED_WITHOUT", "packing, entry")
    with pytest.raises(UnknownNameError, match="entry point"):
        compile(lambda x: x + 1.0, x=2)


@pytest.mark.parametrize("shape", [(4,), (1,), (4, 3), (1, 4), (4, 1), (1, 1)])
def test_the_entry_point_refuses_every_other_shape(shape):
    """Arrays with as many entries, or of as many rows, reach the general call, which broadcasts them or raises."""
    kernel = compile(lambda x: x + 1.0, x=shape)
    kernel(np.ones((3, *shape)))  # loads the code for batches
    assert type(kernel.__call__) is type(len) or not entry_point.is_supported()
    n = int(np.prod(shape))
    others = [
        (),
        (n,),
        (n, 1),
        (1, n),
        (1, n, 1),
        (n, 1, 1),
        (1, 1, n),
        shape[::-1],
        (*shape, 1),
        (1, *shape),
        (0, *shape),
    ]
    for other in others:
        x = np.arange(float(np.prod(other))).reshape(other)
        try:
            wanted = kernel.general(x)
        except LeggedError as error:
            with pytest.raises(type(error)):
                kernel(x)
        else:
            assert np.array_equal(kernel(x), wanted) and kernel(x).shape == wanted.shape


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "implementation", SimpleNamespace(name="pypy")),
        (entry_point, "_NUMPY_VERSIONS", ()),
        (entry_point.sysconfig, "get_config_var", lambda name: 1),  # free-threaded builds
    ],
)
def test_other_interpreters_and_versions_of_numpy_have_no_entry_point(monkeypatch, owner, name, value):
    monkeypatch.setattr(owner, name, value)
    assert not entry_point.is_supported.__wrapped__()


def test_a_process_with_kernels_alive_exits_normally():
    """Where the C library supports it, freed memory is overwritten, so that a read of freed memory is detected."""
    lines = (
        "import builtins, legged",
        "builtins.kept = legged.compile(lambda x: 2.0 * x, None, x=3)",  # outlives the modules
        "builtins.kept([1.0, 2.0, 3.0])",
    )
    run_python(*lines, MALLOC_PERTURB_="255", PYTHONMALLOC="malloc")
