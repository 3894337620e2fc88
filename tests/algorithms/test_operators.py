"""The spatial operator algebra: every lemma and equation as an identity of operators, on random trees."""

import numpy as np
import pytest
from oracles.cases import accelerations_apart
from oracles.looped import two_arms

import legged
import robots
from legged.algorithms import operators as soa
from legged.algorithms.operators import SpatialOperators, identity
from legged.denoc import articulated_modules, denoc_matrices, udu
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError, ShapeError, SingularError

SEEDS = range(6)
ALL_SEEDS = range(300)


def case(seed: int, **options):
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, int(rng.integers(2, 8)), shuffled=seed % 2 == 0, **options)
    return robot, legged.random_configuration(robot, rng), rng


def tips(robot, rng, count=3):
    links = rng.choice(len(robot.links), size=count)
    return [(int(link), rng.normal(size=3)) for link in links]


def same(A, B, scale=None):
    """Assert that two operators or matrices are equal to rounding, relative to the size of their entries."""
    A, B = (x.matrix() if isinstance(x, soa.LinearOperator) else np.asarray(x) for x in (A, B))
    scale = max(1.0, float(np.abs(B).max(initial=0.0))) if scale is None else scale
    assert A.shape == B.shape
    assert np.abs(A - B).max(initial=0.0) < 1e-11 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_adjoints_are_transposes(seed):
    robot, q, rng = case(seed)
    S = SpatialOperators(robot, q)
    for A in (
        S.H,
        S.phi,
        S.E_phi,
        S.psi,
        S.E_psi,
        S.K,
        S.G,
        S.D,
        S.P,
        S.M,
        S.B(tips(robot, rng)),
        S.J(tips(robot, rng)),
    ):
        same(A.T, A.matrix().T)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobian_is_its_three_factors(seed):
    """Equation (1)."""
    robot, q, rng = case(seed)
    points = tips(robot, rng)
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    same(SpatialOperators(robot, q).J(points), J)


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_mass_bias_and_jacobian_have_their_factors(seed):
    """Equations (2) to (7): the Newton-Euler factorization; with armature, which the paper does not treat."""
    robot, q, rng = case(seed)
    S, v = SpatialOperators(robot, q), rng.normal(size=robot.nv)
    same(S.mass, legged.inertia_matrix(robot, q))
    same(S.H @ S.phi @ S.M @ S.phi.T @ S.H.T, legged.inertia_matrix(robot, q))
    w = {robot.links[-1].name: rng.normal(size=6)}
    bias = legged.bias_forces(robot, q, v, w)
    off = np.abs(soa.bias_forces(S, v, w) - bias).max(initial=0.0)
    assert off <= 1e-11 * np.abs(bias).max(initial=0.0)  # both 0 for a robot that cannot move
    points = tips(robot, rng)
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    same(S.H @ S.phi @ S.B(points), J.T)


@pytest.mark.parametrize("seed", SEEDS)
def test_riccati_equation_and_its_operators(seed):
    """Equations (8) to (10), in their paper's form for robots without armature: M = P - E_psi P E_psi*."""
    robot, q, _ = case(seed)
    S = SpatialOperators(robot, q)
    same(S.P - S.E_psi @ S.P @ S.E_psi.T, S.M)
    same(S.D, S.H @ S.P @ S.H.T)
    same(S.D @ S.D_inverse, np.eye(robot.nv))
    same(S.G, S.P @ S.H.T @ S.D_inverse)
    same(S.E_psi, S.E_phi @ (identity(S.phi.rows) - S.G @ S.H))
    same(S.E_psi, S.E_phi - S.K @ S.H)
    same((identity(S.phi.rows) - S.E_psi) @ S.psi, identity(S.phi.rows))


