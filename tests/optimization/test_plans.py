"""From a plan to a robot: a planned hop obeys mechanics, and is executed in simulation by its feedback."""

import numpy as np
import pytest

import legged
import robots
from legged import optimization as oc

REST = np.array([0.0, 0.0, 0.6, 0.0, 0.0])  # phi [rad], x and z [m], hip [rad], slide [m]


def height(robot, at, target):
    return legged.center_of_mass(robot, at.q)[2:] - target


@pytest.fixture(scope="module")
def hop() -> tuple[oc.Problem, oc.Solution]:
    robot = robots.planar_hopper()
    rest, effort = oc.Cost(oc.terms.state, 0.1, q=REST, v=np.zeros(5)), oc.Cost(oc.terms.control, 1e-4)
    cone = oc.Cost(oc.terms.friction_cone, 1.0, barrier=True, contact="toe", friction=0.8)
    push, fly = oc.Stage(0.01, ["toe"], [rest, effort, cone]), oc.Stage(0.01, [], [rest, effort])
    top = oc.Stage(0.01, [], [rest, effort, oc.Cost(height, 1e4, target=0.75)])
    level = oc.Constraint(oc.terms.frame_translation, scale=0.01, frame="toe", position=np.zeros(3))
    nodes = [push] * 20 + [fly] * 15 + [top] + [fly] * 15 + [oc.Impact(["toe"], [level])] + [push] * 20
    final = [oc.Cost(oc.terms.state, 1e2, q=REST, v=np.zeros(5))]
    problem = oc.Problem(robot, nodes, final, q=REST, lower=-250.0, upper=250.0)
    return problem, oc.solve(problem, constraint_tolerance=1e-3)


def test_the_hop_lands_where_it_shall_and_its_flight_is_a_parabola(hop):
    problem, solution = hop
    assert solution.converged
    foot = legged.frame_pose(problem.tree, solution.q[51], "toe").position
    np.testing.assert_allclose(foot, 0.0, atol=1.1e-5)  # constraint tolerance times scale
    heights = np.array([legged.center_of_mass(problem.tree, q)[2] for q in solution.q])
    assert 0.73 < heights.max() < 0.77
    second = np.diff(heights[21:51], 2) / 0.01**2  # [m/s^2]
    np.testing.assert_allclose(second, -9.81, atol=0.2)  # semi-implicit Euler, h = 0.01 s
    assert (solution.forces["toe"][20:51] == 0.0).all() and solution.forces["toe"][51, 2] > 0.0


def test_the_feedback_executes_the_hop_in_simulation(hop):
    problem, solution = hop
    run = legged.simulate(
        problem.tree,
        oc.Tracking(problem, solution),
        ground=legged.Rigid(friction=0.8),
        integrator=legged.TimeStepping(0.002),
        until=0.9,
        sample=0.01,
    )
    heights = np.array([legged.center_of_mass(problem.tree, q)[2] for q in run.q])
    assert 0.70 < heights.max() < 0.80
    assert np.abs(run.q[:, 0]).max() < 0.4  # [rad], the trunk stays up


def test_operations_of_a_node_are_counted(hop):
    counts = hop[0].counts()
    assert set(counts) == {
        "rollout of a stage",
        "quadratic model of a stage",
        "rollout of an impact",
        "quadratic model of an impact",
    }
    assert all(count.multiplications > 100 for count in counts.values())
