"""Random robots of the special geometry that drawings have, where every short cut of a frame's choice is taken."""

import numpy as np

import legged
from legged.spatial import Array

AXES = ("x", "y", "z", "-x", "-y", "-z")
BASES = (
    legged.FixedBase(),
    legged.PlanarBase(),
    legged.FloatingBase(),
    legged.EulerBase("xyz"),
    legged.EulerBase("zxz"),
)


def special_tree(seed: int, scale: float = 1.0, tilt: float = 0.0) -> legged.Robot:
    """Return a robot with coordinate axes, quarter and half turns, and offsets along few axes or none.

    Args:
        seed: Of NumPy's generator.
        scale: Of all lengths.
        tilt: Angle [rad] by which axes miss the coordinate directions: almost, but not quite, parallel.
    """
    rng = np.random.default_rng(seed)
    base = BASES[rng.integers(len(BASES))]
    builder = legged.RobotBuilder(f"special tree {seed}", legged.Link("base", _inertia(rng, scale)), base=base)
    names = ["base"]
    for k in range(int(rng.integers(1, 13))):
        parent = names[-1] if rng.uniform() < 0.7 else str(rng.choice(names))
        at = scale * rng.integers(-1, 2, 3) * rng.choice([0.0, 0.1, 0.25], 3)
        quarter = np.round(legged.rpy(*(np.pi / 2 * rng.integers(0, 4, 3))))
        rotation = quarter if rng.uniform() < 0.5 else None
        builder.add(
            _joint(rng, f"joint{k}", tilt),
            legged.Link(f"link{k}", _inertia(rng, scale)),
            to=parent,
            at=at,
            rotation=rotation,
        )
        names.append(f"link{k}")
    return builder.build()


def _joint(rng: np.random.Generator, name: str, tilt: float) -> legged.Joint:
    first = _axis(rng, str(rng.choice(AXES)), tilt)
    kind = rng.integers(0, 10)
    if kind < 5:
        return legged.Revolute(name, first)
    if kind < 7:
        return legged.Prismatic(name, first)
    across = str(rng.choice([a for a in AXES if abs(_direction(a) @ np.round(first)) < 0.5]))
    if kind == 7:
        return legged.Universal(name, first, across)
    if kind == 8:
        return legged.Planar(name, np.round(first) + 0.0, across)
    return legged.Spherical(name, None if rng.uniform() < 0.5 else "xyz")


def _direction(axis: str) -> Array:
    return (-1.0 if axis[0] == "-" else 1.0) * np.eye(3)["xyz".index(axis[-1])]


def _axis(rng: np.random.Generator, axis: str, tilt: float) -> Array:
    missed = _direction(axis) + tilt * rng.normal(size=3)
    return missed / np.linalg.norm(missed)


def _inertia(rng: np.random.Generator, scale: float) -> legged.Inertia:
    """Return a box with its center on an axis or at the origin."""
    size, center = scale * rng.uniform(0.05, 0.3, 3), scale * rng.integers(-1, 2, 3) * rng.choice([0.0, 0.1], 3)
    return legged.box_inertia(float(rng.uniform(0.2, 3.0)), size, center)
