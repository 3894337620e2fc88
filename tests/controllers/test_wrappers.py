"""Wrappers of control laws: closed forms of delay, lag, noise and limits, nominal models, switching, any nesting."""

import itertools
import multiprocessing

import numpy as np
import pytest
from scipy import stats

import controllers
import legged
import robots
from controllers import ActuatorLag, ActuatorLimits, Delay, NominalModel, SensorNoise, SwitchedLaw, ZeroOrderHold
from legged.errors import ArgumentError, DefinitionError, ShapeError, TraceError
from legged.simulation import BDF

ROUNDING = 1e-12
EULER = legged.SemiImplicitEuler(1e-3)


def hopper():
    return robots.planar_hopper()


def servo():
    return controllers.JointPD(controllers.Posture((0.1, 0.02)), kp=[40.0, 2000.0], kd=[2.0, 60.0])


def wave(t, q, v, wrenches):
    return np.stack([np.sin(7.0 * t), 3.0 * np.cos(5.0 * t)])


def torques(law, until=0.1, integrator=EULER, **options):
    """Return the sample times, (T,), and the joint torques of a run of the hopper in free flight, (T, 2)."""
    run = legged.simulate(hopper(), law, until=until, integrator=integrator, **{"sample": 1e-3} | options)
    return run.times, run.joint_tau


@pytest.mark.parametrize("compiled", [True, False])
def test_a_delayed_command_is_the_command_of_an_earlier_time(compiled):
    times, tau = torques(Delay(wave, delay=0.02, frequency=1000.0), compiled=compiled)
    expected = np.stack([wave(t - 0.02, None, None, None) if t > 0.0195 else np.zeros(2) for t in times])
    np.testing.assert_allclose(tau[:-1], expected[:-1], atol=ROUNDING)


def test_a_held_command_is_delayed_exactly_between_its_evaluations():
    times, tau = torques(Delay(ZeroOrderHold(wave, rate=100.0), delay=0.015, frequency=1000.0))
    for t, command in zip(times[16:-1], tau[16:-1], strict=True):
        held = np.floor((t - 0.015) * 100.0 + 1e-9) / 100.0
        np.testing.assert_allclose(command, wave(held, None, None, None), atol=ROUNDING)


def test_a_delay_within_a_slower_hold_keeps_its_own_sample_times():
    """The hold reads at 0, 20 ms, 40 ms the command of 7 ms before, although no evaluation happens at that time."""
    times, tau = torques(ZeroOrderHold(Delay(wave, delay=0.007, frequency=1000.0), rate=50.0))
    for k, t in ((25, 0.02), (45, 0.04), (99, 0.08)):
        assert times[k] == pytest.approx(1e-3 * k)
        np.testing.assert_allclose(tau[k], wave(t - 0.007, None, None, None), atol=ROUNDING)


@pytest.mark.parametrize("integrator", [legged.RungeKutta4(4e-4), BDF()])
def test_lag_approaches_a_constant_command_exponentially(integrator):
    law = ActuatorLag(lambda t, q, v, wrenches: np.array([2.0, -3.0]) + 0.0 * t, time_constant=[0.02, 0.05])
    times, tau = torques(law, integrator=integrator)
    expected = np.array([2.0, -3.0]) * (1.0 - np.exp(-times[:, None] / np.array([0.02, 0.05])))
    tolerance = 1e-8 if isinstance(integrator, legged.RungeKutta4) else 1e-3  # (h / T)^4 / 120; BDF's own tolerance
    np.testing.assert_allclose(tau, expected, atol=tolerance)


