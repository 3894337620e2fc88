"""Laws that follow the estimate: the closed loop over instruments and filter."""

import numpy as np
import pytest

import controllers
import legged
import robots
from legged import estimation

STEP = legged.TimeStepping(2e-3)


@pytest.fixture(scope="module")
def standing():
    """Return a robot, its loop, and runs of two sets of errors."""
    robot = robots.spatial_quadruped()
    law = controllers.JointPD(controllers.suited(controllers.Stand, robot), kp=300.0, kd=10.0)
    feet = ("leg1_foot", "leg4_foot")
    loop = controllers.Estimated(law, estimation.InvariantFilter(feet=feet), estimation.Instruments(feet=feet))
    seeds = {"controller.instruments.seed": np.array([0.0, 1.0])}
    runs = legged.rollout(robot, loop, ground=legged.Rigid(), until=0.4, vary=seeds, integrator=STEP, sample=0.1)
    return robot, loop, runs


def test_law_stands_on_the_estimate(standing):
    robot, loop, runs = standing
    started, memory = loop.start(robot, None, runs.q[0, 0], runs.v[0, 0])
    q, v = started.estimate(runs.rest[..., : len(memory)])
    assert not runs.fallen.any()
    # Standing feet hold the place within the foot's model of 0.5 mm and the initial deviation of 1 mm.
    assert np.abs(q - runs.q)[:, :, 4:7].max() < 3e-3
    assert np.abs(v - runs.v)[:, 1:, 3:6].max() < 0.02


def test_seeds_give_different_errors_and_each_the_same_again(standing):
    robot, loop, runs = standing
    assert np.abs(runs.q[0, -1] - runs.q[1, -1]).max() > 1e-6
    again = legged.rollout(
        robot, loop, ground=legged.Rigid(), until=0.4, vary={"controller.instruments.seed": np.array([1.0, 0.0])},
        integrator=STEP, sample=0.1,
    )  # fmt: skip
    assert np.array_equal(again.q[1], runs.q[0])


@pytest.mark.slow
def test_locomotion_walks_on_the_estimate():
    robot = robots.spatial_quadruped()
    law = controllers.Locomotion("trot", controllers.Command(vx=0.4))
    loop = controllers.Estimated(law, estimation.InvariantFilter())
    run = legged.simulate(robot, loop, ground=legged.Rigid(), until=4.0, integrator=STEP)
    started, _ = loop.start(robot, legged.Rigid(), *law.initial_state(robot))
    q, _ = started.estimate(run.memory)
    way = float(np.linalg.norm(run.q[-1, 4:6]))
    assert way > 1.2
    assert np.linalg.norm(q[-1, 4:6] - run.q[-1, 4:6]) < 0.01 * way
