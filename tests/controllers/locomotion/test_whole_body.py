"""Whole-body control: equations of motion, friction cones, limits, priorities, and tasks of one's own."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped

import controllers
import legged
import robots
from controllers.locomotion.torques import tasks as task_functions
from controllers.locomotion.torques.tasks import Tracking, WholeBodyModel, link_pose, posture
from controllers.locomotion.torques.whole_body import LEVEL_RATIO, Contact, JointLimits, whole_body
from legged.dynamics.kinematics import momentum_rate, point_jacobian, point_twist_rates
from legged.simulation.forces import motor_forces
from legged.spatial import join
from robots.bipeds import crouch

KNEES = ("left_shank_5", "right_shank_11")
ACCURACY = 1e-6
"""Tolerance of the quadratic program in the equations of motion, relative to the robot's weight."""


def standing(robot=None):
    """Return (robot, q, v) of a quadruped that stands."""
    robot = robot or shared_quadruped()
    home = controllers.home_of(robot)
    return robot, *controllers.Posture(tuple(home.angles), home.base_height).initial_state(robot)


def contacts_of(robot, **given):
    return [Contact(point.link, point.position, **given) for point in robot.contacts]


def base_task(model, acceleration, **given):
    """Return the task that the base accelerates, (6,), from rest."""
    pose = model.point(0)
    return link_pose(model, 0, pose.position, pose.rotation, Tracking(pose.twist, acceleration, **given))


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


@pytest.mark.parametrize("held", [0.0, 2e-3])
def test_joints_with_much_friction_reach_the_desired_velocity_at_the_end_of_a_time_step(held):
    """Friction takes 0.8 of the desired change if torques count on that of the present velocity alone."""
    robot = shared_biped()
    hips = [joint.v.start for joint in robot.joints if "hip_z" in joint.name]
    _, q, v = standing(robot)
    q[6] += 1.0  # in the air
    inertia = legged.inertia_matrix(robot, q)[hips[0], hips[0]]
    braked = robot.with_parameters(
        {joint.name + ".damping": 4.0 * inertia / 2e-3 for joint in robot.joints if "hip_z" in joint.name}
    )
    model = WholeBodyModel(braked, q, v, held=held)
    wanted = np.zeros(braked.nv)
    wanted[hips] = 1.0
    tau = join(np.zeros(6), (model.M @ wanted + model.h)[6:])
    steps = {"until": 2e-3, "ground": legged.Rigid(), "integrator": legged.TimeStepping(2e-3)}
    run = legged.simulate(braked, lambda t, q, v, wrenches: tau, q=q, v=v, **steps)
    reached = run.v[-1][hips] / 2e-3
    assert (reached > 0.9).all() == bool(held) and (reached < 1.01).all()


def test_dry_friction_changes_no_torque():
    """A compensation by the sign of a measured velocity leaves no torque to stop a joint with much friction."""
    robot, q, _ = standing()
    v = 0.1 * np.random.default_rng(0).normal(size=robot.nv)
    rough = robot.with_parameters({f"{joint.name}.friction": 5.0 for joint in robot.joints})
    torques = [
        whole_body(
            WholeBodyModel(each, q, v),
            contacts_of(each),
            [posture(WholeBodyModel(each, q, v), q[7:])],
            JointLimits.of(robot),
        ).tau
        for each in (robot, rough)
    ]
    np.testing.assert_array_equal(*torques)


def test_torques_reach_their_limits_in_both_directions():
    """Without limits the legs lift the base at 5 m/s^2 with up to 6.7 N m, of opposite signs in front and behind."""
    robot, q, v = standing()
    model, limit = WholeBodyModel(robot, q, v), 5.0
    limits = replace(JointLimits.of(robot), torque=np.full(robot.nj, limit))
    rise = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 5.0])
    result = whole_body(model, contacts_of(robot), [base_task(model, rise)], limits)
    assert result.residual < 2 * ACCURACY
    assert result.tau.max() == pytest.approx(limit, rel=5e-3)
    assert result.tau.min() == pytest.approx(-limit, rel=5e-3)


