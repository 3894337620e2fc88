"""The task of standing up from any pose on the ground."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from legged.algorithms.legs.leg_chains import leg_chains
from legged.algorithms.legs.posture_search import joint_limits
from legged.algorithms.legs.rising import limb_ends
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import link_poses, point_positions
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Range, Reward, Task
from legged.environments.tasks.common import Rows, Stance, on_terrain, proprioception
from legged.errors import SimulationError
from legged.robot.robot import Robot
from legged.rotations import axis_quaternion, quaternion_product

Array = np.ndarray


@checked
def standing_up(robot: Robot, ground: Rigid | None = None, poses: int = 128, seed: int = 0, **changes: Any) -> Task:
    """Return the task of standing up: an episode starts with one of many poses in which the robot has come to rest.

    The poses are simulated when the task is made: the robot falls with a random rotation of the base and random joint
    positions, which its servos hold for two seconds. The robot of the task has contact points on its bodies, beside
    those of its feet; see `with_body_contacts`.

    Args:
        robot: The robot, with a floating base. ground: By default flat, with friction 0.8.
        poses: Number of poses. seed: Of their random numbers.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has no legs. ReachError: It has no standing posture.
        SimulationError: A fall has no finite motion.
        MissingError: gymnasium is not installed.
    """
    nominal = Stance.of(robot)
    stance = Stance(with_body_contacts(robot), nominal.home)
    h = stance.height
    # Light links of arms on the ground need short steps: with 5 ms falls of a G1 diverge.
    substeps = 8 if len(nominal.home.legs) == 2 else 4
    task = stance.task(
        ground,
        proprioception(),
        stance.privileged(),
        rewards={
            "upright": Reward(terms.upright, 1.0),
            "height_reached": Reward(terms.height_reached(h), 1.0),
            "standing_posture": Reward(terms.standing_posture(), 1.0),
            "joint_rates": Reward(terms.joint_rates, -1e-3),
            "torques": Reward(terms.torques, -0.05 / stance.torque**2),
            "joint_accelerations": Reward(terms.joint_accelerations, -1e-7),
            "action_rate": Reward(terms.action_rate, -5e-3),
        },
        terminations={},
        start=_dropped(stance),
        action_scale=0.5,
        time_step=0.02 / substeps,
        substeps=substeps,
        episode=5.0,
        variations=stance.variations(),
    )
    lying = Rows(fallen_states(task, poses, seed))
    task = task.changed(start=_lying(lying, robot.nq))
    return task.changed(**changes) if changes else task


def with_body_contacts(robot: Robot) -> Robot:
    """Return the robot with contact points on the bodies that touch the ground when it lies.

    These are the corners of the box with the mass and the inertia of the base, and those of the heaviest other link if
    it has more than 0.15 of the mass; the ends of limbs without contact points, such as hands, that are more than 0.05
    of the size of the robot, the largest extent of the origins of its links, away from all contact points so far; and
    the origins of joints that are more than a tenth of the size away from all other contact points.

    Args:
        robot: The robot.
    """
    added: dict[str, dict[str, Any]] = {}
    _, origins = link_poses(robot, robot.neutral())
    size = float(np.ptp(origins, axis=0).max())
    trunk = [link for link in robot.links if link.body == robot.links[0].body]
    boxes = [max(trunk, key=lambda link: link.inertia.mass)]
    others = [link for link in robot.links if link.body != robot.links[0].body]
    heaviest = max(others, key=lambda link: link.inertia.mass)
    boxes += [heaviest] if heaviest.inertia.mass > 0.15 * robot.mass else []
    for link in boxes:
        moments, axes = np.linalg.eigh(link.inertia.tensor)
        half = 0.5 * np.sqrt(np.maximum(6.0 * (0.5 * moments.sum() - moments) * 2.0 / link.inertia.mass, 0.0))
        corners = [np.array([x, y, z]) * half for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        added[link.name] = {
            f"{link.name}_corner_{k + 1}": link.inertia.center + axes @ corner for k, corner in enumerate(corners)
        }
    known = [(contact.link, contact.position) for contact in robot.contacts]
    known += [(name, at) for name, points in added.items() for at in points.values()]
    places = list(point_positions(robot, robot.neutral(), known))
    for index, end in limb_ends(robot).items():
        at = point_positions(robot, robot.neutral(), [(index, end)])[0]
        if min(np.linalg.norm(at - place) for place in places) > 0.05 * size:
            added.setdefault(robot.links[index].name, {})[f"{robot.links[index].name}_end"] = end
            places.append(at)
    for joint in robot.joints:
        link = robot.link(joint.child)
        at = origins[link.index]
        if min(np.linalg.norm(at - place) for place in places) > 0.1 * size:
            added.setdefault(link.name, {})[f"{link.name}_origin"] = np.zeros(3)
            places.append(at)
    editor = robot.edit()
    for leg in leg_chains(robot):  # the new points do not change on which links it stands
        for link in {robot.contact(name).link for name in leg.contacts}:
            editor.change_link(robot.links[link].name, is_foot=True)
    for name, points in added.items():
        index = robot.link(name).index
        old = {contact.name: contact.definition for contact in robot.contacts if contact.link == index}
        editor.change_link(name, contacts={**old, **points})
    return editor.build()


def fallen_states(task: Task, count: int, seed: int = 0, duration: float = 2.0) -> Array:
    """Return states [q; v] of robots that have fallen from the start of a task, (n, nq + nv), mixed units.

    Servos hold the joint positions of the start.

    Args:
        task: The task. count: Number of states, n. seed: Of the random numbers. duration: Of the fall, [s].

    Raises:
        SimulationError: A motion is not finite. MissingError: gymnasium is not installed.
    """
    from legged.environments.vector import VectorEnvironment  # needs gymnasium

    nominal = {name: _nominal(bounds) for name, bounds in task.variations.items()}
    falling = task.changed(episode=10.0 * duration, variations=nominal, disturbance=None)
    env = VectorEnvironment(falling, count, autoreset="disabled", threads=1)
    env.reset(seed=seed)
    action = (env.q[:, -task.robot.nj :] - task.posture) / task.action_scale
    for _ in range(round(duration / task.period)):
        _, _, terminated, *_ = env.step(action)
        if terminated.any():
            raise SimulationError("a robot that falls to the ground has no finite motion")
    env.close()
    return np.concatenate([env.q, env.v], axis=1)


def _nominal(bounds: Range) -> Range:
    """Return the range of the nominal number alone, or of the middle: the same machine code serves all ranges."""
    value = 1.0 if bounds.is_factor else 0.0 if bounds.is_offset else 0.5 * (bounds.low + bounds.high)
    return replace(bounds, low=value, high=value)


def _dropped(stance: Stance) -> Any:
    """Return the start of a fall: any rotation, random joint positions, and 5 cm below the lowest contact point."""
    lower, upper = joint_limits(stance.robot)
    lower, upper = np.maximum(lower, stance.posture - 1.5), np.minimum(upper, stance.posture + 1.5)

    def start(s: State) -> tuple[Array, Array]:
        p = s.random.normal(1.0, 4)
        rotation = p * (1.0 / np.sqrt(p @ p))
        joints = s.random.uniform(lower, upper, len(lower))
        q = np.concatenate([rotation, np.array([0.0, 0.0, stance.height]), joints])
        return on_terrain(s, q, 0.05), np.zeros(stance.robot.nv)

    return start


def _lying(states: Rows, nq: int) -> Any:
    """Return the start of an episode in one of the states, with a random heading and place."""

    def start(s: State) -> tuple[Array, Array]:
        state = states(np.floor(s.random.uniform(0.0, float(len(states)))))
        rotation = quaternion_product(axis_quaternion("z", s.random.uniform(-np.pi, np.pi)), state[:4])
        place = s.random.uniform(-0.5, 0.5, 2)
        q = np.concatenate([rotation, place, state[6:nq]])
        return on_terrain(s, q, is_lowered=False), state[nq:]

    return start
