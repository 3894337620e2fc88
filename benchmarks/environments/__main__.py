"""The command `python -m benchmarks.environments`: speed and memory of the velocity task of Go2, beside mjbatch.

    python -m benchmarks.environments [--peer PYTHON] [--seconds 3] [--num 1024] [--long 1e8]

`--peer` names an interpreter that has mjbatch, which needs another version of MuJoCo than this project:

    python -m venv peer && peer/bin/pip install mjbatch==0.1.4
    python -m benchmarks.environments --peer peer/bin/python

Both sides have the same robot, feet, time step, substeps, terms, noise, resampling, pushes and new starts, and random
actions. Rates per core are per second of processor time, which other programs disturb less than wall time. `--long`
steps 4096 robots for a number of transitions and watches numbers, memory and speed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.environments.scene import go2, write_scene
from legged import environments
from legged.compiler import FusedCalls
from legged.environments import Task
from legged.table import Table

TASKS: dict[str, Callable[[Any], Task]] = {"flat": environments.velocity, "rough": environments.rough}
_LARGE, _WARM = 4096, 20
_ACTIONS = 0.3  # standard deviation


class Speed(NamedTuple):
    """Transitions of all robots per second of wall time and of processor time, and the share outside of the physics."""

    wall: float
    core: float
    outside: float


def memory() -> float:
    """Return the resident memory of this process, [MB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


class Runner:
    """An environment under random actions.

    Args:
        task: The task. num: Number of robots. threads: Number of threads. dtype: Type of the numbers.
    """

    def __init__(self, task: Task, num: int, threads: int, dtype: str):
        self.env = environments.make(task, num_envs=num, threads=threads, dtype=dtype, copy=False)
        self.actions = _ACTIONS * np.random.default_rng(1).normal(size=(64, num, task.robot.nj)).astype(np.float32)
        self.env.reset(seed=0)
        self.count = 0

    def run(self, seconds: float, least: int = 1) -> tuple[int, float, float]:
        """Return transitions, wall time and processor time, [s], of about as much processor time."""
        begin, cpu, first = time.perf_counter(), time.process_time(), self.count
        while self.count - first < least or time.process_time() - cpu < seconds:
            self.result = self.env.step(self.actions[self.count % len(self.actions)])
            self.count += 1
        steps = self.count - first
        return steps * self.env.num_envs, time.perf_counter() - begin, time.process_time() - cpu

    def speed(self, seconds: float) -> Speed:
        """Return the speed; for the share, the calls of machine code are timed one by one in as many steps again."""
        self.run(0.0, _WARM)
        transitions, wall, cpu = self.run(seconds)
        fused, spent = self.env._advance, [0.0]

        def timed(calls: FusedCalls) -> Callable[[int], int]:
            parts = [FusedCalls([call], 16, ignored=[0] if k == 0 else []) for k, call in enumerate(calls.calls)]

            def call(threads: int) -> int:
                begin = time.process_time()
                parts[0](threads)
                spent[0] += time.process_time() - begin
                return max(part(threads) for part in parts[1:])

            return call

        self.env._advance = [timed(calls) for calls in fused]
        _, _, split = self.run(seconds)
        self.env._advance = fused
        return Speed(transitions / wall, transitions / cpu, 1.0 - spent[0] / split)


def own_speeds(num: int, seconds: float) -> Table:
    """Return the table of this project's environments."""
    rows = []
    for name, task in TASKS.items():
        for dtype in ("float64", "float32"):
            runner = Runner(task(go2()), num, 1, dtype)
            one = runner.speed(seconds)
            walls = {1: list[float](), 2: list[float]()}
            for threads in 3 * [1, 2]:  # in turns, since processors change their clock
                runner.env._threads = threads
                runner.run(0.2)
                transitions, wall, _ = runner.run(threads * seconds)
                walls[threads].append(transitions / wall)
            alone, together = (float(np.median(walls[threads])) for threads in (1, 2))
            rows.append(
                (
                    *(name, dtype, f"{alone:.3g}", f"{one.core:.3g}", f"{100 * one.outside:.0f} %"),
                    *(f"{together:.3g}", f"{together / alone:.2f}"),
                )
            )
    heads = ("ground", "numbers", "1 thread, wall", "core", "outside physics", "2 threads, wall", "ratio")
    notes = (
        f"Transitions/s of {num} Go2 with random actions, four time steps of 5 ms each; {os.cpu_count()} processors.",
    )
    return Table("Environments", heads, tuple(rows), notes, left=2)


def peer_speeds(python: str, num: int, seconds: float) -> Table | None:
    """Return the table of mjbatch beside this project, or None without it, in turns."""
    rows = []
    for name, task in TASKS.items():
        with tempfile.TemporaryDirectory() as folder:
            write_scene(task(go2()), Path(folder))
            command = [python, str(Path(__file__).with_name("peer.py")), folder, str(num), "1", str(seconds)]
            ours = [Runner(task(go2()), num, 1, dtype) for dtype in ("float64", "float32")]
            for runner in ours:
                runner.run(0.0, _WARM)
            first = [runner.run(0.5 * seconds) for runner in ours]
            answer = subprocess.run(command, capture_output=True, text=True)
            if answer.returncode:
                reason = (answer.stderr.strip().splitlines() or ["no reason"])[-1]
                print(f"mjbatch is skipped: {reason}. Name an interpreter that has it by --peer, see --help.")
                return None
            both = zip(first, [runner.run(0.5 * seconds) for runner in ours], strict=True)
        own = [(one[0] + two[0]) / (one[2] + two[2]) for one, two in both]
        for settings, speed in json.loads(answer.stdout.splitlines()[-1]).items():
            theirs, outside = speed["core"], f"{100 * speed['outside']:.0f} %"
            ratios = [x for rate in own for x in (f"{rate:.3g}", f"{rate / theirs:.1f}")]
            rows.append((name, settings, f"{theirs:.3g}", outside, *ratios))
    heads = ("ground", "settings of mjbatch", "mjbatch", "outside physics", "float64", "ratio", "float32", "ratio")
    notes = (f"{num} Go2. mjbatch computes in float64; policies are trained in float32 here.",)
    return Table("Transitions/s and core beside mjbatch 0.1.4", heads, tuple(rows), notes, left=2)


def start_and_memory() -> Table:
    """Return the table of the time to compile without a cache, and of the memory of 4096 robots."""
    rows = []
    for name in TASKS:
        for dtype in ("float64", "float32"):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "benchmarks.environments", "--start", name, "--dtype", dtype]
                answer = subprocess.run(
                    command, capture_output=True, text=True, check=True, env={**os.environ, "LEGGED_CACHE": folder}
                )
            wall, cpu, before, after = json.loads(answer.stdout.splitlines()[-1])
            rows.append((name, dtype, f"{wall:.1f}", f"{cpu:.1f}", f"{after:.0f}", f"{after - before:.0f}"))
    heads = ("ground", "numbers", "start, s", "processor, s", "process, MB", "without imports and robot, MB")
    notes = (f"Start: from `make` to the end of the first step, nothing cached. Memory: {_LARGE} robots, 50 steps.",)
    return Table("Start and memory", heads, tuple(rows), notes, left=2)


