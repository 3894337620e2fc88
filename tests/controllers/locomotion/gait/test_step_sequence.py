"""The next two steps of a robot on two feet: their footholds, and the motion of a pendulum over them."""

import numpy as np
import pytest

from controllers.locomotion.gait.schedule import ContactSchedule, GaitState
from controllers.locomotion.gait.step_sequence import StepSequence, beyond_soles

OMEGA, HEIGHT = 4.0, 0.6  # [1/s], [m]
STANCES = np.array([[0.0, 0.12], [0.0, -0.12]])  # [m]
SOLE = np.array([0.09, 0.03])  # [m]
SCHEDULE = ContactSchedule(0.9, 0.6, (0.0, 0.5))
PLACES = np.array([[0.3, 0.12], [0.15, -0.12]])  # [m], landing places on level ground


def sequence(phase):
    state = GaitState.standing(SCHEDULE)._replace(phase=phase, walking=1.0, planted=np.zeros(2))
    return StepSequence.of(state, STANCES, OMEGA, np.eye(2))


def chosen(steps, foothold, planned=None, **changes):
    planned = np.zeros((2, 2)) if planned is None else planned
    arguments = {"feet": np.array([[-0.15, 0.12], [0.0, -0.12]]), "last": PLACES, "progress": 0.1}
    return steps.chosen(
        foothold, PLACES, planned, **{**arguments, **changes}, extents=SOLE, height=HEIGHT, longest=0.45
    )


@pytest.mark.parametrize("phase", [0.02, 0.08, 0.3, 0.55, 0.8])
def test_the_response_is_the_motion_of_a_pendulum_over_displaced_footholds_that_stays_bounded(phase):
    steps, random = sequence(phase), np.random.default_rng(1)
    planned, begin = random.normal(0.0, 0.1, (2, 2, 2)), random.normal(0.0, 0.1, 2)
    response = steps.response(planned, begin)
    assert response.after(0.0)[0] == pytest.approx(begin)
    assert begin + response.after(0.0)[1] / OMEGA == pytest.approx(response.divergence)
    (first, second), rows = (0, 1) if steps.order[0] > 0.5 else (1, 0), planned
    lift_off, lands, second_lifts, second_lands, again = steps.times
    supports = [  # (until, displacement of the center of pressure)
        (lift_off, 0.5 * (rows[0, first] + rows[0, second])),
        (lands, rows[0, second]),
        (second_lifts, 0.5 * (rows[0, second] + rows[1, first])),
        (second_lands, rows[1, first]),
        (again, 0.5 * (rows[1, first] + rows[1, second])),
        (np.inf, rows[1, second]),
    ]
    step = 1e-4  # [s]
    for t in np.linspace(0.003, 1.5, 60):
        pressure = next(p for until, p in supports if t < until)
        (before, _), (now, velocity), (after, _) = (response.after(x) for x in (t - step, t, t + step))
        near_event = min(abs(t - event) for event in steps.times) < 2 * step
        assert velocity == pytest.approx((after - before) / (2 * step), abs=1e-5)
        acceleration = (after - 2 * now + before) / step**2
        assert near_event or acceleration == pytest.approx(OMEGA**2 * (now - pressure), abs=1e-4)
    assert response.after(10.0)[0] == pytest.approx(rows[1, second], abs=1e-9)


def test_the_next_foot_to_land_is_that_in_the_air_or_the_one_behind_that_lifts_off_first():
    order = {phase: sequence(phase).order.tolist() for phase in (0.02, 0.3, 0.52, 0.8)}
    assert order == {0.02: [0.0, 1.0], 0.3: [0.0, 1.0], 0.52: [1.0, 0.0], 0.8: [1.0, 0.0]}
    early = GaitState.standing(SCHEDULE)._replace(phase=0.9, walking=1.0, planted=np.array([1.0, 0.0]))
    assert StepSequence.of(early, STANCES, OMEGA, np.eye(2)).order.tolist() == [0.0, 1.0]  # foot 0 has landed early


def test_on_level_ground_steps_stay_at_their_places():
    assert chosen(sequence(0.7), lambda place: place) == pytest.approx(PLACES)


def test_steps_keep_off_a_gap_and_the_plan_of_the_step_before_decides_on_which_side():
    """Places between 0.14 and 0.42 m along x are not footholds: the foot lands 0.16 m behind or 0.12 m ahead."""

    def foothold(place):
        x, y = place
        return np.array([x if x <= 0.14 or x >= 0.42 else (0.14 if x < 0.28 else 0.42), y])

    steps = sequence(0.95)  # shortly before the touchdown of foot 0, when its landing place cannot change far
    for shift, x in ((-0.16, 0.14), (0.12, 0.42)):
        planned = np.array([[shift, 0.0], [0.0, 0.0]])
        places = chosen(steps, foothold, planned, last=PLACES + planned, progress=0.9)
        assert places[0] == pytest.approx([x, 0.12])
        assert places[1, 0] <= 0.14 or places[1, 0] >= 0.42


def test_successive_feet_do_not_cross():
    """A foothold across the other foot is nearer than one on its own side, and is not taken."""

    def foothold(place):
        return np.array([place[0], -0.16 if place[1] < 0.15 else 0.5])

    places = chosen(sequence(0.7), foothold)
    assert places[0, 1] == pytest.approx(0.5)


def test_the_displacement_of_a_step_is_planned_one_step_before_and_stays_in_its_swing():
    steps, last = sequence(0.7), np.zeros((2, 2, 2))  # foot 0 swings
    displacements, stance = np.array([[0.2, 0.0], [0.1, 0.05]]), np.array([0.0, 1.0])
    planned = steps.planned(last, displacements, stance, 0.2)
    assert planned[1].tolist() == [[0.0, 0.0], [0.1, 0.05]]
    after = sequence(0.02).planned(planned, np.array([[0.9, 0.0], [0.0, 0.3]]), np.ones(2), 0.2)
    assert after[1] == pytest.approx(np.array([[0.2, 0.0], [0.1, 0.05]]))  # the first is bounded, the second stays
    assert after[0].tolist() == planned[0].tolist()


def test_a_sole_removes_small_deviations_itself_and_less_of_them_late_in_a_swing():
    shift, axes = np.array([0.05, 0.02]), np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert beyond_soles(shift, OMEGA * sequence(0.62).times[1], SOLE, np.eye(2)) == pytest.approx([0.0, 0.0])
    late = OMEGA * sequence(0.97).times[1]
    left = shift - 0.6 * (np.exp(late) - 1.0) * SOLE
    assert (left > 0.0).all()
    assert beyond_soles(shift, late, SOLE, np.eye(2)) == pytest.approx(left)
    mirror = np.array([1.0, -1.0])  # of the heading axes: world axes have another sign
    assert axes @ beyond_soles(axes.T @ (mirror * shift), late, SOLE, axes) == pytest.approx(mirror * left)
