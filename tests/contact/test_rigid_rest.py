"""Thought experiments of resting, sliding and rolling on rigid ground."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.contact import Rigid, Sphere
from legged.ground import Slope
from tests.oracles.programs.mujoco_floor import standing

G = 9.81
HALF = np.array([0.1, 0.1, 0.05])


def block(lower_only=False):
    """A block that touches the ground with its corners."""
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).T.reshape(-1, 3) * HALF
    points = {f"corner{i}": corner for i, corner in enumerate(corners) if corner[2] < 0.0 or not lower_only}
    return legged.RobotBuilder("block", legged.Link("block", legged.box_inertia(2.0, 2.0 * HALF), points)).build()


def ball(radius=0.1):
    link = legged.Link("ball", legged.sphere_inertia(3.0, radius), {"skin": Sphere(radius)})
    return legged.RobotBuilder("ball", link).build()


def on_slope(robot, angle, height):
    """Return a configuration with the body's axes along a slope and its origin at a height over it."""
    q = robot.neutral()
    q[:4] = np.cos(angle / 2), 0.0, -np.sin(angle / 2), 0.0
    q[4:] = height * np.array([-np.sin(angle), 0.0, np.cos(angle)])
    return q


def uphill(places, angle):
    """Return the uphill displacement, (..., T), [m], of positions (..., T, 3) on slopes of angles (...)."""
    angle = np.asarray(angle)[..., None]
    way = places - places[..., :1, :]
    return way[..., 0] * np.cos(angle) + way[..., 2] * np.sin(angle)


def run_on(robot, ground, q, until, step=1e-3, **options):
    return legged.simulate(
        robot, ground=ground, q=q, until=until, fall=False, integrator=legged.TimeStepping(step), **options
    )


def on_slopes(frictions, angles, until, step):
    """Blocks at rest on slopes, side by side."""
    robot = block(lower_only=True)
    q = np.array([on_slope(robot, angle, HALF[2]) for angle in angles])
    return legged.rollout(
        robot,
        ground=Rigid(terrain=Slope(0.1)),
        q=q,
        vary={"ground.friction": frictions, "ground.terrain.angle": angles},
        until=until,
        integrator=legged.TimeStepping(step),
        fall=False,
        compiled=True,
    )


FRICTIONS = np.array([0.1, 0.2, 0.4, 0.6, 1.0])


@pytest.mark.parametrize("step", [1e-3, 2e-3])
def test_a_block_sticks_just_below_the_friction_angle(step):
    angles = np.arctan(FRICTIONS) - 0.01
    runs = on_slopes(FRICTIONS, angles, 3.0, step)
    assert np.abs(uphill(runs.base_position, angles)).max() < 1e-6  # [m]; it settles once and then keeps still
    assert np.abs(runs.v[:, 100:]).max() < 1e-10
    run = runs.run(2)
    np.testing.assert_allclose(run.ground_force[-1], [0.0, 0.0, 2.0 * G], atol=1e-6 * 2.0 * G)  # [N], its weight


def test_a_block_slides_just_above_the_friction_angle_as_coulomb_has_it():
    angles = np.arctan(FRICTIONS) + 0.02
    runs = on_slopes(FRICTIONS, angles, 2.0, 1e-3)
    wanted = -G * (np.sin(angles) - FRICTIONS * np.cos(angles))
    x = uphill(runs.base_position, angles)
    actual = 2.0 * np.polyfit(runs.times[50:], x[:, 50:].T, 2)[0]
    np.testing.assert_allclose(actual, wanted, rtol=1e-3)


def test_friction_of_a_sliding_block_opposes_its_motion_whatever_the_direction():
    robot, mu = block(lower_only=True), 0.4
    q = robot.neutral()
    q[6] = HALF[2]
    for heading in (0.0, 0.4, np.pi / 4, 2.0, 4.0):
        start = 2.0 * np.array([np.cos(heading), np.sin(heading), 0.0])
        run = run_on(robot, Rigid(friction=mu), q, 1.0, v=np.concatenate([np.zeros(3), start]))
        way = run.base.position[-1] - run.base.position[0]
        assert abs(way @ start / 2.0 - 2.0**2 / (2.0 * mu * G)) < 2.0 * 1e-3  # [m]: a step's way
        assert abs(np.cross(way, start)[2]) < 0.01  # [m^2/s]


@pytest.mark.parametrize("seed", range(3))
def test_a_dropped_block_comes_to_rest_and_stays(seed):
    robot, rng = block(), np.random.default_rng(seed)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=6)
    q[4:] = 0.0, 0.0, 0.4
    run = run_on(robot, Rigid(friction=0.5, restitution=0.2), q, 10.0, v=v)
    still = run.times > 4.0  # [s]
    assert np.abs(run.v[still]).max() < 1e-9
    assert np.abs(run.q[still] - run.q[-1]).max() < 1e-9
    np.testing.assert_allclose(run.ground_force[-1], [0.0, 0.0, robot.mass * G], atol=1e-9)
    energy = run.energy.kinetic + run.energy.potential
    assert (energy <= energy[0] + 1e-4).all()  # [J], of free flight


