"""The O(n^3) route gives the results of the recursion with which its time is compared."""

import numpy as np
import pytest

import controllers
import legged
import robots
from examples.studies.paper.timing import (
    CubicLoop,
    acceleration_table,
    best_times,
    compare,
    compiled_cubic,
    cubic_forward_dynamics,
    states,
)
from legged.ground import paper_ground
from legged.simulation.loop.closed_loop import ClosedLoop


@pytest.mark.parametrize("robot", [robots.planar_biped(), robots.spatial_quadruped(), robots.chain(5, twist=0.7)])
def test_both_routes_give_one_acceleration(robot):
    q, v, tau = states(robot, 4)
    wanted = np.stack([legged.forward_dynamics(robot, *state) for state in zip(q, v, tau, strict=True)])
    plain = np.stack([cubic_forward_dynamics(robot, *state) for state in zip(q, v, tau, strict=True)])
    scale = np.abs(wanted).max()
    assert np.abs(plain - wanted).max() < 1e-9 * scale  # condition numbers up to 1e5 times rounding
    assert np.abs(compiled_cubic(robot)(q, v, tau) - wanted).max() < 1e-9 * scale


def test_the_timed_loops_have_one_rate():
    robot = robots.planar_biped()
    ground, law = paper_ground(robot), controllers.ComputedTorque(controllers.paper_walk())
    q, v = law.initial_state(robot)
    law, memory = law.start(robot, ground, q, v)
    rates = []
    for kind in (ClosedLoop, CubicLoop):
        loop = kind(robot, law, ground, len(memory))
        y = np.concatenate([np.zeros(robot.nv), loop.initial(v, memory)])
        rates.append(loop.rate(0.1, 0, y, q))
    assert rates[0] == pytest.approx(rates[1], rel=1e-9, abs=1e-9)


def test_the_slower_way_loses_the_race():
    fast, slow = best_times([lambda: sum(range(100)), lambda: sum(range(3000))], rounds=3, least=0.002)
    assert 5 * fast < slow


def test_comparison_has_the_papers_ratio_beside_ours():
    comparison = compare(robots.planar_biped(), rounds=1)
    table = acceleration_table([comparison])
    assert table.rows[0][4] == "1.20"  # 2.88 ms / 2.40 ms
    assert comparison.linear < comparison.plain_linear
