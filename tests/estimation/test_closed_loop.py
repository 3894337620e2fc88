"""Laws over the estimate of a filter instead of the true state."""

import numpy as np
import pytest

import controllers
import robots
from benchmarks.estimation.closed_loop import measure
from benchmarks.locomotion.trials import trials
from benchmarks.locomotion.walkers import walkers
from legged import deployment, estimation
from legged.errors import ArgumentError, DefinitionError, ShapeError

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
        pytest.skip("the package with the file of G1, of the extra test, is not installed")
    true, estimated = measure(chosen[0], trials(2, ["forward"])[:2])
    assert all(outcome.succeeded for outcome in [*true, *estimated])
    for one, other in zip(true, estimated, strict=True):
        assert abs(one.reached[0] - other.reached[0]) < 0.02  # [m/s]


def test_a_lost_reading_makes_the_velocity_less_certain_and_jitter_does_not():
    robot, feet = robots.spatial_quadruped(), ("leg1_foot", "leg4_foot")
    sensors = estimation.Instruments(feet=feet)
    law = controllers.JointPD(controllers.suited(controllers.Stand, robot), kp=300.0, kd=10.0)
    loop = controllers.Estimated(law, estimation.InvariantFilter(feet=feet), sensors)
    kernel, memory = loop.kernel(robot)
    q, v = loop.initial_state(robot)
    filter_, first = estimation.InvariantFilter(feet=feet).start(robot, q, v)
    at = len(sensors.start(robot, q, v)[1])
    reading = deployment.SimulatedRobot(robot, q, instruments=sensors).read().reading
    reading = reading._replace(contacts=np.ones(len(reading.contacts)))

    def deviation(last):
        """Return the standard deviation of the vertical velocity after a time before the last reading, [m/s]."""
        after = memory
        for t in [*(0.002 * np.arange(100)), 0.198 + last]:
            after = kernel(t, after, *reading)[0]
        return np.sqrt(filter_.parts(after[at : at + len(first)]).covariance[5, 5])

    regular, late, lost = (deviation(last) for last in (0.002, 0.0028, 0.004))
    assert late == pytest.approx(regular, rel=0.01)
    added = 0.002 * estimation.Deviations().unread_force
    assert lost == pytest.approx(np.hypot(regular, added), rel=0.02)  # a correction by one reading is small


@pytest.mark.parametrize("estimator", [estimation.InvariantFilter, estimation.Instruments(), None])
def test_what_is_no_filter_is_refused(estimator):
    with pytest.raises(ArgumentError, match="estimator must be a filter"):
        controllers.Estimated(controllers.Locomotion("trot"), estimator)


def test_errors_of_the_first_guess_and_feet_fit_the_robot():
    robot, law = robots.spatial_quadruped(), controllers.Locomotion("trot")
    q, v = law.initial_state(robot)
    for name in ("error", "velocity_error"):
        for wrong in (np.zeros(1), np.zeros(3)):
            with pytest.raises(ShapeError, match=f"^{name} must be"):
                controllers.Estimated(law, estimation.InvariantFilter(), **{name: wrong}).start(robot, None, q, v)
    with pytest.raises(DefinitionError, match="same feet, got leg1_foot and leg1_foot, leg2_foot"):
        controllers.Estimated(law, estimation.InvariantFilter(feet=("leg1_foot",))).start(robot, None, q, v)
