"""Laws of the end of a run: a divergence is neither a fall nor a fast motion, and an interrupt keeps the run."""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_are

import legged
import robots
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, DivergenceError, SimulationError
from legged.ground import realistic_ground
from legged.simulation.checks import divergence
from legged.simulation.loop.rigid_loop import RigidLoop
from tests.simulation.unstable_ball import OPTIONS, STEP, ball


def quadruped():
    robot = robots.spatial_quadruped()
    q = robot.neutral()
    q[6], q[7:] = 0.6, 0.1
    return robot, q


def stiff(t, q, v, wrenches):
    """A servo too stiff for the steps of the tests: the natural frequency times the step exceeds 2."""
    return -1e5 * q[7:]


def top():
    """A disc of 1 kg in free flight that also turns about a diameter."""
    disc = legged.Inertia(1.0, (0.0, 0.0, 0.0), np.diag([0.006, 0.006, 0.01]))
    return legged.RobotBuilder("top", legged.Link("disc", disc)).build()


def cart():
    """A mass of 1 kg on a horizontal rail, on which a spring law acts."""
    builder = legged.RobotBuilder("cart", legged.Link("rail"), base=legged.FixedBase())
    slide = legged.Prismatic("slide", axis=(1.0, 0.0, 0.0))
    return builder.add(slide, legged.Link("mass", legged.box_inertia(1.0, (0.1, 0.1, 0.1))), to="rail").build()


def test_fast_motion_with_the_controller_in_python_is_checked():
    """The energies of a plant whose parts are kernels are computed, too."""
    robot, _ = quadruped()
    options = {"until": 0.1, "v": np.r_[np.zeros(3), 20.0, np.zeros(14)], "integrator": legged.RungeKutta4(1e-2)}
    for ground in (None, realistic_ground(robot)):
        run = legged.simulate(
            robot, None, q=np.r_[1.0, np.zeros(5), 3.0, np.zeros(12)], ground=ground, compiled=False, **options
        )
        assert run.duration == pytest.approx(0.1)


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_divergence_is_no_fall(step):
    """The ground is 0.6 m below, and the first states after the divergence lean over as well."""
    robot, q = quadruped()
    options = {"until": 1.0, "ground": realistic_ground(robot), "integrator": legged.SemiImplicitEuler(step)}
    with pytest.raises(
        DivergenceError, match=r"diverged at t = .* joint 'leg\d_\w+' turns at .* use a smaller step"
    ) as e:
        legged.simulate(robot, stiff, q=q, **options)
    run = e.value.run
    assert len(run) >= 1 and np.abs(run.v).max() < divergence.ANGULAR_SPEED
    assert isinstance(e.value, SimulationError) and run.ended in str(e.value)
    assert "kinetic energy" not in run.ended
    runs = legged.rollout(robot, stiff, q=np.stack([q, q]), **options)
    assert all("diverged" in reason and "leaned" not in reason for reason in runs.reasons)
    assert runs.fallen.all() and np.isfinite(runs.when).all()
    assert runs.run(0).ended == runs.reasons[0]


def test_energy_from_nothing_is_divergence_below_the_bounds_on_speed():
    """Accurate steps at 200 m/s are fine."""
    options = {"until": 4.0, "sample": 0.01, "integrator": legged.SemiImplicitEuler(0.01)}
    run = legged.simulate(cart(), lambda t, q, v, w: -((0.2 / 0.01) ** 2) * q, v=[200.0], **options)
    assert np.abs(run.v).max() > 190.0
    too_stiff = {"until": 4.0, "sample": STEP, **OPTIONS}
    with pytest.raises(DivergenceError, match=r"J of kinetic energy come from no .* joint 'slide' moves at") as error:
        legged.simulate(ball(), **too_stiff)
    runs = legged.rollout(ball(), **too_stiff)
    assert not (error.value.run.warnings or runs.warnings or runs.run(0).warnings)  # the error says it
    assert runs.fallen.all() and "kinetic energy" in runs.reasons[0]
    assert np.nanmax(np.abs(runs.v)) < 1e3


def test_the_work_of_a_law_is_that_of_its_held_force():
    """A law too stiff for its steps gives the energy itself, so that only the bound on speeds ends the motion."""
    h = STEP
    options = {"q": [0.1], "until": 4.0, "sample": h, "integrator": legged.SemiImplicitEuler(h)}
    with pytest.raises(DivergenceError, match="joint 'slide' moves at") as error:
        legged.simulate(cart(), lambda t, q, v, w: -((2.001 / h) ** 2) * q, **options)
    run = error.value.run
    assert (
        run.energy_drift < 1e-12 * run.energy.kinetic.max() and len(run.warnings) == 1 and "chatters" in run.warnings[0]
    )


def test_a_law_without_a_value_is_reported_at_its_time_step():
    """A cart at 1 m/s passes 0.0345 m, where the law ends, between the samples at 30 and 40 ms."""
    options = {"v": [1.0], "until": 0.1, "sample": 0.01, "integrator": legged.SemiImplicitEuler(1e-3)}
    with pytest.raises(DivergenceError, match=r"diverged at t = 0\.035 s") as error:
        legged.simulate(cart(), lambda t, q, v, w: 1e-9 * np.sqrt(0.0345 - q), **options)
    assert error.value.run.times[-1] == pytest.approx(0.03)


