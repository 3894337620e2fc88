"""Robots walk through waypoints, return to their path after a push, and stand with the desired heading."""

import warnings

import numpy as np
import pytest
from oracles.standing import shared_quadruped

import controllers
import legged
from controllers.locomotion.velocity_command import slowed
from legged.errors import DefinitionError, SimulationWarning

QUICK = "test_paths_that_cannot_be_followed_are_refused"

SPEED, TOLERANCE = 0.6, 0.1  # [m/s], [m]


def test_a_robot_passes_its_waypoints_in_order_and_stands_at_the_last_with_its_heading():
    """A push of 0.3 m/s to the side is corrected, and the speed stays below the largest one."""
    robot = shared_quadruped()
    points = [(0.8, 0.0), (1.2, 0.6), (1.2, 0.9, 2.2)]
    walk = controllers.Locomotion("trot", None)
    law = controllers.Follow(walk, points, speed=SPEED, turning=1.2, tolerance=TOLERANCE)
    q, v = law.initial_state(robot)
    push = legged.Push("trunk", (0.0, 0.3 * robot.mass, 0.0), at=1.0)
    options = {"ground": legged.Rigid(friction=0.6), "q": q, "v": v, "integrator": legged.TimeStepping(2e-3)}
    run = legged.simulate(robot, law, until=9.0, pushes=[push], **options)
    places, reached = run.q[:, 4:6], run.memory[:, 0]
    assert list(np.unique(reached)) == [0.0, 1.0, 2.0]
    for k, (x, y) in enumerate(points[:2]):
        first = np.flatnonzero(reached > k + 0.5)[0]
        assert np.linalg.norm(places[first] - [x, y]) < TOLERANCE + 0.02  # a centimeter or two of a recorded sample
    R, origin = robot.base.pose(run.q[-1, :7])
    assert np.linalg.norm(origin[:2] - points[2][:2]) < TOLERANCE + 0.05  # the robot stops within a step
    assert abs(np.angle(np.exp(1j * (np.arctan2(R[1, 0], R[0, 0]) - 2.2)))) < 0.15  # [rad], 0.1 and a step's turn
    assert np.linalg.norm(run.v[-1]) < 0.05


def test_a_robot_that_has_fallen_onto_its_rear_end_is_commanded_by_numbers():
    robot = shared_quadruped()
    law = controllers.Follow(controllers.Locomotion("trot", None), [(1.0, 0.0)])
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    q[:4] = 0.5, 0.5, -0.5, 0.5  # the x axis of the base points exactly up
    assert np.isfinite(started.update(0.1, 0.0, q, v, np.zeros((len(robot.links), 6)), memory)).all()


def test_paths_that_cannot_be_followed_are_refused():
    walk = controllers.Locomotion("trot", None)
    with pytest.raises(DefinitionError, match=r"\(x, y\) or \(x, y, heading\) each"):
        controllers.Follow(walk, [(1.0,)])
    with pytest.raises(DefinitionError, match=r"Locomotion\(command=None\)"):
        robot = shared_quadruped()
        q, v = walk.initial_state(robot)
        controllers.Follow(controllers.Locomotion("trot"), [(1.0, 0.0)]).start(robot, None, q, v)


@pytest.mark.parametrize(
    ("command", "hip"),
    [
        ({"height": 0.2}, 0.2),
        ({"height": 0.05, "pitch": -0.3}, 0.05 + 0.5 * np.sin(0.3)),
        ({"roll": -0.9}, 0.25 * np.sin(0.9)),
        ({"height": 0.14}, None),
        ({"height": -0.2}, None),
        ({"pitch": 0.2}, None),
    ],
    ids=str,
)
def test_heights_and_angles_that_straight_legs_do_not_reach_are_warned_about(command, hip):
    """Hips 0.45 m above the ground, legs of 0.6 m, and feet 0.5 m before and behind and 0.25 m beside the middle."""
    law = controllers.Locomotion("trot", controllers.Command(**command))
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        law._fitted(shared_quadruped())
    texts = [str(warning.message) for warning in given]
    assert len(texts) == (hip is not None)
    if hip is not None:
        assert f"a hip would be {0.45 + hip:.3g} m above the ground, and legs stand up to 0.6 m under" in texts[0]
        assert f"reduce the height by {hip - 0.15:.2g} m" in texts[0]


def test_a_command_beyond_the_limits_is_replaced_with_a_notice():
    """The largest velocity keeps the direction of the command, and one within the limits is kept without a word."""
    robot = shared_quadruped()
    law = controllers.Locomotion("trot", controllers.Command(vx=9.0, yaw_rate=1.0))
    with pytest.warns(SimulationWarning, match=r"cannot follow the command vx=9.* move at vx=3"):
        started = law._fitted(robot)
    slow = slowed(np.array([9.0, 0.0, 1.0]), started.fastest, on_two=False)
    np.testing.assert_allclose(slow, slow[0] / 9.0 * np.array([9.0, 0.0, 1.0]))
    np.testing.assert_allclose(np.linalg.norm(slow / started.fastest), 1.0)
    kept = np.array([0.5, -0.2, 0.3])
    np.testing.assert_array_equal(slowed(kept, started.fastest, on_two=False), kept)
