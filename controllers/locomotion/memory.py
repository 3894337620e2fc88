"""The controller memory of `Locomotion`: results of the last evaluation, and parameters that may vary between runs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.motion_plan import HORIZON
from controllers.locomotion.torques.hands import ROWS
from controllers.locomotion.velocity_command import ENTRIES
from legged.spatial import Array

LIMIT_SIZE = 6
"""Length of `SpeedLimit.flat`."""


class LocomotionMemory(NamedTuple):
    """Results of the last evaluation of the controller, and parameters that may differ between runs.

    Attributes:
        tau: Generalized forces until the next evaluation, (nv,), [N m] or [N].
        gait: State of the gait, (4 + 3 n,), mixed units, see `GaitState.flat`.
        command: The command with bounded rates, (7,), units of `Command`.
        path: Desired x, y, [m], and heading, [rad], of the center of mass, (3,), world axes.
        aside: Way from there to the line of the commanded velocity, to which the robot returns, (2,), [m], world axes.
        slope: Slope of the ground under the robot along world x and y, (2,), dimensionless.
        places: Last place of contact of each foot, (n, 3), [m], world axes.
        footsteps: Planned landing place of each foot, (n, 3), [m], world axes.
        contact: 1 for each foot that stands on the ground, falling to 0 without contact force, (n,), dimensionless.
        climbs: Height by which each swinging foot is still to rise over an obstacle, (n,), [m].
        lifts: Height of each swinging foot over its path, (n,), [m]; negative below it in search of the ground.
        rises: Height by which each foot rises beyond the clearance in its present or next swing, (n,), [m]; see
            `rises_over_uneven_ground`.
        planned: Displacements of the present places and of the next footholds of two feet that the body follows, (2, n,
            2), [m], world axes, see `StepSequence.planned`; zero for others.
        displacement: Displacement of the center of mass that follows from them, (2,), [m], world axes.
        deviation: Deviation of the divergent component of motion, [m].
        standing_deviation: Deviation from the mean of all feet after those in the air have landed, [m].
        costates: Of the last plan, (N, 6), [N/m, N], world axes, see `predictive.Plan`.
        residuals: Residuals of predictive and of whole-body control, (2,), dimensionless.
        target: Parameters of the first gait, (1 + 2 n,), mixed units, see `ContactSchedule.parameters`.
        constant_command: The command, if it is constant, (7,), units of `Command`.
        friction: Friction coefficient that the controller assumes.
        clearance: Height of swinging feet over the ground, relative to that of the center of mass, dimensionless.
        chosen: Index of the present gait, see `GaitChoice`.
        jump: Rise of the center of mass in the present jump, [m], see `jump_state`.
        speed: Loads and speed limit, (6,), mixed units, see `SpeedLimit`.
        hands: Predicted velocities of the hands, (k, 6), [rad/s, m/s], world axes, see `torques.hands`.
        iterate: Iterate of whole-body control, mixed units, see `whole_body`.
    """

    tau: Array
    gait: Array
    command: Array
    path: Array
    aside: Array
    slope: Array
    places: Array
    footsteps: Array
    contact: Array
    climbs: Array
    lifts: Array
    rises: Array
    planned: Array
    displacement: Array
    deviation: Any
    standing_deviation: Any
    costates: Array
    residuals: Array
    target: Array
    constant_command: Array
    friction: Any
    clearance: Any
    chosen: Any
    jump: Any
    speed: Array
    hands: Array
    iterate: Array

    @classmethod
    def zeros(cls, nv: int, n: int, hands: int, iterate: int) -> LocomotionMemory:
        """Return a memory of zeros.

        Args:
            nv: Number of degrees of freedom. n: Number of feet. hands: Number of hands. iterate: Length of the iterate.
        """
        return cls._make(np.zeros(shape) if shape else 0.0 for shape in (*_shapes(nv, n, hands), (iterate,)))

    @classmethod
    def of(cls, flat: Array, nv: int, n: int, hands: int = 0) -> LocomotionMemory:
        """Return the parts of a flat memory.

        Args:
            flat: (m,), mixed units. nv, n, hands: As in `zeros`.
        """
        shapes = _shapes(nv, n, hands)
        *parts, iterate = np.split(flat, np.cumsum([math.prod(shape) for shape in shapes]))
        shaped = [part.reshape(shape) if shape else part[0] for part, shape in zip(parts, shapes, strict=True)]
        return cls._make([*shaped, iterate])

    def flat(self) -> Array:
        """Return the memory as a vector, (m,), mixed units."""
        return np.concatenate([np.stack([part]) if np.ndim(part) == 0 else np.ravel(part) for part in self])


def _shapes(nv: int, n: int, hands: int) -> list[tuple[int, ...]]:
    """Return the shapes of all parts in their order, apart from the iterate at the end; arguments as in `zeros`."""
    feet = [(n, 3), (n, 3), (n,), (n,), (n,), (n,), (2, n, 2)]
    state = [(nv,), (GaitState.size(n),), (ENTRIES,), (3,), (2,), (2,), *feet, (2,), (), (), (HORIZON, 6), (2,)]
    return [*state, (1 + 2 * n,), (ENTRIES,), (), (), (), (), (LIMIT_SIZE,), (hands, ROWS)]
