"""Divide and conquer and the algorithms of global analysis: right, refused where they must be, and of what depth."""

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from oracles.cases import accelerations_apart
from oracles.looped import JOINTS, looped, parallelogram

import legged
import robots
from benchmarks.parallel_forms import errors, four_bars
from legged import loops
from legged.algorithms import articulated, constraint_force, divide_and_conquer, global_form, prefix, sparse_system
from legged.algorithms.assemblies import Part, divided, grounded
from legged.algorithms.complement import complement
from legged.algorithms.links import links_at
from legged.algorithms.operators import SpatialOperators, closed_chain
from legged.app.robot_tables import closed_configuration
from legged.compiler import depth
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError

VERSIONS = tuple(divide_and_conquer.VERSIONS)
SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 300))]


def case(seed: int, links: int | None = None):
    """Return a random robot, its state, and wrenches: joints of several degrees of freedom among them."""
    rng = np.random.default_rng(seed)
    links = int(rng.integers(1, 14)) if links is None and seed < 8 else links
    robot = legged.random_tree(seed, links, shuffled=seed % 3 == 0)
    q = legged.random_configuration(robot, rng)
    v, tau = rng.normal(size=(2, robot.nv))
    return robot, q, v, tau, {robot.links[-1].name: rng.normal(size=6)}


def unbalanced(robot, q, v, tau, vdot, wrenches=None) -> float:
    """Return by how much the forces that an acceleration takes are not tau, relative to those at work."""
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
def test_pivoted_about_their_roots_assemblies_take_thin_rods(make):
    """The paper's robots, whose links have no inertia about their own axis."""
    robot, rng = make(), np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    vdot = divide_and_conquer.forward_dynamics(robot, q, v, tau)
    assert unbalanced(robot, q, v, tau, vdot) < 1e-11


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("base", [legged.FixedBase(), legged.FloatingBase(), legged.PlanarBase()])
def test_divide_and_conquer_knows_armature_friction_and_springs(base, version):
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
def test_velocities_and_poses_by_doubling_are_those_of_the_sweep(seed):
    robot, q, v, *_ = case(seed)
    ours, swept = prefix.motions(links_at(robot, q), q, v), motion(robot, q, v)
    for found, known in zip(ours, swept, strict=True):
        rounding = 1e-12 * max(1.0, np.abs(known).max()) * len(robot.bodies)
        assert np.array(found) == pytest.approx(np.array(known), abs=rounding)


@pytest.mark.parametrize("version", VERSIONS)
def test_depth_of_divide_and_conquer_is_that_of_the_halvings(version):
    """As often as the bodies double, the same is added; the articulated bodies' depth doubles with them."""
    sizes = (3, 7, 15)  # links on a floating base: 4, 8, 16 bodies
    method = partial(divide_and_conquer.forward_dynamics, version=version)
    depths = [depth(method, robots.chain(n, twist=0.7)) for n in sizes]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.05)
    serial = [depth(articulated.forward_dynamics, robots.chain(n, twist=0.7)) for n in sizes]
    assert serial[2] - serial[1] == pytest.approx(2 * (serial[1] - serial[0]), rel=0.05)


