"""Whole-body control alone holds standing robots: set points that move, pushes, a slope, and motors at their limits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from oracles.urdfs import all_urdfs

import controllers
import legged
import robots
from controllers.locomotion.torques.tasks import Tracking, WholeBodyModel, link_pose, posture
from controllers.locomotion.torques.whole_body import Contact, JointLimits, whole_body
from legged.contact.rigid import Rigid
from legged.ground.ground import contact_motion
from legged.ground.terrain import Slope
from legged.rotations import axis_matrix

FILES = all_urdfs()
ANGLE = np.radians(15.0)
UNTIL = 3.0  # [s]


@dataclass(frozen=True, eq=False)
class Standing:
    """A law whose base moves about its initial pose: height, sideways and pitch, as (1 - cos(2 t)) / 2 of amplitudes.

    Its memory holds the joint torques, the residual and the iterate.
    """

    lift: float = 0.0
    sway: float = 0.0
    pitch: float = 0.0
    effort: float = 1.0  # part of the motors' torque that may be used
    slope: float = 0.0
    robot: Any = None
    home: Any = None

    def start(self, robot, ground, q, v):
        law = replace(self, robot=robot, home=q.copy())
        return law, law._memory(0.0, q, v, None)

    def offset(self, t):
        """Return (offset (3,), pitch, velocity (6,), acceleration (6,)) of the base at a time."""
        amplitudes = np.array([0.0, self.pitch, 0.0, 0.0, self.sway, self.lift])
        s, sd, sdd = 0.5 * (1.0 - np.cos(2.0 * t)), np.sin(2.0 * t), 2.0 * np.cos(2.0 * t)
        return s * amplitudes[3:], s * self.pitch, sd * amplitudes, sdd * amplitudes

    def update(self, t, phase, q, v, wrenches, memory):
        return self._memory(t, q, v, memory[self.robot.nj + 1 :])

    def torque(self, t, phase, q, v, wrenches, memory):
        return memory[: self.robot.nj]

    def _memory(self, t, q, v, start):
        robot, base = self.robot, self.robot.base
        model, limits = WholeBodyModel(robot, q, v), JointLimits.of(robot)
        limits = replace(limits, torque=self.effort * limits.torque)
        axes = axis_matrix("y", -self.slope)
        contacts = [Contact(c.link, c.position, 1.0, 0.6, axes, most=20.0 * robot.mass) for c in robot.contacts]
        R, origin = base.pose(self.home)
        move, pitch, velocity, acceleration = self.offset(t)
        pose = link_pose(model, 0, origin + move, R @ axis_matrix("y", pitch), Tracking(velocity, acceleration))
        result = whole_body(model, contacts, [pose, posture(model, self.home[base.nq :])], limits, start)
        return np.concatenate([result.tau, [result.residual], result.iterate])


def standing(robot):
    home = controllers.home_of(robot)
    return controllers.Posture(tuple(home.angles), home.base_height).initial_state(robot)


def upright_on_slope(robot, q):
    """Return q with ankles turned so that the soles lie on the slope, and the base upright."""
    q = q.copy()
    for joint in robot.joints:
        if "ankle_pitch" in joint.name:
            q[joint.q] += -ANGLE
    points, _ = contact_motion(robot, q, np.zeros(robot.nv))
    q[6] -= np.mean(points[:, 2] - np.tan(ANGLE) * points[:, 0])
    return q


def inclined(q):
    """Return q turned about the world's origin with the slope."""
    q, R = q.copy(), axis_matrix("y", -ANGLE)
    q[:7] = legged.FloatingBase().configuration(R @ q[4:7], R)
    return q


