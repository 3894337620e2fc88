"""How a closed loop is evaluated: as one compiled kernel, or piece by piece where something cannot be traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.errors import NotFiniteError, SingularError, TraceError
from legged.simulation.chart import largest_rotation
from legged.simulation.closed_loop import ClosedLoop, ExternalForces, Observation, Outputs
from legged.simulation.fixed import Piece
from legged.simulation.rigid_loop import RigidLoop
from legged.simulation.steps import Steps
from legged.simulation.system import State

Array = np.ndarray
NO_ANSWER = (NotFiniteError, SingularError)
_AGREEMENT = 1e-6  # relative; the same function compiled and not differs by rounding, or by a state it hides
COMPILED = "compiled closed loop"


@dataclass(frozen=True, eq=False)
class CompiledPlant(ClosedLoop):
    """The same loop with its robot, and its ground if that can be traced, compiled; the controller stays in Python."""

    def _compiled(self, name: str, **shapes: Any) -> Callable[..., Any]:
        known = self.__dict__.setdefault("_kernels", {})
        if name not in known:
            known[name] = compile_function(getattr(super(), name), None, **shapes)
        return known[name]

    @property
    def _state(self) -> dict[str, Any]:
        nq, nv = self.robot.nq, self.robot.nv
        return {"q": nq, "v": nv, "tau": nv, "wrenches": (len(self.robot.links), 6)}

    @cached_property
    def _external_forces(self) -> Callable[..., ExternalForces]:
        try:
            return self._compiled("external_forces", t=(), q=self.robot.nq, s=self.size)
        except Exception:  # a ground of the user's that cannot be traced, whatever it raised
            return super().external_forces

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        return self._compiled("configuration", q_ref=self.robot.nq, xi=self.robot.nv)(q_ref, xi)

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        return self._external_forces(float(t), q, s)

    def motion_rate(self, xi: Array, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        return self._compiled("motion_rate", xi=self.robot.nv, **self._state)(xi, q, v, tau, wrenches)

    def time_step(self, h: Any, q: Array, v: Array, tau: Array, wrenches: Array) -> tuple[Array, Array]:
        return self._compiled("time_step", h=(), **self._state)(float(h), q, v, tau, wrenches)

    def dissipation(self, h: Any, q: Array, v: Array, v_next: Array) -> Any:
        shapes = {"h": (), "q": self.robot.nq, "v": self.robot.nv, "v_next": self.robot.nv}
        return self._compiled("dissipation", **shapes)(float(h), q, v, v_next)

    def outputs(self, q: Array, s: Array) -> Outputs:
        return self._compiled("outputs", q=self.robot.nq, s=self.size)(q, s)


@dataclass(frozen=True, eq=False)
class CompiledScene(CompiledPlant, RigidLoop):
    """The same of a loop on rigid ground."""

    def dissipation(self, h: Any, q: Array, v: Array, v_next: Array) -> Any:
        return RigidLoop.dissipation(self, h, q, v, v_next)  # a part of `impact_step`, which is compiled whole

    @cached_property
    def _impact_step(self) -> Callable[..., tuple[Array, Array]]:
        shapes = {"t": (), "h": (), "q": self.robot.nq, "s": self.size, "tau": self.robot.nv}
        try:
            return self._compiled("impact_step", **shapes, memory_rate=self.memory)
        except Exception:  # a terrain of the user's that cannot be traced, whatever it raised
            return super().impact_step

    def impact_step(self, t: Any, h: Any, q: Array, s: Array, tau: Array, memory_rate: Array) -> tuple[Array, Array]:
        return self._impact_step(float(t), float(h), q, s, tau, memory_rate)


_PLANTS: dict[type[ClosedLoop], type[ClosedLoop]] = {ClosedLoop: CompiledPlant, RigidLoop: CompiledScene}


class Backend:
    """A closed loop as the `System` that integrators ask for.

    Attributes:
        loop: The equations, as they are evaluated when not compiled whole.
        whole: The loop runs as one compiled kernel.
        name: What ran, in words.
        trouble: Why the last evaluation had no answer, in words.
    """

    def __init__(self, loop: ClosedLoop, whole: bool, name: str):
        self.loop, self.whole, self.name, self.trouble = loop, whole, name, ""
        self._steppers: dict[str, Callable[..., Any]] = {}
        self._repeaters: dict[str, Steps] = {}

    @property
    def nv(self) -> int:
        """Length of xi."""
        return self.loop.robot.nv

    @cached_property
    def _rate(self) -> Callable[..., Array]:
        loop = self.loop
        return self._made(loop.rate, t=(), phase=(), y=loop.robot.nv + loop.size, q_ref=loop.robot.nq)

    @cached_property
    def _observe(self) -> Callable[..., Observation]:
        loop = self.loop
        return self._made(loop.observe, t=(), phase=(), q=loop.robot.nq, s=loop.size)

    @cached_property
    def _configuration(self) -> Callable[..., Array]:
        loop = self.loop
        return self._made(loop.configuration, q_ref=loop.robot.nq, xi=loop.robot.nv)

    def _made(self, function: Callable[..., Any], **shapes: Any) -> Callable[..., Any]:
        return compile_function(function, None, **shapes) if self.whole else function

    def rate(self, t: float, phase: int, y: Array, q_ref: Array) -> Array:
        """Return the time derivative of y, (..., n), at one time; NaN where there is none."""
        try:
            if self.whole:
                return self._rate(float(t), float(phase), y, q_ref)
            rates = [self._rate(float(t), int(phase), row, q_ref) for row in np.atleast_2d(y)]
            return np.stack(rates) if y.ndim > 1 else rates[0]
        except NO_ANSWER as error:
            self.trouble = str(error)
            return np.full_like(y, np.nan)

    def stepper(self, rule: str) -> Callable[[float, float, float, Array, Array], tuple[Array, Array]]:
        """Return the function (t, h, phase, q, s) -> (q, s) of a method of `ClosedLoop`, compiled if the loop is."""
        loop = self.loop
        if rule not in self._steppers:
            shapes = {"t": (), "h": (), "phase": (), "q": loop.robot.nq, "s": loop.size}
            made = self._made(getattr(loop, rule), **shapes)
            self._steppers[rule] = made if self.whole else lambda t, h, phase, q, s: made(t, h, int(phase), q, s)
        return self._steppers[rule]

    def repeat(self, rule: str, pieces: Sequence[Piece], q: Array, s: Array) -> tuple[list[State], int] | None:
        """Return (states at the samples of the first pieces, how many pieces), taken in one call of machine code.

        It stops ahead of the samples that a state without successor does not reach. None if the loop is not compiled
        whole.
        """
        if not self.whole:
            return None
        if rule not in self._repeaters:
            self._repeaters[rule] = Steps(self.loop, rule)
        return self._repeaters[rule].take(pieces, q, s)

    def observe(self, t: float, phase: int, q: Array, s: Array) -> Observation:
        """Return what a run stores of one state."""
        return self._observe(float(t), float(phase) if self.whole else int(phase), q, s)

    def acceleration(self, state: State, memory: Array) -> Array:
        """Return vdot of one state with this memory of the controller, (nv,); NaN where there is none."""
        n, m = self.nv, self.loop.memory
        s = np.concatenate([state.s[:n], memory, state.s[n + m :]])
        return self.rate(state.t, state.phase, np.concatenate([np.zeros(n), s]), state.q)[n : 2 * n]

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return q, (nq,), quaternions of length one."""
        return self._configuration(q_ref, xi)

    def turn(self, xi: Array) -> float:
        """Return the longest rotation vector in xi, [rad]."""
        return largest_rotation(self.loop.robot, xi)


