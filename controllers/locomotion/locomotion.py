"""Locomotion at a commanded velocity on terrain: the controller that joins schedule, footsteps, swings and forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controllers.gaits.standing import Home, home_of
from controllers.locomotion.gait.footsteps import FootstepLaw, GroundPlane, plane_of, terrain_heights
from controllers.locomotion.gait.schedule import ContactSchedule, GaitState, contact_schedule, foot_rows
from controllers.locomotion.gait.swing import Swing, swing_path, swing_peak
from controllers.locomotion.memory import LocomotionMemory
from controllers.locomotion.motion_plan import (
    HORIZON,
    BodyReference,
    BodyState,
    Foot,
    MotionPlanner,
    tangent_axes,
)
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.torques.whole_body import JointLimits
from controllers.locomotion.velocity_command import Command, read_command
from controllers.zero_order_hold import is_sample_time, sample_times
from legged import arguments
from legged.checked import checked
from legged.compiler.ir import where
from legged.compiler.ir.expression import Expression
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import center_of_mass, link_poses, momentum, point_motion
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.ground.terrain import Terrain
from legged.robot.robot import Robot
from legged.spatial import Array, join

# Dimensionless parameters, in units of the height h of the center of mass, the mass m and gravity g:
_ACCELERATION = 0.15  # [g], largest change of the commanded velocity
_YAW_ACCELERATION = 0.2  # [g / h]
_TRAVEL = 1.1  # [h], distance that the body moves in a stance, from which on the period becomes shorter
_CLEARANCE = 0.15  # [h], of swinging feet
_STILL = 0.02  # [sqrt(g h)], commanded speed below which the robot stands
_CAPTURE = 0.12  # [h], deviation of the divergent component from which on a standing robot steps, or, if more,
_CAPTURE_WITHIN = 0.6  # of the smaller half-extent of the standing feet
_CAUGHT = 1.0 / 3.0  # of that deviation: stepping ends below it
_TOUCH = 0.002  # [m g], force on a foot that counts as contact; less than a foot that moves down presses
_REPLAN = 0.1  # of a swing: time constant with which the target of a swinging foot moves
_CONTACT_TIME = 0.02  # [s], time without contact force after which a foot that is to stand counts as in the air
_DRIFT = 0.15  # [h], largest distance of the desired position from the actual one
_SLOPE_TIME = 1.0  # [sqrt(h / g)], time constant of the slope of the ground under the robot


@checked
@dataclass(frozen=True, eq=False)
class Locomotion:
    """Walking of any legged robot at a commanded velocity.

        law = controllers.Locomotion("trot", controllers.Command(vx=0.8, yaw_rate=0.3))
        run = legged.simulate(robot, law, ground=legged.Rigid(), until=5.0, integrator=legged.TimeStepping(2e-3))

    Attributes:
        gait: Name of a gait, see `controllers.locomotion.gait.schedule.GAITS`, or a `ContactSchedule`, or several with
            the times at which each begins, {0.0: "walk", 4.0: "trot"}, [s].
        command: A `Command` or another function of time with its five entries. None: the command of
            `legged.Simulation.step`, and zero without one.
        rate: Evaluations per second, [1/s].
        friction: Friction coefficient that the controller counts on.
        terrain: The terrain that the controller knows; None for a blind robot, which continues the plane through the
            last places of its feet.
        home: Standing posture, by default that of `home_of`.
    """

    gait: str | ContactSchedule | Mapping[float, str | ContactSchedule] = "trot"
    command: Any = field(default_factory=Command)
    rate: float = 500.0
    friction: float = 0.5
    terrain: Terrain | None = None
    home: Home | None = None

    def __post_init__(self) -> None:
        arguments.number("rate", self.rate, "1/s", above=0.0)
        arguments.number("friction", self.friction, above=0.0)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[StartedLocomotion, Array]:
        """Return (law, memory): the law for a robot and its initial memory, (m,).

        Args:
            robot: The robot.
            ground: The ground, or None.
            q: Initial configuration, (nq,).
            v: Initial velocity, (nv,).

        Raises:
            DefinitionError: The robot has no legs, no gravity or a fixed base.
        """
        return self._law(robot).started(q)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) of the standing robot, (nq,) and (nv,), with its feet on the terrain around the origin.

        The base is parallel to the plane through the terrain under the feet.
        """
        law = self._law(robot)
        height, rotation = law.home.base_height, np.eye(3)
        if self.terrain is not None:
            places = [np.array([x, y, self.terrain.height(x, y)]) for x, y in law.steps.stances]
            plane = plane_of(places, law.height)
            rotation = tangent_axes(plane.normal, np.array([1.0, 0.0, 0.0]))
            above = max(float(place[2] - plane.height(place[:2])) for place in places)
            height = float(plane.height(np.zeros(2))) + above + height * float(np.sqrt(1.0 + plane.slope @ plane.slope))
        base = robot.base.configuration(np.array([0.0, 0.0, height]), rotation)
        return np.concatenate([base, law.home.angles]), np.zeros(robot.nv)

    def _law(self, robot: Robot) -> StartedLocomotion:
        gravity = float(np.linalg.norm(robot.gravity))
        if robot.base.nv != 6 or gravity == 0.0:
            raise DefinitionError(f"robot {robot.name!r} cannot walk: Locomotion needs a floating base and gravity")
        home = self.home or home_of(robot)
        q = np.concatenate([robot.base.configuration(np.array([0.0, 0.0, home.base_height]), np.eye(3)), home.angles])
        mass = center_of_mass(robot, q)
        height = float(mass[2])
        rotations, origins = link_poses(robot, q)
        feet, places = [], []
        for chain in home.legs:
            contacts = tuple(i for i, point in enumerate(robot.contacts) if point.name in chain.contacts)
            points = np.array([robot.contacts[i].position for i in contacts])
            sole, rotation = points.mean(axis=0), rotations[chain.link]
            feet.append(Foot(chain.link, sole, contacts, (points - sole) @ rotation.T, rotation))
            places.append(origins[chain.link] + rotation @ sole)
        stances = np.array([place[:2] - mass[:2] for place in places])
        rows = foot_rows(stances)
        neighbors = tuple(rows.index((row, 1 - side)) if (row, 1 - side) in rows else None for row, side in rows)
        hips, lengths = np.array([leg.hip for leg in home.legs]), np.array([leg.length for leg in home.legs])
        steps = FootstepLaw(stances, hips, lengths, neighbors, float(np.sqrt(gravity / height)))
        unit = float(np.sqrt(height / gravity))
        gaits = self.gait if isinstance(self.gait, Mapping) else {0.0: self.gait}
        schedules = []
        for time, gait in sorted(gaits.items()):
            schedule = contact_schedule(gait, stances, unit) if isinstance(gait, str) else gait
            if len(schedule.touchdowns) != len(feet):
                raise DefinitionError(f"a gait has {len(schedule.touchdowns)} feet, but {robot.name!r} has {len(feet)}")
            schedules.append((float(time), schedule))
        turns = [robot.base.velocity(q[: robot.base.nq], axis, np.zeros(3)) for axis in np.eye(3)]
        joints = np.zeros(robot.nj)
        inertia = np.array([momentum(robot, q, np.concatenate([turn, joints]))[:3] for turn in turns]).T
        limits = JointLimits.of(robot)
        planner = MotionPlanner(robot, tuple(feet), home.angles, inertia, height, gravity, limits)
        return StartedLocomotion(self, robot, home, planner, steps, tuple(schedules))


