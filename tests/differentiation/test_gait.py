"""The Floquet multipliers of a gait are the rates at which its simulation settles."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged.differentiation import DifferentiableSimulation, limit_cycle


@pytest.mark.slow
def test_a_trot_settles_by_its_largest_multiplier():
    """Differences from two periods before fall, once the other multipliers have decayed, by the largest in size.

    It is real and the next ones are 0.35, so that after twenty periods the others are below 1e-3 of it. The motion of
    the paper's quadruped is mirrored after one period of the gait.
    """
    robot = robots.spatial_quadruped()
    trot = controllers.suited(controllers.Trot, robot)
    law, ground = controllers.suited_law(controllers.Balanced, trot), legged.Rigid(friction=0.8)
    period = trot.gait.period if hasattr(trot, "gait") else trot.period
    sim = DifferentiableSimulation(robot, law, ground=ground)
    run = sim.rollout(until=60 * period)
    steps = len(run.clocks) // 60
    at = run.v[:: 2 * steps]
    falls = np.abs(np.diff(at, axis=0)).max(axis=1)
    rate = (falls[15] / falls[10]) ** (1 / 5)
    cycle = limit_cycle(run.part(58 * steps, 60 * steps))
    assert abs(cycle.multipliers[0]) == pytest.approx(rate, rel=3e-3)
    assert cycle.change < 1e-8 and abs(cycle.multipliers[1]) < 0.4
