"""Sweeps: kills, overhead, processes beside threads, large stores. `python -m benchmarks.sweeps [PART ...]`

kills      a worker, the scheduler or the client is killed (-9) at random moments, `--kills` times, and the study is
           resumed; the table is compared with that of an undisturbed run
overhead   time of a sweep beside that of its trials, in chunks of one second
processes  two workers beside one, in a study of `--seconds` on one worker, and beside threads, bit for bit
rows       a store of a million rows is opened
trots      `--trials` trots of the design study, and the cost of 100 000
policy     `--trials` pushes of a policy, `--network`, on random friction with random mass, and the cost of 100 000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

import controllers
import legged
import robots
from benchmarks.sweeps.kills import SAMPLES, kills
from examples.studies.design.design_study import quadruped_study
from legged import sweeps
from legged.environments import velocity
from legged.sweeps import content
from legged.table import Table

FULL = 100_000
"""Number of trials of a full study of trots or of a policy."""
_TROT, _STAND = 1.0, 1.0  # [s]


def waiting(a: float, b: float) -> float:
    """Return a number after 0.1 s without work, so that other processes of the machine do not count."""
    time.sleep(0.1)
    return a + b


def counted(a: float, b: float) -> float:
    """Return a number after a fixed amount of work."""
    x = a
    for _ in range(100_000):
        x = (x * 1.0000001 + b) % 1.0
    return x


def overhead() -> Table:
    """Return the time of a sweep beside that of its trials, on one thread, in chunks of one second."""
    samples = sweeps.random(200, SAMPLES)
    start = time.perf_counter()
    for row in zip(*(x.tolist() for x in samples.columns.values()), strict=True):
        waiting(*row)
    alone = time.perf_counter() - start
    content.versions()  # once in a process
    cores, os.cpu_count = os.cpu_count, lambda: 1  # so that the sweep takes one thread
    with tempfile.TemporaryDirectory() as folder:
        sweep = legged.sweep(waiting, samples, folder, chunk=10, progress=False)
        start, used = time.perf_counter(), time.process_time()
        sweep.compute()
        own, used = time.perf_counter() - start, time.process_time() - used
    os.cpu_count = cores
    lines = [("trials alone", f"{alone:.2f} s"), ("sweep", f"{own:.2f} s")]
    lines.append(("overhead", f"{100.0 * (own / alone - 1.0):.2f} %"))
    lines.append(("processor time of the sweep, whose trials only wait", f"{used:.2f} s, {100.0 * used / alone:.2f} %"))
    return Table("Overhead in 20 chunks of 1 s, one thread", ("", ""), tuple(lines))


def processes(seconds: float = 40.0) -> Table:
    """Return the times of one and two workers for a study, and whether their tables are those of threads.

    Args:
        seconds: Of the study on one worker, [s].
    """
    from distributed import Client, LocalCluster

    start = time.process_time()
    for _ in range(20):
        counted(0.3, 0.7)
    count = max(40, round(20 * seconds / (time.process_time() - start)))
    samples, lines, taken, tables = sweeps.random(count, SAMPLES), [], list[float](), list[Any]()
    with tempfile.TemporaryDirectory() as folder:
        given = {"chunk": count // 40, "progress": False}
        tables.append(legged.sweep(counted, samples, f"{folder}/0", **given).table())
        for n in (1, 2):
            start = time.perf_counter()
            with (
                LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as connected,
            ):
                legged.sweep(counted, sweeps.random(2 * n, SAMPLES, 1), f"{folder}/w{n}", connected, chunk=1).table()
                begun = time.perf_counter() - start
                start = time.perf_counter()
                tables.append(legged.sweep(counted, samples, f"{folder}/{n}", connected, **given).table())
                taken.append(time.perf_counter() - start)
            lines.append((f"{n} workers: start with first chunks, study", f"{begun:.1f} s, {taken[-1]:.1f} s"))
    lines.append(("speed of two workers over one", f"{taken[0] / taken[1]:.2f}"))
    equal = all(table.equals(tables[0]) for table in tables)
    title = f"Workers of a LocalCluster, {count} trials, load of the machine {os.getloadavg()[0]:.1f}"
    return Table(title, ("", ""), (*lines, ("tables equal that of threads", str(equal))))


def trots(count: int) -> Table:
    """Return the results of some trots of the design study, and the cost of 100 000.

    Args:
        count: Number of simulated trots.
    """
    with tempfile.TemporaryDirectory() as folder:
        expected = quadruped_study(FULL, f"{folder}/full", until=_TROT).cost()
        sweep = quadruped_study(count, f"{folder}/some", until=_TROT)
        table = sweep.table()
        lines = [(f"trots of {_TROT:g} s", str(len(table))), *_costs(expected, sweep.cost())]
    for name, rows in (("walk", table[table["impulse"] == 0.0]), ("push", table[table["impulse"] > 0.0])):
        lines.append((f"{name}: no fall", _share(rows["success"].dropna().astype(bool))))
    return Table("Trots of the design study", ("", ""), tuple(lines))


def policy(count: int, network: str) -> Table:
    """Return the robustness of a policy against pushes, friction and mass, and the cost of 100 000 trials.

    Args:
        count: Number of trials.
        network: File of the policy that `legged train velocity spatial_quadruped` writes; "" for the zero action, by
            which the servos hold the standing posture.
    """
    robot = robots.spatial_quadruped()
    task = velocity(robot)
    zero = np.zeros(robot.nj)
    law = controllers.Policy(controllers.Network.of_onnx(network) if network else lambda x: zero, task)
    q, _ = law.initial_state(robot)
    options = {"ground": legged.Rigid(friction=0.8), "integrator": legged.TimeStepping(0.005), "q": q}
    options["pushes"] = [legged.Push("trunk", (0.0, 0.0, 0.0), at=0.2)]
    setup = sweeps.Setup(robot, law, _STAND, options=options)
    mass = float(robot.parameters()["trunk.mass"])
    ranges = {"pushes.0.impulse[1]": (0.0, 3.0 * robot.mass), "ground.friction": (0.3, 1.0)}  # up to 3 m/s
    ranges["robot.trunk.mass"] = (0.8 * mass, 1.2 * mass)
    with tempfile.TemporaryDirectory() as folder:
        expected = legged.sweep(setup, sweeps.random(FULL, ranges), f"{folder}/full").cost()
        sweep = legged.sweep(setup, sweeps.random(count, ranges), f"{folder}/some", progress=False)
        table = sweep.table()
        lines = [(f"trials of {_STAND:g} s", str(len(table))), *_costs(expected, sweep.cost())]
    lines += [(f"error: {x}", str((table["error"] == x).sum())) for x in table["error"].unique() if x]
    if table["success"].notna().any():
        mapped = sweeps.success_map(table, ["pushes.0.impulse[1]"], bins=4)
        lines += [(f"push of {row[0]} N s: no fall", f"{row[1]} ({row[3]} at 95 %)") for row in mapped.table().rows]
    return Table(f"Robustness of {network or 'the zero action'}", ("", ""), tuple(lines))


def _costs(expected: sweeps.Cost, measured: sweeps.Cost) -> list[tuple[str, str]]:
    """Return lines with the cost of `FULL` trials: before the run, and from measured ones."""
    hours = measured.seconds * FULL / 3600.0
    return [
        (f"{FULL} of them, from {expected.source}", f"{expected.core_hours:.2g} core hours"),
        (f"{FULL} of them, from these", f"{hours:.2g} core hours"),
    ]


def _share(succeeded: Any) -> str:
    """Return the number of trials that succeeded, of all, and the interval of confidence of their share, as text."""
    low, high = sweeps.success_interval(int(succeeded.sum()), len(succeeded))
    return f"{succeeded.sum()}/{len(succeeded)} ({low:.2f} to {high:.2f} at 95 %)"


def rows(count: int = 1_000_000, chunk: int = 1000) -> Table:
    """Return the time and memory in which a new process opens a store of a million rows with ten columns."""
    with tempfile.TemporaryDirectory() as folder:
        rng, samples = np.random.default_rng(0), sweeps.random(count, {f"p{k}": (0.0, 1.0) for k in range(4)})
        sweep = legged.sweep(len, samples, folder, chunk=chunk, progress=False)
        sweep.store.create()
        job, missing = sweep._prepared([*range(0, count, chunk), count])
        for name, k in missing:
            values = {f"r{i}": rng.random(len(job.rows[k])).tolist() for i in range(4)}
            texts = {"success": (rng.random(len(job.rows[k])) > 0.5).tolist(), "error": [""] * len(job.rows[k])}
            sweep.store.write_chunk(job.keys[name][k], values | texts, {})
        program = (
            "import resource, sys, time; from legged import sweeps; a = time.perf_counter();"
            "t = sweeps.Study(sys.argv[1]).table(); b = time.perf_counter() - a;"
            "print(len(t), b, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
        )
        done = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=True)
    number, seconds, processor, memory = done.stdout.split()
    lines = [("rows", number), ("opened in", f"{float(seconds):.2f} s")]
    lines.append(("time of the processor, with imports", f"{float(processor):.2f} s"))
    lines.append(("memory of the process", f"{float(memory):.0f} MiB"))
    return Table(f"A store of {count} rows in chunks of {chunk}", ("", ""), tuple(lines))


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeps", description=__doc__.splitlines()[0])
    parts = ("kills", "overhead", "processes", "rows", "trots", "policy")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; all by default")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the kills; runs with different seeds can be added up")
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--network", default="", metavar="FILE", help="policy.onnx of `legged train velocity`")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(parts):
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    functions = {"kills": lambda: kills(options.kills, options.seed), "overhead": overhead, "rows": rows}
    functions |= {"processes": lambda: processes(options.seconds), "trots": lambda: trots(options.trials)}
    functions["policy"] = lambda: policy(options.trials, options.network)
    for part in options.parts or parts:
        print(functions[part]().text(), "\n", flush=True)


if __name__ == "__main__":
    main()
