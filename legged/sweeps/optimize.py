"""Optimization by ask and tell: each generation of proposals is one call of `sweep`, and is stored as its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from legged.arguments import array, known_name, whole
from legged.checked import checked
from legged.errors import ArgumentError, MissingError
from legged.sweeps.samples import Samples, quantile
from legged.sweeps.sweep import Sweep, sweep

Array = np.ndarray
SENSES = ("minimize", "maximize")
GENERATION = "generation"


class Optimizer(Protocol):
    """A black-box optimizer on the unit cube with the ask-and-tell interface."""

    def ask(self, n: int) -> Array:
        """Return proposals, (n, d), between 0 and 1.

        Args:
            n: Their number.
        """
        ...

    def tell(self, points: Array, values: Array, violations: Array) -> None:
        """Learn from trials.

        Args:
            points: The proposals, (n, d). values: Objectives to minimize, (n, m), any units; NaN for failed trials.
            violations: Sum of the violations of constraints, (n,), any units; 0 where all hold.
        """
        ...


class CMA:
    """CMA-ES of the library cma, for one objective. Trials are ranked; those that violate constraints come last.

    Args:
        dimension: Number of parameters. population: Trials of a generation. seed: Of the random numbers.
    """

    def __init__(self, dimension: int, population: int, seed: int):
        try:
            import cma
        except ImportError as error:
            raise MissingError("method 'cma' needs cma: pip install 'legged[design]'") from error
        settings = {"bounds": [0.0, 1.0], "popsize": population, "seed": seed + 1, "verbose": -9}
        self._strategy = cma.CMAEvolutionStrategy(dimension * [0.5], 0.25, settings)
        self._asked: Any = []

    def ask(self, n: int) -> Array:
        """Return proposals, (n, d), between 0 and 1; see `Optimizer.ask`."""
        self._asked = self._strategy.ask(n)
        return np.array(self._asked)

    def tell(self, points: Array, values: Array, violations: Array) -> None:
        """Learn from trials; see `Optimizer.tell`."""
        objective = np.where(np.isfinite(values[:, 0]), values[:, 0], np.inf)
        places = np.lexsort((objective, np.where(np.isfinite(objective), violations, np.inf)))
        ranks = np.empty(len(places))
        ranks[places] = np.arange(len(places))
        self._strategy.tell(self._asked, ranks.tolist())


class Optuna:
    """The library optuna: its TPE sampler for one objective, NSGA-II for several, with constraints.

    Args:
        dimension: Number of parameters. population: Trials of a generation. seed: Of the random numbers.
        objectives: Number of objectives.
    """

    def __init__(self, dimension: int, population: int, seed: int, objectives: int = 1):
        try:
            import optuna
        except ImportError as error:
            raise MissingError("method 'optuna' needs optuna: pip install 'legged[design]'") from error
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        samplers = optuna.samplers
        if objectives == 1:
            sampler = samplers.TPESampler(seed=seed, n_startup_trials=population)
        else:
            sampler = samplers.NSGAIISampler(seed=seed, population_size=population)
        directions: list[Any] = ["minimize"] * objectives
        self._study = optuna.create_study(directions=directions, sampler=sampler)
        self._space: dict[str, Any] = {
            f"x{k}": optuna.distributions.FloatDistribution(0.0, 1.0) for k in range(dimension)
        }
        self._failed = optuna.trial.TrialState.FAIL
        self._asked: list[Any] = []

    def ask(self, n: int) -> Array:
        """Return proposals, (n, d), between 0 and 1; see `Optimizer.ask`."""
        self._asked = [self._study.ask(self._space) for _ in range(n)]
        return np.array([[trial.params[name] for name in self._space] for trial in self._asked])

    def tell(self, points: Array, values: Array, violations: Array) -> None:
        """Learn from trials; see `Optimizer.tell`."""
        for trial, own, violation in zip(self._asked, values, violations, strict=True):
            if np.isfinite(own).all():
                trial.set_constraint("violation", min(float(violation), 1e300))
                self._study.tell(trial, own.tolist())
            else:
                self._study.tell(trial, state=self._failed)


METHODS: dict[str, type[CMA] | type[Optuna]] = {"cma": CMA, "optuna": Optuna}
"""Methods by name."""


@dataclass(frozen=True, eq=False)
class Optimum:
    """The result of an optimization.

    Attributes:
        table: All trials, a pandas DataFrame as of `Sweep.table`, with the column "generation".
        front: The trials that meet the constraints and that no other one surpasses in all objectives; with one
            objective the best trial.
        sweep: The study, of which `sweep.run(row)` simulates a row of the tables again.
    """

    table: Any
    front: Any
    sweep: Sweep

    @property
    def best(self) -> Any:
        """The first row of the front: with one objective the best trial, (columns,).

        Raises:
            ArgumentError: No trial meets the constraints.
        """
        if not len(self.front):
            raise ArgumentError("no trial meets the constraints; widen them or the space, or run more generations")
        return self.front.iloc[0]


@checked
def optimize(
    trial: Any,
    space: Mapping[str, Any],
    objectives: Mapping[str, str],
    store: str | Path,
    client: Any = None,
    *,
    method: str = "cma",
    generations: int = 20,
    population: int = 32,
    constraints: Mapping[str, Any] | None = None,
    seed: int = 0,
    **options: Any,
) -> Optimum:
    """Return the best trials of an optimization; after an interruption the same call goes on where it ended.

        best = sweeps.optimize(setup, {"x": (0.0, 1.0)}, {"value": "minimize"}, folder).best

    The proposals follow from the seed and the results, and the results of earlier calls are in the store.

    Args:
        trial, store, client: As in `legged.sweep`.
        space: Name of a parameter -> (low, high), or another distribution, whose quantiles are searched.
        objectives: Name of a result -> "minimize" or "maximize". Trials in which it is missing count as failed.
        method: "cma", for one objective, or "optuna".
        generations: Number of generations. population: Number of trials of each, which are computed in one call.
        constraints: Name of a result -> (low, high), bounds between which it has to be; None for no bound.
        seed: Of the random numbers. options: Further arguments of `legged.sweep`.

    Raises:
        ArgumentError: Method, objectives or constraints are not valid. MissingError: A library is not installed.
    """
    known_name("method", method, METHODS)
    for name, sense in objectives.items():
        if sense not in SENSES:
            raise ArgumentError(f"objective {name!r} must be one of {', '.join(SENSES)}, got {sense!r}")
    if not objectives or (method == "cma" and len(objectives) > 1):
        raise ArgumentError(f"method {method!r} needs one objective, got {len(objectives)}; 'optuna' takes several")
    population, names = whole("population", population, 2), list(space)
    more = {"objectives": len(objectives)} if method == "optuna" else {}
    optimizer: Optimizer = METHODS[method](len(space), population, seed, **more)
    columns = {name: np.zeros(0) for name in names}
    made, table, bounds = None, None, [0]
    size = options.get("chunk") or population
    for _ in range(whole("generations", generations, 1)):
        points = optimizer.ask(population)
        for k, name in enumerate(names):
            columns[name] = np.concatenate([columns[name], quantile(name, space[name], points[:, k])])
        end = bounds[-1] + population
        bounds += [*range(bounds[-1] + size, end, size), end]
        made = sweep(trial, Samples(columns), store, client, **options)
        made.fix_bounds(bounds)
        table = made.table()
        values, violations = _judged(table.iloc[-population:], objectives, constraints or {})
        optimizer.tell(points, values, violations)
    assert made is not None and table is not None
    values, violations = _judged(table, objectives, constraints or {})
    possible = np.flatnonzero(np.isfinite(values).all(axis=1) & (violations <= 0.0))
    front = possible[pareto(values[possible])]
    table[GENERATION] = np.arange(len(table)) // population
    return Optimum(table, table.iloc[front[np.argsort(values[front, 0], kind="stable")]], made)


@checked
def pareto(values: Any) -> Array:
    """Return the mask of the rows that no other one surpasses: none is as small in all values and smaller in one, (n,).

    Args:
        values: (n, m), any units.
    """
    values = array("values", values, (None, None), "one row for each point")
    best = np.ones(len(values), bool)
    for i, own in enumerate(values):
        if best[i]:
            best &= ~((values >= own).all(axis=1) & (values > own).any(axis=1))
    return best


def _judged(table: Any, objectives: Mapping[str, str], constraints: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return objectives to minimize, (n, m), and sums of violations, (n,), of the rows of a table."""
    for name in (*objectives, *constraints):
        known_name("result", name, list(table.columns))
    signs = [-1.0 if sense == "maximize" else 1.0 for sense in objectives.values()]
    values = np.stack([s * _numbers(table, name) for s, name in zip(signs, objectives, strict=True)], axis=1)
    violations = np.zeros(len(table))
    for name, (low, high) in constraints.items():
        x = _numbers(table, name)
        over = np.maximum(0.0 if high is None else x - high, 0.0) + np.maximum(0.0 if low is None else low - x, 0.0)
        violations += np.where(np.isfinite(x), over, np.inf)
    return values, violations


def _numbers(table: Any, name: str) -> Array:
    return table[name].astype(float).to_numpy()
