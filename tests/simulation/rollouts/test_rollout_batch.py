"""Rollouts: equal to single runs for all parameters that may vary, and errors for those that may not."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import loops
from legged.compiler import Kernel, Members
from legged.errors import (
    ArgumentError,
    DefinitionError,
    LeggedError,
    NotFiniteError,
    ShapeError,
    SimulationError,
    TraceError,
    UnknownNameError,
)
from legged.ground import KelvinVoigt, VectorFriction, paper_ground, realistic_ground
from legged.ground.ground import Ground

EULER = legged.SemiImplicitEuler(1e-3)
EXACT = 1e-9  # relative, after a second: rounding, grown by an unstable gait


@pytest.fixture(scope="module")
def biped():
    robot = robots.planar_biped()
    return robot, controllers.ComputedTorque(controllers.Walk()), paper_ground(robot)


def hopper_on_springs():
    """A light robot without a controller, which compiles quickly."""
    robot = robots.planar_hopper()
    return robot, Ground(KelvinVoigt(3e3, 60.0), VectorFriction(0.7, 50.0))


def stiff_standing(t, q, v, wrenches):
    return np.stack([-40.0 * q[3] - 2.0 * v[3], -2000.0 * q[4] - 60.0 * v[4]])


def close(one, two):
    scale = np.abs(two).max(axis=0) + 1.0
    assert (np.abs(one - two) <= EXACT * scale).all()


def test_members_move_as_plain_runs_do_whatever_varies(biped):
    robot, law, ground = biped
    count, rng = 5, np.random.default_rng(0)
    vary = {
        "controller.kp": rng.uniform(40.0, 60.0, count),
        "gait.stride": rng.uniform(0.2, 0.3, count),
        "gait.period": rng.uniform(0.5, 0.9, count),
        "ground.friction.coefficient": rng.uniform(0.5, 0.9, count),
        "pushes.0.impulse": rng.normal(size=(count, 3)) * [1.0, 0.0, 0.0],
        "pushes.0.at": rng.uniform(0.1, 0.5, count),
    }
    push = legged.Push("trunk", (0.0, 0.0, 0.0), at=0.3)
    runs = legged.rollout(
        robot, law, ground=ground, until=1.0, integrator=EULER, vary=vary, pushes=[push], compiled=True
    )
    assert len(runs) == count and runs.backend.startswith("compiled time steps")
    for i in (4,):
        gait = controllers.Walk(stride=vary["gait.stride"][i], period=vary["gait.period"][i])
        floor = replace(ground, friction=replace(ground.friction, coefficient=vary["ground.friction.coefficient"][i]))
        pushes = [replace(push, impulse=tuple(vary["pushes.0.impulse"][i]), at=vary["pushes.0.at"][i])]
        plain = legged.simulate(
            robot,
            controllers.ComputedTorque(gait, kp=vary["controller.kp"][i]),
            ground=floor,
            until=1.0,
            integrator=EULER,
            pushes=pushes,
            compiled=False,
        )
        run = runs.run(i)
        close(run.q, plain.q)
        close(run.v, plain.v)
        close(run.tau, plain.tau)
        close(run.contacts.forces, plain.contacts.forces)
        np.testing.assert_array_equal(run.phases, plain.phases)
        np.testing.assert_allclose(runs.base_position[i], plain.base.position, atol=1e-9)


@pytest.mark.parametrize("integrator", [legged.SemiImplicitEuler(1e-3), legged.RungeKutta4(2e-3)])
def test_a_run_steps_inside_the_kernel_as_it_does_in_python(integrator):
    robot, ground = hopper_on_springs()
    q = robot.neutral()
    q[2] = 0.63
    options = {"ground": ground, "until": 0.5, "q": q, "integrator": integrator, "fall": False}
    fast = legged.simulate(robot, stiff_standing, **options)
    slow = legged.simulate(robot, stiff_standing, compiled=False, **options)
    close(fast.q, slow.q)
    close(fast.v, slow.v)


def test_a_member_does_not_depend_on_batch_threads_or_calls(monkeypatch):
    robot, ground = hopper_on_springs()
    q = np.repeat(robot.neutral()[None], 11, axis=0)
    q[:, 2] += np.linspace(0.59, 0.7, 11)
    options = {"ground": ground, "until": 0.4, "integrator": EULER, "fall": False, "compiled": True}
    whole = legged.rollout(robot, stiff_standing, q=q, threads=1, **options)
    shared = legged.rollout(robot, stiff_standing, q=q, threads=2, **options)
    np.testing.assert_array_equal(shared.q, whole.q)
    np.testing.assert_array_equal(legged.rollout(robot, stiff_standing, q=q[3:7], **options).v, whole.v[3:7])
    with monkeypatch.context() as patch:
        module = importlib.import_module("legged.simulation.stepping.engines")
        patch.setattr(module, "OPERATIONS_PER_CALL", 1e5)  # a call for each sample
        np.testing.assert_array_equal(legged.rollout(robot, stiff_standing, q=q, **options).q, whole.q)
    alone = legged.rollout(robot, stiff_standing, q=q[5], **options)
    assert alone.q.shape == (1, 41, robot.nq)
    close(alone.q[0], whole.q[5])


@pytest.mark.parametrize("ground", [legged.Rigid(), None], ids=["contact", "stops"])
def test_no_check_of_the_motion_reads_states_after_the_end_of_a_member(ground, monkeypatch):
    """Memory for the states of a rollout holds anything before they are stored; RungeKutta4 judges stops by them."""
    at = Members.at

    def with_old_numbers(*args):
        members = at(*args)
        members.stored[:] = 1e3
        return members

    monkeypatch.setattr(Members, "at", with_old_numbers)
    box, stops = legged.box_inertia(1.0, (0.1, 0.1, 0.1)), legged.JointPhysics(upper=0.5, stop_stiffness=4e6)
    builder = legged.RobotBuilder("flap", legged.Link("box", box, contacts={"corner": (0.0, 0.0, 0.0)}))
    robot = builder.add(legged.Revolute("hinge", "y", physics=stops), legged.Link("flap", box), to="box").build()
    q = robot.neutral()
    q[6] = 1.0
    options = {"until": 0.5, "integrator": legged.RungeKutta4(1e-3) if ground is None else None}
    v, fall = np.zeros((2, robot.nv)), legged.Fall(height=0.9)
    runs = legged.rollout(robot, q=q, v=v, ground=ground, fall=fall, **options)
    assert runs.fallen.all() and not runs.warnings
    assert np.isnan(runs.q[:, -1]).all()


def test_fallen_members_are_reported_and_others_go_on():
    robot, ground = hopper_on_springs()
    q = np.repeat(robot.neutral()[None], 4, axis=0)
    q[:, 2] += 0.62
    v = np.zeros((4, robot.nv))
    v[1, 0], v[2, 3] = 8.0, 1e200  # turning over, and a speed whose square is no number
    runs = legged.rollout(robot, stiff_standing, ground=ground, until=0.4, q=q, v=v, integrator=EULER, compiled=True)
    np.testing.assert_array_equal(runs.fallen, [False, True, True, False])
    assert runs.reasons[0] == "" and "leaned over" in runs.reasons[1] and "diverged" in runs.reasons[2]
    assert np.isnan(runs.when[[0, 3]]).all() and 0.0 < runs.when[1] < 0.4 and runs.when[2] == 0.0
    gone = runs.times > runs.when[1] + 1e-9
    assert np.isnan(runs.q[1, gone]).all() and np.isfinite(runs.q[1, ~gone]).all()
    np.testing.assert_array_equal(runs.q[0], runs.q[3])
    with pytest.raises(SimulationError, match="leaned over") as error:
        legged.simulate(robot, stiff_standing, ground=ground, until=0.4, q=q[1], v=v[1], integrator=EULER)
    assert error.value.run.times[-1] == runs.when[1]
    assert len(runs.run(1)) == len(error.value.run) and "leaned over" in runs.run(1).ended
    assert "2 fell" in repr(runs) and runs.warnings == ()


def test_what_cannot_be_traced_runs_one_by_one_and_says_so():
    robot, _ = hopper_on_springs()

    def branching(t, q, v, wrenches):
        return stiff_standing(t, q, v, wrenches) if v[0] < 1.0 else np.zeros(robot.nj)

    q = np.repeat(robot.neutral()[None], 2, axis=0)
    options = {"until": 0.01, "q": q, "integrator": EULER}
    runs = legged.rollout(robot, branching, **options)
    assert "controller in Python" in runs.backend and "legged.where" in runs.backend
    traced = legged.rollout(robot, stiff_standing, **options)
    close(runs.q[0], traced.q[0])
    with pytest.raises(TraceError, match="cannot be compiled"):
        legged.rollout(robot, branching, compiled=True, **options)


def test_what_cannot_vary_is_told_by_name(biped):
    robot, law, ground = biped

    def attempt(**vary):
        return legged.rollout(
            robot, law, ground=ground, until=0.1, vary={k.replace("__", "."): x for k, x in vary.items()}
        )

    with pytest.raises(UnknownNameError, match=r"no field of controller.gait \(Walk\) named 'strid'; did you mean"):
        attempt(gait__strid=[0.1, 0.2])
    with pytest.raises(UnknownNameError, match=r"part of a rollout named 'motor'"):
        attempt(motor__mass=[1.0])
    with pytest.raises(ShapeError, match=r"'gait.stride' must be \(B,\), a value per member, got shape \(2, 3\)"):
        attempt(gait__stride=np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"one entry per member; numbers of entries: gait.stride 2, controller.kp 3"):
        attempt(gait__stride=[0.1, 0.2], controller__kp=[1.0, 2.0, 3.0])
    with pytest.raises(NotFiniteError, match=r"'gait.stride' must be finite, got nan for member 1"):
        attempt(gait__stride=[0.1, np.nan])
    with pytest.raises(DefinitionError, match=r"'controller.kd' cannot vary: it holds None"):
        attempt(controller__kd=[1.0, 2.0])
    with pytest.raises(DefinitionError, match=r"period must be positive, got -1") as error:
        attempt(gait__period=[0.5, -1.0])
    assert "member 1" in error.value.__notes__[0]
    with pytest.raises(ShapeError, match=r"q must be \(9,\), or \(B, 9\) with a row per member, got shape \(2, 3\)"):
        legged.rollout(robot, law, until=0.1, q=np.zeros((2, 3)))
    with pytest.raises(ArgumentError, match=r"integrator must be a legged\.\S*FixedStep"):
        legged.rollout(robot, law, until=0.1, integrator=legged.Stiff())


@pytest.mark.slow
def test_a_balanced_trot_equals_its_plain_run():
    robot = robots.spatial_quadruped()
    law = controllers.Balanced(controllers.Trot(period=0.4, stride=0.15, clearance=0.06))
    ground = realistic_ground(robot, penetration=5e-3)
    options = {"ground": ground, "until": 0.3, "integrator": legged.SemiImplicitEuler(2e-4)}
    plain = legged.simulate(robot, law, compiled=False, **options)
    runs = legged.rollout(robot, law, vary={"controller.gain": np.array([2.5, 3.0])}, compiled=True, **options)
    close(runs.q[1], plain.q)
    close(runs.v[1], plain.v)


@pytest.mark.parametrize("kind", ["compliant", pytest.param("rigid", marks=pytest.mark.slow)])
def test_gaits_that_are_fitted_numerically_run_in_rollouts(kind):
    robot = robots.spatial_quadruped()
    gait = controllers.suited(controllers.Trot, robot)
    law = controllers.suited_law(controllers.Balanced, gait)
    ground = realistic_ground(robot) if kind == "compliant" else legged.Rigid()
    integrator = EULER if kind == "compliant" else legged.TimeStepping(1e-3)
    impulses = [[0.0, 1.0, 0.0], [0.0, -2.0, 0.0]]
    push = legged.Push("trunk", (0.0, 0.0, 0.0), at=0.005)
    options = {"ground": ground, "until": 0.02, "integrator": integrator}
    runs = legged.rollout(robot, law, pushes=[push], vary={"pushes.0.impulse": impulses}, **options)
    plain = legged.simulate(robot, law, pushes=[replace(push, impulse=tuple(impulses[1]))], **options)
    close(runs.run(1).v, plain.v)
    assert np.abs(runs.run(0).v - plain.v).max() > 1e-3


def test_fitted_gaits_are_fitted_anew_where_their_stride_varies():
    robot = robots.spatial_quadruped()
    gait = controllers.suited(controllers.Trot, robot)
    law, strides = controllers.JointPD(gait, 60.0, 2.0), [gait.gait.stride, 0.8 * gait.gait.stride]
    options = {"ground": realistic_ground(robot), "until": 0.01, "integrator": EULER}
    runs = legged.rollout(robot, law, vary={"gait.gait.stride": strides}, **options)
    shorter = replace(law, gait=controllers.suited(controllers.Trot, robot, stride=strides[1]))
    close(runs.run(1).v, legged.simulate(robot, shorter, **options).v)
    assert np.abs(runs.run(1).v - runs.run(0).v).max() > 1e-3
    with pytest.raises(DefinitionError, match=r"period of a NumericalGait cannot change"):
        legged.rollout(robot, law, vary={"gait.period": [0.5]}, **options)


def test_members_with_other_robots_move_as_single_runs_of_the_edited_robots(biped):
    robot, law, ground = biped
    robot = robot.edit().change_joint("b_hip", rotor=legged.Rotor(1e-4, 9.0, gyroscopic=True)).build()
    rng, count = np.random.default_rng(3), 2
    knee = np.asarray(robot.parameters()["b_knee.at"])
    vary = {
        "robot.trunk.mass": rng.uniform(8.0, 12.0, count),
        "robot.trunk.center": rng.uniform(-0.02, 0.02, (count, 3)) * [1.0, 0.0, 1.0],
        "robot.a_hip.damping": rng.uniform(0.0, 0.5, count),
        "robot.a_knee.effort": rng.uniform(5.0, 60.0, count),
        "robot.b_knee.at": knee * rng.uniform(0.98, 1.02, (count, 1)),
        "robot.b_hip.rotor_inertia": rng.uniform(1e-4, 1e-3, count),
        "robot.b_hip.gear": rng.uniform(-9.0, 9.0, count),
        "robot.gravity": [0.0, 0.0, -9.81] + rng.uniform(-1.0, 1.0, (count, 3)) * [1.0, 0.0, 1.0],
        "gait.stride": rng.uniform(0.2, 0.3, count),
    }
    assert set(vary) <= set(legged.rollout_parameters(robot, law, ground=ground))
    runs = legged.rollout(robot, law, ground=ground, until=0.1, integrator=EULER, vary=vary, compiled=True)
    for i in range(count):
        value = {name.removeprefix("robot."): x[i] for name, x in vary.items()}
        editor = robot.edit().change_link("trunk", mass=value["trunk.mass"], center=value["trunk.center"])
        editor.change_joint("a_hip", damping=value["a_hip.damping"]).change_joint("b_knee", at=value["b_knee.at"])
        rotor = legged.Rotor(value["b_hip.rotor_inertia"], value["b_hip.gear"], gyroscopic=True)
        editor.change_joint("b_hip", rotor=rotor).change_robot(gravity=value["gravity"])
        edited = editor.change_joint("a_knee", effort=value["a_knee.effort"]).build()
        own = controllers.ComputedTorque(controllers.Walk(stride=value["gait.stride"]))
        plain = legged.simulate(edited, own, ground=ground, until=0.1, integrator=EULER, compiled=False)
        run = runs.run(i)
        close(run.q, plain.q)
        close(run.v, plain.v)
        close(run.tau, plain.tau)


def test_a_simulation_of_other_robots_has_their_masses_and_stops():
    robot = robots.planar_hopper()
    joint = robot.joints[0].name
    robot = robot.edit().change_joint(joint, upper=2.0).build()
    vary = {"robot.trunk.mass": [1.0, 2.0], f"robot.{joint}.upper": [0.5, 1.5]}
    sim = legged.Simulation(robot, num=2, integrator=EULER, vary=vary)
    torques = np.full((2, robot.nj), 5.0)
    sim.step(torques, n=20)
    for i, v in enumerate(sim.v):
        own = robot.with_parameters({name.removeprefix("robot."): x[i] for name, x in vary.items()})
        single = legged.Simulation(own, integrator=EULER, compiled=False)
        single.step(torques[0], n=20)
        close(v, single.v)


def test_robot_parameters_that_no_robot_has_are_told_by_name():
    robot, _ = hopper_on_springs()
    with pytest.raises(UnknownNameError, match=r"robot parameter.*trunk.mas"):
        legged.rollout(robot, None, until=0.1, vary={"robot.trunk.mas": [1.0]})
    with pytest.raises(LeggedError, match=r"trunk.mass must not be negative") as raised:
        legged.rollout(robot, None, until=0.1, vary={"robot.trunk.mass": [1.0, -1.0]})
    assert "member 1" in raised.value.__notes__[0]


def test_outputs_of_members_come_from_kernels_that_they_share(monkeypatch):
    """Only the first member compiles; contacts and figure of each have the positions of its own joints."""
    robot, ground = hopper_on_springs()
    offsets = np.array([[0.0, 0.0, -0.05], [0.0, 0.0, -0.1], [0.0, 0.0, -0.15]])
    vary = {"robot.toe.position": offsets, "robot.trunk.mass": [8.0, 10.0, 12.0]}
    start = robot.neutral() + 0.65 * np.eye(robot.nq)[2]  # [m], height of the trunk
    options = {"ground": ground, "until": 0.05, "integrator": EULER, "q": start}
    runs = legged.rollout(robot, stiff_standing, vary=vary, compiled=True, **options)
    first, built, create = runs.run(0), [], Kernel.__init__
    monkeypatch.setattr(
        Kernel, "__init__", lambda self, *args, **named: built.append(1) or create(self, *args, **named)
    )
    last = runs.run(2)
    assert not built
    other = robot.with_parameters({"toe.position": offsets[2], "trunk.mass": 12.0})
    run = legged.simulate(other, stiff_standing, **options)
    for name in ("q", "tau", "vdot"):
        close(getattr(last, name), getattr(run, name))
    np.testing.assert_allclose(last.figure.nodes, run.figure.nodes, rtol=0.0, atol=1e-12)
    close(last.contacts.forces[:, 0], run.contacts.forces[:, 0])
    assert np.abs(first.figure.nodes - last.figure.nodes).max() > 0.05


@pytest.mark.parametrize("compiled", [True, False])
def test_robots_with_closed_loops_move_as_in_simulate(compiled):
    closed = robots.four_bar()
    crank, until = np.array([0.4, 1.0, 2.5]), 0.05 if compiled else 0.01
    q = np.array([loops.assemble(closed, [angle, -0.7, 1.5], hold=["crank joint"]) for angle in crank])
    v = np.array([loops.consistent_velocity(closed, x, [8.0, 0, 0], hold=["crank joint"]) for x in q])
    runs = legged.rollout(closed, until=until, q=q, v=v, compiled=compiled)
    for i, (start, rate) in enumerate(zip(q, v, strict=True)):
        run = legged.simulate(closed, until=until, q=start, v=rate)
        np.testing.assert_allclose(runs.q[i], run.q, rtol=0.0, atol=1e-12)  # steps of the same integrator
        np.testing.assert_allclose(runs.run(i).vdot, run.vdot, rtol=1e-9, atol=1e-9)
        assert np.abs(loops.residual(closed, runs.q[i, -1])).max() < 1e-13
    with pytest.raises(DefinitionError, match="closed loops, whose parameters cannot vary"):
        legged.rollout(closed, until=until, q=q, v=v, vary={"robot.crank.mass": [1.0, 2.0, 3.0]})
