"""Locomotion at a commanded velocity on terrain: the definition of the controller, and its fit to a robot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from controllers.locomotion.gait.choice import AUTOMATIC, SPEEDS, GaitChoice
from controllers.locomotion.gait.footsteps import FootstepLaw, plane_of
from controllers.locomotion.gait.schedule import GAITS, ContactSchedule, contact_schedule, foot_rows
from controllers.locomotion.gait.swing import POINT, SOLE
from controllers.locomotion.motion import Foot, tangent_axes
from controllers.locomotion.motion_plan import MotionPlanner
from controllers.locomotion.started_locomotion import StartedLocomotion
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from controllers.locomotion.velocity_command import Command, slowed
from legged import arguments
from legged.algorithms.legs.leg_chains import joint_axes
from legged.algorithms.legs.standing import Home, home_of, standing_on
from legged.arguments import known_name
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import center_of_mass, link_poses, momentum
from legged.errors import DefinitionError, SimulationWarning
from legged.ground.ground import Ground
from legged.ground.terrain import Terrain
from legged.robot.robot import Robot
from legged.spatial import Array

_BIPED_HIPS = 0.85
"""Height of the hips of standing robots with two legs, relative to the length of a leg."""
_BEND = 0.2
"""Least bend of a knee, [rad], at which the leg has 0.995 of its length."""
_ACCELERATION = 60.0
"""Largest acceleration of a joint, [g / h] with the height h of the center of mass. Fast swings need up to 30."""
_FASTEST, _FASTEST_ON_TWO = 1.9, 0.8
"""Largest speeds of robots with more than two and with two legs, [sqrt(g h)], above what any of them reached."""
_OVERSPEED = 1.2
"""Largest speed of a joint, of its no-load speed, in a swing as planned; robots walked at up to 1.19."""
_LEAST_DUTY = 0.43
"""Least duty factor of fast gaits."""
_MOVES = 1e-3
"""Velocity of a foot per joint velocity, relative to the largest, below which a leg does not move it in a direction."""


@checked
@dataclass(frozen=True, eq=False)
class Locomotion:
    """Walking of any legged robot at a commanded velocity.

        law = controllers.Locomotion("trot", controllers.Command(vx=0.8, yaw_rate=0.3))
        run = legged.simulate(robot, law, ground=legged.Rigid(), until=5.0, integrator=legged.TimeStepping(2e-3))

    Attributes:
        gait: Name of a gait, see `controllers.locomotion.gait.schedule.GAITS`, or a `ContactSchedule`, or several with
            the times at which each begins, {0.0: "walk", 4.0: "trot"}, [s]; "automatic" for a choice by the commanded
            speed, a walk when it is slow and a trot otherwise.
        command: A `Command` or another function of time with its entries. A velocity that is larger than the
            joints allow is replaced by the largest one in its direction, with a warning for a constant command. None:
            the command of `legged.Simulation.step`, and zero without one. Velocities that the legs cannot follow, such
            as sideways on legs with two joints, are an error in a constant command; others are projected onto possible
            ones.
        rate: Evaluations per second, [1/s].
        friction: Friction coefficient that the controller counts on.
        clearance: Largest height of swinging feet over the straight line from lift-off to landing place, and over known
            terrain between, relative to the height of the center of mass of the standing robot.
        terrain: The terrain that the controller knows; None for a blind robot, which continues the plane through the
            last places of its feet, waits for feet that meet an obstacle or lower ground, and lifts its feet by up to
            0.15 h more on ground at heights that it did not expect.
        home: Standing posture, by default that of `home_of`; of robots with two legs with hips at 0.85 of their length,
            so that legs reach to the side and to the front.
    """

    gait: str | ContactSchedule | Mapping[float, str | ContactSchedule] = "trot"
    command: Any = field(default_factory=Command)
    rate: float = 500.0
    friction: float = 0.5
    clearance: float = 0.15
    terrain: Terrain | None = None
    home: Home | None = None

    def __post_init__(self) -> None:
        if self.command is not None and not callable(self.command):
            arguments.instance("command", self.command, Command, "a Command, a function of time or None")
        arguments.number("rate", self.rate, "1/s", above=0.0)
        arguments.number("friction", self.friction, above=0.0)
        arguments.number("clearance", self.clearance, above=0.0)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[StartedLocomotion, Array]:
        """Return (law, memory): the law for a robot and its initial memory, (m,); see `Controller.start`.

        Raises:
            DefinitionError: The robot has no legs, no gravity or a fixed base, or cannot follow a constant command.
        """
        return self._fitted(robot).started(q)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) of the standing robot, (nq,) and (nv,), with its feet on the terrain around the origin.

        The base is parallel to the plane through the terrain under the feet, flat feet to the terrain, and the center
        of mass over the middle of the feet, as far as the limits of the joints allow it.
        """
        law = self._fitted(robot)
        angles, terrain = law.home.angles, self.terrain
        place, rotation = np.array([0.0, 0.0, law.home.base_height]), np.eye(3)
        if terrain is not None:
            centers = [np.array([x, y, terrain.height(x, y)]) for x, y in law.steps.stances]
            plane = plane_of(centers, law.height)
            rotation = tangent_axes(plane.normal, np.array([1.0, 0.0, 0.0]))
            axes = [tangent_axes(terrain.normal(x, y), rotation[:, 0]) for x, y, _ in centers]
            soles = zip(law.planner.feet, centers, axes, strict=True)
            targets = [center + foot.offsets @ R.T for foot, center, R in soles]
            height = law.home.base_height + float(plane.height(np.zeros(2)))
            place, angles = standing_on(robot, law.home, targets, rotation, height, terrain.height)
        return np.concatenate([robot.base.configuration(place, rotation), angles]), np.zeros(robot.nv)

    def _fitted(self, robot: Robot) -> StartedLocomotion:
        """Return the law for a robot."""
        gravity = float(np.linalg.norm(robot.gravity))
        if robot.base.nv != 6 or gravity == 0.0:
            base = f"its base is {robot.base.kind}: load its file with base='floating', or build it on a FloatingBase()"
            why = base if robot.base.nv != 6 else "its gravity is zero: load its file with gravity=(0, 0, -9.81)"
            raise DefinitionError(
                f"robot {robot.name!r} cannot walk: Locomotion needs a floating base and gravity, and {why}"
            )
        home, planner, steps, possible, fastest = (
            _standing(robot) if self.home is None else _fitted_parts(robot, self.home)
        )
        _check_command(robot, self.command, possible, planner.height)
        _warn_of_speed(robot, self.command, fastest)
        gaits = self._gaits(robot, planner, steps)
        return StartedLocomotion(
            robot,
            home,
            planner,
            steps,
            gaits,
            self.command,
            possible,
            fastest,
            self.rate,
            self.friction,
            self.clearance,
            self.terrain,
        )

    def _gaits(self, robot: Robot, planner: MotionPlanner, steps: FootstepLaw) -> GaitChoice:
        """Return the choice of the gait, with its gaits in the order of time or speed."""
        stances, height, gravity = steps.stances, planner.height, planner.gravity
        if isinstance(self.gait, str):
            known_name("gait", self.gait, (*GAITS, AUTOMATIC))
        by_speed = self.gait == AUTOMATIC
        if by_speed:
            unit = float(np.sqrt(gravity * height))
            gaits = {0.0: "walk"} if len(stances) == 2 else {unit * speed: name for name, speed in SPEEDS.items()}
        else:
            gaits = self.gait if isinstance(self.gait, Mapping) else {0.0: self.gait}
        schedules = []
        for begin, gait in sorted(gaits.items()):
            schedule = contact_schedule(gait, stances, planner.time_unit) if isinstance(gait, str) else gait
            if len(schedule.touchdowns) != len(stances):
                raise DefinitionError(
                    f"a gait has {len(schedule.touchdowns)} feet, but {robot.name!r} has {len(stances)}"
                )
            schedules.append((float(begin), schedule))
        radius = float(np.max(np.linalg.norm(stances, axis=1)))
        least = 1.0 if len(stances) == 2 else _LEAST_DUTY
        return GaitChoice(tuple(schedules), by_speed, least, radius, height, gravity)


