"""Scenes of hybrid control: a gantry on a vibrating plate, an arm on two faces, and a quadruped at a wall."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from controllers import FaceContact, HybridControl, PointTask, PoseTask, Posture, Stand
from legged import (
    Fixed,
    FixedBase,
    InverseKinematics,
    JointPhysics,
    Link,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Run,
    RungeKutta4,
    SemiImplicitEuler,
    box_inertia,
    loops,
    point_mass,
    point_positions,
    simulate,
)
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.ground import Ground, realistic_ground
from legged.ground.normal import KelvinVoigt
from legged.loops import ClosedRobot
from legged.rotations import euler_matrix
from legged.spatial import Array
from robots import spatial_quadruped

FLOOR_TIP, WALL_TIP = (0.0, 0.06, -0.15), (0.14, -0.08, -0.02)
"""The vertices of the tool, [m], tool axes."""
FLOOR, WALL = 0.25, 0.62
"""Height of the floor and distance of the wall, [m]."""
PLATE_MASS, PLATE_STIFFNESS, PLATE_DAMPING = 2.0, 2e4, 60.0
"""Of the plates that carry the faces, [kg], [N/m], [N s/m]."""
START = (0.0, -0.4, 1.5, 0.0, 0.47, 0.0)
"""Joint angles of the posture, from which inverse kinematics starts, [rad]."""


def six_axis_arm(plates: tuple[float, float] | None = None) -> Robot:
    """Return an arm with six joints and a tool with two vertices.

    Args:
        plates: Contact forces, [N], under which two plates are at rest; the plates are further links, on springs. None
            for no plates.
    """
    builder = RobotBuilder("arm", Link("ground", box_inertia(10.0, (0.3, 0.3, 0.1))), base=FixedBase())
    parts = (
        ("pivot", "z", (0.0, 0.0, 0.3), 4.0, (0.15, 0.15, 0.2), (0.0, 0.0, 0.05)),
        ("upper", "y", (0.0, 0.0, 0.15), 5.0, (0.1, 0.1, 0.4), (0.0, 0.03, 0.2)),
        ("lower", "y", (0.0, 0.0, 0.4), 3.0, (0.08, 0.08, 0.35), (0.0, -0.02, 0.18)),
        ("roll", "z", (0.0, 0.0, 0.36), 1.0, (0.06, 0.06, 0.08), (0.0, 0.0, 0.02)),
        ("pitch", "y", (0.0, 0.0, 0.06), 0.8, (0.05, 0.06, 0.06), (0.01, 0.0, 0.0)),
        ("yaw", "x", (0.05, 0.0, 0.0), 0.5, (0.05, 0.05, 0.05), (0.0, 0.01, 0.0)),
    )
    parent = "ground"
    for name, axis, at, mass, size, center in parts:
        link = "hand" if name == "yaw" else name
        builder.add(Revolute(name, axis), Link(link, box_inertia(mass, size, center)), to=parent, at=at)
        parent = link
    tips = {"floor tip": FLOOR_TIP, "wall tip": WALL_TIP}
    tool = Link("tool", box_inertia(0.6, (0.14, 0.14, 0.15), (0.04, -0.01, -0.05)), tips)
    builder.add(Fixed("grip"), tool, to="hand")
    for name, axis, force, at, size in (
        ("floor", "z", (plates or (0.0, 0.0))[0] + PLATE_MASS * 9.81, (0.5, 0.0, FLOOR), (0.4, 0.4, 0.02)),
        ("wall", "-x", (plates or (0.0, 0.0))[1], (WALL, 0.0, 0.3), (0.02, 0.4, 0.4)),
    ):
        if plates is not None:
            spring = JointPhysics(stiffness=PLATE_STIFFNESS, damping=PLATE_DAMPING, rest=force / PLATE_STIFFNESS)
            plate = Link(name, box_inertia(PLATE_MASS, size))
            builder.add(Prismatic(f"{name} spring", axis, physics=spring), plate, to="ground", at=at)
    return builder.build()


def arm_on_faces(robot: Robot) -> ClosedRobot:
    """Return the arm with both vertices on their faces: plates if the robot has them, or else fixed planes.

    Args:
        robot: The arm, as `six_axis_arm` returns it.
    """
    closed = ClosedRobot(robot, (), ())
    on_plates = any(link.name == "floor" for link in robot.links)
    for name, normal, tip, at in (
        ("floor", (0.0, 0.0, 1.0), FLOOR_TIP, (0.5, 0.0, FLOOR)),
        ("wall", (-1.0, 0.0, 0.0), WALL_TIP, (WALL, 0.0, 0.3)),
    ):
        face = loops.Sliding(f"{name} contact", normal)
        place = (0.0, 0.0, 0.0) if on_plates else at
        closed = closed.close(face, parent=name if on_plates else None, child="tool", at=place, child_at=tip)
    return closed


def tool_angles(t: Any) -> Array:
    """Return roll, pitch and yaw of the tool, (3,), [rad], which start at rest.

    Args:
        t: Time, [s].
    """
    return np.stack([0.25 * _swing(t, 1.1), 0.2 * _swing(t, 1.7), 0.35 * _swing(t, 0.8)])


def tool_position(t: Any) -> Array:
    """Return the position of the tool, (3,), [m], world axes, with both vertices on their faces.

    Args:
        t: Time, [s].
    """
    roll, pitch, yaw = tool_angles(t)
    R = euler_matrix("zyx", np.array([yaw, pitch, roll]))
    along = 0.1 * _swing(t, 1.3)
    return np.stack([WALL - (R @ np.array(WALL_TIP))[0], along, FLOOR - (R @ np.array(FLOOR_TIP))[2]])


def _swing(t: Any, frequency: float) -> Any:
    """Return a motion between 0 and 1 that starts at rest with little acceleration."""
    s = np.sin(np.pi * frequency * t)
    return s * s * s * s


def floor_force(t: Any) -> Any:
    """Return the desired force of the floor, [N], which starts at 15 N."""
    return 15.0 + 8.0 * np.sin(4.0 * t) ** 2


def wall_force(t: Any) -> Any:
    """Return the desired force of the wall, [N], which starts at 10 N."""
    return 10.0 + 5.0 * np.sin(6.0 * t) ** 2


def tool_control(measured: bool = False) -> HybridControl:
    """Return the control of the tool: its orientation and position along y, and the forces of both faces.

    Args:
        measured: As in `HybridControl`.
    """
    return HybridControl(
        Posture(START),
        tasks=(PoseTask("tool", tool_position, tool_angles),),
        contacts=(
            FaceContact("tool", FLOOR_TIP, (0.0, 0.0, 1.0), floor_force),
            FaceContact("tool", WALL_TIP, (-1.0, 0.0, 0.0), wall_force),
        ),
        measured=measured,
    )


def first_configuration() -> Array:
    """Return the joint angles of the arm, (6,), [rad], on the path of the tool at t = 0."""
    arm = six_axis_arm()
    target = np.eye(3), tool_position(0.0)
    return InverseKinematics(arm, {"tool": "pose"}).solve(np.array(START), {"tool": target}, tolerance=1e-11).q


@dataclass(frozen=True, eq=False)
class ControlBesidePlates:
    """The control of a robot beside plates that motors shake; the law of the robot does not model the plates.

    Attributes:
        law: The law of the robot.
        shaking: Function of the time, [s], that returns the forces of the plates' motors, (plates,), [N].
        robot: The robot without plates.
    """

    law: HybridControl
    shaking: Callable[[Any], Any]
    robot: Robot

    def start(self, robot: Robot, ground: None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (this controller with its law started, memory); arguments as in `Controller.start`."""
        n = self.robot.nv
        law, memory = self.law.start(self.robot, None, q[:n], v[:n])
        return replace(self, law=law), memory

    @property
    def has_update(self) -> bool:
        """Whether the law has an update."""
        return self.law.has_update

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the forces of robot and plates, (nv,); arguments as in `Controller.torque`."""
        n = self.robot.nv
        return np.concatenate([self.law.torque(t, phase, q[:n], v[:n], wrenches, memory), self.shaking(t)])

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory at the start of a step, (m,); arguments as in `Controller.update`."""
        n = self.robot.nv
        return self.law.update(t, phase, q[:n], v[:n], wrenches, memory)


