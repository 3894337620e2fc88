"""Divide and conquer and the algorithms of global analysis: correctness, unsupported robots, depth and accuracy."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from oracles.cases import accelerations_apart

import legged
import robots
from benchmarks.studies.parallel_forms import errors
from legged.algorithms import articulated, divide_and_conquer, global_form, massive_bodies
from legged.algorithms.divide_and_conquer.assemblies import Assembly, bisect
from legged.algorithms.links import links_at
from legged.algorithms.operators import SpatialOperators
from legged.algorithms.sparse import constraint_force, system
from legged.compiler import depth
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError

VERSIONS = tuple(divide_and_conquer.VERSIONS)
SEEDS = range(300)


def case(seed: int, links: int | None = None):
    """Return a random robot, its state, and wrenches: joints of several degrees of freedom among them."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(1, 14)) if links is None and seed < 8 else links
    robot = legged.random_tree(seed, links, shuffled=seed % 3 == 0)
    q = legged.random_configuration(robot, rng)
    v, tau = rng.normal(size=(2, robot.nv))
    return robot, q, v, tau, {robot.links[-1].name: rng.normal(size=6)}


def unbalanced(robot, q, v, tau, vdot, wrenches=None) -> float:
    """Return the error of the forces of an acceleration against tau, relative to the size of their terms."""
    needed = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    scale = np.abs(tau).max(initial=0) + np.abs(legged.bias_forces(robot, q, v, wrenches)).max(initial=0)
    return np.abs(needed - tau).max(initial=0) / max(scale, 1e-300)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", SEEDS)
def test_divide_and_conquer_is_forward_dynamics(seed, version):
    robot, q, v, tau, wrenches = case(seed)
    vdot = divide_and_conquer.forward_dynamics(robot, q, v, tau, wrenches, version=version)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9


@pytest.mark.parametrize("make", [robots.spatial_quadruped, robots.planar_biped])
def test_pivoted_divide_and_conquer_accepts_thin_rods(make):
    """The paper's robots, whose links have no inertia about their own axis."""
    robot, rng = make(), np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    vdot = divide_and_conquer.forward_dynamics(robot, q, v, tau)
    assert unbalanced(robot, q, v, tau, vdot) < 1e-11


def test_pivoted_divide_and_conquer_turns_slim_shafts():
    """Shafts of 1 m and 1 kg with radii of 0.01 mm on ball joints: inertias of 5e-11 and of 1/3 kg m^2 in one matrix.

    The last shaft has a torque about its axis alone. It turns about it by torque / (m r^2 / 2), since it is symmetric.
    """
    along, radius = np.array([1.0, 2.0, 2.0]) / 3.0, 1e-5
    builder = legged.RobotBuilder("shafts", legged.Link("ground"), base=legged.FixedBase())
    last = "ground"
    for k in range(4):
        shaft = legged.Link(f"shaft{k}", legged.cylinder_inertia(1.0, radius, (0, 0, 0), along))
        builder.add(legged.Spherical(f"joint{k}"), shaft, to=last, at=along * float(k > 0))
        last = shaft.name
    robot, rng = builder.build(), np.random.default_rng(0)
    q, tau, torque = legged.random_configuration(robot, rng), np.zeros(robot.nv), 1e-10
    tau[9:] = torque * along
    vdot = divide_and_conquer.forward_dynamics(robot, q, np.zeros(robot.nv), tau)
    turned = legged.point_twist_rates(robot, q, np.zeros(robot.nv), vdot, [(last, np.zeros(3))])[0, :3]
    axis = legged.frame_pose(robot, q, last).rotation @ along
    assert axis @ turned == pytest.approx(torque / (0.5 * radius**2), rel=1e-4)  # rounding 1e-16 over the ratio 1e-10


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("base", [legged.FixedBase(), legged.FloatingBase(), legged.PlanarBase()])
def test_divide_and_conquer_includes_armature_friction_and_springs(base, version):
    physics = legged.JointPhysics(damping=0.3, friction=0.2, armature=0.1, stiffness=2.0, rest=0.5)
    builder = legged.RobotBuilder("sprung", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))), base=base)
    for side in range(2):
        last = "base"
        for k in range(3):
            link = legged.Link(f"l{side}{k}", legged.box_inertia(1.0, (0.1, 0.2, 0.3)))
            builder.add(legged.Revolute(f"j{side}{k}", "xyz"[k], physics=physics), link, to=last, at=(0, 0.1, -0.3))
            last = link.name
    robot = builder.build()
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    vdot = divide_and_conquer.forward_dynamics(robot, q, v, tau, version=version)
    assert unbalanced(robot, q, v, tau, vdot) < 1e-11


