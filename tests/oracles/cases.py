"""Seeded random robots in random states, each built once per test process."""

from dataclasses import dataclass
from functools import cache

import numpy as np

import legged
from legged import denoc
from legged.spatial import Array

COUNT = 300  # seeds 0 to 299
BATCH = 10
BATCHES = [range(start, start + BATCH) for start in range(0, COUNT, BATCH)]


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
    """Return the random tree of a seed, of any shape, in a random state; options are those of `random_tree`."""
    return case_of(legged.random_tree(seed, **options), seed)


@cache
def dense(seed: int) -> tuple[Array, Array]:
    """Return (I, h) of a random case from the dense theory, the wrenches in h."""
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
    """Return |I| |vdot| + |h|, the size of the terms of I vdot + h: what errors of forces are measured by.

    The sum itself may cancel, so that no algorithm has it to more digits than its largest terms allow.
    """
    return float(np.max(np.abs(inertia) @ np.abs(vdot) + np.abs(h), initial=0.0))
