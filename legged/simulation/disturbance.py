"""Pushes: what the world does to a robot besides the ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.kinematics import link_poses, point_motion
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import cross

Array = np.ndarray


@dataclass(frozen=True)
class Push:
    """A push on a link: a half-sine of force, so that nothing jumps.

    Attributes:
        link: Name of the link.
        impulse: The force's integral, (3,), [N s], world axes.
        at: When it begins, [s].
        duration: How long it lasts, [s].
        point: Where it acts, (3,), [m], link axes.
    """

    link: str
    impulse: Sequence[float]
    at: float
    duration: float = 0.1
    point: Sequence[float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if not self.duration > 0.0:
            raise DefinitionError(f"a push must last longer than 0 s, got {self.duration}")

    def force(self, t: Any) -> Array:
        """Return the force at time t, (3,), [N], world axes."""
        phase = (t - self.at) / self.duration
        inside = where(phase > 0.0, where(phase < 1.0, phase, 0.0), 0.0)
        return np.sin(np.pi * inside) * (0.5 * np.pi / self.duration) * np.stack(self.impulse)

    @property
    def edges(self) -> tuple[float, float]:
        """When it begins and ends, [s]."""
        return self.at, self.at + self.duration


def push_wrenches(robot: Robot, pushes: Sequence[Push], t: Any, q: Array, v: Array) -> tuple[Array, Any]:
    """Return (wrenches of the pushes on the links (n_links, 6), their power [W]); wrenches as in `Controller`."""
    wrenches, power = [np.zeros(6) for _ in robot.links], 0.0
    rotations, _ = link_poses(robot, q)
    for push in pushes:
        k, r, force = robot.link(push.link).index, np.stack(push.point), push.force(t)
        f = rotations[k].T @ force
        wrenches[k] = wrenches[k] + np.concatenate([cross(r, f), f])
        _, velocity = point_motion(robot, q, v, [(k, r)])
        power = power + force @ velocity[0]
    return np.stack(wrenches), power


def edges(pushes: Sequence[Push]) -> tuple[float, ...]:
    """Return when pushes begin and end, [s]."""
    return tuple(float(edge) for push in pushes for edge in push.edges)
