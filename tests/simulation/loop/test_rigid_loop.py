"""Runs and rollouts on rigid ground: equal motions by all interfaces, and the contents of the records."""

import csv
import dataclasses
from operator import attrgetter

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.contact import Box, FreeBody, Rigid, Sphere
from legged.errors import DefinitionError, SimulationError, TraceError, UnknownNameError
from legged.ground import Flat, KelvinVoigt, VectorFriction
from legged.ground.ground import Ground
from legged.simulation.plots import snapshot
from legged.simulation.plots.animation import view_of

STEP = legged.TimeStepping(2e-3)
GROUND = Rigid(friction=0.5, restitution=0.3)


def bat():
    """An arm with a ball at its end, and a tip that reaches the ground."""
    tip = Sphere(0.05, (0.0, 0.0, -0.5))
    arm = legged.Link("arm", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)), shapes=[tip])
    physics = legged.JointPhysics(damping=0.1, friction=0.05, lower=-1.2, upper=1.2, effort=8.0)
    builder = legged.RobotBuilder("bat", legged.Link("post"), base=legged.FixedBase())
    shoulder = legged.Limb().add(legged.Revolute("shoulder", "y", physics=physics), arm, at=(0.0, 0.0, 0.9))
    return builder.attach(shoulder, to="post").build()


def pitch(**changes):
    """A ball that approaches the bat."""
    ball = FreeBody(
        "ball", legged.sphere_inertia(0.2, 0.06), [Sphere(0.06)], position=(0.6, 0.01, 0.5), velocity=(-3.0, 0.0, 0.5)
    )
    return dataclasses.replace(ball, **changes)


def swing(t, q, v, wrenches):
    return np.stack([4.0 * np.sin(6.0 * t) - 0.5 * v[0]])


def batted(controller=swing, **options):
    options = {"ground": GROUND, "until": 0.8, "bodies": [pitch()], "integrator": STEP} | options
    return legged.simulate(bat(), controller, **options)


@pytest.fixture(scope="module")
def run():
    return batted()


def close(one, two, tolerance=1e-10):
    np.testing.assert_allclose(one, two, atol=tolerance * (1.0 + np.abs(two).max()))


def test_the_bat_hits_the_ball_and_the_ball_the_ground(run):
    assert run.backend == "compiled closed loop"
    assert run.contacts.names == ("ball", "arm-ball")
    assert (run.contacts.on, run.contacts.against) == (("ball", "arm"), ("ground", "ball"))
    forces = batted(sample=STEP.step).contacts.forces
    assert (np.abs(forces).max(axis=(0, 2)) > 50.0).all()  # [N]
    assert np.abs(run.ground_force).max() == 0.0  # the robot itself does not touch it


def test_energies_and_works_of_robot_and_bodies_add_up(run):
    push = legged.Push("arm", (0.5, 0.0, 0.0), at=0.05, duration=0.2, point=(0.0, 0.0, -0.4))
    pushed = [batted(pushes=[push], integrator=legged.TimeStepping(step)) for step in (2e-3, 1e-3)]
    for work in ("actuator_work", "contact_work", "push_work", "joint_work"):
        assert np.abs(getattr(pushed[0].energy, work)).max() > 0.02, work
    assert pushed[1].energy_drift < 0.01 * pushed[1].energy.kinetic.max()
    assert run.energy.contact_work[-1] < 0.0 and np.diff(run.energy.contact_work).max() < 1e-9


def test_a_controller_in_python_moves_the_scene_as_the_compiled_loop_does(run):
    plain = batted(compiled=False)
    for name in ("q", "v", "bodies.q", "bodies.v", "contacts.forces", "figure.nodes", "vdot", "contacts.residual"):
        close(attrgetter(name)(plain), attrgetter(name)(run), 1e-9)


@dataclasses.dataclass(frozen=True)
class Pit(Flat):
    """Level ground up to a far edge, by a function that cannot be traced."""

    def height(self, x, y):
        return super().height(x, y) - (np.asarray(x, float) > 100.0)


def test_a_terrain_that_cannot_be_traced_runs_in_python(run):
    plain = batted(ground=dataclasses.replace(GROUND, terrain=Pit()), until=0.1)
    assert "controller in Python" in plain.backend
    close(plain.q, run.q[: len(plain)])


def test_sample_times_change_nothing(run):
    finer = batted(sample=2e-3)
    close(finer.q[::5], run.q)
    close(finer.bodies.q[::5], run.bodies.q)


