"""Kernels are never stale: whatever a function reads while it is traced, the kernel computes what the function does.

Each case builds functions whose results depend on a number k that is hidden in a place which no key can see. They are
compiled for k = 1 and then for k = 2, in one process and in two processes that share the cache folder.
"""

from __future__ import annotations

import functools
import random
import subprocess
import sys
import time
import types
from abc import ABC
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, make_dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import legged
import robots
from legged.compiler import compile


class Base:
    """A class whose subclasses are counted."""


class Named:
    """A class with a number."""

    gain = 0.0


class Module(types.ModuleType):
    """A module with a property."""

    k = 0

    @property
    def gain(self) -> float:
        """The number."""
        return 1.0 * type(self).k


MODULE = Module("stale_module")
SUBCLASSES: list[type] = []


@dataclass
class Settings:
    """A class with annotations, documentation and a default."""

    gain: float = 1.0


def documented(x):
    return x


def random_edges() -> int:
    """Return the number of edges of a graph drawn by Python's global random generator, whose state does not change."""
    state = random.getstate()
    try:
        return nx.gnp_random_graph(60, 0.5).number_of_edges()
    finally:
        random.setstate(state)


def functions(folder: Path, k: int) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Put k in all the places; yield functions of one number that read it."""
    file = folder / "number"
    np.array([float(k)]).tofile(file)
    mapped = np.memmap(file, dtype=float, mode="r+")
    yield "memory-mapped array", lambda x: mapped[0] * x
    yield "file", lambda x: np.fromfile(file)[0] * x
    random.seed(k)
    yield "random generator", lambda x: random_edges() * x
    SUBCLASSES.append(type(f"Sub{k}", (Base,), {}))
    yield "subclasses", lambda x: len(Base.__subclasses__()) * x
    abstract: Any = type("Abstract", (ABC,), {})
    late = type("Late", (), {})
    if k == 2:
        abstract.register(late)
    yield "virtual subclasses", lambda x: (2.0 if issubclass(late, abstract) else 1.0) * x
    yield "print options", lambda x: float(np.array2string(np.array([1 / 3]))[1:-1]) * x
    Named.gain = 1.0 * k
    yield "class attribute by format", lambda x: float("{0.gain}".format(Named)) * x  # noqa: UP030, UP032
    Module.k = k
    yield "property of a module", lambda x: MODULE.gain * x
    documented.__annotations__["x"] = k
    yield "annotations", lambda x: documented.__annotations__["x"] * x
    documented.__doc__ = str(k)
    yield "documentation", lambda x: float(documented.__doc__ or 0) * x
    documented.__name__ = "n" * k
    yield "name", lambda x: len(documented.__name__) * x
    settings = make_dataclass("Settings", [("gain", float, 1.0 * k)])
    yield "default of a field", lambda x: fields(settings)[0].default * x


def project_functions(folder: Path, k: int) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Yield functions of a robot and its configuration that read k, and the robot."""
    robot = robots.spatial_quadruped()
    robot.__dict__["gravity"] = np.array([0.0, 0.0, -1.0 * k])
    yield "overwritten attribute", legged.potential_energy, robot
    robot = robots.spatial_quadruped()
    robot.__dict__["mass"] = 10.0 * k
    yield "overwritten cached property", legged.potential_energy, robot
    yield "overwritten cached property, read", lambda robot, q: robot.mass * q, robot
    robot = robots.spatial_quadruped()

    @functools.wraps(legged.potential_energy)
    def scaled(robot, q):
        return np.fromfile(folder / "number")[0] * legged.potential_energy(robot, q)

    yield "decorated with a number from a file", scaled, robot
    started = time.time()

    @functools.wraps(legged.potential_energy)
    def timed(robot, q):
        return started * legged.potential_energy(robot, q)

    yield "decorated with the time", timed, robot


def check(folder: Path, k: int) -> None:
    """Compare all kernels with the functions themselves; a stale kernel differs by a factor that depends on k."""
    with np.printoptions(precision=k):
        for name, function in functions(folder, k):
            assert abs(compile(function, x=())(3.0) - function(3.0)) <= 1e-12 * abs(function(3.0)), name
    for name, function, robot in project_functions(folder, k):
        q = robot.neutral()
        q[6] = 0.7
        wanted = np.asarray(function(robot, q))
        assert np.abs(np.asarray(compile(function, robot)(q)) - wanted).max() <= 1e-12 * np.abs(wanted).max(), name


def values(folder: Path, k: int) -> dict[str, float]:
    """Return the values of all functions."""
    with np.printoptions(precision=k):
        by_name = {name: float(function(3.0)) for name, function in functions(folder, k)}
    for name, function, robot in project_functions(folder, k):
        q = robot.neutral()
        q[6] = 0.7
        by_name[name] = float(np.sum(function(robot, q)))
    return by_name


def test_kernels_follow_every_change_within_a_process(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    for k in (1, 2, 1):
        check(tmp_path, k)


def test_kernels_follow_every_change_between_processes(monkeypatch, tmp_path):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(legged.__file__).parents[1]))
    program = (
        "import sys, pathlib, importlib.util as u\n"
        "spec = u.spec_from_file_location('stale_cases', sys.argv[1])\n"
        "module = u.module_from_spec(spec)\n"
        "sys.modules['stale_cases'] = module\n"
        "spec.loader.exec_module(module)\n"
        "module.check(pathlib.Path(sys.argv[2]), int(sys.argv[3]))\n"
    )
    for k in (1, 2):
        subprocess.run([sys.executable, "-c", program, __file__, str(tmp_path), str(k)], check=True, timeout=300)


def test_the_cases_depend_on_the_number(tmp_path):
    """Otherwise a stale kernel would go unnoticed. A robot's mass is no part of its potential energy."""
    first, second = values(tmp_path, 1), values(tmp_path, 2)
    unchanged = {name for name in first if first[name] == second[name]}
    assert unchanged == {"overwritten cached property"}
