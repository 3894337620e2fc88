"""Many states in one call: ours on one core and on all, a Python loop over Pinocchio, Pinocchio's batch function."""

from collections.abc import Sequence

import numpy as np

import legged
from benchmarks.agreement import agree
from benchmarks.peak import multiply_adds, operations
from benchmarks.pinocchio_side import LOOP, Pinocchio, pinocchio
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.subjects import FORWARD, FUNCTIONS, INVERSE, present
from benchmarks.timing import Spread, Way, calls, in_threads, race
from benchmarks.words import table
from legged.app.paper.timing import states
from legged.compiler.runtime.threads import default_threads
from legged.table import Table

KIND = "batch"
ONE_STATE, ONE_CORE, ALL_CORES = "ours, one state", "ours, one core", "ours, all cores"
PYTHON_LOOP, PARALLEL, PARALLEL_ALL = "Pinocchio, loop", "Pinocchio, batch", "Pinocchio, batch, all cores"
RATIOS = ((PYTHON_LOOP, ONE_CORE), (PARALLEL, ONE_CORE), (PARALLEL_ALL, ALL_CORES), (ONE_STATE, ONE_CORE))
PEAK, OF_PEAK = ("core", "peak"), "of peak"
ROUNDING = 1e-8
"""Among thousands of random states some are so badly conditioned that accelerations keep eight digits."""


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add the times for one state of a batch to the record, and return them as a table."""
    core = multiply_adds()
    record.add(PEAK, "GFLOP/s", race({PEAK: core}, settings.rounds)[PEAK].rate(1e-9))
    for subject, robot in present().items():
        every = states(robot, settings.states)
        for name in (FORWARD, INVERSE):
            kernel = legged.compile(FUNCTIONS[name].plain, robot)
            times = race(_ways(robot, kernel, name, every, core), settings.rounds)
            operation = times.pop(PEAK[-1])
            key = KIND, subject.name, name
            for way, taken in times.items():
                record.add((*key, way), "us", taken.spread(1e6))
            for slow, fast in RATIOS:
                if slow in times:
                    record.add((*key, f"{slow} / {fast}"), RATIO, times[slow].over(times[fast]))
            parts = operation.over(times[ONE_CORE])
            record.add((*key, OF_PEAK), "%", Spread(*(100.0 * operations(kernel) * x for x in parts)))
    return [_table(record, settings)]


def _ways(
    robot: legged.Robot, kernel: legged.Kernel, name: str, every: Sequence[np.ndarray], core: Way
) -> dict[str, Way]:
    """Return the ways to time, after checking that they lead to the same numbers.

    What the core can do comes right before what it does, and well after threads that may still wait for work.
    """
    one, count, out = [array[0] for array in every], len(every[0]), np.empty_like(every[1])

    def ours(threads: int) -> Way:
        return Way(in_threads(threads, kernel, every, out), count, threads > 1)

    kernel(*every, out=out)
    several = np.stack([kernel(*state) for state in zip(*(a[:LOOP] for a in every), strict=True)])
    agree(f"{robot.name}, {name}, batch and one by one", out[:LOOP], several, ROUNDING)
    ways = {
        ONE_STATE: Way(calls(kernel, *one)),
        PEAK[-1]: core,
        ONE_CORE: ours(1),
        ALL_CORES: ours(default_threads()),
    }
    if pinocchio():
        theirs = Pinocchio(robot, every)
        ways[PYTHON_LOOP] = theirs.loop(name)
        for words, threads in ((PARALLEL, 1), (PARALLEL_ALL, default_threads())):
            ways[words], rows = theirs.batch(name, threads)
            agree(f"{robot.name}, {name}, {words}", out, rows, ROUNDING)
    return ways


def _table(record: Record, settings: Settings) -> Table:
    shown = {
        **{way: way for way in (PYTHON_LOOP, PARALLEL, ONE_CORE, ALL_CORES)},
        "loop / ours": f"{PYTHON_LOOP} / {ONE_CORE}",
        "batch / ours": f"{PARALLEL} / {ONE_CORE}",
        "all cores": f"{PARALLEL_ALL} / {ALL_CORES}",
        OF_PEAK: OF_PEAK,
    }
    flops = record.find(*PEAK)
    assert flops is not None
    notes = (
        f"Microseconds for one state of {settings.states}, and ratios, on one core or on all {default_threads()}.",
        f"Peak: {flops.median:.0f} GFLOP/s of fused multiply-adds on one core; of peak: 'ours, one core', in per cent;",
        "operations inside of sines and cosines count.",
    )
    return table(record, KIND, ("robot", "function"), shown, "Batches", notes)
