"""Proximal policy optimization of legged.learning, step by step: a quadruped that learns to follow velocities.

    python examples/learning/velocity_policy.py 400

trains for 400 iterations, which takes some minutes; by default there are four, which show how the parts are used.
"""

import sys

import numpy as np

import controllers
import legged
import robots
from legged import environments
from legged.learning import evaluation
from legged.learning.ppo import PPO, Settings

iterations = int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 4
robot = robots.spatial_quadruped()
task = environments.velocity(robot)
many = 2048 if iterations > 4 else 32
learner = PPO(environments.make(task, num_envs=many, groups=True), Settings(hidden=(128, 64) if many > 32 else (16,)))
for k in range(iterations):
    figures = learner.iterate()
    if k % max(iterations // 20, 1) == 0:
        reward = figures["reward.track_linear_velocity"]
        print(f"{figures['transitions']:.3g} transitions, tracking {reward:.2f} per second")

errors = evaluation.tracking(task, learner.act, [(0.0, 0.0, 0.0), (0.5, 0.0, 0.0)], robots=4)
print(errors.table().text())

law = controllers.Policy(learner.network(), task, command=(0.3, 0.0, 0.0))  # the policy is a controller
steps = legged.TimeStepping(task.time_step)
run = legged.simulate(robot, law, ground=task.ground, until=0.1, integrator=steps, fall=False)
print(f"policy at work for {run.times[-1]:.1f} s: {run.backend}, torques up to {np.abs(run.tau[:, 6:]).max():.0f} N m")
