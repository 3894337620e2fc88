"""Quantities that several terms use."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.environments.state import State
from legged.robot.robot import Robot

Array = np.ndarray


class FootStates(NamedTuple):
    """The feet of a robot: links with contact points, in the order of their first point.

    Attributes:
        touching: 1.0 where a contact point of the foot has touched in the control step, else 0.0, (f,).
        velocities: Mean horizontal velocities of the contact points, (f, 2), [m/s], world axes.
        heights: Least heights of the contact points over the terrain below them, (f,), [m].
    """

    touching: Array
    velocities: Array
    heights: Array


def feet_of(robot: Robot) -> list[list[int]]:
    """Return the numbers of the contact points of each foot, of each link with contact points."""
    links = dict.fromkeys(contact.link for contact in robot.contacts)
    return [[k for k, contact in enumerate(robot.contacts) if contact.link == link] for link in links]


def foot_states(s: State) -> FootStates:
    """Return the state of each foot."""
    feet, contacts = s.feet, s.task.robot.contacts
    groups = feet_of(s.task.robot)
    touching = [reduce(np.maximum, [feet.touching[k] for k in group]) for group in groups]
    velocities = [sum(feet.velocities[k, :2] for k in group) * (1.0 / len(group)) for group in groups]
    over = [p[2] - c.radius - s.terrain_height(p[0], p[1]) for p, c in zip(feet.positions, contacts, strict=True)]
    heights = [reduce(np.minimum, [over[k] for k in group]) for group in groups]
    return FootStates(np.stack(touching), np.stack(velocities), np.stack(heights))


def is_moving(s: State) -> Any:
    """Return 1.0 for a command of more than 0.1 m/s or rad/s, else 0.0."""
    return where(s.command @ s.command > 0.01, 1.0, 0.0)


def heading(s: State) -> tuple[Any, Any]:
    """Return (cosine, sine) of the heading: the angle of the horizontal part of the base's axis x, dimensionless."""
    x, y = s.rotation[0, 0], s.rotation[1, 0]
    scale = 1.0 / np.sqrt(x * x + y * y + 1e-12)
    return x * scale, y * scale


def heading_velocity(s: State) -> Array:
    """Return the horizontal velocity of the base, (2,), [m/s]: along the heading, and to its left."""
    c, d = heading(s)
    x, y, _ = s.rotation @ s.linear_velocity
    return np.stack([c * x + d * y, c * y - d * x])
