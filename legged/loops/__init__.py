"""Closed loops: joints that close them, constraints, dynamics and states that fit; Featherstone and Orin, section 3.4.

closed = legged.loops.close(tree, Revolute("pin", "y"), parent="coupler", child="rocker", at=..., child_at=...)
q = legged.loops.assemble(closed, guess, hold=["crank"])
vdot = legged.loops.forward_dynamics(closed, q, v, tau)
run = legged.simulate(closed, controller, until=10.0, q=q)
"""

from legged.loops.closing import Rod, Rolling
from legged.loops.consistent import assemble, consistent_velocity, projected
from legged.loops.constraints import acceleration, bias, jacobian, loop_wrenches, residual
from legged.loops.dynamics import Solution, Stabilization, active_forces, forward_dynamics, solve
from legged.loops.files import load
from legged.loops.loop import ClosedRobot, Loop, close
from legged.loops.rank import Mobility, independent, mobility, ordered
from legged.loops.spanning import LoopBuilder
from legged.loops.stance import standing

__all__ = [
    "ClosedRobot",
    "Loop",
    "LoopBuilder",
    "Mobility",
    "Rod",
    "Rolling",
    "Solution",
    "Stabilization",
    "acceleration",
    "active_forces",
    "assemble",
    "bias",
    "close",
    "consistent_velocity",
    "forward_dynamics",
    "independent",
    "jacobian",
    "load",
    "loop_wrenches",
    "mobility",
    "ordered",
    "projected",
    "residual",
    "solve",
    "standing",
]
