"""Gains of the optional mechanisms of the compiler: times without and with each of them, in turns in one process.

`python -m benchmarks.pages --write mechanisms` writes the table of `docs/explanation/mechanisms.md` in 110 s of
processor time. Times are those of the processor in the calling thread, so that other programs disturb them little;
those of threads are wall times.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.subjects import SUBJECTS
from examples.studies.paper.timing import states
from legged import environments
from legged.compiler import mechanisms
from legged.compiler.cache import machine_code
from legged.ground import realistic_ground

ROUNDS, SHORTEST, LONGEST = 7, 0.02, 0.5
"""Most rounds of a comparison, the time of a workload in each, [s], and that from which there are three rounds, [s]."""
STATES, MANY_STATES, MEMBERS = 1000, 4096, 64
THREADS = "thread pool"
Call = Callable[[], Any]


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache of machine code inside the context."""
    before = os.environ.get("LEGGED_CACHE")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ["LEGGED_CACHE"] = folder
        machine_code.unload()
        try:
            yield
        finally:
            machine_code.unload()
            os.environ.pop("LEGGED_CACHE")
            if before is not None:
                os.environ["LEGGED_CACHE"] = before


@cache
def subject(name: str) -> legged.Robot:
    """Return a robot of the benchmarks."""
    return next(s for s in SUBJECTS if s.name == name).make()


def dynamics(
    function: Callable[..., Any], name: str, count: int = 1, threads: int = 1, target: str | None = None
) -> Call:
    """Return a call of a function of the dynamics for one state, or for `count` states, compiled for a target."""
    robot = subject(name)
    kernel = legged.compile(function, robot, target=target)
    arrays = states(robot, count)[: len(kernel.arguments)]
    if count > 1:
        return lambda: kernel(*arrays, threads=threads)
    arrays = [array[0].copy() for array in arrays]
    return lambda: kernel(*arrays)


def _trot() -> tuple[legged.Robot, Any, Any]:
    robot, gait = robots.spatial_quadruped(), controllers.Trot(period=0.4, stride=0.15, clearance=0.06)  # [s], [m], [m]
    return robot, controllers.ComputedTorque(gait), realistic_ground(robot, penetration=5e-3)


def step() -> Call:
    """Return a step of `Simulation` in free flight, with a command."""
    robot = robots.spatial_quadruped()
    simulation, command = legged.Simulation(robot, compiled=True), np.zeros(robot.nj)
    return lambda: simulation.step(command)


def simulated() -> Call:
    """Return a simulation of a trot of 0.2 s."""
    robot, law, ground = _trot()
    return lambda: legged.simulate(robot, law, ground=ground, until=0.2)


def rollout(threads: int = 1) -> Call:
    """Return a rollout of 64 members for 0.2 s."""
    robot, law, ground = _trot()
    v = law.initial_state(robot)[1] + 0.02 * np.random.default_rng(0).standard_normal((MEMBERS, robot.nv))
    return lambda: legged.rollout(robot, law, ground=ground, v=v, until=0.2, threads=threads)


def control_step() -> Call:
    """Return a control step of an environment with 64 robots."""
    robot = robots.spatial_quadruped()
    environment = environments.make("velocity", robot, num_envs=MEMBERS, threads=1)
    environment.reset(seed=1)
    actions = np.zeros((MEMBERS, robot.nj))
    return lambda: environment.step(actions)


def from_empty_cache(make: Callable[[], Call]) -> Call:
    """Return the first call of a workload in a new process, with an empty cache."""

    def run() -> None:
        with empty_cache():
            make()()

    return run


def first_step(name: str) -> Call:
    """Return the first time step of a robot on rigid ground."""
    robot = subject(name) if name else robots.spatial_quadruped()
    high = robot.state(base_position=(0.0, 0.0, 1.0))
    integrator, ground = legged.TimeStepping(1e-3), legged.contact.Rigid()
    return lambda: legged.simulate(robot, ground=ground, q=high[0], integrator=integrator, until=1e-3)


