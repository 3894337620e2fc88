"""Jumps of Go2 onto a block (`onto`) and over one (`over`): all feet push, then the rear ones alone, and all feet land.

`leap_to` states a jump as a problem of optimal control, and `guess` computes the trajectory at which its solution
starts. `examples.optimization.planned_motions` solves and simulates the plans of `MOTIONS`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicHermiteSpline

import legged
from examples.optimization.motions.planning import Array, Nodes, Plan, terms
from examples.optimization.motions.quadruped import KNEES, SOFT, Go2, pitched
from legged import optimization as oc
from legged.contact import Box

BLOCK, RAMP = 0.3, 0.1  # height of a block, and length of the slopes of its faces in plans, [m]
FOOT, KNEE, TRUNK = 0.06, 0.08, 0.12  # heights above a block that are asked for in plans, [m]
RISE, DESCENT = 0.5, 0.8  # rates of the height that is asked for feet, after lift-off and before the landing, [m/s]
LATE = 0.04  # largest delay of the landing, [s]
SETTLE = 0.2  # time after the landing for which the regulator goes on, [s]
LANDING = 0.65  # largest torque after the landing relative to that of the motors; the feedback needs the rest
STEP, LAST = 0.01, 0.02  # durations of the stages, and of the last ones, [s]
PUSH, REAR, STAND, LASTS = 40, 14, 26, 20  # stages of a push with all feet, of one with the rear ones, after landing
CALM = np.array([0.0] * 6 + [0.15] * 12)  # further weights of velocities in the air
STRAIGHT = np.tile([20.0, 2.0, 2.0], 4)  # weights of the joints of legs in flight
CROUCH, EXTENSION = 0.1, 0.06  # of the guess: base below its height at rest, and above it at lift-off, [m]
TUCK = 0.18  # height by which the guess draws up the feet in flight, [m]
SETTLING = 0.4  # time from the landing to rest in the guess, [s]


def block_clearance(robot: legged.Robot, at: oc.Point, frame: Any, block: Array, margin: Any) -> Array:
    """Return the height of a frame above the ground and a block, less a margin, (1,), [m].

    The faces are smooth slopes, which end half of their length before and after the block: the height of the block is
    multiplied by the cubic step function of the distance to either end.

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
    nodes = [*take_off(dog, end, block, flight, foot), *landing(dog, end, block)]
    plan = Plan(dog.problem(nodes, end, integrator="RK4"), np.zeros(0), np.zeros(0))
    box = Box((block[1] - block[0], 1.0, block[2]), (0.5 * (block[0] + block[1]), 0.0, 0.5 * block[2]))
    q, v = guess(dog, plan.problem, end, flight, pitch, reach)
    return plan._replace(q=q, v=v, obstacles=(("block", box),), late=LATE, settle=SETTLE)


def body_above(block: Array) -> list[oc.Term]:
    """Return the costs of knees and trunk that must be above the ground and a block."""
    return above(block, {**dict.fromkeys(KNEES, KNEE), "base": TRUNK})


def take_off(dog: Go2, end: Array, block: Array, flight: int, foot: float) -> Nodes:
    """Return the stages of both pushes and of the flight; arguments as in `leap_to`."""
    feet, frames, body = dog.feet, [f.frame for f in dog.feet], body_above(block)
    upright = oc.Cost(terms.base_rotation, np.array([50.0, 2.0, 50.0]), quaternion=end[:4])
    middle = oc.Cost(terms.base_position, np.array([0.0, 500.0, 0.0]), position=end[4:7])
    nodes: Nodes = [dog.stage(feet, upright, middle, phase="push", step=STEP, body=body)] * PUSH
    for k in range(REAR):
        front = above(block, dict.fromkeys(frames[:2], min(foot, RISE * k * STEP)))
        swing = oc.Cost(terms.velocity, CALM * (np.arange(18) < 12))  # base and front legs
        nodes.append(dog.stage(feet[2:], upright, middle, swing, *front, phase="rear", step=STEP, body=body))
    for k in range(flight):
        over = above(block, dict.fromkeys(frames, min(foot, DESCENT * (flight - k) * STEP)))
        air = [upright, middle, oc.Cost(terms.velocity, CALM), *over]
        nodes.append(dog.stage([], *air, phase="flight", step=STEP, weight=STRAIGHT, body=body))
    return nodes


def landing(dog: Go2, end: Array, block: Array) -> Nodes:
    """Return the impact of all feet and the stages until the robot stands; arguments as in `leap_to`."""
    feet, body = dog.feet, body_above(block)
    goals = [(f.frame, legged.frame_pose(dog.robot, end, f.frame).position) for f in feet]
    touch = [oc.Cost(terms.frame_translation, np.array([200.0, 200.0, 1e3]), frame=f, position=p) for f, p in goals]
    soft = [oc.Cost(terms.frame_velocity, SOFT, frame=f, twist=np.zeros(6)) for f, _ in goals]
    rotation = oc.Cost(terms.base_rotation, 20.0, quaternion=end[:4])
    bent = oc.Cost(terms.joint_positions, 4.0, joints=dog.joints)
    nodes: Nodes = [oc.Impact(feet, [*touch, *soft, bent])]
    for duration, height_weight, count in ((STEP, 2.0, STAND), (LAST, 50.0, LASTS)):
        place = oc.Cost(terms.base_position, np.array([50.0, 50.0, height_weight]), position=end[4:7])
        nodes += [dog.stage(feet, rotation, place, step=duration, margin=LANDING, body=body)] * count
    return nodes


# The guess.