def test_noise_is_normal_with_its_deviation_and_independent():
    robot = hopper()
    law = SensorNoise(lambda t, q, v, wrenches: 0.0 * q[3:], position=0.01, velocity=0.1, seed=4, frequency=1000.0)
    run = legged.simulate(robot, law, until=5.0, sample=1e-3, integrator=EULER, compiled=True)
    errors = run.memory[:-1, 2 * robot.nv : 4 * robot.nv]
    n, k = errors.shape
    assert (n, k) == (5000, 10)
    assert errors.var() == pytest.approx(1.0, abs=5.0 * np.sqrt(2.0 / (n * k)))  # five standard deviations
    assert errors.mean() == pytest.approx(0.0, abs=5.0 / np.sqrt(n * k))
    correlation = np.corrcoef(np.hstack([errors[1:], errors[:-1]]).T) - np.eye(2 * k)  # of channels, and over time
    assert np.abs(correlation).max() < 5.0 / np.sqrt(n)
    assert stats.kstest(errors.ravel(), "norm").pvalue > 1e-3


def test_a_law_sees_the_state_with_noise_and_bias():
    robot = hopper()
    law = SensorNoise(servo(), position=[0.01, 0.002], velocity=0.1, position_bias=[0.05, -0.01], velocity_bias=0.2)
    times, tau = torques(law, until=0.01)
    run = legged.simulate(robot, law, until=0.01, sample=1e-3, integrator=EULER)
    errors = run.memory[:, 2 * robot.nv : 4 * robot.nv]
    q = run.q[:, 3:] + [0.01, 0.002] * errors[:, 3:5] + [0.05, -0.01]
    v = run.v[:, 3:] + 0.1 * errors[:, 8:10] + 0.2
    np.testing.assert_allclose(tau, [40.0, 2000.0] * ([0.1, 0.02] - q) - [2.0, 60.0] * v, rtol=1e-10, atol=1e-9)
    assert len(np.unique(errors[:-1, 4])) == len(times) - 1  # new at each sample time


def test_noise_without_sizes_changes_nothing():
    robot, options = hopper(), {"until": 0.01, "sample": 1e-3, "integrator": EULER}
    one, other = (legged.simulate(robot, law, **options) for law in (servo(), SensorNoise(servo())))
    np.testing.assert_allclose(one.v, other.v, rtol=1e-12, atol=1e-12)


def test_noise_of_the_base_turns_it_by_a_small_rotation():
    robot = robots.spatial_quadruped()
    seen = []

    def law(t, q, v, wrenches):
        seen.append(q[:7])
        return np.zeros(robot.nj)

    bias = np.zeros(robot.nv)
    bias[0], bias[5] = 0.1, 0.02  # [rad] about x, [m] along z
    legged.simulate(robot, SensorNoise(law, position_bias=bias), until=1e-3, integrator=EULER, compiled=False)
    expected = [np.cos(0.05), np.sin(0.05), 0.0, 0.0, 0.0, 0.0, 0.02]
    np.testing.assert_allclose(seen[0], expected, atol=ROUNDING)


def test_errors_depend_on_the_seed_alone():
    robot = hopper()
    law = SensorNoise(servo(), position=0.01)
    options = {"until": 0.02, "integrator": EULER}
    runs = legged.rollout(robot, law, vary={"controller.seed": [0.0, 1.0, 1.0, 7.0]}, compiled=True, **options)
    assert np.array_equal(runs.q[1], runs.q[2])
    assert np.abs(runs.q[1] - runs.q[0]).max() > 1e-6 < np.abs(runs.q[3] - runs.q[1]).max()
    for i, seed in enumerate((0, 1, 1, 7)):
        alone = legged.simulate(robot, SensorNoise(servo(), position=0.01, seed=seed), **options)
        np.testing.assert_allclose(runs.q[i], alone.q, atol=ROUNDING)


