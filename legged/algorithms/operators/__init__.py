"""Spatial operator algebra: the dynamics of a robot as operators that are multiplied symbolically and applied in O(n).

S = SpatialOperators(robot, q)
S.mass                            # H phi M phi* H*
S.innovations @ S.D @ S.innovations.T
(S.mass_inverse @ tau).shape      # a Kalman filter inward, a smoother outward
"""

from legged.algorithms.operators.dynamics import (
    bias_forces,
    closed_chain,
    diagonal_bias,
    filter_and_smoother,
    fixed_point_feet,
    forward_dynamics,
    innovations,
    residuals,
    square_root,
    tip_correction,
    tip_mobility,
)
from legged.algorithms.operators.grasps import GraspContact, GraspedBody, grasp, grasp_control, internal_forces
from legged.algorithms.operators.inverse_kinematics import Target, damped_step, inverse_kinematics
from legged.algorithms.operators.operator import LinearOperator, identity
from legged.algorithms.operators.spatial_operators import SpatialOperators

__all__ = [
    "GraspContact",
    "GraspedBody",
    "LinearOperator",
    "SpatialOperators",
    "Target",
    "bias_forces",
    "closed_chain",
    "damped_step",
    "diagonal_bias",
    "filter_and_smoother",
    "fixed_point_feet",
    "forward_dynamics",
    "grasp",
    "grasp_control",
    "identity",
    "innovations",
    "internal_forces",
    "inverse_kinematics",
    "residuals",
    "square_root",
    "tip_correction",
    "tip_mobility",
]


def __getattr__(name: str) -> object:
    """Return an object by its former name, with a warning."""
    from legged.errors import deprecated_names

    return deprecated_names(__name__, {"Operator": "legged.algorithms.operators.LinearOperator"})(name)
