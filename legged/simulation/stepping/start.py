"""The start of a simulation: its integrator, its initial state and its closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import number
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.arguments import read
from legged.errors import DefinitionError, SimulationWarning
from legged.ground.ground import Ground
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import independent_first
from legged.loops.dynamics import Stabilization
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.simulation.checks.fall import Fall, can_fall
from legged.simulation.checks.stable_step import stable_step_of_friction, stable_step_of_loop
from legged.simulation.controller import Controller, is_passive, needs_command
from legged.simulation.forces import check_range, unactuated_entries
from legged.simulation.hidden_state import independent_copy
from legged.simulation.integrators import (
    FixedStep,
    Integrator,
    LinearlyImplicitEuler,
    RungeKutta4,
    SemiImplicitEuler,
    TimeStepping,
)
from legged.simulation.loop.closed_chains import ClosedChainLoop, ClosedRigidLoop, check_closed
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.joint_laws import JointLaws
from legged.simulation.loop.results import BreakTimes
from legged.simulation.loop.rigid_loop import closed_loop
from legged.simulation.robot_controllers import RobotControllers
from legged.simulation.stepping.parameters import Setup
from legged.simulation.variable_step import BDF

Array = np.ndarray
_PERIOD = 0.01  # [s], of a step of `Simulation` with variable integration steps
_MARGIN = 1.2  # of the estimated stable step, below which runs passed; see the table in docs/explanation/simulation.md


_NEARBY = 1e-3  # [rad], [m], [rad/s] and [m/s], of states near the initial one


class InitialStates(NamedTuple):
    """Some members at the start.

    Attributes:
        states: States [q; s], (B, n).
        numbers: Numbers in robot, controller, ground, pushes and limits of each member, (B, m).
        loops: Closed loop of each member; members with equal loops share one.
        refused: Why numbers alone do not tell the members apart, so that one kernel cannot compute all of them; the
            numbers are then those of limits alone. "" if they do.
    """

    states: Array
    numbers: Array
    loops: tuple[ClosedLoop, ...]
    refused: str = ""

    def replaced(self, members: Array, others: InitialStates) -> InitialStates:
        """Return these members with the starts of some replaced.

        Args:
            members: Their indices, (k,), dimensionless. others: Their new starts.
        """
        states, numbers, loops = self.states.copy(), self.numbers.copy(), list(self.loops)
        states[members], numbers[members] = others.states, others.numbers
        for i, loop in zip(members.tolist(), others.loops, strict=True):
            loops[i] = loop
        return self._replace(states=states, numbers=numbers, loops=tuple(loops))

    def limited(self, refused: str, count: int) -> InitialStates:
        """Return these members with the numbers of limits alone if numbers do not tell them apart from others.

        Args:
            refused: Why not, or "". count: Number of numbers of limits.
        """
        if not refused or self.refused:
            return self
        return self._replace(numbers=self.numbers[:, self.numbers.shape[1] - count :], refused=refused)

    def repeated(self, count: int) -> InitialStates:
        """Return the starts of `count` members: these, or the only one of these for all of them."""
        if len(self.loops) == count:
            return self
        states, numbers = (np.repeat(x, count, axis=0) for x in (self.states, self.numbers))
        return self._replace(states=states, numbers=numbers, loops=self.loops * count)

    def break_times(self, until: float, edges: bool = False) -> tuple[BreakTimes, ...]:
        """Return the break times of each member.

        Args:
            until: End time, [s]. edges: As in `ClosedLoop.break_times`.
        """
        times: dict[int, BreakTimes] = {}
        for loop in self.loops:
            if id(loop.controller) not in times:
                times[id(loop.controller)] = loop.break_times(until, edges)
        return tuple(times[id(loop.controller)] for loop in self.loops)


def step_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    """Return a warning of the integrator at the start of a run, or "".

    A fixed step is too long for the stiffness and damping of compliant ground; joint friction is too steep for the step
    of an explicit integrator, or dry friction is regularized.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        integrator: The integrator.
    """
    return _ground_warning(loop, q, s, integrator) or _friction_warning(loop, q, integrator)


def _ground_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    if not isinstance(integrator, FixedStep) or integrator.rule in ("time_stepping", "linearly_implicit"):
        return ""
    largest = stable_step_of_loop(loop, q, s, integrator)
    if integrator.step <= _MARGIN * largest:
        return ""
    return (
        f"a step of {integrator.step:g} s is too long for this ground: feet in contact are stable up to {largest:.2g} "
        f"s; take {0.5 * largest:.1g} s, a softer ground, or a legged.Rigid ground"
    )


def _friction_warning(loop: ClosedLoop, q: Array, integrator: Any) -> str:
    robot = loop.robot
    is_explicit = getattr(integrator, "rule", "") == "runge_kutta"
    if is_explicit and integrator.step > (limit := stable_step_of_friction(robot, q)):
        return (
            f"a step of {integrator.step:g} s is too long for the friction of the joints, which is stable up to "
            f"{limit:.2g} s; take {0.5 * limit:.1g} s, or legged.SemiImplicitEuler, which takes friction implicitly"
        )
    if not loop.joint_laws.has_friction or not (is_explicit or isinstance(integrator, BDF)):
        return ""
    return (
        f"{integrator} regularizes the dry friction of joints: one that friction should hold creeps at up to "
        f"{TRANSITION_SPEED:g} rad/s or m/s; legged.SemiImplicitEuler holds it"
    )


def check_base_forces(loop: ClosedLoop, q: Array, s: Array, compiled: bool | None) -> None:
    """Warn, see `ClosedLoop.notices`, if a controller that is to be compiled returns forces for a base without motors.

    A copy of the controller is evaluated at the initial state and near it. In Python each call is checked.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        compiled: As in `simulate`.
    """
    if compiled is False or is_passive(loop.controller) or not unactuated_entries(loop.robot):
        return
    near, n, rng = replace(loop, controller=independent_copy(loop.controller)), loop.robot.nv, np.random.default_rng(0)
    none = np.zeros((len(loop.robot.links), 6))
    for size in (0.0, _NEARBY, _NEARBY):
        xi, noise = size * rng.standard_normal((2, n))
        state = np.concatenate([s[:n] + noise, s[n:]])
        try:
            moved = near.configuration(q, xi)
            near.actuation(0.0, 0, moved, near.controller_update(0.0, 0, moved, state, none), none)
        except SimulationWarning:
            raise
        except Exception:  # outside of the domain of the user's code, whose errors belong to the run
            return


def check_command(controller: Controller) -> None:
    """Raise DefinitionError if a started controller needs a command, which `simulate` and `rollout` do not give."""
    if needs_command(controller):
        raise DefinitionError(
            "the controller takes a command, which Simulation.step gives: use legged.Simulation(...), a default value "
            "of the argument `command`, or controllers.CommandedLaw(law, command), whose command is a function of time"
        )


def select_integrator(
    integrator: Integrator | None, ground: Ground | Rigid | None, bodies: Sequence[FreeBody], default: Integrator
) -> Integrator:
    """Return the integrator of a run, after a check that it fits the ground.

    Args:
        integrator: As the user gave it; None selects `TimeStepping` on rigid ground, otherwise the default.
        ground: The ground. bodies: Free bodies. default: Integrator without ground and on compliant ground.

    Raises:
        DefinitionError: Integrator, ground and bodies are incompatible.
    """
    rigid = isinstance(ground, Rigid)
    if bodies and not rigid:
        raise DefinitionError("free bodies need a rigid ground: give ground=Rigid(...)")
    if integrator is None:
        return TimeStepping() if rigid else default
    if rigid != isinstance(integrator, TimeStepping):
        wanted = "a Rigid ground needs TimeStepping(...)" if rigid else "TimeStepping(...) needs a Rigid ground"
        raise DefinitionError(f"{wanted}, got {integrator} on {type(ground).__name__ if ground else 'no ground'}")
    return integrator


def default_fixed_step(closed: ClosedRobot | None) -> FixedStep:
    """Return the default integrator with fixed steps, without ground or on compliant ground.

    It takes stops and dry friction implicitly; with closed loops and neither of both it is of order 4.

    Args:
        closed: The robot with closed loops, if it has some.
    """
    explicit = closed is not None and not JointLaws.of(closed.robot).rows
    return RungeKutta4(step=1e-3) if explicit else SemiImplicitEuler()


def step_grid(integrator: Integrator, period: float | None) -> FixedStep:
    """Return the time steps to which `Simulation.step` advances.

    Args:
        integrator: The integrator. period: The time step of one with variable steps, [s]; by default 10 ms.

    Raises:
        DefinitionError: An integrator with fixed steps and a period are given.
    """
    if isinstance(integrator, FixedStep):
        if period is not None:
            raise DefinitionError(f"the period of {integrator} is its step; leave out period")
        return integrator
    return FixedStep(_PERIOD if period is None else number("period", period, "s", above=0))


def select_fall(fall: Fall | bool | None, robot: Robot, ground: Ground | Rigid | None) -> Fall | None:
    """Return the condition under which a robot has fallen, None if it never falls.

    Args:
        fall: As the user gave it; None selects `Fall()` for a robot with a free base on a ground.
        robot: The robot. ground: The ground.
    """
    if fall is None:
        fall = can_fall(robot, ground)
    return fall if isinstance(fall, Fall) else Fall() if fall else None


def initial_state(robot: Robot | ClosedRobot, controller: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the initial configuration (nq,) and velocity (nv,) of a run, which satisfy the constraints of loops.

    Args:
        robot: The robot. controller: The controller, whose `initial_state(robot)` is the default.
        q: Configuration, (nq,), or None. v: Velocity, (nv,), or None for rest.

    Raises:
        LoopError: The state does not satisfy the loop constraints.
    """
    closed, tree = (robot, robot.robot) if isinstance(robot, ClosedRobot) else (None, robot)
    controller = RobotControllers(controller) if isinstance(controller, Mapping) else controller
    if q is None and hasattr(controller, "initial_state"):
        q, planned = controller.initial_state(tree)
        v = planned if v is None else v
    elif q is None:
        q = tree.neutral() if closed is None else assemble(closed, tree.neutral())
    q, v = read(tree, q=q, v=np.zeros(tree.nv) if v is None else v)
    check_range(tree, q)
    if closed is not None:
        check_closed(closed, q, v)
    return q, v


