"""Control laws at single states: torques, memory, gains, errors, and definitions that `start` does not change."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import controllers
import legged
import robots
from controllers import ComputedTorque, FeedForward, JointPD, JointPID, OpenLoop, Posture, Trot, paper_trot, paper_walk
from legged.compiler import compile as compiled
from legged.errors import ArgumentError, DefinitionError, LeggedError, NotFiniteError, ReachError, ShapeError
from legged.ground import paper_ground
from legged.ground.ground import contact_motion, contact_wrenches

CASES = {
    "biped": (robots.planar_biped(), paper_walk()),
    "quadruped": (robots.spatial_quadruped(), paper_trot()),
    "Euler quadruped": (robots.spatial_quadruped(legged.EulerBase("xyz")), paper_trot()),
    "fixed quadruped": (robots.spatial_quadruped(legged.FixedBase()), paper_trot()),
}
LAWS = {"computed torque": ComputedTorque, "feed-forward": FeedForward, "PD": JointPD, "PID": JointPID}
each_case = pytest.mark.parametrize("robot, gait", CASES.values(), ids=CASES)


def started(law, robot, ground=None):
    """Return (started law, initial q, initial v, memory) of a law on its gait."""
    q, v = law.initial_state(robot)
    law, memory = law.start(robot, ground, q, v)
    return law, q, v, memory


def disturbed(robot, q, v, seed):
    """Return a state near (q, v), and wrenches on the links."""
    rng = np.random.default_rng(seed)
    near = legged.integrate(robot, q, rng.normal(size=robot.nv) * 0.05)
    return near, v + rng.normal(size=robot.nv) * 0.3, rng.normal(size=(len(robot.links), 6))


@each_case
def test_computed_torque_makes_joint_errors_linear_whatever_acts_on_the_robot(robot, gait):
    law, q, v, memory = started(ComputedTorque(gait, kp=30.0, kd=7.0), robot)
    for seed in range(3):
        near, speed, wrenches = disturbed(robot, q, v, seed)
        tau = law.torque(0.3, 0, near, speed, wrenches, memory)
        vdot = legged.forward_dynamics(robot, near, speed, tau, wrenches)
        wanted, rates, accelerations = law.reference(0.3, 0)
        e, ed = wanted - near[robot.base.nq :], rates - speed[robot.base.nv :]
        np.testing.assert_allclose(vdot[robot.base.nv :], accelerations + 30 * e + 7 * ed, rtol=1e-9, atol=1e-9)
        np.testing.assert_array_equal(tau[: robot.base.nv], 0)


def test_computed_torque_is_critically_damped_unless_told_otherwise():
    robot, gait = CASES["biped"]
    default, q, v, memory = started(ComputedTorque(gait), robot)
    given, *_ = started(ComputedTorque(gait, kp=49.0, kd=14.0), robot)
    near, speed, wrenches = disturbed(robot, q, v, 1)
    torques = [law.torque(0.3, 0, near, speed, wrenches, memory) for law in (default, given)]
    np.testing.assert_allclose(*torques, rtol=1e-14)


@each_case
def test_feed_forward_and_computed_torque_agree_on_the_gait(robot, gait):
    ground = paper_ground(robot)
    first, q, v, memory = started(FeedForward(gait), robot, ground)
    laws = first, *(started(law, robot, ground)[0] for law in (ComputedTorque(gait), OpenLoop(gait)))
    forces, _ = ground.forces(*contact_motion(robot, q, v))
    wrenches = contact_wrenches(robot, q, forces)
    torques = [law.torque(0.0, 0, q, v, wrenches, memory) for law in laws]
    np.testing.assert_allclose(torques[0], torques[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(torques[2], torques[1], rtol=1e-9, atol=1e-9)


@each_case
def test_the_reference_base_of_feed_forward_moves_as_forward_dynamics_says(robot, gait):
    ground = paper_ground(robot)
    law, q, v, memory = started(FeedForward(gait), robot, ground)
    near, speed, _ = disturbed(robot, q, v, 2)
    n = robot.base.nq + robot.base.nv
    moved = np.concatenate([near[: robot.base.nq], speed[: robot.base.nv]])
    reference_q, reference_v = law.reference_state(0.4, 0, moved)
    wrenches = contact_wrenches(robot, reference_q, ground.forces(*contact_motion(robot, reference_q, reference_v))[0])
    tau = OpenLoop.torque(law, 0.4, 0, reference_q, reference_v, wrenches, moved)
    vdot = legged.forward_dynamics(robot, reference_q, reference_v, tau, wrenches)
    rate = law.rate(0.4, 0, q, v, np.zeros((len(robot.links), 6)), moved)
    assert rate.shape == memory.shape == (n,)
    qd = legged.configuration_rate(robot, reference_q, reference_v)
    np.testing.assert_allclose(rate, np.concatenate([qd[: robot.base.nq], vdot[: robot.base.nv]]), rtol=1e-8, atol=1e-8)


def test_feed_forward_takes_a_quaternion_that_has_drifted_in_length():
    robot, gait = CASES["quadruped"]
    law, _, _, memory = started(FeedForward(gait), robot)
    stretched = memory.copy()
    stretched[:4] *= 1.01
    for a, b in zip(law.reference_state(0.1, 0, stretched), law.reference_state(0.1, 0, memory), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-15)


def test_open_loop_does_not_look_at_the_robot_and_feed_forward_does():
    robot, gait = CASES["biped"]
    open_loop, q, v, memory = started(OpenLoop(gait), robot)
    closed, *_ = started(FeedForward(gait, kp=49.0, kd=14.0), robot)
    near, speed, wrenches = disturbed(robot, q, v, 3)
    undisturbed = open_loop.torque(0.3, 0, q, v, wrenches, memory)
    np.testing.assert_array_equal(open_loop.torque(0.3, 0, near, speed, 0 * wrenches, memory), undisturbed)
    wanted, rates, _ = closed.reference(0.3, 0)
    feedback = 49 * (wanted - near[3:]) + 14 * (rates - speed[3:])
    np.testing.assert_allclose(
        closed.torque(0.3, 0, near, speed, wrenches, memory)[3:] - undisturbed[3:], feedback, rtol=1e-12, atol=1e-12
    )


def test_feed_forward_remembers_the_grounds_memory_too():
    robot, gait = CASES["quadruped"]
    ground = legged.ground.realistic_ground(robot, stick=True)
    law, q, v, memory = started(FeedForward(gait), robot, ground)
    size = len(ground.memory(len(robot.contacts)))
    assert size > 0
    assert memory.shape == (7 + 6 + size,)
    assert law.rate(0.1, 0, q, v, np.zeros((len(robot.links), 6)), memory).shape == memory.shape


def test_servos_are_springs_dampers_and_integrals():
    robot, gait = CASES["quadruped"]
    kp, kd, ki = (np.random.default_rng(4).uniform(1, 9, 12) for _ in range(3))
    pd, q, v, empty = started(JointPD(gait, kp=kp, kd=kd), robot)
    pid, _, _, memory = started(JointPID(gait, kp=kp, kd=kd, ki=ki), robot)
    assert empty.shape == (0,)
    np.testing.assert_array_equal(memory, np.zeros(12))
    near, speed, wrenches = disturbed(robot, q, v, 5)
    wanted, rates, _ = pd.reference(0.3, 0)
    e, ed = wanted - near[7:], rates - speed[6:]
    tau = pd.torque(0.3, 0, near, speed, wrenches, empty)
    np.testing.assert_allclose(tau, [0] * 6 + list(kp * e + kd * ed), rtol=1e-13)
    memory = np.linspace(-1, 1, 12)
    np.testing.assert_allclose(pid.torque(0.3, 0, near, speed, wrenches, memory) - tau, [0] * 6 + list(ki * memory))
    np.testing.assert_allclose(pid.rate(0.3, 0, near, speed, wrenches, memory), e)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@each_case
def test_traced_torques_and_rates_are_those_of_plain_numbers(robot, gait, law):
    ground = paper_ground(robot)
    law, q, v, memory = started(law(gait), robot, ground)

    def both(t, phase, q, v, wrenches, memory):
        known = t, phase, q, v, wrenches, memory
        return law.torque(*known), law.rate(*known)

    links = len(robot.links)
    shapes = {"q": (robot.nq,), "v": (robot.nv,), "wrenches": (links, 6), "memory": (len(memory),)}
    kernel = compiled(both, None, t=(), phase=(), **shapes)
    near, speed, wrenches = disturbed(robot, q, v, 6)
    for t, phase in ((0.3, 0), (1.4, 1)):
        plain = both(t, phase, near, speed, wrenches, memory)
        for a, b in zip(kernel(t, float(phase), near, speed, wrenches, memory), plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_definition_is_immutable_and_serves_several_robots(law):
    quadruped, euler = CASES["quadruped"][0], CASES["Euler quadruped"][0]
    definition = law(Trot())
    fields = dict(vars(definition))
    first, _, _, memory = started(definition, quadruped)
    second, *_ = started(definition, euler)
    assert memory.size == 0 or law in (JointPID, FeedForward)  # which integrate errors, and the reference base
    assert vars(definition) == fields
    assert (first.robot, second.robot) == (quadruped, euler)
    with pytest.raises(FrozenInstanceError):
        definition.gait = None


def test_a_law_asks_its_gait_for_switches_references_and_the_start():
    robot, gait = CASES["biped"]
    law = ComputedTorque(gait)
    np.testing.assert_array_equal(law.switches(3.5), gait.switches(3.5))
    for a, b in zip(law.initial_state(robot), gait.initial_state(robot), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(law.reference(0.2)[0], gait.reference(0.2)[0])


def test_a_gait_of_ones_own_needs_three_methods():
    class Nod:
        def reference(self, t, phase=None):
            return 0.1 * np.sin(t) * np.ones(6), 0.1 * np.cos(t) * np.ones(6), -0.1 * np.sin(t) * np.ones(6)

        def switches(self, until):
            return np.zeros(0)

        def initial_state(self, robot):
            return robot.neutral(), np.zeros(robot.nv)

    robot = robots.planar_biped()
    law, q, v, memory = started(ComputedTorque(Nod()), robot)
    tau = law.torque(0.5, 0, q, v, np.zeros((7, 6)), memory)
    vdot = legged.forward_dynamics(robot, q, v, tau)
    expected = -0.1 * np.sin(0.5) + 49 * 0.1 * np.sin(0.5) + 14 * 0.1 * np.cos(0.5)
    np.testing.assert_allclose(vdot[3:], expected, rtol=1e-10)


@pytest.mark.parametrize(
    "gains, error, words",
    [
        (
            {"kp": np.ones(5)},
            ShapeError,
            r"kp must be one number or \(6,\), .* got shape \(5,\)",
        ),
        ({"kd": np.ones((6, 6))}, ShapeError, r"kd must be one number or \(6,\)"),
        ({"kp": np.nan}, NotFiniteError, "kp must be finite"),
        ({"kd": [1, 2, 3, 4, 5, -6]}, DefinitionError, r"kd must not be negative, got -6\.0"),
    ],
)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_gains_of_the_wrong_kind_are_refused(law, gains, error, words):
    robot, gait = CASES["biped"]
    with pytest.raises(error, match=words):
        started(law(gait, **gains), robot)


def test_laws_refuse_what_they_cannot_follow():
    robot = robots.planar_biped()
    with pytest.raises(LeggedError, match="this ComputedTorque has no robot; use the law that start"):
        ComputedTorque(paper_walk()).torque(0.0, 0, np.zeros(9), np.zeros(9), np.zeros((7, 6)), np.zeros(0))
    with pytest.raises(ReachError):
        started(ComputedTorque(Trot(stride=0.9)), robots.spatial_quadruped())
    law = JointPD(Posture(np.zeros(4)))
    with pytest.raises(ShapeError, match=r"the gait's references must be \(6,\), .* got \(4,\)"):
        law.start(robot, None, robot.neutral(), np.zeros(9))


@pytest.mark.parametrize(
    "make",
    [
        lambda: controllers.Balanced(controllers.Trot(), attitude=(-100.0, 20.0)),
        lambda: controllers.Balanced(controllers.Trot(), gain=-3.0),
        lambda: controllers.PointTask("shin", lambda t: np.zeros(3), gains=(400.0, -40.0)),
        lambda: controllers.PoseTask("trunk", lambda t: np.zeros(3), orientation_gains=(-1.0, 0.0)),
        lambda: controllers.OperationalSpaceControl(controllers.Stand(), foot=-20.0),
    ],
)
def test_negative_gains_are_refused(make):
    with pytest.raises(ArgumentError, match="must be at least 0"):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: JointPD(Trot(), kp=-1.0),
        lambda: JointPD(Trot(), kd=[10.0] * 7 + [-1.0]),
        lambda: controllers.JointPID(Trot(), ki=-1.0),
        lambda: ComputedTorque(Trot(), kp=-49.0),
        lambda: ComputedTorque(Trot(), kd=-14.0),
        lambda: controllers.FeedForward(Trot(), kp=-49.0),
        lambda: controllers.OpenLoop(Trot(), kd=-1e-3),
        lambda: controllers.Balanced(Trot(), reach=-0.8),
        lambda: controllers.Balanced(Trot(), tracking=-0.5),
        lambda: controllers.WorkspaceBalance(kp=-50.0),
        lambda: controllers.WorkspaceBalance(kv=(7.0, 7.0, -14.0)),
        lambda: controllers.WorkspaceBalance(kp_orientation=-50.0),
        lambda: controllers.WorkspaceBalance(posture=(100.0, -20.0)),
        lambda: controllers.WorkspaceBalance(touch=-0.02),
        lambda: controllers.SensorNoise(None, velocity=-0.1),
        lambda: controllers.SensorNoise(None, position=[0.1, -0.1]),
        lambda: controllers.ActuatorLimits(None, -5.0),
        lambda: controllers.ActuatorLimits(None, 5.0, speed=-2.0),
        lambda: controllers.ActuatorLag(None, -0.1),
        lambda: controllers.FaceContact("hand", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), force=-5.0),
        lambda: controllers.Walk(pendulum_height=-0.5),
    ],
)
def test_negative_numbers_are_refused_where_a_law_is_defined(make):
    with pytest.raises((ArgumentError, DefinitionError), match=r"negative|at least 0|positive"):
        make()


def test_biases_of_sensors_may_be_negative():
    controllers.SensorNoise(JointPD(Trot()), position_bias=-0.1, velocity_bias=-0.1)
