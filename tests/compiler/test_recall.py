"""A warm start: kernels that were not traced are the ones that tracing gives."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import legged
import robots
from legged.compiler import Kernel, compile, record
from legged.compiler.cache import disk, graphs
from legged.compiler.ir import where
from legged.compiler.ir.annotations import module, stage
from legged.compiler.ir.graph import Graph, Node
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.stepping import Members, Repeat, Schedule
from legged.errors import NotFiniteError, ShapeError, SingularError


@pytest.fixture
def traced(monkeypatch, tmp_path) -> list[object]:
    """What was traced, with an empty cache to begin with."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_loaded", {})
    functions: list[object] = []
    compiling = sys.modules["legged.compiler.compile"]
    inner = compiling._traced
    monkeypatch.setattr(compiling, "_traced", lambda *a: (functions.append(a[0]), inner(*a))[1])
    return functions


def twice(make: Callable[[], Kernel], traced: list[object]) -> tuple[Kernel, Kernel]:
    """Return a kernel that was traced, and the same one recalled."""
    cold = make()
    count = len(traced)
    disk._loaded.clear()
    warm = make()
    assert count == len(traced) and not isinstance(cold.graph, graphs.Kept) and isinstance(warm.graph, graphs.Kept)
    return cold, warm


class Pair(NamedTuple):
    """Results."""

    sum: Any
    parts: dict[str, Any]


def law(x, y, gain=2.0):
    """Everything that a result may be made of: labels, a choice, a division, a constant."""
    with stage("1 sums"), module(3):
        total = x / y + gain
    return Pair(total, {"sine": np.sin(total), "both": [where(x > y, x, y), np.float64(0.5), total[0]]})


def test_a_recalled_kernel_is_the_traced_one(traced, tmp_path):
    cold, warm = twice(lambda: compile(law, x=3, y=3), traced)
    assert "nodes" not in vars(warm.graph)  # unpacked when they are asked for
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
    for name in ("nodes", "results", "inputs", "outputs", "rebuild", "size", "input_size", "output_size"):
        assert getattr(cold.graph, name) == getattr(warm.graph, name)
    assert all(
        type(a) is type(b)
        for p, q in zip(cold.graph.nodes, warm.graph.nodes, strict=True)
        for a, b in zip(p.arguments, q.arguments, strict=True)
    )
    texts = [kernel.to_c(tmp_path / name, name="law").source.read_text() for name, kernel in (("a", cold), ("b", warm))]
    assert texts[0].replace("a.h", "b.h") == texts[1]


def test_errors_of_a_recalled_kernel_are_those_of_the_traced_one(traced):
    x, y = np.ones(3), np.ones(3)
    for kernel in twice(lambda: compile(law, x=3, y=3), traced):
        with pytest.raises(ShapeError, match=r"law takes 2 arguments \(x, y\), got 1"):
            kernel(x)
        with pytest.raises(ShapeError, match=r"y must be \(3,\), got shape \(2,\)"):
            kernel(x, y[:2])
        with pytest.raises(SingularError, match=r"law divides by zero in stage '1 sums' of module 3: it has no answer"):
            kernel(x, np.zeros(3))
        with pytest.raises(NotFiniteError, match=r"x\[1\] is nan"):
            kernel(np.array([1.0, np.nan, 1.0]), y)


def test_arguments_of_a_robot_keep_their_meaning(traced):
    robot = robots.planar_biped()
    for kernel in twice(lambda: compile(legged.forward_dynamics, robot), traced):
        with pytest.raises(ShapeError, match=r"v must be \(9,\), one entry per degree of freedom, got shape \(8,\)"):
            kernel(robot.neutral(), np.zeros(8), np.zeros(9))


@pytest.mark.parametrize("name", ["planar_biped", "spatial_quadruped"])
@pytest.mark.parametrize("function", [legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix])
def test_dynamics_recalled_are_those_traced(traced, name, function):
    robot, rng = getattr(robots, name)(), np.random.default_rng(4)
    kernels = twice(lambda: compile(function, getattr(robots, name)()), traced)
    states = [np.tile(robot.neutral(), (9, 1)), rng.normal(size=(9, robot.nv)), rng.normal(size=(9, robot.nv))]
    states = states[: len(kernels[0].arguments)]
    for arguments in ([s[0] for s in states], states):
        assert np.array_equal(kernels[0](*arguments), kernels[1](*arguments))


def test_shapes_and_names_of_arguments_count(traced):
    for shapes in ({"x": 3}, {"x": 4}, {"x": (3, 1)}, {"x": 3, "gain": ()}):
        compile(lambda x, gain=2.0: gain * x, **shapes)
    compile(lambda y, gain=2.0: gain * y, y=3)
    assert len(traced) == 5


@pytest.mark.parametrize("k", [0.0, -0.0, 1e-320, 0.1, np.nextafter(0.1, 1.0)])
def test_constants_are_kept_to_the_last_bit(traced, k):
    for kernel in twice(lambda: compile(lambda x: np.arctan2(k, x), x=()), traced):
        found = kernel(-1.0)
        assert np.array([found]).tobytes() == np.array([np.arctan2(k, -1.0)]).tobytes()


