"""Locomotion over the estimate of a filter instead of the true state."""

import pytest

from benchmarks.estimation.closed_loop import measure
from benchmarks.locomotion.trials import trials
from benchmarks.locomotion.walkers import walkers

pytestmark = pytest.mark.filterwarnings("ignore::legged.errors.FileWarning")


@pytest.mark.slow
@pytest.mark.filterwarnings("error:.*runs in Python")
def test_a_robot_walks_on_the_estimate_as_on_the_true_state():
    """The loop is compiled: a warning that it runs in Python fails.

    Noise must not make a small covariance indefinite where compiled and plain laws are compared, and that of the forces
    on the eight points of the soles must not look like a contact.
    """
    chosen = walkers(["G1"])
    if not chosen:
        pytest.skip("the package with the file of G1 is not installed")
    true, estimated = measure(chosen[0], trials(2, ["forward"])[:2])
    assert all(outcome.succeeded for outcome in [*true, *estimated])
    for one, other in zip(true, estimated, strict=True):
        assert abs(one.reached[0] - other.reached[0]) < 0.02  # [m/s]
