"""Hybrid motion and force: contact of constrained bodies, and the decoupled subspaces of a robot in contact."""

import numpy as np
import pytest

import legged
import robots
from legged.algorithms.operational import (
    BodyResponse,
    ContactSpace,
    LinkContact,
    contact_freedoms,
    contact_normals,
    contact_projectors,
    contact_response,
    link_response,
    vertex_on_face,
)
from legged.algorithms.operational.contact import link_jacobian
from legged.errors import ShapeError
from legged.spatial import skew

EPS = np.finfo(float).eps


def arm(joints: int, seed: int = 0) -> legged.Robot:
    """Return a chain of general geometry on a fixed base."""
    return robots.chain(joints, twist=0.7 + 0.1 * seed, base=legged.FixedBase(), seed=seed)


def state(robot, seed):
    rng = np.random.default_rng(seed)
    return legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng


def contact(robot, rng, c):
    """Return a contact of the last link with random normals and rates of the normals."""
    return LinkContact(robot.links[-1].name, rng.normal(size=(6, c)), rng.normal(size=(6, c)))


def hybrid_forces(space, v, vdot, command, a_n=None):
    """Return the forces for a desired acceleration."""
    return space.hybrid_forces(v, legged.inverse_dynamics(space.robot, space.q, v, vdot), command, a_n)


def constrained(robot, q, v, tau, J, c):
    """Return (vdot, lambda) of M vdot + h = tau + J^T lambda, J vdot = c, from the whole system."""
    M, h, k = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v), len(J)
    x = np.linalg.solve(np.block([[M, -J.T], [J, np.zeros((k, k))]]), np.concatenate([tau - h, c]))
    return x[: robot.nv], x[robot.nv :]


@pytest.mark.parametrize("c", [1, 2, 5, 6])
def test_freedoms_are_the_velocities_on_which_contact_forces_do_no_work(c):
    N = np.random.default_rng(c).normal(size=(6, c))
    T = contact_freedoms(N)
    assert T.shape == (6, 6 - c)
    assert np.abs(N.T @ T).max(initial=0.0) < 1e-14
    assert np.allclose(T.T @ T, np.eye(6 - c), rtol=0, atol=1e-14)
    assert contact_freedoms(np.concatenate([N, N[:, :1]], axis=1)).shape == T.shape  # a redundant normal


@pytest.mark.parametrize("rank", [3, 6])
def test_projectors_decouple_the_mobility_of_a_body(rank):
    """Phi = P_M Phi P_M^T + P_F^T Phi P_F, for a free body and for one that a mechanism holds."""
    rng = np.random.default_rng(rank)
    A, N = rng.normal(size=(6, rank)), rng.normal(size=(6, 2))
    Phi = A @ A.T
    P_M, P_F = contact_projectors(N, Phi)
    assert np.allclose(P_F @ P_F, P_F, rtol=0, atol=1e-12)
    assert np.allclose(P_F @ N, N, rtol=0, atol=1e-12)
    assert np.abs(N.T @ P_M).max() < 1e-12
    assert np.abs(P_M @ Phi @ N).max() < 1e-12
    assert np.allclose(P_M @ Phi @ P_M.T + P_F.T @ Phi @ P_F, Phi, rtol=0, atol=1e-12)


def test_projectors_do_not_depend_on_units_and_origin():
    rng = np.random.default_rng(1)
    A, N, p = rng.normal(size=(6, 6)), rng.normal(size=(6, 3)), rng.normal(size=3)
    X = np.block([[np.eye(3), np.zeros((3, 3))], [-skew(p), np.eye(3)]]) @ np.diag([1, 1, 1, 1e3, 1e3, 1e3])
    dual = np.linalg.inv(X).T  # forces
    P_M, P_F = contact_projectors(N, A @ A.T)
    moved_M, moved_F = contact_projectors(dual @ N, X @ A @ A.T @ X.T)
    assert np.allclose(moved_M @ X, X @ P_M, rtol=1e-8, atol=1e-9 * np.abs(X @ P_M).max())
    assert np.allclose(moved_F @ dual, dual @ P_F, rtol=1e-8, atol=1e-9 * np.abs(dual @ P_F).max())


def test_the_kinematic_projectors_filter_the_outputs_of_two_controllers():
    """With any metric forces stay in span(N), and accelerations in the freedoms of the contact."""
    rng = np.random.default_rng(4)
    N = rng.normal(size=(6, 2))
    P_M, P_F = contact_projectors(N, np.diag([1.0, 1.0, 1.0, 4.0, 4.0, 4.0]))
    assert np.abs(contact_freedoms(N).T @ P_F).max() < 1e-12
    assert np.abs(N.T @ P_M).max() < 1e-12


