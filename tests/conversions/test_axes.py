"""Files whose root link has other axes than x forward and z up, and the argument `axes` of `load`."""

import numpy as np
import pytest
from oracles.cases import case_of

import legged
from legged import conversions
from legged.dynamics.kinematics import link_poses, point_positions
from legged.errors import ArgumentError, MismatchError
from tests.files.test_feet import four_legged

TREE = legged.random_tree(3, 8, joints=("revolute", "prismatic"), bases=("floating",))
TURNED = """<joint name="turn" type="fixed"><parent link="file"/><child link="trunk"/>
  <origin rpy="-1.5707963267948966 0 0"/></joint>"""
ALL = [(f, u) for f in ("x", "-x", "y", "-y", "z", "-z") for u in ("x", "-x", "y", "-y", "z", "-z") if f[-1] != u[-1]]


def close(actual, expected, tolerance=1e-11):
    """Whether arrays agree: inertia matrices of these robots are conditioned below 1e5."""
    return np.abs(actual - expected).max() <= tolerance * max(np.abs(expected).max(), 1.0)


def saved(text, tmp_path, name="dog.urdf"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("axes", ALL)
def test_named_axes_point_forward_and_up(axes, tmp_path):
    """At rest, x of the robot is the first of these axes of the root link in the file, and z the second."""
    robot = legged.load(legged.save_urdf(TREE, tmp_path / "tree.urdf"), axes=axes)
    named = {sign + "xyz"[k]: (-1.0 if sign else 1.0) * np.eye(3)[k] for sign in ("", "-") for k in range(3)}
    root = robot.link(TREE.links[0].name)
    R = link_poses(robot, robot.neutral())[0][root.index]
    assert close(R @ named[axes[0]], np.eye(3)[0], 0.0) and close(R @ named[axes[1]], np.eye(3)[2], 0.0)
    assert np.linalg.det(R) == 1.0 and robot.mass == pytest.approx(TREE.mass, rel=1e-14)


def test_a_file_with_y_forward_gives_the_same_robot_as_one_with_x_forward(tmp_path):
    along_x = legged.load(saved(four_legged("x"), tmp_path, "x.urdf"))
    along_y = legged.load(saved(four_legged("y"), tmp_path, "y.urdf"), axes=("y", "z"))
    rng = np.random.default_rng(0)
    q = legged.random_configuration(along_x, rng)
    signs = np.concatenate(
        [np.ones(7), np.tile([1.0, -1.0, -1.0], 4)]
    )  # hip, thigh, shank; left is -x where y is forward
    M = legged.inertia_matrix(along_x, q) * np.outer(signs[1:], signs[1:])
    assert close(legged.inertia_matrix(along_y, signs * q), M, 1e-14)
    ours, theirs = (feet_of(*each) for each in ((along_y, signs * q), (along_x, q)))
    assert len(ours) == 4 and close(ours, theirs, 1e-14)
    assert not [finding for finding in along_y.audit.findings if finding.kind in ("forward", "up")]


def feet_of(robot, q):
    """Return the places of the contact points, (n, 3), world axes."""
    return point_positions(robot, q, [(contact.link, contact.position) for contact in robot.contacts])


@pytest.mark.parametrize("axes", [("-y", "z"), ("z", "y"), ("-z", "-x")])
def test_states_of_turned_robots_are_converted_for_all_programs(axes, tmp_path):
    """With the models that they read from the file, whose free joint moves its root link."""
    path = legged.save_urdf(TREE, tmp_path / "tree.urdf")
    robot, plain = legged.load(path, axes=axes), legged.load(path)
    case = case_of(robot, 0)
    to = conversions.legged(robot, plain)
    check(to, case, lambda q, v, a: legged.inverse_dynamics(plain, q, v, a))
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    model.gravity.linear = np.array(robot.gravity)
    data = model.createData()
    check(conversions.pinocchio(robot, model), case, lambda q, v, a: pin.rnea(model, data, q, v, a))
    pytest.importorskip("mujoco")
    from oracles.programs.mujoco_model import inverse

    scene = conversions.mujoco_model(plain)
    check(conversions.mujoco(robot, scene), case, lambda q, v, a: inverse(scene, q, v, a))


def check(to, case, inverse):
    """Check the inverse dynamics of a program in its own vectors against ours."""
    q, v, vdot = case.q, case.v, case.vdot
    there = to.to_configuration(q), to.to_velocity(q, v), to.to_acceleration(q, v, vdot)
    forces = to.from_force(there[0], inverse(*there))
    assert close(forces, legged.inverse_dynamics(case.robot, q, v, vdot)), to.program
    assert close(to.from_configuration(there[0]), q, 1e-14), to.program


def test_key_frames_of_a_turned_robot_keep_the_pose_of_the_root_link(tmp_path):
    pytest.importorskip("mujoco")
    text = """<mujoco><worldbody><body name="trunk"><freejoint/><geom type="box" size="0.2 0.1 0.05"/>
      <body name="arm" pos="0.2 0 0"><joint name="elbow" axis="0 1 0"/><geom type="sphere" size="0.1"/></body>
      </body></worldbody><keyframe><key name="lying" qpos="1 2 3 0.5 0.5 -0.5 0.5 0.7"/></keyframe></mujoco>"""
    path = saved(text, tmp_path, "key.xml")
    plain, turned = legged.load(path), legged.load(path, axes=("z", "y"))
    both = (link_poses(robot, conversions.postures(robot, path)["lying"]) for robot in (plain, turned))
    for theirs, ours in zip(*both, strict=True):
        assert close(ours[-1], theirs[-1], 1e-15)


def test_group_states_of_a_turned_robot_are_of_the_root_link_of_the_file(tmp_path):
    path = legged.save_urdf(TREE, tmp_path / "tree.urdf")
    srdf = saved(
        """<robot name="tree"><group_state name="lying" group="all">
        <joint name="root_joint" value="1 2 3 0.1 0.7 0.1 0.7"/></group_state></robot>""",
        tmp_path,
        "tree.srdf",
    )
    poses = []
    for robot in (legged.load(path), legged.load(path, axes=("z", "y"))):
        R, origins = link_poses(robot, conversions.postures(robot, srdf)["lying"])
        root = robot.link(TREE.links[0].name).index
        poses.append((R[root], origins[root]))
    for theirs, ours in zip(*poses, strict=True):
        assert close(ours, theirs, 1e-14)


def test_a_base_that_slides_and_hinges_of_a_model_move_is_not_turned(tmp_path):
    mujoco = pytest.importorskip("mujoco")
    joints = "".join(f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))
    text = f"""<mujoco><worldbody><body name="trunk">{joints}<joint type="ball"/><geom type="box" size="0.2 0.1 0.05"/>
      <body name="arm" pos="0.2 0 0"><joint name="elbow" axis="0 1 0"/><geom type="sphere" size="0.1"/></body>
      </body></worldbody></mujoco>"""
    path = saved(text, tmp_path, "chain.xml")
    model = mujoco.MjModel.from_xml_path(str(path))
    assert conversions.mujoco(legged.load(path, base="floating"), model).nq == model.nq
    with pytest.raises(MismatchError, match="slides and hinges of MuJoCo move link 'trunk'"):
        conversions.mujoco(legged.load(path, base="floating", axes=("z", "y")), model)


