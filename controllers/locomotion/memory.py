"""The controller memory of `Locomotion`: results of the last evaluation, and parameters that may vary between runs."""

from __future__ import annotations

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
    def at_rest(
        cls,
        nv: int,
        gait: Array,
        path: Array,
        slope: Array,
        places: Array,
        target: Array,
        command: Array,
        assumed: tuple[Any, Any],
        hands: Array,
        size: int,
    ) -> LocomotionMemory:
        """Return the memory of a robot at rest on all feet.

        Args:
            nv: Number of degrees of freedom. gait: As the attribute. path: As the attribute. slope: As the attribute.
            places: As the attribute. target: As the attribute. command: As the attribute `constant_command`.
            assumed: Attributes `friction` and `clearance`. hands: As the attribute. size: Length of `iterate`.
        """
        n = len(places)
        still, displaced, residuals = np.zeros(n), (np.zeros((2, n, 2)), np.zeros(2)), np.zeros(2)
        return cls(
            np.zeros(nv),
            gait,
            np.zeros(ENTRIES),
            path,
            np.zeros(2),
            slope,
            places,
            places,
            np.ones(n),
            *(still, still, still),
            *displaced,
            0.0,
            0.0,
            np.zeros((HORIZON, 6)),
            residuals,
            target,
            command,
            *assumed,
            0.0,
            0.0,
            np.zeros(LIMIT_SIZE),
            hands,
            np.zeros(size),
        )

    @classmethod
    def of(cls, flat: Array, nv: int, n: int, hands: int = 0) -> LocomotionMemory:
        """Return the parts of a flat memory.

        Args:
            flat: (m,), mixed units.
            nv: Number of degrees of freedom. n: Number of feet. hands: Number of hands.
        """
        state, parameters = [nv, GaitState.size(n), ENTRIES, 3, 2, 2], [1 + 2 * n, ENTRIES]
        sizes = [
            *state,
            3 * n,
            3 * n,
            n,
            n,
            n,
            n,
            4 * n,
            2,
            1,
            1,
            6 * HORIZON,
            2,
            *parameters,
            1,
            1,
            1,
            1,
            LIMIT_SIZE,
            ROWS * hands,
        ]
        parts = cls(*np.split(flat, np.cumsum(sizes)))
        return parts._replace(
            places=parts.places.reshape(n, 3),
            footsteps=parts.footsteps.reshape(n, 3),
            planned=parts.planned.reshape(2, n, 2),
            costates=parts.costates.reshape(HORIZON, 6),
            deviation=parts.deviation[0],
            standing_deviation=parts.standing_deviation[0],
            friction=parts.friction[0],
            clearance=parts.clearance[0],
            chosen=parts.chosen[0],
            jump=parts.jump[0],
            hands=parts.hands.reshape(hands, ROWS),
        )

    def flat(self) -> Array:
        """Return the memory as a vector, (m,), mixed units."""
        return np.concatenate([np.stack([part]) if np.ndim(part) == 0 else np.ravel(part) for part in self])
