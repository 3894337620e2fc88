"""Control of robots with closed loops by laws for robots that are trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from controllers.wrappers.wrapper import Wrapper
from legged import arguments
from legged.arguments import Numbers
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.loops.serial import SerialEquivalent, serial_equivalent
from legged.robot.robot import Robot
from legged.simulation.controller import adapt, full_torque

Array = np.ndarray


@checked
@dataclass(frozen=True, eq=False)
class OnSerialEquivalent(Wrapper):
    """A law for trees that controls a robot with closed loops, such as five-bar legs or shanks that rods move.

        motors = [f"{leg}_{side}_hip" for leg in ("FL", "FR", "RL", "RR") for side in ("front", "rear")]
        bent = [1, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4]  # knees outward
        closed = robots.five_bar_quadruped()
        law = controllers.OnSerialEquivalent(controllers.Locomotion("walk"), closed, motors, bent)
        run = legged.simulate(closed, law, until=2.0, ground=legged.Rigid())

    The law controls the serial equivalent of the robot, see `legged.loops.serial_equivalent`, at its state, with the
    wrenches on its links. Its forces become those of the motors with the same power. `simulate`, `rollout` and
    `Simulation` apply this wrapper to `Locomotion` and `Recovery` for a robot with closed loops; the motors in loops
    are then the joints whose effort is limited and not zero.

    Attributes:
        law: Any controller for the serial equivalent.
        closed: The robot with closed loops.
        motors: Names of the joints in loops that have motors; None for those whose effort is limited and not zero.
        near: Configuration of the spanning tree, (nq,), mixed units, near which the loops are closed; None for one
            within the ranges of the joints.

    Raises:
        DefinitionError, LoopError, UnknownNameError: As `serial_equivalent`, at the start.
    """

    closed: ClosedRobot
    motors: Sequence[str] | None = None
    near: Numbers | None = None
    _equivalent: SerialEquivalent | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        arguments.instance("closed", self.closed, ClosedRobot, "a legged.loops.ClosedRobot")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (wrapper, memory) with the law started for the serial equivalent, (m,); see `Controller.start`.

        Args:
            robot: The spanning tree of the robot. ground, q, v: As in `Wrapper.start`.
        """
        self._check(robot)
        equivalent = self.equivalent
        controller, memory = adapt(self.law).start(equivalent.robot, ground, *equivalent.state(q, v))
        return replace(self, law=controller, _robot=robot, _equivalent=equivalent), memory

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) of the spanning tree, (nq,) and (nv,), at rest in the initial configuration of the law.

        If the law has no `initial_state`, q is the configuration for which the serial equivalent was made.
        """
        self._check(robot)
        equivalent = self.equivalent
        begin = getattr(self.law, "initial_state", None)
        q = equivalent.at if begin is None else equivalent.configuration(begin(equivalent.robot)[0])
        return q, np.zeros(robot.nv)

    def on_closed_robot(self, closed: ClosedRobot) -> Self:
        """Return this wrapper, which is for a robot with closed loops; see `Controller`."""
        return self

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces of the spanning tree, (nv,); arguments as in `GaitLaw.torque`."""
        equivalent = self._fitted_equivalent
        tau = self._started.torque(t, phase, *self._inner(q, v, wrenches), memory, *command)
        return equivalent.forces(q, full_torque(equivalent.robot, tau))

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `GaitLaw.torque`."""
        return self._started.rate(t, phase, *self._inner(q, v, wrenches), memory, *command)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,); arguments as in `GaitLaw.torque`."""
        return self._started.update(t, phase, *self._inner(q, v, wrenches), memory, *command)

    @property
    def equivalent(self) -> SerialEquivalent:
        """The serial equivalent of the robot."""
        return serial_equivalent(self.closed, self.motors, self.near)

    def _check(self, robot: Robot) -> None:
        """Raise an error for a robot that is not the spanning tree of the robot of this wrapper."""
        names, own = ([link.name for link in each.links] for each in (robot, self.closed.robot))
        if names != own:
            raise DefinitionError(f"OnSerialEquivalent is for {self.closed.name!r}, but {robot.name!r} has other links")

    @property
    def _fitted_equivalent(self) -> SerialEquivalent:
        if self._equivalent is None:
            raise DefinitionError("this OnSerialEquivalent has no robot; use the one that start(robot, ...) returns")
        return self._equivalent

    def _inner(self, q: Array, v: Array, wrenches: Array) -> tuple[Array, Array, Array]:
        """Return q, v and wrenches of the serial equivalent."""
        equivalent = self._fitted_equivalent
        return (*equivalent.state(q, v), equivalent.wrenches(wrenches))