@pytest.mark.parametrize("branching", [1, 2, 3])
@pytest.mark.parametrize("n", [100, 1000])
def test_trees_are_divided_in_logarithmically_many_levels_with_few_handles(branching, n):
    parents = [-1, *((k - 1) // branching for k in range(1, n))]
    whole = divided(range(n), parents, [0])
    assert isinstance(whole, Part) and whole.levels <= 3.5 * np.log2(n)
    waiting, most = [whole], 0
    while waiting:
        part = waiting.pop()
        most = max(most, len(part.handles))
        waiting += [p for p in (part.inner, part.outer) if isinstance(p, Part)]
    assert most <= 4


def two_arms(base):
    arm = legged.Limb()
    for k, axis in enumerate("zyzyzyx"):
        link = legged.Link(f"link{k}", legged.box_inertia(1.0, (0.1, 0.12, 0.3), (0, 0, 0.15)))
        arm.add(legged.Revolute(f"joint{k}", axis), link, at=(0, 0, 0.3 * (k > 0)))
    builder = legged.RobotBuilder("two arms", legged.Link("base", legged.box_inertia(5.0, (1.0, 0.3, 0.2))), base=base)
    for side, x in (("left_", -0.4), ("right_", 0.4)):
        builder.attach(arm, to="base", at=(x, 0, 0), prefix=side)
    return builder.build()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("base", [legged.FixedBase(), legged.FloatingBase()])
def test_two_arms_that_hold_each_other_are_the_operators_closed_chain(base, version):
    robot, rng = two_arms(base), np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    R, o = legged.frame_pose(robot, q, legged.Frame("left_link6", (0, 0, 0.3)), "right_link6")
    grip = {"at": (0, 0, 0.3), "child_at": o, "child_rotation": R}
    closed = loops.close(robot, legged.Fixed("grip"), parent="left_link6", child="right_link6", **grip)
    v = loops.consistent_velocity(closed, q, v)
    ours = divide_and_conquer.forward_dynamics(closed, q, v, tau, version=version)
    theirs, _ = closed_chain(robot, q, v, tau, ("left_link6", np.array([0, 0, 0.3])), ("right_link6", o))
    assert np.abs(ours - theirs).max() < 1e-9 * np.abs(theirs).max()
    assert np.abs(ours - legged.forward_dynamics(robot, q, v, tau)).max() > 1e-2 * np.abs(theirs).max()


def apart(closed, q, rng, version) -> tuple[float, float]:
    """Return how far divide and conquer is from `legged.loops`, as accelerations and as forces, relative.

    To the accelerations and forces with the loops or, since these may leave no motion at all, without them.
    """
    robot = closed.robot
    v, tau = rng.normal(size=(2, robot.nv))
    v, wrenches = loops.consistent_velocity(closed, q, v), {robot.links[-1].name: rng.normal(size=6)}
    ours = divide_and_conquer.forward_dynamics(closed, q, v, tau, wrenches, version=version)
    theirs = loops.forward_dynamics(closed, q, v, tau, wrenches)
    free, M = legged.forward_dynamics(robot, q, v, tau, wrenches), legged.inertia_matrix(robot, q)
    scale = max(np.abs(theirs).max(), np.abs(free).max())
    return np.abs(ours - theirs).max() / scale, np.abs(M @ (ours - theirs)).max() / np.abs(M @ free).max()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(s, marks=pytest.mark.slow) for s in range(2, 40))])
@pytest.mark.parametrize("name", JOINTS)
def test_divide_and_conquer_closes_loops_by_any_joint(name, seed, version):
    """To the 1e-9 of all forward dynamics."""
    closed, q, rng = looped(seed, JOINTS[name][0])
    assert max(apart(closed, q, rng, version)) < 1e-9


def standing_biped(feet: str):
    robot, q = robots.planar_biped(), np.array([0, 0, 0.5, 0.6, -0.7, 0.1, 0.1, -0.7, 0.6])
    return loops.standing(robot, q, [f"{foot}_{end}" for foot in feet for end in ("heel", "toe")]), q


def five_bar_leg():
    closed = robots.five_bar_leg()
    return closed, closed_configuration(closed)[0]


def delta():
    closed = robots.delta()
    return closed, closed_configuration(closed)[0]


def four_bar():
    closed = robots.four_bar()
    return closed, loops.assemble(closed, np.array([1.0, -0.7, 1.5]), hold=["crank joint"])


def bars(third: bool, angle: float):
    return parallelogram(third), angle * np.array([1, -1, *[1] * (1 + third)])


MECHANISMS = {  # how many rows there are, and how many are independent
    "four-bar": (four_bar, 5, 2),
    "parallelogram": (partial(bars, False, 0.7), 5, 2),
    "parallelogram with an extra bar": (partial(bars, True, 0.7), 10, 3),
    "flat parallelogram with an extra bar": (partial(bars, True, 0.0), 10, 2),
    "five-bar leg": (five_bar_leg, 5, 2),
    "delta": (delta, 15, 15),
    "biped on a foot": (partial(standing_biped, "a"), 6, 3),
    "biped on both feet": (partial(standing_biped, "ab"), 12, 6),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_divide_and_conquer_closes_loops_that_share_joints_and_have_superfluous_rows(name):
    """Mechanisms of thin rods, which the pivoted version takes; flat, rows are demanded that no motion can give."""
    make, rows, rank = MECHANISMS[name]
    closed, q = make()
    found = loops.mobility(closed, q)
    assert (found.rows, found.rank) == (rows, rank)
    assert max(apart(closed, q, np.random.default_rng(0), "pivoted")) < 1e-9


@pytest.mark.parametrize("version", VERSIONS)
def test_loops_are_closed_in_the_first_assembly_that_has_their_ends(version):
    closed = four_bars(3)
    q = np.array([0.7, -0.7, 0.7, 0.3, 1.0, -1.0, 1.0, -0.5, 0.4, -0.4, 0.4, 0.2])
    assert max(apart(closed, loops.assemble(closed, q), np.random.default_rng(0), version)) < 1e-9
    whole = grounded([-1, 0, 1, 1, 2, 4, 5, 5], {0: frozenset({2, 3}), 1: frozenset({6, 7}), 2: frozenset({-1, 3})})
    where, waiting = {}, [(whole, 0)]
    while waiting:
        part, level = waiting.pop()
        if isinstance(part, Part):
            where |= dict.fromkeys(part.loops, level)
            waiting += [(part.inner, level + 1), (part.outer, level + 1)]
    assert where[2] == 0 and where[0] >= 2 <= where[1]  # the ground, and within either half of the rest


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_depth_of_divide_and_conquer_with_loops_is_logarithmic(version):
    """As often as four-bars one on another double, the same is added; elimination's depth doubles with them."""
    depths = [looped_depth(partial(divide_and_conquer.forward_dynamics, version=version), n) for n in (2, 4, 8)]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.1)
    serial = [looped_depth(loops.forward_dynamics, n) for n in (2, 4)]
    assert serial[1] > 2 * serial[0]


