"""Disturbance maps: the largest push or throw from each direction that a robot survives, by rollouts.

pushes = Pushes(legged.Push("trunk_1", (0.0, 0.0, 0.0), at=0.2), np.linspace(0.5, 12.0, 24))
mapped = disturbance_map(robot, controllers.WorkspaceBalance(), pushes, ground=Rigid(friction=0.3))
print(mapped.table().text())
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from legged.compiler import compile as compile_function
from legged.contact.rigid import FreeBody
from legged.dynamics.kinematics import point_positions
from legged.errors import DefinitionError, SimulationInterrupt
from legged.output import write_table
from legged.robot.robot import Robot
from legged.simulation.loop.external_wrenches import Push
from legged.simulation.rollouts import Rollouts, rollout
from legged.simulation.stepping.batch import initial_state
from legged.spatial import Array
from legged.table import Table


class Disturbance(Protocol):
    """A disturbance with a direction and a magnitude.

    Attributes:
        sizes: Magnitudes in increasing order, in `unit`.
        words: Name of the magnitude.
        unit: Unit of the magnitude.
        pushes, bodies: Arguments of `legged.rollout`.
    """

    @property
    def sizes(self) -> Array:
        """Magnitudes in increasing order, (n,), [N s] or [m/s], scalar."""
        ...

    @property
    def words(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def pushes(self) -> Sequence[Push]: ...
    @property
    def bodies(self) -> Sequence[FreeBody]: ...

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        """Return the parameters that differ between members, each (B, 3), for the argument `vary` of `legged.rollout`.

        Args:
            robot: The robot.
            q: Initial configuration, (nq,).
            source: Horizontal unit vectors from the robot to the origin of each disturbance, (B, 3), world axes.
            sizes: Magnitudes, (B,), [N s] or [m/s], scalar; 0 for an undisturbed member.
        """
        ...


@dataclass(frozen=True)
class Pushes:
    """Horizontal pushes on a link.

    Attributes:
        push: Link, time, duration and point of application; its impulse is ignored.
        sizes: Magnitudes of the impulse, (n,), [N s], increasing.
    """

    push: Push
    sizes: Any
    words = "impulse"
    unit = "N s"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", _rising(self.sizes))

    @property
    def pushes(self) -> tuple[Push, ...]:
        return (self.push,)

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        return ()

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        """Return the impulses, (B, 3); arguments as in `Disturbance.vary`."""
        return {"pushes.0.impulse": -sizes[:, None] * source}


@dataclass(frozen=True)
class Throws:
    """Throws of a body from points on a horizontal circle, with ballistic paths through a target point.

    Attributes:
        body: The thrown body, with the same orientation for all throws; its position and velocity are ignored.
        sizes: Horizontal speeds, (n,), [m/s], increasing.
        link: Link at whose initial origin the target is.
        target: Offset of the target from that origin, (3,), [m], world axes.
        distance: Radius of the circle around the target, at its height, [m].
    """

    body: FreeBody
    sizes: Any
    link: str
    target: Sequence[float] = (0.0, 0.0, 0.0)
    distance: float = 0.5
    words = "speed"
    unit = "m/s"
    pushes = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", _rising(self.sizes))

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        return (self.body,)

    def vary(self, robot: Robot, q: Array, source: Array, sizes: Array) -> dict[str, Array]:
        """Return initial positions and velocities, each (B, 3); arguments as in `Disturbance.vary`.

        The body of an undisturbed member moves away from the robot.
        """
        here = point_positions(robot, q, [(robot.link(self.link).index, np.zeros(3))])[0] + np.asarray(self.target)
        speed = np.where(sizes > 0.0, sizes, self.sizes[0])
        rise = -0.5 * robot.gravity[2] * self.distance / speed
        along = np.where(sizes > 0.0, -speed, speed)[:, None] * source
        return {
            "bodies.0.position": here + self.distance * source,
            "bodies.0.velocity": along + rise[:, None] * np.array([0.0, 0.0, 1.0]),
        }


def _rising(sizes: Any) -> Array:
    """Return sizes as an array, (n,).

    Raises:
        DefinitionError: sizes that are not at least two increasing positive numbers.
    """
    array = np.asarray(sizes, dtype=float)
    if array.ndim != 1 or len(array) < 2 or not (array[0] > 0.0 and (np.diff(array) > 0.0).all()):
        raise DefinitionError(f"sizes of disturbances must be at least two increasing positive numbers, got {sizes}")
    return array


FELL, UNSETTLED, SURVIVED, INTERRUPTED = 0, 1, 2, 3
OUTCOMES = ("fell", "did not settle", "survived", "interrupted")
"""Names of the outcomes."""


@dataclass(frozen=True)
class SettlingCriterion:
    """Criterion for settling: over the last part of a run the base is close to that of the undisturbed robot.

    Attributes:
        position: Largest distance between the base origins, [m]; infinity to ignore positions.
        turn: Largest angle between the base orientations, [rad].
        window: Length of the last part, [s].
    """

    position: float = 0.02
    turn: float = float(np.radians(2.0))
    window: float = 0.2

    def __str__(self) -> str:
        near = f"within {1e3 * self.position:g} mm and " if np.isfinite(self.position) else "within "
        return f"{near}{np.degrees(self.turn):.3g} degrees of the undisturbed robot for the last {self.window:g} s"


@dataclass(frozen=True, eq=False)
class DisturbanceMap:
    """Outcomes of disturbances of n sizes from m directions.

    Attributes:
        robot, law: Names of the robot and of the controller.
        disturbance: The disturbance.
        angles: Directions from which disturbances come, (m,), [rad], from +x towards +y, world axes.
        outcomes: `FELL`, `UNSETTLED`, `SURVIVED` or, after Ctrl-C, `INTERRUPTED`, (n, m), dimensionless.
        settled: Criterion for settling.
        q: Initial configuration, (nq,).
        until: Duration of the runs, [s].
        when, reasons: When and why runs ended early, size by size, (n m,), [s]; NaN and "" for the others.
        computed: What has computed the runs.
        runs: All members, size by size; the last one is the undisturbed robot. None of a map in a store.
    """

    robot: str
    law: str
    disturbance: Disturbance
    angles: Array
    outcomes: Array
    settled: SettlingCriterion
    q: Array
    until: float
    when: Array
    reasons: Sequence[str]
    computed: str
    runs: Rollouts | None = None

    @cached_property
    def boundary(self) -> Array:
        """Largest size up to which all are survived, by direction, (m,), [N s] or [m/s], scalar; 0 if none."""
        survived = self.outcomes == SURVIVED
        first = np.where(survived.all(axis=0), len(survived), np.argmin(survived, axis=0))
        return np.concatenate([[0.0], self.disturbance.sizes])[first]

    def table(self, compass: int = 8) -> Table:
        """Return a table of the boundary in equally spaced directions, or the nearest computed ones."""
        wanted = 2 * np.pi * np.arange(compass) / compass
        nearest = sorted({int(np.cos(self.angles - angle).argmax()) for angle in wanted})
        unit, sizes = self.disturbance.unit, self.disturbance.sizes
        rows = [(f"{np.degrees(self.angles[k]):.0f}", f"{self.boundary[k]:.3g}") for k in nearest]
        rows += [("weakest", f"{self.boundary.min():.3g}"), ("median", f"{np.median(self.boundary):.3g}")]
        rows += [("strongest", f"{self.boundary.max():.3g}")]
        numbers = [(int(np.sum(self.outcomes == k)), words) for k, words in enumerate(OUTCOMES)]
        counts = ", ".join(f"{n} {words}" for n, words in numbers if n or words != OUTCOMES[INTERRUPTED])
        notes = (
            f"{self.outcomes.size} runs of {self.until:g} s, {counts}; {self.computed}.",
            f"Sizes from {sizes[0]:.3g} to {sizes[-1]:.3g} {unit}; directions are those of origin, from +x to +y.",
            f"Survived: did not fall, and {self.settled}.",
        )
        return Table(f"{self.robot}, {self.law}", ("from [degrees]", f"survives [{unit}]"), tuple(rows), notes)

    def write_csv(self, path: Path) -> Path:
        """Write a CSV file with one row per run, and return the path."""
        degrees, sizes = np.degrees(self.angles), self.disturbance.sizes
        header = ["from_deg", f"{self.disturbance.words} [{self.disturbance.unit}]", "outcome", "end_s", "why"]
        rows = []
        for i, (outcome, when, why) in enumerate(
            zip(self.outcomes.ravel().tolist(), self.when.tolist(), self.reasons, strict=True)
        ):
            size, angle = divmod(i, len(degrees))
            end = round(when, 3) if np.isfinite(when) else None
            rows.append([round(float(degrees[angle]), 2), float(f"{sizes[size]:.6g}"), OUTCOMES[outcome], end, why])
        return write_table(path, header, rows)


def disturbance_map(
    robot: Robot,
    law: Any,
    disturbance: Disturbance,
    *,
    directions: int = 48,
    until: float = 3.0,
    settled: SettlingCriterion | None = None,
    q: Any = None,
    v: Any = None,
    store: str | Path | None = None,
    **options: Any,
) -> DisturbanceMap:
    """Return the outcomes of a disturbance for all sizes and directions.

    Args:
        robot, law: As in `legged.rollout`.
        disturbance: `Pushes` or `Throws`.
        directions: Number of directions at equal angles, starting at +x.
        until: Duration of the runs, [s].
        settled: Criterion for settling.
        q, v: Initial state, (nq,), (nv,).
        store: Folder in which `legged.sweep` stores the runs in chunks, so that a map goes on after an interruption;
            by default all runs are members of one rollout in memory.
        options: Further arguments of `legged.rollout`: ground, integrator, fall, ...

    Raises:
        DefinitionError: the undisturbed robot falls, or there are fewer than 3 directions.
        SimulationInterrupt: Ctrl-C, a KeyboardInterrupt; `error.run` is the map of the runs that were complete.
    """
    if directions < 3:
        raise DefinitionError(f"a map needs 3 directions or more, got {directions}")
    q, v = initial_state(robot, law, q, v)
    angles = 2 * np.pi * np.arange(directions) / directions
    sizes, around = (np.append(grid.ravel(), 0.0) for grid in np.meshgrid(disturbance.sizes, angles, indexing="ij"))
    given = {"pushes": disturbance.pushes, "bodies": disturbance.bodies, "q": q, "v": v, "sample": 0.05} | options
    given["until"], settled = until, settled or SettlingCriterion()

    def vary(samples: dict[str, Array]) -> dict[str, Array]:
        around = samples["from"]
        source = np.stack([np.cos(around), np.sin(around), 0.0 * around], axis=1)
        return disturbance.vary(robot, q, source, samples[disturbance.words])

    samples = {disturbance.words: sizes, "from": around}
    named = {"robot": robot.name, "law": type(getattr(law, "law", law)).__name__, "disturbance": disturbance}
    named |= {"angles": angles, "settled": settled, "q": q, "until": until}
    if store is None:
        outcomes, details, interrupt = _in_memory(robot, law, settled, vary(samples), given)
    else:
        units = {disturbance.words: disturbance.unit, "from": "rad"}
        outcomes, details, interrupt = _in_store(robot, law, settled, vary, samples, units, given, store)
    mapped = DisturbanceMap(outcomes=outcomes.reshape(-1, directions), **named, **details)
    if interrupt is not None:
        raise SimulationInterrupt(f"{interrupt}: the map up to there", mapped)
    return mapped


_Results = tuple[Array, dict[str, Any], SimulationInterrupt | None]
"""Outcomes of all runs but the last, undisturbed one, further fields of the map, and Ctrl-C."""


def _in_memory(
    robot: Robot, law: Any, settled: SettlingCriterion, values: dict[str, Array], options: dict[str, Any]
) -> _Results:
    """Return the results of one rollout of all runs.

    Args:
        robot, law, settled: As in `disturbance_map`. values: Varied parameters of the runs, the last one undisturbed.
        options: Further arguments of `legged.rollout`.
    """
    interrupt = None
    try:
        runs = rollout(robot, law, vary=values, **options)
    except SimulationInterrupt as error:
        runs, interrupt = error.run, error
    outcomes = _outcomes(robot, runs, settled, _undisturbed(robot, runs))[:-1]
    if np.isfinite(runs.when[-1]):  # without the undisturbed run, none is judged
        outcomes[~runs.fallen[:-1]] = INTERRUPTED
    details = {"when": runs.when[:-1], "reasons": runs.reasons[:-1], "computed": runs.backend, "runs": runs}
    return outcomes, details, interrupt


def _in_store(
    robot: Robot,
    law: Any,
    settled: SettlingCriterion,
    vary: Any,
    samples: dict[str, Array],
    units: dict[str, str],
    options: dict[str, Any],
    store: str | Path,
) -> _Results:
    """Return the results of a sweep of all runs.

    Args:
        robot, law, settled, store: As in `disturbance_map`. vary: Function from samples to varied parameters.
        samples: Columns of the runs, the last one undisturbed. units: Of the columns.
        options: Further arguments of `legged.rollout`.
    """
    from legged import sweeps

    options = dict(options)
    times = {name: options.pop(name) for name in ("until", "sample")}
    alone = rollout(robot, law, vary=vary({name: x[-1:] for name, x in samples.items()}), **times, **options)
    undisturbed = _undisturbed(robot, alone)
    metric = sweeps.of_rollouts(lambda runs, samples: _outcomes(robot, runs, settled, undisturbed))
    metrics = {"outcome": metric, "end": sweeps.duration}
    setup = sweeps.Setup(robot, law, metrics=metrics, vary=vary, options=options, **times)
    study = sweeps.sweep(setup, sweeps.Samples({name: x[:-1] for name, x in samples.items()}, units), store)
    interrupt = None
    try:
        study.compute()
    except SimulationInterrupt as error:
        interrupt = error
    return *_stored(study), interrupt


def _stored(study: Any) -> tuple[Array, dict[str, Any]]:
    """Return outcomes, (B,), and `when`, `reasons`, `computed` of a map, from the finished trials of a sweep."""
    table = study.table(partial=True).reindex(range(len(study.samples)))
    table = table.reindex(columns=["outcome", "end", "ended", "error"]).fillna({"ended": "", "error": ""})
    if failed := next(filter(None, table["error"]), ""):
        raise DefinitionError(f"a run of the map in {study.store.path} has failed: {failed}")
    when = np.where(table["ended"] == "", np.nan, table["end"].to_numpy(float))
    facts = {"when": when, "reasons": table["ended"].tolist(), "computed": f"stored in {study.store.path}"}
    return table["outcome"].fillna(INTERRUPTED).to_numpy(int), facts


def _undisturbed(robot: Robot, runs: Rollouts) -> tuple[Array, Array]:
    """Return positions, (T, 3), [m], world axes, and configurations, (T, n), of the base in the last run.

    Raises:
        DefinitionError: The robot falls in this run, in which nothing disturbs it.
    """
    if runs.fallen[-1]:
        raise DefinitionError(f"robot {robot.name!r} falls without disturbance: {runs.reasons[-1]}")
    return runs.base_position[-1], runs.q[-1, :, : robot.base.nq]


def _outcomes(robot: Robot, runs: Rollouts, settled: SettlingCriterion, undisturbed: tuple[Array, Array]) -> Array:
    """Return the outcomes of runs, (B,), dimensionless; `undisturbed` is the result of `_undisturbed`."""
    outcomes = np.where(runs.fallen, FELL, np.where(_calm(robot, runs, settled, undisturbed), SURVIVED, UNSETTLED))
    outcomes[np.isfinite(runs.when) & ~runs.fallen] = INTERRUPTED
    return outcomes


def _calm(robot: Robot, runs: Rollouts, settled: SettlingCriterion, undisturbed: tuple[Array, Array]) -> Array:
    """Return the mask of the members that settled, (B,), bool; `undisturbed` is the result of `_undisturbed`."""
    late = runs.times >= runs.times[-1] - settled.window - 1e-9
    away = np.linalg.norm(runs.base_position[:, late] - undisturbed[0][late], axis=2)
    n = robot.base.nq
    bases = np.concatenate([runs.q[:, late, :n], undisturbed[1][None, late]])
    bases = np.where(np.isfinite(bases), bases, robot.neutral()[:n])
    *R, level = compile_function(lambda base: robot.base.pose(base)[0], None, base=n)(bases)
    cosine = 0.5 * (np.einsum("btij,tij->bt", np.array(R), level) - 1.0)
    turned = np.arccos(np.clip(cosine, -1.0, 1.0))
    return (~(away > settled.position) & ~(turned > settled.turn)).all(axis=1)
