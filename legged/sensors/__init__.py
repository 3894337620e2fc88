"""What legged robots sense: inertial units, foot contacts, and where they stand on their feet.

Functions of one state (`gyro`, `specific_force`, `contact_force`, `zero_moment_point`, `capture_point`) are plain NumPy
that controllers can call and `legged.compile` takes; `measure` reads everything along a run.
"""

from legged.sensors.contact import contact_force, contact_switches, ground_wrench
from legged.sensors.imu import gyro, specific_force
from legged.sensors.measure import Readings, measure
from legged.sensors.noise import Noise
from legged.sensors.points import capture_point, pressure_point, zero_moment_point
from legged.sensors.sliding import sliding_per_stance
from legged.sensors.support import support_margin, support_polygon

__all__ = [
    "Noise",
    "Readings",
    "capture_point",
    "contact_force",
    "contact_switches",
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
