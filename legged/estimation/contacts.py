"""Forces on the feet from wrenches on their links and back, and probabilities of contact from these forces."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.estimation.readings import SensedRobot
from legged.spatial import Array, join, skew

_HALF, _WIDTH = 0.25, 0.04
"""Force at which the probability of contact is one half, and the width of the logistic function, relative to the weight
of the robot divided by the number of feet."""


def point_forces(sensed: SensedRobot, rotations: Array, wrenches: Array) -> list[Array]:
    """Return the force on each foot, (n, 3), [N], base axes, from the wrenches on the links.

    Several feet on one link share its wrench: the sum of squares of their forces is the smallest possible one.

    Args:
        sensed: The robot. rotations: Of the links to world axes, (n_links, 3, 3), dimensionless.
        wrenches: Contact wrenches on the links, (n_links, 6), about each link's origin in its axes.
    """
    links: dict[int, list[int]] = {}
    for i, foot in enumerate(sensed.feet):
        links.setdefault(foot.link, []).append(i)
    base, forces = rotations[0], [np.zeros(3)] * len(sensed.feet)
    for link, feet in links.items():
        shares = np.linalg.pinv(np.concatenate([join(skew(sensed.feet[i].position), np.eye(3)) for i in feet], axis=1))
        turn = base.T @ rotations[link]
        parts = shares @ wrenches[link] if len(feet) > 1 else wrenches[link][3:]
        for k, i in enumerate(feet):
            forces[i] = turn @ parts[3 * k : 3 * k + 3]
    return forces


def contact_probabilities(sensed: SensedRobot, forces: Any) -> Array:
    """Return the probability of contact of each foot, (n,), a logistic function of the magnitude of its force.

    Args:
        sensed: The robot. forces: Force on each foot, (n, 3), [N].
    """
    share = sensed.robot.mass * float(np.linalg.norm(sensed.robot.gravity)) / len(sensed.feet)
    loads = [np.sqrt(force @ force + 1e-12) * (1.0 / share) for force in forces]
    return np.stack([1.0 / (1.0 + np.exp((_HALF - load) * (1.0 / _WIDTH))) for load in loads])


def link_wrenches(sensed: SensedRobot, rotations: Array, forces: Any) -> Array:
    """Return wrenches on the links, (n_links, 6), about each link's origin in its axes, of forces on the feet.

    Args:
        sensed: The robot. rotations: Of the links to world axes, (n_links, 3, 3), dimensionless.
        forces: Force on each foot, (n, 3), [N], base axes.
    """
    totals: list[Any] = [np.zeros(6)] * len(sensed.robot.links)
    for foot, force in zip(sensed.feet, forces, strict=True):
        local = rotations[foot.link].T @ (rotations[0] @ force)
        totals[foot.link] = totals[foot.link] + join(skew(foot.position) @ local, local)
    return np.array(totals)
