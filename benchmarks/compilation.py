"""Compilation: start time of forward dynamics, and how compilation time and code size grow with a robot.

    python -m benchmarks.compilation start ROBOT
    python -m benchmarks.compilation passes ROBOT [--per-operation]
    python -m benchmarks.compilation scene
    python -m benchmarks.compilation growth [--function NAME] [--max-links LINKS] [--straight-line]

`start` prints the processor time in seconds from the robot to the first result of forward dynamics in this process,
without the import of the packages and the construction of the robot. It is a warm start if the code is in the cache.

`passes` prints the processor time of each pass of the compiler for forward dynamics with an empty cache, the fastest of
several compilations; with `--per-operation` those of passes in Python for an operation, in seconds.

`scene` prints the processor time and the elapsed time in seconds from the robot to the first step of a quadruped on
rigid ground. Loops are compiled by a second thread.

`growth` prints a table for chains, centipedes and random trees of growing size (docs/explanation/growth.md).
Processor times in seconds: `trace` records the graph, `simplify` factors it unless it is outlined for its size, `code`
generates and loads the machine code for one state. `code` and `tables` in kB are sections of the object file. Run times
are the shortest of several, on one thread; a batch has 64 states.
"""

import argparse
import inspect
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import controllers
import legged
import robots
from benchmarks.harness.record import Record, quantity_table
from benchmarks.harness.subjects import SUBJECTS, Settings, available_robots
from benchmarks.harness.timing import Spread
from legged.compiler import CompilationReport, Kernel, mechanisms, record, run_passes
from legged.compiler.cache import disk, machine_code
from legged.compiler.compilation import ARGUMENTS
from legged.compiler.ir import gc_paused
from legged.compiler.passes.pipeline import is_always_outlined
from legged.table import Table

KIND = "compilation"
IMPORTS, IMPORT_TIME = "imports", "processor time"
STATEMENTS = ("import legged", "from legged import *", "import legged, controllers, robots")
COLD, WARM, ELAPSED = "cold", "warm", "cold, elapsed"
SCENE = "quadruped on rigid ground"
PASSES = ("tracing", "simplification", "writing of LLVM IR")
"""Passes in Python whose time for an operation is recorded."""
STARTS = 3
"""Number of starts of each kind; a start of Python takes longer than the compilation."""


def measure_starts(record: Record, settings: Settings) -> list[Table]:
    """Add the times of imports and of cold and warm starts, each in a new process, to the record, and return tables."""
    for statement in STATEMENTS:
        times_of_import = Spread.of([_import_time(statement) for _ in range(STARTS)])
        record.add((IMPORTS, statement, IMPORT_TIME), "s", times_of_import)
    for subject in available_robots():
        times: dict[str, list[float]] = {COLD: [], WARM: []}
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory() as folder:
                for state in (COLD, WARM):
                    times[state].append(_start_process(subject.name, folder))
        for state, measured in times.items():
            record.add((KIND, subject.name, state), "s", Spread.of(measured))
        measured = json.loads(_process("passes", subject.name, "--per-operation"))
        for name, seconds in measured.items():
            record.add((KIND, subject.name, name), "us", Spread.of([1e6 * seconds]))
    scenes = [_cold_scene() for _ in range(STARTS)]
    for name, seconds in zip((COLD, ELAPSED), zip(*scenes, strict=True), strict=True):
        record.add((KIND, SCENE, name), "s", Spread.of(list(seconds)))
    notes = (
        f"Processor time in seconds from the robot to the first result in a new process, medians of {STARTS}.",
        "Warm: machine code in the cache on disk. Scene: from the robot to the first step of a standing robot. "
        "Elapsed: the same by the clock, with two threads.",
        f"Passes in Python: microseconds for an operation, the fastest of {STARTS} compilations.",
    )
    title, shown = "Compilation of forward dynamics, one state", {name: name for name in (COLD, ELAPSED, WARM, *PASSES)}
    start = f"Processor time in seconds of a new process, start of Python included, medians of {STARTS}."
    imports = quantity_table(record, IMPORTS, ("program",), {"s": IMPORT_TIME}, "Imports", (start,))
    return [imports, quantity_table(record, KIND, ("robot",), shown, title, notes)]


