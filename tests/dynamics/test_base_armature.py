"""Armature and damping of a base act in every algorithm: a floating one has those of a free joint of MuJoCo.

Those of the other bases are diagonal matrices in their coordinates. MuJoCo itself is the judge in
tests/files/test_mjcf.py and below for the other bases; the other judges are closed forms, the laws of mechanics, and
the agreement of all algorithms. Errors are relative to the size of the terms; 1e-11 is the project's promise.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from oracles.cases import accelerations_apart
from oracles.differences import rate
from oracles.rebuild import rebuild

import legged
import robots
from controllers.balance.workspace.dynamics import inward_pass, outward_pass
from legged import denoc, loops
from legged.algorithms import (
    articulated,
    centroidal,
    composite,
    derivatives,
    divide_and_conquer,
    global_form,
    newton_euler,
    operational,
)
from legged.algorithms.operators import SpatialOperators
from legged.algorithms.operators import dynamics as operators
from legged.algorithms.sparse import constraint_force, sparsity, system
from legged.contact.impulses.delassus import _port_mobility
from legged.dynamics.forward import accelerations, velocity_jump
from legged.dynamics.kinematics import motion
from legged.errors import DefinitionError, LeggedError
from legged.ground import realistic_ground

EXACT = 1e-11
SEEDS = range(8)
BASE = legged.FloatingBase(armature=0.7, damping=0.4)


def case(seed: int, base=BASE, **options):
    """Return a random robot on a floating base and its state; every second robot has joint physics."""
    tree = legged.random_tree(seed, 1 + seed, bases=("floating",), physics=seed % 2 == 1, shuffled=True, **options)
    robot, rng = rebuild(tree, base=base), np.random.default_rng(seed)
    return robot, legged.random_configuration(robot, rng), *rng.normal(size=(3, robot.nv))


JOINTLIKE = [legged.PlanarBase(0.7, 0.4), legged.EulerBase("xyz", 0.7, 0.4), legged.EulerBase("zyx", armature=0.7)]
"""Bases whose velocity is the rate of their coordinates."""


def apart(ours, theirs) -> float:
    return float(np.abs(ours - theirs).max(initial=0.0) / np.abs(theirs).max(initial=1e-300))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_base_gains_its_armature_in_world_axes_and_its_damping(seed):
    """M + a 1 and [a omega dot; R^T a (d/dt)(R v)] + b v, by hand from the robot without both; no other row changes."""
    robot, q, v, vdot, _ = case(seed)
    bare, a, b = case(seed, legged.FloatingBase())[0], BASE.armature, BASE.damping
    more = legged.inertia_matrix(robot, q) - legged.inertia_matrix(bare, q)
    expected = np.zeros((robot.nv, robot.nv))
    expected[:6, :6] = a * np.eye(6)
    assert np.abs(more - expected).max() < EXACT * np.abs(legged.inertia_matrix(robot, q)).max()
    force = np.zeros(robot.nv)
    force[:6] = a * vdot[:6] + b * v[:6]
    force[3:6] += a * np.cross(v[:3], v[3:6])
    forces = legged.inverse_dynamics(robot, q, v, vdot)
    assert np.abs(forces - legged.inverse_dynamics(bare, q, v, vdot) - force).max() < EXACT * np.abs(forces).max()
    for function in (legged.center_of_mass, legged.potential_energy):
        assert np.array_equal(function(robot, q), function(bare, q))
    assert np.array_equal(legged.momentum(robot, q, v), legged.momentum(bare, q, v))
    energy = legged.kinetic_energy(bare, q, v) + 0.5 * a * v[:6] @ v[:6]
    assert legged.kinetic_energy(robot, q, v) == pytest.approx(energy, rel=1e-14)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_recursions_equal_the_dense_theory_and_are_inverse_to_each_other(seed, coupled):
    tree = legged.random_tree(seed, 3 + seed, bases=("floating",), physics=seed % 2 == 0, coupled=coupled)
    robot, rng = tree.edit().change_robot(base=BASE).build(), np.random.default_rng(seed)
    q, (v, vdot) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    wrenches = {robot.links[-1].name: rng.normal(size=6)}
    inertia, h = denoc.generalized_inertia_matrix(robot, q), denoc.bias_forces(robot, q, v, wrenches)
    assert apart(legged.inertia_matrix(robot, q), inertia) < EXACT
    assert apart(denoc.generalized_inertia_closed_form(robot, q), inertia) < EXACT
    assert 0.5 * v @ inertia @ v == pytest.approx(legged.kinetic_energy(robot, q, v), rel=1e-12)
    tau = legged.inverse_dynamics(robot, q, v, vdot, wrenches)
    allowed = EXACT * np.abs([*inertia @ vdot, *h, *tau]).max()
    assert np.abs(tau - inertia @ vdot - h).max() < allowed
    found = legged.forward_dynamics(robot, q, v, tau, wrenches)
    assert np.abs(legged.inverse_dynamics(robot, q, v, found, wrenches) - tau).max() < 10 * allowed
    base, torques = legged.floating_inverse_dynamics(robot, q, v, vdot[6:], wrenches)
    forces = legged.inverse_dynamics(robot, q, v, np.concatenate([base, vdot[6:]]), wrenches)
    assert np.abs(forces - np.concatenate([np.zeros(6), torques])).max() < 10 * allowed
    mixed = legged.hybrid_dynamics(robot, q, v, vdot, tau, wrenches, prescribed=["base"])
    assert np.abs(mixed.vdot - vdot).max() < 1e-7 * np.abs(vdot).max()  # conditioning of the inertia matrix
    assert np.abs(mixed.tau - tau).max() < 10 * allowed


@pytest.mark.parametrize("form", ["skew", "paper"])
def test_the_matrix_of_convective_inertia_includes_the_armature(form):
    robot, q, v, *_ = case(4, gravity=(0.0, 0.0, 0.0))
    bare = rebuild(robot, base=replace(BASE, damping=0.0))
    C = denoc.convective_inertia_matrix(bare, q, v, form)
    assert apart(C @ v, denoc.bias_forces(bare, q, v)) < EXACT
    if form == "skew":
        difference = rate(bare, lambda x, _: denoc.generalized_inertia_matrix(bare, x), q, v) - 2.0 * C
        assert np.abs(difference + difference.T).max() < 1e-6 * np.abs(C).max()  # of finite differences


FORWARD = {
    "articulated bodies": articulated.forward_dynamics,
    "in absolute coordinates": partial(articulated.forward_dynamics, coordinates="absolute"),
    "L^T D L": sparsity.forward_dynamics,
    "whole robot": global_form.forward_dynamics,
    "dense theory": denoc.forward_dynamics,
    "operators": operators.forward_dynamics,
    **{f"division, {v}": partial(divide_and_conquer.forward_dynamics, version=v) for v in divide_and_conquer.VERSIONS},
}
WITHOUT_ROTORS = ("operators", *(name for name in FORWARD if name.startswith("division")))


@pytest.mark.parametrize("name", FORWARD)
@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_agree(seed, name):
    robot, q, v, _, tau = case(seed)
    if name in WITHOUT_ROTORS and seed % 2:
        robot = rebuild(legged.random_tree(seed, 1 + seed, bases=("floating",)), base=BASE)
        rng = np.random.default_rng(seed)
        q, (v, tau) = legged.random_configuration(robot, rng), rng.normal(size=(2, robot.nv))
    vdot = FORWARD[name](robot, q, v, tau)
    scale = np.abs([*tau, *legged.bias_forces(robot, q, v)]).max()
    assert np.abs(legged.inverse_dynamics(robot, q, v, vdot) - tau).max() < 1e-9 * scale
    assert accelerations_apart(robot, q, v, tau, None, vdot) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_dynamics_and_inertia_matrices_agree(seed):
    robot, q, v, vdot, _ = case(seed)
    forces, M = legged.inverse_dynamics(robot, q, v, vdot), legged.inertia_matrix(robot, q)
    for coordinates in ("link", "absolute"):
        found = newton_euler.inverse_dynamics(robot, q, v, vdot, coordinates=coordinates)
        assert apart(found, forces) < EXACT
        assert apart(composite.inertia_matrix(robot, q, coordinates=coordinates), M) < EXACT
    for method in (composite.inertia_matrix_by_inverse_dynamics, composite.inertia_matrix_by_unit_accelerations):
        assert apart(method(robot, q), M) < EXACT
    assert apart(global_form.global_form(robot, q).mass, M) < EXACT
    U, D = denoc.udu(robot, q)
    assert apart(U @ D @ U.T, M) < EXACT
    assert apart(derivatives.inverse_inertia(robot, q) @ M, np.eye(robot.nv)) < 1e-8  # conditioning
    plain = robot if seed % 2 == 0 else rebuild(legged.random_tree(seed, bases=("floating",)), base=BASE)
    x = legged.random_configuration(plain, np.random.default_rng(seed))
    S = SpatialOperators(plain, x)
    assert apart(S.mass.matrix(), legged.inertia_matrix(plain, x)) < EXACT
    assert apart(denoc.module_inverse(robot, q).matrix @ M, np.eye(robot.nv)) < 1e-8
    A = centroidal.momentum_matrix(robot, q)
    assert apart(A @ v, legged.momentum(robot, q, v)) < EXACT


@pytest.mark.parametrize("seed", SEEDS)
def test_derivatives_are_those_of_the_dynamics(seed):
    robot, q, v, vdot, tau = case(seed)
    assert max(derivatives.check(robot, q, v, vdot, tau)) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_convective_forces_of_two_velocities_are_skew_symmetric(seed):
    """C(q, v) v are the products of velocities, and w^T (Idot - 2 C) w = 0 to the error of finite differences."""
    robot, q, v, w, _ = case(seed)
    products = 0.5 * (legged.bias_forces(robot, q, v) + legged.bias_forces(robot, q, -v))
    products = products - legged.bias_forces(robot, q, 0.0 * v)
    assert apart(derivatives.convective_forces(robot, q, v, v), products) < 1e-9
    reference = derivatives.reference_inverse_dynamics(robot, q, v, v, w)
    assert apart(reference, legged.inverse_dynamics(robot, q, v, w)) < 1e-9
    inertia_rate = rate(robot, lambda x, _: legged.inertia_matrix(robot, x), q, v)
    forces = derivatives.convective_forces(robot, q, v, w)
    assert abs(w @ inertia_rate @ w - 2.0 * w @ forces) < 1e-6 * np.abs(w * forces).sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_inverse_operational_inertias_agree(seed):
    tree = legged.random_tree(seed, 4 + seed, bases=("floating",))
    robot, rng = rebuild(tree, base=BASE), np.random.default_rng(seed)
    q = legged.random_configuration(robot, rng)
    points = [(int(link), rng.normal(size=3)) for link in rng.choice(len(robot.links), size=3)]
    J = np.concatenate([legged.point_jacobian(robot, q, *point) for point in points])
    expected = J @ np.linalg.solve(legged.inertia_matrix(robot, q), J.T)
    methods = operational.by_propagators, operational.by_factors, operational.by_operators, operational.by_division
    for method in methods:
        assert apart(method(robot, q, points), expected) < 1e-8  # conditioning
    chain = rebuild(robots.chain(5, twist=0.7, base=legged.FloatingBase()), base=BASE)
    x, end = legged.random_configuration(chain, rng), (chain.links[-1].name, rng.normal(size=3))
    by_halves = operational.by_halves(chain, x, *end)
    assert apart(by_halves, operational.by_propagators(chain, x, [end])) < EXACT
    extra = np.abs(rng.normal(size=chain.nv))
    J = denoc_jacobian(chain, x, end[0])
    ((block,),) = _port_mobility(chain, x, extra, [(len(chain.bodies) - 1, np.eye(6))])
    inverse = np.linalg.inv(legged.inertia_matrix(chain, x) + np.diag(extra))
    assert apart(block, J @ inverse @ J.T) < EXACT
    w = rng.normal(size=6)
    assert apart(velocity_jump(chain, x, {len(chain.bodies) - 1: w}, extra), inverse @ J.T @ w) < EXACT


def denoc_jacobian(robot, q, link):
    """Return the Jacobian of the twist of the body of a link, (6, nv), body axes."""
    body = robot.link(link).body
    columns = []
    for e in np.eye(robot.nv):
        columns.append(motion(robot, q, e).twist[body])
    return np.array(columns).T


def test_forms_without_joint_accelerations_refuse_the_armature_and_take_the_damping():
    robot, q, v, _, tau = case(2)
    for form in (system.forward_dynamics, constraint_force.forward_dynamics):
        with pytest.raises(DefinitionError, match="does not support armature"):
            form(robot, q, v, tau)
        damped = rebuild(robot, base=legged.FloatingBase(damping=0.4))
        vdot = form(damped, q, v, tau)
        assert apart(vdot, legged.forward_dynamics(damped, q, v, tau)) < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_the_workspace_dynamics_of_the_base_are_its_forward_dynamics(seed):
    """A wrench F on the base without joint torques: F = P td + z with td of forward dynamics."""
    robot, q, v, _, _ = case(2 * seed, joints=("revolute",))
    out = outward_pass(robot, q, v)
    z = list(out.z)
    found = inward_pass(robot, out, [b.regrouped.M for b in robot.bodies], z, lambda body, D, hold: np.zeros(body.nv))
    F = np.random.default_rng(seed).normal(size=6)
    vdot = legged.forward_dynamics(robot, q, v, np.concatenate([F, np.zeros(robot.nv - 6)]))
    td = vdot[:6] + np.concatenate([np.zeros(3), np.cross(v[:3], v[3:6])])
    assert np.abs(found.P @ td + found.z - F).max() < 1e-9 * np.abs([*F, *(found.P @ td)]).max()


def test_loops_on_the_base():
    """The direct solution satisfies the equations of the tree; subsystems, and division, give the same."""
    closed = robots.five_bar_quadruped(base=BASE)
    robot, rng = closed.robot, np.random.default_rng(0)
    start = np.array([1.0, 0, 0, 0, 0, 0, 0.5, *[0.4, -0.9, -0.4, 0.9] * 4])
    q = loops.assemble(closed, legged.integrate(robot, start, 0.2 * rng.normal(size=robot.nv)))
    v, tau = loops.consistent_velocity(closed, q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    direct = loops.solve(closed, q, v, tau, method="direct")
    residual = (
        legged.inverse_dynamics(robot, q, v, direct.vdot) - tau - loops.jacobian(closed, q).T @ direct.multipliers
    )
    assert np.abs(residual).max() < 1e-9 * np.abs(legged.bias_forces(robot, q, v)).max()
    assert apart(loops.solve(closed, q, v, tau, method="subsystems").vdot, direct.vdot) < 1e-9
    assert apart(loops.divide_and_conquer.forward_dynamics(closed, q, v, tau), direct.vdot) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_laws_and_compiled_functions(seed):
    robot, q, v, _, tau = case(seed)
    assert legged.verify(robot).passed
    kernel = legged.compile(legged.forward_dynamics, robot)
    assert apart(kernel(q, v, tau), legged.forward_dynamics(robot, q, v, tau)) < 1e-9
    extra = np.abs(tau)
    vdot = accelerations(robot, q, v, tau, None, extra)
    residual = legged.inverse_dynamics(robot, q, v, vdot) + extra * vdot - tau
    assert np.abs(residual).max() < 1e-9 * np.abs([*tau, *legged.bias_forces(robot, q, v)]).max()


def test_a_ball_in_flight_slows_down_as_the_closed_form_says():
    """(m + a) xdd = -b xd + m g and (J + a) omega dot = -b omega for a ball, whose axes turn meanwhile."""
    m, J, a, b = 2.0, 0.3, BASE.armature, BASE.damping
    ball = legged.RobotBuilder(
        "ball", legged.Link("ball", legged.Inertia(m, (0, 0, 0), J * np.eye(3))), base=BASE
    ).build()
    q, v, t = ball.neutral(), np.array([1.0, -2.0, 3.0, 0.5, 0.7, -0.3]), 0.8
    run = legged.simulate(ball, until=t, q=q, v=v, integrator=legged.RungeKutta4(1e-3))
    R, o = ball.base.pose(run.q[-1])
    k = b / (m + a)
    final = m * ball.gravity / b
    assert R @ run.v[-1, 3:] == pytest.approx(final + (v[3:] - final) * np.exp(-k * t), abs=1e-6)  # of the integrator
    assert o == pytest.approx(final * t + (v[3:] - final) * (1.0 - np.exp(-k * t)) / k, abs=1e-6)
    assert run.v[-1, :3] == pytest.approx(v[:3] * np.exp(-b / (J + a) * t), abs=1e-6)


GROUNDS = {
    "flight": None,
    "soft": realistic_ground(robots.spatial_quadruped()),
    "rigid": legged.Rigid(sweeps=40, iterations=80),
}


@pytest.mark.parametrize("ground", GROUNDS.values(), ids=GROUNDS)
def test_the_energy_of_a_tumbling_robot_is_balanced(ground):
    """Energy minus the work of damping and of the ground, to the integrator's error.

    On rigid ground it is 2e-3, with and without armature.
    """
    robot = robots.spatial_quadruped().edit().change_robot(base=BASE).build()
    q, v = robot.neutral(), np.random.default_rng(1).normal(size=robot.nv)
    q[6] = 1.0
    run = legged.simulate(robot, until=0.4, q=q, v=v, ground=ground, fall=False)
    start = legged.kinetic_energy(robot, q, v)
    assert run.energy_drift < {"NoneType": 1e-6, "Ground": 1e-4, "Rigid": 1e-2}[type(ground).__name__] * start
    assert run.energy.joint_work[-1] < -0.01 * start


def test_descriptions_and_graphs_keep_the_base():
    robot = case(3)[0]
    assert robot.base == BASE
    for again in (legged.Robot.from_graph(robot.graph), legged.Robot.from_description(robot.describe())):
        assert again.base == BASE
    assert (
        legged.Robot.from_description({**robot.describe(), "base": {"kind": "floating"}}).base == legged.FloatingBase()
    )


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ["armature", "damping"])
def test_wrong_numbers_are_refused(name, value):
    with pytest.raises(LeggedError, match=name):
        legged.FloatingBase(**{name: value})


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
