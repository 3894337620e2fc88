"""A serial chain of n links, for operation counts."""

import numpy as np

from legged import Base, Inertia, Limb, Link, Revolute, Robot, RobotBuilder, rpy
from legged.arguments import MOST_LINKS, whole
from legged.checked import checked


@checked
def chain(n: int, *, twist: float = 0.0, base: Base | None = None, seed: int = 0) -> Robot:
    """Return a chain of n links with revolute joints about z.

    Args:
        n: Number of links without the base.
        twist: Angle from one joint axis to the next about the common normal, [rad]: 0 makes the axes parallel, pi/2
            perpendicular.
        base: Base type; floating with a quaternion by default.
        seed: Seed of the random inertias, which have no zero entries.
    """
    whole("n", n, least=1, most=MOST_LINKS)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    robot = RobotBuilder(f"{n}-link chain", Link("base", _inertia(rng)), base=base)
    limb = Limb()
    for k in range(n):
        at, turn = ((0.3, 0.0, 0.1), rpy(twist, 0.0, 0.0)) if k else ((0.0, 0.0, 0.0), None)
        limb.add(Revolute(f"joint{k + 1}", "z"), Link(f"link{k + 1}", _inertia(rng)), at=at, rotation=turn)
    return robot.attach(limb, to="base").build()


def _inertia(rng: np.random.Generator) -> Inertia:
    points = rng.normal(size=(6, 3)) * 0.1
    points -= points.mean(axis=0)
    second = points.T @ points / len(points)
    return Inertia(1.0, rng.uniform(0.05, 0.2, 3), np.trace(second) * np.eye(3) - second)
