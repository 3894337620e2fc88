"""Springs, damping and armature against MuJoCo and Pinocchio; free and reordered joints against Pinocchio."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import case_of
from oracles.rebuild import rebuild

import legged

CLOSE = 1e-9  # relative; 2e-14 is the worst seen
BODY = {"mass": 2.0, "center": (0.05, -0.1, 0.15), "tensor": (0.02, 0.03, 0.025)}
INERTIAL = '<inertial mass="2" pos="0.05 -0.1 0.15" diaginertia="0.02 0.03 0.025"/>'
LINK = legged.Inertia(**BODY)


def rooted(base, *joints):
    """Return a chain of identical links, each 0.3 m above the previous one and 0.1 m to the side."""
    builder = legged.RobotBuilder("chain", legged.Link("link0", LINK), base=base)
    for k, joint in enumerate(joints, start=1):
        builder.add(joint, legged.Link(f"link{k}", LINK), to=f"link{k - 1}", at=(0.1, 0.0, 0.3))
    return builder.build()


def mjcf(root, *joints):
    """Return the same chain in MJCF, with given joints of the root and of the other links."""
    text = "".join(f'<body pos="0.1 0 0.3">{INERTIAL}{joint}' for joint in joints)
    return f"""<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody><body>{root}{INERTIAL}{text}
    {"</body>" * len(joints)}</body></worldbody></mujoco>"""


def physics(**numbers):
    return {"physics": legged.JointPhysics(**numbers)}


MODELS = {
    "hinges with armature, damping and springs": (
        rooted(
            legged.FixedBase(),
            legged.Revolute("a", "y", **physics(damping=0.3, armature=0.2, stiffness=5.0, rest=0.4)),
            legged.Revolute("b", (0.6, 0.0, 0.8), **physics(damping=1.1, stiffness=2.0, rest=-0.7)),
            legged.Revolute("c", "x", **physics(armature=0.05)),
        ),
        mjcf(
            "",
            '<joint axis="0 1 0" damping="0.3" armature="0.2" stiffness="5" springref="0.4"/>',
            '<joint axis="0.6 0 0.8" damping="1.1" stiffness="2" springref="-0.7"/>',
            '<joint axis="1 0 0" armature="0.05"/>',
        ),
    ),
    "slides": (
        rooted(
            legged.FixedBase(),
            legged.Prismatic("a", "z", **physics(damping=4.0, armature=0.5, stiffness=90.0, rest=0.1)),
            legged.Revolute("b", "x", **physics(armature=0.01, damping=0.2)),
            legged.Prismatic("c", (0.0, 0.6, 0.8), **physics(stiffness=30.0, damping=2.0)),
        ),
        mjcf(
            "",
            '<joint type="slide" axis="0 0 1" damping="4" armature="0.5" stiffness="90" springref="0.1"/>',
            '<joint axis="1 0 0" damping="0.2" armature="0.01"/>',
            '<joint type="slide" axis="0 0.6 0.8" stiffness="30" damping="2"/>',
        ),
    ),
    "balls": (
        rooted(
            legged.FixedBase(),
            legged.Spherical("a", **physics(damping=0.3, armature=0.1, stiffness=4.0)),
            legged.Revolute("b", "y", **physics(armature=0.02)),
            legged.Spherical("c", **physics(damping=0.7, stiffness=1.5)),
        ),
        mjcf(
            "",
            '<joint type="ball" damping="0.3" armature="0.1" stiffness="4"/>',
            '<joint axis="0 1 0" armature="0.02"/>',
            '<joint type="ball" damping="0.7" stiffness="1.5"/>',
        ),
    ),
    "a free base": (
        rooted(
            legged.FloatingBase(),
            legged.Revolute("a", "y", **physics(damping=0.3, armature=0.2, stiffness=5.0, rest=0.4)),
            legged.Spherical("b", **physics(armature=0.03, stiffness=2.0, damping=0.1)),
        ),
        mjcf(
            "<freejoint/>",
            '<joint axis="0 1 0" damping="0.3" armature="0.2" stiffness="5" springref="0.4"/>',
            '<joint type="ball" damping="0.1" armature="0.03" stiffness="2"/>',
        ),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_accelerations_equal_mujocos(name):
    mujoco = pytest.importorskip("mujoco")
    robot, text = MODELS[name]
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    free = robot.base.nv
    for _ in range(10):
        q = legged.random_configuration(robot, rng)
        v, tau = rng.normal(size=(2, robot.nv))
        tau[:free] = 0.0
        data.qpos, data.qvel, data.qfrc_applied = q, v, tau
        if free:  # theirs: position, quaternion; velocity of the origin in the world, then the angular one
            R, p = robot.base.pose(q)
            data.qpos[:7] = [*p, *q[:4]]
            data.qvel[:6] = [*(R @ v[3:6]), *v[:3]]
        mujoco.mj_forward(model, data)
        theirs = data.qacc.copy()
        if free:
            theirs[:6] = [*theirs[3:6], *(R.T @ theirs[:3] - np.cross(v[:3], v[3:6]))]
        vdot = legged.forward_dynamics(robot, q, v, tau)
        assert vdot == pytest.approx(theirs, abs=CLOSE * np.abs(theirs).max())
        assert legged.inverse_dynamics(robot, q, v, theirs) == pytest.approx(
            tau, abs=CLOSE * (1 + np.abs(theirs).max())
        )


def test_armature_equals_pinocchios():
    pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    rng = np.random.default_rng(6)
    kinds = ("revolute", "prismatic", "universal", "ball", "planar")
    bare = legged.random_tree(11, 9, joints=kinds, bases=("floating",))
    numbers = {joint.name: float(rng.uniform(0.01, 0.3)) for joint in bare.joints}

    def armed(joint):
        return replace(joint, physics=legged.JointPhysics(armature=numbers[joint.name]))

    robot = rebuild(bare, joint=armed)
    twin = pinocchio_twin(bare)
    for joint in bare.joints:
        for k in range(joint.v.start, joint.v.stop):
            twin.model.armature[twin.v_index[k]] = numbers[joint.name]
    compare(case_of(robot, 5), twin)


@pytest.mark.parametrize("seed", range(12))
def test_rarer_joints_and_reordered_joints_equal_pinocchios(seed):
    pytest.importorskip("pinocchio")
    from oracles.programs.pinocchio_model import pinocchio_twin

    robot = legged.random_tree(seed, 6, joints=("free", "screw", "cylindrical", "ball", "fixed"), shuffled=True)
    compare(case_of(robot, seed), pinocchio_twin(robot))


def compare(case, twin):
    robot, q, v, vdot, tau, wrenches = case.robot, case.q, case.v, case.vdot, case.tau, case.wrenches
    inertia = twin.inertia_matrix(q)
    assert legged.inertia_matrix(robot, q) == pytest.approx(inertia, abs=CLOSE * np.abs(inertia).max())
    forces = twin.inverse_dynamics(robot, q, v, vdot, wrenches)
    assert legged.inverse_dynamics(robot, q, v, vdot, wrenches) == pytest.approx(
        forces, abs=CLOSE * np.abs(forces).max()
    )
    acceleration = twin.forward_dynamics(robot, q, v, tau, wrenches)
    assert legged.forward_dynamics(robot, q, v, tau, wrenches) == pytest.approx(
        acceleration, abs=CLOSE * np.abs(acceleration).max()
    )