GANTRY_FORCE = 12.0
"""Desired force of the face on the tip of the gantry, [N]."""


def gantry(plate: bool = False) -> Robot:
    """Return three sliders in series with skew axes; the last one has a tip.

    Args:
        plate: Whether a plate on a spring is added below the tip.
    """
    builder = RobotBuilder("gantry", Link("frame", point_mass(1.0)), base=FixedBase())
    parent = "frame"
    for name, axis, mass in (("beam", "x", 3.0), ("slide", (0.6, 0.8, 0.0), 2.0), ("tip", (0.48, 0.36, 0.8), 1.0)):
        builder.add(Prismatic(f"{name} axis", axis), Link(name, point_mass(mass)), to=parent)
        parent = name
    if plate:
        spring = JointPhysics(stiffness=5e3, damping=20.0, rest=(PLATE_MASS * 9.81 + GANTRY_FORCE) / 5e3)
        builder.add(Prismatic("spring", "z", physics=spring), Link("plate", point_mass(PLATE_MASS)), to="frame")
    return builder.build()


def gantry_path(t: Any) -> Array:
    """Return the path of the tip on a face at rest, (3,), [m], world axes.

    Args:
        t: Time, [s].
    """
    s = np.sin(2.0 * t)
    return np.stack([0.1 * s * s, -0.05 * s * s * s, 0.0 * t])


