"""Scenes with many contact candidates run in parts, with the motion of the equations of the whole scene."""

import numpy as np
import pytest

import legged
from controllers import JointPD, Posture
from legged.compiler.ir.pass_times import CompilationReport
from legged.contact import Box, Capsule, Cylinder, FreeBody, Material, Rigid, Sphere
from legged.contact.pair_tables import PairTables
from legged.simulation.backend import Backend, select_backend
from legged.simulation.controller import adapt
from legged.simulation.many_contacts import MANY_CONTACTS, SceneInParts
from legged.simulation.rigid_loop import ContactMemory, RigidLoop

CUBE = legged.box_inertia(1.0, (0.2, 0.2, 0.2))


def arm():
    """A pendulum with a shape, a joint with damping, and a contact point near the ground."""
    link = legged.Link(
        "arm",
        legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)),
        shapes=[Capsule(0.05, 0.3, (0.0, 0.0, -0.3))],
        contacts={"tip": Sphere(0.02, (0.0, 0.0, -0.5))},
    )
    builder = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    joint = legged.Revolute("shoulder", "y", physics=legged.JointPhysics(damping=0.1))
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
    servo = JointPD(Posture(np.array([0.2])), kp=20.0, kd=3.0)  # integrated implicitly
    started, _ = adapt(servo).start(robot, ground, q, v)
    loop = kind(robot, started, ground, 0, (), [], bodies)
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
        external, expected = parts.external_forces(t, q_next, s_next), whole.external_forces(t, q_next, s_next)
        np.testing.assert_allclose(external.wrenches, expected.wrenches, atol=1e-9)
        np.testing.assert_allclose(external.forces, expected.forces, atol=1e-9)
        np.testing.assert_allclose(parts.energies(q, s), whole.outputs(q, s)[:2], atol=1e-12)
        q, s, impulse = q_next, s_next, impulse + h * np.abs(one.forces).sum()
    assert impulse > 0.1  # [N s], the bodies have met


def test_only_near_pairs_are_evaluated():
    ground, bodies = mixed()
    parts, q, s = loops(SceneInParts, arm(), ground, bodies)
    scene = parts.scene
    detected = PairTables(scene).detect(parts.poses(q, s))
    found, every = detected.numbers, scene.contact_geometry([x for x, _ in parts.states(q, s)])
    left = np.setdiff1d(np.arange(len(every.gap)), found)
    assert len(left) > 0 and every.gap[left].min() > 0.05  # [m]
    np.testing.assert_allclose(detected.gap, every.gap[found], atol=1e-14)
    np.testing.assert_allclose(detected.frame, every.frame[found], atol=1e-14)
    np.testing.assert_allclose(detected.point, every.point[found], atol=1e-14)


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


def test_few_candidates_run_in_one_kernel():
    loop, q, s = loops(RigidLoop, arm(), Rigid(0.5, pairs=(("ball", "terrain"),)), [
        FreeBody("ball", CUBE, [Sphere(0.1)], (1.0, 0.0, 0.1))
    ])  # fmt: skip
    assert isinstance(select_backend(loop, q, s, None), Backend)
    assert select_backend(loop, q, s, None).whole
