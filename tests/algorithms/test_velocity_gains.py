"""Velocity gains: the planar closed form, impulsive dynamics solved densely, and the loss of controllability."""

import numpy as np
import pytest
from scipy.optimize import brentq

import controllers
import legged
import robots
from legged.algorithms.velocity_gains import velocity_gains
from legged.errors import ArgumentError, LeggedError, SingularError


def pendulum(*lengths):
    builder = legged.RobotBuilder("pendulum", legged.Link("ground", legged.point_mass(1.0)), base=legged.FixedBase())
    parent, at = "ground", (0.0, 0.0, 0.0)
    for k, length in enumerate(lengths):
        rod = legged.rod_inertia(0.5, (0, 0, 0), (0, 0, length))
        builder.add(legged.Revolute(f"joint{k}", "y"), legged.Link(f"link{k}", rod), to=parent, at=at)
        parent, at = f"link{k}", (0.0, 0.0, length)
    return builder.build()


@pytest.mark.parametrize("seed", range(4))
def test_a_planar_robot_on_a_point_has_the_gain_of_the_balance_model(seed):
    rng = np.random.default_rng(seed)
    robot = pendulum(*rng.uniform(0.2, 1.0, 3))
    action = {"joint1": 1.0, "joint2": rng.normal()}
    q = rng.normal(size=3)
    expected = controllers.PlanarBalance(robot, action).state(q, np.zeros(3)).gain
    gains = velocity_gains(robot, q, action=action, passive=["joint0"])
    assert np.isclose(gains.linear[0, 0], expected, rtol=1e-10)
    assert np.array_equal(gains.relative, gains.linear)  # the pivot does not move
    compiled = legged.compile(lambda robot, q: velocity_gains(robot, q, action=action, passive=["joint0"]), robot)
    assert np.allclose(compiled(q).linear, gains.linear, rtol=0, atol=1e-12)


def dense(robot, q, J, U, active):
    """Return the velocity change from the whole system of impulsive dynamics, by least squares."""
    n, M = robot.nv, legged.inertia_matrix(robot, q)
    motors = np.eye(n)[:, active]
    K = np.block(
        [
            [M, -motors, -J.T],
            [motors.T, np.zeros((active.sum(), active.sum() + len(J)))],
            [J, np.zeros((len(J), active.sum() + len(J)))],
        ]
    )
    b = np.concatenate([np.zeros((n, U.shape[1])), U[active], np.zeros((len(J), U.shape[1]))])
    solution, *_ = np.linalg.lstsq(K, b, rcond=1e-12)
    assert np.allclose(K @ solution, b, rtol=0, atol=1e-9)
    return solution[:n]


@pytest.mark.parametrize("feet", [["leg1_foot"], ["leg1_foot", "leg4_foot"], ["leg1_foot", "leg2_foot", "leg3_foot"]])
def test_impulsive_dynamics_of_a_quadruped_on_its_feet(feet):
    robot, rng = robots.spatial_quadruped(), np.random.default_rng(5)
    q = legged.integrate(robot, robot.neutral(), 0.3 * rng.normal(size=robot.nv))
    names = [contact.name for contact in robot.contacts if any(contact.name.startswith(foot[:4]) for foot in feet)]
    standing = [next(name for name in names if name.startswith(foot[:4])) for foot in feet]
    swing = [j.name for j in robot.joints if not any(j.name.startswith(foot[:4]) for foot in feet)]
    action = {name: rng.normal() for name in swing}
    gains = velocity_gains(robot, q, standing, action)
    active = np.zeros(robot.nv, bool)
    active[robot.base.nv :] = True
    U = np.zeros((robot.nv, 1))
    for joint in robot.joints:
        U[joint.v, 0] = action.get(joint.name, 0.0)
    J = np.concatenate([legged.frame_jacobian(robot, q, name)[3:] for name in standing])
    assert np.allclose(gains.velocity, dense(robot, q, J, U, active), rtol=0, atol=1e-9)
    places = [legged.frame_pose(robot, q, name).position for name in standing]
    r = legged.center_of_mass(robot, q) - np.mean(places, axis=0)
    assert gains.angular[:, 0] == pytest.approx(np.cross(r, gains.linear[:, 0]) / (r @ r), abs=1e-12)
    expected = legged.momentum(robot, q, gains.velocity[:, 0])[3:]
    assert np.allclose(gains.impulses[:, 0], expected, rtol=0, atol=1e-10)


def test_impulses_move_the_masses_of_the_links_and_not_that_of_the_ground():
    """The ground of this pendulum has a mass of 1 kg: the impulses are the linear momentum of the two rods."""
    robot, rng = pendulum(0.5, 0.7), np.random.default_rng(0)
    q = rng.normal(size=2)
    gains = velocity_gains(robot, q, action={"joint1": 1.0}, passive=["joint0"])
    expected = np.zeros(3)
    for k, length in enumerate((0.5, 0.7)):
        middle = legged.point_jacobian(robot, q, f"link{k}", (0.0, 0.0, length / 2))[3:]
        expected += 0.5 * middle @ gains.velocity[:, 0]
    assert gains.impulses[:, 0] == pytest.approx(expected, abs=1e-12)
    assert np.abs(expected).max() > 0.01


