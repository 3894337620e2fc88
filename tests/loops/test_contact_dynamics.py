"""Dynamics of robots that stand on given contact points: the points do not accelerate, and the forces balance."""

import numpy as np
import pytest

import legged
import robots
from legged.errors import UnknownNameError

ROUNDING = 1e-11  # relative to forces and accelerations of size 100
CASES = {
    "three feet": (robots.spatial_quadruped, ["leg1_foot", "leg4_foot", "leg2_foot"]),
    "four feet": (robots.spatial_quadruped, ["leg1_foot", "leg2_foot", "leg3_foot", "leg4_foot"]),
    "heel and toe of a planar robot": (robots.planar_biped, ["a_heel", "a_toe"]),
    "no foot": (robots.spatial_quadruped, []),
}


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return legged.random_configuration(robot, rng), *rng.normal(size=(2, robot.nv))


def points_of(robot, contacts):
    return [(robot.contact(name).link, robot.contact(name).position) for name in contacts]


def jacobian(robot, q, contacts):
    rows = [legged.point_jacobian(robot, q, *point)[3:] for point in points_of(robot, contacts)]
    return np.concatenate([np.zeros((0, robot.nv)), *rows])


@pytest.mark.parametrize("case", CASES)
def test_contact_points_do_not_accelerate_and_forces_satisfy_the_equations_of_motion(case):
    make, contacts = CASES[case]
    robot = make()
    q, v, tau = state(robot)
    J = jacobian(robot, q, contacts)
    v = v - np.linalg.pinv(J) @ (J @ v) if len(contacts) else v  # the points are at rest
    wrenches = np.random.default_rng(1).normal(size=(len(robot.links), 6))
    vdot, forces = legged.contact_dynamics(robot, q, v, tau, contacts, wrenches)
    assert forces.shape == (len(contacts), 3)
    accelerations = legged.point_accelerations(robot, q, v, vdot, points_of(robot, contacts))
    assert np.abs(accelerations).max(initial=0.0) < ROUNDING * (1.0 + np.abs(vdot).max())
    required = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    assert np.abs(required - tau - J.T @ forces.ravel()).max() < ROUNDING * (1.0 + np.abs(required).max())
    kernel = legged.compile(
        lambda robot, q, v, tau, wrenches: legged.contact_dynamics(robot, q, v, tau, contacts, wrenches),
        robot,
        wrenches=True,
    )
    np.testing.assert_allclose(kernel(q, v, tau, wrenches)[0], vdot, atol=1e-8 * (1.0 + np.abs(vdot).max()))


@pytest.mark.parametrize("case", CASES)
def test_contacts_support_the_base_in_inverse_dynamics(case):
    make, contacts = CASES[case]
    robot = make()
    q, v, tau = state(robot)
    n0 = robot.base.nv
    vdot, forces = legged.contact_dynamics(robot, q, v, np.concatenate([np.zeros(n0), tau[n0:]]), contacts)
    torques, least = legged.contact_inverse_dynamics(robot, q, v, vdot, contacts)
    required = legged.inverse_dynamics(robot, q, v, vdot)
    scale = 1.0 + np.abs(required).max()
    J = jacobian(robot, q, contacts)
    assert np.abs(torques[:n0]).max() < ROUNDING * scale  # the acceleration came from forces, so it needs none else
    assert np.abs(required - torques - J.T @ least.ravel()).max() < ROUNDING * scale
    assert np.linalg.norm(least) <= np.linalg.norm(forces) * (1.0 + ROUNDING)


def test_two_point_feet_leave_the_moment_about_their_line():
    robot = robots.spatial_quadruped()
    contacts = ["leg1_foot", "leg4_foot"]
    q, v, vdot = state(robot)
    torques, forces = legged.contact_inverse_dynamics(robot, q, v, vdot, contacts)
    G = jacobian(robot, q, contacts)[:, : robot.base.nv].T
    expected = np.linalg.lstsq(G, legged.inverse_dynamics(robot, q, v, vdot)[: robot.base.nv], rcond=None)[0]
    np.testing.assert_allclose(forces.ravel(), expected, atol=1e-9 * (1.0 + np.abs(expected).max()))
    assert np.abs(torques[: robot.base.nv]).max() > 1e-3
    assert np.abs(G.T @ torques[: robot.base.nv]).max() < 1e-9 * (1.0 + np.abs(torques).max())


FEW = {"one foot": ["leg1_foot"], "two feet": ["leg1_foot", "leg4_foot"]}


@pytest.mark.parametrize("case", [*CASES, *FEW])
def test_compiled_inverse_dynamics_on_contacts_equal_plain_ones(case):
    make, contacts = CASES[case] if case in CASES else (robots.spatial_quadruped, FEW[case])
    robot = make()
    kernel = legged.compile(
        lambda robot, q, v, vdot: legged.contact_inverse_dynamics(robot, q, v, vdot, contacts), robot, vdot=True
    )
    for seed in range(5):
        q, v, vdot = state(robot, seed)
        for forces, plain in zip(
            kernel(q, v, vdot), legged.contact_inverse_dynamics(robot, q, v, vdot, contacts), strict=True
        ):
            np.testing.assert_allclose(forces, plain, atol=1e-8 * (1.0 + np.abs(plain).max(initial=0.0)))


def test_unknown_contact_points_are_refused():
    robot = robots.spatial_quadruped()
    with pytest.raises(UnknownNameError, match=r"leg1_foo.*leg1_foot"):
        legged.contact_dynamics(robot, *state(robot), ["leg1_foo"])
