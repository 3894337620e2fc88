"""The O(n) recursions agree with the dense theory on 300 random robots, of which 60 are tested daily.

Differences of forces are relative to |I| |vdot| + |h|, the size of the terms of their sum. Rounding is near 1e-15 of it
for 40 links (largest difference seen: 4e-15); the project promises 1e-11.
"""

import numpy as np
import pytest
from oracles.cases import BATCHES, CONDITION, DAILY_BATCHES, batch_name, dense, forward, random_case, size_of_forces

import legged
from legged import denoc

PROMISED = 1e-11
every_shape = pytest.mark.parametrize("seeds", BATCHES, ids=batch_name)


def cases(seeds):
    for seed in seeds:
        yield random_case(seed), *dense(seed)


@every_shape
def test_recursive_inertia_matrix_equals_the_dense_one(seeds):
    for case, inertia, _ in cases(seeds):
        assert np.all(np.linalg.eigvalsh(inertia) > 0), case.label
        recursive = legged.inertia_matrix(case.robot, case.q)
        assert np.abs(recursive - inertia).max(initial=0) <= PROMISED * np.abs(inertia).max(initial=0), case.label


@every_shape
def test_recursive_inverse_dynamics_equals_the_dense_one(seeds):
    for case, inertia, h in cases(seeds):
        tau = legged.inverse_dynamics(case.robot, case.q, case.v, case.vdot, case.wrenches)
        allowed = PROMISED * size_of_forces(inertia, case.vdot, h)
        assert np.abs(tau - (inertia @ case.vdot + h)).max(initial=0) <= allowed, case.label
        bias = legged.bias_forces(case.robot, case.q, case.v, case.wrenches)
        assert np.abs(bias - h).max(initial=0) <= allowed, case.label


@every_shape
def test_recursive_forward_dynamics_solves_the_dense_equations(seeds):
    for seed, (case, inertia, h) in zip(seeds, cases(seeds), strict=True):
        vdot = forward(seed)
        allowed = PROMISED * size_of_forces(inertia, vdot, h)
        assert np.abs(inertia @ vdot + h - case.tau).max(initial=0) <= allowed, case.label
        if case.robot.nv and np.linalg.cond(inertia) < CONDITION:
            known = np.linalg.solve(inertia, case.tau - h)
            assert np.abs(vdot - known).max() <= 1e-9 * np.abs(known).max(), case.label


@every_shape
def test_inverse_after_forward_dynamics_returns_the_forces(seeds):
    for seed, (case, inertia, h) in zip(seeds, cases(seeds), strict=True):
        vdot = forward(seed)
        tau = legged.inverse_dynamics(case.robot, case.q, case.v, vdot, case.wrenches)
        assert np.abs(tau - case.tau).max(initial=0) <= PROMISED * size_of_forces(inertia, vdot, h), case.label


@every_shape
def test_recursive_floating_inverse_dynamics_equals_the_dense_one(seeds):
    for case, inertia, h in cases(seeds):
        n0 = case.robot.base.nv
        wanted = case.vdot[n0:]
        base, tau = legged.floating_inverse_dynamics(case.robot, case.q, case.v, wanted, case.wrenches)
        vdot = np.concatenate([base, wanted])
        forces = np.concatenate([np.zeros(n0), tau])
        allowed = PROMISED * size_of_forces(inertia, vdot, h)
        assert np.abs(inertia @ vdot + h - forces).max(initial=0) <= allowed, case.label


@pytest.mark.parametrize("seed", range(20))
def test_dense_and_recursive_functions_of_the_same_name_agree(seed):
    case = random_case(seed)
    robot, q, v, wrenches = case.robot, case.q, case.v, case.wrenches
    inertia, h = dense(seed)
    size = size_of_forces(inertia, case.vdot, h)
    tau = denoc.inverse_dynamics(robot, q, v, case.vdot, wrenches)
    assert tau == pytest.approx(legged.inverse_dynamics(robot, q, v, case.vdot, wrenches), abs=PROMISED * size)
    # the relative error of a solution with the GIM is its condition number times rounding
    lost = 1e-15 * np.linalg.cond(inertia)
    slow = denoc.forward_dynamics(robot, q, v, case.tau, wrenches)
    fast = legged.forward_dynamics(robot, q, v, case.tau, wrenches)
    assert np.abs(slow - fast).max() <= 10 * lost * np.abs(fast).max()
    wanted = case.vdot[robot.base.nv :]
    slow_base, slow_tau = denoc.floating_inverse_dynamics(robot, q, v, wanted, wrenches)
    fast_base, fast_tau = legged.floating_inverse_dynamics(robot, q, v, wanted, wrenches)
    assert np.abs(slow_base - fast_base).max(initial=0) <= 10 * lost * np.abs(fast_base).max(initial=0)
    assert np.abs(slow_tau - fast_tau).max(initial=0) <= PROMISED * size_of_forces(
        inertia, np.concatenate([fast_base, wanted]), h
    )


def test_random_cases_have_every_base_every_joint_and_branches_along_legs():
    robots = [random_case(seed).robot for seeds in DAILY_BATCHES for seed in seeds]
    assert {robot.base.kind for robot in robots} == {"fixed", "planar", "floating", "euler"}
    kinds = {edge["kind"] for robot in robots for _, _, edge in robot.graph.edges(data=True)}
    assert kinds == {"revolute", "prismatic", "universal", "spherical", "planar", "fixed"}
    assert any(body.kind == "ball" for robot in robots for body in robot.bodies)
    sizes = np.array([len(robot.links) - 1 for robot in robots])
    assert (np.histogram(sizes, bins=np.arange(1, 42, 5))[0] > 0).all()  # every size up to 40, by fives
    assert any(module.parent > 0 for robot in robots for module in robot.modules)
