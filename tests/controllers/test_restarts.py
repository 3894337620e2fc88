"""Laws that start anew when they take over from another one."""

import numpy as np
import pytest

import legged
import robots
from controllers import SwitchedLaw

ROUNDING = 1e-12
EULER = legged.SemiImplicitEuler(1e-3)


def still(t, q, v, wrenches):
    return np.zeros(2)


class Counter:
    """A law that counts its updates, from a number that depends on the state in which it takes over."""

    def start(self, robot, ground, q, v):
        return self, np.zeros(1)

    def restart(self, t, q, v):
        return np.stack([100.0 + q[2]])

    def update(self, t, phase, q, v, wrenches, memory):
        return memory + 1.0

    def torque(self, t, phase, q, v, wrenches, memory):
        return np.zeros(2)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("when", [[0.02], lambda now, t, q, v, wrenches: legged.where(t > 0.0195, 1.0, 0.0)])
def test_a_law_that_can_restart_starts_anew_in_the_state_in_which_it_takes_over(compiled, when):
    law = SwitchedLaw([still, Counter()], when)
    run = legged.simulate(robots.planar_hopper(), law, until=0.04, sample=1e-3, integrator=EULER, compiled=compiled)
    assert (run.memory[:20, 1] == 0.0).all()
    np.testing.assert_allclose(run.memory[20:40, 1], 100.0 + run.q[20, 2] + np.arange(1, 21), atol=ROUNDING)
