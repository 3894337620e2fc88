"""`Setup`: the simulation of a study, as `legged.rollout` takes it, with metrics."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from legged.checked import checked
from legged.errors import ArgumentError, ShapeError, UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation import Rollouts, Run, Simulation, rollout, rollout_parameters
from legged.sweeps.metrics import STANDARD, Metric, Reduction, Trials, observed
from legged.sweeps.samples import Samples, check_name

Array = np.ndarray
_ENTRY = re.compile(r"(?P<name>.+?)\[(?P<index>\d+(?:,\d+)*)\]$")


@checked
@dataclass(frozen=True, eq=False)
class Setup:
    """A simulation whose parameters differ between trials.

        setup = Setup(robot, law, until=2.0, options={"ground": ground, "pushes": [push]})

    The names of samples are those of `legged.rollout_parameters`, such as "gait.stride"; entries of arrays are named
    one by one, "pushes.0.impulse[1]", and the others keep their values. A function `vary` computes them from samples
    with names of any kind.

    Attributes:
        robot, controller: As in `legged.rollout`; the parameters of a robot with closed loops do not vary.
        until: Duration of a trial, [s]. sample: Time between two evaluations of the metrics, [s].
        metrics: Name of a column of results -> `Metric`; by default success, distance, cost of transport, peak torque
            and duration.
        vary: Function of the samples, name -> (B,), that returns the argument `vary` of `legged.rollout`, name ->
            (B, ...); it may also return "q" and "v", initial states (B, nq) and (B, nv). It is vectorized and pure.
        options: Further arguments of `legged.rollout`: ground, q, v, pushes, bodies, integrator, fall, compiled, dtype.
    """

    robot: Robot | ClosedRobot
    controller: Any = None
    until: float = 1.0
    metrics: Mapping[str, Metric] = field(default_factory=lambda: dict(STANDARD))
    vary: Callable[[dict[str, Array]], Mapping[str, Any]] | None = None
    sample: float = 0.01
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = ("ground", "q", "v", "pushes", "bodies", "integrator", "fall", "compiled", "dtype")
        for name in self.options:
            if name not in known:
                raise UnknownNameError("option of a setup", name, known)
        for name, metric in self.metrics.items():
            check_name(name)
            if not isinstance(metric, Metric):
                raise ArgumentError(f"metric {name!r} must be a Metric, such as sweeps.over_time('maximum', function)")

    @property
    def content(self) -> tuple[Any, ...]:
        """The inputs of which the key of a chunk is a hash, besides the samples and the versions of libraries."""
        return (self.robot, self.controller, self.until, self.metrics, self.vary, self.sample, dict(self.options))

    @property
    def units(self) -> dict[str, str]:
        """Units of the metrics."""
        return {name: metric.unit for name, metric in self.metrics.items()}

    @property
    def _tree(self) -> Robot:
        """The robot, of one with closed loops its spanning tree."""
        return self.robot.robot if isinstance(self.robot, ClosedRobot) else self.robot

    @property
    def _nominal(self) -> dict[str, Any]:
        names = ("ground", "pushes", "bodies")
        own = {name: self.options[name] for name in names if name in self.options}
        return rollout_parameters(self._tree, self.controller, **own)

    @cached_property
    def _present(self) -> dict[str, Any]:
        return self._nominal

    def arguments(self, columns: Mapping[str, Array]) -> dict[str, Any]:
        """Return the arguments of `legged.rollout` for some samples: vary, q, v and those of `options`.

        Args:
            columns: Name -> values, (B,), any unit.
        """
        given = dict(self.options)
        vary = self.vary(dict(columns)) if self.vary is not None else self._joined(columns)
        given |= {name: x for name, x in vary.items() if name in ("q", "v")}
        return given | {"vary": {name: x for name, x in vary.items() if name not in ("q", "v")}}

    def _joined(self, columns: Mapping[str, Array]) -> dict[str, Array]:
        """Return the samples with the entries of each array in one array."""
        values = dict[str, Array]()
        for name, column in columns.items():
            match = _ENTRY.fullmatch(name)
            if match is None:
                values[name] = column
                continue
            whole = match["name"]
            if whole not in values:
                if whole not in self._present:
                    raise UnknownNameError("parameter of a rollout", whole, self._present)
                values[whole] = np.repeat(np.array(self._present[whole], float)[None], len(column), axis=0)
            index = tuple(map(int, match["index"].split(",")))
            if len(index) != values[whole].ndim - 1 or any(
                i >= n for i, n in zip(index, values[whole].shape[1:], strict=True)
            ):
                raise ShapeError(f"{name!r} is no entry of {whole!r}, which has shape {values[whole].shape[1:]}")
            values[whole][(slice(None), *index)] = column
        return values

    def rollout(self, columns: Mapping[str, Array], threads: int | None = None) -> Rollouts:
        """Return the motions of some samples.

        Args:
            columns: Name -> values, (B,), any unit. threads: As in `legged.rollout`.
        """
        times = {"until": self.until, "sample": self.sample}
        return rollout(self.robot, self.controller, **times, **self.arguments(columns), threads=threads, progress=False)

    def run(self, columns: Mapping[str, Array], i: int) -> Run:
        """Return the run of one of some samples, with the digits that it has among them.

        Args:
            columns: Name -> values, (B,), any unit. i: Index of the sample.
        """
        return self.rollout(columns).run(i)

    def evaluate(self, columns: Mapping[str, Array], threads: int | None = None) -> dict[str, list[Any]]:
        """Return the metrics of some samples, and why trials ended early: name -> B values; None where undefined.

        Args:
            columns: Name -> values, (B,), any unit. threads: As in `legged.rollout`.

        Raises:
            ArgumentError, ShapeError, NotFiniteError: As `Samples`, or a varied field has another shape.
        """
        samples = Samples(columns)
        columns, count_ = samples.columns, len(samples)
        arguments = self.arguments(columns)
        if not any(metric.signals for metric in self.metrics.values()):
            runs = self.rollout(columns, threads)
            end = np.where(runs.fallen, runs.when, self.until)
            trials = Trials(end, np.array(runs.fallen), self._masses(arguments["vary"], count_), self._gravity())
            return self._results(columns, {}, trials, threads, runs) | {"ended": list(runs.reasons)}
        motion = TrialMotion(self, arguments, count_, threads)
        motion.begin()
        for t in self.times():
            motion.advance(t)
            if np.all(motion.sim.ended):
                break
        sim, masses = motion.sim, self._masses(arguments["vary"], count_)
        trials = Trials(np.array(sim.t), np.array(sim.ended), masses, self._gravity())
        return self._results(columns, motion.signals(), trials, threads) | {"ended": list(sim.reasons)}

    def _results(
        self,
        columns: Mapping[str, Array],
        signals: dict[str, dict[str, Array]],
        trials: Trials,
        threads: int | None,
        runs: Rollouts | None = None,
    ) -> dict[str, list[Any]]:
        results = dict[str, list[Any]]()
        for name, metric in self.metrics.items():
            if metric.of_run is not None:
                runs = self.rollout(columns, threads) if runs is None else runs
                values = [metric.of_run(runs.run(i)) for i in range(len(trials.end))]
            elif metric.of_rollouts is not None:
                runs = self.rollout(columns, threads) if runs is None else runs
                values = np.asarray(metric.of_rollouts(runs, dict(columns))).tolist()
            elif metric.result is not None:
                values = np.asarray(metric.result(signals.get(name, {}), trials)).tolist()
            else:
                raise ArgumentError(f"metric {name!r} has neither a result nor a function of the run")
            if np.shape(values) != (len(trials.end),):
                raise ShapeError(f"metric {name!r} must have one value per trial, got shape {np.shape(values)}")
            results[name] = values
        return results

    def times(self) -> list[float]:
        """Return the times at which the metrics are evaluated, those of `legged.rollout` without zero."""
        n = int(np.floor(self.until / self.sample + 1e-9))
        times = np.arange(n + 1) * self.sample
        times = np.append(times, self.until) if self.until - times[-1] > 1e-9 * self.until else times
        return [*times[1:-1].tolist(), float(self.until)]

    def command(self, vary: Mapping[str, Any]) -> Any:
        """Return the command of a law that takes one, such as `controllers.Policy`: the varied, its own, or zero.

        Args:
            vary: As in `legged.rollout`.
        """
        law, name = self.controller, "controller."
        while not hasattr(law, "task") and hasattr(law, "law"):  # in a wrapper, such as `controllers.SensorNoise`
            law, name = law.law, f"{name}law."
        size = getattr(getattr(law, "task", None), "command_size", None)
        if not isinstance(size, int):
            return None
        own = np.zeros(size) if getattr(law, "command", None) is None else law.command
        return vary.get(f"{name}command", own)

    def _gravity(self) -> float:
        return float(np.linalg.norm(self._tree.gravity))

    def _masses(self, vary: Mapping[str, Any], count_: int) -> Array:
        """Return the mass of each robot, (B,), [kg]."""
        known, masses = self._tree.parameters(), np.full(count_, self._tree.mass)
        for name, values in vary.items():
            own = name.removeprefix("robot.")
            if own != name and own.endswith(".mass"):
                masses = masses + (np.asarray(values, float) - float(known[own]))
        return masses


class TrialMotion:
    """The simulation of some trials, whose signals are reduced over the samples.

    Args:
        setup: The setup. arguments: As of `Setup.arguments`. count_: Number of trials, B.
        threads: As in `legged.rollout`.

    Attributes:
        sim: The simulation.
    """

    def __init__(self, setup: Setup, arguments: Mapping[str, Any], count_: int, threads: int | None):
        self.sim = Simulation(setup.robot, setup.controller, num=count_, threads=threads, **arguments)
        self._function, self._places = observed(setup.metrics, setup._tree)
        self._steps = Reduction([place[2] for place in self._places])
        self._names, self._command, self._before = list(setup.metrics), setup.command(arguments["vary"]), 0.0

    def begin(self) -> None:
        """Observe the trials at their start, which traces and compiles the time step and the signals."""
        self.sim.advance(0.0, self._command)  # takes no step; torques follow from the command, which signals may need
        self._observe(0.0)

    def advance(self, t: float) -> None:
        """Advance the trials to a sample.

        Args:
            t: Its time, [s].
        """
        self.sim.advance(t, self._command)
        self._observe(t - self._before)
        self._before = t

    def _observe(self, step: float) -> None:
        if self._function is not None:
            values = self.sim.observe(self._function, running=True)
            self._steps.add([values[place[3]] for place in self._places], ~np.asarray(self.sim.ended), step)

    def signals(self) -> dict[str, dict[str, Array]]:
        """Return the reduced signals of each metric, (B, ...), in their units."""
        signals: dict[str, dict[str, Array]] = {name: {} for name in self._names}
        for (metric, signal, _, _), value in zip(self._places, self._steps.result(), strict=True):
            signals[metric][signal] = value
        return signals
