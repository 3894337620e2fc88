"""Which traced graphs are cached, by which keys, and that kernels of cached graphs equal those of traced ones."""

from __future__ import annotations

import functools
import marshal
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.checked import undecorated
from legged.compiler import Kernel, compile, record
from legged.compiler.cache import disk, graphs, keys, machine_code
from legged.compiler.ir import where
from legged.compiler.ir.annotations import module, stage
from legged.compiler.ir.graph import Graph, Node
from legged.compiler.passes.simplify import simplify
from legged.errors import NotFiniteError, ShapeError, SingularError

FUNCTIONS = (legged.forward_dynamics, legged.inverse_dynamics, legged.inertia_matrix, legged.bias_forces)


@pytest.fixture
def traced(monkeypatch, tmp_path) -> list[object]:
    """The functions that are traced, with an empty cache at the beginning."""
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    machine_code.unload()
    functions: list[object] = []
    compiling = sys.modules["legged.compiler.compile"]
    inner = compiling._traced
    monkeypatch.setattr(compiling, "_traced", lambda *a: (functions.append(a[0]), inner(*a))[1])
    return functions


# Kernels of cached graphs


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


# Functions


def own_functions() -> list[Any]:
    """Return functions of the three packages."""
    return [*FUNCTIONS, controllers.suited, robots.chain]


def test_functions_of_the_project_have_keys_of_their_own():
    found = {keys.function_key(function) for function in own_functions()}
    assert len(found) == len(own_functions()) and None not in found


def wrapped(q: np.ndarray) -> np.ndarray:
    """Claim to be a function of the project."""
    return 2.0 * q


functools.update_wrapper(wrapped, legged.inertia_matrix)


def foreign_functions() -> dict[str, Any]:
    """Return functions that have no key."""
    original = undecorated(legged.inertia_matrix)
    rewritten = types.FunctionType(wrapped.__code__, vars(sys.modules["legged.dynamics.inertia"]), "inertia_matrix")
    rewritten.__module__, rewritten.__qualname__ = "legged.dynamics.inertia", "inertia_matrix"
    return {
        "user's": law,
        "lambda": lambda robot, q: legged.inertia_matrix(robot, q),
        "wrapped": wrapped,
        "copy": types.FunctionType(original.__code__, original.__globals__),
        "other code": rewritten,
        "partial": functools.partial(legged.inertia_matrix),
        "method": robots.planar_biped().neutral,
        "builtin": len,
        "class": legged.Robot,
        "decorated": legged.compile,
        "NumPy": np.linalg.norm,
    }


@pytest.mark.parametrize("case", foreign_functions())
def test_other_functions_have_no_key(case):
    assert keys.function_key(foreign_functions()[case]) is None


def test_a_function_put_in_place_of_one_of_the_project_has_no_key(monkeypatch):
    home = sys.modules["legged.dynamics.inertia"]
    original = legged.inertia_matrix

    @functools.wraps(original)
    def patched(robot, q):
        return 2.0 * original(robot, q)

    monkeypatch.setattr(home, "inertia_matrix", patched)
    assert keys.function_key(patched) is None and keys.function_key(original) is None


def test_default_values_and_attributes_of_a_function_count(monkeypatch):
    function, before = legged.random_tree, keys.function_key(legged.random_tree)
    inner = undecorated(function)
    with monkeypatch.context() as patch:
        patch.setattr(inner, "__kwdefaults__", {**(inner.__kwdefaults__ or {}), "seed": 7})
        assert keys.function_key(function) not in (before, None)
        patch.setattr(inner, "__kwdefaults__", {"seed": object()})
        assert keys.function_key(function) is None
    with monkeypatch.context() as patch:
        patch.setattr(inner, "cached", 1, raising=False)
        assert keys.function_key(function) is None
    with monkeypatch.context() as patch:
        patch.setattr(function, "cached", 1, raising=False)
        assert keys.function_key(function) is None
    assert keys.function_key(function) == before is not None


def test_a_module_of_the_same_name_elsewhere_does_not_belong_to_the_project(monkeypatch, tmp_path):
    module = types.ModuleType("robots.mine")
    module.__file__ = str(tmp_path / "robots" / "mine.py")
    exec(compile_source("def law(x): return 2.0 * x", module.__file__), vars(module))
    monkeypatch.setitem(sys.modules, "robots.mine", module)
    assert keys.function_key(module.law) is None


def compile_source(text: str, name: str) -> Any:
    """Return bytecode that claims to come from a file."""
    return __builtins__["compile"](text, name, "exec")


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


# Robots


def test_a_robot_built_again_has_the_same_key():
    for name in ("planar_biped", "spatial_quadruped", "humanoid", "hexapod", "delta"):
        first, second = (keys.data_key(getattr(robots, name)()) for _ in range(2))
        assert first == second is not None


def test_a_robot_from_a_file_has_a_key(tmp_path):
    pytest.importorskip("yourdfpy")
    legged.save_urdf(robots.spatial_quadruped(), tmp_path / "robot.urdf")
    first, second = (keys.data_key(legged.load(tmp_path / "robot.urdf")) for _ in range(2))
    assert first == second is not None


