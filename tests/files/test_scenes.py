"""Robots beside other moving bodies, and bases written as slides and hinges, move as in MuJoCo."""

import numpy as np
import pytest

import legged
from legged import FixedBase, FloatingBase, conversions
from legged.errors import FileError, MismatchError

mujoco = pytest.importorskip("mujoco")

HEAVY = '<inertial mass="3" pos="0.05 -0.02 0.1" diaginertia="0.02 0.03 0.035" quat="0.8 0.2 -0.4 0.4"/>'
LIGHT = '<inertial mass="0.7" pos="0.01 0.03 -0.2" diaginertia="0.004 0.006 0.005"/>'
LEG = f"""<body name="leg" pos="0 0.1 -0.1"><joint axis="0 1 0"/>{LIGHT}
  <body name="foot" pos="0 0 -0.4"><joint name="knee" axis="0 1 0"/>{LIGHT}
    <geom type="sphere" size="0.02" mass="0" pos="0 0 -0.3"/></body></body>"""
BALL = f'<body name="ball" pos="1 0 0.1"><freejoint name="rolls"/>{LIGHT}</body>'
DOOR = f'<body name="door" pos="2 0 0"><joint name="hinge" axis="0 0 1"/>{LIGHT}</body>'
WALKER = f'<body name="trunk" pos="0.3 0.2 1" euler="0.1 0.2 0.3"><freejoint/>{HEAVY}{LEG}</body>'
SLIDES = """<joint name="x" type="slide" axis="0 1 0"/><joint name="y" type="slide" axis="1 0 0" ref="0.3"/>
  <joint name="z" type="slide" axis="0 0.6 -0.8"/>"""
TURNED = f'<body name="trunk" pos="0 0.2 1" euler="0.1 0.2 0.3">{SLIDES}{{}}{HEAVY}{LEG}</body>'
BALL_JOINT = TURNED.format('<joint name="turns" type="ball"/>')
HINGES = TURNED.format(
    '<joint name="r" axis="0 0 -1" ref="0.2"/><joint name="p" axis="0 1 0"/><joint name="w" axis="1 0 0" ref="-0.4"/>'
)
PLANAR = f"""<body name="trunk" pos="0.1 0 1" euler="0 0.2 0"><joint name="rootx" type="slide" axis="1 0 0"/>
  <joint name="rootz" type="slide" axis="0 0 1" ref="1.25"/><joint name="rooty" axis="0 -1 0" ref="0.2"/>
  {HEAVY}{LEG}</body>"""
SCENES = {
    "robot, ball": (WALKER + BALL, "floating"),
    "ball, robot": (BALL + WALKER, "floating"),
    "robot, door": (DOOR + WALKER, "floating"),
    "slides and a ball joint": (BALL_JOINT, "floating"),
    "slides and a ball joint, ball": (BALL + BALL_JOINT + DOOR, "floating"),
    "slides and hinges": (HINGES, "floating"),
    "planar": (PLANAR, "planar"),
    "planar, ball": (BALL + PLANAR, "planar"),
    "planar, damped": (PLANAR.replace("rootx", 'rootx" damping="2'), "fixed"),
    "planar, aside": (PLANAR.replace("0.1 0 1", "0.1 0.3 1"), "fixed"),
    "hopper on a rail": (PLANAR.replace('<joint name="rootx" type="slide" axis="1 0 0"/>', ""), "fixed"),
    "arm, free gripper": (
        DOOR.replace(LIGHT, LIGHT + LEG) + WALKER.replace("leg", "l").replace("foot", "f").replace("knee", "k"),
        "fixed",
    ),
    "two arms": (DOOR + DOOR.replace("door", "gate").replace('"hinge"', '"other"'), "fixed"),
    "arm, ball": (DOOR + BALL, "fixed"),
}


def written(inside, path):
    path.write_text(f'<mujoco><compiler angle="radian"/><worldbody>{inside}</worldbody></mujoco>')
    return path, mujoco.MjModel.from_xml_path(str(path))