def test_a_base_whose_origin_is_elsewhere_is_not_converted():
    body = legged.box_inertia(1.0, (0.1, 0.2, 0.3))
    builder = legged.RobotBuilder("pair", legged.Link("frame", legged.Inertia(0.0)))
    robot = builder.add(legged.Fixed("weld"), legged.Link("trunk", body), to="frame", at=(0.0, 0.0, 0.1)).build()
    other = legged.RobotBuilder("alone", legged.Link("trunk", body)).build()
    with pytest.raises(MismatchError, match="moves link 'trunk', and that of robot 'pair' 'frame'"):
        conversions.legged(robot, other)


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ("xz", "axes must be"),
        (("y",), "axes must be"),
        (("y", "up"), "axes must be two of x, y and z, .* got .'y', 'up'."),
        (("y", "-y"), "axes must be two of x, y and z"),
        ((0, 2), "axes must be"),
    ],
)
def test_wrong_axes_are_refused(axes, words, tmp_path):
    with pytest.raises(ArgumentError, match=words):
        legged.load(saved(four_legged(), tmp_path), axes=axes)


@pytest.mark.parametrize("up", ["z", "y"])
@pytest.mark.parametrize("along", ["x", "y"])
def test_findings_name_the_axes_to_pass(along, up, tmp_path):
    """A file with y up is that with z up, turned by -90 degrees about x: y becomes -z, z becomes y."""
    text = four_legged(along)
    if up == "y":
        text = text.replace('<link name="trunk">', f'<link name="file"/>{TURNED}<link name="trunk">')
    path = saved(text, tmp_path)
    found = {
        finding.kind: finding.words for finding in legged.audit(path).findings if finding.kind in ("up", "forward")
    }
    forward = {"x": "x", "y": {"z": "y", "y": "z"}[up]}[along]
    expected = f"axes=('{forward}', '{up}'), or '-{forward}' if that points forward"
    assert [*found] == (["up"] * (up == "y") or ["forward"] * (along == "y"))
    assert all(expected in words for words in found.values())
    again = legged.audit(path, axes=(forward, up))
    assert not [finding for finding in again.findings if finding.kind in ("up", "forward")]


@pytest.mark.parametrize("count", [2, 4, 6])
def test_horizontal_legs_to_all_sides_are_no_finding(count, tmp_path):
    """Their mean displacement is zero up to rounding, in any direction."""
    body, hip, shank = legged.box_inertia(1.0, (0.1, 0.1, 0.1)), 0.1, 0.3  # [m]
    builder = legged.RobotBuilder("star", legged.Link("trunk", body))
    for k, angle in enumerate(-2.0 * np.pi * np.arange(count) / count):
        out, across = np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([-np.sin(angle), np.cos(angle), 0.0])
        foot = legged.Link(f"{k}_foot", body, {f"{k}_tip": shank * out})
        builder.add(legged.Revolute(f"{k}_hip", "z"), legged.Link(f"{k}_thigh", body), to="trunk", at=hip * out)
        builder.add(legged.Revolute(f"{k}_knee", across), foot, to=f"{k}_thigh", at=shank * out)
    path = legged.save_urdf(builder.build(), tmp_path / "star.urdf")
    path.write_text(path.read_text().replace("legged", "other"))  # the elements alone count
    assert not [finding for finding in legged.audit(path).findings if finding.kind in ("forward", "up")]
