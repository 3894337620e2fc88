"""Swinging feet on uneven ground: reactions to obstacles and to ground that is lower or higher than expected.

A foot whose path ends over lower ground reaches for it, and the feet that were to lift off stand until it has contact.
A foot that is stopped by an obstacle rises until it is over it. In both cases the phase of the gait stops, see
`GaitState.advanced`, and the foot keeps the height over its path that it has reached. After a touchdown at another
height than expected, feet rise higher in their next swings.

Source:
    G. Bledt, M. J. Powell, B. Katz, J. Di Carlo, P. M. Wensing, S. Kim, "MIT Cheetah 3: design and control of a robust,
    dynamic quadruped robot", IROS 2018 (early and late contact); M. Focchi, R. Orsolino, M. Camurri, V. Barasuol, C.
    Mastalli, D. G. Caldwell, C. Semini, "Heuristic planning for rough terrain locomotion in presence of external
    disturbances and variable perception quality", 2020 (step reflex). The laws here are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from controllers.locomotion.gait.swing import Swing
from legged.compiler.ir import where
from legged.spatial import Array

_UNEVEN = 0.05  # [h], error of the expected height of a touchdown beyond which the ground is uneven
_RISE = 0.15  # [h], largest rise over uneven ground beyond the clearance
_DECAY = 6.0  # [sqrt(h / g)], time constant in stance with which this rise decreases on even ground
_STEEP = 1.3  # horizontal over vertical force on a swinging foot above which it is that of an obstacle


def is_obstacle(force: Array) -> Any:
    """Return whether a force on a swinging foot is that of an obstacle in its way, not of the ground below it.

    The force of the ground lies in its friction cone, which is inclined by the slope; 52 degrees from the vertical are
    beyond this cone on slopes up to 15 degrees with coefficients up to 0.75. The force of a riser is inclined more.

    Args:
        force: On the foot, (3,), [N], world axes.
    """
    return force[:2] @ force[:2] > (_STEEP * np.maximum(force[2], 0.0)) ** 2


def adapted_swing(
    swing: Swing, swings: Any, climb: Any, lift: Any, late: Any, waits: Any, speed: float, dt: float
) -> tuple[Swing, Any, Any]:
    """Return (swing, climb, lift) after a time step of a foot that rises over an obstacle or reaches for low ground.

    While the gait waits, the foot stops on its path and moves up or down. It stays at the height over its path that it
    has reached until it stands. A foot below its path, which reaches into a gap, moves down along the walls that it
    touches: if it rose over them and reached down again, the robot would have a foot too few for as long as the gait
    waits. For the same reason a foot at the end of its path, which is to stand, moves down in front of a wall: it came
    there over lower ground.

    Args:
        swing: Desired motion without obstacles. swings: 1 for a foot in the air, 0 for one that stands.
        climb: Height by which the foot is still to rise, [m], world z.
        lift: Height of the foot over its path, [m], world z; negative below it.
        late: 1 if the foot is at the end of its path without contact, 0 otherwise.
        waits: Whether the gait waits.
        speed: Speed up and down, [m/s].
        dt: Time step, [s].
    """
    climb = where((lift < 0.0) | (late > 0.5), 0.0, climb)
    rise = np.minimum(climb, speed * dt)
    change = where(rise > 0.0, rise, where(waits, -speed * dt * late, 0.0))
    lift, rate = swings * (lift + change), swings * change / dt
    along, up = where(waits, 0.0, 1.0), np.array([0.0, 0.0, 1.0])
    velocity, acceleration = along * swing.velocity + rate * up, along * swing.acceleration
    adapted = Swing(swing.position + lift * up, velocity, acceleration, swing.obstacle)
    return adapted, swings * (climb - rise), lift


def rises_over_uneven_ground(
    rises: Array,
    errors: Array,
    before: Sequence[Any],
    stance: Sequence[Any],
    height: float,
    time_unit: float,
    dt: float,
) -> list[Any]:
    """Return the rise of the present or next swing of each foot beyond the clearance after a time step, (n,), [m].

    A touchdown more than 0.05 h over or below the expected height shows that the ground is uneven. All feet that stand
    then rise in their next swing by this error more, by 0.15 h at most. The rise of a foot decreases while it stands.

    Args:
        rises: The rises before the time step, (n,), [m], world z.
        errors: Height of each foot over the expected landing place, (n,), [m], world z; read at touchdown.
        before: 1 for each foot that stood in the last time step, (n,).
        stance: 1 for each foot that stands, (n,).
        height: h, of the center of mass of the standing robot, [m].
        time_unit: sqrt(h / g), [s].
        dt: Time step, [s].
    """
    rows = zip(errors, before, stance, strict=True)
    error = reduce(np.maximum, [stands * (1.0 - stood) * np.abs(x) for x, stood, stands in rows])
    wanted = where(error > _UNEVEN * height, np.minimum(error, _RISE * height), 0.0)
    kept = 1.0 - dt / (_DECAY * time_unit + dt)
    feet = zip(stance, rises, strict=True)
    return [where(stands > 0.5, np.maximum(kept * rise, wanted), rise) for stands, rise in feet]