def test_loops_that_bind_nothing_that_moves_change_nothing():
    """A base fixed twice, and a rod's end on the axis of the arm that it holds."""
    robot = two_arms(legged.FixedBase())
    closed = loops.close(robot, legged.Fixed("weld"), parent=None, child="base")
    closed = closed.close(loops.Rod("rod", 0.4), parent=None, child="left_link0")
    q, v, tau = np.random.default_rng(0).normal(size=(3, robot.nv))
    assert loops.mobility(closed, q).rank == 0
    assert divide_and_conquer.forward_dynamics(closed, q, v, tau) == pytest.approx(
        loops.forward_dynamics(closed, q, v, tau), rel=1e-9
    )


def looped_depth(method, cells: int) -> int:
    closed = four_bars(cells)
    robot = closed.robot
    return depth(partial(method, closed), None, q=robot.nq, v=robot.nv, tau=robot.nv)


def test_compiled_loops_are_the_same_with_superfluous_rows():
    for closed, q in (four_bar(), bars(True, 0.7)):
        robot, rng = closed.robot, np.random.default_rng(0)
        v, tau = rng.normal(size=(2, robot.nv))
        v = loops.consistent_velocity(closed, q, v)
        method = partial(divide_and_conquer.forward_dynamics, closed)
        kernel = legged.compile(method, None, q=robot.nq, v=robot.nv, tau=robot.nv)
        theirs = loops.forward_dynamics(closed, q, v, tau)
        assert kernel(q, v, tau) == pytest.approx(theirs, abs=1e-9 * np.abs(theirs).max())


