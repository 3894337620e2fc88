"""Scenes that `save_mjcf(scene=True)` writes: robots stand in MuJoCo, on a floor with the friction of the ground."""

from pathlib import Path
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest

import legged
import robots
from legged.conversions import mujoco as conversion_to
from legged.conversions import postures
from legged.errors import ArgumentError, DefinitionError, FileWarning, ShapeError
from legged.robot.configuration import random_configuration
from legged.robot.construction.random_tree import ALL_JOINTS
from legged.robot.shapes import Material

mujoco = pytest.importorskip("mujoco")
G = 9.81  # [m/s^2]
SINKING = 0.02  # [m], of a standing robot: servos yield by weight / kp, and MuJoCo's contacts by millimeters


def public(name: str, **options) -> legged.Robot:
    """Return a robot of example-robot-data."""
    pytest.importorskip("lxml")
    pytest.importorskip("pinocchio")
    from tests.oracles.urdfs import all_urdfs

    path = all_urdfs().get(name)
    if path is None:
        pytest.skip("needs example-robot-data")
    return legged.load(path, **options)


STANDING = {
    "Go2": (lambda: public("go2/go2"), 100.0, 2.0),
    "Go2 with shapes": (lambda: public("go2/go2", feet="spheres", shapes=True), 100.0, 2.0),
    "G1": (lambda: public("g1/g1_29dof_rev_1_0"), 1000.0, 10.0),
    "quadruped": (robots.spatial_quadruped, 100.0, 2.0),
    "hexapod": (robots.hexapod, 100.0, 2.0),
    "biped": (robots.spatial_biped, 1000.0, 10.0),
    "humanoid": (robots.humanoid, 1000.0, 10.0),
}
"""Robots with gains of servos that hold them up, [N m/rad] and [N m s/rad]."""


