"""Which traced graphs are cached, and that kernels of cached graphs equal those of traced ones."""

from __future__ import annotations

import marshal
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Kernel, compile, record
from legged.compiler.cache import disk, graphs, keys, machine_code
from legged.compiler.ir import where
from legged.compiler.ir.annotations import module, stage
from legged.compiler.ir.graph import Graph, Node
from legged.compiler.passes.simplify import simplify
from legged.errors import ArgumentError, NotFiniteError, ShapeError, SingularError

FUNCTIONS = (legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix, legged.bias_forces)


@pytest.fixture
def traced(monkeypatch, tmp_path) -> list[object]:
    """The functions that are traced, with an empty cache at the beginning."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    machine_code.unload()
    functions: list[object] = []
    compiling = sys.modules["legged.compiler.compilation"]
    inner = compiling._traced
    monkeypatch.setattr(compiling, "_traced", lambda *a: (functions.append(a[0]), inner(*a))[1])
    return functions


class Pair(NamedTuple):
    """Results."""

    sum: Any
    parts: dict[str, Any]


def law(x, y, gain=2.0):
    """Everything that a result may consist of: labels, a selection, a division, a constant."""
    with stage("1 sums"), module(3):
        total = x / y + gain
    return Pair(total, {"sine": np.sin(total), "both": [where(x > y, x, y), np.float64(0.5), total[0]]})


def cached(graph: Graph, file: str = "cached.graph") -> Graph | None:
    """Return a graph after it was written to the cache folder and read again, None if it was not stored."""
    graphs._write(file, graph)
    return graphs._read(file)


def both_laws() -> tuple[Kernel, Kernel]:
    """Return two kernels of `law`, one of the traced graph and one of the cached graph."""
    graph = simplify(record(law, {"x": (3,), "y": (3,)}))
    again = cached(graph)
    assert again is not None
    return Kernel(graph, "law"), Kernel(again, "law")


def test_a_kernel_of_a_cached_graph_is_the_traced_one(traced, tmp_path):
    cold, warm = both_laws()
    assert "nodes" not in vars(warm.graph)  # decompressed when they are needed
    assert cold.arguments == warm.arguments and cold.graph.digest == warm.graph.digest
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 1.0, 2.0])
    for arguments in ((x, y), (np.stack([x, y]), y), (np.tile(x, (100, 1)), np.tile(y, (100, 1)))):
        a, b = cold(*arguments), warm(*arguments)
        assert type(a) is type(b) is Pair and list(a.parts) == list(b.parts) == ["sine", "both"]
        assert type(b.parts["both"]) is list
        assert np.array_equal(a.sum, b.sum) and np.array_equal(a.parts["sine"], b.parts["sine"])
        assert all(np.array_equal(p, q) for p, q in zip(a.parts["both"], b.parts["both"], strict=True))
    assert repr(cold) == repr(warm)
    assert cold.counts == warm.counts and cold.counts.by_stage.keys() == {"1 sums", None}
    assert warm.counts.by_module.keys() == {3, None}
    for name in ("nodes", "results", "inputs", "outputs", "rebuild", "size", "input_size", "output_size"):
        assert getattr(cold.graph, name) == getattr(warm.graph, name)
    assert all(
        type(a) is type(b)
        for p, q in zip(cold.graph.nodes, warm.graph.nodes, strict=True)
        for a, b in zip(p.arguments, q.arguments, strict=True)
    )
    texts = [kernel.to_c(tmp_path / name, name="law").source.read_text() for name, kernel in (("a", cold), ("b", warm))]
    assert texts[0].replace("a.h", "b.h") == texts[1]


def test_errors_of_a_kernel_of_a_cached_graph_are_those_of_the_traced_one(traced):
    x, y = np.ones(3), np.ones(3)
    for kernel in both_laws():
        with pytest.raises(ShapeError, match=r"law takes 2 arguments \(x, y\), got 1"):
            kernel(x)
        with pytest.raises(ShapeError, match=r"y must be \(3,\), got shape \(2,\)"):
            kernel(x, y[:2])
        with pytest.raises(SingularError, match=r"law divides by zero in stage '1 sums' of module 3: it has no answer"):
            kernel(x, np.zeros(3))
        with pytest.raises(NotFiniteError, match=r"x\[1\] is nan"):
            kernel(np.array([1.0, np.nan, 1.0]), y)


def test_arguments_of_a_robot_keep_their_meaning(traced):
    for _ in range(2):
        robot = robots.planar_biped()
        kernel = compile(legged.forward_dynamics, robot)
        with pytest.raises(ShapeError, match=r"v must be \(9,\), one entry per degree of freedom, got shape \(8,\)"):
            kernel(robot.neutral(), np.zeros(8), np.zeros(9))
    assert len(traced) == 1


@pytest.mark.parametrize("name", ["planar_biped", "spatial_quadruped"])
@pytest.mark.parametrize("function", [legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix])
def test_dynamics_from_the_cache_are_those_traced(traced, name, function):
    robot, rng = getattr(robots, name)(), np.random.default_rng(4)
    kernels = []
    for _ in range(2):
        kernels.append(compile(function, getattr(robots, name)()))
        machine_code.unload()
    assert [isinstance(kernel.graph, graphs.CachedGraph) for kernel in kernels] == [False, True]
    states = [np.tile(robot.neutral(), (9, 1)), rng.normal(size=(9, robot.nv)), rng.normal(size=(9, robot.nv))]
    states = states[: len(kernels[0].arguments)]
    for arguments in ([s[0] for s in states], states):
        assert np.array_equal(kernels[0](*arguments), kernels[1](*arguments))


@pytest.mark.parametrize("k", [0.0, -0.0, 1e-320, 0.1, np.nextafter(0.1, 1.0)])
def test_constants_are_stored_to_the_last_bit(traced, k):
    graph = cached(record(lambda x: np.arctan2(k, x), {"x": ()}))
    assert graph is not None
    assert np.array([Kernel(graph)(-1.0)]).tobytes() == np.array([np.arctan2(k, -1.0)]).tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_graphs_are_stored_without_loss(seed):
    robot = legged.random_tree(seed=seed, links=4)
    graph = simplify(
        record(legged.inverse_dynamics, {"q": (robot.nq,), "v": (robot.nv,), "vdot": (robot.nv,)}, [robot])
    )
    again = graphs.CachedGraph.from_data(marshal.loads(marshal.dumps(graphs._data_of(graph))))
    assert all(getattr(again, name) == getattr(graph, name) for name in ("nodes", "results", "inputs", "outputs"))
    assert again.digest == replace(again).digest == graph.digest


@pytest.mark.parametrize("odd", [np.float64(1.5), np.nan, np.float32(1.5)])
def test_a_graph_that_would_be_read_differently_is_not_stored(traced, odd):
    sound = cached(Graph((("x", ()),), (Node("multiply", (0, 1.5)),), ((),), (1,), next))
    assert sound is not None and sound.results == (1,)
    assert cached(Graph((("x", ()),), (Node("multiply", (0, odd)),), ((),), (1,), next), "other.graph") is None


def test_results_of_a_class_that_other_processes_lack_are_not_stored(traced, monkeypatch):
    class Local(NamedTuple):
        a: Any

    assert cached(record(lambda x: Local(2.0 * x), {"x": ()})) is None
    graph = record(law, {"x": (3,), "y": (3,)})
    assert cached(graph, "law.graph") is not None
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    assert graphs._read("law.graph") is None


def test_a_kernel_outlives_the_files(traced):
    _, warm = both_laws()
    disk.clear()
    assert warm(np.ones((50, 3)), np.ones(3)).sum.shape == (50, 3)  # compiles the program for batches
    assert warm.counts.by_module.keys() == {3, None}


def test_missing_machine_code_is_compiled_from_the_cached_graph(traced):
    robot = robots.planar_biped()
    q = robot.neutral()
    before = compile(legged.inertia_matrix, robot)(q)
    for path in disk.folder().glob(f"*{disk.CODE}"):
        path.unlink()
    machine_code.unload()
    assert np.array_equal(compile(legged.inertia_matrix, robot)(q), before) and len(traced) == 1


def test_a_users_function_is_traced_every_time(traced):
    robot = robots.planar_biped()
    for _ in range(2):
        compile(lambda robot, q: legged.inertia_matrix(robot, q), robot)
    assert len(traced) == 2
    for _ in range(2):
        compile(legged.inertia_matrix, robot)
    assert len(traced) == 3


def test_a_user_function_that_warns_or_counts_does_so_every_time(traced):
    calls = [0.0]

    def counting(x):
        calls[0] += 1.0
        warnings.warn("careful", stacklevel=2)
        return calls[0] * x

    for k in range(3):
        with pytest.warns(UserWarning, match="careful"):
            assert compile(counting, x=())(1.0) == k + 1.0


def test_shapes_and_names_of_arguments_count(traced):
    chain = robots.chain(2)
    for shapes in ({}, {"wrenches": True}, {}):
        compile(legged.inverse_dynamics, chain, **shapes)
    assert len(traced) == 2


@dataclass(frozen=True)
class HeavyBase(legged.FloatingBase):
    """A class of the user's whose methods no key covers."""

    def motion_matrix(self, q: np.ndarray) -> np.ndarray:
        """Return a matrix that differs from that of the base class."""
        return 2.0 * np.eye(6)


