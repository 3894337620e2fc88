"""Speed of two threads beside one, for batches and rollouts of 0.2 and 1 ms of work."""

import numpy as np

import legged
import robots
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.subjects import FORWARD, FUNCTIONS, Settings
from benchmarks.harness.timing import Workload, repeat, repeat_batch, time_in_turns
from benchmarks.simulation import TROT, check_all_finished, closed_loop, laws
from examples.studies.paper.timing import states
from legged.compiler import default_threads
from legged.compiler.codegen.llvm import vector_width
from legged.table import Table

KIND = "threads"
BATCH, ROLLOUT = "batch, forward dynamics", "rollout, trot by computed torque"
DURATIONS = {"0.2 ms": 2e-4, "1 ms": 1e-3}  # [s], of one thread
ONE, TWO = "one thread", "two threads"
SPEEDUP = f"{ONE} / {TWO}"
_STEPS = 20
"""Time steps of a rollout."""
_PROBE = 256
"""States and members of the runs that determine how many of them take the wanted time."""


def measure_threads(record: Record, settings: Settings) -> list[Table]:
    """Add the times with one and with two threads to the record, and return them as a table.

    Both are wall times. Without a second processor there is nothing to measure.
    """
    notes = (
        "Microseconds of wall time. The number of states or members is such that one thread takes about the time of",
        "the first column. Other programs that run meanwhile take the second processor.",
    )
    if default_threads() > 1:
        for name, duration in DURATIONS.items():
            for case, make in ((BATCH, _batch), (ROLLOUT, _rollout)):
                times = time_in_turns(make(duration), settings.rounds)
                for threads, measured in times.items():
                    record.add((KIND, case, name, threads), "us", measured.spread(1e6))
                record.add((KIND, case, name, SPEEDUP), RATIO, times[ONE].ratio_to(times[TWO]))
    shown = {name: name for name in (ONE, TWO, SPEEDUP)}
    return [quantity_table(record, KIND, ("work", "time"), shown, "Two threads beside one", notes)]


def _count(duration: float, probe: Workload) -> int:
    """Return the number of states that one thread processes in a time, [s]: a multiple of the lanes."""
    time = min(time_in_turns({ONE: probe}, 5)[ONE].rounds)
    return max(round(duration / time / vector_width()), 2) * vector_width()


def _batch(duration: float) -> dict[str, Workload]:
    robot = robots.spatial_quadruped()
    kernel = legged.compile(FUNCTIONS[FORWARD].plain, robot)

    def workload(count: int, threads: int) -> Workload:
        batch = states(robot, count)
        return Workload(repeat_batch(threads, kernel, batch, np.empty_like(batch[1])), threads=True)

    count = _count(duration, workload(_PROBE, 1)._replace(states=_PROBE))
    return {ONE: workload(count, 1), TWO: workload(count, 2)}


def _rollout(duration: float) -> dict[str, Workload]:
    robot = robots.spatial_quadruped()
    law = laws()[TROT]
    probe = Workload(repeat(closed_loop(robot, law, _PROBE, _STEPS), 1), _PROBE, True)
    run = closed_loop(robot, law, _count(duration, probe), _STEPS)
    check_all_finished(run(2))
    return {ONE: Workload(repeat(run, 1), threads=True), TWO: Workload(repeat(run, 2), threads=True)}
