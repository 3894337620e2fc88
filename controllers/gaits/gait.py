"""What every gait answers: joint references with two derivatives, from a plan of the base and of the feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np

from controllers.gaits.foot_path import Path, path_named
from controllers.gaits.leg import Leg
from controllers.gaits.reading import legs_of
from legged import taylor
from legged.errors import DefinitionError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray
_INSTANTS = 101  # at which a phase is checked for reach


class Reference(Protocol):
    """What a controller asks of a gait; any object with these three can stand in for one.

    If it also has `on(robot)`, which returns the gait fitted to a robot, controllers call that first.
    """

    def reference(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]: ...
    def switches(self, until: float) -> Array: ...
    def initial_state(self, robot: Robot) -> tuple[Array, Array]: ...


@dataclass(frozen=True, kw_only=True)
class Gait:
    """A plan in steps of one period: where the base goes, where the feet go, and so what the joints do.

    The base stays level. Subclasses give `plan` and `supporting`; the legs' inverse kinematics does the rest. All
    methods that take `t` also take an array of instants, which then leads the shape of the result.

    Attributes:
        period: Duration of a phase (one step of the robot), [s].
        stride: Length by which the base advances in a phase, [m].
        clearance: Height of the swinging feet, [m].
        hip_height: Of the hips over the ground, [m].
        path: Shape of the swing, a name of `foot_path.PATHS` or a function of the fraction of the swing.
        gravity: [m/s^2].
        legs: The legs; without them they are read from the robot by `on`, and until then those of the paper's.
        joints: Number of joint coordinates; without it those of the legs. Joints of no leg are held at zero.
    """

    period: float = 1.0
    stride: float = 0.3
    clearance: float = 0.1
    hip_height: float = 0.96
    path: str | Path = "cosine"
    gravity: float = 9.81
    legs: tuple[Leg, ...] | None = None
    joints: int | None = None

    def __post_init__(self) -> None:
        for name in ("period", "hip_height", "gravity"):
            if not 0 < getattr(self, name) < np.inf:
                raise DefinitionError(f"a gait's {name} must be positive, got {getattr(self, name)}")
        if not 0 <= self.clearance < self.hip_height:
            raise DefinitionError(f"clearance must be from 0 to the hip height, got {self.clearance} m")
        if not np.isfinite(self.stride):
            raise DefinitionError(f"stride must be finite, got {self.stride} m")
        path_named(self.path)

    # What subclasses define.

    def default_legs(self) -> tuple[Leg, ...]:
        """Return the legs of the robot that this gait was made for."""
        raise NotImplementedError

    def plan(self, t: Any, phase: Any) -> tuple[Sequence[Any], list[Sequence[Any]]]:
        """Return (base, feet) at time `t` [s] after the start of a phase, over any element.

        Everything in axes that move on by a stride each phase: the base's origin (x, y, z), z over the ground, and for
        every leg the sole's displacement (x, y) from the leg's stance under a base at the origin, and its height z.
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

    # What users and controllers call.

    @cached_property
    def geometry(self) -> tuple[Leg, ...]:
        """The legs in use, with their joint columns filled in."""
        legs, after, known = self.legs or self.default_legs(), 0, []
        for leg in legs:
            columns = leg.columns or tuple(range(after, after + leg.n_joints))
            after = max(columns) + 1
            known.append(replace(leg, columns=columns))
        return tuple(known)

    @property
    def base_height(self) -> float:
        """Height of the base's origin over the ground, [m]."""
        return self.hip_height - self.geometry[0].hip[2]

    def phase_at(self, t: Any) -> Any:
        """Return the number of the phase at time `t` [s]; a switch belongs to the phase that it begins."""
        return np.floor(t / self.period + 1e-9)

    def reference(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return joint positions [rad], velocities [rad/s] and accelerations [rad/s^2], each (joints,).

        Args:
            t: Time since the start, [s]; a number, an array of instants or traced.
            phase: Number of switches passed, 0 at the start; by default that at `t`. A phase may be evaluated beyond
                its end, which integrators need that restart at each switch.

        Raises:
            ReachError: The plan asks for more than a leg's length (plain numbers only).
        """
        phase = self.phase_at(t) if phase is None else phase
        base, feet = self.plan(taylor.time(t - phase * self.period), phase)
        angles: list[Any] = [0.0] * self._n_joints
        for leg, foot in zip(self.geometry, feet, strict=True):
            stretch = foot[0] - base[0], foot[1] - base[1] + leg.offset, base[2] - foot[2] + leg.hip[2]
            for column, angle in zip(leg.columns, leg.stretch(*stretch), strict=True):
                angles[column] = angle
        return taylor.derivatives(angles)

    def base(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return the planned position, velocity and acceleration of the base's origin, (3,), world axes."""
        phase = self.phase_at(t) if phase is None else phase
        base, _ = self.plan(taylor.time(t - phase * self.period), phase)
        return taylor.derivatives([base[0] + taylor.lift(phase * self.stride), base[1], base[2]])

    def feet(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return planned positions, velocities and accelerations of the soles, (legs, 3), world axes."""
        phase = self.phase_at(t) if phase is None else phase
        _, feet = self.plan(taylor.time(t - phase * self.period), phase)
        rows = [
            [foot[0] + taylor.lift(leg.stance[0] + phase * self.stride), foot[1] + leg.stance[1], foot[2]]
            for leg, foot in zip(self.geometry, feet, strict=True)
        ]
        return taylor.derivatives(rows)

    def support(self, t: float) -> tuple[str, ...]:
        """Return the names of the legs that carry the robot at time `t`, [s]."""
        return self.supporting(int(self.phase_at(t)))

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which legs exchange roles and accelerations jump, [s]."""
        return np.arange(1, np.ceil(until / self.period - 1e-9)) * self.period

    def on(self, robot: Robot) -> Any:
        """Return this gait for a robot: legs read from it unless given, every phase checked for reach.

        Raises:
            DefinitionError: The robot's legs have no closed form; see `gaits.NumericalGait`.
            ReachError: A phase asks for more than a leg's length.
        """
        try:
            hash(self)
        except TypeError:  # a field of a subclass that is no constant
            return _fitted.__wrapped__(self, robot)
        return _fitted(self, robot)

    def check(self) -> None:
        """Raise ReachError if a leg is asked for more than its length anywhere in the cycle."""
        for phase in range(self.cycle):
            self.reference((phase + np.linspace(0, 1, _INSTANTS)) * self.period, phase)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0: joints and their rates on the plan, base level and moving with the hips.

        The feet are on the ground, exactly at height 0, and the robot is already under way.
        """
        gait = self.on(robot)
        position, velocity, _ = gait.base(0.0, 0)
        angles, rates, _ = gait.reference(0.0, 0)
        return level_state(robot, position, velocity, angles, rates)

    @property
    def _n_joints(self) -> int:
        needed = max(max(leg.columns) for leg in self.geometry) + 1
        if self.joints is not None and self.joints < needed:
            raise ShapeError(f"the gait's legs have {needed} joint coordinates, but there are {self.joints}")
        return self.joints or needed


@lru_cache(maxsize=4)  # a rollout asks again and again
def _fitted(gait: Gait, robot: Robot) -> Gait:
    """Return a gait for a robot, see `Gait.on`."""
    check_joints(robot)
    fitted = replace(gait, legs=gait.legs or legs_of(robot), joints=robot.nj)
    fitted.check()
    return fitted


def level_state(robot: Robot, position: Array, velocity: Array, angles: Array, rates: Array) -> tuple[Array, Array]:
    """Return (q, v) of a robot with a level base.

    Args:
        position, velocity: Of the base's origin, (3,), [m], [m/s], world axes.
        angles, rates: Of the joints, (robot.nj,).
    """
    base, nothing = robot.base, np.zeros(0)
    q_base = base.configuration(position, np.eye(3)) if base.nv else nothing
    v_base = base.velocity(q_base, np.zeros(3), velocity) if base.nv else nothing
    return np.concatenate([q_base, angles]), np.concatenate([v_base, rates])


def check_joints(robot: Robot) -> None:
    """Raise DefinitionError for a robot with ball joints, whose positions are no angles."""
    if robot.nq - robot.base.nq != robot.nj:
        raise DefinitionError(
            f"robot {robot.name!r} has quaternion ball joints; gaits and controllers need one coordinate per degree "
            f"of freedom, so define these joints with an Euler sequence"
        )
