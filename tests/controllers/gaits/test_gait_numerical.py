"""Numerical inverse kinematics: equal to the closed form where one exists, and accurate for other legs."""

from __future__ import annotations

import numpy as np
import pytest

import legged
import robots
from controllers import Crawl, FootKinematics, NumericalGait, Stand, Tripod, Trot, Walk
from legged import FloatingBase, Limb, Link, Revolute, RobotBuilder, Spherical, rod_inertia, taylor
from legged.compiler import compile as compiled
from legged.errors import DefinitionError, ReachError, ShapeError, UnknownNameError

CASES = {
    "walk": (robots.planar_biped(), Walk(pendulum_height=0.96)),
    "trot": (robots.spatial_quadruped(), Trot()),
    "tripod": (robots.hexapod(), Tripod()),
    "crawl": (robots.spatial_quadruped(), Crawl(mass_offset=((0.08, 0.0),) * 4)),
}


def home_of(robot, gait):
    return Stand(hip_height=gait.height).on(robot).reference(0.0)[0]


def skew_legged():
    """Return a quadruped whose legs have no closed form here: yaw, slanted hip and knee axes, sideways links."""
    slanted = np.array([0.1, -1.0, 0.2])
    slanted /= np.linalg.norm(slanted)
    leg = (
        Limb()
        .add(Revolute("yaw", "z"), Link("hip", rod_inertia(0.3, (0, 0, 0), (0.0, 0.02, -0.05))))
        .add(
            Revolute("pitch", slanted),
            Link("thigh", rod_inertia(1, (0, 0, 0), (0.05, 0, -0.25))),
            at=(0.0, 0.02, -0.05),
        )
        .add(
            Revolute("knee", (0, -1, 0)),
            Link("shank", rod_inertia(1, (0, 0, 0), (0, 0.02, -0.3)), {"foot": (0, 0.02, -0.3)}),
            at=(0.05, 0, -0.25),
        )
    )
    robot = RobotBuilder("skew", Link("trunk", legged.box_inertia(4.0, (0.8, 0.4, 0.1))), base=FloatingBase())
    for name, hip in {"rr": (-0.4, -0.2, 0), "rl": (-0.4, 0.2, 0), "fr": (0.4, -0.2, 0), "fl": (0.4, 0.2, 0)}.items():
        robot.attach(leg, to="trunk", at=hip, prefix=f"{name}_")
    return robot.build()


SKEW, SKEW_HOME = skew_legged(), np.tile([0.1, 0.6, -1.1], 4)


@pytest.mark.parametrize("name", CASES)
def test_solutions_are_those_of_the_closed_form(name):
    robot, gait = CASES[name]
    gait = gait.on(robot)
    kinematics = FootKinematics(robot, [c.name for c in robot.contacts])
    wanted, rates, accelerations = gait.reference(0.3 * gait.period)
    q, v = np.concatenate([robot.base.neutral(), wanted]), np.concatenate([np.zeros(robot.base.nv), rates])
    vdot = np.concatenate([np.zeros(robot.base.nv), accelerations])
    positions, velocities = legged.point_motion(robot, q, v, kinematics.points)
    bends = legged.point_accelerations(robot, q, v, vdot, kinematics.points)
    solution = kinematics.solve(positions, home_of(robot, gait))
    np.testing.assert_allclose(solution, wanted, atol=1e-9)
    for part, given in zip(kinematics.rates(solution, velocities, bends), (rates, accelerations), strict=True):
        np.testing.assert_allclose(part, given, atol=1e-7)


def test_positions_rates_and_accelerations_of_a_skew_leg_agree():
    kinematics = FootKinematics(SKEW, ["fl_foot"])
    start = kinematics.positions(SKEW_HOME)

    def place(t):
        return start[0] + np.array([0.06 * np.sin(3 * t), 0.03 * np.cos(3 * t) - 0.03, 0.05 * np.sin(2 * t) ** 2])

    def solve(t):
        return kinematics.solve({"fl_foot": place(t)}, SKEW_HOME)

    _, velocity, acceleration = taylor.derivatives(place(taylor.time(0.4)))
    angles, h = solve(0.4), 1e-3
    rates, bends = kinematics.rates(angles, {"fl_foot": velocity}, {"fl_foot": acceleration})
    around = [solve(0.4 + k * h) for k in (-2, -1, 1, 2)]
    np.testing.assert_allclose(rates, (around[0] - 8 * around[1] + 8 * around[2] - around[3]) / (12 * h), atol=1e-7)
    np.testing.assert_allclose(
        bends, (-around[0] + 16 * (around[1] + around[2]) - around[3] - 30 * angles) / (12 * h**2), atol=1e-4
    )
    np.testing.assert_array_equal(angles[:9], SKEW_HOME[:9])  # legs without a target stay


def test_out_of_reach_is_an_error_that_carries_what_remains():
    kinematics = FootKinematics(SKEW, ["fl_foot", "rr_foot"])
    targets = kinematics.positions(SKEW_HOME)
    targets[0, 2] -= 0.5
    with pytest.raises(ReachError, match=r"put its feet at their targets: 'fl_foot' remains 0\.\d+ m away") as caught:
        kinematics.solve(targets, SKEW_HOME)
    assert caught.value.residual is not None
    assert 0.1 < caught.value.residual < 0.5


