"""Robots read from MJCF have MuJoCo's accelerations without contact; unsupported elements are reported.

Accelerations are compared in parts of the largest. MuJoCo and we both lose some 1e-16 times the condition number of the
inertia matrix, 1e3 to 1e5 here; 1e-9 is promised and 1e-11 is what these models give.
"""

import numpy as np
import pytest

import legged
from legged import FixedBase, FloatingBase, PlanarBase, conversions
from legged.errors import FileError, SingularError
from legged.files.mjcf import reader

pytest.importorskip("mujoco")
import mujoco
from oracles.mjcf_models import COUPLED, FLOATING, GEOMETRIES, HEAVY_BASE, MODELS, MOTORS, SEVERAL
from oracles.mutations import (
    cut,
    duplicated,
    flipped,
    moved,
    removed,
    renamed,
    renumbered,
    repeated,
    stuffed,
    truncated,
)
from oracles.programs.mujoco_model import acceleration, inverse, smooth_terms

PROMISED = 1e-11
EVERY = {"two free bodies": "world"}
BROKEN = (truncated, flipped, cut, repeated, stuffed, *[renumbered] * 5, renamed, duplicated, removed, moved)


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a text as a file."""

    def of_text(text: str | bytes, **options) -> legged.Robot:
        path = tmp_path / "model.xml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return legged.load(path, **options)

    return of_text


def random_state(robot, seed):
    rng = np.random.default_rng(seed)
    return legged.random_configuration(robot, rng), *rng.normal(size=(2, robot.nv))


@pytest.mark.parametrize("name", MODELS)
def test_accelerations_are_mujocos_qacc(load, name):
    robot, model = load(MODELS[name], root=EVERY.get(name)), mujoco.MjModel.from_xml_string(MODELS[name])
    theirs = conversions.mujoco(robot, model)
    for seed in range(20):
        q, v, tau = random_state(robot, seed)
        qpos, qvel = theirs.to_configuration(q), theirs.to_velocity(q, v)
        qacc = acceleration(model, qpos, qvel, theirs.to_force(q, tau))
        ours = theirs.to_acceleration(q, v, legged.forward_dynamics(robot, q, v, tau))
        assert np.abs(ours - qacc).max() <= PROMISED * np.abs(qacc).max()


@pytest.mark.parametrize("name", MODELS)
def test_forces_are_mujocos_inverse_dynamics(load, name):
    robot, model = load(MODELS[name], root=EVERY.get(name)), mujoco.MjModel.from_xml_string(MODELS[name])
    theirs = conversions.mujoco(robot, model)
    for seed in range(5):
        q, v, vdot = random_state(robot, seed)
        qpos, qvel, qacc = theirs.to_configuration(q), theirs.to_velocity(q, v), theirs.to_acceleration(q, v, vdot)
        forces = legged.inverse_dynamics(robot, q, v, vdot)
        torques = theirs.from_force(qpos, inverse(model, qpos, qvel, qacc))
        assert np.abs(forces - torques).max() <= 1e-12 * np.abs(forces).max()


@pytest.mark.parametrize("name", MODELS)
def test_links_have_mujocos_names_and_places(load, name):
    """With our q written into qpos as it stands, but for a free base: references and anchors shift nothing."""
    robot, model = load(MODELS[name], root=EVERY.get(name)), mujoco.MjModel.from_xml_string(MODELS[name])
    q, _, _ = random_state(robot, 3)
    data = mujoco.MjData(model)
    data.qpos[:] = conversions.mujoco(robot, model).to_configuration(q)
    for joint in robot.joints:
        at = model.joint(joint.name).qposadr[0]
        assert np.array_equal(data.qpos[at : at + joint.nq], q[joint.q])
    mujoco.mj_kinematics(model, data)
    poses = legged.link_poses(robot, q)
    for link in robot.links:
        of_body = next((i for i in range(model.nbody) if model.body(i).name == link.name), None)
        if of_body is not None:
            R, o = poses[0][link.index], poses[1][link.index]
            assert np.abs(o - data.xpos[of_body]).max() < 1e-13
            assert np.abs(R - data.xmat[of_body].reshape(3, 3)).max() < 1e-13
    assert {model.body(i).name for i in range(1, model.nbody)} <= {link.name for link in robot.links}


@pytest.mark.parametrize("name", MODELS)
def test_a_robot_read_from_mjcf_goes_through_mjcf_again(load, name, tmp_path):
    """Massless links between joints off their bodies' origins become several joints of one body again."""
    robot = load(MODELS[name], root=EVERY.get(name))
    model = mujoco.MjModel.from_xml_path(str(legged.save_mjcf(robot, tmp_path / "again.xml")))
    theirs = conversions.mujoco(robot, model)
    for seed in range(3):
        q, v, tau = random_state(robot, seed)
        qpos, qvel, force = theirs.to_configuration(q), theirs.to_velocity(q, v), theirs.to_force(q, tau)
        rates = legged.forward_dynamics(robot, q, v, tau)
        vdot = theirs.from_acceleration(qpos, qvel, acceleration(model, qpos, qvel, force))
        assert np.abs(vdot - rates).max() <= PROMISED * np.abs(rates).max()


