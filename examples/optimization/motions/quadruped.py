"""Motions of Go2: a jump with a turn, a backflip, standing up, a step over a gap, and a change of the gait."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import legged
from examples.optimization.motions.planning import (
    STEP,
    UPRIGHT,
    Array,
    Nodes,
    Plan,
    PlannedRobot,
    loaded,
    rates,
    terms,
)
from legged import optimization as oc
from legged.contact import Box
from legged.rotations import axis_quaternion

EFFORT, CORNER = 0.85, 0.45  # largest torque over that of the URDF, and speed up to which it is available, over no-load
KNEES = [f"{leg}_calf" for leg in ("FL", "FR", "RL", "RR")]
DEPTH = 0.3  # of a gap, [m]
SOFT = np.array([0.0, 0.0, 0.0, 0.02, 0.02, 0.02])  # weights of the velocity of a foot before an impact


class Go2(PlannedRobot):
    """Go2 of example-robot-data, with the torque-speed curve that its maker states.

    The maker gives 20.2 N m at a hip up to 13.5 rad/s, and no torque at 30 rad/s; the URDF 23.7 N m and 30.1 rad/s.

    Source: Unitree, unitree_rl_lab, UnitreeActuatorCfg_Go2HV. The knee has the same motor with its further gear ratio.
    """

    damping = np.array([0.1] * 6 + [0.02] * 12)
    control = 2e-3
    tracking = np.array([200.0] * 6 + [20.0] * 12 + [5.0] * 6 + [0.1] * 12)

    def __init__(self) -> None:
        super().__init__(loaded("go2.urdf"), oc.feet, [0.0, 0.8, -1.5] * 4, EFFORT, CORNER)
        self.body_costs = self.body_above(0.0)

    def moved(self, x: float, z: float = 0.0, quaternion: Array = UPRIGHT) -> Array:
        """Return the standing configuration at another place."""
        return np.concatenate([quaternion, self.q[4:7] + np.array([x, 0.0, z]), self.joints])

    def above(self) -> list[oc.Term]:
        """Return the costs of feet above the ground."""
        return [oc.Cost(terms.clearance, 1e4, barrier=True, frame=f.frame, height=0.0) for f in self.feet]

    def body_above(self, height: float) -> list[oc.Term]:
        """Return the costs of a trunk that must be 0.18 m and knees that must be 0.06 m above a height."""
        trunk = oc.Cost(terms.clearance, 1e4, barrier=True, frame="base", height=height + 0.18)
        return [trunk, *(oc.Cost(terms.clearance, 1e4, barrier=True, frame=k, height=height + 0.06) for k in KNEES)]

    def landed(self, q: Array, count: int, height: float = 0.0) -> Nodes:
        """Return an impact of the feet on the ground at a height, and stages of standing at a configuration."""
        weights, ground = np.array([0.0, 0.0, 1e3]), np.array([0.0, 0.0, height])
        level = [oc.Cost(terms.frame_translation, weights, frame=f.frame, position=ground) for f in self.feet]
        soft = [oc.Cost(terms.frame_velocity, SOFT, frame=f.frame, twist=np.zeros(6)) for f in self.feet]
        rotation = oc.Cost(terms.base_rotation, 20.0, quaternion=q[:4])
        places = [
            oc.Cost(terms.base_position, np.array([w, w, z]), position=q[4:7]) for w, z in ((50.0, 2.0), (50.0, 50.0))
        ]
        body = self.body_above(height)
        first, then = (
            self.stage(self.feet, rotation, place, step=h, body=body)
            for place, h in zip(places, (0.01, STEP), strict=True)
        )
        return [oc.Impact(self.feet, [*level, *soft]), *[first] * 25, *[then] * count]


def pitched(angle: float) -> Array:
    """Return the quaternion of a rotation about y."""
    return axis_quaternion("y", angle)


def backflip(dog: Go2, push: int = 40, rear: int = 16, flight: int = 50, lean: float = -1.0, high: float = 0.3) -> Plan:
    """Return a backflip: all feet push, then the rear ones alone, the trunk turns about y, and all feet land."""
    end, step = dog.moved(-0.3), 0.01
    tucked = np.array([0.0, 1.2, -2.4] * 4)
    nodes: Nodes = [dog.stage(dog.feet, phase="push", step=step)] * push
    first, down = push + rear, push + rear + flight
    turned = [
        np.zeros(push),
        np.linspace(0.0, lean, rear, endpoint=False),
        np.linspace(lean, -2 * np.pi, flight, endpoint=False),
    ]
    angles = np.concatenate([*turned, np.full(99, -2 * np.pi)])
    for k in range(push, down):
        in_air = k >= first
        extra = [oc.Cost(terms.base_rotation, 20.0 if in_air else 5.0, quaternion=pitched(angles[k]))]
        if in_air:
            extra += dog.above()
        folded = first + 8 < k < down - 20
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


def leap(dog: Go2, end: Array, quaternion: Callable[[float], Array], *, high: float = 0.3, flight: int = 40) -> Plan:
    """Return a jump to a configuration that turns during the flight."""
    height = end[6] - dog.q[6]
    push, step = 40, 0.5 * STEP
    nodes: Nodes = [dog.stage(dog.feet, phase="push", step=step)] * push
    for k in range(flight):
        turn = oc.Cost(terms.base_rotation, 20.0, quaternion=quaternion((k + 0.5) / flight))
        nodes.append(dog.stage([], turn, *dog.above(), weight=2.0, phase="flight", step=step))
    nodes += dog.landed(end, 20, height)
    q = np.tile(dog.q, (len(nodes) + 1, 1))
    share = np.clip((np.arange(len(q)) - push) / flight, 0.0, 1.0)
    rise = np.array([0.0, 0.0, high])
    q[:, 4:7] += share[:, None] * (end[4:7] - dog.q[4:7]) + (4 * share * (1 - share))[:, None] * rise
    q[:, :4] = [quaternion(x) for x in share]
    return Plan(dog.problem(nodes, end), q, rates(dog.robot, q, nodes))


def turn(dog: Go2) -> Plan:
    """Return a jump with a turn by 90 degrees."""
    angle = np.pi / 2
    end = dog.moved(0.0, 0.0, axis_quaternion("z", angle))
    plan = leap(dog, end, lambda s: axis_quaternion("z", angle * s), flight=32)
    return plan._replace(late=0.04, settle=0.15)


def stand(dog: Go2) -> Plan:
    """Return standing up from lying with folded legs, the belly 2 cm above the ground."""
    folded = np.array([0.0, 1.3, -2.65] * 4)
    start = dog.placed(folded)
    rise = oc.Cost(terms.base_position, 50.0, position=dog.q[4:7])
    level = oc.Cost(terms.base_rotation, 20.0, quaternion=UPRIGHT)
    nodes: Nodes = [dog.stage(dog.feet, rise, level, body=[])] * 50
    share = np.clip(np.arange(51) / 25, 0.0, 1.0)[:, None]
    q = (1.0 - share) * start + share * dog.q
    return Plan(dog.problem(nodes, dog.q, start), q, rates(dog.robot, q, nodes))


def steps(dog: Go2, swings: list[tuple[int, ...]], length: float, count: int = 9, rise: float = 0.05) -> Plan:
    """Return a walk in which groups of feet swing by a length, one group after the other, each in `count` stages."""
    places = np.array([legged.frame_pose(dog.robot, dog.q, foot.frame).position for foot in dog.feet])
    weights, touch = np.array([300.0, 300.0, 500.0]), np.array([500.0, 500.0, 1e3])
    level = oc.Cost(terms.base_rotation, 50.0, quaternion=UPRIGHT)

    def at_base(x: float) -> oc.Cost:
        return oc.Cost(
            terms.base_position, np.array([20.0, 20.0, 100.0]), position=dog.q[4:7] + np.array([x, 0.0, 0.0])
        )

    base, path = 0.0, [0.0] * 10
    nodes: Nodes = [dog.stage(dog.feet, level, at_base(0.0))] * 10
    for swing in swings:
        start, after = places.copy(), base + length * len(swing) / len(places)
        places[list(swing), 0] += length
        standing = [foot for i, foot in enumerate(dog.feet) if i not in swing]
        for k in range(count):
            s = (k + 0.5) / count
            x = base + s * (after - base)
            goals = [start[i] + s * (places[i] - start[i]) + [0.0, 0.0, rise * np.sin(np.pi * s)] for i in swing]
            feet = [
                oc.Cost(terms.frame_translation, weights, frame=dog.feet[i].frame, position=goal)
                for i, goal in zip(swing, goals, strict=True)
            ]
            nodes.append(dog.stage(standing, level, at_base(x), *feet))
            path.append(x)
        landing = [oc.Cost(terms.frame_translation, touch, frame=dog.feet[i].frame, position=places[i]) for i in swing]
        nodes.append(oc.Impact(dog.feet, landing))
        base = after
        path.append(base)
    nodes += [dog.stage(dog.feet, level, at_base(base))] * 20
    q = np.tile(dog.q, (len(nodes) + 1, 1))
    q[:, 4] += [*path, *[base] * 21]
    return Plan(dog.problem(nodes, dog.moved(base)), q, rates(dog.robot, q, nodes))


TROT, BOUND = [(0, 3), (1, 2)], [(0, 1), (2, 3)]


def gap(dog: Go2) -> Plan:
    """Return a walk over a gap whose width is half of the height of the hips."""
    x = np.array([legged.frame_pose(dog.robot, dog.q, foot.frame).position[0] for foot in dog.feet])
    length = 0.5 * (x[0] - x[2])  # so that the rear feet tread where the front feet did
    width, middle = 0.5 * dog.q[6], x[0] + 0.5 * length
    boxes = [
        (name, Box((2.0, 1.0, DEPTH), (middle + side * (1.0 + 0.5 * width), 0.0, -0.5 * DEPTH)))
        for name, side in (("near", -1.0), ("far", 1.0))
    ]
    return steps(dog, TROT * 4, length)._replace(obstacles=tuple(boxes), level=-DEPTH)


def gaits(dog: Go2) -> Plan:
    """Return a trot that becomes a bound and then a trot again."""
    return steps(dog, [*TROT, *TROT, *BOUND, *BOUND, *TROT], 0.12, count=7)


MOTIONS = {f.__name__: f for f in (backflip, turn, stand, gap, gaits)}