@pytest.mark.parametrize("seed", range(4))
def test_graphs_are_packed_without_loss(seed):
    robot = legged.random_tree(seed=seed, links=4)
    graph = simplify(
        record(legged.inverse_dynamics, {"q": (robot.nq,), "v": (robot.nv,), "vdot": (robot.nv,)}, [robot])
    )
    again = graphs.Kept.of(marshal.loads(marshal.dumps(graphs._whole(graph))))
    assert (again.nodes, again.results, again.inputs, again.outputs) == (
        graph.nodes,
        graph.results,
        graph.inputs,
        graph.outputs,
    )
    assert again.digest == replace(again).digest == graph.digest


@pytest.mark.parametrize("odd", [np.float64(1.5), np.nan, np.float32(1.5)])
def test_a_graph_that_would_be_read_otherwise_is_not_kept(traced, odd):
    graphs._keep("mark", Graph((("x", ()),), (Node("multiply", (0, 1.5)),), ((),), (1,), next))
    assert graphs._find("mark").results == (1,)
    graphs._keep("other", Graph((("x", ()),), (Node("multiply", (0, odd)),), ((),), (1,), next))
    assert graphs._find("other") is None


def test_a_function_that_warns_warns_again(traced):
    def careful(x):
        warnings.warn("careful", stacklevel=2)
        return 2.0 * x

    for _ in range(2):
        with pytest.warns(UserWarning, match="careful"):
            compile(careful, x=2)


def test_a_function_that_changes_what_it_reads_is_traced_every_time(traced):
    calls = [0.0]

    def counting(x):
        calls[0] += 1.0
        return calls[0] * x

    assert [compile(counting, x=())(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_results_of_a_class_that_only_this_process_has_are_not_kept(traced):
    class Local(NamedTuple):
        a: Any

    for _ in range(2):
        assert compile(lambda x: Local(2.0 * x), x=())(1.0) == Local(2.0)
    assert len(traced) == 2


def test_a_class_of_results_that_is_gone_is_not_missed(traced, monkeypatch):
    """Nor is another one taken for it."""
    make = lambda: compile(law, x=3, y=3)  # noqa: E731
    twice(make, traced)
    monkeypatch.delattr(sys.modules[__name__], "Pair")
    with pytest.raises(NameError, match="Pair"):
        make()


def test_a_kernel_outlives_the_files(traced):
    _, warm = twice(lambda: compile(law, x=3, y=3), traced)
    disk.clear()
    assert warm(np.ones((50, 3)), np.ones(3)).sum.shape == (50, 3)  # compiles the program for batches
    assert warm.counts.by_module.keys() == {3, None}


def test_machine_code_that_is_gone_is_compiled_from_the_kept_graph(traced):
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 1.0, 2.0])
    before = compile(law, x=3, y=3)(x, y).sum
    for path in disk.folder().glob(f"*{disk.CODE}"):
        path.unlink()
    disk._loaded.clear()
    assert np.array_equal(compile(law, x=3, y=3)(x, y).sum, before) and len(traced) == 1


def test_a_loop_recalled_is_the_one_traced(traced):
    """Of a step that closes over what it is made with."""
    found = []
    for rate in (0.5, 0.5, 0.25):
        loop = Repeat.of(lambda clock, parameters, y, rate=rate: (y - rate * clock[1] * y, 0.0), 0, 2)
        members = Members.at(np.array([[1.0, 2.0]]), 1)
        loop.run(members, np.zeros((1, 0)), Schedule(np.array([[[0.0, 1.0, 2.0, 0.0]]]), np.array([0])))
        found.append((isinstance(loop.graph, graphs.Kept), members.stored[0, 0].tolist()))
    assert found == [(False, [0.25, 0.5]), (True, [0.25, 0.5]), (False, [0.5625, 1.125])]


SOURCE = """
import numpy as np

def law(x):
    return {k} * np.cos(x)
"""
PROGRAM = """
import sys
import numpy as np
import legged
from law import law
compiling = sys.modules["legged.compiler.compile"]
inner, count = compiling._traced, []
compiling._traced = lambda *a: (count.append(1), inner(*a))[1]
print(legged.compile(law, x=1)(np.zeros(1))[0], len(count))
"""


def test_a_source_changed_on_disk_is_traced_again(tmp_path):
    path = os.pathsep.join([str(tmp_path), str(Path(legged.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "LEGGED_CACHE": str(tmp_path / "cache")}
    found = []
    for k in ("2.0", "2.0", "3.0", "2.0"):
        (tmp_path / "law.py").write_text(textwrap.dedent(SOURCE).format(k=k))
        command = [sys.executable, "-B", "-c", PROGRAM]
        found.append(
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
        )
    assert found == [["2.0", "1"], ["2.0", "0"], ["3.0", "1"], ["2.0", "0"]]