def test_contacts_of_a_planar_robot_are_solved_though_nothing_moves_across_its_plane():
    points = {"heel": (-0.1, 0.0, -0.05), "toe": (0.1, 0.0, -0.05)}
    link = legged.Link("block", legged.box_inertia(2.0, 2.0 * HALF), points)
    robot = legged.RobotBuilder("block", link, base=legged.PlanarBase()).build()
    run = run_on(robot, Rigid(friction=0.6), np.array([0.4, 0.0, 0.2]), 1.0, v=np.array([1.0, 0.3, 0.0]), sample=1e-3)
    assert run.contacts.residual.max() < 1e-6  # [m/s]
    assert np.abs(run.v[-1]).max() < 1e-9


@pytest.mark.slow
def test_a_block_at_rest_has_not_moved_after_a_minute():
    robot = block()
    q = robot.neutral()
    q[6] = 0.3
    v = np.array([1.0, 2.0, 3.0, 0.5, 0.0, 0.0])
    run = run_on(robot, Rigid(friction=0.5), q, 64.0, v=v)
    still = run.times > 4.0
    assert np.abs(run.q[still] - run.q[-1]).max() < 1e-9


@pytest.mark.parametrize("friction", [0.3, 0.8])
def test_a_ball_rolls_down_a_slope_without_slipping(friction):
    robot, angle, radius = ball(), 0.4, 0.1
    run = run_on(robot, Rigid(friction=friction, terrain=Slope(angle)), on_slope(robot, angle, radius), 2.0)
    slips = friction < 2.0 / 7.0 * np.tan(angle)
    assert not slips
    acceleration = 2.0 * np.polyfit(run.times, uphill(run.base.position, angle), 2)[0]
    assert abs(acceleration / (-5.0 / 7.0 * G * np.sin(angle)) - 1.0) < 1e-3
    speed = run.v[-1, 3:]
    assert abs(np.linalg.norm(speed) - radius * abs(run.v[-1, 1])) < 1e-9  # [m/s]


def test_a_ball_that_slides_rolls_in_the_end_at_five_sevenths_of_its_speed():
    robot, radius, speed, mu = ball(), 0.1, 2.0, 0.3
    q = robot.neutral()
    q[6] = radius
    run = run_on(robot, Rigid(friction=mu), q, 1.0, v=np.array([0.0, 0.0, 0.0, speed, 0.0, 0.0]), sample=1e-3)
    moved = np.diff(run.base.position[:, 0]) / 1e-3
    assert abs(moved[-1] - 5.0 / 7.0 * speed) < mu * G * 1e-3  # [m/s]: what friction takes in a step
    slides = run.times < 2.0 / 7.0 * speed / (mu * G) - 2e-3
    np.testing.assert_allclose(run.ground_force[slides][1:, 0], -mu * robot.mass * G, rtol=1e-9)


@pytest.fixture(scope="module")
def quadruped():
    robot = robots.spatial_quadruped()
    law = controllers.JointPD(controllers.Stand(hip_height=0.55), kp=400.0, kd=10.0)
    return robot, law, legged.simulate(robot, law, ground=Rigid(friction=0.7), until=3.0)


def test_a_standing_quadruped_carries_its_weight_and_stands_still(quadruped):
    robot, _, run = quadruped
    weight = robot.mass * G
    assert np.abs(run.ground_force[-1] / weight - [0.0, 0.0, 1.0]).max() < 1e-3
    assert run.contacts.residual[-1] < 1e-9  # [m/s]
    still = run.times > 2.0
    assert np.abs(run.contacts.points[still] - run.contacts.points[-1]).max() < 1e-6  # [m]


def test_the_feet_of_a_standing_quadruped_press_as_mujocos_do(quadruped):
    robot, law, run = quadruped
    q, v = law.initial_state(robot)
    law, _ = law.start(robot, None, q, v)
    rest, forces = standing(robot, lambda q, v: law.torque(0.0, 0, q, v, np.zeros(0), np.zeros(0)), q, 0.7, 2.0)
    weight = robot.mass * G
    np.testing.assert_allclose(run.contacts.forces[-1, :, 2], forces[:, 2], atol=1e-3 * weight)
    np.testing.assert_allclose(run.contacts.forces[-1, :, :2], forces[:, :2], atol=1e-3 * weight)
    np.testing.assert_allclose(run.q[-1], rest, atol=1e-3)  # its floor gives a little
