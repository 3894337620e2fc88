"""Prescribed motions: hybrid dynamics against the dense equations, its limits, its cost, and a driven pendulum."""

from functools import partial

import numpy as np
import pytest
from oracles.cases import random_case, size_of_forces

import legged
from legged.errors import UnknownNameError
from legged.robot.construction.random_tree import ALL_JOINTS

EXACT = 1e-10  # relative to the size of the terms, at condition numbers of the inertia matrix up to 1e5


def case_and_names(seed):
    """Return a random case, the names of its prescribed joints, and which entries of v they have."""
    coupled = {"coupled": True} if seed % 3 == 2 else {}
    case = random_case(seed, links=9, joints=ALL_JOINTS, physics=seed % 2 == 1, **coupled)
    rng = np.random.default_rng(seed)
    names = [joint.name for joint in case.robot.joints if rng.uniform() < 0.5]
    given = np.zeros(case.robot.nv, dtype=bool)
    for name in names:
        given[case.robot.joint(name).v] = True
    if rng.uniform() < 0.5:
        names, given[: case.robot.base.nv] = [*names, "base"], True
    return case, names, given


@pytest.mark.parametrize("seed", range(18))
def test_hybrid_dynamics_solve_the_equations_of_motion_for_the_unknown_half(seed):
    """Against the dense inertia matrix; trees with joint physics and with coupled joints among them."""
    case, names, given = case_and_names(seed)
    robot, q, v = case.robot, case.q, case.v
    solution = legged.hybrid_dynamics(robot, q, v, case.vdot, case.tau, case.wrenches, prescribed=names)
    assert np.array_equal(solution.vdot[given], case.vdot[given])
    assert np.array_equal(solution.tau[~given], case.tau[~given])
    inertia, h = legged.inertia_matrix(robot, q), legged.bias_forces(robot, q, v, case.wrenches)
    allowed = EXACT * size_of_forces(inertia, solution.vdot, h)
    assert inertia @ solution.vdot + h == pytest.approx(solution.tau, abs=allowed)
    free = np.flatnonzero(~given)
    right = case.tau[free] - h[free] - inertia[np.ix_(free, np.flatnonzero(given))] @ case.vdot[given]
    dense = np.linalg.solve(inertia[np.ix_(free, free)], right)
    size = np.abs(solution.vdot).max(initial=1.0)
    assert solution.vdot[free] == pytest.approx(dense, abs=100 * EXACT * size)


def test_hybrid_dynamics_are_forward_dynamics_with_no_joint_prescribed_and_inverse_dynamics_with_all():
    case = random_case(5)
    robot, arguments = case.robot, (case.q, case.v, case.vdot, case.tau, case.wrenches)
    forward = legged.forward_dynamics(robot, case.q, case.v, case.tau, case.wrenches)
    assert legged.hybrid_dynamics(robot, *arguments).vdot == pytest.approx(forward, rel=1e-9)
    every = ["base", *(joint.name for joint in robot.joints)]
    inverse = legged.inverse_dynamics(robot, case.q, case.v, case.vdot, case.wrenches)
    assert legged.hybrid_dynamics(robot, *arguments, prescribed=every).tau == pytest.approx(inverse, rel=1e-9)
    with pytest.raises(UnknownNameError, match="joint named 'elbow'"):
        legged.hybrid_dynamics(robot, *arguments, prescribed=["elbow"])


def test_traced_hybrid_dynamics_equal_plain_ones_at_a_linear_cost():
    """Each of eight more links costs the same: half the joints of a chain have prescribed motions."""
    counts = []
    for links in (8, 16, 24):
        robot = legged.random_tree(3, links, joints=("revolute",), bases=("floating",), branching=0.0)
        names = tuple(joint.name for joint in robot.joints[::2])
        counts.append(legged.count(partial(legged.hybrid_dynamics, prescribed=names), robot).total)
    assert counts[2] - counts[1] == pytest.approx(counts[1] - counts[0], rel=0.02)  # frames differ by some zeros
    case = random_case(3, links=12, joints=("revolute", "ball"), bases=("floating",))
    law = partial(legged.hybrid_dynamics, prescribed=[joint.name for joint in case.robot.joints[::2]])
    arguments = case.q, case.v, case.vdot, case.tau
    for plain, traced in zip(law(case.robot, *arguments), legged.compile(law, case.robot)(*arguments), strict=True):
        assert traced == pytest.approx(plain, abs=1e-11 * np.abs(plain).max())


def test_a_pendulum_on_a_pivot_that_vibrates_stands_upright():
    """Kapitza: upright is stable for amplitude times frequency above sqrt(2 g l), and the slide follows its motion."""
    length, amplitude = 0.25, 0.01

    def largest_angle(omega):
        bob = legged.Link("bob", legged.point_mass(1.0, (0.0, 0.0, length)))
        builder = legged.RobotBuilder("pendulum", legged.Link("mount"), base=legged.FixedBase())
        builder.add(legged.Prismatic("slide", "z"), legged.Link("pivot", legged.point_mass(0.5)), to="mount")
        robot = builder.add(legged.Revolute("pin", "y"), bob, to="pivot").build()

        def drive(t, q, v, wrenches):
            vdot = np.array([-amplitude * omega**2 * np.cos(omega * t), 0.0])
            return legged.hybrid_dynamics(robot, q, v, vdot, 0.0 * v, wrenches, prescribed=("slide",)).tau

        run = legged.simulate(
            robot, drive, until=0.6, q=[amplitude, 0.1], v=[0.0, 0.0], integrator=legged.RungeKutta4(1e-4)
        )
        assert run.q[:, 0] == pytest.approx(amplitude * np.cos(omega * run.times), abs=1e-6)
        return np.abs(run.q[:, 1]).max()

    threshold = np.sqrt(2 * 9.81 * length) / amplitude
    assert largest_angle(1.5 * threshold) < 0.12
    assert largest_angle(0.7 * threshold) > 0.3
