"""Observations: functions of the state of a robot, which `Simulation.observe` compiles or calls."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import Kernel, trace
from legged.compiler.ir import flatten, where
from legged.errors import SimulationWarning, UnknownNameError, warn_caller
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import ExternalForces
from legged.simulation.stepping.compiled_engine import MemberTemplate
from legged.simulation.stepping.engines import commanded

Array = np.ndarray
QUANTITIES = ("t", "phase", "q", "v", "contacts", "wrenches", "tau", "memory", "command")
"""Names of the arguments that an observed function may have."""
_SAME_CODE = 10  # functions from one code after which `observe` warns; a list of functions may have fewer
_OF_COMMAND = frozenset({"tau", "command"})


class Contacts(NamedTuple):
    """The contact points and the forces on them, in the order of `Simulation.contact_names`.

    Impulses and peaks are those of all time steps of the last call of `Simulation.step` or `advance`.

    Attributes:
        positions: (..., n, 3), [m], world axes.
        forces: Present forces on the robot, (..., n, 3), [N], world axes; on rigid ground those of the last time step,
            zero before the first.
        touching: Whether a force acts, or has acted in the last call, (..., n): bool, or 1.0 and 0.0 in an observed
            function.
        impulse: Impulses on the robot in the last call, (..., n, 3), [N s], world axes.
        peak: Largest force in the last call, (..., n), [N]: the impulse of a time step over its length.
    """

    positions: Array
    forces: Array
    touching: Array
    impulse: Array
    peak: Array


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the arguments of an observed function, without those that have default values.

    Raises:
        UnknownNameError: If a name is not in `QUANTITIES`.
    """
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    names = tuple(p.name for p in parameters if p.default is p.empty and p.kind not in kinds)
    for name in names:
        if name not in QUANTITIES:
            raise UnknownNameError("quantity to observe", name, QUANTITIES)
    return names


def depends_on_command(names: tuple[str, ...]) -> bool:
    """Return whether one of these quantities depends on the command of the controller."""
    return not _OF_COMMAND.isdisjoint(names)


def observed(
    function: Callable[..., Any],
    names: tuple[str, ...],
    loop: ClosedLoop,
    t: Any,
    phase: Any,
    q: Array,
    s: Array,
    command: Array,
) -> Any:
    """Return the result of an observed function at one state.

    Args:
        function: The function. names: Names of its arguments.
        loop: The closed loop. t: Time, [s]. phase: Number of switch times passed.
        q: Configuration, (nq,). s: Rest of the state, (n,).
        command: The command, (nu,), any unit.
    """
    part = loop.split(s)
    known: dict[str, Any] = {"t": t, "phase": phase, "q": q, "v": part.v, "memory": part.memory, "command": command}
    if not known.keys() >= set(names):
        external = loop.external_forces(q, s)
        known["wrenches"] = external.contact
        known["contacts"] = _contacts(loop, s, external)
        if "tau" in names:
            updated = loop.controller_update(t, phase, q, s, external.contact)
            known["tau"] = loop.actuation(t, phase, q, updated, external.contact)[0]
    return function(**{name: known[name] for name in names})


def contacts_of(contacts: Contacts) -> Contacts:
    """Return the contacts of one robot, as an observed function."""
    return contacts


def observed_one_by_one(
    function: Callable[..., Any],
    names: tuple[str, ...],
    loops: Sequence[ClosedLoop],
    t: Array,
    phase: Array,
    states: Array,
    commands: Array | None,
) -> tuple[list[Array], Callable[[Iterator[Any]], Any]]:
    """Return the arrays of an observed function in Python, (N, ...) each, and the function that restores its structure.

    Args:
        function: The function. names: Names of its arguments. loops: Closed loop of each robot.
        t: Times, (N,), [s]. phase: Numbers of switch times passed, (N,), dimensionless.
        states: States [q; s], (N, n), mixed units. commands: Commands, (N, nu), any unit; None without a command.
    """
    rows, nq, rebuild = [], loops[0].robot.nq, tuple
    for i, loop in enumerate(loops):
        command = np.zeros(0) if commands is None else commands[i]
        own = loop if commands is None else commanded(loop, command)
        state = states[i].copy()
        observation = observed(function, names, own, float(t[i]), int(phase[i]), state[:nq], state[nq:], command)
        arrays, rebuild = flatten(observation)
        rows.append(arrays)
    return [np.array([np.asarray(x, dtype=float) for x in column]) for column in zip(*rows, strict=True)], rebuild


