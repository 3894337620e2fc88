"""Arms on robots that walk: errors of a hand that is held or moved while the base stands, walks and turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from controllers.locomotion import JointLimits, WholeBodyModel
from controllers.locomotion.torques.hands import moving_columns
from legged.algorithms.legs.standing import Home
from legged.dynamics.frames import frame_pose
from legged.errors import LeggedError
from legged.rotations import euler_angles, rotation_error
from legged.spatial import Array
from legged.table import Table

_SPEED, _TURNING, _SHIFT = 0.16, 0.2, 0.25
"""Velocity, [sqrt(g h)] and [sqrt(g / h)], and amplitude of the motion of the base below a hand at rest, [h]."""
_RADIUS, _PERIOD = 0.25, 12.0
"""Radius, [h], and period, [sqrt(h / g)], of the circle."""
_LOAD = 1.0  # [kg]
_BEGIN, _FROM, _UNTIL, _SAMPLE = 0.5, 1.5, 6.0, 0.02  # [s], of the motion, of the errors, of the trial, of the samples
_POSTURES, _SEED = 4000, 0
_GAINS = (400.0, 40.0)
_STEP = legged.TimeStepping(2e-3)


@dataclass(frozen=True)
class Oscillation:
    """A commanded velocity that goes to and fro, or is constant.

    Attributes:
        vx, vy: Amplitude, [m/s]. yaw_rate: Amplitude, [rad/s]. rate: Angular frequency, [rad/s].
    """

    vx: float
    vy: float
    yaw_rate: float
    rate: float

    def __call__(self, t: Any) -> Array:
        """Return the command at a time t, [s], (5,)."""
        share = legged.where(t < _BEGIN, 0.0, np.cos(self.rate * (t - _BEGIN)))
        return np.stack([share * self.vx, share * self.vy, share * self.yaw_rate, 0.0 * t, 0.0 * t])


@dataclass(frozen=True)
class Circle:
    """A path of a hand: a circle across the heading, or a point at rest.

    Attributes:
        x, y, z: Where it begins, [m]. radius: [m]. rate: Angular frequency, [rad/s].
    """

    x: float
    y: float
    z: float
    radius: float
    rate: float

    def __call__(self, t: Any) -> Array:
        """Return the position at a time t, [s], (3,), [m]."""
        angle = self.rate * t
        return np.array([self.x, self.y + self.radius * np.sin(angle), self.z + self.radius * (1.0 - np.cos(angle))])


ROWS = {
    "stand": ("world", (0.0, 0.0, 0.0), 0.0),
    "forward and backward": ("world", (_SPEED, 0.0, 0.0), 0.0),
    "sideways": ("world", (0.0, _SPEED, 0.0), 0.0),
    "turn": ("world", (0.0, 0.0, _TURNING), 0.0),
    "stand, circle": ("heading", (0.0, 0.0, 0.0), _RADIUS),
    "walk, carry": ("heading", (_SPEED, 0.0, 0.0), 0.0),
    "walk, circle": ("heading", (_SPEED, 0.0, 0.0), _RADIUS),
}
"""(axes of the path, amplitude of the command, radius) of each column."""
_LOADED = {f"1 kg {known}, {name}": name for known in ("known", "unknown") for name in ("sideways", "walk, circle")}


def hands_table(walkers: list[Walker]) -> Table:
    """Return the errors of the hand of each robot that has an arm."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers if hand_of(walker) is not None]
    notes = (
        "Root mean square / largest distance of the hand from its path, mm, from 1.5 to 6 s; its orientation is held",
        f"as well. Hands at rest in the world over a base that trots to and fro with {_SPEED:g} sqrt(g h), by",
        f"{_SHIFT:g} h to each side, or turns with {_TURNING:g} sqrt(g / h); hands in axes of the heading at rest or",
        f"on a circle of {_RADIUS:g} h in {_PERIOD:g} sqrt(h / g). Loads of 1 kg in the hand that the controller",
        "knows or not. The hand is the last link of the longest chain outside the legs.",
    )
    return Table("Locomotion, errors of a hand, mm", ("robot", *ROWS, *_LOADED), tuple(lines), notes, left=1)


def hand_of(walker: Walker) -> str | None:
    """Return the name of the last link of the longest chain of at least four joints outside the legs; None without."""
    robot = walker.robot
    legs = {robot.link(robot.links[leg.link].name).body for leg in walker.home.legs}
    in_legs = {body for leg in legs for body in robot.ancestors(leg)}
    chains = [robot.ancestors(k) for k in range(len(robot.bodies)) if k not in in_legs]
    longest = max(chains, key=len, default=[])
    own = [link.name for link in robot.links if longest and link.body == longest[0]]
    return own[-1] if len(longest) > 4 else None


