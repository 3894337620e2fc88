"""`lifted`: a robot whose constants are numbers of another type than float64, such as numbers of fifty digits.

An algorithm that receives such numbers (`legged.elements`, where a type of numbers is a `Field` and its numbers are
`Element` objects) computes with the robot that `Robot.__lift__` gets from `lifted`.

The constants of a robot are floats, which the numbers of other types take as exact. Some of them are not exact: the
rotations between frames are orthonormal to rounding only, inertia tensors are symmetric to rounding only, and the
regrouped moments of mass (`body.regroup`) are sums. Algorithms use different ones of them, so that with more digits
they would agree to the rounding of floats only. In a lifted robot the tensors are symmetric, the sums are computed in
the numbers' own arithmetic, and the rotations are orthonormal without roots: a rotation matrix is computed from a
quaternion of any length, a cosine and a sine from any two numbers in the direction of the half angle.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from legged.elements import Element, Field
from legged.robot.body import Body, regroup
from legged.robot.link import PlacedLink
from legged.robot.physics import JointPhysics, unchecked
from legged.robot.stages.moments import Moments
from legged.rotations import quaternion_of
from legged.spatial import Array, AxisRotation, ElementaryTransform, Rotation, Translation, is_zero, mirror

R = TypeVar("R", bound=Any)
_LIFTED: weakref.WeakKeyDictionary[Any, dict[tuple[Field, int], Any]] = weakref.WeakKeyDictionary()
"""Robot -> (type of the numbers, its digits) -> lifted robot."""


def lifted(robot: R, field: Field) -> R:
    """Return the robot with numbers of a field as constants; the same object for the same precision.

    Args:
        robot: The robot. field: The type of the numbers.
    """
    by_field = _LIFTED.setdefault(robot, {})
    key = field, field.precision
    if key not in by_field:
        bodies = [_body(body, field) for body in robot.bodies]
        bodies = [replace(body, regrouped=m) for body, m in zip(bodies, regroup(bodies), strict=True)]
        links = tuple(_link(link, field) for link in robot.links)
        by_field[key] = replace(robot, bodies=tuple(bodies), links=links)
    return by_field[key]


def lifted_array(x: Any, field: Field) -> Array:
    """Return an array of elements, (...), in which zeros stay plain numbers.

    Args:
        x: Floats, (...), [any unit]; zeros and ones alone stay an array of floats. field: The type of the numbers.
    """
    x = np.asarray(x)
    if x.dtype == object or not (np.isfinite(x) & (x != 0.0) & (np.abs(x) != 1.0)).any():
        return x
    entries = [_number(entry, field) for entry in x.ravel().tolist()]
    out = np.empty(len(entries), dtype=object)
    out[:] = entries
    return out.reshape(x.shape)


def lifted_rotation(rotation: Array, field: Field) -> Array:
    """Return the rotation matrix, (3, 3), of the quaternion nearest to a rotation matrix of floats.

    Args:
        rotation: A rotation matrix, (3, 3); one of zeros and ones is returned as it is. field: The type of the numbers.
    """
    if rotation.dtype == object or np.isin(rotation, (-1.0, 0.0, 1.0)).all():
        return rotation
    w, x, y, z = (_number(entry, field) for entry in quaternion_of(rotation).tolist())
    ww, xx, yy, zz = w * w, x * x, y * y, z * z
    n = ww + xx + yy + zz
    entries = [
        [ww + xx - yy - zz, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), ww - xx + yy - zz, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), ww - xx - yy + zz],
    ]
    return np.array([[entry / n for entry in row] for row in entries])


def _number(x: Any, field: Field) -> Any:
    """Return a float as an element; zero, infinity and elements stay as they are."""
    return Element(field.lift(x), field) if isinstance(x, float) and x != 0.0 and np.isfinite(x) else x


def _cosine_and_sine(c: Any, s: Any, field: Field) -> tuple[Any, Any]:
    """Return a cosine and a sine with squares that sum to one, near those of floats.

    With (a, b) in the direction of the half angle they are (a^2 - b^2, 2 a b) / (a^2 + b^2). Both (1 + c, s) and
    (s, 1 - c) have this direction; the one without cancellation is taken.
    """
    if is_zero(c) or is_zero(s) or isinstance(c, Element):  # exact already
        return c, s
    a, b = (1.0 + c, s) if c > 0 else (s, 1.0 - c)
    a, b = _number(a, field), _number(b, field)
    n = a * a + b * b
    return (a * a - b * b) / n, 2 * a * b / n


def _transform(transform: ElementaryTransform, field: Field) -> ElementaryTransform:
    if isinstance(transform, Translation):
        return Translation(lifted_array(transform.r, field))
    if isinstance(transform, AxisRotation):
        return AxisRotation(transform.axis, *_cosine_and_sine(transform.c, transform.s, field))
    return Rotation(lifted_rotation(transform.R, field)) if isinstance(transform, Rotation) else transform


def _body(body: Body, field: Field) -> Body:
    """Return a body with lifted constants, except for its regrouped moments."""
    coupling = body.coupling
    if coupling is not None:
        coupling = unchecked(coupling, ratio=_number(coupling.ratio, field), offset=_number(coupling.offset, field))
    return replace(
        body,
        P=lifted_array(body.P, field),
        moments=_moments(body.moments, field),
        before_joint=tuple(_transform(transform, field) for transform in body.before_joint),
        joint_offset=_cosine_and_sine(*body.joint_offset, field),
        after_joint=_number(body.after_joint, field),
        coupling=coupling,
        physics=_physics(body.physics, field),
    )


def _moments(moments: Moments, field: Field) -> Moments:
    return Moments(_lifted(moments.mass, field), _lifted(moments.h, field), mirror(_lifted(moments.J, field)))


def _lifted(x: Any, field: Field) -> Any:
    """Return an array or a plain number with elements; other objects, such as elements, as they are."""
    if isinstance(x, np.ndarray):
        return lifted_array(x, field)
    return _number(float(x), field) if isinstance(x, (int, float)) else x


def _physics(physics: JointPhysics, field: Field) -> JointPhysics:
    """Return the physics of a joint with elements, except for limits and stops, which simulations apply."""
    names, rotor = ("damping", "friction", "armature", "stiffness", "rest"), physics.rotor
    if rotor is not None:
        rotor = unchecked(rotor, inertia=_number(rotor.inertia, field), gear=_number(rotor.gear, field))
    numbers = {name: lifted_array(getattr(physics, name), field) for name in names}
    return unchecked(physics, **numbers, rotor=rotor)


def _link(link: PlacedLink, field: Field) -> PlacedLink:
    mass, center, tensor = link.inertia.mass, np.asarray(link.inertia.center), np.asarray(link.inertia.tensor)
    inertia = unchecked(
        link.inertia,
        mass=_lifted(mass, field),
        center=lifted_array(center, field),
        tensor=mirror(lifted_array(tensor, field)),
    )
    rotation, position = lifted_rotation(link.rotation, field), lifted_array(link.position, field)
    return replace(link, inertia=inertia, rotation=rotation, position=position)