@pytest.mark.parametrize("corner", [0.0, 4.0])
def test_torque_speed_curve_limits_in_the_direction_of_motion(corner):
    robot = hopper()
    law = ActuatorLimits(lambda t, q, v, wrenches: 1e3 * np.array([1.0, -1.0]), 30.0, speed=10.0, corner_speed=corner)
    started, memory = law.start(robot, None, robot.neutral(), np.zeros(robot.nv))
    for rate in (-20.0, -3.0, 0.0, 2.0, 6.0, 10.0, 20.0):
        v = np.array([0.0, 0.0, 0.0, rate, rate])
        tau = started.torque(0.0, 0, robot.neutral(), v, np.zeros((0, 6)), memory)[3:]
        share = [float(np.clip((10.0 - x) / (10.0 - corner), 0.0, 1.0)) for x in (rate, -rate)]
        np.testing.assert_allclose(tau, [30.0 * share[0], -30.0 * share[1]], atol=ROUNDING)


def test_limits_without_a_corner_are_those_of_a_robots_motors():
    plain = robots.planar_biped()
    editor = plain.edit()
    for joint in plain.joints:
        editor.change_joint(joint.name, effort=1.5, speed=4.0)
    law = controllers.ComputedTorque(controllers.Walk())
    options = {"until": 0.05, "integrator": EULER, "sample": 1e-3}
    wrapped = legged.simulate(plain, ActuatorLimits(law, 1.5, speed=4.0), **options)
    motors = legged.simulate(editor.build(), law, **options)
    np.testing.assert_allclose(wrapped.q, motors.q, atol=1e-11)
    np.testing.assert_allclose(wrapped.tau, motors.tau, atol=1e-8)
    unlimited = legged.simulate(plain, law, **options)
    assert np.abs(unlimited.tau - wrapped.tau).max() > 0.5  # [N m]: the limits matter


@pytest.mark.parametrize("make", [robots.planar_biped, robots.spatial_quadruped])
def test_a_nominal_model_equal_to_the_robot_changes_no_bit(make):
    law = controllers.ComputedTorque(controllers.Walk() if make is robots.planar_biped else controllers.Trot())
    options = {"until": 0.02, "integrator": EULER, "sample": 2e-3}
    own, wrapped = (legged.simulate(make(), x, **options) for x in (law, NominalModel(law, make())))
    assert np.array_equal(own.q, wrapped.q) and np.array_equal(own.tau, wrapped.tau)
    assert own.backend == wrapped.backend == "compiled closed loop"


def test_a_heavier_nominal_model_gives_the_torques_of_the_heavier_robot():
    robot, law = robots.planar_biped(), controllers.ComputedTorque(controllers.Walk())
    trunk = robot.links[0]
    model = robot.edit().change_link(trunk.name, mass=2.0 * trunk.inertia.mass).build()
    q, v = law.initial_state(robot)
    wrapped, memory = NominalModel(law, model).start(robot, None, q, v)
    own, _ = law.start(model, None, q, v)
    none = np.zeros((len(robot.links), 6))
    tau = wrapped.torque(0.0, 0, q, v, none, memory)
    np.testing.assert_array_equal(tau, own.torque(0.0, 0, q, v, none, memory))
    plain, _ = law.start(robot, None, q, v)
    assert np.abs(tau - plain.torque(0.0, 0, q, v, none, memory)).max() > 0.1  # [N m]


def test_laws_are_switched_at_given_times_each_with_its_own_phases():
    robot = robots.planar_biped()
    slow, fast = controllers.Walk(period=0.02, stride=0.01), controllers.Walk(period=0.007, stride=0.005)
    laws = [controllers.ComputedTorque(gait) for gait in (slow, fast, slow)]
    run = legged.simulate(
        robot, SwitchedLaw(laws, [0.03, 0.051]), until=0.09, sample=1e-3, integrator=legged.RungeKutta4(1e-3)
    )
    assert run.backend == "compiled closed loop"
    for t, reference in zip(run.times[:-1], run.joints.reference[:-1], strict=True):
        gait = fast if 0.03 - 1e-9 < t < 0.051 - 1e-9 else slow
        np.testing.assert_allclose(reference, gait.on(robot).reference(t)[0], atol=1e-9)
    assert np.abs(run.joint_positions - run.joints.reference)[:30].max() < 1e-4  # [rad], of the first law's motion


