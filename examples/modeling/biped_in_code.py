"""A biped defined in code with one leg attached twice, its kinematic modules and its dynamics."""

import numpy as np

import legged
from legged import Limb, Link, Revolute, RobotBuilder, box_inertia, rod_inertia

SHIN = (0.0, 0.0, -0.4)  # [m]

leg = (
    Limb()
    .add(Revolute("yaw", "z"), Link("pelvis", box_inertia(0.5, (0.1, 0.1, 0.1))))
    .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(2.0, (0, 0, 0), SHIN)))
    .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.5, (0, 0, 0), SHIN), {"foot": SHIN}), at=SHIN)
)
biped = RobotBuilder("biped", Link("trunk", box_inertia(10.0, (0.2, 0.3, 0.5))))
for side, y in (("left_", 0.1), ("right_", -0.1)):
    biped.attach(leg, to="trunk", at=(0, y, -0.25), prefix=side)
robot = biped.build()

print(robot)
for module in robot.modules:
    print(f"{module.name}: {', '.join(module.links)}")
print(f"modules alike: {robot.alike_modules}")

q, v = robot.neutral(), np.zeros(robot.nv)
tau = legged.inverse_dynamics(robot, q, v, np.zeros(robot.nv))
print(f"force that supports it: {tau[5]:.2f} N for {robot.mass:g} kg")
print(f"acceleration in free fall: {legged.forward_dynamics(robot, q, v, 0 * tau)[5]:.2f} m/s^2")
