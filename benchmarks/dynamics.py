"""Speed of the dynamics functions for one state, for a batch, and of their derivatives, beside Pinocchio and MuJoCo."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import legged
from benchmarks.harness.machine_code import floating_point_operations, machine_code_loops, peak_workload
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.references import DERIVATIVES, LOOP_STATES, MujocoRobot, PinocchioRobot, mujoco, pinocchio
from benchmarks.harness.subjects import FORWARD, FUNCTIONS, INVERSE, Function, Settings, available_robots
from benchmarks.harness.timing import Spread, Workload, check_agreement, repeat, repeat_batch, time_in_turns
from examples.studies.paper.timing import states
from legged.algorithms import derivatives
from legged.compiler import default_threads, thread_limit
from legged.table import Table

# One state.

ONE_STATE_KIND = "one state"
PLAIN, OURS, CODE, DEPENDENT_CODE = "plain NumPy", "ours", "machine code", "machine code, in a row"
PINOCCHIO, MUJOCO = "Pinocchio", "MuJoCo, mj_forward"
ONE_STATE_RATIOS = ((PINOCCHIO, OURS), (PINOCCHIO, CODE), (MUJOCO, OURS), (PLAIN, OURS))
_CHECKED_STATES = 32
"""Number of states for which the programs are compared."""
_ONE_STATE_TOLERANCE = 1e-10
"""Between our code and Pinocchio's: the accelerations of an ill-conditioned state lose six of sixteen digits."""
_MUJOCO_TOLERANCE = 1e-6
"""To MuJoCo, which gives thin rods a small inertia about their axis."""


def measure_one_state(record: Record, settings: Settings) -> list[Table]:
    """Add the times of all functions for one state of all robots to the record, and return them as a table."""
    for subject, robot in available_robots().items():
        samples = states(robot, _CHECKED_STATES)
        samples[2][:, : robot.base.nv] = 0.0  # no force drives the base
        for name, function in FUNCTIONS.items():
            workloads = _one_state_workloads(robot, name, function, samples[: function.argument_count])
            times = time_in_turns(workloads, settings.rounds)
            key = ONE_STATE_KIND, subject.name, name
            for workload, measured in times.items():
                record.add((*key, workload), "us", measured.spread(1e6))
            for slow, fast in ONE_STATE_RATIOS:
                if slow in times:
                    record.add((*key, f"{slow} / {fast}"), RATIO, times[slow].ratio_to(times[fast]))
    shown = {
        **{workload: workload for workload in (PLAIN, MUJOCO, PINOCCHIO, OURS, CODE)},
        "dependent": DEPENDENT_CODE,
        "Pinocchio / ours": f"{PINOCCHIO} / {OURS}",
        "Pinocchio / code": f"{PINOCCHIO} / {CODE}",
    }
    notes = (
        "Microseconds. Pinocchio, MuJoCo and 'ours' are called from Python with one state.",
        "Machine code: 'ours' without Python, run in a loop; dependent: each run waits for the result of the last.",
        "mj_forward computes forward dynamics and all other quantities of a state in MuJoCo.",
    )
    return [quantity_table(record, ONE_STATE_KIND, ("robot", "function"), shown, "One state", notes)]


