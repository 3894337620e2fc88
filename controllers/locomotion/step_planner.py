"""Landing places and paths of the feet on known terrain, or on the plane through the last places of the feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from controllers.locomotion.gait.footholds import UNEVEN, foothold_normal, moved_to_foothold, terrain_heights
from controllers.locomotion.gait.footsteps import FootstepLaw, GroundPlane, Landings, Sway, plane_of
from controllers.locomotion.gait.inclined_ground import InclinedWalk
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.step_sequence import MOST, StepResponse, StepSequence, beyond_soles
from controllers.locomotion.gait.swing import (
    POINT,
    SOLE,
    Profile,
    Swing,
    moved_target,
    swing_lead,
    swing_path,
    swing_rise,
)
from controllers.locomotion.gait.uneven_ground import adapted_swing
from controllers.locomotion.memory import LocomotionMemory
from controllers.locomotion.motion import BodyState, advanced_path, desired_rotation, turned
from controllers.locomotion.motion_plan import MotionPlanner
from legged.compiler.ir import where
from legged.ground.height_map import HeightMap
from legged.ground.rolling_height_map import RollingHeightMap
from legged.ground.terrain import Terrain
from legged.rotations import rotation_error
from legged.spatial import Array, join

_REACHING = 1.0  # [sqrt(g h)], speed at which a foot moves up over an obstacle or down to low ground
_SLOPE_TIME = 1.0  # [sqrt(h / g)], time constant of the slope of the ground under the robot
_AROUND = 0.6  # [h], radius of the known ground whose slope the trunk of a robot with two feet follows
_TILT = 0.5  # of this slope: that of the trunk and its reference
_DRIFT = 0.15  # [h], largest distance of the desired position from the actual one
_ASIDE, _RETURN = 0.5, 0.2  # [h], largest distance beyond it to the line, and speed back to it over it, [sqrt(g / h)]
STILL = 0.02  # [sqrt(g h)], commanded speed below which the robot stands
_CAPTURE = 0.12  # [h], deviation of the divergent component from which on a standing robot steps, or, if more,
_CAPTURE_WITHIN = 0.75  # of the smaller half-extent of the standing feet
_CAUGHT = 0.8  # of that deviation: stepping ends below it
_LIFT = 0.5  # [g], largest vertical acceleration of the center of mass due to a swinging leg, on two feet
_LONGEST, _LONGER = 0.75, 0.25  # [h], longest step that a robot with two feet plans, and more of it at high speed


@dataclass(frozen=True, eq=False)
class StepPlanner:
    """The places and paths of the feet of one robot.

    Attributes:
        planner: Its feet and inertia. steps: Its landing places on even ground.
        terrain: The terrain that the robot knows; None for a blind robot.
        time_step: Time between two evaluations, [s].
    """

    planner: MotionPlanner
    steps: FootstepLaw
    terrain: Terrain | None
    time_step: float

    @property
    def height(self) -> float:
        """Height of the center of mass over the ground in the standing posture, [m]."""
        return self.planner.height

    @property
    def sole(self) -> tuple[float, float]:
        """Half of the length and of the width of the largest sole, (2,), [m]; zero for point feet."""
        length, width = np.max([np.abs(foot.outline[:, :2]).max(axis=0) for foot in self.planner.feet], axis=0)
        return float(length), float(width)

    @property
    def reach(self) -> Array:
        """Half of the length and of the width of the largest part of a sole that carries the robot, (2,), [m]."""
        feet = [foot.offsets if len(foot.turns) == 3 else foot.outline for foot in self.planner.feet]
        return np.max([np.abs(places[:, :2]).max(axis=0) for places in feet], axis=0)

    @property
    def sees_on_two(self) -> bool:
        """Whether a robot with two feet knows the terrain."""
        return self.terrain is not None and len(self.planner.feet) == 2

    def walks(self, command: Array, memory: LocomotionMemory) -> Any:
        """Return 1 if the robot is to walk, at a commanded velocity, for its balance or if it cannot stand, 0 if not.

        Args:
            command: (7,), units of `Command`. memory: At the last evaluation.
        """
        speed = np.sqrt(command[0] * command[0] + command[1] * command[1] + (self.height * command[2]) ** 2)
        moves = speed > STILL * np.sqrt(self.planner.gravity * self.height)
        if all(self.steps.narrow):  # the center of pressure stays on the line between two point feet
            return 1.0 + 0.0 * speed
        extent = float(np.min(np.ptp(self.steps.stances, axis=0))) / 2.0
        most = max(_CAPTURE * self.height, _CAPTURE_WITHIN * extent)
        off = where(memory.gait[1] > 0.5, _CAUGHT, 1.0) * most
        return where(moves | (memory.standing_deviation > off), 1.0, 0.0)

    def plane(self, places: Sequence[Array], slope: Array) -> GroundPlane:
        """Return the plane of the ground under the robot, whose slope follows the places with a delay.

        It is the plane through the last places of contact. Two feet on two steps of stairs lie in a plane that falls to
        the side: on known terrain its slope is half of that of the ground around them, so that the trunk leans back by
        half of a slope.

        Args:
            places: Last place of contact of each foot, (n, 3), [m], world axes.
            slope: Of the last plane along world x and y, (2,), dimensionless.
        """
        share = np.minimum(1.0, self.time_step / (_SLOPE_TIME * self.planner.time_unit))
        fit = plane_of(places, self.height)
        wanted = fit.slope
        if self.sees_on_two:
            angles = np.pi / 4.0 * np.arange(8)
            around = fit.point[:2] + _AROUND * self.height * np.stack([np.cos(angles), np.sin(angles)], axis=1)
            points = [np.stack([x, y, self._ground_height(np.stack([x, y]), fit)]) for x, y in around]
            wanted = _TILT * plane_of(points, self.height).slope
        return GroundPlane(fit.point, slope + share * (wanted - slope))

    @property
    def inclined(self) -> InclinedWalk:
        """Adjustments of the walk to slopes; none on height maps, where footholds have another slope, as of stones."""
        return InclinedWalk() if isinstance(self.terrain, HeightMap | RollingHeightMap) else self.planner.inclined

    def slope_ahead(self, slope: Array, forward: Array) -> Any:
        """Return the slope of the ground ahead, dimensionless, positive uphill.

        Args:
            slope: As in `plane`, (2,), dimensionless.
            forward: Unit vector of the heading, (2,), dimensionless, world axes.
        """
        return (slope @ forward) / (_TILT if self.sees_on_two else 1.0)

    def inclined_command(self, command: Array, memory: LocomotionMemory, forward: Array) -> Array:
        """Return a command with the pitch of the trunk that inclined ground needs, (7,), units of `Command`.

        Args:
            command: (7,), units of `Command`. memory: That of the last evaluation. forward: As in `slope_ahead`.
        """
        if not self.inclined.turns_trunk:
            return command
        slope, travel = self.slope_ahead(memory.slope, forward), self._travel(memory.target, command)
        pitch = self.inclined.pitch(slope, travel, memory.slope @ forward)
        return np.concatenate([command[:4], np.stack([command[4] + pitch]), command[5:]])

    def inclined_period(self, command: Array, memory: LocomotionMemory, forward: Array) -> Any:
        """Return the factor of the gait period on a slope, dimensionless; arguments as in `inclined_command`."""
        return self.inclined.period(self.slope_ahead(memory.slope, forward), self._travel(memory.target, command))

    def released(self, command: Array, memory: LocomotionMemory, forward: Array, state: GaitState) -> list[Any]:
        """Return `FeetMotion.released`; other arguments as in `inclined_command` and `landings`."""
        slope, travel = self.slope_ahead(memory.slope, forward), self._travel(memory.target, command)
        return [self.inclined.released(slope, travel, progress) for progress in state.swing_progress]

    def _travel(self, schedule: Array, command: Array) -> Any:
        """Return the way of the body in a stance of a schedule, as its parameters, [h], negative backward."""
        return command[0] * schedule[0] * schedule[1] / self.height

    def path(
        self, command: Array, sway: Sway, position: Array, memory: LocomotionMemory, possible: Array
    ) -> tuple[Array, Array, Array]:
        """Return path and way aside as in `LocomotionMemory`, and the command with the velocity back to the line, (7,).

        Args:
            command: With bounded rates, (7,), units of `Command`. sway: Motion about the path in each cycle.
            position: Of the center of mass, (3,), [m], world axes. memory: At the last evaluation.
            possible: As in `StartedLocomotion`, (3, 3), mixed units.
        """
        farthest = 0.0 if len(self.planner.feet) == 2 else _ASIDE * self.height
        slow = STILL * np.sqrt(self.planner.gravity * self.height)
        bounds = _DRIFT * self.height, farthest, slow
        undisplaced = position - join(memory.displacement, np.zeros(1))
        path, aside = advanced_path(memory.path, memory.aside, command, undisplaced, sway, bounds, self.time_step)
        back = turned(np.stack([np.cos(path[2]), -np.sin(path[2])]), _RETURN / self.planner.time_unit * aside)
        return path, aside, join(command[:3] + possible @ join(back, np.zeros(1)), command[3:])

    def sequence(self, state: GaitState, heading: Array) -> StepSequence | None:
        """Return the next two steps of a robot with two soles that knows the terrain, None for all others.

        A robot whose steps keep it upright, such as one on points, needs its landing places for its balance alone.

        Args:
            state: State of the gait. heading: Forward and left unit vectors, (2, 2), dimensionless, world axes.
        """
        if not (self.sees_on_two and self.planner.balances_on_soles) or any(self.steps.narrow):
            return None
        return StepSequence.of(state, self.steps.stances, self.steps.omega, heading)

    def landings(
        self,
        state: GaitState,
        feet: Array,
        body: BodyState,
        origin: Array,
        command: Array,
        plane: GroundPlane,
        turn: Any,
        sequence: StepSequence | None,
        memory: LocomotionMemory,
    ) -> Landings:
        """Return the landings with places on the ground within reach, (n, 3), [m], world axes.

        Args:
            state: State of the gait. feet: Positions of the feet, (n, 3), [m], world axes.
            body: The present motion. origin: Position of the base, (3,), [m], world axes.
            command: As in `Command`, (7,), mixed units. plane: The ground. turn: Desired heading, [rad].
            sequence: As from `sequence`. memory: That of the last evaluation.
        """
        R, stance, velocity, heading = body.rotation, state.stance, body.velocity[:2], body.heading
        xi = body.position[:2] + velocity / self.steps.omega
        undisplaced = feet
        if sequence is not None:  # the law of level ground applies to the motion without the planned displacements
            xi = xi - sequence.response(memory.planned, memory.displacement).divergence
            undisplaced = feet - np.concatenate([memory.planned[0], np.zeros((len(feet), 1))], axis=1)
        steps = self.steps if sequence is None else replace(self.steps, soles=(0.0, 0.0))  # `beyond_soles` follows
        landings = steps.landing(state, undisplaced, xi, heading, command[:2], command[2])
        moved, places = np.zeros(2), []
        if any(self.steps.narrow):
            error = rotation_error(R @ desired_rotation(turn, command, plane).T) + body.lean
            inertia, weight = R @ self.planner.inertia @ R.T, self.planner.robot.mass * self.planner.gravity
            rate, turning = body.angular_velocity, self.planner.turning(command[2])
            moved = self.steps.upright_displacement(error, rate, inertia, weight, heading, turning)
        landings = landings._replace(places=[place + moved for place in landings.places])
        if sequence is not None:
            return landings._replace(places=self._footholds(sequence, state, feet, landings, memory, plane))
        for i, landing in enumerate(landings.places):
            hip = origin + R @ self.steps.hips[i] + join(velocity * state.time_to_touchdown[i], np.zeros(1))
            place = self.steps.within_reach(landing, i, hip, feet, stance, heading, plane.height(landing))
            if self.terrain is not None:
                place = moved_to_foothold(self.terrain, place, heading[0], self.height, self.sole)
            places.append(np.array([place[0], place[1], self._ground_height(place, plane)]))
        return landings._replace(places=places)

    def _footholds(
        self,
        sequence: StepSequence,
        state: GaitState,
        feet: Array,
        landings: Landings,
        memory: LocomotionMemory,
        plane: GroundPlane,
    ) -> list[Array]:
        """Return the footholds of the next steps of two feet, (2, 3), [m], world axes; arguments as in `landings`."""
        terrain, forward = self.terrain, sequence.axes[0]
        assert terrain is not None

        def foothold(place: Array) -> Array:
            return moved_to_foothold(terrain, place, forward, self.height, self.sole)

        first, progress = sequence.order[:, None], sequence.order @ np.stack(state.swing_progress)
        level = np.array(landings.undisturbed)
        reliance = self.steps.reliance(memory.command[:2])
        time, extents = sequence.omega * sequence.times[1], reliance * self.reach
        shifts = [beyond_soles(shift, time, extents, sequence.axes) for shift in np.array(landings.places) - level]
        desired = level + first * np.stack(shifts)
        places = sequence.chosen(
            foothold,
            desired,
            memory.planned[1],
            feet[:, :2],
            memory.footsteps[:, :2],
            progress,
            self.reach,
            self.height,
            (_LONGEST + _LONGER * (1.0 - reliance)) * self.height,
        )
        return [np.array([x, y, self._ground_height(np.stack([x, y]), plane)]) for x, y in places]

    def _ground_height(self, place: Array, plane: GroundPlane) -> Any:
        return plane.height(place) if self.terrain is None else self.terrain.height(place[0], place[1])

    def swings(
        self,
        state: GaitState,
        landings: Sequence[Array],
        places: Sequence[Array],
        memory: LocomotionMemory,
        plane: GroundPlane,
        rises: Sequence[Any],
        forward: Array,
    ) -> tuple[list[Array], list[Swing]]:
        """Return the landing places, (n, 3), [m], world axes, which move slowly, and the paths of the feet to them.

        Args:
            state: State of the gait. landings: Wanted landing places, (n, 3), [m], world axes.
            places: Last places of contact, (n, 3), [m], world axes. memory: That of the last evaluation.
            plane: The ground. rises: As in `LocomotionMemory`, (n,), [m].
            forward: Unit vector of the heading, (2,), dimensionless, world axes.
        """
        dt, targets, swings = self.time_step, [], []
        clearance, profile = memory.clearance * self.height + np.abs(memory.jump), (POINT, SOLE)[self.planner.on_soles]
        ends = [side * self.sole[0] * forward for side in (1.0, -1.0)] if self.planner.on_soles else []
        gait = zip(state.stance, state.swing_progress, state.duty, rises, strict=True)
        feet = zip(landings, memory.footsteps, places, gait, strict=True)
        for landing, last, place, (stands, progress, duty, extra) in feet:
            duration = (1.0 - duty) * state.period
            between = [] if self.terrain is None else terrain_heights(self.terrain, last, landing)
            moved = moved_target(last, landing, progress, duration, plane.slope, UNEVEN * self.height, dt, between)
            target = where(stands > 0.5, landing, moved)
            targets.append(target)
            heights, lead, slope = [], 0.0, plane.slope
            if self.terrain is not None:
                slope = self._slope_under(place, forward, plane, memory) if ends else slope
                heights = terrain_heights(self.terrain, place, target, extents=ends, slope=slope)
            if not self.planner.on_soles:
                lead = swing_lead(place, target, profile)
            elif heights:
                lead = swing_lead(place, target, profile, heights, slope)
            rise = swing_rise(
                place, target, self._within_weight(clearance, duration, profile) + extra, heights, profile, lead
            )
            swings.append(swing_path(progress, duration, place, target, rise, profile, lead))
        return targets, swings

    def _within_weight(self, clearance: Any, duration: Any, profile: Profile) -> Any:
        """Return the clearance, [m], reduced so that a swing accelerates the center of mass downward by 0.5 g at most.

        In the middle of a swing of the duration T with the rise r, the foot accelerates by -8 p r / T^2, with the power
        p of the profile, and the center of mass by `MotionPlanner.lifted_share` times this. With more than g the robot
        would leave the ground. Additional rise over obstacles is not bounded.

        Args:
            clearance: Desired one, [m]. duration: Of the swing, [s]. profile: Its shape.
        """
        share = self.planner.lifted_share
        if not share:
            return clearance
        return np.minimum(clearance, _LIFT * self.planner.gravity * duration * duration / (8.0 * profile.power * share))

    def _slope_under(self, place: Array, forward: Array, plane: GroundPlane, memory: LocomotionMemory) -> Array:
        """Return the slope to which a swinging sole is parallel, (2,), dimensionless, world axes.

        It is that of the ground at the place where it stood, which is twice that of the plane on an incline, see
        `plane`; on level treads of stairs, and where ankles have no room to turn the sole, it is that of the plane.

        Args:
            place: Last place of contact, (3,), [m], world axes. forward, plane, memory: As in `swings`.
        """
        x, y, z = self.normal(place, forward, plane)
        tread = np.stack([-x, -y]) / z
        ahead, travel = self.slope_ahead(plane.slope, forward), self._travel(memory.target, memory.command)
        turned = tread + self.inclined.shortage(ahead, travel) * (plane.slope - tread)
        return where(tread @ tread > plane.slope @ plane.slope, turned, plane.slope)

    def displacements(
        self,
        sequence: StepSequence | None,
        state: GaitState,
        footsteps: Sequence[Array],
        landings: Landings,
        memory: LocomotionMemory,
    ) -> tuple[Array, Array, StepResponse | None]:
        """Return `planned` and `displacement` as in `LocomotionMemory`, and the response of the body to them.

        Without a sequence both stay as they are, and there is no response.

        Args:
            sequence: As from `sequence`. state: State of the gait.
            footsteps: As from `swings`, (n, 3), [m], world axes.
            landings: As from `landings`. memory: That of the last evaluation.
        """
        if sequence is None:
            return memory.planned, memory.displacement, None
        shifts = np.stack([step[:2] - place for step, place in zip(footsteps, landings.undisturbed, strict=True)])
        stands = np.stack(state.stance)
        planned = state.walking * sequence.planned(memory.planned, shifts, stands, MOST * self.height)
        response = sequence.response(planned, memory.displacement)
        return planned, response.after(self.time_step)[0], response

    def adapted(
        self, state: GaitState, swings: Sequence[Swing], climbs: Sequence[Any], lifts: Sequence[Any]
    ) -> tuple[list[Swing], list[Any], list[Any]]:
        """Return swings, climbs and lifts of feet at obstacles and low ground, (n,) each.

        Args:
            state: State of the gait. swings: Desired motion of each foot, (n,).
            climbs: As in `LocomotionMemory`, (n,), [m]. lifts: As in `LocomotionMemory`, (n,), [m].
        """
        dt, states = self.time_step, []
        speed = _REACHING * np.sqrt(self.planner.gravity * self.height)
        due = state.due(1.001 * dt / state.period)  # the share of a step, in spite of rounding
        for swing, stands, climb, lift, late in zip(swings, state.stance, climbs, lifts, due, strict=True):
            states.append(adapted_swing(swing, 1.0 - stands, climb, lift, late, state.waited > 0.0, speed, dt))
        adapted, remaining, reached = zip(*states, strict=True)
        return list(adapted), list(remaining), list(reached)

    def normal(self, place: Array, heading: Array, plane: GroundPlane) -> Array:
        """Return the unit normal of the ground under a foot at a place, (3,), dimensionless, world axes.

        Args:
            place: (3,), [m], world axes. heading: Unit vector forward, (2,), dimensionless, world axes.
            plane: The ground without a known terrain.
        """
        if self.terrain is None:
            return plane.normal
        return foothold_normal(self.terrain, place[:2], heading, self.height, self.sole)
