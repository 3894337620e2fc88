"""Armature and damping of a floating base act in every algorithm as a free joint of MuJoCo has them.

MuJoCo itself is the judge in tests/files/test_mjcf.py; here the judges are closed forms, the laws of mechanics, and
the agreement of all algorithms. Errors are relative to the size of the terms; 1e-11 is the project's promise. Other
bases are tested in tests/robot/construction/test_bases.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from oracles.cases import FORWARD, WITHOUT_ROTORS, accelerations_apart
from oracles.differences import rate
from oracles.rebuild import rebuild

import legged
import robots
from controllers.balance.workspace.dynamics import inward_pass, outward_pass
from legged import denoc, loops
from legged.algorithms import (
    centroidal,
    composite,
    derivatives,
    global_form,
    newton_euler,
    operational,
)
from legged.algorithms.operators import SpatialOperators
from legged.algorithms.sparse import constraint_force, system
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
    acceleration = legged.forward_dynamics(robot, q, v, tau, wrenches)
    assert np.abs(legged.inverse_dynamics(robot, q, v, acceleration, wrenches) - tau).max() < 10 * allowed
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
        torques = newton_euler.inverse_dynamics(robot, q, v, vdot, coordinates=coordinates)
        assert apart(torques, forces) < EXACT
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
    dynamics = inward_pass(
        robot, out, [b.regrouped.M for b in robot.bodies], z, lambda body, D, hold: np.zeros(body.nv)
    )
    F = np.random.default_rng(seed).normal(size=6)
    vdot = legged.forward_dynamics(robot, q, v, np.concatenate([F, np.zeros(robot.nv - 6)]))
    td = vdot[:6] + np.concatenate([np.zeros(3), np.cross(v[:3], v[3:6])])
    assert np.abs(dynamics.P @ td + dynamics.z - F).max() < 1e-9 * np.abs([*F, *(dynamics.P @ td)]).max()


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
