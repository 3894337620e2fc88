"""Lying robots turn over: they roll to a minimum of their potential energy, and push in every second attempt."""

import numpy as np
import pytest

import controllers
import robots
from controllers.locomotion.falls.recovery import FOLDS, TURNS
from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import folded_posture
from legged.algorithms.legs.turning import turning_postures
from legged.environments.tasks.standing_up import with_body_contacts
from legged.rotations import axis_quaternion


@pytest.fixture(scope="module")
def lying():
    robot = with_body_contacts(robots.spatial_quadruped())
    home = controllers.home_of(robot)
    folded = folded_posture(robot, home)
    return robot, home, folded, turning_postures(robot, home, folded)


def test_postures_are_within_the_limits_and_chosen_by_the_vertical_direction(lying):
    robot, _, _, turning = lying
    lower, upper = inner_limits(robot)
    assert (turning.postures >= lower - 1e-9).all()
    assert (turning.postures <= upper + 1e-9).all()
    np.testing.assert_allclose(np.linalg.norm(turning.directions, axis=1), 1.0, rtol=1e-12)
    assert not turning.pushes.all()
    for number, (direction, pushes) in enumerate(zip(turning.directions, turning.pushes, strict=True)):
        assert turning.number(direction, float(pushes)) == number
        assert turning.is_push(float(number)) == pushes


def test_every_second_attempt_pushes(lying):
    robot, _, _, turning = lying
    law = controllers.Recovery(controllers.Locomotion("trot"))
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    wrenches = np.zeros((len(robot.links), 6))
    on_back = np.concatenate([axis_quaternion("x", 3.1), [0.0, 0.0, 0.1], q[7:]])
    for turns, pushes in ((0.0, False), (1.0, True), (1.75, True), (2.0, False)):
        memory[:4] = FOLDS, 0.0, turns, 0.0
        after = started.update(50.0, 0.0, on_back, v, wrenches, memory)
        assert started.mode(after) == "turns over"
        assert turning.pushes[int(after[3])] == pushes
    memory[:4] = TURNS, 0.0, 0.0, 0.0
    upright = np.concatenate([axis_quaternion("x", 0.1), on_back[4:]])
    assert started.mode(started.update(0.01, 0.0, upright, v, wrenches, memory)) == "folds its legs"


def test_a_robot_without_contact_points_on_its_trunk_only_pushes(lying):
    _, home, folded, turning = lying
    bare = robots.spatial_quadruped()
    assert turning_postures(bare, home, folded).pushes.all()
    np.testing.assert_allclose(
        turning_postures(bare, home, folded).postures, turning.postures[turning.pushes], atol=1e-9
    )
