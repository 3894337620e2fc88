"""Closed loops whose controller runs in Python: compiled robot, ground and bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.compiler import compile_ahead
from legged.compiler.ir import Expression, gc_paused
from legged.errors import TraceError
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD
from legged.simulation.loop.results import ContactStep, ExternalForces, Outputs, Step, StepActuation
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import SceneInParts

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class _CompiledPlant(ClosedLoop):
    """A closed loop with compiled robot, and compiled ground if it can be traced; the controller runs in Python."""

    def _compiled(
        self, name: str, compiler: Callable[..., Any] = compile_function, **shapes: Any
    ) -> Callable[..., Any]:
        kernels = self.__dict__.setdefault("_kernels", {})
        if name not in kernels:
            kernels[name] = compiler(getattr(super(), name), None, **shapes)
        return kernels[name]

    @property
    def _shapes(self) -> dict[str, Any]:
        nq, nv = self.robot.nq, self.robot.nv
        return {"q": nq, "v": nv, "tau": nv, "wrenches": (len(self.robot.links), 6)}

    @cached_property
    def _external_forces(self) -> Callable[..., ExternalForces]:
        try:
            return self._compiled("external_forces", q=self.robot.nq, s=self.size)
        except Exception:  # a user's ground that cannot be traced may raise anything
            return super().external_forces

    def controller_update(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> Array:
        return _numbers(super().controller_update(t, phase, q, s, contact))

    def actuation(self, t: Any, phase: Any, q: Array, s: Array, contact: Array) -> tuple[Array, Array]:
        tau, memory_rate = super().actuation(t, phase, q, s, contact)
        return _numbers(tau), _numbers(memory_rate)

    def step_actuation(self, t: Any, h: Any, phase: Any, q: Array, s: Array, contact: Array) -> StepActuation:
        return StepActuation(*map(_numbers, super().step_actuation(t, h, phase, q, s, contact)))

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        return self._compiled("configuration", q_ref=self.robot.nq, xi=self.robot.nv)(q_ref, xi)

    def external_forces(self, q: Array, s: Array) -> ExternalForces:
        return self._external_forces(q, s)

    def pushed(self, loads: Array, q: Array, v: Array) -> tuple[Array, Any]:
        shapes = {"loads": (len(self.pushes), LOAD), "q": self.robot.nq, "v": self.robot.nv}
        return self._compiled("pushed", **shapes)(loads, q, v)

    def motion_rate(self, xi: Array, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        return self._compiled("motion_rate", xi=self.robot.nv, **self._shapes)(xi, q, v, tau, wrenches)

    def time_step(self, h: Any, q: Array, v: Array, tau: Array, damping: Array, wrenches: Array) -> Step:
        step = self._compiled("time_step", h=(), damping=self.robot.nv, **self._shapes)
        return step(float(h), q, v, tau, damping, wrenches)

    @cached_property
    def _contact_step(self) -> Callable[..., ContactStep]:
        shapes = {"h": (), "ground_memory": self.ground_memory, "damping": self.robot.nv}
        try:
            return self._compiled("contact_step", **shapes, **self._shapes)
        except Exception:  # a user's ground that cannot be traced may raise anything
            return super().contact_step

    def contact_step(
        self, h: Any, q: Array, v: Array, ground_memory: Array, tau: Array, damping: Array, wrenches: Array
    ) -> ContactStep:
        return self._contact_step(float(h), q, v, ground_memory, tau, damping, wrenches)

    def dissipation(self, q: Array, v: Array) -> Any:
        return self._compiled("dissipation", q=self.robot.nq, v=self.robot.nv)(q, v)

    def outputs(self, q: Array, s: Array) -> Outputs:
        return self._compiled("outputs", q=self.robot.nq, s=self.size)(q, s)


def _numbers(result: Any) -> Any:
    """Return the result of a controller that runs in Python, (n,), mixed units, if it has no expression of a trace."""
    parts = result.ravel().tolist() if isinstance(result, np.ndarray) and result.dtype == object else ()
    if any(isinstance(part, Expression) for part in parts):
        raise TraceError(
            "the controller keeps values of an attempt to compile it in a state of its own; pass compiled=False, which "
            "runs it in Python only"
        )
    return result


@dataclass(frozen=True, eq=False)
class _CompiledScene(_CompiledPlant, RigidLoop):
    """A closed loop on rigid ground with compiled robot, bodies and contacts; the controller runs in Python."""

    @cached_property
    def _impact_step(self) -> Callable[..., tuple[Array, Array]]:
        shapes = {"t": (), "h": (), "loads": (len(self.pushes), LOAD), "q": self.robot.nq, "s": self.size}
        shapes["tau"] = self.robot.nv
        try:
            return self._compiled("impact_step", **shapes, damping=self.robot.nv, memory_rate=self.memory)
        except Exception:  # a user's terrain that cannot be traced may raise anything
            return super().impact_step

    def pushed(self, loads: Array, q: Array, v: Array, robot: int = 0) -> tuple[Array, Any]:
        return RigidLoop.pushed(self, loads, q, v, robot)  # part of `impact_step`, which is compiled as a whole

    def impact_step(
        self, t: Any, h: Any, loads: Array, q: Array, s: Array, tau: Array, damping: Array, memory_rate: Array
    ) -> tuple[Array, Array]:
        return self._impact_step(float(t), float(h), loads, q, s, tau, damping, memory_rate)


@dataclass(frozen=True, eq=False)
class _CompiledParts(SceneInParts, _CompiledPlant, RigidLoop):
    """A closed loop with many contact candidates: compiled parts of the scene; the controller runs in Python."""

    @gc_paused()
    def build(self, q: Array, s: Array) -> None:
        """Prepare a run from a state; another thread compiles meanwhile if a processor is free.

        Args:
            q: Configuration, (nq,), mixed units. s: Rest of the state, (size,), mixed units.
        """
        self._compiled("configuration", compile_ahead, q_ref=self.robot.nq, xi=self.robot.nv)
        _ = self._kinds, self.tables
        self.compile_energies()
        self.tables.compile_ahead(self.poses(q, s))
        _ = self._step


_PLANTS: dict[type[ClosedLoop], type[ClosedLoop]] = {ClosedLoop: _CompiledPlant, RigidLoop: _CompiledScene}


def compiled_plant(loop: ClosedLoop) -> ClosedLoop:
    """Return a closed loop with compiled parts; of other classes, which have their own equations, itself.

    Args:
        loop: The closed loop.
    """
    return _with_fields(_PLANTS[type(loop)], loop) if type(loop) in _PLANTS else loop


def compiled_parts(loop: RigidLoop) -> _CompiledParts:
    """Return a closed loop on rigid ground with many contact candidates in compiled parts, with the same scene.

    Args:
        loop: The closed loop.
    """
    parts = _with_fields(_CompiledParts, loop)
    parts.__dict__["scene"] = loop.scene
    return parts


def _with_fields(kind: Any, loop: ClosedLoop) -> Any:
    return kind(**{f.name: getattr(loop, f.name) for f in fields(loop)})