def test_what_divide_and_conquer_cannot_do_is_refused():
    coupled = next(r for r in (legged.random_tree(s, coupled=True) for s in range(99)) if r.followers)
    still = np.zeros(coupled.nv)
    with pytest.raises(DefinitionError, match="joints that follow others"):
        divide_and_conquer.forward_dynamics(coupled, coupled.neutral(), still, still)
    builder = legged.RobotBuilder("bare", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    builder.add(legged.Revolute("bare joint", "x"), legged.Link("massless"), to="base")
    builder.add(
        legged.Revolute("joint", "y"), legged.Link("arm", legged.box_inertia(1, (0.3, 0.2, 0.1))), to="massless"
    )
    bare = loops.close(builder.build(), legged.Spherical("pin"), parent=None, child="massless")
    with pytest.raises(DefinitionError, match="'pin' closes a loop at 'massless', which has no mass"):
        divide_and_conquer.forward_dynamics(bare, bare.robot.neutral(), np.zeros(8), np.zeros(8))
    spinning = legged.JointPhysics(rotor=legged.Rotor(0.001, 2.0, True))
    builder = legged.RobotBuilder("fan", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    blades = legged.Link("blades", legged.box_inertia(1, (0.3, 0.2, 0.1)))
    builder.add(legged.Revolute("spin", "z", physics=spinning), blades, to="base")
    fan = builder.build()
    with pytest.raises(DefinitionError, match="rotors that couple"):
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
    vdot = sparse_system.forward_dynamics(robot, q, v, tau, wrenches)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9
    whole = sparse_system.system(robot, q, v, tau, wrenches)
    joints, a_0 = sparse_system.constraints(robot, q, v, tau, wrenches, "this")
    a = np.linalg.solve(whole.matrix, whole.right)[: 6 * len(joints)].reshape(-1, 6)
    dense = sparse_system.joint_rates(robot, joints, list(a), a_0)
    assert unbalanced(robot, q, v, tau, dense, wrenches) < 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_the_sparse_system_has_a_perfect_elimination_order(seed):
    """In its turn each block meets one other block at most, so that nothing fills."""
    robot, q, v, tau, _ = case(seed, 9)
    whole = sparse_system.system(robot, q, v, tau)
    blocks = [block for block in whole.blocks if block]
    met = {(i, j): bool(np.any(whole.matrix[np.ix_(a, b)])) for i, a in enumerate(blocks) for j, b in enumerate(blocks)}
    assert sum(met.values()) <= 4 * len(blocks)  # O(n) blocks of n^2
    for i in range(len(blocks)):
        assert sum(met[i, j] for j in range(i + 1, len(blocks))) <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_constraint_forces_of_a_chain_are_forward_dynamics(seed):
    """Equation (28)."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, int(rng.integers(1, 14)), branching=0.0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    vdot = constraint_force.forward_dynamics(robot, q, v, tau, wrenches)
    assert unbalanced(robot, q, v, tau, vdot, wrenches) < 1e-9
    assert accelerations_apart(robot, q, v, tau, wrenches, vdot) < 1e-9


@pytest.mark.parametrize("n", [1, 2, 3, 6, 7, 8])
def test_odd_even_reduction_solves_block_tridiagonal_systems(n):
    rng = np.random.default_rng(n)
    sizes = rng.integers(1, 5, n)
    ends = np.cumsum([0, *sizes])
    B = rng.normal(size=(ends[-1], ends[-1]))
    A = B @ B.T + ends[-1] * np.eye(ends[-1])
    parts = [slice(a, b) for a, b in pairwise(ends)]
    for i, a in enumerate(parts):
        for j, b in enumerate(parts):
            A[a, b] *= abs(i - j) <= 1
    A += ends[-1] * np.eye(ends[-1])
    r = rng.normal(size=ends[-1])
    lower = [A[b, a] for a, b in pairwise(parts)]
    x = constraint_force.solve_tridiagonal([A[p, p] for p in parts], lower, [r[p] for p in parts])
    assert A @ np.concatenate(x) == pytest.approx(r, abs=1e-12 * np.linalg.cond(A))


def test_constraint_forces_take_logarithmic_depth():
    sizes = (3, 7, 15)
    depths = [depth(constraint_force.forward_dynamics, robots.chain(n, twist=0.7)) for n in sizes]
    assert depths[1] - depths[0] == pytest.approx(depths[2] - depths[1], rel=0.1)


@pytest.mark.parametrize("d", range(7))
def test_the_complement_is_orthonormal_and_feels_nothing_of_the_joint(d):
    h = np.random.default_rng(d).normal(size=(6, d))
    T = complement(h)
    assert T.shape == (6, 6 - d)
    assert np.abs(T.T @ h).max(initial=0) < 1e-14 and np.abs(T.T @ T - np.eye(6 - d)).max(initial=0) < 1e-14


def test_systems_of_bodies_refuse_armature_and_chains_refuse_branches():
    robot = two_arms(legged.FloatingBase())
    state = robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv)
    with pytest.raises(DefinitionError, match="chains without branches"):
        constraint_force.forward_dynamics(robot, *state)
    rods = robots.spatial_quadruped()
    state = rods.neutral(), np.zeros(rods.nv), np.zeros(rods.nv)
    inverse = partial(divide_and_conquer.forward_dynamics, version="inverse")
    for method in (inverse, sparse_system.forward_dynamics, constraint_force.forward_dynamics):
        with pytest.raises(DefinitionError, match="'leg1_thigh' has none about some axis, as a thin rod"):
            method(rods, *state)
    builder = legged.RobotBuilder("geared", legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1))))
    physics, arm = legged.JointPhysics(armature=0.1), legged.Link("arm", legged.box_inertia(1, (0.3, 0.2, 0.1)))
    geared = builder.add(legged.Revolute("joint", "z", physics=physics), arm, to="base").build()
    state = geared.neutral(), np.zeros(geared.nv), np.zeros(geared.nv)
    for method in (sparse_system, constraint_force):
        with pytest.raises(DefinitionError, match="no place for armature"):
            method.forward_dynamics(geared, *state)


def test_compiled_they_are_the_same():
    robot = robots.chain(3, twist=0.7)
    rng = np.random.default_rng(0)
    q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    for method in (divide_and_conquer, sparse_system, constraint_force, global_form):
        vdot = legged.compile(method.forward_dynamics, robot)(q, v, tau)
        assert unbalanced(robot, q, v, tau, vdot) < 1e-11


@pytest.mark.skipif(bool(np.finfo(np.longdouble).eps > 1e-18), reason="no extended precision here")
def test_divide_and_conquer_is_less_accurate_but_useful():
    """Featherstone 1999, part 2; inertias of handles are differences of what they are between."""
    found = errors(64, 3.0)
    assert found["articulated bodies"] < 1e-11
    assert 10 * found["articulated bodies"] < found["divide and conquer, inverse"] < 1e-8
    assert found["divide and conquer, pivoted"] < 0.1 * found["divide and conquer, inverse"]