def test_armature_and_damping_of_the_free_joint_are_those_of_the_base(load, tmp_path):
    """MuJoCo's inertia matrix and forces, term by term; options of `load` leave either out, and say so."""
    robot, model = load(HEAVY_BASE), mujoco.MjModel.from_xml_string(HEAVY_BASE)
    assert robot.base == FloatingBase(armature=0.9, damping=1.3) and not any(
        "free joint" in x for x in robot.audit.lost
    )
    theirs = conversions.mujoco(robot, model)
    for seed in range(10):
        q, v, vdot = random_state(robot, seed)
        qpos, qvel = theirs.to_configuration(q), theirs.to_velocity(q, v)
        M, f = smooth_terms(model, qpos, qvel)
        bias = legged.inverse_dynamics(robot, q, v, vdot)
        rate_forces = theirs.from_force(qpos, M @ theirs.to_acceleration(q, v, vdot) - f)
        assert np.abs(rate_forces - bias).max() <= 1e-12 * np.abs(bias).max()
        columns = [theirs.from_force(qpos, M @ theirs.to_acceleration(q, 0.0 * v, e)) for e in np.eye(robot.nv)]
        inertia = legged.inertia_matrix(robot, q)
        assert np.abs(np.array(columns).T - inertia).max() <= 1e-12 * np.abs(inertia).max()
    assert load(HEAVY_BASE, armature=False).base == FloatingBase(damping=1.3)
    assert load(HEAVY_BASE, joint_physics=False).base == FloatingBase(armature=0.9)
    assert any("left out, since the base is" in words for words in load(HEAVY_BASE, base="fixed").audit.decided)
    assert load(HEAVY_BASE, base="planar").base == PlanarBase(armature=0.9, damping=1.3)
    assert legged.loops.load(tmp_path / "model.xml").robot.base == robot.base
    path = legged.save_mjcf(robot, tmp_path / "again.xml")
    assert legged.load(path).base == legged.load(path, gravity=(0, 0, -1)).base == robot.base
    assert legged.load(legged.save_urdf(robot, tmp_path / "again.urdf")).base == robot.base


def test_sites_are_links_with_their_frames(load):
    robot, model = load(FLOATING), mujoco.MjModel.from_xml_string(FLOATING)
    q, _, _ = random_state(robot, 1)
    data = mujoco.MjData(model)
    data.qpos[:] = conversions.mujoco(robot, model).to_configuration(q)
    mujoco.mj_kinematics(model, data)
    pose = legged.link_poses(robot, q)
    imu = robot.link("imu").index
    assert np.abs(pose[1][imu] - data.site("imu").xpos).max() < 1e-13
    assert np.abs(pose[0][imu] - data.site("imu").xmat.reshape(3, 3)).max() < 1e-13


