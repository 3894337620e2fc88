"""Rollouts and simulations with float32 numbers: agreement with float64, statistics of a trot, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.compiler import FLOAT32, NOT_FINITE, Members, PrecisionError, Schedule, TimeLoop
from legged.errors import TraceError
from legged.ground import realistic_ground

FLOAT = np.float32


def hopper_rollout(dtype, **options):
    """Return eight hoppers that fall onto compliant ground with different velocities."""
    robot = robots.planar_hopper()
    v = np.zeros((8, robot.nv))
    v[:, 0] = np.linspace(-0.1, 0.1, 8)
    ground = realistic_ground(robot, penetration=5e-3)
    start = robot.neutral() + 0.65 * np.eye(robot.nq)[2]  # [m], height of the trunk
    given = {"ground": ground, "until": 0.2, "q": start, "v": v, "fall": False, "dtype": dtype}
    return legged.rollout(robot, hold, **(given | options))


def hold(t, q, v, wrenches):
    """Springs and dampers of all joints; the base is free."""
    return -2.0 * np.sin(q) * (np.arange(len(v)) > 2) - 0.1 * v * (np.arange(len(v)) > 2)


def test_time_loops_agree_with_doubles_in_every_lane():
    def step(clock, parameters, state):
        return state + clock[1] * np.stack([state[1], -parameters[0] * np.sin(state[0])]), 0.0

    for count in (1, 3, 16, 37):
        start = np.stack([np.linspace(0.1, 2.0, count), np.zeros(count)], axis=1)
        ends = []
        for loop in (TimeLoop.of(step, 1, 2), TimeLoop.of(step, 1, 2, FLOAT32)):
            members = Members.at(start, 2, loop.element.dtype)
            parameters = np.linspace(1.0, 4.0, count)[:, None]
            intervals = np.array([[[0.0, 1e-3, 500.0, 0.0], [0.5, 1e-3, 500.0, 0.0]]])
            loop.run(members, parameters, Schedule(intervals, np.array([0, 1])))
            np.testing.assert_array_equal(members.state, members.stored[:, 1])
            ends.append(members.stored)
        assert ends[1].dtype == FLOAT
        # a thousand additions, each rounded to half of FLOAT32.epsilon times the size of the state, below 4
        np.testing.assert_allclose(ends[1], ends[0], rtol=0.0, atol=1000 * 2.0 * FLOAT32.epsilon)


def test_a_member_without_a_finite_next_state_ends_alone():
    step = TimeLoop.of(lambda clock, parameters, state: (state * state, 0.0), 0, 1, FLOAT32)
    members = Members.at(np.array([[1.0], [1e15], [0.5]] * 7), 1, FLOAT32.dtype)
    step.run(members, np.zeros((1, 0)), Schedule(np.array([[[0.0, 1.0, 3.0, 0.0]]]), np.array([0])))
    assert members.outcome[:, 0].tolist() == [0.0, NOT_FINITE, 0.0] * 7  # 1e30 is a float, its square is none
    with pytest.raises(ValueError, match="expected arrays of float32"):
        step.run(Members.at(np.ones((3, 1)), 1), np.zeros((1, 0)), Schedule(np.zeros((1, 1, 4)), np.array([0])))


def test_rollouts_on_compliant_ground_agree_with_doubles():
    wanted, got = (hopper_rollout(dtype) for dtype in ("float64", "float32"))
    assert "float32" in got.backend and "float32" not in wanted.backend
    for name in ("q", "v", "rest", "base_position"):
        a, b = getattr(wanted, name), getattr(got, name)
        assert (a.dtype, b.dtype) == (float, FLOAT)
        # 200 steps on ground that is much stiffer than the robot is heavy; the rest has the peak force of the impact
        np.testing.assert_allclose(b, a, rtol=0.0, atol=(3e-4 if name == "rest" else 1e-4) * max(abs(a).max(), 1.0))
    run = got.run(3)
    assert run.q.dtype == float
    np.testing.assert_array_equal(run.q.astype(FLOAT), got.q[3])
    np.testing.assert_allclose(run.energy_drift, wanted.run(3).energy_drift, atol=1e-2)


def test_varied_parameters_are_rounded_after_the_computations_that_depend_on_them_alone():
    vary = {"robot.trunk.mass": np.linspace(3.0, 5.0, 8)}  # [kg]
    wanted, got = (hopper_rollout(dtype, vary=vary) for dtype in ("float64", "float32"))
    np.testing.assert_allclose(got.q, wanted.q, rtol=0.0, atol=1e-4)


def test_simulations_step_and_observe_in_floats():
    robot = robots.planar_hopper()
    ground = realistic_ground(robot, penetration=5e-3)
    torques = np.random.default_rng(0).normal(size=(5, robot.nj))
    ends = []
    for dtype in ("float64", FLOAT):
        start = robot.neutral() + 0.65 * np.eye(robot.nq)[2]  # [m], height of the trunk
        sim = legged.Simulation(robot, ground=ground, num=5, q=start, fall=False, dtype=dtype)
        for _ in range(20):
            sim.step(torques.astype(dtype), n=5)
        seen = sim.observe(height)
        saved = sim.state
        sim.step(torques, n=5)
        sim.state = saved
        np.testing.assert_array_equal(sim.q, saved.q)
        ends.append((sim.q, sim.v, seen[0], seen[1], sim.contacts.forces))
        sim.reset(where=[1])
        np.testing.assert_allclose(sim.t, 100 * sim.time_step * np.array([1.0, 0.0, 1.0, 1.0, 1.0]))
    for a, b in zip(*ends, strict=True):
        assert b.dtype == FLOAT
        np.testing.assert_allclose(b, a, rtol=0.0, atol=1e-4 * max(abs(a).max(), 1.0))


def height(q, v, contacts):
    """Height of the base, and the sum of the contact forces."""
    return q[1], contacts.forces.sum(axis=0)


def test_what_needs_doubles_is_refused():
    with pytest.raises(PrecisionError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        hopper_rollout("float16")
    with pytest.raises(TraceError, match="float32 needs compiled time steps: as asked; use dtype='float64'"):
        hopper_rollout("float32", compiled=False)

    def branching(t, q, v, wrenches):
        return hold(t, q, v, wrenches) if q[1] > 0.0 else 0.0 * v

    robot = robots.planar_hopper()
    with pytest.raises(TraceError, match="float32 needs compiled time steps: TraceError: a traced function branched"):
        legged.rollout(robot, branching, until=0.1, dtype="float32")
    sim = legged.Simulation(robot, integrator=legged.simulation.BDF(), dtype="float32", num=2)
    with pytest.raises(TraceError, match="float32 needs compiled time steps: variable steps"):
        sim.step()


def test_rigid_ground_holds_a_block_to_the_tolerance_of_its_solver():
    robot = robots.planar_hopper()
    ground, v = legged.contact.Rigid(friction=0.7), np.zeros((3, robot.nv))
    q = robot.neutral() + 0.6 * np.eye(robot.nq)[2]  # [m], the foot on the ground
    runs = [
        legged.rollout(robot, hold, ground=ground, until=0.1, fall=False, q=q, v=v, dtype=dtype)
        for dtype in ("float64", "float32")
    ]
    np.testing.assert_allclose(runs[1].q, runs[0].q, rtol=0.0, atol=1e-4)
    assert runs[1].run(0).contacts.worst_residual[-1] < ground.tolerance


@pytest.mark.slow
@pytest.mark.parametrize("law", [controllers.ComputedTorque, controllers.Balanced])
def test_a_trot_of_ten_seconds_is_statistically_alike(law):
    """Mean height and speed to 1e-3 of themselves, their standard deviations and works to 2 %."""
    robot = robots.spatial_quadruped()
    controller = law(controllers.Trot(period=0.4, stride=0.15, clearance=0.06))  # [s], [m], [m]
    rng = np.random.default_rng(0)
    v = controller.initial_state(robot)[1] + np.pad(0.05 * rng.normal(size=(16, 6)), ((0, 0), (0, robot.nj)))
    ground, integrator = realistic_ground(robot, penetration=5e-3), legged.SemiImplicitEuler(1e-3)
    actual = []
    for dtype in ("float64", "float32"):
        runs = legged.rollout(robot, controller, ground=ground, until=10.0, v=v, dtype=dtype, integrator=integrator)
        assert not runs.fallen.any()
        x, _, z = np.moveaxis(runs.base_position[:, 200:], 2, 0)
        speeds = (x[:, -1] - x[:, 0]) / 8.0
        works = runs.rest[:, -1, -4:-2]
        actual.append([z.mean(), speeds.mean(), z.std(), *works.mean(axis=0), *works.std(axis=0)])
    wanted, got = np.array(actual)
    np.testing.assert_allclose(got[:2], wanted[:2], rtol=1e-3)
    np.testing.assert_allclose(got[2:], wanted[2:], rtol=2e-2)
