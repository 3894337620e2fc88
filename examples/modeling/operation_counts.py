"""Operation counts of the dynamics and of a user-defined function, as compiled."""

import numpy as np

import legged
import robots

robot = robots.spatial_quadruped()
counts = legged.count(legged.forward_dynamics, robot)
n = robot.nj
print(f"forward dynamics of the quadruped: {counts.M} M, {counts.A} A; the paper: {209 * n + 60} M, {201 * n + 66} A")
for stage, part in counts.by_stage.items():
    print(f"  {stage or 'outside of stages'}: {part.M} M, {part.A} A")


def power(robot: legged.Robot, v: np.ndarray, tau: np.ndarray):
    """Return the power of the joints, [W]."""
    joints = slice(robot.base.nv, None)
    return v[joints] @ tau[joints]


print(f"power of the joints: {legged.count(power, robot).M} M")
kernel = legged.compile(power, robot)
print(f"compiled: {kernel(np.ones(robot.nv), 2 * np.ones(robot.nv)):g} W")
