"""The functions of a task as traced functions of one member: the end of a control step, a new start, observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.compiler import Counts, count
from legged.compiler.ir import where
from legged.environments.draws import Draws
from legged.environments.physics import Physics
from legged.environments.state import Layout, State, called, observed
from legged.errors import ShapeError
from legged.rotations import quaternion_matrix

if TYPE_CHECKING:
    from legged.environments.task import Task

Array = np.ndarray
_STARTS, _OBSERVATIONS = 1, 2  # purposes of random numbers, the second of the first group; 0 for all others
_NEVER = 1e9  # [s]
_FASTEST = 1e3
"""Largest generalized velocity, [rad/s] or [m/s], of a motion that time steps describe: a faster robot starts anew."""
_STEPS_BEFORE_REPEAT = 2.0**24
"""Number of control steps of a member after which its random numbers repeat."""


class Result(NamedTuple):
    """The result of a control step of one robot.

    Attributes:
        state, record: See `Transition`, (n,) and (m,), mixed units.
        reward: The reward. terms: weight * function * period of each reward, (r,).
        terminated, truncated: 1.0 if the episode has ended by a termination, or by its longest duration, else 0.0.
        causes: 1.0 for each termination that holds, else 0.0, (t,).
    """

    state: Array
    record: Array
    reward: Any
    terms: Array
    terminated: Any
    truncated: Any
    causes: Array


class Transition:
    """The functions of a task, which may be traced.

    The record of a member holds what a task needs from one control step to the next: `steps` since the start of the
    episode, `count` of all control steps and starts, `action` and `last_action`, the velocity `v` at the end and
    `v_before` at the beginning of the control step, `command`, `wait` until the next command and `push` until the next
    disturbance, [s], the `returns` of the rewards in the episode, and a part for each entry of `Task.memory`. Numbers
    in which members differ are a part too, `parameters`.

    Args:
        task: The task. physics: Its robot. groups: Names of the groups of observations that are computed.

    Attributes:
        layout: Parts of the record; `parameters` and `action`, which the time steps read, come first.
    """

    def __init__(self, task: Task, physics: Physics, groups: Sequence[str]):
        self.task, self.physics, self.groups = task, physics, tuple(groups)
        nj, nv = task.robot.nj, task.robot.nv
        self._initial = {name: np.atleast_1d(np.asarray(m.initial, dtype=float)) for name, m in task.memory.items()}
        sizes = {"parameters": physics.parameters, "action": nj, "last_action": nj, "steps": 1, "count": 1}
        sizes |= {"v": nv, "v_before": nv, "command": task.command.size if task.command else 0, "wait": 1, "push": 1}
        sizes |= {"returns": len(task.rewards)}
        sizes |= {f"memory.{name}": len(initial) for name, initial in self._initial.items()}
        self.layout = Layout(sizes)

    def blank(self) -> Array:
        """Return the record of a member before its first episode, (m,), mixed units."""
        record = np.zeros(self.layout.size)
        record[self.layout["parameters"]] = self.physics.flat(self.physics.nominal())
        for name, value in self._initial.items():
            record[self.layout[f"memory.{name}"]] = value
        return record

    # Parts of a control step.

    def _view(self, state: Array, parts: Mapping[str, Array], random: Draws, **changes: Any) -> State:
        robot, physics = self.task.robot, self.physics
        q, rest = state[: robot.nq], state[robot.nq :]
        memory = {name: parts[f"memory.{name}"] for name in self.task.memory}
        known: dict[str, Any] = {
            "q": q,
            "v": rest[: robot.nv],
            "v_before": parts["v_before"],
            "rest": rest,
            "action": parts["action"],
            "last_action": parts["last_action"],
            "command": parts["command"],
            "memory": {
                name: value[0] if np.ndim(self.task.memory[name].initial) == 0 else value
                for name, value in memory.items()
            },
            "parameters": physics.at(parts["parameters"]),
            "steps": parts["steps"][0],
        }
        return State(self.task, physics, random=random, **{**known, **changes})

    def _begun(self, parts: Mapping[str, Array], s: State) -> tuple[Array, dict[str, Any]]:
        """Return (state, parts of the record) of a member that starts an episode."""
        task, physics, random = self.task, self.physics, s.random.for_purpose(_STARTS)
        s = replace(s, random=random)
        values = physics.nominal()
        for name, bounds in task.variations.items():
            values[name] = bounds.drawn(values[name], random)
        memory = {name: called(f"start of memory {name}", m.start, s) for name, m in task.memory.items()}
        q, v = called("start", task.start, replace(s, memory=memory))
        still = np.zeros(task.robot.nj)
        new: dict[str, Any] = {**parts, "parameters": physics.flat(values), "steps": np.zeros(1)}
        new |= {"action": still, "last_action": still, "v": v, "v_before": v, "returns": np.zeros(len(task.rewards))}
        new |= {f"memory.{name}": np.atleast_1d(value) for name, value in memory.items()}
        state = physics.start(q, v)
        new["command"], new["wait"] = self._new_command(self._view(state, new, random))
        new["push"] = np.atleast_1d(self._next_push(random))
        return state, new

    def _new_command(self, s: State) -> tuple[Array, Array]:
        command = self.task.command
        if command is None:
            return np.zeros(0), np.zeros(1)
        value = np.atleast_1d(called("command", command.draw, s))
        if value.shape != (command.size,):
            raise ShapeError(f"the command must be ({command.size},), got shape {value.shape}")
        return value, np.atleast_1d(s.random.uniform(*command.interval))

    def _next_push(self, random: Draws) -> Any:
        disturbance = self.task.disturbance
        return _NEVER if disturbance is None else random.uniform(*disturbance.interval)

    # The three functions.

    def start(self, state: Array, record: Array, seed: Any, member: Any) -> tuple[Array, Array]:
        """Return (state, record) of a member that starts an episode.

        Args:
            state: State of the time steps, (n,), mixed units. record: See the class, (m,), mixed units.
            seed, member: See `Draws`.
        """
        parts = self.layout.split(record)
        random = Draws(seed, member, parts["count"][0])
        state, new = self._begun(parts, self._view(state, parts, random))
        new["count"] = self._counted(parts)
        return state, self.layout.joined(new)

    def observe(self, state: Array, record: Array, seed: Any, member: Any) -> dict[str, Array]:
        """Return the observations of a member: name of a group -> (k,), as scaled.

        Args:
            state, record: At the end of a control step or a start, (n,) and (m,), mixed units.
            seed, member: See `Draws`.
        """
        parts = self.layout.split(record)
        s = self._view(state, parts, Draws(seed, member, parts["count"][0]))
        return {
            group: observed(terms, s, group, s.random.for_purpose(_OBSERVATIONS + k))
            for k, (group, terms) in enumerate(self.task.observations.items())
            if group in self.groups
        }

    def step(self, state: Array, record: Array, action: Array, outcome: Array, seed: Any, member: Any) -> Result:
        """Return the end of a control step.

        Args:
            state: State after the time steps, (n,), mixed units. record: As at the end of the last control step, (m,),
                mixed units.
            action: The action of this one, (nj,), dimensionless.
            outcome: Of the time steps, see `Members.outcome`; the code is negative if the motion has no finite
                continuation. This, and a velocity over `_FASTEST`, ends the episode, without a reward for the step.
            seed, member: See `Draws`.
        """
        task = self.task
        parts: dict[str, Any] = self.layout.split(record)
        random = Draws(seed, member, parts["count"][0])
        parts = {**parts, "last_action": parts["action"], "action": action, "steps": parts["steps"] + 1.0}
        parts["v_before"] = parts["v"]
        s = self._view(state, parts, random)
        speed = reduce(np.maximum, np.abs(s.v))
        lost = np.maximum(where(outcome[0] < 0.0, 1.0, 0.0), where(speed > _FASTEST, 1.0, 0.0))
        terms = [
            where(lost > 0.5, 0.0, r.weight * task.period * _number(f"reward {name}", r.function, s))
            for name, r in task.rewards.items()
        ]
        parts["returns"] = parts["returns"] + np.stack(terms) if terms else parts["returns"]
        causes = [
            where(_number(f"termination {name}", function, s) > 0.0, 1.0, 0.0)
            for name, function in task.terminations.items()
        ]
        ended = reduce(np.maximum, causes, lost)
        late = where(parts["steps"][0] >= float(task.episode_steps), 1.0, 0.0)
        truncated = late * (1.0 - ended)
        for name, memory in task.memory.items():
            parts[f"memory.{name}"] = np.atleast_1d(called(f"memory {name}", memory.update, s))
        state, parts = self._continued(state, parts, s)
        parts["count"] = self._counted(parts)
        reward = sum(terms, 0.0)
        values = np.stack(terms) if terms else np.zeros(0)
        causes = np.stack(causes) if causes else np.zeros(0)
        return Result(state, self.layout.joined(parts), reward, values, ended, truncated, causes)

    def _counted(self, parts: Mapping[str, Array]) -> Array:
        count = parts["count"] + 1.0
        return np.stack([where(count[0] >= _STEPS_BEFORE_REPEAT, 0.0, count[0])])

    def _continued(self, state: Array, parts: dict[str, Any], s: State) -> tuple[Array, dict[str, Any]]:
        """Return (state, parts) after a new command and a disturbance that are due."""
        task, robot = self.task, self.task.robot
        q, rest = state[: robot.nq], state[robot.nq :]
        v = rest[: robot.nv]
        if task.command is not None:
            wait = parts["wait"][0] - task.period
            command, interval = self._new_command(s)
            parts["command"] = _selected(wait <= 0.0, command, parts["command"])
            parts["wait"] = _selected(wait <= 0.0, interval, np.stack([wait]))
        if task.disturbance is not None:
            due = parts["push"][0] - task.period
            linear = task.disturbance.linear * s.random.uniform(-1.0, 1.0, 2)
            angular = task.disturbance.angular * s.random.uniform(-1.0, 1.0, 3)
            change = np.concatenate([angular, quaternion_matrix(q[:4]).T @ np.concatenate([linear, np.zeros(1)])])
            v = np.concatenate([_selected(due <= 0.0, v[:6] + change, v[:6]), v[6:]])
            parts["push"] = np.stack([where(due <= 0.0, self._next_push(s.random), due)])
        parts["v"] = v
        return np.concatenate([q, v, rest[robot.nv :]]), parts


def _selected(condition: Any, a: Array, b: Array) -> Array:
    return np.stack([where(condition, x, y) for x, y in zip(a, b, strict=True)]) if len(a) else b


def _number(what: str, function: Callable[[State], Any], s: State) -> Any:
    value = called(what, function, s)
    if np.ndim(value) != 0:
        raise ShapeError(f"the {what} of the task must return one number, got shape {np.shape(value)}")
    return np.asanyarray(value)[()] if isinstance(value, np.ndarray) else value * 1.0


def transition_counts(task: Task) -> Counts:
    """Return the operations of the end of a control step of a task and of a new start, see `Task.counts`."""
    physics = Physics(task, None)
    transition = Transition(task, physics, tuple(task.observations))
    shapes = {"state": (physics.size,), "record": (transition.layout.size,), "action": (task.robot.nj,)}

    def both(state: Array, record: Array, action: Array, outcome: Array, seed: Any, member: Any) -> Any:
        end = transition.step(state, record, action, outcome, seed, member)
        seen = transition.observe(end.state, end.record, seed, member)
        return end, seen, transition.start(end.state, end.record, seed, member)

    return count(both, **shapes, outcome=(3,), seed=(), member=())