def _fitted_parts(robot: Robot, home: Home) -> tuple[Home, MotionPlanner, FootstepLaw, Array, Array]:
    """Return the parts of the law that robot and posture alone determine.

    They are the posture, planner, landing places, `_possible_velocities` and `_fastest`.
    """
    gravity = float(np.linalg.norm(robot.gravity))
    q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
    mass = center_of_mass(robot, q)
    height = float(mass[2])
    feet, places = _feet(robot, home, q)
    stances = places[:, :2] - mass[:2]
    rows = foot_rows(stances)
    neighbors = tuple(rows.index((row, 1 - side)) if (row, 1 - side) in rows else None for row, side in rows)
    hips, lengths = np.array([leg.hip for leg in home.legs]), np.array([leg.length for leg in home.legs])
    possible = _possible_velocities(robot, q, feet, places, height)
    steps = FootstepLaw(stances, hips, lengths, neighbors, float(np.sqrt(gravity / height)))
    inertia, legs = _inertia(robot, q), _leg_inertias(robot, q, feet)
    limits = _limits(robot, home, q, _ACCELERATION * gravity / height)
    planner = MotionPlanner(robot, feet, home.angles, inertia, legs, height, home.base_height, gravity, limits)
    return home, planner, steps, possible, _fastest(robot, q, feet, places, height, limits.speed)


