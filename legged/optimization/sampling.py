"""Optimal control by sampling: many simulations with random commands, without derivatives and without given contacts.

    plan = Sampling(legged.Simulation(robot, num=256), terms, horizon=0.5, command=np.zeros(robot.nj), noise=5.0)
    command = plan.improve(q, v)                 # in a loop, with the measured state

Commands are those of the simulation: torques, or the commands of its controller. A plan has a command at each of a few
knots, equally spaced over the horizon, and is linear between them. `Sampling.improve` adds random changes to the knots,
simulates each of these samples from the present state, and replaces the plan by their weighted mean or by the best one.

Source: Williams, Aldrich, Theodorou 2017 (model-predictive path integral control), equation (34); Howell and others
2022 (MuJoCo MPC), section IV, predictive sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.arguments import array, number, whole
from legged.checked import checked
from legged.compiler import BatchKernel, where
from legged.errors import ArgumentError, SimulationError
from legged.optimization.terms import Cost, Point
from legged.simulation import Simulation
from legged.spatial import Array

METHODS = ("path integral", "predictive")


@checked
class Sampling:
    """A plan of commands over a horizon, improved by simulations with random commands.

    Attributes:
        simulation: N robots.
        mean: The plan: commands at the knots, (knots, nu), in the units of the simulation's command.
        costs: Cost of each sample of the last improvement, (N,), infinite for simulations that ended early; the first
            is the cost of the plan before the improvement.
    """

    def __init__(
        self,
        simulation: Simulation,
        terms: Sequence[Cost],
        *,
        horizon: float,
        command: Array,
        noise: Any,
        knots: int = 5,
        interval: float = 0.02,
        method: str = "path integral",
        temperature: float = 0.1,
        lower: Any = -np.inf,
        upper: Any = np.inf,
        seed: int = 0,
    ):
        """Start with a plan of a constant command.

        Args:
            simulation: A simulation with `num`, the number of samples.
            terms: Costs of q, v, time and command (the `u` of a `Point`), without forces; integrated over the horizon.
            horizon: Duration of the plan, [s]. command: Initial command at all knots, (nu,), in the simulation's unit.
            noise: Standard deviation of the random changes at the knots, a number or (nu,), in the unit of the command.
            knots: Number of knots. interval: Time between evaluations of the costs, [s].
            method: "path integral" for the mean of all samples, weighted by exp(-cost / temperature), where costs are
                shifted and scaled so that the least is 0 and the median of samples that do not end early is 1;
                "predictive" for the best sample.
            temperature: Of the weights, dimensionless: a lower one gives more weight to the best samples.
            lower, upper: Bounds of commands, numbers or (nu,), in their unit. seed: Of the random numbers.
        """
        if simulation.num is None or simulation.num < 2:
            raise ArgumentError("sampling needs a simulation of at least 2 robots: Simulation(robot, num=256)")
        if method not in METHODS:
            raise ArgumentError(f"method must be one of {', '.join(map(repr, METHODS))}, got {method!r}")
        number("temperature", temperature)
        whole("knots", knots, least=2)
        if not (horizon > 0.0 and temperature > 0.0 and interval >= simulation.time_step):
            raise ArgumentError("horizon and temperature must be positive, and interval at least the time step")
        self.simulation, self.method, self.temperature = simulation, method, temperature
        first = array("command", command, (None,))
        self.mean = np.tile(first.astype(float), (knots, 1))
        self.noise = np.broadcast_to(np.asarray(noise, float), first.shape)
        self.costs = np.zeros(simulation.num)
        self._bounds = lower, upper
        self._substeps = max(round(interval / simulation.time_step), 1)
        self._interval = self._substeps * simulation.time_step
        self._steps = max(round(horizon / self._interval), 1)
        self._random = np.random.default_rng(seed)
        self._kernel = _cost_kernel(simulation.robot, terms, len(first))
        self._places = np.linspace(0.0, knots - 1.0, self._steps)  # of the intervals among the knots

    @property
    def interval(self) -> float:
        """Time between evaluations of the costs, in which a command is constant, [s]."""
        return self._interval

    @property
    def commands(self) -> Array:
        """The commands of the plan in its intervals, (n, nu), in the simulation's unit."""
        return _interpolated(self.mean, self._places)

    def improve(self, q: Array, v: Array, iterations: int = 1) -> Array:
        """Improve the plan from a state, and return its first command, (nu,), in the simulation's unit.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,). iterations: Number of improvements, each from new samples.

        Raises:
            SimulationError: Each of the simulations ends early; the plan is that of the last complete improvement.
        """
        count, (knots, nu) = self.simulation.num or 0, self.mean.shape
        for _ in range(iterations):
            samples = self.mean + self.noise * self._random.normal(size=(count, knots, nu))
            samples[0] = self.mean
            samples = np.clip(samples, *self._bounds)
            costs = self._evaluate(samples, q, v)
            finite = np.isfinite(costs)
            if not finite.any():
                raise SimulationError(
                    f"all {count} simulated commands end early: give less noise, a shorter horizon or another start"
                )
            self.costs = costs
            if self.method == "predictive":
                self.mean = samples[costs.argmin()]
            else:
                weights = self._weights(costs, finite)
                self.mean = np.tensordot(weights / weights.sum(), samples, axes=1)
        return self.mean[0].copy()

    def _weights(self, costs: Array, finite: Array) -> Array:
        """Return the weights of the path integral, (N,): 1 for the best sample, 0 for those that ended early."""
        least = costs[finite].min()
        spread = max(float(np.median(costs[finite])) - least, 1e-300)  # all finite costs may be equal
        return np.exp(-(costs - least) / (self.temperature * spread))

    def shift(self, duration: float) -> None:
        """Advance the plan in time; its last command is repeated at the end.

        Args:
            duration: Time that has passed since the last improvement, [s].
        """
        number("duration", duration, "s", least=0.0)
        knots = len(self.mean)
        period = self._interval * max(self._steps - 1, 1) / (knots - 1)
        self.mean = _interpolated(self.mean, np.minimum(np.arange(knots) + duration / period, knots - 1.0))

    def _evaluate(self, samples: Array, q: Array, v: Array) -> Array:
        """Return the cost of each sample, (N,); infinite for one that ended early."""
        sim, count = self.simulation, len(samples)
        sim.reset(q, v)
        total = np.zeros(count)
        for k in range(self._steps):
            commands = _interpolated(samples, self._places[k])
            sim.step(commands, self._substeps)
            total += self._interval * self._kernel(sim.q, sim.v, commands, np.full(count, (k + 1) * self._interval))
        return np.where(sim.ended, np.inf, total)


