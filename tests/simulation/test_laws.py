"""Laws of motion in simulations, for random robots and on the ground."""

from itertools import pairwise

import numpy as np
import pytest

import legged
import robots
from legged.ground import Flat, Slope, Stairs, paper_ground, realistic_ground
from legged.simulation import Push, RungeKutta4, SemiImplicitEuler, Stiff, simulate

EXACT = Stiff(rtol=1e-9, atol=1e-11)


def random_state(seed, links=4, **options):
    robot = legged.random_tree(seed, links=links, **options)
    rng = np.random.default_rng(seed)
    return robot, legged.random_configuration(robot, rng), 2.0 * rng.normal(size=robot.nv)


@pytest.mark.parametrize("seed", range(6))
def test_free_flight_keeps_energy(seed):
    robot, q, v = random_state(seed)
    run = simulate(robot, until=0.5, q=q, v=v, integrator=EXACT)
    scale = 1.0 + np.abs(run.energy.kinetic).max() + np.ptp(run.energy.potential)
    assert run.energy_drift < 1e-6 * scale
    assert np.all(run.energy.actuator_work == 0.0)


@pytest.mark.parametrize("seed", range(4))
def test_free_flight_keeps_angular_momentum_and_falls_like_a_stone(seed):
    robot, q, v = random_state(seed, bases=("floating",))
    run = simulate(robot, until=0.5, q=q, v=v, integrator=EXACT)
    momenta = np.array([legged.momentum(robot, q, v) for q, v in zip(run.q, run.v, strict=True)])
    np.testing.assert_allclose(momenta[:, :3], np.broadcast_to(momenta[0, :3], momenta[:, :3].shape), rtol=0, atol=1e-5)
    fallen = momenta[:, 3:] - momenta[0, 3:]
    np.testing.assert_allclose(fallen, robot.mass * run.times[:, None] * robot.gravity, atol=1e-5 * robot.mass)


def test_a_body_that_turns_many_times_changes_charts_and_keeps_energy():
    """About 60 rad about all axes: the chart gets a new reference when its rotation vector reaches 1 rad."""
    robot = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(2.0, (0.3, 0.2, 0.1)))).build()
    v = np.array([20.0, 5.0, 3.0, 1.0, 0.0, 5.0])
    run = simulate(robot, until=3.0, v=v, integrator=EXACT)
    assert run.energy_drift < 1e-5 * run.energy.kinetic[0]
    np.testing.assert_allclose(np.linalg.norm(run.q[:, :4], axis=1), 1.0, atol=1e-14)
    momenta = np.array([legged.momentum(robot, q, v)[:3] for q, v in zip(run.q, run.v, strict=True)])
    np.testing.assert_allclose(momenta, np.broadcast_to(momenta[0], momenta.shape), atol=1e-6 * np.abs(momenta).max())


def test_torques_do_the_work_that_the_robot_gains():
    robot, q, v = random_state(7, links=5, bases=("floating",), joints=("revolute", "ball", "universal"))
    run = simulate(
        robot, lambda t, q, v, wrenches: 0.3 * np.cos(3.0 * t) - 0.5 * v[6:], until=0.5, q=q, v=v, integrator=EXACT
    )
    assert np.ptp(run.energy.actuator_work) > 0.1
    assert run.energy_drift < 1e-6 * (1.0 + np.abs(run.energy.kinetic).max())


def standing(robot, knee=-1.0):
    """Return q of the quadruped on bent legs, its feet at height 0."""
    q = robot.neutral()
    q[-12:] = np.tile([0.0, -knee / 2, knee], 4)
    q[6] = 0.6 * np.cos(knee / 2)
    return q


def hold(robot, q, kp=150.0, kd=8.0):
    wanted = q[robot.base.nq :]
    return lambda t, q, v, wrenches: kp * (wanted - q[robot.base.nq :]) - kd * v[robot.base.nv :]


@pytest.mark.parametrize("make_ground", [paper_ground, realistic_ground])
def test_energy_sum_is_constant_in_contact(make_ground):
    robot = robots.spatial_quadruped()
    q = standing(robot)
    v = np.zeros(robot.nv)
    v[3:6] = 0.3, 0.1, -0.4
    run = simulate(robot, hold(robot, q), until=0.6, q=q, v=v, ground=make_ground(robot), integrator=Stiff(1e-8, 1e-10))
    assert run.energy.contact_work.min() < -0.3  # [J], the ground has taken the fall's energy
    assert run.energy_drift < 1e-4


def test_a_standing_robots_feet_carry_its_weight_and_nothing_creeps():
    robot = robots.spatial_quadruped()
    q = standing(robot)
    run = simulate(robot, hold(robot, q, 400.0, 20.0), until=4.0, q=q, ground=realistic_ground(robot), sample=0.5)
    np.testing.assert_allclose(run.ground_force[-1], [0.0, 0.0, 9.81 * robot.mass], atol=1e-3)
    sunk = -run.contacts.points[-1, :, 2]
    assert np.all((sunk > 0.1e-3) & (sunk < 1e-3))
    assert np.abs(run.base.position[-1] - run.base.position[-2]).max() < 1e-6