@lru_cache(maxsize=4)
def _standing(robot: Robot) -> tuple[Home, MotionPlanner, FootstepLaw, Array, Array]:
    """Return `_fitted_parts` of the default posture; many laws of a study share them. Robots do not change."""
    return _fitted_parts(robot, _home(robot))


def _home(robot: Robot) -> Home:
    """Return the default standing posture."""
    home = home_of(robot)
    if len(home.legs) > 2:
        return home
    return home_of(robot, _BIPED_HIPS * min(leg.length for leg in home.legs), nearest=True)


def _feet(robot: Robot, home: Home, q: Array) -> tuple[tuple[Foot, ...], Array]:
    """Return the feet, and the places of their soles at q, (n, 3), [m], world axes."""
    rotations, origins = link_poses(robot, q)
    feet, places = [], []
    for chain in home.legs:
        contacts = tuple(i for i, point in enumerate(robot.contacts) if point.name in chain.contacts)
        own = [robot.contacts[i] for i in contacts]
        points = np.array([origins[c.link] + rotations[c.link] @ c.position for c in own])
        place, rotation = points.mean(axis=0), rotations[chain.link]
        sole = rotation.T @ (place - origins[chain.link])
        links = tuple(dict.fromkeys(c.link for c in own))
        feet.append(Foot(chain.link, sole, contacts, points - place, rotation, chain.columns, links))
        places.append(place)
    return tuple(feet), np.array(places)


def _limits(robot: Robot, home: Home, q: Array, acceleration: float) -> JointLimits:
    """Return the limits of the joints, with knees that stay on the side to which they bend at q.

    The knee is the second pitch joint of a leg. At a straight leg its motion does not change the distance from the hip
    to the end of the shank, and beyond it, in a range that some knees have, a leg that is to become shorter bends to
    the wrong side and stays at the end of this range.

    Args:
        robot: The robot. home: Its standing posture. q: Its configuration in this posture, (nq,).
        acceleration: Largest acceleration of every joint, [rad/s^2] or [m/s^2].
    """
    limits = JointLimits.of(robot, acceleration=acceleration)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    rotations, origins = link_poses(robot, q)
    for leg, foot in zip(home.legs, _feet(robot, home, q)[1], strict=True):
        if len(leg.pitch_columns) < 2:
            continue
        axes = {axis.column: axis for axis in joint_axes(robot, leg.link, rotations, origins)}
        hip, knee, *ankles = (axes[column] for column in leg.pitch_columns)
        thigh, shank = knee.origin - hip.origin, (ankles[0].origin if ankles else foot) - knee.origin
        along = np.eye(3) - np.outer(knee.direction, knee.direction)
        bend = float(np.arctan2(knee.direction @ np.cross(thigh, shank), thigh @ along @ shank))
        straight = q[robot.base.nq + knee.column] - bend
        least = min(_BEND, 0.5 * abs(bend))
        if bend > 0.0:
            lower[knee.column] = max(lower[knee.column], straight + least)
        else:
            upper[knee.column] = min(upper[knee.column], straight - least)
    return replace(limits, lower=lower, upper=upper)


def _possible_velocities(robot: Robot, q: Array, feet: tuple[Foot, ...], places: Array, height: float) -> Array:
    """Return the projection of commands (vx, vy, yaw rate) onto those that the legs follow, (3, 3), mixed units.

    It is orthogonal in (vx, vy, height * yaw rate). The velocity of each foot relative to the body, which is that of
    the ground, lies in the range of the Jacobian of its leg at q. With a direction n that is orthogonal to this range,
    n . (v + yaw rate x place) = 0. Legs with three joints have no such direction; those with a hip and a knee move in a
    plane.

    Args:
        robot: The robot.
        q: Standing posture, (nq,).
        feet: Its feet.
        places: Of their soles at q, (n, 3), [m], base axes.
        height: Of the center of mass, [m].
    """
    model, rows = WholeBodyModel(robot, q, np.zeros(robot.nv)), []
    for foot, (x, y, _) in zip(feet, places, strict=True):
        J = model.point(foot.link, foot.sole).J[3:, [robot.base.nv + k for k in foot.columns]]
        directions, sizes, _ = np.linalg.svd(J)
        rank = int(np.sum(sizes > _MOVES * sizes[0]))
        rows += [[n[0], n[1], (n[1] * x - n[0] * y) / height] for n in directions.T[rank:]]
    C, units = np.array(rows).reshape(-1, 3), np.array([1.0, 1.0, height])
    projection = np.round(np.eye(3) - np.linalg.pinv(C, rcond=_MOVES) @ C, 12) + 0.0
    return projection * (units / units[:, None])


