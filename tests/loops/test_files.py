"""Loops from MJCF: equality constraints of bodies and sites become closing joints at the same places."""

import numpy as np
import pytest

import legged
from legged import loops
from legged.algorithms.legs.leg_chains import leg_chains
from legged.errors import FileError

mujoco = pytest.importorskip("mujoco")

ARM = """<body name="{side}1" pos="{x} 0 1">{first}<geom size="0.1" pos="0.1 0 0"/>
  <body name="{side}2" pos="0.3 0 0.1"><joint name="{side}b" type="ball"/><geom type="box" size="0.1 0.2 0.3"/>
    <body name="{side}3" pos="0 0.3 0.1" quat="1 0.3 0.2 0.1"><joint name="{side}c" axis="0 1 1"/>
      <geom type="box" size="0.3 0.2 0.1" pos="0 0.1 0.2"/>
      <site name="{side} tip" pos="0.1 0.2 0.3" quat="1 0 0.4 0.1"/></body></body></body>"""
ARMS = ARM.format(side="l", x=-0.2, first='<joint name="la" axis="1 2 3"/>')
ARMS += ARM.format(side="r", x=0.2, first='<freejoint name="ra"/>')  # so that it reaches anything
ALONE = '<option jacobian="dense"><flag contact="disable"/></option>'
EQUALITIES = {
    "connect": '<connect name="e" body1="l3" body2="r2" anchor="0.1 0.2 0.3"/>',
    "connect, world": '<connect name="e" body1="r3" anchor="0.1 0.2 0.3"/>',
    "connect, sites": '<connect name="e" site1="l tip" site2="r tip"/>',
    "weld": '<weld name="e" body1="l3" body2="r2" anchor="0.1 0.2 0.3" relpose="0.3 0.2 0.1 1 0.2 0.3 -0.1"/>',
    "weld, world": '<weld name="e" body1="r3"/>',
    "weld, sites": '<weld name="e" site1="l tip" site2="r tip"/>',
}


def arms(tmp_path, equality):
    path = tmp_path / "arms.xml"
    path.write_text(f"<mujoco>{ALONE}<worldbody>{ARMS}</worldbody><equality>{equality}</equality></mujoco>")
    model = mujoco.MjModel.from_xml_path(str(path))
    return loops.load(path), model, mujoco.MjData(model)


@pytest.mark.parametrize("name", EQUALITIES)
def test_equalities_have_mujocos_residual_and_constrain_the_same_motions(name, tmp_path):
    closed, model, data = arms(tmp_path, EQUALITIES[name])
    to_mujoco = legged.conversions.mujoco(closed.robot, model)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = legged.random_configuration(closed.robot, rng)
        data.qpos[:] = to_mujoco.to_configuration(q)
        mujoco.mj_forward(model, data)
        phi = loops.residual(closed, q)
        assert np.linalg.norm(phi[:3]) == pytest.approx(np.linalg.norm(data.efc_pos[:3]), rel=1e-9)
    near = legged.integrate(closed.robot, closed.robot.neutral(), 0.2 * rng.normal(size=closed.robot.nv))
    q = loops.assemble(closed, near)
    data.qpos[:] = to_mujoco.to_configuration(q)
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos).max() < 1e-9  # a weld's turn is closed, too
    theirs = data.efc_J.reshape(-1, model.nv)
    v = loops.consistent_velocity(closed, q, rng.normal(size=closed.robot.nv))
    assert np.abs(theirs @ to_mujoco.to_velocity(q, v)).max() < 1e-9 * np.abs(v).max()
    assert loops.mobility(closed, q).rank == np.linalg.matrix_rank(theirs, 1e-8)


def test_other_equalities_make_no_loop(tmp_path):
    closed, *_ = arms(tmp_path, '<weld name="off" body1="l3" body2="r2" active="false"/>')
    assert closed.loops == ()
    closed, *_ = arms(tmp_path, '<joint joint1="la" joint2="lc"/>')
    assert closed.loops == () and closed.robot.nv == 14
    urdf = legged.save_urdf(legged.random_tree(0, 3, joints=("revolute",)), tmp_path / "tree.urdf")
    assert loops.load(urdf).loops == ()