@dataclass(frozen=True, eq=False)
class StartedLocomotion:
    """A started `Locomotion`.

    Attributes:
        law: The definition.
        robot: The robot.
        home: Standing posture.
        planner: Predictive and whole-body control.
        steps: Landing places.
        schedules: (beginning [s], gait) of each gait.
    """

    law: Locomotion
    robot: Robot
    home: Home
    planner: MotionPlanner
    steps: FootstepLaw
    schedules: tuple[tuple[float, ContactSchedule], ...]

    @property
    def height(self) -> float:
        """Height of the center of mass over the ground in the standing posture, [m]."""
        return self.planner.height

    @property
    def gravity(self) -> float:
        """Magnitude of gravity, [m/s^2]."""
        return self.planner.gravity

    @property
    def has_clock(self) -> bool:
        """Whether `update` must run at times of its own: always."""
        return True

    @property
    def takes_command(self) -> bool:
        """Whether the law takes the command of `legged.Simulation.step`."""
        return self.law.command is None

    def update_times(self, until: float) -> Array:
        """Return the times of evaluation between 0 and `until`, (n,), [s]."""
        return sample_times(until, self.law.rate)

    def switches(self, until: float) -> Any:
        """Return no times: the reference is continuous."""
        return ()

    def started(self, q: Array) -> tuple[StartedLocomotion, Array]:
        """Return (law, memory): this law and its initial memory, (m,).

        Args:
            q: Initial configuration, (nq,).
        """
        robot, zero = self.robot, np.zeros(5)
        places, _ = point_motion(robot, q, np.zeros(robot.nv), [(foot.link, foot.sole) for foot in self.planner.feet])
        R, _ = robot.base.pose(q[: robot.base.nq])
        path = np.array([*center_of_mass(robot, q)[:2], np.arctan2(R[1, 0], R[0, 0])])
        command = self.law.command
        constant = command(0.0) if isinstance(command, Command) and command.is_constant else zero
        memory = LocomotionMemory(
            np.zeros(robot.nv),
            GaitState.standing(self.schedules[0][1]).flat(),
            zero,
            path,
            plane_of(list(places), self.height).slope,
            places,
            places,
            np.ones(len(places)),
            0.0,
            np.zeros((HORIZON, 6)),
            np.zeros(2),
            self.schedules[0][1].parameters,
            constant,
            self.law.friction,
            np.zeros(self.planner.iterate_size(q)),
        )
        return self, memory.flat()

    def memory(self, flat: Array) -> LocomotionMemory:
        """Return the parts of a memory.

        Args:
            flat: (m,), mixed units, such as a row of `Run.memory`.
        """
        return LocomotionMemory.of(flat, self.robot.nv, len(self.planner.feet))

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the current generalized forces, (nv,); arguments as in `GaitLaw.torque`."""
        return memory[: len(v)]

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): a new evaluation at the times of evaluation.

        Arguments as in `GaitLaw.torque`; `command` is that of `legged.Simulation.step`, (5,).
        """
        due = is_sample_time(t, self.law.rate)
        if not isinstance(due, Expression) and not due:
            return memory
        following = self.evaluated(t, q, v, wrenches, self.memory(memory), *command).flat()
        return where(due, following, memory)

    def evaluated(
        self, t: Any, q: Array, v: Array, wrenches: Array, memory: LocomotionMemory, *command: Array
    ) -> LocomotionMemory:
        """Return the memory after an evaluation of the law.

        Args:
            t: Time, [s].
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            wrenches: Wrenches of the ground on the links, (n_links, 6), about each link's origin in its axes.
            memory: Memory at the last evaluation.
            command: The command of `legged.Simulation.step`, (5,).
        """
        robot, dt, h, g = self.robot, 1.0 / self.law.rate, self.height, self.gravity
        R, origin = robot.base.pose(q[: robot.base.nq])
        mass, rate = center_of_mass(robot, q), momentum(robot, q, v)[3:] / robot.mass
        model = WholeBodyModel(robot, q, v)
        at = [model.point(foot.link, foot.sole) for foot in self.planner.feet]
        feet, angular = np.array([point.position for point in at]), model.point(0).twist[:3]
        wanted = self._command(t, memory, command)
        limited = self._limited(wanted, memory.command, dt)
        velocity, yaw_rate = limited[:2], limited[2]

        touched = [self._touches(wrenches[foot.link]) for foot in self.planner.feet]
        walk = self._walks(limited, memory)
        parameters = self._parameters(self._target(t, memory.target), velocity, yaw_rate)
        state = GaitState.of(memory.gait).advanced(dt, walk, touched, parameters)
        stance, progress = state.stance, state.swing_progress
        fade = dt / _CONTACT_TIME
        contact = [
            where(k > 0.5, np.maximum(c, np.maximum(old - fade, 0.0)), 0.0)
            for k, c, old in zip(stance, touched, memory.contact, strict=True)
        ]
        active = [where(c > 0.0, 1.0, 0.0) for c in contact]
        places = [where(k > 0.5, p, old) for k, p, old in zip(active, feet, memory.places, strict=True)]

        level = np.sqrt(R[0, 0] * R[0, 0] + R[1, 0] * R[1, 0])
        forward = np.array([R[0, 0], R[1, 0]]) / level
        heading = np.array([forward, [-forward[1], forward[0]]])
        share = np.minimum(1.0, dt / (_SLOPE_TIME * np.sqrt(h / g)))
        fit = plane_of(places, h)
        plane = GroundPlane(fit.point, memory.slope + share * (fit.slope - memory.slope))

        xi = mass[:2] + rate[:2] / self.steps.omega
        landings, error = self.steps.landing(state, feet, xi, heading, velocity, yaw_rate)
        footsteps, swings = [], []
        for i, landing in enumerate(landings):
            hip = origin + R @ self.steps.hips[i] + join(rate[:2] * state.time_to_touchdown[i], np.zeros(1))
            place = self.steps.within_reach(landing, i, hip, feet, stance, heading, plane.height(landing))
            ground = self._ground_height(place, plane)
            target = np.array([place[0], place[1], ground])
            duration = (1.0 - state.duty[i]) * state.period
            filtered = memory.footsteps[i] + (target - memory.footsteps[i]) * np.minimum(
                1.0, dt / (0.1 * duration + dt)
            )
            target = where(stance[i] > 0.5, target, filtered)
            footsteps.append(target)
            swings.append(self._swing(progress[i], duration, places[i], target, plane))

        path = self._path(memory.path, limited, mass, dt)
        reference = self._reference(path, limited, plane, mass)
        normals = [self._normal(place, plane) for place in places]
        body = BodyState(mass, rate, R, angular)
        plan = self.planner.plan(body, reference, state, feet, footsteps, normals, memory.friction, memory.wrenches)
        found = self.planner.torques(
            model, plan, active, stance, swings, reference, normals, memory.friction, memory.iterate
        )
        return memory._replace(
            tau=np.concatenate([np.zeros(robot.base.nv), found.tau]),
            gait=state.flat(),
            command=limited,
            path=path,
            slope=plane.slope,
            places=np.array(places),
            footsteps=np.array(footsteps),
            contact=np.stack(contact),
            deviation=np.sqrt(error @ error),
            wrenches=plan.wrenches,
            iterate=found.iterate,
            residuals=np.stack([plan.residual, found.residual]),
        )

    def _reference(self, path: Array, command: Array, plane: GroundPlane, mass: Array) -> BodyReference:
        """Return the desired motion of the body over the ground."""
        c, s = np.cos(path[2]), np.sin(path[2])
        velocity = np.array([c * command[0] - s * command[1], s * command[0] + c * command[1]])
        height = plane.height(mass[:2]) + self.height + command[3]
        axes = tangent_axes(plane.normal, np.array([c, s, 0.0 * c]))
        cp, sp = np.cos(command[4]), np.sin(command[4])
        rotation = axes @ np.array([[cp, 0.0, sp], [0.0, 1.0, 0.0], [-sp, 0.0, cp]])
        position, climb = np.array([path[0], path[1], height]), plane.slope @ velocity
        return BodyReference(position, np.array([velocity[0], velocity[1], climb]), rotation, command[2])

    def _normal(self, place: Array, plane: GroundPlane) -> Array:
        return plane.normal if self.law.terrain is None else self.law.terrain.normal(place[0], place[1])

    def _command(self, t: Any, memory: LocomotionMemory, given: tuple[Array, ...]) -> Array:
        """Return the command of this time, (5,)."""
        own = self.law.command
        if given:
            return read_command(given[0])
        if own is None or (isinstance(own, Command) and own.is_constant):
            return memory.constant_command
        return read_command(own(t))

    def _limited(self, wanted: Array, last: Array, dt: float) -> Array:
        """Return a command with bounded rates, (5,)."""
        h, g = self.height, self.gravity
        unit = np.sqrt(h / g)
        rates = [_ACCELERATION * g, _ACCELERATION * g, _YAW_ACCELERATION * g / h, 0.2 * h / unit, 0.3 / unit]
        pairs = zip(wanted, last, rates, strict=True)
        return np.stack([b + np.minimum(np.maximum(a - b, -r * dt), r * dt) for a, b, r in pairs])

    def _walks(self, command: Array, memory: LocomotionMemory) -> Any:
        """Return 1 if the robot is to walk: if it has to move or to catch itself."""
        speed = np.sqrt(command[0] * command[0] + command[1] * command[1] + (self.height * command[2]) ** 2)
        moves = speed > _STILL * np.sqrt(self.gravity * self.height)
        walking = memory.gait[1] > 0.5
        extent = float(np.min(np.ptp(self.steps.stances, axis=0))) / 2.0
        most = max(_CAPTURE * self.height, _CAPTURE_WITHIN * extent)
        off = where(walking, _CAUGHT, 1.0) * most
        return where(moves | (memory.deviation > off), 1.0, 0.0)

    def _target(self, t: Any, first: Array) -> Array:
        """Return the parameters of the gait of this time, (1 + 2 n,), given those of the first gait."""
        target = first
        for start, schedule in self.schedules[1:]:
            target = where(t >= start, schedule.parameters, target)
        return target

    def _parameters(self, target: Array, velocity: Array, yaw_rate: Any) -> Array:
        """Return the parameters of the desired gait with a shorter period at high speed, (1 + 2 n,)."""
        n = len(self.planner.feet)
        radius = float(np.max(np.linalg.norm(self.steps.stances, axis=1)))
        speed = np.sqrt(velocity @ velocity) + np.abs(yaw_rate) * radius
        travel = speed * target[0] * target[1] / (_TRAVEL * self.height)
        return np.concatenate([np.stack([target[0] / np.maximum(1.0, travel)]), target[1 : 1 + n], target[1 + n :]])

    def _touches(self, wrench: Array) -> Any:
        force = wrench[3:]
        return where(force @ force > (_TOUCH * self.robot.mass * self.gravity) ** 2, 1.0, 0.0)

    def _ground_height(self, place: Array, plane: GroundPlane) -> Any:
        return plane.height(place) if self.law.terrain is None else self.law.terrain.height(place[0], place[1])

    def _swing(self, progress: Any, duration: Any, start: Array, end: Array, plane: GroundPlane) -> Swing:
        """Return the desired motion of a swinging foot."""
        terrain = self.law.terrain
        heights = [] if terrain is None else terrain_heights(terrain, start, end)
        peak = swing_peak(start, end, _CLEARANCE * self.height, heights)
        return swing_path(progress, duration, start, end, peak)

    def _path(self, path: Array, command: Array, mass: Array, dt: float) -> Array:
        """Return the desired place and heading after a time step, (3,), near the actual place."""
        c, s = np.cos(path[2]), np.sin(path[2])
        x = path[0] + dt * (c * command[0] - s * command[1]) - mass[0]
        y = path[1] + dt * (s * command[0] + c * command[1]) - mass[1]
        most = _DRIFT * self.height
        share = np.minimum(1.0, most / np.sqrt(x * x + y * y + 1e-12))
        return np.stack([mass[0] + share * x, mass[1] + share * y, path[2] + dt * command[2]])
