"""Whether two programs compute the same: looked at before they are timed."""

import numpy as np


class Disagreement(Exception):
    """Two programs compute different numbers, so that their times mean nothing."""


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Return the largest difference in any state (row), in parts of the state's largest number."""
    ours, theirs = (np.reshape(a, (len(a), -1)) for a in (ours, theirs))
    if ours.shape != theirs.shape or not np.isfinite(ours).all():
        return np.inf
    return float((np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1)).max())


def agree(what: str, ours: np.ndarray, theirs: np.ndarray, allowed: float) -> float:
    """Return how far two results are apart.

    Raises:
        Disagreement: It is more than allowed.
    """
    found = apart(ours, theirs)
    if not found <= allowed:
        raise Disagreement(f"{what}: {found:.1e} apart, more than {allowed:.0e}; it is not timed")
    return found
