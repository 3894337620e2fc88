"""First derivatives of forward dynamics: ours for one state and for many, and Pinocchio's from Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import legged
from benchmarks.agreement import agree
from benchmarks.pinocchio_side import LOOP, Pinocchio, pinocchio
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.subjects import present
from benchmarks.timing import Way, calls, in_threads, race
from benchmarks.words import table
from legged.algorithms import derivatives
from legged.app.paper.timing import states
from legged.table import Table

KIND = "derivatives"
ROBOTS = ("spatial quadruped", "Solo12", "Go2")
"""Those of 18 degrees of freedom."""
FEW = 128
"""States whose results stay in the processor's second cache."""
ROUNDING = 1e-8
"""Of the matrices' largest entries; accelerations of a badly conditioned state keep eight digits."""
OURS, FEW_ONE_CORE, ONE_CORE = "ours, one state", "ours, few, one core", "ours, one core"
FILLED = "filled"
PINOCCHIO, KEPT = "Pinocchio, one state", "Pinocchio, loop, kept"
RATIOS = ((PINOCCHIO, OURS), (PINOCCHIO, FEW_ONE_CORE), (KEPT, FEW_ONE_CORE), (KEPT, ONE_CORE))


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add the times for one state to the record, and return them as a table."""
    for subject, robot in present().items():
        if subject.name not in ROBOTS:
            continue
        every = states(robot, settings.states)
        every[2][:, : robot.base.nv] = 0.0  # nothing drives the base
        times = race(_ways(robot, every), settings.rounds)
        for way, taken in times.items():
            record.add((KIND, subject.name, way), "us", taken.spread(1e6))
        for slow, fast in RATIOS:
            if slow in times:
                record.add((KIND, subject.name, f"{slow} / {fast}"), RATIO, times[slow].over(times[fast]))
    return [_table(record, settings)]


def _ways(robot: legged.Robot, every: Sequence[np.ndarray]) -> dict[str, Way]:
    """Return the ways to time, after checking that they lead to the same numbers."""
    kernel = legged.compile(derivatives.of_forward_dynamics, robot)
    few = [array[:FEW].copy() for array in every]
    ways = {OURS: Way(calls(kernel, *(array[0] for array in every)))}
    for name, arrays in ((FEW_ONE_CORE, few), (ONE_CORE, every)):
        out: Any = tuple(np.empty((len(arrays[0]), robot.nv, robot.nv)) for _ in range(3))
        ways[name] = Way(in_threads(1, kernel, arrays, out), len(arrays[0]))
    ways[FILLED] = Way(calls(_fill, out), len(every[0]))
    if pinocchio():
        theirs = Pinocchio(robot, every)
        loop, found = theirs.derivatives()
        for ours, rows in zip(kernel(*(array[:LOOP] for array in every)), found, strict=True):
            agree(f"{robot.name}, derivatives, Pinocchio", ours, rows, ROUNDING)
        ways |= {PINOCCHIO: theirs.one(KIND), KEPT: loop}
    return ways


def _fill(arrays: Sequence[np.ndarray]) -> None:
    for array in arrays:
        array.fill(1.0)


def _table(record: Record, settings: Settings) -> Table:
    shown = {
        **{way: way for way in (PINOCCHIO, OURS, KEPT, ONE_CORE, FILLED, FEW_ONE_CORE)},
        "one / one": f"{PINOCCHIO} / {OURS}",
        "one / few": f"{PINOCCHIO} / {FEW_ONE_CORE}",
        "kept / few": f"{KEPT} / {FEW_ONE_CORE}",
        "kept / batch": f"{KEPT} / {ONE_CORE}",
    }
    notes = (
        "Microseconds for one state, and ratios: derivatives by q, v and tau together, 18 degrees of freedom.",
        f"Few: {FEW} states, whose results stay in the second cache; else {settings.states}, written to memory.",
        f"Filled: a constant is written into the results of the {settings.states}, the least that storing takes.",
        "Kept: Pinocchio's results are copied into arrays, as ours are written to.",
    )
    return table(record, KIND, ("robot",), shown, "First derivatives of forward dynamics", notes)