def check_standing(robot, on_slope, lift, sway, pitch, push, drop):
    """Check six members of one compiled rollout: at rest, moving, pushed sideways, on a slope, pushed down twice.

    The motors of the fifth member have 1.3 times the torque that it needs at rest. The sixth has all of its torque and
    shows that the push down, a change of velocity by `drop` [m/s], needs more than that.
    """
    q, v = standing(robot)
    limits, (_, memory) = JointLimits.of(robot), Standing().start(robot, None, q, v)
    effort = 1.3 * float(np.abs(memory[: robot.nj] / limits.torque).max())
    amplitudes = np.zeros((6, 3))
    amplitudes[1] = lift, sway, pitch
    impulses = np.zeros((6, 3))
    impulses[2, 1], impulses[4:, 2] = robot.mass * push, -robot.mass * drop
    angles = np.array([0.0, 0.0, 0.0, ANGLE, 0.0, 0.0])
    runs = legged.rollout(
        robot,
        controllers.ZeroOrderHold(Standing(), rate=500.0),
        until=UNTIL,
        ground=Rigid(terrain=Slope(0.0)),
        q=np.array([q, q, q, on_slope(q), q, q]),
        v=v,
        pushes=[legged.Push(robot.links[0].name, (0.0, 0.0, 0.0), at=1.0)],
        integrator=legged.TimeStepping(step=1e-3),
        vary={
            "ground.terrain.angle": angles,
            "controller.law.slope": angles,
            "controller.law.lift": amplitudes[:, 0],
            "controller.law.sway": amplitudes[:, 1],
            "controller.law.pitch": amplitudes[:, 2],
            "controller.law.effort": np.array([1.0, 1.0, 1.0, 1.0, effort, 1.0]),
            "pushes.0.impulse": impulses,
        },
        compiled=True,
    )
    assert not runs.fallen.any()
    offsets = np.array([[Standing(*own).offset(t)[0] for t in runs.times] for own in amplitudes])
    errors = np.abs(runs.q[:, :, 4:7] - runs.q[:, :1, 4:7] - offsets)
    torques, residuals = np.split(runs.rest[:, :, robot.nv : robot.nv + robot.nj + 1], [robot.nj], axis=2)
    used = np.abs(torques / limits.torque).max(axis=(1, 2))
    still, moving, pushed, slope, limited, _ = errors
    assert still.max() < 1e-3 and slope.max() < 1e-3  # [m], while the contact forces settle
    assert moving.max() < 2e-3  # [m]: torques are held for 2 ms, and the posture has a weight of 1e-4
    assert pushed.max() > 5e-3 and limited.max() > 5e-3
    assert pushed[-1].max() < 2e-3 and limited[-1].max() < 2e-3  # two seconds later, 10 time constants
    assert residuals.max() < 1e-5
    assert used[4] == pytest.approx(effort, rel=1e-3) and effort < used[5] and used[[0, 1, 2, 3, 5]].max() < 1.0


def test_a_planar_biped_follows_moving_set_points():
    robot = robots.planar_biped()
    q, v = controllers.Stand(hip_height=0.9).initial_state(robot)
    law = Standing(lift=-0.05, pitch=0.1)
    options = {"ground": Rigid(), "q": q, "v": v, "integrator": legged.TimeStepping(step=2e-3)}
    run = legged.simulate(robot, law, until=0.8, compiled=True, **options)
    offsets = np.array([law.offset(t)[0] for t in run.times])
    np.testing.assert_allclose(run.base.position - run.base.position[0], offsets, atol=2e-3)  # [m], see above
    assert run.memory[:, robot.nj].max() < 1e-5


def loaded(word):
    return legged.load(next(path for name, path in FILES.items() if word in name))


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
def test_go2_stands():
    check_standing(loaded("go2/"), inclined, -0.06, 0.04, 0.2, 0.5, 0.35)


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="example_robot_data, of the extra test, is not installed")
def test_g1_stands():
    robot = loaded("g1/g1_29dof_rev")
    check_standing(robot, lambda q: upright_on_slope(robot, q), -0.06, 0.03, 0.1, 0.2, 0.6)
