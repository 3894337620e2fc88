"""A quadruped on three feet that presses with the fourth on a wall while its trunk sways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers import FaceContact, HybridControl, PointTask, PoseTask, Stand
from legged import InverseKinematics, Robot, Run, SemiImplicitEuler, point_positions, simulate
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.ground import Ground, realistic_ground
from legged.ground.normal import KelvinVoigt
from legged.spatial import Array
from robots import spatial_quadruped

STANDING, PRESSING = ("leg1_foot", "leg2_foot", "leg3_foot"), "leg4_foot"
"""Contact points that stand, and the one that presses."""
WALL = 0.72
"""Distance of the wall, [m], world x."""
FORCE = 20.0
"""Desired force on the wall, [N]."""
_SHANK, _SOLE = "leg4_shank", (0.0, 0.0, -0.3)
_CENTER = np.array([-0.14, -0.11, 0.45])  # of the sway, [m], above the triangle of the standing feet


@checked
@dataclass(frozen=True)
class FloorAndWall(Ground):
    """A compliant floor and a smooth vertical wall of linear stiffness and damping.

    Attributes:
        wall: Distance of the wall, [m], world x. stiffness: [N/m]. damping: [N s/m].
    """

    wall: float = WALL
    stiffness: float = 2e4
    damping: float = 200.0

    def forces(self, points: Array, velocities: Array, memory: Array | None = None) -> tuple[Array, Array]:
        """Return the forces of floor and wall, (..., n, 3), [N], world axes, and the rate of the memory, (..., m).

        Args:
            points, velocities, memory: As in `Ground.forces`.
        """
        forces, rate = super().forces(points, velocities, memory)
        press = KelvinVoigt(self.stiffness, self.damping).force(points[..., 0] - self.wall, velocities[..., 0])
        return forces + np.stack([-press, 0.0 * press, 0.0 * press], axis=-1), rate


def trunk_position(t: Any) -> Array:
    """Return the desired position of the trunk, (3,), [m], world axes.

    Args:
        t: Time, [s].
    """
    return _CENTER + _grown(t) * np.stack([0.03 * np.sin(3.0 * t), 0.03 * np.sin(2.0 * t), 0.02 * np.sin(4.0 * t)])


def trunk_angles(t: Any) -> Array:
    """Return the desired roll, pitch and yaw of the trunk, (3,), [rad].

    Args:
        t: Time, [s].
    """
    return _grown(t) * np.stack([0.06 * np.sin(2.5 * t), 0.05 * np.sin(3.5 * t), 0.05 * np.sin(1.5 * t)])


def wall_force(t: Any) -> Any:
    """Return the desired force on the wall, [N], which grows to 20 N.

    Args:
        t: Time, [s].
    """
    return FORCE * _grown(t)


def _grown(t: Any) -> Any:
    return 1.0 - np.exp(-4.0 * t * t)


def wall_run(duration: float = 3.0, step: float = 4e-4) -> Run:
    """Return the run of the quadruped at the wall.

    The law has some ten thousand operations and is compiled by itself: a kernel of the whole loop takes long to make.

    Args:
        duration: [s]. step: Time step, [s].
    """
    robot = spatial_quadruped()
    stand = Stand(hip_height=0.45)
    q, held = _start(robot, stand)
    law = HybridControl(
        stand,
        tasks=(PoseTask("trunk", trunk_position, trunk_angles), PointTask(_SHANK, lambda t: held + 0.0 * t, _SOLE)),
        standing=STANDING,
        contacts=(FaceContact(_SHANK, _SOLE, (-1.0, 0.0, 0.0), wall_force),),
    )
    floor = realistic_ground(robot)
    ground = FloorAndWall(floor.normal, floor.friction, floor.terrain, floor.note)
    v = np.zeros(robot.nv)
    started, memory = law.start(robot, ground, q, v)
    none = np.zeros((len(robot.links), 6))
    torques = compile_function(lambda _, t, q, v: started.torque(t, 0, q, v, none, memory), robot, t=())
    options = {"until": duration, "sample": 0.02, "q": q, "v": v, "ground": ground}
    return simulate(robot, lambda t, q, v, wrenches: torques(t, q, v), integrator=SemiImplicitEuler(step), **options)


def _start(robot: Robot, stand: Stand) -> tuple[Array, Array]:
    """Return q with three feet on the floor and one at the wall, and the position of the latter, (3,), [m]."""
    q, _ = stand.on(robot).initial_state(robot)
    points = [(robot.contact(name).link, robot.contact(name).position) for name in (*STANDING, PRESSING)]
    feet = point_positions(robot, q, points)
    held = np.array([WALL, feet[3, 1], 0.28])
    q[-3:] = 0.4, 1.9, -1.65  # near the posture of the raised leg
    targets = dict(zip(STANDING, feet[:3], strict=True)) | {PRESSING: held, "trunk": (np.eye(3), _CENTER)}
    kinds = {name: "pose" if name == "trunk" else "position" for name in targets}
    q = InverseKinematics(robot, kinds).solve(q, targets, tolerance=1e-9).q
    return q, held
