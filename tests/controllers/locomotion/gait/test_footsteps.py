"""Landing places on the linear inverted pendulum, the plane of the feet, and swing paths."""

from dataclasses import replace

import numpy as np
import pytest

from controllers.locomotion.gait.footholds import away_from_edges, terrain_heights
from controllers.locomotion.gait.footsteps import FootstepLaw, Sway, plane_of
from controllers.locomotion.gait.schedule import ContactSchedule, GaitState, contact_schedule, foot_rows
from controllers.locomotion.gait.swing import moved_target
from controllers.locomotion.motion import BodyReference
from legged.ground import Slope, Stairs

OMEGA = 5.5  # [1/s], of a quadruped of 0.32 m
CYCLE = 50  # time steps of a cycle
FEET = {
    2: np.array([[0.0, 0.06], [0.0, -0.06]]),
    4: np.array([[0.2, 0.14], [0.2, -0.14], [-0.2, 0.14], [-0.2, -0.14]]),
    6: np.array([[x, y] for x in (-0.25, 0.0, 0.25) for y in (0.15, -0.15)]),
}
HEADING = np.eye(2)


def law(n: int) -> FootstepLaw:
    places = FEET[n]
    rows = foot_rows(places)
    neighbors = tuple(rows.index((row, 1 - side)) for row, side in rows)
    hips = np.column_stack([places, np.zeros(n)])
    return FootstepLaw(places, hips, np.full(n, 0.4), neighbors, OMEGA)


def walked(name, n, velocity, yaw_rate=0.0, push=0.0, cycles=8):
    """Return (positions, velocities, headings and feet of a pendulum over feet that follow the law, time step [s]).

    The center of pressure is the mean of the feet that stand, so that only stepping balances. The push changes the
    velocity sideways after the first half of the time.
    """
    steps, schedule = law(n), contact_schedule(name, FEET[n], 1.0 / OMEGA)
    if name == "walk":  # no time with both feet on the ground, in which the law expects the center of pressure to act
        schedule = ContactSchedule(schedule.period, 0.5, schedule.touchdowns)
    state, step = GaitState.standing(schedule), schedule.period / CYCLE
    feet = np.column_stack([FEET[n], np.zeros(n)])
    c, rate, turn, positions = np.zeros(2), np.zeros(2), 0.0, []
    for k in range(cycles * CYCLE):
        following = state.advanced(step, 1.0, np.zeros(n), schedule.parameters)
        lands = [i for i, (a, b) in enumerate(zip(state.stance, following.stance, strict=True)) if a < b]
        if lands:
            forward = np.array([np.cos(turn), np.sin(turn)])
            heading = np.array([forward, [-forward[1], forward[0]]])
            landings = steps.landing(state, feet, c + rate / OMEGA, heading, np.array(velocity), yaw_rate)
            feet[lands, :2] = np.array(landings.places)[lands]
        state = following
        stance = np.array(state.stance)
        pressure = stance @ feet[:, :2] / stance.sum() if stance.any() else c
        rate = rate + step * OMEGA**2 * (c - pressure)
        c, turn = c + step * rate, turn + step * yaw_rate
        if k == cycles * CYCLE // 2:
            rate = rate + np.array([0.0, push])
        positions.append([*c, *rate, turn, *feet[:, :2].ravel()])
    return np.array(positions), step


@pytest.mark.parametrize(
    ("name", "n", "velocity"),
    [
        ("walk", 2, (0.3, 0.0)),
        ("trot", 4, (0.3, 0.4)),
        ("pace", 4, (0.5, 0.0)),
        ("bound", 4, (0.8, 0.0)),
    ],
)
def test_a_pendulum_that_steps_by_the_law_moves_at_the_commanded_velocity_after_a_push(name, n, velocity):
    positions, step = walked(name, n, velocity, push=0.15)
    mean = (positions[-1, :2] - positions[-1 - CYCLE, :2]) / (CYCLE * step)
    assert mean == pytest.approx(velocity, abs=0.06)  # [m/s]; without control of the pressure


def test_feet_of_a_turning_pendulum_stay_under_its_body():
    positions, _ = walked("trot", 4, (0.3, 0.0), yaw_rate=1.0)
    for c, turn, feet in zip(positions[-100:, :2], positions[-100:, 4], positions[-100:, 5:], strict=True):
        R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        assert np.abs((feet.reshape(-1, 2) - c) @ R - FEET[4]).max() < 0.2  # [m], half a stride and the turn


