"""Inverse dynamics of robots with closed loops: multipliers and actuator forces, determinate subsystems first.

Source: Chaudhary, Saha 2007, Constraint wrench formulation for closed-loop systems using two-level recursions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import select_rows, solve_least_norm
from legged.arguments import known_name
from legged.checked import checked
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inverse import inverse_dynamics as tree_inverse_dynamics
from legged.errors import UnknownNameError
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import jacobian
from legged.loops.dynamics import active_forces
from legged.loops.redundancy import independent_flags
from legged.loops.subsystems import LoopGroup, loop_groups
from legged.spatial import Array


class ClosedInverseDynamics(NamedTuple):
    """The result of `inverse_dynamics`.

    Attributes:
        tau: Generalized forces of the tree, (nv,), [N m] or [N]. Entries of joints without actuators, and of the base,
            are the part that actuators and loops cannot apply, zero if the motion is possible.
        multipliers: lambda, (rows,), [N] or [N m], as of `legged.loops.solve`.
    """

    tau: Array
    multipliers: Array


@dataclass(frozen=True)
class Step:
    """Multipliers that follow from the equations of some subsystems, once those of earlier steps are known.

    Attributes:
        links: Names of the first links of the subsystems.
        joints: Names of the closing joints whose multipliers are found.
        equations: Number of equations of joints without actuators.
        multipliers: Number of unknown multipliers.
        entries: The entries of v of these equations. loops: The numbers of the loops.
    """

    links: tuple[str, ...]
    joints: tuple[str, ...]
    equations: int
    multipliers: int
    entries: tuple[int, ...]
    loops: tuple[int, ...]

    @property
    def determinate(self) -> bool:
        """Whether there are as many equations as unknown multipliers."""
        return self.equations == self.multipliers

    def __str__(self) -> str:
        kind = "determinate" if self.determinate else "indeterminate"
        return (
            f"{' + '.join(self.links)}: {self.equations} equations, {self.multipliers} multipliers of "
            f"{', '.join(self.joints)} ({kind})"
        )


@checked
def determinacy(closed: ClosedRobot, q: Array, actuated: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps in which `inverse_dynamics` finds the multipliers.

    A subsystem is determinate if the equations of its joints without actuators are as many as the multipliers at its
    cut joints that are not known yet. Subsystems that are not determinate alone can be so together. If a group of loops
    has fewer such equations than multipliers, it has more actuators than degrees of freedom; if it has more, fewer.
    The choice of the joints that are cut changes the steps: a four-bar linkage is determinate subsystem by subsystem
    if it is cut at the driven link.

    Args:
        closed: The robot. q: Configuration, (nq,), at which independent constraints are counted.
        actuated: Names of the joints with actuators.

    Raises:
        UnknownNameError: For an unknown joint.
    """
    (q,) = read(closed.robot, q=q)
    driven, J = _driven_entries(closed, actuated), jacobian(closed, q)
    return tuple(
        step for group in loop_groups(closed) for step in _steps(closed, group, driven, _combinations(closed, group, J))
    )


@checked
def inverse_dynamics(
    closed: ClosedRobot,
    q: Array,
    v: Array,
    vdot: Array,
    wrenches: Wrenches = None,
    *,
    actuated: Sequence[str],
    loop_forces: Mapping[str, Any] | None = None,
) -> ClosedInverseDynamics:
    """Return the forces of actuators and closing joints for an acceleration, subsystem by subsystem.

        tau + tau_a + J^T lambda = I vdot + h

    The right side follows from the recursions of the tree. The rows of joints without actuators are equations for the
    multipliers, which are solved in the order of `determinacy`; the other rows then give the actuators' forces. Where
    multipliers remain undetermined, by redundant constraints or redundant actuators, they are those of least norm.
    Where the actuators cannot produce the motion, tau of the other joints is as small as possible, in the sense of
    least squares.

    Args:
        closed: The robot with its loops. Traced functions need independent constraints, see `independent_only`.
        q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,). They should satisfy the loops, see
            `consistent_acceleration`.
        wrenches: External wrenches on links, as in `legged.inverse_dynamics`.
        actuated: Names of the joints with actuators.
        loop_forces: Known forces of motors in closing joints, see `active_forces`.

    Raises:
        UnknownNameError: For an unknown joint. Others as in `legged.inverse_dynamics`.
    """
    robot = closed.robot
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    driven = _driven_entries(closed, actuated)
    with stage("1 tree"):
        required = tree_inverse_dynamics(robot, q, v, vdot, wrenches) - active_forces(closed, q, loop_forces or {})
    with stage("2 constraints"):
        J = jacobian(closed, q)
    multipliers = np.zeros(len(J), np.result_type(J, required))
    with stage("3 multipliers"):
        for group in loop_groups(closed):
            combinations = _combinations(closed, group, J)
            for step in _steps(closed, group, driven, combinations):
                A, entries = [], list(step.entries)
                for k in step.loops:
                    rows, U = combinations[k]
                    A.append(U.T @ J[np.ix_(rows, entries)])
                multipliers_of_step = solve_least_norm(np.concatenate(A).T, required[entries])
                for k, block in zip(step.loops, A, strict=True):
                    rows, U = combinations[k]
                    own, multipliers_of_step = multipliers_of_step[: len(block)], multipliers_of_step[len(block) :]
                    multipliers[rows] = U @ own
                    required = required - J[rows].T @ multipliers[rows]
    return ClosedInverseDynamics(finite(robot, "the closed-loop inverse dynamics", required), multipliers)


