"""Models with parameters to identify, and the results of their fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm, t

from legged.arguments import known_name, number
from legged.checked import checked
from legged.dynamics.frames import Frame
from legged.errors import ArgumentError, DefinitionError
from legged.files.mjcf.export import save_mjcf
from legged.files.urdf.export import save_urdf
from legged.ground.ground import Ground
from legged.identification.identifiability import Identifiability
from legged.identification.least_squares import (
    LeastSquaresSolution,
    Loss,
    eliminate_initial_states,
    minimize,
    normal_equations,
)
from legged.identification.log import Log, joined, missing_channel
from legged.identification.parameter import Motors, Parameter, ParameterSet, Plant
from legged.identification.plant_step import CHANNELS, PlantStep
from legged.identification.shooting import Shooting, Window, windows
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
class Model:
    """A robot, its motors and ground with the parameters to identify; compiled once, it fits any number of logs.

    Args:
        robot: The robot. parameters: Name or pattern -> parameter, see `legged.identification.parameter`.
        motors: Servos of the joints, for logs with desired positions. Otherwise the torques of the log act on the
            joints.
        ground: Compliant ground of a robot with a floating base. Its friction law must have no memory.
        imu: Frame of the inertial measurement unit.
        noise: Standard deviations of channels, [unit of the channel], in place of those of `CHANNELS`.
        channels: Channels to predict; by default all that a log has, except the accelerometer, contacts, the gyro
            without `imu`, torques of a log without desired positions, and pose and twist of a fixed base.
        time_step: Largest time step of the simulation, [s].

    Attributes:
        robot, motors, ground: As given. parameters: The free parameters, a `ParameterSet`.

    Raises:
        UnknownNameError, DefinitionError: For parameters that do not fit the robot.
    """

    def __init__(
        self,
        robot: Robot,
        parameters: Mapping[str, Parameter],
        *,
        motors: Motors | None = None,
        ground: Ground | None = None,
        imu: str | Frame | None = None,
        noise: Mapping[str, float] | None = None,
        channels: tuple[str, ...] | None = None,
        time_step: float = 2.5e-3,
    ):
        if ground is not None and ground.friction.memory:
            kind = type(ground.friction).__name__
            raise DefinitionError(f"friction law {kind} has a memory; use VectorFriction or AxisFriction")
        self.robot, self.ground, self.motors, self.imu = robot, ground, motors or Motors(), imu
        self.parameters = ParameterSet(robot, self.motors, ground, parameters)
        for name, value in {**(noise or {}), **dict.fromkeys(channels or (), 1.0)}.items():
            if name not in CHANNELS:
                raise ArgumentError(f"there is no channel {name!r}; channels: {', '.join(CHANNELS)}")
            number(f"noise of {name}", value, above=0.0)
        self.noise = CHANNELS | dict(noise or {})
        self.channels, self.time_step = channels, number("time_step", time_step, "s", above=0.0)
        self._compiled: dict[Any, Shooting] = {}

    def _shooting(self, log: Log, cuts: list[Window]) -> Shooting:
        """Return the windows of a log, ready to be simulated, with the kernels of earlier logs of these channels."""
        has_servos = log.desired is not None
        if not has_servos and log.torques is None:
            raise missing_channel(log, "desired")
        excluded = {"accelerometer", "gyro"} if self.imu is None else {"accelerometer"}
        excluded |= set() if has_servos else {"torques"}
        excluded |= set() if self.robot.base.nv else {"base", "twist", "gyro"}
        chosen = tuple(name for name in CHANNELS if name in log.channels and name not in excluded)
        for name in self.channels or ():
            if name not in log.channels:
                raise missing_channel(log, name)
        channels = self.channels or chosen
        if self.robot.base.nv and log.base is None:
            raise missing_channel(log, "base")
        key = channels, has_servos
        like = self._compiled.get(key)
        step = PlantStep(self.parameters, has_servos, self.imu) if like is None else like.plant_step
        shooting = Shooting(step, log, channels, cuts, self.time_step, like)
        self._compiled.setdefault(key, shooting)
        return shooting

    def _weights(self, shooting: Shooting) -> Array:
        """Return the inverse standard deviations of the readings, (m,)."""
        sizes = [shooting.plant_step.residual_size(name) for name in shooting.channels]
        return np.repeat([1.0 / self.noise[name] for name in shooting.channels], sizes)

    def _ordered(self, logs: Log | Sequence[Log]) -> list[Log]:
        """Return logs with the joints in the robot's order."""
        return [log.ordered(self.robot) for log in ((logs,) if isinstance(logs, Log) else logs)]

    def fit(
        self,
        log: Log | Sequence[Log],
        *,
        window: float = 0.5,
        chosen: Sequence[int] | None = None,
        loss: Loss = "squares",
        iterations: int = 50,
        start: Mapping[str, float] | None = None,
    ) -> Fit:
        """Return the parameters that predict logs best, by Levenberg-Marquardt with exact derivatives.

        Args:
            log: The log, or several with the same channels and period, such as one for each leg.
            window: Duration of the windows with free initial states, [s].
            chosen: Indices of the windows of all logs to fit, so that the others can test the result; by default all.
            loss: "squares"; or "huber" or "cauchy", which bound the influence of outliers.
            iterations: Largest number of steps.
            start: Name of a free entry -> value from which to start, in place of the nominal one.

        Raises:
            ShapeError: The logs are not sampled at one period, or too short.
            UnknownNameError: The log lacks a joint or channel.
            ArgumentError: The logs have different channels.
            NotFiniteError: The simulation diverges at the nominal parameters.
        """
        logs = self._ordered(log)
        shooting = self._shooting(joined(logs), windows(logs, window, chosen))
        p = self.parameters.nominal.copy()
        for name, value in (start or {}).items():
            p[self._index(name)] = value
        p = np.clip(p, self.parameters.lower, self.parameters.upper)
        return Fit(self, shooting, minimize(shooting, self._weights(shooting), p, loss, iterations), loss)

    def _index(self, name: str) -> int:
        return self.parameters.names.index(known_name("free parameter", name, self.parameters.names))

    def plan(self, log: Log | Sequence[Log], *, window: float = 0.5) -> Identifiability:
        """Return how well a planned experiment determines the parameters, at their nominal values.

        The variance of the noise is that of the channels.

        Args:
            log: The planned commands, e.g. of `excitation`, of one log or of several; its channels are those that will
                be measured, and their values matter only at the start of each window.
            window: Duration of the windows, [s].
        """
        information = sum(self._information(each, window) for each in self._ordered(log))
        return Identifiability(self.parameters.names, np.asarray(information), self.parameters.width, 1.0)

    def _information(self, log: Log, window: float) -> Array:
        """Return the inverse covariance of the parameters by a planned log, (n, n), mixed units."""
        p, last = self.parameters.nominal, len(log.times) - 1
        whole = self._shooting(log, [Window(0, last, 0, last)])
        prediction = whole.simulate(*whole.initial_states(p), p, with_derivatives=False)
        shooting = self._shooting(log, windows(log, window))
        first = shooting.index[:, 0]
        prediction = shooting.simulate(prediction.q[first, 0], prediction.v[first, 0], p)
        equations = normal_equations(shooting, prediction, self._weights(shooting), "squares", 1.0)
        return eliminate_initial_states(shooting, equations, 0.0).H

    def predict(self, log: Log, p: Array | None = None) -> Log:
        """Return the log that the model predicts from the commands of a log and its first sample.

        Positions, rates, and pose and twist of a floating base are predicted; other channels stay as they are.

        Args:
            log: The log. p: Values of the free parameters, (n,), mixed units; by default the nominal ones.
        """
        log = log.ordered(self.robot)
        last = len(log.times) - 1
        shooting = self._shooting(log, [Window(0, last, 0, last)])
        numbers = self.parameters.nominal if p is None else np.asarray(p, float)
        prediction = shooting.simulate(*shooting.initial_states(numbers), numbers, with_derivatives=False)
        nb, offset = self.robot.base, self.parameters.plant(numbers).offset.astype(float)
        has_base = {"base": prediction.q[:, 0, : nb.nq], "twist": prediction.v[:, 0, : nb.nv]} if nb.nq == 7 else {}
        return replace(
            log, positions=prediction.q[:, 0, nb.nq :] + offset, rates=prediction.v[:, 0, nb.nv :], **has_base
        )


