"""Locomotion at a commanded velocity on terrain: the definition of the controller, and its fit to a robot."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from controllers.locomotion.fitting import (
    DUTY_OF_SHORT_STEPS,
    LEAST_DUTY_ON_TWO,
    LEAST_REMAINING,
    LEAST_RISE,
    MOVES,
    QUICK,
    RISING,
    SLOWEST,
    fitted_parts,
    least_duty,
    standing_parts,
    swing_limits,
)
from controllers.locomotion.gait.choice import AUTOMATIC, SPEEDS, UNSTEADY, GaitChoice
from controllers.locomotion.gait.footsteps import FootstepLaw, plane_of
from controllers.locomotion.gait.posture import has_slow_legs, has_very_slow_legs, weakness
from controllers.locomotion.gait.schedule import GAITS, ContactSchedule, contact_schedule
from controllers.locomotion.motion import tangent_axes
from controllers.locomotion.motion_plan import MotionPlanner
from controllers.locomotion.started_locomotion import StartedLocomotion
from controllers.locomotion.torques.hands import moving_columns
from controllers.locomotion.velocity_command import Command, slowed
from controllers.operational_space import PathTask, check_path_tasks
from controllers.wrappers.serial import OnSerialEquivalent
from legged import arguments
from legged.algorithms.legs.leg_chains import LegChain, leg_chains
from legged.algorithms.legs.standing import Home, home_of, standing_on
from legged.arguments import known_name
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, ReachError, SimulationWarning, warn_caller
from legged.ground.ground import Ground
from legged.ground.terrain import Terrain
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.spatial import Array


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
            terrain between, relative to the height of the center of mass of the standing robot. Two feet rise no higher
            than the hips can bend in the standing posture and joints reach in time, see `fitting.swing_limits`.
        terrain: The terrain that the controller knows; None for a blind robot, which continues the plane through the
            last places of its feet, waits for feet that meet an obstacle or lower ground, and lifts its feet by up to
            0.15 h more on ground at heights that it did not expect.
        home: Standing posture, by default that of `home_of`; of robots with two legs with hips at 0.82 of their length,
            so that legs reach to the side and to the front, or higher where an ankle would be nearer than 0.18 rad to
            the end of its range or joints would hardly hold the robot on one leg, over what weak ankles hold.
        hands: Paths of points or poses of links beside the legs, such as `controllers.PoseTask` of a hand. The base
            follows its own motion first. Joints outside the legs that no hand needs hold the standing posture.
    """

    gait: str | ContactSchedule | Mapping[float, str | ContactSchedule] = "trot"
    command: Any = field(default_factory=Command)
    rate: float = 500.0
    friction: float = 0.5
    clearance: float = 0.15
    terrain: Terrain | None = None
    home: Home | None = None
    hands: Sequence[PathTask] = ()

    def __post_init__(self) -> None:
        if self.command is not None and not callable(self.command):
            arguments.instance("command", self.command, Command, "a Command, a function of time or None")
        arguments.number("rate", self.rate, "1/s", above=0.0)
        arguments.number("friction", self.friction, above=0.0)
        arguments.number("clearance", self.clearance, above=0.0)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[StartedLocomotion, Array]:
        """Return (law, memory): the law for a robot and its initial memory, (m,); see `Controller.start`.

        Raises:
            DefinitionError: The robot has no legs, no gravity or a fixed base, stands on wheels that are not locked,
                its joints cannot hold the standing posture, or it cannot follow a constant command.
        """
        return self._fitted(robot).started(q, v)

    def on_closed_robot(self, closed: ClosedRobot) -> OnSerialEquivalent:
        """Return the law for a robot with closed loops, whose motors are those joints with a limit of effort."""
        return OnSerialEquivalent(self, closed)

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
            targets = [center + foot.outline @ R.T for foot, center, R in soles]
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
        _check_wheels(robot, leg_chains(robot) if self.home is None else self.home.legs)
        _warn_of_findings(robot)
        home, planner, steps, possible, fastest = (
            standing_parts(robot) if self.home is None else fitted_parts(robot, self.home)
        )
        is_planar = len(home.legs) == 4 and not possible[1, 1] > 0.5
        gaits, on_two = self._gaits(robot, home, planner, steps, is_planar), len(home.legs) == 2
        duties = [(x.period, float(np.max(x.duty))) for _, x in gaits.schedules]
        swing = min((period * (1.0 - duty) for period, duty in duties if duty < 1.0), default=np.inf)
        clearance, speeds, (joint, available, rising) = swing_limits(robot, home, self.clearance, swing)
        duty = min(gaits.least_duty, *(duty for _, duty in duties))
        speeds = speeds * (1.0 - duty) / duty  # of the body over a foot that stands
        speeds = speeds * min(1.0, 2.0 * duty)  # with flights forces exceed the weight, and joints are slower
        fastest = np.minimum(fastest, [*speeds, np.inf])
        if on_two:
            fastest[0] = min(fastest[0], gaits.fastest_in_reach(duty))
        words = weakness(robot, home)
        named = self.gait.values() if isinstance(self.gait, Mapping) else [self.gait]
        if is_planar and (unsteady := [gait for gait in named if isinstance(gait, str) and gait in UNSTEADY]):
            words = (
                f"its legs do not move their feet to the side, so that steps correct no lateral deviation in the gait "
                f"{unsteady[0]!r}; use 'walk', 'bound' or 'pronk'"
            )
        slowest = SLOWEST * float(np.sqrt(gravity * planner.height))
        if speeds[0] < slowest:
            needed = available * (rising + max(1.0 - rising, LEAST_REMAINING) * slowest / speeds[0])
            words = (
                f"joint {joint!r} is slow: its largest speed of {available:.3g} rad/s limits walks to {speeds[0]:.2g} "
                f"m/s, and one at {slowest:.2g} m/s needs {needed:.2g} rad/s"
            )
        if words:
            warn_caller(f"robot {robot.name!r} may fall: {words}", SimulationWarning)
        _check_command(robot, self.command, possible, planner.height)
        _warn_of_speed(robot, self.command, fastest, on_two)
        _warn_of_reach(robot, home, self.command, steps.stances)
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
            clearance,
            self.terrain,
            _checked_hands(robot, home, self.hands),
        )

    def _gaits(
        self, robot: Robot, home: Home, planner: MotionPlanner, steps: FootstepLaw, is_planar: bool
    ) -> GaitChoice:
        """Return the choice of the gait, with its gaits in the order of time or speed.

        Args:
            robot: The robot. home: Its standing posture. planner, steps: Parts of its law.
            is_planar: Whether it has four legs that cannot move their feet to the side.
        """
        stances, height, gravity = steps.stances, planner.height, planner.gravity
        if isinstance(self.gait, str):
            known_name("gait", self.gait, (*GAITS, AUTOMATIC))
        by_speed = self.gait == AUTOMATIC
        if by_speed:
            unit = float(np.sqrt(gravity * height))
            speeds = {"walk": 0.0} if len(stances) == 2 or is_planar else SPEEDS
            gaits = {unit * speed: name for name, speed in speeds.items()}
        else:
            gaits = self.gait if isinstance(self.gait, Mapping) else {0.0: self.gait}
        schedules, on_two = [], len(stances) == 2
        quick = QUICK if any(steps.narrow) or planner.inclined.has_weak_waist else 1.0
        has_short_steps = on_two and has_very_slow_legs(robot, home)
        if has_short_steps:  # unless the joint that bounds the speed hardly raises the foot in this time
            swing = quick * GAITS["trot"].period * planner.time_unit * (1.0 - DUTY_OF_SHORT_STEPS)
            _, _, (_, _, rising) = swing_limits(robot, home, LEAST_RISE, swing)
            has_short_steps = rising <= RISING
        for begin, gait in sorted(gaits.items()):
            is_short = gait == "walk" and has_short_steps
            named = "trot" if is_short else gait
            schedule = contact_schedule(named, stances, planner.time_unit) if isinstance(named, str) else named
            if isinstance(gait, str):
                schedule = replace(schedule, period=quick * schedule.period)
            if is_short:
                schedule = replace(schedule, duty=DUTY_OF_SHORT_STEPS)  # swings are shorter and take longer
            elif gait == "walk" and on_two and has_slow_legs(robot, home):
                schedule = replace(schedule, duty=LEAST_DUTY_ON_TWO)  # swings take longer
            if len(schedule.touchdowns) != len(stances):
                raise DefinitionError(
                    f"a gait has {len(schedule.touchdowns)} feet, but {robot.name!r} has {len(stances)}"
                )
            schedules.append((float(begin), schedule))
        radius = float(np.max(np.linalg.norm(stances, axis=1)))
        least = LEAST_DUTY_ON_TWO if on_two else least_duty(robot, home)
        length = min(leg.length for leg in home.legs)
        reach = float(np.sqrt(max(length**2 - home.hip_height**2, (0.1 * length) ** 2)))  # at least a tenth of the leg
        return GaitChoice(tuple(schedules), by_speed, least, radius, np.sign(stances), height, gravity, reach)


