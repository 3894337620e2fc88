"""The classical algorithms agree with the modular framework, in link and in absolute coordinates."""

from functools import partial

import numpy as np
import pytest
from oracles.cases import accelerations_apart, well_conditioned

import legged
import robots
from benchmarks.studies import stability
from legged.algorithms import articulated, composite, newton_euler
from legged.algorithms.sparse import sparsity
from legged.errors import DefinitionError, UnknownNameError

MATRICES = {
    "link": composite.inertia_matrix,
    "absolute": lambda robot, q: composite.inertia_matrix(robot, q, coordinates="absolute"),
    "method 1": composite.inertia_matrix_by_inverse_dynamics,
    "method 2": composite.inertia_matrix_by_unit_accelerations,
}
FORWARD = {
    "link": articulated.forward_dynamics,
    "absolute": lambda *given: articulated.forward_dynamics(*given, coordinates="absolute"),
    "L^T D L": sparsity.forward_dynamics,
}
SEEDS = range(300)


def case(seed: int, coupled: bool = False):
    """Return a random robot and a state; every second one with joint physics, every third with joints in disorder."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(1, 12)) if seed < 8 else None
    robot = legged.random_tree(seed, links, physics=seed % 2 == 1, shuffled=seed % 3 == 0, coupled=coupled)
    q = legged.random_configuration(robot, rng)
    v, vdot, tau = rng.normal(size=(3, robot.nv))
    return robot, q, v, vdot, tau, {robot.links[-1].name: rng.normal(size=6)}


def apart(ours, theirs) -> float:
    """Return the largest difference over the largest entry; 0 for a robot that cannot move."""
    return float(np.abs(ours - theirs).max(initial=0.0) / np.abs(theirs).max(initial=1e-300))


@pytest.mark.parametrize("coordinates", ["link", "absolute"])
@pytest.mark.parametrize("seed", SEEDS)
def test_newton_euler_is_the_modular_inverse_dynamics(seed, coordinates):
    for coupled in (False, True):
        robot, q, v, vdot, _, wrenches = case(seed, coupled)
        ours = newton_euler.inverse_dynamics(robot, q, v, vdot, wrenches, coordinates=coordinates)
        assert apart(ours, legged.inverse_dynamics(robot, q, v, vdot, wrenches)) < 1e-11


@pytest.mark.parametrize("method", MATRICES)
@pytest.mark.parametrize("seed", SEEDS)
def test_inertia_matrices_agree(seed, method):
    for coupled in (False, True):
        robot, q, *_ = case(seed, coupled)
        assert apart(MATRICES[method](robot, q), legged.inertia_matrix(robot, q)) < 1e-11


@pytest.mark.parametrize("method", FORWARD)
@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_agree(seed, method):
    """Compared as forces, and as accelerations for small condition numbers."""
    robot, q, v, _, tau, wrenches = case(seed)
    vdot = FORWARD[method](robot, q, v, tau, wrenches)
    needed = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    scale = np.abs([*tau, *legged.bias_forces(robot, q, v, wrenches)]).max(initial=0.0)
    assert np.abs(needed - tau).max(initial=0.0) <= 1e-9 * scale
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) <= 1e-9


@pytest.mark.slow
def test_nine_random_robots_of_ten_are_well_conditioned():
    """So that comparing the accelerations of these alone covers most robots."""
    robots = [case(seed)[:2] for seed in range(30)]
    assert sum(well_conditioned(*each) for each in robots) >= 27


@pytest.mark.parametrize("seed", range(8))
def test_factors_multiply_to_the_matrix_and_keep_its_zeros(seed):
    robot, q, *_, tau, _ = case(seed)
    tree = sparsity.DofTree.of(robot)
    M = tree.permute_matrix(legged.inertia_matrix(robot, q))
    L, (U, D) = sparsity.factor_ltl(M, tree), sparsity.factor_ltdl(M, tree)
    Y = sparsity.inverse_factor(L, tree)
    assert apart(L.T @ L, M) < 1e-14 and apart(U.T @ np.diag(D) @ U, M) < 1e-14
    condition = np.linalg.cond(L)
    assert np.abs(Y @ L - np.eye(robot.nv)).max() < 1e-15 * condition * robot.nv
    for factor in (L, U, Y):
        assert np.count_nonzero(np.tril(factor, -1)) <= tree.nonzeros
        assert not np.triu(factor, 1).any()
    for x in (sparsity.solve_ltl(L, tree, tau), sparsity.solve_ltdl(U, D, tree, tau)):
        assert np.abs(M @ x - tau).max() < 1e-13 * np.abs(M).max() * np.abs(x).max() * robot.nv


def test_branches_save_what_the_formula_says():
    """A chain has n (n - 1) / 2 entries below the diagonal, n links on one base only those of the base."""
    n = 7
    chain = robots.chain(n, base=legged.FixedBase())
    assert sparsity.DofTree.of(chain).nonzeros == n * (n - 1) // 2
    bush = legged.random_tree(0, 6, joints=("revolute",), bases=("floating",), branching=1.0)
    depth = [len(bush.ancestors(body.index)) - 2 for body in bush.bodies[1:]]
    assert sparsity.DofTree.of(bush).nonzeros == 15 + sum(6 + d for d in depth)


@pytest.mark.parametrize("seed", range(5))
def test_costs_of_factors_and_solutions_are_the_formulas_of_the_tree(seed):
    """Sums over the numbers of ancestors, equal to the counts of the traced functions on a matrix of the tree."""
    robot = legged.random_tree(seed, 6)
    tree = sparsity.DofTree.of(robot) if seed else sparsity.DofTree.chain(9)
    n = len(tree.order)
    lower = [(k, j) for k in range(n) for j in (*tree.ancestors(k), k)]

    def counted(function, unit_diagonal=False):
        def traced(entries, D, b):
            M = np.zeros((n, n), dtype=object)
            for (k, j), entry in zip(lower, entries, strict=True):
                M[k, j] = M[j, k] = entry
            return function(M, D, b)

        counts = legged.count(traced, None, entries=len(lower), D=n, b=n)
        return counts.multiplications, counts.additions, counts.divisions, counts.square_roots

    def unit_lower(M):
        return np.tril(M, -1) + np.eye(n)

    traced = {
        "factor_ltl": lambda M, D, b: sparsity.factor_ltl(M, tree),
        "factor_ltdl": lambda M, D, b: sparsity.factor_ltdl(M, tree),
        "solve_transposed": lambda M, D, b: sparsity.solve_transposed(np.tril(M), tree, b),
        "solve_lower": lambda M, D, b: sparsity.solve_lower(np.tril(M), tree, b),
        "solve_ltl": lambda M, D, b: sparsity.solve_ltl(np.tril(M), tree, b),
        "solve_ltdl": lambda M, D, b: sparsity.solve_ltdl(unit_lower(M), D, tree, b),
        "inverse_factor": lambda M, D, b: sparsity.inverse_factor(np.tril(M), tree),
    }
    costs = tree.costs()
    assert {name: counted(function) for name, function in traced.items()} == {k: tuple(c) for k, c in costs.items()}


def test_link_coordinates_are_cheaper_until_chains_are_long():
    """The paper: Newton-Euler and articulated bodies always in link coordinates, composite bodies unless n is large."""

    robot = robots.chain(6)
    for function in (newton_euler.inverse_dynamics, articulated.forward_dynamics, composite.inertia_matrix):
        link, absolute = (legged.count(partial(function, coordinates=c), robot) for c in ("link", "absolute"))
        assert link.M + link.A < absolute.M + absolute.A


def test_unsupported_robots_and_coordinates_are_refused():
    robot, q, v, _, tau, _ = next(
        made for made in (case(seed, coupled=True) for seed in range(99)) if made[0].followers
    )
    with pytest.raises(DefinitionError, match="eliminates joint by joint"):
        articulated.forward_dynamics(robot, q, v, tau)
    with pytest.raises(DefinitionError, match="factorization along the branches"):
        sparsity.forward_dynamics(robot, q, v, tau)
    with pytest.raises(UnknownNameError, match="kind of coordinates"):
        composite.inertia_matrix(robot, q, coordinates="polar")


def test_compiled_algorithms_equal_plain_ones():
    robot = robots.planar_biped()
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, robot.nv))
    kernel = legged.compile(articulated.forward_dynamics, robot)
    assert apart(kernel(q, v, tau), legged.forward_dynamics(robot, q, v, tau)) < 1e-12


def test_accelerations_of_fifty_digits_are_a_solution_of_the_equations_of_motion():
    """The well-conditioned double-precision ones agree."""
    robot, rng = stability.chain(5, np.pi / 2), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, robot.nv))
    exact = stability.exact_forward_dynamics(robot, q, v, tau)
    assert legged.inverse_dynamics(robot, q, v, exact) == pytest.approx(tau, abs=1e-12)
    A = np.array([[1e-20, 1.0], [1.0, 1.0]])
    assert stability.rational_solution(A, np.array([1.0, 2.0])) == pytest.approx([1.0, 1.0], rel=1e-15)


def test_articulated_bodies_are_more_accurate_than_composite_bodies_where_conditioning_is_bad():
    """A straight chain of 16 links under random torques, condition number 3e5: errors of 7e-16 and 1.4e-12."""
    by_articulated, by_composite, condition = stability.tree_errors("straight", 16)
    assert condition > 1e5
    assert by_articulated < 1e-14
    assert by_composite > 100 * by_articulated


def test_both_lose_digits_by_conditioning_under_the_torques_of_random_accelerations():
    """The same chain: both errors are above 100 roundings, and their ratio is below 30, where it is 2000 above."""
    by_articulated, by_composite, _ = stability.tree_errors("straight", 16, "torques of random accelerations")
    assert min(by_articulated, by_composite) > 1e-14
    assert 1 / 30 < by_composite / by_articulated < 30


def test_projection_keeps_the_constraints_and_is_most_accurate_with_few_degrees_of_freedom():
    """With a payload of 1e9 kg; the pinned chain, whose free motions carry the payload, shows the opposite order."""
    welded, pinned = (stability.loop_errors(joint, 1e9, 3) for joint in stability.CLOSINGS.values())
    assert max(welded["projection"][1], pinned["projection"][1]) < 1e-14
    assert welded["direct"][1] > 1e-12
    assert welded["projection"][0] < 0.01 * min(welded["direct"][0], welded["elimination"][0])
    assert pinned["projection"][0] > 100 * max(pinned["direct"][0], pinned["elimination"][0])
