"""Operational-space dynamics of several end-effectors of a branched robot.

points = [("left_hand", palm), ("right_hand", palm)]
operational.by_propagators(robot, q, points)      # J M^-1 J^T, (12, 12), world axes; by_factors, by_operators too
operational.by_constraint_forces(robot, q, points)  # the same in logarithmic depth; by_division too
hands = operational.OperationalSpace(robot, q, points)
N = hands.null_space_projector                    # velocities that do not move the hands; sparse in branches
F = hands.inertia @ xdd + hands.bias(v)           # forces that accelerate the hands by xdd
"""

from legged.algorithms.operational.parallel import by_constraint_forces, by_division
from legged.algorithms.operational.propagators import by_propagators
from legged.algorithms.operational.space import (
    OperationalSpace,
    by_factors,
    by_operators,
    weighted_pseudoinverse,
    whitened_jacobian,
)

__all__ = [
    "OperationalSpace",
    "by_constraint_forces",
    "by_division",
    "by_factors",
    "by_operators",
    "by_propagators",
    "weighted_pseudoinverse",
    "whitened_jacobian",
]