@pytest.mark.parametrize("joints", [(7, 3), (4, 9), (6, 6)])
def test_two_constrained_bodies_in_contact_obey_the_whole_equations_of_motion(joints):
    """Two arms with fewer, six and more joints touch each other with two normals."""
    first, second = (arm(n, k) for k, n in enumerate(joints))
    (q1, v1, rng), (q2, v2, _) = state(first, 1), state(second, 2)
    N, Nd = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    tau1, tau2 = rng.normal(size=first.nv), rng.normal(size=second.nv)
    links = first.links[-1].name, second.links[-1].name
    bodies = link_response(first, q1, v1, tau1, links[0]), link_response(second, q2, v2, tau2, links[1])
    J1, J2 = link_jacobian(first, q1, links[0]), link_jacobian(second, q2, links[1])
    Nd_v = Nd.T @ (J1 @ v1 - J2 @ v2)
    response = contact_response(N, Nd_v, *bodies)
    M1, M2 = legged.inertia_matrix(first, q1), legged.inertia_matrix(second, q2)
    tau1, tau2 = tau1 - legged.bias_forces(first, q1, v1), tau2 - legged.bias_forces(second, q2, v2)
    biases = [
        body.b - J @ np.linalg.solve(M, tau)
        for body, J, M, tau in zip(bodies, (J1, J2), (M1, M2), (tau1, tau2), strict=True)
    ]
    rows = np.concatenate([N.T @ J1, -N.T @ J2], axis=1)
    M = np.block([[M1, np.zeros((first.nv, second.nv))], [np.zeros((second.nv, first.nv)), M2]])
    system = np.block([[M, -rows.T], [rows, np.zeros((2, 2))]])
    right = np.concatenate([tau1, tau2, -N.T @ (biases[0] - biases[1]) - Nd_v])
    x = np.linalg.solve(system, right)
    scale = np.abs(x).max()
    assert np.allclose(response.forces, x[-2:], rtol=0, atol=1e-10 * scale)
    assert np.allclose(response.first, J1 @ x[: first.nv] + biases[0], rtol=0, atol=1e-9 * scale)
    assert np.allclose(response.second, J2 @ x[first.nv : -2] + biases[1], rtol=0, atol=1e-9 * scale)


def test_a_body_without_mobility_prescribes_the_motion_of_the_contact():
    rng = np.random.default_rng(0)
    A, N = rng.normal(size=(6, 6)), rng.normal(size=(6, 2))
    wall = BodyResponse(np.zeros((6, 6)), rng.normal(size=6))
    response = contact_response(N, np.zeros(2), BodyResponse(A @ A.T, rng.normal(size=6)), wall)
    assert np.array_equal(response.second, wall.b)
    assert np.allclose(N.T @ (response.first - wall.b), 0.0, rtol=0, atol=1e-12)


def test_a_ball_on_a_slope_slides_and_presses_with_the_closed_form():
    mass, angle = 2.0, 0.4
    ball = legged.RobotBuilder("ball", legged.Link("ball", legged.sphere_inertia(mass, 0.1))).build()
    n = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    q = np.array([1.0, 0, 0, 0, 0.3, -0.2, 0.5])
    body = link_response(ball, q, np.zeros(6), np.zeros(6), "ball")
    response = contact_response(
        contact_normals(q[None, 4:], n[None]), np.zeros(1), body, BodyResponse(0 * body.Phi, 0 * body.b)
    )
    assert response.forces == pytest.approx([mass * 9.81 * np.cos(angle)], rel=1e-12)
    down = -9.81 * np.sin(angle) * np.array([np.cos(angle), 0.0, np.sin(angle)])
    assert response.first[3:] == pytest.approx(down, abs=1e-12)


@pytest.mark.parametrize(("seed", "joints"), [(0, 3), (1, 6), (2, 9)])
def test_subspaces_of_motion_and_force_are_orthogonal_by_the_inertia(seed, joints):
    robot = arm(joints)
    q, v, rng = state(robot, seed)
    space = ContactSpace(robot, q, (contact(robot, rng, 2),))
    M, T = legged.inertia_matrix(robot, q), space.motion_basis
    scale = np.abs(space.J).max() * np.abs(T).max()
    assert T.shape == (joints, joints - 2)
    assert np.abs(space.J @ T).max() < 1e-13 * scale
    assert np.allclose(T.T @ M @ T, np.eye(joints - 2), rtol=0, atol=1e-12)
    assert np.allclose(T @ T.T @ M, space.null_space_projector, rtol=0, atol=1e-11)
    assert np.allclose(space.force_projector @ space.J.T, space.J.T, rtol=0, atol=1e-10 * np.abs(space.J).max())
    energy = 0.5 * v @ M @ v - 0.5 * (space.J @ v) @ space.inertia @ (space.J @ v)
    assert 0.5 * space.motion_velocity(v) @ space.motion_velocity(v) == pytest.approx(energy, rel=1e-9)


