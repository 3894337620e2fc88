"""The design study: legs of other lengths."""

import distributed  # noqa: F401
import numpy as np
import pytest

import robots
from examples.studies.design.design_study import biped_optimum, quadruped_study, result_table, scaled_legs


def test_legs_of_another_length_keep_mass_per_length_and_the_shape_of_a_rod():
    robot = robots.planar_biped()
    legs = [(f"{k}_thigh", f"{k}_shank", f"{k}_knee", f"{k}_ankle.at") for k in "ab"]
    values = scaled_legs(robot, legs, np.array([0.5, 0.6]), np.array([0.5, 0.4]))
    known = robot.parameters()
    for name, value in values.items():  # the first design is the robot itself
        assert np.allclose(value[0], known[name.removeprefix("robot.")], rtol=1e-14)
    mass, tensor = values["robot.a_thigh.mass"][1], values["robot.a_thigh.tensor"][1]
    assert np.isclose(mass, 1.2 * known["a_thigh.mass"]) and np.isclose(tensor[0, 0], mass * 0.6**2 / 12.0)


@pytest.mark.slow
def test_the_study_finds_designs_that_walk_and_goes_on_with_the_same_trials(tmp_path):
    table = quadruped_study(16, tmp_path / "a", until=0.8).table()
    assert len(table) == 16 and (table["error"] == "").mean() > 0.5
    walk = table[table["setup"] == "walk"]
    assert walk["success"].mean() >= 0.5 and walk["cost_of_transport"].dropna().between(0.01, 5.0).all()
    assert quadruped_study(16, tmp_path / "a", until=0.8).table().equals(table)
    assert result_table(table).notes[0].startswith("16 trots")
    optimum = biped_optimum(2, 4, tmp_path / "b", until=0.6)
    assert optimum.best["cost_of_transport"] <= optimum.table["cost_of_transport"].iloc[:4].min()