def _import_time(statement: str) -> float:
    """Return the processor time of a new process that executes a statement, [s]."""
    program = f"{statement}; import time; print(time.process_time())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def _start_process(name: str, folder: str) -> float:
    """Return the start time in a new process, [s], with the cache in a folder."""
    return json.loads(_process("start", name, folder=folder))


def _cold_scene() -> list[float]:
    """Return the result of `scene_time` in a new process with an empty cache, [s]."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(_process("scene", folder=folder))


def _process(*arguments: str, folder: str = "") -> str:
    """Return the standard output of `python -m benchmarks.compilation ARGUMENTS`, with the cache in a folder."""
    command = [sys.executable, "-m", "benchmarks.compilation", *arguments]
    environment = {**os.environ, "LEGGED_CACHE": folder} if folder else None
    root = Path(__file__).parents[1]
    return subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=True).stdout


def scene_time() -> tuple[float, float]:
    """Return processor and elapsed time until the first step of a quadruped that stands on rigid ground, [s]."""
    robot = robots.spatial_quadruped()
    law = controllers.JointPD(controllers.Stand(hip_height=0.5), 300.0, 10.0)  # [m], [N m/rad], [N m s/rad]
    start, begin = time.process_time(), time.perf_counter()
    simulation = legged.Simulation(robot, law, ground=legged.Rigid())
    simulation.step()
    taken = time.process_time() - start, time.perf_counter() - begin
    assert simulation.backend.startswith("compiled"), simulation.backend
    return taken


def pass_times(report: CompilationReport) -> dict[str, float]:
    """Return the processor time of passes in Python for an operation of the graph, [s]."""
    return {name: report.passes[name].seconds / report.passes["tracing"].operations for name in PASSES}


def start_time(robot: legged.Robot) -> float:
    """Return the processor time until the first result of forward dynamics, [s]."""
    q, v, tau = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    start = time.process_time()
    legged.compile(legged.forward_dynamics, robot)(q, v, tau)
    return time.process_time() - start


def fastest_report(robot: legged.Robot) -> CompilationReport:
    """Return the report on the fastest of several cold compilations of forward dynamics."""
    reports = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder
        for _ in range(STARTS):
            disk.clear()
            machine_code.unload()
            with CompilationReport() as report:
                legged.compile(legged.forward_dynamics, robot)
            reports.append(report)
    return min(reports, key=lambda report: report.total)


_BATCH_STATES, _ROUNDS, _MIN_TIME = 64, 10, 0.01  # time in [s]
_LINKS = (12, 25, 50, 100, 200, 500, 1000)
_HEADER = (
    *("robot", "links", "operations", "trace [s]", "simplify [s]", "code [s]"),
    *("code [kB]", "tables [kB]", "one state [us]", "batch [us]"),
)


def growth_table(function: Callable[..., Any], max_links: int) -> Table:
    """Return compilation times and code sizes of a function for robots of growing size; print the rows as they come."""
    rows = []
    for name, build in _growing_robots():
        for links in _LINKS:
            if links <= max_links:
                rows.append((name, *growth_row(build(links), function)))
                print("  ".join(rows[-1]), flush=True)
    return Table(f"{function.__name__}: growth with the robot", _HEADER, tuple(rows))


def _growing_robots() -> Iterator[tuple[str, Callable[[int], legged.Robot]]]:
    """Yield (name, function of the number of links that builds a robot)."""
    yield "chain, quarter turns", lambda n: robots.chain(n, twist=np.pi / 2)
    yield "chain, any twist", lambda n: robots.chain(n, twist=0.7)
    yield "centipede", lambda n: robots.centipede(max(round(n / 7), 1))
    yield "legs of three links", lambda n: robots.star(max(round(n / 3), 1))
    yield "tree of revolute joints", lambda n: legged.random_tree(0, n, joints=("revolute",), bases=("floating",))
    yield "tree of all joints", lambda n: legged.random_tree(0, n, bases=("floating",))


@gc_paused()
def growth_row(robot: legged.Robot, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the cells of a row after the name of the robot."""
    names = [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty][1:]
    clock = [time.process_time()]
    graph = record(function, {name: ARGUMENTS[name].shape(robot) for name in names}, (robot,))
    clock.append(time.process_time())
    graph = run_passes(graph, simplified=not is_always_outlined(graph)).graph
    clock.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder
        disk.clear()
        machine_code.unload()
        kernel = Kernel(graph)
        _ = kernel.code  # compiles
        clock.append(time.process_time())
        sizes = _section_sizes(next(Path(folder).rglob("*.o")).name)
        seconds = [f"{after - before:.2f}" for before, after in itertools.pairwise(clock)]
        kilobytes = [f"{size / 1e3:.0f}" for size in sizes]
        times = [f"{1e6 * t:.2f}" for t in _run_times(kernel, robot)]
        return (str(len(robot.links) - 1), str(len(graph.nodes)), *seconds, *kilobytes, *times)


