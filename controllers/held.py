"""A law with a clock: computed at a fixed rate, and held in between."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.compiler.ir.expression import Expression
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError, LeggedError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.controller import Controller, ControllerLike, adapt, full_torque

Array = np.ndarray
_ON_TIME = 1e-6  # of a period: an instant's distance from a whole number of them is rounding


@dataclass(eq=False)
class Held:
    """A control law as a computer runs it: at t = 0, 1 / rate, 2 / rate, ..., its torques held until the next instant.

    It wants an integrator with fixed steps, which then begins a step at every instant, whatever its own step and the
    sample times are. The memory is the torques that are held, (nv,), and then the law's own, which a held law advances
    from instant to instant by its rate over a whole period.

    Attributes:
        law: Any controller, with memory, references and switches of its own or without. At a switch the law answers
            at its next instant.
        rate: How often it is computed, [1/s].
    """

    law: ControllerLike | Any
    rate: float = 500.0
    _inner: Controller | None = field(default=None, init=False, repr=False)
    _robot: Robot | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.rate < np.inf:
            raise DefinitionError(f"a held law must be computed at a positive rate in 1/s, got {self.rate}")
        if isinstance(self.law, Held):
            raise DefinitionError("a held law cannot be held again; give the law itself, at one rate")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Start the law and return the memory: no torques yet, and the law's own."""
        self._robot, self._inner = robot, adapt(copy.copy(self.law))
        return np.concatenate([np.zeros(robot.nv), self._inner.start(robot, ground, q, v)])

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory that a step from time t begins with: at an instant the law's new answer."""
        law, robot = self._started
        periods = t * self.rate
        due = np.abs(periods - np.floor(periods + 0.5)) < _ON_TIME
        if not isinstance(due, Expression) and not due:  # in Python the law is asked at its instants alone
            return memory
        own = law.update(t, phase, q, v, wrenches, memory[robot.nv :])
        tau = full_torque(robot, law.torque(t, phase, q, v, wrenches, own))
        later = own + law.rate(t, phase, q, v, wrenches, own) / self.rate
        return where(due, np.concatenate([tau, later]), memory)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces that are held, (nv,)."""
        return memory[: len(v)]

    def update_times(self, until: float) -> Array:
        """Return the times before `until` at which the law is computed, [s]."""
        return np.arange(1, int(np.ceil(until * self.rate - _ON_TIME))) / self.rate

    def switches(self, until: float) -> Any:
        """Return the times at which the law's reference jumps, [s]."""
        return (self._inner or adapt(self.law)).switches(until)

    @property
    def _started(self) -> tuple[Controller, Robot]:
        if self._inner is None or self._robot is None:
            raise LeggedError("Held knows no robot yet; call start(robot, ground, q, v) first")
        return self._inner, self._robot

    def __getattr__(self, name: str) -> Any:
        """Return what the law has besides: `reference`, `initial_state`."""
        if name not in ("reference", "initial_state"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        inner = self.__dict__.get("_inner")
        return getattr(self.law if inner is None else inner.given, name)  # type: ignore[attr-defined]
