"""The base class of gaits: joint references with two derivatives, from a planned motion of base and feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

import numpy as np

from controllers.gaits.foot_path import Path, path_named
from controllers.gaits.leg import FittedLeg, Leg
from controllers.gaits.leg_detection import legs_of
from legged import taylor
from legged.arguments import Numbers, list_as_array
from legged.checked import checked
from legged.errors import ArgumentError, DefinitionError, ReachError, ShapeError
from legged.robot.configuration import refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray
_BENT = 0.75  # hip height as a fraction of the length of the legs, with knees well bent
KNEE_MARGIN = float(np.radians(25.0))
"""Smallest angle of the knees, [rad], at the default hip height: legs are stretched to 97.6 % of their length or less.

A knee at the angle alpha turns by 1 / sin(alpha / 2) per change of the leg's length, over the length of its two equal
links: 4.6 times as fast at 25 deg as in a folded leg, and without bound in a straight one. The gaits of the paper
keep 27 deg (walk) and 56 deg (trot), that of the authors' hexapod with its own hip height 20 deg.
"""
_MOST_SWITCHES = 1e7
_HEIGHT_TOLERANCE = 1e-6  # [m], of the default hip height
_SAMPLES = 101  # times per phase at which the reach of legs is checked
_fits: WeakKeyDictionary[Robot, dict[Any, Any]] = WeakKeyDictionary()
"""Robot -> gait -> the gait for it: a rollout computes the states of all members before it starts their laws."""
_MOST_FITS = 10_000  # of a robot, some tens of megabytes


class Reference(Protocol):
    """The interface of a gait that controllers use.

    An object may also have `on(robot)`, which returns the gait fitted to a robot; controllers then use that one.
    """

    def reference(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return desired joint positions, velocities and accelerations, (nj,) each; see `Gait.reference`."""
        ...

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which the reference jumps, (n,), [s]."""
        ...

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0, (nq,) and (nv,)."""
        ...