def _section_sizes(name: str) -> tuple[int, int]:
    """Return the sizes of code and of tables, [bytes], in a file of the cache."""
    code = disk.read(name)
    assert code is not None, "the cache must contain the file that was just written"
    file = llvm.ObjectFileRef.from_data(code)  # must outlive its sections
    sizes = [(part.is_text(), (part.name() or b"").decode(), part.size()) for part in file.sections()]
    tables = sum(size for _, name, size in sizes if name.startswith((".rodata", ".lrodata", "__const", ".rdata")))
    return sum(size for is_text, _, size in sizes if is_text), tables


def _run_times(kernel: Kernel, robot: legged.Robot) -> tuple[float, float]:
    """Return the times for one state, called alone and in a batch, [s]."""
    rng = np.random.default_rng(0)
    q = legged.random_configuration(robot, rng)
    one = [q if a.name == "q" else rng.normal(size=a.shape) for a in kernel.arguments]
    batch = [np.tile(x, (_BATCH_STATES, 1)) for x in one]
    return _shortest(lambda: kernel(*one)), _shortest(lambda: kernel(*batch, threads=1)) / _BATCH_STATES


def _shortest(run: Callable[[], Any]) -> float:
    """Return the shortest time of several rounds, [s]."""
    run()
    times, repetitions = [], 1
    while len(times) < _ROUNDS:
        start = time.process_time()
        for _ in range(repetitions):
            run()
        taken = time.process_time() - start
        if taken < _MIN_TIME:
            repetitions *= 2
        else:
            times.append(taken / repetitions)
    return min(times)


def main() -> None:
    """Print a start time, the times of passes, or the table of growth."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compilation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("start", help="print the start time of forward dynamics")
    start.add_argument("robot", choices=[subject.name for subject in SUBJECTS])
    passes = commands.add_parser("passes", help="print the time of each pass of the compiler")
    passes.add_argument("robot", choices=[subject.name for subject in SUBJECTS])
    passes.add_argument(
        "--per-operation", action="store_true", help="print the times of passes in Python for an operation, [s]"
    )
    commands.add_parser("scene", help="print the start times of a quadruped on rigid ground")
    growth = commands.add_parser("growth", help="print compilation times and code sizes for robots of growing size")
    growth.add_argument("--function", default="forward_dynamics", help="name of a function of legged")
    growth.add_argument("--max-links", type=int, default=1000, help="number of links of the largest robot")
    growth.add_argument("--straight-line", action="store_true", help="outline no graph")
    options = parser.parse_args()
    if options.command == "scene":
        print(json.dumps(scene_time()))
        return
    if options.command != "growth":
        robot = next(subject for subject in SUBJECTS if subject.name == options.robot).make()
        if options.command == "start":
            print(json.dumps(start_time(robot)))
            return
        report = fastest_report(robot)
        print(json.dumps(pass_times(report)) if options.per_operation else report)
        return
    with mechanisms.without(*[mechanisms.OUTLINING] * options.straight_line):
        print(growth_table(getattr(legged, options.function), options.max_links).text())


if __name__ == "__main__":
    main()
