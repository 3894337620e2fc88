"""The interface between controllers and simulations, and its implementation for plain callables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from legged.contact.rigid import Rigid
from legged.errors import ShapeError
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray


class Controller(Protocol):
    """Torques as a function of time, state, contact wrenches and memory; all methods can be traced.

    Only `torque` is required. A controller with `update` is a discrete-time controller and needs an integrator with
    fixed steps. A controller may also have `initial_state(robot) -> (q, v)`, the default initial state of runs, and
    `reference(t, phase) -> (joint positions, velocities, accelerations)`, (nj,) each, which runs record.
    """

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Any:
        """Return (controller, memory): the controller for this run and its initial memory, (m,).

        A controller is a definition, which a run does not change. If it depends on the robot, `start` returns a new
        controller that is fitted to the robot. A controller that does not may return only the memory.

        Args:
            robot: The robot.
            ground: The ground, or None.
            q: Initial configuration, (nq,).
            v: Initial velocity, (nv,).
        """
        ...

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), or the joint torques alone, (nj,).

        Args:
            t: Time, [s]. phase: Number of `switches` that have passed.
            q: Configuration, (nq,). v: Velocity, (nv,).
            wrenches: Of the ground on the links, (n_links, 6), about each link's origin in its axes.
            memory: (m,).
        """
        ...

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory's rate, (m,)."""
        ...

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory that a fixed step begins with, (m,), from the one that the step before ended with."""
        ...

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the reference jumps, growing, [s]."""
        ...

    def update_times(self, until: float) -> Any:
        """Return the times before `until` at which a fixed step must begin besides those, for `update`, [s]."""
        ...

    @property
    def has_update(self) -> bool:
        """Whether it has an `update` of its own."""
        ...


class _Adapted:
    """A controller with all methods of `Controller`, from an object that may lack some."""

    def __init__(self, given: Any):
        self.given = given

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Controller, Array]:
        start = getattr(self.given, "start", None)
        started = None if start is None else start(robot, ground, q, v)
        if isinstance(started, tuple) and len(started) == 2 and hasattr(started[0], "torque"):
            controller, memory = started
        else:
            controller, memory = self.given, started
        return type(self)(controller), np.zeros(0) if memory is None else np.asarray(memory, dtype=float)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        return self.given.torque(t, phase, q, v, wrenches, memory)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        rate: Any = getattr(self.given, "rate", None)
        if rate is None or not len(memory):
            return 0.0 * memory
        return np.asanyarray(rate(t, phase, q, v, wrenches, memory))

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        return self.given.update(t, phase, q, v, wrenches, memory) if self.has_update else memory

    def switches(self, until: float) -> Any:
        switches = getattr(self.given, "switches", None)
        return () if switches is None else switches(until)

    def update_times(self, until: float) -> Any:
        update_times = getattr(self.given, "update_times", None)
        return () if update_times is None else update_times(until)

    @property
    def has_update(self) -> bool:
        return hasattr(self.given, "update")

    @property
    def reference(self) -> Any:
        return getattr(self.given, "reference", None)


class _Function(_Adapted):
    """A controller from a callable tau = controller(t, q, v, wrenches)."""

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        return self.given(t, q, v, wrenches)


class _Idle(_Adapted):
    """No controller: no torques."""

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        return np.zeros(len(v))


def adapt(controller: Any) -> Controller:
    """Return a controller with all methods from an object with `torque`, a callable, or None."""
    if controller is None:
        return _Idle(None)
    if hasattr(controller, "torque") or hasattr(controller, "start"):
        return _Adapted(controller)
    if callable(controller):
        return _Function(controller)
    raise TypeError(
        "a controller is a callable (t, q, v, wrenches) -> torques or an object with a method `torque` or `start`, "
        f"got {controller!r}"
    )


def full_torque(robot: Robot, torque: Any) -> Array:
    """Return the generalized forces (nv,) from what a controller gave: (nv,), or (nj,) without the base's rows."""
    torque = np.asanyarray(torque)
    if torque.shape == (robot.nv,):
        return torque
    if torque.shape != (robot.nj,):
        raise ShapeError(
            f"a controller of {robot.name!r} must return ({robot.nj},) joint torques or ({robot.nv},) generalized "
            f"forces, got shape {torque.shape}"
        )
    return np.concatenate([np.zeros(robot.base.nv), torque])


ControllerLike = Controller | Callable[[Any, Array, Array, Array], Array] | None
