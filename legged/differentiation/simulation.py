"""`DifferentiableSimulation`: motions on rigid ground with their derivatives.

The base class `DifferentiableSteps` has the time step and its derivatives; `rollout` below checks the arguments, takes
the steps one after the other, and returns a `DifferentiableRollout`, which computes Jacobians and gradients from them.
"""

from __future__ import annotations

import numpy as np

from legged.arguments import Numbers, number, real_array
from legged.checked import checked
from legged.differentiation.rollout import DifferentiableRollout
from legged.differentiation.steps import DifferentiableSteps
from legged.errors import ArgumentError, ShapeError
from legged.spatial import Array


@checked
class DifferentiableSimulation(DifferentiableSteps):
    """A robot on rigid ground whose time steps have derivatives; `rollout` advances it and returns them.

        sim = DifferentiableSimulation(robot, ground=legged.Rigid(), parameters=["robot.trunk.mass"])
        run = sim.rollout(torques, q=q, v=v)                 # (T, nj), [N m]
        A, B, P = run.jacobians()
        value, gradient = run.gradient(final=lambda q, v: (q[4] - 1.0) ** 2)

    States are differentiated by deviations along the configuration manifold. A deviation is [dq; dv; dm; df], and then
    [dq; dv] of each free body; its length is `nx`. dq is a tangent vector as in `legged.integrate`, m is the memory of
    the controller, and f the contact forces of the last step in contact frames, on which controllers and the friction
    and stops of joints depend.

    Args:
        robot: The robot.
        controller: A controller that can be traced; one that searches or iterates has no derivative. None: the commands
            are the torques of the joints.
        ground: The rigid ground. Its `tolerance` limits the accuracy of impulses, and so that of the derivatives.
        q, v: Initial state of `rollout`, (nq,) and (nv,), mixed units; default as in `legged.simulate`.
        integrator: Time stepping; `legged.TimeStepping()` by default.
        command: Length nu of the command of a controller that takes one. Without a controller nu is the number of joint
            coordinates, nj.
        parameters: Names of the parameters with respect to which to differentiate, see `legged.rollout_parameters`.
        pushes: External wrenches. bodies: Free bodies.

    Attributes:
        robot: The robot. nx, nu, np: Lengths of a deviation, of a command and of the parameters.
        values: Values of the parameters in the definitions, (np,), in their units, in the order of `parameters`.

    Raises:
        DefinitionError: A parameter changes other numbers too, joints have friction or stops without a contact, or the
            length of the command is missing.
        UnknownNameError: A parameter does not exist. StateError: A joint is beyond its stop.
        TraceError: The controller cannot be traced; when derivatives are computed, it has none.
    """

    def rollout(
        self,
        commands: Numbers | None = None,
        *,
        until: float | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        parameters: Numbers | None = None,
        impact_times: bool = False,
    ) -> DifferentiableRollout:
        """Return the motion over T time steps from t = 0 with its derivatives.

        Args:
            commands: Command of each step, (T, nu), or (T, B, nu) for B members; torques in [N m] or [N] without a
                controller. None for zeros or no command.
            until: End, [s]; by default that of the commands. Steps end at the reference times of the controller.
            q, v: Initial states, (nq,) and (nv,), or (B, nq) and (B, nv), mixed units; by default those of the
                constructor.
            parameters: Values of the parameters, (np,) or (B, np), in their units; by default `values`.
            impact_times: Whether the derivatives contain the change of the times of impacts, as in continuous time. The
                derivatives of the steps themselves do not contain it, since an impact stays in its step.

        Raises:
            ArgumentError: Neither commands nor an end are given.
            ShapeError, NotFiniteError: An argument has another shape, or is not finite.
            SingularError: A state is not finite, or the motion diverges.
        """
        clocks, u = self._clocks_and_commands(commands, until)
        values = self.values if parameters is None else real_array("parameters", parameters).astype(float)
        if values.shape[-1:] != (self.np,):
            raise ShapeError(f"parameters must be (..., {self.np}), got shape {values.shape}")
        start = self.state(q, v)
        members = np.broadcast_shapes(u.shape[1:-1], start.shape[:-1], values.shape[:-1])
        states, results = [np.broadcast_to(start, (*members, start.shape[-1]))], []
        for clock, command in zip(clocks, u, strict=True):
            results.append(self.step(clock, values, command, states[-1]))
            states.append(results[-1].state)
        _, unknowns, modes, bounces = (
            np.stack([np.broadcast_to(x, (*members, x.shape[-1])) for x in of_steps])
            for of_steps in zip(*results, strict=True)
        )
        numbers = u, values, clocks, unknowns, modes, bounces
        return DifferentiableRollout(self, np.stack(states), *numbers, impact_times=impact_times)

    def _clocks_and_commands(self, commands: Numbers | None, until: float | None) -> tuple[Array, Array]:
        """Return the `clocks` of the steps, (T, 3), and their commands, (T, nu) or (T, B, nu); see `rollout`."""
        if commands is None:
            if until is None:
                raise ArgumentError("give commands, (T, nu), or the end of the motion, until=1.0 [s]")
            clocks = self.clocks(number("until", until, "s", above=0))
            return clocks, np.zeros((len(clocks), self.nu))
        u = real_array("commands", commands).astype(float)
        if u.ndim not in (2, 3) or u.shape[-1] != self.nu or not len(u):
            raise ShapeError(f"commands must be (T, {self.nu}) or (T, B, {self.nu}), got shape {u.shape}")
        end = len(u) * self.integrator.step if until is None else number("until", until, "s", above=0)
        clocks = self.clocks(end)
        if len(u) != len(clocks):
            raise ShapeError(f"there are {len(clocks)} time steps until {end:g} s, but commands for {len(u)}")
        return clocks, u
