"""What this package promises about its speed, beside what was measured."""

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks import balance, batches, compiling, derivatives, loops, one_state
from benchmarks.record import Quantity, Record
from benchmarks.subjects import FORWARD, INERTIA, INVERSE, SUBJECTS
from benchmarks.words import cell
from legged.table import Table


class Target(NamedTuple):
    """A bound on a measured number.

    Attributes:
        words: What it is about. bound: Its value, in the unit of the quantity.
        names: Of the quantities that it holds for.
        at_most: Whether the bound is above; otherwise below.
    """

    words: str
    bound: float
    names: tuple[tuple[str, ...], ...]
    at_most: bool = False

    def is_met(self, quantity: Quantity) -> bool:
        """Return whether a quantity's median keeps to the bound."""
        return quantity.median <= self.bound if self.at_most else quantity.median >= self.bound


def _robots(kind: str, first: str, *rest: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of a quantity for all robots of a kind."""
    return tuple((first, subject.name, *rest) for subject in SUBJECTS if subject.kind == kind)


def _call(kind: str, function: str, bound: float) -> Target:
    ratio = f"{one_state.PINOCCHIO} / {one_state.OURS}"
    return Target("Pinocchio / ours, one state from Python", bound, _robots(kind, one_state.KIND, function, ratio))


def _batch(function: str, slow: str, bound: float) -> Target:
    ratio = f"{slow} / {batches.ONE_CORE}"
    return Target(f"{slow} / ours, one core", bound, _robots("quadruped", batches.KIND, function, ratio))


_CODE = f"{one_state.PINOCCHIO} / {one_state.CODE}"
TARGETS = (
    *(_call("quadruped", function, bound) for function, bound in ((FORWARD, 6), (INVERSE, 4), (INERTIA, 2))),
    *(_call("humanoid", function, bound) for function, bound in ((FORWARD, 3), (INVERSE, 3), (INERTIA, 2))),
    Target("Pinocchio from Python / machine code", 20, _robots("quadruped", one_state.KIND, FORWARD, _CODE)),
    *(_batch(function, batches.PYTHON_LOOP, 30) for function in (FORWARD, INVERSE)),
    *(_batch(function, batches.PARALLEL, 20) for function in (FORWARD, INVERSE)),
    Target(
        "derivatives: Pinocchio / ours, one state from Python",
        1,
        _robots("quadruped", derivatives.KIND, f"{derivatives.PINOCCHIO} / {derivatives.OURS}"),
    ),
    Target(
        "derivatives: Pinocchio, loop, kept / ours, few, one core",
        15,
        _robots("quadruped", derivatives.KIND, f"{derivatives.KEPT} / {derivatives.FEW_ONE_CORE}"),
    ),
    Target(
        "mj_step / ours, one core",
        20,
        tuple((loops.KIND, case, loops.MJ_STEP_BATCH) for case in (loops.TROT, loops.BALANCED)),
    ),
    Target(
        "one robot, times real time",
        200,
        tuple((loops.KIND, case, f"{loops.ONE}, {loops.REAL_TIME}") for case in (loops.TROT, loops.BALANCED)),
    ),
    Target("from Python [us]", 5, ((balance.KIND, balance.LAW, "us"),), at_most=True),
    Target(
        "one robot, times real time",
        50,
        tuple((balance.KIND, balance.EXPERIMENT, step, balance.REAL_TIME) for step in balance.STEPS),
    ),
    Target("cold start included [s]", 60, ((balance.MAP, balance.THROWS, balance.COLD),), at_most=True),
    Target("cold start [s]", 0.5, _robots("quadruped", compiling.KIND, compiling.COLD), at_most=True),
    Target("cold start [s]", 1.5, _robots("humanoid", compiling.KIND, compiling.COLD), at_most=True),
    Target(
        "warm start [s]",
        0.03,
        _robots("quadruped", compiling.KIND, compiling.WARM) + _robots("humanoid", compiling.KIND, compiling.WARM),
        at_most=True,
    ),
    Target("of the core's peak [%]", 40, _robots("quadruped", batches.KIND, FORWARD, batches.OF_PEAK)),
)


def table(record: Record) -> Table:
    """Return every target beside what was measured."""
    rows = tuple(_rows(record))
    missed = sum(row[-1] == "no" for row in rows)
    return Table(
        "Targets", ("of", "what", "wanted", "measured", "met"), rows, (f"{missed} of {len(rows)} are missed.",), 2
    )


def _rows(record: Record) -> Iterator[tuple[str, ...]]:
    for target in TARGETS:
        for name in target.names:
            found = record.find(*name)
            if found is not None:
                wanted = f"{'<=' if target.at_most else '>='} {target.bound:g}"
                met = "yes" if target.is_met(found) else "no"
                yield ", ".join(name[1:-1]), target.words, wanted, cell(found), met