@pytest.mark.parametrize("name", SCENES)
def test_robots_in_scenes_move_as_in_mujoco(name, tmp_path):
    inside, base = SCENES[name]
    path, model = written(inside, tmp_path / "scene.xml")
    robot, data = legged.load(path), mujoco.MjData(model)
    assert robot.base.kind == base
    to, rng = conversions.mujoco(robot, model), np.random.default_rng(0)
    last = robot.links[-1].name
    for _ in range(5):
        q = legged.random_configuration(robot, rng)
        v, tau = rng.normal(size=(2, robot.nv))
        data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)
        data.qfrc_applied[:] = to.to_force(q, tau)
        mujoco.mj_forward(model, data)
        vdot = legged.forward_dynamics(robot, q, v, tau)
        scale = np.abs(vdot).max()
        assert np.abs(to.from_acceleration(data.qpos, data.qvel, data.qacc_smooth) - vdot).max() < 1e-11 * scale
        there = to.to_acceleration(q, v, vdot)
        assert np.abs(to.from_acceleration(data.qpos, data.qvel, there) - vdot).max() < 1e-11 * scale
        assert np.abs(to.from_velocity(data.qpos, data.qvel) - v).max() < 1e-11
        back = to.from_configuration(data.qpos)
        assert np.abs(legged.difference(robot, q, back)).max() < 1e-9
        assert to.from_force(data.qpos, data.qfrc_applied) == pytest.approx(tau, abs=1e-11)
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, last)
        assert np.abs(legged.frame_pose(robot, q, last).position - data.xpos[body]).max() < 1e-12
        if ", ball" in name and base != "fixed":
            assert data.joint("rolls").qpos == pytest.approx([1, 0, 0.1, 1, 0, 0, 0])  # it rests where it is drawn


@pytest.mark.parametrize("name", ["slides and a ball joint", "slides and hinges", "planar"])
@pytest.mark.parametrize("lead", [(0,), (2, 0), (2, 3)])
def test_results_have_the_leading_axes_of_a_batch_even_of_an_empty_one(lead, name, tmp_path):
    path, model = written(SCENES[name][0], tmp_path / "scene.xml")
    robot = legged.load(path)
    to, v = conversions.mujoco(robot, model), np.ones((*lead, robot.nv))
    q = np.broadcast_to(robot.neutral(), (*lead, robot.nq))
    theirs = to.to_configuration(q)
    assert theirs.shape == (*lead, model.nq) and to.from_configuration(theirs).shape == q.shape
    for there in (to.to_velocity(q, v), to.to_acceleration(q, v, v), to.to_force(q, v)):
        assert there.shape == (*lead, model.nv)
    for back in (to.from_velocity(theirs, v), to.from_acceleration(theirs, v, v), to.from_force(theirs, v)):
        assert back.shape == v.shape


@pytest.mark.parametrize(
    "name", [name for name in SCENES if name.startswith(("robot", "ball, robot", "planar", "hopper"))]
)
def test_walking_robots_have_feet_and_the_audit_names_the_other_bodies(name, tmp_path):
    inside, _ = SCENES[name]
    robot = legged.load(written(inside, tmp_path / "scene.xml")[0])
    assert [robot.links[point.link].name for point in robot.contacts] == ["foot"]
    words = "; ".join((*robot.audit.lost, *robot.audit.decided))
    for other in ("ball", "door"):
        assert (f"other moving bodies: '{other}'" in words) == (other in name)
    assert ("base" in words) == ("robot" not in name)


def test_the_root_is_chosen_by_name(tmp_path):
    path, model = written(BALL + WALKER + DOOR, tmp_path / "scene.xml")
    assert legged.load(path).nv == 8
    assert legged.load(path, root="ball").nv == 6 and isinstance(legged.load(path, root="ball").base, FloatingBase)
    door = legged.load(path, root="door")
    assert isinstance(door.base, FixedBase) and [joint.name for joint in door.joints] == ["hinge"]
    every = legged.load(path, root="world")
    assert every.nv == model.nv and isinstance(every.base, FixedBase)
    with pytest.raises(
        FileError, match="no body 'truck' on the world to be the root; there are 'ball', 'trunk', 'door'"
    ):
        legged.load(path, root="truck")
    two = WALKER + WALKER.replace("trunk", "other").replace('"leg"', '"l"').replace("foot", "s").replace("knee", "k")
    path, _ = written(two, tmp_path / "two.xml")
    with pytest.raises(FileError, match="several robots, 'trunk', 'other'; choose one with root='trunk'"):
        legged.load(path)
    assert legged.load(path, root="other").links[0].name == "other"
    with pytest.raises(MismatchError, match=r"joints that robot .* does not have"):
        conversions.mujoco(legged.load(path, root="other").locked({"k": 0.1}), mujoco.MjModel.from_xml_path(str(path)))
    urdf = legged.save_urdf(legged.random_tree(0, 3, joints=("revolute",)), tmp_path / "tree.urdf")
    with pytest.raises(FileError, match="omit `root`"):
        legged.load(urdf, root="a")


