"""Reflections from left to right at the plane y = 0 of the base: of joints, actions and observations."""

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
"""Largest asymmetry that is accepted: of positions relative to the size of the robot, of the components of joint axes,
of angles, [rad], and of scales and observations relative to the largest one."""
_FLIP = np.array([1.0, -1.0, 1.0])
"""Signs of the components of a reflected vector, base axes; those of an angular velocity are opposite."""
_SAMPLES = 16
"""Number of random states in which observations are compared."""


@dataclass(frozen=True)
class Reflection:
    """A signed permutation, y[i] = signs[i] x[order[i]].

    Attributes:
        order: Index of the entry of x that becomes each entry of y, (n,). signs: 1.0 or -1.0 for each entry, (n,).
    """

    order: Array
    signs: Array

    def __call__(self, x: Any) -> Any:
        """Return the reflections of vectors, (..., n), in their unit and frame."""
        return x[..., self.order] * self.signs


def mirrored_joints(robot: Robot) -> Reflection:
    """Return the reflection of joint coordinates, (nj,), at the plane y = 0 of the base.

    It follows from the geometry at the neutral configuration. The reflection of a joint is the joint whose child link
    has the reflected origin, and whose unit velocity gives this link the reflected twist, up to its sign.

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
        action: Reflection of actions, (nj,), dimensionless.
        observation: Reflection of observations with the scales of the task, (k,), dimensionless.
    """

    action: Reflection
    observation: Reflection

    @classmethod
    def of(cls, task: Task) -> Mirror:
        """Return the reflections of a task: of actions by `mirrored_joints`, of observations by their values.

        Each term of the observation without a `reflection` of its own is evaluated in random states on random terrain,
        and in the reflected states on the reflected terrain. Each entry in the reflected states has to equal, up to its
        sign, an entry of the same term in the states themselves.

        Args:
            task: The task.

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
            before, after = _samples(alone, action)
            if term.reflection is None and len(alone.actor_memory):
                raise DefinitionError(
                    f"the observation actor.{name} reads the memory of the task: give its reflection, the sign of each "
                    "entry after an exchange of left and right"
                )
            if term.reflection is None:
                reflection = _reflection_of_values(name, before, after)
            elif len(term.reflection) == before.shape[1]:
                reflection = Reflection(np.arange(before.shape[1]), np.asarray(term.reflection, float))
            else:
                raise DefinitionError(
                    f"the reflection of the observation actor.{name} needs {before.shape[1]} signs, got "
                    f"{len(term.reflection)}"
                )
            order.append(reflection.order + sum(map(len, order)))
            signs.append(reflection.signs)
        return cls(action, Reflection(np.concatenate(order), np.concatenate(signs)))


def _samples(task: Task, joints: Reflection) -> tuple[Array, Array]:
    """Return scaled observations in random states, and in the reflections of these states, (n, k) each.

    Args:
        task: The task. joints: Reflection of joint coordinates.
    """
    random, robot, size = np.random.default_rng(0), task.robot, task.command_size
    heights, nj, has_base = random.uniform(0.0, 0.1, (41, 41)), robot.nj, robot.base.nq > 0
    flip = np.ones(size)
    if task.command is not None and task.command.reflection is not None:
        flip = np.asarray(task.command.reflection, float)
    pose_flip, twist_flip = np.concatenate([[1.0, -1.0, 1.0, -1.0], _FLIP]), np.concatenate([-_FLIP, _FLIP])
    observed, observed_reflected = [], []
    for steps in range(_SAMPLES):
        turn, joint_state = random.normal(size=4), random.normal(size=(4, nj))
        pose = np.concatenate([turn / np.linalg.norm(turn), random.uniform(-0.5, 0.5, 3)])[: 7 * has_base]
        twist, command = random.normal(size=6)[: 6 * has_base], random.normal(size=size)
        reflected = pose * pose_flip[: len(pose)], twist * twist_flip[: len(twist)]
        for results, base, grid, joint_values, desired in (
            (observed, (pose, twist), heights, joint_state, command),
            (observed_reflected, reflected, heights[:, ::-1], joints(joint_state), flip * command),
        ):
            terrain = HeightMap(grid, 0.1, (-2.0, -2.0))
            q = np.concatenate([base[0], task.posture + joint_values[0]])
            v = np.concatenate([base[1], joint_values[1]])
            there = replace(task, ground=replace(task.ground, terrain=terrain))
            results.append(there.observed(q, v, joint_values[2], joint_values[3], desired, float(steps)))
    return np.array(observed), np.array(observed_reflected)


def _reflection_of_values(name: str, before: Array, after: Array) -> Reflection:
    """Return the signed permutation that takes the observations of a term to those in the reflected states.

    Args:
        name: Name of the term. before: Scaled observations in random states, (n, k). after: Those in the reflected
            states, (n, k).
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