def test_a_law_that_takes_over_is_the_law_alone_from_there_on():
    robot, first, second = hopper(), controllers.JointPID(controllers.Posture((0.1, 0.0)), kp=40.0, ki=9.0), servo()
    options = {"integrator": legged.RungeKutta4(1e-3), "sample": 0.01}
    run = legged.simulate(robot, SwitchedLaw([first, second], [0.05]), until=0.1, **options)
    own = legged.simulate(robot, first, until=0.05, **options)
    rest = legged.simulate(robot, second, until=0.05, q=own.q[-1], v=own.v[-1], **options)
    np.testing.assert_allclose(run.q[:6], own.q, atol=ROUNDING)
    np.testing.assert_allclose(run.q[5:], rest.q, atol=1e-10)
    assert np.array_equal(run.memory[5], run.memory[-1])  # the integral of the first law stands still


@pytest.mark.parametrize("compiled", [True, False])
def test_the_state_chooses_a_law(compiled):
    def choice(current, t, q, v, wrenches):
        return np.maximum(current, legged.where(q[2] < -0.005, 1.0, 0.0))  # it fell 5 mm, and remembers

    laws = [lambda t, q, v, wrenches, x=x: np.array([x, 0.0]) + 0.0 * t for x in (0.1, 0.2)]
    run = legged.simulate(
        hopper(), SwitchedLaw(laws, choice), until=0.05, sample=1e-3, integrator=EULER, compiled=compiled
    )
    below = run.q[:, 2] < -0.005
    assert 5 < below.sum() < 45
    np.testing.assert_array_equal(run.joint_tau[:, 0], np.where(below, 0.2, 0.1))
    assert set(run.memory[:, 0]) == {0.0, 1.0}  # the number of the acting law


def test_laws_that_the_state_chooses_keep_their_memories_as_laws_chosen_by_time_do():
    laws = [Delay(wave, delay=0.004, frequency=1000.0), Delay(servo(), delay=0.007, frequency=1000.0)]
    _, by_time = torques(SwitchedLaw(laws, [0.015]), until=0.03)
    _, by_state = torques(
        SwitchedLaw(laws, lambda now, t, q, v, wrenches: legged.where(t > 0.0145, 1.0, 0.0)), until=0.03
    )
    np.testing.assert_allclose(by_state, by_time, atol=ROUNDING)
    np.testing.assert_array_equal(by_time[15:22], 0.0)  # the first command of the second law has not arrived
    assert np.all(np.abs(by_time[[10, 25]]) > 1e-3)  # [N m]


def test_a_choice_without_a_law_is_refused():
    laws = [lambda t, q, v, wrenches: np.zeros(2)] * 2
    with pytest.raises(DefinitionError, match="the number of a law, 0 to 1, got 2"):
        legged.simulate(hopper(), SwitchedLaw(laws, lambda now, t, q, v, wrenches: 2.0), until=0.01, integrator=EULER)


def test_the_state_chooses_only_between_laws_that_jump_together():
    gaits = controllers.Walk(period=0.5), controllers.Walk(period=0.4)
    law = SwitchedLaw([controllers.ComputedTorque(gait) for gait in gaits], lambda now, t, q, v, wrenches: now)
    with pytest.raises(DefinitionError, match="must jump at the same times"):
        legged.simulate(robots.planar_biped(), law, until=1.0, integrator=EULER)


WRAPPERS = {
    "hold": lambda law: ZeroOrderHold(law, rate=250.0),
    "delay": lambda law: Delay(law, delay=0.003, frequency=1000.0),
    "noise": lambda law: SensorNoise(law, position=1e-3, velocity=1e-2, frequency=500.0),
    "limits": lambda law: ActuatorLimits(law, 20.0, speed=10.0),
    "lag": lambda law: ActuatorLag(law, time_constant=0.01),
    "model": lambda law: NominalModel(law, hopper()),
    "switch": lambda law: SwitchedLaw([law, wave], [0.0155]),
}
ORDERS = list(itertools.permutations(WRAPPERS))
CHOSEN = [ORDERS[k] for k in np.random.default_rng(3).choice(len(ORDERS), 4, replace=False)]


