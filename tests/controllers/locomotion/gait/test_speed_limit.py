"""The speed limit of robots with more than two feet, from their loads, and the notice of commands beyond it."""

import numpy as np
import pytest
from oracles.standing import shared_quadruped
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers import Command, Locomotion
from controllers.locomotion.fitting import least_duty
from controllers.locomotion.motion_plan import body_state
from controllers.locomotion.speed_limit import SpeedLimit, _is_saturated, followed_command, speed_notice
from controllers.locomotion.torques.tasks import WholeBodyModel
from legged.algorithms.legs.standing import standing_torques
from legged.compiler import compile as compile_function
from legged.errors import SimulationWarning

HEIGHT, GRAVITY, DT = 0.4, 9.81, 0.002
UNIT = float(np.sqrt(GRAVITY * HEIGHT))  # [m/s]
FILES = all_urdfs()
STEP = legged.TimeStepping(2e-3)
needs_files = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")


def limit(load=0.0, most=1.0, held=0.0):
    return SpeedLimit(np.array([0.0, load, 0.0, load]), most * UNIT, held)


def advanced(before, load, wanted=2.0, last=1.0, free=0.3, steps=1, along=1.0, even=1.0):
    for _ in range(steps):
        loads = np.array([0.0, load, 0.0, load])
        before = before.after(loads, wanted * UNIT, last * UNIT, free * UNIT, along, HEIGHT, GRAVITY, DT, even)
    return before


def test_the_limit_rises_without_load_stays_at_the_load_one_and_falls_above():
    def rate(load, most=1.3):
        return (advanced(limit(load, most), load, last=2.0).most - most * UNIT) / (DT * GRAVITY)  # [g]

    rates = [rate(load) for load in (0.0, 0.5, 0.75, 1.0, 1.25, 3.0)]
    assert rates == pytest.approx([0.05, 0.05, 0.025, 0.0, -0.025, -0.05], abs=1e-12)
    assert [rate(0.0, most) for most in (0.5, 0.8, 1.05, 1.3)] == pytest.approx([0.15, 0.15, 0.1, 0.05], abs=1e-12)
    assert rate(0.05, 0.5) == pytest.approx(0.05, abs=1e-12)  # a motor at its limit for 0.03 of the time
    assert rate(3.0, 0.5) == pytest.approx(-0.05, abs=1e-12)


def test_backward_sideways_and_in_turns_loads_add_and_the_limit_falls_fast_and_rises_slowly_but_along():
    def rate(load, most=1.3, along=0.0):
        return (advanced(limit(load, most), load, last=2.0, along=along).most - most * UNIT) / (DT * GRAVITY)  # [g]

    single = np.sqrt(1.0 / 2.44) / 1.2  # of two equal loads, that of the motors with 1.44 times its square; times 1.2
    rates = [rate(load) for load in (0.0, 0.75 * single, single, 1.5 * single, 3.0 * single)]
    assert rates == pytest.approx([0.05, 0.025, 0.0, -0.05, -0.15], abs=1e-9)
    assert [rate(load, along=-1.0) for load in (0.0, 0.75 * single, single, 1.5 * single)] == pytest.approx(rates[:4])
    assert [rate(0.0, 0.5, along) for along in (0.0, -0.5, -1.0)] == pytest.approx([0.05, 0.1, 0.15], abs=1e-9)
    assert rate(0.75, along=0.5) == pytest.approx(0.1 * (1.0 - 0.375 * (1.0 + 1.2 * np.sqrt(2.44))), abs=1e-9)


def test_in_uneven_gaits_the_limit_rises_slowly_falls_as_fast_and_loads_add_forward():
    def rate(load, most=1.3):
        return (advanced(limit(load, most), load, last=2.0, even=0.0).most - most * UNIT) / (DT * GRAVITY)  # [g]

    single = np.sqrt(1.0 / 2.44)  # of two equal loads, as above
    rates = [rate(load) for load in (0.0, 0.75 * single, single, 1.5 * single, 3.0 * single)]
    assert rates == pytest.approx([0.02, 0.01, 0.0, -0.05, -0.15], abs=1e-9)
    assert rate(0.0, 0.5) == pytest.approx(0.06, abs=1e-9)