def test_torques_in_the_direction_of_motion_fall_to_zero_at_the_no_load_speed():
    """The motor of the simulation gives at most effort (1 - v / speed); the torques leave nothing for it to cut."""
    robot, q, _ = standing()
    v = np.zeros(robot.nv)
    v[robot.base.nv :] = np.random.default_rng(2).uniform(-1.2, 1.2, robot.nj)  # [rad/s], beyond the limit too
    limits = replace(JointLimits.of(robot), torque=np.full(robot.nj, 5.0), speed=np.ones(robot.nj))
    model = WholeBodyModel(robot, q, v)
    result = whole_body(model, contacts_of(robot), [base_task(model, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.0]))], limits)
    physics = {f"{joint.name}.{name}": x for joint in robot.joints for name, x in (("effort", 5.0), ("speed", 1.0))}
    tau = np.concatenate([np.zeros(robot.base.nv), result.tau])
    np.testing.assert_allclose(motor_forces(robot.with_parameters(physics), v, tau), tau, atol=1e-12)
    assert np.abs(result.tau).max() > 1.0  # the limits act


def test_a_task_of_a_lower_level_yields_to_those_above_by_the_ratio_of_the_levels():
    robot, q, v = standing()
    model = WholeBodyModel(robot, q, v)
    up, down = (base_task(model, a, level=level) for a, level in ((np.eye(6)[5], 0), (-np.eye(6)[5], 1)))
    result = whole_body(model, contacts_of(robot), [up, down], JointLimits.of(robot))
    achieved = model.point(0).J[5] @ result.vdot + model.point(0).bias[5]
    assert achieved == pytest.approx(1.0 - 2.0 * LEVEL_RATIO, abs=0.5 * LEVEL_RATIO)


def test_the_examples_of_the_documentation_run_and_their_task_is_reached():
    page = (Path(__file__).parents[3] / "docs/explanation/whole_body_control.md").read_text(encoding="utf-8")
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(code, names)
    state = crouch(robot := shared_biped())
    tau, _, residual = names["torques"](robot, state.q, state.v, state.q[7:], None)
    assert tau.shape == (robot.nj,) and residual < 2 * ACCURACY
    model = WholeBodyModel(robot, state.q, 0.1 * np.ones(robot.nv))
    task = names["knees_apart"](model)
    # feet in the air, since standing soles fix the knees; other accelerations have the weight 1e-8
    result = whole_body(model, contacts_of(robot, active=0.0), [task], JointLimits.of(robot))
    np.testing.assert_allclose(task.A @ result.vdot, task.b, atol=1e-3)
    rates = [point_twist_rates(robot, state.q, model.v, result.vdot, [(n, np.zeros(3))])[0] for n in KNEES]
    distance = (model.point(KNEES[0]).position - model.point(KNEES[1]).position)[1]
    speed = (model.point(KNEES[0]).twist - model.point(KNEES[1]).twist)[4]
    assert (rates[0] - rates[1])[4] == pytest.approx(100.0 * (0.4 - distance) - 20.0 * speed, abs=1e-3)


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
    rise = task_functions.center_of_mass_position(model, com + np.array([0.0, 0.0, 0.005]))
    level = task_functions.link_orientation(model, 0, np.eye(3))
    result = whole_body(
        model,
        contacts_of(robot),
        [rise, level, posture(model, q[7:], Tracking(weight=1e-6, level=1))],
        JointLimits.of(robot),
    )
    np.testing.assert_allclose(
        rise.A @ result.vdot - rise.b, 0.0, atol=1e-3
    )  # of weights 1 and 1e-6, of some 10 rad/s^2
    assert result.forces[:, 2].sum() == pytest.approx(robot.mass * (9.81 + 0.5), rel=1e-3)