@pytest.mark.parametrize("order", CHOSEN, ids="-".join)
def test_wrappers_nest_in_any_order_and_run_alike_everywhere(order):
    law = servo()
    for name in order:
        law = WRAPPERS[name](law)
    robot = hopper()
    options = {"until": 0.03, "integrator": EULER, "sample": 5e-3, "q": robot.neutral()}
    compiled = legged.simulate(robot, law, compiled=True, **options)
    plain = legged.simulate(robot, law, compiled=False, **options)
    runs = legged.rollout(robot, law, compiled=True, **options | {"q": np.tile(robot.neutral(), (2, 1))})
    for q, v in ((plain.q, plain.v), (runs.q[0], runs.v[0]), (runs.q[1], runs.v[1])):
        np.testing.assert_allclose(q, compiled.q, atol=1e-11)
        np.testing.assert_allclose(v, compiled.v, atol=1e-9)
    assert np.abs(compiled.v[:, 3:]).max() > 0.01  # something moves


class Filter:
    """A law that filters the velocities in attributes of its own."""

    def __init__(self):
        self.filtered = np.zeros(2)
        self.count = 0

    def torque(self, t, phase, q, v, wrenches, memory):
        self.count += 1
        self.filtered = 0.9 * self.filtered + 0.1 * v[3:]
        return np.array([0.5, 0.0]) - self.filtered


@pytest.mark.parametrize("wrapped", [lambda law: law, lambda law: ZeroOrderHold(law, rate=200.0)])
def test_a_law_with_a_state_of_its_own_runs_in_python_and_starts_from_that_state(wrapped):
    options = {"until": 0.05, "integrator": EULER}
    automatic, asked = Filter(), Filter()
    run = legged.simulate(hopper(), wrapped(automatic), **options)
    expected = legged.simulate(hopper(), wrapped(asked), compiled=False, **options)
    assert "changes a state of its own" in run.backend
    assert np.array_equal(run.q, expected.q) and automatic.count == asked.count
    runs = legged.rollout(hopper(), wrapped(Filter()), q=np.tile(hopper().neutral(), (2, 1)), **options)
    assert "changes a state of its own" in runs.backend
    np.testing.assert_array_equal(runs.q[0], expected.q)
    np.testing.assert_array_equal(runs.q[1], expected.q)  # members do not share it
    with pytest.raises(TraceError, match="changes a state of its own"):
        legged.simulate(hopper(), wrapped(Filter()), compiled=True, **options)


def test_a_function_with_captured_state_is_told_to_run_in_python():
    filtered = [np.zeros(2)]

    def law(t, q, v, wrenches):
        filtered[0] = 0.9 * filtered[0] + 0.1 * v[3:]
        return -filtered[0]

    with pytest.raises(TraceError, match="pass compiled=False"):
        legged.simulate(hopper(), ZeroOrderHold(law), until=0.05, integrator=EULER)
    filtered[0] = np.zeros(2)
    legged.simulate(hopper(), ZeroOrderHold(law), until=0.05, integrator=EULER, compiled=False)


