"""Batched dynamics beside Pinocchio: agreement first, then time for one state, then the distance to the core's peak.

    python benchmarks/batches.py [--states N] [--rounds N]

Every way is timed in turns in one run; what counts is the ratios. "Loop" is a Python loop over Pinocchio's function;
"parallel" is Pinocchio's own batch function, with one thread.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import legged
import robots
from legged.reports.table import Table
from legged.reports.timing import states
from legged.trace import batches, elementary
from legged.trace.assembler import Writer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]
from peak import peak  # noqa: E402

FUNCTIONS = (legged.forward_dynamics, legged.inverse_dynamics)
LOOP = 64
"""States in the loop over Pinocchio: enough, since they are done one after the other."""


class Times(NamedTuple):
    """Time for one state, [s]: the median of the rounds, and the shortest."""

    median: float
    best: float

    def words(self) -> str:
        return f"{1e6 * self.median:.3g}"


def race(ways: Sequence[tuple[Callable[[], Any], int]], rounds: int, least: float = 0.03) -> list[Times]:
    """Return the wall-clock time of every way, taken in turns, over the number of states that it does in one call."""
    repeats = []
    for way, _ in ways:
        way()
        repeats.append(max(1, int(least / _time(way, 1))))
    taken: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for k, (way, count) in enumerate(ways):
            taken[k].append(_time(way, repeats[k]) / repeats[k] / count)
    return [Times(statistics.median(t), min(t)) for t in taken]


def _time(way: Callable[[], Any], times: int) -> float:
    begun = time.perf_counter()
    for _ in range(times):
        way()
    return time.perf_counter() - begun


def operations(kernel: legged.Kernel) -> int:
    """Return the additions, multiplications, divisions and roots of one state, those inside sines included."""
    counts = kernel.counts
    total = counts.multiplications + counts.additions + counts.divisions + counts.square_roots
    uses = {(elementary.FAST.get(n.operation), n.arguments) for n in kernel.graph.nodes}
    return total + sum(_inside(function) for function, _ in uses if function)


def _inside(function: str) -> int:
    formula, takes, _ = elementary.FORMULAS[function]
    w = Writer(8)
    formula(w, *["%x", "%y"][:takes])
    kinds = {" = fadd": 1, " = fsub": 1, " = fmul": 1, " = fdiv": 1, "@llvm.fma": 2}
    return sum(n for line in w.lines for kind, n in kinds.items() if kind in line)


def compare(robot: legged.Robot, count: int, rounds: int, flops: float) -> list[tuple[str, ...]]:
    """Return a row for each function, after checking that its results agree with Pinocchio's."""
    import pinocchio as pin
    from oracles.pinocchio_model import pinocchio_twin

    twin = pinocchio_twin(robot)
    model, data, pool = twin.model, twin.data, pin.ModelPool(twin.model, 1)
    every = states(robot, count)
    theirs = [np.stack([twin.q(q) for q in every[0]]), *(np.stack([twin.v(x) for x in a]) for a in every[1:])]
    columns = [np.asfortranarray(a.T) for a in theirs]
    few = [tuple(a[k] for a in theirs) for k in range(LOOP)]
    one = [np.ascontiguousarray(a[0]) for a in every]
    rows = []
    for function in FUNCTIONS:
        forward = function is legged.forward_dynamics
        algorithm, parallel = (pin.aba, pin.abaInParallel) if forward else (pin.rnea, pin.rneaInParallel)
        kernel = legged.compile(function, robot)
        out, their_out = np.empty_like(every[1]), np.empty((model.nv, count), order="F")
        kernel(*every, out=out)
        parallel(1, pool, *columns, their_out)
        disagreement = np.max(np.abs(out - twin.ours(their_out.T))) / np.max(np.abs(out))
        if not disagreement < 1e-9:
            raise SystemExit(f"{robot.name}, {function.__name__}: {disagreement:g} apart from Pinocchio; no times")
        ways: list[tuple[Callable[[], Any], int]] = [
            (lambda a=algorithm: [a(model, data, *state) for state in few], LOOP),
            (lambda p=parallel, o=their_out: p(1, pool, *columns, o), count),
            (lambda k=kernel: k(*one), 1),
            (lambda k=kernel, o=out: k(*every, out=o, threads=1), count),
            (lambda k=kernel, o=out: k(*every, out=o), count),
        ]
        loop, batch, single, core, threads = race(ways, rounds)
        achieved = operations(kernel) / core.best
        rows.append(
            (
                f"{robot.name} ({robot.nv}), {function.__name__.split('_')[0]}",
                *(t.words() for t in (loop, batch, single, core, threads)),
                *(f"{loop.median / t.median:.1f}" for t in (single, core, threads)),
                f"{batch.median / core.median:.1f}",
                f"{100.0 * achieved / flops:.0f} %",
                f"{disagreement:.0e}",
            )
        )
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time batches of states.")
    parser.add_argument("--states", type=int, default=4096, help="states in a batch")
    parser.add_argument("--rounds", type=int, default=7, help="how often every way is timed; the median counts")
    chosen = parser.parse_args()
    flops = peak()
    rows = [
        row
        for robot in (robots.planar_biped(), robots.spatial_quadruped(), robots.hexapod(), robots.humanoid())
        for row in compare(robot, chosen.states, chosen.rounds, flops)
    ]
    header = (
        *("robot (degrees of freedom)", "loop [us]", "parallel", "ours, one", "batch", f"{_threads()} threads"),
        *("loop/one", "loop/batch", "loop/threads", "parallel/batch", "of peak", "apart"),
    )
    notes = (
        f"Microseconds for one state, medians of {chosen.rounds} rounds; batches of {chosen.states}.",
        "One core, but where threads are named.",
        f"Peak: {flops / 1e9:.0f} GFLOP/s of fused multiply-adds on this core; operations inside sines count.",
    )
    print(Table("Dynamics of many states", header, tuple(rows), notes).text())


def _threads() -> int:
    return batches.default_threads()


if __name__ == "__main__":
    main()
