"""Contact schedules of named gaits for any number of legs, their state over a horizon, transitions, start and stop."""

import numpy as np
import pytest

import legged
from controllers.locomotion.gait.schedule import GAITS, ContactSchedule, GaitState, contact_schedule
from controllers.locomotion.velocity_command import Command, command_within_reach
from legged.errors import DefinitionError, NotFiniteError, ShapeError, UnknownNameError

STEP = 0.004  # [s]
QUADRUPED = np.array([[0.2, 0.1], [0.2, -0.1], [-0.2, 0.1], [-0.2, -0.1]])  # front left, front right, rear left, right


def hips(n: int) -> np.ndarray:
    """Return the hips of n legs in pairs, left before right, from the rear to the front, (n, 2), [m]."""
    return np.array([[0.3 * (k // 2), 0.1 if k % 2 == 0 else -0.1] for k in range(n)])


def evolve(state, parameters, until, walk=1.0, touched=None, step=STEP):
    """Return the states at the ends of time steps."""
    states = []
    for _ in range(round(until / step)):
        contact = np.zeros(len(state.planted)) if touched is None else touched(state)
        state = state.advanced(step, walk, contact, parameters)
        states.append(state)
    return states


@pytest.mark.parametrize("name", sorted(GAITS))
@pytest.mark.parametrize("n", [1, 2, 4, 6, 8])
def test_each_foot_stands_for_its_duty_factor_in_every_cycle(name, n):
    schedule = contact_schedule(name, hips(n), 0.2)
    count = 60  # samples of a cycle
    step = schedule.period / count
    states = evolve(GaitState.standing(schedule), schedule.parameters, 4.0 * schedule.period, step=step)
    stance = np.array([state.stance for state in states])
    for cycle in (stance[-count:], stance[-2 * count : -count]):
        assert cycle.mean(axis=0) == pytest.approx(np.array(schedule.duty), abs=2.0 / count)


def test_a_command_changes_so_slowly_that_feet_lift_off_within_reach():
    schedule, dt, most = contact_schedule("walk", QUADRUPED, 0.2), 0.002, 0.2
    state = GaitState.standing(schedule)._replace(walking=1.0)
    last, wanted = np.array([0.1, 0.0, 0.0, 0.0, 0.0]), np.array([0.11, 0.002, 0.01, 0.001, 0.002])
    slow = command_within_reach(wanted, last, QUADRUPED, QUADRUPED, state, most, dt)
    share = (slow[:3] - last[:3]) / (wanted[:3] - last[:3])
    assert share == pytest.approx(np.full(3, share[0]))
    assert 0.05 < share[0] < 1.0
    assert list(slow[3:]) == list(wanted[3:])
    distances = []  # behind its place at lift-off, of each foot that stands, at this acceleration
    for place, left in zip(QUADRUPED, state.time_to_lift_off, strict=True):
        before, now = (c[:2] + c[2] * np.array([-place[1], place[0]]) for c in (last, slow))
        distances.append((before + 0.5 * (now - before) / dt * left) * left @ now / np.linalg.norm(now))
    assert max(distances) == pytest.approx(most)
    far = QUADRUPED - np.array([0.3, 0.0])  # out of reach: the robot starts slowly
    assert command_within_reach(wanted, last, QUADRUPED, far, state, most, dt)[0] == pytest.approx(0.1 + 0.05 * 0.01)
    brake = np.array([0.09, 0.0, 0.0, 0.0, 0.0])
    assert list(command_within_reach(brake, last, QUADRUPED, far, state, most, dt)) == pytest.approx(list(brake))


def test_feet_of_named_gaits_move_in_their_groups():
    expected = {
        "trot": [[0, 3], [1, 2]],
        "pace": [[0, 2], [1, 3]],
        "bound": [[0, 1], [2, 3]],
        "pronk": [[0, 1, 2, 3]],
    }
    for name, groups in expected.items():
        touchdowns = np.array(contact_schedule(name, QUADRUPED, 0.2).touchdowns)
        assert [list(np.flatnonzero(touchdowns == t)) for t in dict.fromkeys(touchdowns)] == groups
    order = np.argsort(contact_schedule("walk", QUADRUPED, 0.2).touchdowns)
    assert list(order) == [2, 0, 3, 1]  # lateral sequence: rear left, front left, rear right, front right
    tripods = np.array(contact_schedule("tripod", hips(6), 0.2).touchdowns)
    assert list(np.flatnonzero(tripods == 0.0)) == [0, 3, 4]
    assert contact_schedule("walk", hips(2), 0.2).touchdowns == (0.0, 0.5)


@pytest.mark.parametrize("second", [0.0, 1.0])
def test_a_walk_of_two_feet_begins_with_the_foot_on_the_side_to_which_it_goes(second):
    schedule = contact_schedule("walk", hips(2), 0.2)
    state = GaitState.standing(schedule)
    for walk in [0.0] * 3 + [1.0] * round(schedule.period / STEP):
        state = state.advanced(STEP, walk, [1.0, 1.0], schedule.parameters, second=second)
        if sum(state.stance) < 1.5:
            break
    assert state.stance[0] == second and state.stance[1] == 1.0 - second


@pytest.mark.parametrize("n", [4, 6])
def test_a_crawl_lifts_one_foot_at_a_time(n):
    schedule = contact_schedule("crawl", hips(n), 0.2)
    states = evolve(GaitState.standing(schedule), schedule.parameters, 2.0 * schedule.period)
    assert min(sum(state.stance) for state in states) == n - 1


@pytest.mark.parametrize("walk", [1.0, 0.0])
def test_the_forecast_agrees_with_what_follows(walk):
    schedule = contact_schedule("gallop", QUADRUPED, 0.2)
    states = evolve(GaitState.standing(schedule), schedule.parameters, 3.0 * schedule.period)
    for start in (states[20], states[-40], states[-17]):
        following = evolve(start, schedule.parameters, 0.6 * schedule.period, walk)
        start = start._replace(walking=walk)
        for k, state in list(enumerate(following))[::7]:
            if walk or not all(state.stance):
                ahead = (k + 1) * STEP
                assert start.stance_after(ahead) == state.stance or start.stance_after(ahead - 1e-6) == state.stance


@pytest.mark.parametrize("phase", [0.05, 0.4, 0.7, 0.95])
def test_swings_of_the_next_cycle_move_the_feet_that_do_not_stand(phase):
    schedule = ContactSchedule(0.8, 0.6, [0.0, 0.5])
    state = GaitState(phase, 1.0, np.zeros(2), schedule.period, np.array(schedule.duty), np.array(schedule.touchdowns))
    times = np.linspace(0.0, 0.799, 400)
    rows = np.array([state.swings_after(t) for t in times])  # (times, feet, swing, distance and rate)
    stance = np.array([state.stance_after(t) for t in times])
    assert np.all((rows[:, :, :, 1].sum(axis=2) > 0.0) <= (stance < 0.5))
    np.testing.assert_allclose(np.gradient(rows[..., 0], times, axis=0)[1:-1], rows[1:-1, ..., 1], atol=0.05)
    assert rows[-1, :, :, 0].sum(axis=1) - rows[0, :, :, 0].sum(axis=1) == pytest.approx(1.0, abs=1e-2)


def test_a_foot_that_is_planted_makes_its_next_swing_alone():
    schedule = ContactSchedule(0.8, 0.6, [0.0, 0.5])
    state = GaitState.standing(schedule)._replace(walking=1.0)
    waits = int(np.argmax(np.array(state.local) > state.duty))
    first = np.array([state.swings_after(t)[waits][0] for t in np.linspace(0.0, 0.799, 50)])
    assert not first.any()


def test_times_to_touchdown_and_lift_off_are_those_of_the_next_change():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)
    states = evolve(GaitState.standing(schedule), schedule.parameters, 3.0 * schedule.period)
    stance = np.array([state.stance for state in states])
    start = len(states) // 2
    for foot in range(4):
        change = start + int(np.argmax(stance[start:, foot] != stance[start, foot]))
        at = states[start]
        expected = at.time_to_lift_off[foot] if stance[start, foot] else at.time_to_touchdown[foot]
        assert (change - start) * STEP == pytest.approx(expected, abs=1.01 * STEP)


def test_a_stopped_robot_puts_down_all_feet_and_starts_again():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)
    moving = evolve(GaitState.standing(schedule), schedule.parameters, 2.3 * schedule.period)
    stopping = evolve(moving[-1], schedule.parameters, 1.5 * schedule.period, walk=0.0)
    assert not all(moving[-1].stance)
    assert all(stopping[-1].stance) and stopping[-1].phase == stopping[-2].phase
    lifted = np.array([state.stance for state in stopping])
    assert (np.diff(lifted, axis=0) >= 0.0).all()  # no foot lifts off
    again = evolve(stopping[-1], schedule.parameters, 1.0 * schedule.period)
    first = next(k for k, state in enumerate(again) if not all(state.stance))
    assert first * STEP == pytest.approx(0.2 * schedule.period, abs=2.0 * STEP)
    assert again[first].stance.count(0.0) == 2  # a diagonal pair lifts off first


def test_two_feet_shift_the_weight_for_longer_before_the_first_step():
    schedule = contact_schedule("walk", hips(2), 0.2)
    states = evolve(GaitState.standing(schedule), schedule.parameters, 1.0 * schedule.period)
    first = next(k for k, state in enumerate(states) if not all(state.stance))
    assert first * STEP == pytest.approx(0.35 * schedule.period, abs=2.0 * STEP)


def test_contact_in_the_second_half_of_a_swing_ends_it():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)

    def touches_late(state):
        return [1.0 if progress > 0.8 else 0.0 for progress in state.swing_progress]

    states = evolve(GaitState.standing(schedule), schedule.parameters, 4.0 * schedule.period, touched=touches_late)
    count = round(schedule.period / STEP)
    stance = np.array([state.stance for state in states[-count:]]).mean(axis=0)
    assert stance == pytest.approx(0.5 + 0.2 * 0.5, abs=2.0 / count)  # the last fifth of the swings becomes stance


def test_contact_in_the_first_half_of_a_swing_does_not_end_it():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)

    def scuffs(state):
        return [1.0 if 0.0 < progress < 0.48 else 0.0 for progress in state.swing_progress]

    start = GaitState.standing(schedule)
    touched, free = (evolve(start, schedule.parameters, schedule.period * 2.0, touched=x) for x in (scuffs, None))
    assert [state.stance for state in touched] == [state.stance for state in free]
    assert any(max(scuffs(state)) for state in touched)