def arm_posture(walker: Walker, link: str) -> Home:
    """Return the standing posture with an arm in front of the trunk that moves its hand well in all directions."""
    robot, home = walker.robot, controllers.home_of(walker.robot)
    limits, base = JointLimits.of(robot), robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3))
    arm = moving_columns(robot, link)
    lower, upper = np.maximum(limits.lower[arm], -np.pi), np.minimum(limits.upper[arm], np.pi)
    random, best, angles = np.random.default_rng(_SEED), 0.0, home.angles
    for share in random.uniform(0.15, 0.85, (_POSTURES, len(arm))):
        own = home.angles.copy()
        own[arm] = lower + share * (upper - lower)
        q = np.concatenate([base, own])
        at = frame_pose(robot, q, link).position / walker.height
        if not (0.6 < at[0] < 1.3 and abs(at[1]) < 0.3 and 0.9 < at[2] < 2.2):
            continue
        J = WholeBodyModel(robot, q, np.zeros(robot.nv)).point(link).J[:, [robot.base.nv + k for k in arm]]
        J[:3] *= 0.3 * walker.height
        least = float(np.linalg.svd(J, compute_uv=False)[-1])
        best, angles = (least, own) if least > best else (best, angles)
    return replace(home, angles=angles)


def _measure(walker: Walker) -> list[str]:
    link, cells = hand_of(walker), dict[str, str]()
    assert link is not None
    home, mass = arm_posture(walker, link), f"robot.{link}.mass"
    trials = [("world", 0.0, True), ("heading", 0.0, True)]
    trials += [(axes, _LOAD, known) for axes in ("world", "heading") for known in (True, False)]
    for axes, load, known in trials:
        names = [name for name, row in ROWS.items() if row[0] == axes]
        names = [name for name in names if not load or name in _LOADED.values()]
        heads = [f"1 kg {'known' if known else 'unknown'}, {name}" if load else name for name in names]
        own = walker.robot
        if load:
            own = own.with_parameters({mass.removeprefix("robot."): own.link(link).inertia.mass + load})
        try:
            errors = _errors(walker, link, home, names, own, own if known else walker.robot)
        except LeggedError as error:
            print(f"{walker.name}, hands: {error}", flush=True)
            continue
        cells |= dict(zip(heads, errors, strict=True))
    return [cells.get(name, "-") for name in (*ROWS, *_LOADED)]


def _errors(
    walker: Walker, link: str, home: Home, names: list[str], robot: legged.Robot, known: legged.Robot
) -> list[str]:
    """Return root mean square / largest error of the hand in trials with the same axes, [mm]."""
    axes, h, unit = ROWS[names[0]][0], walker.height, np.array([walker.speed, walker.speed, walker.turning])
    law = controllers.Locomotion(walker.gait, home=home)
    q, v = law.initial_state(walker.robot)
    pose = frame_pose(walker.robot, q, link)
    center = legged.center_of_mass(walker.robot, q)
    start = pose.position - (0.0 if axes == "world" else np.array([*center[:2], 0.0]))
    turned = tuple(float(x) for x in euler_angles("zyx", pose.rotation)[::-1])
    period = _PERIOD * np.sqrt(h / walker.gravity)
    x, y, z = (float(value) for value in start)
    path = Circle(x, y, z, 0.0, float(2.0 * np.pi / period))
    hand = controllers.PoseTask(link, path, lambda t: turned, _GAINS, _GAINS, axes)  # pyright: ignore[reportArgumentType]
    law = replace(law, command=Oscillation(0.0, 0.0, 0.0, 0.0), hands=(hand,))
    rows = [ROWS[name] for name in names]
    rates = [_SPEED / _SHIFT * walker.turning if axes == "world" else 0.0 for _ in rows]
    commands = unit * np.array([row[1] for row in rows])
    vary = {f"controller.law.command.{key}": commands[:, k] for k, key in enumerate(("vx", "vy", "yaw_rate"))}
    vary |= {"controller.law.command.rate": np.array(rates)}
    vary |= {"controller.law.hands.0.path.radius": h * np.array([row[2] for row in rows])}
    runs = legged.rollout(
        robot,
        controllers.NominalModel(law, known),
        ground=legged.Rigid(friction=0.6),
        until=_UNTIL,
        q=q,
        v=v,
        vary=vary,
        integrator=_STEP,
        sample=_SAMPLE,
        progress=False,
    )
    errors = []
    for k, row in enumerate(rows):
        if runs.fallen[k]:
            errors.append("falls")
            continue
        wanted, late = replace(path, radius=h * row[2]), runs.times > _FROM
        distances, angles = [], []
        started, memory = law.start(known, None, q, v)
        places = np.array([started.memory(row[: len(memory)]).path for row in runs.rest[k]])
        for t, own, along in zip(runs.times[late], runs.q[k, late], places[late], strict=True):
            now, desired = frame_pose(robot, own, link), wanted(t)
            R = pose.rotation
            if axes == "heading":
                c, s = np.cos(along[2]), np.sin(along[2])
                turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
                desired, R = turn @ desired + np.array([*along[:2], 0.0]), turn @ R
            distances.append(np.linalg.norm(now.position - desired))
            angles.append(np.linalg.norm(rotation_error(now.rotation @ R.T)))
        errors.append(f"{1e3 * np.sqrt(np.mean(np.square(distances))):.1f}/{1e3 * max(distances):.0f}")
        print(names[k], errors[-1], f"{max(angles):.3f} rad", flush=True)
    return errors
