"""Random robots in random states, each built once per test process, and tolerances for their dynamics."""

from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest

import legged
from legged import denoc
from legged.algorithms import articulated, divide_and_conquer, global_form
from legged.algorithms.operators import dynamics as operators
from legged.algorithms.sparse import sparsity
from legged.spatial import Array

COUNT, DAILY, BATCH = 300, 30, 10  # seeds 0 to 299; those from 30 on are slow tests
DAILY_BATCHES = [range(start, start + BATCH) for start in range(0, DAILY, BATCH)]
_SLOW_BATCHES = [range(start, start + BATCH) for start in range(DAILY, COUNT, BATCH)]
BATCHES = [*DAILY_BATCHES, *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in _SLOW_BATCHES)]


@dataclass(frozen=True, eq=False)
class Case:
    """A robot, a state (q, v), an acceleration, generalized forces and a wrench (n_links, 6) on every link."""

    robot: legged.Robot
    q: Array
    v: Array
    vdot: Array
    tau: Array
    wrenches: Array

    @property
    def label(self) -> str:
        return repr(self.robot)


def case_of(robot: legged.Robot, seed: int) -> Case:
    """Return the robot in a random state."""
    rng = np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    return Case(robot, q, v, vdot, tau, rng.normal(size=(len(robot.links), 6)))


@cache
def random_case(seed: int, **options) -> Case:
    """Return the random tree of a seed in a random state; options as in `random_tree`."""
    return case_of(legged.random_tree(seed, **options), seed)


@cache
def dense(seed: int) -> tuple[Array, Array]:
    """Return (I, h) of a random case from the dense theory; h includes the wrenches."""
    case = random_case(seed)
    inertia = denoc.generalized_inertia_matrix(case.robot, case.q)
    return inertia, denoc.bias_forces(case.robot, case.q, case.v, case.wrenches)


@cache
def forward(seed: int) -> Array:
    """Return vdot of a random case from the recursive forward dynamics."""
    case = random_case(seed)
    return legged.forward_dynamics(case.robot, case.q, case.v, case.tau, case.wrenches)


def batch_name(seeds: range) -> str:
    return f"seeds {seeds.start} to {seeds.stop - 1}"


def size_of_forces(inertia: Array, vdot: Array, h: Array) -> float:
    """Return |I| |vdot| + |h|, the size of the terms of I vdot + h, which errors of forces are relative to.

    The terms may cancel, so that rounding is relative to the largest of them.
    """
    return float(np.max(np.abs(inertia) @ np.abs(vdot) + np.abs(h), initial=0.0))


CONDITION = 1e5
"""Largest condition number of an inertia matrix: rounding, 1e-16, then gives 1e-11, below the tolerance 1e-9."""


def well_conditioned(robot, q) -> bool:
    """Return whether the inertia matrix's condition number is below the limit."""
    return robot.nv > 0 and bool(np.linalg.cond(legged.inertia_matrix(robot, q)) < CONDITION)


def accelerations_apart(robot, q, v, tau, wrenches, vdot) -> float:
    """Return the relative difference of vdot from a dense solution; 0 above the limit of the condition number."""
    if not well_conditioned(robot, q):
        return 0.0
    known = np.linalg.solve(legged.inertia_matrix(robot, q), tau - legged.bias_forces(robot, q, v, wrenches))
    return float(np.abs(vdot - known).max() / np.abs(known).max())


# Robots with special geometry, as in technical drawings, which takes every branch of the choice of body frames.

AXES = ("x", "y", "z", "-x", "-y", "-z")
BASES = (
    legged.FixedBase(),
    legged.PlanarBase(),
    legged.FloatingBase(),
    legged.EulerBase("xyz"),
    legged.EulerBase("zxz"),
)


def special_tree(seed: int, scale: float = 1.0, tilt: float = 0.0) -> legged.Robot:
    """Return a robot with coordinate axes, rotations by multiples of 90 degrees, and offsets along few axes or none.

    Args:
        seed: Seed of NumPy's random generator.
        scale: Scale of all lengths.
        tilt: Angle [rad] between axes and coordinate axes, for nearly parallel axes.
    """
    rng = np.random.default_rng(seed)
    base = BASES[rng.integers(len(BASES))]
    builder = legged.RobotBuilder(f"special tree {seed}", legged.Link("base", _special_inertia(rng, scale)), base=base)
    names = ["base"]
    for k in range(int(rng.integers(1, 13))):
        parent = names[-1] if rng.uniform() < 0.7 else str(rng.choice(names))
        at = scale * rng.integers(-1, 2, 3) * rng.choice([0.0, 0.1, 0.25], 3)
        quarter = np.round(legged.rpy(*(np.pi / 2 * rng.integers(0, 4, 3))))
        rotation = quarter if rng.uniform() < 0.5 else None
        builder.add(
            _joint(rng, f"joint{k}", tilt),
            legged.Link(f"link{k}", _special_inertia(rng, scale)),
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


def _special_inertia(rng: np.random.Generator, scale: float) -> legged.Inertia:
    """Return a box with its center on an axis or at the origin."""
    size, center = scale * rng.uniform(0.05, 0.3, 3), scale * rng.integers(-1, 2, 3) * rng.choice([0.0, 0.1], 3)
    return legged.box_inertia(float(rng.uniform(0.2, 3.0)), size, center)


FORWARD = {
    "articulated bodies": articulated.forward_dynamics,
    "in absolute coordinates": partial(articulated.forward_dynamics, coordinates="absolute"),
    "L^T D L": sparsity.forward_dynamics,
    "whole robot": global_form.forward_dynamics,
    "dense theory": denoc.forward_dynamics,
    "operators": operators.forward_dynamics,
    **{f"division, {v}": partial(divide_and_conquer.forward_dynamics, version=v) for v in divide_and_conquer.VERSIONS},
}
WITHOUT_ROTORS = ("operators", *(name for name in FORWARD if name.startswith("division")))
"""The algorithms of forward dynamics of trees with armature; the last ones refuse gyroscopic rotors."""
