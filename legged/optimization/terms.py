"""Costs and constraints as functions of the state, controls and forces of a node, and the usual terms.

    def upright(robot, at):
        return legged.frame_pose(robot, at.q, "base").rotation[:2, 2]

    legged.optimization.Cost(upright, weight=10.0)

A term is a function of the robot and of the `Point` of a node, `at`, that returns residuals r, (n,); it may have
further named parameters. Numbers and arrays among them are inputs of the compiled code and may differ from node to
node; strings, booleans and frames are constants of it. A cost is the sum of w r^2 / 2, a constraint is r = 0 or r >= 0.
The functions are traced, so they must not branch on values, except by `legged.where`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import array, number, unit_norm_error
from legged.checked import checked
from legged.dynamics.frames import Frame, frame_pose, frame_twist
from legged.dynamics.kinematics import center_of_mass as center_of_mass_of
from legged.dynamics.kinematics import momentum
from legged.errors import ArgumentError, DefinitionError, NotFiniteError, ShapeError
from legged.robot.base import FloatingBase
from legged.robot.configuration import difference
from legged.robot.robot import Robot
from legged.rotations import quaternion_log
from legged.spatial import Array, cross


class Point(NamedTuple):
    """Time, state, controls and forces of a node: the argument `at` of terms.

    Attributes:
        t: Time at the beginning of the node, [s].
        q: Configuration, (nq,). v: Velocity, (nv,), before an impact.
        u: Controls, (nu,), [N m] or [N]; zeros at impacts and at the final node.
        forces: Force on each contact, (3,), [N], or wrench [n; f], (6,), [N m] and [N], about the contact's frame,
            world axes, by the name of the contact; impulses at an impact. Zeros for contacts that are not active.
    """

    t: Any
    q: Array
    v: Array
    u: Array
    forces: Mapping[str, Array]


Function = Callable[..., Array]


class Term:
    """A function of a `Point` with its parameters.

    Attributes:
        function: function(robot, at, **parameters) -> residuals, (n,).
        constants: Parameters that are constants of the compiled code. parameters: Parameters that are its inputs.
        form: How residuals enter the cost, see `Cost` and `Constraint`.
    """

    def __init__(self, function: Function, parameters: Mapping[str, Any]):
        """Separate the constants of a function from its numeric parameters, which are given by name in any unit."""
        if not callable(function):
            raise ArgumentError(f"the function of a term must be callable, got {function!r}")
        self.function = function
        self.constants: dict[str, Any] = {}
        self.parameters: dict[str, Array] = {}
        for name, value in parameters.items():
            if value is None or isinstance(value, str | bool | Frame):
                self.constants[name] = value
                continue
            try:
                numbers = np.array(value, dtype=float)  # a copy: later changes of the array are not those of the term
            except (TypeError, ValueError):
                words = f"must be numbers, a text or a frame, got {value!r}"
                raise ArgumentError(f"parameter {name!r} of {self.name} {words}") from None
            if not np.isfinite(numbers).all():
                raise NotFiniteError(f"parameter {name!r} of {self.name} must be finite, got {value}")
            self.parameters[name] = numbers
        if getattr(function, "__module__", "") == __name__:
            _check_parameters(self.name, self.parameters)

    @property
    def name(self) -> str:
        """Name of the function with its constants, for messages."""
        constants = ", ".join(f"{v.on if isinstance(v, Frame) else v}" for v in self.constants.values())
        return getattr(self.function, "__name__", "term") + (f"({constants})" if constants else "")

    @cached_property
    def key(self) -> tuple:
        """Key that is equal for terms with the same compiled code."""
        shapes = tuple((name, value.shape) for name, value in self.parameters.items())
        return self.function, tuple(self.constants.items()), shapes, type(self), self.form

    form: str = ""


_SHAPES = {"position": (3,), "twist": (6,), "rotation": (3, 3), "quaternion": (4,)}  # of parameters of the terms below


def _check_parameters(term: str, parameters: Mapping[str, Array]) -> None:
    """Raise an error if a parameter of a term of this module has a wrong shape, or a value that it cannot have."""
    for name, value in parameters.items():
        array(f"{name} of {term}", value, _SHAPES.get(name))
        if name == "rotation" and not np.allclose(np.linalg.det(value) * value @ value.T, np.eye(3), 0.0, 1e-6):
            raise ArgumentError(f"rotation of {term} must be a rotation matrix, got {value.tolist()}")
        if name == "quaternion" and (error := unit_norm_error(f"quaternion of {term}", value.tolist())) is not None:
            raise error
        if name in ("effort", "speed") and not (value > 0.0).all():
            raise ArgumentError(f"{name} of {term} must be more than 0, got {value}")


def _check_entries(count: int, **values: Any) -> None:
    for name, value in values.items():
        if np.shape(value) not in ((), (count,)):
            raise ShapeError(f"{name} must be a number or ({count},), an entry for each joint, got {np.shape(value)}")


@checked
class Cost(Term):
    """The cost sum of w r^2 / 2 of the residuals r of a function; multiplied by the duration of a stage.

    Attributes:
        weight: w, a number or (n,), at least 0, one over the square of the unit of r.
        form: "barrier" or "".
    """

    def __init__(self, function: Function, weight: Any = 1.0, *, barrier: bool = False, **parameters: Any):
        """Define a cost.

        Args:
            function: function(robot, at, **parameters) -> residuals, (n,).
            weight: w, a number or (n,), at least 0.
            barrier: Whether only negative residuals are penalized, the quadratic penalty of the inequality r >= 0.
            parameters: Further arguments of the function, any unit.
        """
        super().__init__(function, parameters)
        self.weight = array("weight", weight)
        self.form = "barrier" if barrier else ""
        if not (self.weight >= 0.0).all():
            raise ArgumentError(f"the weight of cost {self.name} must be at least 0 and finite, got {weight}")


@checked
class Constraint(Term):
    """The constraint r = 0, or r >= 0, of the residuals r of a function.

    Attributes:
        form: "equality" or "inequality".
        scale: A typical size of r, by which residuals are divided before they are compared with tolerances.
    """

    def __init__(self, function: Function, form: str = "equality", *, scale: float = 1.0, **parameters: Any):
        """Define a constraint.

        Args:
            function: function(robot, at, **parameters) -> residuals, (n,).
            form: "equality" for r = 0, "inequality" for r >= 0.
            scale: A typical size of r, more than 0, in its unit.
            parameters: Further arguments of the function, any unit.
        """
        super().__init__(function, parameters)
        if form not in ("equality", "inequality"):
            raise ArgumentError(f"the form of constraint {self.name} must be 'equality' or 'inequality', got {form!r}")
        number("scale", scale)
        if not scale > 0.0:
            raise ArgumentError(f"the scale of constraint {self.name} must be more than 0, got {scale}")
        self.form, self.scale = form, float(scale)


def state(robot: Robot, at: Point, q: Array, v: Array) -> Array:
    """Return the deviation from a state, (2 nv,): `legged.difference(robot, q, at.q)` and at.v - v.

    Args:
        robot: The robot. at: The node. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    return np.concatenate([difference(robot, q, at.q), at.v - v])