def select_backend(loop: ClosedLoop, q: Array, s: Array, compiled: bool | None) -> Backend:
    """Return the backend for a loop that starts at (q, s).

    Args:
        loop: The equations. q: Configuration, (nq,). s: The rest of the state.
        compiled: True to insist on one kernel for the whole loop, False for none; None to take it if possible. It is
            not where the controller or the ground cannot be traced, or where they answer otherwise in Python than
            compiled, as a controller does that keeps a state of its own.

    Raises:
        TraceError: If compiled is True and cannot be.
    """
    pieces = _PLANTS.get(type(loop))  # others have equations of their own, which no compiled pieces have
    plant = loop if pieces is None else pieces(**{f.name: getattr(loop, f.name) for f in fields(loop)})
    if compiled is False:
        return Backend(plant, False, "compiled robot, controller in Python (as asked)")
    try:
        backend = Backend(loop, True, COMPILED)
        backend.observe(0.0, 0, q, s)
        difference = _disagreement(backend, Backend(loop, False, ""), q, s)
    except NO_ANSWER:
        raise
    except Exception as error:  # tracing runs the user's code, which may raise anything
        if compiled:
            raise TraceError(f"the closed loop cannot be compiled: {error}") from error
        reason = f"{type(error).__name__}: {error}"
    else:
        if difference < _AGREEMENT:
            return backend
        reason = f"compiled and in Python it differs by {difference:.1e} relative; does the controller keep a state?"
        if compiled:
            raise TraceError(f"the closed loop cannot be compiled: {reason}")
    return Backend(plant, False, f"compiled robot, controller in Python ({reason})")


def _disagreement(one: Backend, other: Backend, q: Array, s: Array) -> float:
    """Return the largest relative difference between two engines' rates near a state, at a few times.

    Of a controller with a clock of its own also between its memories.

    Near it and not at it: feet that just touch make of rounding errors what the square root of some ground laws is.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    for t in (0.0, 0.1, 0.37, 0.0):
        noise = 1e-3 * rng.standard_normal(one.nv + len(s))
        y = np.concatenate([noise[: one.nv], one.loop.perturbed(s, noise[one.nv :])])
        pairs = [(one.rate(t, 0, y, q), other.rate(t, 0, y, q))]
        if one.loop.controller.has_update:
            pairs.append((one.observe(t, 0, q, y[one.nv :]).memory, other.observe(t, 0, q, y[one.nv :]).memory))
        worst = max(worst, *(float(np.abs(a - b).max() / (1.0 + np.abs(b).max())) for a, b in pairs))
    return worst