def _one_state_workloads(
    robot: legged.Robot, name: str, function: Function, samples: Sequence[np.ndarray]
) -> dict[str, Workload]:
    """Return the workloads, after checking that their results agree."""
    kernel = legged.compile(function.plain, robot)
    one = [array[0] for array in samples]
    ours = np.stack([kernel(*state) for state in zip(*samples, strict=True)])
    plain = np.stack([function.plain(robot, *state) for state in zip(*samples, strict=True)])
    check_agreement(f"{robot.name}, {name}, compiled and plain", ours, plain, _ONE_STATE_TOLERANCE)
    loops = machine_code_loops(kernel, one)
    workloads = {
        OURS: Workload(repeat(kernel, *one)),
        CODE: Workload(loops.independent),
        DEPENDENT_CODE: Workload(loops.dependent),
        PLAIN: Workload(repeat(function.plain, robot, *one)),
    }
    if pinocchio():
        theirs = PinocchioRobot(robot, samples)
        results = theirs.results(name, _CHECKED_STATES)
        check_agreement(f"{robot.name}, {name}, Pinocchio", ours, results, _ONE_STATE_TOLERANCE)
        workloads[PINOCCHIO] = theirs.single(name)
    if mujoco() and name == FORWARD:
        model = MujocoRobot(robot, 1e-3)
        model.model.opt.disableflags |= mujoco().mjtDisableBit.mjDSBL_LIMIT  # random states exceed the joint limits
        results = np.stack([model.forward_dynamics(*state) for state in zip(*samples, strict=True)])
        check_agreement(f"{robot.name}, {name}, MuJoCo", ours, results, _MUJOCO_TOLERANCE)
        workloads[MUJOCO] = Workload(repeat(mujoco().mj_forward, model.model, model.data))
    return workloads


# Batches.

BATCH_KIND = "batch"
ONE_STATE, ONE_CORE, ALL_CORES = "ours, one state", "ours, one core", "ours, all cores"
PINOCCHIO_LOOP, PINOCCHIO_BATCH, PINOCCHIO_ALL = "Pinocchio, loop", "Pinocchio, batch", "Pinocchio, batch, all cores"
BATCH_RATIOS = (
    *((PINOCCHIO_LOOP, ONE_CORE), (PINOCCHIO_BATCH, ONE_CORE)),
    *((PINOCCHIO_ALL, ALL_CORES), (ONE_STATE, ONE_CORE)),
)
PEAK, OF_PEAK = ("core", "peak"), "of peak"
_BATCH_TOLERANCE = 1e-8
"""Some of thousands of random states are so ill-conditioned that accelerations have eight correct digits."""


def measure_batches(record: Record, settings: Settings) -> list[Table]:
    """Add the times for one state of a batch to the record, and return them as a table."""
    core = peak_workload()
    record.add(PEAK, "GFLOP/s", time_in_turns({PEAK: core}, settings.rounds)[PEAK].rate(1e-9))
    for subject, robot in available_robots().items():
        batch = states(robot, settings.states)
        for name in (FORWARD, INVERSE):
            kernel = legged.compile(FUNCTIONS[name].plain, robot)
            times = time_in_turns(_batch_workloads(robot, kernel, name, batch, core), settings.rounds)
            operation = times.pop(PEAK[-1])
            key = BATCH_KIND, subject.name, name
            for workload, measured in times.items():
                record.add((*key, workload), "us", measured.spread(1e6))
            for slow, fast in BATCH_RATIOS:
                if slow in times:
                    record.add((*key, f"{slow} / {fast}"), RATIO, times[slow].ratio_to(times[fast]))
            count = floating_point_operations(kernel)
            fractions = operation.ratio_to(times[ONE_CORE])
            record.add((*key, OF_PEAK), "%", Spread(*(100.0 * count * x for x in fractions)))
    return [_batch_table(record, settings)]


def _batch_workloads(
    robot: legged.Robot, kernel: legged.Kernel, name: str, batch: Sequence[np.ndarray], core: Workload
) -> dict[str, Workload]:
    """Return the workloads, after checking that their results agree.

    The peak rate is measured right before our code on one core, and long after workloads whose threads may still spin.
    """
    one, count, out = [array[0] for array in batch], len(batch[0]), np.empty_like(batch[1])
    kernel(*batch, out=out)
    singles = np.stack([kernel(*state) for state in zip(*(a[:LOOP_STATES] for a in batch), strict=True)])
    check_agreement(f"{robot.name}, {name}, batch and single states", out[:LOOP_STATES], singles, _BATCH_TOLERANCE)
    workloads = {
        ONE_STATE: Workload(repeat(kernel, *one)),
        PEAK[-1]: core,
        ONE_CORE: Workload(repeat_batch(1, kernel, batch, out), count),
        ALL_CORES: Workload(repeat_batch(default_threads(), kernel, batch, out), count, default_threads() > 1),
    }
    if pinocchio():
        theirs = PinocchioRobot(robot, batch)
        workloads[PINOCCHIO_LOOP] = theirs.loop(name)
        for workload, threads in ((PINOCCHIO_BATCH, 1), (PINOCCHIO_ALL, default_threads())):
            workloads[workload], results = theirs.batch(name, threads)
            check_agreement(f"{robot.name}, {name}, {workload}", out, results, _BATCH_TOLERANCE)
    return workloads