def test_redundant_normals_share_no_force_and_leave_the_motion_unchanged():
    robot = arm(7)
    q, _, rng = state(robot, 5)
    one = contact(robot, rng, 2)
    twice = LinkContact(one.link, np.concatenate([one.normals, one.normals @ rng.normal(size=(2, 1))], axis=1))
    spaces = [ContactSpace(robot, q, (made,)) for made in (one, twice)]
    assert np.allclose(*(space.null_space_projector for space in spaces), rtol=0, atol=1e-9)
    assert spaces[1].motion_basis.shape == (7, 5)


@pytest.mark.parametrize("joints", [3, 6, 9])
def test_three_subspaces_of_a_redundant_robot_are_orthogonal_by_the_inertia(joints):
    """Motions that leave the link at rest, motions of the contact, and motions against it."""
    robot = arm(joints)
    q, _, rng = state(robot, 7)
    space = ContactSpace(robot, q, (contact(robot, rng, 1),))
    M, inner = legged.inertia_matrix(robot, q), space.self_motion_projector
    against = space.consistent_inverse @ space.J
    parts = [against, space.null_space_projector - inner, inner]
    assert [np.linalg.matrix_rank(part, tol=1e-8) for part in parts] == [1, min(joints, 6) - 1, max(joints - 6, 0)]
    assert np.abs(link_jacobian(robot, q, robot.links[-1].name) @ inner).max() < 1e-9
    for i in range(3):
        for k in range(i):
            assert np.abs(parts[i].T @ M @ parts[k]).max() < 1e-9 * np.abs(M).max()