@pytest.mark.parametrize(
    "make", [lambda: legged.random_tree(seed=3, links=6, physics=True, coupled=True), robots.humanoid]
)
def test_use_of_a_robot_does_not_change_its_key(make):
    robot = make()
    before = keys.data_key(robot)
    _ = robot.mass, robot.children, robot.alike_modules, robot.graph, robot.neutral()
    for function in FUNCTIONS[:2]:
        function(robot, robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))
    assert keys.data_key(robot) == before is not None


def arrays(x: Any, met: set[int]) -> Iterator[np.ndarray]:
    """Yield every array of a definition once, however many attributes refer to its numbers."""
    place = x.ctypes.data if isinstance(x, np.ndarray) else id(x)
    if place in met:
        return
    met.add(place)
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, tuple | list):
        for item in x:
            yield from arrays(item, met)
    elif is_dataclass(x):
        for part in fields(x):
            yield from arrays(getattr(x, part.name), met)


@pytest.mark.parametrize("seed", range(3))
def test_every_number_of_a_robot_counts(seed):
    """However small the change."""
    robot, rng = legged.random_tree(seed=seed, links=4), np.random.default_rng(seed)
    found = [a for a in arrays(robot, set()) if a.size]
    assert len(found) > 40
    original, changed = keys.data_key(robot), []
    for array in found:
        place = tuple(rng.integers(array.shape))
        before, frozen = array[place], not array.flags.writeable
        array.flags.writeable = True
        array[place] = before + 1 if array.dtype.kind == "i" else np.nextafter(before, np.pi)
        changed.append(keys.data_key(robot))
        array[place], array.flags.writeable = before, not frozen
    assert keys.data_key(robot) == original is not None
    known = [key for key in changed if key is not None]  # None where a cached property disagrees with the new number
    assert original not in changed and len(set(known)) == len(known) > 0.9 * len(found)


def test_every_part_of_a_robot_counts():
    robot = legged.random_tree(seed=1, links=4)
    all_keys = {keys.data_key(robot)}
    for part in fields(robot):
        all_keys.add(keys.data_key(replace(robot, **{part.name: "another"})))
    assert len(all_keys) == len(fields(robot)) + 1 and None not in all_keys


def test_attributes_overwritten_by_hand_count():
    """Fields give another key; a new attribute too; a cached property that is not its own value gives none."""
    robot = robots.planar_biped()
    before = keys.data_key(robot)
    vars(robot)["gravity"] = np.array([0.0, 0.0, -1.62])
    moon = keys.data_key(robot)
    vars(robot)["load"] = 3.0
    loaded = keys.data_key(robot)
    assert len({before, moon, loaded, None}) == 4
    vars(robot)["load"] = lambda: 3.0
    assert keys.data_key(robot) is None


@pytest.mark.parametrize("name", ["mass", "children", "graph"])
def test_an_overwritten_cached_property_is_noticed(name):
    robot, other = robots.planar_biped(), robots.planar_hopper()
    getattr(robot, name)
    assert keys.data_key(robot) is not None
    vars(robot)[name] = getattr(other, name)
    assert keys.data_key(robot) is None


def test_changes_of_the_graph_of_a_robot_are_noticed():
    robot = robots.planar_biped()
    robot.graph.nodes["trunk"]["load"] = 2.0
    assert keys.data_key(robot) is None


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


def test_subclasses_of_plain_types_have_no_key():
    class Number(float):
        pass

    class Items(list):
        pass

    for thing in (Number(1.0), Items(), np.zeros(2).view(np.matrix), np.ma.array([1.0]), object(), iter([1]), {law}):
        assert keys.data_key(thing) is None
        assert keys.data_key([thing]) is None


def test_different_data_have_different_keys():
    things: list[Any] = [
        *([], [[]], [[], []], (), [()], ["a", "b"], ["a\nb"], ["a'", "b"], [["a"], "b"], [["a", "b"]], "a", b"a"),
        *(None, [None], "None", 1, 1.0, True, np.float64(1.0), np.float32(1.0), np.int64(1), np.array(1.0)),
        *(np.array([1.0]), np.array([[1.0]]), {}, {1: 2}, {2: 1}, [1, 2], (1, 2), {1, 2}, frozenset([1, 2])),
        *(0.0, -0.0, 0, float("inf"), 1j, range(3), range(1, 3), slice(3), slice(1, 3), 10**400, 10**400 + 1),
        *(np.zeros(2), np.zeros(2, dtype=int), np.array([0.0, None]), np.array([0.0, None]).reshape(2, 1)),
        *(legged.forward_dynamics, legged.inverse_dynamics, legged.Robot, legged.FloatingBase()),
    ]
    found = [keys.data_key(thing) for thing in things]
    assert None not in found and len(set(found)) == len(things)


def test_shared_objects_differ_from_equal_ones():
    a: list[Any]
    a, b = [1.0], [1.0]
    assert keys.data_key([a, a]) != keys.data_key([a, b]) == keys.data_key([b, a])
    a.append(a)
    assert keys.data_key(a) is not None
