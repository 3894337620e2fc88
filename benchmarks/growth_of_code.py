"""How compilation, code and run time grow with a robot: chains, centipedes and random trees.

    python -m benchmarks.growth_of_code [--function NAME] [--most LINKS] [--straight]

Seconds are the processor's: `trace` runs the function on expressions, `simplify` looks for common factors, `code` is
everything from there to loaded machine code for one state. Code and tables are sections of that object file. Run times
are the best of some, on one thread; a batch has 64 states. With --straight no graph is run as tables.
"""

import argparse
import inspect
import itertools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

import legged
import robots
from legged.compiler import Kernel, record
from legged.compiler.cache import disk
from legged.compiler.codegen import selection
from legged.compiler.compile import ARGUMENTS
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.passes.simplify import simplify
from legged.table import Table

BATCH, ROUNDS, LEAST = 64, 10, 0.01  # states, rounds, [s]
LINKS = (12, 25, 50, 100, 200, 500, 1000)
HEADER = (
    *("robot", "links", "operations", "trace [s]", "simplify [s]", "code [s]"),
    *("code [kB]", "tables [kB]", "one [us]", "batch [us]"),
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--function", default="forward_dynamics", help="a function of a robot and arrays")
    parser.add_argument("--most", type=int, default=1000, help="links of the largest robot")
    parser.add_argument("--straight", action="store_true", help="write every graph out, operation by operation")
    options = parser.parse_args()
    if options.straight:
        selection.OUTLINE_NODES = selection.OUTLINE_ALWAYS_NODES = selection.OUTLINE_BATCH_NODES = 1 << 60
    function = getattr(legged, options.function)
    rows = []
    for kind, build in subjects():
        for links in LINKS:
            if links <= options.most:
                rows.append((kind, *measured(build(links), function)))
                print("  ".join(rows[-1]), flush=True)
    print(Table(f"{options.function}: growth with the robot", HEADER, tuple(rows)).text())


def subjects() -> Iterator[tuple[str, Callable[[int], legged.Robot]]]:
    """Yield (kind, what builds one of so many links)."""
    yield "chain, quarter turns", lambda n: robots.chain(n, twist=np.pi / 2)
    yield "chain, any twist", lambda n: robots.chain(n, twist=0.7)
    yield "centipede", lambda n: robots.centipede(max(round(n / 7), 1))
    yield "tree of revolute joints", lambda n: legged.random_tree(0, n, joints=("revolute",), bases=("floating",))
    yield "tree of all joints", lambda n: legged.random_tree(0, n, bases=("floating",))


@gc_paused()
def measured(robot: legged.Robot, function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the cells of a row behind its first."""
    names = [name for name, p in inspect.signature(function).parameters.items() if p.default is p.empty][1:]
    clock = [time.process_time()]
    graph = record(function, {name: ARGUMENTS[name].shape(robot) for name in names}, (robot,))
    clock.append(time.process_time())
    graph = simplify(graph)
    clock.append(time.process_time())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LEGGED_CACHE"] = folder
        disk.clear()
        kernel = Kernel(graph)
        clock.append(time.process_time())
        sizes = sections(next(Path(folder).glob("*.o")))
        seconds = [f"{after - before:.2f}" for before, after in itertools.pairwise(clock)]
        kilobytes = [f"{size / 1e3:.0f}" for size in sizes]
        times = [f"{1e6 * t:.2f}" for t in run_times(kernel, robot)]
        return (str(len(robot.links) - 1), str(len(graph.nodes)), *seconds, *kilobytes, *times)


def sections(path: Path) -> tuple[int, int]:
    """Return the sizes of code and of tables, [bytes], in a file of the cache."""
    content = path.read_bytes()
    code = content[content.index(b"\n") + 33 :]  # behind a line and a checksum
    file = llvm.ObjectFileRef.from_data(code)  # which its sections are parts of
    sizes = [(part.is_text(), (part.name() or b"").decode(), part.size()) for part in file.sections()]
    tables = sum(size for _, name, size in sizes if name.startswith((".rodata", ".lrodata", "__const", ".rdata")))
    return sum(size for is_text, _, size in sizes if is_text), tables


def run_times(kernel: Kernel, robot: legged.Robot) -> tuple[float, float]:
    """Return the times that a state takes alone and in a batch, [s]."""
    rng = np.random.default_rng(0)
    q = legged.random_configuration(robot, rng)
    one = [q if a.name == "q" else rng.normal(size=a.shape) for a in kernel.arguments]
    many = [np.tile(x, (BATCH, 1)) for x in one]
    return best(lambda: kernel(*one)), best(lambda: kernel(*many, threads=1)) / BATCH


def best(run: Callable[[], Any]) -> float:
    """Return the shortest time of several, [s], each of a hundredth of a second at least."""
    run()
    times, repeats = [], 1
    while len(times) < ROUNDS:
        start = time.process_time()
        for _ in range(repeats):
            run()
        taken = time.process_time() - start
        if taken < LEAST:
            repeats *= 2
        else:
            times.append(taken / repeats)
    return min(times)


if __name__ == "__main__":
    main()
