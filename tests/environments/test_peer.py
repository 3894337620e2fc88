"""The program that `benchmarks.environments` measures beside the environments computes the same rewards."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import mujoco
import numpy as np
import pytest

from benchmarks.environments.scene import go2, write_scene
from legged import environments
from legged.dynamics.kinematics import point_motion
from legged.environments import Draws, Feet, State
from legged.rotations import quaternion_matrix


class Batch:
    """The part of `mjbatch.Batch` that the program uses."""

    def __init__(self, model: Any, num: int, num_threads: int):
        self.model, self.rows = model, [mujoco.MjData(model) for _ in range(num)]
        self.arrays: dict[str, Any] = {}

    def bind(self, name: str) -> Any:
        return self.arrays.setdefault(name, np.array([getattr(data, name) for data in self.rows]))

    def expand(self, name: str) -> Any:
        return np.array([getattr(self.model, name)] * len(self.rows))

    def step(self, nstep: int) -> None:
        for k, data in enumerate(self.rows):
            for name in ("qpos", "qvel", "ctrl"):
                getattr(data, name)[:] = self.arrays[name][k]
            mujoco.mj_step(self.model, data, nstep)
            for name, array in self.arrays.items():
                array[k] = getattr(data, name)
            mujoco.mj_kinematics(self.model, data)  # positions of geoms at the end of the step
            if "geom_xpos" in self.arrays:
                self.arrays["geom_xpos"][k] = data.geom_xpos


@pytest.mark.parametrize("name", ["velocity", "rough"])
def test_rewards_of_the_peer_are_those_of_the_task(name, tmp_path, monkeypatch):
    """The reward terms of random states in the air and at the ground equal those of the task, without noise."""
    module = ModuleType("mjbatch")
    module.Batch = Batch  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mjbatch", module)
    peer = importlib.import_module("benchmarks.environments.peer")
    task = getattr(environments, name)(go2())
    write_scene(task, tmp_path)
    them = peer.Peer(tmp_path, 3, 1, {})
    task = task.changed(memory={}) if name == "rough" else task
    recorded: list[Any] = []
    terms = them.terms
    monkeypatch.setattr(them, "terms", lambda *given: recorded.append(terms(*given)) or recorded[-1])
    monkeypatch.setattr(them, "start", lambda rows: None)
    for action in np.random.default_rng(0).normal(scale=0.3, size=(40, 3, 12)):
        before = them.v[:, 6:].copy()
        observations, *_ = them.step(action)
        for k in range(3):
            expected = expected_terms(task, them, k, before[k])
            assert expected.keys() == recorded[-1].keys()
            for term, value in recorded[-1].items():  # the scene file holds six digits of each number
                np.testing.assert_allclose(value[k], expected[term], rtol=1e-3, atol=1e-6, err_msg=term)
    assert any(one["gait_contacts"].any() for one in recorded) and any(one["swing_height"].any() for one in recorded)
    assert np.isfinite(observations).all()
    assert observations.shape == environments.make(name, go2(), num_envs=3).reset(seed=0)[0].shape


def expected_terms(task: Any, them: Any, k: int, before: Any) -> dict[str, float]:
    """Return the terms of the task in the state of a robot of the peer."""
    q, v, robot = them.q[k], them.v[k], task.robot
    rotation = quaternion_matrix(q[3:7])
    state = State(
        task,
        None,
        q=np.concatenate([q[3:7], q[:3], q[7:]]),
        v=np.concatenate([v[3:6], rotation.T @ v[:3], v[6:]]),
        v_before=np.concatenate([np.zeros(6), before]),
        rest=np.zeros(0),
        action=them.action[k],
        last_action=them.last[k],
        command=them.command[k],
        memory={},
        parameters={},
        steps=float(them.steps[k]),
        random=Draws(0.0, 0.0, 0.0),
    )
    points = [(contact.link, contact.position) for contact in robot.contacts]
    positions, velocities = point_motion(robot, state.q, state.v, points)
    heights = [
        p[2] - c.radius - state.terrain_height(p[0], p[1]) for p, c in zip(positions, robot.contacts, strict=True)
    ]
    state.__dict__["feet"] = Feet(positions, velocities, velocities, np.array(heights) < 2e-3)
    state.__dict__["torques"] = them.torques[k]
    return {name: reward.function(state) for name, reward in task.rewards.items()}
