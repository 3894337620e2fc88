"""Loops inside assemblies: what their joints demand of the handles, and the forces that give it.

An assembly that has both ends of a loop has their bodies for handles, which accelerate by a = Phi f + b. The rows of
closing joints demand N a = c, and pull with f = N^T lambda:

    N Phi N^T lambda = c - N b

It is equation (21) of Featherstone and Orin 2000, of one assembly. Rows of loops that share joints of the tree may
depend on each other: such loops are a group, and are closed together, so that the rank test is that of `legged.loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.assemblies import GROUND
from legged.algorithms.jointed import Jointed
from legged.dynamics.frames import Frame, Pose, resolve_frame
from legged.dynamics.kinematics import Motion
from legged.errors import DefinitionError
from legged.loops.closing import Row
from legged.loops.constraints import jacobian
from legged.loops.loop import ClosedRobot, Loop
from legged.loops.rank import factor_dependent, independent_rows
from legged.spatial import Array, cross, factor_symmetric, join, mirror, skew, solve_factored, sum_of


@dataclass(frozen=True, eq=False)
class Group:
    """Loops that are closed together: independent rows, sum of N_k a_k = c.

    Attributes:
        N: By place of the body, (rows, 6), its coordinates; a_k with gravity as an upward acceleration.
        c: (rows,).
        ends: Places of the bodies, `GROUND` among them if the ground is an end.
    """

    N: dict[int, Array]
    c: Array
    ends: frozenset[int]


class Parts(NamedTuple):
    """What assemblies are made of: bodies, the ground's acceleration (6,), loops."""

    bodies: Sequence[Jointed]
    a_0: Array
    groups: Sequence[Group]


@dataclass(frozen=True, eq=False)
class Closing:
    """Loops of an assembly as they are closed.

    Attributes:
        N: By place of their ends, (rows, 6). felt: N Phi_i of each handle and end, (rows, 6).
        lack: c - N b, (rows,).
    """

    N: dict[int, Array]
    felt: dict[int, Array]
    lack: Array

    @cached_property
    def factors(self) -> tuple:
        """Of N Phi N^T."""
        S = mirror(sum_of(self.felt[k] @ rows.T for k, rows in self.N.items()))
        return factor_dependent(S) if S.dtype == object else factor_symmetric(S)

    def solved(self, right: Array) -> Array:
        """Return (N Phi N^T)^-1 times the columns of a matrix, (rows, n), or a vector, (rows,)."""
        if right.ndim == 1:
            return np.asarray(solve_factored(self.factors, right))
        return np.array([solve_factored(self.factors, column) for column in right.T]).T

    def pulled(self, forces: Mapping[int, Array], lack: Array) -> dict[int, Array]:
        """Return the forces on all handles and ends, (6,) by place, from those of outside.

        Args:
            forces: By handle. lack: What the rows lack without these.
        """
        pull = self.solved(lack - sum_of(self.felt[i] @ f for i, f in forces.items() if i in self.felt))
        return {**forces, **{k: forces.get(k, np.zeros(6)) + rows.T @ pull for k, rows in self.N.items()}}


def closing(
    groups: Sequence[Group], handles: Sequence[int], Phi: Callable[[int, int], Array], b: Callable[[int], Array]
) -> Closing:
    """Return loops as an assembly closes them.

    Args:
        groups: Of the loops. handles: The assembly's, those that the loops alone need included.
        Phi, b: How handles accelerate: (6, 6) of two of them, (6,) of one.
    """
    places = sorted({k for group in groups for k in group.N})
    N = {k: np.concatenate([g.N.get(k, np.zeros((len(g.c), 6))) for g in groups]) for k in places}
    felt = {i: np.zeros((len(N[places[0]]), 6)) + sum_of(N[k] @ Phi(k, i) for k in places) for i in handles}
    lack = np.concatenate([g.c for g in groups]) - sum_of(rows @ b(k) for k, rows in N.items())
    return Closing(N, felt, lack)


class End(NamedTuple):
    """One frame of a closing joint, whose acceleration is T a + rate; world axes.

    Attributes:
        place: Of its body, `GROUND` if that stands still. pose: In the world. twist: (6,).
        T: (6, 6). rate: (6,), gravity's share in a taken away again.
    """

    place: int
    pose: Pose
    twist: Array
    T: Array
    rate: Array