def test_instances_of_a_users_class_inside_a_robot_have_no_key(traced):
    robot = robots.planar_biped()
    assert keys.data_key(replace(robot, base=HeavyBase())) is None
    floating = robots.chain(2)
    kernels = [
        compile(legged.inertia_matrix, replace(floating, base=base)) for base in [floating.base, HeavyBase()] * 2
    ]
    assert len(traced) == 3
    assert kernels[1](floating.neutral())[0, 0] != kernels[0](floating.neutral())[0, 0]


def test_the_cache_is_off_or_at_an_absolute_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEGGED_CACHE", "off")
    robot = robots.planar_hopper()
    q = robot.neutral()
    assert legged.compile(legged.inertia_matrix, robot)(q) == pytest.approx(legged.inertia_matrix(robot, q), abs=1e-12)
    assert disk.folder() is None and disk.clear() == 0 and not list(tmp_path.iterdir())
    assert str(disk.describe()) == "LEGGED_CACHE is off: compiled code is not stored on disk"
    for relative in ("OFF", "no", "./cache", "~/cache"):
        machine_code.unload()
        monkeypatch.setenv("LEGGED_CACHE", relative)
        with pytest.raises(ArgumentError, match="LEGGED_CACHE must be the absolute path of a folder, or 'off', got"):
            legged.compile(legged.inertia_matrix, robot)
    assert not list(tmp_path.iterdir())
