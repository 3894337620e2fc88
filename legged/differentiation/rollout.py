"""Motions of a `DifferentiableSimulation` with their derivatives: Jacobians, sensitivities, adjoints and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import Numbers, real_array
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.compiler import jacobian
from legged.contact.impulses.impact import SLIGHT
from legged.differentiation.equations import contact_forces
from legged.differentiation.steps import DifferentiableSteps, StepDerivative, StepResult
from legged.errors import ArgumentError, LeggedError, ShapeError
from legged.robot.configuration import integrate
from legged.spatial import Array

MODES = ("free", "sticking", "sliding")
"""Names of the modes of contacts, in the order of `DifferentiableRollout.modes`."""


class StepJacobians(NamedTuple):
    """Jacobians of time steps, with leading axes (...): dx+ = A dx + B du + P dtheta.

    Here dx is the deviation of the state before the step, see `DifferentiableSimulation`, dx+ that after it, and du and
    dtheta are changes of the command and the parameters.

    Attributes:
        A: (..., nx, nx), mixed units. B: (..., nx, nu), mixed units. P: (..., nx, np), mixed units.
    """

    A: Array
    B: Array
    P: Array


class Gradient(NamedTuple):
    """Derivatives of a number, such as a cost, of a motion of T steps, with leading axes (...), in mixed units.

    Attributes:
        state: Derivative with respect to the deviation of the first state, (..., nx).
        commands: Derivative with respect to the commands, (T, ..., nu).
        parameters: Derivative with respect to the parameters, (..., np).
    """

    state: Array
    commands: Array
    parameters: Array


@checked
@dataclass(frozen=True, eq=False)
class DifferentiableRollout:
    """The motion of T time steps, of one member or of several (leading axes (...)), with its derivatives.

    Attributes:
        simulation: The simulation that returned it.
        states: States [q; s] before the steps and after the last one, (T + 1, ..., n), mixed units.
        commands: Commands of the steps, (T, ..., nu), any unit.
        parameters: Values of the parameters, (..., np), in their units.
        clocks: Start [s], length [s] and phase of each step, (T, 3), mixed units.
        unknowns: Solutions of the contact problems, (T, ..., k), mixed units.
        modes: Mode of each contact in each step, an index of `MODES`, and then of each joint with stops or dry
            friction, 1 where these determine its velocity and 2 where not, (T, ..., m + r), dimensionless.
        bounces: 1 where a contact rebounds by its restitution, otherwise 0, (T, ..., m), dimensionless.
        impact_times: Whether derivatives contain the change of the times of impacts, see `impacts`.
    """

    simulation: DifferentiableSteps
    states: Array
    commands: Array
    parameters: Array
    clocks: Array
    unknowns: Array
    modes: Array
    bounces: Array
    impact_times: bool = False

    @property
    def t(self) -> Array:
        """Times of the states, (T + 1,), [s]."""
        return np.append(self.clocks[:, 0], self.clocks[-1, :2].sum())

    @property
    def q(self) -> Array:
        """Configurations, (T + 1, ..., nq), mixed units."""
        return self.states[..., : self.simulation.robot.nq]

    @property
    def v(self) -> Array:
        """Velocities, (T + 1, ..., nv), mixed units."""
        robot = self.simulation.robot
        return self.states[..., robot.nq : robot.nq + robot.nv]

    @property
    def forces(self) -> Array:
        """Contact forces of the step before each state, (T + 1, ..., m, 3), [N], contact frames; zero at the start."""
        return contact_forces(self.simulation.loop, self.states)

    def part(self, first: int, last: int) -> DifferentiableRollout:
        """Return the motion of successive steps, such as the last period of a gait that has settled.

        Args:
            first, last: Numbers of the first of these steps and of the step after the last one.

        Raises:
            ArgumentError: There are no such steps.
        """
        if not 0 <= first < last <= len(self.clocks):
            raise ArgumentError(f"steps {first} to {last} are not among the {len(self.clocks)} steps of the motion")
        names = "commands", "clocks", "unknowns", "modes", "bounces"
        return replace(
            self, states=self.states[first : last + 1], **{name: getattr(self, name)[first:last] for name in names}
        )

    def jacobians(self) -> StepJacobians:
        """Return the Jacobians of all steps, (T, ..., nx, nx), (T, ..., nx, nu) and (T, ..., nx, np), mixed units."""
        sim, lead = self.simulation, self.states.shape[1:-1]
        weights = np.eye(sim.nx)
        jacobians = []
        for k in range(len(self.commands)):
            rows = self._products(k, weights, axis=-2)
            jacobians.append([np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in rows])
        return StepJacobians(*(np.stack(part) for part in zip(*jacobians, strict=True)))

    def sensitivities(
        self, state: Numbers | None = None, commands: Numbers | None = None, parameters: Numbers | None = None
    ) -> Array:
        """Return the derivatives of all states along k directions, computed forward in time.

        Args:
            state: Deviations of the first state, (..., nx, k), mixed units; None for zero.
            commands: Changes of the commands, (T, ..., nu, k), any unit; None for zero.
            parameters: Changes of the parameters, (..., np, k), in their units; None for zero.

        Returns:
            Deviations of all states, (T + 1, ..., nx, k), mixed units.

        Raises:
            ArgumentError: No change is given. ShapeError: The shapes disagree.
        """
        given = [None if x is None else real_array("a change", x) for x in (state, commands, parameters)]
        counts = {x.shape[-1] for x in given if x is not None}
        if not counts:
            raise ArgumentError("sensitivities need a change of the state, the commands or the parameters")
        sizes = self.simulation.nx, self.simulation.nu, self.simulation.np
        if len(counts) > 1 or any(x is not None and x.shape[-2:-1] != (n,) for x, n in zip(given, sizes, strict=True)):
            shapes = ", ".join(str(x.shape) for x in given if x is not None)
            raise ShapeError(
                f"changes must be (..., {sizes[0]}, k), (T, ..., {sizes[1]}, k), (..., {sizes[2]}, k): {shapes}"
            )
        begin = np.zeros((*self.states.shape[1:-1], sizes[0], counts.pop()))
        changes = [begin if given[0] is None else begin + given[0]]
        for k, (A, B, P) in enumerate(zip(*self.jacobians(), strict=True)):
            change = A @ changes[-1]
            change = change if given[1] is None else change + B @ given[1][k]
            changes.append(change if given[2] is None else change + P @ given[2])
        return np.stack(changes)

    def adjoint(self, weights: Numbers) -> Gradient:
        """Return the derivatives of the sum of the products of weights with all deviations, computed backward in time.

        Args:
            weights: Weights of the deviations of all states, (T + 1, ..., nx), in inverse units of the deviations.

        Raises:
            ShapeError: The weights have another shape.
        """
        given, sim = real_array("weights", weights), self.simulation
        shape = (*self.states.shape[:-1], sim.nx)
        if given.shape != shape:
            raise ShapeError(f"weights must be {shape}, got shape {given.shape}")
        carried, commands = np.array(given[-1], float), np.zeros((*shape[:-1], sim.nu))[:-1]
        parameters = np.zeros((*shape[1:-1], sim.np))
        for k in reversed(range(len(commands))):
            products = self._products(k, carried)
            carried, commands[k], parameters = (
                products.state + given[k],
                products.command,
                parameters + products.parameters,
            )
        return Gradient(carried, commands, parameters)

    def gradient(
        self,
        final: Callable[[Array, Array], Any] | None = None,
        stage: Callable[[Array, Array, Array], Any] | None = None,
    ) -> tuple[Any, Gradient]:
        """Return a cost and its gradient: final(q, v) at the end plus the sum of stage(q, v, command) before each step.

        The functions are plain NumPy code that does not branch on values, except by `legged.where`.

        Args:
            final: Cost of the last state, a function of q (nq,) and v (nv,), mixed units, or None.
            stage: Cost of a step, a function of q (nq,), v (nv,) and the command (nu,), mixed units, or None.

        Returns:
            The cost, (...), in its unit, and its derivatives.

        Raises:
            ArgumentError: No cost is given. TraceError: A cost cannot be traced.
        """
        value, weights, direct = self._costs(final, stage)
        gradient = self.adjoint(weights)
        return value, gradient._replace(commands=gradient.commands + direct)

    def cost(
        self,
        final: Callable[[Array, Array], Any] | None = None,
        stage: Callable[[Array, Array, Array], Any] | None = None,
    ) -> Any:
        """Return the cost of `gradient`, (...).

        Args:
            final, stage: As in `gradient`, of (nq,), (nv,) and (nu,), mixed units.
        """
        return self._costs(final, stage)[0]

    def _costs(self, final: Any, stage: Any) -> tuple[Any, Array, Array]:
        """Return a cost, (...), and its partial derivatives by states, (T + 1, ..., nx), and commands, (T, ..., nu)."""
        if final is None and stage is None:
            raise ArgumentError("gradient needs a cost: final=..., stage=..., or both")
        sim, nv, shape = self.simulation, self.simulation.robot.nv, self.states.shape[:-1]
        weights, value, direct = np.zeros((*shape, sim.nx)), np.zeros(shape[1:]), np.zeros((*shape, sim.nu))[:-1]
        if final is not None:
            cost, slope = _cost_kernel(sim, lambda q, v, u: final(q, v))(self.q[-1], self.v[-1], np.zeros(sim.nu))
            value, weights[-1, ..., : 2 * nv] = value + cost, slope[..., : 2 * nv]
        if stage is not None:
            cost, slope = _cost_kernel(sim, stage)(self.q[:-1], self.v[:-1], self._commands())
            value, direct = value + cost.sum(axis=0), slope[..., 2 * nv :]
            weights[:-1, ..., : 2 * nv] += slope[..., : 2 * nv]
        return value[()], weights, direct

    def _commands(self) -> Array:
        return np.broadcast_to(self.commands, (len(self.commands), *self.states.shape[1:-1], self.simulation.nu))

    def _products(self, k: int, weights: Array, axis: int | None = None) -> StepDerivative:
        """Return the products of weights, (..., nx), with the Jacobian of step k.

        Several weights for each member are along the given further axis of the weights.
        """
        sim, after = self.simulation, self.states[k + 1]
        arrays = self.parameters, self.commands[k], self.states[k], after, self.unknowns[k]
        if axis is not None:
            arrays = tuple(np.expand_dims(x, axis) for x in arrays)
        values, command, state, after, unknowns = arrays
        result = StepResult(after, unknowns, self.modes[k], self.bounces[k])
        products = sim.products(self.clocks[k], values, command, state, result, weights)
        impact = self.impacts.get(k)
        if impact is None:
            return products
        rate_before, rate_after, slope = impact if axis is None else (np.expand_dims(x, axis) for x in impact)
        jump = (weights * rate_after).sum(axis=-1) - (products.state * rate_before).sum(axis=-1)
        change = jump[..., None] * slope
        return products._replace(
            state=products.state + change[..., : sim.nx], parameters=products.parameters + change[..., sim.nx :]
        )

    @cached_property
    def impacts(self) -> dict[int, tuple[Array, Array, Array]]:
        """The steps in which a contact begins: number of the step -> (r-, r+, slope).

        With the Jacobian A of such a step, the rates r- and r+ of the state before and after the impact, and the gap g
        of the contact, a deviation dx before the impact is followed by A dx + (r+ - A r-) (dg/dx dx) / (dg/dx r-): the
        state moves with the rate r- to the time of the impact and with r+ from then on (the saltation matrix of a
        hybrid system). r- and r+ are (..., nx), and slope is dg / (dg/dx r-) by state and parameters, (..., nx + np),
        zero for members without impact in the step, all in mixed units. It is empty without `impact_times`.

        Raises:
            LeggedError: Two contacts begin in one step, so that the derivative does not exist, or one begins in the
                first step, so that the rate before it is unknown.
        """
        impacts: dict[int, tuple[Array, Array, Array]] = {}
        if not self.impact_times:
            return impacts
        sim, m = self.simulation, self.bounces.shape[-1]
        active = self.modes[..., :m] != 0.0
        begins = active & ~np.concatenate([active[:1], active[:-1]])
        if (active[0] & (sim.gaps(self.parameters, self.states[0])[0] > SLIGHT)).any():
            raise LeggedError("a contact begins in the first step, before which the motion is unknown; begin earlier")
        for k in np.flatnonzero(begins.reshape(len(begins), -1).any(axis=-1)).tolist():
            if (begins[k].sum(axis=-1) > 1).any():
                raise LeggedError(
                    f"two contacts begin in the step at t = {self.clocks[k, 0]:.6g} s: their order, and with it the "
                    f"derivative, depends on the deviation; take shorter steps, or impact_times=False"
                )
            before = -sim.deviation(self.states[k], self.states[k - 1]) / self.clocks[k - 1, 1]
            # In the step after an impact without rebound the gap still closes; the rate is that of the step behind it.
            after = sim.deviation(self.state_at(k + 2), self.state_at(k + 3)) / self.clocks[k, 1]
            gap_slope = (begins[k][..., None] * sim.gaps(self.parameters, self.states[k])[1]).sum(axis=-2)
            gap_rate = (gap_slope[..., : sim.nx] * before).sum(axis=-1)[..., None]
            impacts[k] = before, after, gap_slope / np.where(gap_rate == 0.0, 1.0, gap_rate)
        return impacts

    def state_at(self, k: int) -> Array:
        """Return the state before step k, (..., n), mixed units; after the end by further steps with the last command.

        Args:
            k: Number of the step.
        """
        if k < len(self.states):
            return self.states[k]
        clock = self.clocks[-1] + np.array([(k - len(self.clocks)) * self.clocks[-1, 1], 0.0, 0.0])
        return self.simulation.step(clock, self.parameters, self.commands[-1], self.state_at(k - 1)).state


def _cost_kernel(sim: DifferentiableSteps, cost: Callable[[Array, Array, Array], Any]) -> Callable[..., Any]:
    """Return the kernel of a cost and its derivative by [dq; dv; command], (2 nv + nu,), at (q, v, command)."""
    robot, nv = sim.robot, sim.robot.nv

    def moved_cost(x: Any, q: Any, v: Any) -> Any:
        return cost(integrate(robot, q, x[:nv]), v + x[nv : 2 * nv], x[2 * nv :])

    def both(q: Any, v: Any, command: Any) -> tuple[Any, Any]:
        x = np.concatenate([np.zeros(2 * nv), command])
        return 1.0 * moved_cost(x, q, v), jacobian(moved_cost, "x", "reverse")(x, q, v)

    return compile_function(both, None, q=robot.nq, v=nv, command=sim.nu)