def _contacts(loop: ClosedLoop, s: Array, external: ExternalForces) -> Contacts:
    """Return the contacts of one state."""
    forces, history = external.forces, loop.contact_history(s)
    impulse, peak = (
        (history.impulse, history.peak) if loop.ground is not None else (0.0 * forces, np.zeros(len(forces)))
    )
    acts = [where(force @ force + most > 0.0, 1.0, 0.0) for force, most in zip(forces, peak, strict=True)]
    return Contacts(external.points, forces, np.stack(acts) if acts else np.zeros(0), impulse, peak)


class Observer:
    """Observed functions of all robots' states, each compiled at its first use.

    Args:
        template: The robots as functions of their numbers. size: Length of the state [q; s] of a robot.
    """

    def __init__(self, template: MemberTemplate, size: int):
        self.template, self._size = template, size
        self._kernels: dict[Any, Kernel] = {}
        self._made = Counter[tuple[str, int, str]]()  # number of traced functions by the place of their code

    def observe(
        self,
        function: Callable[..., Any],
        t: Any,
        phase: Any,
        numbers: Array,
        commands: Array | None,
        states: Array,
    ) -> Any:
        """Return an observed function of all robots' states, (N, ...), any unit and frame.

        Args:
            function: The function. t: Times, (N,) or one, [s]. phase: Numbers of switch times passed, (N,) or one.
            numbers: Numbers of the robots, (N, m), mixed units and frames.
            commands: Commands, (N, nu), any unit; None without a command.
            states: States [q; s], (N, n).
        """
        key = function, None if commands is None else commands.shape[-1]
        if key not in self._kernels:
            self._kernels[key] = self._traced(*key)
            self._warn_of_new_functions(function)
        given = t, phase, numbers[..., self.template.varying], np.zeros(0) if commands is None else commands, states
        dtype = self.template.batch.element.dtype
        return self._kernels[key](*(x.astype(dtype, copy=False) if isinstance(x, np.ndarray) else x for x in given))

    def _warn_of_new_functions(self, function: Callable[..., Any]) -> None:
        code = getattr(function, "__code__", None)
        if code is None:
            return
        place = code.co_filename, code.co_firstlineno, code.co_name
        self._made[place] += 1
        if self._made[place] == _SAME_CODE:
            warn_caller(
                f"observe has traced {_SAME_CODE} functions made by the same code, line {code.co_firstlineno} of "
                f"{os.path.basename(code.co_filename)}, each of which takes time and memory; make the function once, "
                "before the loop, and give the same object at every call",
                SimulationWarning,
            )

    def _traced(self, function: Callable[..., Any], command: int | None) -> Kernel:
        template, nq = self.template, self.template.batch.robot.nq
        names = argument_names(function)

        def values(t: Any, phase: Any, parameters: Any, command_: Any, state: Any) -> Any:
            loop, _ = template.member(parameters)
            loop = loop if command is None else commanded(loop, command_)
            return observed(function, names, loop, t, phase, state[:nq], state[nq:], command_)

        shapes = {"t": (), "phase": (), "parameters": (len(template.varying),), "command": (command or 0,)}
        graph = trace(values, {**shapes, "state": (self._size,)})
        return Kernel(graph, getattr(function, "__name__", "observation"), dtype=template.batch.element.dtype)