def simulated(path: Path, until: float, law=None):
    """Return (model, data, mean force on the robot over the last second (3,), [N], world) from the key frame on."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    count, total, wrench = round(until / model.opt.timestep), np.zeros(3), np.zeros(6)
    last = min(round(1.0 / model.opt.timestep), count)
    for step in range(count):
        if law is not None:
            law(model, data)
        mujoco.mj_step(model, data)
        for k in range(data.ncon if step >= count - last else 0):
            mujoco.mj_contactForce(model, data, k, wrench)
            contact = data.contact[k]
            away = 1.0 if model.geom_bodyid[contact.geom1] == 0 else -1.0  # the normal points from geom1 to geom2
            total += away * contact.frame.reshape(3, 3).T @ wrench[:3]
    return model, data, total / last


@pytest.mark.parametrize("name", STANDING)
def test_an_exported_robot_stands_under_servos_and_its_feet_carry_its_weight(name, tmp_path):
    make, kp, kd = STANDING[name]
    robot = make()
    ground = legged.contact.Rigid(friction=0.7)
    path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, ground=ground, kp=kp, kd=kd, time_step=0.002)
    model, data, force = simulated(path, 2.0)
    assert model.opt.timestep == 0.002 and model.nu == robot.nj
    start = model.key("home").qpos
    assert abs(data.qpos[2] - start[2]) < SINKING
    upright = 1.0 - 2.0 * (data.qpos[4] ** 2 + data.qpos[5] ** 2)  # the z axis of the base along that of the world
    assert upright > np.cos(0.05)
    assert force[2] == pytest.approx(robot.mass * G, rel=0.01)  # the base still sways a little
    assert {round(float(contact.friction[0]), 12) for contact in data.contact} == {0.7}
    feet = {model.geom(i).name for i in range(model.ngeom)} - {"", "floor"}
    assert feet == {contact.name for contact in robot.contacts}


def test_motors_have_the_limits_of_the_joints_and_hold_the_robot_under_a_law_outside(tmp_path):
    robot = public("go2/go2")
    path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True)
    efforts = {joint.name: float(np.max(joint.definition.physics.effort)) for joint in robot.joints}

    def law(model, data):
        target = model.key("home").qpos[7:]
        data.ctrl[:] = 100.0 * (target - data.qpos[7:]) - 2.0 * data.qvel[6:]

    model, data, force = simulated(path, 2.0, law)
    for i in range(model.nu):
        actuator = model.actuator(i)
        assert actuator.ctrlrange.tolist() == [-efforts[actuator.name], efforts[actuator.name]]
        assert actuator.forcerange.tolist() == actuator.ctrlrange.tolist()
    assert abs(data.qpos[2] - model.key("home").qpos[2]) < SINKING
    assert force[2] == pytest.approx(robot.mass * G, rel=0.01)
    again = legged.load(path)
    assert again.describe() == robot.describe()


def test_servos_have_gains_by_joint_and_the_limits_of_the_joints(tmp_path):
    robot = public("go2/go2")
    kp, kd = np.linspace(20.0, 31.0, robot.nj), np.linspace(0.2, 0.8, robot.nj)
    model = mujoco.MjModel.from_xml_path(
        str(legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, kp=kp, kd=kd, time_step=0.004))
    )
    assert model.opt.timestep == 0.004
    for joint in robot.joints:
        actuator, column = model.actuator(joint.name), joint.v.start - 6
        assert actuator.gainprm[0] == kp[column]
        assert actuator.biasprm[1:3].tolist() == [-kp[column], -kd[column]]
        assert actuator.forcerange[1] == joint.definition.physics.effort
        assert model.joint(joint.name).damping == joint.definition.physics.damping


TREES = {
    "any joints": {"joints": [name for name in ALL_JOINTS if name != "free"], "coupled": True, "physics": True},
    "plain": {"joints": ("revolute", "prismatic", "spherical"), "physics": True},
}


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("seed", range(6))
def test_the_key_frame_is_the_home_posture_of_any_robot(kind, seed, tmp_path):
    """MuJoCo's key frame, by the conversion of its vectors, which knows the joints by their names alone."""
    robot = legged.random_tree(seed, 10, shuffled=True, **TREES[kind])
    if not robot.contacts:
        robot = robot.edit().change_link(robot.links[0].name, contacts={"foot": (0.0, 0.0, -0.1)}).build()
    q = random_configuration(robot, np.random.default_rng(seed))
    with catch_warnings():
        simplefilter("ignore", FileWarning)  # of joints that MuJoCo simulates differently
        path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, home=q, kp=10.0, kd=1.0)
    model = mujoco.MjModel.from_xml_path(str(path))
    expected = conversion_to(robot, model).to_configuration(q)
    assert model.key("home").qpos == pytest.approx(expected, abs=1e-12)  # rounding of text and of unit quaternions
    assert postures(robot, path)["home"] == pytest.approx(q, abs=1e-12)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert np.abs(data.actuator_force).max(initial=0.0) < 1e-9 * 10.0  # servos are at rest in their targets


def test_the_key_frame_holds_free_joints_on_the_world_and_elsewhere(tmp_path):
    """Elsewhere they become three slides and a ball joint, whose qpos follow each other as our q."""
    body = legged.box_inertia(1.0, (0.1, 0.2, 0.3))
    builder = legged.RobotBuilder("two", legged.Link("ground"), base=legged.FixedBase())
    builder.add(legged.Free("first"), legged.Link("a", body), to="ground")
    builder.add(legged.Free("second"), legged.Link("b", body), to="a", at=(0.1, 0.0, 0.2))
    robot = builder.build()
    q = random_configuration(robot, np.random.default_rng(1))
    with pytest.warns(FileWarning, match="'second' is free"):
        path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, home=q)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_kinematics(model, data)
    R, o = legged.link_poses(robot, q)
    for name, rotation, origin in zip("ab", R[1:], o[1:], strict=True):
        assert data.body(name).xpos == pytest.approx(origin, abs=1e-12)
        assert data.body(name).xmat.reshape(3, 3) == pytest.approx(rotation, abs=1e-12)
    assert model.nu == 0


