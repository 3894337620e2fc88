"""Closed forms of stops, motor limits and the check of joint ranges, for an arm of one joint and its couplings."""

import numpy as np
import pytest

import legged
from legged.simulation import forces
from legged.simulation.forces import STOP_DEFLECTION, STOP_TIME, beyond_range, motor_forces, stop_forces, stops_of

MASS, SIZE = 2.0, (0.1, 0.2, 0.3)  # [kg], [m]
INERTIA = MASS * (SIZE[0] ** 2 + SIZE[2] ** 2) / 12.0  # [kg m^2], about y
LOWER, UPPER = -0.5, 0.8  # [rad]


def arm(**physics):
    """Return a fixed post with an arm that turns about y through its center."""
    builder = legged.RobotBuilder("arm", legged.Link("post"), base=legged.FixedBase())
    joint = legged.Revolute("joint", "y", physics=legged.JointPhysics(lower=LOWER, upper=UPPER, **physics))
    return builder.add(joint, legged.Link("arm", legged.box_inertia(MASS, SIZE)), to="post").build()


def test_states_beyond_one_of_the_stops_are_found():
    """Up to the tolerance of 1e-3 rad."""
    q = np.array([[LOWER - 0.002], [LOWER - 0.0005], [0.0], [UPPER + 0.0005], [UPPER + 0.002]])
    assert beyond_range(arm(), q).tolist() == [True, False, False, False, True]


@pytest.mark.parametrize(
    ("effort", "speed", "stiffness"),
    [
        (np.inf, np.inf, INERTIA / STOP_TIME**2),
        (1e-6, np.inf, INERTIA / STOP_TIME**2),
        (1e3, 1e-3, 1e3 / STOP_DEFLECTION["angle"]),
        (1e3, np.inf, 2.0 * 1e3 * (UPPER - LOWER) / (np.e * STOP_DEFLECTION["angle"]) ** 2),
        (1e3, 1e3, 2.0 * 1e3 * (UPPER - LOWER) / (np.e * STOP_DEFLECTION["angle"]) ** 2),
        (1e3, 200.0, INERTIA * 200.0**2 / (np.e * STOP_DEFLECTION["angle"]) ** 2),
    ],
)
def test_stops_are_critically_damped_and_as_stiff_as_the_motor_needs(effort, speed, stiffness):
    """The largest of: the time constant, the effort over the deflection, and the energy at the stop."""
    (stop,) = stops_of(arm(effort=effort, speed=speed))
    assert stop.stiffness == pytest.approx(stiffness, rel=1e-12)
    assert stop.damping == pytest.approx(2.0 * np.sqrt(stiffness * INERTIA), rel=1e-12)


def test_forces_of_stops_push_back_and_do_not_pull():
    robot = arm()
    stops = stops_of(robot)
    k, c = stops[0].stiffness, stops[0].damping
    for q, v, wanted in (
        (UPPER + 0.01, 0.0, -0.01 * k),
        (UPPER + 0.01, 0.1, -0.01 * k - 0.1 * c),
        (UPPER + 0.01, -100.0, 0.0),
        (LOWER - 0.01, -0.1, 0.01 * k + 0.1 * c),
        (LOWER - 0.01, 100.0, 0.0),
        (0.0, 5.0, 0.0),
    ):
        assert stop_forces(robot, stops, np.array([q]), np.array([v])) == pytest.approx([wanted], rel=1e-9)


@pytest.mark.parametrize("ratio", [2.0, -0.5])
def test_a_stop_of_a_coupled_joint_acts_by_its_ratio(ratio):
    """The follower is beyond its upper stop by 0.01 rad; the force on the leader has the power of the stop."""
    builder = legged.RobotBuilder("arms", legged.Link("post"), base=legged.FixedBase())
    builder.add(legged.Revolute("leader", "y"), legged.Link("a", legged.box_inertia(MASS, SIZE)), to="post")
    stopped = legged.Revolute("follower", "y", physics=legged.JointPhysics(lower=LOWER, upper=UPPER))
    builder.add(stopped, legged.Link("b", legged.box_inertia(MASS, SIZE)), to="post").couple(
        "follower", "leader", ratio
    )
    robot = builder.build()
    (stop,) = stops_of(robot)
    inertia = INERTIA / ratio**2 + INERTIA  # of both, at the follower
    assert stop.damping**2 == pytest.approx(4.0 * stop.stiffness * inertia, rel=1e-12)
    q, v = np.array([(UPPER + 0.01) / ratio]), np.array([0.1 / ratio])
    wanted = -ratio * (0.01 * stop.stiffness + 0.1 * stop.damping)
    assert stop_forces(robot, [stop], q, v) == pytest.approx([wanted], rel=1e-9)
    driven = robot.with_parameters({"leader.effort": 1e3, "leader.speed": 1e-3})
    assert stops_of(driven)[0].stiffness == pytest.approx(1e3 / abs(ratio) / STOP_DEFLECTION["angle"], rel=1e-12)


@pytest.mark.parametrize(("v", "low", "high"), [(0.0, -10.0, 10.0), (3.0, -10.0, 4.0), (-3.0, -4.0, 10.0)])
def test_motors_lose_force_with_the_speed_in_the_direction_of_their_force(v, low, high, monkeypatch):
    """By a line from the effort at rest to zero at 5 rad/s."""
    monkeypatch.setattr(forces, "motor_force", lambda effort, speed, rate: effort * min(1.0 - rate / speed, 1.0))
    robot = arm(effort=10.0, speed=5.0)
    assert motor_forces(robot, np.array([v]), np.array([100.0])) == pytest.approx([high])
    assert motor_forces(robot, np.array([v]), np.array([-100.0])) == pytest.approx([low])
    assert motor_forces(robot, np.array([v]), np.array([1.5])) == pytest.approx([1.5])


def test_the_base_of_each_member_of_a_group_has_no_motor():
    one = legged.RobotBuilder("one", legged.Link("trunk", legged.box_inertia(MASS, SIZE)))
    one = one.add(legged.Revolute("joint", "y"), legged.Link("arm", legged.box_inertia(MASS, SIZE)), to="trunk").build()
    group = legged.combine({"a": one, "b": one})
    entries = forces.unactuated_entries(group)
    starts = [member.v.start for member in group.members]
    assert sorted(entries) == sorted(i for start in starts for i in range(start, start + 6))


@pytest.mark.parametrize(("force", "is_named"), [(1e-7, False), (1e-4, True)])
def test_forces_on_the_base_by_rounding_are_no_forces(force, is_named):
    one = legged.RobotBuilder("one", legged.Link("trunk", legged.box_inertia(MASS, SIZE)))
    robot = one.add(
        legged.Revolute("joint", "y"), legged.Link("arm", legged.box_inertia(MASS, SIZE)), to="trunk"
    ).build()
    tau = np.zeros(7)
    tau[2], tau[6] = force, 1.0
    assert bool(forces.base_force_text(robot, tau)) == is_named