def test_no_foot_lifts_off_while_another_has_not_touched_down_until_patience_ends():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)
    start = evolve(GaitState.standing(schedule), schedule.parameters, 1.3 * schedule.period)[-1]
    swings = [k < 0.5 for k in start.stance]
    late = swings.index(True)
    left, patience = start.time_to_touchdown[late], 0.1  # [s]

    def stance(found_at, rising=lambda t: 0.0):
        state, actual = start, []
        for k in range(round((left + 0.2) / STEP)):
            touched = [1.0 if not swings[i] or i != late or k * STEP > left + found_at else 0.0 for i in range(4)]
            touched = [1.0 if state.swing_progress[i] > 0.9 and i != late else c for i, c in enumerate(touched)]
            state = state.advanced(STEP, 1.0, touched, schedule.parameters, patience, rising(k * STEP))
            actual.append(state.stance)
        return np.array(actual) > 0.5

    for found_at, expected in ((0.05, 0.05), (1.0, patience)):
        lifts = np.argmax(~stance(found_at)[:, swings.index(False)]) * STEP - left
        assert lifts == pytest.approx(expected, abs=3.0 * STEP)
    lifts = np.argmax(~stance(-0.02, lambda t: float(t < 0.08))[:, swings.index(False)]) * STEP - left
    assert lifts == pytest.approx(0.08, abs=3.0 * STEP)  # a foot rises over an obstacle for 80 ms


