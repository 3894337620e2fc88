"""Locomotion of one robot: the started controller, which joins command, schedule, footsteps, plan and torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from controllers.locomotion.forces.predictive import Plan
from controllers.locomotion.gait.choice import GaitChoice, jump_state
from controllers.locomotion.gait.footsteps import FootstepLaw, GroundPlane, plane_of
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.uneven_ground import is_obstacle, rises_over_uneven_ground
from controllers.locomotion.memory import LocomotionMemory
from controllers.locomotion.motion import BodyReference, BodyState, FeetMotion, body_reference, tangent_axes
from controllers.locomotion.motion_plan import MotionPlanner, body_state
from controllers.locomotion.speed_limit import followed_command, speed_notice
from controllers.locomotion.step_planner import StepPlanner
from controllers.locomotion.torques.hands import HeadingAxes, hand_control, moving_columns, predicted_velocities
from controllers.locomotion.torques.tasks import WholeBodyModel
from controllers.locomotion.velocity_command import (
    ACCELERATION,
    JUMP,
    Command,
    acceleration_on_two,
    bound_notice,
    command_within_reach,
    limited_command,
    read_command,
    slowed,
)
from controllers.operational_space import PathTask
from controllers.zero_order_hold import is_sample_time, sample_times
from legged.algorithms.legs.standing import Home
from legged.compiler.ir import Expression, where
from legged.dynamics.kinematics import center_of_mass, point_motion
from legged.ground.terrain import Terrain
from legged.robot.robot import Robot
from legged.spatial import Array, join, sum_of

# Dimensionless parameters, in units of the height h of the center of mass, the mass m and gravity g:
_BEHIND = 0.65  # [h], largest distance of a foot behind its place under the body before it lifts off
_TOUCH = 0.002  # [m g], force on a foot that counts as contact; less than a foot that moves down presses
_CONTACT_TIME = 0.02  # [s], time without contact force after which a foot that is to stand counts as in the air
_CLIMB, _CLIMB_MOST = 0.1, 0.6  # [h], rise after contact with an obstacle, and height from which on there is none
_STANDING_TURN = 0.1  # share of the largest yaw acceleration before the first lift-off on soles that do not turn
_LEAP = 0.35  # [g], largest acceleration forward in the push of a jump
_SHORTEST_SWING = 0.7  # [sqrt(h / g)], swing down to which the period becomes shorter for balance


@dataclass(frozen=True, eq=False)
class StartedLocomotion:
    """A started `Locomotion`.

    Attributes:
        robot: The robot. home: Standing posture.
        planner: Predictive and whole-body control.
        steps: Landing places. gaits: Choice of the gait.
        commands: As the attribute `command` of `Locomotion`.
        possible: Projection of commands (vx, vy, yaw rate) onto those that the legs follow, (3, 3), mixed units.
        sampling_rate: Evaluations per second, [1/s].
        fastest: Largest velocity forward, to the left, and yaw rate, (3,), [m/s], [m/s], [rad/s].
        friction, clearance, terrain, hands: As in `Locomotion`; the clearance is within `fitting.swing_limits`.
    """

    robot: Robot
    home: Home
    planner: MotionPlanner
    steps: FootstepLaw
    gaits: GaitChoice
    commands: Any
    possible: Array
    fastest: Array
    sampling_rate: float
    friction: float
    clearance: float
    terrain: Terrain | None
    hands: tuple[PathTask, ...] = ()

    @property
    def height(self) -> float:
        """Height of the center of mass over the ground in the standing posture, [m]."""
        return self.planner.height

    @property
    def feet_plan(self) -> StepPlanner:
        """Places and paths of the feet on the ground."""
        return StepPlanner(self.planner, self.steps, self.terrain, 1.0 / self.sampling_rate)

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
        return self.commands is None

    def update_times(self, until: float) -> Array:
        """Return the times of evaluation between 0 and `until`, (n,), [s]."""
        return sample_times(until, self.sampling_rate)

    def switches(self, until: float) -> Any:
        """Return no times: the reference is continuous."""
        return ()

    def started(self, q: Array, v: Array) -> tuple[StartedLocomotion, Array]:
        """Return (law, memory): this law and its initial memory, (m,).

        Args:
            q: Initial configuration, (nq,). v: Initial velocity, (nv,).
        """
        robot, feet, command = self.robot, self.planner.feet, self.commands
        places, _ = point_motion(robot, q, np.zeros(robot.nv), [(foot.link, foot.sole) for foot in feet])
        R, schedule = robot.base.pose(q[: robot.base.nq])[0], self.gaits.schedules[0][1]
        zeros = LocomotionMemory.zeros(robot.nv, len(feet), len(self.hands), self.planner.iterate_size())
        is_constant = isinstance(command, Command) and command.is_constant
        memory = zeros._replace(
            gait=GaitState.standing(schedule).flat(),
            path=np.array([*center_of_mass(robot, q)[:2], np.arctan2(R[1, 0], R[0, 0])]),
            slope=plane_of(list(places), self.height).slope,
            places=places,
            footsteps=places,
            contact=np.ones(len(feet)),
            target=schedule.parameters,
            constant_command=command(0.0) if is_constant else zeros.constant_command,
            friction=self.friction,
            clearance=self.clearance,
            hands=predicted_velocities(WholeBodyModel(robot, q, v), self.hands),
        )
        return self, memory.flat()

    def restart(self, t: Any, q: Array, v: Array) -> Array:
        """Return the memory of the law that takes over from another one, (m,).

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,).
        """
        return self.started(q, v)[1]

    def memory(self, flat: Array) -> LocomotionMemory:
        """Return the parts of a memory.

        Args:
            flat: (m,), mixed units, such as a row of `Run.memory`.
        """
        return LocomotionMemory.of(flat, self.robot.nv, len(self.planner.feet), len(self.hands))

    def planned_footsteps(self, memory: Array) -> Array:
        """Return the planned landing places of the feet, (n, 3), [m], world axes; NaN for feet that stand.

        Args:
            memory: (m,), mixed units, such as a row of `Run.memory`.
        """
        parts = self.memory(memory)
        return np.where(np.array(GaitState.of(parts.gait).stance)[:, None] > 0.5, np.nan, parts.footsteps)

    def commanded_velocity(self, t: float, memory: Array) -> Array:
        """Return the commanded velocity forward and to the left, [m/s], and yaw rate, [rad/s], (3,).

        A constant command or a function of time is returned itself. For commands of `legged.Simulation.step` it is the
        velocity that follows them with bounded rates.

        Args:
            t: Time, [s]. memory: (m,), mixed units, such as a row of `Run.memory`.
        """
        parts = self.memory(memory)
        return parts.command[:3] if self.commands is None else self._wanted(t, parts)

    def _wanted(self, t: float, parts: LocomotionMemory) -> Array:
        """Return the commanded velocity, (3,), before any limit; that of a live command is not known and NaN."""
        if self.commands is None:
            return np.full(3, np.nan)
        is_constant = isinstance(self.commands, Command) and self.commands.is_constant
        return np.asarray(parts.constant_command if is_constant else self.commands(t), dtype=float)[:3]

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the current generalized forces, (nv,); arguments as in `Controller.torque`."""
        return memory[: len(v)]

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): a new evaluation at the times of evaluation.

        Arguments as in `Controller.torque`; `command` is that of `legged.Simulation.step`, (5,) to (7,).
        """
        due = is_sample_time(t, self.sampling_rate)
        if not isinstance(due, Expression) and not due:
            return memory
        return where(due, self.evaluated(t, q, v, wrenches, self.memory(memory), *command).flat(), memory)

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
            command: The command of `legged.Simulation.step`, (5,) to (7,).
        """
        robot, ground, dt = self.robot, self.feet_plan, 1.0 / self.sampling_rate
        model = WholeBodyModel(robot, q, v, held=dt)
        body = body_state(model, q, v, self.planner)
        mass, origin = body.position, robot.base.pose(q[: robot.base.nq])[1]
        turning, normal = self.planner.turning(memory.command[2]), GroundPlane(mass, memory.slope).normal
        carrying = [foot.carrying(turning, model.point(foot.link).rotation, normal) for foot in self.planner.feet]
        centers = zip(self.planner.feet, carrying, strict=True)
        feet = np.array([model.point(foot.link, points.center).position for foot, points in centers])
        before = GaitState.of(memory.gait)
        wanted = ground.inclined_command(self._command(t, memory, command), memory, body.heading[0])
        if len(self.planner.feet) > 2:
            speed, wanted = followed_command(wanted, memory, body, v, self.planner, self.gaits, dt)
            memory = memory._replace(speed=speed)
        limited, jump = self._limited(wanted, memory, before, feet, body)
        forces = [
            sum_of(model.point(link).rotation @ wrenches[link][3:] for link in foot.links) for foot in self.planner.feet
        ]
        memory = memory._replace(chosen=self.gaits.chosen(t, limited, memory.chosen), jump=jump)
        state, contact, climbs = self._gait(limited, forces, memory, feet, body)
        active = [where(c > 0.0, 1.0, 0.0) for c in contact]
        places = [where(k > 0.5, p, old) for k, p, old in zip(active, feet, memory.places, strict=True)]
        plane = ground.plane(places, memory.slope)
        sway = self.steps.sway(state, limited[:2], limited[2])
        path, aside, moving = ground.path(limited, sway, mass, memory, self.possible)
        sequence = ground.sequence(state, body.heading)
        landings = ground.landings(state, feet, body, origin, moving, plane, memory.path[2], sequence, memory)
        errors = (feet - memory.footsteps)[:, 2] if self.terrain is None else np.zeros(len(feet))
        unit = self.planner.time_unit
        rises = rises_over_uneven_ground(memory.rises, errors, before.stance, state.stance, self.height, unit, dt)
        footsteps, swings = ground.swings(state, landings.places, places, memory, plane, rises, body.heading[0])
        swings, climbs, lifts = ground.adapted(state, swings, climbs, list(memory.lifts))
        over_base = mass[2] - origin[2] - plane.slope @ (mass - origin)[:2]
        rise = ground.inclined.rise(ground.slope_ahead(plane.slope, body.heading[0]))
        rises_by = self.gaits.jump(np.maximum(jump, 0.0))._replace(elapsed=state.phase * state.period)
        height = self.planner.base_height + rise + over_base
        reference = body_reference(path, moving, plane, mass, height, sway, rises_by)
        planned, displacement, response = ground.displacements(sequence, state, footsteps, landings, memory)
        reference = reference._replace(response=response)
        normals = [ground.normal(place, body.heading[0], plane) for place in places]
        rate = limited[2] if all(len(foot.turns) == 3 for foot in self.planner.feet) else 0.0  # of soles that legs turn
        stances = zip(self.planner.feet, state.until_middle, state.duty, strict=True)
        turns = [foot.turned(rate, time, duty * state.period) for foot, time, duty in stances]
        soles = [tangent_axes(n, reference.rotation[:, 0], turn) for n, turn in zip(normals, turns, strict=True)]
        progress = state.swing_progress
        released = ground.released(limited, memory, body.heading[0], state)
        parts = list(feet), active, state.stance, swings, places, footsteps, soles, progress, carrying, released
        motion = FeetMotion(*parts)
        plan = self.planner.plan(body, reference, state, motion, memory.friction, memory.costates)
        ground_under = np.array([path[0], path[1], plane.height(path[:2])])
        axes = HeadingAxes(ground_under, reference.velocity, path[2], reference.yaw_rate)
        memory = self._torques(t, model, plan, reference, motion, axes, memory)
        return memory._replace(
            gait=state.flat(),
            command=limited,
            path=path,
            aside=aside,
            slope=plane.slope,
            places=np.array(places),
            footsteps=np.array(footsteps),
            contact=np.stack(contact),
            climbs=np.stack(climbs),
            lifts=np.stack(lifts),
            rises=np.stack(rises),
            planned=planned,
            displacement=displacement,
            deviation=np.sqrt(landings.deviation @ landings.deviation),
            standing_deviation=np.sqrt(landings.standing_deviation @ landings.standing_deviation),
        )

    def _command(self, t: Any, memory: LocomotionMemory, given: tuple[Array, ...]) -> Array:
        """Return the command of this time, (7,), with a velocity that the legs follow."""
        own = self.commands
        if given:
            command = read_command(given[0])
        elif own is None or (isinstance(own, Command) and own.is_constant):
            command = memory.constant_command
        else:
            command = read_command(own(t))
        return join(slowed(self.possible @ command[:3], self.fastest, len(self.planner.feet) == 2), command[3:])

    def notice(self, t: float, memory: Array) -> str:
        """Return the notice that the robot cannot follow its command, "" if it can; see `Controller`.

        Args:
            t: Time, [s]. memory: (m,), mixed units, such as the last row of `Run.memory`.
        """
        parts = self.memory(memory)
        wanted, on_two = self._wanted(t, parts), len(self.planner.feet) == 2
        text = speed_notice(self.robot.name, t, parts, wanted)
        if text or (isinstance(self.commands, Command) and self.commands.is_constant):  # `start` warns of a constant
            return text
        return bound_notice(self.robot.name, t, self.possible @ wanted, parts.command[:3], self.fastest, on_two)

    def _limited(
        self, wanted: Array, memory: LocomotionMemory, before: GaitState, feet: Array, body: BodyState
    ) -> tuple[Array, Any]:
        """Return the command that the robot follows now, (7,), with bounded rates, and the memory of a jump.

        Args:
            wanted: The command of this time, (7,), units of `Command`. memory: At the last evaluation.
            before: The gait then. feet: Places of the soles, (n, 3), [m], world axes. body: The present motion.
        """
        dt, unit = 1.0 / self.sampling_rate, (self.height, self.gravity)
        jump = jump_state(memory.jump, wanted[JUMP], before)
        lowers = (jump > 0.0) & (before.phase * before.period < self.gaits.jump(jump).durations[0])
        waits = ((wanted[JUMP] > 0.0) & (jump == 0.0)) | lowers  # a jump begins from rest, and moves on in its push
        wanted = join(where(waits, 0.0, 1.0) * wanted[:3], wanted[3:])
        usual = acceleration_on_two(wanted, before, *unit) if len(feet) == 2 else ACCELERATION
        most = where(jump > 0.0, _LEAP, usual)
        turns = 1.0 - (1.0 - _STANDING_TURN) * reduce(mul, before.planted) if self.planner.has_pivots else 1.0
        limited = limited_command(wanted, memory.command, *unit, dt, most, turns)
        offsets, farthest = (feet - body.position)[:, :2] @ body.heading.T, _BEHIND * self.height
        return command_within_reach(limited, memory.command, self.steps.stances, offsets, before, farthest, dt), jump

    def _gait(
        self, command: Array, forces: Sequence[Array], memory: LocomotionMemory, feet: Array, body: BodyState
    ) -> tuple[GaitState, list[Any], list[Any]]:
        """Return the state of the gait, and contact and climb of each foot as in `LocomotionMemory`, (n,) each."""
        dt = 1.0 / self.sampling_rate
        before = GaitState.of(memory.gait)
        touched, climbs = [], []
        for force, stands, climb, lift in zip(forces, before.stance, memory.climbs, memory.lifts, strict=True):
            touches = force @ force > (_TOUCH * self.robot.mass * self.gravity) ** 2
            hits = touches & (stands < 0.5) & is_obstacle(force)
            touched.append(where(hits, 0.0, where(touches, 1.0, 0.0)))
            climbs.append(where(hits & (lift < _CLIMB_MOST * self.height), _CLIMB * self.height, climb))
        target = self.gaits.target(memory.chosen, memory.target)
        actual = join(body.heading @ body.velocity[:2], body.angular_velocity[2:])
        followed = self.gaits.followed(command, actual, target)
        parameters = self.gaits.at_speed(target, followed)
        cadence = np.maximum(
            self.steps.relative_cadence(before, parameters[0], memory.deviation),
            self.steps.stance_cadence(
                before, parameters[0], feet, body.position, body.heading, followed[:3], _BEHIND * self.height
            ),
        )
        most = parameters[0] * (1.0 - parameters[1]) / (_SHORTEST_SWING * self.planner.time_unit)
        cadence = where(before.walking > 0.5, np.minimum(cadence, np.maximum(most, 1.0)), 1.0)
        shorter = self.feet_plan.inclined_period(command, memory, body.heading[0])
        wanted = np.concatenate([shorter * parameters[:1] / cadence, parameters[1:]])
        jumps = memory.jump * memory.jump > 0.0
        ground = sum_of(memory.places)[2] / len(feet)
        leaps = self.gaits.jump(memory.jump).parameters(
            before, memory.jump < 0.0, body.position[2] - ground - self.height, body.velocity[2]
        )
        wanted = where(jumps, leaps, wanted)
        walk = where(jumps, where(memory.jump > 0.0, 1.0, 0.0), self.feet_plan.walks(command, memory))
        second = where(command[1] * self.steps.stances[0, 1] < 0.0, 1.0, 0.0) if len(feet) == 2 else 0.0
        patience = self.gaits.patience(parameters, command)
        state = before.advanced(dt, walk, touched, wanted, patience, sum_of(climbs), second)
        fade = dt / _CONTACT_TIME
        contact = [
            where(k > 0.5, np.maximum(c, np.maximum(old - fade, 0.0)), 0.0)
            for k, c, old in zip(state.stance, touched, memory.contact, strict=True)
        ]
        return state, contact, climbs

    def _torques(
        self,
        t: Any,
        model: WholeBodyModel,
        plan: Plan,
        reference: BodyReference,
        feet: FeetMotion,
        axes: HeadingAxes,
        memory: LocomotionMemory,
    ) -> LocomotionMemory:
        """Return the memory with the joint torques that follow a plan, and the initial iterates of the next solutions.

        Args:
            t: Time, [s]. model: The robot at its present state. plan: The plan. reference: The motion of the body.
            feet: The motion of the feet. axes: Those of the tasks of hands. memory: At the last evaluation.
        """
        robot, dt = self.robot, 1.0 / self.sampling_rate
        hands = hand_control(model, t, self.hands, axes, memory.hands, self.height, self.gravity, dt)
        model.friction = hands.friction if self.hands else None
        arms = [k for hand in self.hands for k in moving_columns(robot, hand.link)]
        own = memory.friction, memory.iterate, hands.tasks, arms
        torques = self.planner.torques(model, plan, reference, feet, *own)
        return memory._replace(
            tau=np.concatenate([np.zeros(robot.base.nv), torques.tau]),
            costates=plan.costates,
            hands=hands.predicted,
            iterate=torques.iterate,
            residuals=np.stack([plan.residual, torques.residual]),
        )