@checked
@dataclass(frozen=True, kw_only=True)
class Gait:
    """A gait of phases of equal duration: the planned motion of base and feet, and the joint references it implies.

    The base stays level. Subclasses define `plan`, `supporting` and `cycle`; joint references follow by the legs'
    inverse kinematics. Methods with a time `t` also accept an array of times, whose axes then come first in the result.

    Attributes:
        period: Duration of a phase (one step of the robot), [s].
        stride: Length by which the base advances in a phase, [m].
        clearance: Largest height of the swinging feet, [m].
        hip_height: Height of the hips over the ground, [m]; None for the default of `height`.
        path: Path of the swinging feet, a name in `foot_path.PATHS` or a function of the fraction of the swing.
        gravity: Gravitational acceleration, [m/s^2].
        legs: The legs. By default, `on` finds those of the robot; before that they are `default_legs`.
        joints: Number of joint coordinates, by default that of the legs. Joints of no leg stay at zero.
    """

    period: float = 1.0
    stride: float = 0.3
    clearance: float = 0.1
    hip_height: float | None = None
    path: str | Path = "cosine"
    gravity: float = 9.81
    legs: tuple[Leg | FittedLeg, ...] | None = None
    joints: int | None = None
    height_fraction: ClassVar[float] = 0.96
    """Default height of the hips in units of the length of the straight legs, that of the paper's robot."""

    def __post_init__(self) -> None:
        for name in ("period", "hip_height", "gravity"):
            if getattr(self, name) is not None and not 0 < getattr(self, name) < np.inf:
                raise DefinitionError(f"a gait's {name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.clearance < (np.inf if self.hip_height is None else self.hip_height):
            raise DefinitionError(f"clearance must be from 0 to the hip height, got {self.clearance} m")
        if not np.isfinite(self.stride):
            raise DefinitionError(f"stride must be finite, got {self.stride} m")
        path_named(self.path)

    # Subclasses define these.

    def default_legs(self) -> tuple[Leg, ...]:
        """Return the legs of the robot for which the default values of this gait were chosen."""
        raise NotImplementedError

    def plan(self, t: Any, phase: Any) -> tuple[Sequence[Any], list[Sequence[Any]]]:
        """Return (base, feet), the planned motion at time `t` [s] after the start of a phase, [m].

        Coordinates are relative to axes that move by one stride per phase: base is (x, y, z) of the base's origin, and
        feet is, for each leg, (x, y) of the sole from the leg's stance position, and its height z.

        Args:
            t: Time, [s]; a number, an array, a `Taylor` series or a traced expression.
            phase: Number of switches passed.
        """
        raise NotImplementedError

    def supporting(self, phase: int) -> tuple[str, ...]:
        """Return the names of the legs that carry the robot in a phase."""
        raise NotImplementedError

    @property
    def cycle(self) -> int:
        """Number of phases after which the gait repeats."""
        raise NotImplementedError

    @property
    def breaks(self) -> tuple[float, ...]:
        """Fractions of a phase, between 0 and 1, at which the plan changes its formula."""
        return ()

    # Users and controllers call these.

    @cached_property
    def geometry(self) -> tuple[Leg, ...]:
        """The legs in use, with the indices of their joints."""
        legs, after, known = self.legs or self.default_legs(), 0, []
        for leg in legs:
            columns = leg.columns
            if isinstance(leg, Leg) and not columns:
                columns = tuple(range(after, after + leg.n_joints))
            after = max(columns) + 1
            known.append(replace(leg, columns=columns))
        return tuple(known)

    @cached_property
    def height(self) -> float:
        """Height of the hips over the ground, [m]: `hip_height`, or a default that follows from the legs.

        The default is `height_fraction` times the length of the legs, or less if the stride would otherwise stretch a
        knee beyond `KNEE_MARGIN`.

        Raises:
            ReachError: There is no such height above the clearance of the feet: the stride is too long for the legs.
        """
        if self.hip_height is not None:
            return self.hip_height
        legs = self.geometry
        length = min(leg.reach + leg.sole + legs[0].hip[2] - leg.hip[2] for leg in legs)
        height = self.height_fraction * length
        while True:  # the motion of an inverted pendulum depends on its height
            if not height > self.clearance:
                raise ReachError(
                    f"a stride of {self.stride:g} m with a clearance of {self.clearance:g} m is too long for legs of "
                    f"{length:.3g} m at any hip height: give a shorter one, or use controllers.suited("
                    f"{type(self).__name__}, robot), which scales the whole gait"
                )
            excess = replace(self, hip_height=height)._overreach()
            if excess <= _HEIGHT_TOLERANCE:
                return height
            height -= excess

    def _overreach(self) -> float:
        """Return how much lower the hips must be for knees to keep `KNEE_MARGIN`, [m]; inf if none is low enough."""
        lower = -np.inf
        for phase in range(self.cycle):
            t = (phase + np.linspace(0.0, 1.0, _SAMPLES)) * self.period
            ahead = np.moveaxis(self.feet(t, phase)[0] - self.base(t, phase)[0][:, None], -1, 0)  # (3, times, legs)
            for leg, forward, left, up in zip(self.geometry, *(part.T for part in ahead), strict=True):
                square, down = (forward - leg.hip[0]) ** 2, leg.hip[2] - leg.sole - up
                if leg.abducts:
                    square = square + (left - leg.hip[1]) ** 2 - leg.offset**2
                room = leg.extension(KNEE_MARGIN) ** 2 - square
                lower = max(lower, float(np.max(np.where(room > 0.0, down - np.sqrt(np.abs(room)), np.inf))))
        return lower

    @property
    def base_height(self) -> float:
        """Height of the base's origin over the ground, [m]."""
        return self.height - self.geometry[0].hip[2]

    def phase_at(self, t: Numbers) -> Any:
        """Return the number of the phase at time `t` [s]; a switch belongs to the phase that it begins."""
        return np.floor(list_as_array(t) / self.period + 1e-9)

    def reference(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return joint positions [rad], velocities [rad/s] and accelerations [rad/s^2], (nj,) each.

        Args:
            t: Time since the start, [s]; a number, an array of instants or traced.
            phase: Number of switches passed, 0 at the start; by default that at `t`. A phase may be evaluated beyond
                its end, which integrators need that restart at each switch.

        Raises:
            ReachError: A foot is out of its leg's reach (numbers only).
        """
        t, passed = self._times(t, phase)
        base, feet = self.plan(taylor.time(t - passed * self.period), passed)
        angles: list[Any] = [0.0] * self._n_joints
        for leg, foot in zip(self.geometry, feet, strict=True):
            from_hip = foot[0] - base[0], foot[1] - base[1] + leg.offset, base[2] - foot[2] + leg.hip[2]
            for column, angle in zip(leg.columns, leg.hip_angles(*from_hip), strict=True):
                angles[column] = angle
        return taylor.derivatives(angles)

    def _times(self, t: Numbers, phase: Numbers | None) -> tuple[Any, Any]:
        """Return the times and the phases, by default those at the times, as numbers or arrays."""
        return list_as_array(t), self.phase_at(t) if phase is None else list_as_array(phase)

    def base(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return planned position, velocity and acceleration of the base's origin, (3,) each, world axes.

        Units are [m], [m/s] and [m/s^2]; arguments as in `reference`.
        """
        t, passed = self._times(t, phase)
        base, _ = self.plan(taylor.time(t - passed * self.period), passed)
        return taylor.derivatives([base[0] + taylor.lift(passed * self.stride), base[1], base[2]])

    def feet(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return planned positions, velocities and accelerations of the soles, (legs, 3) each, world axes.

        Units are [m], [m/s] and [m/s^2]; arguments as in `reference`.
        """
        t, passed = self._times(t, phase)
        _, feet = self.plan(taylor.time(t - passed * self.period), passed)
        rows = [
            [foot[0] + taylor.lift(leg.stance[0] + passed * self.stride), foot[1] + leg.stance[1], foot[2]]
            for leg, foot in zip(self.geometry, feet, strict=True)
        ]
        return taylor.derivatives(rows)

    def support(self, t: float) -> tuple[str, ...]:
        """Return the names of the legs that carry the robot at time `t`, [s]."""
        return self.supporting(int(self.phase_at(t)))

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which a phase ends and accelerations jump, (n,), [s]."""
        count = np.ceil(until / self.period - 1e-9)
        if count > _MOST_SWITCHES:
            raise ArgumentError(f"until must be at most {_MOST_SWITCHES:.0e} phases of {self.period} s, got {until} s")
        return np.arange(1, max(count, 1)) * self.period

    def on(self, robot: Robot) -> Any:
        """Return this gait for a robot: with the robot's legs unless `legs` is set, every phase checked for reach.

        Raises:
            DefinitionError: The robot's legs have no closed-form inverse kinematics; use `NumericalGait`.
            ReachError: A foot is out of its leg's reach.
        """
        known = _fits.setdefault(robot, {})
        try:
            fitted = known.get(self)
        except TypeError:  # a subclass has a field that cannot be hashed
            return _fitted(self, robot)
        if fitted is None:
            if len(known) >= _MOST_FITS:
                known.clear()
            fitted = known[self] = _fitted(self, robot)
        return fitted

    def check(self) -> None:
        """Raise ReachError if a foot is out of its leg's reach anywhere in the cycle."""
        for phase in range(self.cycle):
            self.reference((phase + np.linspace(0, 1, _SAMPLES)) * self.period, phase)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0 on the gait, (nq,) and (nv,): the feet at height 0, the base level and moving."""
        gait = self.on(robot)
        position, velocity, _ = gait.base(0.0, 0)
        angles, rates, _ = gait.reference(0.0, 0)
        return level_state(robot, position, velocity, angles, rates)

    @property
    def _n_joints(self) -> int:
        needed = max(max(leg.columns) for leg in self.geometry) + 1
        if self.joints is not None and self.joints < needed:
            raise ShapeError(f"joints must be at least {needed}, the number of joints of the legs, got {self.joints}")
        return self.joints or needed


def _fitted(gait: Gait, robot: Robot) -> Gait:
    """Return a gait for a robot; see `Gait.on`."""
    refuse_ball_quaternions(robot)
    try:
        fitted = replace(gait, legs=gait.legs or legs_of(robot), joints=robot.nj)
    except DefinitionError as error:
        kind = type(gait).__name__
        error.args = (f"{error}; controllers.suited({kind}, robot) makes a {kind} for these legs",)
        raise
    fitted = replace(fitted, hip_height=fitted.height)
    try:
        fitted.check()
    except ReachError as error:
        reach = min(leg.reach + leg.sole for leg in fitted.geometry)
        if fitted.height > _BENT * reach:
            kind, bent = type(gait).__name__, f"{_BENT * reach:.2g}"
            error.args = (
                f"{error}; hip_height={fitted.height:g} m leaves legs of {reach:.3g} m nearly straight: use "
                f"{kind}(hip_height={bent}, ...), or controllers.suited({kind}, robot), which scales the whole gait",
            )
        raise
    return fitted


def level_state(robot: Robot, position: Array, velocity: Array, angles: Array, rates: Array) -> tuple[Array, Array]:
    """Return (q, v) of a robot with a level base, (nq,) and (nv,).

    Args:
        robot: The robot.
        position: Position of the base's origin, (3,), [m], world axes.
        velocity: Velocity of the base's origin, (3,), [m/s], world axes.
        angles: Joint positions, (nj,), [rad] or [m], joint coordinates.
        rates: Joint velocities, (nj,), [rad/s] or [m/s], joint coordinates.
    """
    base, empty = robot.base, np.zeros(0)
    q_base = base.configuration(position, np.eye(3)) if base.nv else empty
    v_base = base.velocity(q_base, np.zeros(3), velocity) if base.nv else empty
    return np.concatenate([q_base, angles]), np.concatenate([v_base, rates])
