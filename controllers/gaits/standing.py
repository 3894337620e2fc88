"""Standing: gaits that stay in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.gaits.gait import Gait, level_state
from controllers.gaits.leg import Leg, paper_biped
from legged.arguments import Numbers
from legged.checked import checked
from legged.errors import NotFiniteError, ShapeError
from legged.robot.configuration import refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray


@checked
@dataclass(frozen=True, kw_only=True)
class Stand(Gait):
    """A gait without steps: all feet on the ground under the hips, the base level and at rest.

    Of the attributes of `Gait` only `hip_height`, `gravity`, `legs` and `joints` have an effect.
    """

    stride: float = 0.0
    clearance: float = 0.0

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_biped()

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        still = 0.0 * t  # zeros of the shape of t
        return [still, 0.0, self.base_height + still], [[still, 0.0, still] for _ in self.geometry]

    def supporting(self, phase: int) -> tuple[str, ...]:
        return tuple(leg.name for leg in self.geometry)

    @property
    def cycle(self) -> int:
        return 1

    def switches(self, until: float) -> Array:
        """Return no times, (0,), [s]: there are no phases to switch."""
        return np.zeros(0)


@checked
@dataclass(frozen=True)
class Posture:
    """Constant joint positions.

    Attributes:
        angles: Joint positions in the robot's joint order, (nj,), [rad] or [m].
        base_height: Initial height of the base's origin over the ground, [m].
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

    def reference(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return the joint positions and their rates, which are zero, (..., nj) each, for an array of times (...)."""
        shape = (*getattr(t, "shape", ()), len(self.angles))
        return np.broadcast_to(self.angles, shape).copy(), np.zeros(shape), np.zeros(shape)

    def switches(self, until: float) -> Array:
        """Return no times, (0,), [s]: the reference has no jumps."""
        return np.zeros(0)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at rest with a level base, (nq,) and (nv,)."""
        refuse_ball_quaternions(robot)
        if len(self.angles) != robot.nj:
            raise ShapeError(
                f"the posture must be ({robot.nj},), one entry per joint coordinate, got {len(self.angles)}"
            )
        angles, rates, _ = self.reference(0.0)
        return level_state(robot, np.array([0.0, 0.0, self.base_height]), np.zeros(3), angles, rates)
