"""Zero-order hold: times of evaluation, constant torques in between, and equal results for all integrators."""

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers.zero_order_hold import is_sample_time
from legged.contact import Rigid
from legged.errors import DefinitionError
from legged.ground import KelvinVoigt, VectorFriction
from legged.ground.ground import Ground

ROUNDING = 1e-12
RULES = [legged.SemiImplicitEuler(7e-4), legged.RungeKutta4(3e-3), legged.TimeStepping(7e-4)]


def hopper(integrator):
    """A light robot over a ground of the integrator's kind."""
    ground = (
        Rigid()
        if isinstance(integrator, legged.TimeStepping)
        else Ground(KelvinVoigt(3e3, 60.0), VectorFriction(0.7, 50.0))
    )
    robot = robots.planar_hopper()
    q = robot.neutral()
    q[2] = 0.63
    return {"robot": robot, "ground": ground, "q": q, "integrator": integrator, "fall": False}


def servo(t, q, v, wrenches):
    return np.stack([-40.0 * q[3] - 2.0 * v[3], -2000.0 * (q[4] - 0.01 * np.sin(9.0 * t)) - 60.0 * v[4]])


@pytest.mark.parametrize("integrator", RULES)
def test_a_held_law_is_asked_at_whole_multiples_of_its_period_whatever_steps_and_samples_are(integrator):
    asked = []

    def law(t, q, v, wrenches):
        asked.append(float(t))
        return servo(t, q, v, wrenches)

    legged.simulate(
        **hopper(integrator),
        controller=controllers.ZeroOrderHold(law, rate=130.0),
        until=0.1,
        sample=0.0037,
        compiled=False,
    )
    times = np.unique(np.round(asked, 9))
    np.testing.assert_allclose(times, np.arange(14) / 130.0, atol=1e-9)  # 0.1 s are 13 periods


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_multiple_of_a_period_is_a_sample_time_in_numbers_of_either_type(dtype):
    steps = np.arange(100_000)
    times = (1e-3 * steps).astype(dtype)  # [s], two time steps a period
    np.testing.assert_array_equal(is_sample_time(times, dtype(500.0)), steps % 2 == 0)


def test_after_an_hour_the_neighbors_of_a_sample_time_are_none():
    """With steps of 0.1 ms, 3e-8 of the time: a tolerance for float32 numbers would be wider."""
    steps = 36_000_000 + np.arange(60)
    due = legged.compile(lambda t: legged.where(is_sample_time(t, 500.0), 1.0, 0.0), t=())
    wanted = steps % 20 == 0
    np.testing.assert_array_equal(is_sample_time(1e-4 * steps, 500.0), wanted)
    np.testing.assert_array_equal(due(1e-4 * steps), wanted)


def test_between_its_instants_a_held_law_is_a_constant_torque():
    robot = robots.planar_hopper()
    law = controllers.ZeroOrderHold(servo, rate=50.0)
    options = {"until": 0.02, "integrator": legged.RungeKutta4(1e-3), "sample": 0.02}
    run = legged.simulate(robot, law, **options | {"until": 0.1})
    q, v = run.q[0], run.v[0]
    for k in range(5):
        tau = servo(0.02 * k, q, v, None)
        np.testing.assert_allclose(run.joint_tau[k], tau, atol=ROUNDING)
        piece = legged.simulate(robot, lambda t, q, v, wrenches, tau=tau: tau, q=q, v=v, **options)
        q, v = piece.q[-1], piece.v[-1]
    np.testing.assert_allclose(run.q[-1], q, atol=ROUNDING)
    np.testing.assert_allclose(run.v[-1], v, atol=1e3 * ROUNDING)  # after five starts with rounded states


class ExplicitPID(controllers.JointPID):
    """A servo that states no gains, so that time steps evaluate it at their start, as they do with a held law."""

    implicit_gains = None  # type: ignore[assignment]


@pytest.mark.parametrize("integrator", [legged.SemiImplicitEuler(1e-3), legged.TimeStepping(1e-3)])
def test_a_law_held_for_one_step_is_the_law_itself_with_its_memory(integrator):
    robot = robots.spatial_quadruped()
    law = ExplicitPID(controllers.Stand(hip_height=0.55), kp=400.0, ki=50.0, kd=4.0)
    held = controllers.ZeroOrderHold(law, rate=1000.0)
    rigid = isinstance(integrator, legged.TimeStepping)
    ground = Rigid(friction=0.7) if rigid else Ground(KelvinVoigt(3e4, 600.0), VectorFriction(0.7, 50.0))
    options = {"ground": ground, "until": 0.05, "integrator": integrator}
    own, other = (legged.simulate(robot, x, **options) for x in (law, held))
    assert other.backend == "compiled closed loop"
    np.testing.assert_allclose(other.q, own.q, atol=1e-9)
    np.testing.assert_allclose(other.tau[:-1], own.tau[:-1], atol=1e-6)  # [N m], of some tens
    np.testing.assert_allclose(other.joints.reference, own.joints.reference)
    assert other.memory.shape[1] == robot.nv + own.memory.shape[1]


