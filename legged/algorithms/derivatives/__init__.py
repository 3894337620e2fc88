"""First derivatives of the dynamics by analytical recursion, O(n d) for n joints with d others on the way to the base.

    from legged.algorithms import derivatives
    by = derivatives.of_forward_dynamics(robot, q, v, tau)
    by.q, by.v, by.tau                       # (nv, nv) each; by.tau is the inverse of the inertia matrix

A derivative with respect to q is along the manifold, as `legged.integrate` moves: column i answers to dq[i]. A floating
base turns and moves in its own axes, a ball joint turns in its child's. `check` compares with exact differentiation.
"""

from legged.algorithms.derivatives.checking import Checked, check, differentiated
from legged.algorithms.derivatives.forward import ForwardDerivatives, inverse_inertia, of_forward_dynamics
from legged.algorithms.derivatives.inverse import InverseDerivatives, of_inverse_dynamics
from legged.algorithms.derivatives.kinematics import FrameDerivatives, jacobian_rate, of_frame_motion

__all__ = [
    "Checked",
    "ForwardDerivatives",
    "FrameDerivatives",
    "InverseDerivatives",
    "check",
    "differentiated",
    "inverse_inertia",
    "jacobian_rate",
    "of_forward_dynamics",
    "of_frame_motion",
    "of_inverse_dynamics",
]
