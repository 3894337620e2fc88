"""The binary tree of assemblies of a robot, and acceleration constraints inside assemblies.

Bodies are numbered by their position in the list of massive bodies. An assembly that contains all bodies of a group of
constraints has them as handles, with accelerations a = Phi f + b. The constraints N a = c act by forces f = N^T lambda:

    N Phi N^T lambda = c - N b

This is equation (21) of Featherstone and Orin 2000 for one assembly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import factor_semidefinite, solve_columns
from legged.algorithms.massive_bodies import MassiveBody
from legged.spatial import Array, factor_symmetric, mirror, solve_factored, sum_of

GROUND = -1
"""Number of the ground, in place of a body's."""


@dataclass(frozen=True)
class Assembly:
    """Two assemblies and the joint between them.

    Attributes:
        inner, outer: The assembly nearer to the ground and the other one: an `Assembly`, or the number of a body.
        joint: Number of the body outward of the joint, which belongs to the outer assembly.
        handles: Numbers of its bodies that interact with the rest.
        groups: Numbers of the groups of constraints that are imposed in this assembly.
        constrained: Numbers of the bodies in these groups.
    """

    inner: Assembly | int
    outer: Assembly | int
    joint: int
    handles: tuple[int, ...]
    groups: tuple[int, ...] = ()
    constrained: tuple[int, ...] = ()

    @property
    def all_handles(self) -> tuple[int, ...]:
        """Its handles before its constraints are imposed."""
        return tuple(sorted({*self.handles, *self.constrained}))

    @property
    def root(self) -> int:
        """Its body nearest to the ground, or the ground."""
        return self.inner.root if isinstance(self.inner, Assembly) else self.inner

    @property
    def depth(self) -> int:
        """Longest chain of nested assemblies."""
        parts = (part.depth for part in (self.inner, self.outer) if isinstance(part, Assembly))
        return 1 + max(parts, default=0)


Component = Assembly | int
"""An assembly, or the number of a single body."""
Groups = Mapping[int, frozenset[int]]
"""Number of a group of constraints -> numbers of its bodies, `GROUND` among them if the ground is one."""


def assembly_tree(parents: Sequence[int], groups: Groups, ends: Collection[int] = ()) -> Component:
    """Return the whole robot as an assembly: the ground, joined one by one with the trees of bodies that it carries.

    Args:
        parents: Number of each body's parent. groups: Groups of constraints.
        ends: Numbers of bodies that are handles of the whole robot.
    """
    root: list[int] = []
    for k, parent in enumerate(parents):
        root.append(k if parent == GROUND else root[parent])
    whole: Component = GROUND
    included, remaining, trees = {GROUND}, dict(groups), sorted(set(root))
    for r in trees:
        bodies = [k for k in range(len(parents)) if root[k] == r]
        own = _groups_within(remaining, bodies)
        included |= set(bodies)
        here = {g: members for g, members in _groups_within(remaining, included).items() if g not in own}
        others = {g: members for g, members in remaining.items() if g not in own}
        outer = bisect(bodies, parents, [r, *ends, *_members(others)], own)
        remaining = {g: members for g, members in others.items() if g not in here}
        handles = {k for k in (*ends, *_members(remaining)) if k in included} | ({GROUND} if r != trees[-1] else set())
        whole = Assembly(whole, outer, r, tuple(sorted(handles)), tuple(here), _members(here))
    return whole


def bisect(
    bodies: Sequence[int], parents: Sequence[int], handles: Sequence[int], groups: Groups | None = None
) -> Component:
    """Return a connected part of a tree as a binary tree of assemblies.

    An assembly is divided into halves of nearly equal size. An assembly of three or more handles, whose cost is
    quadratic in their number, is divided such that the halves have the fewest handles. Constraints are imposed in the
    first assembly that contains all bodies of their group.

    Args:
        bodies: Numbers of its bodies, parent before child. parents: Of all bodies.
        handles: Numbers of bodies that interact with the rest. groups: Groups of constraints inside the part.
    """
    own_handles = tuple(k for k in bodies if k in handles)
    if len(bodies) == 1:
        return bodies[0]
    joint = _best_joint(bodies, parents, own_handles)
    outward = {joint}
    for k in bodies:
        if parents[k] in outward:
            outward.add(k)
    inner_bodies, outer_bodies = [k for k in bodies if k not in outward], [k for k in bodies if k in outward]
    groups = groups or {}
    in_inner, in_outer = _groups_within(groups, inner_bodies), _groups_within(groups, outer_bodies)
    here = {g: members for g, members in groups.items() if g not in in_inner and g not in in_outer}
    inner = bisect(inner_bodies, parents, [*own_handles, parents[joint], *_members(here)], in_inner)
    outer = bisect(outer_bodies, parents, [*own_handles, joint, *_members(here)], in_outer)
    return Assembly(inner, outer, joint, own_handles, tuple(here), _members(here))


