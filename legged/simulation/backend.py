"""Evaluation of a closed loop: as one compiled kernel, or in parts where the controller or ground cannot be traced."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.compiler.ir.expression import Expression
from legged.errors import NotFiniteError, SimulationWarning, SingularError, TraceError, warn_caller
from legged.robot.construction.group import RobotGroup
from legged.robot.physics import TRANSITION_SPEED
from legged.simulation.controller import check_stateless, independent_copy
from legged.simulation.integrators import StateSample
from legged.simulation.loop.chart import largest_rotation, normalized
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import ContactStep, ExternalForces, Observation, Outputs, Step, StepActuation
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import MANY_CONTACTS, SceneInParts

Array = np.ndarray
NO_SOLUTION = (NotFiniteError, SingularError)
"""Errors of an evaluation at a state where the equations of motion have no solution."""
_AGREEMENT = 1e-6  # relative: compiled and plain results differ by rounding, or by a hidden state of the controller
COMPILED = "compiled closed loop"
_FRICTION_IN_PARTS = (
    f"a scene with many contacts regularizes the dry friction of joints: one that friction should hold creeps at up to "
    f"{TRANSITION_SPEED:g} rad/s or m/s; compiled=True computes the scene in one kernel, which holds it"
)


@dataclass(frozen=True, eq=False)
class _CompiledPlant(ClosedLoop):
    """A closed loop with compiled robot, and compiled ground if it can be traced; the controller runs in Python."""

    def _compiled(self, name: str, **shapes: Any) -> Callable[..., Any]:
        kernels = self.__dict__.setdefault("_kernels", {})
        if name not in kernels:
            kernels[name] = compile_function(getattr(super(), name), None, **shapes)
        return kernels[name]

    @property
    def _shapes(self) -> dict[str, Any]:
        nq, nv = self.robot.nq, self.robot.nv
        return {"q": nq, "v": nv, "tau": nv, "wrenches": (len(self.robot.links), 6)}

    @cached_property
    def _external_forces(self) -> Callable[..., ExternalForces]:
        try:
            return self._compiled("external_forces", t=(), q=self.robot.nq, s=self.size)
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

    def external_forces(self, t: Any, q: Array, s: Array) -> ExternalForces:
        return self._external_forces(float(t), q, s)

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
        shapes = {"t": (), "h": (), "q": self.robot.nq, "s": self.size, "tau": self.robot.nv}
        try:
            return self._compiled("impact_step", **shapes, damping=self.robot.nv, memory_rate=self.memory)
        except Exception:  # a user's terrain that cannot be traced may raise anything
            return super().impact_step

    def impact_step(
        self, t: Any, h: Any, q: Array, s: Array, tau: Array, damping: Array, memory_rate: Array
    ) -> tuple[Array, Array]:
        return self._impact_step(float(t), float(h), q, s, tau, damping, memory_rate)


@dataclass(frozen=True, eq=False)
class _CompiledParts(SceneInParts, _CompiledPlant, RigidLoop):
    """A closed loop with many contact candidates: compiled parts of the scene; the controller runs in Python."""


_PLANTS: dict[type[ClosedLoop], type[ClosedLoop]] = {ClosedLoop: _CompiledPlant, RigidLoop: _CompiledScene}


class Backend:
    """A closed loop as the `DynamicalSystem` of an integrator.

    Attributes:
        loop: The closed loop.
        whole: Whether it runs as one compiled kernel.
        name: Description of what runs, as `Run.backend` reports it.
        failure: The error of the last evaluation without a result, in words.
    """

    def __init__(self, loop: ClosedLoop, whole: bool, name: str):
        self.loop, self.whole, self.name, self.failure = loop, whole, name, ""
        self._step_functions: dict[str, Callable[..., Any]] = {}

    @property
    def nv(self) -> int:
        """Length of xi."""
        return self.loop.robot.nv

    @cached_property
    def _rate(self) -> Callable[..., Array]:
        loop = self.loop
        return self._function(loop.rate, t=(), phase=(), y=loop.robot.nv + loop.size, q_ref=loop.robot.nq)

    @cached_property
    def _observe(self) -> Callable[..., Observation]:
        return self._function(self.loop.observe, t=(), phase=(), q=self.loop.robot.nq, s=self.loop.size)

    @cached_property
    def _configuration(self) -> Callable[..., Array]:
        return self._function(self.loop.configuration, q_ref=self.loop.robot.nq, xi=self.loop.robot.nv)

    def _function(self, function: Callable[..., Any], **shapes: Any) -> Callable[..., Any]:
        return compile_function(function, None, **shapes) if self.whole else function

    def rate(self, t: float, phase: int, y: Array, q_ref: Array) -> Array:
        """Return the time derivatives of states, (..., n); NaN where the equations have no solution.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: States [xi; s], (..., n). q_ref: Reference configuration of all of them, (nq,), mixed units.
        """
        try:
            if self.whole:
                return self._rate(float(t), float(phase), y, q_ref)
            rates = [self._rate(float(t), int(phase), row, q_ref) for row in np.atleast_2d(y)]
            return np.stack(rates) if y.ndim > 1 else rates[0]
        except NO_SOLUTION as error:
            self.failure = str(error)
            return np.full_like(y, np.nan)

    def step_function(self, rule: str) -> Callable[[float, float, float, Array, Array], tuple[Array, Array]]:
        """Return the function (t, h, phase, q, s) -> (q, s) of one time step, compiled if the loop is.

        Args:
            rule: Name of a method of `ClosedLoop`, such as "semi_implicit".
        """
        loop = self.loop
        if rule not in self._step_functions:
            shapes = {"t": (), "h": (), "phase": (), "q": loop.robot.nq, "s": loop.size}
            step = self._function(getattr(loop, rule), **shapes)
            self._step_functions[rule] = step if self.whole else lambda t, h, phase, q, s: step(t, h, int(phase), q, s)
        return self._step_functions[rule]

    def advance(self, t: float, h: float, first: int, count: int, q: Array, s: Array) -> tuple[int, Array, Array]:
        """Return the number of the next time step, and q, (nq,), and s, (n,), before it; see `DynamicalSystem`."""
        loop = self.loop
        return loop.advance(t, h, first, count, q, s) if isinstance(loop, SceneInParts) else (first, q, s)

    def energies(self, q: Array, s: Array) -> Array:
        """Return kinetic and potential energy of robot and free bodies, (..., 2), [J].

        Args:
            q: Configurations, (..., nq). s: Rests of states, (..., n).
        """
        return self._energies(q, s)

    @cached_property
    def _energies(self) -> Callable[..., Array]:
        loop = self.loop
        if isinstance(loop, SceneInParts):
            return loop.energies
        kind: Any = RigidLoop if isinstance(loop, RigidLoop) else ClosedLoop  # `outputs` of a plant may be a kernel

        def energies(q: Array, s: Array) -> Array:
            kinetic, potential, *_ = kind.outputs(loop, q, s)
            return np.stack([kinetic, potential])

        return compile_function(energies, None, q=loop.robot.nq, s=loop.size)

    def observe(self, t: float, phase: int, q: Array, s: Array) -> Observation:
        """Return the outputs of one state that a run stores besides q and v.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            q: Configuration, (nq,). s: Rest of the state, (n,).
        """
        return self._observe(float(t), float(phase) if self.whole else int(phase), q, s)

    def acceleration(self, state: StateSample, memory: Array) -> Array:
        """Return vdot of one state, (nv,); NaN where the equations have no solution.

        Args:
            state: The state. memory: Memory of the controller that replaces the one in the state, (m,).
        """
        n, m = self.nv, self.loop.memory
        s = np.concatenate([state.s[:n], memory, state.s[n + m :]])
        return self.rate(state.t, state.phase, np.concatenate([np.zeros(n), s]), state.q)[n : 2 * n]

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return the configuration q, (nq,), with unit quaternions.

        Args:
            q_ref: Reference configuration, (nq,), mixed units. xi: Chart coordinates, (nv,).
        """
        return self._configuration(q_ref, xi)

    def largest_rotation(self, xi: Array) -> float:
        """Return the length of the longest rotation vector in xi, [rad].

        Args:
            xi: Chart coordinates, (nv,).
        """
        return largest_rotation(self.loop.robot, xi)


