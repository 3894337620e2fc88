"""`Simulation`: closed kinematic loops, and the solver with variable steps."""

import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.contact.rigid import Rigid
from legged.errors import (
    DefinitionError,
    LoopError,
    TraceError,
)
from tests.simulation.stepping.hopper_laws import (
    EULER,
    SPRINGS,
    Integral,
    servo,
)


def spinning_four_bar():
    closed = robots.four_bar()
    q = loops.assemble(closed, [1.0, -0.7, 1.5], hold=["crank joint"])
    return closed, q, loops.consistent_velocity(closed, q, [8.0, 0, 0], hold=["crank joint"])


@pytest.mark.parametrize("num", [None, 3])
def test_robots_with_closed_loops_move_as_in_simulate(num):
    closed, q, v = spinning_four_bar()
    run = legged.simulate(closed, lambda t, q, v, w: np.array([0.5, 0.0, 0.0]), until=0.1, q=q, v=v)
    sim = legged.Simulation(closed, num=num, q=q, v=v, compiled=True)
    assert sim.integrator == legged.RungeKutta4(1e-3)
    for _ in range(10):
        sim.step([0.5, 0.0, 0.0], n=10)
    np.testing.assert_allclose(np.atleast_2d(sim.q), np.tile(run.q[-1], (num or 1, 1)), rtol=0.0, atol=1e-12)
    assert np.abs(loops.residual(closed, np.atleast_2d(sim.q)[0])).max() < 1e-13
    sim.reset()
    np.testing.assert_array_equal(np.atleast_2d(sim.v)[0], v)


def test_states_that_open_the_loops_are_refused():
    closed, q, v = spinning_four_bar()
    sim = legged.Simulation(closed, q=q, v=v)
    with pytest.raises(LoopError, match="does not close the loops"):
        sim.reset(q + 0.1)
    with pytest.raises(LoopError, match="opens the loops"):
        sim.reset(q, v + 1.0)
    with pytest.raises(DefinitionError, match="closed loops, whose parameters cannot vary"):
        legged.Simulation(closed, num=2, q=q, vary={"robot.crank.mass": [1.0, 2.0]})


def test_closed_loops_stay_closed_on_rigid_ground():
    """A linkage in free motion: the state stays on the loops, and the energy drifts with the square of the step."""
    closed, q, v = spinning_four_bar()

    def energy(q, v):
        return legged.kinetic_energy(closed.robot, q, v) + legged.potential_energy(closed.robot, q)

    drifts = []
    for step in (2e-3, 1e-3):
        sim = legged.Simulation(closed, q=q, v=v, ground=Rigid(), integrator=legged.TimeStepping(step))
        drift = 0.0
        while sim.t < 0.25:
            sim.step()
            drift = max(drift, abs(energy(sim.q, sim.v) - energy(q, v)))
        drifts.append(drift)
        assert np.abs(loops.residual(closed, sim.q)).max() < 1e-12
        assert np.abs(loops.jacobian(closed, sim.q) @ sim.v).max() < 1e-12
    assert drifts[1] < 0.3 * drifts[0] < 1e-3, drifts  # [J] of 1


@pytest.mark.parametrize("num", [None, 2])
def test_variable_steps_reach_the_next_control_time(num):
    """The solver starts anew at each command; its tolerance of 1e-6 per step bounds the difference."""
    robot, stiff = robots.planar_hopper(), legged.simulation.BDF()
    q = robot.neutral()
    q[2] = 0.62
    law = lambda t, q, v, w: servo(t, q, v, w, np.zeros(2))  # noqa: E731
    run = legged.simulate(robot, law, until=0.1, q=q, ground=SPRINGS, integrator=stiff)
    sim = legged.Simulation(robot, servo, num=num, q=q, ground=SPRINGS, integrator=stiff, period=0.02)
    for _ in range(3):
        sim.step(np.zeros(2))
    sim.advance(0.1, np.zeros(2))
    np.testing.assert_allclose(sim.t, 0.1, rtol=1e-12)
    np.testing.assert_allclose(np.atleast_2d(sim.q), np.tile(run.q[-1], (num or 1, 1)), rtol=0.0, atol=1e-5)
    assert run.contacts.forces[-1, 0, 2] > 10.0  # [N]: it has landed on its springs


def test_variable_steps_divide_at_switches_and_end_robots_without_a_solution():
    robot, stiff = robots.planar_hopper(), legged.simulation.BDF()

    def bad(t, q, v, wrenches):
        return np.sqrt(0.05 - t) * np.ones(2) if t < 0.05 else np.full(2, np.nan)

    sim = legged.Simulation(robot, bad, integrator=stiff, fall=False)
    sim.step(n=4)
    assert not sim.ended
    sim.step(n=2)
    assert sim.diverged and "the time step of the solver fell to zero" in sim.reasons[0]
    with pytest.raises(DefinitionError, match=r"period of .* is its step"):
        legged.Simulation(robot, integrator=EULER, period=0.01)
    with pytest.raises(DefinitionError, match="discrete update needs an integrator with fixed steps"):
        legged.Simulation(robot, Integral(), integrator=stiff)
    with pytest.raises(TraceError, match="runs in Python; use fixed steps"):
        legged.Simulation(robot, integrator=stiff, compiled=True).step()