@pytest.mark.parametrize(("name", "n"), [("walk", 2), ("trot", 4)])
def test_a_pendulum_that_turns_does_not_drift_out_of_the_curve(name, n):
    velocities = {}
    for yaw_rate in (0.0, 1.0):  # [rad/s]
        late = walked(name, n, (0.3, 0.0), yaw_rate, cycles=16)[0][-4 * CYCLE :]
        c, s = np.cos(late[:, 4]), np.sin(late[:, 4])
        along, left = c * late[:, 2] + s * late[:, 3], c * late[:, 3] - s * late[:, 2]
        velocities[yaw_rate] = np.array([along.mean(), left.mean()])
    assert velocities[1.0] == pytest.approx(velocities[0.0], abs=0.02)  # [m/s]; a drift by 0.08 m/s without the terms


def test_the_periodic_motion_of_a_trot_and_of_a_biped_is_that_of_the_closed_form():
    v = 0.8
    for n, name in ((2, "walk"), (4, "trot")):
        schedule = contact_schedule(name, FEET[n], 1.0 / OMEGA)
        schedule = ContactSchedule(schedule.period, 0.5, schedule.touchdowns)
        T = 0.5 * schedule.period
        state = GaitState.standing(schedule)._replace(
            phase=0.0, walking=1.0, planted=np.zeros(n)
        )  # the first foot lands
        x, y = law(n).nominal_divergence(state, np.array([v, 0.0]), 0.0)
        ahead = v / OMEGA + x - v * T / 2.0  # xi minus the foot
        assert ahead == pytest.approx(v * T / np.expm1(OMEGA * T), rel=0.02)  # error of 20 samples of a cycle
        if n == 2:
            assert FEET[2][0, 1] - y == pytest.approx(0.12 / (np.exp(OMEGA * T) + 1.0), rel=0.02)


def test_touchdowns_come_earlier_if_the_deviation_would_be_out_of_reach_until_then():
    steps, schedule = law(4), contact_schedule("trot", FEET[4], 1.0 / OMEGA)
    state = GaitState.standing(schedule)._replace(
        phase=0.0, walking=1.0
    )  # the other feet touch down after half a cycle
    left, most = 0.5 * schedule.period, 0.55 * 0.4  # [s], [m]

    def cadence(deviation):
        return float(steps.relative_cadence(state, schedule.period, deviation))

    assert cadence(0.0) == 1.0 and cadence(0.99 * most * np.exp(-OMEGA * left)) == 1.0
    deviation = most * np.exp(-OMEGA * left / 1.5)
    assert cadence(deviation) == pytest.approx(1.5)
    assert deviation * np.exp(OMEGA * left / cadence(deviation)) == pytest.approx(most)
    assert cadence(0.9 * most) == cadence(10.0) == 2.0


def test_the_deviation_does_not_jump_at_the_scheduled_touchdown_of_feet_that_have_landed_early():
    """Feet that land early stand ahead of their places until the schedule counts them as standing."""
    steps, velocity = law(4), np.array([2.0, 0.1])
    schedule = ContactSchedule(0.36, 0.37, (0.0, 0.5, 0.5, 0.0))
    moving = GaitState.standing(schedule)._replace(walking=1.0, planted=np.array([1.0, 0.0, 0.0, 1.0]))
    ahead = 0.5 * 0.37 * 0.36 * velocity  # of the places under the body, at the scheduled touchdown
    feet = np.column_stack([FEET[4] + ahead, np.zeros(4)])
    deviations = []
    for early in (0.02, 0.002, -0.002):  # cycles before the scheduled touchdown
        center = -early * 0.36 * velocity
        landing = steps.landing(
            moving._replace(phase=-early % 1.0), feet, center + velocity / OMEGA, HEADING, velocity, 0.0
        )
        deviations.append(landing.deviation)
    # The sway changes along a flight, by less than the way in a tenth of a stance; half a stance is 0.13 m.
    assert np.abs(np.diff(deviations, axis=0)).max() < 0.1 * 0.37 * 0.36 * velocity[0]
    assert np.linalg.norm(deviations, axis=1).max() < 0.25 * 0.37 * 0.36 * velocity[0]


