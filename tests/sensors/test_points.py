"""Momentum and balance points: rates, zero-moment point, center of pressure, capture point, support polygons."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import differences
from oracles.cases import random_case

import legged
import robots
from legged import sensors
from legged.errors import NotFiniteError, ShapeError, SingularError
from legged.ground.ground import center_of_pressure, contact_motion, contact_wrenches

SQUARE = np.array([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (1.0, 1.0)])


@pytest.mark.parametrize("seed", range(20))
def test_momentum_rate_is_the_rate_of_momentum(seed):
    case = random_case(seed, links=8, physics=True, coupled=True, shuffled=True) if seed % 2 else random_case(seed)
    robot, q, v, vdot = case.robot, case.q, case.v, case.vdot
    rate = differences.rate(robot, lambda q, v: legged.momentum(robot, q, v), q, v, vdot)
    ours = legged.momentum_rate(robot, q, v, vdot)
    np.testing.assert_allclose(ours, rate, atol=1e-8 * (1.0 + np.abs(ours).max()))


@pytest.mark.parametrize("seed", range(20))
def test_what_acts_from_outside_is_what_the_motion_requires(seed):
    """With wrenches on links, an unactuated base, and the resulting acceleration."""
    case = random_case(seed, bases=("floating", "euler"))
    robot, q, v = case.robot, case.q, case.v
    tau = np.concatenate([np.zeros(6), case.tau[6:]])
    vdot = legged.forward_dynamics(robot, q, v, tau, case.wrenches)
    outside = sensors.ground_wrench(robot, q, case.wrenches)
    inertia = legged.inertia_matrix(robot, q)
    allowed = 1e-11 * float(np.abs(inertia).max() * np.abs(vdot).max() + np.abs(outside).max())
    np.testing.assert_allclose(legged.required_wrench(robot, q, v, vdot), outside, atol=allowed)


def standing_feet(seed):
    """Return a quadruped with feet in one plane, moving, and pressing, sliding forces on its feet, in world axes."""
    rng = np.random.default_rng(seed)
    robot = robots.spatial_quadruped()
    q, v = robot.state(base_position=rng.normal(size=3), base_orientation=rng.uniform(-0.3, 0.3, 3))
    v = rng.normal(size=robot.nv)
    R, _ = legged.frame_pose(robot, q, robot.links[0].name)
    forces = rng.normal(size=(4, 3)) * 20.0 + R[:, 2] * rng.uniform(20.0, 60.0, (4, 1))  # [N]
    return robot, q, v, R[:, 2], forces


@pytest.mark.parametrize("seed", range(5))
def test_zero_moment_point_is_the_center_of_pressure_of_feet_in_a_plane(seed):
    robot, q, v, normal, forces = standing_feet(seed)
    points, _ = contact_motion(robot, q, v)
    wrenches = contact_wrenches(robot, q, forces)
    tau = np.random.default_rng(seed).normal(size=robot.nv) * 5.0
    tau[:6] = 0.0
    vdot = legged.forward_dynamics(robot, q, v, tau, wrenches)
    pressed = center_of_pressure(points, forces, normal)
    zmp = sensors.zero_moment_point(robot, q, v, vdot, origin=points[0], normal=normal)
    np.testing.assert_allclose(zmp, pressed, atol=1e-10)  # [m]
    felt = sensors.pressure_point(robot, sensors.ground_wrench(robot, q, wrenches), points[0], normal)
    np.testing.assert_allclose(felt, pressed, atol=1e-12)
    below = sensors.zero_moment_point(robot, q, v, vdot, origin=points[0] - 0.05 * normal, normal=normal)
    assert np.linalg.norm(below - pressed + 0.05 * normal) > 1e-3  # the plane matters


def test_at_rest_both_points_lie_under_the_center_of_mass():
    robot = robots.humanoid()
    q, v = robot.state(base_position=(0.3, -0.2, 1.0), base_orientation=(0.1, 0.2, 0.3))
    c = legged.center_of_mass(robot, q)
    np.testing.assert_allclose(sensors.capture_point(robot, q, v), (c[0], c[1], 0.0), atol=1e-14)
    np.testing.assert_allclose(sensors.zero_moment_point(robot, q, v, np.zeros(robot.nv))[:2], c[:2], atol=1e-13)


def test_capture_point_flees_from_the_pressure_of_a_pendulum():
    """x_d = omega (x - p), zero for p = x. A force through the center of a rigid body holds it at constant height."""
    body = legged.RobotBuilder("ball", legged.Link("ball", legged.sphere_inertia(3.0, 0.1))).build()
    q, v = body.state(base_position=(0.2, 0.1, 0.8), base_linear_velocity=(0.5, -0.3, 0.0))
    g, h, p = 9.81, 0.8, np.array([0.25, 0.0, 0.0])
    omega = np.sqrt(g / h)
    for pressure in (p, sensors.capture_point(body, q, v)):
        force = body.mass * (g / h) * (q[4:7] - pressure)
        vdot = legged.forward_dynamics(body, q, v, np.zeros(6), {"ball": np.concatenate([np.zeros(3), force])})
        np.testing.assert_allclose(sensors.zero_moment_point(body, q, v, vdot), pressure, atol=1e-13)
        rate = differences.rate(body, lambda q, v: sensors.capture_point(body, q, v), q, v, vdot)
        point = sensors.capture_point(body, q, v)
        np.testing.assert_allclose(rate, omega * (point - pressure), atol=1e-9)


def test_capture_point_on_a_slope_lies_on_it():
    robot = robots.spatial_quadruped()
    q, v = robot.state(base_position=(0.0, 0.0, 0.6), base_linear_velocity=(0.4, 0.2, 0.0))
    normal = legged.rpy(0.1, -0.2, 0.0)[:, 2]
    point = sensors.capture_point(robot, q, v, origin=(0.0, 0.0, 0.1), normal=normal)
    assert normal @ (point - (0.0, 0.0, 0.1)) == pytest.approx(0.0, abs=1e-15)
    assert normal @ sensors.capture_point(robot, q, v, normal=normal) == pytest.approx(0.0, abs=1e-15)


def test_flight_has_no_zero_moment_point_plain_or_compiled():
    robot = robots.spatial_quadruped()
    q, v = robot.state(base_position=(0.0, 0.0, 1.0))
    vdot = legged.forward_dynamics(robot, q, v, np.zeros(robot.nv))
    with pytest.raises(SingularError, match="there is no center of pressure"):
        sensors.zero_moment_point(robot, q, v, vdot)
    compiled = legged.compile(sensors.zero_moment_point, robot)
    np.testing.assert_allclose(compiled(q, v, 0 * v), sensors.zero_moment_point(robot, q, v, 0 * v), atol=1e-14)
    with pytest.raises(SingularError):
        compiled(q, v, vdot)
    with pytest.raises(SingularError, match="lies below the ground"):
        sensors.capture_point(robot, q, v, origin=(0.0, 0.0, 2.0))


def test_support_margin_is_the_distance_to_the_boundary():
    for point, margin in (
        ((0.5, 1.0), 0.5),
        ((0.5, 1.0, 7.0), 0.5),
        ((-0.25, 1.0), -0.25),
        ((2.0, 1.0), 0.0),
        ((-3.0, -4.0), -5.0),  # over a corner, not over an edge's line
    ):
        assert sensors.support_margin(point, SQUARE) == pytest.approx(margin, abs=1e-15)
    line = np.array([(0.0, 0.0, 0.1), (1.0, 0.0, 0.2), (2.0, 0.0, 0.0)])
    assert sensors.support_margin((1.5, 0.3), line) == pytest.approx(-0.3)
    assert sensors.support_margin((3.0, 0.0), line) == pytest.approx(-1.0)
    assert sensors.support_margin((1.0, 0.0), line[:2]) == 0.0
    assert sensors.support_margin((3.0, 4.0), line[:1]) == pytest.approx(-5.0)
    assert sensors.support_margin((3.0, 4.0), np.zeros((4, 2))) == pytest.approx(-5.0)
    assert len(sensors.support_polygon(SQUARE)) == 4
    with pytest.raises(ShapeError, match="no support polygon without feet"):
        sensors.support_polygon(np.zeros((0, 3)))
    with pytest.raises(ShapeError, match=r"feet must be \(n, 2\) or \(n, 3\)"):
        sensors.support_polygon((0.0, 1.0))
    with pytest.raises(NotFiniteError, match="point must be finite"):
        sensors.support_margin((np.nan, 0.0), SQUARE)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 7))
def test_margin_is_positive_exactly_for_mixtures_of_feet_and_grows_no_faster_than_the_point_moves(seed, n):
    rng = np.random.default_rng(seed)
    feet = rng.normal(size=(n, 2))
    mixture = rng.dirichlet(np.ones(n)) @ feet
    assert sensors.support_margin(mixture, feet) >= -1e-12
    a, b = rng.normal(size=(2, 2)) * 2.0
    one, two = sensors.support_margin(a, feet), sensors.support_margin(b, feet)
    assert abs(one - two) <= np.linalg.norm(a - b) + 1e-12
    corners = sensors.support_polygon(feet)
    outside = corners[0] + (corners[0] - feet.mean(axis=0))
    assert sensors.support_margin(outside, feet) <= 0.0