def test_free_joints_stay_free_joints_in_mjcf(tmp_path):
    """With their armature and damping, which a floating base has too."""
    rolling = BALL.replace("<freejoint name", '<joint type="free" armature="0.02" damping="0.3" name')
    path, model = written(rolling + WALKER, tmp_path / "scene.xml")
    robot = legged.load(path, root="world")
    again = mujoco.MjModel.from_xml_path(str(legged.save_mjcf(robot, tmp_path / "again.xml")))
    assert list(again.jnt_type).count(0) == 2
    rng = np.random.default_rng(1)
    for each in (model, again):
        to, data = conversions.mujoco(robot, each), mujoco.MjData(each)
        q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
        data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)
        mujoco.mj_forward(each, data)
        vdot = legged.forward_dynamics(robot, q, v, np.zeros(robot.nv))
        assert to.from_acceleration(data.qpos, data.qvel, data.qacc_smooth) == pytest.approx(vdot, rel=1e-9, abs=1e-9)
    armed = WALKER.replace("<freejoint/>", '<joint type="free" armature="0.02"/>')
    base = legged.load(written(armed, tmp_path / "armed.xml")[0]).base
    assert isinstance(base, legged.FloatingBase) and base.armature == 0.02
    whole = legged.load(tmp_path / "armed.xml", root="world")
    assert whole.joints[0].kind == "free" and isinstance(whole.base, FixedBase)


def test_unnamed_joints_have_one_name_here_and_in_conversions(tmp_path):
    path, model = written(WALKER.replace('name="knee" ', ""), tmp_path / "scene.xml")
    robot = legged.load(path)
    assert [joint.name for joint in robot.joints] == ["joint 1", "joint 2"]
    to, q = conversions.mujoco(robot, model), robot.neutral()
    q[-2:] = 0.3, 0.4
    assert to.to_configuration(q)[-2:] == pytest.approx([0.3, 0.4])


def test_defaults_on_every_kind_of_joint(tmp_path):
    """As in Menagerie: a default class gives free joints, balls, slides and hinges armature and damping."""
    arms = f"""<body name="arm" pos="0.2 0 0"><joint name="shoulder" type="ball"/>{LIGHT}
      <body name="rail" pos="0 0.2 0"><joint name="rail" type="slide" axis="1 0 0.5"/>{LIGHT}</body></body>"""
    inside = f'<body name="trunk" pos="0 0 1"><joint name="free" type="free"/>{HEAVY}{LEG}{arms}</body>'
    path = tmp_path / "robot.xml"
    head = '<compiler angle="radian"/><default><joint armature="0.1" damping="0.4"/></default>'
    path.write_text(f"<mujoco>{head}<worldbody>{inside}</worldbody></mujoco>")
    model = mujoco.MjModel.from_xml_path(str(path))
    robot, data = legged.load(path, root="world"), mujoco.MjData(model)
    to, rng = conversions.mujoco(robot, model), np.random.default_rng(2)
    q, v = legged.random_configuration(robot, rng), rng.normal(size=robot.nv)
    data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    T = to.to_velocity(q, np.eye(robot.nv)).T
    scale = np.abs(M).max()
    assert np.abs(T.T @ M @ T - legged.inertia_matrix(robot, q)).max() < 1e-12 * scale
    vdot = legged.forward_dynamics(robot, q, v, np.zeros(robot.nv))
    assert to.from_acceleration(data.qpos, data.qvel, data.qacc_smooth) == pytest.approx(vdot, rel=1e-9, abs=1e-9)
    base = legged.load(path).base
    assert isinstance(base, legged.FloatingBase) and (base.armature, base.damping) == (0.1, 0.4)