def test_steps_leave_to_the_soles_what_they_remove_until_touchdown_and_at_high_speed_nothing():
    places, state = FEET[2], GaitState.standing(contact_schedule("walk", FEET[2], 1.0 / OMEGA))
    state = state._replace(phase=0.8, walking=1.0, planted=np.zeros(2))  # foot 0 swings
    feet, soles = np.column_stack([places, np.zeros(2)]), np.array([0.02, 0.01])
    points, flat = law(2), replace(law(2), soles=(0.02, 0.01))
    slow, fast, fastest = (np.array([x * OMEGA * 0.4, 0.0]) for x in (0.1, 0.275, 0.35))
    growth = np.exp(OMEGA * state.time_to_touchdown[0])

    def moved(steps, velocity, xi):
        return steps.landing(state, feet, xi, HEADING, velocity, 0.0).places[0]

    level = points.landing(state, feet, np.zeros(2), HEADING, slow, 0.0)
    for deviation in (np.array([0.05, -0.04]), np.array([0.005, 0.002])):  # [m], more and less than soles remove
        xi = deviation - level.deviation
        wanted = moved(points, slow, xi) - level.undisturbed[0]
        most = 0.6 * (growth - 1.0) * soles
        left = wanted - np.clip(wanted, -most, most)
        assert moved(flat, slow, xi) - level.undisturbed[0] == pytest.approx(left, abs=1e-12)
        assert (np.abs(left).max() > 0.0) == (deviation[0] > 0.01)
    far = np.array([0.3, -0.2])
    halved = moved(points, fast, far) - moved(flat, fast, far)
    assert halved == pytest.approx(0.5 * np.sign(moved(points, fast, far) - places[0]) * 0.6 * (growth - 1.0) * soles)
    assert moved(flat, fastest, far) == pytest.approx(moved(points, fastest, far))


@pytest.mark.parametrize("phase", [0.1, 0.4, 0.6])
def test_the_standing_deviation_is_that_from_the_mean_of_all_feet_after_the_last_touchdown(phase):
    steps, schedule = law(4), contact_schedule("trot", FEET[4], 1.0 / OMEGA)
    state = GaitState.standing(schedule)._replace(phase=phase, walking=1.0, planted=np.zeros(4))
    feet, stands = np.column_stack([FEET[4], np.zeros(4)]), np.array(state.stance) > 0.5
    line = np.diff(FEET[4][stands], axis=0)[0]
    xi = 0.4 * np.array([-line[1], line[0]])  # [m], across the line of the feet that stand
    landing = steps.landing(state, feet, xi, HEADING, np.zeros(2), 0.0)
    left = min(1.0 - s for s, k in zip(state.local, stands, strict=True) if not k) * schedule.period
    landed = np.where(stands[:, None], FEET[4], landing.places)
    later = xi * np.exp(OMEGA * left)  # over a center of pressure in the middle of the two feet
    assert landing.standing_deviation == pytest.approx(later - landed.mean(axis=0), rel=0.06)  # less 8 mm / 0.2 m
    assert landing.deviation == pytest.approx(xi, abs=1e-12)


def test_the_standing_deviation_of_a_standing_robot_is_its_deviation():
    steps, feet = law(4), np.column_stack([FEET[4], np.zeros(4)])
    state = GaitState.standing(contact_schedule("trot", FEET[4], 1.0 / OMEGA))
    landing = steps.landing(state, feet, np.array([0.03, -0.02]), HEADING, np.zeros(2), 0.0)
    for deviation in (landing.deviation, landing.standing_deviation):
        assert deviation == pytest.approx([0.03, -0.02])


