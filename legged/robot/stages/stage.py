"""Stages of a joint: the joints of the recursions, and axes as arguments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.errors import DefinitionError
from legged.robot.placement import Vector, vector3
from legged.robot.stages.motion import MOTIONS, StageMotion
from legged.spatial import Array

Axis = str | Vector
_NAMED = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def unit_axis(what: str, axis: Axis) -> Array:
    """Return an axis as a unit vector (3,), or raise DefinitionError.

    Args:
        what: Name of the axis, for messages. axis: "x", "-y", ... or a vector (3,) of unit length to nine digits.
    """
    if isinstance(axis, str):
        if axis.lstrip("+-") not in _NAMED or len(axis) > 2:
            raise DefinitionError(f"{what} must be 'x', 'y', 'z', '-x', '-y', '-z' or a unit vector, got {axis!r}")
        return (-1.0 if axis.startswith("-") else 1.0) * np.array(_NAMED[axis[-1]]) + 0.0
    vector = vector3(what, axis)
    length = np.linalg.norm(vector)
    if length == 0.0:
        raise DefinitionError(f"{what} is zero; it must be a unit vector")
    if abs(length - 1.0) > 1e-9:
        raise DefinitionError(f"{what} must have unit length, got {vector} of length {length:.9g}; divide it by that")
    return vector / length


@dataclass(frozen=True, eq=False)
class Stage:
    """A joint of the recursions.

    Attributes:
        kind: Kind of motion, a key of `MOTIONS`: "revolute", "prismatic", "screw" or "ball".
        axis: Unit vector, (3,), joint axes.
        repeats: Index of an earlier stage of the joint whose coordinate this one shares; None for one of its own.
        pitch: Translation along the axis per angle of a screw, [m/rad].
    """

    kind: str
    axis: Array
    repeats: int | None = None
    pitch: float = 0.0

    @property
    def motion(self) -> StageMotion:
        """The motion of its kind."""
        return MOTIONS[self.kind]

    @property
    def nq(self) -> int:
        """Number of configuration coordinates of its own."""
        return 0 if self.repeats is not None else self.motion.nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom of its own."""
        return 0 if self.repeats is not None else self.motion.nv
