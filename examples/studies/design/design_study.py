"""Designs of the paper's quadruped by random trials, and the legs of the planar biped by CMA-ES.

A leg of another length keeps the mass per length of its links.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged import sweeps
from legged.output import replaced
from legged.spatial import Array
from legged.table import Table

PUSHED = 4
"""Number of pushed trots of each design, beside one without a push."""
RANGES = {"thigh": (0.25, 0.35), "shank": (0.25, 0.35), "stride": (0.05, 0.25), "period": (0.3, 0.6)}
PUSHES = {"impulse": (2.0, 12.0), "direction": (0.0, 2.0 * np.pi)}
UNITS = {"thigh": "m", "shank": "m", "stride": "m", "period": "s", "impulse": "N s", "direction": "rad"}
_PUSHED_AT = 0.5  # [s]
_CHUNK = 2500  # trots of a chunk; each traces the simulation once, which takes as long as some hundred trots
_BENT = 0.93  # height of the hips over the length of the legs
_QUADRUPED = robots.spatial_quadruped()
_BIPED = robots.planar_biped()


def scaled_legs(
    robot: legged.Robot, legs: Sequence[tuple[str, str, str, str]], thigh: Array, shank: Array
) -> dict[str, Array]:
    """Return the parameters of legs with other lengths, name -> (B, ...), with the same mass per length.

    Masses scale with the length of a link, centers of mass with it, and moments of inertia with its cube.

    Args:
        robot: The robot. legs: For each leg the names of thigh, shank and knee, and the parameter that holds the end of
            the shank, (3,), [m], link axes. thigh, shank: Lengths, (B,), [m].
    """
    known, values = robot.parameters(), dict[str, Array]()
    for upper, lower, knee, end in legs:
        for link, tip, lengths in ((upper, f"{knee}.at", thigh), (lower, end, shank)):
            place = np.asarray(known[tip], float)
            ratio = lengths / np.linalg.norm(place)
            values[f"robot.{tip}"] = ratio[:, None] * place
            values[f"robot.{link}.mass"] = ratio * float(known[f"{link}.mass"])
            values[f"robot.{link}.center"] = ratio[:, None] * np.asarray(known[f"{link}.center"], float)
            tensor = np.asarray(known[f"{link}.tensor"], float)
            values[f"robot.{link}.tensor"] = (ratio**3)[:, None, None] * tensor
    return values


def quadruped_values(x: dict[str, Array]) -> dict[str, Array]:
    """Return the parameters of trots, name -> (B, ...), from samples with the names of `RANGES` and `PUSHES`."""
    legs = [(f"leg{k}_thigh", f"leg{k}_shank", f"leg{k}_knee", f"leg{k}_foot.position") for k in range(1, 5)]
    force = np.stack([np.cos(x["direction"]), np.sin(x["direction"]), 0.0 * x["direction"]], axis=1)
    values = {"gait.stride": x["stride"], "gait.period": x["period"]}
    values["gait.hip_height"] = _BENT * (x["thigh"] + x["shank"])
    values["pushes.0.impulse"] = x["impulse"][:, None] * force
    return values | scaled_legs(_QUADRUPED, legs, x["thigh"], x["shank"])


def quadruped_samples(trials: int) -> sweeps.Samples:
    """Return the samples of trots: designs one after the other, each without a push first and then with pushes.

    Args:
        trials: Number of trots.
    """
    designs = sweeps.random(-(-trials // (1 + PUSHED)), RANGES).columns
    columns = {name: np.repeat(x, 1 + PUSHED)[:trials] for name, x in designs.items()}
    pushes = dict(sweeps.random(trials, PUSHES, seed=1).columns)
    pushes["impulse"] = np.where(np.arange(trials) % (1 + PUSHED) == 0, 0.0, pushes["impulse"])
    return sweeps.Samples(columns | pushes, UNITS)


def quadruped_setup(until: float = 1.5) -> sweeps.Setup:
    """Return the simulation of a trot, which may be pushed.

    Args:
        until: Duration, [s].
    """
    gait = controllers.Trot(period=0.4, stride=0.15, clearance=0.06, hip_height=0.55)
    push = legged.Push("trunk", (0.0, 0.0, 0.0), at=_PUSHED_AT)
    options = {"ground": legged.ground.paper_ground(_QUADRUPED), "pushes": [push]}
    return sweeps.Setup(_QUADRUPED, controllers.Balanced(gait), until, vary=quadruped_values, options=options)


def quadruped_study(trials: int, store: str | Path, client: Any = None, until: float = 1.5) -> sweeps.Sweep:
    """Return the study of the quadruped: each design trots without a push, and with pushes.

    Args:
        trials: Number of simulated trots. store, client: As in `legged.sweep`. until: Duration of a trial, [s].
    """
    return legged.sweep(quadruped_setup(until), quadruped_samples(trials), store, client, chunk=_CHUNK)


def biped_values(x: dict[str, Array]) -> dict[str, Array]:
    """Return the parameters of walks, name -> (B, ...), from samples "thigh", "shank" [m] and "period" [s]."""
    legs = [(f"{k}_thigh", f"{k}_shank", f"{k}_knee", f"{k}_ankle.at") for k in "ab"]
    values = {"gait.period": x["period"]}
    foot = abs(float(_BIPED.parameters()["a_heel.position"][2]))  # [m], height of the ankle
    values["gait.hip_height"] = _BENT * (x["thigh"] + x["shank"]) + foot
    return values | scaled_legs(_BIPED, legs, x["thigh"], x["shank"])


def biped_optimum(
    generations: int, population: int, store: str | Path, client: Any = None, until: float = 2.0
) -> sweeps.Optimum:
    """Return the legs of the planar biped with the least cost of transport among those that walk without a fall.

    Args:
        generations, population: As in `sweeps.optimize`. store, client: As in `legged.sweep`. until: Duration, [s].
    """
    law = controllers.ComputedTorque(controllers.paper_walk())
    ground = legged.ground.paper_ground(_BIPED)
    setup = sweeps.Setup(_BIPED, law, until, vary=biped_values, options={"ground": ground})
    space = {"thigh": (0.4, 0.6), "shank": (0.4, 0.6), "period": (0.7, 1.3)}
    given = {"generations": generations, "population": population, "constraints": {"success": (1.0, None)}}
    return sweeps.optimize(setup, space, {"cost_of_transport": "minimize"}, store, client, **given)


def design_rows(table: Any) -> Any:
    """Return one row per design: those of its trot without a push, and "recovered", the share of survived pushes.

    Args:
        table: As of the sweep of `quadruped_study`.
    """
    pushed = table[table["impulse"] > 0.0]
    rows = table[table["impulse"] == 0.0].copy()
    rows["recovered"] = (
        pushed["success"]
        .eq(True)
        .groupby(pushed.index // (1 + PUSHED))
        .mean()
        .reindex(rows.index // (1 + PUSHED))
        .to_numpy()
    )
    return rows


def result_table(table: Any) -> Table:
    """Return the cheapest designs among those that survive all of their pushes.

    Args:
        table: As of the sweep of `quadruped_study`.
    """
    designs, pushed = design_rows(table), table[table["impulse"] > 0.0]
    recovered = designs[designs["recovered"].eq(1.0) & designs["success"].eq(True)]
    cheapest = recovered.sort_values("cost_of_transport").head(5)
    rows = [(*(f"{x[k]:.3f}" for k in RANGES), f"{x['cost_of_transport']:.3f}") for _, x in cheapest.iterrows()]
    count, trials = int(pushed["success"].eq(True).sum()), int(pushed["success"].notna().sum())
    low, high = sweeps.success_interval(count, trials)
    failed = int((table["error"] != "").sum())
    notes = (
        f"{len(table)} trots, {failed} of designs that cannot stand; {int(designs['success'].eq(True).sum())} of "
        f"{len(designs)} designs walk; {count} of {trials} pushed trots recover (share {low:.3f} to {high:.3f} at "
        f"95 %), {len(recovered)} designs from all {PUSHED} pushes.",
        "Lengths and stride in m, period in s; positive work of the joints over weight and distance.",
    )
    heads = (*RANGES, "cost of transport")
    return Table("Cheapest designs that recover from all of their pushes", heads, tuple(rows), notes, left=0)


def optimum_table(optimum: sweeps.Optimum) -> Table:
    """Return the best legs of the biped beside the mean of the first generation."""
    first = optimum.table[optimum.table["generation"] == 0]
    names = ("thigh", "shank", "period", "cost_of_transport")
    rows = [("first generation, mean", *(f"{first[name].mean():.3f}" for name in names))]
    if len(optimum.front):
        rows.append(("best", *(f"{optimum.best[name]:.3f}" for name in names)))
    return Table("Legs of the planar biped by CMA-ES", ("", "thigh, m", "shank, m", "period, s", "cost"), tuple(rows))


def figures(table: Any, optimum: sweeps.Optimum) -> dict[str, Any]:
    """Return the figures by name."""
    designs, pushed = design_rows(table), table[table["impulse"] > 0.0]
    legs = ["thigh", "shank", "period", "cost_of_transport"]
    return {
        "recovery": sweeps.success_map(pushed, ["impulse", "period"], bins=10).figure(),
        "designs": sweeps.parallel_coordinates(
            designs, [*RANGES, "recovered", "cost_of_transport"], "cost_of_transport"
        ),
        "biped": sweeps.parallel_coordinates(optimum.table, legs, "generation"),
    }


def write(folder: Path, study: sweeps.Sweep, optimum: sweeps.Optimum) -> Sequence[Path]:
    """Write the figures and a page, and return the paths."""
    drawn, paths = figures(study.table(), optimum), []
    for name, figure in drawn.items():
        paths.append(folder / f"design-{name}.png")
        with replaced(paths[-1]) as draft:
            figure.savefig(draft, dpi=80, format="png")
    return [*paths, sweeps.save_page(study, folder / "design.html", list(drawn.values()), "Design study")]
