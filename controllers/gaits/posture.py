"""Standing still: gaits that go nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.gaits.gait import Gait, check_joints, level_state
from controllers.gaits.leg import Leg
from controllers.gaits.paper_legs import paper_biped
from legged.errors import NotFiniteError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Stand(Gait):
    """All feet on the ground under the hips, the base level and still.

    Only `hip_height`, `gravity`, `legs` and `joints` mean anything here.
    """

    stride: float = 0.0
    clearance: float = 0.0

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_biped()

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        still = 0.0 * t  # as many zeros as there are instants
        return [still, 0.0, self.base_height + still], [[still, 0.0, still] for _ in self.geometry]

    def supporting(self, phase: int) -> tuple[str, ...]:
        return tuple(leg.name for leg in self.geometry)

    @property
    def cycle(self) -> int:
        return 1

    def switches(self, until: float) -> Array:
        return np.zeros(0)


@dataclass(frozen=True)
class Posture:
    """Joints that are held where they are.

    Attributes:
        angles: Joint positions in the robot's joint order, [rad] or [m].
        base_height: Height of the base's origin over the ground at the start, [m].
    """

    angles: tuple[float, ...]
    base_height: float = 0.0

    def __post_init__(self) -> None:
        angles = np.asarray(self.angles, dtype=float)
        if angles.ndim != 1:
            raise ShapeError(f"angles must be one number per joint coordinate, got shape {angles.shape}")
        if not np.isfinite(angles).all():
            raise NotFiniteError(f"angles must be finite, got {angles}")
        object.__setattr__(self, "angles", tuple(angles.tolist()))

    def reference(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return the angles and their rates, which are zero; each (joints,), after the axes of an array of instants."""
        shape = (*getattr(t, "shape", ()), len(self.angles))
        return np.broadcast_to(self.angles, shape).copy(), np.zeros(shape), np.zeros(shape)

    def switches(self, until: float) -> Array:
        return np.zeros(0)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at rest, the base level."""
        check_joints(robot)
        if len(self.angles) != robot.nj:
            raise ShapeError(
                f"the posture must be ({robot.nj},), one entry per joint coordinate, got {len(self.angles)}"
            )
        angles, rates, _ = self.reference(0.0)
        return level_state(robot, np.array([0.0, 0.0, self.base_height]), np.zeros(3), angles, rates)
