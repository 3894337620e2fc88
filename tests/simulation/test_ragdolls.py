"""Ready-made robots without a controller that fall, and joints near gimbal lock, which warnings and errors name."""

import warnings

import numpy as np
import pytest

import legged
import robots
from legged.dynamics.kinematics import point_jacobian
from legged.errors import DivergenceError
from legged.loops import ClosedRobot
from legged.simulation.checks.gimbal_lock import euler_angles_of, gimbal_lock_text

OF_ANY_SIZE = {"centipede": (2,), "chain": (4,), "star": (3,), "tree": (5,)}
START = np.array([1.0, -0.7, 1.5])
"""Of the four-bar linkage, whose loop is far from closed in the neutral configuration, [rad]."""
LONG, LARGE = ("five_bar_quadruped",), ("delta", "humanoid", "spatial_biped", "hexapod", "centipede")
"""Robots whose tests of both steps, and of the smaller one, are slow: tracing and checking a step takes longest."""
FASTEST = 20.0
"""[1/s]: a link that turns at this rate turns by 20 h in a step h, the relative error of first order at a contact."""


def made(name):
    return getattr(robots, name)(*OF_ANY_SIZE.get(name, ()))


def falling(robot, height, seed):
    """Return the start of a fall: at a height above that of the neutral configuration, with small random rates."""
    tree = robot.robot if isinstance(robot, ClosedRobot) else robot
    q, v = tree.neutral(), 0.3 * np.random.default_rng(seed).normal(size=tree.nv)
    if tree.base.nv:
        q[{3: 2, 7: 6}[tree.base.nq]] = height
    if isinstance(robot, ClosedRobot):
        q = legged.loops.assemble(robot, START if robot.name == "four-bar linkage" else q)
        v = np.zeros(tree.nv)  # which the loops allow
    return q, v


@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(name, step, marks=[pytest.mark.slow] * (name in LONG or (name in LARGE and step < 2e-3)))
        for name in robots.__all__
        for step in (2e-3, 1e-3)
    ],
)
def test_the_energy_of_a_falling_robot_does_not_rise_by_more_than_the_error_of_its_steps(name, step):
    """The error is proportional to the step, relative to the energy that the motion moves."""
    robot = made(name)
    starts = [falling(robot, height, seed) for seed, height in enumerate((1.0, 1.5, 2.0))]
    q, v = (np.stack(rows) for rows in zip(*starts, strict=True))
    options = {"ground": legged.Rigid(), "until": 2.0, "fall": False, "integrator": legged.TimeStepping(step)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the residuals of contacts
        runs = legged.rollout(robot, q=q, v=v, **options)
    assert not any(runs.reasons)
    for i in range(len(q)):
        energy = runs.run(i).energy
        works = energy.actuator_work, energy.contact_work, energy.push_work, energy.joint_work
        moved = energy.kinetic.max() + sum(np.abs(np.diff(work)).sum() for work in works)
        rise = (energy.balance - np.minimum.accumulate(energy.balance)).max()
        assert rise <= FASTEST * step * moved, f"member {i}: {rise / moved:.3g}"


def hand(*joints):
    """Return a hand on joints in succession without mass between them."""
    builder, above = legged.RobotBuilder("arm", legged.Link("forearm"), base=legged.FixedBase()), "forearm"
    for k, joint in enumerate(joints):
        link = legged.Link(f"ring{k}")
        if k == len(joints) - 1:
            link = legged.Link("hand", legged.box_inertia(0.4, (0.08, 0.03, 0.18), (0.0, 0.0, -0.09)))
        builder.add(joint, link, to=above)
        above = link.name
    return builder.build()


def turned(joint, *v, step=1e-3):
    """Return the run of a hand that turns by 20 rad/s through or near lock, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"ground": legged.Rigid(), "integrator": legged.TimeStepping(step)}
        return legged.simulate(hand(joint), v=v, until=2.0, **options), [str(w.message) for w in caught]


def test_a_motion_near_gimbal_lock_is_named_with_the_remedies_that_help():
    """The energy rises by 5 % there, and by a thousandth of it with a quaternion or stops."""
    near = 0.3, 20.0, 0.0
    run, texts = turned(legged.Spherical("wrist", "zxy"), *near)
    assert run.warnings == tuple(texts) and "joint 'wrist' came near gimbal lock" in texts[0]
    with pytest.raises(
        DivergenceError, match=r"joint 'wrist' came near gimbal lock, .*q\[1\], fell to 0.*lower, upper"
    ):
        turned(legged.Spherical("wrist", "zxy"), *near, step=2e-3)
    stops = legged.JointPhysics(lower=[-np.inf, -1.2, -np.inf], upper=[np.inf, 1.2, np.inf])
    for joint, v in (
        (legged.Spherical("wrist"), (20.0, 0.0, 0.3)),
        (legged.Spherical("wrist", "zxy", physics=stops), near),
    ):
        run, texts = turned(joint, *v)
        assert not texts and run.energy_drift < 1e-3 * run.energy.kinetic.max() + abs(run.energy.joint_work[-1])


def test_a_simulation_that_diverges_near_gimbal_lock_names_the_joint():
    sim = legged.Simulation(
        hand(legged.Spherical("wrist", "zxy")),
        ground=legged.Rigid(),
        v=[0.3, 20.0, 0.0],
        integrator=legged.TimeStepping(2e-3),
    )
    for _ in range(200):
        sim.step()
    assert "diverged" in sim.reasons[0] and "joint 'wrist' may have come near gimbal lock" in sim.reasons[0]


@pytest.mark.parametrize("sequence", ["zxy", "zyx", "yxz", "zxz", "xyx"])
def test_the_distance_from_lock_is_the_determinant_of_the_axes(sequence):
    axes = [legged.Revolute(f"axis{k}", letter) for k, letter in enumerate(sequence)]
    trunk = legged.Link("trunk", legged.box_inertia(9.0, (0.2, 0.3, 0.4)))
    rotating = legged.RobotBuilder("trunk", trunk, base=legged.EulerBase(sequence)).build()
    for robot in (hand(legged.Spherical("wrist", sequence)), hand(*axes), rotating):
        (angles,) = euler_angles_of(robot)
        for q in np.random.default_rng(0).uniform(-3.0, 3.0, (5, robot.nq)):
            J = np.asarray(point_jacobian(robot, q, robot.links[-1].name))[:3, :3]
            assert angles.distance(q[None]) == pytest.approx(abs(np.linalg.det(J)), abs=1e-14)
            assert list(angles.v) == [0, 1, 2]


def test_lock_between_two_samples_is_found_and_armature_prevents_it():
    robot, q = hand(legged.Spherical("wrist", "zxy")), np.zeros((2, 3))
    q[:, 1] = 1.0, 2.1
    assert "fell to 0;" in gimbal_lock_text(robot, q)
    assert gimbal_lock_text(robot, q[:1]) == ""
    for joint in (
        legged.Spherical("wrist", "zxy", physics=legged.JointPhysics(armature=0.1)),
        legged.Spherical("wrist"),
    ):
        assert not list(euler_angles_of(hand(joint)))
