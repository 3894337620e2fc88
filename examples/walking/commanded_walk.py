"""Eight quadrupeds side by side walk at commanded velocities in eight directions, turn and stop."""

import numpy as np

import controllers
import legged
import robots

robot = robots.spatial_quadruped()
law = controllers.Locomotion("trot", None)  # the command of each robot is given in each step
q, v = law.initial_state(robot)
ground, steps = legged.Rigid(friction=0.6), legged.TimeStepping(2e-3)
sim = legged.Simulation(robot, law, ground=ground, num=8, q=q, v=v, integrator=steps)

angles = 2.0 * np.pi * np.arange(8) / 8
commands = np.zeros((8, 5))  # [m/s], [m/s], [rad/s], [m], [rad]
commands[:, 0], commands[:, 1] = 0.3 * np.cos(angles), 0.15 * np.sin(angles)
sim.step(commands, n=1000)
places = sim.q[:, 4:6]
commands[:, 2] = 0.3
sim.step(commands, n=500)
sim.step(np.zeros(5), n=1000)

print(f"{8 - int(sim.fallen.sum())} of 8 stand after the stop")
right = np.sign(np.round(places, 1)) == np.sign(np.round(commands[:, :2], 3))
print(f"{int(right.all(axis=1).sum())} of 8 have walked in their direction")
