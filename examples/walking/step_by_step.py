"""Many robots advanced step by step: a policy gives commands, robots that fall start again from random states."""

from typing import Any

import numpy as np

import controllers
import legged
import robots

robot, count, rng = robots.spatial_quadruped(), 64, np.random.default_rng(0)
q, v = controllers.Stand(hip_height=0.5).initial_state(robot)
posture = q[robot.base.nq :]


def servo(t: float, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray, command: np.ndarray) -> np.ndarray:
    """Return the torques of servos that hold the posture plus the command, joint positions in rad."""
    return 300.0 * (posture + command - q[robot.base.nq :]) - 10.0 * v[robot.base.nv :]


def features(q: np.ndarray, v: np.ndarray, contacts: Any) -> dict[str, np.ndarray]:
    return {"state": np.concatenate([q, v]), "feet": contacts.touching}


sim = legged.Simulation(robot, servo, ground=legged.Rigid(friction=0.7), num=count, q=q, v=v)  # time steps of 1 ms
falls = 0
for _ in range(100):  # a policy of 50 Hz that knows nothing
    sim.step(0.2 * rng.standard_normal((count, robot.nj)), n=20)
    falls += sim.fallen.sum()
    sim.reset(v=0.1 * rng.standard_normal((count, robot.nv)), where=sim.ended)
feet = sim.observe(features)["feet"].mean()
print(f"{count} robots, 2 s: {falls} fell, {feet:.0%} of the feet touch; {sim.backend}")