def _interpolated(plans: Array, places: Any) -> Array:
    """Return the commands of plans, (..., knots, nu), at places among the knots, numbers from 0 to knots - 1."""
    left = np.minimum(places.astype(int), plans.shape[-2] - 2)
    share = np.asarray(places - left)[..., None]
    return (1.0 - share) * plans[..., left, :] + share * plans[..., left + 1, :]


def _cost_kernel(robot: Any, terms: Sequence[Cost], nu: int) -> BatchKernel:
    """Return the kernel of the costs of a state, a command and a time: sums of w r^2 / 2, of barriers where r < 0."""

    def cost(q: Array, v: Array, u: Array, t: Any) -> Any:
        total = 0.0 * t
        for term in terms:
            values = {name: x if x.shape else float(x) for name, x in term.parameters.items()}
            r = np.asarray(term.function(robot, Point(t, q, v, u, {}), **term.constants, **values)).reshape(-1)
            weights = np.broadcast_to(term.weight, r.shape)
            for weight, x in zip(weights, r, strict=True):
                x = where(x < 0.0, x, 0.0) if term.form == "barrier" else x
                total = total + 0.5 * weight * x * x
        return total

    return BatchKernel(cost, {"q": (robot.nq,), "v": (robot.nv,), "u": (nu,), "t": ()})
