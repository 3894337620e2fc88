"""The experiment of Wendlandt 1997, section 4: a balancing biped is hit by a thrown block.

`BalanceExperiment` defines and simulates it; the functions find impact, foot motion, errors and settling in its run.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from controllers import WorkspaceBalance, ZeroOrderHold
from examples.studies.paper.timing import best_times, time_loop
from legged.contact import FreeBody, Rigid
from legged.errors import DefinitionError, SimulationError, SimulationInterrupt
from legged.robot.inertia import box_inertia
from legged.robot.robot import Robot
from legged.robot.shapes import Box
from legged.robot.state import State
from legged.rotations import euler_matrix
from legged.simulation import Run, simulate
from legged.simulation.controller import adapt
from legged.simulation.integrators import TimeStepping
from legged.simulation.results.records import GROUND
from legged.simulation.stepping.batch import closed_loop
from legged.spatial import Array
from robots.bipeds import crouch, spatial_biped

BLOCK = "block"
POSITION = (0.01, 0.0, 1.14)  # [m], of the trunk's center of mass: the paper's set point, mirrored in x as the robot
ORIENTATION = (0.0, float(np.radians(15.0)), 0.0)  # [rad], it leans forward by 15 degrees


@dataclass(frozen=True)
class ThrownBlock:
    """A thrown block, initially aligned with the world axes.

    Attributes:
        mass: Mass, [kg].
        size: Edge lengths, (3,), [m].
        position: Initial position of the center, (3,), [m], world axes.
        velocity: Initial velocity of the center, (3,), [m/s], world axes.
        spin: Initial angular velocity, (3,), [rad/s], world axes.

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
class BalanceExperiment:
    """A robot under workspace balance on rigid ground, hit by a thrown block.

    Attributes:
        robot: Robot whose base link has shapes for contact with the block.
        start: Initial state.
        position: Set point of the base origin, (3,), [m], world axes; None for the initial position.
        orientation: Set point of the base, roll, pitch, yaw, (3,), [rad]; None for the initial orientation.
        throw: The block, or None.
        friction, restitution: Coefficients of all contacts, dimensionless.
        sweeps: Number of iterations of the contact solver.
        rate: Control rate, [1/s].
        step: Time step, [s].
        duration: Simulated time, [s].
    """

    robot: Robot
    start: State
    position: tuple[float, float, float] | None = None
    orientation: tuple[float, float, float] | None = None
    throw: ThrownBlock | None = ThrownBlock()
    friction: float = 0.3
    restitution: float = 0.2
    sweeps: int = 10
    rate: float = 500.0
    step: float = 1e-3
    duration: float = 3.0

    def __post_init__(self) -> None:
        if self.throw is not None:
            check_shapes(self.robot, "throw nothing")

    @property
    def of_paper(self) -> bool:
        """Whether the robot is the paper's biped, which is mirrored in x here."""
        return self.robot.name == "spatial biped"

    @cached_property
    def law(self) -> ZeroOrderHold:
        """The controller with zero-order hold."""
        return ZeroOrderHold(self.balance(), self.rate)

    def balance(self) -> WorkspaceBalance:
        """Return the controller without hold, with the gains of the paper."""
        return WorkspaceBalance(self.position, self.orientation, point=(0.0, 0.0, 0.0))

    @cached_property
    def ground(self) -> Rigid:
        """The ground and contact model."""
        return Rigid(friction=self.friction, restitution=self.restitution, sweeps=self.sweeps)

    @property
    def bodies(self) -> tuple[FreeBody, ...]:
        """The thrown block, if any."""
        return () if self.throw is None else (self.throw.body,)

    @property
    def wanted(self) -> tuple[Array, Array]:
        """Set point: position of the base origin, (3,), [m], world axes, and rotation base to world axes, (3, 3)."""
        R, origin = self.robot.base.pose(self.start.q[: self.robot.base.nq])
        place = origin if self.position is None else np.array(self.position)
        return place, R if self.orientation is None else euler_matrix("zyx", np.array(self.orientation)[::-1])

    @cached_property
    def run(self) -> Run:
        """The run with one sample per time step; `run.ended` gives the reason of an early end, such as Ctrl-C."""
        q, v = self.start
        try:
            return simulate(
                self.robot,
                self.law,
                until=self.duration,
                ground=self.ground,
                q=q,
                v=v,
                integrator=TimeStepping(self.step),
                sample=self.step,
                bodies=self.bodies,
                compiled=True,
            )
        except (SimulationError, SimulationInterrupt) as error:
            if isinstance(error.run, Run) and len(error.run) > 1:
                return error.run
            raise

    def seconds(self) -> float:
        """Return the best processor time of the compiled simulation, sampled at 100 Hz, [s]."""
        q, v = self.start
        adapted, memory = adapt(self.law).start(self.robot, self.ground, q, v)
        loop = closed_loop(self.robot, adapted, self.ground, len(memory), (), self.bodies)
        return best_times([time_loop(loop, TimeStepping(self.step), q, loop.initial(v, memory), self.duration)])[0]


def check_shapes(robot: Robot, instead: str) -> None:
    """Raise DefinitionError with the alternative `instead` if the base link has no shapes for contact."""
    base = robot.links[0]
    if not base.shapes:
        raise DefinitionError(
            f"robot {robot.name!r} cannot be hit: its link {base.name!r} has no shapes; add some, "
            f"Link(..., shapes=(Box(...),)), or {instead}"
        )


