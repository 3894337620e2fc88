"""Stops, motors and friction in simulations of pendulums and wheels with closed-form solutions."""

from operator import attrgetter

import numpy as np
import pytest
from oracles.rebuild import rebuild

import legged
from legged.errors import StateError
from legged.robot.physics import TRANSITION_SPEED
from legged.simulation.forces import STOP_TIME, motor_forces, stops_of

FIXED = legged.RungeKutta4(step=1e-4)
INERTIA = 0.3


def pendulum(gravity=9.81, **physics):
    """A link of 1 kg, 0.5 m out along x from a hinge about -y, so that it falls to negative angles; 0.3 kg m^2."""
    rod = legged.Inertia(1.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.05, 0.05]))
    hinge = legged.Revolute("hinge", "-y", physics=legged.JointPhysics(**physics))
    base = legged.RobotBuilder("pendulum", legged.Link("wall"), base=legged.FixedBase(), gravity=(0, 0, -gravity))
    return base.add(hinge, legged.Link("rod", rod), to="wall").build()


def wheel(**physics):
    return pendulum(gravity=0.0, **physics)


# Stops.


@pytest.mark.parametrize("integrator", [legged.Stiff(), FIXED, legged.SemiImplicitEuler(step=1e-4)], ids=repr)
def test_a_pendulum_falls_onto_its_stop_and_comes_to_rest(integrator):
    run = legged.simulate(pendulum(lower=-0.5), until=2.0, integrator=integrator)
    angle, rate = run.q[:, 0], run.v[:, 0]
    sag = 9.81 * 0.5 * np.cos(0.5) * STOP_TIME**2 / INERTIA
    assert angle[-1] == pytest.approx(-0.5 - sag, abs=0.01 * sag)
    assert abs(rate[-1]) < 1e-6
    speed = np.sqrt(2 * 9.81 * 0.5 * np.sin(0.5) / INERTIA)
    assert angle.min() > -0.5 - 1.1 * speed * STOP_TIME / np.e
    lost = 9.81 * 0.5 * np.sin(0.5)
    error = 0.05 if isinstance(integrator, legged.SemiImplicitEuler) else 1e-3  # of first order: h / T = 0.02
    assert run.energy.joint_work[-1] == pytest.approx(-lost, rel=error)
    assert run.energy_drift < error * lost


def test_a_stop_only_pushes_and_lets_go_without_pulling():
    robot = wheel(lower=-0.5, upper=0.5)
    (stop,) = stops_of(robot)
    assert stop.stiffness == pytest.approx(INERTIA / STOP_TIME**2)
    assert stop.damping == pytest.approx(2 * INERTIA / STOP_TIME)
    rng = np.random.default_rng(0)
    for x, v in rng.uniform((-1.0, -30.0), (1.0, 30.0), (200, 2)):
        force = stop.force(np.array([x]), np.array([v]))
        assert force * np.sign(x) <= 0.0
        assert force == 0.0 or abs(x) > 0.5
    assert stop.force(np.array([0.51]), np.array([-100.0])) == 0.0  # at high speed


def test_a_wheel_hits_a_stop_as_a_critically_damped_spring_and_leaves_it():
    """k x + d v reaches zero after 2 T at the speed v / e^2; the largest penetration is v T / e after T."""
    run = legged.simulate(wheel(upper=0.5), until=0.3, v=[2.0], integrator=legged.RungeKutta4(step=1e-5), sample=1e-4)
    assert run.v[-1, 0] == pytest.approx(-2.0 * np.exp(-2.0), rel=1e-3)
    assert run.q.max() == pytest.approx(0.5 + 2.0 * STOP_TIME / np.e, rel=1e-3)
    assert run.energy.joint_work[-1] == pytest.approx(run.energy.kinetic[-1] - run.energy.kinetic[0], rel=1e-6)


def test_each_end_of_a_range_may_be_open():
    below = legged.simulate(pendulum(upper=0.1), until=0.5, integrator=FIXED)
    free = legged.simulate(pendulum(), until=0.5, integrator=FIXED)
    assert below.q == pytest.approx(free.q, abs=1e-12)
    assert stops_of(pendulum()) == ()


def test_a_run_that_starts_beyond_a_stop_raises_an_error():
    with pytest.raises(StateError) as caught:
        legged.simulate(pendulum(lower=0.2, upper=0.7), until=0.1)
    assert "joint 'hinge' is at 0 rad, beyond its stop at 0.2 rad; a run must start within" in str(caught.value)
    with pytest.raises(StateError):
        legged.rollout(pendulum(lower=0.2), until=0.1, q=np.array([[0.3], [0.1]]), compiled=False)
    assert legged.simulate(pendulum(lower=0.2), until=0.1, q=[0.2]).q[-1, 0] > 0.19


