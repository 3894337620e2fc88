"""Identities of the dense theory and statements of the paper on random robots; 1e-11 is rounding of 40 links."""

import numpy as np
import pytest
from oracles.cases import random_case
from oracles.differences import derivative, rate

import legged
import robots
from legged import denoc
from legged.errors import ArgumentError, NotFiniteError, ShapeError, SingularError, UnknownNameError

SEEDS = range(8)
ROUNDING = 1e-11
RATE = 1e-7  # finite differences


def world_twists(case):
    """Return t of every body, (6 n,), world axes, from point Jacobians at the origins of the bodies' links."""
    robot = case.robot
    twists = np.zeros((len(robot.bodies), 6))
    for body in robot.bodies:
        if body.kind == "base" or not body.name.endswith(")"):
            link = robot.link(body.name)
            origin_in_link = -link.rotation.T @ link.position
            twists[body.index] = legged.point_jacobian(robot, case.q, link.name, origin_in_link) @ case.v
        else:
            twists[body.index] = np.nan  # a massless body between the stages of a joint has no link
    return twists


@pytest.mark.parametrize("seed", SEEDS)
def test_complement_gives_every_bodys_twist(seed):
    case = random_case(seed)
    t = (denoc.complement(case.robot, case.q) @ case.v).reshape(-1, 6)
    wanted = world_twists(case)
    seen = ~np.isnan(wanted[:, 0])
    assert t[seen] == pytest.approx(wanted[seen], abs=ROUNDING * np.abs(t).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_module_twists_by_recursion_are_those_by_the_complement(seed):
    case = random_case(seed)
    N_l, N_d = denoc.denoc_matrices(case.robot, case.q)
    t = N_l @ N_d @ case.v
    assert np.concatenate(denoc.module_twists(case.robot, case.q, case.v)) == pytest.approx(
        t, abs=ROUNDING * np.abs(t).max(initial=1)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_module_twist_propagation_is_transitive_and_zero_off_the_path(seed):
    robot, q = random_case(seed).robot, random_case(seed).q
    for module in robot.modules:
        i = module.index
        for j in (0, i, len(robot.modules) // 2, len(robot.modules) - 1):
            block = denoc.module_twist_propagation(robot, q, i, j)
            assert block.any() == (i in denoc.gamma(robot, j))
        if module.parent > 0:
            beta, top = module.parent, robot.modules[module.parent].parent
            product = denoc.module_twist_propagation(robot, q, i, beta) @ denoc.module_twist_propagation(
                robot, q, beta, top
            )
            assert denoc.module_twist_propagation(robot, q, i, top) == pytest.approx(product, abs=ROUNDING)


def test_numbers_of_modules_end_below_their_count():
    robot = robots.planar_biped()
    for i, beta in ((len(robot.modules), 0), (0, len(robot.modules)), (-1, 0)):
        with pytest.raises(ArgumentError):
            denoc.module_twist_propagation(robot, robot.neutral(), i, beta)


@pytest.mark.parametrize("seed", SEEDS)
def test_gamma_is_a_module_and_the_gammas_of_its_children(seed):
    robot = random_case(seed).robot
    for module in robot.modules:
        children = denoc.xi(robot, module.index)
        assert all(robot.modules[j].parent == module.index for j in children)
        below = [k for j in children for k in denoc.gamma(robot, j)]
        assert sorted([module.index, *below]) == list(denoc.gamma(robot, module.index))
    assert denoc.gamma(robot, 0) == tuple(range(len(robot.modules)))


@pytest.mark.parametrize("seed", SEEDS)
def test_link_twist_propagation_is_transitive_and_undone_backwards(seed):
    robot, q = random_case(seed).robot, random_case(seed).q
    k, j, i = np.random.default_rng(seed).integers(0, len(robot.bodies), 3)
    A = denoc.link_twist_propagation
    assert A(robot, q, k, j) @ A(robot, q, j, i) == pytest.approx(A(robot, q, k, i), abs=ROUNDING)
    assert A(robot, q, k, j) @ A(robot, q, j, k) == pytest.approx(np.eye(6), abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_matrices_have_the_papers_shape(seed):
    case = random_case(seed)
    robot, q, v = case.robot, case.q, case.v
    N_l, N_d = denoc.denoc_matrices(robot, q)
    assert np.array_equal(np.triu(N_l, 1), np.zeros_like(N_l))
    assert np.array_equal(np.diag(N_l), np.ones(len(N_l)))
    row = 0
    for module in robot.modules:
        N = denoc.module_joint_rate_propagation(robot, q, module.index)
        own = slice(row, row + len(N))
        assert np.array_equal(N_d[own, module.v], N)
        row += len(N)
        if robot.nv:
            assert not np.delete(N_d[own], np.arange(robot.nv)[module.v], axis=1).any()
    P_0 = denoc.link_motion_propagation(robot, q, 0)
    assert np.array_equal(denoc.module_joint_rate_propagation(robot, q, 0), P_0)
    M, Omega, E = denoc.mass_matrix(robot, q), denoc.angular_velocity_matrix(robot, q, v), denoc.coupling_matrix(robot)
    assert pytest.approx(M.T, abs=1e-14 * np.abs(M).max()) == M
    assert pytest.approx(-Omega.T) == Omega
    assert np.array_equal(E @ E, E)
    assert np.trace(E) == 3 * len(robot.bodies)


@pytest.mark.parametrize("seed", SEEDS)
def test_rate_of_the_complement_is_its_finite_difference(seed):
    case = random_case(seed)
    derivatives = denoc.complement_rate(case.robot, case.q, case.v)
    wanted = rate(case.robot, lambda q, v: denoc.complement(case.robot, q), case.q, case.v)
    assert np.abs(derivatives - wanted).max(initial=0) <= RATE * np.abs(wanted).max(initial=1)


@pytest.mark.parametrize("seed", SEEDS)
def test_newton_euler_wrench_is_the_rate_of_each_bodys_momentum(seed):
    """M td + Omega M E t = rate of [angular; linear momentum] about the moving O_k, plus v x momentum."""
    case = random_case(seed, links=4)
    robot, q, v = case.robot, case.q, case.v
    M, Omega, E = denoc.mass_matrix(robot, q), denoc.angular_velocity_matrix(robot, q, v), denoc.coupling_matrix(robot)
    N, N_dot = denoc.complement(robot, q), denoc.complement_rate(robot, q, v)
    t, td = N @ v, N @ case.vdot + N_dot @ v
    w = M @ td + Omega @ M @ E @ t

    def momentum(q, v):
        return denoc.mass_matrix(robot, q) @ denoc.complement(robot, q) @ v

    moved = rate(robot, momentum, q, v, case.vdot).reshape(-1, 6)
    moved[:, :3] += np.cross(t.reshape(-1, 6)[:, 3:], momentum(q, v).reshape(-1, 6)[:, 3:])
    assert w == pytest.approx(moved.ravel(), abs=RATE * np.abs(moved).max(initial=1))


def test_equation_24_as_printed_lacks_a_moment_if_centers_of_mass_are_off_the_origins():
    """C v from N^T (Md N + M Nd) is wrong unless every center of mass is at its link's origin."""
    robot = legged.random_tree(4, 5, joints=("revolute",), bases=("floating",))
    centered = (
        legged.RobotBuilder("centered", legged.Link("a", legged.box_inertia(2.0, (0.1, 0.2, 0.3))))
        .add(
            legged.Revolute("j", "y"),
            legged.Link("b", legged.box_inertia(1.0, (0.3, 0.2, 0.1))),
            to="a",
            at=(0.1, 0.2, 0.3),
        )
        .build()
    )
    for tree, right in ((robot, False), (centered, True)):
        rng = np.random.default_rng(0)
        q, v = legged.random_configuration(tree, rng), rng.normal(size=tree.nv)
        M, Omega = denoc.mass_matrix(tree, q), denoc.angular_velocity_matrix(tree, q, v)
        N, N_dot = denoc.complement(tree, q), denoc.complement_rate(tree, q, v)
        printed = N.T @ ((Omega @ M - M @ Omega) @ N + M @ N_dot) @ v
        true = denoc.convective_inertia_matrix(tree, q, v, "paper") @ v
        assert (np.abs(printed - true).max() < 1e-12 * np.abs(true).max()) == right


@pytest.mark.parametrize("seed", SEEDS)
def test_inertia_matrix_in_closed_form_is_the_projection(seed):
    case = random_case(seed)
    projected = denoc.generalized_inertia_matrix(case.robot, case.q)
    closed = denoc.generalized_inertia_closed_form(case.robot, case.q)
    assert np.abs(closed - projected).max(initial=0) <= ROUNDING * np.abs(projected).max(initial=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_composite_modules_are_the_diagonal_of_the_generalized_composite_mass(seed):
    """(A.1): N_l^T M N_l has the diagonal blocks M~^i."""
    case = random_case(seed)
    N_l, _ = denoc.denoc_matrices(case.robot, case.q)
    whole = N_l.T @ denoc.mass_matrix(case.robot, case.q) @ N_l
    row = 0
    for M_tilde in denoc.composite_modules(case.robot, case.q):
        block = whole[row : row + len(M_tilde), row : row + len(M_tilde)]
        assert block == pytest.approx(M_tilde, abs=ROUNDING * np.abs(whole).max())
        row += len(M_tilde)


@pytest.mark.parametrize("seed", SEEDS)
def test_udu_factors_multiply_to_the_inertia_matrix(seed):
    case = random_case(seed)
    inertia = denoc.generalized_inertia_matrix(case.robot, case.q)
    U, D = denoc.udu(case.robot, case.q)
    assert np.abs(U @ D @ U.T - inertia).max(initial=0) <= ROUNDING * np.abs(inertia).max(initial=0)
    assert np.linalg.det(inertia) == pytest.approx(np.linalg.det(D), rel=1e-6)  # a product of up to 85 pivots
    for module in case.robot.modules:
        assert np.array_equal(U[np.ix_(module.v, module.v)], np.eye(len(module.v)))
        assert not U[module.v, : min(module.v, default=0)].any()
        assert not D[module.v, : min(module.v, default=0)].any()


@pytest.mark.parametrize("seed", SEEDS)
def test_articulated_inertia_annihilates_joint_motions_and_is_below_composite_inertia(seed):
    case = random_case(seed)
    parts, M_tilde = denoc.articulated_modules(case.robot, case.q), denoc.composite_modules(case.robot, case.q)
    for module, part, composite in zip(case.robot.modules, parts, M_tilde, strict=True):
        N = denoc.module_joint_rate_propagation(case.robot, case.q, module.index)
        size = np.abs(part.M_hat).max(initial=0)
        assert np.abs(part.M_hat_hat @ N).max(initial=0) <= 1e-9 * size
        # free joints only reduce the inertia
        assert np.linalg.eigvalsh(composite - part.M_hat).min() >= -1e-9 * size


def test_modules_of_alike_legs_are_articulated_alike():
    """Modules of one kind have the same articulated inertia: mirrored legs in mirrored poses."""
    import robots

    robot = robots.spatial_quadruped()
    q = robot.neutral()
    for joint in robot.joints:
        q[joint.q] = {"hip": [0.0, 0.5], "knee": [-1.0]}[joint.name.split("_")[1]]
    conditioning = legged.conditioning(robot, q)
    assert conditioning[1:] == pytest.approx(conditioning[1], rel=1e-9)


@pytest.mark.parametrize("physics", [False, True], ids=["", "with rotors"])
@pytest.mark.parametrize("seed", SEEDS)
def test_conditioning_is_that_of_the_blocks_of_d(seed, physics):
    case = random_case(seed, physics=physics)
    assert physics == any(body.rotor_inertia.any() for body in case.robot.bodies)
    _, D = denoc.udu(case.robot, case.q)
    conditioning = legged.conditioning(case.robot, case.q)
    assert len(conditioning) == len(case.robot.modules)
    for module, number in zip(case.robot.modules, conditioning, strict=True):
        block = D[np.ix_(module.v, module.v)]
        wanted = np.linalg.cond(block) if block.size else 1.0
        assert number == pytest.approx(wanted, rel=1e-6)
    scaled = legged.conditioning(case.robot, case.q, scaled=True)
    singles = [k for k, module in enumerate(case.robot.modules) if len(module.v) == 1]
    assert scaled[singles] == pytest.approx(1.0)


def arm(unit, base=None):
    """Return an arm with revolute and prismatic joints, lengths given in a unit of so many meters."""
    l = 1 / unit
    link = legged.Inertia(1.0, (0.1 * l, 0.0, 0.2 * l), np.array([0.02, 0.03, 0.025]) * l**2)
    return (
        legged.RobotBuilder("arm", legged.Link("a", link), base=base)
        .add(legged.Revolute("r", "y"), legged.Link("b", link), to="a", at=(0, 0, 0.3 * l))
        .add(legged.Prismatic("p", "x"), legged.Link("c", link), to="b", at=(0, 0.1 * l, 0.3 * l))
        .build()
    )


def test_scaled_conditioning_does_not_depend_on_the_unit_of_length():
    meters, millimetres = arm(1.0), arm(1e-3)
    q = meters.neutral()
    q[7:] = 0.4, 0.2
    q_mm = q.copy()
    q_mm[8] *= 1e3
    plain = legged.conditioning(meters, q)
    assert legged.conditioning(millimetres, q_mm)[1] > 1e3 * plain[1]
    wanted = legged.conditioning(meters, q, scaled=True)
    assert legged.conditioning(millimetres, q_mm, scaled=True) == pytest.approx(wanted, rel=1e-6)


def test_conditioning_identifies_the_module_near_gimbal_lock():
    body = legged.box_inertia(2.0, (0.3, 0.2, 0.5), (0.1, 0.0, -0.2))
    robot = (
        legged.RobotBuilder("two arms", legged.Link("trunk", body), base=legged.EulerBase("zyx"))
        .add(legged.Spherical("left", "zyx"), legged.Link("l", body), to="trunk", at=(0, 0.3, 0))
        .add(legged.Spherical("right", "zyx"), legged.Link("r", body), to="trunk", at=(0, -0.3, 0))
        .build()
    )
    q = np.full(robot.nq, 0.3)
    q[robot.joint("right").q] = 0.2, np.pi / 2 - 1e-4, 0.1
    base, left, right = legged.conditioning(robot, q)
    assert base < 1e3
    assert left < 1e3
    assert right > 1e7  # (pi/2 - angle)^-2
    q[robot.joint("right").q] = 0.2, np.pi / 2, 0.1
    assert legged.conditioning(robot, q)[2] > 1e15
    q[1] = np.pi / 2
    assert legged.conditioning(robot, q)[0] > 1e15


def test_dense_functions_check_their_arguments():
    robot = legged.random_tree(3, 4)
    q, v = legged.random_configuration(robot, np.random.default_rng(0)), np.zeros(robot.nv)
    with pytest.raises(ShapeError, match=rf"v must be \({robot.nv},\), got shape \(2,\)"):
        denoc.bias_forces(robot, q, np.zeros(2))
    with pytest.raises(NotFiniteError, match="q must be finite, got nan"):
        denoc.complement(robot, q * np.nan)
    with pytest.raises(
        UnknownNameError, match="no form of the convective matrix named 'coriolis'; there are: skew, paper"
    ):
        denoc.convective_inertia_matrix(robot, q, v, "coriolis")
    with pytest.raises(KeyError, match="there is no link named 'linkk1'; did you mean 'link1'"):
        denoc.external_forces(robot, q, {"linkk1": np.zeros(6)})


def test_link_motion_propagation_is_the_joint_axis_in_world_axes():
    axis = np.array([0.6, 0.0, 0.8])
    robot = (
        legged.RobotBuilder("two", legged.Link("a", legged.box_inertia(1.0, (1, 1, 1))), base=legged.FixedBase())
        .add(legged.Revolute("r", axis), legged.Link("b", legged.box_inertia(1.0, (1, 2, 3))), to="a")
        .add(legged.Prismatic("p", "y"), legged.Link("c", legged.box_inertia(1.0, (1, 2, 3))), to="b")
        .build()
    )
    q = [0.7, 0.1]
    assert denoc.link_motion_propagation(robot, q, 1)[:, 0] == pytest.approx([*axis, 0, 0, 0], abs=1e-15)
    R, _ = legged.link_poses(robot, q)
    assert denoc.link_motion_propagation(robot, q, 2)[:, 0] == pytest.approx([0, 0, 0, *R[1][:, 1]], abs=1e-15)
    turned = derivative(lambda t: legged.link_poses(robot, [0.7 + t, 0.1])[0][1])
    assert turned @ R[1].T @ axis == pytest.approx(np.zeros(3), abs=1e-9)


def test_dense_dynamics_at_gimbal_lock_name_the_robot():
    builder = legged.RobotBuilder(
        "top", legged.Link("top", legged.sphere_inertia(1.0, 0.1)), base=legged.EulerBase("zxz")
    )
    robot = builder.build()
    q, v = robot.neutral(), np.zeros(6)
    with pytest.raises(SingularError, match="matrix of robot 'top' is singular"):
        denoc.forward_dynamics(robot, q, v, np.ones(6))
    with pytest.raises(SingularError, match="matrix of robot 'top' is singular"):
        denoc.floating_inverse_dynamics(robot, q, v, np.zeros(0))


@pytest.mark.parametrize("function", [denoc.gamma, denoc.xi])
@pytest.mark.parametrize("i", [-1, 5])
def test_numbers_of_modules_must_exist(function, i):
    with pytest.raises(ArgumentError, match="i must be at"):
        function(robots.spatial_quadruped(), i)
