"""Motions of G1: a jump, and a deep squat from and to standing."""

from __future__ import annotations

import numpy as np

import legged
from examples.optimization.motions.planning import Array, Nodes, Plan, PlannedRobot, loaded, rates, terms
from legged import optimization as oc

EFFORT, CORNER = 1.0, 0.6  # largest torque over that of the URDF, and speed up to which it is available, over no-load
SOLE = 0.09, 0.025  # half of the length and of the width on which the center of pressure stays, [m]
SQUAT = 0.38  # height of the pelvis in a deep squat, [m]
LEGS = np.array([0.01, 1.0, 1.0, 0.01, 0.01, 1.0] * 2 + [1.0] * 17)  # of joint positions in the squat
SOFT_JOINTS = np.repeat([1.0, 0.2, 1.0], [6, 29, 35])  # for regulator weights: base, joints, velocities
SOLE_CENTER = 0.035, 0.0, -0.035  # in the axes of the ankle, [m]


def soles(robot: legged.Robot) -> list[oc.Contact]:
    """Return surface contacts at the centers of both soles."""
    return [
        oc.Contact(legged.Frame(f"{side}_ankle_roll_link", SOLE_CENTER), surface=True, name=f"{side} sole")
        for side in ("left", "right")
    ]


def pressure_margins(robot: legged.Robot, at: oc.Point, contact: str, length: object, width: object) -> Array:
    """Return the margins of the center of pressure in a level sole, (4,), [N m]."""
    n, f = at.forces[contact][:3], at.forces[contact][3:]
    return np.array([length * f[2] + n[1], length * f[2] - n[1], width * f[2] + n[0], width * f[2] - n[0]])


class G1(PlannedRobot):
    """G1 of example-robot-data with 29 joints.

    The maker's curves fall from 0.55 to 0.77 of the speed without load.

    Source: Unitree, unitree_rl_lab, UnitreeActuatorCfg_N7520_14p3, N7520_22p5 and N5020_16.
    """

    damping = np.array([0.1] * 6 + [0.02] * 29)
    control = 5e-4
    tracking = 0.1 * np.array([400.0] * 3 + [400.0] * 3 + [40.0] * 29 + [10.0] * 6 + [0.2] * 29)

    def __init__(self) -> None:
        legs, arms = [-0.3, 0.0, 0.0, 0.6, -0.3, 0.0], [0.2, 0.2, 0.0, 0.9, 0.0, 0.0, 0.0]
        joints = [*legs, *legs, 0.0, 0.0, 0.0, *arms, 0.2, -0.2, *arms[2:]]
        super().__init__(loaded("g1_29dof_rev_1_0.urdf"), soles, joints, EFFORT, CORNER)
        self.body_costs = []
        self.gait = "walk"

    def contact_costs(self, foot: oc.Contact) -> list[oc.Term]:
        """Return the costs of the force on a sole and of its center of pressure."""
        sole = {"contact": foot.name, "length": SOLE[0], "width": SOLE[1]}
        return [*super().contact_costs(foot), oc.Cost(pressure_margins, 10.0, barrier=True, **sole)]

    def bent(self, knee: float) -> Array:
        """Return a configuration with bent knees, the center of mass above the middle of the soles."""
        joints = self.joints.copy()
        lean = 0.0
        for _ in range(30):
            for first in (0, 6):
                joints[first], joints[first + 3], joints[first + 4] = -0.5 * knee - lean, knee, -0.5 * knee
            q = self.placed(joints, np.array([np.cos(0.5 * lean), 0.0, np.sin(0.5 * lean), 0.0]))
            error = legged.center_of_mass(self.robot, q)[0] - self.middle(q)
            lean -= 0.5 * error
        return q

    def middle(self, q: Array) -> float:
        """Return x of the centers of the soles, [m]."""
        return float(legged.frame_pose(self.robot, q, self.feet[0].frame).position[0])


def jump(robot: G1) -> Plan:
    """Return a jump forward by 0.2 m."""
    start = robot.bent(0.6)
    robot.joints = start[7:]
    end = start.copy()
    end[4] += 0.2
    push, flight = 30, 14
    level = oc.Cost(terms.base_rotation, 50.0, quaternion=start[:4])
    nodes: Nodes = [robot.stage(robot.feet, level, phase="push")] * push
    above = [oc.Cost(terms.clearance, 1e4, barrier=True, frame=f.frame, height=0.0) for f in robot.feet]
    nodes += [robot.stage([], level, *above, phase="flight")] * flight
    flat = [
        oc.Cost(
            terms.frame_placement,
            np.array([200.0] * 3 + [0.0, 0.0, 1e3]),
            frame=f.frame,
            rotation=np.eye(3),
            position=np.zeros(3),
        )
        for f in robot.feet
    ]
    soft = [
        oc.Cost(terms.frame_velocity, np.array([0.0] * 3 + [0.02] * 3), frame=f.frame, twist=np.zeros(6))
        for f in robot.feet
    ]
    place = oc.Cost(terms.base_position, np.array([50.0, 50.0, 5.0]), position=end[4:7])
    nodes += [oc.Impact(robot.feet, [*flat, *soft]), *[robot.stage(robot.feet, level, place)] * 40]
    q = np.tile(start, (len(nodes) + 1, 1))
    share = np.clip((np.arange(len(q)) - push) / flight, 0.0, 1.0)
    q[:, 4] += 0.2 * share
    q[:, 6] += 0.4 * share * (1 - share)
    problem = robot.problem(nodes, end, start, (0.7, 1.3))
    return Plan(problem, q, rates(robot.robot, q, nodes), late=0.04, settle=0.4)


def squat(robot: G1) -> Plan:
    """Return the plan of a deep squat: down from standing, a rest of 0.5 s, and up again."""
    start = robot.bent(0.6)
    robot.joints, robot.tracking = start[7:], robot.tracking * SOFT_JOINTS
    move, rest = 60, 25
    share = 0.5 - 0.5 * np.cos(np.pi * (np.arange(move) + 1) / move)
    shares = np.concatenate([share, np.ones(rest), share[::-1], np.zeros(rest)])
    lean = oc.Cost(terms.base_rotation, np.array([50.0, 1.0, 50.0]), quaternion=start[:4])
    nodes: Nodes = []
    for z in start[6] + shares * (SQUAT - start[6]):
        place = oc.Cost(terms.base_position, np.array([5.0, 50.0, 500.0]), position=[*start[4:6], z])
        nodes.append(robot.stage(robot.feet, place, lean, weight=LEGS))
    q = np.tile(start, (len(nodes) + 1, 1))
    return Plan(robot.problem(nodes, start, start), q, rates(robot.robot, q, nodes))


MOTIONS = {"jump": jump, "squat": squat}
