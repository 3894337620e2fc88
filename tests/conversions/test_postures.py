"""Postures of files: key frames of MJCF, and group states of SRDF as Pinocchio reads them."""

from pathlib import Path

import numpy as np
import pytest

import legged
from legged.conversions import postures
from legged.errors import FileError, MismatchError

KEYS = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="ball" pos="1 0 0"><freejoint/><geom size="0.1"/></body>
  <body name="trunk" pos="0 0 1"><freejoint/><geom size="0.1"/>
    <body name="arm"><joint name="elbow" ref="0.2"/><geom size="0.1" pos="0.3 0 0"/></body></body></worldbody>
  <keyframe><key name="home" qpos="1 0 0 1 0 0 0 0.1 0.2 0.9 0 0 2 0 0.7"/><key qpos="1 0 0 1 0 0 0 0 0 1 1 0 0 0 0"/>
  </keyframe></mujoco>"""


def test_key_frames_of_mjcf(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "robot.xml"
    path.write_text(KEYS)
    robot = legged.load(path)
    named = postures(robot, path)
    assert list(named) == ["home", "key 1"]
    assert named["home"] == pytest.approx([0, 0, 1, 0, 0.1, 0.2, 0.9, 0.7])
    assert any("legged.conversions.postures" in words for words in robot.audit.lost)


SRDF = """<robot name="arm"><group name="all"><joint name="one"/></group>
  <group_state name="up" group="all"><joint name="one" value="0.5"/></group_state>
  <group_state name="up" group="hand"><joint name="two" value="-0.25"/><joint name="welded" value="0"/></group_state>
  <group_state name="away" group="all"><joint name="root_joint" value="1 2 3 0 0 0.6 0.8"/></group_state></robot>"""


def arm(base=None):
    body = legged.box_inertia(1.0, (0.1, 0.1, 0.1))
    builder = legged.RobotBuilder("arm", legged.Link("base", body), base=base or legged.FloatingBase())
    builder.add(legged.Revolute("one"), legged.Link("a", body), to="base")
    return builder.add(legged.Revolute("two"), legged.Link("b", body), to="a", at=(0.1, 0, 0)).build()


def test_group_states_of_srdf_add_up_by_name(tmp_path):
    path = tmp_path / "arm.srdf"
    path.write_text(SRDF)
    named = postures(arm(), path)
    assert named["up"] == pytest.approx([1, 0, 0, 0, 0, 0, 0, 0.5, -0.25])
    assert named["away"] == pytest.approx([0.8, 0, 0, 0.6, 1, 2, 3, 0, 0])
    assert postures(arm(legged.FixedBase()), path)["up"] == pytest.approx([0.5, -0.25])
    with pytest.raises(MismatchError, match="none of the joints of robot"):
        postures(legged.random_tree(0, 3, joints=("revolute",), bases=("fixed",)), path)
    for text, words in (
        (SRDF.replace('"0.5"', '"0.5 0.1 0.2"'), "the value of joint 'one' .line 2. must be 1 numbers, got 3"),
        (SRDF.replace('"0.5"', '"a"'), "must be finite numbers, got 'a'"),
        (SRDF.replace("0.6 0.8", "0 0"), "must end with a unit quaternion"),
        ("<robot><link name='a'/></robot>", "holds no postures"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=words):
            postures(arm(), path)


CASES = {
    "talos/talos_reduced": ("talos.srdf", "floating"),
    "solo/solo12": ("solo.srdf", "floating"),
    "go2/go2": ("go2.srdf", "floating"),
    "panda/panda": ("panda.srdf", "fixed"),
}


@pytest.mark.parametrize("name", CASES)
def test_postures_of_public_robots_are_pinocchios(name):
    pin = pytest.importorskip("pinocchio")
    from oracles.urdfs import all_urdfs

    path, (file, base) = all_urdfs()[name], CASES[name]
    (srdf,) = (actual for folder in path.parents[:3] for actual in sorted(Path(folder).glob(f"srdf/{file}"))[:1])
    robot = legged.load(path, base, mimic="free")
    root = [pin.JointModelFreeFlyer()] if base == "floating" else []
    model = pin.buildModelFromUrdf(str(path), *root)
    pin.loadReferenceConfigurations(model, str(srdf), False)
    to, actual = legged.conversions.pinocchio(robot, model), postures(robot, srdf)
    assert actual
    for key, q in actual.items():
        np.testing.assert_allclose(to.to_configuration(q), model.referenceConfigurations[key], atol=1e-12)
