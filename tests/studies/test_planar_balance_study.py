"""The comparison of controllers of planar balance: figures of merit, figures and animation."""

import numpy as np
import pytest

from examples.studies.balance.planar_study import (
    LARGE,
    NO_PREVIEW,
    PREVIEW,
    REGULATOR,
    SCENARIOS,
    STEP,
    PlanarStudy,
    Scenario,
    SensorNoise,
    swing,
    write,
)


@pytest.fixture(scope="module")
def study():
    return PlanarStudy(SCENARIOS[:2], (NO_PREVIEW, PREVIEW), duration=6.0)


def test_preview_follows_the_predicted_lag_and_avoids_the_excursion(study):
    merits = {name: study.merit(SCENARIOS[0], study.runs[SCENARIOS[0].words, name]) for name in study.controllers}
    assert merits[PREVIEW].lag_error < 1e-3 and merits[PREVIEW].overshoot < 1e-3  # asked: 0.01 rad
    assert merits[NO_PREVIEW].overshoot > 0.03  # in the wrong direction first
    assert 1.0 < merits[PREVIEW].settling < 3.0
    assert len(study.table().rows) == 4


def test_the_regulator_falls_where_the_preview_controller_follows():
    large = Scenario("large", LARGE)
    study = PlanarStudy((large,), (REGULATOR,), duration=4.0)
    run = study.runs[large.words, REGULATOR]
    assert "fell" in run.ended
    assert "falls at" in study.table().rows[0][2]


def test_figures_and_animation_are_written(study, tmp_path):
    names = {path.name for path in write(study, tmp_path)}
    assert names == {"anticipation.png", "anticipation-large.png", "controllers.png", "animation.gif", "animation.html"}


def test_noise_has_its_standard_deviation():
    times = np.linspace(0.0, 20.0, 4001)
    noise = SensorNoise(angle=0.5, rate=2.0)
    q, v = (np.array(x) for x in zip(*(noise.on(t, np.zeros(1), np.zeros(1)) for t in times), strict=True))
    assert np.isclose(q.std(), 0.5, rtol=0.05) and np.isclose(v.std(), 2.0, rtol=0.05)  # 20 s of the lowest 0.5 Hz


def test_the_swing_starts_smoothly_and_its_derivatives_match():
    h, t = 1e-5, 2.2
    ahead, here, behind = (swing(x) for x in (t + h, t, t - h))
    for k in range(2):
        assert np.isclose((ahead[k] - behind[k]) / (2 * h), here[k + 1], rtol=1e-6, atol=1e-6)
    assert np.allclose(swing(1.0), 0.0) and np.allclose(swing(0.0), 0.0)


def test_wrong_masses_are_those_of_the_controller():
    study = PlanarStudy()
    wrong = study.controller(PREVIEW, Scenario("wrong", STEP, excess=0.1))
    assert np.isclose(wrong.nominal.mass - wrong.model.mass, 0.1)  # 10 % of trunk and head, 0.5 kg each
