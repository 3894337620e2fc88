"""Linearization: differences of two runs grow as A and B predict, for random robots and on a ground."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import ArgumentError
from legged.ground import AxisFriction, BristleFriction, VectorFriction, realistic_ground
from legged.ground.ground import contact_motion, contact_wrenches

FRICTION = [AxisFriction(0.8, 500.0), VectorFriction(0.8, 500.0), BristleFriction(0.8, 1e4, 500.0)]


def flow(robot, q, v, tau, h, wrench=None):
    """Return the state a time h later by the classical Runge-Kutta rule for q in a chart and v."""

    def rate(xi, v):
        at = legged.integrate(robot, q, xi)
        vdot = legged.forward_dynamics(robot, at, v, tau, wrench and wrench(at, v))
        step = 1e-6
        ahead = legged.integrate(robot, at, step * v)
        behind = legged.integrate(robot, at, -step * v)
        return (legged.difference(robot, q, ahead) - legged.difference(robot, q, behind)) / (2 * step), vdot

    x = np.zeros(robot.nv)
    k1 = rate(x, v)
    k2 = rate(x + h / 2 * k1[0], v + h / 2 * k1[1])
    k3 = rate(x + h / 2 * k2[0], v + h / 2 * k2[1])
    k4 = rate(x + h * k3[0], v + h * k3[1])
    dx, dv = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
    return legged.integrate(robot, q, dx), v + dv


def growth(robot, q, v, tau, direction, wrench=None, h=1e-4, size=1e-5):
    """Return the rate of the deviation along a direction, [dq; dv; dtau], by central differences of two flows."""
    ends = []
    for sign in (1, -1):
        d = sign * size * direction
        n = robot.nv
        other = legged.integrate(robot, q, d[:n]), v + d[n : 2 * n], tau + d[2 * n :]
        for step in (h, -h):
            reference, moved = flow(robot, q, v, tau, step, wrench), flow(robot, *other, step, wrench)
            ends.append(np.concatenate([legged.difference(robot, reference[0], moved[0]), moved[1] - reference[1]]))
    return ((ends[0] - ends[1]) - (ends[2] - ends[3])) / (4 * h * size)


@pytest.mark.parametrize("seed", range(8))
def test_deviations_of_random_robots_grow_as_the_linear_model_says(seed):
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, links=4)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    tau, direction = rng.normal(size=robot.nv), rng.normal(size=3 * robot.nv)
    A, B, vdot = legged.linearize(robot, q, v, tau)
    expected = A @ direction[: 2 * robot.nv] + B @ direction[2 * robot.nv :]
    growth_rate = growth(robot, q, v, tau, direction)
    scale = np.abs(A).max() + np.abs(B).max()
    assert np.allclose(
        growth_rate, expected, rtol=0, atol=2e-5 * scale
    )  # differences of differences of step 1e-4 and 1e-5
    assert np.allclose(vdot, legged.forward_dynamics(robot, q, v, tau), rtol=1e-9, atol=1e-9)


def test_a_standing_robot_on_a_compliant_ground():
    robot = robots.spatial_quadruped()
    ground = realistic_ground(robot)
    rng = np.random.default_rng(3)
    q, v = robot.state(base_position=(0, 0, 0.6))[0], 0.1 * rng.normal(size=robot.nv)
    lowest = min(contact_motion(robot, q, v)[0][:, 2])
    q[6] -= lowest + 1e-3
    tau, direction = rng.normal(size=robot.nv), rng.normal(size=3 * robot.nv)

    def wrench(q, v):
        return contact_wrenches(robot, q, ground.forces(*contact_motion(robot, q, v))[0])

    A, B, vdot = legged.linearize(robot, q, v, tau, ground=ground)
    expected = A @ direction[: 2 * robot.nv] + B @ direction[2 * robot.nv :]
    growth_rate = growth(robot, q, v, tau, direction, wrench, h=1e-6, size=1e-7)
    assert np.allclose(growth_rate, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert np.allclose(vdot, legged.forward_dynamics(robot, q, v, tau, wrench(q, v)))
    compiled = legged.compile(lambda robot, q, v, tau: legged.linearize(robot, q, v, tau, ground=ground), robot)
    assert np.allclose(compiled(q, v, tau).A, A, rtol=0, atol=1e-9 * np.abs(A).max())


def test_a_robot_at_rest_on_the_surface_has_no_contact_stiffness():
    """Of a Hertzian spring at zero depth the stiffness is zero, and so are friction and its slope."""
    robot = robots.spatial_quadruped()
    q, v = controllers.Stand(hip_height=0.5).initial_state(robot)
    tau = np.zeros(robot.nv)
    model, free = (legged.linearize(robot, q, v, tau, ground=ground) for ground in (realistic_ground(robot), None))
    assert np.allclose(model.A, free.A, rtol=0, atol=1e-9 * np.abs(free.A).max())


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize(
    "law", [AxisFriction(0.8, 500.0), VectorFriction(0.8, 500.0), BristleFriction(0.8, 1e4, 500.0)]
)
def test_friction_at_rest_is_a_damper(law, mode):
    def force(normal, v):
        return law.force(normal, v[None], np.zeros((1, law.memory)))[0][0]

    slope = legged.jacobian(force, "v", mode)
    assert np.allclose(slope(np.array([50.0]), np.zeros(2)), -500.0 * np.eye(2), rtol=1e-12)
    assert not slope(np.zeros(1), np.zeros(2)).any()


def test_a_pendulum_by_hand():
    builder = legged.RobotBuilder("pendulum", legged.Link("base", legged.point_mass(1.0)), base=legged.FixedBase())
    builder.add(legged.Revolute("pin", "y"), legged.Link("bob", legged.point_mass(2.0, (0, 0, -0.5))), to="base")
    A, B, _ = legged.linearize(builder.build(), np.zeros(1), np.zeros(1), np.zeros(1))
    assert np.allclose(A, [[0, 1], [-9.81 / 0.5, 0]], rtol=1e-12)
    assert np.allclose(B, [[0], [1 / (2.0 * 0.25)]], rtol=1e-12)


def test_a_rigid_ground_is_refused():
    robot = robots.planar_biped()
    with pytest.raises(ArgumentError, match=r"ground must be a legged\.ground\.Ground"):
        legged.linearize(robot, robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv), ground=legged.Rigid())