def _fastest(robot: Robot, q: Array, feet: tuple[Foot, ...], places: Array, height: float, speeds: Array) -> Array:
    """Return the largest velocity forward, to the left, and yaw rate, (3,), [m/s], [m/s], [rad/s].

    A swinging foot passes a body that moves at half the mean speed of a swing; the largest speed in a swing is more by
    the factor `Profile.peak`. The velocity at which a joint then has 1.2 times its largest speed is a limit, as are
    multiples of sqrt(g h) that no robot exceeded.

    Args:
        robot: The robot. q: Standing posture, (nq,). feet: Its feet.
        places: Of their soles at q, (n, 3), [m], base axes. height: h, of the center of mass, [m].
        speeds: Largest joint speeds, (nj,), [rad/s] or [m/s].
    """
    model, profile = WholeBodyModel(robot, q, np.zeros(robot.nv)), SOLE if all(f.is_flat for f in feet) else POINT
    unit = float(np.sqrt(np.linalg.norm(robot.gravity) * height))
    most = _FASTEST_ON_TWO if len(feet) == 2 else _FASTEST
    fastest = np.array([most * unit, most * unit, _FASTEST * unit / height])
    for foot, (x, y, _) in zip(feet, places, strict=True):
        J = model.point(foot.link, foot.sole).J[3:, [robot.base.nv + k for k in foot.columns]]
        rates = np.abs(np.linalg.pinv(J, rcond=_MOVES) @ np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-y, x, 0.0]]).T)
        shares = (rates / speeds[list(foot.columns), None]).max(axis=0)
        fastest = np.minimum(fastest, _OVERSPEED / (profile.peak * np.maximum(shares, 1e-9)))
    return fastest


def _warn_of_speed(robot: Robot, command: Any, fastest: Array) -> None:
    """Warn of a constant command that is faster than the robot can follow, see `_fastest`."""
    if not (isinstance(command, Command) and command.is_constant):
        return
    wanted = command(0.0)[:3]
    vx, vy, rate = slowed(wanted, fastest)
    if np.abs([vx, vy, rate] - wanted).max() > 1e-9:
        warnings.warn(
            f"robot {robot.name!r} cannot follow the command vx={command.vx:g}, vy={command.vy:g}, "
            f"yaw_rate={command.yaw_rate:g}: its largest velocities are {fastest[0]:.3g} m/s forward, {fastest[1]:.3g} "
            f"m/s to the left and {fastest[2]:.3g} rad/s, by the speeds of its joints and its height; it is to move at "
            f"vx={vx:.3g}, vy={vy:.3g}, yaw_rate={rate:.3g}",
            SimulationWarning,
            stacklevel=4,
        )


def _check_command(robot: Robot, command: Any, possible: Array, height: float) -> None:
    """Raise an error if a constant command is not a velocity that the legs follow."""
    if not (isinstance(command, Command) and command.is_constant):
        return
    wanted = command(0.0)[:3]
    vx, vy, rate = possible @ wanted
    units = np.array([1.0, 1.0, height])
    if np.abs(units * ([vx, vy, rate] - wanted)).max() > _MOVES * np.abs(units * wanted).max():
        raise DefinitionError(
            f"the legs of robot {robot.name!r} cannot follow the command vx={command.vx:g}, vy={command.vy:g}, "
            f"yaw_rate={command.yaw_rate:g}, since they do not move their feet in all directions; the nearest possible "
            f"command is vx={vx:g}, vy={vy:g}, yaw_rate={rate:g}"
        )


def _inertia(robot: Robot, q: Array) -> Array:
    """Return the inertia of the robot with fixed joints about its center of mass, (3, 3), [kg m^2], base axes."""
    turns = [robot.base.velocity(q[: robot.base.nq], axis, np.zeros(3)) for axis in np.eye(3)]
    joints = np.zeros(robot.nj)
    return np.array([momentum(robot, q, np.concatenate([turn, joints]))[:3] for turn in turns]).T


def _leg_inertias(robot: Robot, q: Array, feet: tuple[Foot, ...]) -> Array:
    """Return the angular momentum per velocity of each foot at a fixed base, (n, 3, 3), [kg m], base axes.

    Feet move without rotation, flat ones, or with the smallest joint velocities.
    """
    model, inertias = WholeBodyModel(robot, q, np.zeros(robot.nv)), []
    for foot in feet:
        columns = [robot.base.nv + k for k in foot.columns]
        J = model.point(foot.link, foot.sole).J[:, columns]
        J = J if foot.is_flat else J[3:]
        v = np.zeros((3, robot.nv))
        v[:, columns] = np.linalg.lstsq(J, np.eye(len(J))[:, -3:], rcond=1e-6)[0].T
        inertias.append(np.array([momentum(robot, q, row)[:3] for row in v[:2]] + [np.zeros(3)]).T)
    return np.array(inertias)
