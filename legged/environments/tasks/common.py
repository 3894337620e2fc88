"""Shared parts of the tasks of legged robots: units, servos, observations, starts and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from controllers.locomotion.gait.schedule import contact_schedule
from legged.algorithms.legs.standing import Home, home_of
from legged.compiler import LookupTable
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Observation, Range, Task
from legged.robot.robot import Robot
from legged.rotations import axis_quaternion

Array = np.ndarray
ITERATIONS = 50
"""Largest number of iterations of a contact step in tasks. All robots of a chunk wait for the one with the most. For
a G1 in random motion in single precision, with eight contact points, residuals are those of 200 iterations; with 10,
one control step of a robot in a thousand keeps one above 1 m/s."""
Observations = Mapping[str, Observation]


@dataclass(frozen=True, eq=False)
class Stance:
    """A robot with legs in its standing posture, and its units.

    Attributes:
        robot: The robot. home: Its standing posture.
    """

    robot: Robot
    home: Home

    @classmethod
    def of(cls, robot: Robot) -> Stance:
        """Return the stance of a robot.

        Raises:
            DefinitionError: The robot has no legs. ReachError: It has no standing posture.
        """
        return cls(robot, home_of(robot))

    @property
    def height(self) -> float:
        """Height h of the base over the ground, [m]."""
        return self.home.base_height

    @property
    def weight(self) -> float:
        """Weight m g, [N]."""
        return self.robot.mass * self.gravity

    @property
    def gravity(self) -> float:
        """Magnitude g of gravity, [m/s^2]."""
        return float(np.linalg.norm(self.robot.gravity))

    @property
    def torque(self) -> float:
        """Unit of torques, m g h, [N m]."""
        return self.weight * self.height

    @property
    def duration(self) -> float:
        """Unit of time, sqrt(h / g), [s]."""
        return float(np.sqrt(self.height / self.gravity))

    @property
    def speed(self) -> float:
        """Largest commanded speed, 0.6 sqrt(g h), and on two legs 0.35 sqrt(g h), [m/s]."""
        return (0.35 if len(self.home.legs) == 2 else 0.6) * float(np.sqrt(self.gravity * self.height))

    @property
    def stiffness(self) -> Array:
        """Stiffness of each servo, (nj,), [N m/rad] or [N/m], the smaller of two numbers.

        An error of 1 rad asks for the torque m g h: with half of it, and actions of zero, a Go2 falls within a second.
        And an error of 0.25 rad asks for the largest torque of the motor.
        """
        efforts = np.empty(self.robot.nv)
        for joint in self.robot.joints:
            efforts[joint.v] = joint.definition.physics.effort
        return np.minimum(self.torque, efforts[self.robot.base.nv :] / 0.25)

    @property
    def posture(self) -> Array:
        """Joint positions, (nj,), [rad] or [m]."""
        return np.asarray(self.home.angles)

    def gait(self, period: float | None = None) -> terms.Gait:
        """Return the gait in which neighboring legs alternate: trot, tripod, or the walk of two legs.

        Args:
            period: [s]; by default that of `controllers.Locomotion("trot")`.
        """
        legs, names = self.home.legs, [contact.name for contact in self.robot.contacts]
        schedule = contact_schedule("trot", np.array([leg.hip[:2] for leg in legs]), self.duration)
        contacts = [[names.index(name) for name in leg.contacts] for leg in legs]
        return terms.Gait(
            schedule.period if period is None else period, np.asarray(schedule.touchdowns).tolist(), contacts
        )

    def task(self, ground: Rigid | None, seen: Observations, privileged: Observations, **fields: Any) -> Task:
        """Return a task in this stance.

        Args:
            ground: The ground; None for a flat one. seen: Observations of the actor.
            privileged: Those that the critic has beside the observations of the actor without noise.
            fields: Other fields of the task.
        """
        exact = {name: replace(term, noise=0.0) for name, term in seen.items()}
        gains = {"kp": self.stiffness, "kd": 0.02 * self.stiffness}
        return Task(
            robot=self.robot,
            ground=Rigid(iterations=ITERATIONS) if ground is None else ground,
            posture=self.posture,
            height=self.height,
            observations={"actor": seen, "critic": {**exact, **privileged}},
            **{**gains, **fields},
        )

    def privileged(self) -> Observations:
        """Return the forces of the contact points in units of the weight, for the critic."""
        return {"foot_forces": Observation(terms.foot_forces, 1.0 / self.weight)}

    def variations(self) -> Mapping[str, Range]:
        """Return ranges of mass, center of mass, friction, motor strength and delay."""
        trunk = [link for link in self.robot.links if link.body == self.robot.links[0].body]
        base = max(trunk, key=lambda link: link.inertia.mass).name
        shift = 0.05 * self.height
        return {
            f"{base}.mass": Range(0.8, 1.2, is_factor=True),
            f"{base}.center": Range(-shift, shift, is_offset=True),
            "ground.friction": Range(0.5, 1.25),
            "servo.strength": Range(0.9, 1.1, is_factor=True),
            "servo.delay": Range(0.0, 0.01),
        }


def proprioception() -> dict[str, Observation]:
    """Return the observations of the sensors of a robot, with the noise and the scales of the field."""
    return {
        "base_linear_velocity": Observation(terms.base_linear_velocity, scale=2.0, noise=0.1),
        "base_angular_velocity": Observation(terms.base_angular_velocity, scale=0.25, noise=0.2),
        "projected_gravity": Observation(terms.projected_gravity, noise=0.05),
        "joint_positions": Observation(terms.joint_positions, noise=0.01),
        "joint_velocities": Observation(terms.joint_velocities, scale=0.05, noise=1.5),
        "last_action": Observation(terms.last_action),
    }


def standing(
    height: float,
    posture: Array,
    spread: float = 0.1,
    at: Callable[[State], Array] | None = None,
    speed: float = 0.5,
) -> Callable[[State], tuple[Array, Array]]:
    """Return the start of an episode: standing on the terrain with random heading, joint positions and velocities.

    The lowest contact point is 1 mm above the terrain below it.

    Args:
        height: Of the base over the terrain, [m]. posture: Joint positions, (nj,), [rad] or [m], joint axes.
        spread: Largest deviation of joint positions, [rad] or [m].
        at: Function that returns the middle of the square, 1 m wide, in which episodes start, (2,), [m], world axes;
            None for the origin of the world.
        speed: Largest velocity of the base, [m/s] and [rad/s].
    """

    def start(s: State) -> tuple[Array, Array]:
        nj = len(posture)
        yaw = s.random.uniform(-np.pi, np.pi)
        joints = posture + s.random.uniform(-spread, spread, nj)
        place = s.random.uniform(-0.5, 0.5, 2) + (np.zeros(2) if at is None else at(s))
        base = s.random.uniform(-speed, speed, 6)
        q = np.concatenate([axis_quaternion("z", yaw), place, np.stack([0.0 * yaw + height]), joints])
        return on_terrain(s, q), np.concatenate([base, np.zeros(nj)])

    return start


def on_terrain(s: State, q: Array, gap: float = 1e-3, is_lowered: bool = True) -> Array:
    """Return a configuration whose lowest contact point has a given height over the terrain below it, (nq,).

    Args:
        s: The state. q: The configuration with any height of the base, (nq,), mixed units. gap: The height, [m].
        is_lowered: Whether the base is also lowered to this height, or only lifted.
    """
    contacts = s.task.robot.contacts
    points = point_positions(s.task.robot, q, [(contact.link, contact.position) for contact in contacts])
    lifts = [s.terrain_height(p[0], p[1]) + c.radius - p[2] for p, c in zip(points, contacts, strict=True)]
    lift = reduce(np.maximum, lifts) + gap
    lift = lift if is_lowered else np.maximum(lift, 0.0)
    return np.concatenate([q[:6], np.stack([q[6] + lift]), q[7:]])


class Rows:
    """The rows of a constant array, which plain and traced functions read at a number that they compute.

    Args:
        values: The array, (n, k), any unit and frame.
    """

    def __init__(self, values: Array):
        self._count, self._width = values.shape
        self._table = LookupTable(values.ravel())

    def __len__(self) -> int:
        return self._count

    def __call__(self, number: Any) -> Array:
        """Return a row, (k,), any unit and frame.

        Args:
            number: Its number, a whole one from 0 to n - 1.
        """
        return self._table(number * float(self._width) + np.arange(float(self._width)))
