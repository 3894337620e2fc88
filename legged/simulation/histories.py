"""What one joint, one contact point or one free body did during a run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class JointHistory(NamedTuple):
    """What a joint did during a run; each (T,), or (T, n) for a joint with several entries.

    Attributes:
        position: Its entries of q, [rad] or [m].
        velocity: Its entries of v, [rad/s] or [m/s].
        torque: Its entries of tau, [N m] or [N].
        reference: The position that the controller wanted, or None if it does not tell.
    """

    position: Array
    velocity: Array
    torque: Array
    reference: Array | None


class ContactHistory(NamedTuple):
    """Where a contact point was, (T, 3), [m], and the ground's force on it, (T, 3), [N]; world axes."""

    position: Array
    force: Array


class BodyHistory(NamedTuple):
    """Where a free body was and how it moved; world axes.

    Attributes:
        position: Of its origin, (T, 3), [m].
        rotation: Its axes to world axes, (T, 3, 3).
        velocity: Of its origin, (T, 3), [m/s].
        spin: Angular velocity, (T, 3), [rad/s].
    """

    position: Array
    rotation: Array
    velocity: Array
    spin: Array