@pytest.mark.parametrize("seed", range(8))
def test_parallel_prefix_motion_equals_the_sweep(seed):
    robot, q, v, *_ = case(seed)
    ours, swept = massive_bodies.parallel_prefix_motion(links_at(robot, q), q, v), motion(robot, q, v)
    for actual, known in zip(ours, swept, strict=True):
        rounding = 1e-12 * max(1.0, np.abs(known).max()) * len(robot.bodies)
        assert np.array(actual) == pytest.approx(np.array(known), abs=rounding)


@pytest.mark.parametrize("version", VERSIONS)
def test_depth_of_divide_and_conquer_is_logarithmic(version):
    """Each doubling of the bodies adds a constant depth; the depth of the articulated-body algorithm doubles.

    The compiler splits long sums in halves, which shortens the smallest of these graphs by up to a tenth.
    """
    sizes = (3, 7, 15)  # links on a floating base: 4, 8, 16 bodies
    method = partial(divide_and_conquer.forward_dynamics, version=version)
    depths = [depth(method, robots.chain(n, twist=0.7)) for n in sizes]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.15)
    serial = [depth(articulated.forward_dynamics, robots.chain(n, twist=0.7)) for n in sizes]
    assert serial[2] - serial[1] == pytest.approx(2 * (serial[1] - serial[0]), rel=0.05)


