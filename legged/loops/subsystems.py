"""Closed-loop dynamics in DeNOC form: Lagrange multipliers of cut joints, eliminated group by group of loops.

The closing joints are cut, and Lagrange multipliers, their constraint forces, act in their place. Loops that share
joints of the tree are a `LoopGroup`. The bodies of a group are attached to one body outside of it, its *head*, in one
or several *subsystems*: the serial or tree-type branches that the cuts leave.

- Forward dynamics is the recursion of a tree between groups. A subsystem has the equations of a kinematic module. A
  group is eliminated with its multipliers, as a module is: its head receives an articulated inertia and a wrench.
- Inverse dynamics finds the multipliers from the equations of joints without actuators. Those of a *determinate*
  subsystem, which has as many such equations as unknown multipliers, come first; they are known in the others, of which
  some become determinate. Indeterminate subsystems are solved together.

Source: Saha, Schiehlen 2001, Recursive kinematics and dynamics for parallel structured closed-loop multibody systems;
Chaudhary, Saha 2007, Constraint wrench formulation for closed-loop systems using two-level recursions; Koul, Shah,
Saha, Manivannan 2014, Reduced-order forward dynamics of multiclosed-loop systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from legged.algorithms.linear_algebra import factor_semidefinite, select_rows, solve_rows
from legged.dynamics.inertia import ArticulatedChain, added
from legged.dynamics.modules import SerialChain, congruence, pairwise_sum, serial_chains
from legged.loops.closed_robot import ClosedRobot
from legged.loops.redundancy import independent_flags
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, is_zero, mirror, solve_factored


@dataclass(frozen=True)
class Subsystem:
    """A serial or tree-type branch of a group of loops whose closing joints are cut.

    Attributes:
        bodies: Indices in `robot.bodies`. entries: Entries of v of its joints.
    """

    bodies: tuple[int, ...]
    entries: tuple[int, ...]


@dataclass(frozen=True)
class LoopGroup:
    """Loops that share joints of the tree, or joints that follow others, with all bodies that these loops contain.

    Attributes:
        head: Index of the body that carries the group; -1 if the group contains the base, as with feet that are pinned.
        subsystems: The branches on the head. loops: Numbers of the loops in `closed.loops`.
        rows: Numbers of their constraints in `closed.constraints`.
    """

    head: int
    subsystems: tuple[Subsystem, ...]
    loops: tuple[int, ...]
    rows: tuple[int, ...]

    @cached_property
    def bodies(self) -> tuple[int, ...]:
        """Indices of the bodies of all subsystems, in increasing order."""
        return tuple(sorted(k for subsystem in self.subsystems for k in subsystem.bodies))

    @cached_property
    def entries(self) -> tuple[int, ...]:
        """Entries of v of all subsystems, one subsystem after another."""
        return tuple(e for subsystem in self.subsystems for e in subsystem.entries)


def loop_groups(closed: ClosedRobot) -> tuple[LoopGroup, ...]:
    """Return the groups of loops and of coupled joints, each body in at most one; rigid loops have none."""
    robot = closed.robot
    merged: list[tuple[set[int], list[int]]] = []
    around = [(set(closed.bodies_around(loop.name)), [k]) for k, loop in enumerate(closed.loops)]
    for bodies, numbers in around + [(bodies, []) for bodies in _coupled_bodies(robot)]:
        for other in [other for other in merged if other[0] & bodies]:
            merged.remove(other)
            bodies, numbers = bodies | other[0], other[1] + numbers
        if bodies:
            merged.append((bodies, numbers))
    groups = []
    for bodies, numbers in merged:
        rows = tuple(i for i, (k, _) in enumerate(closed.constraints) if k in numbers)
        head = robot.bodies[min(bodies)].parent
        groups.append(LoopGroup(head, tuple(_branches(robot, bodies, head)), tuple(sorted(numbers)), rows))
    return tuple(groups)


def _coupled_bodies(robot: Robot) -> Iterator[set[int]]:
    """Yield the bodies between two that share entries of v, with these two."""
    for body, other in combinations((body for body in robot.bodies if body.nv), 2):
        if body.v == other.v:
            paths = [set(robot.ancestors(b.index)) for b in (body, other)]
            yield {k for k in paths[0] ^ paths[1] if robot.bodies[k].nv} | {body.index, other.index}


def _branches(robot: Robot, bodies: set[int], head: int) -> Iterator[Subsystem]:
    """Yield the branches of a group, with outer joints first to keep zeros in the factors; coupled branches are one."""
    branches: list[tuple[set[int], list[int]]] = []
    for k in sorted(bodies, reverse=True):
        body = robot.bodies[k]
        members, entries = {k}, list(range(body.v.start, body.v.stop))[::-1]
        for other in [
            x for x in branches if any(robot.bodies[c].parent == k for c in x[0]) or set(entries) & set(x[1])
        ]:
            branches.remove(other)
            members, entries = members | other[0], other[1] + [e for e in entries if e not in other[1]]
        branches.append((members, entries))
    return (Subsystem(tuple(sorted(members)), tuple(entries)) for members, entries in branches)


class ArticulatedGroup:
    """The articulated inertia of a group of loops, with the methods of modules in `legged.dynamics.inertia`.

    With N, A and M~ of the cut group, where M~ includes the articulated inertias of all modules outward of it, L the
    independent rows of J, and lambda their multipliers,

        I^ = N^T M~ N,  F = A^T M~ N                                             (A.2), (A.3) of a group
        I^ qdd + F^T a = phi + L^T lambda,    L qdd = c,    S = L inv(I^) L^T
        qdd = x - Y a,   lambda = y + G a
        transmitted: A^T M~ A - F Y,    wrench on the head: A^T w + F x          (A.9) with multipliers

    where a is the acceleration of the head, phi the generalized forces of the group and w the wrenches on its bodies.
    I^ has a diagonal block for each subsystem, so that S is a sum over the subsystems.

    The inverse of S exists if L has full rank. The term of one subsystem in S may be singular, as that of crank and
    coupler of a four-bar linkage where both lie in a line, twice per revolution. Multipliers are therefore not
    eliminated for each subsystem alone.

    Args:
        robot: The robot. q: Configuration, (nq,). group: The group.
        M_hat: Mass matrix of each of its bodies, with those transmitted by modules on it, (6, 6), body axes.
        J: phi' of all loops, (rows, nv), any unit. c: Right side, (rows,), any unit.
        flags: Whether each of its rows is independent of those before it, (rows,).
    """

    def __init__(
        self,
        robot: Robot,
        q: Array,
        group: LoopGroup,
        M_hat: Mapping[int, Array],
        J: Array,
        c: Array,
        flags: Sequence[Any],
    ) -> None:
        self.group, self.place = group, {e: i for i, e in enumerate(group.entries)}
        self.bodies = [robot.bodies[k] for k in group.bodies]
        self.X = {body.index: body.transform(q) for body in self.bodies if body.parent >= 0}
        self.P = {body.index: body.motion_matrix(robot.base, q) for body in self.bodies}
        self.I_hat, self.F, M_head = self._composite(M_hat, object if robot.is_traced else np.result_type(q, float))
        self.rows = select_rows(J[np.ix_(group.rows, group.entries)], c[list(group.rows)], flags)
        L, n = self.rows.L, len(group.entries)
        self.parts = [(part, factor_symmetric(self.I_hat[np.ix_(part, part)])) for part in _positions(group)]
        self.Y, self.Z = np.zeros((n, 6), self.F.dtype), np.zeros(L.shape, self.F.dtype)
        for part, factors in self.parts:
            if group.head >= 0:
                self.Y[part] = solve_rows(factors, self.F[:, part]).T
            for i in range(len(L)):
                if not all(is_zero(entry) for entry in L[i, part]):
                    self.Z[i, part] = solve_factored(factors, L[i, part])
        S = mirror(L @ self.Z.T)
        self.S = factor_symmetric(S) if self.rows.flags is None else factor_semidefinite(S, self.rows.flags)
        self.G = solve_rows(self.S, (L @ self.Y).T).T if group.head >= 0 and len(L) else np.zeros((len(L), 6))
        if group.head >= 0:
            self.Y = self.Y - self.Z.T @ self.G
            self.transmitted = mirror(M_head - self.F @ self.Y)

    def _composite(self, M_hat: Mapping[int, Array], dtype: Any) -> tuple[Array, Array, Array]:
        """Return (I^ (n, n), F (6, n), A^T M~ A (6, 6)) of the cut group, from its outermost body inward."""
        n, head = len(self.place), self.group.head
        I_hat, F = np.zeros((n, n), dtype), np.zeros((6, n), dtype)
        M_tilde = {**M_hat, head: np.zeros((6, 6))}
        by_index = {body.index: body for body in self.bodies}
        for body in reversed(self.bodies):
            k, own = body.index, self._entries(body)
            columns = M_tilde[k] @ self.P[k] + body.rotor_momentum
            I_hat[np.ix_(own, own)] += mirror(self.P[k].T @ columns + body.rotor_inertia)
            inner = body
            while inner.parent >= 0:
                columns = np.stack([self.X[inner.index].T @ column for column in columns.T], axis=1)
                if inner.parent == head:
                    F[:, own] += columns
                    break
                inner = by_index[inner.parent]
                above, block = self._entries(inner), self.P[inner.index].T @ columns
                I_hat[np.ix_(above, own)] += block
                I_hat[np.ix_(own, above)] += block.T
            if body.parent >= 0:
                M_tilde[body.parent] = M_tilde[body.parent] + congruence(self.X[k], M_tilde[k])
        return I_hat, F, M_tilde[head]

    def _entries(self, body: Body) -> list[int]:
        return [self.place[e] for e in range(body.v.start, body.v.stop)]

    def inward(self, tau: Array, w: Mapping[int, Array]) -> tuple[tuple[Array, Array], Array]:
        """Return ((x, y), wrench on the head (6,)).

        Args:
            tau: Generalized forces of the robot, (nv,), [N m] or [N], joint axes.
            w: Wrench on each body of the group, (6,), [N m, N], body axes.
        """
        phi, carried = tau[list(self.group.entries)], {**w, self.group.head: np.zeros(6)}
        for body in reversed(self.bodies):
            own = self._entries(body)
            phi[own] = phi[own] - self.P[body.index].T @ carried[body.index]
            if body.parent >= 0:
                carried[body.parent] = carried[body.parent] + self.X[body.index].T @ carried[body.index]
        x = np.zeros(len(phi), np.result_type(phi, self.F))
        for part, factors in self.parts:
            x[part] = solve_factored(factors, phi[part])
        y = solve_factored(self.S, self.rows.c - self.rows.L @ x) if len(self.rows.c) else np.zeros(0)
        x = x + self.Z.T @ y if len(y) else x
        return (x, y), carried[self.group.head] + self.F @ x

    def outward(self, phi: tuple[Array, Array], mu: Array | None) -> tuple[Array, Array, dict[int, Array]]:
        """Return (qdd of its entries (n,), multipliers of its rows (rows,), mu of each of its bodies (6,)).

        Args:
            phi: The first result of `inward`: (n,), [rad/s^2] or [m/s^2], joint axes; (rank,), [N] or [N m].
            mu: mu of the head, (6,), [rad/s^2, m/s^2], its axes; None for none.
        """
        x, y = phi
        if mu is not None:
            x, y = x - self.Y @ mu, y + self.G @ mu
        motions: dict[int, Array] = {}
        for body in self.bodies:
            k, relative = body.index, self.P[body.index] @ x[self._entries(body)]
            inner = motions.get(body.parent, mu)
            motions[k] = relative if inner is None else self.X[k] @ inner + relative
        return x, self.rows.combinations @ y, motions


def constrained_acceleration(
    closed: ClosedRobot, q: Array, b: Array, J: Array, c: Array
) -> tuple[Array, Array, int, float]:
    """Return (vdot (nv,), multipliers (rows,), rank, inconsistency) of I vdot = b + J^T lambda, J vdot = c.

    It is the recursion of `legged.forward_dynamics`, Figure A.2 of Shah, Saha, Dutt 2012, between groups of loops and
    the pieces of modules between them. The cost is linear in the number of groups.

    Args:
        closed: The robot. q: Configuration, (nq,).
        b: Generalized forces tau - h, (nv,), [N m] or [N], joint axes.
        J: phi', (rows, nv), any unit. c: Right side, (rows,), any unit.
    """
    robot, groups = closed.robot, loop_groups(closed)
    flags = independent_flags(closed, J)
    inertias, wrenches = ([[] for _ in robot.bodies] for _ in range(2))  # of the parts on each body
    solved: list[tuple[SerialChain | LoopGroup, Any, Any]] = []
    for part in reversed(_parts(robot, q, groups)):
        if isinstance(part, SerialChain):
            last, parent = part.bodies[-1].index, part.bodies[0].parent
            M_hat = added(part, [body.regrouped.M for body in part.bodies], inertias[last])
            articulated: Any = ArticulatedChain(part, M_hat, [body.rotor_inertia for body in part.bodies])
            w = added(part, [np.zeros(6) for _ in part.bodies], wrenches[last])
            phi, to_parent = articulated.inward(part.joint_entries(b), w)
        else:
            parent = part.head
            masses = {k: pairwise_sum([robot.bodies[k].regrouped.M, *inertias[k]]) for k in part.bodies}
            articulated = ArticulatedGroup(robot, q, part, masses, J, c, [flags[row] for row in part.rows])
            w_k = {k: pairwise_sum([np.zeros(6), *wrenches[k]]) for k in part.bodies}
            phi, to_parent = articulated.inward(b, w_k)
        solved.append((part, articulated, phi))
        if parent >= 0:
            inertias[parent].append(articulated.transmitted)
            wrenches[parent].append(to_parent)
    vdot, multipliers = np.zeros(robot.nv, b.dtype), np.zeros(len(c), np.result_type(b, J, c))
    mu: dict[int, Array] = {}
    for part, articulated, phi in reversed(solved):
        if isinstance(part, SerialChain):
            qdd, mu[part.bodies[-1].index] = articulated.outward(phi, mu.get(part.bodies[0].parent))
            for body, qdd_k in zip(part.bodies, qdd, strict=True):
                vdot[body.v] = qdd_k
        else:
            qdd, multipliers[list(part.rows)], motion_outward = articulated.outward(phi, mu.get(part.head))
            vdot[list(part.entries)] = qdd
            mu |= motion_outward
    eliminated = [articulated for part, articulated, _ in solved if isinstance(part, LoopGroup)]
    rank = sum(len(articulated.rows.c) for articulated in eliminated)
    return vdot, multipliers, rank, max((articulated.rows.inconsistency for articulated in eliminated), default=0.0)


def _parts(robot: Robot, q: Array, groups: Sequence[LoopGroup]) -> list[SerialChain | LoopGroup]:
    """Return the groups, and the pieces of modules between them as serial chains, parents before children."""
    first = {group.bodies[0]: group for group in groups}
    inside = {k for group in groups for k in group.bodies}
    parts: list[SerialChain | LoopGroup] = []
    for chain in serial_chains(robot, q):
        piece: list[int] = []
        for i, body in enumerate(chain.bodies):
            if body.index not in inside:
                piece.append(i)
            if piece and (body.index in inside or i == len(chain.bodies) - 1):
                links = slice(piece[0], piece[-1] + 1)
                matrices = chain.A_k[links], chain.p_k[links], chain.H_k[links]
                outside = chain.bodies[piece[0]].parent
                parts.append(SerialChain(chain.index, outside, 1, chain.bodies[links], *matrices))
                piece = []
            if body.index in first:
                parts.append(first[body.index])
    return parts


def _positions(group: LoopGroup) -> Iterator[list[int]]:
    """Yield the positions of each subsystem's entries among those of the group."""
    start = 0
    for subsystem in group.subsystems:
        yield list(range(start, start + len(subsystem.entries)))
        start += len(subsystem.entries)
