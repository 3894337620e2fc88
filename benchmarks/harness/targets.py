"""The targets for the speed of this package, beside the measured quantities."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import balance, compilation, dynamics, precision, simulation, threads
from benchmarks.harness import explanations
from benchmarks.harness.explanations import Explanation
from benchmarks.harness.record import Quantity, Record
from benchmarks.harness.subjects import FORWARD, INERTIA, INVERSE, SUBJECTS
from legged.compiler.codegen.llvm import TARGETS as PROCESSORS
from legged.table import Table


class Target(NamedTuple):
    """A bound on measured quantities.

    Attributes:
        description: What is measured.
        bound: The bound, in the unit of the quantities.
        names: Names of the quantities.
        is_upper: Whether it is an upper bound; otherwise it is a lower one.
        explanation: What bounds the quantities, for targets that are missed.
    """

    description: str
    bound: float
    names: tuple[tuple[str, ...], ...]
    is_upper: bool = False
    explanation: Explanation | None = None

    def is_met(self, quantity: Quantity) -> bool:
        """Return whether the median of a quantity satisfies the bound."""
        return quantity.median <= self.bound if self.is_upper else quantity.median >= self.bound

    def margin(self, quantity: Quantity) -> float:
        """Return the factor by which the median of a quantity is better than the bound; below 1 it is worse."""
        return self.bound / quantity.median if self.is_upper else quantity.median / self.bound


def _names(kind: str, first: str, *rest: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of a quantity for all robots of a kind."""
    return tuple((first, subject.name, *rest) for subject in SUBJECTS if subject.kind == kind)


def _single(kind: str, function: str, bound: float) -> Target:
    ratio = f"{dynamics.PINOCCHIO} / {dynamics.OURS}"
    return Target(
        "Pinocchio / ours, one state from Python",
        bound,
        _names(kind, dynamics.ONE_STATE_KIND, function, ratio),
        explanation=explanations.ONE_STATE,
    )


def _batch(kind: str, function: str, other: str, bound: float) -> Target:
    ratio = f"{other} / {dynamics.ONE_CORE}"
    names = _names(kind, dynamics.BATCH_KIND, function, ratio)
    return Target(f"{other} / ours, one core", bound, names, explanation=explanations.BATCH)


def _code(kind: str, bound: float) -> Target:
    names = _names(kind, dynamics.ONE_STATE_KIND, FORWARD, f"{dynamics.PINOCCHIO} / {dynamics.CODE}")
    return Target("Pinocchio from Python / machine code", bound, names, explanation=explanations.ONE_STATE)


def _processor(robot: str, processor: str, bound: float) -> Target:
    names = ((precision.KIND, robot, processor, precision.BESIDE_PINOCCHIO),)
    return Target("Pinocchio, loop / ours, one core", bound, names, explanation=explanations.OTHER_TARGETS)


def _threads(duration: str, bound: float) -> Target:
    names = tuple((threads.KIND, case, duration, threads.SPEEDUP) for case in (threads.BATCH, threads.ROLLOUT))
    return Target("one thread / two threads", bound, names, explanation=explanations.THREADS)


def _cold_start(bound: float, names: tuple[tuple[str, ...], ...]) -> Target:
    return Target("cold start [s]", bound, names, is_upper=True, explanation=explanations.COLD_START)


