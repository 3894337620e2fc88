"""The iterative linear-quadratic regulator over time steps on rigid ground."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc
from legged.contact import Sphere
from legged.differentiation import DifferentiableSimulation
from legged.errors import ArgumentError, ShapeError


def place(robot, at, target):
    return at.q[1:2] - target


def pusher() -> DifferentiableSimulation:
    """Return a finger and a puck on one slide, 0.1 m apart, without friction and gravity."""
    rail = legged.Link("rail", legged.point_mass(1.0, (0.0, 0.0, 0.0)))
    builder = legged.RobotBuilder("pusher", rail, base=legged.FixedBase(), gravity=np.zeros(3))
    for name, mass in (("finger", 1.0), ("puck", 0.5)):
        link = legged.Link(name, legged.sphere_inertia(mass, 0.05), shapes=[Sphere(0.05)])
        builder.add(legged.Prismatic(f"{name}_slide", "x"), link, to="rail")
    ground = legged.Rigid(friction=0.0, pairs=(("finger", "puck"),))
    return DifferentiableSimulation(builder.build(), ground=ground, integrator=legged.TimeStepping(0.02))


@pytest.fixture(scope="module")
def simulation() -> DifferentiableSimulation:
    return pusher()


ONE = {"lower": [-20.0, 0.0], "upper": [20.0, 0.0]}  # only the finger is moved
START = {"q": [0.0, 0.2], "v": [0.0, 0.0]}
COMMANDS = np.zeros((30, 2))
STAGE = [oc.Cost(oc.terms.control, 1e-3)]


def test_a_contact_that_is_not_made_has_no_derivative_and_is_found_by_smoothing(simulation):
    final = [oc.Cost(place, 100.0, target=np.array([0.5]))]
    exact = oc.IterativeLQR(simulation, STAGE, final, **ONE).solve(COMMANDS, **START)
    np.testing.assert_allclose(exact.commands, 0.0)  # the finger does not know of the puck
    smoothed = oc.IterativeLQR(simulation, STAGE, final, spread=[8.0, 0.0], samples=16, **ONE)
    solution = smoothed.solve(COMMANDS, **START, iterations=20)
    assert solution.cost < 0.05 * exact.cost and (np.diff(solution.costs) < 0.0).all()
    assert solution.q[-1, 1] == pytest.approx(0.5, abs=0.05) and np.abs(solution.forces).max() > 0.0


def test_without_contact_it_is_the_linear_quadratic_regulator(simulation):
    target = oc.Cost(oc.terms.state, np.array([10.0, 0.0, 1.0, 0.0]), q=np.array([-0.3, 0.2]), v=np.zeros(2))
    plan = oc.IterativeLQR(simulation, STAGE, [target], lower=[-np.inf, 0.0], upper=[np.inf, 0.0])
    result = plan.solve(COMMANDS, **START)
    assert result.converged and len(result.costs) <= 4
    h, T = 0.02, len(COMMANDS)  # condensed: position and velocity of the finger are linear in its forces
    ages = np.arange(T, 0, -1)  # in a free step the acceleration is constant
    effect = np.stack([h * h * (ages - 0.5), np.full(T, h)])
    weights = np.array([10.0, 1.0])
    H = effect.T @ (weights[:, None] * effect) + 1e-3 * h * np.eye(T)
    expected = np.linalg.solve(H, effect.T @ (weights * [-0.3, 0.0]))
    np.testing.assert_allclose(result.commands[:, 0], expected, rtol=1e-4, atol=1e-5)


def test_a_hopper_jumps_without_given_contacts():
    sim = DifferentiableSimulation(
        robots.planar_hopper(), ground=legged.Rigid(friction=0.8), integrator=legged.TimeStepping(0.01)
    )
    hold = np.tile([0.0, -sim.robot.mass * 9.81], (45, 1))
    stage = [oc.Cost(oc.terms.control, 1e-4, reference=hold[0]), oc.Cost(oc.terms.velocity, 1e-2)]
    high = [oc.Cost(oc.terms.center_of_mass, np.array([10.0, 0.0, 200.0]), position=np.array([0.0, 0.0, 0.75]))]
    plan = oc.IterativeLQR(sim, stage, high, lower=[-50.0, -300.0], upper=[50.0, 300.0], spread=[1.0, 10.0], samples=8)
    result = plan.solve(hold, q=[0.0, 0.0, 0.6, 0.0, 0.0], v=np.zeros(5), iterations=20)
    assert result.cost < 0.2 * result.costs[0]
    assert result.q[-1, 2] > 0.7 and np.abs(result.forces[-1]).max() == 0.0  # it is in the air at the end


def test_bad_arguments_are_named(simulation):
    with pytest.raises(ArgumentError, match="spread must be at least 0"):
        oc.IterativeLQR(simulation, STAGE, spread=-1.0)
    with pytest.raises(ArgumentError, match="lower bounds of commands exceed"):
        oc.IterativeLQR(simulation, STAGE, lower=1.0, upper=0.0)
    with pytest.raises(ShapeError, match=r"commands must be \(T, 2\)"):
        oc.IterativeLQR(simulation, STAGE).solve(np.zeros((3, 4)))