@pytest.mark.parametrize("integrator", [legged.RungeKutta4(1e-3), legged.TimeStepping(1e-3)])
def test_sample_times_change_nothing_of_a_held_motion(integrator):
    options = hopper(integrator) | {"controller": controllers.ZeroOrderHold(servo, rate=250.0), "until": 0.4}
    coarse, fine = (legged.simulate(sample=sample, **options) for sample in (0.1, 0.002))
    np.testing.assert_allclose(fine.q[::50], coarse.q, atol=ROUNDING)


def test_members_of_a_rollout_are_held_as_runs_are_each_at_its_own_rate():
    robot = robots.planar_hopper()
    law = controllers.JointPD(controllers.Posture([0.1, 0.0]), kp=40.0, kd=2.0)
    rates, gains = [100.0, 250.0, 333.0], [30.0, 40.0, 50.0]
    options = {"until": 0.3, "integrator": legged.SemiImplicitEuler(1e-3)}
    runs = legged.rollout(
        robot,
        controllers.ZeroOrderHold(law, rate=100.0),
        vary={"controller.rate": rates, "controller.law.kp": gains},
        compiled=True,
        **options,
    )
    for i, (rate, kp) in enumerate(zip(rates, gains, strict=True)):
        one = controllers.ZeroOrderHold(controllers.JointPD(controllers.Posture([0.1, 0.0]), kp=kp, kd=2.0), rate=rate)
        np.testing.assert_allclose(runs.q[i], legged.simulate(robot, one, **options).q, atol=1e-10)


class Counting:
    """A law that counts its evaluations."""

    def __init__(self):
        self.count = 0

    def torque(self, t, phase, q, v, wrenches, memory):
        self.count += 1
        return np.array([0.01 * self.count, 0.0])


def test_a_held_law_that_keeps_a_state_of_its_own_runs_in_python():
    robot = robots.planar_hopper()
    run = legged.simulate(
        robot, controllers.ZeroOrderHold(Counting(), rate=100.0), until=0.05, integrator=legged.SemiImplicitEuler(1e-3)
    )
    assert "keep a state" in run.backend


def test_a_held_law_hides_nothing_of_the_law_but_its_switches():
    robot, law = robots.spatial_quadruped(), controllers.JointPD(controllers.Trot(hip_height=0.5))
    held = controllers.ZeroOrderHold(law)
    np.testing.assert_array_equal(held.initial_state(robot)[0], law.initial_state(robot)[0])
    started, _ = held.start(robot, None, *law.initial_state(robot))
    np.testing.assert_array_equal(started.switches(2.1), law.switches(2.1))
    np.testing.assert_array_equal(started.reference(0.3)[0], law.gait.on(robot).reference(0.3)[0])  # pyright: ignore[reportAttributeAccessIssue]
    assert not hasattr(controllers.ZeroOrderHold(servo), "initial_state")


def test_a_clock_needs_fixed_steps_and_a_rate():
    robot = robots.planar_hopper()
    with pytest.raises(DefinitionError, match="discrete update needs an integrator with fixed steps"):
        legged.simulate(robot, controllers.ZeroOrderHold(servo), until=0.1, integrator=legged.Stiff())
    for rate in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(DefinitionError, match="must be positive"):
            controllers.ZeroOrderHold(servo, rate=rate)
    assert controllers.ZeroOrderHold(servo, rate=0.5).rate == 0.5  # an evaluation every two seconds
    with pytest.raises(DefinitionError, match="is itself a zero-order hold"):
        controllers.ZeroOrderHold(controllers.ZeroOrderHold(servo))


def test_a_hold_of_a_group_is_that_of_its_robots_with_their_own_sample_times():
    group = legged.combine({"a": pendulum(), "b": pendulum()})
    late = controllers.Delay(swing, delay=0.01, frequency=500.0)
    q, v = group.join_states({"a": [0.3], "b": [-0.2]})
    options = {"q": q, "v": v, "until": 0.05, "integrator": legged.SemiImplicitEuler(1e-3), "compiled": False}
    whole = legged.simulate(group, controllers.ZeroOrderHold({"a": late, "b": swing}, rate=100.0), **options)
    held = {name: controllers.ZeroOrderHold(law, rate=100.0) for name, law in (("a", late), ("b", swing))}
    parts = legged.simulate(group, held, **options)
    np.testing.assert_array_equal(whole.q, parts.q)
    assert np.ptp(whole.q[:, 0]) > 1e-3


def pendulum():
    """Return a body that turns about y."""
    body = legged.Link("body", legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0.0, 0.0, 0.2)))
    builder = legged.RobotBuilder("pendulum", legged.Link("post"), base=legged.FixedBase())
    return builder.add(legged.Revolute("joint", "y"), body, to="post").build()


def swing(t, q, v, wrenches):
    return np.stack([np.sin(30.0 * t)]) - 5.0 * q
