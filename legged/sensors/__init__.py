"""Sensors of legged robots: inertial measurement unit, contact forces, and measures of balance.

Functions of one state (`gyro`, `specific_force`, `contact_force`, `zero_moment_point`, `capture_point`) are plain
NumPy, which controllers can call and `legged.compile` can trace; `measure` evaluates all sensors along a run.
"""

from legged.sensors.balance_points import (
    capture_point,
    pressure_point,
    support_margin,
    support_polygon,
    zero_moment_point,
)
from legged.sensors.depth_camera import DepthCamera, depth_along
from legged.sensors.instruments import (
    Noise,
    contact_force,
    contact_switches,
    ground_wrench,
    gyro,
    specific_force,
)
from legged.sensors.measure import FootSensor, Readings, measure, sliding_per_stance

__all__ = [
    "DepthCamera",
    "FootSensor",
    "Noise",
    "Readings",
    "capture_point",
    "contact_force",
    "contact_switches",
    "depth_along",
    "ground_wrench",
    "gyro",
    "measure",
    "pressure_point",
    "sliding_per_stance",
    "specific_force",
    "support_margin",
    "support_polygon",
    "zero_moment_point",
]