@pytest.mark.parametrize("physics", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_lemmas(seed, physics):
    """Lemmas 1 to 5, equations (11) to (13) and (16); with armature as well, whose Riccati equation is (8) adapted."""
    robot, q, _ = case(seed)
    if physics:
        robot = with_armature(seed)
        q = legged.random_configuration(robot, np.random.default_rng(seed))
    S = SpatialOperators(robot, q)
    M, one = legged.inertia_matrix(robot, q), np.eye(robot.nv)
    same(S.innovations @ S.D @ S.innovations.T, M)  # 1, (11)
    same(S.whitening @ S.innovations, one)  # 2, (12)
    same(S.innovations @ S.whitening, one)
    same(S.mass_inverse @ S.mass, one, scale=np.linalg.cond(M))  # 3, (13)
    same(S.whitening @ S.H @ S.phi, S.H @ S.psi)  # 4, (16)
    size = identity(S.phi.rows)
    same(S.phi @ (size - S.E_phi), np.eye(size.rows))
    same(S.psi @ (size - S.E_psi), np.eye(size.rows))
    same(size - S.E_psi, (size - S.E_phi) + S.K @ S.H)  # 5


def with_armature(seed: int):
    limb = legged.Limb()
    for k in range(4):
        joint = legged.Revolute(f"j{k}", "xyz"[k % 3], physics=legged.JointPhysics(armature=0.1 * (k + 1)))
        limb.add(
            joint, legged.Link(f"l{k}", legged.box_inertia(1.0 + seed, (0.1, 0.2, 0.3))), at=(0, 0, -0.3 * (k > 0))
        )
    base = legged.Link("base", legged.box_inertia(2, (0.3, 0.2, 0.1)))
    return legged.RobotBuilder("arm", base).attach(limb, to="base").build()


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_forward_dynamics_by_filter_and_smoother(seed):
    """Algorithm FD, equations (14) and (15), as forces and as accelerations."""
    robot, q, rng = case(seed)
    v, tau = rng.normal(size=(2, robot.nv))
    w = {robot.links[-1].name: rng.normal(size=6)}
    vdot = soa.forward_dynamics(robot, q, v, tau, w)
    needed = legged.inverse_dynamics(robot, q, v, vdot, w)
    scale = np.abs(np.array([*tau, *legged.bias_forces(robot, q, v, w)])).max(initial=0.0)
    assert np.abs(needed - tau).max(initial=0.0) <= 1e-9 * scale
    assert accelerations_apart(robot, q, v, tau, w, vdot) <= 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_tip_forces_and_tip_inertia(seed):
    """Equations (2) and (17) to (20), for several tips of a tree."""
    robot, q, rng = case(seed)
    S, points = SpatialOperators(robot, q), tips(robot, rng)
    J, f = S.J(points).matrix(), rng.normal(size=18)
    M = legged.inertia_matrix(robot, q)
    condition = np.linalg.cond(M)
    long_way = -(S.whitening.T @ S.D_inverse @ S.whitening @ S.H @ S.phi @ S.B(points)).apply(f)  # (17)
    short = soa.tip_correction(S, points, f)  # (18)
    same(short, long_way)
    same(short, -np.linalg.solve(M, J.T @ f), scale=condition * np.abs(short).max())
    rotations, _ = legged.link_poses(robot, q)
    wrenches = np.zeros((len(robot.links), 6))  # of the world on the links, about their origins
    for (link, position), w in zip(points, -f.reshape(-1, 6), strict=True):
        moment, force = rotations[link].T @ w[:3], rotations[link].T @ w[3:]
        wrenches[link] += [*(moment + np.cross(position, force)), *force]
    v, tau = rng.normal(size=(2, robot.nv))
    free, loaded = (soa.forward_dynamics(robot, q, v, tau, w) for w in (None, wrenches))  # (2)
    same(loaded - free, short, scale=condition * max(np.abs(free).max(), np.abs(short).max()))
    Omega = soa.tip_mobility(S, points)
    same((S.B(points).T @ S.psi.T @ S.H.T @ S.D_inverse @ S.H @ S.psi @ S.B(points)), Omega)  # (20)
    same(Omega, J @ np.linalg.solve(M, J.T), scale=condition * np.abs(Omega).max())


def test_closed_chain_tips_accelerate_equally_and_obey_the_lagrange_equations():
    """Equations (21) to (26) against the dense system (20) of Featherstone and Orin."""
    robot, rng = two_arms(legged.FixedBase()), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, robot.nv))
    points = [("left_link6", np.array([0, 0, 0.3])), ("right_link6", np.array([0, 0, 0.3]))]
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    L = J[:6] - J[6:]
    v = v - np.linalg.pinv(L) @ L @ v  # tips that move alike
    vdot, f = soa.closed_chain(robot, q, v, tau, *points)
    rates = legged.point_twist_rates(robot, q, v, vdot, points)
    assert np.abs(rates[0] - rates[1]).max() < 1e-9 * np.abs(rates).max()
    M, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v)
    assert np.abs(M @ vdot + h - tau - L.T @ f).max() < 1e-9 * np.abs(tau).max()


