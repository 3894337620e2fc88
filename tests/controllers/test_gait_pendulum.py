"""The linear inverted pendulum: the paper's constants, its equation of motion, and the conditions of repetition."""

from __future__ import annotations

import numpy as np
import pytest

from controllers.gaits import InvertedPendulum
from legged import taylor
from legged.errors import DefinitionError

# height [m], omega [1/s], speed at the start, speed in the middle [m/s], orbital energy [m^2/s^2]: worked out by hand
# from T = 1 s, stride 0.3 m, g = 9.81 m/s^2
CONSTANTS = [
    (0.96, 3.196678, 0.520395, 0.202211, 0.040889),
    (0.71, 3.717109, 0.585344, 0.178177, 0.031747),
    (0.5, 4.429447, 0.680449, 0.146837, 0.021561),
]
STARTS = [  # period [s], stride, height [m], speed at the start [m/s]: of the authors' other robots
    (0.5, 0.3, 0.92, 0.727719),
    (0.5, 0.4, 0.55, 1.077291),
    (1.1, 0.06, 0.13, 0.260643),
]


@pytest.mark.parametrize("height, omega, speed, middle, energy", CONSTANTS)
def test_constants_of_the_paper_to_six_digits(height, omega, speed, middle, energy):
    pendulum = InvertedPendulum.forward(1.0, 0.3, height)
    assert pendulum.start == -0.15
    printed = (pendulum.omega, pendulum.speed, pendulum.mid_stance_speed, pendulum.orbital_energy)
    np.testing.assert_allclose(printed, (omega, speed, middle, energy), rtol=0, atol=5.01e-7)


@pytest.mark.parametrize("period, stride, height, speed", STARTS)
def test_start_speeds_of_the_authors_other_robots(period, stride, height, speed):
    assert InvertedPendulum.forward(period, stride, height).speed == pytest.approx(speed, abs=5.01e-7)


@pytest.mark.parametrize(
    "pendulum", [InvertedPendulum.forward(0.7, 0.4, 0.8), InvertedPendulum.sideways(0.7, -0.06, 0.8)]
)
def test_falls_as_the_linear_pendulum_does(pendulum):
    x, _, acceleration = taylor.derivatives(pendulum(taylor.time(np.linspace(0, 0.7, 8))))
    np.testing.assert_allclose(acceleration, pendulum.omega**2 * x, rtol=1e-13)


def test_a_step_ends_as_it_began():
    pendulum = InvertedPendulum.forward(0.7, 0.4, 0.8)
    x, speed, _ = taylor.derivatives(pendulum(taylor.time(np.array([0.0, 0.35, 0.7]))))
    assert x[2] == pytest.approx(-x[0], rel=1e-13)
    assert x[1] == pytest.approx(0, abs=1e-15)
    assert speed[2] == pytest.approx(speed[0], rel=1e-13)
    assert speed[1] == pytest.approx(pendulum.mid_stance_speed, rel=1e-13)
    np.testing.assert_allclose(speed**2 - (pendulum.omega * x) ** 2, pendulum.orbital_energy, rtol=1e-12)


def test_a_sideways_step_returns_to_where_it_began():
    pendulum = InvertedPendulum.sideways(0.5, -0.06, 0.92)
    y, speed, _ = taylor.derivatives(pendulum(taylor.time(np.array([0.0, 0.5]))))
    assert y[1] == pytest.approx(y[0], rel=1e-13)
    assert speed[1] == pytest.approx(-speed[0], rel=1e-13)
    assert speed[0] > 0  # towards the foot


@pytest.mark.parametrize("wrong", [{"height": 0.0}, {"period": -1.0}, {"gravity": np.nan}, {"height": np.inf}])
def test_a_pendulum_needs_positive_height_period_and_gravity(wrong):
    name = next(iter(wrong))
    with pytest.raises(DefinitionError, match=f"the pendulum's {name} must be positive"):
        InvertedPendulum.forward(**({"period": 1.0, "stride": 0.3, "height": 0.9, "gravity": 9.81} | wrong))
