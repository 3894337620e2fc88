"""Intervals of parameters from the scatter of windows, on linear models whose estimates are known in closed form."""

import numpy as np
import pytest
from scipy.stats import t

from legged.identification.identifiability import Identifiability

WINDOWS, READINGS = 8, 30


def _regression(rng: np.random.Generator, correlated: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return estimate, matrices and gradients of a line; readings of a window share an error of size `correlated`."""
    inputs = rng.normal(1.0, 0.5, (WINDOWS, READINGS)) + rng.normal(0.0, 0.5, (WINDOWS, 1))
    columns = np.stack([inputs, np.ones_like(inputs)], axis=-1)
    noise = rng.normal(0.0, 1.0, inputs.shape) + correlated * rng.normal(0.0, 1.0, (WINDOWS, 1))
    matrices = np.swapaxes(columns, 1, 2) @ columns
    estimate = np.linalg.solve(matrices.sum(axis=0), np.einsum("wri,wr->i", columns, noise))
    return estimate, matrices, np.einsum("wri,wr->wi", columns, noise - columns @ estimate)


def _share_inside(correlated: float) -> float:
    """Return the share of 1000 regressions whose robust interval of 90 % holds the true offset, which is zero."""
    rng, quantile, inside = np.random.default_rng(0), t.ppf(0.95, WINDOWS - 1), 0
    for _ in range(1000):
        estimate, matrices, scores = _regression(rng, correlated)
        information = Identifiability(("slope", "offset"), matrices.sum(axis=0), np.ones(2), 1.0, matrices, scores)
        inside += abs(estimate[1]) < quantile * information.robust_deviations[1]
    return inside / 1000


@pytest.mark.parametrize("correlated", [0.0, 1.0])
def test_robust_intervals_of_few_windows_hold_the_value_as_often_as_they_state(correlated):
    """Sampling moves the share of 0.9 by 0.01; the jackknife errs to the side of wider intervals."""
    assert 0.87 < _share_inside(correlated) < 0.95


def test_leaving_out_windows_gives_the_robust_deviations():
    rng = np.random.default_rng(1)
    _, matrices, scores = _regression(rng, 0.5)
    total = matrices.sum(axis=0)
    information = Identifiability(("slope", "offset"), total, np.array([0.1, 3.0]), 1.0, matrices, scores)
    changes = [np.linalg.solve(total - own, score) for own, score in zip(matrices, scores, strict=True)]
    expected = np.sqrt((1.0 - 1.0 / WINDOWS) * (np.array(changes) ** 2).sum(axis=0))
    np.testing.assert_allclose(information.robust_deviations, expected, rtol=1e-9)


def test_a_parameter_that_one_window_alone_determines_has_no_robust_deviation():
    rng = np.random.default_rng(2)
    _, matrices, scores = _regression(rng, 0.0)
    matrices[1:, 1], matrices[1:, :, 1] = 0.0, 0.0
    scores[1:, 1] = 0.0
    information = Identifiability(("slope", "offset"), matrices.sum(axis=0), np.ones(2), 1.0, matrices, scores)
    slope, offset = information.robust_deviations
    assert np.isfinite(slope) and offset == np.inf
    assert np.isfinite(information.deviations).all()
    assert not information.open_directions