def test_open_motions_are_named_and_can_be_held():
    robot = robots.planar_biped()
    angles = home_of(robot, Walk())
    at_ankle = FootKinematics(robot, ["a_heel"])  # one point does not say how the foot is turned
    still = np.zeros((1, 3))
    with pytest.raises(DefinitionError, match="do not determine 1 joint motions in this posture; hold"):
        at_ankle.rates(angles, still, still)
    held = FootKinematics(robot, ["a_heel"], hold=["a_ankle"])
    rates, _ = held.rates(angles, [[0.1, 0, 0]], still)
    assert rates[2] == 0
    np.testing.assert_allclose(held.jacobian(angles) @ rates[:2], [0.1, 0, 0], atol=1e-15)
    with pytest.raises(ReachError, match=r"give the desired motion of the feet: residual 0\.1 m/s"):
        held.rates(angles, [[0, 0.1, 0]], still)  # sideways, out of the plane


def test_wrong_names_and_shapes_are_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'fl_foot'"):
        FootKinematics(SKEW, ["fl_foo"])
    with pytest.raises(UnknownNameError, match="no joint named 'fl_elbow'"):
        FootKinematics(SKEW, ["fl_foot"], hold=["fl_elbow"])
    kinematics = FootKinematics(SKEW, ["fl_foot"])
    with pytest.raises(ShapeError, match=r"targets must be \(1, 3\)"):
        kinematics.solve(np.zeros(3), SKEW_HOME)
    with pytest.raises(ShapeError, match=r"start must be \(12,\)"):
        kinematics.solve(np.zeros((1, 3)), np.zeros(3))
    ball = RobotBuilder("ball", Link("trunk", legged.sphere_inertia(1.0, 0.1)))
    ball.attach(
        Limb().add(Spherical("hip"), Link("leg", legged.sphere_inertia(1.0, 0.1), {"foot": (0, 0, -1)})), to="trunk"
    )
    with pytest.raises(DefinitionError, match="has quaternion ball joints"):
        FootKinematics(ball.build(), ["foot"])


@pytest.mark.parametrize("name", CASES)
def test_a_numerical_gait_is_the_gait_itself_where_that_has_a_closed_form(name):
    robot, gait = CASES[name]
    numerical = NumericalGait(gait, robot, home_of(robot, gait))
    if name == "walk":  # whose base is at another height than its hips, which the pendulum was told
        assert numerical.base_height == pytest.approx(gait.base_height)
    closed = gait.on(robot)
    assert numerical.deviation < 1e-9
    for t in np.linspace(0, gait.cycle * gait.period, 23)[:-1]:
        for part, tolerance in zip(range(3), (1e-9, 1e-6, 1e-3), strict=True):
            actual, wanted = numerical.reference(t)[part], closed.reference(t)[part]
            np.testing.assert_allclose(actual, wanted, atol=tolerance)
        np.testing.assert_allclose(numerical.base(t)[0], closed.base(t)[0], atol=1e-12)
        assert numerical.support(t) == closed.support(t)
    for actual, wanted in zip(numerical.initial_state(robot), closed.initial_state(robot), strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-6)


def test_a_skew_robot_trots_along_the_plan():
    gait = NumericalGait(Trot(stride=0.1, clearance=0.05, period=0.5), SKEW, SKEW_HOME)
    assert isinstance(gait.gait, Trot) and gait.gait.groups == (("rr", "fl"), ("rl", "fr"))
    points = [(c.link, c.position) for c in SKEW.contacts]
    for t in np.linspace(0, 1, 9):
        q = np.concatenate([SKEW.base.configuration(gait.base(t)[0], np.eye(3)), gait.reference(t)[0]])
        np.testing.assert_allclose(legged.point_positions(SKEW, q, points), gait.gait.feet(t)[0], atol=2e-9)
    q, v = gait.initial_state(SKEW)
    np.testing.assert_allclose(legged.point_motion(SKEW, q, v, points)[1], 0, atol=1e-5)


def test_a_numerical_gait_traces_and_takes_many_instants():
    gait = NumericalGait(Trot(stride=0.1, clearance=0.05), SKEW, SKEW_HOME)
    kernel = compiled(lambda t, phase: gait.reference(t, phase), None, t=(), phase=())
    t = np.array([0.2, 0.9, 1.4])
    together = gait.reference(t)
    for i in range(3):
        alone = kernel(t[i], np.floor(t[i]))
        for part in range(3):
            np.testing.assert_allclose(alone[part], together[part][i], atol=1e-9)


def test_a_plan_out_of_reach_is_refused():
    with pytest.raises(ReachError):
        NumericalGait(Trot(stride=0.6), SKEW, SKEW_HOME)
    with pytest.raises(DefinitionError, match="was solved for robot 'skew', not for 'planar biped'"):
        NumericalGait(Trot(stride=0.1), SKEW, SKEW_HOME).initial_state(robots.planar_biped())