def new_loop(
    robot: Robot | ClosedRobot,
    setup: Setup,
    controller: Controller,
    memory: int,
    q: Array,
    points: list[tuple[int, Array]],
    time_constant: float = 0.05,
) -> ClosedLoop:
    """Return the closed loop of a robot, with or without closed kinematic loops.

    Args:
        robot: The robot, or one with closed loops; otherwise `setup.robot` holds.
        setup: Robot, ground, pushes and bodies. controller: The started controller. memory: Length of its memory.
        q: Initial configuration, (nq,), at which the constraints of loops are ordered.
        points: Points (link index, position (3,) [m] in link axes) that `ClosedLoop.outputs` reports.
        time_constant: Time constant of the stabilization of closed loops, [s].
    """
    parts = setup.robot, controller, setup.ground, memory, setup.pushes, points
    if not isinstance(robot, ClosedRobot):
        return closed_loop(*parts, setup.bodies)
    closed = independent_first(robot, q)
    if isinstance(setup.ground, Rigid):
        return ClosedRigidLoop(*parts, setup.bodies, closed=closed)
    return ClosedChainLoop(*parts, closed=closed, stabilization=Stabilization(time_constant))


def check_integrator(loop: ClosedLoop, integrator: Integrator) -> None:
    """Raise DefinitionError if an integrator cannot advance a closed loop.

    Args:
        loop: The closed loop. integrator: The integrator.
    """
    if loop.controller.has_update and not isinstance(integrator, FixedStep):
        raise DefinitionError(
            f"a controller with a discrete update needs an integrator with fixed steps, got {integrator}"
        )
    if isinstance(loop, ClosedChainLoop) and isinstance(integrator, LinearlyImplicitEuler):
        raise DefinitionError(
            f"robot {loop.robot.name!r} has closed loops, which LinearlyImplicitEuler does not support; use "
            f"RungeKutta4 or SemiImplicitEuler"
        )
