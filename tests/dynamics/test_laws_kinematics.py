"""Kinematics of random robots: Jacobians, velocities and accelerations are derivatives of positions; kinetic energy.

Finite differences along the manifold have errors near 1e-9 at speeds of a few m/s (`oracles.differences`).
"""

import numpy as np
import pytest
from oracles.cases import case_of
from oracles.differences import derivative, rate

import legged
from legged import denoc

SEEDS = range(20)
RATE = 1e-7  # finite differences of positions and velocities of up to 12 links
ROUNDING = 1e-11


def small_case(seed, **options):
    return case_of(legged.random_tree(seed, 1 + seed % 12, **options), seed)


def points_of(case):
    rng = np.random.default_rng(1)
    return [(link.name, rng.uniform(-0.5, 0.5, 3)) for link in case.robot.links]


@pytest.mark.parametrize("seed", SEEDS)
def test_point_jacobian_columns_are_finite_differences(seed):
    case = small_case(seed)
    robot, q = case.robot, case.q
    link, point = points_of(case)[-1]
    J = legged.point_jacobian(robot, q, link, point)
    assert J.shape == (6, robot.nv)
    R, _ = pose_of(robot, q, link)
    for column, direction in enumerate(np.eye(robot.nv)):
        moved = derivative(
            lambda t, d=direction: legged.point_positions(robot, legged.integrate(robot, q, t * d), [(link, point)])[0]
        )
        turned = derivative(lambda t, d=direction: pose_of(robot, legged.integrate(robot, q, t * d), link)[0]) @ R.T
        assert J[3:, column] == pytest.approx(moved, abs=1e-9)  # at one rad/s or m/s
        assert J[:3, column] == pytest.approx([turned[2, 1], turned[0, 2], turned[1, 0]], abs=1e-9)


def pose_of(robot, q, link):
    R, o = legged.link_poses(robot, q)
    return R[robot.link(link).index], o[robot.link(link).index]