@pytest.mark.parametrize("angle", [-0.7, 0.4, 1.2])
def test_two_points_of_one_planar_link_hold_it_at_any_slope(angle):
    """Both points are at rest, so the base is, and a joint that moves by its motor moves nothing else."""
    points = {"heel": (-0.1, 0.0, 0.0), "toe": (0.2, 0.0, 0.05)}
    sole = legged.Link("sole", legged.box_inertia(1.0, (0.3, 0.1, 0.05)), contacts=points)
    builder = legged.RobotBuilder("foot and rod", sole, base=legged.PlanarBase())
    rod = legged.Link("rod", legged.rod_inertia(2.0, (0, 0, 0), (0, 0, 0.6)))
    robot = builder.add(legged.Revolute("ankle", "y"), rod, to="sole").build()
    gains = velocity_gains(robot, np.array([angle, 0.3, -0.2, 0.5]), list(points), action={"ankle": 1.0})
    assert gains.velocity[:, 0] == pytest.approx([0.0, 0.0, 0.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_feet_of_two_planar_legs_move_on_the_line_between_them_alone(seed):
    """The first foot stands; the second, at another height, may only change its distance to the first."""
    robot, rng = robots.planar_biped(), np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    feet = [next(c.name for c in robot.contacts if c.name.startswith(side)) for side in ("a", "b")]
    gains = velocity_gains(robot, q, feet)
    first, second = (legged.frame_jacobian(robot, q, name)[3:] @ gains.velocity for name in feet)
    line = np.subtract(*(legged.frame_pose(robot, q, name).position for name in feet))
    assert abs(line[2]) > 0.1 and np.abs(second).max() > 0.1
    assert first[[0, 2]] == pytest.approx(0.0, abs=1e-12)
    assert line[2] * second[0] - line[0] * second[2] == pytest.approx(0.0, abs=1e-12)


def test_the_gain_is_zero_exactly_where_controllability_is_lost():
    robot = pendulum(1.0, 0.3)

    def balanced(angle):
        """Return the balanced configuration of a hip angle: the center of mass is above the pivot."""
        c = legged.center_of_mass(robot, np.array([0.0, angle]))
        return np.array([-np.arctan2(c[0], c[2]), angle])

    def gain(angle):
        return velocity_gains(robot, balanced(angle), action={"joint1": 1.0}, passive=["joint0"]).linear[0, 0]

    def controllability(angle):
        q, rest = balanced(angle), np.zeros(2)
        A, B, _ = legged.linearize(robot, q, rest, legged.inverse_dynamics(robot, q, rest, rest))
        return np.linalg.det(np.stack([np.linalg.matrix_power(A, k) @ B[:, 1] for k in range(4)], axis=1))

    ratios = [controllability(angle) / gain(angle) ** 2 for angle in np.linspace(-2.5, 2.5, 11)]
    assert np.all(np.array(ratios) * ratios[0] > 0)  # the determinant is a multiple of the squared gain
    lost = brentq(gain, 2.6, 3.14, xtol=1e-13)
    assert abs(controllability(lost)) < 1e-12 * abs(controllability(0.0))


def test_a_round_foot_rolls():
    ball = legged.Link("wheel", legged.sphere_inertia(1.0, 0.2), contacts={"rim": legged.contact.Sphere(0.2)})
    builder = legged.RobotBuilder("ballbot", ball, base=legged.PlanarBase())
    rod = legged.Link("body", legged.rod_inertia(5.0, (0, 0, 0), (0, 0, 1.0)))
    builder.add(legged.Revolute("drive", "y"), rod, to="wheel")
    robot = builder.build()
    gains = velocity_gains(robot, robot.neutral(), ["rim"])
    v = gains.velocity[:, 0]
    assert np.isclose(v[1], 0.2 * v[0])  # rolling without slipping: x' = r phi'
    assert np.isclose(gains.relative[0, 0], gains.linear[0, 0] - v[1])


def test_a_compliant_area_holds_its_center_alone():
    robot = robots.spatial_biped()
    names = [contact.name for contact in robot.contacts][:4]
    q = robot.neutral()
    rigid, compliant = (velocity_gains(robot, q, names, compliant=c) for c in (False, True))
    assert np.abs(rigid.velocity[:3]).max() > 0
    center = np.mean([legged.frame_jacobian(robot, q, name)[3:] for name in names], axis=0)
    assert np.abs(center @ compliant.velocity).max() < 1e-10
    assert not np.allclose(rigid.linear, compliant.linear)


def test_wrong_arguments_are_named():
    robot = pendulum(0.5, 0.7)
    q = np.zeros(2)
    for call in (
        lambda: velocity_gains(robot, q, ["toe"]),
        lambda: velocity_gains(robot, q, action={"hip": 1.0}),
        lambda: velocity_gains(robot, q, action=np.ones(3)),
        lambda: velocity_gains(robot, q, action={"joint1": np.nan}),
        lambda: velocity_gains(None, q),
    ):
        with pytest.raises(LeggedError):
            call()
    with pytest.raises(ArgumentError, match="passive joint"):
        velocity_gains(robot, q, action={"joint0": 1.0}, passive=["joint0"])


def test_undetermined_impulses_and_angles_are_named():
    robot = robots.spatial_quadruped()
    foot = robot.contacts[0].name
    with pytest.raises(SingularError, match=f"contacts '{foot}', '{foot}' have dependent constraints"):
        velocity_gains(robot, robot.neutral(), [foot, foot])
    with pytest.raises(SingularError, match="at the center of the support"):
        velocity_gains(robot, robot.neutral(), [foot], support=legged.center_of_mass(robot, robot.neutral()))
