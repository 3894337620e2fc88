"""The fractions of the steps of a plan during which feet stand, and the height of a robot that trots with flights."""

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import legged
from controllers import Command, Locomotion
from controllers.locomotion.gait.schedule import GaitState, contact_schedule
from controllers.locomotion.gait.support import stance_shares

QUADRUPED = np.array([[0.2, 0.1], [0.2, -0.1], [-0.2, 0.1], [-0.2, -0.1]])  # front left, front right, rear left, right
FILES = all_urdfs()


@pytest.mark.parametrize("name", ["trot", "walk", "gallop", "pronk"])
@pytest.mark.parametrize("duty", [0.37, 0.6, 1.0])
@pytest.mark.parametrize("waited", [0.0, 0.01])
def test_shares_are_means_of_the_stances_during_each_step(name, duty, waited):
    """At random phases of walking and of stopping robots with feet that landed early, against 200 samples a step."""
    schedule, generator, count, samples = contact_schedule(name, QUADRUPED, 0.2), np.random.default_rng(1), 10, 200
    step = 0.17 * schedule.period
    delay = step if waited else 0.0
    for k in range(12):
        state = GaitState(
            phase=generator.uniform(),
            walking=float(k % 4 > 0),
            planted=np.round(generator.uniform(size=4)),
            period=schedule.period,
            duty=np.full(4, duty),
            touchdowns=np.array(schedule.touchdowns),
            waited=waited,
        )
        times = step * (np.arange(count * samples) + 0.5) / samples
        stances = np.array(state.stance_after(np.maximum(times - delay, 0.0))).T.reshape(count, samples, 4)
        shares, supported = stance_shares(state, step, count)
        assert np.array(shares) == pytest.approx(stances.mean(axis=1), abs=1.0 / samples)
        assert np.array(supported) == pytest.approx(stances.max(axis=2).mean(axis=1), abs=2.0 / samples)


def test_traced_shares_are_the_same_numbers():
    schedule = contact_schedule("gallop", QUADRUPED, 0.2)

    def law(flat):
        shares, supported = stance_shares(GaitState.of(flat), 0.05, 10)
        return np.concatenate([np.array(shares).reshape(-1), np.stack(supported)])

    kernel = legged.compile(law, flat=GaitState.size(4))
    for phase in np.linspace(0.0, 0.99, 34):
        flat = GaitState.standing(schedule)._replace(phase=phase, walking=1.0, planted=np.zeros(4)).flat()
        assert kernel(flat) == pytest.approx(law(flat), abs=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")
@pytest.mark.parametrize(("speed", "most"), [(1.4, 0.02), (2.46, 0.08)])
def test_go2_keeps_its_height_in_a_trot_with_flights(speed, most):
    """With half of the force in the last half step before lift-off it sinks by 0.04 and 0.14 h.

    At 2.46 m/s the knees come near the ends of their ranges before the feet lift off, which costs 0.06 h.
    """
    robot, law = legged.load(FILES["go2/go2"]), Locomotion("trot", Command(vx=speed))
    steps = legged.TimeStepping(2e-3)
    run = legged.simulate(robot, law, ground=legged.Rigid(friction=0.6), until=5.0, integrator=steps)
    height = legged.center_of_mass(robot, run.q[0])[2]
    late = run.q[run.times > 3.0]
    mean = np.mean([legged.center_of_mass(robot, q)[2] for q in late])
    assert abs(mean / height - 1.0) < most