@pytest.mark.parametrize(("friction", "stands"), [(1.1 * np.tan(0.3), True), (0.85 * np.tan(0.3), False)])
def test_a_robot_on_a_slope_stands_below_the_friction_angle_and_slides_above(friction, stands):
    """The base is rotated with the slope, so that every leg carries load; tan(0.3) is the limit."""
    robot = robots.spatial_quadruped()
    slope = Slope(-0.3)  # downhill along +x
    q = standing(robot)
    n = slope.normal(0.0, 0.0)
    q[:4] = np.cos(0.15), 0.0, np.sin(0.15), 0.0
    q[4:7] = q[6] * n
    ground = realistic_ground(robot, friction=friction, terrain=slope)
    run = simulate(
        robot,
        hold(robot, q, 400.0, 20.0),
        until=3.0,
        q=q,
        ground=ground,
        sample=0.5,
        integrator=SemiImplicitEuler(1e-4),
    )
    moved = run.contacts.points[-1] - run.contacts.points[2]
    if stands:
        assert np.abs(moved).max() < 2e-5  # [m], what still swings in the joints; a second before it was no further
    else:
        assert moved[:, 0].min() > 0.5


def test_center_of_pressure_of_a_standing_robot_is_under_its_center_of_mass():
    robot = robots.spatial_quadruped()
    q = standing(robot)
    run = simulate(robot, hold(robot, q, 400.0, 20.0), until=3.0, q=q, ground=realistic_ground(robot), sample=1.0)
    center = legged.center_of_mass(robot, run.q[-1])
    np.testing.assert_allclose(run.center_of_pressure[-1, :2], center[:2], atol=1e-4)


def test_a_robot_dropped_on_a_step_stands_on_it():
    robot = robots.spatial_quadruped()
    q = standing(robot)
    ground = realistic_ground(robot, terrain=Stairs(edges=(-2.0,), rises=(0.2,)))
    q[6] += 0.21
    run = simulate(robot, hold(robot, q, 400.0, 20.0), until=1.5, q=q, ground=ground, sample=0.5)
    np.testing.assert_allclose(run.contacts.points[-1, :, 2], 0.2, atol=1e-3)


def test_a_push_changes_momentum_by_its_impulse():
    robot = robots.spatial_quadruped()
    push = Push("trunk", impulse=(3.0, -2.0, 1.0), at=0.05, duration=0.1, point=(0.2, 0.1, 0.0))
    run = simulate(robot, until=0.3, pushes=[push], integrator=EXACT)
    before, after = (legged.momentum(robot, run.q[k], run.v[k]) for k in (0, -1))
    fall = robot.mass * 0.3 * robot.gravity
    np.testing.assert_allclose(after[3:] - before[3:] - fall, push.impulse, atol=1e-7)
    assert run.energy.push_work[-1] > 0.1
    assert run.energy_drift < 1e-6


@pytest.mark.parametrize(
    ("kind", "order", "steps"), [(RungeKutta4, 4, (0.02, 0.01, 0.005)), (SemiImplicitEuler, 1, (2e-3, 1e-3, 5e-4))]
)
def test_error_of_a_tumbling_robot_falls_with_the_stated_order(kind, order, steps):
    robot = robots.spatial_quadruped()
    q = standing(robot)
    v = np.random.default_rng(1).normal(size=robot.nv)
    options = {"until": 0.2, "q": q, "v": v, "sample": 0.1}
    exact = simulate(robot, integrator=Stiff(1e-11, 1e-13), **options)
    errors = [np.abs(simulate(robot, integrator=kind(h), **options).q[-1] - exact.q[-1]).max() for h in steps]
    for coarse, fine in pairwise(errors):
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.25)


def test_fixed_step_and_stiff_solver_agree_in_contact():
    robot = robots.spatial_quadruped()
    q = standing(robot)
    options = {"until": 0.5, "q": q, "ground": realistic_ground(robot), "sample": 0.1}
    stiff = simulate(robot, hold(robot, q), integrator=Stiff(1e-8, 1e-10), **options)
    fixed = simulate(robot, hold(robot, q), integrator=RungeKutta4(1e-4), **options)
    np.testing.assert_allclose(fixed.q, stiff.q, atol=1e-6)
    np.testing.assert_allclose(fixed.contacts.forces, stiff.contacts.forces, atol=1e-2)  # of 118 N
    np.testing.assert_allclose(fixed.energy.contact_work, stiff.energy.contact_work, atol=1e-4)


def test_turning_the_world_turns_the_run():
    """A quadruped dropped with an initial velocity, and the same motion rotated by a quarter turn about z."""
    robot = robots.spatial_quadruped()
    q, v = standing(robot), np.zeros(robot.nv)
    v[3:6] = 0.4, 0.1, -0.2
    ground = realistic_ground(robot, terrain=Flat())
    turned = q.copy()
    turned[:4] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    options = {"until": 0.3, "v": v, "ground": ground, "sample": 0.1, "integrator": Stiff(1e-8, 1e-10)}
    one = simulate(robot, hold(robot, q), q=q, **options)
    two = simulate(robot, hold(robot, q), q=turned, **options)
    np.testing.assert_allclose(
        two.base.position, one.base.position @ np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]), atol=1e-6
    )
    np.testing.assert_allclose(two.joint_positions, one.joint_positions, atol=1e-6)
