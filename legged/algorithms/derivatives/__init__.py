"""Analytical first derivatives of the dynamics, O(n d) for n joints with d joints on the path to the base.

    from legged.algorithms import derivatives
    by = derivatives.of_forward_dynamics(robot, q, v, tau)
    by.q, by.v, by.tau                       # (nv, nv) each; by.tau is the inverse of the inertia matrix

A derivative by q is along the manifold, as in `legged.integrate`: column i belongs to a displacement dq[i]. A floating
base rotates and translates in its own axes, a ball joint rotates in the axes of its child. `check` compares with exact
differentiation. `convective_forces` is C(q, v) w, with the derivatives of the inertia matrix in C.
"""

from legged.algorithms.derivatives.convective import convective_forces, reference_inverse_dynamics
from legged.algorithms.derivatives.forward import (
    DerivativeErrors,
    ForwardDerivatives,
    check,
    exact_derivatives,
    inverse_inertia,
    of_forward_dynamics,
)
from legged.algorithms.derivatives.inverse import InverseDerivatives, of_inverse_dynamics
from legged.algorithms.derivatives.kinematics import FrameDerivatives, jacobian_rate, of_frame_motion

__all__ = [
    "DerivativeErrors",
    "ForwardDerivatives",
    "FrameDerivatives",
    "InverseDerivatives",
    "check",
    "convective_forces",
    "exact_derivatives",
    "inverse_inertia",
    "jacobian_rate",
    "of_forward_dynamics",
    "of_frame_motion",
    "of_inverse_dynamics",
    "reference_inverse_dynamics",
]