def test_the_limit_stays_near_the_present_speed_and_above_the_free_speed():
    assert advanced(limit(most=2.0), 0.0, last=1.0).most == pytest.approx(1.1 * UNIT)
    assert advanced(limit(most=0.31, load=5.0), 5.0, last=0.31, steps=100).most == pytest.approx(0.3 * UNIT)


def test_loads_rise_within_a_step_and_fall_over_several_and_saturation_is_a_mean():
    time = float(np.sqrt(HEIGHT / GRAVITY))
    risen = advanced(limit(), 1.0, steps=round(0.3 * time / DT)).loads
    assert risen[1] == pytest.approx(1.0 - np.exp(-1.0), abs=0.02)
    assert risen[3] == pytest.approx(1.0 - np.exp(-0.1), abs=0.02)
    fallen = advanced(limit(load=1.0), 0.0, steps=round(3.0 * time / DT)).loads
    assert fallen[[1, 3]] == pytest.approx([np.exp(-1.0)] * 2, abs=0.02)


def test_a_robot_that_accelerates_is_not_held_and_one_at_its_limit_is_until_it_reaches_its_command():
    assert advanced(limit(), 0.0).held == 0.0
    at_limit = advanced(limit(load=1.0), 1.0)
    assert at_limit.held == 1.0
    assert advanced(at_limit._replace(loads=np.zeros(4)), 0.0).held == 1.0
    assert advanced(at_limit, 1.0, wanted=0.9).held == 0.0


def test_a_motor_is_at_its_limit_by_the_torque_that_it_has_at_its_speed():
    efforts, least, most = (
        np.array([10.0, 10.0, np.inf]),
        np.array([-10.0, -10.0, -np.inf]),
        np.array([2.0, 10.0, np.inf]),
    )
    for tau, full in (((1.9, 9.0, 1e9), 0.0), ((1.99, 0.0, 0.0), 1.0), ((0.0, -9.9, 0.0), 1.0)):
        assert _is_saturated(np.array(tau), efforts, least, most) == full


def test_a_traced_limit_computes_the_same_numbers():
    def function(loads, most, wanted):
        before = SpeedLimit(0.5 * loads, most, 0.0)
        return before.after(loads, wanted, most, 0.2, 0.4, HEIGHT, GRAVITY, DT).flat()

    kernel = compile_function(function, loads=(4,), most=(), wanted=())
    for load in (0.2, 0.8, 1.2, 2.5):
        arguments = load * np.array([1.0, 0.5, 0.2, 1.1]), 1.7, 2.0
        assert kernel(*arguments) == pytest.approx(function(*arguments), rel=1e-12)


class Noticing:
    """A controller without forces that always has a notice."""

    def start(self, robot, ground, q, v):
        return self, np.zeros(1)

    def torque(self, t, phase, q, v, wrenches, memory):
        return 0.0 * v

    def rate(self, t, phase, q, v, wrenches, memory):
        return np.ones(1) + 0.0 * memory

    def notice(self, t, memory):
        return f"the memory is {float(memory[0]):.2f} at {t:.2f} s"


@pytest.mark.parametrize("wrapped", [False, True])
def test_runs_rollouts_and_simulations_warn_of_the_notice_of_a_controller(wrapped):
    robot, law = robots.chain(2), Noticing()
    law = controllers.NominalModel(law, robot) if wrapped else law
    steps = legged.SemiImplicitEuler(0.01)
    with pytest.warns(SimulationWarning, match="the memory is 0.50 at 0.50 s"):
        run = legged.simulate(robot, law, until=0.5, integrator=steps)
    assert any("the memory is" in text for text in run.warnings)
    with pytest.warns(SimulationWarning, match="1 of 1 members, first member 0: the memory is 0.50"):
        legged.rollout(robot, law, until=0.5, integrator=steps)
    sim = legged.Simulation(robot, law, integrator=steps)
    with pytest.warns(SimulationWarning, match="the memory is"):
        for _ in range(100):
            sim.step()


