"""Groups of robots that touch each other, compared with MuJoCo."""

import mujoco
import numpy as np
import pytest

import legged
import robots
from legged.contact import Box, Capsule, Rigid, Sphere
from legged.simulation import TimeStepping

STEP = 1e-3  # [s]


def slider(radius=0.1, mass=1.0, axis="x"):
    """Return a ball on a slide."""
    ball = legged.Link("ball", legged.sphere_inertia(mass, radius), shapes=[Sphere(radius)])
    builder = legged.RobotBuilder("slider", legged.Link("rail"), base=legged.FixedBase())
    return builder.add(legged.Prismatic("slide", axis), ball, to="rail").build()


SLIDERS = """<mujoco><option timestep="1e-4" gravity="0 0 0"/><default>
<geom solref="2e-4 1" solimp="0.99 0.999 1e-4"/></default>
<worldbody>
<body><joint name="a" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
<body pos="0.3 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body>
</worldbody><actuator><motor joint="a"/><motor joint="b"/></actuator></mujoco>"""


def test_two_robots_that_push_each_other_move_as_in_mujoco():
    """Plastic impact and pushing with 5 N against 2 N; MuJoCo's stiff contact rebounds by some 1e-3 of the speed."""
    group = legged.combine({"a": slider(), "b": slider(mass=2.0)}, at={"b": (0.3, 0.0, 0.0)})
    laws = {"a": lambda *_: np.array([5.0]), "b": lambda *_: np.array([-2.0])}
    run = legged.simulate(group, laws, ground=Rigid(), until=0.3, integrator=TimeStepping(STEP))
    q, v = run.q[-1], run.v[-1]
    model = mujoco.MjModel.from_xml_string(SLIDERS)
    data = mujoco.MjData(model)
    data.ctrl[:] = 5.0, -2.0
    for _ in range(3000):
        mujoco.mj_step(model, data)
    assert q[0] - q[1] == pytest.approx(0.1, abs=1e-3)  # they touch
    assert np.abs(q - data.qpos).max() < 1e-3  # [m], of 0.2 m
    assert np.abs(v - data.qvel).max() < 5e-3  # [m/s]


def stiff_model(group, path, floor):
    """Return a MuJoCo model of a group with stiff contacts, whose coordinates are those of the group."""
    spec = mujoco.MjSpec.from_file(str(legged.save_mjcf(group, path)))
    if floor:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[9.0, 9.0, 1.0])
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 1
        geom.friction, geom.solref, geom.solimp = [0.8, 0.0, 0.0], [4e-4, 1.0], [0.999, 0.9999, 1e-4, 0.5, 2.0]
    spec.option.timestep, spec.option.cone, spec.option.impratio = 1e-4, mujoco.mjtCone.mjCONE_ELLIPTIC, 100.0
    return spec.compile()


class Servo:
    """A PD law of the joints about given positions."""

    def __init__(self, positions, kp, kd):
        self.positions, self.kp, self.kd = positions, kp, kd

    def torque(self, t, phase, q, v, wrenches, memory):
        n = len(self.positions)
        return self.kp * (self.positions - q[-n:]) - self.kd * v[-n:]


def moved_by_mujoco(model, group, servos, q, v, until):
    """Return (q, v) after a motion in MuJoCo under the same laws."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    for _ in range(round(until / model.opt.timestep)):
        own = [(m, *m.state(data.qpos, data.qvel)) for m in group.members]
        joints = [servos[m.name].torque(0.0, 0, x, w, None, None) for m, x, w in own]
        data.qfrc_applied[:] = np.concatenate(
            [np.append(np.zeros(m.robot.base.nv), tau) for (m, _, _), tau in zip(own, joints, strict=True)]
        )
        mujoco.mj_step(model, data)
    return data.qpos.copy(), data.qvel.copy()


def long_arm():
    """Return an arm of two capsules."""
    builder, above = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase()), "post"
    for k in range(2):
        inertia = legged.box_inertia(1.0, (0.1, 0.1, 0.4), (0, 0, 0.2))
        link = legged.Link(f"l{k}", inertia, shapes=[Capsule(0.05, 0.3, (0, 0, 0.2))])
        builder.add(legged.Revolute(f"j{k}", "y"), link, to=above, at=(0.0, 0.0, 0.4 * k))
        above = link.name
    return builder.build()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
def test_an_arm_that_pushes_another_moves_as_in_mujoco(tmp_path):
    """Half a second with impact and pushing; both have errors of first order in the step, 0.2 and 0.1 ms."""
    group = legged.combine({"a": long_arm(), "b": long_arm()}, at={"a": (-0.2, 0, 0), "b": (0.2, 0, 0)})
    servos = {"a": Servo(np.array([0.8, 0.2]), 30.0, 2.0), "b": Servo(np.array([-0.1, -0.2]), 20.0, 2.0)}
    q, v = np.array([0.0, 0.1, 0.0, -0.1]), np.zeros(4)
    run = legged.simulate(group, servos, ground=Rigid(0.8), q=q, v=v, until=0.5, integrator=TimeStepping(2e-4))
    expected, _ = moved_by_mujoco(stiff_model(group, tmp_path / "arms.xml", False), group, servos, q, v, 0.5)
    assert run.contacts.impulse.sum() != 0.0
    assert np.abs(run.q[-1] - expected).max() < 5e-3  # [rad]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")
def test_quadrupeds_that_touch_side_by_side_move_as_in_mujoco(tmp_path):
    """One moves against the other, which stands, within 0.3 s; the trunks agree to 1 mm.

    Along x, in which the feet slide in the impact, they agree to 5 mm: friction of MuJoCo is regularized.
    """
    editor = robots.spatial_quadruped().edit()
    editor.change_link("trunk", shapes=[Box((1.0, 0.7, 0.1))])  # wider than the feet
    for k in range(1, 5):
        editor.change_contact(f"leg{k}_foot", Sphere(0.02, (0.0, 0.0, -0.28)))
    robot = editor.build()
    bent = np.tile([0.0, 0.3, -0.6], 4)
    start = np.array([1.0, 0, 0, 0, 0, 0, 0.3 * np.cos(0.3) + 0.28 * np.cos(0.3) + 0.02, *bent])
    other = start.copy()
    other[5] = 0.72
    twist = np.zeros(robot.nv)
    twist[4] = -0.8  # [m/s]
    group = legged.combine({"a": robot, "b": robot})
    servos = {name: Servo(bent, 200.0, 8.0) for name in "ab"}
    q, v = group.join_states({"a": start, "b": other}, {"b": twist})
    run = legged.simulate(group, servos, ground=Rigid(0.8), q=q, v=v, until=0.3, integrator=TimeStepping(2e-4))
    expected, _ = moved_by_mujoco(stiff_model(group, tmp_path / "dogs.xml", True), group, servos, q, v, 0.3)
    touch = [k for k, name in enumerate(run.contacts.names) if name.startswith("a/trunk-b/trunk")]
    assert run.contacts.impulse[:, touch].sum(axis=(0, 1))[1] < -1.0  # [N s] on a, along y
    for member in group.members:
        (own, _), (theirs, _) = (member.state(x, v) for x in (run.q[-1], expected))
        assert (np.abs(own[4:7] - theirs[4:7]) < [5e-3, 1e-3, 1e-3]).all()  # [m]