@pytest.mark.parametrize("branching", [1, 2, 3])
@pytest.mark.parametrize("n", [100, 1000])
def test_trees_are_divided_in_logarithmically_many_levels_with_few_handles(branching, n):
    parents = [-1, *((k - 1) // branching for k in range(1, n))]
    whole = bisect(range(n), parents, [0])
    assert isinstance(whole, Assembly) and whole.depth <= 3.5 * np.log2(n)
    waiting, most = [whole], 0
    while waiting:
        part = waiting.pop()
        most = max(most, len(part.handles))
        waiting += [p for p in (part.inner, part.outer) if isinstance(p, Assembly)]
    assert most <= 4


def test_divide_and_conquer_refuses_unsupported_robots():
    coupled = next(r for r in (legged.random_tree(s, coupled=True) for s in range(99)) if r.followers)
    still = np.zeros(coupled.nv)
    with pytest.raises(DefinitionError, match="joints that follow others"):
        divide_and_conquer.forward_dynamics(coupled, coupled.neutral(), still, still)
    spinning = legged.JointPhysics(rotor=legged.Rotor(0.001, 2.0, True))
    builder = legged.RobotBuilder("fan", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    blades = legged.Link("blades", legged.box_inertia(1, (0.3, 0.2, 0.1)))
    builder.add(legged.Revolute("spin", "z", physics=spinning), blades, to="base")
    fan = builder.build()
    with pytest.raises(DefinitionError, match="gyroscopic rotors"):
        divide_and_conquer.forward_dynamics(fan, fan.neutral(), np.zeros(7), np.zeros(7))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mass_matrix_is_three_factors_and_the_incidence_matrix_inverts_to_phi(seed):
    """Equation (29) and after: M = H^T P^-T I P^-1 H; P^-1 is the adjoint of phi."""
    for coupled in (False, True):
        robot = legged.random_tree(seed, 6, physics=seed % 2 == 1, shuffled=seed % 3 == 0, coupled=coupled)
        q = legged.random_configuration(robot, np.random.default_rng(seed))
        M = legged.inertia_matrix(robot, q)
        for coordinates in ("link", "absolute"):
            form = global_form.global_form(robot, q, coordinates=coordinates)
            assert np.abs(form.mass - M).max(initial=0) <= 1e-11 * np.abs(M).max(initial=0)
            assert np.count_nonzero(np.abs(form.P).reshape(len(robot.bodies), 6, -1, 6).max(axis=(1, 3))) == (
                2 * len(robot.bodies) - 1
            )
        if not robot.followers and seed % 2 == 0:
            form = global_form.global_form(robot, q, coordinates="link")
            assert np.linalg.inv(form.P) == pytest.approx(SpatialOperators(robot, q).phi.T.matrix(), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_projected_equations_of_all_bodies_are_forward_dynamics(seed):
    """Equations (23) to (26), for any joints and their physics."""
    robot = legged.random_tree(seed, 6, physics=seed % 2 == 1, coupled=seed % 4 == 3)
    rng = np.random.default_rng(seed)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    vdot = global_form.forward_dynamics(robot, q, v, tau, wrenches)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sparse_system_is_forward_dynamics_by_elimination_and_as_a_matrix(seed):
    """Equation (27)."""
    robot, q, v, tau, wrenches = case(seed, 9)
    vdot = system.forward_dynamics(robot, q, v, tau, wrenches)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9
    whole = system.sparse_system(robot, q, v, tau, wrenches)
    joints, a_0 = system.joint_constraints(robot, q, v, tau, wrenches, "this")
    a = np.linalg.solve(whole.matrix, whole.right_side)[: 6 * len(joints)].reshape(-1, 6)
    dense = system.joint_accelerations(robot, joints, list(a), a_0)
    assert unbalanced(robot, q, v, tau, dense, wrenches) < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_the_sparse_system_has_a_perfect_elimination_order(seed):
    """In elimination order each block couples with at most one later block, so that there is no fill-in."""
    robot, q, v, tau, _ = case(seed, 9)
    whole = system.sparse_system(robot, q, v, tau)
    blocks = [block for block in whole.blocks if block]
    met = {(i, j): bool(np.any(whole.matrix[np.ix_(a, b)])) for i, a in enumerate(blocks) for j, b in enumerate(blocks)}
    assert sum(met.values()) <= 4 * len(blocks)  # O(n) blocks of n^2
    for i in range(len(blocks)):
        assert sum(met[i, j] for j in range(i + 1, len(blocks))) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_constraint_forces_of_trees_are_forward_dynamics(seed):
    """Equation (28), for chains and for trees."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, int(rng.integers(1, 14)), branching=0.0 if seed % 2 else None)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    vdot = constraint_force.forward_dynamics(robot, q, v, tau, wrenches)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9


INVERSES = {
    "constraint forces": constraint_force.inverse_inertia_matrix,
    **{version: partial(divide_and_conquer.inverse_inertia_matrix, version=version) for version in VERSIONS},
}


@pytest.mark.parametrize("method", INVERSES)
@pytest.mark.parametrize("seed", SEEDS)
def test_parallel_inverse_inertia_matrices_are_the_dense_inverse(seed, method):
    """M^-1 = C - B^T A^-1 B, and by division, to the rounding of the dense inverse, on fixed and moving bases."""
    robot, q, *_ = case(seed)
    M = legged.inertia_matrix(robot, q)
    ours = INVERSES[method](robot, q)
    assert ours.shape == M.shape and np.array_equal(ours, ours.T)
    if robot.nv:
        rounding = max(1e-16 * robot.nv * np.linalg.cond(M), 1e-12)
        assert np.abs(ours - np.linalg.inv(M)).max() <= rounding * np.abs(ours).max()


@pytest.mark.parametrize("sparsity", [0.15, 0.6])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 8])
def test_elimination_of_blocks_gives_solutions_and_schur_complements(n, sparsity):
    """Any pattern of blocks, chains for the smaller one at times, with two blocks kept for the Schur complement."""
    rng = np.random.default_rng(n)
    sizes = rng.integers(1, 5, n)
    parts = [slice(b - a, b) for a, b in zip(sizes, np.cumsum(sizes), strict=True)]
    total = sum(sizes)
    A = np.zeros((total, total))
    for i, a in enumerate(parts):
        for j, b in enumerate(parts[:i]):
            if j == i - 1 or rng.uniform() < sparsity:
                A[a, b] = rng.normal(size=A[a, b].shape)
                A[b, a] = A[a, b].T
    A += (1.0 + np.abs(np.linalg.eigvalsh(A)).max()) * np.eye(total)  # positive definite

    def blocks():
        pairs = {(i, j): A[a, b] for i, a in enumerate(parts) for j, b in enumerate(parts) if i <= j}
        return {at: block for at, block in pairs.items() if block.any()}

    r = rng.normal(size=total)
    x = constraint_force.solve(blocks(), [r[p] for p in parts])
    rounding = 1e-14 * np.linalg.cond(A)
    assert A @ np.concatenate(x) == pytest.approx(r, abs=rounding)
    left, kept, inner = blocks(), range(n // 2, n), slice(0, parts[n // 2].start)
    constraint_force.eliminate(left, kept)
    outer = slice(inner.stop, total)
    S = A[outer, outer] - A[outer, inner] @ np.linalg.solve(A[inner, inner], A[inner, outer])
    for i in kept:
        for j in range(i, n):
            a, b = (slice(p.start - inner.stop, p.stop - inner.stop) for p in (parts[i], parts[j]))
            block = left.get((i, j), np.zeros((sizes[i], sizes[j])))
            assert block == pytest.approx(S[a, b], abs=rounding * np.abs(A).max())


def test_rounds_of_a_chain_are_those_of_odd_even_reduction():
    chain = [*((k, k) for k in range(7)), *pairwise(range(7))]
    assert constraint_force.elimination_rounds(chain) == [[0, 2, 4, 6], [1, 5], [3]]


@pytest.mark.parametrize("branching", [1, 2, 3])
@pytest.mark.parametrize("n", [100, 1000])
def test_trees_are_eliminated_in_logarithmically_many_rounds(branching, n):
    """Joints couple with those on the same bodies; coupled joints are never in one round."""
    parents = [-1, *((k - 1) // branching for k in range(1, n))]
    coupled = {(k, k) for k in range(n)} | {(p, k) for k, p in enumerate(parents) if p >= 0}
    coupled |= {(i, j) for i in range(n) for j in range(i + 1, min(i + 3, n)) if parents[i] == parents[j]}
    rounds = constraint_force.elimination_rounds(coupled)
    assert sorted(k for chosen in rounds for k in chosen) == list(range(n))
    assert len(rounds) <= branching * (1 + np.log2(n))
    assert not any((i, j) in coupled for chosen in rounds for i in chosen for j in chosen if i != j)


def ribbed(n: int) -> legged.Robot:
    """Return a main chain of n links on a floating base whose links each carry a side branch of two links."""
    builder = legged.RobotBuilder("ribbed", legged.Link("spine", legged.box_inertia(1.0, (0.2, 0.1, 0.1))))
    last = "spine"
    for k in range(n):
        at = last
        for part in ("rib", "tip", "spine"):
            link = legged.Link(f"{part}{k}", legged.box_inertia(1.0, (0.2, 0.1, 0.15)))
            to, last = (last, link.name) if part == "spine" else (at, last)
            at = link.name
            builder.add(legged.Revolute(link.name, (0.6, 0.8, 0.0)), link, to=to, at=(0.2, 0.05, 0.0))
    return builder.build()


@pytest.mark.parametrize(
    ("method", "make", "sizes"),
    [
        (constraint_force.forward_dynamics, lambda n: robots.chain(n - 1, twist=0.7), (4, 8, 16)),
        (constraint_force.inverse_inertia_matrix, lambda n: robots.chain(n - 1, twist=0.7), (4, 8, 16)),
        (constraint_force.inverse_inertia_matrix, ribbed, (2, 4, 8)),
    ],
)
def test_constraint_forces_take_logarithmic_depth(method, make, sizes):
    """Each doubling of the main chain adds a constant depth, with and without short side branches."""
    depths = [depth(method, make(n)) for n in sizes]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.2)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_inverse_inertia_matrix_by_division_takes_logarithmic_depth(version):
    method = partial(divide_and_conquer.inverse_inertia_matrix, version=version)
    depths = [depth(method, robots.chain(n, twist=0.7)) for n in (3, 7, 15)]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.15)


@pytest.mark.parametrize("d", range(7))
def test_orthogonal_complement_is_orthonormal(d):
    h = np.random.default_rng(d).normal(size=(6, d))
    T = system.orthogonal_complement(h)
    assert T.shape == (6, 6 - d)
    assert np.abs(T.T @ h).max(initial=0) < 1e-14 and np.abs(T.T @ T - np.eye(6 - d)).max(initial=0) < 1e-14


def test_systems_of_bodies_refuse_rods_and_armature():
    rods = robots.spatial_quadruped()
    state = rods.neutral(), np.zeros(rods.nv), np.zeros(rods.nv)
    inverse = partial(divide_and_conquer.forward_dynamics, version="inverse")
    for method in (inverse, system.forward_dynamics, constraint_force.forward_dynamics):
        with pytest.raises(DefinitionError, match="'leg1_thigh' has none about some axis, as a thin rod"):
            method(rods, *state)
    rod = legged.Link("rod", legged.rod_inertia(1.0, (0.3, 0.2, 0.0), (0.3, 0.2, 1.0)))
    pendulum = legged.RobotBuilder("pendulum", legged.Link("mount"), base=legged.FixedBase())
    beside = pendulum.add(legged.Revolute("joint", "z"), rod, to="mount").build()  # its axis is not that of the rod
    with pytest.raises(DefinitionError, match="'rod' has none about some axis"):
        constraint_force.forward_dynamics(beside, np.zeros(1), np.zeros(1), np.zeros(1))
    builder = legged.RobotBuilder("geared", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    physics, arm = legged.JointPhysics(armature=0.1), legged.Link("arm", legged.box_inertia(1, (0.3, 0.2, 0.1)))
    geared = builder.add(legged.Revolute("joint", "z", physics=physics), arm, to="base").build()
    state = geared.neutral(), np.zeros(geared.nv), np.zeros(geared.nv)
    for method in (system, constraint_force):
        with pytest.raises(DefinitionError, match="does not support armature"):
            method.forward_dynamics(geared, *state)


@pytest.mark.slow
def test_compiled_parallel_forms_equal_plain_ones():
    robot = robots.chain(3, twist=0.7)
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    for method in (divide_and_conquer, system, constraint_force, global_form):
        vdot = legged.compile(method.forward_dynamics, robot)(q, v, tau)
        assert unbalanced(robot, q, v, tau, vdot) < 1e-11
    for inverse in INVERSES.values():
        assert legged.compile(inverse, robot)(q) == pytest.approx(inverse(robot, q), rel=1e-9)


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="no extended precision here")
def test_accuracy_of_divide_and_conquer():
    """Featherstone 1999, part 2: the inverse version loses digits by differences of inverse inertias.

    The error of articulated bodies is that of floats: were the reference one in floats, it would be zero.
    """
    errors_of_methods = errors(64, 3.0)
    assert 1e-14 < errors_of_methods["articulated bodies"] < 1e-11
    assert 10 * errors_of_methods["articulated bodies"] < errors_of_methods["divide and conquer, inverse"] < 1e-8
    assert errors_of_methods["divide and conquer, pivoted"] < 0.1 * errors_of_methods["divide and conquer, inverse"]