@pytest.mark.parametrize("joints", [3, 6, 9])
def test_a_force_command_causes_no_motion_and_a_motion_command_no_contact_force(joints):
    robot = arm(joints)
    q, v, rng = state(robot, 11)
    made = contact(robot, rng, 2)
    space = ContactSpace(robot, q, (made,))
    v = space.null_space_projector @ v  # in contact with a body at rest
    still = -space.bias_acceleration(v)
    motions, commands = rng.normal(size=(2, joints)), rng.normal(size=(2, 2))
    at = [
        constrained(robot, q, v, hybrid_forces(space, v, vdot, force), space.J, still)
        for vdot in motions
        for force in commands
    ]
    size = max(np.abs(vdot).max() for vdot, _ in at)
    tolerance = 1e-12 * max(1.0, size)
    assert np.abs(at[0][0] - at[1][0]).max() < tolerance  # another force command
    assert np.abs(at[0][1] - at[2][1]).max() < 1e-12 * max(1.0, np.abs(space.inertia).max() * size)  # another motion
    for (_, force), command in zip(at, [*commands, *commands], strict=True):
        assert np.allclose(force, command, rtol=0, atol=1e-10)
    M = legged.inertia_matrix(robot, q)
    for (vdot, _), desired in zip(at, np.repeat(motions, 2, axis=0), strict=True):
        assert np.allclose(space.motion_basis.T @ M @ (vdot - desired), 0.0, rtol=0, atol=1e-10)
    tau = rng.normal(size=joints)
    assert np.allclose(
        space.contact_forces(v, tau), constrained(robot, q, v, tau, space.J, still)[1], rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("environment", [2, 8])
def test_an_unknown_environment_disturbs_the_force_alone_and_its_measured_acceleration_removes_that(environment):
    """The environment is a mechanism with unknown inertia, motors and velocity."""
    robot, other = arm(7), arm(environment, 3)
    (q, v, rng), (q2, v2, _) = state(robot, 13), state(other, 14)
    N, Nd = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    space = ContactSpace(robot, q, (LinkContact(robot.links[-1].name, N, Nd),))
    M, T = legged.inertia_matrix(robot, q), space.motion_basis
    vdot, command = rng.normal(size=7), rng.normal(size=2)
    link, end = robot.links[-1].name, other.links[-1].name
    J, J2 = link_jacobian(robot, q, link), link_jacobian(other, q2, end)

    def response(shaking, a_n):
        """Return (T^T M vdot, contact forces, accelerations along the normals) under motors of the environment."""
        tau = hybrid_forces(space, v, vdot, command, a_n)
        bodies = link_response(robot, q, v, tau, link), link_response(other, q2, v2, shaking, end)
        contact = contact_response(N, Nd.T @ (J @ v - J2 @ v2), *bodies)
        actual = np.linalg.solve(M, tau - legged.bias_forces(robot, q, v) + space.J.T @ contact.forces)
        return T.T @ M @ actual, contact.forces, space.J @ actual + space.bias_acceleration(v)

    torques = 10.0 * rng.normal(size=(3, other.nv))
    for shaking in torques:
        motion, force, a_n = response(shaking, None)
        assert np.allclose(motion, T.T @ M @ vdot, rtol=0, atol=1e-10)
        assert np.abs(force - command).max() > 0.1
        # The measured acceleration depends on the torques, which depend on it: an affine loop of two numbers.
        slopes = np.stack([response(shaking, e)[2] - a_n for e in np.eye(2)], axis=1)
        measured = np.linalg.solve(np.eye(2) - slopes, a_n)
        motion, force, a_n = response(shaking, measured)
        assert np.allclose(a_n, measured, rtol=0, atol=1e-9)
        assert np.allclose(motion, T.T @ M @ vdot, rtol=0, atol=1e-10)
        assert np.allclose(force, command, rtol=0, atol=1e-9)


@pytest.mark.parametrize("other", [None, "leg1_shank"])
def test_bias_acceleration_is_the_derivative_of_the_normal_velocity(other):
    """Of a vertex on a face of the environment, and on one of another moving link."""
    robot = robots.spatial_quadruped()
    q, v, rng = state(robot, 21)
    normal = rng.normal(size=3)
    point, normal = rng.normal(size=3), normal / np.linalg.norm(normal)

    def velocity(t):
        moved = legged.integrate(robot, q, t * v)
        made = vertex_on_face(robot, moved, v, "leg4_shank", point, normal, other)
        return ContactSpace(robot, moved, (made,)).J @ v

    made = vertex_on_face(robot, q, v, "leg4_shank", point, normal, other)
    vdot = ContactSpace(robot, q, (made,)).bias_acceleration(v)
    step = 1e-5
    slope = (velocity(step) - velocity(-step)) / (2 * step)
    assert vdot == pytest.approx(slope, abs=1e-7 * np.abs(vdot).max())  # h^2 and rounding over h


def test_the_gap_between_a_vertex_and_a_face_grows_with_the_velocity_along_the_normal():
    robot = robots.spatial_quadruped()
    q, v, _ = state(robot, 22)
    foot, plate = robot.contact("leg4_foot"), robot.contact("leg1_foot")
    n = np.array([0.0, 0.6, 0.8])

    def gap(t):
        moved = legged.integrate(robot, q, t * v)
        R = legged.link_poses(robot, moved)[0][robot.link("leg1_shank").index]
        foot_at, plate_at = legged.point_positions(
            robot, moved, [("leg4_shank", foot.position), ("leg1_shank", plate.position)]
        )
        return (R @ n) @ (foot_at - plate_at)

    made = vertex_on_face(robot, q, v, "leg4_shank", foot.position, n, "leg1_shank")
    J = ContactSpace(robot, q, (made,)).J
    assert (J @ v)[0] == pytest.approx((gap(1e-5) - gap(-1e-5)) / 2e-5, abs=1e-7)


def test_two_skew_normals_have_no_common_task_frame():
    """Every other force that the two contacts transmit is a screw of nonzero pitch; a frame has pure forces only."""
    N = contact_normals(np.array([[0.1, 0.0, 0.0], [0.0, 0.2, 0.3]]), np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]))
    weights = np.random.default_rng(0).normal(size=(50, 2))
    forces = N @ weights.T
    pitch = (forces[:3] * forces[3:]).sum(axis=0) / (forces[3:] ** 2).sum(axis=0)
    reciprocal = N[:3, 0] @ N[3:, 1] + N[:3, 1] @ N[3:, 0]
    assert pitch == pytest.approx(weights.prod(axis=1) * reciprocal / (weights**2).sum(axis=1), abs=1e-14)
    assert abs(reciprocal) > 0.1  # [m], distance of the lines times the sine of their angle


def test_subspaces_and_hybrid_forces_can_be_traced():
    robot = arm(6)
    q, v, rng = state(robot, 31)
    normal = np.array([0.6, 0.0, 0.8])
    vdot, command = rng.normal(size=6), rng.normal(size=1)

    def forces(robot, q, v):
        made = vertex_on_face(robot, q, v, robot.links[-1].name, (0.1, 0.2, 0.3), normal)
        space = ContactSpace(robot, q, (made,))
        T = contact_freedoms(made.normals)
        response = link_response(robot, q, v, vdot, made.link)
        return hybrid_forces(space, v, vdot, command), space.motion_basis, space.self_motion_projector, T, response.b

    ours, compiled = forces(robot, q, v), legged.compile(forces, robot)(q, v)
    for expected, actual in zip(ours, compiled, strict=True):
        assert np.allclose(actual, expected, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(expected).max(initial=0.0)))


def test_arrays_of_the_wrong_shape_are_refused():
    with pytest.raises(ShapeError, match="both be"):
        contact_normals(np.zeros((2, 3)), np.zeros((1, 3)))
    with pytest.raises(ShapeError, match="rates of the normals"):
        LinkContact("link", np.zeros((6, 2)), np.zeros((6, 1)))
    with pytest.raises(ShapeError):
        contact_freedoms(np.zeros((3, 2)))