def _batch_table(record: Record, settings: Settings) -> Table:
    shown = {
        **{workload: workload for workload in (PINOCCHIO_LOOP, PINOCCHIO_BATCH, ONE_CORE, ALL_CORES)},
        "loop / ours": f"{PINOCCHIO_LOOP} / {ONE_CORE}",
        "batch / ours": f"{PINOCCHIO_BATCH} / {ONE_CORE}",
        "all cores": f"{PINOCCHIO_ALL} / {ALL_CORES}",
        OF_PEAK: OF_PEAK,
    }
    peak = record.find(*PEAK)
    assert peak is not None
    notes = (
        f"Microseconds for one state of {settings.states}, and ratios, on one core or on all {default_threads()}.",
        f"Peak: {peak.median:.0f} GFLOP/s of fused multiply-adds on one core; of peak: rate of 'ours, one core' in",
        "per cent of it, with the operations inside of sines and cosines.",
    )
    return quantity_table(record, BATCH_KIND, ("robot", "function"), shown, "Batches", notes)


# New arrays for the results of a batch, beside arrays given as `out`.

RESULTS_KIND = "new results"
NEW, GIVEN = "new arrays", "out="
RESULTS_STATES = (10, 100, 1000, 3000, 10000)
"""Numbers of states, whose inertia matrices take from some kilobytes to some hundreds of megabytes."""
_RESULTS_TIME = 0.2
"""Time of a workload in one round, [s]. The last-level cache takes up to ten passes over other blocks of memory until
it holds them in place of those of the other workload; these passes are a small part of this time."""


def measure_results(record: Record, settings: Settings) -> list[Table]:
    """Add the times for one inertia matrix of a batch to the record, and return them as a table."""
    subject, robot = list(available_robots().items())[-1]
    kernel: Any = legged.compile(legged.inertia_matrix, robot)
    for count in RESULTS_STATES:
        q = states(robot, count)[0]
        workloads = {
            NEW: Workload(lambda times, q=q: _new_results(times, kernel, q), count),
            GIVEN: Workload(repeat_batch(1, kernel, [q], np.empty((count, robot.nv, robot.nv))), count),
        }
        times = time_in_turns(workloads, settings.rounds, _RESULTS_TIME)
        for workload, measured in times.items():
            record.add((RESULTS_KIND, f"{count} states", workload), "us", measured.spread(1e6))
        record.add((RESULTS_KIND, f"{count} states", f"{NEW} / {GIVEN}"), RATIO, times[NEW].ratio_to(times[GIVEN]))
    shown = {name: name for name in (NEW, GIVEN, f"{NEW} / {GIVEN}")}
    notes = (
        f"Microseconds for one inertia matrix of {subject.name}, {robot.nv} degrees of freedom, on one core.",
        "Each call returns a new array while the result of the call before still exists, or fills a given array.",
    )
    return [quantity_table(record, RESULTS_KIND, ("states",), shown, "Results in new arrays", notes)]


def _new_results(times: int, kernel: legged.Kernel, q: np.ndarray) -> None:
    """Call a kernel repeatedly; each result exists until the next one."""
    with thread_limit(1):
        for _ in range(times):
            result = kernel(q)
    del result


# First derivatives of forward dynamics.