def gantry_run(measured: bool = False, step: float = 1e-3, shaking: float = 8.0) -> tuple[ClosedRobot, Run]:
    """Return the gantry on its plate and a run of 0.5 s in which it follows its path and presses on the plate.

    Args:
        measured: As in `HybridControl`.
        step: Time step, [s].
        shaking: Amplitude of the motor that shakes the plate at 60 rad/s, [N].
    """
    closed = loops.close(gantry(True), loops.Sliding("contact"), parent="plate", child="tip")
    face = FaceContact("tip", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), GANTRY_FORCE)
    law = HybridControl(Posture((0.0, 0.0, 0.0)), (PointTask("tip", gantry_path),), contacts=(face,), measured=measured)
    control = ControlBesidePlates(law, lambda t: np.stack([shaking * np.sin(60.0 * t)]), gantry())
    zero, integrator = np.zeros(4), RungeKutta4(step)
    return closed, simulate(closed, control, until=0.5, q=zero, v=zero, integrator=integrator, sample=5e-3)


STANDING, PRESSING = ("leg1_foot", "leg2_foot", "leg3_foot"), "leg4_foot"
"""Contact points that stand, and the one that presses."""
QUADRUPED_WALL = 0.72
"""Distance of the quadruped's wall, [m], world x."""
PRESSING_FORCE = 20.0
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

    wall: float = QUADRUPED_WALL
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


def pressing_force(t: Any) -> Any:
    """Return the desired force on the wall, [N], which grows to 20 N.

    Args:
        t: Time, [s].
    """
    return PRESSING_FORCE * _grown(t)


def _grown(t: Any) -> Any:
    """Return a factor that grows from 0 to 1 and starts at rest, for a time t, [s]."""
    return 1.0 - np.exp(-4.0 * t * t)


def quadruped_run(duration: float = 3.0, step: float = 4e-4) -> Run:
    """Return the run of the quadruped at the wall.

    The law has some ten thousand operations and is compiled alone, since a kernel of the whole loop compiles slowly.

    Args:
        duration: [s]. step: Time step, [s].
    """
    robot = spatial_quadruped()
    stand = Stand(hip_height=0.45)
    q, held = _standing_start(robot, stand)
    law = HybridControl(
        stand,
        tasks=(PoseTask("trunk", trunk_position, trunk_angles), PointTask(_SHANK, lambda t: held + 0.0 * t, _SOLE)),
        standing=STANDING,
        contacts=(FaceContact(_SHANK, _SOLE, (-1.0, 0.0, 0.0), pressing_force),),
    )
    floor = realistic_ground(robot)
    ground = FloorAndWall(floor.normal, floor.friction, floor.terrain, floor.note)
    v = np.zeros(robot.nv)
    started, memory = law.start(robot, ground, q, v)
    none = np.zeros((len(robot.links), 6))
    torques = compile_function(lambda _, t, q, v: started.torque(t, 0, q, v, none, memory), robot, t=())
    options = {"until": duration, "sample": 0.02, "q": q, "v": v, "ground": ground}
    return simulate(robot, lambda t, q, v, wrenches: torques(t, q, v), integrator=SemiImplicitEuler(step), **options)


def _standing_start(robot: Robot, stand: Stand) -> tuple[Array, Array]:
    """Return q with three feet on the floor and one at the wall, and the position of the latter, (3,), [m]."""
    q, _ = stand.on(robot).initial_state(robot)
    points = [(robot.contact(name).link, robot.contact(name).position) for name in (*STANDING, PRESSING)]
    feet = point_positions(robot, q, points)
    held = np.array([QUADRUPED_WALL, feet[3, 1], 0.28])
    q[-3:] = 0.4, 1.9, -1.65  # near the posture of the raised leg
    targets = dict(zip(STANDING, feet[:3], strict=True)) | {PRESSING: held, "trunk": (np.eye(3), _CENTER)}
    kinds = {name: "pose" if name == "trunk" else "position" for name in targets}
    q = InverseKinematics(robot, kinds).solve(q, targets, tolerance=1e-9).q
    return q, held