@dataclass(frozen=True, eq=False)
class Fit:
    """The result of `Model.fit`.

    Attributes:
        model: The model. shooting: The windows. solution: Values, initial states of the windows, predictions and normal
            equations.
        loss: Name of the loss.
    """

    model: Model
    shooting: Shooting = field(repr=False)
    solution: LeastSquaresSolution = field(repr=False)
    loss: str

    @property
    def numbers(self) -> Array:
        """Values of the free entries, (n,), mixed units."""
        return self.solution.p

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free entries."""
        return self.model.parameters.names

    @property
    def values(self) -> dict[str, float]:
        """Name -> value of each free entry."""
        return dict(zip(self.names, self.numbers.tolist(), strict=True))

    @property
    def plant(self) -> Plant:
        """Robot, motors, encoder offsets and ground with the identified values."""
        return self.model.parameters.plant(self.numbers)

    @property
    def robot(self) -> Robot:
        """The robot with the identified values."""
        return self.plant.robot

    @property
    def variance(self) -> float:
        """Variance of the weighted residuals: 1 if the residuals are as large as the given noise."""
        states = np.count_nonzero(self.shooting.blocks.state >= 0) * len(self.solution.q)
        free = self.solution.prediction.residual.size - states - len(self.numbers)
        weights = self.model._weights(self.shooting)
        return float(((self.solution.prediction.residual * weights) ** 2).sum()) / max(free, 1)

    @cached_property
    def identifiability(self) -> Identifiability:
        """Covariance, correlations, and the directions that the log does not determine."""
        return Identifiability(
            self.names,
            self.solution.reduced.H,
            self.model.parameters.width,
            self.variance,
            self.solution.reduced.matrices,
            self.solution.reduced.scores,
        )

    def intervals(self, level: float = 0.95, robust: bool = False) -> dict[str, tuple[float, float]]:
        """Return name -> confidence interval of each free entry.

        Args:
            level: Probability that the interval contains the value, if the model is exact and the noise independent.
            robust: Whether to take the deviations from the scatter between the windows, which also holds where the
                errors of a window are correlated, such as those of late and lost commands. W windows give quantiles of
                Student's distribution with W - 1 degrees of freedom; a parameter that one window alone determines has
                an infinite interval.
        """
        known, windows = self.identifiability, len(self.solution.q)
        deviations = known.robust_deviations if robust else known.deviations
        tail = 0.5 + 0.5 * number("level", level, above=0.0, below=1.0)
        half = (t.ppf(tail, max(windows - 1, 1)) if robust else norm.ppf(tail)) * deviations
        return {n: (x - d, x + d) for n, x, d in zip(self.names, self.numbers.tolist(), half.tolist(), strict=True)}

    def error(
        self,
        log: Log | Sequence[Log] | None = None,
        *,
        window: float = 0.5,
        chosen: Sequence[int] | None = None,
        fitted: bool = True,
    ) -> dict[str, float]:
        """Return channel -> root mean square error of the predictions of a log, in the unit of the channel.

        Each window of a given log starts from its first reading, so that its predictions use no later one.

        Args:
            log: A log, or several, not used for the fit; by default the fitted one with its estimated initial states.
            window: Duration of the windows, [s]. chosen: Indices of the windows; by default all.
            fitted: Whether to use the fitted values, or the nominal ones.
        """
        if log is None:
            return self._by_channel(self.shooting, self.solution.prediction.residual)
        logs = self.model._ordered(log)
        shooting = self.model._shooting(joined(logs), windows(logs, window, chosen))
        p = self.numbers if fitted else self.model.parameters.nominal
        prediction = shooting.simulate(*shooting.initial_states(p), p, with_derivatives=False)
        return self._by_channel(shooting, prediction.residual)

    def _by_channel(self, shooting: Shooting, residual: Array) -> dict[str, float]:
        errors, at = {}, 0
        for name in shooting.channels:
            size = shooting.plant_step.residual_size(name)
            errors[name] = float(np.sqrt((residual[..., at : at + size] ** 2).mean()))
            at += size
        return errors

    def save_urdf(self, path: str | Path) -> Path:
        """Write the identified robot to a URDF file, and return its path; see `legged.save_urdf`."""
        return save_urdf(self.robot, path)

    def save_mjcf(self, path: str | Path) -> Path:
        """Write the identified robot to an MJCF file, and return its path; see `legged.save_mjcf`.

        The file has no actuators. For servos with the identified gains, call `legged.save_mjcf` with `scene=True` and
        the `kp` and `kd` of `plant`.
        """
        return save_mjcf(self.robot, path)

    def save_html(self, path: str | Path, held_out: Log | Sequence[Log] | None = None) -> Path:
        """Write a report as an HTML page, and return its path.

        Args:
            path: The file; .html is appended where it is missing. held_out: A log, or several, not used for the fit.
        """
        from legged.identification.report import save_report

        return save_report(self, path, held_out)