def test_the_average_angular_velocity_follows_its_reference_by_the_moments_of_the_contact_forces():
    robot, q, _ = standing()
    model = WholeBodyModel(robot, q, 0.3 * np.random.default_rng(1).normal(size=robot.nv))
    inertia, desired = np.diag([3.0, 5.0, 6.0]), np.array([0.4, -0.3, 0.5])
    tracking = Tracking(acceleration=desired, gains=(0.0, 0.0))
    spin = task_functions.average_angular_velocity(model, inertia, tracking)
    rest = posture(model, q[7:], Tracking(weight=1e-6, level=1))
    result = whole_body(model, contacts_of(robot), [spin, rest], JointLimits.of(robot))
    com = legged.center_of_mass(robot, q)
    arms = [model.point(c.link, c.position).position - com for c in robot.contacts]
    moment = np.cross(arms, result.forces).sum(axis=0)
    np.testing.assert_allclose(moment, inertia @ desired, atol=1e-3)  # [N m], of weights 1 and 1e-9
    turns = np.concatenate([robot.base.velocity(q[:7], desired, np.zeros(3)), np.zeros(robot.nj)])
    fixed = legged.momentum(robot, q, turns)[:3]
    own = task_functions.average_angular_velocity(WholeBodyModel(robot, q, turns), np.eye(3), Tracking())
    np.testing.assert_allclose(own.A @ turns, fixed, atol=1e-12)  # [N m s]


def test_the_angular_momentum_decays_at_the_rate_of_the_gain():
    robot, q, _ = standing()
    model = WholeBodyModel(robot, q, 0.3 * np.random.default_rng(1).normal(size=robot.nv))
    decay = task_functions.angular_momentum(model, gain=4.0, weight=robot.mass**2, axes=(0, 2))
    result = whole_body(
        model, contacts_of(robot), [decay, posture(model, q[7:], Tracking(weight=1e-6, level=1))], JointLimits.of(robot)
    )
    momentum = legged.momentum(robot, q, model.v)[:3]
    rate = momentum_rate(robot, q, model.v, result.vdot)[:3]
    np.testing.assert_allclose(rate[[0, 2]], -4.0 * momentum[[0, 2]], atol=1e-3)  # [N m], of weights 1 and 1e-9
    assert abs(rate[1] + 4.0 * momentum[1]) > 0.1  # an axis without a row


def test_stretched_legs_have_bounded_accelerations_and_forces():
    robot, q, v = standing()
    q = robot.neutral() + np.array([0.0] * 6 + [q[6]] + [0.0] * robot.nj)
    model = WholeBodyModel(robot, q, v)
    limits = JointLimits.of(robot)
    result = whole_body(model, contacts_of(robot, most=500.0), [base_task(model, np.full(6, 50.0))], limits)
    assert np.abs(result.vdot[6:]).max() <= 1.001 * limits.acceleration  # which is soft
    assert np.linalg.norm(result.forces, axis=1).max() <= 500.0 * np.hypot(1.0, 0.6)
    assert np.abs(dense_residual(robot, q, v, result)).max() < 2 * ACCURACY * robot.mass * 9.81


def test_results_are_finite_for_extreme_states_commands_and_contacts():
    robot = robots.planar_biped()
    rng, start = np.random.default_rng(0), None
    limits = JointLimits(*(np.full(robot.nj, x) for x in (5.0, -0.5, 0.5, 3.0)))
    for _ in range(10):
        size = 10.0 ** rng.uniform(-3, 4)
        q, v = legged.random_configuration(robot, rng), size * rng.normal(size=robot.nv)
        model = WholeBodyModel(robot, q, v)
        contacts = contacts_of(robot, active=float(rng.integers(2)), friction=rng.choice([1e-6, 0.5, 10.0]), most=100.0)
        tasks = [
            base_task(model, 1e6 * rng.normal(size=6)),
            posture(model, np.zeros(robot.nj), Tracking(gains=(1e5, 1e3), weight=0.1, level=1)),
        ]
        result = whole_body(model, contacts, tasks, limits, start)
        start = result.iterate
        assert all(np.isfinite(part).all() for part in result)
        assert np.abs(result.tau).max() <= 5.0
        assert result.forces[:, 2].max() <= 100.0


def test_points_in_the_air_have_no_force_and_other_points_carry_the_weight():
    robot, q, v = standing()
    model = WholeBodyModel(robot, q, v)
    contacts = contacts_of(robot)
    contacts[0] = contacts[0]._replace(active=0.0)
    foot = robot.contacts[0]
    at = model.point(foot.link, foot.position)
    up = np.array([0.0, 0.0, 2.0])
    lift = task_functions.point_position(model, foot.link, foot.position, at.position, Tracking(0.0, up, weight=100.0))
    tasks = [lift, base_task(model, np.zeros(6)), posture(model, q[7:])]
    result = whole_body(model, contacts, tasks, JointLimits.of(robot))
    np.testing.assert_array_equal(result.forces[0], np.zeros(3))
    assert result.residual < 2 * ACCURACY
    # the center of mass is at the edge of the support, and the task of the base, of weight 1, is not reached exactly
    np.testing.assert_allclose((at.J @ result.vdot + at.bias)[3:], up, atol=5e-3)


