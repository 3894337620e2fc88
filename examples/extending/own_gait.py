"""A user-defined gait: a planned motion of base and feet, from which joint references follow by inverse kinematics."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import controllers
import legged
import robots
from legged.ground import realistic_ground


@dataclass(frozen=True, kw_only=True)
class Squat(controllers.Stand):
    """The base moves down and up once per period, and the feet stand."""

    depth: float = 0.1  # [m]

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        base, feet = super().plan(t, phase)
        base[2] = base[2] - self.depth * (1 - np.cos(2 * np.pi * t / self.period)) / 2
        return base, feet


robot = robots.spatial_quadruped()
gait = Squat(period=1.0, hip_height=0.5)
angles, rates, accelerations = gait.on(robot).reference(0.25)
print(f"knees after a quarter of a period: {np.degrees(angles[2]):.1f} degrees, {rates[2]:.2f} rad/s")

law = controllers.ComputedTorque(gait, kp=400.0)  # [1/s^2]
run = legged.simulate(robot, law, ground=realistic_ground(robot), until=2.0)
height = run.base.position[:, 2]
print(f"squatted for {run.duration:g} s, trunk between {height.min():.2f} m and {height.max():.2f} m")