def control(robot: Robot, at: Point, reference: Array = 0.0) -> Array:  # type: ignore[assignment]
    """Return the controls less a reference, (nu,), [N m] or [N].

    Args:
        robot: The robot. at: The node. reference: A number or (nu,), [N m] or [N], joint axes.
    """
    return at.u - reference


def duration(robot: Robot, at: Point) -> Array:
    """Return the number one, (1,): the cost of a stage is then half of the weight times its duration.

    Args:
        robot: The robot. at: The node.
    """
    return np.ones(1)


def joint_positions(robot: Robot, at: Point, joints: Array) -> Array:
    """Return the entries of q after the base less a posture, (nj,), [rad] or [m].

    Args:
        robot: The robot. at: The node. joints: The posture, (nj,), [rad] or [m], joint axes.
    """
    return at.q[robot.base.nq :] - joints


def velocity(robot: Robot, at: Point, target: Array = 0.0) -> Array:  # type: ignore[assignment]
    """Return the velocity less a target, (nv,), [rad/s] and [m/s].

    Args:
        robot: The robot. at: The node. target: A number or (nv,), [rad/s] and [m/s], axes of v.
    """
    return at.v - target


def base_position(robot: Robot, at: Point, position: Array) -> Array:
    """Return the position of a floating base less a target, (3,), [m], world axes.

    Args:
        robot: The robot. at: The node. position: Target, (3,), [m], world axes.
    """
    return _pose(robot, at)[4:] - position


