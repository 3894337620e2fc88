"""Keys of functions and data: which have one, and that every difference of content gives another key."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.checked import undecorated
from legged.compiler.cache import keys


def own_functions() -> list[Any]:
    """Return functions of the three packages."""
    return [legged.forward_dynamics, legged.inverse_dynamics, controllers.suited, robots.chain]


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
        "user's": own_functions,
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
    for function in (legged.forward_dynamics, legged.inverse_dynamics):
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


def test_subclasses_of_plain_types_have_no_key():
    class Number(float):
        pass

    class Items(list):
        pass

    for thing in (
        Number(1.0),
        Items(),
        np.zeros(2).view(np.matrix),
        np.ma.array([1.0]),
        object(),
        iter([1]),
        {wrapped},
    ):
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
