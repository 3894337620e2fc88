"""Time stepping without contact: conserved quantities of free flight, and the order of the error."""

import numpy as np
import pytest

import legged
from legged.contact import Rigid

SPIN = np.array([3.0, 5.0, -4.0, 1.0, 2.0, 3.0])


def thrown(step, until=1.0, **options):
    """A tumbling brick, initially aligned with the world axes."""
    brick = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(2.0, (0.1, 0.2, 0.4)))).build()
    q = brick.neutral()
    q[6] = 10.0
    options = {"q": q, "v": SPIN, "until": until, "fall": False, **options}
    return legged.simulate(brick, ground=Rigid(), integrator=legged.TimeStepping(step), **options)


def order(errors):
    return np.log2(errors[:-1] / errors[1:])


def test_a_ballistic_flight_is_exact_whatever_tumbles():
    run = thrown(0.01)
    t = run.times[:, None]
    path = run.q[0, 4:] + SPIN[3:] * t + 0.5 * np.array([0.0, 0.0, -9.81]) * t**2
    np.testing.assert_allclose(run.q[:, 4:], path, atol=1e-12)  # rounding of some hundred steps


def test_energy_of_a_tumbling_body_errs_by_the_square_of_the_step():
    drifts = np.array([thrown(step).energy_drift for step in (4e-3, 2e-3, 1e-3)])
    assert drifts[-1] < 1e-5  # [J], of 8 J of rotation
    assert order(drifts)[-1] > 1.9


def test_where_a_tumbling_body_ends_errs_by_the_square_of_the_step():
    exact = thrown(1e-4, sample=1.0).q[-1, :4]
    errors = np.array([1.0 - abs(thrown(step, sample=1.0).q[-1, :4] @ exact) for step in (8e-3, 4e-3, 2e-3)])
    assert (order(np.sqrt(errors)) > 1.8).all()  # the sine of half the angle between the two


def test_the_equations_of_a_step_alone_keep_momentum_to_the_second_order():
    """`test_momentum.py` has the steps that balance it."""
    robot = legged.random_tree(seed=3, links=6, bases=("floating",))
    rng = np.random.default_rng(0)
    q, v, moved = legged.random_configuration(robot, rng), rng.normal(size=robot.nv), []
    q[6] = 50.0  # above the ground
    for step in (2e-3, 1e-3, 5e-4):
        options = {"q": q, "v": v, "until": 0.4, "sample": 0.4, "fall": False, "integrator": legged.TimeStepping(step)}
        run = legged.simulate(robot, ground=Rigid(balances_momentum=False), **options)
        before, after = (legged.momentum(robot, q, u) for q, u in zip(run.q[[0, -1]], run.v[[0, -1]], strict=True))
        after[3:] -= robot.mass * robot.gravity * run.duration
        moved.append(np.abs(after - before).max())
    assert (order(np.array(moved)) > 1.7).all()


@pytest.mark.filterwarnings("ignore:.*regularizes the dry friction:UserWarning")
def test_time_stepping_agrees_with_runge_kutta_with_joint_friction():
    physics = legged.JointPhysics(damping=0.02, friction=0.05)
    builder = legged.RobotBuilder("arm", legged.Link("base"), base=legged.FixedBase())
    arm = legged.Link("arm", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)))
    robot = builder.attach(legged.Limb().add(legged.Revolute("shoulder", "y", physics=physics), arm), to="base").build()
    options = {"v": np.array([4.0]), "until": 0.8, "fall": False}
    wanted = legged.simulate(robot, integrator=legged.RungeKutta4(5e-5), **options)
    assert (wanted.v[:, 0] > 0.1).any() and (wanted.v[:, 0] < -0.1).any()
    for step in (2e-3, 1e-3, 2.5e-4):
        run = legged.simulate(robot, ground=Rigid(), integrator=legged.TimeStepping(step), **options)
        # Where the arm turns around, friction changes by 2 F / I = 1.2 rad/s^2 a part of a step early or late, and
        # regularized friction is less than F for some milliseconds; both act for half a second.
        assert np.abs(run.q - wanted.q).max() < 1.2 * (step + 1e-3) * 0.5
        assert run.energy_drift < 1e-4 * 3.0  # [J], of the energy at the start


@pytest.mark.parametrize("step", [1e-3, 2e-3])
def test_a_push_does_the_work_that_the_books_say(step):
    push = legged.Push("brick", (0.0, 3.0, 1.0), at=0.1, duration=0.2, point=(0.02, 0.0, 0.05))
    run = thrown(step, pushes=[push])
    assert run.energy.push_work[-1] > 1.0
    assert run.energy_drift < 1e-3 * run.energy.push_work[-1] * (step / 1e-3) ** 2