class Flight(NamedTuple):
    """The ballistic motion of the base in the guess.

    Attributes:
        start, end: Times of lift-off and landing, [s].
        off, arrival: Positions of the base at these times, (3,), [m], world axes.
        velocity: Velocity of the base at lift-off, (3,), [m/s], world axes. gravity: (3,), [m/s^2], world axes.
    """

    start: float
    end: float
    off: Array
    arrival: Array
    velocity: Array
    gravity: Array

    @classmethod
    def between(cls, start: float, end: float, off: Array, arrival: Array, gravity: Array) -> Flight:
        """Return the flight between two places."""
        velocity = (arrival - off) / (end - start) - 0.5 * gravity * (end - start)
        return cls(start, end, off, arrival, velocity, gravity)

    def position(self, time: float) -> Array:
        """Return the position of the base, (3,), [m], world axes."""
        return self.off + self.velocity * (time - self.start) + 0.5 * self.gravity * (time - self.start) ** 2


def guess(dog: Go2, problem: oc.Problem, end: Array, flight: int, pitch: float, reach: float) -> tuple[Array, Array]:
    """Return the guess of a jump, q and v at each node: a crouch, a push to the speed of a flight, and a landing.

    The feet that stand do not move; those in flight move with the base, drawn up. The joints follow from the poses of
    base and feet by inverse kinematics, the velocities from differences of configurations. The arguments are those of
    `leap_to`.
    """
    robot, t, first = dog.robot, problem.times, PUSH + REAR
    off, arrival = dog.q[4:7] + np.array([reach, 0.0, EXTENSION]), end[4:7] - [0.5 * reach, 0.0, EXTENSION]
    arc = Flight.between(t[first], t[first + flight], off, arrival, robot.gravity)
    start = base_motion(dog, t, end, arc, pitch)
    poses = [legged.frame_pose(robot, q, "base") for q in start]
    targets = np.array([foot_places(dog, end, arc, k, t[k], pose, flight) for k, pose in enumerate(poses)])
    kinds = {"base": "pose", **{foot.name: "position" for foot in dog.feet}}
    base = np.array([pose.rotation for pose in poses]), start[:, 4:7]
    values = {"base": base} | {foot.name: targets[:, i] for i, foot in enumerate(dog.feet)}
    q = legged.InverseKinematics(robot, kinds).solve_batch(start, values).q
    v = np.zeros((len(t), robot.nv))
    for k, step in enumerate(problem.durations[:-1]):
        v[k] = legged.difference(robot, q[k], q[k + 1]) / step if step else v[k - 1]
    v[0] = 0.0
    return q, v


def base_motion(dog: Go2, times: Array, end: Array, arc: Flight, pitch: float) -> Array:
    """Return configurations at some times, (T, nq), with the base of the guess and the joints at the start."""
    rest, still = dog.q[4:7], np.zeros(3)
    half = 0.5 * arc.start
    low = rest - [0.02, 0.0, CROUCH]
    push = CubicHermiteSpline([0.0, half, arc.start], [rest, low, arc.off], [still, still, arc.velocity])
    speed = 0.3 * (arc.velocity + arc.gravity * (arc.end - arc.start))  # the impact takes the rest
    settle = CubicHermiteSpline([arc.end, arc.end + SETTLING], [arc.arrival, end[4:7]], [speed, still])
    turn = CubicHermiteSpline([half, arc.start, arc.end], [0.0, pitch, 0.0], [0.0, 0.0, 0.0])
    configurations = np.tile(dog.q, (len(times), 1))
    for q, time in zip(configurations, times, strict=True):
        if time < arc.start:
            q[4:7] = push(time)
        elif time < arc.end:
            q[4:7] = arc.position(time)
        else:
            q[4:7] = settle(min(time, arc.end + SETTLING))
        q[:4] = pitched(float(turn(np.clip(time, half, arc.end))))
    return configurations


def foot_places(dog: Go2, end: Array, arc: Flight, k: int, time: float, base: legged.Pose, flight: int) -> Array:
    """Return the places of the feet at node k of the guess, (4, 3), [m], world axes, front feet first.

    In flight a foot moves from its first to its last place relative to the base, and is drawn up between them. The
    front feet are drawn up while the rear ones push, and remain so for the first half of the flight.
    """
    first, last = (
        np.array([legged.frame_pose(dog.robot, q, f.frame).position for f in dog.feet]) for q in (dog.q, end)
    )
    tucked = base.position + (first - dog.q[4:7] + np.array([0.0, 0.0, TUCK])) @ base.rotation.T
    if k < PUSH:
        return first
    if k < PUSH + REAR:
        places = first.copy()
        places[:2] += (k - PUSH) / REAR * (tucked[:2] - places[:2])
        return places
    if k >= PUSH + REAR + flight:
        return last
    s = np.clip((time - arc.start) / (arc.end - arc.start), 0.0, 1.0)
    straight = (1.0 - s) * (first - arc.off + base.position) + s * (last - arc.arrival + base.position)
    drawn = np.sin(np.pi * s) ** 0.5
    places = straight + drawn * (tucked - straight)
    if s < 0.5:
        places[:2] += (1.0 - drawn) * (tucked[:2] - places[:2])
    return places


def onto(dog: Go2) -> Plan:
    """Return a jump onto a block of 0.3 m."""
    return leap_to(dog, dog.moved(0.8, BLOCK), np.array([0.35, 1.55, BLOCK]), 36)


def over(dog: Go2) -> Plan:
    """Return a jump over a block of 0.3 m that is 5 cm long."""
    return leap_to(dog, dog.moved(1.0), np.array([0.35, 0.4, BLOCK]), 46, pitch=-0.4, reach=0.14, foot=0.1)


MOTIONS = {f.__name__: f for f in (onto, over)}
