"""Computed part of `docs/reference/terms.md`: the terms of tasks, with their formulas, peers and operations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import robots
from benchmarks.pages.parts import Part, table
from legged import environments
from legged.compiler import count
from legged.environments import Reference, State, Task, terms
from legged.environments.physics import Physics
from legged.environments.state import Layout

Array = np.ndarray
PAGE = "reference/terms.md"
MODULES = {
    "observations": "Observations",
    "rewards": "Rewards of the base and the joints",
    "feet": "Feet",
    "gait": "Gaits with a clock",
    "goals": "Standing up, jumping and classical control",
    "motion": "Motion of a reference",
    "terminations": "Terminations",
}


def _tasks() -> Iterator[tuple[Task, dict[str, Callable[[State], Any]]]]:
    """Yield tasks, and functions of terms that they do not use but may."""
    robot = robots.spatial_quadruped()
    velocity = environments.velocity(robot)
    t = np.linspace(0.0, 0.4, 21)
    still = np.concatenate([[1.0, 0, 0, 0, 0, 0, velocity.height], velocity.posture])
    others = {
        "height_error": terms.height_error(0.4),
        "power": terms.power,
        "joint_rates": terms.joint_rates,
        "actions": terms.actions,
        "upright": terms.upright,
        "height_reached": terms.height_reached(0.4),
        "standing_posture": terms.standing_posture(),
        "feet_clearance": terms.feet_clearance(0.1),
        "touching": terms.touching,
    }
    yield velocity, others
    yield environments.velocity(robot, gait_period=None), {}
    yield environments.velocity(robots.spatial_biped(), gait_period=None), {}
    yield environments.velocity(robots.humanoid()), {}
    yield environments.rough(robot), {}
    yield environments.jumping(robot), {}
    yield environments.tracking(robot, Reference(robot, (t, np.tile(still, (21, 1))))), {}
    yield environments.pendulum(), {}
    yield environments.acrobot(), {}


def functions_of(task: Task) -> Iterator[Callable[[State], Any]]:
    """Yield the functions of the observations, rewards, terminations and memories of a task."""
    for group in task.observations.values():
        yield from (term.function for term in group.values())
    yield from (reward.function for reward in task.rewards.values())
    yield from task.terminations.values()
    yield from (memory.update for memory in task.memory.values())


def operations(task: Task, function: Callable[[State], Any]) -> int:
    """Return the number of operations of a function of a task alone."""
    physics, nv = Physics(task, None), task.robot.nv
    memory = Layout({name: int(np.size(m.initial)) for name, m in task.memory.items()})
    shapes = {"q": (task.robot.nq,), "rest": (physics.size - task.robot.nq,), "v_before": (nv,)}
    shapes |= {"actions": (2, task.robot.nj), "command": (task.command_size,), "known": (memory.size,)}

    def value(
        q: Array,
        rest: Array,
        v_before: Array,
        actions: Array,
        command: Array,
        known: Array,
        parameters: Array,
        steps: Any,
    ) -> Any:
        held = {name: x if np.ndim(task.memory[name].initial) else x[0] for name, x in memory.split(known).items()}
        numbers = physics.at(parameters)
        state = (q, rest[:nv], v_before, rest, actions[0], actions[1], command, held, numbers, steps)
        return function(State(task, physics, *state, random=environments.Draws(0.0, 0.0, 0.0)))

    return count(value, **shapes, parameters=(physics.parameters,), steps=()).total


def counted() -> dict[str, int]:
    """Return name -> operations of every term, for the robots of the page."""
    numbers: dict[str, int] = {}
    for task, others in _tasks():
        for function in [*functions_of(task), *others.values()]:
            name = function.__qualname__.split(".")[0]
            if name not in numbers and hasattr(terms, name):
                numbers[name] = operations(task, function)
    return numbers


def documented() -> dict[str, tuple[str, str, str, str]]:
    """Return name -> (module, formula, names in Isaac Lab and in mjlab) of every term."""
    rows = {}
    for name in terms.__all__:
        term = getattr(terms, name)
        doc = inspect.getdoc(term) or ""
        formula = re.search(r"^Formula: (.*)$", doc, re.MULTILINE)
        if formula:
            peers = re.search(r"^Peers: (.*), (.*)$", doc, re.MULTILINE)
            rows[name] = (term.__module__.rpartition(".")[2], formula[1], *(peers.groups() if peers else "--"))
    return rows


def all_terms() -> str:
    """Return the tables of all terms."""
    numbers, rows, parts = counted(), documented(), []
    for module, title in MODULES.items():
        own = [
            (f"`{name}`", "`" + formula.replace("|", "\\|") + "`", isaac, mjlab, str(numbers[name]))
            for name, (place, formula, isaac, mjlab) in rows.items()
            if place == module
        ]
        header = ("name", "formula", "Isaac Lab", "mjlab", "operations")
        parts.append(f"**{title}**\n\n{table(header, own, 4)}")
    return "\n\n".join(parts)


PARTS = {"terms": Part(PAGE, all_terms)}