_DERIVATIVES = dynamics.DERIVATIVES_KIND
_START = compilation.KIND
TARGETS = (
    *(_single("quadruped", function, bound) for function, bound in ((FORWARD, 18), (INVERSE, 10), (INERTIA, 5))),
    *(_single("humanoid", function, bound) for function, bound in ((FORWARD, 12), (INVERSE, 10), (INERTIA, 5))),
    _code("quadruped", 25),
    _code("humanoid", 15),
    _batch("quadruped", FORWARD, dynamics.PINOCCHIO_LOOP, 65),
    _batch("humanoid", FORWARD, dynamics.PINOCCHIO_LOOP, 45),
    _batch("quadruped", INVERSE, dynamics.PINOCCHIO_LOOP, 30),
    *(_batch("quadruped", function, dynamics.PINOCCHIO_BATCH, 20) for function in (FORWARD, INVERSE)),
    _processor("Go2", "avx2", 40),
    _processor("G1", "avx2", 26),
    _processor("Go2", "sse2", 14),
    _processor("G1", "sse2", 8),
    _threads("0.2 ms", 1.5),
    _threads("1 ms", 1.8),
    Target(
        "derivatives: Pinocchio / ours, one state from Python",
        1,
        _names("quadruped", _DERIVATIVES, f"{dynamics.PINOCCHIO_ONE_STATE} / {dynamics.ONE_STATE}"),
    ),
    Target(
        "derivatives: Pinocchio, loop, results copied / ours, small batch, one core",
        15,
        _names("quadruped", _DERIVATIVES, f"{dynamics.PINOCCHIO_COPIED} / {dynamics.SMALL_BATCH}"),
        explanation=explanations.GIVEN_RESULTS,
    ),
    Target(
        "mj_step / ours, one core",
        40,
        tuple(
            (simulation.LOOP_KIND, case, simulation.MJ_STEP_BATCH) for case in (simulation.TROT, simulation.BALANCED)
        ),
        explanation=explanations.CLOSED_LOOP,
    ),
    Target(
        "one robot, times real time",
        200,
        tuple(
            (simulation.LOOP_KIND, case, f"{simulation.ONE}, {simulation.REAL_TIME}")
            for case in (simulation.TROT, simulation.BALANCED)
        ),
    ),
    Target(
        "float64 / float32, one core",
        1.7,
        (
            *(
                (precision.KIND, robot, target, precision.SPEEDUP)
                for robot in precision.ROBOTS
                for target in PROCESSORS
            ),
            *((precision.KIND, precision.ROLLOUTS, case, precision.SPEEDUP) for case in precision.CASES),
        ),
        explanation=explanations.FLOAT32,
    ),
    Target(
        "new arrays / out=",
        1.3,
        tuple(
            (dynamics.RESULTS_KIND, f"{count} states", f"{dynamics.NEW} / {dynamics.GIVEN}")
            for count in dynamics.RESULTS_STATES
        ),
        is_upper=True,
        explanation=explanations.NEW_RESULTS,
    ),
    Target(
        "hand-built step / step of Simulation",
        1 / 1.3,
        (
            (
                simulation.STEPPING_KIND,
                f"{simulation.STEPPING_ROBOTS} robots",
                f"{simulation.HAND} / {simulation.SIMULATION}",
            ),
        ),
        explanation=explanations.STEPPING,
    ),
    Target("overhead of a call [us]", 20, ((simulation.STEPPING_KIND, "1 robot", simulation.OVERHEAD),), is_upper=True),
    Target("from Python [us]", 5, ((balance.KIND, balance.LAW, "us"),), is_upper=True),
    Target(
        "one robot, times real time",
        50,
        tuple((balance.KIND, balance.EXPERIMENT, step, balance.REAL_TIME) for step in balance.TIME_STEPS),
        explanation=explanations.THROWN_BLOCK,
    ),
    Target("cold start included [s]", 60, ((balance.MAP, balance.THROWS, balance.COLD),), is_upper=True),
    Target(
        "import [s]", 0.3, ((compilation.IMPORTS, compilation.STATEMENTS[0], compilation.IMPORT_TIME),), is_upper=True
    ),
    _cold_start(0.12, _names("quadruped", _START, compilation.COLD)),
    _cold_start(0.25, _names("humanoid", _START, compilation.COLD)),
    _cold_start(1.0, ((_START, compilation.SCENE, compilation.COLD),)),
    *(
        Target(f"{name}, an operation [us]", 7 / 3, names, is_upper=True, explanation=explanations.PASSES)
        for name in compilation.PASSES
        for names in [tuple((_START, robot, name) for robot in ("Go2", "G1"))]
    ),
    Target(
        "warm start [s]",
        0.03,
        _names("quadruped", _START, compilation.WARM) + _names("humanoid", _START, compilation.WARM),
        is_upper=True,
    ),
    Target(
        "fraction of the core's peak [%]",
        50,
        _names("quadruped", dynamics.BATCH_KIND, FORWARD, dynamics.OF_PEAK),
        explanation=explanations.PEAK,
    ),
)


def target_table(record: Record) -> Table:
    """Return all targets beside the measured quantities."""
    rows = tuple(_rows(record))
    missed = sum(row[-1] == "no" for row in rows)
    reasons = tuple(f"{target.description} {target.bound:g}: {target.explanation}" for target in missed_targets(record))
    return Table(
        "Targets",
        ("subject", "quantity", "target", "measured", "met"),
        rows,
        (f"{missed} of {len(rows)} targets are missed.", *reasons),
        2,
    )


def missed_targets(record: Record) -> list[Target]:
    """Return the targets that at least one quantity of a record misses."""
    values = [(target, record.find(*name)) for target in TARGETS for name in target.names]
    return list(dict.fromkeys(target for target, quantity in values if quantity and not target.is_met(quantity)))


def _rows(record: Record) -> Iterator[tuple[str, ...]]:
    for target in TARGETS:
        for name in target.names:
            quantity = record.find(*name)
            if quantity is not None:
                bound = f"{'<=' if target.is_upper else '>='} {target.bound:g}"
                met = "yes" if target.is_met(quantity) else "no"
                yield ", ".join(name[1:-1]), target.description, bound, str(quantity), met