def block(friction: Material | None = None) -> legged.Robot:
    """Return a block of 2 kg on four points."""
    corners = {
        f"corner {k}": (0.2 * x, 0.1 * y, -0.05) for k, (x, y) in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)])
    }
    link = legged.Link("block", legged.box_inertia(2.0, (0.4, 0.2, 0.1)), contacts=corners, material=friction)
    return legged.RobotBuilder("block", link).build()


@pytest.mark.parametrize(
    ("ground", "material", "mu"),
    [
        (legged.contact.Rigid(friction=0.3), None, 0.3),
        (legged.contact.Rigid(friction=1.4), None, 1.4),
        (legged.contact.Rigid(friction=0.9), Material("ice", 0.2), 0.2),
        (legged.contact.Rigid(friction=0.9, combination="minimum"), Material("rubber", 1.1), 0.9),
        (legged.ground.realistic_ground(block()), None, None),
        (None, None, 0.8),
    ],
)
def test_a_block_sticks_and_slides_at_the_coefficient_of_the_ground(ground, material, mu, tmp_path):
    """On the plane inclined a little less and a little more than the angle of friction, by turning gravity."""
    robot = block(material)
    mu = float(np.max(ground.under(robot).friction.coefficient)) if mu is None else mu
    distances = []
    for factor in (0.93, 1.07):
        tilted = robot.edit().change_robot(gravity=(factor * mu * G, 0.0, -G)).build()
        q = tilted.state(base_position=(0.0, 0.0, 0.05)).q
        _, data, _ = simulated(legged.save_mjcf(tilted, tmp_path / "scene.xml", scene=True, ground=ground, home=q), 1.0)
        distances.append(float(data.qpos[0]))
    assert distances[0] < 5e-3  # the soft contacts yield before they stick
    assert distances[1] == pytest.approx(0.5 * 0.07 * mu * G, rel=0.25)  # t = 1 s, less the first contact