@pytest.mark.parametrize("after", ["walk", "bound", "pace"])
def test_a_transition_reaches_the_new_gait_without_turning_back_a_phase(after):
    first, second = (contact_schedule(name, QUADRUPED, 0.2) for name in ("trot", after))
    states = evolve(evolve(GaitState.standing(first), first.parameters, 1.0)[-1], second.parameters, 5.0)
    assert states[-1].flat()[-9:] == pytest.approx(second.parameters, abs=1e-9)
    local = np.array([state.local for state in states])
    advance = (np.diff(local, axis=0) + 0.5) % 1.0 - 0.5
    assert (advance > 0.0).all()
    stance = np.array([state.stance for state in states])
    for foot in range(4):
        swings = np.diff(np.flatnonzero(np.diff(stance[:, foot]) != 0)) * STEP
        assert swings.min() > 0.1  # [s], no foot taps


def test_the_period_becomes_shorter_at_once_and_longer_slowly():
    schedule = contact_schedule("trot", QUADRUPED, 0.2)
    fast = np.concatenate([[0.5 * schedule.period], schedule.parameters[1:]])
    state = evolve(GaitState.standing(schedule), schedule.parameters, schedule.period)[-1]
    short = evolve(state, fast, 0.05)[-1]
    assert short.period == pytest.approx(0.5 * schedule.period)
    longer = evolve(short, schedule.parameters, 0.2)[-1]
    assert longer.period == pytest.approx(0.5 * schedule.period + 0.1)  # [s], at 0.5 s/s


