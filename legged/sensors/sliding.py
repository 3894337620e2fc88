"""How far feet slide while they stand."""

from __future__ import annotations

import numpy as np

from legged.sensors.contact import contact_switches
from legged.simulation.run import Run
from legged.spatial import Array


def sliding_per_stance(run: Run, threshold: float) -> Array:
    """Return how far each contact point slides in a stance, on average, (n,), [m]; zero for one that never stands.

    The distance is summed from sample to sample, so points that creep to and fro count both ways.

    Args:
        run: The run. threshold: Normal force at which a point begins to stand, [N]; it ends at half of it.
    """
    normal = run.ground.normal
    stands = contact_switches(run.contacts.forces @ normal, threshold)
    moves = np.diff(run.contacts.points, axis=0)
    along = moves - (moves @ normal)[..., None] * normal
    both = stands[1:] & stands[:-1]
    distance = (np.linalg.norm(along, axis=2) * both).sum(axis=0)
    stances = stands[0].astype(int) + (stands[1:] & ~stands[:-1]).sum(axis=0)
    return distance / np.maximum(stances, 1)