def test_a_free_body_is_a_floating_base_and_anything_else_hangs_on_the_world(load):
    assert isinstance(load(FLOATING).base, FloatingBase) and load(FLOATING).links[0].name == "trunk"
    assert isinstance(load(FLOATING, base="fixed").base, FixedBase)
    assert isinstance(load(SEVERAL).base, FixedBase) and load(SEVERAL).links[0].name == "world"
    welded = FLOATING.replace('<freejoint name="root"/>', "")
    assert isinstance(load(welded).base, FixedBase) and load(welded).links[0].name == "world"
    assert isinstance(load(welded, base="floating").base, FloatingBase)
    two = MODELS["two free bodies"]
    assert [joint.kind for joint in load(two, root="world").joints] == ["free", "revolute", "free"]
    assert load(two).links[0].name == "cart" and isinstance(load(two).base, FloatingBase)


def test_the_sphere_at_the_end_of_a_leg_is_its_foot(load):
    (foot,) = load(FLOATING, feet=["shank"]).contacts
    assert np.allclose(foot.position @ [1, 1, 0], 0.0, atol=0.02) and abs(np.linalg.norm(foot.position) - 0.3) < 0.021


def test_gravity_is_the_files(load):
    assert np.array_equal(load(MODELS["pendulum"]).gravity, [0.5, -1.0, -9.7])
    weightless = FLOATING.replace("<worldbody>", '<option><flag gravity="disable"/></option><worldbody>')
    assert not load(weightless).gravity.any()


def test_flags_switch_springs_and_dampers_off(load):
    (on,) = load(MODELS["pendulum"]).joints
    flag = '<option><flag spring="disable" damper="disable"/></option><worldbody>'
    (off,) = load(MODELS["pendulum"].replace("<worldbody>", flag)).joints
    assert on.definition.physics.stiffness == 3.0 and on.definition.physics.damping == 0.4
    assert off.definition.physics.stiffness == 0.0 == off.definition.physics.damping


def test_friction_stops_and_efforts_are_read(load):
    more = 'class="leg" frictionloss="0.7" limited="true" range="-0.5 1.5"'
    text = MOTORS.replace('name="r" class="leg"', f'name="r" {more}')
    left, right, neck = (load(text).joint(name).definition.physics for name in "lrn")
    assert (right.friction, right.lower, right.upper) == (0.7, -0.5, 1.5)
    assert left.effort == 3 * 2 + 2 * 5  # two motors: one limited by its command, the other by its force
    assert right.effort == 9  # the joint lets 9 N m through, of the actuator's 2 * 7
    assert neck.effort == np.inf and left.lower == -np.inf


def test_a_linear_equality_of_joints_is_a_joint_that_follows_another(load):
    """MuJoCo uses a soft constraint; the exact one is q = G s + g, so that G^T (M G sdd - f) = 0."""
    robot, model = load(COUPLED), mujoco.MjModel.from_xml_string(COUPLED)
    assert [joint.name for joint in robot.followers] == ["tip"] and robot.nv == 2
    theirs = conversions.mujoco(robot, model)
    G = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -0.6]])
    for seed in range(5):
        q, v, tau = random_state(robot, seed)
        qpos = theirs.to_configuration(q)
        assert abs((qpos[2] + 0.2) - (0.25 - 0.6 * (qpos[1] - 0.3))) < 1e-14
        M, f = smooth_terms(model, qpos, theirs.to_velocity(q, v))
        expected = np.linalg.solve(G.T @ M @ G, G.T @ f + tau)
        assert np.abs(legged.forward_dynamics(robot, q, v, tau) - expected).max() <= PROMISED * np.abs(expected).max()


