"""Local coordinates on the configuration manifold, on random robots of every base and joint type."""

import numpy as np
import pytest

import legged
from legged.robot.configuration import normalized, quaternion_blocks
from legged.simulation.loop.chart import chart_rate, largest_rotation, semi_implicit_euler

SEEDS = range(12)


def random_state(seed):
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, links=int(rng.integers(1, 8)))
    return robot, legged.random_configuration(robot, rng), rng.normal(size=robot.nv), rng


@pytest.mark.parametrize("seed", SEEDS)
def test_chart_rate_is_the_rate_of_the_local_coordinates(seed):
    """q(xi + h xi_dot) must move with v: central difference of second order, h = 1e-6."""
    robot, q_ref, v, rng = random_state(seed)
    xi = 0.4 * rng.normal(size=robot.nv)
    xi_dot, h = chart_rate(robot, xi, v), 1e-6
    ahead, behind = (legged.integrate(robot, q_ref, xi + s * h * xi_dot) for s in (1, -1))
    moved = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(
        moved, legged.configuration_rate(robot, legged.integrate(robot, q_ref, xi), v), atol=1e-7
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_semi_implicit_step_errs_by_the_square_of_its_length(seed):
    robot, q, v, rng = random_state(seed)
    vdot = rng.normal(size=robot.nv)

    def error(h):
        q_next, v_next = semi_implicit_euler(robot, q, v, vdot, h)
        wanted = np.concatenate([q + h * legged.configuration_rate(robot, q, v), v + h * vdot])
        return np.abs(np.concatenate([q_next, v_next]) - wanted).max()

    assert error(5e-5) == pytest.approx(error(1e-4) / 4, rel=0.05, abs=1e-12)


def test_a_free_base_pushed_in_small_steps_keeps_its_world_velocity():
    """Semi-implicit steps in body axes alone would increase the speed of a rotating body."""
    robot = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(2.0, (0.3, 0.2, 0.1)))).build()
    q, v = robot.neutral(), np.array([3.0, -2.0, 5.0, 1.0, 0.5, -0.3])
    R, _ = robot.base.pose(q)
    before = R @ v[3:6]
    for _ in range(200):
        vdot = np.concatenate([np.zeros(3), -np.cross(v[:3], v[3:6])])
        q, v = semi_implicit_euler(robot, q, v, vdot, 1e-2)
    R, _ = robot.base.pose(q)
    np.testing.assert_allclose(R @ v[3:6], before, atol=1e-12)


def test_normalized_touches_quaternions_only():
    robot = legged.random_tree(3, links=6, joints=("ball", "revolute"), bases=("floating",))
    q = np.random.default_rng(0).normal(size=robot.nq)
    scaled = normalized(robot, q)
    entries = [i for at, _ in quaternion_blocks(robot) for i in range(at.start, at.stop)]
    for at, _ in quaternion_blocks(robot):
        assert np.linalg.norm(scaled[at]) == pytest.approx(1.0, abs=1e-15)
    rest = np.setdiff1d(np.arange(robot.nq), entries)
    np.testing.assert_array_equal(scaled[rest], q[rest])


def test_largest_turn_is_the_longest_rotation_vector():
    robot = legged.RobotBuilder("brick", legged.Link("brick", legged.box_inertia(2.0, (0.3, 0.2, 0.1)))).build()
    assert largest_rotation(robot, np.array([0.0, 3.0, 4.0, 100.0, 0.0, 0.0])) == 5.0