def _groups_within(groups: Groups, bodies: Collection[int]) -> dict[int, frozenset[int]]:
    return {g: members for g, members in groups.items() if members <= set(bodies)}


def _members(groups: Groups) -> tuple[int, ...]:
    return tuple(sorted({k for members in groups.values() for k in members} - {GROUND}))


def _best_joint(bodies: Sequence[int], parents: Sequence[int], handles: Sequence[int]) -> int:
    """Return the body at whose joint a part is best divided."""
    sizes, handle_counts = dict.fromkeys(bodies, 1), {k: int(k in handles) for k in bodies}
    for k in reversed(bodies[1:]):
        sizes[parents[k]] += sizes[k]
        handle_counts[parents[k]] += handle_counts[k]

    def imbalance(k: int) -> tuple[int, int]:
        size = max(sizes[k], len(bodies) - sizes[k])
        count = max(handle_counts[k], len(handles) - handle_counts[k])
        return (count, size) if len(handles) > 2 else (size, count)

    return min(bodies[1:], key=imbalance)


@dataclass(frozen=True, eq=False)
class BodyConstraints:
    """A group of constraints on accelerations of bodies, sum of N_k a_k = c, that are imposed together.

    Attributes:
        N: For each body, (rows, 6), in its coordinates; a_k includes gravity as an upward acceleration.
        c: (rows,).
        bodies: Numbers of the bodies, `GROUND` among them if the ground is one.
    """

    N: dict[int, Array]
    c: Array
    bodies: frozenset[int]


class MultibodySystem(NamedTuple):
    """The parts of a robot: bodies, acceleration of the ground (6,), groups of constraints."""

    bodies: Sequence[MassiveBody]
    a_0: Array
    groups: Sequence[BodyConstraints]


@dataclass(frozen=True, eq=False)
class ImposedConstraints:
    """The constraints that are imposed in an assembly.

    Attributes:
        N: By body, (rows, 6). N_Phi: N Phi_i of each handle i before imposing them, (rows, 6).
        deficit: c - N b, (rows,).
    """

    N: dict[int, Array]
    N_Phi: dict[int, Array]
    deficit: Array

    @cached_property
    def factors(self) -> tuple:
        """Factors of N Phi N^T."""
        S = mirror(sum_of(self.N_Phi[k] @ rows.T for k, rows in self.N.items()))
        return factor_semidefinite(S) if S.dtype == object else factor_symmetric(S)

    def solve(self, right: Array) -> Array:
        """Return (N Phi N^T)^-1 times a vector or the columns of a matrix.

        Args:
            right: Right-hand sides, (rows,) or (rows, n), any unit.
        """
        return (
            np.asarray(solve_factored(self.factors, right)) if right.ndim == 1 else solve_columns(self.factors, right)
        )

    def add_constraint_forces(self, forces: Mapping[int, Array], deficit: Array) -> dict[int, Array]:
        """Return the forces on all handles, (6,) by body, including those of the constraints.

        Args:
            forces: External force by handle, (6,), [N m] and [N], body axes.
            deficit: c - N a without these forces, (rows,), any unit.
        """
        multipliers = self.solve(deficit - sum_of(self.N_Phi[i] @ f for i, f in forces.items() if i in self.N_Phi))
        constraint = {k: forces.get(k, np.zeros(6)) + rows.T @ multipliers for k, rows in self.N.items()}
        return {**forces, **constraint}


def impose(
    groups: Sequence[BodyConstraints],
    handles: Sequence[int],
    Phi: Callable[[int, int], Array],
    b: Callable[[int], Array],
) -> ImposedConstraints:
    """Return groups of constraints as they are imposed in an assembly.

    Args:
        groups: The constraints. handles: Handles of the assembly, including all constrained bodies.
        Phi: Inverse inertia between two handles, (6, 6), mixed units, in body axes.
        b: Acceleration of a handle without forces, (6,), mixed units, in body axes.
    """
    bodies = sorted({k for group in groups for k in group.N})
    N = {k: np.concatenate([g.N.get(k, np.zeros((len(g.c), 6))) for g in groups]) for k in bodies}
    N_Phi = {i: np.zeros((len(N[bodies[0]]), 6)) + sum_of(N[k] @ Phi(k, i) for k in bodies) for i in handles}
    deficit = np.concatenate([g.c for g in groups]) - sum_of(rows @ b(k) for k, rows in N.items())
    return ImposedConstraints(N, N_Phi, deficit)