def test_a_coupled_joint_at_its_stop_stops_its_master():
    builder = legged.RobotBuilder("pair", legged.Link("wall"), base=legged.FixedBase())
    body = legged.Inertia(1.0, (0.5, 0.0, 0.0), 0.05 * np.eye(3))
    builder.add(legged.Revolute("one", "-y"), legged.Link("a", body), to="wall")
    stopped = legged.Revolute("two", "-y", physics=legged.JointPhysics(lower=-0.2, damping=0.3, friction=0.1))
    builder.add(stopped, legged.Link("b", body), to="wall", at=(0, 1, 0))
    robot = builder.couple("two", "one", 0.5, 0.1).build()
    run = legged.simulate(robot, until=3.0, integrator=legged.SemiImplicitEuler(1e-4))
    assert run.q[-1, 0] == pytest.approx((-0.2 - 0.1) / 0.5, abs=2e-3)
    assert abs(run.v[-1, 0]) < 1e-5
    assert run.energy_drift < 1e-3 * abs(run.energy.joint_work[-1])  # of first order


# Motors.


def asks(force):
    return lambda t, q, v, wrenches: np.array([force]) + 0.0 * v


@pytest.mark.parametrize("force", [-50.0, -3.0, 1.5, 50.0])
def test_a_motor_gives_the_commanded_force_up_to_its_effort(force):
    run = legged.simulate(wheel(effort=2.0), asks(force), until=0.5, integrator=FIXED)
    given = np.clip(force, -2.0, 2.0)
    assert run.tau == pytest.approx(given)
    assert run.v[-1, 0] == pytest.approx(given * 0.5 / INERTIA)
    assert run.energy.actuator_work[-1] == pytest.approx(run.energy.kinetic[-1])


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_saturated_motor_reaches_its_no_load_speed(sign):
    """I v' = effort (1 - v / speed): v = speed (1 - exp(-t / T)) with T = I speed / effort."""
    run = legged.simulate(wheel(effort=2.0, speed=5.0), asks(sign * 50.0), until=8.0, integrator=FIXED)
    slow = INERTIA * 5.0 / 2.0
    assert run.v[:, 0] == pytest.approx(sign * 5.0 * (1.0 - np.exp(-run.times / slow)), abs=1e-9)
    assert run.tau[:, 0] == pytest.approx(sign * 2.0 * np.exp(-run.times / slow), abs=1e-9)
    assert run.v[-1, 0] == pytest.approx(sign * 5.0, rel=1e-4)


def test_a_motor_brakes_with_its_whole_effort_at_any_speed():
    robot = wheel(effort=2.0, speed=5.0)
    run = legged.simulate(robot, asks(-50.0), until=1.0, v=[20.0], integrator=FIXED)
    assert run.tau == pytest.approx(-2.0)
    assert run.v[:, 0] == pytest.approx(20.0 - 2.0 / INERTIA * run.times)
    driven = legged.simulate(robot, asks(50.0), until=1.0, v=[20.0], integrator=FIXED)
    assert driven.tau == pytest.approx(0.0)  # no driving force above the no-load speed
    assert driven.v == pytest.approx(20.0)


def test_motors_without_limits_give_the_commanded_force_and_the_base_has_none():
    rng = np.random.default_rng(1)
    free = legged.random_tree(3, 8, joints=("revolute", "ball", "planar"), bases=("floating",))
    v, tau = rng.normal(size=(2, free.nv))
    assert np.array_equal(motor_forces(free, v, tau), tau)
    weak = rebuild(free, joint=lambda joint: type(joint)(joint.name, physics=legged.JointPhysics(effort=0.1)))
    given = motor_forces(weak, v, tau)
    assert np.array_equal(given[:6], tau[:6])
    assert given[6:] == pytest.approx(np.clip(tau[6:], -0.1, 0.1))


# Friction and springs in simulations.


