"""Standing postures and limits of two legs whose joints lose torque to viscous friction."""

import numpy as np
import pytest
from oracles.standing import shared_biped

import controllers
import legged
from controllers.locomotion import started_locomotion
from controllers.locomotion.fitting import standing_parts
from controllers.locomotion.gait.posture import damped_speeds, standing_posture
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from legged.dynamics.kinematics import point_jacobian
from legged.dynamics.passive import without_friction


def braked(share: float):
    """Return a biped whose hip yaw spends a share of its torque on friction in the fastest turn of two legs."""
    robot = shared_biped()
    parts = standing_parts(robot)
    yaws = [joint for joint in robot.joints if "hip_z" in joint.name]
    column = yaws[0].v.start - robot.base.nv
    damping = share * JointLimits.of(robot).torque[column] / parts[4][2]
    return robot.with_parameters({f"{joint.name}.damping": float(damping) for joint in yaws}), parts


def hip_share(home) -> float:
    return home.hip_height / min(leg.length for leg in home.legs)


def test_hips_are_higher_where_feet_that_move_to_the_side_need_more_speed_than_a_hip_yaw_has():
    """Under a bent knee the axis of ankle roll is inclined, and a foot kept level turns."""
    for share, height in ((0.5, 0.82), (2.5, 0.94)):
        robot, _ = braked(share)
        home = standing_parts(robot)[0]
        assert hip_share(home) == pytest.approx(height, abs=0.005)


def test_weak_legs_are_not_stretched_to_where_soles_stand_turned():
    """At 0.97 of its length a leg of this robot, 0.94 m, stands on a sole that hip and ankle turn by 0.7 rad."""
    robot, weak = shared_biped(), 5.0
    efforts = {f"{joint.name}.effort": joint.definition.physics.effort / weak for joint in robot.joints}
    home = standing_posture(robot.with_parameters(efforts))
    assert hip_share(home) == pytest.approx(0.92, abs=0.005)
    turns = [angle for joint, angle in zip(robot.joints, home.angles, strict=True) if "hip_z" in joint.name]
    assert turns == pytest.approx([0.0, 0.0], abs=1e-6)


def test_friction_takes_at_most_half_of_the_torque_of_a_hip_yaw_in_the_fastest_turn():
    for share in (0.4, 0.8, 2.0):
        robot, usual = braked(share)
        home, planner, _, _, fastest = standing_parts(robot)
        q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
        foot, n0 = planner.feet[0], robot.base.nv
        J = point_jacobian(robot, q, foot.link, foot.sole)
        legs = [n0 + k for k in foot.columns]
        v = np.zeros(robot.nv)
        v[:n0] = robot.base.velocity(q[: robot.base.nq], np.array([0.0, 0.0, fastest[2]]), np.zeros(3))
        v[legs] = np.linalg.solve(J[:, legs], -J @ v)  # the foot is at rest
        friction = legged.inverse_dynamics(robot, q, v, v) - legged.inverse_dynamics(without_friction(robot), q, v, v)
        load = np.abs(friction[n0:] / JointLimits.of(robot).torque).max()
        assert load == pytest.approx(min(0.5, load))
        weights = foot.turn_weights
        assert weights[:2] == pytest.approx(np.ones(2))
        if fastest[2] < 0.99 * usual[4][2]:
            assert load == pytest.approx(0.5) and weights[2] < 0.99
        else:
            assert share == 0.4 and weights[2] == 1.0


def test_friction_of_coupled_joints_adds_up():
    """The power that friction takes is 3 v^2 of the knee and 8 (v / 2)^2 of the ankle that follows it."""
    robot = shared_biped()
    knee, ankle = (next(joint.name for joint in robot.joints if part in joint.name) for part in ("knee", "ankle_y"))
    coupled = robot.edit().couple(ankle, knee, -0.5).build()
    column = coupled.joint(knee).v.start - robot.base.nv
    damped = coupled.with_parameters({f"{knee}.damping": 3.0, f"{ankle}.damping": 8.0})
    speeds = damped_speeds(damped)
    assert speeds[column] == pytest.approx(JointLimits.of(damped).torque[column] / (3.0 + 0.25 * 8.0))
    assert np.isinf(np.delete(speeds, column)).all()


def test_the_law_counts_on_friction_at_the_end_of_its_period(monkeypatch):
    held = []

    class Recorded(WholeBodyModel):
        def __init__(self, *args, **given):
            super().__init__(*args, **given)
            held.append(self.held)

    robot = shared_biped()
    law = controllers.Locomotion("walk", rate=250.0)
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)
    monkeypatch.setattr(started_locomotion, "WholeBodyModel", Recorded)
    started.update(0.0, 0.0, q, v, np.zeros((len(robot.links), 6)), memory)
    assert held == [1.0 / 250.0]
