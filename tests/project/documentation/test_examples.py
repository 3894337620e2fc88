"""Every example runs and prints the stated results."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import legged
import robots

FOLDER = Path(__file__).parents[3] / "examples"
FILES = {path.stem: path for path in FOLDER.glob("*/*.py") if path.parent.name != "studies"}  # tests/studies
WORDS = {  # the example -> what it must print
    "planned_motions": (
        "converged in",
        "in simulation: base at",
        "tilt 0 degrees: success",
        "of 20 simulations succeed",
    ),
    "biped_in_code": ("M1: left_pelvis, left_thigh, left_shank", "modules alike: ((1, 2),)", "176.58 N for 18 kg"),
    "compare_with_mujoco": (
        "leg1_hip_2       7        7",
        "the difference falls with the step to the power 4",
        "they agree to integration accuracy",
        "first to part: 'base moved' at t = 0.021 s",
    ),
    "commanded_walk": ("8 of 8 stand after the stop", "8 of 8 have walked in their direction"),
    "disturbance_map": ("compiled time steps", "1104 runs of 4 s", "wrote disturbance_map.png"),
    "feet_as_loops": (
        "| double support | 0.1 | 0.089 | 0.03 | 0.033 |",
        "| single support | 0.1 | 0.1 | 2.2e-05 | 0.026 |",
        "wrote feet_as_loops.png",
    ),
    "flexible_link": (
        "11.119 and 69.679 rad/s in closed form",
        "16 segments: errors +0.089 % and +0.309 %",
        "3 degrees of freedom: energy drift",
    ),
    "operation_counts": ("the paper: 2568 M, 2478 A", "2 inward", "power of the joints: 12 M", "compiled: 24 W"),
    "other_throws": ("| nothing | 0.115 | 0.35", "| a person of 75 kg | 0.133 | 0.26", "| restitution 0.4 | 0.10"),
    "own_controller": ("compiled closed loop: stood for 2 s",),
    "own_gait": ("squatted for 2 s, trunk between 0.40 m and 0.50 m",),
    "own_ground": ("Waves", "over the waves"),
    "real_robots": ("12.0 kg, hips at 0.45 m when it stands", "Stand    4 s", "Crawl   12 s", "Trot    20 s"),
    "receding_horizon": ("advanced 1.6", "of 1.60 m, largest tilt", "per second"),
    "robots_from_graphs": (
        "biped with unequal legs: 3 modules",
        "hexapod: 7 modules, alike are ((1, 2, 3, 4, 5, 6),)",
        "M3: arm_right_upper, arm_right_lower; M4: fore_left_upper",
        "octopod: 9 modules",
        "4 of 4 walk at the commanded speed within 10 %",
    ),
    "seeing_walk": ("m, walking; ", "wrote seeing_walk.png"),
    "sensors": ("leg4_foot is down for 50% of the time", "reads 9.8 m/s^2 upward", "wrote sensors.png"),
    "short_horizon": ("pendulum: without learning", "short horizon", "PPO"),
    "step_by_step": ("64 robots, 2 s", "fell", "compiled time steps"),
    "shape_memory_wires": (
        "| held shaft | 0.3 | 63 | 0.27 |",
        "| no mechanism against slack | 0.4 | 90 | 0.00 |",
        "| no rapid heating | 60",
        "| no mechanism against overload | 3.0 | 52 | 0.21 | 4.30 |",
        "wrote shape_memory_wires.png",
    ),
    "trot": ("trotted to x = 0.42 m", "trunk.png", "trot.gif"),
    "velocity_policy": ("largest errors", "policy at work for 0.1 s: compiled closed loop"),
    "walk": ("<Run of 'planar biped': 3 s, 301 samples, compiled closed loop>", "advanced 0.86 m at 0.29 m/s"),
}


def test_every_example_is_tested():
    assert set(FILES) == set(WORDS)


LONG = (
    "commanded_walk",
    "feet_as_loops",
    "other_throws",
    "planned_motions",
    "real_robots",
    "receding_horizon",
    "robots_from_graphs",
)


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in LONG else ()) for n in sorted(WORDS)])
def test_example_prints_what_it_says(name, capsys, monkeypatch, tmp_path):
    given = legged.save_urdf(robots.spatial_quadruped(), tmp_path / "dog.urdf") if name == "real_robots" else tmp_path
    monkeypatch.setattr(sys, "argv", [name, str(given)])
    # As a module, so that a record of executed lines contains it.
    runpy.run_module(f"examples.{FILES[name].parent.name}.{name}", run_name="__main__")
    printed = capsys.readouterr().out
    for words in WORDS[name]:
        assert words in printed


def test_a_shape_memory_wire_cools_exponentially_and_has_hysteresis():
    wire = runpy.run_module("examples.extending.shape_memory_wires")["Wire"]()
    (start, end), (low, high) = wire.heating_range, wire.cooling_range
    for temperature in (30.0, 100.0):  # fully transformed on either side: Newton's law of cooling
        rate, change = wire.rates(temperature, float(temperature > end), 0.0, 0.0)
        assert change == 0.0
        assert rate == pytest.approx(-wire.cooling * (temperature - wire.ambient) / wire.heat_capacity)
    between = 0.5 * (high + start)
    assert [wire.rates(between, fraction, 0.0, 0.0)[1] for fraction in (0.0, 0.3, 1.0)] == [0.0, 0.0, 0.0]
    assert wire.rates(0.5 * (start + end), 0.3, 0.0, 0.0)[1] > 0.0 > wire.rates(0.5 * (low + high), 0.7, 0.0, 0.0)[1]
    tension = (0.5 * (start + end) - between) / wire.stress_shift  # a tension shifts the temperatures
    assert wire.rates(0.5 * (start + end), 0.3, tension, 0.0)[1] == 0.0
    assert wire.tension(0.01, 0.5) == 0.0 and wire.tension(0.03, 0.5) == pytest.approx(0.01 * wire.axial_stiffness)


@pytest.fixture(scope="module")
def wires():
    return runpy.run_module("examples.extending.shape_memory_wires")


def test_a_swinging_load_disturbs_the_force_of_wires_by_their_hysteresis_alone(wires):
    """While a wire crosses its hysteresis its fraction is constant, and the force changes by the stiffness of the pair.

    At 16 W this takes 21 ms; the motion that reverses has then turned by less than amplitude (omega t)^2 / 2.
    """
    cases = wires["experiments"]()
    run, tensions, _ = wires["experiment"](*cases["zero force, swinging load"])
    pair = cases["zero force, swinging load"][0]
    force, after = tensions[:, 0] - tensions[:, 1], run.times > 1.0
    constant = (
        (np.abs(np.diff(run.memory[:, [1, 3]], axis=0)) < 1e-9).all(axis=1) & after[1:] & (tensions[1:] > 0).all(1)
    )
    stiffness = 2.0 * pair.wire.axial_stiffness * pair.radius / pair.wire.length
    assert constant.sum() > 10
    assert np.diff(force)[constant] == pytest.approx(-stiffness * np.diff(run.q[:, 0])[constant], abs=1e-6)
    across = pair.wire.heat_capacity * (pair.wire.heating_range[0] - pair.wire.cooling_range[0]) / pair.rapid_power
    omega, amplitude = np.sqrt(0.3 / 0.01), np.abs(run.q[after]).max()  # of the load on its spring
    largest = np.abs(force[after]).max()
    assert 0.2 < largest / (stiffness * amplitude * (omega * across) ** 2 / 2) < 5.0
    tight_run, tight_tensions, _ = wires["experiment"](*cases["the same, wires without hysteresis"])
    assert np.abs(np.subtract(*tight_tensions.T))[tight_run.times > 1.0].max() < 0.02 * largest


def test_the_position_loop_of_wires_has_no_limit_cycle(wires):
    error, oscillation = wires["settled_position"](wires["position_run"]())
    assert error < 0.01 and oscillation < 0.01  # [deg], an encoder of 36000 counts


def test_the_comparison_with_mujoco_takes_a_file(capsys, monkeypatch, tmp_path):
    path = legged.save_urdf(robots.spatial_quadruped(), tmp_path / "quadruped.urdf")
    monkeypatch.setattr(sys, "argv", ["compare_with_mujoco", str(path)])
    runpy.run_path(str(FILES["compare_with_mujoco"]), run_name="__main__")
    printed = capsys.readouterr().out
    assert "they agree to integration accuracy" in printed and "leg4_knee" in printed