def _check_wheels(robot: Robot, legs: Sequence[LegChain]) -> None:
    """Raise an error if a robot stands on wheels that can turn."""
    wheels = [leg.wheel for leg in legs if leg.wheel]
    if wheels:
        values = ", ".join(f"{name!r}: 0.0" for name in wheels)
        names = ", ".join(map(repr, wheels))
        raise DefinitionError(
            f"robot {robot.name!r} cannot walk: it stands on wheels, turned by the joints {names}, and Locomotion "
            f"does not drive wheels; lock these joints: robot.locked({{{values}}})"
        )


def _checked_hands(robot: Robot, home: Home, hands: Sequence[PathTask]) -> tuple[PathTask, ...]:
    """Return the tasks of hands, or raise an error for a link that is none or a path of wrong shape."""
    check_path_tasks(robot, hands)
    legs = {k for leg in home.legs for k in leg.columns}
    for hand in hands:
        own = moving_columns(robot, hand.link)
        if not own or legs.intersection(own):
            raise DefinitionError(
                f"link {hand.link!r} of robot {robot.name!r} is no hand: it is a part of the trunk or of a leg; give "
                f"tasks of links that joints outside the legs move"
            )
    return tuple(hands)


def _warn_of_speed(robot: Robot, command: Any, fastest: Array, on_two: bool) -> None:
    """Warn of a constant command that is faster than the robot can follow, see `_fastest`."""
    if not (isinstance(command, Command) and command.is_constant):
        return
    wanted = command(0.0)[:3]
    vx, vy, rate = slowed(wanted, fastest, on_two)
    if np.abs([vx, vy, rate] - wanted).max() > 1e-9:
        warnings.warn(
            f"robot {robot.name!r} cannot follow the command vx={command.vx:g}, vy={command.vy:g}, "
            f"yaw_rate={command.yaw_rate:g}: its largest velocities are {fastest[0]:.3g} m/s forward, {fastest[1]:.3g} "
            f"m/s to the left and {fastest[2]:.3g} rad/s, by the speeds of its joints, its height and the distance of "
            f"its feet; it is to move at vx={vx:.3g}, vy={vy:.3g}, yaw_rate={rate:.3g}",
            SimulationWarning,
            stacklevel=4,
        )