def paper_experiment(**given: Any) -> BalanceExperiment:
    """Return the experiment of the paper, with changed attributes of `BalanceExperiment` where given."""
    robot = spatial_biped()
    return BalanceExperiment(robot, crouch(robot), POSITION, ORIENTATION, **given)


def standing_experiment(robot: Robot, **given: Any) -> BalanceExperiment:
    """Return the experiment of a robot that holds the initial posture of its controller."""
    q, v = WorkspaceBalance().initial_state(robot)
    return BalanceExperiment(robot, State(q, v), **given)


RISEN = 1e-3  # [m], height over the ground above which a point of a foot has risen
NEAR, UPRIGHT = 0.01, float(np.radians(1.0))  # [m], [rad]: errors of a robot that has settled
STOOD = 0.05  # [s], time at which feet that start slightly above the ground have landed
LATE = 1.0  # [s], length of the last part of a run over which the drift of the feet is measured, or the whole run


class BlockImpact(NamedTuple):
    """Impact of the block on the robot.

    Attributes:
        time: Time of the first contact, [s].
        touches: Number of time steps with contact within 0.1 s.
        impulse: Impulse on the robot in that time, (3,), [N s], world axes.
    """

    time: float
    touches: int
    impulse: Array


class FootEvents(NamedTuple):
    """Lift-off, touch-down and slip of a foot.

    Attributes:
        name: Name of the link.
        rises, lands: Times after the impact at which the first contact point rises and the last one lands, [s].
        highest: Largest height of any contact point after the impact, [m].
        front: Largest height of the lowest contact point, [m]; 0 for a foot that tips without leaving the ground.
        slip: Displacement of the mean of the contact points from the first stance to the end, [m].
        drift: Mean speed of that point at the end of the run, [m/s].
    """

    name: str
    rises: tuple[float, ...]
    lands: tuple[float, ...]
    highest: float
    front: float
    slip: float
    drift: float


def block_impact(run: Run, mass: float, gravity: Array) -> BlockImpact | None:
    """Return the impact of the block on the robot, or None if it missed.

    Args:
        run: The run.
        mass: Mass of the block, [kg].
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes.
    """
    if BLOCK not in run.bodies.names:
        return None
    sides = zip(run.contacts.on, run.contacts.against, strict=True)
    between = [k for k, pair in enumerate(sides) if BLOCK in pair and GROUND not in pair]
    touching = np.flatnonzero((run.contacts.forces[:, between] != 0.0).any(axis=(1, 2)))
    if not len(touching):
        return None
    first = int(touching[0])
    near = touching[run.times[touching] < run.times[first] + 0.1]
    velocity = run.body(BLOCK).velocity
    flown = run.times[near[-1]] - run.times[first - 1]
    change = velocity[near[-1]] - velocity[first - 1] - gravity * flown
    return BlockImpact(float(run.times[first]), len(near), -mass * change)


def foot_events(robot: Robot, run: Run, since: float) -> list[FootEvents]:
    """Return the events of all feet after a time, [s]."""
    return [_foot(run, name, since) for name in dict.fromkeys(robot.links[c.link].name for c in robot.contacts)]


def _foot(run: Run, name: str, since: float) -> FootEvents:
    sides = zip(run.contacts.on, run.contacts.against, strict=True)
    own = [k for k, pair in enumerate(sides) if pair == (name, GROUND)]
    points = run.contacts.points[:, own]
    height, middle = points[:, :, 2], points.mean(axis=1)[:, :2]
    up = (height.max(axis=1) > RISEN) & (run.times > since)
    changes = np.diff(up.astype(int))
    after = height[run.times > since]
    late = run.at(run.times[-1] - LATE)
    drift = np.linalg.norm(middle[-1] - middle[late]) / max(run.times[-1] - run.times[late], 1e-9)
    return FootEvents(
        name,
        tuple(run.times[1:][changes > 0].tolist()),
        tuple(run.times[1:][changes < 0].tolist()),
        float(after.max(initial=0.0)),
        float(after.min(axis=1).max(initial=0.0)),
        float(np.linalg.norm(middle[-1] - middle[run.at(STOOD)])),
        float(drift),
    )


def base_errors(experiment: BalanceExperiment) -> tuple[Array, Array]:
    """Return the distance, (T,), [m], and the angle, (T,), [rad], of the base from its set point."""
    run, (place, R) = experiment.run, experiment.wanted
    turn = np.einsum("tij,ij->t", run.base.rotation, R)
    away = np.linalg.norm(run.base.position - place, axis=1)
    return away, np.arccos(np.clip(0.5 * (turn - 1.0), -1.0, 1.0))


def settling_time(experiment: BalanceExperiment) -> float:
    """Return the settling time to within `NEAR` and `UPRIGHT` of the set point, [s]; infinity if it does not settle."""
    away, angle = base_errors(experiment)
    off = np.flatnonzero((away > NEAR) | (angle > UPRIGHT))
    times = experiment.run.times
    if not len(off):
        return float(times[0])
    return float(times[off[-1] + 1]) if off[-1] + 1 < len(times) else np.inf