def frame_translation(robot: Robot, at: Point, frame: Any, position: Array) -> Array:
    """Return the position of a frame less a target, (3,), [m], world axes.

    Args:
        robot: The robot. at: The node. frame: Name of a link or contact, or a `legged.Frame`.
        position: Target, (3,), [m], world axes.
    """
    return frame_pose(robot, at.q, frame).position - position


def frame_rotation(robot: Robot, at: Point, frame: Any, rotation: Array) -> Array:
    """Return sin(angle) times the axis of the rotation from a target to a frame, (3,), target axes.

    Args:
        robot: The robot. at: The node. frame: As in `frame_translation`.
        rotation: Target, rotation matrix, (3, 3), frame axes to world axes.
    """
    E = rotation.T @ frame_pose(robot, at.q, frame).rotation
    return 0.5 * np.array([E[2, 1] - E[1, 2], E[0, 2] - E[2, 0], E[1, 0] - E[0, 1]])


def base_rotation(robot: Robot, at: Point, quaternion: Array) -> Array:
    """Return the rotation vector from a target to a floating base, (3,), [rad], axes of the target.

    Args:
        robot: The robot. at: The node. quaternion: Target, a unit quaternion, (4,), w first.
    """
    a, b = quaternion, _pose(robot, at)[:4]
    xyz = a[0] * b[1:] - b[0] * a[1:] - cross(a[1:], b[1:])
    return quaternion_log(np.concatenate([np.array([a @ b]), xyz]))


def _pose(robot: Robot, at: Point) -> Array:
    if not isinstance(robot.base, FloatingBase):
        raise DefinitionError(f"robot {robot.name!r} has no floating base: compare a link by a term of frames")
    return at.q[:7]


def frame_placement(robot: Robot, at: Point, frame: Any, rotation: Array, position: Array) -> Array:
    """Return `frame_rotation` and `frame_translation`, (6,), [1] and [m].

    Args:
        robot, at, frame: As in these functions. rotation: Target, rotation matrix, (3, 3), frame axes to world axes.
        position: Target, (3,), [m], world axes.
    """
    return np.concatenate([frame_rotation(robot, at, frame, rotation), frame_translation(robot, at, frame, position)])


def frame_velocity(robot: Robot, at: Point, frame: Any, twist: Array, axes: str = "world") -> Array:
    """Return the twist [omega; v] of a frame less a target, (6,), [rad/s] and [m/s].

    Args:
        robot: The robot. at: The node. frame: As in `frame_translation`.
        twist: Target, (6,), [rad/s] and [m/s], in the axes. axes: "world" or "local".
    """
    return frame_twist(robot, at.q, at.v, frame, axes) - twist


def center_of_mass(robot: Robot, at: Point, position: Array) -> Array:
    """Return the center of mass less a target, (3,), [m], world axes.

    Args:
        robot: The robot. at: The node. position: Target, (3,), [m], world axes.
    """
    return center_of_mass_of(robot, at.q) - position


def centroidal_momentum(robot: Robot, at: Point, target: Array) -> Array:
    """Return the momentum [angular about the center of mass; linear] less a target, (6,), [N m s] and [N s].

    Args:
        robot: The robot. at: The node. target: (6,), [N m s] and [N s], world axes.
    """
    return momentum(robot, at.q, at.v) - target


