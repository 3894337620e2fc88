"""Operations of sparse factorizations of trees, and of task quantities of a humanoid.

    python -m benchmarks.studies.sparsity

The first table gives the cost formulas of `DofTree.costs` for trees of one size and several branching factors, and the
traced operations of forward dynamics by them and by articulated bodies. The others give the traced operations of task
quantities of a robot with the joints of Honda's ASIMO of 2005: 3 in the neck, 7 in each arm, 2 in each hand, 1 in the
waist and 6 in each leg, 34 with a floating base. Lengths and masses are round numbers of ours; the model of the paper
is unknown.

Source: Featherstone 2005 and 2010, of which we know the abstracts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

import legged
import robots
from legged.algorithms import articulated, operational
from legged.algorithms.linear_algebra import solve_rows
from legged.algorithms.operational import weighted_pseudoinverse, whitened_jacobian
from legged.algorithms.sparse import sparsity
from legged.algorithms.sparse.sparsity import DofTree
from legged.spatial import Array, factor_symmetric, mirror
from legged.table import Table

LINKS = 63
"""Links of the trees, which make a complete binary tree."""
END_EFFECTORS = ("head", "left_palm", "right_palm", "left_foot", "right_foot")


def tree_table() -> Table:
    """Return the cost of factors and solutions of trees by their formulas, and of forward dynamics as traced."""
    rows = []
    for branching in (1, 1.5, 2, 4, LINKS):
        robot = robots.tree(LINKS, branching=branching, base=legged.FixedBase(), twist=0.7)
        tree = DofTree.of(robot)
        costs = tree.costs()
        traced = [legged.count(f, robot).total for f in (sparsity.forward_dynamics, articulated.forward_dynamics)]
        formulas = (costs["factor_ltdl"].total, costs["solve_ltdl"].total)
        rows.append((f"{branching:g}", str(tree.nonzeros), *(str(cost) for cost in (*formulas, *traced))))
    header = ("branching", "D1", "L^T D L", "solution", "forward dynamics, L^T D L", "articulated bodies")
    return Table(f"Operations for trees of {LINKS} links", header, tuple(rows))


def asimo_like() -> legged.Robot:
    """Return a humanoid with 34 joints and a floating base, with the end effectors `END_EFFECTORS`."""

    def link(name: str, mass: float, length: float) -> legged.Link:
        return legged.Link(name, legged.box_inertia(mass, (0.1, 0.12, abs(length)), (0.0, 0.0, 0.5 * length)))

    robot = legged.RobotBuilder("like ASIMO", link("pelvis", 8.0, 0.2))
    robot.add(legged.Revolute("waist", "z"), link("chest", 15.0, 0.3), to="pelvis", at=(0, 0, 0.1))
    robot.add(legged.Spherical("neck", "zyx"), link("head", 4.0, 0.2), to="chest", at=(0, 0, 0.3))
    for side, y in (("left", 1.0), ("right", -1.0)):
        arm = [
            (legged.Spherical(f"{side}_shoulder", "yxz"), link(f"{side}_upper_arm", 2.0, -0.25), (0, 0.18 * y, 0.28)),
            (legged.Revolute(f"{side}_elbow", "-y"), link(f"{side}_forearm", 1.2, -0.2), (0, 0, -0.25)),
            (legged.Spherical(f"{side}_wrist", "zxy"), link(f"{side}_palm", 0.5, -0.1), (0, 0, -0.2)),
        ]
        leg = [
            (legged.Spherical(f"{side}_hip", "zxy"), link(f"{side}_thigh", 4.0, -0.3), (0, 0.08 * y, 0)),
            (legged.Revolute(f"{side}_knee", "-y"), link(f"{side}_shank", 2.5, -0.3), (0, 0, -0.3)),
            (legged.Universal(f"{side}_ankle", "-y", "x"), link(f"{side}_foot", 1.5, -0.08), (0, 0, -0.3)),
        ]
        for parts, root in ((arm, "chest"), (leg, "pelvis")):
            for joint, outer, at in parts:
                robot.add(joint, outer, to=root, at=at)
                root = outer.name
        for finger, x in (("thumb", 0.03), ("fingers", -0.03)):
            robot.add(
                legged.Revolute(f"{side}_{finger}", "y"),
                link(f"{side}_{finger}", 0.1, -0.08),
                to=f"{side}_palm",
                at=(x, 0, -0.1),
            )
    return robot.build()


def _task_inertia(M: Array, J: Array, tree: DofTree) -> tuple[Array, Array, Array]:
    """Return L, Y and Lambda^-1."""
    L = sparsity.factor_ltl(M, tree)
    Y = whitened_jacobian(J, L, tree)
    return L, Y, mirror(Y @ Y.T)


def _pseudoinverse(M: Array, J: Array, tree: DofTree) -> Array:
    L, Y, Lambda_inverse = _task_inertia(M, J, tree)
    Lambda = mirror(solve_rows(factor_symmetric(Lambda_inverse), np.eye(len(J))))
    return weighted_pseudoinverse(L, Y, Lambda, tree)


QUANTITIES: dict[str, Callable[[Array, Array, DofTree], Array]] = {
    "inverse operational-space inertia": lambda M, J, tree: _task_inertia(M, J, tree)[2],
    "inertia-weighted pseudoinverse": _pseudoinverse,
    "null-space projector": lambda M, J, tree: np.eye(len(M)) - _pseudoinverse(M, J, tree) @ J,
}
"""Functions of the inertia matrix and the Jacobian, (nv, nv) and (rows, nv), in the order of the tree."""


def task_costs(robot: legged.Robot, quantities: Iterable[str] = QUANTITIES) -> dict[str, tuple[int, int]]:
    """Return (sparse, dense) operations of some of `QUANTITIES` from M and J, with and without their zeros."""
    tree, dense = DofTree.of(robot), DofTree.chain(robot.nv)
    q = legged.random_configuration(robot, np.random.default_rng(0))
    J = np.concatenate([legged.point_jacobian(robot, q, link, np.zeros(3)) for link in END_EFFECTORS])
    pattern = J[:, list(tree.order)] != 0.0
    ordered = DofTree(tuple(range(robot.nv)), tree.parent)
    return {
        name: (_count(QUANTITIES[name], ordered, pattern), _count(QUANTITIES[name], dense, np.ones_like(pattern)))
        for name in quantities
    }


def _count(function: Callable[[Array, Array, DofTree], Array], tree: DofTree, pattern: Array) -> int:
    """Return the operations of a function of M and J whose nonzero entries are those of the tree and the pattern."""
    n = len(tree.order)
    lower = [(k, j) for k in range(n) for j in (*tree.ancestors(k), k)]

    def traced(inertias: Array, entries: Array) -> Array:
        M, J = np.zeros((n, n), dtype=object), np.zeros(pattern.shape, dtype=object)
        for (k, j), entry in zip(lower, inertias, strict=True):
            M[k, j] = M[j, k] = entry
        J[np.nonzero(pattern)] = entries
        return function(M, J, tree)

    return legged.count(traced, None, inertias=len(lower), entries=int(pattern.sum())).total


def task_table(robot: legged.Robot) -> Table:
    """Return the operations of task quantities with sparse and dense matrices, given M and J."""
    rows = [
        (name, str(sparse), str(dense), f"{dense / sparse:.1f}", str(dense - sparse))
        for name, (sparse, dense) in task_costs(robot).items()
    ]
    header = ("from M and J", "sparse", "dense", "ratio", "saved")
    return Table(f"Task quantities of a robot {robot.name}, {len(END_EFFECTORS)} end effectors", header, tuple(rows))


def method_table(robot: legged.Robot) -> Table:
    """Return the operations of the inverse operational-space inertia from q, by each method."""
    points = [(link, np.zeros(3)) for link in END_EFFECTORS]
    methods = {
        "sparse factors": operational.by_factors,
        "extended force propagators": operational.by_propagators,
        "recursion of the operators": operational.by_operators,
    }
    counts = {name: legged.count(partial(_at, method, points), robot, q=True).total for name, method in methods.items()}
    M = legged.count(legged.inertia_matrix, robot).total
    J = legged.count(partial(_jacobian, points), robot, q=True).total
    counts["dense matrices"] = M + J + task_costs(robot)["inverse operational-space inertia"][1]
    rows = [(name, str(cost), f"{cost / counts['sparse factors']:.1f}") for name, cost in counts.items()]
    header = ("from q", "operations", "relative")
    return Table("Inverse operational-space inertia of the same robot", header, tuple(rows))


def _at(method: Callable[..., Array], points: list[tuple[str, Array]], robot: legged.Robot, q: Array) -> Array:
    return method(robot, q, points)


def _jacobian(points: list[tuple[str, Array]], robot: legged.Robot, q: Array) -> Array:
    return np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])


def main() -> None:
    """Print the tables."""
    robot = asimo_like()
    for table in (tree_table(), task_table(robot), method_table(robot)):
        print(table.markdown(), flush=True)


if __name__ == "__main__":
    main()
