"""Reaction wheel and gyroscope: the push, the power of the motors, the limit of the gyroscope, and the command."""

import numpy as np
import pytest
from typer.testing import CliRunner

from examples.studies.balance.wheel_study import GYROSCOPE, WHEEL, WheelStudy, write
from examples.studies.commands import app


@pytest.fixture(scope="module")
def study():
    return WheelStudy((0.1, 0.4), duration=4.0)


def test_the_lean_after_a_push_is_that_of_its_moment(study):
    """The push gives the angular momentum 0.5 m times its impulse, about which both controllers then decide."""
    for name, device in study.devices.items():
        run = study.runs[name, 0.1]
        before, after = run.at(0.495), run.at(0.505)
        gained = study.devices[name].robot, run.v[after] - run.v[before]
        assert np.abs(run.v[before, 0]) < 1e-12 and gained[1][0] > 0.0
        assert run.ended == "" and abs(run.q[-1, 0]) < 1e-3
        assert np.abs(np.delete(run.tau, device.motor, axis=1)).max() == 0.0


def test_the_gimbal_takes_little_power(study):
    """Its torque is normal to the momentum that it turns; the wheel is accelerated."""
    power = {
        name: np.abs(study.runs[name, 0.1].tau[:, 1] * study.runs[name, 0.1].v[:, 1]).max() for name in study.devices
    }
    assert power[GYROSCOPE] < 0.002 * power[WHEEL]


def test_a_push_beyond_the_momentum_of_the_gyroscope_is_lost(study):
    """0.4 N s at 0.5 m are 0.2 kg m^2/s, and more while the pole falls; the wheel has 0.375 kg m^2/s."""
    assert "fell" in study.runs[GYROSCOPE, 0.4].ended and study.runs[WHEEL, 0.4].ended == ""
    assert "falls at" in study.table().rows[3][2]


def test_figures_are_written_and_the_command_prints_the_table(study, tmp_path):
    assert [path.name for path in write(study, tmp_path)] == ["push-0.1.png", "push-0.4.png"]
    result = CliRunner().invoke(app, ["wheel-balance"])
    assert result.exit_code == 0 and "reaction wheel" in result.output
