"""Runs: inputs, engines, early ends."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import legged
import robots
from legged.errors import (
    NotFiniteError,
    ShapeError,
    SimulationError,
    TraceError,
    UnknownNameError,
)
from legged.ground import (
    BristleFriction,
    Ground,
    KelvinVoigt,
    Slope,
    paper_ground,
    realistic_ground,
)
from legged.simulation import Fall, Push, Run, RungeKutta4, SemiImplicitEuler, simulate
from legged.simulation.results.records import BaseRecord
from tests.simulation.servo import Servo, standing


@pytest.fixture(scope="module")
def robot():
    return robots.spatial_quadruped()


@pytest.mark.parametrize("integrator", [None, SemiImplicitEuler(1e-3), RungeKutta4(1e-3)])
def test_compiled_and_piecewise_engines_give_the_same_run(robot, integrator):
    ground = paper_ground(robot)
    options = {"until": 0.25, "q": standing(robot), "ground": ground, "integrator": integrator}
    options["pushes"] = [Push("trunk", (0.5, 0.2, 0.0), at=0.05)]
    one, two = (simulate(robot, Servo(), compiled=c, **options) for c in (True, False))
    assert one.backend == "compiled closed loop"
    assert two.backend.startswith("compiled robot, controller in Python")
    np.testing.assert_allclose(one.q, two.q, atol=1e-9 if integrator else 1e-5)
    np.testing.assert_allclose(one.energy.contact_work, two.energy.contact_work, atol=1e-9 if integrator else 1e-5)


def test_controller_that_branches_runs_in_python_and_says_why(robot):
    def controller(t, q, v, wrenches):
        return -5.0 * v[6:] if t > 0.05 else np.zeros(12)

    run = simulate(robot, controller, until=0.1, q=standing(robot))
    assert "controller in Python" in run.backend
    assert "legged.where" in run.backend
    with pytest.raises(TraceError, match="cannot be compiled"):
        simulate(robot, controller, until=0.1, q=standing(robot), compiled=True)


def test_controller_that_hides_a_state_is_not_compiled(robot):
    class Counter:
        def __init__(self):
            self.calls = 0

        def __call__(self, t, q, v, wrenches):
            self.calls += 1
            return np.full(12, 1e-3 * self.calls)

    assert (
        "keep a state"
        in simulate(robot, Counter(), until=0.02, q=standing(robot), integrator=RungeKutta4(1e-3)).backend
    )


@pytest.mark.parametrize("integrator", [None, RungeKutta4(1e-2), SemiImplicitEuler(1e-2)])
def test_controller_in_python_may_use_the_step_as_an_index(robot, integrator):
    class Table(Servo):
        def torque(self, t, phase, q, v, wrenches, memory):
            return np.full(12, [0.0, 0.1, 0.2][phase])

    run = simulate(robot, Table(), until=0.3, integrator=integrator)
    np.testing.assert_array_equal(run.joint_tau[:, 0], 0.1 * run.phases)


def test_ground_that_cannot_be_traced_still_works(robot):
    class Trampoline(Ground):
        def forces(self, points, velocities, memory=None):
            forces = np.zeros((len(points), 3))
            for i, point in enumerate(points):
                if float(point[2]) < 0.0:
                    forces[i, 2] = -3e3 * float(point[2])
            return forces, memory

    ground = Trampoline(KelvinVoigt(1.0, 0.0), BristleFriction(0.5, 1.0, 1.0))
    run = simulate(robot, Servo(), until=0.1, q=standing(robot, 0.595), ground=ground)
    assert run.ground_force[-1, 2] > 10.0
    assert "controller in Python" in run.backend


# What goes wrong, in words.


def test_fall_ends_the_run_and_keeps_it():
    robot = robots.planar_biped()
    q = robot.neutral()
    q[:3] = 0.15, 0.0, 1.25
    with pytest.raises(
        SimulationError, match=r"the trunk (leaned over|fell below).* at t = \d\.\d+ s; the run"
    ) as error:
        simulate(robot, lambda t, q, v, w: -5.0 * v[3:], until=5.0, q=q, ground=realistic_ground(robot))
    run = error.value.run
    assert isinstance(run, Run)
    assert 0.1 < run.duration < 5.0
    assert run.ended and run.ended in str(error.value)
    assert run.energy_drift < 1e-3
    assert run.q.shape == (len(run), robot.nq)


def test_fall_can_be_anything_or_nothing(robot):
    options = {"until": 0.2, "q": standing(robot, 1.0), "ground": realistic_ground(robot)}
    with pytest.raises(SimulationError, match=r"too fast at t = 0\.110 s"):
        simulate(robot, fall=lambda t, q, v: "too fast" if v[5] < -1.0 else None, **options)
    with pytest.raises(
        SimulationError,
        match=r"the trunk fell below 0\.95 m, 0\.95 of its initial height \(Fall\.height\) at t = 0\.110 s",
    ):
        simulate(robot, fall=Fall(height=0.95), **options)
    assert simulate(robot, fall=False, **options).duration == pytest.approx(0.2)
    with pytest.raises(SimulationError, match=r"fell below 0\.95 m, .* at t = 0\.110 s"):  # without ground from z = 0
        simulate(robot, fall=Fall(height=0.95), **{**options, "ground": None})


def test_height_counts_from_the_ground_below(robot):
    """On a slope, the height limit is relative to the ground below the robot."""
    ground = realistic_ground(robot, terrain=Slope(-0.5))
    v = np.zeros(robot.nv)
    v[3] = 3.0
    run = simulate(robot, until=0.25, q=standing(robot, 1.0), v=v, ground=ground, fall=Fall(height=0.95))
    assert run.base.position[-1, 2] < 0.7


def test_diverging_solution_ends_in_words(robot):
    """Springs far too stiff for the step."""
    with pytest.raises(SimulationError, match=r"diverged at t = .*; the run up to there is in error\.run") as error:
        simulate(
            robot,
            lambda t, q, v, w: -1e6 * q[7:],
            until=1.0,
            q=standing(robot) + np.r_[np.zeros(7), 0.1 * np.ones(12)],
            integrator=SemiImplicitEuler(1e-2),
        )
    assert np.isfinite(error.value.run.q).all()


def test_wrong_arguments_are_refused(robot):
    with pytest.raises(ShapeError, match=r"q must be \(19,\)"):
        simulate(robot, until=0.1, q=np.zeros(3))
    with pytest.raises(ShapeError, match="must have norm 1"):
        simulate(robot, until=0.1, q=np.zeros(19))
    with pytest.raises(NotFiniteError, match="v must be finite"):
        simulate(robot, until=0.1, v=np.full(18, np.nan))
    with pytest.raises(NotFiniteError, match="until must be a positive"):
        simulate(robot, until=0.0)
    with pytest.raises(
        ShapeError, match=r"must return \(12,\) joint torques or \(18,\) generalized forces, got shape \(5,\)"
    ):
        simulate(robot, lambda t, q, v, w: np.zeros(5), until=0.1)
    with pytest.raises(TypeError, match="controller must be an object with torque"):
        simulate(robot, 3.0, until=0.1)
    with pytest.raises(UnknownNameError, match="no link named 'trunc'"):
        simulate(robot, until=0.1, pushes=[Push("trunc", (1, 0, 0), at=0.0)])


def test_last_sample_is_at_the_end(robot):
    run = simulate(robot, until=0.105, sample=0.01)
    assert run.times[-1] == 0.105
    assert len(run) == 12
    assert simulate(robot, until=0.1, sample=1.0).times.tolist() == [0.0, 0.1]


def test_any_robot_runs_with_and_without_joints():
    brick = legged.RobotBuilder(
        "brick", legged.Link("brick", legged.box_inertia(2.0, (0.3, 0.2, 0.1)), {"c": (0, 0, -0.05)})
    ).build()
    q = brick.neutral()
    q[6] = 0.2
    run = simulate(brick, until=0.5, q=q, ground=realistic_ground(brick), fall=False)
    assert run.contacts.forces[..., 2].max() > 0.0
    assert run.joints.names == ()
    assert run.joint_tau.shape == (51, 0)
    arm = robots.chain(3, base=legged.FixedBase())
    assert simulate(arm, until=0.2).energy_drift < 1e-4


def test_initial_state_comes_from_the_controller(robot):
    class Placed(Servo):
        def initial_state(self, robot):
            return standing(robot, 0.9), np.r_[np.zeros(5), 1.0, np.zeros(12)]

    run = simulate(robot, Placed(), until=0.02)
    assert run.base.position[0, 2] == 0.9
    assert run.v[0, 5] == 1.0
    assert simulate(robot, Placed(), until=0.02, v=np.zeros(18)).v[0, 5] == 0.0


def test_progress_shows_on_stderr_when_asked(robot, capsys, monkeypatch):
    monkeypatch.setattr(importlib.import_module("legged.simulation.simulate"), "PROGRESS_DELAY", 0.0)
    simulate(robot, until=0.05, progress=True)
    assert "spatial quadruped" in capsys.readouterr().err
    simulate(robot, until=0.05)
    assert capsys.readouterr().err == ""


def test_mean_velocity_of_a_run_of_one_sample_is_zero(robot):
    run = simulate(robot, until=0.02, q=standing(robot))
    first = replace(run, times=run.times[:1], base=BaseRecord(run.base.position[:1], run.base.rotation[:1]))
    np.testing.assert_array_equal(first.mean_velocity, np.zeros(3))


def test_cost_of_transport_of_a_pulled_mass_is_its_friction():
    """A motor pulls a mass at constant speed against viscous damping: C = c v d / (m g d) = c v / (m g)."""
    mass, damping, speed = 2.0, 3.0, 0.5  # [kg], [N s/m], [m/s]
    cart = legged.Link("cart", legged.box_inertia(mass, (0.1, 0.1, 0.1)))
    builder = legged.RobotBuilder("sled", legged.Link("rail"), base=legged.FixedBase())
    slide = legged.Prismatic("slide", "x", physics=legged.JointPhysics(damping=damping))
    robot = builder.add(slide, cart, to="rail").build()
    run = simulate(robot, lambda t, q, v, w: 0.0 * v + damping * speed, q=[0.0], v=[speed], until=1.0, sample=0.01)
    assert np.isnan(run.cost_of_transport)  # the base is fixed
    moving = replace(run, base=replace(run.base, position=np.outer(run.times * speed, [1.0, 0.0, 0.0])))
    expected = damping * speed / (mass * np.linalg.norm(robot.gravity))
    assert moving.cost_of_transport == pytest.approx(expected, rel=1e-6)  # tolerance of the integrator


class Commanded:
    """A law without forces and with a commanded velocity that increases."""

    def torque(self, t, phase, q, v, wrenches, memory):
        return np.zeros(8)

    def commanded_velocity(self, t, memory):
        return np.array([0.5 * t, 0.25, -0.1])


def test_the_table_of_a_run_has_the_mean_of_the_recorded_command(tmp_path):
    robot = robots.chain(8)
    run = simulate(robot, Commanded(), until=0.4, integrator=RungeKutta4(0.01))
    np.testing.assert_array_equal(run.commanded, [[0.5 * t, 0.25, -0.1] for t in run.times])
    rows = dict(run.table().rows)
    wanted = "0.148 m/s, 0.250 m/s, -0.100 rad/s"  # means of the samples from 0.2 to 0.39 s
    assert rows["commanded: forward, left, turn"] == wanted
    assert "reached in the last 0.2 s" in rows
    given = dict(run.table(command=(1.0, 0.0, 0.0)).rows)
    assert given["commanded: forward, left, turn"] == "1.000 m/s, 0.000 m/s, 0.000 rad/s"
    again = Run.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.commanded, run.commanded)
    assert again.table().rows == run.table().rows
    plain = simulate(robot, until=0.1)
    assert plain.commanded.shape == (0, 3) and "commanded: forward, left, turn" not in dict(plain.table().rows)
