"""The design study: legs of other lengths."""

import distributed  # noqa: F401
import numpy as np
import pytest

import robots
from examples.studies.design.design_study import (
    biped_optimum,
    design_rows,
    quadruped_samples,
    quadruped_study,
    result_table,
    scaled_legs,
)


def test_legs_of_another_length_keep_mass_per_length_and_the_shape_of_a_rod():
    robot = robots.planar_biped()
    legs = [(f"{k}_thigh", f"{k}_shank", f"{k}_knee", f"{k}_ankle.at") for k in "ab"]
    values = scaled_legs(robot, legs, np.array([0.5, 0.6]), np.array([0.5, 0.4]))
    known = robot.parameters()
    for name, value in values.items():  # the first design is the robot itself
        assert np.allclose(value[0], known[name.removeprefix("robot.")], rtol=1e-14)
    mass, tensor = values["robot.a_thigh.mass"][1], values["robot.a_thigh.tensor"][1]
    assert np.isclose(mass, 1.2 * known["a_thigh.mass"]) and np.isclose(tensor[0, 0], mass * 0.6**2 / 12.0)


def test_larger_studies_begin_with_the_trots_of_smaller_ones_and_the_first_trot_of_a_design_is_not_pushed():
    few, many = quadruped_samples(12).columns, quadruped_samples(40).columns
    for name, values in few.items():
        assert np.array_equal(many[name][:12], values)
    assert (many["impulse"] == 0.0).tolist() == 8 * [True, False, False, False, False]
    assert len(np.unique(many["thigh"])) == 8 and (many["thigh"].reshape(8, 5).std(axis=1) < 1e-15).all()


@pytest.mark.slow
def test_the_study_finds_designs_that_walk_and_goes_on_with_the_same_trials(tmp_path):
    table = quadruped_study(40, tmp_path / "a", until=0.8).table()
    assert len(table) == 40 and (table["error"] == "").all()  # those that diverge fail alone
    designs = design_rows(table)
    assert len(designs) == 8 and (designs["impulse"] == 0.0).all()
    assert designs["success"].mean() >= 0.5 and designs["cost_of_transport"].dropna().between(0.01, 5.0).all()
    assert designs["recovered"].iloc[1] == table["success"].iloc[6:10].mean()
    assert quadruped_study(40, tmp_path / "a", until=0.8).table().equals(table)
    assert result_table(table).notes[0].startswith("40 trots")
    optimum = biped_optimum(2, 4, tmp_path / "b", until=0.6)
    assert optimum.best["cost_of_transport"] <= optimum.table["cost_of_transport"].iloc[:4].min()
