"""Postures in which a robot with two legs and two arms rises from its front."""

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from legged.algorithms.legs.posture_search import joint_limits
from legged.algorithms.legs.rising import arms_of, limb_ends, rising_postures
from legged.dynamics.kinematics import center_of_mass, link_poses, point_positions
from legged.errors import DefinitionError

G1 = all_urdfs().get("g1/g1_29dof_rev_1_0")
needs_g1 = pytest.mark.skipif(G1 is None, reason="example_robot_data, of the extra test, is not installed")


@needs_g1
def test_the_squat_has_level_soles_under_the_center_of_mass_within_the_limits():
    robot = legged.load(G1)
    home = controllers.home_of(robot)
    rising = rising_postures(robot, home)
    lower, upper = joint_limits(robot)
    for angles in (*rising.postures, *rising.turns):
        assert (angles >= lower).all() and (angles <= upper).all()
    q = np.concatenate([robot.base.neutral(), rising.postures[-1]])
    rotations, _ = link_poses(robot, q)
    up = rotations[home.legs[0].link][:, 2]  # normal of the sole of G1
    toes, heels = point_positions(robot, q, rising.toes), point_positions(robot, q, rising.heels)
    heights = np.concatenate([toes, heels]) @ up
    assert np.ptp(heights) < 5e-3  # [m], of legs of 0.7 m; the residual of weighted least squares
    ahead = (toes - heels).mean(axis=0)
    share = (center_of_mass(robot, q) - heels.mean(axis=0)) @ ahead / (ahead @ ahead)
    assert share == pytest.approx(0.85, abs=0.05)  # 0.15 of the soles behind the toes


@needs_g1
def test_the_postures_that_turn_over_are_mirror_images():
    robot = legged.load(G1)
    home = controllers.home_of(robot)
    rising, arms = rising_postures(robot, home), arms_of(robot, home)
    hands = [(arm.hand, arm.end) for arm in arms]
    for one, other in (rising.turns[:2], rising.turns[2:]):
        left, right = (point_positions(robot, np.concatenate([robot.base.neutral(), x]), hands) for x in (one, other))
        np.testing.assert_allclose(left * [1.0, -1.0, 1.0], right[::-1], atol=0.01)  # [m], of arms of 0.55 m


def test_the_end_of_a_uniform_rod_is_its_end():
    rod = legged.Link("rod", legged.rod_inertia(1.0, (0, 0, 0), (0, 0, -0.4)))
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase())
    robot = builder.add(legged.Revolute("joint", "y"), rod, to="base").build()
    np.testing.assert_allclose(limb_ends(robot)[robot.link("rod").index], [0.0, 0.0, -0.4], atol=1e-12)


@needs_g1
def test_weak_arms_are_refused():
    robot = legged.load(G1)
    weak = robot.edit().change_joint("left_elbow_joint", effort=5.0).build()
    with pytest.raises(DefinitionError, match="too weak to push it up: a joint has 5 N m"):
        rising_postures(weak, controllers.home_of(weak))


def with_stiff_legs(bend):
    """Return G1 with hips and knees that bend by some angle, [rad]."""
    stiff = legged.load(G1).edit()
    for side in ("left", "right"):
        stiff = stiff.change_joint(f"{side}_hip_pitch_joint", lower=-bend).change_joint(
            f"{side}_knee_joint", upper=bend
        )
    return stiff.build()


@needs_g1
def test_a_robot_with_a_high_squat_rises_over_its_hands():
    """Soles level, hands on the ground, the center of mass over the soles; then the trunk rises over the same soles."""
    robot = with_stiff_legs(2.3)
    home = controllers.home_of(robot)
    rising, arms = rising_postures(robot, home), arms_of(robot, home)
    assert rising.over_hands is not None
    lower, upper = joint_limits(robot)
    soles = [(c.link, c.position) for c in (robot.contact(name) for leg in home.legs for name in leg.contacts)]
    hands = [(arm.hand, arm.end) for arm in arms]
    inclinations = []
    for k, angles in enumerate(rising.over_hands):
        assert (angles >= lower).all() and (angles <= upper).all()
        q = np.concatenate([robot.base.neutral(), angles])
        rotations, _ = link_poses(robot, q)
        up = np.mean([rotations[leg.link][:, 2] for leg in home.legs], axis=0)  # normals of the soles of G1
        heights = point_positions(robot, q, soles) @ up
        assert np.ptp(heights) < 0.03  # [m], of legs of 0.7 m; the residual of weighted least squares
        above = point_positions(robot, q, hands) @ up - heights.mean()
        if k < 2:
            np.testing.assert_allclose(above, (0.0, 0.035)[k], atol=0.06)  # [m], 0 and 0.05 of the legs
        else:
            assert (above > 0.4).all()
        if k > 0:  # with hands that are far ahead the soles of G1 point inward
            toes, heels = point_positions(robot, q, rising.toes), point_positions(robot, q, rising.heels)
            ahead = (toes - heels).mean(axis=0)
            share = (center_of_mass(robot, q) - heels.mean(axis=0)) @ ahead / (ahead @ ahead)
            assert share == pytest.approx((0.8, 0.7, 0.6, 0.55)[k], abs=0.01)
        inclinations.append(np.arctan2(-up[0], up[2]))
    np.testing.assert_allclose(inclinations[2:], (1.2, 0.8), atol=0.01)  # [rad]


@needs_g1
def test_a_robot_with_a_low_squat_rises_from_its_heels():
    robot = legged.load(G1)
    assert rising_postures(robot, controllers.home_of(robot)).over_hands is None


@needs_g1
def test_a_robot_whose_hips_bend_too_little_for_a_squat_is_refused():
    """With hips and knees that bend by 1.5 rad it would fall forward."""
    robot = with_stiff_legs(1.5)
    with pytest.raises(DefinitionError, match="squat"):
        rising_postures(robot, controllers.home_of(robot))


def test_a_robot_without_arms_is_refused():
    robot = robots.spatial_biped()
    with pytest.raises(DefinitionError, match="has no"):
        rising_postures(robot, controllers.home_of(robot))