Combinations = dict[int, tuple[list[int], Array]]
"""Number of a loop -> its rows of J, and combinations of them that are independent."""


def _driven_entries(closed: ClosedRobot, actuated: Sequence[str]) -> set[int]:
    """Return the entries of v of the joints with actuators."""
    if isinstance(actuated, str):
        raise UnknownNameError("list of joints", actuated, (joint.name for joint in closed.robot.joints))
    places = {joint.name: joint.v for joint in closed.robot.joints}
    entries: set[int] = set()
    for name in actuated:
        place = places[known_name("joint", name, places)]
        entries |= set(range(place.start, place.stop))
    return entries


def _combinations(closed: ClosedRobot, group: LoopGroup, J: Array) -> Combinations:
    """Return the independent combinations of the constraints of each loop in a group, with the Jacobian J of all."""
    combinations = {}
    for k in group.loops:
        rows = [i for i in group.rows if closed.constraints[i][0] == k]
        own = J[np.ix_(rows, group.entries)]
        alone = replace(closed, rows=tuple(closed.rows[i] for i in rows), independent_count=None)
        flags = independent_flags(alone, J[rows])
        combinations[k] = (rows, select_rows(own, np.zeros(len(rows), own.dtype), flags).combinations)
    return combinations


def _steps(closed: ClosedRobot, group: LoopGroup, driven: set[int], combinations: Combinations) -> list[Step]:
    """Return the steps for a group: the block-triangular form of its equations, from a matching with the unknowns.

    Without a perfect matching there is one step for the whole group.
    """
    import networkx as nx  # imported on demand, since loading it takes as long as loading NumPy

    bodies = closed.robot.bodies
    unknowns = [(k, i) for k in group.loops for i in range(combinations[k][1].shape[1])]
    equations = [e for e in group.entries if e not in driven]
    touching = {
        k: {e for b in closed.bodies_around(closed.loops[k].name) for e in range(bodies[b].v.start, bodies[b].v.stop)}
        for k in group.loops
    }
    graph = nx.Graph([(e, u) for e in equations for u in unknowns if e in touching[u[0]]])
    matching = nx.bipartite.hopcroft_karp_matching(graph, [e for e in equations if e in graph])
    if not unknowns:
        return []
    if len(matching) != 2 * len(unknowns) or len(unknowns) != len(equations):
        return [_step(closed, group, equations, unknowns)]
    # An equation needs the unknowns in it first: edges from the equations that these are matched with.
    order = nx.DiGraph([(matching[u], e) for e in equations for u in graph[e]])
    blocks = nx.condensation(order)
    steps = [sorted(blocks.nodes[c]["members"], key=equations.index) for c in nx.topological_sort(blocks)]
    return [_step(closed, group, block, sorted(matching[e] for e in block)) for block in steps]


def _step(closed: ClosedRobot, group: LoopGroup, equations: Sequence[int], unknowns: Sequence[tuple[int, int]]) -> Step:
    robot, loops = closed.robot, tuple(dict.fromkeys(k for k, _ in unknowns))
    names = {link.body: link.name for link in reversed(robot.links)}
    links = [
        next(names[k] for k in subsystem.bodies if k in names)
        for subsystem in group.subsystems
        if set(subsystem.entries) & set(equations)
    ]
    joints = tuple(closed.loops[k].name for k in loops)
    return Step(tuple(reversed(links)), joints, len(equations), len(unknowns), tuple(equations), loops)
