"""The gait of a speed, jumps, and commands: closed forms, and robots that jump and land."""

import numpy as np
import pytest
from oracles.standing import shared_biped, shared_quadruped
from oracles.urdfs import all_urdfs

import legged
from controllers import Command, ContactSchedule, Locomotion
from controllers.locomotion.gait.choice import GaitChoice, jump_state
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.velocity_command import acceleration_on_two, limited_command, read_command
from legged.errors import ShapeError, SimulationWarning, UnknownNameError

QUICK = "test_a_jump_rises_by_the_commanded_height_and_its_feet_press_until_they_lift_off"

FILES = all_urdfs()
HEIGHT, GRAVITY = 0.3, 9.81
WALK, TROT = ContactSchedule(0.6, 0.7, (0.0, 0.25, 0.5, 0.75)), ContactSchedule(0.5, 0.5, (0.0, 0.5, 0.5, 0.0))


SIDES = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])


def choice(by_speed=True, least=0.33, reach=np.inf):
    return GaitChoice(((0.0, WALK), (0.3, TROT)), by_speed, least, 0.25, SIDES, HEIGHT, GRAVITY, reach)


def command(vx=0.0, vy=0.0, rate=0.0, jump=0.0):
    return np.array([vx, vy, rate, 0.0, 0.0, 0.0, jump])


@pytest.mark.parametrize("rise", [0.02, 0.1, 0.2])
def test_a_jump_rises_by_the_commanded_height_and_its_feet_press_until_they_lift_off(rise):
    jump = choice().jump(rise)
    down, push, flight = (float(x) for x in jump.durations)
    times = np.linspace(0.0, down + push + flight - 1e-9, 4001)
    heights, rates = np.array([jump.after(t) for t in times]).T
    dt = times[1]
    assert heights.max() == pytest.approx(rise, rel=1e-3)  # a grid of 4000 points
    assert heights[0] == rates[0] == 0.0 and heights[-1] == pytest.approx(0.0, abs=1e-5)
    assert np.abs(np.gradient(heights, dt) - rates)[1:-1].max() < 20.0 * dt  # continuous, with bounded acceleration
    acceleration = np.gradient(rates, dt)[1:-1]
    on_ground = times[1:-1] < down + push - dt
    assert acceleration[on_ground].min() > -0.6 * GRAVITY  # the force of the feet stays positive
    assert acceleration[~on_ground][2:].max() == pytest.approx(-GRAVITY, rel=1e-6)


def test_without_a_jump_the_height_is_that_of_standing():
    assert choice().jump(0.0).after(0.1) == (0.0, 0.0)


def test_a_jump_begins_and_ends_at_rest():
    rest = GaitState.standing(TROT)
    assert jump_state(0.0, 0.1, rest) == 0.1 and jump_state(0.0, 0.0, rest) == 0.0
    pushes = rest._replace(walking=1.0)
    assert jump_state(0.1, 0.0, pushes) == 0.1  # a jump that has begun goes on without its command
    flies = pushes._replace(phase=0.7, planted=np.zeros(4), touchdowns=np.zeros(4))
    assert sum(flies.stance) == 0.0 and jump_state(0.1, 0.1, flies) == -0.1
    assert jump_state(-0.1, 0.0, flies) == -0.1
    assert jump_state(-0.1, 0.0, rest) == 0.0
    assert jump_state(0.0, 0.1, GaitState.standing(TROT)._replace(walking=1.0)) == 0.0  # a robot that walks stops first


def test_the_gait_of_a_speed_changes_later_when_the_robot_becomes_slower():
    gaits = choice()
    assert gaits.chosen(0.0, command(0.29), 0.0) == 0.0
    assert gaits.chosen(0.0, command(0.31), 0.0) == 1.0
    assert gaits.chosen(0.0, command(0.25), 1.0) == 1.0 and gaits.chosen(0.0, command(0.23), 1.0) == 0.0
    assert gaits.chosen(0.0, command(rate=2.0), 0.0) == 1.0
    assert choice(by_speed=False).chosen(0.4, command(), 0.0) == 1.0
    assert gaits.target(1.0, WALK.parameters) == pytest.approx(TROT.parameters)


