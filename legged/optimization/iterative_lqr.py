"""Optimal control through contact: the iterative linear-quadratic regulator over time steps on rigid ground.

    plan = IterativeLQR(DifferentiableSimulation(robot, ground=legged.Rigid()), stage, final, spread=2.0)
    result = plan.solve(commands, q=q, v=v)            # commands (T, nu): a poor start

Contacts are not given: they follow from the time steps. Their derivatives are those of the active modes, which contain
nothing of a contact that is not made. With a spread, the linear dynamics are means over motions with random changes of
the commands, some of which make the contact (randomized smoothing); the spread decreases with the iterations.

Source: Tassa, Erez, Todorov 2012, "Synthesis and stabilization of complex behaviors through online trajectory
optimization"; Suh, Pang, Tedrake 2022, "Bundled gradients through contact via randomized smoothing", whose samples
deviate from the nominal state of each step, ours along whole motions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import Numbers, number, real_array, whole
from legged.checked import checked
from legged.compiler import BatchKernel, jacobian, where
from legged.differentiation import DifferentiableSimulation
from legged.errors import ArgumentError, ShapeError
from legged.optimization.riccati import RiccatiRecursion
from legged.optimization.terms import Cost, Point
from legged.robot.configuration import integrate
from legged.spatial import Array

STEP_LENGTHS = 0.5 ** np.arange(10.0)
_LEAST, _FIRST, _LARGEST = 1e-9, 1e-4, 1e6  # regularization: least, least after an increase, end of the iterations
_SUFFICIENT = 1e-4  # decrease of the cost relative to the expected one


@dataclass(frozen=True, eq=False)
class PlanThroughContact:
    """Commands with feedback, and the motion that follows from them.

    Attributes:
        converged: Whether no further decrease of the cost is expected. message: Why the iterations ended.
        cost: Of the motion. costs: After each iteration, (iterations + 1,).
        t: Times of the states, (T + 1,), [s]. q, v: States, (T + 1, nq) and (T + 1, nv).
        commands: (T, nu), in their unit.
        gain: Feedback K, (T, nu, nx): command plus K times the deviation of the state, see `DifferentiableSimulation`.
        forces: Contact forces of the step before each state, (T + 1, m, 3), [N], contact frames.
    """

    converged: bool
    message: str
    cost: float
    costs: Array
    t: Array
    q: Array
    v: Array
    commands: Array
    gain: Array
    forces: Array


@checked
class IterativeLQR:
    """The iterative linear-quadratic regulator over the time steps of a simulation.

    Attributes:
        simulation: The simulation.
    """

    def __init__(
        self,
        simulation: DifferentiableSimulation,
        stage: Sequence[Cost],
        final: Sequence[Cost] = (),
        *,
        spread: Any = 0.0,
        samples: int = 16,
        decay: float = 0.9,
        lower: Any = None,
        upper: Any = None,
        seed: int = 0,
    ):
        """Compile the costs.

        Args:
            simulation: The simulation.
            stage: Costs of q, v, time and command (the `u` of a `Point`) before each step, without forces, times the
                length of the step. final: Costs of the last state; their commands are zero.
            spread: Standard deviation of the random changes of the commands, a number or (nu,), in their unit; 0 for
                the derivatives of the motion itself.
            samples: Number of motions with random changes. decay: Factor of the spread after each iteration, at most 1.
            lower, upper: Bounds of commands, numbers or (nu,), in their unit; none by default.
            seed: Of the random numbers.

        Raises:
            ArgumentError: A negative spread, or bounds that contradict each other.
        """
        nu = simulation.nu
        self.simulation, self._samples, self._decay = simulation, whole("samples", samples, 2), number("decay", decay)
        self._spread = np.broadcast_to(np.asarray(spread, float), (nu,))
        if not (self._spread >= 0.0).all() or not 0.0 < decay <= 1.0:
            raise ArgumentError(f"spread must be at least 0 and decay in (0, 1], got {spread} and {decay}")
        self._lower = np.broadcast_to(np.asarray(-np.inf if lower is None else lower, float), (nu,))
        self._upper = np.broadcast_to(np.asarray(np.inf if upper is None else upper, float), (nu,))
        if (self._lower > self._upper).any():
            raise ArgumentError(f"lower bounds of commands exceed upper ones: {self._lower}, {self._upper}")
        self._stage, self._final = (_CostModel(simulation, terms) for terms in (stage, final))
        self._random = np.random.default_rng(seed)

    def solve(
        self,
        commands: Numbers,
        *,
        q: Numbers | None = None,
        v: Numbers | None = None,
        iterations: int = 50,
        tolerance: float = 1e-6,
    ) -> PlanThroughContact:
        """Improve commands from a state, and return them with the motion.

        Args:
            commands: The start, (T, nu), in their unit. q, v: Initial state, (nq,) and (nv,), mixed units; by default
                that of the simulation. iterations: Largest number of iterations.
            tolerance: Expected decrease of the cost, relative to the cost, at which the iterations end.

        Raises:
            ShapeError: The commands have another shape.
        """
        sim = self.simulation
        given = real_array("commands", commands).astype(float)
        if given.ndim != 2 or given.shape[1] != sim.nu or not len(given):
            raise ShapeError(f"commands must be (T, {sim.nu}), got shape {given.shape}")
        u = np.clip(given, self._lower, self._upper)
        states, cost = self._roll(u[:, None], sim.state(q, v)[None])
        states, costs = states[:, 0], [float(cost[0])]
        regularization, spread, message = _LEAST, self._spread, f"not converged after {iterations} iterations"
        gain = np.zeros((len(u), sim.nu, sim.nx))
        converged = False
        for _ in range(iterations):
            A, B = self._jacobians(u, q, v, spread)
            search = self._improved(u, states, A, B, regularization, costs[-1])
            while search is None and regularization < _LARGEST:
                regularization = max(10.0 * regularization, _FIRST)
                search = self._improved(u, states, A, B, regularization, costs[-1])
            spread = self._decay * spread
            if search is None:
                message, regularization = "no step decreases the cost", _LEAST
                if not spread.any():
                    break
                continue
            u, states, gain, after, expected = search
            regularization = max(0.1 * regularization, _LEAST)
            costs.append(after)
            if expected <= tolerance * abs(after):
                converged, message = True, f"converged in {len(costs) - 1} iterations"
                break
        run = sim.rollout(u, q=q, v=v)
        return PlanThroughContact(
            converged, message, costs[-1], np.array(costs), run.t, run.q, run.v, u, gain, run.forces
        )  # fmt: skip

    def _clocks(self, count: int) -> Array:
        return self.simulation.clocks(count * self.simulation.integrator.step)

    def _jacobians(self, u: Array, q: Any, v: Any, spread: Array) -> tuple[Array, Array]:
        """Return the linear dynamics of all steps, (T, nx, nx) and (T, nx, nu)."""
        if not spread.any():
            A, B, _ = self.simulation.rollout(u, q=q, v=v).jacobians()
            return A, B
        w = spread * self._random.standard_normal((len(u), self._samples // 2, self.simulation.nu))
        changed = np.clip(u[:, None] + np.concatenate([w, -w], axis=1), self._lower, self._upper)
        A, B, _ = self.simulation.rollout(changed, q=q, v=v).jacobians()
        return A.mean(axis=1), B.mean(axis=1)

    def _improved(
        self, u: Array, states: Array, A: Array, B: Array, regularization: float, cost: float
    ) -> tuple[Array, Array, Array, float, float] | None:
        """Return commands, states, gains, cost and expected decrease of the best step, or None if none decreases it."""
        (T, nu), nx = u.shape, self.simulation.nx
        model = RiccatiRecursion(1, T, nx, nu)
        gradient, hessian = model.gradient[0], model.hessian[0]
        model.F[0, :-1] = np.concatenate([A, B], axis=2)
        clocks = self._clocks(T)
        self._stage.add(gradient[:-1], hessian[:-1], states[:-1], u, clocks[:, 0], clocks[:, 1])
        end = np.array([clocks[-1, :2].sum()])
        self._final.add(gradient[-1:], hessian[-1:], states[-1:], np.zeros((1, nu)), end, np.ones(1))
        gradient[-1, nx:], hessian[-1, nx:] = 0.0, 0.0
        bounds = self._lower - u, self._upper - u
        padded = [np.concatenate([x, np.zeros((1, nu))])[None] for x in bounds]
        limited = (padded[0], padded[1]) if np.isfinite(bounds).any() else None
        result = model.backward(np.array([regularization]), limited)
        if result.failed_node[0] >= 0:
            return None
        expected = -float(result.slope[0] + 0.5 * result.curvature[0])
        gain = model.gain[0, :T]
        commands, moved, costs = self._search(u, states, model.feedforward[0, :T], gain)
        allowed = cost - _SUFFICIENT * STEP_LENGTHS * expected
        best = int(np.where(costs <= allowed, costs, np.inf).argmin())
        if not costs[best] <= allowed[best]:
            return None
        return commands[:, best], moved[:, best], gain, float(costs[best]), expected

    def _search(self, u: Array, states: Array, k: Array, K: Array) -> tuple[Array, Array, Array]:
        """Return commands (T, n, nu), states and costs (n,) of all step lengths, with feedback."""
        return self._follow(
            lambda i, x: u[i] + STEP_LENGTHS[:, None] * k[i] + self._feedback(K[i], states[i], x), u, states
        )

    def _feedback(self, K: Array, reference: Array, x: Array) -> Array:
        return self.simulation.deviation(reference, x) @ K.T

    def _roll(self, commands: Array, start: Array) -> tuple[Array, Array]:
        """Return the states, (T + 1, n, ...), and the costs, (n,), of commands, (T, n, nu)."""
        _, states, costs = self._follow(lambda i, x: commands[i], commands[:, 0], start, len(commands[0]))
        return states, costs

    def _follow(self, law: Any, u: Array, states: Array, count: int = len(STEP_LENGTHS)) -> tuple[Array, Array, Array]:
        """Return commands, states and costs of motions of a law of the number of the step and the states, (n, ...)."""
        sim, clocks = self.simulation, self._clocks(len(u))
        x, cost = np.tile(states[0], (count, 1)), np.zeros(count)
        motion, commands = [x], list[Array]()
        for i, clock in enumerate(clocks):
            commands.append(np.clip(law(i, x), self._lower, self._upper))
            cost += clock[1] * self._stage.value(x, commands[i], clock[0])
            x = sim.step(clock, sim.values, commands[i], x).state
            motion.append(x)
        cost += self._final.value(x, np.zeros((count, sim.nu)), clocks[-1, :2].sum())
        return np.stack(commands), np.stack(motion), np.where(np.isfinite(cost), cost, np.inf)


class _CostModel:
    """The sum of costs of a state and a command, and its Gauss-Newton model by [dq; dv; command]."""

    def __init__(self, simulation: DifferentiableSimulation, terms: Sequence[Cost]):
        robot = simulation.robot
        self._nq, self._nv, self._terms = robot.nq, robot.nv, list(terms)
        shapes = {"q": (robot.nq,), "v": (robot.nv,), "u": (simulation.nu,), "t": ()}

        def residuals(z: Array, q: Array, v: Array, u: Array, t: Any) -> Array:
            nv, rows = robot.nv, [np.zeros(0)]
            at = Point(t, integrate(robot, q, z[:nv]), v + z[nv : 2 * nv], u + z[2 * nv :], {})
            for term in self._terms:
                values = {name: x if x.shape else float(x) for name, x in term.parameters.items()}
                r = np.asarray(term.function(robot, at, **term.constants, **values)).reshape(-1)
                root = np.sqrt(np.broadcast_to(term.weight, r.shape))
                rows.append(root * np.array([where(x < 0.0, x, 0.0) if term.form == "barrier" else x for x in r]))
            return np.concatenate(rows)

        zero = np.zeros(2 * robot.nv + simulation.nu)

        def value(q: Array, v: Array, u: Array, t: Any) -> Any:
            r = residuals(zero, q, v, u, t)
            return 0.5 * (r @ r) + 0.0 * t

        def model(q: Array, v: Array, u: Array, t: Any) -> tuple[Array, Array]:
            r, D = residuals(zero, q, v, u, t), jacobian(residuals, "z", "forward")(zero, q, v, u, t)
            return r @ D, D.T @ D

        self._value = BatchKernel(value, shapes) if self._terms else None
        self._model = BatchKernel(model, shapes) if self._terms else None

    def value(self, states: Array, u: Array, t: Any) -> Array:
        """Return the costs of states (n, ...) and commands (n, nu) at a time, (n,)."""
        if self._value is None:
            return np.zeros(len(states))
        q, v = states[:, : self._nq], states[:, self._nq : self._nq + self._nv]
        return self._value(q, v, u, np.full(len(states), t))

    def add(self, gradient: Array, hessian: Array, states: Array, u: Array, t: Array, lengths: Array) -> None:
        """Add the model, times lengths of steps (n,), to gradients, (n, nx + nu), and Hessians by state and command."""
        if self._model is None:
            return
        q, v = states[:, : self._nq], states[:, self._nq : self._nq + self._nv]
        g, H = self._model(q, v, u, t)
        entries = [*range(2 * self._nv), *range(gradient.shape[1] - u.shape[1], gradient.shape[1])]
        gradient[:, entries] += lengths[:, None] * g
        hessian[:, np.ix_(entries, entries)[0], np.ix_(entries, entries)[1]] += lengths[:, None, None] * H
