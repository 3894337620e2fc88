"""The loop constraints at a configuration: residual, Jacobian, bias and rank, and a table of the loops.

The scalar constraints phi(q) = 0 of all closing joints are the rows; `closed.constraints` lists them with their loops.
`mobility` states which rows are independent, which dynamics and `assemble` impose.

Source: equation numbers are those of Featherstone, Orin 2000, section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from legged.arguments import array
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, frame_acceleration, frame_twist
from legged.loops.closed_robot import ClosedRobot
from legged.loops.redundancy import (
    GAP_TOP,
    farthest_first,
    independent_flags,
    loop_frame_poses,
    loop_frames_jacobian,
    margins,
    row_tolerances,
)
from legged.spatial import Array
from legged.table import Table


@checked
def residual(closed: ClosedRobot, q: Array) -> Array:
    """Return phi(q), (rows,), [m] or 1, equation (16); zero where the loops are closed.

    Rows of nonholonomic constraints, as of a rolling contact, are zero.

    Args:
        closed: The robot with its loops. q: Configuration of its tree, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    poses = [loop_frame_poses(closed.robot, q, loop) for loop in closed.loops]
    return _vector([constraint.value(*poses[k]) for k, constraint in closed.constraints])


@checked
def jacobian(closed: ClosedRobot, q: Array) -> Array:
    """Return phi', (rows, nv), with phi_dot = phi' v, equation (17).

    It is composed of the Jacobians of each joint's two frames, in world axes. Joints that move both frames alike do not
    change phi: their columns are exactly zero.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    J = [loop_frames_jacobian(closed.robot, q, loop) for loop in closed.loops]
    for around, loop in zip(J, closed.loops, strict=True):
        entries = {e for k in closed.bodies_around(loop.name) for e in range(closed.robot.nv)[closed.robot.bodies[k].v]}
        around[:, [e for e in range(closed.robot.nv) if e not in entries]] = 0.0
    poses = [loop_frame_poses(closed.robot, q, loop) for loop in closed.loops]
    rows = [constraint.jacobian(*poses[k]) @ J[k] for k, constraint in closed.constraints]
    return np.array(rows) if rows else np.zeros((0, closed.robot.nv))


@checked
def bias(closed: ClosedRobot, q: Array, v: Array) -> Array:
    """Return phi_ddot at vdot = 0, (rows,): the term phi'_dot v of equation (17).

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    return acceleration(closed, q, v, np.zeros(closed.robot.nv))


@checked
def acceleration(closed: ClosedRobot, q: Array, v: Array, vdot: Array) -> Array:
    """Return phi_ddot = phi' vdot + phi'_dot v, (rows,), equation (17).

    Args:
        closed: The robot with its loops. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
    """
    robot = closed.robot
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)

    def on_frames(motion: Callable[[Frame], Array]) -> list[list[Array]]:
        return [[np.zeros(6) if f is None else motion(f) for f in loop.frames] for loop in closed.loops]

    poses = [loop_frame_poses(closed.robot, q, loop) for loop in closed.loops]
    t = on_frames(lambda f: frame_twist(robot, q, v, f))
    td = on_frames(lambda f: frame_acceleration(robot, q, v, vdot, f))
    return _vector(
        [c.jacobian(*poses[k]) @ np.concatenate(td[k]) + c.bias(*poses[k], *t[k]) for k, c in closed.constraints]
    )


@checked
def loop_wrenches(closed: ClosedRobot, q: Array, multipliers: Array) -> Array:
    """Return the wrench of each closing joint on its child, (loops, 6), [n; f] about the child's frame, world axes.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        multipliers: lambda of `solve`, (rows,), [N] or [N m], along the scalar constraints.
    """
    (q,) = read(closed.robot, q=q)
    multipliers = array("multipliers", multipliers, (len(closed.constraints),), "one entry per scalar constraint")
    poses = [loop_frame_poses(closed.robot, q, loop) for loop in closed.loops]
    total = [np.zeros(6) for _ in closed.loops]
    for (k, constraint), force in zip(closed.constraints, multipliers, strict=True):
        total[k] = total[k] + constraint.jacobian(*poses[k])[6:] * force
    return np.array(total).reshape(-1, 6)