def _warn_of_reach(robot: Robot, home: Home, command: Any, stances: Array) -> None:
    """Warn of a constant command whose height, pitch and roll the straight legs do not reach.

    Args:
        robot: The robot. home: Its standing posture. command: As in `Locomotion`.
        stances: Places of the feet under the body, (n, 2), [m], heading axes.
    """
    if not (isinstance(command, Command) and command.is_constant):
        return
    height, pitch, roll = command(0.0)[3:6]
    wanted = home.hip_height + height - stances[:, 0] * np.sin(pitch) + stances[:, 1] * np.sin(roll)
    if wanted.max() <= home.hip_height:
        return
    with suppress(ReachError):
        reached = home_of(robot, min(leg.length for leg in home.legs), nearest=True).hip_height
        if wanted.max() > reached:
            warnings.warn(
                f"robot {robot.name!r} does not reach the command height={height:g}, pitch={pitch:g}, roll={roll:g}: a "
                f"hip would be {wanted.max():.3g} m above the ground, and legs stand up to {reached:.3g} m under "
                f"theirs; the body stays lower, so reduce the height by {wanted.max() - reached:.2g} m, or the angles",
                SimulationWarning,
                stacklevel=4,
            )


def _warn_of_findings(robot: Robot) -> None:
    """Warn of problems of the file of a robot because of which it probably cannot walk."""
    for finding in robot.audit.findings if robot.audit else ():
        if finding.kind in ("feet", "forward", "up"):
            warn_caller(f"robot {robot.name!r} may fall: {finding.where}: {finding.words}", SimulationWarning)


def _check_command(robot: Robot, command: Any, possible: Array, height: float) -> None:
    """Raise an error if a constant command is not a velocity that the legs follow."""
    if not (isinstance(command, Command) and command.is_constant):
        return
    wanted = command(0.0)[:3]
    vx, vy, rate = possible @ wanted
    units = np.array([1.0, 1.0, height])
    if np.abs(units * ([vx, vy, rate] - wanted)).max() > MOVES * np.abs(units * wanted).max():
        raise DefinitionError(
            f"the legs of robot {robot.name!r} cannot follow the command vx={command.vx:g}, vy={command.vy:g}, "
            f"yaw_rate={command.yaw_rate:g}, since they do not move their feet in all directions; the nearest possible "
            f"command is vx={vx:g}, vy={vy:g}, yaw_rate={rate:g}"
        )
