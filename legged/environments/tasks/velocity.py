"""The tasks of following a commanded velocity, for any robot with legs, on flat ground and on rough terrain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.compiler import where
from legged.contact.rigid import Rigid
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Command, Disturbance, Memory, Observation, Reward, Task
from legged.environments.tasks.common import ITERATIONS, Stance, proprioception, standing
from legged.environments.tasks.terrain import TiledTerrain
from legged.robot.robot import Robot

Array = np.ndarray


@checked
def velocity(
    robot: Robot,
    ground: Rigid | None = None,
    gait_period: float | Literal["natural"] | None = "natural",
    **changes: Any,
) -> Task:
    """Return the task of following a commanded velocity, (forward [m/s], left [m/s], yaw rate [rad/s]).

    Commands are drawn from a wider range than that of the velocities which a robot is expected to follow, since
    policies follow those at the ends of the range worst.

    The actor observes 48 numbers for a robot with 12 joints: velocities of the base, the direction of gravity, the
    command, joint positions and velocities, and the last action; and two of the clock of a gait, whose contacts and
    swinging feet are rewarded. Without a clock, times of feet in the air are rewarded; such policies may need noise to
    begin to step. A robot with two legs has the rewards of bipeds, and its actor also observes the mean error of the
    velocity over a period of the gait.

    Args:
        robot: The robot, with a floating base. ground: By default flat, with friction 0.8.
        gait_period: Period of the gait, [s]; "natural" for that of `controllers.Locomotion("trot")`; None for no clock.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has no legs. ReachError: It has no standing posture.
        ArgumentError: The period is not positive.
    """
    if isinstance(gait_period, float | int):
        number("gait_period", gait_period, "s", above=0.0)
    stance = Stance.of(robot)
    h, posture, speed = stance.height, stance.posture, stance.speed
    seen = proprioception()
    order = ("base_linear_velocity", "base_angular_velocity", "projected_gravity", "command", "joint_positions")
    seen["command"] = Observation(terms.command, scale=np.array([2.0, 2.0, 0.25]))
    seen = {name: seen[name] for name in (*order, "joint_velocities", "last_action")}
    gait = None if gait_period is None else stance.gait(None if gait_period == "natural" else gait_period)
    if gait is not None:  # the reflection of an alternating gait is half a period later
        seen["clock"] = Observation(terms.clock(gait.period), reflection=(-1.0, -1.0))
    has_two_legs = len(stance.home.legs) == 2
    fallen = terms.fallen(0.8, 0.6 * h) if has_two_legs else terms.fallen(1.2, 0.4 * h)
    stepping, memory = _steps_by_clock(stance, gait) if gait is not None else _steps_without_clock(stance)
    if has_two_legs:
        still, period = np.zeros(3), stance.gait().period if gait is None else gait.period
        memory["mean_velocity_error"] = Memory(lambda s: still, terms.mean_velocity_error(period), still)
        seen["mean_velocity_error"] = Observation(
            terms.last_mean_velocity_error, scale=np.array([2.0, 2.0, 1.0]), noise=0.04, reflection=(1.0, -1.0, -1.0)
        )
    task = stance.task(
        ground,
        seen,
        stance.privileged(),
        rewards={**(_biped_rewards(stance, fallen) if has_two_legs else _rewards(stance, fallen)), **stepping},
        terminations={"fallen": fallen},
        start=standing(h, posture, 0.05 if has_two_legs else 0.1, speed=0.2 if has_two_legs else 0.5),
        command=Command(uniform_velocity((-0.8 * speed, 1.2 * speed), 0.5 * speed, 1.5), reflection=(1.0, -1.0, -1.0)),
        disturbance=Disturbance(),
        memory=memory,
        variations=stance.variations(),
    )
    return task.changed(**changes) if changes else task


def _steps_by_clock(stance: Stance, gait: terms.Gait) -> tuple[dict[str, Reward], dict[str, Memory]]:
    """Return the rewards of steps in a gait, and the memory that they need."""
    h = stance.height
    if len(stance.home.legs) == 2:  # lifting a foot makes a biped fall at first
        contacts, height, swing = 3.0, 0.1 * h, -300.0
    else:
        contacts, height, swing = 1.5, 0.25 * h, -30.0
    rewards = {
        "gait_contacts": Reward(terms.gait_contacts(gait), contacts),
        "swing_height": Reward(terms.swing_height(gait, height), swing / h**2),
    }
    return rewards, {}


def _steps_without_clock(stance: Stance) -> tuple[dict[str, Reward], dict[str, Memory]]:
    """Return the rewards of steps at any time, and the memory that they need."""
    T, h, feet = stance.duration, stance.height, np.zeros(len(terms.feet_of(stance.robot)))
    memory = {"air_time": Memory(lambda s: feet, terms.air_time, feet)}
    if len(stance.home.legs) == 2:
        memory["contact_time"] = Memory(lambda s: feet, terms.contact_time, feet)
        return {"single_stance_time": Reward(terms.single_stance_time(2.0 * T), 1.0)}, memory
    rewards = {
        "feet_air_time": Reward(terms.feet_air_time(0.5 * T, 1.5 * T), 1.0),
        "feet_clearance": Reward(terms.feet_clearance(0.2 * h), -2.0 / h**2),
    }
    return rewards, memory


def _rewards(stance: Stance, fallen: Callable[[State], Any]) -> Mapping[str, Reward]:
    """Return the rewards of robots with more than two legs.

    Steps pay, and the penalties of a steady trot are a tenth of what it gains over standing still: about half of all
    commands give a robot that stands a reward, which learners otherwise keep. Errors of the velocity cost in proportion
    to their magnitude, since learners otherwise keep standing for some commands; what a robot earns while it does not
    fall keeps the sum positive, since learners otherwise fall soon. Vertical motion, flight and long times
    in the air earn little or cost, since learners otherwise hop. Changes of actions cost as much as they do, since
    learners otherwise shuffle in steps of two control steps, a few millimeters high.
    """
    h = stance.height
    return {
        "track_linear_velocity": Reward(terms.track_linear_velocity(0.25), 2.0),
        "track_yaw_rate": Reward(terms.track_yaw_rate(), 2.0),
        "linear_velocity_error": Reward(terms.linear_velocity_error, -2.0),
        "yaw_rate_error": Reward(terms.yaw_rate_error, -1.0),
        "alive": Reward(terms.alive(fallen), 1.0),
        "vertical_velocity": Reward(terms.vertical_velocity, -2.0),
        "flight": Reward(terms.flight, -0.5),
        "roll_and_pitch_rates": Reward(terms.roll_and_pitch_rates, -0.03),
        "torques": Reward(terms.torques, -0.2 / stance.torque**2),
        "joint_accelerations": Reward(terms.joint_accelerations, -1e-7),
        "action_rate": Reward(terms.action_rate, -0.03),
        "height_error": Reward(terms.height_error(h), -10.0 / h**2),
        "tilt": Reward(terms.tilt, -1.0),
        "posture_error": Reward(terms.posture_error, -0.15),
    }


def _biped_rewards(stance: Stance, fallen: Callable[[State], Any]) -> Mapping[str, Reward]:
    """Return the rewards of robots with two legs.

    What a robot earns while it does not fall is more than what the first steps cost, since learners otherwise fall
    soon. The yaw rate of a walking biped oscillates by 1 rad/s, so that means over a period are rewarded.
    """
    robot, legs = stance.robot, stance.home.legs
    pitching = {k for leg in legs for k in leg.pitch_columns}
    swinging = {k for leg in legs for k in leg.columns}
    others = [k for k in range(robot.nj) if k not in swinging]
    sideways = sorted(swinging - pitching)
    rewards = {
        "track_mean_velocity": Reward(terms.track_mean_velocity(0.25), 3.0),
        "track_mean_yaw_rate": Reward(terms.track_mean_yaw_rate(0.5), 3.0),
        "linear_velocity_error": Reward(terms.linear_velocity_error, -1.5),
        "yaw_rate_error": Reward(terms.yaw_rate_error, -0.5),
        "alive": Reward(terms.alive(fallen), 4.0),
        "flight": Reward(terms.flight, -0.5),
        "feet_slip": Reward(terms.feet_slip, -0.1),
        "roll_and_pitch_rates": Reward(terms.roll_and_pitch_rates, -0.05),
        "tilt": Reward(terms.tilt, -1.0),
        "torques": Reward(terms.torques, -0.1 / stance.torque**2),
        "joint_accelerations": Reward(terms.joint_accelerations, -1e-7),
        "action_rate": Reward(terms.action_rate, -0.005),
        "joint_range": Reward(terms.joint_range(robot, 0.95), -1.0),
    }
    if sideways:
        rewards["hip_deviation"] = Reward(terms.joint_deviation(robot, sideways), -0.1)
    if others:
        rewards["upper_body_deviation"] = Reward(terms.joint_deviation(robot, others), -0.05)
        rewards["torso_tilt"] = Reward(terms.link_tilt(robot, _torso(robot, swinging), stance.posture), -1.0)
    return rewards


def _torso(robot: Robot, swinging: set[int]) -> str:
    """Return the name of the heaviest link that no joint of a leg moves."""
    first = robot.base.nv
    moved: set[str] = set()
    for joint in robot.joints:
        if joint.parent in moved or any(k - first in swinging for k in range(joint.v.start, joint.v.stop)):
            moved.add(joint.child)
    return max((link for link in robot.links if link.name not in moved), key=lambda link: link.inertia.mass).name


@checked
def rough(
    robot: Robot,
    tiles: TiledTerrain | None = None,
    gait_period: float | Literal["natural"] | None = "natural",
    **changes: Any,
) -> Task:
    """Return the task `velocity` on tiles of slopes, stairs, waves and boxes, which become harder with success.

    Actor and critic also observe the heights of the terrain around the base. A robot starts in the middle of a tile, in
    a random column: one row farther if it has walked more than half a side in its last episode, and one row back if it
    has walked less than half of the distance that its command asks for in a whole episode, also because it fell. After
    the last row a row is drawn.

    Args:
        robot: The robot, with a floating base. tiles: The terrain. gait_period: As in `velocity`.
        changes: Other fields of the task, as in `Task.changed`.
    """
    tiles = TiledTerrain.of() if tiles is None else tiles
    flat = velocity(robot, Rigid(terrain=tiles.terrain, iterations=ITERATIONS), gait_period)
    stance = Stance.of(robot)
    scan = {"heights": Observation(terms.heights_around(), noise=0.05)}
    exact = {"heights": Observation(terms.heights_around())}
    groups, has_two_legs = flat.observations, len(stance.home.legs) == 2

    def middle(s: State) -> Array:
        return tiles.middle(s.memory["level"], s.memory["column"])

    task = flat.changed(
        observations={"actor": {**groups["actor"], **scan}, "critic": {**groups["critic"], **exact}},
        memory={
            "level": Memory(next_level(tiles), lambda s: s.memory["level"], -1.0),
            "column": Memory(
                lambda s: np.floor(s.random.uniform(0.0, tiles.columns)), lambda s: s.memory["column"], 0.0
            ),
        },
        start=standing(
            stance.height, stance.posture, 0.05 if has_two_legs else 0.1, middle, 0.2 if has_two_legs else 0.5
        ),
    )
    return task.changed(**changes) if changes else task


def next_level(tiles: TiledTerrain) -> Callable[[State], Any]:
    """Return the function for the row of a robot in its next episode; see `rough`.

    Args:
        tiles: The terrain.
    """

    def level(s: State) -> Any:
        last = s.memory["level"]
        away = s.position[:2] - tiles.middle(last, s.memory["column"])
        distance = np.sqrt(away @ away)
        asked = np.sqrt(s.command[:2] @ s.command[:2]) * s.task.episode
        moved = last + where(distance > 0.5 * tiles.side, 1.0, where(distance < 0.5 * asked, -1.0, 0.0))
        drawn = np.floor(s.random.uniform(0.0, float(tiles.levels)))
        first = np.floor(s.random.uniform(0.0, 0.5 * tiles.levels))
        moved = where(moved >= float(tiles.levels), drawn, np.maximum(moved, 0.0))
        return where(last < 0.0, first, moved)

    return level


def uniform_velocity(
    forward: tuple[float, float], left: float, turn: float, standing: float = 0.1
) -> Callable[[State], Array]:
    """Return the drawing of a commanded velocity, (3,), [m/s, m/s, rad/s]: half of them have one component alone.

    Args:
        forward: Bounds of the velocity forward, [m/s]. left: Largest velocity to a side, [m/s].
        turn: Largest yaw rate, [rad/s]. standing: Probability of the command to stand still.
    """

    def draw(s: State) -> Array:
        low, high = np.array([forward[0], -left, -turn]), np.array([forward[1], left, turn])
        moves = np.floor(s.random.uniform() + 1.0 - standing)
        alone = np.floor(s.random.uniform(0.0, 6.0))  # 0, 1, 2: the only component that is not zero
        kept = np.stack([where(alone >= 3.0, 1.0, where(alone == float(i), 1.0, 0.0)) for i in range(3)])
        return moves * kept * s.random.uniform(low, high, 3)

    return draw
