"""Workspace dynamics of a trunk over standing feet: the big base and the exact recursion against dense equations."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.standing import base_acceleration, held_acceleration, standing_cases

import legged
import robots
from controllers import WorkspaceBalance
from robots.bipeds import crouch

CASES = standing_cases()
SIX_WAYS = [name for name in CASES if name != "planar biped"]
ROUNDING = 1e-16


def started(name, **settings):
    """Return (law, robot, q, v), free joints without torques."""
    robot, q, v = CASES[name]
    law = WorkspaceBalance(others=lambda t, q, v: np.zeros(robot.nj), **settings)
    return law.start(robot, None, q, v)[0], robot, q, v


def exact_dynamics(law, robot, q, v):
    """Return (P, z) from the dense equations with fixed feet, for six unit wrenches on the trunk and for none."""
    feet, P_0 = law.feet, robot.base.motion_matrix(q[: robot.base.nq])

    def accelerated(wrench):
        tau = np.concatenate([P_0.T @ wrench, np.zeros(robot.nj)])
        return base_acceleration(robot, q, v, held_acceleration(robot, feet, q, v, tau))

    rest = accelerated(np.zeros(6))
    P = np.linalg.inv(np.array([accelerated(unit) - rest for unit in np.eye(6)]).T)
    return P, -P @ rest


def missed(plan, P, z):
    return np.abs(plan.P - P).max() / np.abs(P).max(), np.abs(plan.z - z).max() / np.abs(z).max()


@pytest.mark.parametrize("name", SIX_WAYS)
def test_the_big_base_approaches_the_exact_workspace_dynamics_in_first_order(name):
    law, robot, q, v = started(name)
    P, z = exact_dynamics(law, robot, q, v)
    sizes, errors = 10.0 ** np.arange(2, 9), []
    for size in sizes:
        errors.append(missed(replace(law, big_base=size).plan(0.0, q, v), P, z))
    for error in np.array(errors).T:
        # From where the error is small to where rounding, c times that of a base of one trunk, is not small beside it.
        small, sharp = error[:-1] < 0.01, error[1:] > 1000 * ROUNDING * sizes[1:]
        orders = np.log10(error[:-1] / error[1:])[small & sharp]
        assert len(orders) >= 2
        assert orders == pytest.approx(1.0, abs=0.05)
        assert error[-1] < 2 * error[3] * sizes[3] / sizes[-1] + 300 * ROUNDING * sizes[-1]


@pytest.mark.parametrize("name", SIX_WAYS)
def test_exact_feet_give_the_workspace_dynamics_of_the_dense_equations(name):
    law, robot, q, v = started(name, exact=True)
    plan = law.plan(0.0, q, v)
    assert max(missed(plan, *exact_dynamics(law, robot, q, v))) < 1e-9  # the compliance of a foot and condition numbers


@pytest.mark.parametrize("name", CASES)
def test_the_trunk_of_a_robot_with_held_feet_accelerates_as_wanted(name):
    """With its own torques alone, free joints under the servo; all six algorithms together."""
    robot, q, v = CASES[name]
    law = WorkspaceBalance(exact=True, kp=30.0, kv=5.0)
    law, _ = law.start(robot, None, *standstill(robot, q))
    plan = law.plan(0.0, q, v)
    vdot = held_acceleration(robot, law.feet, q, v, plan.tau)
    wanted = plan.acceleration
    assert np.abs(base_acceleration(robot, q, v, vdot) - wanted).max() < 1e-7 * max(np.abs(wanted).max(), 10.0)
    assert not plan.tau[: robot.base.nv].any()


def standstill(robot, q):
    return legged.integrate(robot, q, np.full(robot.nv, 0.03)), np.zeros(robot.nv)


def test_free_joints_come_back_to_their_posture_while_their_parents_stand():
    """The elbow of the humanoid, whose shoulder and chest are much heavier: edd + k_d ed + k_p e = 0."""
    robot, q, _ = CASES["humanoid"]
    still = np.zeros(robot.nv)
    law, _ = WorkspaceBalance(exact=True, posture=(60.0, 9.0)).start(robot, None, q, still)
    wrist = robot.joint("left_wrist")
    moved = q.copy()
    moved[wrist.q][2] += 0.2
    tau = law.plan(0.0, moved, still).tau
    vdot = held_acceleration(robot, law.feet, moved, still, tau)
    assert vdot[wrist.v][2] == pytest.approx(-60.0 * 0.2, rel=0.01)
    turning = still.copy()
    turning[wrist.v.start + 2] = 0.7
    tau = law.plan(0.0, q, turning).tau
    vdot = held_acceleration(robot, law.feet, q, turning, tau)
    assert vdot[wrist.v][2] == pytest.approx(-9.0 * 0.7, rel=0.01)


def test_the_limit_of_a_heavy_base_is_what_the_paper_uses():
    """A base of 10^6 trunk masses has an error of 4e-8, far below the error of a model of a person."""
    robot = robots.spatial_biped()
    q, v = crouch(robot)
    approximate, exact = (
        WorkspaceBalance(position=(0.01, 0, 1.14)),
        WorkspaceBalance(position=(0.01, 0, 1.14), exact=True),
    )
    plans = []
    for law in (approximate, exact):
        plans.append(law.start(robot, None, q, v)[0].plan(0.0, q, v))
    assert plans[0].tau == pytest.approx(plans[1].tau, abs=1e-4)  # [N m] of 200
    assert 0.0 < np.abs(plans[0].P - plans[1].P).max() < 1e-6 * np.abs(plans[1].P).max()