def _vector(values: list) -> Array:
    return np.array(values) if values else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Mobility:
    """The mobility of a mechanism at a configuration; prints as a sentence.

    The margin of a row is the length of its part that the rows before it do not contain, dimensionless: lengths are
    relative to the size of the loop. A row whose margin is at most its tolerance is redundant and not imposed.

    Attributes:
        rows: Number of constraints. rank: Number of independent ones. freedoms: nv - rank, degrees of freedom.
        singular_values: Of phi', in decreasing order, (min(rows, nv),).
        dependent: Names of the redundant rows, "joint: k-th row"; of equivalent rows the later ones.
        names: Names of all rows, in their order. margins: Of each row, (rows,). tolerances: Of each row, (rows,).
    """

    rows: int
    rank: int
    freedoms: int
    singular_values: Array
    dependent: tuple[str, ...]
    names: tuple[str, ...]
    margins: Array
    tolerances: Array

    @property
    def gap(self) -> float:
        """Smallest margin of an independent row over the largest of a redundant one; inf without redundant rows.

        A gap of less than 100 means that the number of degrees of freedom depends on the tolerance.
        """
        redundant = self.margins <= self.tolerances
        top, below = self.margins[~redundant], self.margins[redundant].max(initial=0.0)
        return float(top.min(initial=np.inf) / below) if below > 1e-14 else np.inf

    @property
    def uncertain(self) -> dict[str, float]:
        """Name -> margin of the rows between certainly redundant (1e-10) and certainly independent (2e-2)."""
        return {n: float(m) for n, m in zip(self.names, self.margins, strict=True) if _ROUNDING < m < GAP_TOP}

    def __str__(self) -> str:
        margins = self.uncertain
        dependent = [f"{name} (by {margins[name]:.2g})" if name in margins else name for name in self.dependent]
        redundant = f"; redundant: {', '.join(dependent)}" if dependent else ""
        close = [f"{name} (by {m:.2g})" for name, m in margins.items() if name not in self.dependent]
        near = f"; nearly redundant: {', '.join(close)}" if close else ""
        freedoms = "1 degree of freedom" if self.freedoms == 1 else f"{self.freedoms} degrees of freedom"
        return f"{self.rows} constraints of rank {self.rank}, {freedoms}{redundant}{near}"


_ROUNDING = 1e-10  # margin of a row that is redundant up to rounding


@checked
def mobility(closed: ClosedRobot, q: Array) -> Mobility:
    """Return the number of independent constraints and the degrees of freedom at a configuration.

    It shows the decision that dynamics, simulations and `assemble` take, for numbers and in compiled functions;
    `closed.with_rank_tolerance` changes it.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    J = jacobian(closed, q)
    flags = independent_flags(closed, J)
    every = [f"{loop.name}: row {i}" for loop in closed.loops for i in range(1, len(loop.constraints) + 1)]
    names = tuple(every[i] for i in closed.rows)
    rank = sum(map(bool, flags))
    return Mobility(
        rows=len(J),
        rank=rank,
        freedoms=closed.robot.nv - rank,
        singular_values=np.linalg.svd(J, compute_uv=False),
        dependent=tuple(name for name, flag in zip(names, flags, strict=True) if not flag),
        names=names,
        margins=margins(closed, J),
        tolerances=row_tolerances(closed),
    )


@checked
def independent_first(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with its constraint rows reordered: those independent at a configuration come first.

    The others become active again where their margin exceeds ten times their tolerance.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    closed = replace(closed, independent_count=None)
    first = farthest_first(closed, jacobian(closed, q))
    others = [i for i in range(len(closed.rows)) if i not in first]
    return replace(closed, rows=tuple(closed.rows[i] for i in (*first, *others)), independent_count=len(first))


@checked
def independent_only(closed: ClosedRobot, q: Array) -> ClosedRobot:
    """Return the robot with only the constraint rows that are independent at a configuration, for traced functions.

    At other configurations the omitted rows may be independent; `mobility` shows it.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
    """
    (q,) = read(closed.robot, q=q)
    flags = independent_flags(closed, jacobian(closed, q))
    rows = tuple(row for row, flag in zip(closed.rows, flags, strict=True) if flag)
    return replace(closed, rows=rows, independent_count=None)


def loop_table(closed: ClosedRobot, q: Array) -> Table:
    """Return the loop joints with the links of each loop, and the mobility.

    Args:
        closed: The robot. q: Configuration with closed loops, (nq,).
    """
    rows = []
    for loop in closed.loops:
        kind = type(loop.joint).__name__.lower()
        around = ", ".join(closed.cycle(loop.name))
        rows.append((loop.name, kind, loop.parent or "world", loop.child, around, str(len(loop.constraints))))
    header = ("joint", "kind", "parent", "child", "links around", "constraints")
    notes = (
        f"{mobility(closed, q)}.",
        "The tables above describe the spanning tree, which defines q and v.",
    )
    return Table("Joints that close loops", header, tuple(rows), notes, left=5)