def test_steps_are_faster_if_a_foot_would_be_too_far_behind_at_its_lift_off():
    steps, schedule = law(4), contact_schedule("walk", FEET[4], 1.0 / OMEGA)
    state = GaitState.standing(schedule)._replace(phase=0.1, walking=1.0, planted=np.zeros(4))
    scheduled = schedule.period / 1.2  # [s], scheduled period, while the present one is 1.2 times as long
    angle, position, most = 0.7, np.array([2.0, -1.0]), 0.2  # [rad], [m], [m]
    heading = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    behind = np.array([0.3, -0.05, 0.02, -0.05])  # [m]; the first foot is in the air
    feet = np.column_stack([position + (FEET[4] - np.outer(behind, [1.0, 0.0])) @ heading, np.zeros(4)])
    stands, left = np.array(state.stance) > 0.5, np.array(state.time_to_lift_off) / 1.2
    assert list(stands) == [False, True, True, True]

    def cadence(speed, feet=feet):
        command = np.array([speed, 0.0, 0.0])
        return float(steps.stance_cadence(state, scheduled, feet, position, heading, command, most))

    for speed in (0.1, 0.6, 0.8):
        distance = (behind + speed * left / cadence(speed))[stands].max()
        assert distance == pytest.approx(most) if cadence(speed) > 1.0 else distance < most
    assert cadence(0.1) == 1.0 < cadence(0.6) < cadence(0.8) < cadence(5.0) == 2.0
    assert cadence(0.1, feet - 0.2 * np.array([*heading[0], 0.0])) == 2.0  # a foot is out of reach already


def test_landing_places_stay_within_reach_and_do_not_cross_the_other_foot():
    steps, feet = law(2), np.column_stack([FEET[2], np.zeros(2)])
    hip = np.array([0.0, 0.06, 0.32])
    far = steps.within_reach(np.array([1.0, 0.06]), 0, hip, feet, [0.0, 1.0], HEADING, 0.0)
    assert np.hypot(*(far - hip[:2])) == pytest.approx(np.sqrt((0.97 * 0.4) ** 2 - 0.32**2))
    crossed = steps.within_reach(np.array([0.0, -0.1]), 0, hip, feet, [0.0, 1.0], HEADING, 0.0)
    assert crossed[1] == pytest.approx(-0.06 + 0.06)  # half the distance of standing from the other foot
    free = steps.within_reach(np.array([0.05, 0.1]), 0, hip, feet, [0.0, 1.0], HEADING, 0.0)
    assert free == pytest.approx([0.05, 0.1])


def test_a_displaced_point_foot_turns_the_body_without_an_acceleration_of_its_center_of_mass():
    """The weight at the displacement has the moment that returns a rotation; feet resist along their extent."""
    inertia, weight, heading = np.diag([0.3, 0.5, 0.4]), 120.0, np.array([[0.6, 0.8], [-0.8, 0.6]])
    error, rate = np.array([0.1, -0.2, 0.3]), np.array([-0.5, 0.4, 0.2])
    steps = replace(law(2), narrow=(True, True))
    x, y = steps.upright_displacement(error, rate, inertia, weight, heading)
    moment = np.cross([x, y, -1.0], [0.0, 0.0, weight])
    w = 0.6 * OMEGA
    assert moment[:2] == pytest.approx((inertia @ (-w * w * error - 1.6 * w * rate))[:2])
    line = replace(law(2), narrow=(False, True)).upright_displacement(error, rate, inertia, weight, heading)
    assert heading @ line == pytest.approx([0.0, heading[1] @ [x, y]])


def test_landing_places_keep_away_from_edges_and_stay_where_there_is_none():
    height, forward = 0.3, np.array([1.0, 0.0])
    stairs = Stairs((0.5, 0.86), (0.1, 0.1))
    for x in np.linspace(0.3, 1.1, 81):
        place = away_from_edges(stairs, np.array([x, 0.2]), forward, height)
        assert min(abs(place[0] - edge) for edge in stairs.edges) > 0.14 * height
        assert abs(place[0] - x) <= 3 * 0.075 * height + 1e-12 and place[1] == 0.2
    for x in np.linspace(0.3, 1.1, 41):  # a sole of 0.1 m ahead of and behind its middle
        place = away_from_edges(stairs, np.array([x, 0.2]), forward, height, 0.1)
        assert min(abs(place[0] - edge) for edge in stairs.edges) > 0.1
    for terrain in (stairs, Slope(0.3)):
        assert away_from_edges(terrain, np.array([0.2, 0.1]), forward, height) == pytest.approx([0.2, 0.1])
    dense = Stairs(tuple(0.04 * k for k in range(30)), (0.1, -0.1) * 15)
    assert away_from_edges(dense, np.array([0.6, 0.0]), forward, height) == pytest.approx([0.6, 0.0])  # no even place