def test_laws_run_alike_in_spawned_processes():
    robot = robots.planar_biped()
    law = SensorNoise(controllers.JointPD(controllers.Walk(), kp=20.0, kd=0.2), velocity=0.01)
    law = Delay(ZeroOrderHold(law, rate=500.0), delay=0.002, frequency=1000.0)
    options = {"until": 0.01, "integrator": EULER, "sample": 5e-3}
    own = legged.simulate(robot, law, **options)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        other = pool.apply(legged.simulate, (robot, law), options)
    assert np.array_equal(own.q, other.q) and np.array_equal(own.tau, other.tau)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Delay(servo(), delay=0.0015, frequency=1000.0), DefinitionError, "whole number of sampling periods"),
        (lambda: Delay(servo(), delay=-1.0), ArgumentError, "at least 0"),
        (lambda: Delay(servo(), delay=0.0, frequency=0.0), ArgumentError, "must be positive"),
        (lambda: SensorNoise(servo(), seed=0.5), DefinitionError, "whole number"),
        (lambda: SwitchedLaw([servo(), servo()], [0.2, 0.1]), ShapeError, "one time fewer than laws"),
        (lambda: SwitchedLaw([servo(), servo(), servo()], [0.2, 0.1]), DefinitionError, "increase"),
        (lambda: SwitchedLaw(servo(), []), DefinitionError, "list of controllers"),
        (lambda: NominalModel(servo(), None), ArgumentError, "a legged.Robot"),
    ],
)
def test_impossible_wrappers_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("law", "error", "words"),
    [
        (lambda: SensorNoise(servo(), position=[0.1] * 3), ShapeError, "one number, \\(2,\\) or \\(5,\\)"),
        (lambda: SensorNoise(servo(), velocity=-0.1), DefinitionError, "must not be negative"),
        (lambda: ActuatorLag(servo(), 0.0), DefinitionError, "must be positive"),
        (lambda: ActuatorLimits(servo(), 5.0, speed=2.0, corner_speed=3.0), DefinitionError, "below speed"),
        (lambda: ActuatorLimits(servo(), [5.0] * 3), ShapeError, "one per joint coordinate"),
        (
            lambda: NominalModel(servo(), robots.planar_biped()),
            DefinitionError,
            "different links, first .* link of mass zero",
        ),
    ],
)
def test_wrappers_that_do_not_fit_the_robot_are_refused(law, error, words):
    with pytest.raises(error, match=words):
        legged.simulate(hopper(), law(), until=0.01, integrator=EULER)


COMMANDS = {
    "formula": lambda: lambda t: np.array([0.1 * np.sin(3.0 * t), 0.01 * t]),
    "values": lambda: controllers.SampledCommand([0.0, 0.02], [[0.1, 0.0], [0.2, 0.01]]),
    "linear": lambda: controllers.SampledCommand([0.0, 0.02, 0.05], [[0.0, 0.0], [0.1, 0.01], [0.0, 0.0]], linear=True),
    "live": lambda: controllers.LiveCommand([0.1, 0.01]),
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_laws_follow_commands_from_any_source(kind):
    command = COMMANDS[kind]()
    law = controllers.ComputedTorque(controllers.CommandedPosture(command), kp=2500.0)
    run = legged.simulate(hopper(), law, until=0.06, sample=2e-3, integrator=legged.RungeKutta4(1e-3))
    np.testing.assert_allclose(run.joints.reference, [command(t) for t in run.times], atol=ROUNDING)
    assert ("cannot be compiled" in run.backend) == (kind == "live")
    if kind == "formula":  # its derivatives are exact, and so is the model, but its first velocity is not zero
        late = run.times > 0.05
        assert np.abs(run.joint_positions - run.joints.reference)[late].max() < 2e-2
    if kind == "linear":
        np.testing.assert_allclose(command(0.035), [0.05, 0.005], atol=ROUNDING)


def test_a_live_command_acts_while_the_run_goes_on():
    command = controllers.LiveCommand([0.0, 0.0])

    def law(t, q, v, wrenches, wanted):
        if t >= 0.01:  # in place of another thread
            command.set([1.0, 2.0])
        return wanted

    held = ZeroOrderHold(controllers.CommandedLaw(law, command), rate=500.0)
    _, tau = torques(held, until=0.02)
    assert (tau[:10] == 0.0).all() and (tau[12:] == [1.0, 2.0]).all()
    with pytest.raises(ShapeError):
        command.set([1.0])
