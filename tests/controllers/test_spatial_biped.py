"""The biped of Wendlandt 1997: its bodies, its numbers and the poses of its experiment."""

import numpy as np
import pytest

import legged
import robots
from controllers import WorkspaceBalance
from robots.bipeds import CROUCH, crouch

BIPED = robots.spatial_biped()


def soles(q):
    return legged.point_positions(BIPED, q, [(c.link, c.position) for c in BIPED.contacts])


def test_it_has_the_papers_bodies_joints_and_freedoms():
    assert len(BIPED.bodies) == len(BIPED.links) == 13 and BIPED.nv == 18
    assert [int(link.name.rsplit("_", 1)[1]) for link in BIPED.links] == list(range(1, 14))
    assert [int(joint.name.rsplit("_", 1)[1]) for joint in BIPED.joints] == list(range(2, 14))
    for joint in BIPED.connections:
        assert joint.joint.name.rsplit("_", 1)[1] == joint.child.rsplit("_", 1)[1]  # joint k carries body k
    assert all("left" in link.name for link in BIPED.links[1:7]) and all(
        "right" in link.name for link in BIPED.links[7:]
    )
    assert all(link.inertia.mass > 0.0 and np.linalg.eigvalsh(link.inertia.tensor)[0] > 0.0 for link in BIPED.links)
    assert BIPED.mass == pytest.approx(65.0)
    for first in (1, 7):  # three axes that meet in a hip, two in an ankle
        _, origins = legged.link_poses(BIPED, BIPED.neutral())
        assert np.ptp(origins[first : first + 3], axis=0).max() == 0.0
        assert np.ptp(origins[first + 4 : first + 6], axis=0).max() == 0.0


def test_the_papers_experiment_begins_with_flat_feet_just_over_the_ground():
    q, v = crouch(BIPED)
    R, origins = legged.link_poses(BIPED, q)
    assert origins[0] == pytest.approx([0.0, 0.0, 1.035]) and not v.any()
    assert BIPED.links[0].inertia.center == pytest.approx(np.zeros(3))  # the origin is the center of mass
    assert R[0][:, 2] == pytest.approx([np.sin(np.radians(5)), 0.0, np.cos(np.radians(5))])
    assert np.degrees(q[7:13]) == pytest.approx(CROUCH)
    assert R[6] == pytest.approx(np.eye(3), abs=1e-15) and R[12] == pytest.approx(np.eye(3), abs=1e-15)
    assert np.all((soles(q)[:, 2] > 0.0) & (soles(q)[:, 2] < 3e-3))
    knees, ankles = origins[[4, 10], 0], origins[[5, 11], 0]
    assert (knees > origins[[1, 7], 0]).all() and (knees > ankles).all()  # the knees point forward, to +x
    assert origins[1, 1] > 0.0 > origins[7, 1]  # the left hip is at +y


def test_the_set_point_is_reached_with_feet_where_they_are():
    """The set point at (1, 0, 114) cm, 15 degrees forward, is above the soles of the crouch."""
    law = WorkspaceBalance(position=(0.01, 0.0, 1.14), orientation=(0.99144486, 0.0, 0.13052619, 0.0))
    q, _ = law.initial_state(BIPED)
    assert q[:7] == pytest.approx([0.99144486, 0.0, 0.13052619, 0.0, 0.01, 0.0, 1.14], abs=1e-8)
    assert np.abs(soles(q)[:, 2]).max() < 1e-8
    assert np.degrees(q[10]) == pytest.approx(-47.3, abs=0.1)  # the knee is well bent, as figure 3 has it
    mass = legged.center_of_mass(BIPED, q)
    crouched = soles(crouch(BIPED).q)
    assert crouched[:, 0].min() < mass[0] < crouched[:, 0].max()
