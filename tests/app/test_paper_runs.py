"""Simulations of the paper on the authors' ground: their output, tables of an independent model, and events.

The authors' axes (lateral, up, forward) are our (y, z, x), and their angles Z, X, Y are turns about our x, y, z, in
that order. Their energy columns count what the robot gives away: the works here have the opposite sign.
"""

import numpy as np
import pytest

import controllers
import robots
from legged import EulerBase
from legged.errors import SimulationError
from legged.ground import paper_ground
from legged.simulation import Stiff, simulate

TIGHT = Stiff(rtol=1e-7, atol=1e-9)

AUTHORS_QUADRUPED = {  # t: lateral, up, forward [m]; phi, theta, psi [rad]; potential, kinetic, actuators, ground [J]
    0.0: (0, 0.5, -0.15, 0, 0, 0, 39.24, 1.62852, 0, 0),
    0.5: (0.016987, 0.492386, -0.007554, -0.034039, -0.016653, -0.000254, 40.24807, 0.87234, -1.13399, 0.88214),
    2.0: (-0.000350, 0.498376, 0.427204, 0.000337, 0.000425, -0.000061, 39.04637, 1.49409, -6.18210, 6.50999),
}
PAPER_QUADRUPED = {  # t: lateral, height, forward [m]; phi, theta [rad]; swing height 0.08 m
    0.5: (0.0164, 0.4924, -0.0073, -0.0329, -0.0161),
    1.0: (0.0001, 0.4984, 0.1385, -0.0012, 0.0009),
    2.0: (-0.0002, 0.4983, 0.4243, -0.0001, 0.0002),
    4.0: (-0.0011, 0.4984, 0.9988, 0.0007, 0.0006),
}
PAPER_BIPED = {  # t: trunk's x, height [m]; lean, backward positive [degree]; speed along x [m/s]
    0.5: (-0.0073, 1.2029, 0.36, 0.2541),
    1.0: (0.1809, 1.2152, -2.84, 0.2286),
    2.0: (0.4104, 1.2093, -0.17, 0.3927),
    4.0: (0.9665, 1.2072, 0.65, 0.4911),
}
BIPED_TORQUES = {  # t: hip, knee, ankle of legs a and b [N m]; total ground force along x and z [N]
    0.25: ((-1.720, 10.845, 1.117, 1.338, -1.403, 0.0), (-1.23, 93.69)),
    0.5: ((-0.726, 9.894, -1.186, 1.397, -1.556, 0.0), (0.53, 89.57)),
}


def biped_run(law, until, integrator=None, **options):
    robot = robots.planar_biped()
    return simulate(robot, law, until=until, ground=paper_ground(robot), integrator=integrator, **options)


def quadruped_run(law, until, integrator=None, base=None):
    robot = robots.spatial_quadruped(base)
    return simulate(robot, law, until=until, ground=paper_ground(robot), integrator=integrator)


def joint_error(run):
    """Return the largest error of the joints at each sample, (T,), [degree]."""
    return np.degrees(np.abs(run.joint_positions - run.joints.reference).max(axis=1))


@pytest.fixture(scope="module")
def authors_run():
    return quadruped_run(controllers.ComputedTorque(controllers.authors_trot()), 2.0, TIGHT)


@pytest.fixture(scope="module")
def quadruped():
    return quadruped_run(controllers.ComputedTorque(controllers.paper_trot()), 4.0, TIGHT)


@pytest.fixture(scope="module")
def biped():
    return biped_run(controllers.ComputedTorque(controllers.paper_walk()), 4.0, TIGHT)


@pytest.mark.parametrize("t", AUTHORS_QUADRUPED)
def test_quadruped_follows_the_authors_output(authors_run, t):
    lateral, up, forward, *angles_and_energies = AUTHORS_QUADRUPED[t]
    k = authors_run.at(t)
    np.testing.assert_allclose(authors_run.base.position[k], (forward, lateral, up), atol=1e-4)
    np.testing.assert_allclose(authors_run.base.angles("xyz")[k], angles_and_energies[:3], atol=1e-4)
    energies = [
        authors_run.energy.potential[k],
        authors_run.energy.kinetic[k],
        -authors_run.energy.actuator_work[k],
        -authors_run.energy.contact_work[k],
    ]
    np.testing.assert_allclose(energies[:2], angles_and_energies[3:5], atol=1e-3)
    np.testing.assert_allclose(energies[2:], angles_and_energies[5:], atol=5e-3)  # the authors' tolerance was 1e-4


def test_quadrupeds_energy_sum_is_the_authors_and_constant(authors_run):
    assert authors_run.energy.balance[0] == pytest.approx(40.8685, abs=1e-3)
    assert authors_run.energy_drift < 1e-3


def test_joints_of_the_quadruped_follow_the_plan(authors_run):
    assert joint_error(authors_run).max() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("base", [EulerBase("xyz")])
def test_authors_own_coordinates_give_the_same_run(authors_run, base):
    run = quadruped_run(controllers.ComputedTorque(controllers.authors_trot()), 2.0, TIGHT, base)
    np.testing.assert_allclose(run.base.position, authors_run.base.position, atol=1e-5)
    np.testing.assert_allclose(run.contacts.forces[run.at(0.5)], authors_run.contacts.forces[run.at(0.5)], atol=0.01)


