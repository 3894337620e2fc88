"""Several laws of which one acts at a time, chosen by time or by the state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np

from legged import arguments
from legged.checked import checked
from legged.compiler.ir import Expression, where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.controller import CommandedFunction, Controller, ControllerLike, adapt, full_torque

Array = np.ndarray
_SAME_TIME = 1e-9  # [s]: times nearer than this are equal
_MARGIN = 1e-6  # [s], added to the time at which a law takes over when its earlier switch times are counted


Selection = Callable[[Any, Any, Array, Array, Array], Any]
"""A function (current, t, q, v, wrenches) -> number of the law to use, from 0, a NumPy formula."""


@checked
@dataclass(frozen=True, eq=False)
class SwitchedLaw:
    """Several laws, one of which acts at a time.

        SwitchedLaw([stand, trot], [2.0])                                # the second law from t = 2 s on
        SwitchedLaw([trot, brake], lambda now, t, q, v, wrenches: np.maximum(now, legged.where(v[3] > 1.0, 1.0, 0.0)))

    A law that does not act keeps its memory, at first that of the start of the run; a law that takes over and has a
    method `restart`, such as `Locomotion`, starts anew in the present state. The memory is the number of the acting
    law, (1,), and the memories of all laws.

    Attributes:
        laws: The laws.
        when: Increasing times, [s], one fewer than laws, at which the next law takes over; or a function
            (current, t, q, v, wrenches) -> number of the law, from 0, evaluated at the start of each fixed time step.

    Raises:
        DefinitionError: The times do not fit the laws; or laws are chosen by the state, and their references jump at
            different times, or the function returns a number without a law (of numbers only).
    """

    laws: Sequence[ControllerLike | CommandedFunction]
    when: Sequence[float] | Selection
    _robot: Robot | None = field(default=None, repr=False, kw_only=True)
    _bounds: tuple[int, ...] = field(default=(), repr=False, kw_only=True)  # of the laws' memories in the whole one
    _counts: tuple[tuple[float, float], ...] = field(default=(), repr=False, kw_only=True)  # see `_switch_counts`

    def __post_init__(self) -> None:
        if not isinstance(self.laws, (list, tuple)) or not self.laws:
            raise DefinitionError(f"laws must be a list of controllers, got {arguments.shown(self.laws)}")
        if callable(self.when):
            return
        times = arguments.rounded_array("when", self.when, (len(self.laws) - 1,), "one time fewer than laws")
        if not (np.diff(times, prepend=0.0) > 0.0).all():
            raise DefinitionError(f"the times at which laws are switched must be positive and increase, got {times}")

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory): the started laws, and the initial memory, (m,); arguments as in `Wrapper.start`."""
        started = [adapt(law).start(robot, ground, q, v) for law in self.laws]
        laws, memories = tuple(law for law, _ in started), [np.zeros(1), *(memory for _, memory in started)]
        bounds = tuple(int(n) for n in np.cumsum([len(memory) for memory in memories]))
        fitted = replace(self, laws=laws, _robot=robot, _bounds=bounds)
        if not callable(self.when):
            fitted = replace(fitted, _counts=fitted._switch_counts())
        return fitted, np.concatenate(memories)

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the generalized forces of the acting law, (nv,); arguments as in `GaitLaw.torque`."""
        robot = self._robot
        if robot is None:
            raise DefinitionError("this SwitchedLaw has no robot; use the one that start(robot, ...) returns")

        def value(law: Any, phase: Any, memory: Array) -> Array:
            return full_torque(robot, law.torque(t, phase, q, v, wrenches, memory, *command))

        return self._chosen(phase, memory, value)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the time derivative of the memory, (m,), zero for laws that do not act.

        Arguments as in `GaitLaw.torque`.
        """

        def value(law: Any, phase: Any, memory: Array) -> Array:
            return law.rate(t, phase, q, v, wrenches, memory, *command)

        return self._changed(phase, memory, 0.0 * memory, value)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        """Return the memory at the start of a time step, (m,): of the acting law, and which one acts.

        Arguments as in `GaitLaw.torque`.
        """
        if callable(self.when):
            now = np.stack([1.0 * self.when(memory[0], t, q, v, wrenches)])
            if not isinstance(now[0], Expression) and not -0.5 < now[0] < len(self.laws) - 0.5:
                raise DefinitionError(
                    f"`when` must return the number of a law, 0 to {len(self.laws) - 1}, got {now[0]}"
                )
            memory = np.concatenate([now, self._restarted(t, q, v, now[0], memory)])
        elif self._restarts:
            number, _ = self._acting(phase, memory)
            memory = np.concatenate([np.stack([number]), self._restarted(t, q, v, number, memory)])

        def value(law: Any, phase: Any, memory: Array) -> Array:
            return law.update(t, phase, q, v, wrenches, memory, *command)

        return self._changed(phase, memory, memory, value)

    def switches(self, until: float) -> Any:
        """Return the times before `until` at which the reference jumps or another law takes over, (n,), [s].

        Args:
            until: End time, [s].
        """
        if callable(self.when):
            own = [tuple(float(t) for t in law.switches(until)) for law in self._started]
            different = {times for times in own if times}
            if len(different) > 1:
                raise DefinitionError(
                    "the references of laws that the state chooses must jump at the same times; use gaits of equal "
                    "period, or give times in place of a function"
                )
            return np.array(next(iter(different), ()))
        starts = self._starts
        own = [self._own_switches(k, start, min(end, until)) for k, (start, end) in enumerate(pairwise(starts))]
        switch_times = [t for times in own for t in times]
        return np.array(sorted([*switch_times, *(t for t in starts[1:-1] if t < until)]))

    def update_times(self, until: float) -> Any:
        """Return the times before `until` at which a time step must start, (n,), [s]."""
        return np.unique([float(t) for law in self._started for t in law.update_times(until)])

    @property
    def _started(self) -> Sequence[Any]:
        """The laws, which `start` has replaced with started controllers."""
        return self.laws

    @property
    def has_update(self) -> bool:
        """Whether a law has a discrete update or starts anew, or the state chooses the law."""
        return callable(self.when) or self._restarts or any(law.has_update for law in self._started)

    @property
    def has_clock(self) -> bool:
        """Whether a law has sample times of its own."""
        return any(getattr(law, "has_clock", False) for law in self.laws)

    @property
    def takes_command(self) -> bool:
        """Whether a law takes the command of `legged.Simulation.step`."""
        return any(getattr(law, "takes_command", False) for law in self.laws)

    @property
    def reference(self) -> Any:
        """The `reference` of the acting law, if times choose it and all laws have one; otherwise None."""
        references: dict[int, Any] = {id(law): getattr(law, "reference", None) for law in self.laws}
        if callable(self.when) or None in references.values():
            return None
        return lambda t, phase=None: self._chosen(phase, np.zeros(1), lambda law, own, _: references[id(law)](t, own))

    def __getattr__(self, name: str) -> Any:
        """Return `initial_state` of the first law, if it has one."""
        if name != "initial_state":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.laws[0], name)

    @property
    def _starts(self) -> list[float]:
        """Times at which each law takes over, and infinity."""
        assert not callable(self.when)
        return [0.0, *map(float, self.when), np.inf]

    def _own_switches(self, k: int, start: float, end: float) -> list[float]:
        """Return the switch times of law k between two times, without these."""
        return [float(t) for t in self._started[k].switches(end) if start + _SAME_TIME < t < end - _SAME_TIME]

    def _switch_counts(self) -> tuple[tuple[float, float], ...]:
        """Return the phases of this law and of each law itself at the time when that law takes over."""
        counts, passed = [(0.0, 0.0)], 0
        for k, (start, end) in enumerate(pairwise(self._starts[:-1])):
            passed += len(self._own_switches(k, start, end)) + 1
            own = [t for t in self._started[k + 1].switches(end + _MARGIN) if t <= end + _SAME_TIME]
            counts.append((float(passed), float(len(own))))
        return tuple(counts)

    def _chosen(self, phase: Any, memory: Array, value: Callable[[Controller, Any, Array], Any]) -> Any:
        """Return value(law, phase, memory) of the acting law."""
        number, phases = self._acting(phase, memory)
        parts = [memory[i:j] for i, j in pairwise(self._bounds)] or [memory] * len(self.laws)
        if not isinstance(number, Expression):
            k = round(float(number))
            return value(self._started[k], phases[k], parts[k])
        values = [value(*x) for x in zip(self._started, phases, parts, strict=True)]
        chosen = values[0]
        for k, other in enumerate(values[1:], 1):
            chosen = where(number > k - 0.5, other, chosen)
        return chosen

    def _changed(
        self, phase: Any, memory: Array, otherwise: Array, value: Callable[[Controller, Any, Array], Any]
    ) -> Array:
        """Return an array like the memory: value(law, phase, memory) for the acting law, `otherwise` for the others."""
        number, phases = self._acting(phase, memory)
        parts = [otherwise[:1]]
        for k, (i, j) in enumerate(pairwise(self._bounds)):
            acts = (number > k - 0.5) & (number < k + 0.5)
            if isinstance(acts, Expression):
                parts.append(where(acts, value(self._started[k], phases[k], memory[i:j]), otherwise[i:j]))
            else:
                parts.append(value(self._started[k], phases[k], memory[i:j]) if acts else otherwise[i:j])
        return np.concatenate(parts)

    @property
    def _restarts(self) -> bool:
        """Whether a law after the first starts anew when it takes over."""
        return any(getattr(law, "restarts", False) for law in self.laws[1:])

    def _restarted(self, t: Any, q: Array, v: Array, number: Any, memory: Array) -> Array:
        """Return the memories of all laws, (m - 1,): that of the law that takes over is its initial one."""
        parts = []
        for k, (law, (i, j)) in enumerate(zip(self._started, pairwise(self._bounds), strict=True)):
            part = memory[i:j]
            if getattr(law, "restarts", False):
                acts, acted = ((n > k - 0.5) & (n < k + 0.5) for n in (number, memory[0]))
                part = where(acts, where(acted, part, law.restart(t, q, v)), part)
            parts.append(part)
        return np.concatenate(parts)

    def _acting(self, phase: Any, memory: Array) -> tuple[Any, list[Any]]:
        """Return the number of the acting law, and the phase of each law's own reference."""
        if callable(self.when):
            return memory[0], [phase] * len(self.laws)
        number = sum((where(phase > n - 0.5, 1.0, 0.0) for n, _ in self._counts[1:]), 0.0 * phase)
        return number, [np.maximum(phase - n + own, 0.0) for n, own in self._counts]
