"""Landing places and paths of the feet on known terrain, or on the plane through the last places of the feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.locomotion.gait.footholds import UNEVEN, foothold_normal, moved_to_foothold, terrain_heights
from controllers.locomotion.gait.footsteps import FootstepLaw, GroundPlane, Landings, plane_of
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.swing import POINT, SOLE, Swing, moved_target, swing_lead, swing_path, swing_rise
from controllers.locomotion.gait.uneven_ground import adapted_swing
from controllers.locomotion.memory import LocomotionMemory
from controllers.locomotion.motion import BodyState, desired_rotation, turned
from controllers.locomotion.motion_plan import MotionPlanner
from legged.compiler.ir import where
from legged.ground.terrain import Terrain
from legged.rotations import rotation_error
from legged.spatial import Array, join, sum_of

_REACHING = 1.0  # [sqrt(g h)], speed at which a foot moves up over an obstacle or down to low ground
_SLOPE_TIME = 1.0  # [sqrt(h / g)], time constant of the slope of the ground under the robot
_AROUND = 0.6  # [h], radius of the known ground whose slope the trunk of a robot with two feet follows
_TILT = 0.5  # of this slope: that of the trunk and its reference
_CHANGE = 0.5  # of the commanded speed: largest change of it for footholds
_SOONEST = 0.5  # [sqrt(h / g)], shortest time in which it acts


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
    def sole(self) -> float:
        """Largest distance of a contact point of a foot from the middle of its sole, [m]."""
        return max(float(np.linalg.norm(foot.outline, axis=1).max()) for foot in self.planner.feet)

    @property
    def toe(self) -> float:
        """Largest distance of a contact point of a foot ahead of or behind the middle of its sole, [m]."""
        return max(float(np.abs(foot.outline[:, 0]).max()) for foot in self.planner.feet)

    @property
    def sees_on_two(self) -> bool:
        """Whether a robot with two feet knows the terrain."""
        return self.terrain is not None and len(self.planner.feet) == 2

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

    def velocity_change(self, path: Array, command: Array, state: GaitState) -> Array:
        """Return a change of the velocity, (2,), with which feet that stand come to footholds in their next step.

        A foot whose place is at an edge lands up to half its length ahead or behind, and the deviation of the divergent
        component of motion that this causes grows until the next step. The change along the heading moves these places
        to the nearest footholds before. It is zero for more than two feet, and on unknown terrain.

        Args:
            path: Desired x, y, [m], and heading, [rad], of the center of mass, (3,), world axes.
            command: As in `Command`, (7,), mixed units. state: State of the gait.

        Returns:
            (2,), [m/s], heading axes.
        """
        if self.terrain is None or not self.sees_on_two:
            return np.zeros(2)
        forward, velocity, total = np.stack([np.cos(path[2]), np.sin(path[2])]), command[:2], 0.0
        rows = zip(self.steps.stances, state.stance, state.time_to_touchdown, state.duty, strict=True)
        for stance, stands, left, duty in rows:
            place = path[:2] + turned(forward, stance + velocity * (left + 0.5 * duty * state.period))
            found = moved_to_foothold(self.terrain, place, forward, self.height, self.sole, self.toe)
            shift = (found - place) @ forward
            total = total + stands * shift / np.maximum(left, _SOONEST * self.planner.time_unit)
        most = _CHANGE * np.sqrt(velocity @ velocity)
        change = np.minimum(np.maximum(total / np.maximum(sum_of(state.stance), 1.0), -most), most)
        return np.stack([state.walking * change, 0.0 * change])

    def landings(
        self,
        state: GaitState,
        feet: Array,
        body: BodyState,
        origin: Array,
        command: Array,
        plane: GroundPlane,
        turn: Any,
    ) -> Landings:
        """Return the landings with places on the ground within reach, (n, 3), [m], world axes.

        Args:
            state: State of the gait. feet: Positions of the feet, (n, 3), [m], world axes.
            body: The present motion. origin: Position of the base, (3,), [m], world axes.
            command: As in `Command`, (7,), mixed units. plane: The ground. turn: Desired heading, [rad].
        """
        R, stance, velocity, heading = body.rotation, state.stance, body.velocity[:2], body.heading
        xi = body.position[:2] + velocity / self.steps.omega
        landings = self.steps.landing(state, feet, xi, heading, command[:2], command[2])
        moved, places = np.zeros(2), []
        if any(self.steps.narrow):
            error = rotation_error(R @ desired_rotation(turn, command, plane).T) + body.lean
            inertia, weight = R @ self.planner.inertia @ R.T, self.planner.robot.mass * self.planner.gravity
            rate, turning = body.angular_velocity, self.planner.turning(command[2])
            moved = self.steps.upright_displacement(error, rate, inertia, weight, heading, turning)
        for i, landing in enumerate([place + moved for place in landings.places]):
            hip = origin + R @ self.steps.hips[i] + join(velocity * state.time_to_touchdown[i], np.zeros(1))
            place = self.steps.within_reach(landing, i, hip, feet, stance, heading, plane.height(landing))
            if self.terrain is not None:
                place = moved_to_foothold(self.terrain, place, heading[0], self.height, self.sole, self.toe)
            places.append(np.array([place[0], place[1], self._ground_height(place, plane)]))
        return landings._replace(places=places)

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
        ends, slope = [side * self.toe * forward for side in (1.0, -1.0)] if self.planner.on_soles else [], plane.slope
        gait = zip(state.stance, state.swing_progress, state.duty, rises, strict=True)
        feet = zip(landings, memory.footsteps, places, gait, strict=True)
        for landing, last, place, (stands, progress, duty, extra) in feet:
            duration = (1.0 - duty) * state.period
            between = [] if self.terrain is None else terrain_heights(self.terrain, last, landing)
            moved = moved_target(last, landing, progress, duration, slope, UNEVEN * self.height, dt, between)
            target = where(stands > 0.5, landing, moved)
            targets.append(target)
            heights, lead = [], 0.0
            if self.terrain is not None:
                heights = terrain_heights(self.terrain, place, target, extents=ends, slope=slope)
            if not self.planner.on_soles:
                lead = swing_lead(place, target, profile)
            elif heights:
                lead = swing_lead(place, target, profile, heights, slope)
            rise = swing_rise(place, target, clearance + extra, heights, profile, lead)
            swings.append(swing_path(progress, duration, place, target, rise, profile, lead))
        return targets, swings

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

    def normal(self, place: Array, plane: GroundPlane) -> Array:
        """Return the unit normal of the ground under a foot at a place, (3,), dimensionless, world axes.

        Args:
            place: (3,), [m], world axes. plane: The ground without a known terrain.
        """
        if self.terrain is None:
            return plane.normal
        return foothold_normal(self.terrain, place[:2], self.height, self.sole)
