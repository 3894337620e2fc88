"""Forward dynamics held to its promise as accelerations, where the robot's condition leaves them digits."""

import numpy as np

import legged

CONDITION = 1e5
"""Of the inertia matrix; it may multiply rounding, 1e-16, to 1e-11, a hundredth of the 1e-9 promised."""


def well_conditioned(robot, q) -> bool:
    return robot.nv > 0 and bool(np.linalg.cond(legged.inertia_matrix(robot, q)) < CONDITION)


def accelerations_apart(robot, q, v, tau, wrenches, vdot) -> float:
    """Return how far vdot is from the inertia matrix's own, relative; 0 for a robot of worse condition."""
    if not well_conditioned(robot, q):
        return 0.0
    known = np.linalg.solve(legged.inertia_matrix(robot, q), tau - legged.bias_forces(robot, q, v, wrenches))
    return float(np.abs(vdot - known).max() / np.abs(known).max())