def heights_by_rays(path: Path, points: np.ndarray) -> np.ndarray:
    """Return the heights of the floor under points (x, y), by MuJoCo's rays."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    floor, high = np.array([-1], np.int32), 50.0
    bodies = int(model.body("block").id)
    rays = [mujoco.mj_ray(model, data, [x, y, high], [0.0, 0.0, -1.0], None, 1, bodies, floor) for x, y in points]
    return high - np.array(rays) + model.geom("floor").margin


def test_a_height_map_becomes_a_height_field_with_the_same_heights(tmp_path):
    rng = np.random.default_rng(0)
    heights = rng.uniform(-0.3, 0.4, (7, 5))
    terrain = legged.ground.HeightMap(heights, 0.25, (-1.0, 2.0))
    robot = block()
    q = robot.state(base_position=(0.0, 0.0, 3.0)).q
    ground = legged.contact.Rigid(terrain=terrain)
    path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, ground=ground, home=q)
    inside = [(i, j) for i in range(1, 6) for j in range(1, 4)]
    points = np.array([(-1.0 + 0.25 * i + 1e-7, 2.0 + 0.25 * j + 1e-7) for i, j in inside])
    expected = [heights[i, j] for i, j in inside]
    assert heights_by_rays(path, points) == pytest.approx(expected, abs=2e-6)  # MuJoCo keeps heights as float32


@pytest.mark.parametrize(
    ("terrain", "error"),
    [
        (legged.ground.Flat(0.3), 1e-9),
        (legged.ground.Slope(0.2, 0.7, 0.1), 1e-9),
        (legged.ground.Stairs((1.0, 2.0), (0.1, 0.1)), 1e-6),
    ],
)
def test_other_terrains_become_a_plane_or_a_sampled_height_field(terrain, error, tmp_path):
    robot = block()
    q = robot.state(base_position=(0.0, 0.0, 3.0)).q
    ground = legged.contact.Rigid(terrain=terrain)
    path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, ground=ground, home=q)
    points = np.array([(-0.5, 0.3), (0.4, -0.8), (1.5, 0.2), (2.6, -0.1)])
    expected = terrain.height(points[:, 0], points[:, 1])
    assert heights_by_rays(path, points) == pytest.approx(expected, abs=error)


def test_a_robot_stands_on_a_height_field(tmp_path):
    robot = robots.spatial_quadruped()
    x = np.linspace(-2.0, 2.0, 41)
    terrain = legged.ground.HeightMap(0.3 + 0.02 * np.sin(3.0 * x)[:, None] * np.cos(2.0 * x), 0.1, (-2.0, -2.0))
    ground = legged.contact.Rigid(terrain=terrain)
    path = legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, ground=ground, kp=100.0, kd=2.0)
    model, data, force = simulated(path, 2.0)
    assert abs(data.qpos[2] - model.key("home").qpos[2]) < 2 * SINKING  # the feet are at different heights
    assert force[2] == pytest.approx(robot.mass * G, rel=0.01)


def test_points_slide_on_a_height_field_as_on_a_plane(tmp_path):
    """Without a margin of the field, its prisms push points sideways, and a sled ends 12 mm from its place."""
    points = {f"{x} {y}": (0.15 * x, 0.1 * y, -0.05) for x in (-1, 1) for y in (-1, 1)}
    sled = legged.Link("sled", legged.box_inertia(2.0, (0.3, 0.2, 0.02)), points)
    robot, ends = legged.RobotBuilder("sled", sled).build(), []
    heights = np.zeros((61, 21))
    heights[-1, -1] = 0.1  # far away; a level field would become a plane
    q = robot.state(base_position=(0.0, 0.0, 0.05)).q
    for number, terrain in enumerate((legged.ground.Flat(), legged.ground.HeightMap(heights, 0.1, (-1.0, -1.0)))):
        ground = legged.contact.Rigid(friction=0.3, terrain=terrain)
        path = tmp_path / f"scene{number}.xml"
        legged.save_mjcf(robot, path, scene=True, ground=ground, time_step=1e-3, home=q)
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        data.qvel[:2] = 2.0, 0.3
        for _ in range(1000):
            mujoco.mj_step(model, data)
        ends.append(data.qpos[:3].copy())
    np.testing.assert_allclose(ends[1], ends[0], rtol=0.0, atol=3e-3)


def test_obstacles_are_part_of_the_scene(tmp_path):
    step = legged.Box((1.0, 1.0, 0.4), (0.0, 0.0, 0.2), np.eye(3))
    ground = legged.contact.Rigid(friction=0.6, obstacles=(("step", step),))
    robot = block()
    q = robot.state(base_position=(0.0, 0.0, 0.46)).q
    _, data, force = simulated(legged.save_mjcf(robot, tmp_path / "s.xml", scene=True, ground=ground, home=q), 2.0)
    assert data.qpos[2] == pytest.approx(0.45, abs=5e-3)
    assert force[2] == pytest.approx(2.0 * G, rel=0.01)
    assert {float(contact.friction[0]) for contact in data.contact} == {0.6}


def test_a_robot_with_closed_loops_stands_on_its_legs(tmp_path):
    closed = robots.five_bar_quadruped()
    path = legged.loops.save_mjcf(closed, tmp_path / "scene.xml", scene=True, kp=300.0, kd=6.0)
    model, data, force = simulated(path, 2.0)
    assert model.neq >= len(closed.loops)
    assert force[2] == pytest.approx(closed.robot.mass * G, rel=0.01)
    q = conversion_to(closed.robot, model).from_configuration(data.qpos)
    assert np.abs(legged.loops.residual(closed, q)).max() < 5e-3  # MuJoCo's equalities are soft
    assert abs(data.qpos[2] - model.key("home").qpos[2]) < 2 * SINKING
    again = legged.loops.load(path)
    assert again.robot.describe() == closed.robot.describe() and len(again.loops) >= len(closed.loops)


def test_a_loop_that_mjcf_cannot_close_is_refused(tmp_path):
    tree = robots.chain(3)
    closed = legged.loops.close(
        tree, legged.Prismatic("slot", "x"), parent=tree.links[1].name, child=tree.links[-1].name
    )
    with pytest.raises(DefinitionError, match="'slot' closes a loop as Prismatic"):
        legged.loops.save_mjcf(closed, tmp_path / "scene.xml")
    assert not (tmp_path / "scene.xml").exists()


REFUSED = {
    "kp without a scene": ({"kp": 10.0}, ArgumentError, "kp: only for a scene"),
    "ground without a scene": ({"ground": legged.contact.Rigid()}, ArgumentError, "scene=True"),
    "kd without kp": ({"scene": True, "kd": 1.0}, ArgumentError, "need a kp"),
    "kp of a wrong length": ({"scene": True, "kp": [1.0, 2.0]}, ShapeError, "one entry per joint"),
    "negative kp": ({"scene": True, "kp": -1.0}, ArgumentError, "not negative"),
    "no ground": ({"scene": True, "ground": 0.8}, ArgumentError, "Rigid"),
    "home of a wrong length": ({"scene": True, "home": np.zeros(3)}, ShapeError, "q must be"),
    "no time step": ({"scene": True, "time_step": 0.0}, ArgumentError, "time_step"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_scene_writes_nothing(what, tmp_path):
    arguments, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        legged.save_mjcf(robots.spatial_quadruped(), tmp_path / "scene.xml", **arguments)
    assert not list(tmp_path.iterdir())


def test_a_robot_that_would_fall_through_the_floor_is_refused(tmp_path):
    robot = legged.random_tree(0, 4)
    bare = robot.edit().build()
    if bare.contacts:
        for link in bare.links:
            bare = bare.edit().change_link(link.name, contacts={}).build()
    with pytest.raises(DefinitionError, match="fall through the floor"):
        legged.save_mjcf(bare, tmp_path / "scene.xml", scene=True, home=bare.neutral())
    with pytest.raises(DefinitionError, match="pass home=q"):
        legged.save_mjcf(block(), tmp_path / "scene.xml", scene=True)


def test_a_fixed_robot_has_its_joints_near_zero_within_their_limits(tmp_path):
    """With and without a load: the second joint cannot be at zero."""
    arm = legged.RobotBuilder("arm", legged.Link("foot"), base=legged.FixedBase())
    body = legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0.0, 0.0, 0.2))
    arm.add(legged.Revolute("first", "y"), legged.Link("upper", body), to="foot")
    physics = legged.JointPhysics(lower=0.3, upper=1.0, effort=200.0)
    arm.add(legged.Revolute("second", "y", physics=physics), legged.Link("lower", body), to="upper", at=(0.0, 0.0, 0.4))
    path = legged.save_mjcf(arm.build(), tmp_path / "scene.xml", scene=True, kp=500.0, kd=20.0)
    model, data, _ = simulated(path, 2.0)
    assert model.key("home").qpos.tolist() == [0.0, 0.3]
    assert data.qpos == pytest.approx([0.0, 0.3], abs=0.02)  # sag m g l / kp


def test_a_state_that_is_no_state_is_refused(tmp_path):
    robot = robots.spatial_quadruped()
    with pytest.raises(ShapeError, match="must have norm 1"):
        legged.save_mjcf(robot, tmp_path / "scene.xml", scene=True, home=np.zeros(robot.nq))


@pytest.mark.parametrize("time_step", [0.001, 0.004])
def test_contacts_on_rigid_ground_are_as_stiff_as_the_time_step_allows(tmp_path, time_step):
    """A critically damped contact with the time constant T that is hit with the velocity v sinks by v T / e at most."""
    body = legged.Link("body", legged.box_inertia(1.0, (0.1, 0.1, 0.1)), {"foot": (0.0, 0.0, -0.1)})
    robot, height = legged.RobotBuilder("hopper", body, base=legged.FloatingBase()).build(), 0.1
    home = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.1 + height])
    path = legged.save_mjcf(robot, tmp_path / "ball.xml", scene=True, home=home, time_step=time_step)
    model = mujoco.MjModel.from_xml_path(str(path))
    data, lowest = mujoco.MjData(model), 1.0
    mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(round(0.5 / time_step)):
        mujoco.mj_step(model, data)
        lowest = min(lowest, data.qpos[2] - 0.1)
    hit = np.sqrt(2.0 * G * height)
    assert -hit * (2.0 * time_step / np.e + time_step) < lowest  # it is seen a time step late
