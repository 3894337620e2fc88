"""Spatial operator algebra: a robot's dynamics as operators that one holds, multiplies and applies in O(n).

S = SpatialOperators(robot, q)
S.mass                            # H phi M phi* H*
S.innovations @ S.D @ S.innovations.T
(S.mass_inverse @ tau).shape      # a Kalman filter inward, a smoother outward
"""

from legged.algorithms.operators.dynamics import (
    HeldBody,
    bias_forces,
    closed_chain,
    forward_dynamics,
    holding,
    standing,
    tip_correction,
    tip_mobility,
)
from legged.algorithms.operators.innovations import drift, innovations, residuals, root
from legged.algorithms.operators.operator import Operator, identity
from legged.algorithms.operators.spatial_operators import SpatialOperators

__all__ = [
    "HeldBody",
    "Operator",
    "SpatialOperators",
    "bias_forces",
    "closed_chain",
    "drift",
    "forward_dynamics",
    "holding",
    "identity",
    "innovations",
    "residuals",
    "root",
    "standing",
    "tip_correction",
    "tip_mobility",
]
