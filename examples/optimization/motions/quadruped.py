"""Motions of Go2: jumps, a turn, a backflip, standing up, a step over a gap, and a change of the gait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.optimization.motions.planning import STEP, UPRIGHT, Array, Nodes, Plan, PlannedRobot, above_edges, rates, terms
from legged import optimization as oc
from legged.rotations import axis_quaternion

EFFORT, CORNER = 0.85, 0.45  # largest torque over that of the URDF, and speed up to which it is available, over no-load
SOFT = np.array([0.0, 0.0, 0.0, 0.2, 0.2, 0.2])  # weights of the velocity of a foot before an impact


class Go2(PlannedRobot):
    """Go2 of example-robot-data, with the torque-speed curve that its maker states.

    The maker gives 20.2 N m at a hip up to 13.5 rad/s, and no torque at 30 rad/s; the URDF 23.7 N m and 30.1 rad/s.

    Source: Unitree, unitree_rl_lab, UnitreeActuatorCfg_Go2HV. The knee has the same motor with its further gear ratio.
    """

    damping = np.array([0.1] * 6 + [0.02] * 12)
    control = 2e-3
    tracking = np.array([200.0] * 6 + [20.0] * 12 + [5.0] * 6 + [0.1] * 12)

    def __init__(self) -> None:
        super().__init__("go2.urdf", oc.feet, [0.0, 0.8, -1.5] * 4, EFFORT, CORNER)

    def moved(self, x: float, z: float = 0.0, quaternion: Array = UPRIGHT) -> Array:
        """Return the standing configuration at another place."""
        return np.concatenate([quaternion, self.q[4:7] + np.array([x, 0.0, z]), self.joints])

    def above(self, first: float = 0.0, last: float = 0.0, height: float = 0.0) -> list[oc.Term]:
        """Return the costs of feet that must be above the ground, and above a block of a height between two places."""
        place = {"first": first, "last": last, "height": height}
        return [oc.Cost(above_edges, 1e4, barrier=True, frame=f.frame, **place) for f in self.feet]

    def landed(self, q: Array, count: int, height: float = 0.0) -> Nodes:
        """Return an impact of the feet on the ground at a height, and stages of standing at a configuration."""
        weights, ground = np.array([0.0, 0.0, 1e3]), np.array([0.0, 0.0, height])
        level = [oc.Cost(terms.frame_translation, weights, frame=f.frame, position=ground) for f in self.feet]
        soft = [oc.Cost(terms.frame_velocity, SOFT, frame=f.frame, twist=np.zeros(6)) for f in self.feet]
        rotation = oc.Cost(terms.base_rotation, 20.0, quaternion=q[:4])
        places = [oc.Cost(terms.base_position, np.array([w, w, z]), position=q[4:7]) for w, z in ((50.0, 2.0), (50.0, 50.0))]
        first, then = (self.stage(self.feet, rotation, place, step=h) for place, h in zip(places, (0.01, STEP), strict=True))
        return [oc.Impact(self.feet, [*level, *soft]), *[first] * 25, *[then] * count]


def pitched(angle: float) -> Array:
    """Return the quaternion of a rotation about y."""
    return axis_quaternion("y", angle)


def backflip(dog: Go2, push: int = 40, rear: int = 16, flight: int = 50, lean: float = -1.0, high: float = 0.35) -> Plan:
    """Return a backflip: all feet push, then the rear ones alone, the trunk turns about y, and all feet land."""
    end, step = dog.moved(-0.3), 0.01
    tucked = np.array([0.0, 1.2, -2.4] * 4)
    nodes: Nodes = [dog.stage(dog.feet, phase="push", step=step)] * push
    first, down = push + rear, push + rear + flight
    turned = [np.zeros(push), np.linspace(0.0, lean, rear, endpoint=False), np.linspace(lean, -2 * np.pi, flight)]
    angles = np.concatenate([*turned, np.full(99, -2 * np.pi)])
    for k in range(push, down):
        in_air = k >= first
        extra = [oc.Cost(terms.base_rotation, 20.0 if in_air else 5.0, quaternion=pitched(angles[k]))]
        if in_air:
            extra += dog.above()
        folded = first + 8 < k < down - 12
        joints, weight = (tucked, 2.0) if folded else (dog.joints, 1.0)
        names = ([], "flight") if in_air else (dog.feet[2:], "rear")
        nodes.append(dog.stage(names[0], *extra, joints=joints, weight=weight, phase=names[1], step=step))
    nodes += dog.landed(end, 20)
    q = np.tile(dog.q, (len(nodes) + 1, 1))
    q[:, :4] = [pitched(angle) for angle in angles[: len(q)]]
    hip = 0.1934  # [m], from the base to a rear hip
    tilt = angles[: first + 1, None]
    q[: first + 1, 4:7] += hip * np.concatenate([np.cos(tilt) - 1.0, 0.0 * tilt, -np.sin(tilt)], axis=1)
    share = np.clip((np.arange(len(q) - first)) / flight, 0.0, 1.0)[:, None]
    rise = np.array([0.0, 0.0, high])
    q[first:, 4:7] = (1 - share) * q[first, 4:7] + share * end[4:7] + 4 * share * (1 - share) * rise
    return Plan(dog.problem(nodes, end), q, rates(dog.robot, q, nodes))