def test_a_landing_place_follows_smoothly_on_a_tread_and_moves_to_another_one_only_early_in_the_swing():
    last, level = np.array([0.4, 0.1, 0.0]), np.zeros(2)
    near, above = np.array([0.44, 0.1, 0.0]), np.array([0.56, 0.1, 0.1])
    for progress, share in ((0.1, 1.0), (0.9, 0.0)):
        moved = moved_target(last, above, progress, 1.0, level, 0.015, 0.01)
        assert moved == pytest.approx(last + share * (above - last))
        moved = moved_target(last, near, progress, 1.0, level, 0.015, 0.01)
        assert moved == pytest.approx(last + (near - last) * 0.01 / 0.11)
    uphill = np.array([0.56, 0.1, 0.16 * 0.3])
    assert 0.4 < moved_target(last, uphill, 0.9, 1.0, np.array([0.3, 0.0]), 0.015, 0.01)[0] < 0.45


def test_a_landing_place_does_not_move_through_a_gap_between_stones():
    last, across, level = np.array([0.4, 0.1, 0.0]), np.array([0.5, 0.1, 0.0]), np.zeros(2)
    for heights in ([0.0, -0.1, 0.0], [0.0, 0.1, 0.0]):
        for progress, share in ((0.1, 1.0), (0.9, 0.0)):
            moved = moved_target(last, across, progress, 1.0, level, 0.015, 0.01, heights)
            assert moved == pytest.approx(last + share * (across - last))
    moved = moved_target(last, across, 0.9, 1.0, level, 0.015, 0.01, [0.01, 0.01, 0.01])
    assert last[0] < moved[0] < across[0]


def test_the_plane_of_the_feet_is_the_slope_and_level_across_a_line_of_feet():
    slope = Slope(0.2, heading=0.5)
    places = [np.array([x, y, slope.height(x, y)]) for x, y in FEET[4] + [2.0, 1.0]]
    plane = plane_of(places, 0.32)
    assert plane.normal == pytest.approx(slope.normal(0.0, 0.0), abs=0.01)
    mean = np.mean(places, axis=0)
    assert plane.height(mean[:2]) == pytest.approx(mean[2], abs=1e-12)
    line = plane_of([np.array([0.0, y, 0.1 * y]) for y in (0.1, -0.1)], 0.32)
    assert line.slope[0] == 0.0


@pytest.mark.parametrize(
    ("name", "n", "velocity", "error"),  # [m], harmonics above the fourth, and the mean in a curve
    [
        ("walk", 2, (0.3, 0.1), 7e-4),
        ("walk", 4, (0.3, 0.0), 3e-3),
        ("pace", 4, (0.0, 0.2), 2e-4),
        ("trot", 4, (0.5, 0.0), 4e-4),
    ],
)
def test_the_sway_of_a_gait_is_the_periodic_motion_of_the_pendulum_over_its_feet(name, n, velocity, error):
    steps, schedule = law(n), contact_schedule(name, FEET[n], 1.0 / OMEGA)
    state = GaitState.standing(schedule)._replace(walking=1.0, planted=np.zeros(n))
    sway = steps.sway(state, np.array(velocity), 0.2)
    position, rate = sway.after(0.0)
    divergence = steps.nominal_divergence(state, np.array(velocity), 0.2)  # exact for pressures constant in pieces
    assert position + rate / OMEGA == pytest.approx(divergence, abs=error)
    again, same = sway.after(schedule.period)
    assert again == pytest.approx(position, abs=1e-12) and same == pytest.approx(rate, abs=1e-12)
    later = state._replace(phase=state.phase + 0.3)
    moved = np.concatenate(steps.sway(later, np.array(velocity), 0.2).after(0.0))
    assert moved == pytest.approx(np.concatenate(sway.after(0.3 * schedule.period)), abs=1e-12)
    still = steps.sway(state._replace(walking=0.0), np.array(velocity), 0.2)
    assert np.concatenate(still.after(0.1)) == pytest.approx(np.zeros(4), abs=0.0)


