"""The task of following the motion of a reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.environments import terms
from legged.environments.state import State
from legged.environments.task import Memory, Observation, Reward, Task
from legged.environments.tasks.common import Stance, on_terrain, proprioception
from legged.environments.tasks.reference import Reference
from legged.errors import ArgumentError
from legged.robot.robot import Robot

Array = np.ndarray


@checked
def tracking(robot: Robot, reference: Any = None, ground: Rigid | None = None, **changes: Any) -> Task:
    """Return the task of following a motion, with rewards as in DeepMimic.

    An episode starts in the state of a random sample of the motion, and ends early where the height or the rotation of
    the base is far from the motion. A motion that does not repeat gives episodes of half its duration, which start in
    its first half.

    Args:
        robot: The robot, with a floating base.
        reference: A `Reference`, or a motion as in `Reference`; by default that of `controllers.Locomotion`.
        ground: By default flat, with friction 0.8.
        changes: Other fields of the task, as in `Task.changed`.

    Raises:
        DefinitionError: The robot has no legs. ReachError: It has no standing posture.
        ArgumentError: The reference has another duration of control steps than the task.

    Source:
        X. B. Peng et al., "DeepMimic: example-guided deep reinforcement learning of physics-based character skills",
        2018, section 5; with the base in place of the center of mass.
    """
    stance = Stance.of(robot)
    if reference is None:
        reference = Reference.of_locomotion(robot)
    elif not isinstance(reference, Reference):
        reference = Reference(robot, reference)
    steps = len(reference)
    duration = 10.0 if reference.is_cyclic else 0.5 * steps * reference.period
    starts = steps if reference.is_cyclic else max(steps // 2, 1)
    seen = {
        **proprioception(),
        "phase": Observation(terms.motion_phase(reference)),
        "reference": Observation(terms.motion_joints(reference)),
    }
    task = stance.task(
        ground,
        seen,
        stance.privileged(),
        rewards={
            "motion_joint_positions": Reward(terms.motion_joint_positions(reference), 0.65),
            "motion_joint_velocities": Reward(terms.motion_joint_velocities(reference), 0.1),
            "motion_feet": Reward(terms.motion_feet(reference), 0.15),
            "motion_position": Reward(terms.motion_position(reference), 0.1),
            "motion_orientation": Reward(terms.motion_orientation(reference), 0.1),
            "motion_base_velocity": Reward(terms.motion_base_velocity(reference), 0.1),
            "torques": Reward(terms.torques, -0.02 / stance.torque**2),
            "action_rate": Reward(terms.action_rate, -0.002),
        },
        terminations={"motion_lost": terms.motion_lost(reference, 0.5 * stance.height)},
        start=_on(reference),
        memory={
            "start": Memory(lambda s: np.floor(s.random.uniform(0.0, float(starts))), lambda s: s.memory["start"], 0.0)
        },
        episode=duration,
        variations=stance.variations(),
    )
    task = task.changed(**changes) if changes else task
    if abs(task.period - reference.period) > 1e-9:
        raise ArgumentError(
            f"the reference has samples every {reference.period:g} s, but control steps last {task.period:g} s: give "
            f"Reference(..., period={task.period:g})"
        )
    return task


def _on(reference: Reference) -> Any:
    """Return the start of an episode in the state of the sample that the memory holds."""

    def start(s: State) -> tuple[Array, Array]:
        q, v = reference.at(replace(s, steps=0.0))
        return on_terrain(s, q, is_lowered=False), v

    return start
