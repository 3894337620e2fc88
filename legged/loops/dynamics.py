"""Forward dynamics of robots with closed loops: three methods of Featherstone and Orin 2000, and subsystems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.constrained.methods import METHODS
from legged.algorithms.linear_algebra import select_rows
from legged.arguments import array, number
from legged.checked import checked
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, link_wrenches, read
from legged.dynamics.frames import resolve_frame
from legged.dynamics.inverse import bias_forces
from legged.dynamics.joint_wrenches import JointWrenches, in_link_axes
from legged.dynamics.joint_wrenches import joint_wrenches as tree_joint_wrenches
from legged.errors import DefinitionError, UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.loops.closing_joints import motor_rate
from legged.loops.constraints import bias, jacobian, residual
from legged.loops.redundancy import independent_flags, loop_frame_poses, loop_frames_jacobian
from legged.loops.subsystems import constrained_acceleration
from legged.spatial import Array, cross, join

SUBSYSTEMS = "subsystems"
"""Name of the method of `legged.loops.subsystems`, which needs the loops themselves, not only their rows."""


class Solution(NamedTuple):
    """The result of `solve`.

    Attributes:
        vdot: Acceleration of the tree, (nv,).
        multipliers: lambda, (rows,), of the loop forces phi'^T lambda; those of least norm for redundant rows.
        rank: Rank of phi'.
        inconsistency: Largest constraint acceleration that no motion satisfies: rounding, unless the constraints are
            inconsistent in a singular state.
    """

    vdot: Array
    multipliers: Array
    rank: int
    inconsistency: float


@checked
@dataclass(frozen=True)
class Stabilization:
    """Baumgarte stabilization phi_ddot + (2/T) phi_dot + phi / T^2 = 0: constraint errors decay, critically damped.

    Attributes:
        time_constant: T, [s]; choose several time steps of the integrator.
    """

    time_constant: float

    def __post_init__(self) -> None:
        if not (np.isfinite(self.time_constant) and self.time_constant > 0.0):
            raise DefinitionError(f"a time constant must be longer than 0 s, got {self.time_constant}")


def constraint_acceleration(
    closed: ClosedRobot, q: Array, v: Array, stabilization: Stabilization | None = None
) -> Array:
    """Return c, (rows,), with phi' vdot = c: the right side of equation (18), with stabilization if given.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,).
        stabilization: Baumgarte stabilization, or None.
    """
    c = -bias(closed, q, v)
    if stabilization is not None:
        rate = 1.0 / stabilization.time_constant
        c = c - 2.0 * rate * (jacobian(closed, q) @ v) - rate * rate * residual(closed, q)
    return c


@checked
def active_forces(closed: ClosedRobot, q: Array, forces: Mapping[str, Any]) -> Array:
    """Return tau_a, (nv,), the generalized forces of motors in closing joints; equation (19).

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        forces: Name of a closing hinge or slide -> its torque or force, [N m] or [N], positive along the joint axis.
    """
    tau = np.zeros(closed.robot.nv)
    for name, force in forces.items():
        loop = closed.loop(name)
        number(f"the force of joint {name!r}", force)
        row = motor_rate(loop.joint).jacobian(*loop_frame_poses(closed.robot, q, loop))
        tau = tau + (row @ loop_frames_jacobian(closed.robot, q, loop)) * force
    return tau


@checked
def forward_dynamics(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    method: str = "elimination",
    stabilization: Stabilization | None = None,
    loop_forces: Mapping[str, Any] | None = None,
) -> Array:
    """Return the acceleration of a robot with closed loops, (nv,); arguments as in `solve`.

    The method "elimination" can be traced. Of redundant constraints the later rows have no effect, for numbers and for
    traced values alike; see `mobility`.
    """
    return solve(closed, q, v, tau, wrenches, method=method, stabilization=stabilization, loop_forces=loop_forces).vdot


@checked
def solve(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    method: str = "elimination",
    stabilization: Stabilization | None = None,
    loop_forces: Mapping[str, Any] | None = None,
) -> Solution:
    """Return accelerations and multipliers of

        [ M  L^T ] [ vdot    ]   [ tau - h + tau_a ]
        [ L  0   ] [ -lambda ] = [ c               ]             (20)

    where L vdot = c, (18), are the independent ones of the constraint rows phi' vdot = -phi'_dot v; see `mobility`.

    Args:
        closed: The robot with its loops.
        q, v, tau, wrenches: As in `legged.forward_dynamics`, of the spanning tree; q and v should satisfy the loops.
        method: "direct" solves (20); "elimination" (21), with M^-1 by O(n) recursions; "projection" (22); "subsystems"
            eliminates the multipliers group by group in the recursion of the tree, see `legged.loops.subsystems`.
        stabilization: `Stabilization(...)`, or None.
        loop_forces: Forces of motors in closing joints, see `active_forces`.

    Raises:
        UnknownNameError: For another method. SingularError: For a singular inertia matrix. Others as in
            `legged.forward_dynamics`.

    Source: Featherstone, Orin 2000, section 3.4.
    """
    if method not in METHODS and method != SUBSYSTEMS:
        raise UnknownNameError("method", method, (*METHODS, SUBSYSTEMS))
    robot = closed.robot
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 bias forces"):
        b = tau - bias_forces(robot, q, v, wrenches) + active_forces(closed, q, loop_forces or {})
    with stage("2 constraints"):
        J, c = jacobian(closed, q), constraint_acceleration(closed, q, v, stabilization)
    with stage("3 solution"):
        if method == SUBSYSTEMS:
            solution = Solution(*constrained_acceleration(closed, q, b, J, c))
        else:
            rows = select_rows(J, c, independent_flags(closed, J))
            vdot, lagrange = METHODS[method](robot, q, rows, b)
            solution = Solution(vdot, rows.combinations @ lagrange, len(rows.L), rows.inconsistency)
    finite(robot, "the closed-loop dynamics", solution.vdot)
    return solution


@checked
def joint_wrenches(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    vdot: Array,
    multipliers: Array,
    wrenches: Wrenches = None,
    *,
    loop_forces: Mapping[str, Any] | None = None,
) -> JointWrenches:
    """Return the wrenches that the joints of the spanning tree transmit, see `legged.joint_wrenches`.

    The closing joints act as external wrenches on the links that they connect; `loop_wrenches` returns those of their
    constraints.

    Args:
        closed: The robot with its loops.
        q, v: A state of its tree, (nq,) and (nv,). vdot: The acceleration of `solve`, (nv,).
        multipliers: Those of `solve`, (rows,), [N] or [N m], along the scalar constraints.
        wrenches: External wrenches on links, as in `legged.forward_dynamics`.
        loop_forces: Forces of motors in closing joints, see `active_forces`.

    Raises:
        As `legged.joint_wrenches`; ShapeError for multipliers that do not fit the constraints.

    Source: Featherstone, Orin 2000, eqs. (7) and (17).
    """
    robot = closed.robot
    multipliers = array("multipliers", multipliers, (len(closed.constraints),), "one entry per scalar constraint")
    terms = [(closed.loops[k], c, x) for (k, c), x in zip(closed.constraints, multipliers, strict=True)]
    for name, force in (loop_forces or {}).items():
        terms.append((closed.loop(name), motor_rate(closed.loop(name).joint), force))
    total = [np.zeros(6) for _ in robot.links]
    for link, w in link_wrenches(robot, wrenches):
        total[link.index] = in_link_axes(link, w)
    for loop, constraint, force in terms:
        poses = loop_frame_poses(closed.robot, q, loop)
        row = constraint.jacobian(*poses) * force
        for frame, pose, w in zip(loop.frames, poses, (row[:6], row[6:]), strict=True):
            if frame is None:
                continue
            at = resolve_frame(robot, frame)
            turn = (pose.rotation @ at.in_body.rotation.T @ robot.links[at.link].rotation).T  # world to link axes
            f = turn @ w[3:]
            total[at.link] = total[at.link] + join(turn @ w[:3] + cross(at.position, f), f)
    return tree_joint_wrenches(robot, q, v, vdot, np.array(total))


def simulation_acceleration(
    closed: ClosedRobot, q: Array, v: Array, tau: Array, wrenches: Array, stabilization: Stabilization
) -> Array:
    """Return the acceleration within a time step of a simulation, (nv,), by subsystems.

    Args:
        closed, q, v, tau, wrenches, stabilization: As in `solve`.
    """
    b = tau - bias_forces(closed.robot, q, v, wrenches)
    J, c = jacobian(closed, q), constraint_acceleration(closed, q, v, stabilization)
    vdot, *_ = constrained_acceleration(closed, q, b, J, c)
    return finite(closed.robot, "the closed-loop dynamics", vdot)