def test_a_traced_schedule_computes_the_same_numbers():
    schedule = contact_schedule("walk", QUADRUPED, 0.2)

    def law(flat, walk, parameters):
        state = GaitState.of(flat).advanced(STEP, walk, np.zeros(4), parameters)
        return np.concatenate([state.flat(), np.stack(state.stance_after(0.2)), np.stack(state.time_to_lift_off)])

    kernel = legged.compile(law, flat=GaitState.size(4), walk=(), parameters=9)
    flat = GaitState.standing(schedule).flat()
    for k in range(300):
        values = law(flat, float(k < 200), schedule.parameters)
        assert kernel(flat, float(k < 200), schedule.parameters) == pytest.approx(values, abs=1e-12)
        flat = values[: GaitState.size(4)]


def test_impossible_schedules_are_refused():
    with pytest.raises(DefinitionError, match="duty factors"):
        ContactSchedule(0.5, 1.2, (0.0, 0.5))
    with pytest.raises(ShapeError, match="one for each foot"):
        ContactSchedule(0.5, (0.5, 0.5, 0.5), (0.0, 0.5))
    with pytest.raises(UnknownNameError, match="trott"):
        contact_schedule("trott", QUADRUPED, 0.2)


def test_commands_are_numbers_or_functions_of_time():
    command = Command(vx=lambda t: 0.5 * t, yaw_rate=0.3)
    assert command(2.0) == pytest.approx([1.0, 0.0, 0.3, 0.0, 0.0, 0.0, 0.0])
    assert not command.is_constant and Command(vx=1.0).is_constant
    with pytest.raises(NotFiniteError):
        Command(vx=np.nan)


@pytest.mark.parametrize("phase", [0.0, 0.1, 0.3, 0.45, 0.65, 0.8, 0.95])
def test_the_middle_of_a_stance_is_as_far_from_its_touchdown_as_from_its_lift_off(phase):
    state = GaitState.standing(contact_schedule("walk", hips(2), 0.3))
    state = state._replace(phase=phase, walking=1.0, planted=np.zeros(2))
    for i, time in enumerate(state.until_middle):
        duty, period = state.duty[i], state.period
        assert -0.5 * duty * period - 1e-12 <= time <= (1.0 - 0.5 * duty) * period + 1e-12
        middle = (phase + time / period - state.touchdowns[i]) % 1.0
        assert middle == pytest.approx(0.5 * duty, abs=1e-12)
