"""A user-defined controller: a function of time, state and contact wrenches that returns joint torques."""

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground

robot = robots.spatial_quadruped()
pose = controllers.Stand(hip_height=0.5)
q, v = pose.initial_state(robot)
nominal = q[robot.base.nq :]


def springs(t: float, q: np.ndarray, v: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
    """Return the torques of a spring and a damper at every joint about joint positions that vary with time."""
    crouch = 0.2 * np.sin(np.pi * t)  # [rad]
    target = nominal + crouch * np.tile([0.0, 0.5, -1.0], 4)
    return 300.0 * (target - q[robot.base.nq :]) - 12.0 * v[robot.base.nv :]


run = legged.simulate(robot, springs, ground=realistic_ground(robot), q=q, v=v, until=2.0)
height = run.base.position[:, 2]
print(f"{run.backend}: stood for {run.duration:g} s, trunk between {height.min():.2f} m and {height.max():.2f} m")
