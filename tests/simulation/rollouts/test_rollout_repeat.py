"""The compiled time loop: number of steps, stored samples, and failures confined to their lane."""

import numpy as np
import pytest

from legged import where
from legged.compiler import (
    CODES_ONLY,
    ENDED,
    EXCEEDED,
    FLOAT32,
    FLOAT64,
    NOT_FINITE,
    Comparison,
    Members,
    Schedule,
    TimeLoop,
)
from legged.errors import TraceError

H, STEPS, SAMPLES = 1e-2, 25, 4


def pendulum(clock, parameters, state):
    """One semi-implicit step of a pendulum; it has a termination code above 2 rad, and no solution above 3 rad."""
    _, h, number = clock
    rate = state[1] - h * parameters[0] * np.sin(state[0]) + 0.0 * number
    angle = state[0] + h * rate
    return np.stack([angle, rate + 1e-30 * np.sqrt(3.0 - angle)]), where(angle > 2.0, 1.0, 0.0)


@pytest.fixture(scope="module")
def loop():
    return TimeLoop.of(pendulum, parameters=1, size=2)


def schedule():
    pieces = [[(k - 1) * STEPS * H, H, STEPS if k else 0, 0.0] for k in range(SAMPLES + 1)]
    return Schedule(np.array([pieces]), np.arange(SAMPLES + 1))


def start(count, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.5, 0.5, (count, 2)), rng.uniform(1.0, 2.0, (count, 1))


def run(loop, state, parameters, plan=None, threads=1):
    members = Members.at(state, SAMPLES + 1)
    loop.run(members, parameters, schedule() if plan is None else plan, threads)
    return members


def plain(state, g):
    rows = [state]
    for k in range(SAMPLES * STEPS):
        state, _ = pendulum((k * H, H, 0.0), g, state)
        if (k + 1) % STEPS == 0:
            rows.append(state)
    return np.array(rows)


@pytest.mark.parametrize("count", [1, 2, 8, 21])
def test_stored_states_are_those_of_a_plain_loop(loop, count):
    state, parameters = start(count)
    members = run(loop, state, parameters)
    expected = np.array([plain(*member) for member in zip(state, parameters, strict=True)])
    assert np.abs(members.stored - expected).max() < 1e-14  # 100 steps' rounding
    assert (members.outcome == [0.0, 0.0, SAMPLES + 1]).all()
    assert (members.state == members.stored[:, -1]).all()


@pytest.mark.parametrize("element", [FLOAT64, FLOAT32], ids=str)
@pytest.mark.parametrize("count", [1, 2, 8, 21])
def test_the_last_parameters_may_lie_in_another_array(count, element):
    """Numbers of columns below, at and above half of the vector's lanes, which are copied in different ways."""

    def step(clock, parameters, state):
        return state + clock[1] * np.arange(1.0, 20.0) @ parameters, 0.0

    loop = TimeLoop.of(step, parameters=19, size=1, element=element)
    parameters = np.random.default_rng(count).standard_normal((count, 19)).astype(element.dtype)
    ends = []
    for command in (0, 1, 4, 12, 18, 19):
        members = Members.at(np.zeros((count, 1)), SAMPLES + 1, element.dtype)
        own, last = np.split(parameters, [19 - command], axis=1)
        loop.run(members, own, schedule(), 1, np.ascontiguousarray(last))
        ends.append(members.state)
    assert (np.array(ends) == ends[0]).all()
    exact = H * STEPS * SAMPLES * parameters.astype(float) @ np.arange(1.0, 20.0)
    np.testing.assert_allclose(ends[0][:, 0], exact, rtol=1e3 * element.epsilon, atol=1e3 * element.epsilon)
    with pytest.raises(ValueError, match="expected"):
        loop.run(members, parameters, schedule(), 1, np.zeros((count, 1)))