def test_members_of_a_rollout_move_as_runs_do_whatever_varies():
    rng, count = np.random.default_rng(0), 5
    vary = {
        "bodies.0.velocity": rng.normal((-3.0, 0.0, 0.5), 0.3, (count, 3)),
        "bodies.0.position": rng.normal((0.6, 0.0, 0.5), 0.02, (count, 3)),
        "ground.friction": rng.uniform(0.2, 0.8, count),
        "ground.restitution": rng.uniform(0.1, 0.7, count),
    }
    options = {"until": 0.5, "integrator": STEP}
    runs = legged.rollout(bat(), swing, ground=GROUND, bodies=[pitch()], vary=vary, compiled=True, **options)
    assert runs.backend.startswith("compiled time steps")
    for i in (1, 4):
        ball = pitch(velocity=vary["bodies.0.velocity"][i], position=vary["bodies.0.position"][i])
        ground = Rigid(friction=vary["ground.friction"][i], restitution=vary["ground.restitution"][i])
        one, other = runs.run(i), batted(ground=ground, bodies=[ball], compiled=False, **options)
        for name in ("q", "v", "bodies.q", "bodies.v", "contacts.forces", "energy.contact_work", "tau"):
            close(attrgetter(name)(one), attrgetter(name)(other), 1e-9)


def test_a_member_does_not_depend_on_batch_or_threads():
    speeds = np.array([[-3.0 - 0.1 * k, 0.0, 0.5] for k in range(11)])
    options = {"ground": GROUND, "bodies": [pitch()], "until": 0.4, "integrator": STEP, "compiled": True}
    whole = legged.rollout(bat(), swing, vary={"bodies.0.velocity": speeds}, threads=1, **options)
    shared = legged.rollout(bat(), swing, vary={"bodies.0.velocity": speeds}, threads=2, **options)
    part = legged.rollout(bat(), swing, vary={"bodies.0.velocity": speeds[3:7]}, **options)
    np.testing.assert_array_equal(shared.rest, whole.rest)
    np.testing.assert_array_equal(part.rest, whole.rest[3:7])


def test_members_whose_bodies_weigh_differently_run_one_by_one():
    options = {"ground": GROUND, "bodies": [pitch()], "until": 0.3, "integrator": STEP}
    vary = {"bodies.0.inertia.mass": np.array([0.2, 0.4])}
    with pytest.raises(TraceError, match="body 'ball' of member 1 has another inertia or shape"):
        legged.rollout(bat(), swing, vary=vary, compiled=True, **options)
    runs = legged.rollout(bat(), swing, vary=vary, **options)
    heavy = dataclasses.replace(pitch().inertia, mass=0.4)
    close(runs.q[1], batted(bodies=[pitch(inertia=heavy)], until=0.3, compiled=False).q)


def test_a_controller_feels_the_forces_of_the_step_before():
    felt = []

    def law(t, q, v, wrenches):
        felt.append((float(t), np.array(wrenches)))
        return swing(t, q, v, wrenches)

    run = batted(law, compiled=False, sample=2e-3, until=0.4)
    wrench = {round(t, 6): w for t, w in felt}
    arm = int(np.abs(run.contacts.forces[:, 1]).max(axis=1).argmax())
    force = run.contacts.forces[arm, 1]
    assert np.linalg.norm(force) > 1.0
    w = wrench[round(run.times[arm], 6)][1]
    np.testing.assert_allclose(np.linalg.norm(w[3:]), np.linalg.norm(force), rtol=1e-9)


