"""Results of the trials: reached velocities, falls, mechanical power and joint torques, and tables of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

import legged
from benchmarks.locomotion.loops import SAMPLE, Motions, motions_of
from benchmarks.locomotion.trials import Trial
from benchmarks.locomotion.walkers import Walker
from legged import sweeps
from legged.simulation import Rollouts
from legged.spatial import Array
from legged.table import Table

_LATE = 0.4  # of the duration, at the end, over which velocities and powers are means
_RELATIVE, _ABSOLUTE = 0.15, 0.03  # of the command, and in units of speed: largest errors of the velocity
LAWS = OURS, EARLIER = "Locomotion", "Balanced"


@dataclass(frozen=True)
class Outcome:
    """The result of a trial.

    Attributes:
        robot: Name of the robot.
        law: Name of the control law.
        trial: The trial.
        unit: Units of (velocity forward, velocity to the left, yaw rate), (3,), [m/s], [m/s], [rad/s].
        reached: Mean velocity of the center of mass in axes of the heading and mean yaw rate, (3,), in these units; NaN
            after a fall.
        fallen_at: Time of the fall, [s]; NaN without one.
        power: Mean positive mechanical power of the joints over m g sqrt(g h); NaN if it is not known.
        torque: Largest root-mean-square torque of a joint over its effort limit; NaN if it is not known.
        residual: Largest violation of the contact law in a time step, [m/s]; NaN if it is not known.
    """

    robot: str
    law: str
    trial: Trial
    unit: tuple[float, float, float]
    reached: tuple[float, float, float]
    fallen_at: float
    power: float = float("nan")
    torque: float = float("nan")
    residual: float = float("nan")

    @property
    def survived(self) -> bool:
        """Whether the robot has not fallen."""
        return bool(np.isnan(self.fallen_at))

    @property
    def succeeded(self) -> bool:
        """Whether the robot has not fallen and reaches the commanded velocity; for pushes, whether it has not fallen.

        The largest error is 15 % of the command or 0.03 sqrt(g h), whichever is more.
        """
        if not self.survived or self.trial.push:
            return self.survived
        command = np.array(self.trial.command)
        error = float(np.linalg.norm(np.array(self.reached) - command))
        return error <= max(_RELATIVE * float(np.linalg.norm(command)), _ABSOLUTE)

    @property
    def cost_of_transport(self) -> float:
        """Positive mechanical power over weight and speed, dimensionless."""
        return self.power / float(np.hypot(*self.reached[:2]))

    def record(self) -> dict[str, object]:
        """Return the outcome as a dictionary for JSON."""
        return {**asdict(self), "succeeded": self.succeeded}


def outcomes(walker: Walker, law: str, motions: Motions) -> list[Outcome]:
    """Return the outcomes of the motions of a robot under a law."""
    runs, robot, own = motions.runs, walker.tree, walker.equivalent
    unit = np.array([walker.speed, walker.speed, walker.turning])
    late = slice(round((1.0 - _LATE) * len(runs.times)), None)
    effort, center_of_mass = walker.effort(), legged.compile(legged.center_of_mass, robot)
    results = []
    for i, trial in enumerate(motions.trials):
        power = torque = float("nan")
        reached, q = np.full(3, np.nan), runs.q[i, late]
        if not runs.fallen[i]:
            reached = _velocity(walker, q, center_of_mass(q)) / unit
        if motions.tau is not None and not runs.fallen[i]:
            v = runs.v[i, late] if own is None else runs.v[i, late][:, list(own.v_entries)]
            tau, rates = motions.tau[i, late, robot.base.nv :], v[:, robot.base.nv :]
            watts = float(np.maximum(tau * rates, 0.0).sum(axis=1).mean())
            power = watts / (robot.mass * (1.0 + trial.payload) * walker.gravity * walker.speed)
            torque = float((np.sqrt((tau**2).mean(axis=0)) / effort).max())
        results.append(
            Outcome(
                walker.name,
                law,
                trial,
                (float(unit[0]), float(unit[1]), float(unit[2])),
                (float(reached[0]), float(reached[1]), float(reached[2])),
                float(runs.when[i]),
                power,
                torque,
                float(np.fmax.reduce(runs.run(i).contacts.worst_residual)),
            )
        )
    return results


NUMBERS: dict[str, Callable[[Outcome], float]] = {
    "forward": lambda x: x.reached[0],
    "left": lambda x: x.reached[1],
    "yaw rate": lambda x: x.reached[2],
    "fallen at": lambda x: x.fallen_at,
    "power": lambda x: x.power,
    "torque": lambda x: x.torque,
    "residual": lambda x: x.residual,
}
"""Metrics of a sweep: the numbers of an outcome."""


def swept(walker: Walker, law: str, trials: Sequence[Trial], setup: sweeps.Setup, store: Path) -> list[Outcome]:
    """Return the outcomes of the trials of a setup, by a sweep: trials that the store has are not simulated again.

    Args:
        walker: The robot. law: Name of the law. trials: The trials. setup: Their setup.
        store: Folder of the sweep.
    """

    latest: list[tuple[Rollouts, list[Outcome]]] = []  # of the last rollouts, which all metrics share

    def metric(number: Callable[[Outcome], float]) -> sweeps.Metric:
        def values(runs: Rollouts, samples: dict[str, Array]) -> Array:
            if not latest or latest[0][0] is not runs:
                own = [trials[i] for i in samples["trial"].astype(int)]
                latest[:] = [(runs, outcomes(walker, law, motions_of(walker, own, setup, runs)))]
            return np.array([number(x) for x in latest[0][1]])

        return sweeps.of_rollouts(values)

    measured = replace(setup, metrics={name: metric(number) for name, number in NUMBERS.items()})
    samples, count = {"trial": np.arange(len(trials))}, len(trials)
    table = sweeps.sweep(measured, samples, store, chunk=count, progress=False).table()
    results, unit = [], (walker.speed, walker.speed, walker.turning)
    for trial, row in zip(trials, table.to_dict("records"), strict=True):
        if row["error"]:
            print(f"{walker.name}, {law}, {trial.row}: {row['error']}", flush=True)
            results += refused(walker, law, [trial])
            continue
        forward, left, turning, fallen_at, power, torque, residual = (
            np.nan if row[name] is None else float(row[name]) for name in NUMBERS
        )
        reached = forward, left, turning
        results.append(Outcome(walker.name, law, trial, unit, reached, fallen_at, power, torque, residual))
    return results


def refused(walker: Walker, law: str, trials: Sequence[Trial]) -> list[Outcome]:
    """Return the outcomes of trials that a law refuses, as falls at the start."""
    unit, nan = (walker.speed, walker.speed, walker.turning), float("nan")
    return [Outcome(walker.name, law, trial, unit, (nan, nan, nan), 0.0) for trial in trials]


def _velocity(walker: Walker, q: Array, centers: Array) -> Array:
    """Return the mean velocity of the center of mass in axes of the heading and the mean yaw rate, (3,).

    In turns a base origin beside the center of mass, such as that of T1, 0.09 m behind it, moves around it.

    Args:
        walker: The robot. q: Configurations, (n, nq), mixed units. centers: Centers of mass, (n, 3), [m], world axes.

    Returns:
        Forward and to the left, [m/s], and yaw rate, [rad/s].
    """
    base = walker.robot.base
    rotations = [base.pose(row[: base.nq])[0] for row in q]
    headings = np.unwrap([np.arctan2(R[1, 0], R[0, 0]) for R in rotations])
    rates = np.diff(centers[:, :2], axis=0) / SAMPLE
    middle = 0.5 * (headings[1:] + headings[:-1])
    c, s = np.cos(middle), np.sin(middle)
    along, left = c * rates[:, 0] + s * rates[:, 1], c * rates[:, 1] - s * rates[:, 0]
    return np.array([along.mean(), left.mean(), (headings[-1] - headings[0]) / (SAMPLE * len(rates))])


def success_table(results: Sequence[Outcome]) -> Table:
    """Return the numbers of successful trials of each row, robot and law."""
    robots, rows = list(dict.fromkeys(x.robot for x in results)), list(dict.fromkeys(x.trial.row for x in results))
    lines = []
    for row in rows:
        for law in LAWS:
            own = [x for x in results if x.trial.row == row and x.law == law]
            if own:
                cells = [_count([x for x in own if x.robot == name]) for name in robots]
                lines.append((row, law, *cells, _count(own)))
    for law in LAWS:
        own = [[x.residual for x in results if x.robot == name and x.law == law] for name in robots]
        largest = [max((y for y in x if np.isfinite(y)), default=float("nan")) for x in own]
        if np.isfinite(largest).any():
            cells = [f"{x:.0e}" if np.isfinite(x) else "" for x in (*largest, np.nanmax(largest))]
            lines.append(("contact residual, m/s", law, *cells))
    notes = (
        "Successful trials of all. Success: no fall, and a mean velocity in the last 40 % within 15 % of the command",
        "or 0.03 sqrt(g h), whichever is more; in pushes, no fall. Balanced walks forward alone, in rows other than",
        "forward at half the speed; speeds that it refuses count as failures. Contact residual: the largest violation",
        "of the contact law in a time step of all trials.",
    )
    return Table("Locomotion, successful trials", ("row", "law", *robots, "all"), tuple(lines), notes, left=2)


def failure_table(results: Sequence[Outcome]) -> Table:
    """Return a table of the failed trials: command, conditions, and the fall or the velocity that was reached."""
    lines = []
    for x in results:
        if not x.succeeded:
            unit, trial = np.array(x.unit), x.trial
            different = {
                field.name: getattr(trial, field.name)
                for field in fields(trial)
                if field.name not in ("row", "command") and getattr(trial, field.name) != field.default
            }
            conditions = ", ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in different.items())
            reached = f"reaches {_numbers(unit * x.reached)}"
            what = reached if x.survived else f"falls at {x.fallen_at:.1f} s" if x.fallen_at > 0.0 else "is refused"
            lines.append((x.robot, x.law, trial.row, _numbers(unit * trial.command), conditions, what))
    notes = (
        "Velocity forward and to the left, m/s, and yaw rate, rad/s. Conditions: as in `benchmarks.locomotion.trials`.",
    )
    heads = ("robot", "law", "row", "commanded", "conditions", "outcome")
    return Table("Locomotion, failed trials", heads, tuple(lines), notes, left=len(heads))


def velocity_table(results: Sequence[Outcome]) -> Table:
    """Return commanded and reached velocities, cost of transport and torques of undisturbed trials."""
    lines = []
    for x in results:
        undisturbed = not (x.trial.push or x.trial.noise or x.trial.payload)
        if x.law == OURS and undisturbed and x.trial.row in ("forward", "sideways", "turning", "gaits"):
            unit = np.array(x.unit)
            words = x.trial.gait or x.trial.row
            reached = _numbers(unit * x.reached) if x.survived else f"falls at {x.fallen_at:.1f} s"
            moves = float(np.hypot(*x.trial.command[:2])) > 0.0 and x.survived
            cost = f"{x.cost_of_transport:.2f}" if moves else "-"
            torque = f"{100.0 * x.torque:.0f}" if 0.0 < x.torque < np.inf else "-"
            lines.append((x.robot, words, _numbers(unit * x.trial.command), reached, cost, torque))
    heads = ("robot", "trial", "commanded", "reached", "cost of transport", "torque, %")
    notes = (
        "Velocity forward and to the left, m/s, and yaw rate, rad/s. Cost of transport: positive mechanical power of",
        "all joints over weight and speed. Torque: largest root-mean-square torque of a joint over its limit.",
    )
    return Table("Locomotion, velocities", heads, tuple(lines), notes, left=2)


def _numbers(values: Array) -> str:
    return ", ".join(f"{x:.2f}" for x in values)


def _count(results: Sequence[Outcome]) -> str:
    return f"{sum(x.succeeded for x in results)}/{len(results)}" if results else ""
