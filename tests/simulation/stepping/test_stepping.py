"""`Simulation`: steps as those of `simulate`, independent robots, resets, saved states."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.errors import (
    ArgumentError,
    NotFiniteError,
    ShapeError,
    StateError,
    TraceError,
    UnknownNameError,
)
from legged.ground import paper_ground
from legged.simulation.stepping.clock import Clock
from tests.simulation.stepping.hopper_laws import EULER, SPRINGS, Excited, Integral, close, recorded, servo, standing
from tests.simulation.unstable_ball import OPTIONS, STEP, ball


@pytest.mark.parametrize("ground", [None, SPRINGS, legged.Rigid(friction=0.7)], ids=["flight", "compliant", "rigid"])
@pytest.mark.parametrize(
    "law", [standing, Integral(), controllers.ZeroOrderHold(standing, rate=300.0)], ids=["law", "memory", "held"]
)
def test_steps_are_those_of_simulate(hopper, ground, law):
    robot, q = hopper
    steps = legged.TimeStepping(1e-3) if isinstance(ground, legged.Rigid) else EULER
    options = {"ground": ground, "integrator": steps, "fall": False}
    run = legged.simulate(robot, law, until=0.1, sample=4e-3, q=q[3], **options)
    sim = legged.Simulation(robot, law, q=q[3], compiled=True, **options)
    q_steps, v_steps = recorded(sim, 25, 4)
    close(q_steps, run.q)
    close(v_steps, run.v)
    assert sim.t == pytest.approx(0.1, abs=1e-12) and sim.backend.startswith("compiled")
    if not isinstance(ground, legged.Rigid):
        close(sim.contacts.forces, run.contacts.forces[-1])
    elif not isinstance(law, controllers.ZeroOrderHold):  # whose updates divide the time steps
        every_step = legged.simulate(robot, law, until=0.1, sample=1e-3, q=q[3], **options)
        close(sim.contacts.forces, every_step.contacts.forces[-1])  # means over a sample interval
    np.testing.assert_array_equal(sim.contacts.touching, np.abs(sim.contacts.forces).sum(axis=1) > 0.0)
    plain = legged.Simulation(robot, law, q=q[3], compiled=False, **options)
    close(recorded(plain, 5, 4)[1], run.v[:6])


def test_phases_change_where_the_gait_switches():
    robot = robots.planar_biped()
    law, ground = controllers.ComputedTorque(controllers.Walk(period=0.11)), paper_ground(robot)
    run = legged.simulate(robot, law, ground=ground, until=0.3, sample=4e-3, integrator=EULER)
    sim = legged.Simulation(robot, law, ground=ground, integrator=EULER)
    phases = [sim.observe(phase)]
    for _ in range(75):
        sim.step(n=4)
        phases.append(sim.observe(phase))
    close(sim.q, run.q[-1])
    np.testing.assert_array_equal(phases, run.phases)
    assert run.phases[-1] > 1


def phase(phase):
    return phase


def test_random_robots_in_flight_and_one_robot_as_one_of_many():
    for seed in range(3):
        robot = legged.random_tree(seed, 6, bases=("floating",), joints=("revolute", "ball"))
        inertias = np.diag(legged.inertia_matrix(robot, robot.neutral()))[robot.base.nv :]  # tau of about 1 rad/s^2
        tau = inertias * np.random.default_rng(seed).standard_normal((3, robot.nj))
        many = legged.Simulation(robot, num=3, integrator=EULER)
        one = legged.Simulation(robot, integrator=EULER)
        for _ in range(10):
            many.step(tau, n=2)
            one.step(tau[1], n=2)
        run = legged.simulate(robot, lambda t, q, v, w, tau=tau[1]: tau, until=0.02, integrator=EULER)
        close(one.q, run.q[-1])
        close(many.v[1], run.v[-1])


def test_a_robot_does_not_depend_on_the_others_nor_on_threads(hopper):
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER}
    whole = legged.Simulation(robot, standing, num=11, q=q, threads=1, **options)
    whole.step(n=300)
    for rows in (slice(2, 4), slice(3, 10)):
        part = legged.Simulation(robot, standing, num=rows.stop - rows.start, q=q[rows], threads=2, **options)
        for _ in range(100):
            part.step(n=3)
        np.testing.assert_array_equal(part.v, whole.v[rows])
    alone = legged.Simulation(robot, standing, q=q[3], **options)
    alone.step(n=300)
    close(alone.v, whole.v[3])


def test_a_reset_starts_the_robots_of_the_mask_and_leaves_the_others(hopper):
    robot, q = hopper
    options = {"ground": SPRINGS, "integrator": EULER, "num": 11}
    sim, other = (legged.Simulation(robot, Excited(), q=q, **options) for _ in range(2))
    sim.step(n=100)
    other.step(n=100)
    mask = np.arange(11) % 3 == 0
    sim.reset(q[::-1], where=mask)
    np.testing.assert_array_equal(sim.q[mask], q[::-1][mask])
    np.testing.assert_array_equal(sim.q[~mask], other.q[~mask])
    np.testing.assert_array_equal(sim.t, np.where(mask, 0.0, 0.1))
    sim.step(n=50)
    other.step(n=50)
    np.testing.assert_array_equal(sim.v[~mask], other.v[~mask])
    fresh = legged.Simulation(robot, Excited(), q=q[::-1], **options)
    fresh.step(n=50)
    np.testing.assert_array_equal(sim.state.rest[mask], fresh.state.rest[mask])
    sim.reset(where=[1, 2])
    np.testing.assert_array_equal(sim.q[[1, 2]], q[[1, 2]])


def test_a_saved_state_continues_as_before(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, Integral(), ground=SPRINGS, num=11, q=q, integrator=EULER)
    sim.step(n=30)
    saved = sim.state
    sim.step(n=20)
    after = sim.state
    sim.reset()
    sim.state = saved
    sim.step(n=20)
    np.testing.assert_array_equal(sim.state.rest, after.rest)
    np.testing.assert_array_equal(sim.t, after.t)
    one = legged.Simulation(robot, Integral(), ground=SPRINGS, q=q[2], integrator=EULER)
    one.step(n=30)
    sim.state = one.state
    np.testing.assert_array_equal(sim.q, np.tile(one.q, (11, 1)))
    one.state = one.state
    sim.step(n=200)  # beyond a check for divergence
    one.step(n=200)
    close(sim.q[4], one.q)


@pytest.mark.parametrize("compiled", [True, False])
def test_falls_and_divergence_are_flags(hopper, compiled):
    robot, q = hopper
    v = np.zeros((3, robot.nv))
    v[0, 0], v[1, 3] = 8.0, 1e200  # turning over, and a speed whose square is no number
    options = {"ground": SPRINGS, "num": 3, "integrator": EULER, "compiled": compiled}
    sim = legged.Simulation(robot, standing, q=q[:3], v=v, **options)
    for _ in range(100):
        sim.step(n=4)
    np.testing.assert_array_equal(sim.fallen, [True, False, False])
    np.testing.assert_array_equal(sim.diverged, [False, True, False])
    np.testing.assert_array_equal(sim.ended, [True, True, False])
    assert "leaned over" in sim.reasons[0] and "diverged" in sim.reasons[1] and sim.reasons[2] == ""
    np.testing.assert_array_equal(sim.v[1], v[1])
    assert sim.t[1] == 0.0 and 0.0 < sim.t[0] < sim.t[2] == 0.4
    before = sim.q
    sim.step()
    np.testing.assert_array_equal(sim.q[:2], before[:2])
    sim.reset(v=np.zeros(robot.nv), where=sim.ended)
    assert not sim.ended.any()
    sim.step(n=4)
    assert (sim.t[:2] == 0.004).all() and sim.t[2] > 0.4


def test_advance_reaches_a_time_with_steps_that_divide_it(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, standing, ground=SPRINGS, q=q[0], integrator=EULER)
    sim.advance(0.0105)
    run = legged.simulate(robot, standing, ground=SPRINGS, q=q[0], until=0.0105, sample=0.0105, integrator=EULER)
    close(sim.v, run.v[-1])
    assert sim.t == 0.0105


@dataclass(frozen=True)
class Driven:
    """Joint torques that grow with the speed."""

    gain: float = 0.0

    def torque(self, t, phase, q, v, wrenches, memory):
        return np.concatenate([np.zeros(3), self.gain * v[3:]])


@pytest.mark.parametrize("compiled", [True, False])
def test_robots_that_have_ended_take_no_steps_and_can_be_left_out_of_observations(hopper, compiled):
    robot, q = hopper
    v, vary = np.append(np.zeros(3), np.ones(robot.nj)), {"controller.gain": [0.0, 1e4]}
    sim = legged.Simulation(robot, Driven(), num=2, q=q[3], v=v, vary=vary, integrator=EULER, compiled=compiled)
    for t in (0.01, 0.02, 0.02, 0.03):  # the second robot has ended before the second of them
        sim.advance(t)
    assert sim.ended.tolist() == [False, True] and sim.t[1] < 0.02
    steps = sim._robots.clock.until(0.1, ~sim.ended).intervals[..., 2].sum(axis=1)
    assert steps[0] > 0 and steps[1] == 0

    def speed(v):
        return v @ v

    sim._robots.members.state[1, robot.nq :] = 1e200
    assert sim.observe(speed, running=True)[1] == v @ v and sim.observe(speed, running=True)[0] == sim.v[0] @ sim.v[0]
    if compiled:
        with pytest.raises(NotFiniteError, match="state 1"):
            sim.observe(speed)


def test_what_cannot_be_traced_runs_in_python_and_says_so(hopper):
    robot, q = hopper

    def branching(t, q, v, wrenches):
        return standing(t, q, v, wrenches) if v[0] < 1.0 else np.zeros(robot.nj)

    sim = legged.Simulation(robot, branching, q=q[0], integrator=EULER)
    sim.step(n=3)
    assert "controller in Python" in sim.backend and "legged.where" in sim.backend
    with pytest.raises(TraceError, match=r"legged\.where"):
        legged.Simulation(robot, branching, q=q[0], integrator=EULER, compiled=True).step()


def test_errors_say_what_to_do(hopper):
    robot, q = hopper
    sim = legged.Simulation(robot, num=11, q=q, integrator=EULER)
    with pytest.raises(ShapeError, match=r"\(2,\) or \(5,\) or \(11, 2\) or \(11, 5\), got shape \(3,\)"):
        sim.step(np.zeros(3))
    with pytest.raises(NotFiniteError, match="command"):
        sim.step(np.array([0.0, np.nan]))
    with pytest.raises(ShapeError, match=r"mask \(11,\)"):
        sim.reset(where=np.ones(4, dtype=bool))
    with pytest.raises(ShapeError, match="row per robot"):
        sim.reset(q[:3])
    with pytest.raises(UnknownNameError, match="quantity to observe"):
        sim.observe(lambda velocity: velocity)
    with pytest.raises(ArgumentError, match="takes no command"):
        legged.Simulation(robot, standing, q=q[0], integrator=EULER).step(np.zeros(2))
    with pytest.raises(ShapeError, match="takes a command"):
        legged.Simulation(robot, servo, q=q[0], integrator=EULER).step()
    with pytest.raises(ArgumentError, match="n must be at least 1"):
        sim.step(n=0)
    walker = legged.Simulation(robots.spatial_quadruped(), num=2, integrator=EULER)
    with pytest.raises(ShapeError, match="must have norm 1"):
        walker.reset(2.0 * walker.q)
    hinge = legged.Revolute("hinge", "y", physics=legged.JointPhysics(lower=-0.2, upper=0.2))
    rod = legged.Link("rod", legged.Inertia(1.0, (0.5, 0.0, 0.0), np.diag([0.01, 0.05, 0.05])))
    builder = legged.RobotBuilder("pendulum", legged.Link("wall"), base=legged.FixedBase())
    pendulum = legged.Simulation(builder.add(hinge, rod, to="wall").build(), num=2, integrator=EULER)
    with pytest.raises(StateError, match="beyond its stop"):
        pendulum.reset(np.array([[0.0], [0.3]]))
    pendulum.reset(np.array([[0.0], [0.3]]), where=np.array([True, False]))


def test_motions_beyond_the_bounds_of_divergence_end_as_in_rollouts(hopper):
    """A robot too fast, one whose next state is not finite, and one with energy from an unstable step."""
    robot, q = hopper
    v = np.zeros((3, robot.nv))
    v[1, 3], v[2, 3] = 1e200, 1e6
    for compiled in (True, False):
        sim = legged.Simulation(robot, num=3, q=q[:3], v=v, integrator=EULER, compiled=compiled)
        sim.step(n=10)  # the bounds are checked after 10 ms
        np.testing.assert_array_equal(sim.diverged, [False, True, True])
        np.testing.assert_allclose(sim.t, [0.01, 0.0, 0.01], rtol=1e-12)
        reason = "the next state is not finite" if compiled else "has no finite answer"
        assert reason in sim.reasons[1] and "joint 'slide' moves at" in sim.reasons[2]
        assert "use a smaller step than 0.001 s" in sim.reasons[2] and np.isfinite(sim.v).all()
    runs = legged.rollout(ball(), until=4.0, sample=STEP, fall=False, **OPTIONS)
    sim = legged.Simulation(ball(), num=2, fall=False, **OPTIONS)
    while not sim.ended.all():
        sim.step()
    assert "J of kinetic energy come from no" in sim.reasons[1]
    assert sim.t[1] == pytest.approx(runs.when[0])  # found at the second of two intervals; rollouts give the first
    sim.reset()
    sim.step(n=3)
    assert not sim.diverged.any()


def test_intervals_are_shared_by_robots_at_the_same_time_and_phase():
    @dataclass(frozen=True, eq=False)
    class Switching:
        at: float  # [s]

        def break_times(self, until):
            return (self.at,), ()

    clock, intervals = Clock(legged.SemiImplicitEuler(0.01), [Switching(0.5), Switching(0.7)]), np.zeros((2, 1, 4))
    assert clock.write(intervals, 3) == 1
    clock.advance(10)
    assert clock.write(intervals, 3) == 1 and intervals[0, 0, 0] == pytest.approx(0.1)
    clock.advance(50)
    assert clock.write(intervals, 3) == 2
    np.testing.assert_allclose(intervals[:, 0], [[0.6, 0.01, 3, 1], [0.6, 0.01, 3, 0]], atol=1e-12)  # rounding of t
    clock.advance(20)
    assert clock.write(intervals, 3) == 1
    clock.set(np.array([1]), np.array([0.9]))
    assert clock.write(intervals, 3) == 2
    schedule = clock.until(0.85, np.array([True, True]))  # which the second robot has passed
    np.testing.assert_allclose(schedule.intervals[..., 2].sum(axis=1), [5.0, 0.0])


def test_a_simulation_that_has_observed_is_pickled():
    robot = robots.spatial_quadruped()
    q, _ = controllers.Stand(hip_height=0.5).initial_state(robot)
    sim = legged.Simulation(robot, ground=legged.Rigid(), num=2, q=q)
    sim.step(n=20)
    contacts = sim.contacts
    again = pickle.loads(pickle.dumps(sim))
    np.testing.assert_array_equal(again.contacts.forces, contacts.forces)
    again.step(n=5)
    sim.step(n=5)
    np.testing.assert_array_equal(again.q, sim.q)
