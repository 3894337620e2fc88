"""Jumps of Go2 onto and over a block: all feet push, then the rear ones alone, and all feet land."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline

import legged
from examples.optimization.motions.planning import Array, Nodes, Plan, terms
from examples.optimization.motions.quadruped import KNEES, SOFT, Go2, pitched
from legged import optimization as oc
from legged.contact import Box

BLOCK, RAMP = 0.3, 0.1  # height of a block, and length of the slopes of its faces in plans, [m]
FOOT, KNEE, TRUNK = 0.06, 0.08, 0.12  # heights above a block that are asked for in plans, [m]
SETTLE = 0.2  # time after the landing for which the regulator goes on, [s]
LANDING = 0.65  # largest torque after the landing relative to that of the motors; the feedback needs the rest
STEP, LAST = 0.01, 0.02  # of plans, and of their last stages, [s]
PUSH, REAR, STAND = 40, 14, 26  # stages of a push with all feet, of one with the rear ones, and after a landing
CALM = np.array([0.0] * 6 + [0.15] * 12)  # further weights of velocities in the air
STRAIGHT = np.tile([20.0, 2.0, 2.0], 4)  # weights of the joints of legs in flight


def block_clearance(robot: legged.Robot, at: oc.Point, frame: Any, block: Array, margin: Any) -> Array:
    """Return the height of a frame above the ground and a block, less a margin, (1,), [m].

    The faces are smooth slopes, which end half of their length before and after the block.

    Args:
        robot, at, frame: As in `terms.clearance`. block: Beginning and end of its top in x, and its height, (3,), [m].
        margin: [m].
    """
    x, _, z = legged.frame_pose(robot, at.q, frame).position
    ramps = np.array([1.5 - (block[0] - x) / RAMP, 1.5 - (x - block[1]) / RAMP])
    rise, fall = (legged.where(s < 0.0, 0.0, legged.where(s > 1.0, 1.0, s * s * (3.0 - 2.0 * s))) for s in ramps)
    return np.array([z - margin - block[2] * rise * fall])


def above(block: Array, margins: dict[object, float]) -> list[oc.Term]:
    """Return the costs of frames that must be margins above the ground and a block, [m]."""
    parts = margins.items()
    return [oc.Cost(block_clearance, 1e4, barrier=True, frame=f, block=block, margin=margin) for f, margin in parts]


def leap_to(
    dog: Go2, end: Array, block: Array, flight: int, pitch: float = -0.5, reach: float = 0.12, foot: float = FOOT
) -> Plan:
    """Return a jump to a standing configuration at or beyond a block.

    Args:
        dog: The robot. end: Configuration. block: As in `block_clearance`. flight: Number of stages in the air.
        pitch: Rotation about y at lift-off in the guess, [rad].
        reach: Motion of the base to the lift-off in the guess, [m]; half of it is left at the landing.
        foot: Height of the feet above the block in flight, [m].
    """
    robot, feet = dog.robot, dog.feet
    body: dict[object, float] = {**dict.fromkeys(KNEES, KNEE), "base": TRUNK}
    upright = oc.Cost(terms.base_rotation, np.array([50.0, 2.0, 50.0]), quaternion=end[:4])
    middle = oc.Cost(terms.base_position, np.array([0.0, 500.0, 0.0]), position=end[4:7])
    common = {"weight": 1.0, "body": above(block, body)}
    nodes: Nodes = [dog.stage(feet, upright, middle, phase="push", step=STEP, **common)] * PUSH
    for k in range(REAR):
        front = above(block, dict.fromkeys((f.frame for f in feet[:2]), min(foot, 0.5 * k * STEP)))
        swing = oc.Cost(terms.velocity, CALM * (np.arange(18) < 12))
        nodes.append(dog.stage(feet[2:], upright, middle, swing, *front, phase="rear", step=STEP, **common))
    for k in range(flight):
        margin = min(foot, 0.8 * (flight - k) * STEP)
        over = above(block, dict.fromkeys((f.frame for f in feet), margin))
        air = [upright, middle, oc.Cost(terms.velocity, CALM), *over]
        nodes.append(dog.stage([], *air, phase="flight", step=STEP, weight=STRAIGHT, body=common["body"]))
    goals = [(f.frame, legged.frame_pose(robot, end, f.frame).position) for f in feet]
    touch = [oc.Cost(terms.frame_translation, np.array([200.0, 200.0, 1e3]), frame=f, position=p) for f, p in goals]
    soft = [oc.Cost(terms.frame_velocity, SOFT, frame=f, twist=np.zeros(6)) for f, _ in goals]
    rotation = oc.Cost(terms.base_rotation, 20.0, quaternion=end[:4])
    bent = oc.Cost(terms.joint_positions, 4.0, joints=dog.joints)
    nodes.append(oc.Impact(feet, [*touch, *soft, bent]))
    for h, z, count in ((STEP, 2.0, STAND), (LAST, 50.0, 20)):
        place = oc.Cost(terms.base_position, np.array([50.0, 50.0, z]), position=end[4:7])
        nodes += [dog.stage(feet, rotation, place, step=h, margin=LANDING, **common)] * count
    plan = Plan(dog.problem(nodes, end, integrator="RK4"), np.zeros(0), np.zeros(0))
    box = Box((block[1] - block[0], 1.0, block[2]), (0.5 * (block[0] + block[1]), 0.0, 0.5 * block[2]))
    q, v = guess(dog, plan.problem, end, flight, pitch, reach)
    return plan._replace(q=q, v=v, obstacles=(("block", box),), late=0.04, settle=SETTLE)


def guess(dog: Go2, problem: oc.Problem, end: Array, flight: int, pitch: float, reach: float) -> tuple[Array, Array]:
    """Return the guess of a jump: a crouch, a push to the speed of a ballistic flight, and a landing.

    The feet that stand do not move; those in flight move with the base, drawn up. The arguments are those of `leap_to`.
    """
    robot, t, first = dog.robot, problem.times, PUSH + REAR
    lift, down = t[first], t[first + flight]
    rest = dog.q[4:7]
    low, off = rest - [0.02, 0.0, 0.1], rest + np.array([reach, 0.0, 0.06])
    arrival, gravity, still = end[4:7] - [0.5 * reach, 0.0, 0.06], robot.gravity, np.zeros(3)
    speed = (arrival - off) / (down - lift) - 0.5 * gravity * (down - lift)
    push = CubicHermiteSpline([0.0, 0.5 * lift, lift], [rest, low, off], [still, still, speed])
    after = CubicHermiteSpline(
        [down, down + 0.4], [arrival, end[4:7]], [0.3 * (speed + gravity * (down - lift)), still]
    )
    turn = CubicHermiteSpline([0.5 * lift, lift, down], [0.0, pitch, 0.0], [0.0, 0.0, 0.0])
    feet = [np.array([legged.frame_pose(robot, x, f.frame).position for f in dog.feet]) for x in (dog.q, end)]
    start, targets = np.tile(dog.q, (len(t), 1)), np.zeros((len(t), 4, 3))
    rotations = np.tile(np.eye(3), (len(t), 1, 1))
    for k, time in enumerate(t):
        s = np.clip((time - lift) / (down - lift), 0.0, 1.0)
        if k < first:
            start[k, 4:7], targets[k] = push(time), feet[0]
        elif k < first + flight:
            start[k, 4:7] = off + speed * (time - lift) + 0.5 * gravity * (time - lift) ** 2
        else:
            start[k, 4:7], targets[k] = after(min(time, down + 0.4)), feet[1]
        start[k, :4] = pitched(float(turn(np.clip(time, 0.5 * lift, down))))
        pose = legged.frame_pose(robot, start[k], "base")
        rotations[k] = pose.rotation
        below = feet[0] - rest
        tucked = pose.position + (below + np.array([0.0, 0.0, 0.18])) @ pose.rotation.T
        if PUSH <= k < first:
            targets[k, :2] += (k - PUSH) / REAR * (tucked[:2] - targets[k, :2])
        elif first <= k < first + flight:
            drawn = np.sin(np.pi * np.clip(s, 0.0, 1.0)) ** 0.5
            straight = (1.0 - s) * (feet[0] - off + start[k, 4:7]) + s * (feet[1] - arrival + start[k, 4:7])
            targets[k] = straight + drawn * (tucked - straight)
            targets[k, :2] += (1.0 - drawn) * (s < 0.5) * (tucked[:2] - targets[k, :2])
    kinds = {"base": "pose", **{foot.name: "position" for foot in dog.feet}}
    values = {"base": (rotations, start[:, 4:7])} | {foot.name: targets[:, i] for i, foot in enumerate(dog.feet)}
    q = legged.InverseKinematics(robot, kinds).solve_batch(start, values).q
    v = np.zeros((len(t), robot.nv))
    for k, step in enumerate(problem.durations[:-1]):
        v[k] = legged.difference(robot, q[k], q[k + 1]) / step if step else v[k - 1]
    v[0] = 0.0
    return q, v


def onto(dog: Go2) -> Plan:
    """Return a jump onto a block of 0.3 m."""
    return leap_to(dog, dog.moved(0.8, BLOCK), np.array([0.35, 1.55, BLOCK]), 36)


def over(dog: Go2) -> Plan:
    """Return a jump over a block of 0.3 m that is 5 cm long."""
    return leap_to(dog, dog.moved(1.0), np.array([0.35, 0.4, BLOCK]), 46, pitch=-0.4, reach=0.14, foot=0.1)


MOTIONS = {f.__name__: f for f in (onto, over)}
