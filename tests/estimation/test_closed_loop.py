"""Locomotion over the estimate of a filter instead of the true state."""

import pytest

from benchmarks.estimation.closed_loop import measure
from benchmarks.locomotion.trials import trials
from benchmarks.locomotion.walkers import walkers

pytestmark = pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")


@pytest.mark.slow
def test_a_robot_walks_on_the_estimate_as_on_the_true_state():
    """The loop is compiled: a warning of a fall back to Python, where noise makes the covariance indefinite, fails."""
    chosen = walkers(["Go2"])
    if not chosen:
        pytest.skip("the package with the file of Go2 is not installed")
    true, estimated = measure(chosen[0], trials(4, ["forward"])[2:4])
    assert all(outcome.succeeded for outcome in [*true, *estimated])
    for one, other in zip(true, estimated, strict=True):
        assert abs(one.reached[0] - other.reached[0]) < 0.02  # [m/s]