def test_a_member_does_not_depend_on_its_batch_its_place_or_the_threads(loop):
    state, parameters = start(37)
    whole = run(loop, state, parameters, threads=1).stored
    assert (run(loop, state, parameters, threads=3).stored == whole).all()
    for first, end in ((0, 1), (3, 5), (20, 37)):
        assert (run(loop, state[first:end], parameters[first:end]).stored == whole[first:end]).all()


def test_damage_stays_in_its_lane(loop):
    state, parameters = start(11)
    whole = run(loop, state, parameters).stored
    hurt = parameters.copy()
    hurt[4] = np.nan
    hurt[9] = 1e300
    members = run(loop, state, hurt)
    others = [i for i in range(11) if i not in (4, 9)]
    assert (members.stored[others] == whole[others]).all()
    assert (members.outcome[[4, 9], 0] == NOT_FINITE).all()
    assert members.outcome[4, 1] == 0.0 and members.outcome[4, 2] == 1  # ended in its first step, after one sample


def test_judged_where_states_are_stored_and_ended_where_there_is_no_next(loop):
    state = np.array([[0.0, 0.1], [1.9, 0.5], [0.0, 9.0], [0.0, 2.4]])
    members = run(loop, state, np.array([[1.0], [0.0], [0.0], [0.0]]))
    code, when, rows = members.outcome.T
    # the third is over 2 rad at 0.25 s, before it would pass 3 rad; the last is over 2 rad at the end only
    np.testing.assert_array_equal(code, [0.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(rows, [SAMPLES + 1, 2, 2, SAMPLES + 1])
    assert (when == 0.0).all()
    faster = run(loop, np.array([[0.0, 15.0]]), np.zeros((1, 1)))  # 3 rad at 0.2 s, before the first sample
    assert faster.outcome[0, 0] == NOT_FINITE
    assert faster.outcome[0, 1] == pytest.approx(0.2, abs=1.1 * H)  # the step that would pass 3 rad begins here


def test_pieces_may_differ_between_members(loop):
    state, parameters = start(9)
    plan = np.repeat(schedule().intervals, 9, axis=0)
    for i in range(9):
        plan[i, 1, 1:3] = H * STEPS / (STEPS + i), STEPS + i
    members = run(loop, state, parameters, Schedule(plan, schedule().samples))
    for i in range(9):
        alone = run(loop, state[i : i + 1], parameters[i : i + 1], Schedule(plan[i : i + 1], schedule().samples))
        assert (alone.stored[0] == members.stored[i]).all()


def test_a_run_in_two_parts_is_the_same_run(loop):
    state, parameters = start(9)
    whole, parts = run(loop, state, parameters), Members.at(state, SAMPLES + 1)
    for first, end in ((0, 2), (2, SAMPLES + 1)):
        loop.run(parts, parameters, schedule().part(first, end), 1)
    assert (parts.stored == whole.stored).all() and (parts.outcome == whole.outcome).all()


def test_what_is_no_step_is_refused():
    with pytest.raises(TraceError, match="a step takes clock"):
        TimeLoop.of(lambda clock, parameters, state: (state[:1], 0.0), 0, 2)


@pytest.mark.parametrize(("count", "threads"), [(1, 1), (21, 1), (21, 2)])
def test_a_call_compares_final_states_with_a_bound(loop, count, threads):
    state, parameters = start(count)
    members, own = Members.at(state, 1), Schedule(np.array([[[0.0, H, 1.0, 0.0]]]), np.array([CODES_ONLY]))

    def result(bound, first=1, n=1):
        members.state[:], members.outcome[:] = state, 0.0
        return loop.prepared(members, parameters, own, comparison=Comparison(first, n, bound))(threads)

    assert result(0.0, n=0) == -1
    size = float(np.abs(members.state[:, 1]).max())
    assert result(size) == -1 and result(np.nextafter(size, 0.0)) == EXCEEDED
    assert result(np.abs(members.state[:, 0]).max(), first=0) == -1
    state[-1] = np.nan, 0.0  # this member ends
    assert result(np.inf) == ENDED
