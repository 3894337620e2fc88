"""Metrics of trials: reductions over time of functions of the state, which are traced and compiled.

A function of the state takes arguments named as those of `Simulation.observe`: `t`, `q`, `v`, `tau`, `contacts`,
`wrenches`, `memory`; also `robot`. It is plain NumPy code without branches on values, except by `legged.where`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.checked import checked
from legged.errors import ArgumentError
from legged.robot.robot import Robot

Array = np.ndarray
REDUCTIONS = ("first", "final", "mean", "maximum", "minimum", "integral")


class Trials(NamedTuple):
    """Ends, masses and gravity of B trials, which metrics use besides the reductions of signals.

    Attributes:
        end: Time of the end, (B,), [s]. ended: Whether a trial ended early, (B,), bool: it fell or diverged.
        mass: Mass of each robot, (B,), [kg]. gravity: Magnitude of gravity, [m/s^2].
    """

    end: Array
    ended: Array
    mass: Array
    gravity: float


@checked
@dataclass(frozen=True)
class Metric:
    """A number for each trial.

    Attributes:
        signals: Name -> (reduction over time, function of the state); reductions are those of `REDUCTIONS`, by entry
            for a function that returns an array, over the samples before an early end.
        result: Function (signals, trials) of the reductions, name -> (B, ...), and `Trials` -> values, (B,).
        unit: Unit of the value.
        of_run: Function of the `legged.Run` of a trial instead of signals and result, called in Python.
        of_rollouts: Function (runs, samples) of the `legged.Rollouts` of B trials and their samples, name -> (B,),
            instead of signals and result, that returns values, (B,), each from its own trial alone.
    """

    signals: Mapping[str, tuple[str, Callable[..., Any]]]
    result: Callable[[dict[str, Array], Trials], Array] | None = None
    unit: str = ""
    of_run: Callable[[Any], Any] | None = None
    of_rollouts: Callable[[Any, dict[str, Array]], Array] | None = None

    def __post_init__(self) -> None:
        for reduction, _ in self.signals.values():
            if reduction not in REDUCTIONS:
                raise ArgumentError(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")


def _value(signals: dict[str, Array], trials: Trials) -> Array:
    return signals["value"]


@checked
def over_time(reduction: str, function: Callable[..., Any], unit: str = "") -> Metric:
    """Return the metric that reduces a function of the state over time.

        lowest = over_time("minimum", lambda q: q[6], "m")

    Args:
        reduction: One of `REDUCTIONS`. function: Returns one number; see the module. unit: Unit of the result.
    """
    return Metric({"value": (reduction, function)}, _value, unit)


@checked
def of_run(function: Callable[[Any], Any], unit: str = "") -> Metric:
    """Return the metric of any function of a `legged.Run`; it is called in Python, which takes much longer.

    Args:
        function: Function of the run of a trial, which returns a number. unit: Unit of the result.
    """
    return Metric({}, None, unit, function)


@checked
def of_rollouts(function: Callable[..., Any], unit: str = "") -> Metric:
    """Return the metric of any function of the `legged.Rollouts` of some trials, which is called once for all of them.

        lowest = of_rollouts(lambda runs, samples: runs.base_position[:, :, 2].min(axis=1), "m")

    Args:
        function: Function (runs, samples) of B trials and their samples, name -> (B,), that returns (B,) values, each
            from its own trial alone. unit: Unit of the values.
    """
    return Metric({}, None, unit, None, function)


def _base_position(q: Array, robot: Robot) -> Array:
    """Return the position of the base origin, (3,), [m], world axes."""
    return robot.base.pose(q[: robot.base.nq])[1]


def _positive_power(tau: Array, v: Array) -> Any:
    """Return the positive mechanical power of the actuators, [W]."""
    return np.sum(np.maximum(tau * v, 0.0))


def _joint_torque(tau: Array, robot: Robot) -> Array:
    return np.abs(tau[robot.base.nv :])


def _succeeded(signals: dict[str, Array], trials: Trials) -> Array:
    return ~trials.ended


def _distance(signals: dict[str, Array], trials: Trials) -> Array:
    return np.linalg.norm((signals["end"] - signals["start"])[:, :2], axis=1)


def _cost_of_transport(signals: dict[str, Array], trials: Trials) -> Array:
    way = _distance(signals, trials)
    cost = signals["work"] / (trials.mass * trials.gravity * np.where(way > 0.0, way, np.nan))
    return np.where(trials.ended, np.nan, cost)


def _largest(signals: dict[str, Array], trials: Trials) -> Array:
    return signals["torque"].max(axis=1)


def _end(signals: dict[str, Array], trials: Trials) -> Array:
    return trials.end


_WAY = {"start": ("first", _base_position), "end": ("final", _base_position)}
success = Metric({}, _succeeded)
"""Whether a trial reached its end time: the robot did not fall and the motion did not diverge."""
duration = Metric({}, _end, "s")
"""Time of the end, [s]."""
distance = Metric(_WAY, _distance, "m")
"""Horizontal distance of the base from its start at the end, [m]."""
cost_of_transport = Metric(_WAY | {"work": ("integral", _positive_power)}, _cost_of_transport)
"""Positive mechanical work of the actuators over weight and distance, dimensionless; missing after an early end."""
peak_torque = Metric({"torque": ("maximum", _joint_torque)}, _largest, "N m")
"""Largest magnitude of a generalized force of a joint at the samples, [N m] or [N]."""
STANDARD = {
    "success": success,
    "distance": distance,
    "cost_of_transport": cost_of_transport,
    "peak_torque": peak_torque,
    "duration": duration,
}
"""The metrics that a setup has by default."""


def observed(metrics: Mapping[str, Metric], robot: Robot) -> tuple[Callable[..., Any] | None, list[tuple[Any, ...]]]:
    """Return one function of the state of all signals, and the list of (metric, signal, reduction).

    Equal signals of several metrics are computed once.

    Args:
        metrics: Name -> metric. robot: The robot that functions with an argument `robot` receive.
    """
    wanted: dict[int, Callable[..., Any]] = {}
    places = []
    for name, metric in metrics.items():
        for signal, (reduction, function) in metric.signals.items():
            wanted.setdefault(id(function), function)
            places.append((name, signal, reduction, list(wanted).index(id(function))))
    parameters = {id(f): [p for p in inspect.signature(f).parameters if p != "robot"] for f in wanted.values()}
    names = list(dict.fromkeys(name for own in parameters.values() for name in own))
    if not wanted:
        return None, places

    def together(**known: Any) -> Any:
        known["robot"] = robot
        arguments = [{p: known[p] for p in inspect.signature(f).parameters} for f in wanted.values()]
        return tuple(f(**own) for f, own in zip(wanted.values(), arguments, strict=True))

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    together.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore
    return together, places


class Reduction:
    """The reductions of some signals over the samples of B trials.

    Args:
        names: The reductions of the signals.
    """

    def __init__(self, names: list[str]):
        self._names = names
        self.values: list[Any] = [None] * len(names)
        self._last: list[Any] = [None] * len(names)
        self._duration: Any = 0.0

    def add(self, signals: list[Array], alive: Array, step: float) -> None:
        """Add a sample.

        Args:
            signals: Values, (B, ...), any unit. alive: Trials that have not ended, (B,), bool, dimensionless.
            step: Time since the sample before, [s].
        """
        step = step if self._last[0] is not None else 0.0  # the first sample has no interval
        self._duration = self._duration + np.where(alive, step, 0.0)
        for k, (name, x) in enumerate(zip(self._names, signals, strict=True)):
            x, mask = np.asarray(x), alive.reshape(-1, *[1] * (np.ndim(x) - 1))
            before, last = self.values[k], self._last[k]
            if before is None:
                self.values[k] = 0.0 * x if name in ("mean", "integral") else x.copy()
            elif name in ("mean", "integral"):
                self.values[k] = before + np.where(mask, 0.5 * step * (last + x), 0.0)
            elif name != "first":
                combine = {"maximum": np.maximum, "minimum": np.minimum, "final": lambda a, b: b}[name]
                self.values[k] = np.where(mask, combine(before, x), before)
            self._last[k] = x

    def result(self) -> list[Array]:
        """Return the reductions, (B, ...) each."""
        seconds = np.where(self._duration > 0.0, self._duration, 1.0)
        return [
            x / seconds.reshape(-1, *[1] * (x.ndim - 1)) if name == "mean" else x
            for name, x in zip(self._names, self.values, strict=True)
        ]