def test_gaits_in_which_sides_rows_or_all_feet_stand_in_turn_are_uneven_and_a_trot_is_not():
    def unevenness(duty, *touchdowns):
        return choice().unevenness(ContactSchedule(0.5, duty, touchdowns).parameters)

    one = (np.sin(0.6 * np.pi) / (0.6 * np.pi)) ** 2  # of the Fourier coefficient of a stance
    for touchdowns in ((0.0, 0.5, 0.0, 0.5), (0.0, 0.0, 0.5, 0.5), (0.0, 0.0, 0.0, 0.0)):
        for shift in (0.0, 0.3):
            assert unevenness(0.6, *(x + shift for x in touchdowns)) == pytest.approx(one, rel=1e-12)
    assert 1.0 + unevenness(0.5, 0.0, 0.5, 0.5, 0.0) == 1.0
    parameters = [ContactSchedule(0.5, 0.6, x).parameters for x in ((0.0, 0.5, 0.0, 0.5), (0.0, 0.0, 0.0, 0.0))]
    assert [choice().unevenness(x, together=0.5) for x in parameters] == pytest.approx([one, 0.5 * one], rel=1e-12)
    assert unevenness(1.0, 0.0, 0.5, 0.0, 0.5) == pytest.approx(0.0, abs=1e-12)
    assert unevenness(0.7, *WALK.touchdowns) == pytest.approx(0.5 * (np.sin(0.7 * np.pi) / (0.7 * np.pi)) ** 2)


def test_the_automatic_gait_of_a_robot_with_two_feet_is_a_walk():
    for robot, count in ((shared_quadruped(), 2), (shared_biped(), 1)):
        law = Locomotion("automatic")
        gaits = law.start(robot, None, *law.initial_state(robot))[0].gaits
        assert gaits.by_speed and len(gaits.schedules) == count
    with pytest.raises(UnknownNameError, match="automatic"):
        Locomotion("automatik").initial_state(shared_quadruped())


