"""Whole-body control: equations of motion, friction cones, limits, priorities, and tasks of one's own."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers.locomotion import tasks as task_functions
from controllers.locomotion.tasks import Task, WholeBodyModel, base_pose, posture
from controllers.locomotion.whole_body import LEVEL_RATIO, Contact, JointLimits, whole_body
from legged.dynamics.kinematics import point_jacobian, point_twist_rates

ACCURACY = 1e-6
"""Tolerance of the quadratic program in the equations of motion, relative to the robot's weight."""


def standing(robot=None):
    """Return (robot, q, v) of a quadruped that stands."""
    robot = robot or robots.spatial_quadruped()
    home = controllers.home_of(robot)
    return robot, *controllers.Posture(tuple(home.angles), home.base_height).initial_state(robot)


def contacts_of(robot, **given):
    return [Contact(point.link, point.position, **given) for point in robot.contacts]


def base_task(model, acceleration, **given):
    """Return the task that the base accelerates, (6,), from rest."""
    pose = model.point(0)
    return base_pose(model, pose.position, pose.rotation, pose.twist, acceleration, **given)


def dense_residual(robot, q, v, result):
    """Return M vdot + h - tau - J^T f, (nv,), from the inertia matrix, the inverse dynamics and the Jacobians."""
    J = np.concatenate([point_jacobian(robot, q, c.link, c.position)[3:] for c in robot.contacts])
    tau = np.concatenate([np.zeros(robot.base.nv), result.tau])
    return legged.inverse_dynamics(robot, q, v, result.vdot) - tau - J.T @ result.forces.reshape(-1)


@pytest.mark.parametrize("moving", [0.0, 0.5])
def test_torques_forces_and_accelerations_satisfy_the_equations_of_motion(moving):
    robot, q, _ = standing()
    v = moving * np.random.default_rng(0).normal(size=robot.nv)
    model = WholeBodyModel(robot, q, v)
    acceleration = np.array([0.3, -0.2, 0.1, 0.5, -0.3, 1.0])
    tasks = [base_task(model, acceleration), posture(model, q[robot.base.nq :])]
    result = whole_body(model, contacts_of(robot), tasks, JointLimits.of(robot))
    weight = robot.mass * 9.81
    assert np.abs(dense_residual(robot, q, v, result)).max() < 2 * ACCURACY * weight
    assert result.residual < 2 * ACCURACY
    friction = np.hypot(*result.forces.T[:2]) - 0.6 * result.forces[:, 2]
    assert friction.max() < ACCURACY * weight


def test_contradictory_limits_give_finite_torques_within_limits_and_a_residual():
    robot, q, _ = standing()
    limits = JointLimits(
        np.full(robot.nj, 0.01), np.full(robot.nj, 1.0), np.full(robot.nj, 1.1), np.full(robot.nj, 1e-3), 1.0
    )
    model = WholeBodyModel(robot, q, 10.0 * np.random.default_rng(1).normal(size=robot.nv))
    result = whole_body(model, contacts_of(robot), [base_task(model, np.full(6, 1e3))], limits)
    assert all(np.isfinite(part).all() for part in result)
    assert np.abs(result.tau).max() <= 0.01
    assert result.residual > 0.1


def test_a_task_of_a_lower_level_yields_to_those_above_by_the_ratio_of_the_levels():
    robot, q, v = standing()
    model = WholeBodyModel(robot, q, v)
    up, down = (base_task(model, a, level=level) for a, level in ((np.eye(6)[5], 0), (-np.eye(6)[5], 1)))
    result = whole_body(model, contacts_of(robot), [up, down], JointLimits.of(robot))
    achieved = model.point(0).J[5] @ result.vdot + model.point(0).bias[5]
    assert achieved == pytest.approx(1.0 - 2.0 * LEVEL_RATIO, abs=0.5 * LEVEL_RATIO)


def test_a_task_of_ones_own():
    """The task that the left front hip does not accelerate, from its rows."""
    robot, q, _ = standing()

    def still(model: WholeBodyModel) -> Task:
        at = model.point(robot.links[1].name)
        return Task(at.J[3:], -10.0 * at.twist[3:] - at.bias[3:], weight=10.0)

    model = WholeBodyModel(robot, q, 0.1 * np.ones(robot.nv))
    result = whole_body(model, contacts_of(robot), [still(model)], JointLimits.of(robot))
    acceleration = point_twist_rates(robot, q, model.v, result.vdot, [(robot.links[1].name, np.zeros(3))])[0, 3:]
    np.testing.assert_allclose(acceleration, -10.0 * model.point(robot.links[1].name).twist[3:], atol=1e-2)


def test_the_model_gives_jacobians_biases_and_twists_of_points():
    robot, q, _ = standing()
    v = np.random.default_rng(0).normal(size=robot.nv)
    model = WholeBodyModel(robot, q, v)
    for link, point in [(robot.links[3].name, np.array([0.1, 0.2, 0.3])), (0, np.zeros(3))]:
        at = model.point(link, point)
        J = point_jacobian(robot, q, link, point)
        np.testing.assert_allclose(at.J, J, atol=1e-12)
        np.testing.assert_allclose(at.twist, J @ v, atol=1e-12)
        rates = point_twist_rates(robot, q, v, np.zeros(robot.nv), [(link, point)])[0]
        np.testing.assert_allclose(at.bias, rates, atol=1e-10)


def test_tasks_reach_their_desired_accelerations_together():
    robot, q, v = standing()
    model = WholeBodyModel(robot, q, v)
    com = legged.center_of_mass(robot, q)
    rise = task_functions.center_of_mass_position(model, com + np.array([0.0, 0.0, 0.005]), gains=(100.0, 20.0))
    level = task_functions.link_orientation(model, 0, np.eye(3))
    result = whole_body(
        model, contacts_of(robot), [rise, level, posture(model, q[7:], weight=1e-6)], JointLimits.of(robot)
    )
    np.testing.assert_allclose(
        rise.A @ result.vdot - rise.b, 0.0, atol=1e-3
    )  # of weights 1 and 1e-6, of some 10 rad/s^2
    assert result.forces[:, 2].sum() == pytest.approx(robot.mass * (9.81 + 0.5), rel=1e-3)
