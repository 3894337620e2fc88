"""One state: called from Python, as machine code alone, and by Pinocchio and MuJoCo from Python."""

from collections.abc import Sequence

import numpy as np

import legged
from benchmarks.agreement import agree
from benchmarks.alone import alone
from benchmarks.mujoco_side import MujocoTwin, mujoco
from benchmarks.pinocchio_side import Pinocchio, pinocchio
from benchmarks.record import RATIO, Record
from benchmarks.settings import Settings
from benchmarks.subjects import FORWARD, FUNCTIONS, Function, present
from benchmarks.timing import Way, calls, race
from benchmarks.words import table
from legged.app.paper.timing import states
from legged.table import Table

KIND = "one state"
PLAIN, OURS, CODE, IN_A_ROW, PINOCCHIO, MUJOCO = (
    *("plain NumPy", "ours", "machine code", "machine code, in a row", "Pinocchio", "MuJoCo, mj_forward"),
)
RATIOS = ((PINOCCHIO, OURS), (PINOCCHIO, CODE), (MUJOCO, OURS), (PLAIN, OURS))
CHECKED = 32
"""States on which the programs are compared."""
ROUNDING = 1e-10
"""Between our ways, and to Pinocchio: accelerations of a badly conditioned state lose six digits of sixteen."""
THIN = 1e-6
"""To MuJoCo, which has thin rods with a little inertia."""


def measure(record: Record, settings: Settings) -> list[Table]:
    """Add the times of all functions on all robots to the record, and return them as a table."""
    for subject, robot in present().items():
        every = states(robot, CHECKED)
        every[2][:, : robot.base.nv] = 0.0  # nothing drives the base
        for name, function in FUNCTIONS.items():
            ways = _ways(robot, name, function, every[: function.takes])
            times = race(ways, settings.rounds)
            key = KIND, subject.name, name
            for way, taken in times.items():
                record.add((*key, way), "us", taken.spread(1e6))
            for slow, fast in RATIOS:
                if slow in times:
                    record.add((*key, f"{slow} / {fast}"), RATIO, times[slow].over(times[fast]))
    return [_table(record)]


def _ways(robot: legged.Robot, name: str, function: Function, every: Sequence[np.ndarray]) -> dict[str, Way]:
    """Return the ways to time, after checking that they lead to the same numbers."""
    kernel = legged.compile(function.plain, robot)
    one = [array[0] for array in every]
    ours = np.stack([kernel(*state) for state in zip(*every, strict=True)])
    plain = np.stack([function.plain(robot, *state) for state in zip(*every, strict=True)])
    agree(f"{robot.name}, {name}, compiled and plain", ours, plain, ROUNDING)
    code = alone(kernel, one)
    ways = {
        OURS: Way(calls(kernel, *one)),
        CODE: Way(code.free),
        IN_A_ROW: Way(code.in_a_row),
        PLAIN: Way(calls(function.plain, robot, *one)),
    }
    if pinocchio():
        theirs = Pinocchio(robot, every)
        agree(f"{robot.name}, {name}, Pinocchio", ours, theirs.results(name, CHECKED), ROUNDING)
        ways[PINOCCHIO] = theirs.one(name)
    if mujoco() and name == FORWARD:
        twin = MujocoTwin(robot, 1e-3)
        twin.model.opt.disableflags |= mujoco().mjtDisableBit.mjDSBL_LIMIT  # random states are beyond the joints' stops
        rows = np.stack([twin.forward_dynamics(*state) for state in zip(*every, strict=True)])
        agree(f"{robot.name}, {name}, MuJoCo", ours, rows, THIN)
        ways[MUJOCO] = Way(calls(mujoco().mj_forward, twin.model, twin.data))
    return ways


def _table(record: Record) -> Table:
    shown = {
        **{way: way for way in (PLAIN, MUJOCO, PINOCCHIO, OURS, CODE)},
        "in a row": IN_A_ROW,
        "Pinocchio / ours": f"{PINOCCHIO} / {OURS}",
        "Pinocchio / code": f"{PINOCCHIO} / {CODE}",
    }
    notes = (
        "Microseconds. Pinocchio, MuJoCo and 'ours' are called from Python with one state.",
        "Machine code: 'ours' without Python, run again and again; in a row: a run waits for the result of the last.",
        "mj_forward computes forward dynamics, and all else that MuJoCo knows of a state.",
    )
    return table(record, KIND, ("robot", "function"), shown, "One state", notes)