def groups_of(closed: ClosedRobot, q: Array, moving: Motion, bodies: Sequence[Jointed]) -> list[Group]:
    """Return what a robot's loops demand of the accelerations of the bodies that they join, group by group.

    Args:
        closed: The robot with its loops. q: Configuration, (nq,).
        moving: Its bodies' poses and velocities. bodies: Those with inertia.

    Raises:
        DefinitionError: for a loop that ends on a body without mass.
    """
    places = {body.index: place for place, body in enumerate(bodies)}
    ends = [[_end(closed, loop, frame, moving, places) for frame in loop.ends] for loop in closed.loops]
    # Pivots are the rank test of traced rows.
    J = np.zeros((len(closed.demands), 0), object) if q.dtype == object else jacobian(closed, q)
    found = [_group(closed, numbers, ends, J) for numbers in _sharing(closed)]
    return [group for group in found if group.N and len(group.c)]


def _group(closed: ClosedRobot, group: Sequence[int], ends: Sequence[Sequence[End]], J: Array) -> Group:
    """Return loops as a group, from their numbers, all loops' ends, and phi', (rows, nv)."""
    numbers = [i for i, (k, _) in enumerate(closed.demands) if k in group]
    rows = [_row(ends[k], row) for k, row in (closed.demands[i] for i in numbers)]
    c = np.array([demanded for _, demanded in rows])
    U = independent_rows(J[numbers], c).spread
    joined = frozenset(end.place for k in group for end in ends[k])
    felt = {place: np.array([own.get(place, np.zeros(6)) for own, _ in rows]) for place in joined - {GROUND}}
    return Group({place: U.T @ own for place, own in felt.items()}, U.T @ c, joined)


def _row(ends: Sequence[End], row: Row) -> tuple[dict[int, Array], Any]:
    """Return (what a row takes of the acceleration at each place, what they have to sum to)."""
    P, C = ends
    felt = row.row(P.pose, C.pose)
    drift = felt @ np.concatenate([P.rate, C.rate]) + row.drift(P.pose, C.pose, P.twist, C.twist)
    return {end.place: part @ end.T for end, part in ((P, felt[:6]), (C, felt[6:]))}, -drift


def _sharing(closed: ClosedRobot) -> Iterator[list[int]]:
    """Yield the numbers of loops that share joints of the tree, directly or through others."""
    waiting = {k: _around(closed, loop) for k, loop in enumerate(closed.loops)}
    while waiting:
        first = next(iter(waiting))
        group, joints = [first], waiting.pop(first)
        while near := [k for k, others in waiting.items() if others & joints]:
            for k in near:
                group.append(k)
                joints |= waiting.pop(k)
        yield group


def _around(closed: ClosedRobot, loop: Loop) -> set[int]:
    """Return the bodies whose joints a loop goes through."""
    robot = closed.robot
    ways = [set(robot.ancestors(resolve_frame(robot, frame).body)) if frame else set() for frame in loop.ends]
    return {k for k in ways[0] ^ ways[1] if robot.bodies[k].nv}


def _end(closed: ClosedRobot, loop: Loop, frame: Frame | None, moving: Motion, places: Mapping[int, int]) -> End:
    """Return the end of a loop at a frame, or at the world for None."""
    still = np.zeros(6)
    if frame is None:
        return End(GROUND, loop.frame, still, np.eye(6), still)
    _, _, k, (turn, r) = resolve_frame(closed.robot, frame)
    R, t = moving.rotation[k], moving.twist[k]
    pose = Pose(R @ turn, moving.origin[k] + R @ r)
    if k == 0 and not closed.robot.base.nv:
        return End(GROUND, pose, still, np.eye(6), still)
    if k not in places:
        raise DefinitionError(
            f"joint {loop.name!r} closes a loop at {frame.on!r}, which has no mass; divide and conquer needs some there"
        )
    velocity = t[3:] + cross(t[:3], r)
    T = np.block([[R, np.zeros((3, 3))], [-R @ skew(r), R]])
    rate = join(np.zeros(3), R @ cross(t[:3], velocity) + closed.robot.gravity)
    return End(places[k], pose, join(R @ t[:3], R @ velocity), T, rate)
