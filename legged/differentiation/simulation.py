"""Derivatives of the time steps of a robot on rigid ground, by the implicit function theorem.

A step is a function x+ = F(x, u, theta, p) of the state, the command, parameters, and the impulses p of its contact
problem, which satisfy equations R(x, u, theta, p) = 0: the natural map of the contact law, see `equations`. With
weights w of the state after the step and multipliers mu,

    (dR/dp)^T mu = -(dF/dp)^T w,      d(w . x+) = d(w . F + mu . R) at constant w, mu and p,

so that products of w with the Jacobian take one solution of linear equations and one reverse sweep over the step, and
no derivative of the iterations of the solver. The equations are those of the active mode of each contact. The Jacobian
is the products with all unit vectors, side by side in vector lanes.

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
from legged.errors import DefinitionError, ShapeError
from legged.robot.robot import Robot
from legged.simulation.backend import advance
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import TimeStepping
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_batch import MemberTemplate, commanded
from legged.simulation.stepping.parameters import ROBOT, numbers_of
from legged.simulation.stepping.start import select_integrator
from legged.spatial import Array

_ControllerLike = ControllerLike | Callable[[Any, Array, Array, Array, Array], Array]  # the last argument is a command
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
        state: With respect to the deviation of the state before it, (..., nx), mixed units.
        command: With respect to the command, (..., nu). parameters: With respect to the parameters, (..., np).
    """

    state: Array
    command: Array
    parameters: Array


