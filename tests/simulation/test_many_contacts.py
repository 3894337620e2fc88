"""Scenes with many contact candidates run in parts, with the motion of the equations of the whole scene."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import legged
from controllers import JointPD, Posture
from legged.compiler import CompilationReport
from legged.contact import Box, Capsule, Cylinder, FreeBody, Hull, Material, Rigid, Scene, Sphere
from legged.contact.detection.box_box import FAR
from legged.contact.pair_tables import MARGIN, PairTables, Poses
from legged.dynamics.kinematics import motion
from legged.rotations import quaternion_matrix
from legged.simulation.backend import Backend, has_parts, select_backend
from legged.simulation.compiled_plants import compiled_parts
from legged.simulation.controller import adapt
from legged.simulation.integrators import StateSample
from legged.simulation.loop.rigid_loop import ContactMemory, RigidLoop
from legged.simulation.many_contacts import MANY_CONTACTS, SceneInParts

CUBE = legged.box_inertia(1.0, (0.2, 0.2, 0.2))


def arm(**physics):
    """A pendulum with a shape, a joint with damping and further physics, and a contact point near the ground."""
    link = legged.Link(
        "arm",
        legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)),
        shapes=[Capsule(0.05, 0.3, (0.0, 0.0, -0.3))],
        contacts={"tip": Sphere(0.02, (0.0, 0.0, -0.5))},
    )
    builder = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    joint = legged.Revolute("shoulder", "y", physics=legged.JointPhysics(damping=0.1, **physics))
    return builder.attach(legged.Limb().add(joint, link, at=(0.0, 0.0, 0.53)), to="post").build()


def mixed(restitution=0.0):
    """An arm that hits a ball, a brick that falls on a cube, and bodies that touch the ground and an obstacle.

    No body slides on more than three contacts, which leaves its motion undetermined.
    """
    rubber = Material("rubber", friction=0.9, restitution=restitution)
    bodies = [
        FreeBody("cube", CUBE, [Box((0.2, 0.2, 0.2))], (1.0, 0.0, 0.0999)),
        FreeBody("ball", legged.sphere_inertia(0.5, 0.1), [Sphere(0.1)], (0.158, 0.01, 0.1), velocity=(-1.0, 0.2, 0.0)),
        FreeBody("rod", CUBE, [Capsule(0.05, 0.3)], (0.01, 0.62, 0.301), spin=(3.0, 0.0, 0.0), material=rubber),
        FreeBody("can", CUBE, [Cylinder(0.1, 0.2)], (0.6, 0.6, 0.1005), velocity=(0.3, 0.0, -0.5)),
        FreeBody("brick", legged.box_inertia(2.0, (0.2, 0.1, 0.1), (0.0, 0.01, 0.0)), [Box((0.2, 0.1, 0.1))],
                 (1.01, 0.0, 0.2502), velocity=(0.0, 0.0, -0.2)),
    ]  # fmt: skip
    pairs = [(one, "terrain") for one in ("arm", "cube", "ball", "rod", "can", "brick")]
    pairs += [("arm", "ball"), ("cube", "ball"), ("cube", "brick"), ("arm", "brick"), ("rod", "ball"), ("rod", "step")]
    step = ("step", Box((0.5, 0.5, 0.1), (0.0, 0.6, 0.05)))
    return Rigid(0.2, obstacles=(step,), pairs=tuple(pairs), sweeps=100), bodies


def loops(kind, robot, ground, bodies):
    q, v = np.zeros(robot.nq), np.full(robot.nv, -2.0)
    servo = JointPD(Posture(np.full(robot.nv, 0.2)), kp=20.0, kd=3.0)  # integrated implicitly
    started, _ = adapt(servo).start(robot, ground, q, v)
    loop = kind(robot, started, ground, 0, (), bodies)
    return loop, q, loop.initial(v, np.zeros(0))


@pytest.mark.parametrize("restitution", [0.0, 0.4])
def test_parts_move_a_scene_as_the_equations_of_the_whole_do(restitution):
    ground, bodies = mixed(restitution)
    parts, q, s = loops(SceneInParts, arm(), ground, bodies)
    whole, *_ = loops(RigidLoop, arm(), ground, bodies)
    starts = np.cumsum([0, *(len(pair.names) for pair in parts.scene.pairs)])[:-1]
    impulse = 0.0
    for k in range(4):
        t, h = 2e-3 * k, 2e-3
        q_next, s_next = parts.time_stepping(t, h, 0, q, s)
        q_whole, s_whole = whole.time_stepping(t, h, 0, q, s)
        one, other = (ContactMemory.of(loop.split(x).ground_memory) for loop, x in ((parts, s_next), (whole, s_whole)))
        assert one.worst < 1e-7 and other.worst < 1e-7, k
        for (x, v), (y, w) in zip(parts.states(q_next, s_next), whole.states(q_whole, s_whole), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-9)
            np.testing.assert_allclose(v, w, atol=1e-6)  # [m/s], as both residuals allow
        sums = [np.add.reduceat(memory.forces, starts) for memory in (one, other)]
        np.testing.assert_allclose(*sums, atol=2e-2)  # [N], 1e-6 m/s in a step
        np.testing.assert_allclose(parts.split(s_next).works, whole.split(s_whole).works, atol=1e-6)
        external, expected = parts.external_forces(q_next, s_next), whole.external_forces(q_next, s_next)
        np.testing.assert_allclose(external.contact, expected.contact, atol=1e-9)
        np.testing.assert_allclose(external.forces, expected.forces, atol=1e-9)
        np.testing.assert_allclose(parts.energies(q, s), whole.outputs(q, s)[:2], atol=1e-12)
        q, s, impulse = q_next, s_next, impulse + h * np.abs(one.forces).sum()
    assert impulse > 0.1  # [N s], the bodies have met


def floating(damping=0.0):
    """A cube on a floating base without joints."""
    link = legged.Link("trunk", CUBE, shapes=[Box((0.2, 0.2, 0.2))])
    return legged.RobotBuilder("cube", link, base=legged.FloatingBase(damping=damping)).build()


def shoved(link, position):
    """Strong pushes in the first 10 ms on a link, and on a ball at a position that flies against it, and the ball."""
    pushes = [
        legged.Push(name, (0.5, 0.3, 0.2), at=0.0, duration=0.01, point=(0.1, 0.0, 0.05)) for name in (link, "ball")
    ]
    ball = FreeBody("ball", legged.sphere_inertia(0.5, 0.1), [Sphere(0.1)], position, velocity=(-1.0, 0.2, 0.0))
    return pushes, [ball]


@pytest.mark.parametrize("case", ["stop", "damped base", "pushed base", "wall of a group"])
def test_parts_move_robots_of_all_kinds_as_the_whole_does_in_steps_of_two_lengths(case):
    """The robot is hit by a ball; a joint is held by its stop, or friction or a push acts on the base.

    The inertia of the damped base depends on the length of a step, and the wall of a group is a part of the world.
    """
    pushes, bodies = shoved("trunk", (0.2, 0.05, 0.1))
    robot, pairs = floating(20.0 if case == "damped base" else 0.0), (("trunk", "ball"),)
    q = np.array([1.0, *np.zeros(5), 0.1])
    if case == "stop":
        robot, q, pairs = arm(lower=-1.0, upper=0.0), [0.02], (("arm", "ball"),)
        pushes, bodies = shoved("arm", (0.13, 0.0, 0.25))
    elif case == "wall of a group":
        link = legged.Link("link", CUBE, shapes=[Box((0.2, 0.2, 0.2))])
        wall = legged.RobotBuilder("wall", link, base=legged.FixedBase()).build()
        robot = legged.combine({"arm": arm(), "wall": wall}, at={"arm": (1.0, 0.0, 0.0), "wall": (0.0, 0.05, 0.1)})
        q, pairs, pushes = [0.1], (("wall/link", "ball"), ("arm/arm", "ball")), ()
    ground, v = Rigid(0.3, pairs=pairs, tolerance=1e-9), np.zeros(robot.nv)
    started, _ = adapt(None).start(robot, ground, np.array(q), v)
    parts, whole = (
        kind(robot, started, ground, 0, () if case == "damped base" else pushes, bodies)
        for kind in (SceneInParts, RigidLoop)
    )
    q, s, hit = np.array(q, float), parts.initial(v, np.zeros(0)), 0.0
    for k, h in enumerate((2e-3, 1e-3, 2e-3)):
        ends = [loop.time_stepping(2e-3 * k, h, 0, q, s) for loop in (parts, whole)]
        for (x, u), (y, w) in zip(
            *(loop.states(*end) for loop, end in zip((parts, whole), ends, strict=True)), strict=True
        ):
            np.testing.assert_allclose(x, y, atol=1e-9)
            np.testing.assert_allclose(u, w, atol=1e-7)
        np.testing.assert_allclose(
            *(loop.split(end[1]).works for loop, end in zip((parts, whole), ends, strict=True)), atol=1e-7
        )
        hit += h * np.abs(ContactMemory.of(parts.split(ends[0][1]).ground_memory).forces).max()
        q, s = ends[0]
    assert hit > 0.05  # [N s], the ball has met the robot
    assert isinstance(parts, SceneInParts)
    np.testing.assert_allclose(parts.poses(q, s).origin[: len(robot.bodies)], motion(robot, q).origin, atol=1e-12)


def test_dry_friction_of_a_joint_with_stops_acts_in_parts_as_in_the_whole():
    """A joint that moves has its full friction. The regularized one decreases as the speed does in the step, by 6 %."""
    ground, bodies = mixed()
    speeds = []
    for kind, friction in ((SceneInParts, 0.3), (RigidLoop, 0.3), (RigidLoop, 0.0)):
        loop, q, s = loops(kind, arm(friction=friction, lower=-1.0, upper=1.0), ground, bodies)
        speeds.append(loop.time_stepping(0.0, 1e-3, 0, q, s)[1][0])
    change = abs(speeds[1] - speeds[2])
    assert change > 5e-4  # [rad/s], 0.3 N m for 1 ms on 0.36 kg m^2
    assert abs(speeds[0] - speeds[1]) < 0.07 * change


def test_only_near_pairs_are_evaluated():
    ground, bodies = mixed()
    parts, q, s = loops(SceneInParts, arm(), ground, bodies)
    scene = parts.scene
    detected = PairTables(scene).detect(parts.poses(q, s))
    numbers, every = detected.numbers, scene.contact_geometry([x for x, _ in parts.states(q, s)])
    left = np.setdiff1d(np.arange(len(every.gap)), numbers)
    assert len(left) > 0 and every.gap[left].min() > 0.05  # [m]
    np.testing.assert_allclose(detected.gap, every.gap[numbers], atol=1e-14)
    np.testing.assert_allclose(detected.frame, every.frame[numbers], atol=1e-14)
    np.testing.assert_allclose(detected.point, every.point[numbers], atol=1e-14)


def stones(count, seed=0):
    """Hulls with different numbers of vertices and faces, close to each other above the ground."""
    rng, hulls = np.random.default_rng(seed), []
    for k in range(count):
        turn, place = rng.normal(size=4), (0.2 * k, 0.02 * k, 0.2)
        shape = Hull(rng.normal(size=(5 + 3 * k, 3)) * 0.1)
        hulls.append(FreeBody(f"stone{k}", CUBE, [shape], place, turn / np.linalg.norm(turn)))
    return hulls


def test_hulls_of_all_sizes_share_the_kernels_of_two_kinds_of_pairs():
    """The padding changes no contact."""
    bodies = stones(4)
    pairs = [(one.name, other.name) for one, other in pairwise(bodies)] + [(one.name, "terrain") for one in bodies]
    loop, q, s = loops(SceneInParts, arm(), Rigid(pairs=tuple(pairs)), bodies)
    shapes = [body.shapes[0] for body in bodies]
    assert len({len(shape.vertices) for shape in shapes}) == len({len(shape.faces[0]) for shape in shapes}) == 4
    detected = loop.tables.detect(loop.poses(q, s))
    assert [len(table.numbers) for table in loop.tables.tables] == [3, 4]
    used = detected.gap < 0.5 * FAR
    assert sum(used) > 7  # of 4 x 3 + 5 x 4 candidates
    every = loop.scene.contact_geometry([x for x, _ in loop.states(q, s)])
    np.testing.assert_allclose(detected.gap, every.gap[detected.numbers], atol=1e-12)
    np.testing.assert_allclose(detected.frame, every.frame[detected.numbers], atol=1e-12)
    np.testing.assert_allclose(detected.point[used], every.point[detected.numbers][used], atol=1e-12)


def test_pairs_that_come_near_are_found_again():
    """Two balls pass each other in steps of a third of their radius."""
    bodies = [FreeBody(f"ball{k}", CUBE, [Sphere(0.1)]) for k in range(2)]
    tables, pairs_detected = PairTables(Scene.of(arm(), Rigid(pairs=(("ball0", "ball1"),)), bodies)), []
    count, limit = tables.starts[-1] + 1, (1.0 + MARGIN) * 0.2
    for place in np.arange(-2.0, 2.0, 0.03):  # [m]
        at = Poses(np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3)))
        at.origin[tables.starts[1]] = place, 0.0, 0.0
        for reach in (None, np.full(count, 0.05)):
            pairs_detected.append(len(tables.detect(at, reach).gap) == 1)
            assert pairs_detected[-1] == (abs(place) < limit + (0.0 if reach is None else 0.1)), place
    assert 0 < sum(pairs_detected) < len(pairs_detected)


def towers(count):
    """Towers of two cubes, of which all pairs may collide."""
    places = [(0.5 + 0.5 * (k // 2), 0.0, 0.1 + 0.2 * (k % 2)) for k in range(count)]
    return [FreeBody(f"cube{k}", CUBE, [Box((0.2, 0.2, 0.2))], place) for k, place in enumerate(places)]


def test_the_code_of_a_scene_does_not_grow_with_its_contacts(tmp_path, monkeypatch):
    monkeypatch.setenv("LEGGED_CACHE", str(tmp_path))
    operations = []
    for count in (6, 6, 24):  # the kernels of all scenes together belong to the first
        loop, q, s = loops(SceneInParts, arm(), Rigid(0.5), towers(count))
        assert len(loop.scene.candidates) > (1000 if count == 24 else MANY_CONTACTS)
        with CompilationReport() as report:
            loop.time_stepping(0.0, 1e-3, 0, q, s)
        operations.append(report.passes["tracing"].operations)
    assert operations[1] == operations[2]


def test_a_scene_with_many_candidates_runs_in_parts_and_rests():
    robot, bodies = arm(), towers(6)
    run = legged.simulate(
        robot, until=0.05, ground=Rigid(0.5), bodies=bodies, q=[0.0], integrator=legged.TimeStepping()
    )
    assert run.backend.startswith("compiled parts of the scene")
    for body in bodies:
        np.testing.assert_allclose(run.body(body.name).position[-1], body.position, atol=1e-8)
    # The ground carries six cubes; forces between cubes are those on the lower ones, pressed by one cube each.
    np.testing.assert_allclose(run.contacts.forces[-1].sum(axis=0), (0.0, 0.0, (6 - 3) * 9.81), atol=1e-5)
    again = legged.simulate(
        robot, until=0.05, ground=Rigid(0.5), bodies=bodies, q=[0.0], integrator=legged.TimeStepping()
    )
    np.testing.assert_array_equal(again.contacts.forces, run.contacts.forces)


def test_controllers_receive_the_wrenches_of_the_contact_forces():
    seen = []

    def law(t, q, v, wrenches):
        seen.append(wrenches)
        return np.zeros(1)

    robot, ball = arm(), FreeBody("ball", CUBE, [Sphere(0.1)], (0.145, 0.0, 0.23), velocity=(-1.0, 0.0, 0.0))
    started, _ = adapt(law).start(robot, Rigid(), np.zeros(1), np.zeros(1))
    loop = SceneInParts(robot, started, Rigid(), 0, (), [*towers(6), ball])
    q, s = np.zeros(1), loop.initial(np.zeros(1), np.zeros(0))
    for k in range(3):
        q, s = loop.time_stepping(k * 1e-3, 1e-3, 0, q, s)
        expected = loop.external_forces(q, s).contact
        np.testing.assert_array_equal(loop.contact_wrenches(q, s), expected)
    assert np.abs(seen[1:]).max() > 1.0


def test_a_few_members_of_a_rollout_run_in_parts_as_single_runs_do():
    """The states are the same in all bits; a simulation agrees up to the rounding of its clock."""
    robot, bodies, friction = arm(), [replace(body, velocity=(1.0, 0.0, 0.0)) for body in towers(6)], [0.2, 0.6]
    options = {"bodies": bodies, "q": [0.3], "integrator": legged.TimeStepping()}
    runs = legged.rollout(robot, ground=Rigid(0.5), until=0.03, vary={"ground.friction": np.array(friction)}, **options)
    assert "parts of a scene" in runs.backend
    for i, mu in enumerate(friction):
        alone = legged.simulate(robot, ground=Rigid(mu), until=0.03, **options)
        np.testing.assert_array_equal(alone.q, runs.q[i])
        for name in ("cube0", "cube5"):
            np.testing.assert_array_equal(alone.body(name).position, runs.run(i).body(name).position)
            assert alone.body(name).velocity[-1, 0] < 1.0  # it slides
    simulation = legged.Simulation(robot, ground=Rigid(0.6), **options)
    for _ in range(30):
        simulation.step()
    np.testing.assert_allclose(np.ravel(simulation.q), runs.q[1, -1], atol=1e-10)


def test_few_candidates_run_in_one_kernel():
    loop, q, s = loops(RigidLoop, arm(), Rigid(0.5, pairs=(("ball", "terrain"),)), [
        FreeBody("ball", CUBE, [Sphere(0.1)], (1.0, 0.0, 0.1))
    ])  # fmt: skip
    assert isinstance(select_backend(loop, q, s, None), Backend)
    assert select_backend(loop, q, s, None).whole


def chain(count):
    """Return a chain of boxes that are apart with all joints at zero."""
    builder, above = legged.RobotBuilder("chain", legged.Link("post"), base=legged.FixedBase()), "post"
    for k in range(count):
        link = legged.Link(f"link{k}", CUBE, shapes=[Box((0.1, 0.1, 0.1))])
        builder.add(legged.Revolute(f"joint{k}", "z"), link, to=above, at=(0.2, 0.0, 0.0))
        above = link.name
    return builder.build()


def test_a_robot_whose_links_collide_with_each_other_runs_in_parts():
    loop, q, s = loops(RigidLoop, chain(8), Rigid(self_collision=True), [])
    assert len(loop.scene.candidates) == 4 * (7 * 6 // 2)  # all pairs but neighbors
    assert isinstance(select_backend(loop, q, s, None).loop, SceneInParts)


def test_points_of_links_that_are_apart_are_the_origins_of_the_first_ones():
    loop, q, s = loops(SceneInParts, chain(5), Rigid(self_collision=True), [])
    points = loop.external_forces(q, s).points
    first = [pair.first.body for pair in loop.scene.pairs for _ in pair.names]
    assert len(set(first)) > 1
    np.testing.assert_allclose(points, [[0.2 * body, 0.0, 0.0] for body in first], atol=1e-12)


def test_scenes_run_in_parts_where_the_whole_step_would_start_slowly():
    """Feet on the terrain do not count; dry friction of joints, which parts regularize with a warning, does not."""
    step, friction = ("step", Box((0.5, 0.5, 0.1), (0.0, 0.6, -1.0))), legged.JointPhysics(friction=0.1)
    feet = legged.Link("sole", CUBE, contacts={f"p{k}": (0.01 * k, 0.0, 0.0) for k in range(9)})
    cases = [(1, None, (), False), (2, None, (), True), (0, None, (), False), (0, None, (step,), True)]
    for count, physics, obstacles, in_parts in [*cases, (1, friction, (), False), (2, friction, (), True)]:
        joint = legged.Revolute("joint", "y", physics=physics or legged.JointPhysics())
        builder = legged.RobotBuilder("robot", legged.Link("post"), base=legged.FixedBase())
        robot = builder.add(joint, feet, to="post", at=(0.0, 0.0, 2.0)).build()
        loop, *_ = loops(RigidLoop, robot, Rigid(obstacles=obstacles), towers(count))
        assert has_parts(loop) is in_parts, (count, physics, obstacles)


@pytest.mark.parametrize("case", [16, 23, 39])
def test_reported_impulses_with_a_share_of_restitution_are_those_that_act(case):
    """A rod whose sliding end sticks in an oblique impact would gain energy with all of the restitution."""
    rng = np.random.default_rng(case)
    angle, vx, turn = rng.uniform(0.2, 1.3), rng.uniform(-3, 3), rng.uniform(-5, 5)
    at, quaternion = (3.0, 0.0, 0.5 * np.cos(angle) + 0.021), (np.cos(angle / 2), 0.0, np.sin(angle / 2), 0.0)
    inertia, shape = legged.box_inertia(1.0, (0.02, 0.02, 1.0)), Capsule(0.02, 1.0)
    rod = FreeBody("rod", inertia, [shape], at, quaternion, (vx, 0.0, -2.0), (0.0, turn, 0.0))
    robot, ground = legged.RobotBuilder("cube", legged.Link("cube", CUBE)).build(), Rigid(1.0, restitution=0.9)
    q, v = robot.neutral(), np.zeros(6)
    q[6] = 5.0
    started, memory = adapt(None).start(robot, ground, q, v)
    loop = SceneInParts(robot, started, ground, len(memory), (), [rod])
    s, h = loop.initial(v, memory), 2e-3
    q_next, s_next = loop.time_stepping(0.0, h, 0, q, s)
    momentum = []
    for state in ((q, s), (q_next, s_next)):
        x, v = loop.states(*state)[1]
        momentum.append(quaternion_matrix(x[:4]) @ v[3:])
    impulse = ContactMemory.of(loop.split(s_next).ground_memory).impulse.sum(axis=0)
    assert impulse[2] > 1.0  # [N s]
    np.testing.assert_allclose(impulse, momentum[1] - momentum[0] + [0.0, 0.0, 9.81 * h], atol=1e-12)


def test_a_fixed_robot_without_joints_beside_falling_bodies_moves_nothing_but_the_bodies():
    """After a fall of 2.5 m the energy of bodies that are faster than 5 m/s is checked, with a robot of no numbers."""
    wall = legged.Link("wall", CUBE, shapes=[Box((0.2, 0.2, 0.2))])
    robot = legged.RobotBuilder("wall", wall, base=legged.FixedBase()).build()
    bodies = [FreeBody(f"cube{k}", CUBE, [Box((0.2, 0.2, 0.2))], (1.0, 0.0, 8.0 + 0.5 * k)) for k in range(12)]
    run = legged.simulate(robot, ground=Rigid(), bodies=bodies, until=1.0, integrator=legged.TimeStepping(1e-3))
    fallen = run.body("cube3")
    assert fallen.position[-1, 2] == pytest.approx(9.5 - 0.5 * 9.81, abs=1e-9)
    assert "parts" in run.backend and run.energy_drift < 1e-9 * run.energy.potential[0]
    loop, q, s = loops(SceneInParts, robot, Rigid(), bodies)
    np.testing.assert_array_equal(loop.energies(np.stack([q, q]), np.stack([s, s]))[1], loop.energies(q, s))


@pytest.mark.parametrize("law", [None, JointPD(Posture(np.full(1, 0.2)), kp=20.0, kd=3.0)], ids=["passive", "servo"])
def test_outputs_of_all_samples_at_once_are_those_of_each_sample(law):
    """The outputs of a run are those of `observe`, and vdot that of `rate`, sample by sample, in all bits."""
    ground, bodies = mixed()
    robot, push = arm(), legged.Push("arm", (2.0, 0.0, 0.0), at=0.0, duration=1.0)
    options = {"q": [0.0], "v": [-2.0], "integrator": legged.TimeStepping(), "pushes": [push], "fall": False}
    run = legged.simulate(robot, law, ground=ground, bodies=bodies, until=0.05, sample=0.01, **options)
    started, memory = adapt(law).start(robot, ground, np.zeros(1), np.full(1, -2.0))
    loop = compiled_parts(RigidLoop(robot, started, ground, len(memory), [push], bodies))
    backend, (q, s) = Backend(loop, False, ""), (np.zeros(1), loop.initial(np.full(1, -2.0), memory))
    states = [StateSample(0.0, 0, q, s)]
    for k in range(50):
        q, s = loop.time_stepping(k * 1e-3, 1e-3, 0, q, s)
        if k % 10 == 9:
            states.append(StateSample((k + 1) * 1e-3, 0, q, s))
    seen = backend.observe_all(states)
    each = zip(run.q, run.v, seen.tau, seen.wrenches, strict=True)
    vdot = np.array([backend.acceleration(*row) for row in each])
    np.testing.assert_allclose(run.q, [state.q for state in states], atol=1e-12)
    np.testing.assert_allclose(run.vdot, vdot, rtol=1e-9, atol=1e-9)
    assert np.abs(seen.forces[1:]).max() > 1.0 and np.abs(vdot).min() > 0.0
    for k, state in enumerate(states):
        one = loop.observe(*state)
        for name in ("tau", "points", "forces", "memory"):
            np.testing.assert_array_equal(getattr(seen, name)[k], getattr(one, name))
        for part, own in zip(seen.outputs, one.outputs, strict=True):
            np.testing.assert_array_equal(part[k], own)
        y = np.concatenate([np.zeros(1), state.s])
        np.testing.assert_allclose(vdot[k], loop.rate(state.t, 0, y, state.q)[1:2], rtol=1e-12)
