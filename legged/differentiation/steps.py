"""Derivatives of the time steps of a robot on rigid ground, by the implicit function theorem.

A step is a function x+ = F(x, u, theta, p) of the state x, the command u, the parameters theta, and the impulses p of
its contact problem, which satisfy the equations R(x, u, theta, p) = 0: the natural map of the contact law, see
`equations`. With weights w of the state after the step and multipliers mu,

    (dR/dp)^T mu = -(dF/dp)^T w,      d(w . x+) = d(w . F + mu . R) at constant w, mu and p,

so that the product of w with the Jacobian takes one solution of linear equations and one pass of reverse
differentiation over the step, and no derivative of the iterations of the solver. The equations are those of the active
mode of each contact. The rows of the Jacobian are the products with all unit vectors, computed side by side in vector
lanes.

Redundant contacts leave p indeterminate and dR/dp singular. The equations are regularized by `REGULARIZATION` times the
mobilities of the contacts and solved twice, the second time for the residual, which removes its effect on motions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import Numbers, real_array, whole
from legged.checked import checked
from legged.compiler import Kernel, jacobian, where
from legged.compiler import compile as compile_function
from legged.contact.impulses.elimination import solved
from legged.contact.impulses.impulse_solver import ImpulseSolver
from legged.contact.rigid import FreeBody, Rigid
from legged.differentiation.equations import GivenSolver, RecordedSolver, deviation, moved, tangent_size
from legged.differentiation.parameters import places, started
from legged.errors import DefinitionError, ShapeError, TraceError
from legged.robot.robot import Robot
from legged.simulation.backend import advance
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import TimeStepping, smooth_intervals
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.stepping.batch import MemberTemplate, RolloutBatch
from legged.simulation.stepping.engines import commanded
from legged.simulation.stepping.stepper import select_integrator
from legged.spatial import Array

# The second kind of controller is a function (t, q, v, wrenches, command).
_ControllerLike = ControllerLike | Callable[[Any, Array, Array, Array, Array], Array]
REGULARIZATION = 1e-9
"""Addition to the diagonal of dR/dp, relative to the mobilities of the contacts."""


class StepResult(NamedTuple):
    """One time step, or one for each member of a batch with leading axes (...).

    Attributes:
        state: State after the step, (..., n), mixed units.
        unknowns: Solutions of its contact problem, (..., k), mixed units.
        modes: Modes of contacts and joint rows, (..., m + r), see `equations.FREE`.
        bounces: Whether each contact rebounds by its restitution, (..., m), 1.0 or 0.0.
    """

    state: Array
    unknowns: Array
    modes: Array
    bounces: Array


class StepDerivative(NamedTuple):
    """Products of the Jacobian of a time step with weights of the state after it, with leading axes (...).

    Attributes:
        state: Derivative with respect to the deviation of the state before it, (..., nx), mixed units.
        command: Derivative with respect to the command, (..., nu), mixed units.
        parameters: Derivative with respect to the parameters, (..., np), mixed units.
    """

    state: Array
    command: Array
    parameters: Array


@checked
class DifferentiableSteps:
    """Time steps of a robot on rigid ground with their derivatives.

    Arguments and errors are those of `DifferentiableSimulation`.

    Attributes:
        robot: The robot. loop: Its closed loop. integrator: The time stepping.
        nx, nu, np: Lengths of a deviation, of a command and of the parameters.
        values: Values of the parameters in the definitions, (np,), in their units, in the order of `parameters`.
    """

    def __init__(
        self,
        robot: Robot,
        controller: _ControllerLike = None,
        *,
        ground: Rigid,
        q: Numbers | None = None,
        v: Numbers | None = None,
        integrator: TimeStepping | None = None,
        command: int | None = None,
        parameters: Sequence[str] = (),
        pushes: Sequence[Push | ExternalWrench] = (),
        bodies: Sequence[FreeBody] = (),
    ):
        rule = select_integrator(integrator, ground, bodies, None)
        assert isinstance(rule, TimeStepping)
        self.robot, self.integrator = robot, rule
        setup = controller, ground, tuple(pushes), tuple(bodies)
        vary = {}
        if parameters:
            batch = RolloutBatch.of(robot, setup, (q, v), fall=False, count=1)
            known = batch.sweep.present(parameters)
            vary = {name: known[name] for name in dict.fromkeys(parameters)}
        batch = RolloutBatch.of(robot, setup, (q, v), vary=vary, fall=False, count=1)
        starts = started(batch)
        self._batch, self._order = batch, places(batch, setup, (q, v))
        self.values = starts.numbers[0][self._order] if vary else np.zeros(0)
        self._template = MemberTemplate(batch, starts.numbers, self._order)
        loop = self._template.loop
        assert isinstance(loop, RigidLoop)
        self.loop = loop
        self._check(loop)
        self._start = starts.states[0]
        takes = controller is not None and bool(getattr(loop.controller, "takes_command", False))
        self.nu = robot.nj if controller is None else (whole("command", command, 1) if command else 0)
        if takes and not self.nu:
            raise DefinitionError("the controller takes a command: give its length, command=12")
        self.nx, self.np = tangent_size(loop), len(self.values)

    def _check(self, loop: RigidLoop) -> None:
        assert isinstance(loop.ground, Rigid)
        if loop.joint_laws.rows and not (loop.scene.candidates and loop.ground.iterations):
            raise DefinitionError(
                "stops and dry friction of joints have derivatives as rows of a contact problem: the robot needs a "
                "contact point, which may be far from the ground, and the ground iterations > 0"
            )

    def clocks(self, until: float) -> Array:
        """Return [start [s], length [s], phase] of each time step, (T, 3), mixed units.

        Args:
            until: End of the last step, [s].
        """
        intervals = smooth_intervals(np.array([0.0, until]), *self.loop.break_times(until))
        clocks: list[tuple[float, float, float]] = []
        for phase, start, h, count, _ in self.integrator.step_sequences(intervals):
            clocks.extend((start + k * h, h, float(phase)) for k in range(count))
        return np.array(clocks)

    def state(self, q: Numbers | None = None, v: Numbers | None = None) -> Array:
        """Return the state [q; s] at t = 0, (..., n), mixed units, with the memory of the controller at its start.

        Args:
            q, v: Configurations and velocities, (..., nq) and (..., nv), mixed units; v is zero with a given q.
        """
        if q is None and v is None:
            return self._start.copy()
        nq, nv = self.robot.nq, self.robot.nv
        q_0 = self._start[:nq] if q is None else real_array("q", q)
        v_0 = np.zeros(nv) if v is None else real_array("v", v)
        if q_0.shape[-1:] != (nq,) or v_0.shape[-1:] != (nv,):
            raise ShapeError(f"q must be (..., {nq}) and v (..., {nv}), got shapes {q_0.shape} and {v_0.shape}")
        lead = np.broadcast_shapes(q_0.shape[:-1], v_0.shape[:-1])
        state = np.array(np.broadcast_to(self._start, (*lead, len(self._start))))
        state[..., :nq], state[..., nq : nq + nv] = q_0, v_0
        return state

    def step(self, clock: Array, values: Array, command: Array, state: Array) -> StepResult:
        """Return the result of a time step.

        Args:
            clock: See `clocks`, (3,), mixed units. values: Parameters, (..., np), mixed units.
            command: (..., nu), any unit. state: State [q; s], (..., n), mixed units.
        """
        return StepResult(*self._step_kernel(clock, values, command, state))

    def products(
        self,
        clock: Array,
        values: Array,
        command: Array,
        state: Array,
        result: StepResult,
        weights: Array,
    ) -> StepDerivative:
        """Return the products of weights with the Jacobian of a step, d(weights . x+) / d(x, u, theta).

        Args:
            clock, values, command, state: As in `step`. result: Its result.
            weights: Of the deviation after the step, (..., nx), mixed units.
        """
        arrays = clock, values, command, state, result.state, result.unknowns, weights
        return StepDerivative(*self._derivative_kernel(*arrays))

    def gaps(self, values: Array, state: Array) -> tuple[Array, Array]:
        """Return the gaps of contacts, (..., m), [m], and their derivatives, (..., m, nx + np), mixed units.

        The derivatives are those with respect to [deviation; parameters].

        Args:
            values: Parameters, (..., np), mixed units. state: State [q; s], (..., n), mixed units.
        """
        return self._gap_kernel(values, state)

    def deviation(self, reference: Array, state: Array) -> Array:
        """Return the deviation of a state from a reference, (..., nx), mixed units.

        Args:
            reference, state: States [q; s], (..., n), mixed units.
        """
        return self._deviation_kernel(reference, state)

    # Functions that are traced.

    def _member(self, values: Any) -> RigidLoop:
        loop = self.loop
        if self.np:
            loop, _ = self._template.member([values[i] for i in np.argsort(self._order)])
            assert isinstance(loop, RigidLoop)
        return loop

    def _gaps(self, values: Any, state: Any) -> tuple[Array, Array]:
        def gaps(x: Any, state: Any) -> Array:
            loop, nq = self._member(x[self.nx :]), self.robot.nq
            moved_state = moved(self.loop, state, x[: self.nx])
            return loop.scene.contact_geometry([q for q, _ in loop.states(moved_state[:nq], moved_state[nq:])]).gap

        x = np.concatenate([np.zeros(self.nx), values])
        return gaps(x, state), jacobian(gaps, "x", "reverse")(x, state)

    def _stepped(self, solver: ImpulseSolver, clock: Any, values: Any, command: Any, state: Any) -> Array:
        loop = replace(self._member(values), impulse_solver=solver)
        return advance(commanded(loop, command) if self.nu else loop, "time_stepping", clock, state)

    def _recorded(self, clock: Any, values: Any, command: Any, state: Any) -> StepResult:
        solver = RecordedSolver()
        after = self._stepped(solver, clock, values, command, state)
        unknowns = np.concatenate(solver.unknowns) if solver.unknowns else np.zeros(0)
        bounces = np.zeros(len(self.loop.scene.candidates))
        if len(solver.targets) > 1:  # without and with restitution
            bounces = np.stack([where(a != b, 1.0, 0.0) for a, b in zip(*solver.targets, strict=True)])
        return StepResult(after, unknowns, solver.modes, bounces)

    def _equations(self, unknowns: Any, clock: Any, values: Any, command: Any, state: Any) -> tuple[Array, Array]:
        solver = GivenSolver(unknowns)
        self._stepped(solver, clock, values, command, state)
        return np.stack(solver.equations), np.stack(solver.scales)

    def _residual(self, unknowns: Any, clock: Any, values: Any, command: Any, state: Any) -> Array:
        return self._equations(unknowns, clock, values, command, state)[0]

    def _lagrangian(
        self, x: Any, unknowns: Any, clock: Any, state: Any, after: Any, weights: Any, multipliers: Any
    ) -> Any:
        """Return w . (deviation of F from x+) + mu . R at x = [deviation; command; parameters]."""
        solver, (nx, nu) = GivenSolver(unknowns), (self.nx, self.nu)
        begin = moved(self.loop, state, x[:nx])
        stepped = self._stepped(solver, clock, x[nx + nu :], x[nx : nx + nu], begin)
        value = weights @ deviation(self.loop, after, stepped)
        return value + multipliers @ np.stack(solver.equations) if solver.equations else value

    def _derivative(
        self, clock: Any, values: Any, command: Any, state: Any, after: Any, unknowns: Any, weights: Any
    ) -> StepDerivative:
        x = np.concatenate([np.zeros(self.nx), command, values])
        given, multipliers = (clock, state, after, weights), np.zeros(len(unknowns))
        if len(unknowns):
            own = unknowns, clock, values, command, state
            b = -jacobian(self._lagrangian, "unknowns", "reverse")(x, unknowns, *given, multipliers)
            R = jacobian(self._residual, "unknowns", "forward")(*own).T
            H = R + np.diag(REGULARIZATION * self._equations(*own)[1])
            multipliers = solved(H, b)
            multipliers = multipliers + solved(H, b - R @ multipliers)
        derivative = jacobian(self._lagrangian, "x", "reverse")(x, unknowns, *given, multipliers)
        ends = self.nx, self.nx + self.nu
        return StepDerivative(derivative[: ends[0]], derivative[ends[0] : ends[1]], derivative[ends[1] :])

    @cached_property
    def _gap_kernel(self) -> Kernel[Any, Any]:
        return compile_function(self._gaps, None, values=(self.np,), state=self._start.shape)

    @cached_property
    def _deviation_kernel(self) -> Kernel[Any, Any]:
        shape = self._start.shape
        return compile_function(
            lambda reference, state: deviation(self.loop, reference, state), None, reference=shape, state=shape
        )

    @property
    def _shapes(self) -> dict[str, Any]:
        return {"clock": (3,), "values": (self.np,), "command": (self.nu,), "state": self._start.shape}

    @cached_property
    def _step_kernel(self) -> Kernel[Any, Any]:
        return compile_function(self._recorded, None, **self._shapes)

    @cached_property
    def _derivative_kernel(self) -> Kernel[Any, Any]:
        unknowns = self._step_kernel.graph.outputs[1]
        shapes = {**self._shapes, "after": self._shapes["state"], "unknowns": unknowns, "weights": (self.nx,)}
        try:
            return compile_function(self._derivative, None, **shapes)
        except TraceError as error:
            raise TraceError(
                f"the time steps of {self.robot.name!r} have no derivative, {error}: does the controller iterate, as "
                f"one that solves a quadratic program? Leave it out, and give the torques of a run as commands"
            ) from error
