"""Closed loops whose joints have dry friction, on rigid ground: contacts, joints and loops hold in the same step."""

import numpy as np
import pytest

import legged
import robots
from legged import loops
from legged.simulation.loop.contact_memory import ContactMemory

QUICK = "test_friction_holds_a_four_bar"

H = 2e-3  # [s]
TOLERANCE = legged.Rigid().tolerance  # [m/s]
OPTIONS = {"ground": legged.Rigid(), "integrator": legged.TimeStepping(H), "fall": False}


def with_friction(closed, friction):
    return closed.with_parameters({f"{joint.name}.friction": friction for joint in closed.robot.joints})


def quadruped(friction, rng=None):
    """Return the five-bar quadruped with its feet 0.1 mm above the ground, and its configuration."""
    closed = with_friction(robots.five_bar_quadruped(), friction)
    q = closed.robot.neutral()
    q[7:] = [0.4, -0.9, -0.4, 0.9] * 4
    q[7:] += 0.0 if rng is None else 0.1 * rng.normal(size=16)
    q = np.array(loops.assemble(closed, q))
    q[6] -= legged.contact.Scene.of(closed.robot, legged.Rigid()).contact_geometry([q]).gap.min() - 1e-4
    return closed, q


def parts(simulation, closed):
    return simulation.loop.split(simulation._robots.members.state[0, closed.robot.nq :])


@pytest.mark.slow  # the first compilation takes half a minute
def test_a_quadruped_of_five_bar_legs_that_lands_obeys_all_laws():
    """Legs with friction 0.3 N m give way; joints stick, slide and turn around, feet land and slide."""
    closed, q = quadruped(0.3)
    simulation = legged.Simulation(closed, q=q, **OPTIONS)
    worked = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        q = quadruped(0.3, rng)[1]
        v = loops.consistent_velocity(closed, q, (0.5 if seed else 0.0) * rng.normal(size=22))
        simulation.reset(q=q, v=v)
        before = np.zeros(4)
        for _ in range(60):
            simulation.step()
            part = parts(simulation, closed)
            assert part.works[3] <= before[3] + 1e-12  # [J]: friction of joints takes energy; rounding of 1e-3 J
            assert part.works[1] <= before[1] + 5e-3  # corrections of penetrations
            before = part.works.copy()
            assert np.abs(loops.residual(closed, simulation.q)).max() < 1e-9  # after two Newton steps
            assert np.abs(loops.jacobian(closed, simulation.q) @ simulation.v).max() < 1e-9
        assert float(ContactMemory.of(part.ground_memory).worst) < TOLERANCE
        worked += before[3]
    assert worked < -1.0  # some J: joints have turned


def test_friction_holds_a_standing_quadruped_of_five_bar_legs():
    """Friction of 60 N m is more than a leg's share of the weight, 40 N at arms of less than 0.4 m."""
    closed, q = quadruped(60.0)
    q[6] -= 1e-4
    simulation = legged.Simulation(closed, q=q, compiled=False, **OPTIONS)
    for _ in range(20):
        simulation.step()
    assert np.abs(simulation.q - q).max() < 1e-10  # rounding of 20 steps
    assert float(ContactMemory.of(parts(simulation, closed).ground_memory).worst) < TOLERANCE


@pytest.mark.parametrize("ground", [legged.Rigid(), None])
def test_friction_holds_a_four_bar(ground):
    """Its weight of 20 N has moments of less than 10 N m."""
    closed = with_friction(robots.four_bar(), 10.0)
    q = np.array(loops.assemble(closed, [1.0, -0.5, 1.2]))
    options = {"ground": ground, "until": 1.0, "fall": False}
    integrator = legged.TimeStepping(H) if ground else legged.SemiImplicitEuler(H)
    run = legged.simulate(closed, q=q, integrator=integrator, **options)
    assert np.abs(run.q - q).max() < 1e-10  # rounding of 500 steps