DERIVATIVES_KIND = DERIVATIVES
DERIVATIVES_ROBOTS = ("spatial quadruped", "Solo12", "Go2")
"""The quadrupeds of 18 degrees of freedom."""
SMALL_BATCH_STATES = 128
"""Number of states whose results fit into the second-level cache."""
SMALL_BATCH, FILL = "ours, few, one core", "filled"
PINOCCHIO_ONE_STATE, PINOCCHIO_COPIED = "Pinocchio, one state", "Pinocchio, loop, kept"
DERIVATIVES_RATIOS = (
    *((PINOCCHIO_ONE_STATE, ONE_STATE), (PINOCCHIO_ONE_STATE, SMALL_BATCH)),
    *((PINOCCHIO_COPIED, SMALL_BATCH), (PINOCCHIO_COPIED, ONE_CORE)),
)
_DERIVATIVES_TOLERANCE = 1e-8
"""Relative to the largest entry of a matrix; accelerations of an ill-conditioned state have eight correct digits."""


def measure_derivatives(record: Record, settings: Settings) -> list[Table]:
    """Add the times of the derivatives for one state to the record, and return them as a table."""
    for subject, robot in available_robots().items():
        if subject.name not in DERIVATIVES_ROBOTS:
            continue
        batch = states(robot, settings.states)
        batch[2][:, : robot.base.nv] = 0.0  # no force drives the base
        times = time_in_turns(_derivatives_workloads(robot, batch), settings.rounds)
        for workload, measured in times.items():
            record.add((DERIVATIVES_KIND, subject.name, workload), "us", measured.spread(1e6))
        for slow, fast in DERIVATIVES_RATIOS:
            if slow in times:
                ratio = times[slow].ratio_to(times[fast])
                record.add((DERIVATIVES_KIND, subject.name, f"{slow} / {fast}"), RATIO, ratio)
    shown = {
        **{name: name for name in (PINOCCHIO_ONE_STATE, ONE_STATE)},
        **{"Pinocchio, loop, copied": PINOCCHIO_COPIED, ONE_CORE: ONE_CORE, "fill": FILL},
        "ours, small batch": SMALL_BATCH,
        "one / one": f"{PINOCCHIO_ONE_STATE} / {ONE_STATE}",
        "one / small": f"{PINOCCHIO_ONE_STATE} / {SMALL_BATCH}",
        "copied / small": f"{PINOCCHIO_COPIED} / {SMALL_BATCH}",
        "copied / batch": f"{PINOCCHIO_COPIED} / {ONE_CORE}",
    }
    notes = (
        "Microseconds for one state, and ratios: derivatives by q, v and tau together, 18 degrees of freedom.",
        f"Small batch: {SMALL_BATCH_STATES} states, whose results fit the second-level cache; else {settings.states}.",
        f"Fill: writing a constant to the results of the {settings.states} states, a lower bound of the time.",
        "Copied: Pinocchio's results are copied to arrays.",
    )
    return [quantity_table(record, DERIVATIVES_KIND, ("robot",), shown, "First derivatives of forward dynamics", notes)]


def _derivatives_workloads(robot: legged.Robot, batch: Sequence[np.ndarray]) -> dict[str, Workload]:
    """Return the workloads, after checking that their results agree."""
    kernel = legged.compile(derivatives.of_forward_dynamics, robot)
    small = [array[:SMALL_BATCH_STATES].copy() for array in batch]
    workloads = {ONE_STATE: Workload(repeat(kernel, *(array[0] for array in batch)))}
    out: Any = ()
    for name, arrays in ((SMALL_BATCH, small), (ONE_CORE, batch)):
        out = tuple(np.empty((len(arrays[0]), robot.nv, robot.nv)) for _ in range(3))
        workloads[name] = Workload(repeat_batch(1, kernel, arrays, out), len(arrays[0]))
    workloads[FILL] = Workload(repeat(_fill, out), len(batch[0]))
    if pinocchio():
        theirs = PinocchioRobot(robot, batch)
        loop, results = theirs.derivatives()
        for ours, expected in zip(kernel(*(array[:LOOP_STATES] for array in batch)), results, strict=True):
            check_agreement(f"{robot.name}, derivatives, Pinocchio", ours, expected, _DERIVATIVES_TOLERANCE)
        workloads |= {PINOCCHIO_ONE_STATE: theirs.single(DERIVATIVES), PINOCCHIO_COPIED: loop}
    return workloads


def _fill(arrays: Sequence[np.ndarray]) -> None:
    for array in arrays:
        array.fill(1.0)