def test_friction_bounds_the_speed_in_a_curve_with_a_notice_and_keeps_the_direction():
    """The centripetal acceleration is at most 0.6 of friction coefficient times g, without a bound straight ahead."""
    robot = shared_quadruped()
    law = Locomotion("trot", friction=0.4)
    q, v = law.initial_state(robot)
    started, flat = law.start(robot, None, q, v)
    body = body_state(WholeBodyModel(robot, q, v), q, v, started.planner)
    for rate, product, notices in ((3.0, 0.6 * 0.4 * 9.81, True), (1.0, 1.8, False), (0.0, 0.0, False)):
        wanted = np.array([1.8, 0.0, rate, 0.0, 0.0, 0.0, 0.0])
        fast = SpeedLimit(np.zeros(4), 20.0, 0.0).flat()
        memory = started.memory(flat)._replace(speed=fast, command=wanted)
        speed, followed = followed_command(wanted, memory, body, v, started.planner, started.gaits, DT)
        assert followed[0] * followed[2] == pytest.approx(product, rel=1e-9)
        assert followed[2] / followed[0] == pytest.approx(rate / 1.8)
        notice = speed_notice("it", 0.0, memory._replace(speed=speed), wanted[:3])
        assert ("feet would slip" in notice) == notices


def test_in_gaits_that_load_the_feet_unevenly_loads_add_forward_as_well():
    """Three loads of 0.7, with a sum of 1.3: a trot accelerates, a walk less, and the other gaits slow down."""
    robot, growth = shared_quadruped(), []
    for gait in ("trot", "walk", "pace", "bound", "pronk"):
        law = Locomotion(gait)
        q, v = law.initial_state(robot)
        started, flat = law.start(robot, None, q, v)
        body = body_state(WholeBodyModel(robot, q, v), q, v, started.planner)
        wanted = np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
        before = SpeedLimit(np.array([0.7, 0.7, 0.0, 0.7]), 2.8, 0.0).flat()
        memory = started.memory(flat)._replace(speed=before, command=wanted)
        speed, _ = followed_command(wanted, memory, body, v, started.planner, started.gaits, DT)
        growth.append(SpeedLimit.of(speed).most - 2.8)
    trot, walk, *others = np.array(growth) / (DT * GRAVITY)
    assert trot == pytest.approx(0.03, abs=2e-3)
    assert 0.0 < walk < trot
    assert max(others) < -0.02


@needs_files
def test_the_duty_factor_of_fast_gaits_is_bounded_by_the_torques_of_the_joints():
    for name, least in (("hyq/hyq_no_sensors", 0.455), ("go2/go2", 0.37)):
        robot = legged.load(FILES[name])
        home = Locomotion()._fitted(robot).home
        assert least_duty(robot, home) == pytest.approx(max(0.37, standing_torques(robot, home)[1] / 0.55))
        assert least_duty(robot, home) == pytest.approx(least, abs=0.01)


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(
    ("name", "command", "least", "most"),
    [  # least and largest speeds [m/s]; without the limit each of them falls within 6 s, but Go2
        ("anymal_c_simple/anymal", (2.0, 0.0, 0.0), 1.0, 1.4),
        ("anymal_b_simple/anymal", (4.0, 0.0, 0.0), 2.8, 3.6),
        ("hyq/hyq_no_sensors", (3.4, 0.0, 0.0), 2.2, 2.8),
        ("a1/a1", (-3.4, 0.0, 0.0), 2.2, 3.4),
        ("a1/a1", (1.5, 1.5, 0.0), 0.7, 2.0),
        ("go2/go2", (2.6, 0.0, 8.0), 0.7, 2.6),
        ("anymal_c_simple/anymal", (0.0, 2.0, 0.0), 0.8, 1.4),
        ("anymal_c_simple/anymal", (2.0, 0.0, 2.3), 0.3, 1.4),
        ("go2/go2", (0.0, 1.7, 0.0), 1.0, 1.65),
    ],
)
def test_a_command_beyond_the_ability_of_a_robot_gives_a_large_speed_and_a_notice(name, command, least, most):
    robot = legged.load(FILES[name])
    with pytest.warns(SimulationWarning, match="cannot follow the command"):
        law = Locomotion("trot", Command(*command))
        run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=9.0, integrator=STEP)
    assert any("it is to move at" in text for text in run.warnings)
    late = run.times > 6.0
    speed = np.linalg.norm(run.v[late][:, 3:5], axis=1).mean()
    assert least < speed < most


