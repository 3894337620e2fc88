"""Reflections of robots from left to right: of their joints, and of the actions and observations of a task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.dynamics.kinematics import link_poses, link_twists
from legged.environments.task import Task
from legged.errors import DefinitionError
from legged.ground.height_map import HeightMap
from legged.robot.robot import Robot

Array = np.ndarray
_TOLERANCE = 0.01
"""Of positions in units of the size of the robot, of axes, and of angles, [rad], by which files are not symmetric."""
_FLIP = np.array([1.0, -1.0, 1.0])
"""Of the components of vectors; those of angular velocities have the opposite signs."""
_SAMPLES = 16


@dataclass(frozen=True)
class Reflection:
    """A signed permutation, y[i] = signs[i] x[order[i]].

    Attributes:
        order: Numbers of entries, (n,). signs: 1.0 or -1.0, (n,).
    """

    order: Array
    signs: Array

    def __call__(self, x: Any) -> Any:
        """Return the reflection of vectors, (..., n), in their unit and frame."""
        return x[..., self.order] * self.signs


def mirrored_joints(robot: Robot) -> Reflection:
    """Return the reflection of joint coordinates at the plane through the axes x and z of the base.

    It follows from the geometry at the neutral configuration: a joint moves its child link; the reflection is the joint
    whose child link has the reflected origin and moves with the reflected velocity, up to its sign.

    Args:
        robot: The robot.

    Raises:
        DefinitionError: A joint has no reflection; the message names it.
    """
    nb, q = robot.base.nv, robot.neutral()
    rotations, origins = link_poses(robot, q)
    size = float(np.ptp(origins, axis=0).max())
    children, twists = [], np.empty((robot.nj, 6))
    for joint in robot.joints:
        i = robot.link(joint.child).index
        for k in range(joint.v.start, joint.v.stop):
            twist = link_twists(robot, q, np.eye(robot.nv)[k])[i]
            twists[k - nb] = np.concatenate([rotations[i] @ twist[:3], rotations[i] @ twist[3:]])
            children.append((k - nb, joint.name, origins[i]))
    order, signs = np.full(robot.nj, -1), np.zeros(robot.nj)
    flip = np.concatenate([-_FLIP, _FLIP])
    for k, name, origin in children:
        for j, _, other in children:
            if np.linalg.norm(_FLIP * origin - other) < _TOLERANCE * size:
                for sign in (1.0, -1.0):
                    if np.abs(flip * twists[j] - sign * twists[k]).max() < _TOLERANCE * max(1.0, size):
                        order[k], signs[k] = j, sign
        if order[k] < 0:
            raise DefinitionError(
                f"joint {name!r} of robot {robot.name!r} has no reflection at the plane y = 0 of the base"
            )
    return Reflection(order, signs)


@dataclass(frozen=True)
class Mirror:
    """Reflections of the actions and of the observations of the group `actor` of a task, from left to right.

    Attributes:
        action: Reflection of actions, (nj,), dimensionless. observation: Of observations, (k,), as scaled.
    """

    action: Reflection
    observation: Reflection

    @classmethod
    def of(cls, task: Task) -> Mirror:
        """Return the reflections of a task: of actions by `mirrored_joints`, of observations by their values.

        Terms are evaluated in random states and in their reflections, on random terrain and on its reflection; each
        entry of a reflected observation is an entry of the same term up to its sign.

        Raises:
            DefinitionError: A joint, the posture, the scale of actions or a term of the observation has no reflection;
                the message names it.
        """
        action = mirrored_joints(task.robot)
        if np.abs(action(task.posture) - task.posture).max() > _TOLERANCE:
            raise DefinitionError(f"the posture of the task of robot {task.robot.name!r} is not symmetric")
        if np.abs(task.action_scale[action.order] - task.action_scale).max() > _TOLERANCE * task.action_scale.max():
            raise DefinitionError(f"action_scale of the task of robot {task.robot.name!r} is not symmetric")
        order, signs = [], []
        for name, term in task.observations["actor"].items():
            alone = replace(task, observations={"actor": {name: term}})
            found = _reflection_of_values(name, *_samples(alone, action))
            order.append(found.order + sum(map(len, order)))
            signs.append(found.signs)
        return cls(action, Reflection(np.concatenate(order), np.concatenate(signs)))


def _samples(task: Task, joints: Reflection) -> tuple[Array, Array]:
    """Return observations in random states, and in the reflections of these states, (n, k) each, as scaled."""
    random, robot, size = np.random.default_rng(0), task.robot, task.command_size
    heights, nj, has_base = random.uniform(0.0, 0.1, (41, 41)), robot.nj, robot.base.nq > 0
    flip = np.ones(size)
    if task.command is not None and task.command.reflection is not None:
        flip = np.asarray(task.command.reflection, float)
    pose_flip, twist_flip = np.concatenate([[1.0, -1.0, 1.0, -1.0], _FLIP]), np.concatenate([-_FLIP, _FLIP])
    before, after = [], []
    for steps in range(_SAMPLES):
        turn, joint_state = random.normal(size=4), random.normal(size=(4, nj))
        pose = np.concatenate([turn / np.linalg.norm(turn), random.uniform(-0.5, 0.5, 3)])[: 7 * has_base]
        twist, command = random.normal(size=6)[: 6 * has_base], random.normal(size=size)
        reflected = pose * pose_flip[: len(pose)], twist * twist_flip[: len(twist)]
        for results, base, rows, moved, asked in (
            (before, (pose, twist), heights, joint_state, command),
            (after, reflected, heights[:, ::-1], joints(joint_state), flip * command),
        ):
            terrain = HeightMap(rows, 0.1, (-2.0, -2.0))
            q = np.concatenate([base[0], task.posture + moved[0]])
            v = np.concatenate([base[1], moved[1]])
            there = replace(task, ground=replace(task.ground, terrain=terrain))
            results.append(there.observed(q, v, moved[2], moved[3], asked, float(steps)))
    return np.array(before), np.array(after)


def _reflection_of_values(name: str, before: Array, after: Array) -> Reflection:
    """Return the signed permutation that takes observations of a term to those in reflected states.

    Args:
        name: Of the term. before, after: Observations, (n, k) each, as scaled.
    """
    k = before.shape[1]
    order, signs = np.full(k, -1), np.zeros(k)
    for i in range(k):
        for sign in (1.0, -1.0):
            differences = np.abs(sign * before - after[:, i : i + 1]).max(axis=0)
            near = [j for j in np.argsort(differences, kind="stable") if j not in order[:i]]
            if near and differences[near[0]] < _TOLERANCE * max(np.abs(before).max(), 1e-9) and order[i] < 0:
                order[i], signs[i] = near[0], sign
        if order[i] < 0:
            raise DefinitionError(f"entry {i} of the observation actor.{name} has no reflection from left to right")
    return Reflection(order, signs)
