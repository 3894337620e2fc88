"""The base class of control laws that follow a gait, with checks of gains and of the feet that support a robot."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from controllers.gaits.gait import Gait, Reference
from controllers.gaits.numerical_gait import NumericalGait
from legged.arguments import Numbers, number
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, LeggedError, NotFiniteError, ShapeError
from legged.ground.ground import Ground
from legged.robot.configuration import read, refuse_ball_quaternions
from legged.robot.robot import Robot

Array = np.ndarray
Gain = float | Array | list[float] | tuple[float, ...]
_RANK_TOLERANCE = 1e-6  # of singular values, relative to the largest


@checked
@dataclass(frozen=True, eq=False)
class GaitLaw:
    """A control law whose joints follow a gait; subclasses define `torque`.

    A law is a definition. `start` returns the law for one robot: a copy with the gait fitted to the robot, which a
    simulation then evaluates.

    Attributes:
        gait: The gait, or any object with `reference`, `switches` and `initial_state`.
    """

    gait: Reference
    _robot: Robot | None = field(default=None, repr=False, kw_only=True)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory): this law for a robot and its initial memory, (m,); see `Controller.start`.

        Raises:
            DefinitionError, ReachError: The gait does not fit the robot.
            ShapeError, NotFiniteError: A gain or the gait's reference has the wrong size or is not finite.
        """
        law = self._fitted(robot, q, v)
        if ground is None and robot.base.nv and np.any(robot.gravity) and isinstance(self.gait, (Gait, NumericalGait)):
            warnings.warn(
                f"{robot.name!r} falls freely: its gait {type(self.gait).__name__} needs a ground, and there is none; "
                f"give ground=..., for example legged.ground.realistic_ground(robot)",
                stacklevel=3,
            )
        return law, np.zeros(0)

    def _fitted(self, robot: Robot, q: Array, v: Array) -> Self:
        """Return the law for a robot, as a part of `start`."""
        read(robot, q=q, v=v)
        refuse_ball_quaternions(robot)
        fit = getattr(self.gait, "on", None)
        gait = self.gait if fit is None else fit(robot)
        shapes = {np.shape(part) for part in gait.reference(0.0, 0)}
        if shapes != {(robot.nj,)}:
            raise ShapeError(
                f"the gait's references must be ({robot.nj},), one entry per joint coordinate of {robot.name!r}, "
                f"got {', '.join(map(str, sorted(shapes)))}"
            )
        return replace(self, gait=gait, _robot=robot)

    @property
    def robot(self) -> Robot:
        """The robot of a started law."""
        if self._robot is None:
            raise LeggedError(f"this {type(self).__name__} has no robot; use the law that start(robot, ...) returns")
        return self._robot

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), [N m] and [N], generalized coordinates; zero for the base.

        Args:
            t: Time, [s].
            phase: Number of `switches` that have passed.
            q: Configuration, (nq,).
            v: Velocity, (nv,).
            wrenches: Wrenches of the ground on the links, (n_links, 6), about each link's origin in its axes.
            memory: Memory of the law, (m,).
        """
        raise NotImplementedError

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `torque`."""
        return memory

    def reference(self, t: Numbers, phase: Numbers | None = None) -> tuple[Array, Array, Array]:
        """Return desired joint positions, velocities and accelerations, (nj,) each; see `Gait.reference`."""
        return self.gait.reference(t, phase)

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which the reference jumps, (n,), [s]."""
        return self.gait.switches(until)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0 on the gait, (nq,) and (nv,)."""
        return self.gait.initial_state(robot)

    def _errors(self, t: Any, phase: Any, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return position errors, velocity errors and desired accelerations of the joints, (nj,) each."""
        base = self.robot.base
        positions, velocities, accelerations = self.reference(t, phase)
        return positions - q[base.nq :], velocities - v[base.nv :], accelerations

    def _generalized(self, joint_torques: Array) -> Array:
        return np.concatenate([np.zeros(self.robot.base.nv), joint_torques])


def check_gains(law: Any, *names: str) -> None:
    """Refuse gains that are negative or not finite.

    Args:
        law: A law or task. names: Its attributes that are gains, each one number or several.

    Raises:
        ArgumentError, NotFiniteError: A gain is not a finite number of zero or more.
    """
    for name in names:
        for gain in np.ravel(np.array(getattr(law, name), dtype=object)):
            number(name, gain, least=0.0)


_UNSTABLE = "the feedback would be unstable"


def refuse_negative(law: Any, *names: str, reason: str = _UNSTABLE) -> None:
    """Refuse numbers or arrays that are negative or not finite where a law is defined; its `start` checks their shapes.

    Args:
        law: A law or wrapper. names: Its attributes, any unit; None and traced scalars pass.
        reason: Why they must not be negative, for the message.

    Raises:
        DefinitionError, NotFiniteError: A number is negative or not finite.
    """
    for name in names:
        value = np.asarray(getattr(law, name))
        if value.dtype.kind in "iuf":
            _check_sign(name, value, reason)


def _check_sign(name: str, value: Array, reason: str = _UNSTABLE) -> None:
    if not np.isfinite(value).all():
        raise NotFiniteError(f"{name} must be finite, got {value}")
    if (value < 0).any():
        raise DefinitionError(f"{name} must not be negative, got {float(value.min())}: {reason}")


def per_joint(name: str, gain: Gain, n: int) -> Array:
    """Return a gain as one number per joint coordinate, (n,), in the unit of the gain.

    Args:
        name: Name of the gain in error messages.
        gain: One number, or one per joint coordinate, (n,), any unit.
        n: Number of joint coordinates.

    Raises:
        ShapeError: The gain is neither one number nor n numbers.
        NotFiniteError: It has NaN or infinity.
        DefinitionError: It is negative.
    """
    array = np.asarray(gain, dtype=float)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"{name} must be one number or ({n},), one per joint coordinate, got shape {array.shape}")
    _check_sign(name, array)
    return np.broadcast_to(array, (n,)).copy()


def check_foot_support(robot: Robot, names: Sequence[str], G: Array) -> None:
    """Raise DefinitionError if forces on the feet cannot balance every generalized force on the base.

    Args:
        robot: The robot.
        names: Names of the feet, for the error message.
        G: Map from the force components of the feet to generalized forces on the base, (n0, k), mixed units.
    """
    sizes = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(0)
    if np.sum(sizes > _RANK_TOLERANCE * max(sizes, default=0.0)) < robot.base.nv:
        raise DefinitionError(
            f"the base of robot {robot.name!r} has {robot.base.nv} degrees of freedom, and forces on the feet "
            f"{list(names)} cannot hold all of them; use more feet"
        )