def friction_cone(robot: Robot, at: Point, contact: str, friction: Any) -> Array:
    """Return the margins of a contact force within a friction pyramid, (5,), [N].

        [mu f_z + f_x, mu f_z - f_x, mu f_z + f_y, mu f_z - f_y, f_z]

    f is in world axes, and the ground is horizontal.

    Args:
        robot: The robot. at: The node. contact: Name of the contact. friction: mu. The pyramid
            contains the cone of coefficient mu; for a pyramid inside of the cone, pass the coefficient over sqrt(2).
    """
    x, y, z = at.forces[contact][-3:]
    return np.array([friction * z + x, friction * z - x, friction * z + y, friction * z - y, z])


def center_of_pressure(robot: Robot, at: Point, contact: str, half_length: Any, half_width: Any) -> Array:
    """Return the margins of the center of pressure of a surface contact within a rectangle, (4,), [N m].

    Args:
        robot: The robot. at: The node. contact: Name of a surface contact, which is also that of its link or contact
            point; the sole lies in the plane of x and y of that frame.
        half_length, half_width: Half of the extent in x and y of the frame, [m].
    """
    w = at.forces[contact]
    if len(w) != 6:
        raise ShapeError(f"contact {contact!r} is a point, which has no center of pressure: give it surface=True")
    R = frame_pose(robot, at.q, contact).rotation
    n, (_, _, f) = R.T @ w[:3], R.T @ w[3:]
    return np.array([half_length * f + n[1], half_length * f - n[1], half_width * f + n[0], half_width * f - n[0]])


def joint_limits(robot: Robot, at: Point, lower: Array, upper: Array) -> Array:
    """Return the distances of the joints from their lower and upper limits, (2 nj,), [rad] or [m].

    Args:
        robot: The robot. at: The node.
        lower, upper: Limits of the entries of q after the base, (nj,), [rad] or [m], joint axes.
    """
    joints = at.q[robot.base.nq :]
    _check_entries(len(joints), lower=lower, upper=upper)
    return np.concatenate([joints - lower, upper - joints])


def velocity_limits(robot: Robot, at: Point, limit: Array) -> Array:
    """Return the distances of the joint velocities from their limits, (2 nj,), [rad/s] or [m/s].

    Args:
        robot: The robot. at: The node. limit: A number or (nj,), [rad/s] or [m/s], joint axes.
    """
    _check_entries(robot.nj, limit=limit)
    rates = at.v[robot.base.nv :]
    return np.concatenate([limit + rates, limit - rates])


def torque_limits(robot: Robot, at: Point, limit: Array) -> Array:
    """Return the distances of the controls from their limits, (2 nu,), [N m] or [N].

    Args:
        robot: The robot. at: The node. limit: A number or (nu,), [N m] or [N], joint axes.
    """
    return np.concatenate([limit + at.u, limit - at.u])


def motor_limits(robot: Robot, at: Point, effort: Array, speed: Array) -> Array:
    """Return the margins of motors whose largest torque falls linearly with speed, (2 nj,), [N m] or [N].

        [effort (1 - rate / speed) - u, effort (1 + rate / speed) + u]

    All joints must be actuated.

    Args:
        robot: The robot. at: The node. effort: Largest force at rest, (nj,), [N m] or [N], joint axes.
        speed: No-load speed, (nj,), [rad/s] or [m/s], joint axes.
    """
    _check_entries(robot.nj, effort=effort, speed=speed, controls=at.u)
    share = at.v[robot.base.nv :] / speed
    return np.concatenate([effort * (1.0 - share) - at.u, effort * (1.0 + share) + at.u])


def clearance(robot: Robot, at: Point, frame: Any, height: Any) -> Array:
    """Return the height of a frame's origin above a level, (1,), [m].

    Args:
        robot: The robot. at: The node. frame: As in `frame_translation`. height: The level, [m].
    """
    return frame_pose(robot, at.q, frame).position[2:] - height


def contact_force(robot: Robot, at: Point, contact: str, force: Array) -> Array:
    """Return the force on a contact less a reference, (3,) or (6,), [N] and [N m], world axes.

    Args:
        robot: The robot. at: The node. contact: Name of the contact.
        force: Reference, (3,) or (6,), [N] and [N m], world axes.
    """
    return at.forces[contact] - force
