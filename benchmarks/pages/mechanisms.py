"""Gains of the optional mechanisms of the compiler: times without and with each of them, in turns in one process.

`python -m benchmarks.pages --write mechanisms` writes the table of `docs/explanation/mechanisms.md`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import SUBJECTS
from examples.studies.paper.timing import states
from legged.compiler import mechanisms
from legged.compiler.cache import machine_code
from legged.ground import realistic_ground

ROUNDS, SHORTEST = 5, 0.02
"""Rounds of a comparison, and the time of a workload in each, [s]."""
STATES, MEMBERS = 1000, 256
THREADS = "thread pool"


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache of machine code inside the context."""
    before = os.environ.get("LEGGED_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder
        machine_code.unload()
        try:
            yield
        finally:
            machine_code.unload()
            os.environ.pop("LEGGED_CACHE")
            if before is not None:
                os.environ["LEGGED_CACHE"] = before


def subject(name: str) -> legged.Robot:
    """Return a robot of the benchmarks."""
    return next(s for s in SUBJECTS if s.name == name).make()


def one_state(name: str) -> Callable[[], Any]:
    """Return a call of forward dynamics for one state."""
    robot = subject(name)
    kernel, arrays = legged.compile(legged.forward_dynamics, robot), [a[0].copy() for a in states(robot, 1)]
    return lambda: kernel(*arrays)


def batch(name: str, threads: int = 1) -> Callable[[], Any]:
    """Return a call of forward dynamics for a batch."""
    robot = subject(name)
    kernel, arrays = legged.compile(legged.forward_dynamics, robot), states(robot, STATES)
    return lambda: kernel(*arrays, threads=threads)


def _trot() -> tuple[legged.Robot, Any, Any]:
    robot, gait = robots.spatial_quadruped(), controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
    return robot, controllers.ComputedTorque(gait), realistic_ground(robot, penetration=5e-3)


def step() -> Callable[[], Any]:
    """Return a step of `Simulation` in free flight, with a command."""
    robot = robots.spatial_quadruped()
    simulation, command = legged.Simulation(robot, compiled=True), np.zeros(robot.nj)
    return lambda: simulation.step(command)


def simulated() -> Callable[[], Any]:
    """Return a simulation of a trot of 2 s."""
    robot, law, ground = _trot()
    return lambda: legged.simulate(robot, law, ground=ground, until=2.0)


def rollout(threads: int = 1) -> Callable[[], Any]:
    """Return a rollout of 256 members for 2 s."""
    robot, law, ground = _trot()
    v = law.initial_state(robot)[1] + 0.02 * np.random.default_rng(0).standard_normal((MEMBERS, robot.nv))
    return lambda: legged.rollout(robot, law, ground=ground, v=v, until=2.0, threads=threads)


def compiled(make: Callable[[], legged.Robot]) -> Callable[[], Any]:
    """Return a compilation of forward dynamics, with an empty cache."""
    robot = make()

    def run() -> None:
        with empty_cache():
            legged.compile(legged.forward_dynamics, robot)

    return run


def first_step(name: str) -> Callable[[], Any]:
    """Return the first time step of a robot on rigid ground, with an empty cache."""
    robot = subject(name)

    def run() -> None:
        with empty_cache():
            legged.simulate(robot, ground=legged.contact.Rigid(), integrator=legged.TimeStepping(1e-3), until=1e-3)

    return run


def large_results() -> Callable[[], Any]:
    """Return a call of the inertia matrix for a batch whose results have 28 MB."""
    robot = subject("G1")
    kernel, q = legged.compile(legged.inertia_matrix, robot), states(robot, 4096)[0]
    return lambda: kernel(q)


CASES: dict[tuple[str, str], Callable[[], Callable[[], Any]]] = {
    (mechanisms.ENTRY_POINT, "forward dynamics of Go2, one state"): lambda: one_state("Go2"),
    (mechanisms.ENTRY_POINT, "forward dynamics of G1, one state"): lambda: one_state("G1"),
    (mechanisms.ENTRY_POINT, "forward dynamics of Go2, 1000 states"): lambda: batch("Go2"),
    (mechanisms.ENTRY_POINT, "`Simulation.step` with a command"): step,
    (mechanisms.ENTRY_POINT, "`simulate`, a trot of 2 s"): simulated,
    (mechanisms.PACKING, "forward dynamics of Go2, one state"): lambda: one_state("Go2"),
    (mechanisms.PACKING, "forward dynamics of G1, one state"): lambda: one_state("G1"),
    (mechanisms.PACKING, "`simulate`, a trot of 2 s"): simulated,
    (mechanisms.OUTLINING, "first compilation of a chain of 50 links"): lambda: compiled(lambda: robots.chain(50)),
    (mechanisms.OUTLINING, "first compilation of Go2"): lambda: compiled(lambda: subject("Go2")),
    (mechanisms.OUTLINING, "first compilation of G1"): lambda: compiled(lambda: subject("G1")),
    (mechanisms.OUTLINING, "first time step of G1 on rigid ground"): lambda: first_step("G1"),
    (mechanisms.STREAMING, "forward dynamics of Go2, 1000 states"): lambda: batch("Go2"),
    (mechanisms.STREAMING, "forward dynamics of G1, 1000 states"): lambda: batch("G1"),
    (mechanisms.LIST_SCHEDULING, "forward dynamics of Go2, one state"): lambda: one_state("Go2"),
    (mechanisms.LIST_SCHEDULING, "forward dynamics of G1, 1000 states"): lambda: batch("G1"),
    (mechanisms.LIST_SCHEDULING, "`rollout` of 256 members for 2 s"): rollout,
    (mechanisms.CALL_BATCHING, "forward dynamics of Go2, one state"): lambda: one_state("Go2"),
    (mechanisms.CALL_BATCHING, "forward dynamics of G1, one state"): lambda: one_state("G1"),
    (mechanisms.HOISTING, "`rollout` of 256 members for 2 s"): rollout,
    (mechanisms.RESULT_MEMORY, "inertia matrices of G1, 4096 states"): large_results,
    (mechanisms.BACKGROUND, "first time step of G1 on rigid ground"): lambda: first_step("G1"),
}
"""What is timed for each mechanism: a function that makes the workload."""
THREADED = {
    "forward dynamics of G1, 1000 states, 2 threads": lambda threads: batch("G1", threads),
    "`rollout` of 256 members for 2 s, 2 threads": rollout,
}
"""What is timed with one thread and with two."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield (mechanism, benchmark, time with it [us], ratio of the time without it)."""
    for (name, case), make in CASES.items():
        with empty_cache():
            used = make()
            used()
            with mechanisms.without(name):
                unused = make()
                unused()
            yield name, case, *_compared(used, unused, name)
    for case, make in THREADED.items():
        with empty_cache():
            yield THREADS, case, *_compared(make(2), make(1))


def _compared(used: Callable[[], Any], unused: Callable[[], Any], *off: str) -> tuple[str, str]:
    """Return the smallest time of a function, [us], and the median of the ratios of another one's time to it.

    The other one is called without the given mechanisms.
    """
    used(), unused()
    count = max(1, int(SHORTEST / max(_time(used, 1), 1e-7)))
    rounds = []
    for _ in range(ROUNDS):
        first = _time(used, count)
        with mechanisms.without(*off):
            rounds.append((first, _time(unused, count)))
    return f"{1e6 * min(a for a, _ in rounds):.3g}", f"{statistics.median(b / a for a, b in rounds):.2f}"


def _time(function: Callable[[], Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    return (time.perf_counter() - start) / count
