"""Bending and swiveling: what the study's runs, its comparison with a universal joint and its figures show."""

import numpy as np
import pytest

import legged
from controllers.balance.planar import StepCommand
from examples.studies.balance.bend_study import (
    CROUCH,
    BendSwivelStudy,
    Scenario,
    posture,
    sideways_gain,
    universal_robot,
    write,
)


@pytest.fixture(scope="module")
def study():
    reorient = Scenario("reorient", CROUCH, StepCommand((1.0,), (1.2,)), 4.0)
    both = Scenario("both", StepCommand((0.5, 2.5), (CROUCH, 0.0)), StepCommand((1.5,), (1.2,)), 5.0)
    return BendSwivelStudy((reorient, both), sample=0.05)


def test_reorienting_turns_the_links_and_the_plane_as_the_inertias_say(study):
    """The momentum about the vertical is zero: plane and links turn in opposite directions, by 1.2 rad together."""
    at = study.history(study.scenarios[0])
    assert np.abs(at.momentum[:, 2]).max() < 1e-11
    assert at.plane[-1] - at.plane[0] == pytest.approx(0.17, abs=0.01)
    assert at.leg[-1] - at.leg[0] == pytest.approx(-1.03, abs=0.01)
    assert np.abs(at.predicted - at.plane).max() < 5e-3  # horizontal momenta tilt the balance while it turns
    assert abs(at.predicted[-1] - at.plane[-1]) < 1e-4


def test_errors_are_small_in_the_direction_that_is_not_commanded(study):
    bend, swivel = study.errors(study.scenarios[0])
    assert np.abs(bend).max() < 0.02 and np.abs(swivel).max() < 0.01
    bend, swivel = study.errors(study.scenarios[1])
    assert max(abs(bend[-1]), abs(swivel[-1])) < 0.01
    rows = study.table().rows
    assert [row[0] for row in rows] == ["reorient", "both"]
    assert float(rows[0][1]) == pytest.approx(1e3 * np.abs(study.errors(study.scenarios[0])[0]).max(), rel=1e-2)


@pytest.mark.parametrize("bend", [0.6, 1.4])
@pytest.mark.parametrize("direction", [0.6, 1.2])
def test_a_universal_joint_couples_what_the_constant_velocity_joint_decouples(study, bend, direction):
    """The trunk on the universal joint also turns about its shaft; the postures of the shafts are the same."""
    robot, cardan = study.model.robot, universal_robot(study.model.robot)
    q, bent = (posture(study.model, each, bend, direction) for each in (robot, cardan))
    assert legged.center_of_mass(cardan, bent) == pytest.approx(legged.center_of_mass(robot, q), abs=1e-12)
    assert legged.link_poses(cardan, bent)[0][2][:, 2] == pytest.approx(
        legged.link_poses(robot, q)[0][2][:, 2], abs=1e-12
    )
    assert abs(sideways_gain(robot, q)) < 1e-14
    assert abs(sideways_gain(cardan, bent)) > 0.05


@pytest.mark.slow
def test_figures_and_animations_are_written(study, tmp_path):
    paths = write(study, tmp_path)
    assert [path.name for path in paths] == [
        "plants.png",
        "history.png",
        "poses.png",
        "animation.gif",
        "animation.html",
    ]
    assert all(path.stat().st_size > 10_000 for path in paths)
