"""Pickled and copied kernels, robots and controllers: the same results, and the same files of the cache."""

from __future__ import annotations

import copy
import importlib
import multiprocessing
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles.contents import data_key

import controllers
import legged
import robots
from legged.compiler import Kernel, compile
from legged.compiler.cache import machine_code
from legged.errors import ShapeError
from legged.ground import realistic_ground
from legged.simulation.controller import adapt
from legged.simulation.stepping.batch import initial_state

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "deep copy": copy.deepcopy,
    "copy": copy.copy,
}
WORKER = """
import legged

def work(kernel, robot, q, v, tau):
    again = legged.compile(legged.forward_dynamics, robot)
    rows = [x[None].repeat(5, axis=0) for x in (q, v, tau)]
    return kernel(q, v, tau), kernel(*rows), again(q, v, tau), repr(kernel)
"""


def state(robot: legged.Robot) -> tuple[np.ndarray, ...]:
    """Return random arguments of the forward dynamics, each (n,)."""
    rng = np.random.default_rng(5)
    return legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)


@pytest.mark.usefixtures("call_path")
@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("is_from_cache", [False, True])
def test_a_copied_kernel_is_the_same(way, is_from_cache, monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    robot = robots.spatial_quadruped()
    for _ in range(1 + is_from_cache):
        kernel = legged.compile(legged.forward_dynamics, robot)
    q, v, tau = state(robot)
    kernel(q, v, tau)  # leaves a workspace behind
    again = COPIES[way](kernel)
    assert isinstance(again, Kernel) and again is not kernel and repr(again) == repr(kernel)
    assert type(again.__call__) is type(kernel.__call__)
    assert (again.graph, again.arguments, again.counts) == (kernel.graph, kernel.arguments, kernel.counts)
    assert again.graph.digest == kernel.graph.digest
    assert np.array_equal(again(q, v, tau), kernel(q, v, tau))
    assert np.array_equal(again(np.tile(q, (7, 1)), v, tau), kernel(np.tile(q, (7, 1)), v, tau))
    for call in (kernel, again):
        with pytest.raises(ShapeError, match="must have norm 1"):
            call(2.0 * q, v, tau)


@pytest.mark.parametrize("way", COPIES)
def test_results_keep_their_structure(way):
    kernel = compile(lambda x: {"sum": x[0] + x[1], "parts": [x, (2.0 * x,)]}, x=2)
    result = COPIES[way](kernel)(np.array([1.0, 2.0]))
    assert result["sum"] == 3.0 and np.array_equal(result["parts"][1][0], [2.0, 4.0])


def test_a_pickled_kernel_contains_no_machine_code(monkeypatch, tmp_path):
    """It is compiled where it is read, for instance on another processor: here with an empty cache folder."""
    kernel = compile(lambda x: np.sin(x) * x[::-1], x=3)
    content = pickle.dumps(kernel)
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    machine_code.unload()
    compiled = []
    inner = machine_code.llvm.machine_code
    monkeypatch.setattr(machine_code.llvm, "machine_code", lambda ir, *level: compiled.append(ir) or inner(ir, *level))
    again = pickle.loads(content)
    x = np.array([0.3, 0.5, -2.0])
    assert np.array_equal(again(x), kernel(x)) and len(compiled) == 1


def file_robot(folder) -> legged.Robot:
    """Return a robot that was read from a URDF file."""
    legged.save_urdf(robots.spatial_quadruped(), folder / "robot.urdf")
    return legged.load(folder / "robot.urdf")


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize(
    "make",
    [
        lambda folder: robots.spatial_quadruped(),
        lambda folder: legged.random_tree(3, 12, physics=True, coupled=True, shuffled=True),
        lambda folder: robots.four_bar(),
        file_robot,
    ],
)
def test_a_copied_robot_has_the_same_key(make, way, tmp_path):
    robot = make(tmp_path)
    before = data_key(robot)
    assert data_key(COPIES[way](robot)) == before is not None
    open_robot = robot if isinstance(robot, legged.Robot) else robot.robot
    legged.forward_dynamics(open_robot, *state(open_robot))
    _ = open_robot.mass, open_robot.graph, open_robot.children, open_robot.neutral()  # cached properties
    again = COPIES[way](robot)
    assert data_key(again) == before
    assert type(again) is type(robot)


def test_spawned_workers_find_the_cache(monkeypatch, tmp_path):
    cache, modules = tmp_path / "cache", tmp_path / "modules"
    modules.mkdir()
    (modules / "worker_of_pickling.py").write_text(WORKER)
    monkeypatch.syspath_prepend(modules)
    monkeypatch.setenv("LEGGED_CACHE", str(cache))
    machine_code.unload()
    work = importlib.import_module("worker_of_pickling").work
    robot = robots.planar_biped()
    q, v, tau = state(robot)
    kernel = legged.compile(legged.forward_dynamics, robot)
    one, many = kernel(q, v, tau), kernel(*[np.tile(x, (5, 1)) for x in (q, v, tau)])
    files = sorted(cache.rglob("*.*"))
    # The marker, the code for one state and for batches, and the loop that all batches share; and the entry
    # point of all kernels, unless this process has loaded it before.
    assert 4 <= len(files) <= 5
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        results = pool.apply(work, (kernel, robot, q, v, tau))
    for mine, its in zip((one, many, one), results, strict=False):
        assert np.array_equal(mine, its)
    assert results[3] == repr(kernel)
    added = set(cache.rglob("*.*")) - set(files)
    assert len(added) <= 1  # the entry point of all kernels, which this process may have loaded before


CONTROLLERS: dict[str, Callable[[legged.Robot], Any]] = {
    "closed-form gait": lambda robot: controllers.ComputedTorque(controllers.Trot()),
    "fitted gait": lambda robot: controllers.ComputedTorque(controllers.suited(controllers.Trot, robot)),
    "balanced": lambda robot: controllers.suited_law(controllers.Balanced, controllers.suited(controllers.Trot, robot)),
    "held": lambda robot: controllers.ZeroOrderHold(controllers.ComputedTorque(controllers.Trot()), 0.01),
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("name", CONTROLLERS)
def test_started_controllers_can_be_copied(name, way):
    """Fitted gaits contain kernels, and so do laws that have been started on a robot."""
    robot = robots.spatial_quadruped()
    controller = adapt(CONTROLLERS[name](robot))
    q, v = initial_state(robot, controller, None, None)
    started, memory = controller.start(robot, realistic_ground(robot), q, v)
    arguments = 0.1, 0.0, q, v, np.zeros((len(robot.links), 6)), memory
    wanted = started.torque(*arguments)
    assert np.array_equal(COPIES[way](started).torque(*arguments), wanted)


def test_kernels_are_not_shared_between_copies_in_threads():
    """A copy has workspaces of its own: calls from two threads do not mix."""
    kernel = compile(lambda x: x * x[::-1] + 1.0, x=4)
    again = copy.deepcopy(kernel)
    wrong = []

    def repeat(call: Kernel, x: np.ndarray) -> None:
        wanted = x * x[::-1] + 1.0
        wrong.extend(k for k in range(500) if not np.array_equal(call.general(x), wanted))

    threads = [threading.Thread(target=repeat, args=(k, np.arange(4.0) + n)) for n, k in enumerate((kernel, again))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
