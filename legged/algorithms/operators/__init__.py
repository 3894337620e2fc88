"""Spatial operator algebra: the dynamics of a robot as operators that are multiplied symbolically and applied in O(n).

S = SpatialOperators(robot, q)
S.mass                            # H phi M phi* H*
S.innovations @ S.D @ S.innovations.T
(S.mass_inverse @ tau).shape      # a Kalman filter inward, a smoother outward
"""

from legged.algorithms.operators.dynamics import (
    GraspedBody,
    bias_forces,
    closed_chain,
    diagonal_bias,
    fixed_point_feet,
    forward_dynamics,
    grasp,
    innovations,
    residuals,
    square_root,
    tip_correction,
    tip_mobility,
)
from legged.algorithms.operators.operator import Operator, identity
from legged.algorithms.operators.spatial_operators import SpatialOperators

__all__ = [
    "GraspedBody",
    "Operator",
    "SpatialOperators",
    "bias_forces",
    "closed_chain",
    "diagonal_bias",
    "fixed_point_feet",
    "forward_dynamics",
    "grasp",
    "identity",
    "innovations",
    "residuals",
    "square_root",
    "tip_correction",
    "tip_mobility",
]
