"""Armature and damping of bases: those of joints are diagonal matrices in their coordinates, and all are parameters.

The judges are the robot without both and a diagonal matrix, MuJoCo, and closed forms. Errors are relative to the size
of the terms; 1e-11 is the project's promise. The floating base is tested in tests/dynamics/test_base_armature.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import FORWARD, WITHOUT_ROTORS
from oracles.rebuild import rebuild

import legged
import robots
from legged import denoc
from legged.algorithms import composite, derivatives, newton_euler
from legged.errors import LeggedError

EXACT = 1e-11
SEEDS = range(8)
BASE = legged.FloatingBase(armature=0.7, damping=0.4)
JOINTLIKE = [legged.PlanarBase(0.7, 0.4), legged.EulerBase("xyz", 0.7, 0.4), legged.EulerBase("zyx", armature=0.7)]
"""Bases whose velocity is the rate of their coordinates."""


def case(seed: int, base):
    """Return a random robot on a base and its state; every second robot has joint physics."""
    tree = legged.random_tree(seed, 1 + seed, bases=("floating",), physics=seed % 2 == 1, shuffled=True)
    robot, rng = rebuild(tree, base=base), np.random.default_rng(seed)
    return robot, legged.random_configuration(robot, rng), *rng.normal(size=(3, robot.nv))


def apart(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0) / np.abs(theirs).max(initial=1e-300))


@pytest.mark.parametrize("base", JOINTLIKE, ids=str)
@pytest.mark.parametrize("seed", SEEDS)
def test_bases_of_joints_gain_a_diagonal_inertia_and_damping(seed, base):
    """M + a 1 and a vdot + b v in the rows of the base, from the robot without both, in all algorithms."""
    robot, q, v, vdot, tau = case(seed, base)
    bare, n = case(seed, replace(base, armature=0.0, damping=0.0))[0], base.nv
    added = np.zeros((robot.nv, robot.nv))
    added[:n, :n] = base.armature * np.eye(n)
    drag = np.concatenate([base.damping * v[:n], np.zeros(robot.nv - n)])
    inertia = legged.inertia_matrix(bare, q) + added
    for M in (legged.inertia_matrix(robot, q), composite.inertia_matrix(robot, q)):
        assert apart(M, inertia) < EXACT
    assert apart(denoc.generalized_inertia_matrix(robot, q), inertia) < EXACT
    forces = legged.inverse_dynamics(bare, q, v, vdot) + added @ vdot + drag
    for method in (legged.inverse_dynamics, denoc.inverse_dynamics, newton_euler.inverse_dynamics):
        assert apart(method(robot, q, v, vdot), forces) < EXACT
    energy = legged.kinetic_energy(bare, q, v) + 0.5 * v @ added @ v
    assert legged.kinetic_energy(robot, q, v) == pytest.approx(energy, rel=1e-13)
    assert np.array_equal(legged.momentum(robot, q, v), legged.momentum(bare, q, v))
    expected = np.linalg.solve(inertia, tau - drag - legged.bias_forces(bare, q, v))
    for name, method in {"core": legged.forward_dynamics, **FORWARD}.items():
        if seed % 2 == 0 or name not in WITHOUT_ROTORS:
            assert apart(method(robot, q, v, tau), expected) < 1e-8, name  # conditioning of the inertia matrix
    assert max(derivatives.check(robot, q, v, vdot, tau)) < 1e-9
    if seed < 3:
        assert legged.verify(robot).passed


@pytest.mark.parametrize("base", JOINTLIKE, ids=str)
def test_bases_of_joints_have_the_forces_of_slides_and_hinges_in_mujoco(base, tmp_path):
    """The elements of a file hold a base as a chain of joints, with armature and damping of each."""
    mujoco = pytest.importorskip("mujoco")
    robot, q, v, vdot, _ = case(2, base)
    model = mujoco.MjModel.from_xml_path(str(legged.save_mjcf(robot, tmp_path / "robot.xml")))
    data, theirs = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
    data.qpos, data.qvel = theirs.to_configuration(q), theirs.to_velocity(q, v)
    data.qacc = theirs.to_acceleration(q, v, vdot)
    mujoco.mj_inverse(model, data)
    ours = legged.inverse_dynamics(robot, q, v, vdot)
    assert apart(theirs.from_force(data.qpos, data.qfrc_inverse), ours) < EXACT


@pytest.mark.parametrize("base", [BASE, *JOINTLIKE], ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_the_numbers_of_the_base_are_parameters(seed, base):
    robot, q, v, _, tau = case(seed, base)
    values = {"base.armature": 1.3, "base.damping": 0.2}
    assert {name: robot.parameters()[name] for name in values} == {
        "base.armature": base.armature,
        "base.damping": base.damping,
    }
    other, edited = robot.with_parameters(values), case(seed, replace(base, armature=1.3, damping=0.2))[0]
    assert other.base == edited.base and other.describe() == edited.describe()
    expected = legged.forward_dynamics(edited, q, v, tau)
    assert apart(legged.forward_dynamics(other, q, v, tau), expected) < EXACT
    kernel = legged.compile(legged.forward_dynamics, robot, parameters=list(values))
    assert apart(kernel(q, v, tau, [1.3, 0.2]), expected) < 1e-9
    with pytest.raises(LeggedError, match=r"base.armature must not be negative"):
        kernel(q, v, tau, [-1.0, 0.2])
    for name in values:
        with pytest.raises(LeggedError, match=f"{name} must be finite"):
            robot.with_parameters({name: np.nan})


def test_parameters_of_bases_exist_where_they_have_a_meaning():
    assert "base.armature" not in robots.chain(2, base=legged.FixedBase()).parameters()
    builder = legged.RobotBuilder("two", legged.Link("trunk", legged.sphere_inertia(1.0, 0.1)))
    builder.add(
        legged.Revolute("base", "y", physics=legged.JointPhysics(armature=0.3)),
        legged.Link("arm", legged.sphere_inertia(1.0, 0.1, (0.0, 0.0, 0.2))),
        to="trunk",
    )
    robot = builder.build()
    assert robot.parameters()["base.armature"] == 0.3  # of the joint, which has the name
    assert robot.with_parameters({"base.armature": 0.5}).base == robot.base


@pytest.mark.parametrize("base", [BASE, JOINTLIKE[0]], ids=str)
def test_groups_move_as_their_robots_with_armature_and_damping_of_the_base(base):
    alone, q, v, _, tau = case(2, base)
    group = legged.combine({"left": alone, "right": alone})
    values = {"left.armature": 1.3, "left.damping": 0.2}
    changed, member = group.with_parameters(values), group.with_parameters(values).member("left")
    assert member.robot.base == replace(base, armature=1.3, damping=0.2)
    assert changed.member("right").robot.base == base
    x, w = changed.join_states({"left": q, "right": q}, {"left": v, "right": v})
    forces = np.concatenate([m.forces(q, tau) for m in changed.members])
    vdot = legged.forward_dynamics(changed, x, w, forces)[member.v]
    own = legged.forward_dynamics(member.robot, q, v, tau)
    assert apart(vdot[base.nv :], own[base.nv :]) < 1e-9


@pytest.mark.parametrize("cls", [legged.PlanarBase, legged.EulerBase])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["armature", "damping"])
def test_wrong_numbers_of_other_bases_are_refused(cls, name, value):
    with pytest.raises(LeggedError, match=name):
        cls(**{name: value})


@pytest.mark.parametrize("base", JOINTLIKE, ids=str)
def test_descriptions_and_files_keep_bases_of_joints(base, tmp_path):
    robot = case(2, base)[0]
    assert legged.Robot.from_description(robot.describe()).base == base
    assert legged.load(legged.save_mjcf(robot, tmp_path / "robot.xml")).base == base
    assert legged.load(legged.save_urdf(robot, tmp_path / "robot.urdf")).base == base


def test_rollouts_vary_the_damping_of_the_base():
    """v(t) = v exp(-b t / (m + a)) for a body that slides without gravity, to the integrator's error."""
    body = legged.Link("body", legged.sphere_inertia(2.0, 0.3))
    sliding = legged.RobotBuilder("sliding", body, base=legged.PlanarBase(armature=0.5), gravity=(0, 0, 0)).build()
    v, b = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.5, 2.0])
    runs = legged.rollout(sliding, until=0.5, v=v, vary={"robot.base.damping": b}, integrator=legged.RungeKutta4(1e-3))
    assert runs.v[:, -1, 1] == pytest.approx(np.exp(-0.5 * b / 2.5), abs=1e-9)
