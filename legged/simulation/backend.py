"""Evaluation of a closed loop: as one compiled kernel, or in parts where the controller or ground cannot be traced."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.compiler import compile_ahead
from legged.contact.pair_tables import Poses
from legged.errors import NotFiniteError, SimulationWarning, SingularError, TraceError, warn_caller
from legged.robot.configuration import normalized
from legged.robot.physics import TRANSITION_SPEED
from legged.simulation.checks.law import check_stateless, independent_copy
from legged.simulation.compiled_plants import compiled_parts, compiled_plant
from legged.simulation.controller import is_passive
from legged.simulation.forces import unactuated_entries
from legged.simulation.integrators import StateSample
from legged.simulation.loop.chart import largest_rotation
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, loads_at
from legged.simulation.loop.joint_laws import dry_friction
from legged.simulation.loop.results import Observation, Outputs
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.many_contacts import MANY_CONTACTS, SceneInParts

Array = np.ndarray
NO_SOLUTION = (NotFiniteError, SingularError)
"""Errors of an evaluation at a state where the equations of motion have no solution."""
_NEARBY = 1e-3  # [rad], [m], [rad/s] and [m/s], of states near the initial one
_AGREEMENT = 1e-6  # relative: compiled and plain results differ by rounding, or by a hidden state of the controller
COMPILED = "compiled closed loop"
_STATE = "t", "phase", "q", "s"  # arguments of an observation
Update = Callable[[float, float, Array, Array], Array | None]
"""Function (t, phase, q, s) -> s after the discrete update of the controller, None where it is not known."""
_FRICTION_IN_PARTS = (
    f"a scene with many contacts regularizes the dry friction of joints: one that friction should hold creeps at up to "
    f"{TRANSITION_SPEED:g} rad/s or m/s; compiled=True computes the scene in one kernel, which holds it"
)


class Backend:
    """A closed loop as the `DynamicalSystem` of an integrator.

    Attributes:
        loop: The closed loop.
        whole: Whether it runs as one compiled kernel.
        name: Description of what runs, as `Run.backend` reports it.
        failure: The error of the last evaluation without a result, in words.
        compiler: Function (method of the loop, shapes of its arguments) that returns it compiled.
        update: The discrete update of the controller by compiled time steps, which `observe` uses; None without it.
    """

    def __init__(self, loop: ClosedLoop, whole: bool, name: str, compiler: Callable[..., Any] | None = None):
        self.loop, self.whole, self.name, self.failure = loop, whole, name, ""
        self.compiler = compiler or partial(compile_function, robot=None)
        self._methods: dict[str, Callable[..., Any]] = {}
        self.update: Update | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without functions that are made again."""
        return {**vars(self), "_methods": {}, "update": None}

    @property
    def nv(self) -> int:
        """Length of xi."""
        return self.loop.robot.nv

    def _method(self, name: str, *arguments: str, is_ahead: bool = False) -> Callable[..., Any]:
        """Return a method of the closed loop with these arguments, compiled at its first use if the loop is.

        Another thread compiles it if it `is_ahead` of its use.
        """
        if name not in self._methods:
            loop = self.loop
            nq, nv, size = loop.robot.nq, loop.robot.nv, loop.size
            shapes: dict[str, Any] = {"q": nq, "q_ref": nq, "xi": nv, "s": size, "y": nv + size, "t": (), "h": ()}
            shapes |= {"phase": (), "loads": (len(loop.pushes), LOAD)}
            shapes |= {"v": nv, "tau": nv, "wrenches": (len(loop.robot.links), 6)}
            method = getattr(loop, name)
            compiler = partial(compile_ahead, robot=None) if is_ahead else self.compiler
            self._methods[name] = compiler(method, **{x: shapes[x] for x in arguments}) if self.whole else method
        return self._methods[name]

    def rate(self, t: float, phase: int, y: Array, q_ref: Array, loads: Array | None = None) -> Array:
        """Return the time derivatives of states, (..., n); NaN where the equations have no solution.

        Args:
            t: Time, [s]. phase: Number of switch times passed.
            y: States [xi; s], (..., n). q_ref: Reference configuration of all of them, (nq,), mixed units.
            loads: Loads of the external wrenches, (k, 9), mixed units and frames, by default those at t.
        """
        given = (loads_at(self.loop.pushes, t) if loads is None else loads,) if self.loop.pushes else ()
        rate = self._method("rate", "t", "phase", "y", "q_ref", *(["loads"] if given else []))
        try:
            if self.whole:
                return rate(float(t), float(phase), y, q_ref, *given)
            rates = [rate(float(t), int(phase), row, q_ref, *given) for row in np.atleast_2d(y)]
            return np.stack(rates) if y.ndim > 1 else rates[0]
        except NO_SOLUTION as error:
            self.failure = str(error)
            return np.full_like(y, np.nan)

    def recorded(self, t: float, q: Array, s: Array) -> Array:
        """Return s with the present contact forces in the history of contacts, (n,); see `ClosedLoop.recorded`."""
        return self._method("recorded", "t", "q", "s")(float(t), q, s) if self.loop.history_size else s

    def step_function(self, rule: str) -> Callable[[float, float, float, Array, Array], tuple[Array, Array]]:
        """Return the function (t, h, phase, q, s) -> (q, s) of one step by a rule, compiled if the loop is."""
        step = self._method(rule, "t", "h", "phase", "q", "s")
        return step if self.whole else lambda t, h, phase, q, s: step(t, h, int(phase), q, s)

    def observe(self, t: float, phase: int, q: Array, s: Array) -> Observation:
        """Return the outputs of one state that a run stores besides q and v.

        Args:
            t: Time, [s]. phase: Number of switch times passed. q, s: The state, (nq,) and (n,).
        """
        updated = None if self.update is None else self.update(t, phase, q, s)
        observe = self._method("observe" if updated is None else "observe_updated", *_STATE)
        return observe(float(t), float(phase) if self.whole else int(phase), q, s if updated is None else updated)

    def compile_observation(self) -> None:
        """Trace `observe`, which another thread compiles if a processor is free, else its first call."""
        self._method("observe", *_STATE, is_ahead=True)

    def observe_all(self, states: Sequence[StateSample]) -> Observation:
        """Return the outputs of T states, stacked."""
        if isinstance(self.loop, SceneInParts):
            return _observed_parts(self.loop, states)
        *arrays, outputs = zip(*[self.observe(*state) for state in states], strict=True)
        tau, points, forces, memory, wrenches = map(np.array, arrays)
        stacked = Outputs(*(np.array(part) for part in zip(*outputs, strict=True)))
        return Observation(tau, points, forces, memory, wrenches, stacked)

    def acceleration(self, q: Array, v: Array, tau: Array, wrenches: Array) -> Array:
        """Return vdot, (nv,), mixed units; NaN where the equations have no solution.

        Args:
            q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            tau: Generalized forces of the actuators, (nv,), [N m] or [N], joint axes.
            wrenches: Wrenches on the links, (n_links, 6), [N m] and [N], link axes.
        """
        rate = self._method("motion_rate", "xi", "q", "v", "tau", "wrenches")
        try:
            return rate(np.zeros(self.nv), q, v, tau, wrenches)[self.nv :]
        except NO_SOLUTION:
            return np.full(self.nv, np.nan)

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return the configuration q, (nq,), with unit quaternions.

        Args:
            q_ref: Reference configuration, (nq,), mixed units. xi: Chart coordinates, (nv,).
        """
        return self._method("configuration", "q_ref", "xi")(q_ref, xi)

    def largest_rotation(self, xi: Array) -> float:
        """Return the length of the longest rotation vector in xi, [rad].

        Args:
            xi: Chart coordinates, (nv,).
        """
        return largest_rotation(self.loop.robot, xi)


def _observed_parts(loop: SceneInParts, states: Sequence[StateSample]) -> Observation:
    """Return the result of `Backend.observe_all`; poses and outputs of all states come from one call of each kernel."""
    q, s = (np.array(part) for part in ([state.q for state in states], [state.s for state in states]))
    poses, n, seen = loop.poses(q, s), loop.robot.nv, []
    for k, state in enumerate(states):
        external, v = loop.forces_at(Poses(*(part[k] for part in poses)), s[k]), s[k, :n]
        after = loop.controller_update(state.t, state.phase, q[k], s[k], external.contact)
        tau, _ = loop.actuation(state.t, state.phase, q[k], after, external.contact)
        pushed = loop.pushed(loads_at(loop.pushes, state.t), q[k], v)[0] if loop.pushes else 0.0
        memory = loop.split(after).memory
        seen.append((tau, external.points, external.forces, memory, external.contact + pushed))
    tau, points, forces, memory, wrenches = map(np.array, zip(*seen, strict=True))
    return Observation(tau, points, forces, memory, wrenches, loop.outputs(q, s))


def select_backend(
    loop: ClosedLoop,
    q: Array,
    s: Array,
    compiled: bool | None,
    compares_rates: bool = False,
    trace_steps: Callable[[], Update | None] = lambda: None,
) -> Backend:
    """Return the fastest possible backend of a closed loop.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        compiled: True requires one kernel for the whole loop, False runs the controller in Python, None compiles the
            loop if possible, except for a scene of more than `MANY_CONTACTS` contact candidates. It is not possible if
            controller or ground cannot be traced, or if compiled results differ from those in Python, as they do for a
            controller with a hidden state.
        compares_rates: Whether rates of memories are compared, too. With fixed steps they are not: `Stepper.prepare`
            compares the steps instead.
        trace_steps: Traces the time steps and returns `Backend.update`, if any; it raises no error. It is called while
            another thread compiles the outputs, or before them if they use the update.

    Raises:
        TraceError: If compiled is True and the loop cannot be compiled.
    """
    parts = None if compiled else _in_parts(loop, q, s)
    if parts is not None:
        return parts
    if compiled is False:
        return Backend(compiled_plant(loop), False, "compiled robot, controller in Python (as asked)")
    traced = copy.copy(loop)  # with a copy of the controller, whose own state changes while it is traced and compared
    object.__setattr__(traced, "controller", independent_copy(loop.controller))
    object.__setattr__(traced, "notices", {"base forces": ""})  # the memories of compared states are no results
    backend = Backend(traced, True, COMPILED)
    try:
        reason = _disagreement(backend, q, s, compares_rates and has_rates(loop), trace_steps)
    except NO_SOLUTION:
        raise
    except Exception as error:  # tracing runs the user's code, which may raise anything
        if compiled:
            raise TraceError(f"the closed loop cannot be compiled: {error}") from error
        reason = f"{type(error).__name__}: {error}"
    if not reason:
        object.__setattr__(traced, "notices", loop.notices)
        return backend
    if compiled:
        raise TraceError(f"the closed loop cannot be compiled: {reason}")
    return python_backend(loop, reason)


def python_backend(loop: ClosedLoop, reason: str) -> Backend:
    """Return the backend of a closed loop that runs in Python though it should be compiled, and warn why."""
    warn_of_python(loop, reason)
    return Backend(compiled_plant(loop), False, f"compiled robot, controller in Python ({reason})")


def check_base_forces(loop: ClosedLoop, q: Array, s: Array, compiled: bool | None) -> None:
    """Warn, see `ClosedLoop.notices`, if a controller that is to be compiled returns forces for a base without motors.

    A copy of the controller is evaluated at the initial state and near it. In Python each call is checked.

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        compiled: As in `simulate`.
    """
    if compiled is False or is_passive(loop.controller) or not unactuated_entries(loop.robot):
        return
    near, n, rng = replace(loop, controller=independent_copy(loop.controller)), loop.robot.nv, np.random.default_rng(0)
    none = np.zeros((len(loop.robot.links), 6))
    with suppress(Exception), np.errstate(all="ignore"):  # of a memory before its first update
        tau = near.controller.torque(0.0, 0, q, s[:n], none, near.split(s).memory)
        if np.shape(tau) == (loop.robot.nj,) and loop.robot.base.nv:
            return  # forces of the joints alone; those of a group may have bases among its joints
    for size in (0.0, _NEARBY, _NEARBY):
        xi, noise = size * rng.standard_normal((2, n))
        state = np.concatenate([s[:n] + noise, s[n:]])
        try:
            moved = near.configuration(q, xi)
            near.actuation(0.0, 0, moved, near.controller_update(0.0, 0, moved, state, none), none)
        except SimulationWarning:
            raise
        except Exception:  # outside of the domain of the user's code, whose errors belong to the run
            return


def warn_of_python(loop: ClosedLoop, reason: str) -> None:
    """Warn once, also by the `notices` of a loop, why it runs in Python though it should be compiled."""
    if "compilation" not in loop.notices:
        loop.notices["compilation"] = text = (
            f"the controller runs in Python, which is slower, since the closed loop cannot be compiled: {reason}; "
            f"compiled=True raises this as an error, compiled=False runs in Python without a warning"
        )
        warn_caller(text, SimulationWarning)


def has_parts(loop: ClosedLoop) -> bool:
    """Return whether a loop has so many contact candidates, besides feet on the terrain, that it runs in parts."""
    if type(loop) is not RigidLoop or not loop.scene.ground.iterations:  # Gauss-Seidel alone
        return False
    feet = {contact.name for contact in loop.robot.contacts}
    on_terrain = sum(pair.second is None and pair.names[0] in feet for pair in loop.scene.pairs)
    return len(loop.scene.candidates) - on_terrain > MANY_CONTACTS


def _in_parts(loop: ClosedLoop, q: Array, s: Array) -> Backend | None:
    """Return a closed loop with many contact candidates in compiled parts; None for others."""
    if not isinstance(loop, RigidLoop) or not has_parts(loop):
        return None
    parts = compiled_parts(loop)
    parts.build(q, s)  # outside of `try`, since its errors are not caused by the terrain
    try:
        parts.external_forces(q, s)
    except Exception:  # a user's terrain that cannot be traced may raise anything
        return None
    if dry_friction(loop.robot) and "friction in parts" not in loop.notices:
        loop.notices["friction in parts"] = _FRICTION_IN_PARTS
        warn_caller(_FRICTION_IN_PARTS, SimulationWarning)
    reason = f"{len(parts.scene.candidates)} contact candidates"
    return Backend(parts, False, f"compiled parts of the scene, controller in Python ({reason})")


def has_rates(loop: ClosedLoop) -> bool:
    """Return whether a memory of the controller or the ground has a rate, which outputs do not show."""
    return _memory_has_rate(loop) or (loop.ground_memory > 0 and not isinstance(loop, RigidLoop))


def _memory_has_rate(loop: ClosedLoop) -> bool:
    return loop.memory > 0 and hasattr(getattr(loop.controller, "controller", loop.controller), "rate")


def _disagreement(
    backend: Backend, q: Array, s: Array, with_rates: bool, trace_steps: Callable[[], Update | None]
) -> str:
    """Compile a closed loop; return how its results differ from those in Python, "" if they agree up to rounding.

    A memory that only the discrete update of the controller changes is read from the state after a time step. The
    kernel of the outputs then need not contain the update, which may be longer than all else.
    """
    try:
        if backend.loop.controller.has_update and not _memory_has_rate(backend.loop):
            backend.update = trace_steps()
        else:
            backend.compile_observation()
            trace_steps()
        backend.observe(0.0, 0, q, s)
    finally:
        check_stateless(backend.loop.controller)
    difference = _difference(backend, Backend(backend.loop, False, ""), q, s, with_rates)
    if difference < _AGREEMENT:
        return ""
    return f"compiled and in Python it differs by {difference:.1e} relative; does the controller keep a state?"


def _difference(one: Backend, other: Backend, q: Array, s: Array, with_rates: bool) -> float:
    """Return the largest relative difference between the outputs of two backends near a state, at a few times.

    Rates of the state are compared on demand: without a rate of a memory they follow from torques and forces, and
    compiling them takes as long as all else before the first step. The states are perturbed, because feet that just
    touch the ground make the result sensitive to rounding where a ground law takes the square root of the depth.
    """
    rng, loop, worst = np.random.default_rng(0), one.loop, 0.0
    for t in (0.0, 0.1, 0.37, 0.0):
        noise = 1e-3 * rng.standard_normal(one.nv + len(s))
        y = np.concatenate([noise[: one.nv], loop.perturbed(s, noise[one.nv :])])
        near = loop.configuration(q, y[: one.nv])
        try:
            seen = [backend.observe(t, 0, near, y[one.nv :]) for backend in (one, other)]
        except NO_SOLUTION:  # outside of the controller's domain
            continue
        pairs = list(zip(*([each.tau, each.forces, each.memory] for each in seen), strict=True))
        if any(getattr(push, "has_function", False) for push in loop.pushes):
            compiled = compile_function(loop.loads, None, t=(), h=())
            pairs.append((compiled(t, 1e-3), loop.loads(t, 1e-3)))
        if with_rates:
            pairs.append((one.rate(t, 0, y, q), other.rate(t, 0, y, q)))
        errors = (float(np.abs(a - b).max() / (1.0 + np.abs(b).max())) for a, b in pairs if b.size)
        worst = max([worst, *errors])
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


def energies(loop: ClosedLoop, state: Array) -> Array:
    """Return kinetic and potential energy of robot and free bodies, (2,), [J].

    Args:
        loop: The closed loop. state: State [q; s], (nq + n,).
    """
    kind: Any = RigidLoop if isinstance(loop, RigidLoop) else ClosedLoop  # `outputs` of a plant may be a kernel
    kinetic, potential, *_ = kind.outputs(loop, state[: loop.robot.nq], state[loop.robot.nq :])
    return np.stack([kinetic, potential])
