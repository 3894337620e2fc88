"""A tripod gait, a crawl and servos on the authors' ground."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import ComputedTorque, Crawl, JointPD, JointPID, Stand, Tripod
from legged.ground import paper_ground

QUADRUPED, HEXAPOD = robots.spatial_quadruped(), robots.hexapod()


def test_a_hexapod_walks_on_its_tripods():
    run = legged.simulate(HEXAPOD, ComputedTorque(Tripod()), ground=paper_ground(HEXAPOD), until=2.0)
    assert run.mean_velocity[0] == pytest.approx(0.8, rel=0.1)  # stride over period [m/s]
    np.testing.assert_allclose(run.base.position[:, 2], 0.55, atol=0.03)


@pytest.mark.slow
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