@pytest.mark.parametrize("name", ["walk", "pace", "bound"])
def test_the_sway_follows_the_mean_of_the_standing_feet_in_the_order_of_their_touchdowns(name):
    schedule, count = contact_schedule(name, FEET[4], 1.0 / OMEGA), 400
    state = GaitState.standing(schedule)._replace(walking=1.0, planted=np.zeros(4))
    sway = law(4).sway(state, np.zeros(2), 0.0)
    angles = 2.0 * np.pi * (np.arange(count) + 0.5) / count
    stands = np.array([state.stance_after(a / (2.0 * np.pi) * schedule.period) for a in angles])
    pressure = stands @ FEET[4] / np.maximum(stands.sum(axis=1), 1.0)[:, None]
    gain = 2.0 / count / (1.0 + (sway.frequency / OMEGA) ** 2)
    actual, expected = [sway.cosines[0], sway.sines[0]], gain * np.stack([np.cos(angles), np.sin(angles)]) @ pressure
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(actual, expected, atol=0.15 * np.abs(expected).max())  # 20 samples of a cycle


def test_the_sway_of_the_center_of_mass_turns_with_the_heading():
    sway = Sway(3.0, np.array([[0.01, 0.02], [0.0, 0.01]]), np.array([[-0.03, 0.005], [0.02, 0.0]]))
    heading, yaw_rate = 0.4, 0.7
    axis = np.array([np.cos(heading), np.sin(heading)])
    velocity = np.array([0.5, -0.2, 0.1])
    swaying = BodyReference(np.array([1.0, 2.0, 0.3]), velocity, np.eye(3), yaw_rate, axis, sway)
    straight = swaying._replace(sway=Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2))))
    for time in (0.0, 0.3, 1.1):
        angle = heading + yaw_rate * time
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        for one, other, part in zip(swaying.after(time), straight.after(time), sway.after(time), strict=True):
            np.testing.assert_allclose(one - other, [*turn @ part, 0.0], atol=1e-15)
    step = 1e-5  # [s], for the derivative of a sine with 6 rad/s, exact to (6 step)^2 of 0.2 m/s
    one, other = sway.after(0.2 - step)[0], sway.after(0.2 + step)[0]
    np.testing.assert_allclose((other - one) / (2.0 * step), sway.after(0.2)[1], atol=1e-9)


def test_before_the_first_lift_off_the_reference_moves_over_a_pressure_between_two_feet_to_the_sway():
    steps, schedule = law(2), contact_schedule("walk", FEET[2], 1.0 / OMEGA)
    state = GaitState.standing(schedule)
    sway = steps.sway(state._replace(walking=1.0), np.array([0.3, 0.0]), 0.0)
    left = min(state._replace(walking=1.0).time_to_lift_off)
    assert sway.start == pytest.approx(left)
    times = np.linspace(0.0, left - 1e-9, 50)
    places, rates = (np.array(x) for x in zip(*(sway.after(t) for t in times), strict=True))
    np.testing.assert_allclose(np.gradient(rates, times, axis=0)[1:-1], OMEGA**2 * places[1:-1], rtol=1e-2, atol=1e-9)
    (before, slow), (after, fast) = sway.after(left - 1e-9), sway.after(left)
    np.testing.assert_allclose(before + slow / OMEGA, after + fast / OMEGA, atol=1e-6)  # [m], no jump of xi
    walking = state._replace(walking=1.0, planted=np.zeros(2))
    assert steps.sway(walking, np.array([0.3, 0.0]), 0.0).start == 0.0


def test_a_foot_that_waits_for_its_first_swing_carries_the_pressure_that_is_expected():
    steps, schedule = law(2), contact_schedule("walk", FEET[2], 1.0 / OMEGA)
    start = GaitState.standing(schedule)._replace(walking=1.0)
    left = min(start.time_to_lift_off) - 1e-9
    late = start._replace(phase=start.phase + left / start.period)
    expected = steps.nominal_divergence(late, np.zeros(2), 0.0)[1] * np.exp(-OMEGA * left)
    assert steps.nominal_divergence(start, np.zeros(2), 0.0)[1] == pytest.approx(expected, abs=5e-3)  # [m], samples


def test_heights_between_two_places_are_those_at_equal_distances():
    slope, start, end = Slope(0.3, heading=0.4), np.array([0.2, -0.1]), np.array([1.0, 0.3])
    expected = [slope.height(*(start + k / 4 * (end - start))) for k in (1, 2, 3)]
    np.testing.assert_allclose(terrain_heights(slope, start, end, 3), expected, rtol=1e-14)
