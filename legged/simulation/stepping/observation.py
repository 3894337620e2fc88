"""Observations: functions of the state of a robot, which `Simulation.observe` compiles or calls."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import Kernel
from legged.compiler.ir import flatten, where
from legged.errors import SimulationWarning, UnknownNameError, warn_caller
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import ExternalForces
from legged.simulation.stepping.batch import MemberTemplate
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


def contacts_of(contacts: Contacts) -> Contacts:
    """Return the contacts of one robot, as an observed function."""
    return contacts


class Observer:
    """Observed functions of all robots' states, each compiled at its first use.

    Args:
        template: The robots as functions of their numbers. size: Length of the state [q; s] of a robot.
    """

    def __init__(self, template: MemberTemplate, size: int):
        self._template, self._size = template, size
        self._names: dict[Callable[..., Any], tuple[str, ...]] = {}
        self._kernels: dict[Any, Kernel] = {}
        self._made = Counter[tuple[str, int, str]]()  # number of traced functions by the place of their code

    def depends_on_command(self, function: Callable[..., Any]) -> bool:
        """Return whether an observed function has an argument that depends on the command of the controller.

        Raises:
            UnknownNameError: An argument without a default value is not in `QUANTITIES`.
        """
        if function not in self._names:
            kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            parameters = inspect.signature(function).parameters.values()
            names = tuple(p.name for p in parameters if p.default is p.empty and p.kind not in kinds)
            for name in names:
                if name not in QUANTITIES:
                    raise UnknownNameError("quantity to observe", name, QUANTITIES)
            self._names[function] = names
        return not _OF_COMMAND.isdisjoint(self._names[function])

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
            function: The function, known from `depends_on_command`. t: Times, (N,) or one, [s].
            phase: Numbers of switch times passed, (N,) or one.
            numbers: Numbers of the robots, (N, m), mixed units and frames.
            commands: Commands, (N, nu), any unit; None without a command.
            states: States [q; s], (N, n).
        """
        key = function, None if commands is None else commands.shape[-1]
        if key not in self._kernels:
            self._kernels[key] = self._traced(*key)
            self._warn_of_new_functions(function)
        given = numbers[..., self._template.varying], t, phase, np.zeros(0) if commands is None else commands, states
        dtype = self._template.batch.element.dtype
        return self._kernels[key](*(x.astype(dtype, copy=False) if isinstance(x, np.ndarray) else x for x in given))

    def one_by_one(
        self,
        function: Callable[..., Any],
        loops: Sequence[ClosedLoop],
        t: Array,
        phase: Array,
        states: Array,
        commands: Array | None,
    ) -> tuple[list[Array], Callable[[Iterator[Any]], Any]]:
        """Return the arrays of an observed function in Python, (N, ...) each, and the function that joins them again.

        Args:
            function, t, phase, states, commands: As in `observe`. loops: Closed loop of each robot.
        """
        rows, rebuild = [], tuple
        for i, loop in enumerate(loops):
            command = None if commands is None else commands[i]
            observation = self._observed(function, loop, float(t[i]), int(phase[i]), states[i].copy(), command)
            arrays, rebuild = flatten(observation)
            rows.append(arrays)
        return [np.array([np.asarray(x, dtype=float) for x in column]) for column in zip(*rows, strict=True)], rebuild

    def _observed(
        self, function: Callable[..., Any], loop: ClosedLoop, t: Any, phase: Any, state: Array, command: Array | None
    ) -> Any:
        """Return the result of an observed function at one state [q; s], (n,), with the command, (nu,), or None."""
        names, nq = self._names[function], loop.robot.nq
        q, s, loop = state[:nq], state[nq:], loop if command is None else commanded(loop, command)
        part = loop.split(s)
        known: dict[str, Any] = {"t": t, "phase": phase, "q": q, "v": part.v, "memory": part.memory}
        known["command"] = np.zeros(0) if command is None else command
        if not known.keys() >= set(names):
            external = loop.external_forces(q, s)
            known["wrenches"] = external.contact
            known["contacts"] = _contacts(loop, s, external)
            if "tau" in names:
                updated = loop.controller_update(t, phase, q, s, external.contact)
                known["tau"] = loop.actuation(t, phase, q, updated, external.contact)[0]
        return function(**{name: known[name] for name in names})

    def _traced(self, function: Callable[..., Any], size: int | None) -> Kernel:
        """Return an observed function as a kernel, with a command of a given size, or None without a command."""

        def values(loop: ClosedLoop, t: Any, phase: Any, command: Any, state: Any) -> Any:
            return self._observed(function, loop, t, phase, state, None if size is None else command)

        name, dtype = getattr(function, "__name__", "observation"), self._template.batch.element.dtype
        shapes: dict[str, Any] = {"t": (), "phase": (), "command": (size or 0,), "state": (self._size,)}
        return self._template.kernel(values, name, dtype, **shapes)

    def _warn_of_new_functions(self, function: Callable[..., Any]) -> None:
        """Warn if the place of a function's code has made many functions."""
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


def _contacts(loop: ClosedLoop, s: Array, external: ExternalForces) -> Contacts:
    """Return the contacts of one state."""
    forces, history = external.forces, loop.contact_history(s)
    impulse, peak = (
        (history.impulse, history.peak) if loop.ground is not None else (0.0 * forces, np.zeros(len(forces)))
    )
    acts = [where(force @ force + most > 0.0, 1.0, 0.0) for force, most in zip(forces, peak, strict=True)]
    return Contacts(external.points, forces, np.stack(acts) if acts else np.zeros(0), impulse, peak)