def test_shapes_that_collide_are_described(tmp_path):
    path = tmp_path / "shapes.xml"
    seen_only = 'type="sphere" contype="0" conaffinity="0" size="0.1"'
    path.write_text(GEOMETRIES.replace('type="box" size="0.1 0.05 0.02"', seen_only))
    shapes = {link.name: link.shapes for link in reader.read(path).links}
    (capsule,), (ellipsoid, cylinder), (box,) = shapes["a"], shapes["b"], shapes["drawer"]
    assert capsule.kind == "capsule" and np.allclose(capsule.size, [0.04, np.hypot(0.3, np.hypot(0.1, 0.2))])
    assert ellipsoid.kind == "ellipsoid" and ellipsoid.size == (0.1, 0.05, 0.08)
    assert cylinder.kind == "cylinder" and cylinder.size == (0.03, 0.2)
    assert box.kind == "box" and box.size == (0.4, 0.4, 0.1)
    assert shapes["world"] == ()


LOSSES = {
    "tendons": '<tendon><spatial><site site="s"/><site site="t"/></spatial></tendon>',
    "of type connect": '<equality><connect body1="a" body2="b" anchor="0 0 0"/></equality>',
    "not linear": '<equality><joint joint1="i" joint2="j" polycoef="0 1 2 0 0"/></equality>',
    "fixes the position of joint 'i'": '<equality><joint joint1="i"/></equality>',
    "gains and dynamics of actuators": '<actuator><position joint="i" kp="3"/></actuator>',
    "actuators on tendons, sites": '<actuator><motor site="s"/></actuator>',
    "the surrounding fluid": '<option density="1000"/>',
    "asymmetric force limits": '<actuator><motor joint="i" forcelimited="true" forcerange="-1 3"/></actuator>',
    "sensors": '<sensor><jointpos joint="i"/></sensor>',
    "keyframes": '<keyframe><key qpos="0 0"/></keyframe>',
    "do not collide": '<contact><exclude body1="a" body2="b"/></contact>',
}
LOSSY = """<mujoco><worldbody><body name="a"><joint name="i"/><geom size="0.1"/><site name="s"/>
<body name="b" pos="1 0 0"><joint name="j"/><geom size="0.1"/><site name="t"/></body></body></worldbody>{}</mujoco>"""


@pytest.mark.parametrize("words", LOSSES)
def test_unconverted_elements_are_reported(load, words):
    assert any(words in lost for lost in load(LOSSY.format(LOSSES[words])).audit.lost)
    assert load(LOSSY.format("")).audit.lost == ()


LOSSES_OF_BODIES = {
    "gravity compensation of bodies (1)": ('<body name="b"', '<body name="b" gravcomp="1"'),
    "the stop of ball joint 'j'": ('<joint name="j"', '<joint name="j" type="ball" limited="true" range="0 1"'),
    "the nonlinear part of the spring of joint 'j'": ('<joint name="j"', '<joint name="j" stiffness="1 2 3"'),
    "motion-capture bodies": ("<worldbody>", '<worldbody><body name="m" mocap="true"><geom size="0.1"/></body>'),
    "dry friction of free joint 'i'": ('<joint name="i"', '<joint name="i" type="free" frictionloss="1"'),
    "the spring of free joint 'i'": ('<joint name="i"', '<joint name="i" type="free" stiffness="1"'),
}


@pytest.mark.parametrize("words", LOSSES_OF_BODIES)
def test_unconverted_properties_of_bodies_and_joints_are_reported(load, words):
    lost = load(LOSSY.format("").replace(*LOSSES_OF_BODIES[words])).audit.lost
    assert any(words in each for each in lost), lost


def test_unnamed_bodies_and_joints_get_unique_names(load):
    text = """<mujoco><worldbody><body><joint/><joint axis="1 0 0"/><geom size="0.1"/><body name="body 1" pos="0 0 1">
    <joint name="joint 0"/><geom size="0.1"/><site name="body 1"/></body></body></worldbody></mujoco>"""
    robot = load(text)
    assert [joint.name for joint in robot.joints] == ["joint 0 2", "joint 1", "joint 0"]
    assert [link.name for link in robot.links] == ["world", "body 1 2 (joint 0 2)", "body 1 2", "body 1", "body 1 3"]


