"""A walking controller with feedback of trunk and feet, for floors that do not give."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controllers.balance.capture import Capture
from controllers.balance.forces import distribute
from controllers.balance.limbs import Limb, leg_task, limbs_of, swing_acceleration
from controllers.balance.support import Support
from controllers.gaits.alternating import Alternating
from controllers.gaits.foot_path import path_named
from controllers.gaits.leg import Leg
from controllers.gaits.numerical_gait import NumericalGait
from controllers.gaits.standing import Stand
from controllers.law import GaitLaw
from legged import taylor
from legged.compiler.ir import where
from legged.contact.rigid import Rigid
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum, point_motion
from legged.errors import DefinitionError
from legged.ground.contact import contact_motion
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, cross, join, mirror, solve_symmetric, sum_of

Pair = tuple[float, float]
_REST = 0.1  # of a period: time left for a swing is never taken as less
_STRETCH = 0.98  # of a leg's length: the longest step
_STUCK = 1e-9  # [m^2], times the mass squared: for a base that has no way to slide, which is not asked to
_PRESS = 5e-4  # [m]: how far below the support a swinging sole aims at the end of its step


@dataclass(eq=False)
class Balanced(GaitLaw):
    """A gait with trunk and foot-placement feedback: divergent-component feedback by pressure and by stepping.

    At every instant the base is asked to turn level, to keep its height and to accelerate as the pendulum over the
    center of pressure does that steers the divergent component of motion (`capture`); swinging feet are asked to land
    where the rest of the deviation is met, standing feet to stand. Joint accelerations for all this come from the
    leg's Jacobians (`limbs`), ground forces from a minimum-norm distribution (`forces`), torques from the dynamics:
    tau = I vdot + h - J^T f. Contact forces are not measured.

    The same object walks a planar biped on flat feet, trots a quadruped on points, and makes any of them stand (with a
    `Stand`): then all feet carry, and pressure alone keeps the center of mass over them. Gaits may be closed forms or
    numerical; joints of no leg are held where the gait has them at the start. A trot can only stop a fall
    across its diagonal by stepping, so a deviation grows by exp(omega T) in a step: keep the period short, 0.3 to
    0.4 s for hips at 0.5 m. Leave legs room to stretch: a step that ends with a straight knee cannot be corrected.

    Attributes:
        gait: A walk, trot, tripod or stand, also as a `NumericalGait`; its period, stride, clearance, hip height and
            order of legs are kept.
        attitude: Of the base, [1/s^2], [1/s]. height: Of the base over the supporting feet, likewise.
        foot: Of a swinging foot's height and a flat foot's attitude, likewise.
        posture: Of joints that belong to no leg, likewise.
        gain, reach, tracking: See `Capture`.
    """

    gait: Alternating | Stand | NumericalGait
    attitude: Pair = (100.0, 20.0)
    height: Pair = (100.0, 20.0)
    foot: Pair = (400.0, 40.0)
    posture: Pair = (100.0, 20.0)
    gain: float = 3.0
    reach: float = 0.8
    tracking: float = 0.5
    _limbs: tuple[Limb, ...] = field(default=(), init=False, repr=False)
    _middle_of_all: Array = field(default_factory=lambda: np.zeros(2), init=False, repr=False)
    _home: Array = field(default_factory=lambda: np.zeros(0), init=False, repr=False)
    _capture: Capture | None = field(default=None, init=False, repr=False)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Fit the gait to the robot and return the initial memory, (0,).

        Raises:
            DefinitionError: The gait is not one of two groups of legs in turn, or the base cannot move.
        """
        plan = plan_of(self.gait)
        if not isinstance(plan, (Alternating, Stand)):
            raise DefinitionError(f"Balanced needs a walk, a trot, a tripod or a stand, got {type(plan).__name__}")
        if robot.base.nv == 0:
            raise DefinitionError(f"robot {robot.name!r} stands on a fixed base; there is nothing to balance")
        memory = super().start(robot, ground, q, v)
        gait = self._plan
        self._limbs = limbs_of(robot, gait.geometry)
        self._middle_of_all = np.mean([leg.stance for leg in gait.geometry], axis=0)
        self._home = self._fitted.reference(0.0, 0)[0]
        fall = float(np.linalg.norm(robot.gravity))
        over = float(center_of_mass(robot, q)[2] - np.min(point_heights(robot, q)))
        omega = float(np.sqrt(fall / over))
        self._capture = Capture(omega, gait.period, gait.stride, self.gain, self.reach, self.tracking)
        return memory

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0: the gait's, and as fast over the standing feet as its divergent component has to be.

        The gait's own speed is that of the base; legs that swing or stand move otherwise, and where they weigh much
        the center of mass would fall behind and be caught by stepping aside.
        """
        q, v = super().initial_state(robot)
        self.start(robot, None, q, v)
        if isinstance(self._plan, Stand):
            return q, v
        support = self._support(0, contact_motion(robot, q, v)[0])
        error, ways = self._error(0.0, q, v, support), self._ways(q, v)
        change = np.array([self._error(0.0, q, v + way, support) - error for way in ways])
        return q, v - np.linalg.lstsq(change.T, error, rcond=None)[0] @ ways

    def _ways(self, q: Array, v: Array) -> Array:
        """Return velocities, (2, nv), of a base that moves by 1 m/s along x, and along y, over feet that stand."""
        robot, ways = self.robot, np.zeros((2, self.robot.nv))
        for way, direction in zip(ways, np.eye(3)[:2], strict=True):
            way[: robot.base.nv] = robot.base.velocity(q[: robot.base.nq], np.zeros(3), direction)
            for limb, carries in zip(self._limbs, self._carrying(0), strict=True):
                follow = leg_task(robot, limb, q, v, np.zeros(3), self.foot).follow
                way[limb.columns] = float(carries) * follow @ way[: robot.base.nv]
        return ways

    @property
    def _plan(self) -> Alternating | Stand:
        plan = plan_of(self._fitted)
        assert isinstance(plan, (Alternating, Stand))
        return plan

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,); the base's rows are zero. `wrenches` and `memory` are not used."""
        robot, inside = self.robot, t - phase * self._plan.period
        carries = self._carrying(phase)
        points, _ = contact_motion(robot, q, v)
        loads, support = self._per_contact(carries), self._support(phase, points)
        error = self._error(inside, q, v, support)
        level = self._base(q, v, support)
        if isinstance(self._plan, Stand):
            swings = [np.zeros(3)] * len(self._limbs)
        else:
            following = Support.of(points, [1 - k for k in loads])
            landing = self._capture.next_support(inside, phase, error, support, following)
            swings = self._swings(inside, q, v, carries, support, landing)
        tasks = [leg_task(robot, limb, q, v, a, self.foot) for limb, a in zip(self._limbs, swings, strict=True)]
        given: list[Any] = list(
            self.posture[0] * (self._home - q[robot.base.nq :]) - self.posture[1] * v[robot.base.nv :]
        )
        slope: list[Any] = [np.zeros(robot.base.nv)] * robot.nj
        for limb, task in zip(self._limbs, tasks, strict=True):
            for row, column in enumerate(limb.columns - robot.base.nv):
                given[column], slope[column] = task.given[row], task.follow[row]
        follow = np.concatenate([np.eye(robot.base.nv), slope])
        vdot = np.concatenate([np.zeros(robot.base.nv), given]) + follow @ level
        inertia, h = inertia_matrix(robot, q), bias_forces(robot, q, v)
        pressure = join(self._capture.pressure(error, support), support.center[2:])
        vdot = vdot + follow @ self._shift(q, inertia @ follow, inertia @ vdot + h, pressure)
        tau, _ = distribute(robot, q, inertia, inertia @ vdot + h, follow, loads)
        return tau

    def _shift(self, q: Array, felt: Array, tau: Array, pressure: Array) -> Array:
        """Return what to add to the base's acceleration, (n0,), so that the ground can make the motion by pressure.

        The ground's forces have no moment about horizontal axes through the center of pressure. What such a turn of
        the base, joints locked, wants is that moment; moving the base sideways brings it to zero. So legs that swing
        take their reaction from the mass's way, not from the trunk's attitude.

        Args:
            q: Configuration, (nq,).
            felt: I d vdot / d vdot_0, (nv, n0). tau: I vdot + h so far, (nv,).
            pressure: Where the center of pressure should be, (3,), [m], world.
        """
        robot, n0 = self.robot, self.robot.base.nv
        R, origin = robot.base.pose(q[: robot.base.nq])
        P = robot.base.motion_matrix(q[: robot.base.nq])
        slides = [join(np.zeros(3), axis) for axis in R[:2]]
        turns = [join(axis, R.T @ cross(R @ axis, origin - pressure)) for axis in R[:2]]
        to_base = np.array([solve_symmetric(P.T @ P, P.T @ twist) for twist in (*slides, *turns)]).T
        slides, turns = to_base[:, :2], to_base[:, 2:]
        A, moment = turns.T @ felt[:n0] @ slides, turns.T @ tau[:n0]
        return slides @ solve_symmetric(mirror(A.T @ A) + _STUCK * robot.mass**2 * np.eye(2), -(A.T @ moment))

    def _carrying(self, phase: Any) -> list[Any]:
        """Return 1 for each leg that carries in a phase, 0 for each that swings."""
        if isinstance(self._plan, Stand):
            return [1.0] * len(self._limbs)
        even = phase % 2 < 0.5
        first = self._plan.groups[0]
        return [where(even, 1.0, 0.0) if limb.leg.name in first else where(even, 0.0, 1.0) for limb in self._limbs]

    def _support(self, phase: Any, points: Array) -> Support:
        carries = self._carrying(phase)
        return Support.of(points, self._per_contact(carries), self._middle(carries))

    def _error(self, t: Any, q: Array, v: Array, support: Support) -> Array:
        """Return the error of the divergent component of motion, (2,), [m]."""
        capture, c = self._capture, center_of_mass(self.robot, q)
        assert capture is not None
        linear = momentum(self.robot, q, v)[3:]
        return capture.error(t, c[:2] + linear[:2] / (self.robot.mass * capture.omega), support)

    def _middle(self, carries: list[Any]) -> Array:
        """Return the middle of the carrying legs' places under the robot, from that of all legs', (2,), [m]."""
        stances = (self._place(limb.leg) for limb in self._limbs)
        return sum_of(k * stance for k, stance in zip(carries, stances, strict=True)) / sum_of(carries)

    def _place(self, leg: Any) -> Array:
        """Return where a leg stands, from the middle of all legs, (2,), [m]: there the center of mass is."""
        return np.array(leg.stance) - self._middle_of_all

    def _per_contact(self, carries: list[Any]) -> list[Any]:
        loads: list[Any] = [0.0] * len(self.robot.contacts)
        for limb, k in zip(self._limbs, carries, strict=True):
            for i in limb.contacts:
                loads[i] = k
        return loads

    def _base(self, q: Array, v: Array, support: Support) -> Array:
        """Return the base's wanted vdot, (n0,), so that it turns level and keeps its height."""
        base = self.robot.base
        n, m = base.nq, base.nv
        R, origin = base.pose(q[:n])
        P = base.motion_matrix(q[:n])
        twist = P @ v[:m]
        turn = -self.attitude[0] * rotation_error(R) - self.attitude[1] * (R @ twist[:3])
        rise = self.height[0] * (self._plan.base_height - (origin[2] - support.center[2]))
        up = rise - self.height[1] * (R @ twist[3:])[2]
        wanted = join(R.T @ turn, R[2] * up) - base.motion_bias(q[:n], v[:m])
        return solve_symmetric(P.T @ P, P.T @ wanted)

    def _swings(self, t: Any, q: Array, v: Array, carries: list[Any], support: Support, landing: Array) -> list[Array]:
        """Return how each sole should accelerate, (3,), [m/s^2], world: not at all while it carries."""
        gait, robot = self._plan, self.robot
        assert isinstance(gait, Alternating)
        R, origin = robot.base.pose(q[: robot.base.nq])
        soles, velocities = point_motion(robot, q, v, [(limb.link, limb.sole) for limb in self._limbs])
        left = np.maximum(gait.period - t, _REST * gait.period)
        lift = self._lift(t)
        swings = []
        for limb, k, sole, velocity in zip(self._limbs, carries, soles, velocities, strict=True):
            over = np.array([sole[0], sole[1], sole[2] - support.center[2]])
            place = landing + self._place(limb.leg)
            place = within_reach(place, hips(limb.leg, R, origin), self._farthest(limb.leg))
            swing = swing_acceleration(over, velocity, place, left, lift, self.foot)
            swings.append((1 - k) * swing)
        return swings

    def _farthest(self, leg: Leg) -> Any:
        """Return how far from under its hip a leg may step, [m]."""
        length = _STRETCH * leg.reach
        return np.sqrt(np.maximum(length**2 - (self._plan.hip_height - leg.sole) ** 2, 0.0))

    def _lift(self, t: Any) -> tuple[Any, Any, Any]:
        """Return the planned height of a swinging sole over the support, with two derivatives."""
        fraction = taylor.time(t) / self._plan.period
        _, lift = path_named(self._plan.path)(fraction)
        height, rate, acceleration = taylor.derivatives([self._plan.clearance * lift - _PRESS * fraction])
        return height[0], rate[0], acceleration[0]


def plan_of(gait: Any) -> Any:
    """Return the plan that a numerical gait follows, or the gait itself."""
    return gait.gait if isinstance(gait, NumericalGait) else gait


def hips(leg: Leg, R: Array, origin: Array) -> Array:
    """Return where a leg hangs straight down to, (2,), [m], world, for a base at rotation R and origin."""
    return (origin + R @ np.array([*leg.stance, leg.hip[2]]))[:2]


def within_reach(place: Array, center: Array, farthest: float) -> Array:
    """Return a place (2,) [m], drawn in to at most `farthest` from a center."""
    way = place - center
    distance = np.sqrt(way @ way + 1e-12)
    return center + way * np.minimum(1.0, farthest / distance)


def point_heights(robot: Robot, q: Array) -> Array:
    """Return the heights of the contact points, (n,), [m], world."""
    points, _ = contact_motion(robot, q, np.zeros(robot.nv))
    return points[:, 2]