def start(name: str, dtype: str) -> None:
    """Print wall time and processor time of a start, [s], and memory before and after, [MB], as JSON."""
    task, before = TASKS[name](go2()), memory()
    begin, cpu = time.perf_counter(), time.process_time()
    runner = Runner(task, _LARGE, 2, dtype)
    runner.run(0.0)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    runner.run(0.0, 50)
    print(json.dumps([wall, cpu, before, memory()]))


def long_run(transitions: float, threads: int) -> Table:
    """Return the table of a long run in ten parts; a number that is not finite raises an error."""
    rows = []
    for dtype in ("float64", "float32"):
        runner = Runner(TASKS["flat"](go2()), _LARGE, threads, dtype)
        runner.run(0.0, _WARM)
        least = max(int(transitions / 10 / _LARGE), 1)
        for part in range(10):
            count, wall, cpu = runner.run(0.0, least)
            observed, reward, *_ = runner.result
            assert np.isfinite(observed).all() and np.isfinite(reward).all() and np.isfinite(runner.env.q).all()
            drift = abs(np.linalg.norm(runner.env.q[:, :4], axis=1) - 1.0).max()
            rows.append(
                (
                    *(dtype, f"{(part + 1) * count:.3g}", f"{count / wall:.3g}", f"{count / cpu:.3g}"),
                    *(f"{memory():.0f}", f"{drift:.1e}", f"{reward.mean():.4f}"),
                )
            )
            print(*rows[-1], flush=True)
    heads = ("numbers", "transitions", "wall, 1/s", "core, 1/s", "memory, MB", "quaternion", "reward")
    return Table("Long run", heads, tuple(rows), (f"{_LARGE} Go2, flat ground, random actions.",), left=1)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.environments", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--peer", default=sys.executable, help="interpreter that has mjbatch 0.1.4")
    parser.add_argument("--seconds", type=float, default=3.0, help="processor time of each measurement")
    parser.add_argument("--num", type=int, default=1024, help="number of robots")
    parser.add_argument("--long", type=float, help="number of transitions of a long run, which replaces the tables")
    parser.add_argument("--threads", type=int, default=1, help="threads of the long run")
    parser.add_argument("--start", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float64", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.start:
        start(given.start, given.dtype)
    elif given.long:
        print(long_run(given.long, given.threads).text())
    else:
        for table in (own_speeds(given.num, given.seconds), peer_speeds(given.peer, given.num, given.seconds)):
            if table is not None:
                print(table.text(), flush=True)
        print(start_and_memory().text())


if __name__ == "__main__":
    main()
