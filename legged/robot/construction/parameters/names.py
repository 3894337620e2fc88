"""`parameters`: the numbers of a robot by name; `ParameterVector`: some of them as one vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.arguments import known_name
from legged.errors import DefinitionError
from legged.robot.base import MovingBase
from legged.robot.construction.parameters.checks import LARGEST, LEAST, check_parameters
from legged.robot.joint import Fixed, Joint
from legged.robot.physics import NUMBERS
from legged.robot.robot import Robot
from legged.spatial import Array

INERTIAL_FIELDS = ("mass", "center", "tensor")
"""Parameters of a link: fields of `Inertia`."""
ROTOR_FIELDS = {"rotor_inertia": "inertia", "gear": "gear"}
"""Parameter of a joint -> field of its `Rotor`."""


def parameters(robot: Robot) -> dict[str, Any]:
    """Return the numbers of a robot that can vary: name -> present value, a number or an array, (...).

    | name | meaning |
    | --- | --- |
    | `<link>.mass` | mass, [kg]; alone it scales the inertia tensor, as for another density |
    | `<link>.center` | link origin to center of mass, (3,), [m], link axes |
    | `<link>.tensor` | inertia about the center of mass, (3, 3), [kg m^2], link axes |
    | `<joint>.at` | parent link's origin to the joint, (3,), [m], parent link axes; fixed joints too |
    | `<joint>.damping`, ... | numbers of `JointPhysics`: damping, friction, armature, stiffness, rest, lower, |
    | | upper, effort, speed, stop_stiffness, restitution; one number, or (nv of the joint,) |
    | `<joint>.rotor_inertia` | inertia of the joint's `Rotor` about its axis, [kg m^2]; only joints that have one |
    | `<joint>.gear` | gear ratio of that rotor, rotor speed over joint speed |
    | `base.armature`, `base.damping` | armature and damping of a base that moves, see `FloatingBase`; not in a robot |
    | | with a joint named "base", whose numbers have these names |
    | `<contact>.position` | link origin to the contact point, (3,), [m], link axes |
    | `gravity` | acceleration of free fall, (3,), [m/s^2], world axes |

    Args:
        robot: The robot.
    """
    numbers: dict[str, Any] = {}
    for link in robot.links:
        numbers |= {f"{link.name}.{field}": getattr(link.inertia, field) for field in INERTIAL_FIELDS}
    followers = {joint.name for joint in robot.followers}
    for connection in robot.connections:
        joint = connection.joint
        numbers[f"{joint.name}.at"] = connection.start.position
        for field in _physics_fields(joint, joint.name in followers):
            numbers[f"{joint.name}.{field}"] = getattr(joint.physics, field)
        rotor = None if isinstance(joint, Fixed) else joint.physics.rotor
        if rotor is not None:
            numbers |= {f"{joint.name}.{name}": getattr(rotor, field) for name, field in ROTOR_FIELDS.items()}
    numbers |= {f"base.{field}": getattr(robot.base, field) for field in base_fields(robot)}
    numbers |= {f"{contact.name}.position": contact.position for contact in robot.contacts}
    numbers["gravity"] = robot.gravity
    return {name: float(value) if np.ndim(value) == 0 else np.array(value, float) for name, value in numbers.items()}


def base_fields(robot: Robot) -> tuple[str, ...]:
    """Return the names of the numbers of the base that can vary; none beside a joint that is named "base".

    Args:
        robot: The robot.
    """
    is_free_name = all(connection.joint.name != "base" for connection in robot.connections)
    return ("armature", "damping") if is_free_name and isinstance(robot.base, MovingBase) else ()


def _physics_fields(joint: Joint, follows: bool) -> list[str]:
    """Return the numbers of a joint's physics that can vary.

    Args:
        joint: The joint. follows: Whether it follows another one, its master.
    """
    if isinstance(joint, Fixed):
        return []
    without = set[str]()
    if joint.has_quaternion:  # has no stops, and armature and stiffness only if they are one number for all axes
        without |= {"lower", "upper", "stop_stiffness", "restitution"}
        without |= {field for field in ("armature", "stiffness") if np.ndim(getattr(joint.physics, field))}
    if follows:  # its master has the motor
        without |= {"effort", "speed"}
    return [field for field in NUMBERS if field not in without]


class ParameterVector:
    """Some parameters of a robot as one vector of numbers, their entries one after the other.

    Args:
        robot: The robot. names: Names of the parameters.

    Attributes:
        robot: The robot. names: Names of the parameters. size: Number of entries, n.

    Raises:
        UnknownNameError: For an unknown name. DefinitionError: For a name that occurs twice.
    """

    def __init__(self, robot: Robot, names: Sequence[str]):
        known = parameters(robot)
        for name in names:
            known_name("robot parameter", name, known)
            if list(names).count(name) > 1:
                raise DefinitionError(f"parameter {name!r} is given twice")
        self.robot, self.names = robot, tuple(names)
        self._shapes = [np.shape(known[name]) for name in names]
        self.size = sum(map(math.prod, self._shapes))
        fields = [name.rpartition(".")[2] for name in names]
        least = [LEAST.get(field, -LARGEST) for field in fields]
        self._least = np.repeat(least, [math.prod(shape) for shape in self._shapes])  # of each entry
        self._has_ranges_only = not {"tensor", "lower", "upper"}.intersection(fields)  # which have further conditions

    def values(self, numbers: Array) -> dict[str, Array]:
        """Return name -> values, (..., *shape), mixed units and frames.

        Args:
            numbers: Entries of all parameters, (..., n), mixed units and frames.
        """
        by_name, start = {}, 0
        for name, shape in zip(self.names, self._shapes, strict=True):
            size = math.prod(shape)
            by_name[name] = numbers[..., start : start + size].reshape(numbers.shape[:-1] + shape)
            start += size
        return by_name

    def check(self, numbers: Array) -> None:
        """Raise an error if the robot cannot have these parameters; see `check_parameters`.

        Args:
            numbers: Entries of all parameters, (..., n), mixed units and frames.
        """
        in_range = ((numbers >= self._least) & (numbers <= LARGEST)).all()
        if not (in_range and self._has_ranges_only):
            check_parameters(self.robot, self.values(numbers))

    def applied(self, numbers: Array) -> Robot:
        """Return the robot with these parameters, which may be traced; see `legged.Robot.with_parameters`.

        Args:
            numbers: Entries of all parameters, (n,), mixed units and frames.
        """
        return self.robot.with_parameters(self.values(numbers))