def test_four_legs_that_do_not_move_their_feet_to_the_side_walk_in_the_automatic_gait():
    if "solo/solo" not in FILES:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    planar = legged.load(FILES["solo/solo"])
    law = Locomotion("automatic", Command(vx=0.3))
    schedules = law.start(planar, None, *law.initial_state(planar))[0].gaits.schedules
    assert [schedule.parameters[1] for _, schedule in schedules] == [0.7]
    run = legged.simulate(
        planar, law, ground=legged.Rigid(friction=0.6), until=2.0, integrator=legged.TimeStepping(2e-3)
    )
    assert not run.ended and (run.q[-1, 4] - run.q[len(run.q) // 2, 4]) == pytest.approx(0.3, abs=0.03)
    with pytest.warns(SimulationWarning, match="to the side.*'trot'; use 'walk', 'bound' or 'pronk'"):
        Locomotion("trot").initial_state(planar)


def test_legs_that_motors_hardly_accelerate_are_a_warning():
    robot = shared_quadruped()
    Locomotion("trot").initial_state(robot)  # no warning
    editor = robot.edit()
    for joint in robot.joints:
        editor.change_joint(joint.name, armature=0.3, effort=20.0)
    with pytest.warns(SimulationWarning, match="accelerating a foot by 9.81 m/s.2 takes .* too much to swing"):
        Locomotion("trot").initial_state(editor.build())


def test_the_body_moves_by_a_bounded_distance_in_a_stance_and_fast_gaits_have_lower_duty_factors():
    gaits = choice()
    slow = gaits.at_speed(TROT.parameters, command(0.5))
    assert slow == pytest.approx(TROT.parameters)
    for speed in (1.5, 2.0, 3.0):
        ways = (speed,), (0.0, speed), (0.0, 0.0, speed / gaits.radius)
        for way, share in zip(ways, (1.0, 2.0, 2.2), strict=True):
            period, duty, *_ = gaits.at_speed(TROT.parameters, command(*way))
            assert share * speed * period * duty == pytest.approx(0.95 * HEIGHT)
            assert 0.33 - 1e-12 < duty < 0.5


def test_the_period_follows_the_actual_speed_of_a_robot_that_is_faster_than_its_command():
    """A1 at 2.1 sqrt(g h) ran 0.2 faster than its command, took longer steps as the command fell, and fell itself."""
    gaits, unit = choice(), np.sqrt(GRAVITY * HEIGHT)
    slow, fast, turn = 1.0 * unit, 1.2 * unit, 1.0 * unit / gaits.radius

    def followed(wanted, actual, schedule=TROT):
        return gaits.followed(command(*wanted), np.array(actual), schedule.parameters)

    assert followed((slow,), (fast, 0.3, 0.0)) == pytest.approx(command(fast))
    assert followed((slow,), (0.8 * slow, 0.0, 0.0)) == pytest.approx(command(slow))  # a robot that lags
    assert followed((slow,), (-fast, 0.0, 0.0)) == pytest.approx(command(slow))
    assert followed((0.0, 0.0, turn), (0.0, 0.0, 1.2 * turn)) == pytest.approx(command(rate=1.2 * turn))
    assert followed((slow,), (3.0 * slow, 0.0, 0.0)) == pytest.approx(command(1.5 * slow))
    assert followed((), (slow, 0.0, 0.0)) == pytest.approx(command())
    pronk = ContactSchedule(0.5, 0.6, (0.0, 0.0, 0.0, 0.0))
    assert followed((slow,), (fast, 0.0, 0.0), pronk) == pytest.approx(command(slow))  # faster in part of a cycle
    even = ContactSchedule(0.5, 0.5, (0.0, 0.5)).parameters
    on_two = GaitChoice(((0.0, TROT),), False, 0.5, 0.1, SIDES[:2], HEIGHT, GRAVITY)
    assert on_two.followed(command(slow), np.array([2.0 * fast, 0.0, 0.0]), even) == pytest.approx(command(slow))


def test_on_two_feet_the_duty_factor_falls_before_the_period_and_stances_are_shorter():
    walk, gaits = ContactSchedule(0.6, 0.6, (0.0, 0.5)), choice(least=0.52)
    assert gaits.at_speed(walk.parameters, command(0.5)) == pytest.approx(walk.parameters)
    for speed in (0.6, 0.66, 0.8, 1.5):
        period, duty, *_ = gaits.at_speed(walk.parameters, command(speed))
        assert speed * period * duty == pytest.approx(0.7 * HEIGHT)
        assert period == pytest.approx(min(0.6, 0.7 * HEIGHT / (0.52 * speed)))  # as scheduled while the duty falls
    for reach, travel in ((0.6, 0.7), (0.45, 1.3 * 0.45), (0.2, 0.5)):  # legs that are nearly straight: Atom01 fell
        period, duty, *_ = choice(least=0.52, reach=reach * HEIGHT).at_speed(walk.parameters, command(1.5))
        assert 1.5 * period * duty == pytest.approx(travel * HEIGHT)
    period, duty, *_ = choice(least=0.33, reach=0.2 * HEIGHT).at_speed(TROT.parameters, command(1.5))
    assert 1.5 * period * duty == pytest.approx(0.95 * HEIGHT)  # not on more feet


def test_a_robot_at_rest_takes_the_parameters_of_a_gait_at_once():
    rest = GaitState.standing(WALK)
    state = rest.advanced(2e-3, 0.0, [1.0] * 4, TROT.parameters)
    assert state.period == TROT.period and state.duty == pytest.approx(TROT.duty)
    assert state.touchdowns == pytest.approx(TROT.touchdowns)
    walks = rest._replace(walking=1.0, planted=np.zeros(4)).advanced(2e-3, 1.0, [1.0] * 4, TROT.parameters)
    assert walks.duty[0] == pytest.approx(0.7, abs=1e-3)


def test_all_feet_push_for_a_whole_stance_if_they_lift_off_at_once():
    state = GaitState.standing(ContactSchedule(1.0, 0.6, (0.0, 0.0, 0.0, 0.0)))
    assert state.phase == pytest.approx(0.0)


def test_commands_of_five_entries_have_neither_roll_nor_jump():
    assert read_command(np.arange(5.0)).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]
    assert read_command(np.arange(7.0)).tolist() == list(range(7))
    with pytest.raises(ShapeError, match=r"\(5,\) to \(7,\)"):
        read_command(np.zeros(8))
    limited = limited_command(command(jump=0.2), command(), HEIGHT, GRAVITY, 2e-3)
    assert limited[6] == 0.2  # jumps are not bounded in rate
    assert Command(roll=0.1, jump=0.2)(0.0)[5:] == pytest.approx([0.1, 0.2])


def test_two_feet_accelerate_faster_once_the_first_has_lifted_off_if_the_command_is_slow():
    """The bound of slow commands, 0.25 sqrt(g h), is 0.43 m/s here."""
    stands = GaitState.standing(ContactSchedule(0.9, 0.6, (0.0, 0.5)))
    starts = stands._replace(walking=1.0)
    walks = starts._replace(planted=np.array([1.0, 0.0]))
    rates = [
        float(acceleration_on_two(command(*velocity), state, HEIGHT, GRAVITY))
        for state in (stands, starts, walks)
        for velocity in ((0.1, 0.0), (0.3, 0.3), (-0.4, 0.2))
    ]
    assert rates == [0.04] * 6 + [0.08, 0.08, 0.04]


def jumped(robot, gait, rise, speed=0.0, until=2.0):
    """Return the heights of the center of mass over that of standing and places of the base, after a jump command."""
    law = Locomotion(gait, None)
    q, v = law.initial_state(robot)
    steps = legged.TimeStepping(2e-3)
    sim = legged.Simulation(robot, law, ground=legged.Rigid(friction=0.6), q=q, v=v, integrator=steps)
    height, places, heights = legged.center_of_mass(robot, q)[2], [], []
    while sim.t < until:
        sim.step(np.array([speed if sim.t < 1.0 else 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, rise if sim.t < 0.1 else 0.0]), n=5)
        assert not sim.fallen, sim.reasons
        heights.append(legged.center_of_mass(robot, sim.q)[2] - height)
        places.append(sim.q[4:7])
    return np.array(heights), np.array(places), sim


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spatial_quadruped", "go2"])
def test_a_robot_jumps_in_place_once_and_stands(name):
    """It reaches at least 0.6 of the commanded rise, is in the air, and comes to rest where it stood."""
    if name == "go2" and not FILES:
        pytest.skip("example_robot_data, of the extra test, is not installed")
    robot = shared_quadruped() if name == "spatial_quadruped" else legged.load(FILES["go2/go2"])
    heights, places, sim = jumped(robot, "trot", 0.1)
    assert 0.06 < heights.max() < 0.13
    assert np.sum(heights > 0.03) < 40  # one jump
    assert heights[-1] == pytest.approx(0.0, abs=5e-3) and np.abs(sim.v[:6]).max() < 0.1
    assert np.abs(places[-1, :2] - places[0, :2]).max() < 0.03


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_that_jumps_forward_again_and_again_does_not_fall():
    """It lowers itself at rest: feet that the body leaves behind in this motion cannot push at its end."""
    robot = legged.load(FILES["a1/a1"])
    speed, rise = 0.3 * np.sqrt(9.81 * 0.3), 0.5 * 0.3  # [m/s], [m]
    law = Locomotion("trot", Command(vx=speed, jump=rise))
    q, v = law.initial_state(robot)
    steps = legged.TimeStepping(2e-3)
    sim = legged.Simulation(robot, law, ground=legged.Rigid(friction=0.6), q=q, v=v, integrator=steps)
    sim.step(n=2200)
    assert not sim.fallen, f"fell at {sim.t:.2f} s: {sim.reasons}"
    assert sim.q[4] - q[4] > 0.4 * speed * sim.t


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
def test_a_robot_jumps_forward_and_rolls_as_commanded():
    heights, places, sim = jumped(legged.load(FILES["go2/go2"]), "trot", 0.15, 0.8)
    assert heights.max() > 0.06 and places[-1, 0] > 0.3
    for _ in range(50):
        sim.step(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0]), n=10)
    R, _ = sim.robot.base.pose(sim.q[:7])
    assert np.arctan2(R[2, 1], R[2, 2]) == pytest.approx(0.2, abs=2e-3)
