"""What the control laws share: a gait fitted to a robot, gains, and the errors of the joints."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controllers.gaits.gait import Reference, check_joints
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, LeggedError, NotFiniteError, ShapeError
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray
Gain = float | Array | list[float] | tuple[float, ...]


@dataclass(eq=False)
class GaitLaw:
    """A control law that makes the joints follow a gait; subclasses give `torque`.

    The methods are those that a simulation asks of a controller; `start` fits the law to a robot.

    Attributes:
        gait: What to follow: a gait, or any object with `reference`, `switches` and `initial_state`.
    """

    gait: Reference
    _robot: Robot | None = field(default=None, init=False, repr=False)
    _ground: Ground | Rigid | None = field(default=None, init=False, repr=False)
    _fitted: Reference | None = field(default=None, init=False, repr=False)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Fit the gait and the gains to the robot and return the initial memory, (0,).

        Raises:
            DefinitionError, ReachError: The gait does not suit the robot.
            ShapeError, NotFiniteError: Gains or reference of the wrong size, or not finite.
        """
        check_joints(robot)
        self._robot, self._ground, self._fitted = robot, ground, fitted(self.gait, robot)
        sizes = {np.shape(part) for part in self._fitted.reference(0.0, 0)}
        if sizes != {(robot.nj,)}:
            raise ShapeError(
                f"the gait's references must be ({robot.nj},), one entry per joint coordinate of {robot.name!r}, "
                f"got {', '.join(map(str, sorted(sizes)))}"
            )
        self._fit_gains(robot.nj)
        return np.zeros(0)

    def _fit_gains(self, n: int) -> None:
        """Bring the gains to one per joint; subclasses with gains override this."""

    @property
    def robot(self) -> Robot:
        """The robot that the law was started on."""
        if self._robot is None:
            raise LeggedError(f"{type(self).__name__} knows no robot yet; call start(robot, ground, q, v) first")
        return self._robot

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), [N m] or [N]; zeros in the base's rows."""
        raise NotImplementedError

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the rate of the memory, as long as it."""
        return memory

    def reference(self, t: Any, phase: Any = None) -> tuple[Array, Array, Array]:
        """Return desired joint positions, velocities and accelerations, (nj,) each."""
        return (self._fitted or self.gait).reference(t, phase)

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which the reference jumps, [s]."""
        return self.gait.switches(until)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0 on the gait."""
        return self.gait.initial_state(robot)

    def _errors(self, t: Any, phase: Any, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return the joints' position errors, velocity errors and desired accelerations, (nj,) each."""
        base = self.robot.base
        wanted, rates, accelerations = self.reference(t, phase)
        return wanted - q[base.nq :], rates - v[base.nv :], accelerations

    def _generalized(self, joint_torques: Array) -> Array:
        return np.concatenate([np.zeros(self.robot.base.nv), joint_torques])


def fitted(gait: Reference, robot: Robot) -> Reference:
    """Return the gait for a robot, if it can be fitted, or else as it is."""
    on = getattr(gait, "on", None)
    return gait if on is None else on(robot)


def per_joint(name: str, gain: Gain, n: int) -> Array:
    """Return a gain as one number per joint coordinate, (n,).

    Raises:
        ShapeError: It is neither one number nor n. NotFiniteError: NaN or infinity. DefinitionError: Negative.
    """
    array = np.asarray(gain, dtype=float)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"{name} must be one number or ({n},), one per joint coordinate, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise NotFiniteError(f"{name} must be finite, got {array}")
    if (array < 0).any():
        raise DefinitionError(f"{name} must not be negative, got {array.min()}: it would push away from the reference")
    return np.broadcast_to(array, (n,)).copy()
