"""Groups of arrays of a `Run`, histories of one joint, contact point or free body, and the model of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, FileError, LeggedError
from legged.ground.ground import Ground
from legged.robot.construction.description import describe_shape, read_shape
from legged.robot.robot import Robot
from legged.robot.shapes import Shape
from legged.rotations import euler_angles

Array = np.ndarray
GROUND = "ground"
"""Entry of `ContactRecord.against` for a contact with the ground."""
LEAST_ENERGY = 0.1
"""[J/kg], lifting the robot by 1 cm, which counts as moved in every run; see `EnergyRecord.moved`."""
FREE = -1
"""Entry of `StickFigure.modules` for a line of a free body."""


@dataclass(frozen=True, eq=False)
class BaseRecord:
    """Pose of the base over time.

    Attributes:
        position: Position of the base origin, (T, 3), [m], world axes.
        rotation: Rotation matrices from base axes to world axes, (T, 3, 3).
    """

    position: Array
    rotation: Array

    def angles(self, sequence: str = "xyz") -> Array:
        """Return the intrinsic Euler angles of the base, (T, 3), [rad]; base to world is R_1 R_2 R_3.

        The angles of the first sample are the principal ones: the first and the last between -pi and pi, the second
        between -pi/2 and pi/2, or 0 and pi if the first axis is also the last. Those of each later sample are the
        nearest to the sample before among all angles of its rotation, so that they are continuous over time: they
        count full turns, and go on through a somersault.

        Args:
            sequence: Axes of the three rotations, such as "xyz".
        """
        sampled = np.array([euler_angles(sequence, R) for R in self.rotation]).reshape(-1, 3)
        if np.abs(np.diff(sampled, axis=0)).max(initial=0.0) < 1.0:
            return sampled  # the others are 2 rad away
        offset = 0.0 if sequence[0] == sequence[2] else np.pi
        others = sampled * (1.0, -1.0, 1.0) + (np.pi, offset, np.pi)  # the same rotations
        for k in range(1, len(sampled)):
            near = [a - 2.0 * np.pi * np.round((a - sampled[k - 1]) / (2.0 * np.pi)) for a in (sampled[k], others[k])]
            sampled[k] = min(near, key=lambda angles: float(np.abs(angles - sampled[k - 1]).sum()))
        return sampled


@dataclass(frozen=True, eq=False)
class JointRecord:
    """Names of the joints, their entries of q and v, and the reference of the controller.

    Attributes:
        names: Names of the joints.
        q_range: First entry of q of each joint and the entry after its last, (joints, 2).
        v_range: The same for v and tau, (joints, 2).
        reference: Joint positions that the controller tracks, (T, nj), [rad] or [m]; (T, 0) without a reference.
    """

    names: tuple[str, ...]
    q_range: Array
    v_range: Array
    reference: Array

    @staticmethod
    def of(robot: Robot, reference: Array) -> JointRecord:
        """Return the record of a robot's joints.

        Args:
            robot: The robot.
            reference: Joint positions that the controller tracks, (T, nj), [rad] or [m], joint axes, or (T, 0).
        """
        ranges = [[(part.start, part.stop) for part in (joint.q, joint.v)] for joint in robot.joints]
        q_range, v_range = np.array(ranges, dtype=int).reshape(-1, 2, 2).transpose(1, 0, 2)
        return JointRecord(tuple(joint.name for joint in robot.joints), q_range, v_range, reference)


@dataclass(frozen=True, eq=False)
class ContactRecord:
    """Contact points and contact forces over time, world axes.

    Attributes:
        names: Names of the contacts.
        on: Link or free body that carries each contact.
        against: Link or free body that it touches, or `GROUND`.
        points: Positions of the contact points, (T, n, 3), [m].
        forces: Forces on them, (T, n, 3), [N]; on a rigid ground `impulse` over the time since the sample before.
        impulse: Impulses on them since the sample before, (T, n, 3), [N s], zero at the first sample: the sum over the
            time steps, which changes the momentum.
        peak: Largest force on each since the start, (T, n), [N]: the largest impulse of a time step over its length;
            with `BDF` the largest force at the ends of the solver's steps.
        first_touch, last_touch: Times of the first and of the last force on each, (n,), [s], in the middle of their
            time steps; NaN without one.
        residual: Violation of the rigid contact law by velocities, (T,), [m/s]: the mean over the time steps since the
            sample before; zeros for a compliant ground. See `legged.contact.impulses.solver.natural_map_residual`.
        worst_residual: The largest violation in a time step since the start, (T,), [m/s].
        memory: Internal state of the ground model, (T, g).
    """

    names: tuple[str, ...]
    on: tuple[str, ...]
    against: tuple[str, ...]
    points: Array
    forces: Array
    impulse: Array
    peak: Array
    first_touch: Array
    last_touch: Array
    residual: Array
    worst_residual: Array
    memory: Array


@dataclass(frozen=True, eq=False)
class EnergyRecord:
    """Energies of robot and free bodies, and the work done on them since the start; each (T,), [J].

    Attributes:
        kinetic, potential: Kinetic and potential energy.
        actuator_work: Work of the controller's generalized forces.
        contact_work: Work of all contact forces.
        push_work: Work of the pushes.
        joint_work: Work of friction, dampers and stops of the joints.

    All work, `balance` and `drift` are NaN for a recorded motion (`Run.from_motion`), whose forces are unknown.
    """

    kinetic: Array
    potential: Array
    actuator_work: Array
    contact_work: Array
    push_work: Array
    joint_work: Array

    @property
    def balance(self) -> Array:
        """Kinetic and potential energy minus all work, (T,), [J]: constant but for the error of the integration."""
        return (
            self.kinetic + self.potential - (self.actuator_work + self.contact_work + self.push_work + self.joint_work)
        )

    @property
    def moved(self) -> float:
        """Energy that the run moves, [J]: the largest kinetic energy, and each work without regard to signs."""
        works = (self.actuator_work, self.contact_work, self.push_work, self.joint_work)
        return float(self.kinetic.max()) + sum(float(np.abs(np.diff(work)).sum()) for work in works)

    @property
    def drift(self) -> float:
        """Largest difference between `balance` and its initial value, [J]."""
        return float(np.abs(self.balance - self.balance[0]).max())


@dataclass(frozen=True, eq=False)
class BodyRecord:
    """States of the free bodies over time.

    Attributes:
        names: Names of the bodies.
        q: Unit quaternions (w first, body to world) and positions [m] in the world, (T, bodies, 7).
        v: Angular [rad/s] and linear [m/s] velocities in the axes of each body, (T, bodies, 6).
    """

    names: tuple[str, ...]
    q: Array
    v: Array


@dataclass(frozen=True, eq=False)
class GroundRecord:
    """Shape of the ground near the run, for drawing, and its mean normal.

    Attributes:
        lines: Polylines on the ground, (n, k, 3), [m], world; the first is the profile along x; n = 0 without ground.
        normal: Mean unit normal of the ground, (3,), world.
        surface: Grid of points on the ground, (a, b, 3), [m], world: two by two for a plane, a = b = 0 without ground
            and in files of older versions.
    """

    lines: Array
    normal: Array
    surface: Array = field(default_factory=lambda: np.zeros((0, 0, 3)))


@dataclass(frozen=True, eq=False)
class StickFigure:
    """Stick figures of the robot and, after it, of the free bodies.

    Attributes:
        nodes: Positions of the nodes, (T, k, 3), [m], world.
        edges: Pairs of nodes joined by a line, (e, 2).
        modules: Kinematic module of each line, (e,), or `FREE`.
        is_shape: Whether a line is part of a shape, (e,); false for all lines of files of older versions.
    """

    nodes: Array
    edges: Array
    modules: Array
    is_shape: Array

    @property
    def robot_nodes(self) -> Array:
        """Nodes of the robot alone, (T, k, 3), [m], world."""
        free = self.edges[self.modules == FREE]
        return self.nodes[:, : free.min()] if free.size else self.nodes


class RecordedAccelerations(NamedTuple):
    """The accelerations of a run that has been stored; see `Accelerations`.

    Attributes:
        vdot: Accelerations under all forces, (T, nv), mixed units; NaN where the equations have no solution.
    """

    vdot: Array


class RecordedPicture(NamedTuple):
    """The stick figures and the ground of a run that has been stored; see `Picture`.

    Attributes:
        figure: Stick figures. ground: Shape of the ground.
    """

    figure: StickFigure
    ground: GroundRecord


class JointHistory(NamedTuple):
    """Motion of one joint; each array is (T,), or (T, n) for a joint with several coordinates.

    Attributes:
        position: Entries of q, [rad] or [m].
        velocity: Entries of v, [rad/s] or [m/s].
        torque: Entries of tau, [N m] or [N].
        reference: Position that the controller tracks, [rad] or [m]; None without a reference.
    """

    position: Array
    velocity: Array
    torque: Array
    reference: Array | None


class ContactHistory(NamedTuple):
    """Motion of one contact point and the forces on it, world axes; see `ContactRecord`.

    Attributes:
        position: Its position, (T, 3), [m].
        force: Force on it, (T, 3), [N].
        impulse: Impulse on it since the sample before, (T, 3), [N s].
        peak: Largest force since the start, (T,), [N].
        first_touch, last_touch: Times of the first and of the last force, [s]; NaN without one.
    """

    position: Array
    force: Array
    impulse: Array
    peak: Array
    first_touch: float
    last_touch: float


class BodyHistory(NamedTuple):
    """Motion of one free body, world axes.

    Attributes:
        position: Position of its origin, (T, 3), [m].
        rotation: Rotation matrices from body axes to world axes, (T, 3, 3).
        velocity: Velocity of its origin, (T, 3), [m/s].
        spin: Angular velocity, (T, 3), [rad/s].
    """

    position: Array
    rotation: Array
    velocity: Array
    spin: Array


@dataclass(frozen=True, eq=False)
class ModelRecord:
    """The robot and the surroundings of a run.

    Attributes:
        robot: The robot.
        source: Path of the file that the robot was loaded from, as it was given; "" for a robot built in code.
        bodies: Name of each free body -> its shapes, body axes.
        obstacles: Fixed shapes, world axes.
        friction: Coulomb friction coefficient of the ground; 0 without ground.
    """

    robot: Robot
    source: str
    bodies: dict[str, tuple[Shape, ...]]
    obstacles: tuple[Shape, ...]
    friction: float

    @staticmethod
    def of(robot: Robot, ground: Ground | Rigid | None = None, bodies: Sequence[FreeBody] = ()) -> ModelRecord:
        """Return the record of a robot on a ground beside free bodies.

        Args:
            robot: The robot. ground: The ground. bodies: Free bodies.
        """
        obstacles: tuple[Shape, ...] = ()
        if isinstance(ground, Rigid):
            friction, obstacles = ground.friction, tuple(shape for _, shape in ground.obstacles)
        else:
            friction = float(getattr(ground.friction, "coefficient", 0.0)) if ground is not None else 0.0
        shapes = {body.name: tuple(body.shapes) for body in bodies}
        return ModelRecord(robot, getattr(robot.audit, "source", ""), shapes, obstacles, friction)

    def joint_unit(self, name: str) -> str:
        """Return the unit of all coordinates of a joint: "rad" or "m"; "mixed units" for others, such as quaternions.

        Args:
            name: Name of the joint.
        """
        kinds = {stage.kind for stage in self.robot.joint(name).definition.stages}
        if kinds == {"prismatic"}:
            return "m"
        return "rad" if kinds and kinds <= {"revolute", "screw"} else "mixed units"

    def to_json(self) -> str:
        """Return the record as JSON; "" if the robot has joints or a base of a user's own class."""
        try:
            robot = self.robot.describe()
        except DefinitionError:
            return ""
        bodies = {name: [describe_shape(shape) for shape in shapes] for name, shapes in self.bodies.items()}
        data: dict[str, Any] = {"robot": robot, "source": self.source, "bodies": bodies, "friction": self.friction}
        data["obstacles"] = [describe_shape(shape) for shape in self.obstacles]
        return json.dumps(data)

    @staticmethod
    def from_json(text: str, path: str | Path) -> ModelRecord | None:
        """Return the record in a text that `to_json` returned; None for "".

        Args:
            text: The text. path: The file that it was read from, for messages.

        Raises:
            FileError: The text is damaged.
        """
        if not text:
            return None
        try:
            data = json.loads(text)
            bodies = {
                str(name): tuple(read_shape(f"body {name!r}", shape) for shape in shapes)
                for name, shapes in data["bodies"].items()
            }
            obstacles = tuple(read_shape("an obstacle", shape) for shape in data["obstacles"])
            robot = Robot.from_description(data["robot"])
            return ModelRecord(robot, str(data["source"]), bodies, obstacles, float(data["friction"]))
        except (LeggedError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise FileError(str(path), f"is a damaged run: its model cannot be read: {error}") from error


GROUPS: dict[str, Any] = {
    "base": BaseRecord,
    "joints": JointRecord,
    "contacts": ContactRecord,
    "energy": EnergyRecord,
    "bodies": BodyRecord,
    "ground": GroundRecord,
    "figure": StickFigure,
}
"""The groups of fields of a run, by their names; see `run_files.FIELDS`."""
