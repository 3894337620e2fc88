"""Speed of batches and rollouts with float32 numbers beside float64, and beside Pinocchio, for all targets of this
processor."""

from collections.abc import Iterator

import numpy as np

import legged
import robots
from benchmarks.dynamics import PINOCCHIO_LOOP
from benchmarks.harness.record import RATIO, Record, quantity_table
from benchmarks.harness.references import PinocchioRobot, pinocchio
from benchmarks.harness.subjects import FORWARD, FUNCTIONS, SUBJECTS, Settings, available_robots
from benchmarks.harness.timing import Workload, check_agreement, repeat, repeat_batch, time_in_turns
from benchmarks.simulation import (
    BALANCED,
    STANDING,
    STEPS,
    TROT,
    check_all_finished,
    closed_loop,
    compiled_rollout,
    laws,
)
from examples.studies.paper.timing import states
from legged.compiler import FLOAT32, FLOAT64
from legged.compiler.codegen import llvm
from legged.compiler.codegen.element_type import ELEMENT_TYPES
from legged.contact import Rigid
from legged.table import Table

KIND = "float32"
ROBOTS = ("Go2", "G1")
RIGID = "standing, servos, rigid ground"
CASES = (STANDING, TROT, BALANCED, RIGID)
_RIGID_STEP = 1e-3
"""Time step on rigid ground, [s]."""
ROLLOUTS = "spatial quadruped, rollout"
SPEEDUP = f"{FLOAT64} / {FLOAT32}"
BESIDE_PINOCCHIO = f"{PINOCCHIO_LOOP} / {FLOAT64}"
_TOLERANCE = 1e-3
"""Of accelerations: the condition of the inertia matrix of some random states is 1e5, the rounding of floats 6e-8."""


def measure_precision(record: Record, settings: Settings) -> list[Table]:
    """Add the times of both types to the record, and return them as a table."""
    workloads, loops = {}, {}
    for subject, robot in available_robots(tuple(s for s in SUBJECTS if s.name in ROBOTS)).items():
        for target in available_targets():
            both = _batches(robot, target, settings.states)
            workloads |= {(subject.name, target, kind): workload for kind, workload in both}
        if pinocchio():
            loops[subject.name, PINOCCHIO_LOOP] = PinocchioRobot(robot, states(robot, settings.states)).loop(FORWARD)
    for case in CASES:
        workloads |= {(ROLLOUTS, case, kind): workload for kind, workload in _rollouts(case, settings.states)}
    times = time_in_turns({**workloads, **loops}, settings.rounds)
    for name in workloads:
        record.add((KIND, *name), "us", times[name].spread(1e6))
    for subject, case, _ in list(workloads)[::2]:
        ratio = times[subject, case, FLOAT64.name].ratio_to(times[subject, case, FLOAT32.name])
        record.add((KIND, subject, case, SPEEDUP), RATIO, ratio)
        if (subject, PINOCCHIO_LOOP) in loops:
            ratio = times[subject, PINOCCHIO_LOOP].ratio_to(times[subject, case, FLOAT64.name])
            record.add((KIND, subject, case, BESIDE_PINOCCHIO), RATIO, ratio)
    shown = {name: name for name in (*ELEMENT_TYPES, SPEEDUP, BESIDE_PINOCCHIO)}
    notes = (
        f"Microseconds on one core, batches of {settings.states}: forward dynamics of a state, and steps of closed",
        "loops.",
    )
    return [quantity_table(record, KIND, ("robot", "target or motion"), shown, "Float32 beside float64", notes)]


def available_targets() -> Iterator[str]:
    """Yield the names of the targets that this processor has."""
    for name in llvm.TARGETS:
        try:
            llvm.target_named(name)
        except llvm.TargetError:
            continue
        yield name


def _batches(robot: legged.Robot, target: str, count: int) -> Iterator[tuple[str, Workload]]:
    """Yield the workloads of forward dynamics, after checking that their results agree."""
    samples, results = states(robot, count), []
    for element in ELEMENT_TYPES.values():
        kernel = legged.compile(FUNCTIONS[FORWARD].plain, robot, target=target, dtype=element.dtype)
        given = [array.astype(element.dtype) for array in samples]
        results.append(kernel(*given))
        yield element.name, Workload(repeat_batch(1, kernel, given, results[-1]), count)
    check_agreement(f"{robot.name}, {target}, both types", results[1], results[0], _TOLERANCE)


def _rollouts(case: str, count: int) -> Iterator[tuple[str, Workload]]:
    """Yield the workloads of closed loops, after checking that no robot falls."""
    robot, law = robots.spatial_quadruped(), laws()[STANDING if case == RIGID else case]
    for element in ELEMENT_TYPES.values():
        if case == RIGID:
            q, v = (np.tile(part, (count, 1)) for part in law.initial_state(robot))
            run = compiled_rollout(robot, law, Rigid(), v, STEPS, _RIGID_STEP, q=q, element=element)
        else:
            run = closed_loop(robot, law, count, STEPS, element)
        check_all_finished(run(1))
        yield element.name, Workload(repeat(run, 1), count * STEPS)