def test_grasping_arms_and_body_obey_newton_and_the_rigid_grasp():
    robot, rng = two_arms(legged.FixedBase()), np.random.default_rng(1)
    q, v, tau = rng.normal(size=(3, robot.nv))
    points = [("left_link6", np.array([0, 0, 0.3])), ("right_link6", np.array([0, 0, 0.3]))]
    places = legged.point_positions(robot, q, points)
    held = soa.GraspedBody(
        legged.box_inertia(3.0, (0.4, 0.3, 0.2), (0.01, 0.02, 0.03)), places.mean(axis=0), np.zeros(3)
    )
    v = 0 * v
    vdot, forces, alpha = soa.grasp(robot, q, v, tau, points, held)
    rates = legged.point_twist_rates(robot, q, v, vdot, points)
    for place, rate in zip(places, rates, strict=True):
        follows = alpha[3:] + np.cross(alpha[:3], place - held.position)
        assert rate == pytest.approx(np.concatenate([alpha[:3], follows]), abs=1e-9 * np.abs(rates).max())
    pull = -forces[:, 3:].sum(axis=0) + 3.0 * robot.gravity
    center = alpha[3:] + np.cross(alpha[:3], held.inertia.center)
    assert pull == pytest.approx(3.0 * center, abs=1e-9 * np.abs(forces).max())  # Newton for the held body


@pytest.mark.parametrize("seed", range(3))
def test_arms_and_a_grasped_body_in_motion_obey_newton_and_euler(seed):
    """The body turns at some rad/s: centripetal accelerations of the tips, gyroscopic and centrifugal forces."""
    robot, rng = two_arms(legged.FixedBase()), np.random.default_rng(seed)
    q, tau = rng.normal(size=(2, robot.nv))
    points = [("left_link6", np.array([0, 0, 0.3])), ("right_link6", np.array([0.1, 0, 0.2]))]
    places = legged.point_positions(robot, q, points)
    position, (omega, velocity) = places.mean(axis=0) + np.array([0.1, -0.2, 0.1]), 2.0 * rng.normal(size=(2, 3))
    twists = [np.concatenate([omega, velocity + np.cross(omega, place - position)]) for place in places]
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    v = np.linalg.lstsq(J, np.concatenate(twists), rcond=None)[0]
    assert J @ v == pytest.approx(np.concatenate(twists), abs=1e-9)  # two arms of seven joints can follow any body
    mass, center = 3.0, np.array([0.05, 0.1, -0.2])
    held = soa.GraspedBody(legged.box_inertia(mass, (0.4, 0.3, 0.2), center), position, omega)
    vdot, forces, alpha = soa.grasp(robot, q, v, tau, points, held)
    rates = legged.point_twist_rates(robot, q, v, vdot, points)
    close = {"abs": 1e-9 * max(np.abs(rates).max(), np.abs(forces).max())}

    def acceleration(r):
        return alpha[3:] + np.cross(alpha[:3], r) + np.cross(omega, np.cross(omega, r))

    for place, rate in zip(places, rates, strict=True):
        assert rate == pytest.approx(np.concatenate([alpha[:3], acceleration(place - position)]), **close)
    n, f = -forces[:, :3].sum(axis=0), -forces[:, 3:].sum(axis=0)
    assert f + mass * robot.gravity == pytest.approx(mass * acceleration(center), **close)
    about_center = n - np.cross(places - position - center, forces[:, 3:]).sum(axis=0)
    own = legged.box_inertia(mass, (0.4, 0.3, 0.2)).about_origin
    assert about_center == pytest.approx(own @ alpha[:3] + np.cross(omega, own @ omega), **close)
    outside = {
        link: _on_link(robot, q, link, place, w) for (link, _), place, w in zip(points, places, forces, strict=True)
    }
    assert legged.inverse_dynamics(robot, q, v, vdot, outside) == pytest.approx(tau, **close)


def _on_link(robot, q, link, place, wrench):
    """Return a wrench about a place, world axes, as one about the link's origin, link axes."""
    R, o = legged.frame_pose(robot, q, link)
    return np.concatenate([R.T @ (wrench[:3] + np.cross(place - o, wrench[3:])), R.T @ wrench[3:]])


@pytest.mark.parametrize("seed", range(3))
def test_fixed_point_feet_of_a_moving_robot_do_not_accelerate(seed):
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(seed)
    q = legged.integrate(robot, robot.neutral(), np.r_[rng.normal(size=6), np.tile([0.1, 0.5, -1.0], 4)])
    feet = [(robot.links[contact.link].name, contact.position) for contact in robot.contacts]
    places, (v, tau) = legged.point_positions(robot, q, feet), rng.normal(size=(2, robot.nv))
    vdot, forces = soa.fixed_point_feet(robot, q, v, tau, feet)
    close = {"abs": 1e-9 * max(np.abs(vdot).max(), np.abs(forces).max())}
    assert legged.point_accelerations(robot, q, v, vdot, feet) == pytest.approx(np.zeros((4, 3)), **close)
    outside = {
        link: _on_link(robot, q, link, place, np.r_[0.0, 0.0, 0.0, f])
        for (link, _), place, f in zip(feet, places, forces, strict=True)
    }
    assert legged.inverse_dynamics(robot, q, v, vdot, outside) == pytest.approx(tau, **close)


