"""The paper's walk and trot under its control laws on the authors' ground, beside their output and another model.

The tables are those of the notes on the paper's data: the authors' own quadruped output, and a model written for the
notes with NumPy alone.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import legged
import robots
from controllers import (
    ComputedTorque,
    Crawl,
    FeedForward,
    JointPD,
    JointPID,
    OpenLoop,
    Stand,
    Tripod,
    authors_trot,
    paper_trot,
    paper_walk,
)
from legged.errors import SimulationError
from legged.ground import paper_ground
from legged.simulation import Stiff

BIPED, QUADRUPED, HEXAPOD = robots.planar_biped(), robots.spatial_quadruped(), robots.hexapod()
FINE = Stiff(rtol=1e-7, atol=1e-9)


@cache
def walk(law):
    return legged.simulate(BIPED, law(paper_walk()), ground=paper_ground(BIPED), until=4.0, integrator=FINE)


@cache
def trot(law, gait=paper_trot):
    return legged.simulate(QUADRUPED, law(gait()), ground=paper_ground(QUADRUPED), until=4.0, integrator=FINE)


def test_the_biped_moves_as_in_the_table():
    run = walk(ComputedTorque)
    table = [  # t [s], x, z [m], backward pitch [deg], forward speed [m/s]
        (0.5, -0.0073, 1.2029, 0.36, 0.2541),
        (1.0, 0.1809, 1.2152, -2.84, 0.2286),
        (2.0, 0.4104, 1.2093, -0.17, 0.3927),
        (4.0, 0.9665, 1.2072, 0.65, 0.4911),
    ]
    for t, x, z, pitch, speed in table:
        i = run.at(t)
        np.testing.assert_allclose(run.q[i, 1:3], (x, z), atol=5e-4)
        assert np.rad2deg(-run.q[i, 0]) == pytest.approx(pitch, abs=0.05)
        assert run.v[i, 1] == pytest.approx(speed, abs=5e-4)


def test_the_bipeds_torques_and_ground_force_are_those_of_the_table():
    run = walk(ComputedTorque)
    table = {
        0.25: ([-1.720, 10.845, 1.117, 1.338, -1.403, 0], (-1.23, 93.69)),
        0.5: ([-0.726, 9.894, -1.186, 1.397, -1.556, 0], (0.53, 89.57)),
    }
    for t, (torques, force) in table.items():
        i = run.at(t)
        np.testing.assert_allclose(run.joint_tau[i], torques, atol=1e-3)  # [N m]
        np.testing.assert_allclose(run.ground_force[i, [0, 2]], force, atol=0.01)  # [N]


def test_the_quadruped_moves_as_in_the_authors_output():
    run = trot(ComputedTorque, authors_trot)
    table = [  # t [s], lateral, height, forward [m], angles about the forward, lateral and vertical axes in turn [rad]
        (0.0, 0, 0.5, -0.15, 0, 0, 0),
        (0.5, 0.016987, 0.492386, -0.007554, -0.034039, -0.016653, -0.000254),
        (2.0, -0.000350, 0.498376, 0.427204, 0.000337, 0.000425, -0.000061),
    ]
    angles = run.base.angles("xyz")
    for t, lateral, height, forward, *turned in table:
        i = run.at(t)
        np.testing.assert_allclose(run.base.position[i], (forward, lateral, height), atol=1e-4)
        np.testing.assert_allclose(angles[i], turned, atol=1e-4)
        assert run.energy.balance[i] == pytest.approx(40.8685, abs=1e-3)


def test_the_quadruped_moves_as_in_the_table():
    run = trot(ComputedTorque)
    for t, lateral, height, forward in [(0.5, 0.0164, 0.4924, -0.0073), (4.0, -0.0011, 0.4984, 0.9988)]:
        np.testing.assert_allclose(run.base.position[run.at(t)], (forward, lateral, height), atol=1e-4)


@pytest.mark.parametrize("motion", [walk, trot])
def test_feed_forward_agrees_with_computed_torque_for_four_seconds(motion):
    computed, fed = motion(ComputedTorque), motion(FeedForward)
    joints = np.rad2deg(np.abs(computed.joint_positions - fed.joint_positions).max())
    assert joints < 0.01  # [deg], far below what the figures can show
    assert np.abs(computed.base.position - fed.base.position).max() < 1e-3  # [m]


@pytest.mark.parametrize("motion", [walk, trot])
def test_joints_under_computed_torque_follow_the_plan(motion):
    run = motion(ComputedTorque)
    assert np.rad2deg(np.abs(run.joint_positions - run.joints.reference).max()) < 1e-3  # [deg]


def test_without_feedback_the_biped_leaves_its_gait_soon_after_a_second():
    """Figure 12. Errors grow tenfold in 0.22 s, so that the time depends on the accuracy of the integrator."""
    law, ground = OpenLoop(paper_walk()), paper_ground(BIPED)
    with pytest.raises(SimulationError) as caught:
        legged.simulate(BIPED, law, ground=ground, until=4.0, integrator=Stiff(rtol=1e-6, atol=1e-8))
    run = caught.value.run
    errors = np.rad2deg(np.abs(run.joint_positions - run.joints.reference).max(axis=1))
    assert errors[run.at(0.8)] < 0.05  # [deg]
    assert 1.0 < run.times[np.argmax(errors > 1.0)] < 1.3  # [s]


def test_a_hexapod_walks_on_its_tripods():
    run = legged.simulate(HEXAPOD, ComputedTorque(Tripod()), ground=paper_ground(HEXAPOD), until=4.0)
    assert run.mean_velocity[0] == pytest.approx(0.8, rel=0.1)  # stride over period [m/s]
    np.testing.assert_allclose(run.base.position[:, 2], 0.55, atol=0.03)


def test_a_quadruped_crawls_slowly_and_level():
    gait = Crawl().on(QUADRUPED)
    run = legged.simulate(QUADRUPED, ComputedTorque(gait), ground=paper_ground(QUADRUPED), until=8.0)
    made = run.base.position[-1] - run.base.position[0]
    assert made[0] == pytest.approx(4 * gait.stride, rel=0.15)  # the soft ground gives way a little
    assert np.rad2deg(np.abs(run.base.angles("xyz")).max()) < 5.0


def test_servos_hold_a_standing_robot_and_the_integral_takes_out_the_sag():
    stand, sag = Stand(hip_height=0.5), {}
    for law in (JointPD(stand, kp=500.0, kd=20.0), JointPID(stand, kp=500.0, kd=20.0, ki=1000.0)):
        run = legged.simulate(QUADRUPED, law, ground=paper_ground(QUADRUPED), until=3.0)
        sag[type(law)] = np.abs(run.joint_positions[-1] - run.joints.reference[-1]).max()
        np.testing.assert_allclose(run.base.position[-1], (0, 0, 0.5), atol=0.05)
    assert sag[JointPID] < 0.1 * sag[JointPD]
