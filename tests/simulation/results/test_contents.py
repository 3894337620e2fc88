"""The contents of runs: samples, accelerations, errors, names."""

import dataclasses
import pickle

import numpy as np
import pytest

import legged
from legged.errors import (
    UnknownNameError,
)
from legged.ground.ground import contact_wrenches
from legged.simulation import Push, simulate
from legged.simulation.results.summary import joint_error
from tests.simulation.servo import standing


def test_run_has_everything_at_every_sample(robot, run):
    n = 31
    assert len(run) == n
    np.testing.assert_allclose(run.times, np.linspace(0.0, 0.3, n))
    assert run.q.shape == (n, robot.nq)
    assert run.v.shape == run.vdot.shape == run.tau.shape == (n, robot.nv)
    assert run.joints.reference.shape == run.memory.shape == run.joint_tau.shape == run.joint_positions.shape == (n, 12)
    assert run.contacts.points.shape == run.contacts.forces.shape == (n, 4, 3)
    assert run.contacts.memory.shape == (n, 8)
    assert run.base.rotation.shape == (n, 3, 3)
    assert run.backend == "compiled closed loop"
    feet = np.linalg.norm(run.contacts.points[:, :, None] - run.figure.nodes[:, None], axis=-1).min(axis=2)
    assert feet.max() < 1e-9  # the stick figure ends at the contact points
    assert run.duration == pytest.approx(0.3)
    assert dataclasses.replace(run, times=run.times + 2.0).duration == pytest.approx(0.3)
    assert run.ended == ""
    assert run.phases[[0, 9, 10, 20, 30]].tolist() == [0, 0, 1, 2, 2]
    for k in (0, 15, 30):
        points, _ = legged.point_motion(robot, run.q[k], run.v[k], [(c.link, c.position) for c in robot.contacts])
        np.testing.assert_allclose(run.contacts.points[k], points, atol=1e-12)
        assert run.energy.kinetic[k] == pytest.approx(legged.kinetic_energy(robot, run.q[k], run.v[k]))
    assert np.all(run.tau[:, :6] == 0.0)


def test_accelerations_are_those_of_torques_and_contact_forces(robot, run):
    for k in (0, 15, 30):
        wrenches = contact_wrenches(robot, run.q[k], run.contacts.forces[k])
        expected = legged.forward_dynamics(robot, run.q[k], run.v[k], run.tau[k], wrenches)
        np.testing.assert_allclose(run.vdot[k], expected, atol=1e-9 * (1.0 + np.abs(expected).max()))


def test_accelerations_are_computed_when_they_are_read_and_stored_as_numbers(robot):
    """A push on a link and contacts of some links alone act; the copy holds no controller, which cannot be pickled."""
    push = Push("trunk", (robot.mass * 0.3, 0.0, 0.0), at=0.0, duration=0.1)  # [N s], [s], [s]
    options = {"q": standing(robot), "pushes": [push], "until": 4e-3, "sample": 1e-3, "fall": False}
    run = simulate(robot, lambda t, q, v, w: -2.0 * v[6:], ground=legged.Rigid(), **options)
    assert "vdot" not in vars(run.accelerations)
    again = pickle.loads(pickle.dumps(run))
    assert not hasattr(again.accelerations, "acceleration")
    np.testing.assert_array_equal(again.vdot, run.vdot)
    for k in (2, 4):
        wrenches = contact_wrenches(robot, run.q[k], run.contacts.forces[k])
        wrenches[0, 3:] += run.base.rotation[k].T @ push.force(run.times[k])
        expected = legged.forward_dynamics(robot, run.q[k], run.v[k], run.tau[k], wrenches)
        np.testing.assert_allclose(run.vdot[k], expected, atol=1e-9 * (1.0 + np.abs(expected).max()))


def test_accelerations_tell_the_push(robot):
    """What moves the base of a robot in free flight is the push alone."""
    push = Push("trunk", (robot.mass * 0.3, 0.0, 0.0), at=0.1, duration=0.1)  # [N s], [s], [s]
    run = simulate(robot, until=0.2, q=standing(robot), pushes=[push])
    for k in (5, 13, 15, 18):
        outside = legged.inverse_dynamics(robot, run.q[k], run.v[k], run.vdot[k])[3:6]
        np.testing.assert_allclose(run.base.rotation[k] @ outside, push.force(run.times[k]), atol=1e-8)


def test_the_joint_error_is_the_largest_difference_to_the_reference_and_zero_without_one(robot, run):
    errors = np.abs(run.joint_positions - run.joints.reference).max(axis=1)
    assert errors.max() > 0.0
    np.testing.assert_array_equal(joint_error(run), errors)
    free = simulate(robot, until=0.02, q=standing(robot, 2.0))
    assert joint_error(free).tolist() == [0.0] * len(free)


def test_joints_and_contacts_are_found_by_name(robot, run):
    knee, at = run.joint("leg2_knee"), robot.joint("leg2_knee")
    np.testing.assert_array_equal(knee.position, run.q[:, at.q.start])
    np.testing.assert_array_equal(knee.velocity, run.v[:, at.v.start])
    np.testing.assert_array_equal(knee.torque, run.tau[:, at.v.start])
    np.testing.assert_array_equal(knee.reference, run.joints.reference[:, at.q.start - 7])
    assert run.joint("leg3_hip").position.shape == run.joint("leg3_hip").reference.shape == (31, 2)
    foot = run.contact("leg4_foot")
    np.testing.assert_array_equal(foot.position, run.contacts.points[:, 3])
    np.testing.assert_array_equal(foot.force, run.contacts.forces[:, 3])
    with pytest.raises(UnknownNameError, match="did you mean 'leg1_knee'"):
        run.joint("leg1_kne")


def test_base_angles_give_back_the_rotation(robot):
    q = robot.neutral()
    rng = np.random.default_rng(1)
    q[:4] = rng.normal(size=4)
    q[:4] /= np.linalg.norm(q[:4])
    run = simulate(robot, until=0.02, q=q)
    from legged.rotations import euler_matrix

    for sequence in ("xyz", "zyx", "zxz"):
        turned = euler_matrix(sequence, run.base.angles(sequence)[1])
        np.testing.assert_allclose(turned, run.base.rotation[1], atol=1e-12)
