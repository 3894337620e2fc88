"""Compilation: how long a robot's forward dynamics take until they can be called, cold and from the cache on disk.

Each start is a process of its own, since code that is loaded stays loaded:

    python -m benchmarks.compiling "spatial quadruped"

prints the processor time of trace and first call; importing the packages and building the robot are not in it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import legged
from benchmarks.record import Record
from benchmarks.settings import Settings
from benchmarks.subjects import SUBJECTS, present
from benchmarks.timing import Spread
from benchmarks.words import table
from legged.table import Table

KIND = "compilation"
COLD, WARM = "cold", "warm"
STARTS = 3
"""Of each kind; few, since a start of Python takes longer than what is timed."""


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add the times of cold and warm starts to the record, and return them as a table."""
    for subject in present():
        taken: dict[str, list[float]] = {COLD: [], WARM: []}
        for _ in range(STARTS):
            with tempfile.TemporaryDirectory() as folder:
                for state in (COLD, WARM):
                    taken[state].append(_start(subject.name, folder))
        for state, times in taken.items():
            record.add((KIND, subject.name, state), "s", Spread.of(times))
    shown = {COLD: COLD, WARM: WARM}
    notes = (
        f"Processor time in seconds, robot to first result, in a new process, medians of {STARTS}; warm: code on disk.",
    )
    return [table(record, KIND, ("robot",), shown, "Compilation of forward dynamics, one state", notes)]


def _start(name: str, folder: str) -> float:
    """Return the time that a new process takes, [s], with compiled code kept in a folder."""
    surroundings = {**os.environ, "LEGGED_CACHE": folder}
    command = [sys.executable, "-m", "benchmarks.compiling", name]
    here = Path(__file__).parents[1]
    done = subprocess.run(command, env=surroundings, cwd=here, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def start(robot: legged.Robot) -> float:
    """Return the time of the processor until forward dynamics have been called once, [s]."""
    q, v, tau = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    begun = time.process_time()
    legged.compile(legged.forward_dynamics, robot)(q, v, tau)
    return time.process_time() - begun


if __name__ == "__main__":
    print(json.dumps(start(next(subject for subject in SUBJECTS if subject.name == sys.argv[1]).make())))
