"""The task of following a commanded velocity, for any robot with legs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from controllers.gaits.standing import home_of
from legged.compiler import where
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import point_positions
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Command, Disturbance, Memory, Observation, Range, Reward, Task
from legged.environments.terrain import TiledTerrain
from legged.robot.robot import Robot
from legged.rotations import axis_quaternion

Array = np.ndarray


def velocity(robot: Robot, ground: Rigid | None = None, **changes: Any) -> Task:
    """Return the task of following a commanded velocity, (forward [m/s], left [m/s], yaw rate [rad/s]).

    The actor observes 48 numbers for a robot with 12 joints: velocities of the base, the direction of gravity, the
    command, joint positions and velocities, and the last action. docs/howto/environments.md lists the weights.

    Args:
        robot: The robot, with a floating base. ground: By default flat, with friction 0.8.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        ReachError: The robot has no standing posture.
    """
    home = home_of(robot)
    ground = Rigid() if ground is None else ground
    mass, gravity = robot.mass, float(np.linalg.norm(robot.gravity))
    speed = 0.6 * np.sqrt(gravity * home.base_height)
    kp = servo_stiffness(robot, mass * gravity * home.base_height)
    seen = {
        "base_linear_velocity": Observation(terms.base_linear_velocity, scale=2.0, noise=0.1),
        "base_angular_velocity": Observation(terms.base_angular_velocity, scale=0.25, noise=0.2),
        "projected_gravity": Observation(terms.projected_gravity, noise=0.05),
        "command": Observation(terms.command, scale=np.array([2.0, 2.0, 0.25])),
        "joint_positions": Observation(terms.joint_positions, noise=0.01),
        "joint_velocities": Observation(terms.joint_velocities, scale=0.05, noise=1.5),
        "last_action": Observation(terms.last_action),
    }
    exact = {name: replace(term, noise=0.0) for name, term in seen.items()}
    task = Task(
        robot=robot,
        ground=ground,
        posture=np.asarray(home.angles),
        height=home.base_height,
        kp=kp,
        kd=0.02 * kp,
        observations={
            "actor": seen,
            "critic": {**exact, "foot_forces": Observation(terms.foot_forces, 1.0 / (mass * gravity))},
        },
        rewards=_rewards(mass * gravity * home.base_height, np.sqrt(home.base_height / gravity)),
        terminations={"fallen": terms.fallen(1.2, 0.4 * home.base_height)},
        start=standing(home.base_height, np.asarray(home.angles)),
        command=Command(uniform_velocity((-0.5 * speed, speed), 0.4 * speed, 1.0)),
        disturbance=Disturbance(),
        memory={
            "air_time": Memory(lambda s: np.zeros(len(robot.contacts)), terms.air_time, np.zeros(len(robot.contacts)))
        },
        variations=_variations(robot),
    )
    return task.changed(**changes) if changes else task


def rough(robot: Robot, tiles: TiledTerrain | None = None, **changes: Any) -> Task:
    """Return the task `velocity` on tiles of slopes, stairs, waves and boxes, which become harder with success.

    Actor and critic also observe the heights of the terrain around the base. A robot starts in the middle of a tile, in
    a random column: one row farther if it has walked more than half a side in its last episode, and one row back if it
    has walked less than half of the distance that its last command asked for. After the last row a row is drawn.

    Args:
        robot: The robot, with a floating base. tiles: The terrain.
        changes: Other fields of the task, as in `Task.changed`.
    """
    tiles = TiledTerrain.of() if tiles is None else tiles
    flat = velocity(robot, Rigid(terrain=tiles.terrain))
    scan = {"heights": Observation(terms.heights_around(), noise=0.05)}
    exact = {"heights": Observation(terms.heights_around())}
    groups = flat.observations
    task = flat.changed(
        observations={"actor": {**groups["actor"], **scan}, "critic": {**groups["critic"], **exact}},
        memory={
            "level": Memory(_next_level(tiles), lambda s: s.memory["level"], -1.0),
            "column": Memory(
                lambda s: np.floor(s.random.uniform(0.0, tiles.columns)), lambda s: s.memory["column"], 0.0
            ),
        },
        start=_on_tile(tiles, flat.start),
    )
    return task.changed(**changes) if changes else task


def _next_level(tiles: TiledTerrain) -> Any:
    """Return the function for the row of a robot in its next episode."""

    def level(s: State) -> Any:
        last, column = s.memory["level"], s.memory["column"]
        away = s.position[:2] - tiles.side * np.stack([last, column])
        distance = np.sqrt(away @ away)
        asked = np.sqrt(s.command[:2] @ s.command[:2]) * s.time
        moved = last + where(distance > 0.5 * tiles.side, 1.0, where(distance < 0.5 * asked, -1.0, 0.0))
        drawn = np.floor(s.random.uniform(0.0, float(tiles.levels)))
        first = np.floor(s.random.uniform(0.0, 0.5 * tiles.levels))
        moved = where(moved >= float(tiles.levels), drawn, np.maximum(moved, 0.0))
        return where(last < 0.0, first, moved)

    return level


def _on_tile(tiles: TiledTerrain, start: Any) -> Any:
    """Return the start of an episode in the middle of the tile that the memory holds."""

    def begin(s: State) -> tuple[Array, Array]:
        q, v = start(s)
        at = tiles.side * np.stack([s.memory["level"], s.memory["column"]])
        return on_terrain(s, np.concatenate([q[:4], q[4:6] + at, q[6:]])), v

    return begin


def standing(height: float, posture: Array, spread: float = 0.1) -> Any:
    """Return the start of an episode: standing on the terrain with random heading, joint positions and velocities.

    The lowest contact point is 1 mm above the terrain below it.

    Args:
        height: Of the base over the terrain, [m]. posture: Joint positions, (nj,), [rad] or [m], joint axes.
        spread: Largest deviation of joint positions, [rad] or [m].
    """

    def start(s: State) -> tuple[Array, Array]:
        nj = len(posture)
        yaw = s.random.uniform(-np.pi, np.pi)
        joints = posture + s.random.uniform(-spread, spread, nj)
        x, y = s.random.uniform(-0.5, 0.5), s.random.uniform(-0.5, 0.5)
        base = s.random.uniform(-0.5, 0.5, 6)
        q = np.concatenate([axis_quaternion("z", yaw), np.stack([x, y, 0.0 * x + height]), joints])
        return on_terrain(s, q), np.concatenate([base, np.zeros(nj)])

    return start


def on_terrain(s: State, q: Array, gap: float = 1e-3) -> Array:
    """Return a configuration whose lowest contact point has a given height over the terrain below it, (nq,).

    Args:
        s: The state. q: The configuration with any height of the base, (nq,), mixed units. gap: The height, [m].
    """
    contacts = s.task.robot.contacts
    points = point_positions(s.task.robot, q, [(contact.link, contact.position) for contact in contacts])
    heights = [s.terrain_height(p[0], p[1]) + c.radius - p[2] for p, c in zip(points, contacts, strict=True)]
    return np.concatenate([q[:6], np.stack([q[6] + reduce(np.maximum, heights) + gap]), q[7:]])


def uniform_velocity(forward: tuple[float, float], left: float, turn: float, standing: float = 0.1) -> Any:
    """Return the drawing of a commanded velocity, (3,), [m/s, m/s, rad/s].

    Args:
        forward: Bounds of the velocity forward, [m/s]. left: Largest velocity to a side, [m/s].
        turn: Largest yaw rate, [rad/s]. standing: Probability of the command to stand still.
    """

    def draw(s: State) -> Array:
        low, high = np.array([forward[0], -left, -turn]), np.array([forward[1], left, turn])
        moves = np.floor(s.random.uniform() + 1.0 - standing)
        return moves * s.random.uniform(low, high, 3)

    return draw


def _rewards(torque: float, duration: float) -> Mapping[str, Reward]:
    """Return the rewards of a robot with its units of torque, m g h, [N m], and of time, sqrt(h / g), [s].

    Steps pay, and the penalties of a steady trot are a tenth of what it gains over standing still: about half of all
    commands give a robot that stands a reward, which learners otherwise keep.
    """
    return {
        "track_linear_velocity": Reward(terms.track_linear_velocity(), 1.5),
        "track_yaw_rate": Reward(terms.track_yaw_rate(), 0.75),
        "vertical_velocity": Reward(terms.vertical_velocity, -1.0),
        "roll_and_pitch_rates": Reward(terms.roll_and_pitch_rates, -0.05),
        "torques": Reward(terms.torques, -0.2 / torque**2),
        "joint_accelerations": Reward(terms.joint_accelerations, -2.5e-7),
        "action_rate": Reward(terms.action_rate, -0.01),
        "feet_air_time": Reward(terms.feet_air_time(0.5 * duration, 2.0 * duration), 0.25),
        "tilt": Reward(terms.tilt, -1.0),
        "posture_error": Reward(terms.posture_error, -0.05),
    }


def servo_stiffness(robot: Robot, torque: float) -> Array:
    """Return the stiffness of each servo, (nj,), [N m/rad] or [N/m], the smaller of two numbers.

    An error of 1 rad asks for the torque m g h: with half of it, and actions of zero, a Go2 falls within a second. And
    an error of 0.5 rad asks for the largest torque of the motor.

    Args:
        robot: The robot. torque: m g h with the height h of the base, [N m].
    """
    efforts = np.empty(robot.nv)
    for joint in robot.joints:
        efforts[joint.v] = joint.definition.physics.effort
    return np.minimum(torque, efforts[robot.base.nv :] / 0.5)


def _variations(robot: Robot) -> Mapping[str, Range]:
    return {
        f"{robot.links[0].name}.mass": Range(0.8, 1.2, is_factor=True),
        "ground.friction": Range(0.5, 1.25),
        "servo.strength": Range(0.9, 1.1, is_factor=True),
        "servo.delay": Range(0.0, 0.01),
    }