def test_a_run_with_bodies_is_saved_and_read_again(run, tmp_path):
    again = legged.Run.load(run.save(tmp_path / "run"))
    assert again.bodies.names == ("ball",) and again.contacts.against == run.contacts.against
    np.testing.assert_array_equal(again.bodies.q, run.bodies.q)
    with run.to_csv(tmp_path / "run.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[7]["ball_q[6]"]) == run.bodies.q[7, 0, 6]


def test_a_body_is_found_by_name_with_velocities_in_the_world(run):
    ball = run.body("ball")
    np.testing.assert_array_equal(ball.position[0], (0.6, 0.01, 0.5))
    np.testing.assert_allclose(ball.velocity[0], (-3.0, 0.0, 0.5), atol=1e-12)
    flight = slice(0, 10)
    t = run.times[flight, None]
    path = ball.position[0] + ball.velocity[0] * t + 0.5 * np.array([0.0, 0.0, -9.81]) * t**2
    np.testing.assert_allclose(ball.position[flight], path, atol=1e-12)
    with pytest.raises(UnknownNameError, match="free body named 'bal'"):
        run.body("bal")


def test_pictures_show_bodies_and_follow_the_robot(run):
    assert run.figure.nodes.shape[1] > run.figure.robot_nodes.shape[1]
    ball = run.figure.nodes[:, run.figure.robot_nodes.shape[1] :]
    distance = np.linalg.norm(ball - run.body("ball").position[:, None], axis=2)
    np.testing.assert_allclose(distance, 0.06, atol=1e-9)
    inertia, shape = legged.box_inertia(1.0, (0.1, 0.2, 0.3)), Box((0.1, 0.2, 0.3))
    brick = batted(bodies=[FreeBody("brick", inertia, [shape], position=(0.0, 0.0, 5.0))], until=0.01)
    corners = brick.figure.nodes[0, brick.figure.robot_nodes.shape[1] :]
    assert corners.shape == (8, 3) and len(brick.figure.edges) == len(run.figure.edges) - 3 * 16 + 12
    assert len(snapshot(run, 0.3).axes) == 1


def test_the_view_contains_free_bodies_near_the_robot(run):
    centers, size = view_of(run)
    ball = run.body("ball").position
    near = np.linalg.norm(ball - run.base.position, axis=1) < 1.0  # [m]
    assert near.sum() > 10
    assert (np.linalg.norm(ball - centers, axis=1)[near] < size / 2).all()
    assert np.linalg.norm(np.diff(centers, axis=0), axis=1).max() < 0.2  # [m]: the view does not jump


@pytest.mark.parametrize("damping", [1.0, 1e4])
def test_a_joint_as_stiff_as_it_may_be_bears_contact_in_steps_of_any_length(damping):
    """A leg with 5000 times the damping for which an explicit step of 2 ms is stable."""
    physics = legged.JointPhysics(damping=damping, friction=1.0)
    foot = legged.Link("foot", legged.rod_inertia(0.5, (0.0, 0.0, 0.0), (0.0, 0.0, -0.4)), {"toe": (0.0, 0.0, -0.4)})
    slide = legged.Limb().add(legged.Prismatic("slide", "-z", physics=physics), foot)
    trunk = legged.Link("trunk", legged.box_inertia(4.0, (0.2, 0.2, 0.2)))
    robot = legged.RobotBuilder("post", trunk, base=legged.PlanarBase()).attach(slide, to="trunk").build()
    q = np.array([0.0, 0.0, 0.6, 0.0])
    runs = [
        legged.simulate(robot, ground=Rigid(), q=q, until=0.3, integrator=legged.TimeStepping(step), fall=False)
        for step in (2e-3, 5e-4)
    ]
    for run in runs:
        assert run.contacts.residual.max() < 1e-6 and run.energy.joint_work[-1] < 0.0
        assert run.energy_drift < 0.05 * abs(run.energy.contact_work[-1] + run.energy.joint_work[-1])
        assert run.contacts.points[:, 0, 2].min() > -1e-9  # [m]
    close(runs[0].q[-1], runs[1].q[-1], 0.02)


def test_a_robot_that_collapses_on_rigid_ground_has_fallen():
    robot = robots.spatial_quadruped()
    q, _ = controllers.JointPD(controllers.Stand(hip_height=0.55)).initial_state(robot)
    with pytest.raises(SimulationError, match="fell below"):
        legged.simulate(robot, ground=Rigid(), q=q, until=2.0)


def test_what_does_not_go_together_is_refused():
    gives = Ground(KelvinVoigt(3e3, 60.0), VectorFriction(0.7, 50.0))
    with pytest.raises(DefinitionError, match="Rigid ground needs TimeStepping"):
        batted(integrator=legged.RungeKutta4())
    with pytest.raises(DefinitionError, match=r"TimeStepping.* needs a Rigid ground, got .* on Ground"):
        batted(ground=gives, bodies=[])
    with pytest.raises(DefinitionError, match=r"needs a Rigid ground, got .* on no ground"):
        legged.rollout(bat(), swing, until=0.1, integrator=STEP)
    with pytest.raises(DefinitionError, match="free bodies need a rigid ground"):
        batted(ground=gives, integrator=None)
    law = controllers.FeedForward(controllers.Trot(hip_height=0.5))
    with pytest.raises(DefinitionError, match="compliant ground"):
        legged.simulate(robots.spatial_quadruped(), law, ground=Rigid(), until=0.1)


def test_a_rigid_ground_is_stepped_on_without_being_told_how():
    assert batted(integrator=None, until=0.01).integrator == f"{legged.TimeStepping()} (chosen for rigid ground)"
    runs = legged.rollout(bat(), swing, ground=GROUND, until=0.01)
    assert runs.integrator == str(legged.TimeStepping())


@pytest.mark.slow
@pytest.mark.parametrize("step", [1e-3, 2e-3])
def test_a_quadruped_trots_on_rigid_ground(step):
    robot = robots.spatial_quadruped()
    law = controllers.Balanced(controllers.Trot(period=0.35, stride=0.1, clearance=0.05, hip_height=0.5))
    run = legged.simulate(robot, law, ground=Rigid(friction=0.7), until=10.0, integrator=legged.TimeStepping(step))
    weight = robot.mass * 9.81
    assert abs(run.ground_force[run.times > 2.0][:, 2].mean() / weight - 1.0) < 0.01
    assert 0.2 < run.mean_velocity[0] < 0.4 and abs(run.mean_velocity[1]) < 0.01  # [m/s], 0.1 m in 0.35 s
