"""`legged bench`: speeds of this machine, and their ratios to Pinocchio and MuJoCo where they are installed."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding

from legged.compiler import compile as compile_function
from legged.compiler import default_threads, optimized_at_once, thread_limit
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import MismatchError, MissingError
from legged.output import visible
from legged.robot.configuration import integrate, random_configuration
from legged.robot.robot import Robot
from legged.simulation.integrators import SemiImplicitEuler
from legged.simulation.stepping.simulation import Simulation
from legged.spatial import Array
from legged.table import Table
from legged.verification.external import Engine, open_engine

STATES, STEPS = 4096, 1000
"""States of a batch; time steps of 1 ms of a call."""
ROBOTS = 1024
"""Robots that are simulated side by side."""
ROUNDS = 7
_LOOP = 64  # states of a loop in Python
_LONG_ENOUGH = 0.02  # [s], least time of a workload in a round
_TOLERANCES = {"pinocchio": 1e-7, "mujoco": 1e-5}
"""Relative differences from other programs: random states are ill-conditioned, and MuJoCo gives thin links inertia."""
_START = """
import time
begin = time.perf_counter()
import legged, controllers, robots
imported = time.perf_counter()
from legged.app.selection import select_robot
import sys
robot = select_robot(sys.argv[1], sys.argv[2] or None)
loaded = time.perf_counter()
legged.compile(legged.forward_dynamics, robot)
print(imported - begin, loaded - imported, time.perf_counter() - loaded)
"""


class Work(NamedTuple):
    """Something to time.

    Attributes:
        run: Does it once. count: Number of states or time steps in it.
        threads: Whether several threads do it, so that elapsed time counts, not that of the processor.
    """

    run: Callable[[], Any]
    count: int = 1
    threads: bool = False


Works = dict[tuple[str, str], Work]
"""(quantity, program) -> work."""


def bench(
    robot: Robot, text: str, base: str | None = None, rounds: int = ROUNDS, say: Callable[[str], None] = print
) -> list[Table]:
    """Return tables of the speeds of a robot on this machine; other programs agree before they are timed.

    Args:
        robot: The robot. text, base: Its name and base on the command line, which new processes load.
        rounds: Number of rounds, whose median counts. say: Function that prints a line.

    Raises:
        MismatchError: The accelerations or forces differ from those of another program.
    """
    engines = dict[str, Engine]()
    for name in _TOLERANCES:
        try:
            engines[name] = open_engine(name, robot)
        except (MissingError, MismatchError) as error:
            say(visible(f"without {name}: {error}"))
    say(visible(f"start of {robot.name} in new processes"))
    starts = start_table(text, base)
    say("dynamics and time steps")
    for engine in engines.values():
        if _has_more_coordinates(engine):
            say(visible(f"without forward dynamics of {engine.name}: {_more_coordinates(engine)}"))
    rigid = next(iter(engines.values())).rigid if engines else robot
    with optimized_at_once():
        works = dynamics(rigid, engines) | flights(rigid, engines.get("mujoco"))
        return [speed_table(robot.name, seconds_of(works, rounds)), starts]


def dynamics(robot: Robot, engines: Mapping[str, Engine]) -> Works:
    """Return forward and inverse dynamics of one state and of batches, whose results agree.

    Args:
        robot: The robot, without joint physics if there are other programs. engines: Other programs by name.
    """
    rng, works = np.random.default_rng(0), Works()
    q = np.array([random_configuration(robot, rng) for _ in range(STATES)])
    v, x = rng.normal(size=(2, STATES, robot.nv))
    x[:, : robot.base.nv] = 0.0
    for what, function in (
        ("forward dynamics", forward_dynamics),
        ("inverse dynamics", inverse_dynamics),
    ):
        kernel, out = compile_function(function, robot), np.empty((STATES, robot.nv))
        works[f"{what}, one state", "legged"] = Work(partial(kernel, q[0], v[0], x[0]))
        for words, threads in (("one thread", 1), ("all threads", default_threads())):

            def batch(kernel: Any = kernel, threads: int = threads, out: Array = out) -> None:
                with thread_limit(threads):
                    kernel(q, v, x, out=out)

            works[f"{what}, batch of {STATES}, {words}", "legged"] = Work(batch, STATES, threads > 1)
        ours = kernel(q[:_LOOP], v[:_LOOP], x[:_LOOP])
        for name, engine in engines.items():
            if what == "inverse dynamics" and name == "mujoco":
                continue  # MuJoCo has no function for it alone
            if what == "forward dynamics" and _has_more_coordinates(engine):
                continue
            call, states = _agreed(engine, name, what, (q, v, x), ours)

            def loop(call: Any = call, states: Any = states) -> None:
                for state in states:
                    call(*state)

            works[f"{what}, one state", name] = Work(partial(call, *states[0]))
            works[f"{what}, batch of {STATES}, one thread", name] = Work(loop, _LOOP)
    return works


def _has_more_coordinates(engine: Engine) -> bool:
    """Return whether the model of another program has velocities that ours lacks, and so other accelerations."""
    return engine.model.nv > engine.rigid.nv


def _more_coordinates(engine: Engine) -> str:
    """Return the reason why the forward dynamics of such a model are not compared."""
    names = [joint.name for joint in engine.rigid.followers]
    which = f"the joints that follow others ({', '.join(names)})" if names else "joints that are coupled here"
    return f"its model has {engine.model.nv} velocities, not {engine.rigid.nv}, as it moves {which} by themselves"


def _agreed(
    engine: Engine, name: str, what: str, states: tuple[Array, Array, Array], ours: Array
) -> tuple[Callable[..., Array], list[tuple[Array, Array, Array]]]:
    """Return the function of another program and some states in its vectors, after a comparison of the results."""
    to, is_forward, theirs, results = engine.to, what == "forward dynamics", [], []
    call = engine.forward if is_forward else engine.inverse
    for q, v, x in zip(*(rows[:_LOOP] for rows in states), strict=True):
        last = to.to_force(q, x) if is_forward else to.to_acceleration(q, v, x)
        state = to.to_configuration(q), to.to_velocity(q, v), last
        result = np.array(call(*state))
        results.append(to.from_acceleration(*state[:2], result) if is_forward else to.from_force(state[0], result))
        theirs.append(state)
    error = float((np.abs(results - ours).max(axis=1) / np.abs(ours).max(axis=1)).max())
    if not error < _TOLERANCES[name]:
        raise MismatchError(f"{what} of {engine.name} differ by {error:.1e}, relative to the largest entry: not timed")
    return call, theirs


def flights(robot: Robot, engine: Engine | None) -> Works:
    """Return time steps of 1 ms in flight, without contacts and forces.

    Args:
        robot: The robot. engine: MuJoCo, or None.
    """
    works, rng = Works(), np.random.default_rng(1)
    q, v = robot.neutral(), 0.1 * rng.normal(size=(ROBOTS, robot.nv))
    q = np.array([integrate(robot, q, dq) for dq in 0.1 * rng.normal(size=(ROBOTS, robot.nv))])
    for words, count in (("one robot", None), (f"{ROBOTS} robots, one thread", ROBOTS)):
        n = slice(0, count) if count else 0
        sim = Simulation(robot, num=count, q=q[n], v=v[n], integrator=SemiImplicitEuler(1e-3), threads=1)

        def steps(sim: Any = sim, n: Any = n) -> None:
            sim.reset(q[n], v[n])
            sim.step(n=STEPS)  # of free fall: no ground and no forces

        works[f"time step in flight, {words}", "legged"] = Work(steps, STEPS * (count or 1))
    if engine is not None and not _has_more_coordinates(engine):
        import mujoco

        data, state = mujoco.MjData(engine.model), (engine.to.to_configuration(q[0]), engine.to.to_velocity(q[0], v[0]))
        engine.model.opt.timestep = 1e-3

        def theirs() -> None:
            data.qpos[:], data.qvel[:] = state
            mujoco.mj_step(engine.model, data, STEPS)

        for words in ("one robot", f"{ROBOTS} robots, one thread"):
            works[f"time step in flight, {words}", "mujoco"] = Work(theirs, STEPS)
    return works


def seconds_of(works: Works, rounds: int) -> dict[tuple[str, str], list[float]]:
    """Return the times of a state or step in each round, [s]: all works take turns.

    Args:
        works: The works. rounds: Number of rounds.
    """
    repetitions = dict[tuple[str, str], int]()
    for key, work in works.items():
        work.run()
        n = 1
        while (taken := _time(work, n)) < _LONG_ENOUGH:
            n = max(2 * n, int(0.8 * n * _LONG_ENOUGH / max(taken, 1e-7)))
        repetitions[key] = n
    times: dict[tuple[str, str], list[float]] = {key: [] for key in works}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for key, work in works.items():
                times[key].append(_time(work, repetitions[key]) / repetitions[key] / work.count)
    finally:
        gc.enable()
    return times


def _time(work: Work, n: int) -> float:
    clock = time.perf_counter if work.threads else time.process_time
    begin = clock()
    for _ in range(n):
        work.run()
    return clock() - begin


def speed_table(name: str, times: Mapping[tuple[str, str], list[float]]) -> Table:
    """Return the times of a state or step, and the ratios of the times of other programs to them.

    Args:
        name: Name of the robot. times: As of `seconds_of`.
    """
    rows = []
    for (what, program), own in times.items():
        if program == "legged":
            others = [times.get((what, other)) for other in _TOLERANCES]
            ratios = [
                f"{statistics.median(b / a for a, b in zip(own, x, strict=True)):.3g}" if x else "" for x in others
            ]
            rows.append((what, f"{1e6 * statistics.median(own):.3g}", *ratios))
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    notes = (
        f"{binding.get_host_cpu_name()}, {default_threads()} threads{load}; {len(own)} rounds in turns.",
        "One state or step from Python; batches of other programs are loops in Python over one state.",
    )
    heads = ("", "legged [us]", *(f"{name} / legged" for name in ("Pinocchio", "MuJoCo")))
    return Table(f"{name}: time of a state or step, and ratios of times", heads, tuple(rows), notes)


def start_table(text: str, base: str | None) -> Table:
    """Return the times of the start in new processes, with an empty cache of machine code and with a filled one.

    Args:
        text, base: As in `bench`.
    """
    with tempfile.TemporaryDirectory() as folder:
        cold, *warm = (_start(text, base, folder) for _ in range(4))
    least = [min(x) for x in zip(*warm, strict=True)]
    rows = [
        ("import legged, controllers, robots", f"{least[0]:.2g}"),
        ("load the robot, with the libraries for it", f"{least[1]:.2g}"),
    ]
    rows.append(("compile forward dynamics, from the cache", f"{least[2]:.2g}"))
    rows.append(("compile forward dynamics, with an empty cache", f"{cold[2]:.2g}"))
    return Table("Start in a new process", ("", "elapsed [s]"), tuple(rows), ("Least of three processes.",))


def _start(text: str, base: str | None, cache: str) -> list[float]:
    command = [sys.executable, "-c", _START, text, base or ""]
    settings = {**os.environ, "LEGGED_CACHE": cache}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
    return [float(x) for x in done.stdout.split()]
