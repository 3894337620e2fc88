"""The memory of locomotion: what the controller computed last, and the numbers in which runs differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.motion_plan import HORIZON
from controllers.locomotion.schedule import GaitState
from legged.spatial import Array


class LocomotionMemory(NamedTuple):
    """The memory of the controller: what it computed last, and the numbers in which runs differ.

    Attributes:
        tau: Generalized forces until the next evaluation, (nv,).
        gait: State of the gait, see `GaitState.flat`.
        command: Commanded velocity, yaw rate, height and pitch, with bounded rates, (5,).
        path: Desired x, y, [m], and heading, [rad], of the center of mass, (3,).
        slope: Slope of the ground under the robot along world x and y, (2,).
        places: Last place of contact of each foot, (n, 3), [m], world axes.
        footsteps: Planned landing place of each foot, (n, 3), [m], world axes.
        contact: 1 for each foot that stands on the ground, falling to 0 without contact force, (n,).
        deviation: Deviation of the divergent component of motion, [m].
        wrenches: Planned wrenches on the body, (N, 6), see `predictive.Plan`.
        residuals: Residuals of predictive and of whole-body control, (2,).
        target: Parameters of the first gait, see `ContactSchedule.parameters`.
        constant_command: The command, if it is constant, (5,).
        friction: Friction coefficient that the controller counts on.
        iterate: Iterate of whole-body control.
    """

    tau: Array
    gait: Array
    command: Array
    path: Array
    slope: Array
    places: Array
    footsteps: Array
    contact: Array
    deviation: Any
    wrenches: Array
    residuals: Array
    target: Array
    constant_command: Array
    friction: Any
    iterate: Array

    @classmethod
    def of(cls, flat: Array, nv: int, n: int) -> LocomotionMemory:
        """Return the parts of a flat memory.

        Args:
            flat: (m,), mixed units.
            nv: Number of degrees of freedom. n: Number of feet.
        """
        sizes = [nv, GaitState.size(n), 5, 3, 2, 3 * n, 3 * n, n, 1, 6 * HORIZON, 2, 1 + 2 * n, 5, 1]
        parts = cls(*np.split(flat, np.cumsum(sizes)))
        return parts._replace(
            places=parts.places.reshape(n, 3),
            footsteps=parts.footsteps.reshape(n, 3),
            wrenches=parts.wrenches.reshape(HORIZON, 6),
            deviation=parts.deviation[0],
            friction=parts.friction[0],
        )

    def flat(self) -> Array:
        """Return the memory as a vector, (m,), mixed units."""
        return np.concatenate([np.stack([part]) if np.ndim(part) == 0 else np.ravel(part) for part in self])
