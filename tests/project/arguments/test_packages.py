"""Wrong arguments of the packages above simulation: `package_cases` has valid calls, `argument_fuzz` changes them."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import robots
from legged import deployment, environments, identification, optimization, sweeps
from legged.errors import LeggedError

sys.path.insert(0, str(Path(__file__).parent))
import argument_fuzz

BIPED, QUADRUPED = robots.planar_biped(), robots.spatial_quadruped()


def test_a_sample_of_bad_calls_of_the_packages_above_simulation_ends_in_words(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    packages = "environments.", "optimization.", "sweeps.", "deployment.", "estimation.", "identification."
    report = argument_fuzz.fuzz(seed=2, most=1000, only=lambda case: case.name.startswith(packages))
    assert report.calls == 1000 and report.defects == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: environments.velocity(None), "robot must be a legged.Robot"),
        (lambda: environments.velocity(QUADRUPED, gait_period=-1.0), "gait_period must be positive"),
        (lambda: environments.velocity(QUADRUPED, kp=np.nan), "kp must be finite"),
        (lambda: environments.jumping(QUADRUPED, rise=0.2), "rise must be"),
        (
            lambda: optimization.Problem(BIPED, [None], q=BIPED.neutral()),
            "entry 0 of nodes must be a Stage",
        ),
        (lambda: optimization.Cost(len, weight="1"), "weight must hold real numbers"),
        (lambda: sweeps.random(4, {"x": (0.0, 1.0)}, seed=-1), "seed must be at least 0"),
        (lambda: deployment.JointCommand.damping(-1, 1.0), "nj must be at least 0"),
        (lambda: deployment.SimulatedRobot(QUADRUPED, QUADRUPED.neutral(), rate="fast"), "rate must be a number"),
        (lambda: deployment.SimulatedRobot(QUADRUPED, QUADRUPED.neutral(), rate=-5.0), "rate must be positive"),
        (
            lambda: deployment.SimulatedRobot(QUADRUPED, QUADRUPED.neutral(), rate=300.0, step=2e-3),
            "rate and step must give a whole number of time steps",
        ),
        (
            lambda: deployment.serve(SimpleNamespace(nj=12, step=2e-3, measured=len, advance=len), 0, rate=300.0),
            "rate and step must give a whole number of time steps",
        ),
        (lambda: identification.Log(np.arange(3.0), "ab", np.zeros((3, 2))), "joints must be a sequence of texts"),
    ],
)
def test_packages_above_simulation_name_the_argument(call, words):
    with pytest.raises(LeggedError, match=words):
        call()