@pytest.mark.parametrize("seed", SEEDS)
def test_link_poses_follow_from_the_definition_joint_by_joint(seed):
    """The chain of placements and joint motions from the graph alone, without body frames."""
    case = small_case(seed, joints=("revolute", "prismatic", "ball", "fixed"))
    robot, q = case.robot, case.q
    R, o = legged.link_poses(robot, q)
    for parent, child, edge in robot.graph.edges(data=True):
        p, c = robot.link(parent).index, robot.link(child).index
        turn, slide = np.eye(3), np.zeros(3)
        if edge["kind"] != "fixed":
            value, joint = q[robot.joint(edge["joint"]).q], edge["definition"]
            if edge["kind"] == "revolute":
                K = np.cross(np.eye(3), np.asarray(joint.axis))  # K @ x = axis x x, Rodrigues' formula
                turn = np.eye(3) + np.sin(value[0]) * K + (1 - np.cos(value[0])) * K @ K
            elif edge["kind"] == "prismatic":
                slide = value[0] * np.asarray(joint.axis)
            else:
                w, u = value[0], value[1:]
                K = np.cross(np.eye(3), u)
                turn = np.eye(3) + 2 * w * K + 2 * K @ K
        start = R[p] @ edge["rotation"]
        assert o[c] == pytest.approx(o[p] + R[p] @ edge["at"] + start @ slide, abs=ROUNDING)
        assert R[c] == pytest.approx(start @ turn, abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_point_velocities_are_jacobians_times_v_and_rates_of_positions(seed):
    case = small_case(seed)
    robot, q, v, points = case.robot, case.q, case.v, points_of(case)
    positions, velocities = legged.point_motion(robot, q, v, points)
    assert positions == pytest.approx(legged.point_positions(robot, q, points), abs=1e-15)
    assert velocities == pytest.approx(
        rate(robot, lambda q, v: legged.point_positions(robot, q, points), q, v), abs=RATE
    )
    for (link, point), velocity in zip(points, velocities, strict=True):
        assert legged.point_jacobian(robot, q, link, point)[3:] @ v == pytest.approx(velocity, abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_point_accelerations_are_rates_of_velocities_and_hold_no_gravity(seed):
    case = small_case(seed)
    robot, points = case.robot, points_of(case)
    wanted = rate(robot, lambda q, v: legged.point_motion(robot, q, v, points)[1], case.q, case.v, case.vdot)
    vdot = legged.point_accelerations(robot, case.q, case.v, case.vdot, points)
    assert vdot == pytest.approx(wanted, abs=RATE * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_point_twist_rates_without_acceleration_are_the_rate_of_the_jacobian_times_v(seed):
    case = small_case(seed)
    robot, (link, point) = case.robot, points_of(case)[-1]
    J_dot = rate(robot, lambda q, v: legged.point_jacobian(robot, q, link, point), case.q, case.v)
    (twist_rates,) = legged.point_twist_rates(robot, case.q, case.v, np.zeros(robot.nv), [(link, point)])
    assert twist_rates == pytest.approx(J_dot @ case.v, abs=RATE * (1 + np.abs(twist_rates).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_link_twists_are_origin_jacobians_times_v_in_link_axes(seed):
    case = small_case(seed)
    R, _ = legged.link_poses(case.robot, case.q)
    twists = legged.link_twists(case.robot, case.q, case.v)
    for link, turn, t in zip(case.robot.links, R, twists, strict=True):
        J = legged.point_jacobian(case.robot, case.q, link.name)
        assert np.concatenate([turn @ t[:3], turn @ t[3:]]) == pytest.approx(J @ case.v, abs=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_kinetic_energy_is_the_same_by_bodies_by_links_and_by_the_inertia_matrix(seed):
    case = small_case(seed)
    robot, q, v = case.robot, case.q, case.v
    by_links = 0.0
    for link, t in zip(robot.links, legged.link_twists(robot, q, v), strict=True):
        i, omega = link.inertia, t[:3]
        center_velocity = t[3:] + np.cross(omega, i.center)
        by_links += 0.5 * (i.mass * center_velocity @ center_velocity + omega @ i.tensor @ omega)
    assert legged.kinetic_energy(robot, q, v) == pytest.approx(by_links, rel=ROUNDING)
    assert 0.5 * v @ legged.inertia_matrix(robot, q) @ v == pytest.approx(by_links, rel=ROUNDING)
    t = denoc.complement(robot, q) @ v
    assert 0.5 * t @ denoc.mass_matrix(robot, q) @ t == pytest.approx(by_links, rel=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
def test_linear_momentum_is_mass_times_the_velocity_of_the_center_of_mass(seed):
    case = small_case(seed)
    robot = case.robot
    moved = rate(robot, lambda q, v: legged.center_of_mass(robot, q), case.q, case.v)
    assert legged.momentum(robot, case.q, case.v)[3:] == pytest.approx(robot.mass * moved, abs=RATE * robot.mass)


@pytest.mark.parametrize("seed", SEEDS)
def test_center_of_mass_is_the_weighted_mean_of_the_links_centers(seed):
    case = small_case(seed)
    R, o = legged.link_poses(case.robot, case.q)
    masses = [link.inertia.mass for link in case.robot.links]
    centers = [p + turn @ link.inertia.center for link, turn, p in zip(case.robot.links, R, o, strict=True)]
    mean = np.average(centers, axis=0, weights=masses)
    assert legged.center_of_mass(case.robot, case.q) == pytest.approx(mean, abs=ROUNDING)
    assert case.robot.mass == pytest.approx(sum(masses), rel=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_forces_that_hold_a_robot_still_are_the_slope_of_its_potential_energy(seed):
    case = small_case(seed)
    robot, q = case.robot, case.q
    still = np.zeros(robot.nv)
    held = legged.inverse_dynamics(robot, q, still, still)
    assert denoc.gravity_forces(robot, q) == pytest.approx(-held, abs=ROUNDING * robot.mass * 100)
    for k, direction in enumerate(np.eye(robot.nv)):
        slope = derivative(lambda t, d=direction: legged.potential_energy(robot, legged.integrate(robot, q, t * d)))
        assert held[k] == pytest.approx(slope, abs=1e-8 * robot.mass)  # of g times a meter: 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_wrenches_act_through_the_transposed_jacobian(seed):
    case = small_case(seed)
    robot, q, v = case.robot, case.q, case.v
    R, _ = legged.link_poses(robot, q)
    forces = np.zeros(robot.nv)
    for link, turn, w in zip(robot.links, R, case.wrenches, strict=True):
        forces += legged.point_jacobian(robot, q, link.name).T @ np.concatenate([turn @ w[:3], turn @ w[3:]])
    lifted = legged.bias_forces(robot, q, v) - legged.bias_forces(robot, q, v, case.wrenches)
    size = np.abs(forces).max(initial=0) + np.abs(legged.bias_forces(robot, q, v)).max(initial=0)
    assert lifted == pytest.approx(forces, abs=ROUNDING * size)
    assert denoc.external_forces(robot, q, case.wrenches) == pytest.approx(forces, abs=ROUNDING * size)
    named = {link.name: w for link, w in zip(robot.links, case.wrenches, strict=True)}
    assert legged.bias_forces(robot, q, v, named) == pytest.approx(legged.bias_forces(robot, q, v, case.wrenches))
    assert denoc.external_forces(robot, q, named) == pytest.approx(forces, abs=ROUNDING * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_difference_undoes_integrate(seed):
    case = small_case(seed)
    dq = 0.5 * case.v / max(np.abs(case.v).max(initial=0), 1.0)  # rotations below pi
    there = legged.integrate(case.robot, case.q, dq)
    assert legged.difference(case.robot, case.q, there) == pytest.approx(dq, abs=1e-13)


@pytest.mark.parametrize("seed", SEEDS)
def test_configuration_rate_is_the_derivative_of_integrate(seed):
    case = small_case(seed)
    moved = derivative(lambda t: legged.integrate(case.robot, case.q, t * case.v))
    assert legged.configuration_rate(case.robot, case.q, case.v) == pytest.approx(moved, abs=1e-9)


@pytest.mark.parametrize("base", [legged.PlanarBase(), legged.FloatingBase(), legged.EulerBase("zxy")])
def test_base_configuration_and_velocity_give_the_specified_pose_and_twist(base):
    rng = np.random.default_rng(3)
    if base.kind == "planar":
        turn, at, omega, velocity = (
            legged.rpy(0, 0.7, 0),
            np.array([1, 0, 2.0]),
            np.array([0, 0.3, 0]),
            np.array([1, 0, 3.0]),
        )
    else:
        turn, (at, omega, velocity) = legged.rpy(0.3, -0.7, 1.2), rng.normal(size=(3, 3))
    q = base.configuration(at, turn)
    R, o = base.pose(q)
    assert pytest.approx(turn, abs=1e-14) == R
    assert o == pytest.approx(at, abs=1e-14)
    v = base.velocity(q, omega, velocity)
    t = base.motion_matrix(q) @ v
    assert R @ t[:3] == pytest.approx(omega, abs=1e-13)
    assert R @ t[3:] == pytest.approx(velocity, abs=1e-13)