@pytest.mark.slow
@needs_files
def test_a1_trots_at_three_point_three_meters_per_second_and_go2_reaches_three_point_five_within_five_seconds():
    """A1 would fall if its period followed the command alone, and Go2 take 6 s with half the force at lift-off."""
    for name, command, until in (("a1/a1", 3.3, 10.0), ("go2/go2", 3.7, 5.2)):
        robot = legged.load(FILES[name])
        law = Locomotion("trot", Command(vx=command))
        run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=until, integrator=STEP)
        late = run.times > until - 0.4  # [s], two to three cycles
        assert np.ptp(run.q[late, 4]) / np.ptp(run.times[late]) > 0.95 * command


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(
    ("name", "gait", "command", "least"),
    [  # speeds [m/s]
        ("anymal_b_simple/anymal", "pace", 2.5, 1.1),  # these three fall within 10 s without the sum of the loads,
        ("anymal_b_simple/anymal", "pronk", 2.5, 1.2),
        ("go2/go2", "bound", 2.8, 1.6),
        ("anymal_c_simple/anymal", "walk", 1.3, 0.8),  # if its legs swing as desired whatever it costs the body
        ("anymal_c_simple/anymal", "gallop", 1.3, 0.5),  # if loads count from 0.22 sqrt(g h) on
        ("solo/solo12", "pronk", 3.1, 1.5),  # if the flights of a pronk count as uneven for its inclination
    ],
)
def test_a_command_beyond_the_ability_in_a_gait_gives_a_large_speed_and_a_notice(name, gait, command, least):
    robot = legged.load(FILES[name])
    law = Locomotion(gait, Command(vx=command))
    with pytest.warns(SimulationWarning, match="cannot follow the command"):
        run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=12.0, integrator=STEP)
    late = run.times > 6.0
    assert least < np.ptp(run.q[late, 4]) / np.ptp(run.times[late]) < command


@pytest.mark.slow
@needs_files
@pytest.mark.parametrize(("gait", "speed"), [("gallop", 1.3), ("pronk", 1.3), ("pace", 0.5)])
def test_the_motion_that_belongs_to_a_gait_does_not_limit_the_speed(gait, speed):
    """With the tolerances of a trot a gallop, a pronk and a pace of Go2 end at 0.7, 0.7 and 0.35 m/s."""
    robot = legged.load(FILES["go2/go2"])
    law = Locomotion(gait, Command(vx=speed))
    run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=8.0, integrator=STEP)
    assert not run.warnings
    late = run.times > 5.0  # [s], the gallop takes until then
    assert np.ptp(run.q[late, 4]) / np.ptp(run.times[late]) == pytest.approx(speed, rel=0.05)


@pytest.mark.slow
@needs_files
def test_go2_trots_at_three_point_six_meters_per_second_without_a_notice():
    robot = legged.load(FILES["go2/go2"])
    law = Locomotion("trot", Command(vx=3.6))
    run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=14.0, integrator=STEP)
    assert not run.warnings
    late = run.times > 10.0
    assert np.ptp(run.q[late, 4]) / np.ptp(run.times[late]) == pytest.approx(3.6, abs=0.05)