def test_fast_motions_are_no_divergence():
    """Free fall of 10 s ends at 98 m/s, a top turns at 1000 rad/s, a spring of 1 kg swings at 1000 m/s."""
    robot, _ = quadruped()
    steps = {"integrator": legged.SemiImplicitEuler(1e-3), "sample": 0.1}
    assert np.abs(legged.simulate(robot, until=10.0, **steps).v).max() > 98.0
    assert not legged.rollout(robot, until=10.0, **steps).fallen.any()
    spin = {"v": [0.0, 1.0, 1000.0, 0.0, 0.0, 0.0], "until": 1.0}
    fine = legged.RungeKutta4(1e-4)
    assert legged.simulate(top(), integrator=fine, **spin).v[-1, 2] == pytest.approx(1000.0, rel=1e-6)
    assert not legged.rollout(top(), integrator=fine, **spin).fallen.any()
    swing = {"q": [10.0], "until": 1.0, "integrator": legged.SemiImplicitEuler(1e-4)}
    assert np.abs(legged.simulate(cart(), lambda t, q, v, w: -1e4 * q, **swing).v).max() > 900.0


@pytest.mark.parametrize("axis", range(3))
def test_the_base_has_the_same_bound_in_all_directions(axis):
    fine = {"until": 1e-3, "integrator": legged.SemiImplicitEuler(1e-3)}
    for speed, diverges in ((0.9 * divergence.LINEAR_SPEED, False), (1.1 * divergence.LINEAR_SPEED, True)):
        v = np.r_[np.zeros(3), speed * np.eye(3)[axis]]
        if diverges:
            with pytest.raises(DivergenceError, match="the base moves at"):
                legged.simulate(top(), v=v, **fine)
        else:
            assert len(legged.simulate(top(), v=v, **fine)) == 2


def test_thrown_bodies_are_checked():
    """A free body faster than a bound ends the run with its name."""
    block = legged.FreeBody(
        "block",
        legged.box_inertia(1.0, (0.1, 0.1, 0.1)),
        [legged.Box((0.1, 0.1, 0.1))],
        position=(5.0, 0.0, 5.0),
        velocity=(2e4, 0.0, 0.0),
    )
    robot, q = quadruped()
    with pytest.raises(DivergenceError, match="body 'block' moves at 2e"):
        legged.simulate(robot, q=q, until=0.1, ground=Rigid(), bodies=[block])


def test_energies_are_judged_relative_to_the_mass_of_robot_and_free_bodies():
    """The quadruped beside bodies of 5 and 30 kg."""
    robot, _ = quadruped()
    cube = [legged.Box((0.1, 0.1, 0.1))]
    bodies = tuple(legged.FreeBody(f"{m} kg", legged.box_inertia(m, (0.1, 0.1, 0.1)), cube) for m in (5.0, 30.0))
    check = divergence.DivergenceCheck.of(RigidLoop(robot, None, Rigid(), 0, (), bodies), legged.TimeStepping(1e-3))
    bound = divergence.ENERGY_PER_MASS * (robot.mass + 35.0)  # [J]
    assert check.is_energetic(np.array([[0.99 * bound, 0.0], [1.01 * bound, 0.0]])).tolist() == [False, True]


def test_unstable_law_is_no_fall():
    """Positive feedback does real work: only the speed tells that the numbers describe no motion."""
    robot, q = quadruped()
    options = {"q": q, "until": 1.0, "ground": realistic_ground(robot), "integrator": legged.SemiImplicitEuler(1e-4)}
    with pytest.raises(DivergenceError, match="turns at"):
        legged.simulate(robot, lambda t, q, v, w: 100.0 * q[7:] + 10.0 * v[6:], **options)


def acrobot():
    """Two point masses on massless rods above a pivot, with gravity."""
    builder = legged.RobotBuilder("acrobot", legged.Link("post"), base=legged.FixedBase())
    mass = legged.point_mass(1.0, (0.0, 0.0, 1.0))
    axis = (0.0, 1.0, 0.0)
    builder.add(legged.Revolute("shoulder", axis=axis), legged.Link("upper", mass), to="post")
    return builder.add(
        legged.Revolute("elbow", axis=axis), legged.Link("lower", mass), to="upper", at=(0.0, 0.0, 1.0)
    ).build()


def test_stalled_solver_ends_with_the_run_so_far():
    """A linear-quadratic regulator of an acrobot, 0.05 rad from upright, demands torques that change ever faster."""
    robot = acrobot()
    rest = np.zeros(2)
    system = legged.linearize(robot, rest, rest, rest)
    B = system.B[:, 1:]
    K = (B.T @ solve_continuous_are(system.A, B, np.eye(4), np.eye(1)))[0]

    def regulator(t, q, v, wrenches):
        return np.stack([0.0 * q[0], -(K[:2] @ q + K[2:] @ v)])

    with pytest.raises(SimulationError, match=r"stalled at t = .* use fixed steps") as error:
        legged.simulate(robot, regulator, q=[0.05, 0.0], until=5.0)
    assert len(error.value.run) > 10 and "stalled" in error.value.run.ended


def test_budget_counts_steps_per_simulated_second():
    """A pendulum needs some hundred steps per second."""
    robot = acrobot()
    assert legged.simulate(robot, q=[0.05, 0.0], until=1.0, integrator=legged.Stiff(budget=1e4)).duration == 1.0
    with pytest.raises(DefinitionError, match="positive rtol, atol, max_step and budget"):
        legged.Stiff(budget=0.0)