def test_a_robot_and_what_an_equality_ties_to_it_are_one_robot(tmp_path):
    tied = ARMS + '<body name="ball" pos="0 2 0"><freejoint name="rolls"/><geom size="0.1"/></body>'
    path = tmp_path / "tied.xml"
    equality = '<equality><weld name="e" body1="r3" body2="ball"/></equality>'
    only_right = tied[tied.index('<body name="r1"') :]
    path.write_text(f"<mujoco>{ALONE}<worldbody>{only_right}</worldbody>{equality}</mujoco>")
    assert legged.load(path).base.kind == "floating"
    closed = loops.load(path)
    assert closed.robot.base.kind == "fixed" and closed.robot.nv == 16
    q = loops.assemble(closed, closed.robot.neutral())
    assert np.abs(loops.residual(closed, q)).max() < 1e-12


def test_a_free_body_connected_to_the_world_cannot_have_a_fixed_base(tmp_path):
    path = tmp_path / "buoy.xml"
    path.write_text(
        '<mujoco><worldbody><body name="buoy" pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody>'
        '<equality><connect name="chain" body1="buoy" anchor="0 0 0.1"/></equality></mujoco>'
    )
    closed = loops.load(path)
    q = closed.robot.neutral()
    q[6] = 1.0
    assert np.abs(loops.residual(closed, q)).max() < 1e-12
    with pytest.raises(FileError, match="'chain' fixes the robot to the world, but base='fixed'"):
        loops.load(path, base="fixed")


def test_a_crank_of_a_foot_is_no_foot_and_a_foot_is_measured_within_its_range(tmp_path):
    """Limbs that a loop joins have one foot; a foot that stands on its heel at zero is measured at its range's end."""
    path = tmp_path / "leg.xml"
    path.write_text(
        """<mujoco><compiler angle="radian"/><worldbody><body name="trunk" pos="0 0 1"><freejoint/>
        <inertial pos="0 0 0" mass="5" diaginertia="0.1 0.1 0.1"/>
        <body name="shank"><joint name="hip" axis="0 1 0"/>
          <inertial pos="0 0 -0.2" mass="1" diaginertia="0.01 0.01 0.01"/>
          <body name="foot-crank" pos="0 0 -0.05"><joint name="crank" axis="0 1 0"/>
            <inertial pos="0 0 0" mass="0.1" diaginertia="0.001 0.001 0.001"/>
            <geom type="box" size="0.01 0.01 0.01"/>
            <body name="rod" pos="0.05 0 0"><joint name="rod" axis="0 1 0"/>
              <inertial pos="0 0 -0.2" mass="0.1" diaginertia="0.001 0.001 0.001"/></body></body>
          <body name="foot" pos="0 0 -0.45"><joint name="ankle" axis="0 1 0" range="1.0 1.4"/>
            <inertial pos="0 0 0" mass="0.1" diaginertia="0.001 0.001 0.001"/>
            <geom type="capsule" size="0.02" fromto="-0.05 0 -0.087 0.05 0 0.087"/></body></body></body></worldbody>
        <equality><connect name="end" body1="rod" body2="foot" anchor="0 0 -0.4"/></equality>
        <actuator><motor joint="hip" ctrlrange="-9 9"/><motor joint="crank" ctrlrange="-9 9"/></actuator></mujoco>"""
    )
    contacts = loops.load(path).robot.contacts
    assert [point.name.split("_")[0] for point in contacts] == ["foot", "foot"]
    along = np.diff([point.position for point in contacts], axis=0)[0]
    assert abs(along @ [0.1, 0.0, 0.174]) / np.linalg.norm(along) == pytest.approx(np.hypot(0.1, 0.174), rel=0.01)
    (leg,) = leg_chains(loops.load(path).robot)
    assert len(leg.contacts) == 2  # its heel is high at zero, and level within its range
    given = loops.load(path, feet=["foot-crank", "foot"]).robot.contacts
    assert len({point.link for point in given}) == 2