@pytest.mark.parametrize("t", PAPER_QUADRUPED)
def test_quadruped_with_the_papers_swing_height(quadruped, t):
    lateral, height, forward, phi, theta = PAPER_QUADRUPED[t]
    k = quadruped.at(t)
    np.testing.assert_allclose(quadruped.base.position[k], (forward, lateral, height), atol=1e-4)
    np.testing.assert_allclose(quadruped.base.angles("xyz")[k, :2], (phi, theta), atol=1e-4)


@pytest.mark.parametrize("t", PAPER_BIPED)
def test_biped_walks_by_the_table(biped, t):
    x, height, lean, speed = PAPER_BIPED[t]
    k = biped.at(t)
    np.testing.assert_allclose(biped.base.position[k], (x, 0.0, height), atol=5e-4)
    assert -np.degrees(biped.q[k, 0]) == pytest.approx(lean, abs=0.05)
    assert biped.v[k, 1] == pytest.approx(speed, abs=5e-4)


@pytest.mark.parametrize("t", BIPED_TORQUES)
def test_biped_needs_the_tables_torques(biped, t):
    torques, force = BIPED_TORQUES[t]
    k = biped.at(t)
    np.testing.assert_allclose(biped.joint_tau[k], torques, atol=1e-3)
    np.testing.assert_allclose(biped.ground_force[k, [0, 2]], force, atol=0.01)


def test_the_biped_follows_the_plan_at_a_constant_energy_sum(biped):
    assert joint_error(biped).max() < 1e-3
    assert biped.energy_drift < 1e-3


def biped_without_feedback(rtol):
    """Return the run of the biped under the reference torques without feedback, up to its fall."""
    with pytest.raises(SimulationError, match=r"the trunk (leaned over|fell)") as error:
        biped_run(controllers.OpenLoop(controllers.paper_walk()), 4.0, Stiff(rtol, 0.01 * rtol))
    return error.value.run


def test_biped_without_feedback_departs_after_one_second():
    """Figure 12: torques of the plan alone hold the gait for about 1 s, then the robot falls."""
    run = biped_without_feedback(1e-6)
    assert joint_error(run)[run.at(0.8)] < 0.05  # [degree]
    departed = run.times[joint_error(run) > 1.0]  # [degree]
    assert 1.0 < departed[0] < 1.3
    assert run.duration > 1.3


@pytest.mark.slow
def test_what_makes_it_depart_is_the_error_of_the_integration():
    """Model and torques are exact, so that only rounding and truncation disturb the unstable gait."""
    departures = [run.times[joint_error(run) > 1.0][0] for run in map(biped_without_feedback, (1e-4, 1e-6, 1e-8))]
    assert departures[0] + 0.2 < departures[1] < departures[2] - 0.2


def test_computed_torque_keeps_the_biped_walking_for_twelve_seconds():
    """Figures 13 and 14; ranges of an independent model."""
    run = biped_run(controllers.ComputedTorque(controllers.paper_walk()), 12.0)
    assert run.duration == 12.0
    assert run.base.position[-1, 0] == pytest.approx(3.246, abs=2e-3)
    assert run.base.position[:, 2].min() == pytest.approx(1.1965, abs=5e-4)
    assert run.base.position[:, 2].max() == pytest.approx(1.2165, abs=5e-4)
    lean = -np.degrees(run.q[:, 0])
    assert (lean.min(), lean.max()) == pytest.approx((-3.17, 2.38), abs=0.02)
    assert joint_error(run).max() < 1e-3
    assert run.energy_drift < 1e-3


@pytest.mark.slow
def test_computed_torque_keeps_the_quadruped_trotting_for_twelve_seconds():
    """Figures 16 and 17; ranges of an independent model."""
    run = quadruped_run(controllers.ComputedTorque(controllers.paper_trot()), 12.0)
    assert run.duration == 12.0
    assert run.base.position[-1, 0] == pytest.approx(3.288, abs=5e-3)
    early = run.times <= 4.0
    roll, pitch, yaw = np.degrees(run.base.angles("xyz")[early]).T
    assert np.abs(roll).max() == pytest.approx(2.2, abs=0.05)
    assert np.abs(pitch).max() == pytest.approx(1.1, abs=0.05)
    assert np.abs(yaw).max() < 0.03
    assert np.abs(np.degrees(run.base.angles("xyz"))).max() < 6.0
    assert run.energy_drift < 1e-3


def test_feed_forward_agrees_with_computed_torque_for_four_seconds(biped, quadruped):
    walk = biped_run(controllers.FeedForward(controllers.paper_walk()), 4.0)
    trot = quadruped_run(controllers.FeedForward(controllers.paper_trot()), 4.0)
    for run, computed in ((walk, biped), (trot, quadruped)):
        assert np.degrees(np.abs(run.joint_positions - computed.joint_positions)).max() < 0.01
        np.testing.assert_allclose(run.base.position, computed.base.position, atol=1e-3)


@pytest.mark.slow
def test_feed_forward_with_more_gain_holds_for_twelve_seconds():
    """With the printed gains the joints drift after some 10 s; the higher ones hold them."""
    run = biped_run(controllers.FeedForward(controllers.paper_walk(), kp=100.0, kd=20.0), 12.0)
    assert run.duration == 12.0
    assert joint_error(run).max() < 0.02


@pytest.mark.slow
def test_feed_forward_trots_for_six_seconds():
    run = quadruped_run(controllers.FeedForward(controllers.paper_trot()), 6.0)
    assert run.duration == 6.0
    assert joint_error(run).max() < 0.5


def test_quadruped_without_feedback_falls():
    with pytest.raises(SimulationError, match=r"fell|leaned"):
        quadruped_run(controllers.OpenLoop(controllers.paper_trot()), 4.0)