def test_the_unknown_force_of_a_point_in_the_air_is_inside_its_cone():
    """At the apex of a cone, slack and multiplier are both zero, and the solver converges slowly."""
    robot, q, v = standing()
    model, contacts = WholeBodyModel(robot, q, v), contacts_of(robot, force=np.zeros(3))
    contacts[0] = contacts[0]._replace(active=0.0)
    contacts[1] = contacts[1]._replace(active=0.0, most=0.1 * robot.mass * 9.81)
    result = whole_body(model, contacts, [base_task(model, np.zeros(6))], JointLimits.of(robot))
    forces = result.iterate[robot.nv : robot.nv + 3 * len(contacts)].reshape(-1, 3)  # in weights
    np.testing.assert_allclose(forces[:2], [[0.0, 0.0, 0.25], [0.0, 0.0, 0.05]], atol=1e-4)


def test_two_iterations_from_the_last_call_suffice_while_the_same_limits_are_active():
    """With steps of at most 0.99 of that to the boundary, accelerations are off by 6e-5 rad/s^2."""
    robot, q, v = standing()

    def call(v, start, iterations):
        model = WholeBodyModel(robot, q, v)
        tasks = [base_task(model, np.array([0.1, 0.2, 0.1, 0.5, 0.3, 0.2])), posture(model, q[7:])]
        return whole_body(model, contacts_of(robot), tasks, JointLimits.of(robot), start, iterations)

    start = call(v, None, 12).iterate
    later = v + 0.01 * np.random.default_rng(0).normal(size=robot.nv)
    np.testing.assert_allclose(call(later, start, 2).vdot, call(later, start, 12).vdot, rtol=0, atol=1e-5)


@pytest.mark.parametrize("base", ["floating", "euler"])
def test_the_momentum_of_the_model_has_the_rate_of_the_centroidal_momentum(base):
    rng = np.random.default_rng(2)
    robot = legged.random_tree(2, bases=[base], physics=True)
    q, v, vdot = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    A, bias = WholeBodyModel(robot, q, v).momentum
    expected = momentum_rate(robot, q, v, vdot)
    np.testing.assert_allclose(A @ v, legged.momentum(robot, q, v), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(A @ vdot + bias, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


def test_a_bounded_normal_force_stays_below_its_bound_and_the_other_feet_carry_the_rest():
    robot, q, v = standing()
    model, weight = WholeBodyModel(robot, q, v), robot.mass * 9.81
    first, *others = contacts_of(robot)
    result = whole_body(
        model,
        [first._replace(most=0.15 * weight), *others],
        [base_task(model, np.zeros(6))],
        JointLimits.of(robot),
    )
    assert result.forces[0, 2] == pytest.approx(0.15 * weight, abs=1e-3 * weight)
    assert result.forces[:, 2].sum() == pytest.approx(weight, rel=1e-3)


def test_forces_follow_their_references():
    """Four feet have six internal forces: references within the cones that carry the weight are reached."""
    robot, q, v = standing()
    model = WholeBodyModel(robot, q, v)
    shares = robot.mass * 9.81 * np.array([0.2, 0.3, 0.3, 0.2])
    inward = [
        np.array([0.0, -np.sign(model.point(c.link, c.position).position[1]) * 10.0, 0.0]) for c in robot.contacts
    ]
    forces = [np.array([0.0, 0.0, share]) + side for share, side in zip(shares, inward, strict=True)]
    plain = whole_body(model, contacts_of(robot), [base_task(model, np.zeros(6))], JointLimits.of(robot))
    contacts = [c._replace(force=f) for c, f in zip(contacts_of(robot), forces, strict=True)]
    result = whole_body(model, contacts, [base_task(model, np.zeros(6))], JointLimits.of(robot), force_weight=1e-3)
    assert np.abs(result.forces - forces)[:, 1].max() < 1.0  # [N], of 10 N
    assert np.abs(plain.forces[:, 1]).max() < 1.0