FORWARD = legged.forward_dynamics
FUNCTIONS = {
    "forward dynamics": FORWARD,
    "inverse dynamics": legged.inverse_dynamics,
    "inertia matrices": legged.inertia_matrix,
}
COUNTS = {"one state": 1, f"{STATES} states": STATES, f"{MANY_STATES} states": MANY_STATES}
WORKLOADS: dict[str, Callable[[], Call]] = {
    **{
        f"{words} of {name}, {number}": partial(dynamics, function, name, count)
        for words, function in FUNCTIONS.items()
        for name in ("Go2", "G1")
        for number, count in COUNTS.items()
    },
    **{
        f"{words} of {name}, {STATES} states, `{target}`": partial(dynamics, function, name, STATES, target=target)
        for target in ("avx2", "sse2")
        for words, function in FUNCTIONS.items()
        for name in ("Go2", "G1")
    },
    "`Simulation.step` with a command": step,
    "`simulate`, a trot of 0.2 s": simulated,
    "`rollout` of 64 members for 0.2 s": rollout,
    "control step of 64 robots in an environment": control_step,
    "first compilation of a chain of 50 links": lambda: from_empty_cache(
        lambda: partial(legged.compile, FORWARD, robots.chain(50))
    ),
    "first compilation of G1": lambda: from_empty_cache(lambda: partial(legged.compile, FORWARD, subject("G1"))),
    "first `simulate`, a trot of 0.2 s": lambda: from_empty_cache(simulated),
    "first time step of the quadruped on rigid ground": lambda: from_empty_cache(lambda: first_step("")),
    "first time step of G1 on rigid ground": lambda: from_empty_cache(lambda: first_step("G1")),
    "first control step of an environment": lambda: from_empty_cache(control_step),
}
"""What users run, by a name: functions that make the workload."""
_ONE_STATE = tuple(name for name in WORKLOADS if "dynamics" in name and name.endswith("one state"))
_BATCHES = tuple(name for name in WORKLOADS if name.endswith(f" {STATES} states"))
_SHORT_VECTORS = tuple(name for name in WORKLOADS if name.endswith(("avx2`", "sse2`")))
_LOOPS = tuple(name for name in WORKLOADS if name.startswith(("`", "control")))
CASES: dict[str, tuple[str, ...]] = {
    mechanisms.ENTRY_POINT: (*_ONE_STATE, _BATCHES[0], *_LOOPS[:2]),
    mechanisms.PACKING: (*_ONE_STATE, _LOOPS[1]),
    mechanisms.OUTLINING: ("first compilation of a chain of 50 links", "first compilation of G1"),
    mechanisms.STREAMING: (*_BATCHES, *_SHORT_VECTORS),
    mechanisms.CALL_BATCHING: (*_ONE_STATE, _BATCHES[0], *_LOOPS[1:]),
    mechanisms.RESULT_MEMORY: tuple(name for name in WORKLOADS if name.endswith(f"G1, {MANY_STATES} states")),
}
"""The workloads that each mechanism can change."""
BACKGROUND = tuple(name for name in WORKLOADS if name.startswith("first") and "compilation" not in name)
STAGED = ("first time step of the quadruped on rigid ground", "first time step of G1 on rigid ground")
"""Workloads with long modules, for the processor time of this process alone."""
THREADED: dict[str, Callable[[int], Call]] = {
    "forward dynamics of G1, 1000 states, 2 threads": partial(dynamics, FORWARD, "G1", STATES),
    "`rollout` of 64 members for 0.2 s, 2 threads": rollout,
}
"""What is timed with one thread and with two."""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield (mechanism, benchmark, time with it [us], ratio of the time without it)."""
    with empty_cache():
        used = cache(lambda case: WORKLOADS[case]())
        for name, cases in CASES.items():
            for case in cases:
                with mechanisms.without(name):
                    unused = WORKLOADS[case]()
                yield name, case, *_compared(used(case), unused, time.thread_time, name)
        with mock.patch.dict(os.environ, {"LEGGED_WITHOUT": mechanisms.BACKGROUND}):  # all passes in this thread
            for case in STAGED:
                run = WORKLOADS[case]()
                yield mechanisms.STAGES, case, *_compared(run, run, time.thread_time, mechanisms.STAGES)
        for case, make in THREADED.items():
            yield THREADS, case, *_compared(make(2), make(1), time.perf_counter)
    for case in BACKGROUND:
        yield mechanisms.BACKGROUND, case, *_overlap(WORKLOADS[case]())


def _compared(used: Call, unused: Call, clock: Callable[[], float], *off: str) -> tuple[str, str]:
    """Return the smallest time of a function, [us], and the ratio of the smallest time of another one to it.

    The other one is called without the given mechanisms.
    """

    def seconds(function: Call, count: int) -> float:
        start = clock()
        for _ in range(count):
            function()
        return (clock() - start) / count

    used()
    with mechanisms.without(*off):
        unused()
    once = seconds(used, 1)
    count, times = max(1, int(SHORTEST / max(once, 1e-7))), []
    for _ in range(3 if once > LONGEST else ROUNDS):
        first = seconds(used, count)
        with mechanisms.without(*off):
            times.append((first, seconds(unused, count)))
    with_it, without_it = map(min, zip(*times, strict=True))
    return f"{1e6 * with_it:.3g}", f"{without_it / with_it:.2f}"


def _overlap(function: Call) -> tuple[str, str]:
    """Return the processor time of a function in both threads, [us], and its ratio to that of the longer thread.

    The ratio is the gain on two free processors if neither thread waits for the other.
    """
    with mock.patch.object(machine_code, "_has_free_processor", lambda: True):
        whole, main = time.process_time(), time.thread_time()
        function()
        whole, main = time.process_time() - whole, time.thread_time() - main
    return f"{1e6 * whole:.3g}", f"at most {whole / max(main, whole - main):.2f}"