MALFORMED = {
    "": "the file is empty",
    "<mujoco>": "XML_ERROR_MISMATCHED_ELEMENT",
    "<mujoco><worldbody/></mujoco>": "has no bodies",
    '<mujoco><worldbody><body><joint type="hingy"/></body></worldbody></mujoco>': "invalid keyword: 'hingy'",
    "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>": "mass and inertia of moving bodies",
    "<mujoco><worldbdy/></mujoco>": "worldbdy",
    '<mujoco><include file="nowhere.xml"/></mujoco>': "nowhere.xml",
    f'<mujoco><include file="{"9" * 400}"/></mujoco>': "999",  # longer than the name of a file can be
    "<mujoco><worldbody>" + "<body>" * 5000 + "</body>" * 5000 + "</worldbody></mujoco>": "nesting is too deep",
    '<mujoco><worldbody><body pos="nan 0 0"><joint/><geom size="1"/></body></worldbody></mujoco>': "'pos' of <body>",
    '<mujoco><worldbody><body quat="0 0 0 0"><joint/><geom size="1"/></body></worldbody></mujoco>': "zero quaternion",
    '<mujoco><worldbody><body><joint damping="-1"/><geom size="1"/></body></worldbody></mujoco>': "be negative",
    '<mujoco><worldbody><body><joint stiffness="1e99"/><geom size="1"/></body></worldbody></mujoco>': r"exceeds 1e\+09",
    '<mujoco><asset><mesh name="m" file="nowhere.stl"/></asset><worldbody><body><geom type="mesh" mesh="m"/></body>'
    "</worldbody></mujoco>": "put them where the file looks",
}


@pytest.mark.parametrize("text", MALFORMED, ids=lambda text: text[:40])
def test_malformed_files_are_rejected_with_the_reason(load, text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match=MALFORMED[text]):
        load(text)
    assert not (tmp_path / "MUJOCO_LOG.TXT").exists()


@pytest.mark.parametrize("batch", range(5))
def test_mutated_files_are_rejected_or_have_dynamics(batch, load):
    """Only errors of this package and no NaN: a SingularError where the axes of massless links are aligned."""
    rng = np.random.default_rng(batch)
    for _ in range(100):
        text = MODELS[str(rng.choice(list(MODELS)))].encode()
        mutate = BROKEN[int(rng.integers(len(BROKEN)))]
        try:
            robot = load(mutate(rng, text))
        except FileError:
            continue
        try:
            rates = legged.forward_dynamics(robot, robot.neutral(), np.zeros(robot.nv), np.ones(robot.nv))
        except SingularError:
            continue
        assert np.isfinite(rates).all()


def test_without_mujoco_the_error_names_what_to_install(load, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mujoco", None)
    with pytest.raises(FileError, match=r"pip install 'legged\[mujoco\]'"):
        load(FLOATING)


def test_mujoco_reads_turned_plates_of_any_size(tmp_path):
    """The largest moment is the sum of the others, which rounding in the turned axes misses; only this is added."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        R, (a, b) = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.uniform(0.1, 1.0, 2) * 10.0 ** rng.uniform(-6.0, 7.0)
        plate = legged.Inertia(10.0, np.zeros(3), R @ np.diag([a, b, a + b]) @ R.T)
        robot = legged.RobotBuilder("plate", legged.Link("plate", plate)).build()
        path = legged.save_mjcf(robot, tmp_path / "plate.xml")
        moments = mujoco.MjModel.from_xml_path(str(path)).body_inertia[-1]
        np.testing.assert_allclose(np.sort(moments), np.sort([a, b, a + b]), rtol=1e-9, atol=1e-12)