def select_backend(loop: ClosedLoop, q: Array, s: Array, compiled: bool | None) -> Backend:
    """Return the fastest possible backend of a closed loop.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        compiled: True requires one kernel for the whole loop, False runs the controller in Python, None compiles the
            loop if possible, except for a scene of more than `MANY_CONTACTS` contact candidates. It is not possible if
            controller or ground cannot be traced, or if compiled results differ from those in Python, as they do for a
            controller with a hidden state.

    Raises:
        TraceError: If compiled is True and the loop cannot be compiled.
    """
    traced = copy.copy(loop)  # with a copy of the controller, whose own state changes while it is traced and compared
    object.__setattr__(traced, "controller", independent_copy(loop.controller))
    object.__setattr__(traced, "notices", {"base forces": ""})  # the memories of compared states are no results
    kind = _PLANTS.get(type(loop))  # other classes have their own equations, which have no compiled parts
    plant = loop if kind is None else kind(**{f.name: getattr(loop, f.name) for f in fields(loop)})
    parts = None if compiled else _in_parts(loop, q, s)
    if parts is not None:
        reason = f"{len(parts.scene.candidates)} contact candidates"
        if loop.joint_laws.has_friction and "friction in parts" not in loop.notices:
            loop.notices["friction in parts"] = _FRICTION_IN_PARTS
            warn_caller(_FRICTION_IN_PARTS, SimulationWarning)
        return Backend(parts, False, f"compiled parts of the scene, controller in Python ({reason})")
    if compiled is False:
        return Backend(plant, False, "compiled robot, controller in Python (as asked)")
    try:
        backend = Backend(traced, True, COMPILED)
        try:
            backend.observe(0.0, 0, q, s)
        finally:
            check_stateless(traced.controller)
        difference = _difference(backend, Backend(traced, False, ""), q, s)
    except NO_SOLUTION:
        raise
    except Exception as error:  # tracing runs the user's code, which may raise anything
        if compiled:
            raise TraceError(f"the closed loop cannot be compiled: {error}") from error
        reason = f"{type(error).__name__}: {error}"
    else:
        if difference < _AGREEMENT:
            object.__setattr__(traced, "notices", loop.notices)
            return backend
        reason = f"compiled and in Python it differs by {difference:.1e} relative; does the controller keep a state?"
        if compiled:
            raise TraceError(f"the closed loop cannot be compiled: {reason}")
    return Backend(plant, False, f"compiled robot, controller in Python ({reason})")


