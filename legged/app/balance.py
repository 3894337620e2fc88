"""The experiment of Wendlandt 1997, section 4: a biped rises from a crouch, is hit by a block, and keeps balance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from controllers import Held, WorkspaceBalance
from legged.app.timing import race
from legged.contact import FreeBody, Rigid
from legged.errors import DefinitionError, SimulationError
from legged.robot.inertia import box_inertia
from legged.robot.robot import Robot
from legged.robot.shapes import Box
from legged.robot.state import State
from legged.rotations import euler_matrix
from legged.simulation import Run
from legged.simulation.controller import adapt
from legged.simulation.engine import Engine, choose
from legged.simulation.fixed import TimeStepping
from legged.simulation.rigid_loop import closed_loop
from legged.simulation.simulate import follow, sample_times
from legged.simulation.skeleton import stick_figure
from legged.simulation.system import segments
from legged.spatial import Array
from robots.spatial_biped import crouch, spatial_biped

BLOCK = "block"
POSITION = (0.01, 0.0, 1.14)  # [m], of the trunk's center of mass: the paper's set point, mirrored in x as the robot
ORIENTATION = (0.0, float(np.radians(15.0)), 0.0)  # [rad], it leans forward by 15 degrees


@dataclass(frozen=True)
class Throw:
    """A block that is thrown, its edges along the world's axes at first.

    Attributes:
        mass: [kg]. size: Its edges, (3,), [m].
        position: Of its middle at first, (3,), [m], world. velocity: (3,), [m/s], world. spin: (3,), [rad/s], world.

    Mass, position and velocity are the paper's, mirrored in x; the paper gives neither shape nor size. A cube of 0.1 m
    is as dense as brick, 1800 kg/m^3, and reaches the back of the biped's chest when the paper's block does.
    """

    mass: float = 1.8
    size: tuple[float, float, float] = (0.1, 0.1, 0.1)
    position: tuple[float, float, float] = (-0.5, 0.1, 1.2)
    velocity: tuple[float, float, float] = (4.5, 0.0, 0.2)
    spin: tuple[float, float, float] = (0.0, 0.0, 0.0)

    @property
    def body(self) -> FreeBody:
        """The block as a free body."""
        inertia, shape = box_inertia(self.mass, self.size), Box(self.size)
        return FreeBody(BLOCK, inertia, (shape,), position=self.position, velocity=self.velocity, spin=self.spin)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A robot under workspace balance on rigid ground, and what is thrown at it.

    Attributes:
        robot: Its base's link has shapes, which the block may hit. start: How it begins.
        position, orientation: Set point of the base's origin, (3,), [m], and roll, pitch, yaw, (3,), [rad]; None to
            keep those at the start.
        throw: None for nothing.
        friction, restitution: Of all contacts. sweeps: Of their solver.
        rate: How often the law is computed, [1/s]. step: Of time, [s]. duration: [s].
    """

    robot: Robot
    start: State
    position: tuple[float, float, float] | None = None
    orientation: tuple[float, float, float] | None = None
    throw: Throw | None = Throw()
    friction: float = 0.3
    restitution: float = 0.2
    sweeps: int = 10
    rate: float = 500.0
    step: float = 1e-3
    duration: float = 3.0

    def __post_init__(self) -> None:
        if self.throw is not None:
            check_shapes(self.robot, "throw nothing")

    @cached_property
    def law(self) -> Held:
        """The control law, held between its instants."""
        return Held(self.balance(), self.rate)

    def balance(self) -> WorkspaceBalance:
        """Return the law by itself, with the paper's gains."""
        return WorkspaceBalance(self.position, self.orientation, point=(0.0, 0.0, 0.0))

    @cached_property
    def ground(self) -> Rigid:
        """The ground, and the law of all contacts."""
        return Rigid(friction=self.friction, restitution=self.restitution, sweeps=self.sweeps)

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        """What is thrown."""
        return () if self.throw is None else (self.throw.body,)

    @property
    def wanted(self) -> tuple[Array, Array]:
        """The set point: place of the base's origin, (3,), [m], and base axes to world axes, (3, 3)."""
        R, origin = self.robot.base.pose(self.start.q[: self.robot.base.nq])
        place = origin if self.position is None else np.array(self.position)
        return place, R if self.orientation is None else euler_matrix("zyx", np.array(self.orientation)[::-1])

    @cached_property
    def run(self) -> Run:
        """The motion, a sample for each step; one that ended early tells why in `ended`."""
        engine, q, s = self._begun
        integrator, times = TimeStepping(self.step), sample_times(self.duration, self.step)
        try:
            return follow(engine, self.law, q, s, times, integrator, None, None)
        except SimulationError as error:
            if isinstance(error.run, Run) and len(error.run) > 1:
                return error.run
            raise

    def seconds(self) -> float:
        """Return the processor time that the motion takes, [s], compiled and sampled at 100 Hz: the best of some."""
        engine, q, s = self._begun
        plan = segments(sample_times(self.duration, 0.01), *engine.loop.break_times(self.duration))
        return race([lambda: list(TimeStepping(self.step).march(engine, q, s, plan))])[0]

    @cached_property
    def _begun(self) -> tuple[Engine, Array, Array]:
        """The compiled loop, and its state at the start, (q, s)."""
        (q, v), adapted = self.start, adapt(self.law)
        memory = adapted.start(self.robot, self.ground, q, v)
        nodes = stick_figure(self.robot)[0]
        loop = closed_loop(self.robot, adapted, self.ground, len(memory), (), nodes, self.bodies)
        s = loop.initial(v, memory)
        return choose(loop, q, s, True), q, s


def check_shapes(robot: Robot, instead: str) -> None:
    """Raise DefinitionError, which tells what to do instead, for a robot whose base nothing thrown can hit."""
    base = robot.links[0]
    if not base.shapes:
        raise DefinitionError(
            f"nothing can hit robot {robot.name!r}: its link {base.name!r} has no shapes; give it some, "
            f"Link(..., shapes=(Box(...),)), or {instead}"
        )


def paper_experiment(**given: Any) -> Experiment:
    """Return the paper's experiment, with other settings of `Experiment` where they are given."""
    robot = spatial_biped()
    return Experiment(robot, crouch(robot), POSITION, ORIENTATION, **given)


def standing_experiment(robot: Robot, **given: Any) -> Experiment:
    """Return the experiment of a robot that keeps the posture in which its law lets it stand."""
    q, v = WorkspaceBalance().initial_state(robot)
    return Experiment(robot, State(q, v), **given)
