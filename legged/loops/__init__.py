"""Closed kinematic loops: closing joints, constraints, dynamics and consistent states; Featherstone, Orin, section 3.4.

closed = legged.loops.close(tree, Revolute("pin", "y"), parent="coupler", child="rocker", at=..., child_at=...)
q = legged.loops.assemble(closed, guess, hold=["crank"])
vdot = legged.loops.forward_dynamics(closed, q, v, tau)
run = legged.simulate(closed, controller, until=10.0, q=q)
"""

from legged.algorithms.constrained.contacts import (
    ContactDynamics,
    ContactInverseDynamics,
    contact_dynamics,
    contact_inverse_dynamics,
)
from legged.loops import divide_and_conquer, subsystems
from legged.loops.assembly import assemble, consistent_acceleration, consistent_velocity, project_state
from legged.loops.builder import LoopBuilder, load, save_mjcf
from legged.loops.closed_robot import ClosedRobot, Loop, close, pin_contacts
from legged.loops.closing_joints import Rod, Rolling, Sliding
from legged.loops.constraints import (
    Mobility,
    acceleration,
    bias,
    independent_first,
    independent_only,
    jacobian,
    loop_wrenches,
    mobility,
    residual,
)
from legged.loops.dynamics import Solution, Stabilization, active_forces, forward_dynamics, joint_wrenches, solve
from legged.loops.inverse import ClosedInverseDynamics, Step, determinacy, inverse_dynamics
from legged.loops.serial import SerialEquivalent, serial_equivalent

__all__ = [
    "ClosedInverseDynamics",
    "ClosedRobot",
    "ContactDynamics",
    "ContactInverseDynamics",
    "Loop",
    "LoopBuilder",
    "Mobility",
    "Rod",
    "Rolling",
    "SerialEquivalent",
    "Sliding",
    "Solution",
    "Stabilization",
    "Step",
    "acceleration",
    "active_forces",
    "assemble",
    "bias",
    "close",
    "consistent_acceleration",
    "consistent_velocity",
    "contact_dynamics",
    "contact_inverse_dynamics",
    "determinacy",
    "divide_and_conquer",
    "forward_dynamics",
    "independent_first",
    "independent_only",
    "inverse_dynamics",
    "jacobian",
    "joint_wrenches",
    "load",
    "loop_wrenches",
    "mobility",
    "pin_contacts",
    "project_state",
    "residual",
    "save_mjcf",
    "serial_equivalent",
    "solve",
    "subsystems",
]
