"""Lying robots turn over by motions that simulations at the start have found."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers.locomotion.falls.recovery import FOLDS, TURNS
from controllers.locomotion.falls.turning import UPRIGHT, bounding_inertias
from legged.algorithms.legs.posture_search import inner_limits
from legged.algorithms.legs.standing import folded_posture
from legged.algorithms.legs.turning_postures import turning_postures
from legged.dynamics.inertia import inertia_matrix
from legged.environments.tasks.standing_up import with_body_contacts
from legged.rotations import axis_quaternion


@pytest.fixture(scope="module")
def lying():
    """Return a robot, its started law, its memory, and a configuration on its back."""
    robot = with_body_contacts(robots.spatial_quadruped())
    law = controllers.Recovery(controllers.Locomotion("trot"))
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    on_back = np.concatenate([axis_quaternion("x", 3.1), [0.0, 0.0, 0.8], q[7:]])
    return robot, started, memory, on_back


def test_candidates_have_legs_at_equal_steps_between_their_limits_or_folded():
    robot = robots.spatial_quadruped()
    home = controllers.home_of(robot)
    folded = folded_posture(robot, home)
    lower, upper = inner_limits(robot)
    postures = turning_postures(robot, home, folded, 40)
    assert postures.shape == (40, robot.nj)
    steps = np.linspace(np.maximum(lower, home.angles - 3.3), np.minimum(upper, home.angles + 3.3), 4)
    assert np.abs(postures - np.array([*steps, folded])[:, None]).min(axis=0).max() < 1e-12
    first = list(home.legs[0].columns)  # others are alike as well as their joints allow
    at_ends = (np.abs(postures - np.array([steps[0], steps[-1]])[:, None]).min(axis=0) < 1e-12)[:, first].all(axis=1)
    assert 8 < at_ends.sum() < 30
    for side in (1.0, -1.0):  # some have all legs of one side folded
        columns = [column for leg in home.legs if side * leg.hip[1] > 0.0 for column in leg.columns]
        assert 2 < (postures == folded)[:, columns].all(axis=1).sum() < 38


def test_motions_are_chosen_by_the_vertical_direction_and_the_attempt(lying):
    _, started, _, _ = lying
    turning = started._turning
    np.testing.assert_allclose(np.linalg.norm(turning.directions, axis=1), 1.0, rtol=1e-6)
    for number, (direction, alternative) in enumerate(zip(turning.directions, turning.alternative, strict=True)):
        assert turning.number(direction, float(alternative)) == number


def test_both_postures_of_a_motion_follow_one_another_and_then_the_legs_fold(lying):
    robot, started, memory, on_back = lying
    memory, wrenches = memory.copy(), np.zeros((len(robot.links), 6))
    for attempts in (0.0, 1.0):
        memory[:4] = FOLDS, 0.0, attempts, 0.0
        first = started.update(50.0, 0.0, on_back, np.zeros(robot.nv), wrenches, memory)
        assert started.mode(first) == "turns over"
        assert started._turning.alternative[int(first[3]) // 2] == attempts
        assert first[2] == attempts + 1.0
        second = started.update(100.0, 0.0, on_back, np.zeros(robot.nv), wrenches, first)
        assert (started.mode(second), second[3]) == ("turns over", first[3] + 1.0)
        assert (
            started.mode(started.update(150.0, 0.0, on_back, np.zeros(robot.nv), wrenches, second)) == "folds its limbs"
        )
    memory[:4] = TURNS, 0.0, 0.0, 2.0
    upright = np.concatenate([axis_quaternion("x", 0.1), on_back[4:]])
    assert started.mode(started.update(50.0, 0.0, upright, np.zeros(robot.nv), wrenches, memory)) == "folds its limbs"


def test_damping_is_stable_in_all_postures_of_the_motions(lying):
    """With explicit time steps of the length h a damping D diverges where an eigenvalue of h M^-1 D is above 2.

    A limit by the inertia in the standing posture alone lets the legs of Solo12 and Mini Cheetah diverge.
    """
    robot, started, _, _ = lying
    postures = [*started._postures, *started._turning.postures.reshape(-1, robot.nj)]
    inertias, rate = bounding_inertias(robot, postures), started._walking.sampling_rate
    for angles in postures:
        M_inverse = np.linalg.inv(inertia_matrix(robot, np.concatenate([robot.base.neutral(), angles])))[6:, 6:]
        assert np.linalg.eigvals(M_inverse * inertias).real.max() <= 1.0 + 1e-9
        assert np.linalg.eigvals(M_inverse * started._damping).real.max() <= rate * (1.0 + 1e-9)


def test_a_robot_turns_from_its_back_and_its_sides_onto_its_belly(lying):
    """The simulations at the start have time steps four times as long, float32 numbers and implicit servos."""
    robot, _, _, on_back = lying
    rotations = [axis_quaternion(axis, angle) for axis, angle in (("x", 3.1), ("x", 1.6), ("x", -1.6), ("y", 1.6))]
    q = np.repeat(on_back[None], 4, axis=0)
    q[:, :4] = rotations
    law = controllers.Recovery(controllers.Locomotion("trot"))
    runs = legged.rollout(
        robot,
        law,
        ground=legged.Rigid(friction=0.6),
        q=q,
        v=np.zeros(robot.nv),
        until=8.0,
        fall=False,
        integrator=legged.TimeStepping(1e-3),
        sample=0.1,
    )
    for run in runs.q:
        assert robot.base.pose(run[-1, :7])[0][2, 2] > UPRIGHT
