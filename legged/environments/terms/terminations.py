"""Terms that end episodes; each returns a function of the `State` of one member, positive where the episode ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.environments.state import State


def fallen(largest_tilt: float = 1.2, least_height: float = 0.0) -> Callable[[State], Any]:
    """Return a termination: the base tilts too far, or is too low over the terrain.

    Args:
        largest_tilt: Angle between the axis z of the base and the vertical, [rad]. least_height: [m].

    Formula: -g_z < cos(largest tilt) or z - h < least height
    Peers: `bad_orientation`, `bad_orientation`
    """
    cosine = np.cos(largest_tilt)

    def termination(s: State) -> Any:
        return where(-s.projected_gravity[2] < cosine, 1.0, where(s.height < least_height, 1.0, 0.0))

    return termination