def test_viscous_friction_slows_a_wheel_exponentially():
    run = legged.simulate(wheel(damping=0.6), until=2.0, v=[3.0], integrator=FIXED)
    assert run.v[:, 0] == pytest.approx(3.0 * np.exp(-0.6 / INERTIA * run.times), rel=1e-9)
    assert run.energy.joint_work[-1] == pytest.approx(run.energy.kinetic[-1] - run.energy.kinetic[0], rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*regularizes the dry friction:UserWarning")
def test_regularized_dry_friction_stops_a_wheel_at_a_steady_rate_and_lets_it_creep():
    run = legged.simulate(wheel(friction=0.6), until=2.0, v=[3.0], integrator=legged.Stiff())
    moving = run.v[:, 0] > 10 * TRANSITION_SPEED
    assert run.v[moving, 0] == pytest.approx(3.0 - 0.6 / INERTIA * run.times[moving], abs=1e-4)
    assert abs(run.v[-1, 0]) < 1e-3 * TRANSITION_SPEED
    held = legged.simulate(wheel(friction=0.6), asks(0.3), until=2.0, integrator=legged.Stiff())
    assert held.v[-1, 0] == pytest.approx(TRANSITION_SPEED * np.arctanh(0.5), rel=1e-4)


@pytest.mark.parametrize("step", [1e-4, 1e-2])
def test_semi_implicit_steps_are_stable_for_any_friction(step):
    """Explicit steps of 0.01 s would diverge with h c / I = 33, and dry friction chatter by h F / I = 0.3 rad/s."""
    rule = legged.SemiImplicitEuler(step=step)
    damped = legged.simulate(wheel(damping=1e5 * INERTIA / 30), until=0.1, v=[3.0], integrator=rule)
    assert np.all(np.diff(damped.v[:, 0]) <= 0.0) and damped.v[-1, 0] >= 0.0
    dry = legged.simulate(wheel(friction=9.0), until=0.5, v=[3.0], integrator=rule)
    assert np.all(np.diff(dry.v[:, 0]) <= 1e-12) and dry.v.min() >= -1e-12  # a held joint rests up to rounding
    assert dry.q[-1, 0] == pytest.approx(3.0**2 * INERTIA / 2 / 9.0, abs=3.0 * step + 3e-3)
    for run in (damped, dry):
        assert run.energy_drift < 1e-9  # the work uses the mean speed over a step


def test_a_spring_swings_a_wheel_with_its_period_and_keeps_its_energy():
    robot = wheel(stiffness=12.0, rest=0.4, armature=0.2)
    omega = np.sqrt(12.0 / (INERTIA + 0.2))
    run = legged.simulate(robot, until=3.0, q=[1.0], integrator=FIXED)
    assert run.q[:, 0] == pytest.approx(0.4 + 0.6 * np.cos(omega * run.times), abs=1e-8)
    assert run.energy_drift < 1e-9
    assert run.energy.potential[0] == pytest.approx(0.5 * 12.0 * 0.6**2)


# All joint physics together, in every backend.


def leg(**rest):
    """A leg with all joint physics: stops, limited motors, friction, springs, a gyroscopic rotor."""
    body = legged.box_inertia(1.0, (0.05, 0.05, 0.3), (0, 0, -0.15))
    everything = {"damping": 0.05, "friction": 0.1, "stiffness": 2.0, "effort": 3.0, "speed": 12.0, **rest}
    rotor = legged.Rotor(1e-4, 9.0, gyroscopic=True)
    hip = legged.JointPhysics(lower=-0.6, upper=0.4, rotor=rotor, **everything)
    knee = legged.JointPhysics(lower=-2.0, upper=-0.1, rotor=rotor, **everything)
    builder = legged.RobotBuilder("leg", legged.Link("trunk", legged.box_inertia(3.0, (0.3, 0.2, 0.1))))
    builder.add(legged.Revolute("hip", "y", physics=hip), legged.Link("thigh", body), to="trunk", at=(0.1, 0, 0))
    builder.add(legged.Revolute("knee", "y", physics=knee), legged.Link("shank", body), to="thigh", at=(0, 0, -0.3))
    return builder.build()


def swings(t, q, v, wrenches):
    return 6.0 * np.array([np.sin(9.0 * t), np.cos(7.0 * t)])


START = {"q": np.array([1.0, 0, 0, 0, 0, 0, 0, 0.1, -0.5]), "v": np.array([0.3, -0.5, 0.2, 0, 0, 0, 0, 0])}


@pytest.mark.filterwarnings("ignore:.*regularizes the dry friction:UserWarning")
def test_the_energy_balance_holds_with_all_joint_physics():
    run = legged.simulate(leg(), swings, until=2.0, **START, integrator=legged.Stiff(rtol=1e-8, atol=1e-10))
    assert run.q[:, 7].max() > 0.4  # the stops are reached
    assert run.q[:, 8].max() > -0.1
    exchanged = np.abs(run.energy.joint_work[-1]) + np.abs(run.energy.actuator_work[-1])
    assert exchanged > 1.0
    assert run.energy_drift < 1e-5 * exchanged
    assert np.all(np.abs(run.joint_tau) <= 3.0)


def test_compiled_and_python_engines_and_rollouts_agree():
    robot = leg()
    options = {"until": 0.4, "integrator": legged.SemiImplicitEuler(step=2e-4), **START}
    whole = legged.simulate(robot, swings, compiled=True, **options)
    plain = legged.simulate(robot, swings, compiled=False, **options)
    assert whole.backend == "compiled closed loop"
    batch = legged.rollout(robot, swings, compiled=True, **{**options, "v": np.stack([START["v"], 0.5 * START["v"]])})
    for field in ("q", "v", "tau", "energy.joint_work", "energy.actuator_work"):
        assert attrgetter(field)(plain) == pytest.approx(attrgetter(field)(whole), abs=1e-9), field
        assert attrgetter(field)(batch.run(0)) == pytest.approx(attrgetter(field)(whole), abs=1e-9), field
    assert np.abs(whole.energy.joint_work).max() > 0.1