def has_parts(loop: ClosedLoop) -> bool:
    """Return whether a closed loop has so many contact candidates that it runs in parts.

    Args:
        loop: The closed loop.
    """
    if type(loop) is not RigidLoop or len(loop.scene.candidates) <= MANY_CONTACTS:
        return False
    if not loop.scene.ground.iterations:  # Gauss-Seidel alone
        return False
    if loop.bodies or isinstance(loop.robot, RobotGroup):
        return True
    return any(pair.second is not None for pair in loop.scene.pairs)  # more than a robot among terrain and obstacles


def _in_parts(loop: ClosedLoop, q: Array, s: Array) -> _CompiledParts | None:
    """Return a closed loop with many contact candidates in compiled parts; None for others."""
    if not has_parts(loop):
        return None
    parts = _CompiledParts(**{f.name: getattr(loop, f.name) for f in fields(loop)})
    _ = parts.tables  # built outside of `try`, since its errors are not caused by the terrain
    try:
        parts.external_forces(0.0, q, s)
    except Exception:  # a user's terrain that cannot be traced may raise anything
        return None
    return parts


def _difference(one: Backend, other: Backend, q: Array, s: Array) -> float:
    """Return the largest relative difference between the outputs of two backends near a state, at a few times.

    Rates are compared if a memory has one; without it they follow from torques and forces, and compiling them takes as
    long as all else before the first step. The states are perturbed, because feet that just touch the ground make the
    result sensitive to rounding where a ground law takes the square root of the depth.
    """
    rng = np.random.default_rng(0)
    worst = 0.0
    has_rates = one.loop.memory > 0 or (one.loop.ground_memory > 0 and not isinstance(one.loop, RigidLoop))
    for t in (0.0, 0.1, 0.37, 0.0):
        noise = 1e-3 * rng.standard_normal(one.nv + len(s))
        y = np.concatenate([noise[: one.nv], one.loop.perturbed(s, noise[one.nv :])])
        near = other.configuration(q, y[: one.nv])
        try:
            seen = [backend.observe(t, 0, near, y[one.nv :]) for backend in (one, other)]
        except NO_SOLUTION:  # outside of the controller's domain
            continue
        pairs = list(zip(*([each.tau, each.forces, each.memory] for each in seen), strict=True))
        if has_rates:
            pairs.append((one.rate(t, 0, y, q), other.rate(t, 0, y, q)))
        worst = max(worst, *(float(np.abs(a - b).max() / (1.0 + np.abs(b).max())) for a, b in pairs if b.size))
    return worst


def advance(loop: ClosedLoop, rule: str, clock: Any, state: Array) -> Array:
    """Return the state [q; s] after one time step, (nq + n,).

    Args:
        loop: The closed loop. rule: Name of a method of it, `FixedStep.rule`.
        clock: [t [s], h [s], phase], (3,). state: State [q; s] before the step, (nq + n,).
    """
    t, h, phase = clock
    q, s = getattr(loop, rule)(t, h, phase, state[: loop.robot.nq], state[loop.robot.nq :])
    return np.concatenate([normalized(loop.robot, q) if rule in ("semi_implicit", "linearly_implicit") else q, s])