@checked
class DifferentiableSimulation:
    """A robot on rigid ground whose time steps have derivatives; `rollout` advances it and returns them.

        sim = legged.DifferentiableSimulation(robot, ground=legged.Rigid(), parameters=["robot.trunk.mass"])
        run = sim.rollout(torques, q=q, v=v)                 # (T, nj), [N m]
        A, B, P = run.jacobians()
        value, gradient = run.gradient(final=lambda q, v: (q[4] - 1.0) ** 2)

    States change along the configuration manifold: a deviation is [dq; dv; dm; df] with q = integrate(q, dq), the
    memory m of the controller and the contact forces f of the last step, which the joints' friction and stops and
    controllers use; then [dq; dv] of each free body. Its length is `nx`.

    Args:
        robot: The robot.
        controller: A law that can be traced, without reference times; a law that searches or iterates has no
            derivative. None: the commands are the torques of the actuators.
        ground: The rigid ground. Its `tolerance` limits the accuracy of impulses, and so that of the derivatives.
        q, v: Initial state of `rollout`, (nq,) and (nv,), mixed units; default as in `legged.simulate`.
        integrator: Time stepping; `legged.TimeStepping()` by default.
        command: Length of the command, nu, of a controller that takes one; otherwise it is the number of actuators.
        parameters: Names of numbers with respect to which to differentiate, see `legged.rollout_parameters`.
        pushes: External wrenches. bodies: Free bodies.

    Attributes:
        robot: The robot. nx, nu, np: Lengths of a deviation, of a command and of the parameters.
        values: Present values of the parameters, (np,), in their units, in the order of `parameters`.

    Raises:
        DefinitionError: The controller has reference times, or a parameter changes other numbers too.
        UnknownNameError: A parameter does not exist. StateError: A joint is beyond its stop.
        TraceError: The controller cannot be traced, or has no derivative.
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
        rule = select_integrator(integrator, ground, bodies, TimeStepping())
        assert isinstance(rule, TimeStepping)
        self.robot, self.time_step = robot, rule.step
        setup = controller, ground, tuple(pushes), tuple(bodies)
        vary = {}
        if parameters:
            batch = RolloutBatch.of(robot, setup, (q, v), fall=False, count=1)
            known = batch.sweep.present(parameters)
            vary = {name: known[name] for name in dict.fromkeys(parameters)}
        batch = RolloutBatch.of(robot, setup, (q, v), vary=vary, fall=False, count=1)
        starts = batch.starts
        self._batch, self._order = batch, _places(batch, setup, (q, v))
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
        controller = loop.controller
        if len(controller.switches(1e6)) or len(controller.update_times(1e6)):
            raise DefinitionError(
                "the controller has reference times, at which its law changes; differentiate the steps under commands: "
                "leave out the controller and give the torques of a run"
            )
        assert isinstance(loop.ground, Rigid)
        if loop.joint_laws.rows and not (loop.scene.candidates and loop.ground.iterations):
            raise DefinitionError(
                "stops and dry friction of joints have derivatives as rows of a contact problem: the robot needs a "
                "contact point, which may be far from the ground, and the ground iterations > 0"
            )

    def rollout(
        self,
        commands: Numbers | None = None,
        *,
        steps: int | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        parameters: Numbers | None = None,
    ) -> Any:
        """Return the motion over T time steps from t = 0, as a `DifferentiableRollout`.

        Args:
            commands: Command of each step, (T, nu), or (T, B, nu) for B members; torques in [N m] or [N] without a
                controller. None for zeros or no command.
            steps: T without commands.
            q, v: Initial states, (nq,) and (nv,), or (B, nq) and (B, nv), mixed units; by default those of the
                constructor.
            parameters: Values of the parameters, (np,) or (B, np), in their units; by default the present ones.

        Raises:
            ShapeError, NotFiniteError: An argument has another shape, or is not finite.
            SingularError: A state is not finite, or the motion diverges.
        """
        from legged.differentiation.rollout import DifferentiableRollout

        given = np.zeros((whole("steps", steps, 1) if commands is None else 0, self.nu))
        if commands is not None:
            given = real_array("commands", commands).astype(float)
        if given.ndim not in (2, 3) or given.shape[-1] != self.nu or not len(given):
            raise ShapeError(f"commands must be (T, {self.nu}) or (T, B, {self.nu}), got shape {given.shape}")
        values = self.values if parameters is None else real_array("parameters", parameters).astype(float)
        start = self.state(q, v)
        lead = np.broadcast_shapes(given.shape[1:-1], start.shape[:-1], values.shape[:-1])
        states, results = [np.broadcast_to(start, (*lead, len(self._start)))], []
        for k, command in enumerate(given):
            results.append(self.step(self.clock(k), values, command, states[-1]))
            states.append(results[-1].state)
        parts = [
            np.stack([np.broadcast_to(x, (*lead, x.shape[-1])) for x in part]) for part in zip(*results, strict=True)
        ]
        return DifferentiableRollout(self, np.stack(states), given, values, *parts[1:])

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

    def clock(self, k: int) -> Array:
        """Return [t [s], time step [s], phase] of step k, (3,)."""
        return np.array([k * self.time_step, self.time_step, 0.0])

    def step(self, clock: Array, values: Array, command: Array, state: Array) -> StepResult:
        """Return the result of a time step.

        Args:
            clock: See `clock`, (3,). values: Parameters, (..., np), in their units.
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
            weights: Of the deviation after the step, (..., nx), in units of the inverse.
        """
        arrays = clock, values, command, state, result.state, result.unknowns, weights
        return StepDerivative(*self._derivative_kernel(*arrays))

    # Functions that are traced.

    def _stepped(self, solver: ImpulseSolver, clock: Any, values: Any, command: Any, state: Any) -> Array:
        loop = replace(self.loop, solver=solver)
        if self.np:
            own, _ = self._template.member([values[i] for i in np.argsort(self._order)])
            loop = replace(own, solver=solver)  # type: ignore[type-var]
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
        """Return w . F + mu . R at x = [deviation; command; parameters]."""
        solver, (nx, nu) = GivenSolver(unknowns), (self.nx, self.nu)
        begin = moved(self.loop, state, x[:nx])
        found = self._stepped(solver, clock, x[nx + nu :], x[nx : nx + nu], begin)
        value = weights @ deviation(self.loop, after, found)
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
        found = jacobian(self._lagrangian, "x", "reverse")(x, unknowns, *given, multipliers)
        ends = self.nx, self.nx + self.nu
        return StepDerivative(found[: ends[0]], found[ends[0] : ends[1]], found[ends[1] :])

    @cached_property
    def _step_kernel(self) -> Kernel[Any, Any]:
        shapes = {"clock": 3, "values": self.np, "command": self.nu, "state": len(self._start)}
        return compile_function(self._recorded, None, **shapes)

    @cached_property
    def _derivative_kernel(self) -> Kernel[Any, Any]:
        shapes = {"clock": 3, "values": self.np, "command": self.nu, "state": len(self._start)}
        unknowns = self._step_kernel.graph.outputs[1]
        shapes |= {"after": len(self._start), "unknowns": unknowns, "weights": self.nx}
        return compile_function(self._derivative, None, **shapes)


def _places(batch: RolloutBatch, setup: tuple[Any, ...], state: tuple[Any, Any]) -> list[int]:
    """Return the places of the entries of the parameters among the numbers of a member, in the order of their names."""
    values, numbers = batch.sweep.values, batch.starts.numbers[0]
    robot = [name for name in values if name.startswith(ROBOT)]
    sizes = np.cumsum([0, *(values[name].size for name in robot)])
    places = {name: range(a, b) for name, a, b in zip(robot, sizes[:-1], sizes[1:], strict=True)}
    for name, value in values.items():
        if name in places:
            continue
        other = np.where(value == 0.0, 1e-3, 0.999 * value)
        changed = RolloutBatch.of(batch.robot, setup, state, vary={**values, name: other}, fall=False, count=1)
        moved_numbers = changed.starts.numbers[0]
        differs = np.flatnonzero(moved_numbers != numbers).tolist() if len(moved_numbers) == len(numbers) else []
        if len(differs) != value.size or not np.array_equal(moved_numbers[differs], other.ravel()):
            raise DefinitionError(
                f"{name!r} changes other numbers when the controller starts, or none at all; differentiate with "
                f"respect to one of {', '.join(sorted(numbers_of(batch.sweep.nominal)))}"
            )
        places[name] = differs  # type: ignore[assignment]
    return [place for name in values for place in places[name]]