def test_fixed_point_feet_do_not_accelerate():
    robot = robots.spatial_quadruped()
    q, v = robot.neutral(), np.zeros(robot.nv)
    q[robot.base.nq :] = np.tile([0.1, 0.5, -1.0], 4)
    feet = [(contact.link, contact.position) for contact in robot.contacts]
    vdot, forces = soa.fixed_point_feet(robot, q, v, np.zeros(robot.nv), feet)
    assert np.abs(legged.point_accelerations(robot, q, v, vdot, feet)).max() < 1e-9
    momentum = legged.momentum_rate(robot, q, v, vdot)
    assert momentum[3:] == pytest.approx(forces.sum(axis=0) + robot.mass * robot.gravity, abs=1e-9)
    with pytest.raises(SingularError):
        soa.fixed_point_feet(robot, robot.neutral(), v, np.zeros(robot.nv), feet)  # straight legs


@pytest.mark.parametrize("seed", SEEDS)
def test_diagonalized_equations_of_motion(seed):
    """Section 6: nu_dot + mu = epsilon, energy nu . nu / 2, power nu . epsilon; mu does no work without gravity."""
    robot, q, rng = case(seed, gravity=(0, 0, 0))
    v, tau = rng.normal(size=(2, robot.nv))
    S = SpatialOperators(robot, q)
    nu, epsilon, mu = soa.residuals(S, v), soa.innovations(S, tau), soa.diagonal_bias(robot, q, v)
    assert nu @ nu / 2 == pytest.approx(legged.kinetic_energy(robot, q, v), rel=1e-12)
    assert nu @ epsilon == pytest.approx(v @ tau, rel=1e-9, abs=1e-9)
    assert abs(nu @ mu) < 1e-10 * np.linalg.norm(nu) * max(np.linalg.norm(mu), 1.0)
    vdot, h = legged.forward_dynamics(robot, q, v, tau), 1e-5

    def at(t):
        moved = legged.integrate(robot, q, t * v)
        return soa.residuals(SpatialOperators(robot, moved), v + t * vdot)

    rate = (at(h) - at(-h)) / (2 * h)
    assert rate + mu == pytest.approx(epsilon, abs=1e-6 * max(np.abs(epsilon).max(), np.abs(mu).max()))  # h^2 of a rate


@pytest.mark.parametrize("seed", range(4))
def test_operators_are_those_of_denoc(seed):
    """phi* H* is N_l N_d in body axes; I + H phi K refines U module by module, D the I^ of the modules."""
    robot = legged.random_tree(seed, 5, joints=("revolute", "prismatic"), bases=("floating", "fixed"))
    q = legged.random_configuration(robot, np.random.default_rng(seed))
    S, R = SpatialOperators(robot, q), motion(robot, q).rotation
    N_l, N_d = denoc_matrices(robot, q)
    own = (S.phi.T @ S.H.T).matrix().reshape(len(robot.bodies), 6, robot.nv)
    in_order = [k for module in robot.modules for k in module.bodies]
    same(np.concatenate([np.kron(np.eye(2), R[k]) @ own[k] for k in in_order]), N_l @ N_d)
    U, D = udu(robot, q)
    factor, middle = S.innovations.matrix(), S.D.matrix()
    same(U @ D @ U.T, factor @ middle @ factor.T)
    for module, dense in zip(robot.modules, articulated_modules(robot, q), strict=True):
        v = np.r_[module.v]
        block = factor[np.ix_(v, v)]
        same(block @ middle[np.ix_(v, v)] @ block.T, dense.I_hat)
        same(U[:, v] @ block, factor[:, v])


def test_operators_check_sizes_and_robots():
    robot = robots.planar_biped()
    S = SpatialOperators(robot, robot.neutral())
    with pytest.raises(ShapeError, match="acts on vectors"):
        _ = S.phi @ np.zeros(3)
    with pytest.raises(ShapeError, match="cannot be multiplied"):
        _ = S.phi @ S.H
    with pytest.raises(ShapeError, match="cannot be added"):
        _ = S.phi + S.H
    coupled = next(r for r in (legged.random_tree(s, coupled=True) for s in range(99)) if r.followers)
    with pytest.raises(DefinitionError, match="innovations factorization"):
        SpatialOperators(coupled, coupled.neutral())
    assert legged.count(soa.forward_dynamics, robot).M > legged.count(legged.forward_dynamics, robot).M


def test_the_former_name_of_linear_operators_is_deprecated():
    with pytest.warns(DeprecationWarning, match="LinearOperator"):
        assert soa.Operator is soa.LinearOperator
    with pytest.raises(AttributeError, match="no attribute 'Operater'"):
        getattr(soa, "Operater")  # noqa: B009
