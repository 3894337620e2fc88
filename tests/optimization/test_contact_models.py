"""Equations of motion with given contacts: against other algorithms, laws of mechanics and finite differences."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc
from legged.optimization.equations.dynamics import ContactModel
from legged.optimization.equations.integration import move, time_step
from legged.optimization.equations.nodes import NodeModel
from legged.optimization.model import LinearQuadraticModel

DELTA = 1e-6


def hopper() -> legged.Robot:
    """Return a floating trunk with a leg of two hinges and two contact points on its foot."""
    builder = legged.RobotBuilder("hopper", legged.Link("trunk", legged.box_inertia(3.0, (0.3, 0.2, 0.1))))
    feet = {"heel": (-0.05, 0.0, -0.2), "toe": (0.05, 0.02, -0.2)}
    shank = legged.Link("shank", legged.rod_inertia(0.3, (0, 0, 0), (0, 0, -0.2)), contacts=feet)
    builder.add(
        legged.Revolute("hip", "x"), legged.Link("thigh", legged.rod_inertia(0.5, (0, 0, 0), (0, 0, -0.2))), to="trunk"
    )
    builder.add(legged.Revolute("knee", "y"), shank, to="thigh", at=(0, 0, -0.2))
    return builder.build()


@pytest.fixture(scope="module")
def robot() -> legged.Robot:
    return hopper()


def state(robot, seed):
    rng = np.random.default_rng(seed)
    return legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng.normal(size=robot.nv - robot.base.nv)


CONTACTS = (oc.Contact("heel"), oc.Contact("toe"))


def test_motion_is_that_of_contact_dynamics(robot):
    q, v, u = state(robot, 0)
    J = np.concatenate([legged.frame_jacobian(robot, q, name)[3:] for name in ("heel", "toe")])
    v = v - np.linalg.pinv(J) @ (J @ v)  # two points of one link: their constraints contradict each other otherwise
    model = ContactModel(robot, CONTACTS, (6, 7))
    motion = model.solve(q, v, u, np.ones(2))
    vdot, forces = legged.contact_dynamics(robot, q, v, np.concatenate([np.zeros(6), u]), ["heel", "toe"])
    np.testing.assert_allclose(motion.a, vdot, rtol=1e-9, atol=1e-9)
    total = sum(model.forces(q, motion.f).values())  # the force along the line between the points is not unique
    np.testing.assert_allclose(total, forces.sum(axis=0), rtol=1e-8, atol=1e-8)


def test_an_inactive_contact_has_no_force_and_no_effect(robot):
    q, v, u = state(robot, 1)
    motion = ContactModel(robot, CONTACTS, (6, 7)).solve(q, v, u, np.array([1.0, 0.0]))
    alone = ContactModel(robot, CONTACTS[:1], (6, 7)).solve(q, v, u, np.ones(1))
    np.testing.assert_allclose(motion.a, alone.a, rtol=1e-12, atol=1e-12)
    assert (motion.f[3:] == 0.0).all()


def test_an_impact_stops_the_contacts_and_loses_energy_and_its_impulses_are_the_change_of_momentum(robot):
    q, v, u = state(robot, 2)
    model = ContactModel(robot, CONTACTS, (6, 7), impact=True)
    motion = model.solve(q, v, u, np.ones(2))
    after = v + motion.a
    for name in ("heel", "toe"):
        np.testing.assert_allclose(legged.frame_twist(robot, q, after, name)[3:], 0.0, atol=1e-12)
    assert legged.kinetic_energy(robot, q, after) < legged.kinetic_energy(robot, q, v)
    change = legged.momentum(robot, q, after)[3:] - legged.momentum(robot, q, v)[3:]
    np.testing.assert_allclose(sum(model.forces(q, motion.f).values()), change, atol=1e-12)


def test_a_fourth_point_of_a_sole_and_a_stretched_leg_change_no_motion(robot):
    q, v, u = state(robot, 3)
    sole = (*CONTACTS, oc.Contact(legged.Frame("toe", (0, 0.1, 0)), name="side"))
    rigid = ContactModel(robot, sole, (6, 7)).solve(q, v, u, np.ones(3))
    extra = (*sole, oc.Contact(legged.Frame("heel", (0, 0.1, 0.02)), name="back"))
    redundant = ContactModel(robot, extra, (6, 7)).solve(q, v, u, np.ones(4))
    np.testing.assert_allclose(redundant.a, rigid.a, atol=1e-6)  # pivots of 1e-12 count as zero: errors of their root
    assert np.isfinite(redundant.f).all()


def linear_dynamics(robot, nodes, q, v, u):
    """Return the linear dynamics and gradient of the first node, and its compiled function on floats."""
    problem = oc.Problem(robot, nodes, q=q, v=v, actuated=None, velocity_gain=3.0, restitution=0.2)
    at = LinearQuadraticModel(problem, np.ones(1))
    at.u[:, 0] = u
    at.evaluate_motion()
    at.q[:, 1], at.v[:, 1] = at._next_q[0], at._next_v[0]
    at.evaluate_model()
    return problem, at


def scaled(robot, at, weights):
    return weights * np.concatenate([at.q, at.v, at.u, *at.forces.values()])


@pytest.mark.parametrize("kind", ["stage", "impact", "loops"])
def test_derivatives_of_a_node_are_finite_differences(robot, kind):
    if kind == "loops":
        robot = robots.five_bar_leg()
        tree, contacts = robot.robot, [oc.Contact(robot.robot.contacts[0].name)]
    else:
        tree, contacts = robot, [CONTACTS[1], oc.Contact(legged.Frame("thigh", (0.1, 0.0, 0.0)), name="knee")]
    q, v, u = state(tree, 4)
    if kind == "loops":
        q = legged.loops.assemble(robot, q)
        v = v - np.linalg.pinv(legged.loops.jacobian(robot, q)) @ (legged.loops.jacobian(robot, q) @ v)
    rows = sum(contact.rows for contact in contacts)
    size = tree.nq + tree.nv + len(u) + rows
    cost = oc.Cost(scaled, 1.0, weights=np.random.default_rng(5).normal(size=size))
    node = oc.Impact(contacts, [cost]) if kind == "impact" else oc.Stage(0.01, contacts, [cost])
    problem, at = linear_dynamics(robot, [node], q, v, u)
    group = problem.groups[1 if kind == "impact" else 0]
    model: NodeModel = problem.models[1 if kind == "impact" else 0]
    mask, weights = group.mask(problem)[0], cost.parameters["weights"]
    u = u * (kind != "impact")

    def evaluate(z):
        nv = tree.nv
        q1, v1, u1 = legged.integrate(tree, q, z[:nv]), v + z[nv : 2 * nv], u + z[2 * nv :]
        a, f = model.equations.solve(q1, v1, u1, mask)
        after = (q1, v1 + a) if kind == "impact" else time_step(tree, q1, v1, a, 0.01)
        r = scaled(tree, model.point(q1, v1, u1, f, 0.0), weights)
        x = np.concatenate([legged.difference(tree, at.q[0, 1], after[0]), after[1] - at.v[0, 1]])
        return x, (1.0 if kind == "impact" else 0.01) * 0.5 * r @ r

    n = 2 * tree.nv + len(u) * (kind != "impact")
    F, gradient = np.zeros((2 * tree.nv, n)), np.zeros(n)
    for k, direction in enumerate(np.eye(2 * tree.nv + len(u))[:n]):
        (x1, c1), (x0, c0) = evaluate(DELTA * direction), evaluate(-DELTA * direction)
        F[:, k], gradient[k] = (x1 - x0) / (2 * DELTA), (c1 - c0) / (2 * DELTA)
    scale = 1.0 + np.abs(F).max()
    np.testing.assert_allclose(at.F[0, 0][:, :n], F, atol=1e-8 * scale)  # rounding 1e-16 / 1e-6, and third derivatives
    np.testing.assert_allclose(at.gradient[0, 0][:n], gradient, atol=1e-7 * (1.0 + np.abs(gradient).max()))


def test_a_displacement_at_constant_twist_is_the_exponential_map(robot):
    q, _, _ = state(robot, 6)
    dq = np.random.default_rng(7).normal(size=robot.nv)
    steps = q
    for _ in range(1000):
        steps = legged.integrate(robot, steps, dq / 1000)
    np.testing.assert_allclose(legged.difference(robot, move(robot, q, dq), steps), 0.0, atol=1e-3)
    np.testing.assert_allclose(move(robot, q, 1e-9 * dq), legged.integrate(robot, q, 1e-9 * dq), atol=1e-17 + 1e-16)
