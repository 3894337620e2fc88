"""The time steps of all robots of a `Simulation`: in machine code, or one by one with the controller in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from legged.compiler.codegen import llvm
from legged.compiler.codegen.time_loop import CODES_ONLY
from legged.compiler.ir.graph import record
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.kernel import Kernel
from legged.compiler.runtime.time_loop import NOT_FINITE, Members, Schedule
from legged.errors import NotFiniteError, SingularError
from legged.simulation.backend import select_backend
from legged.simulation.chart import normalized
from legged.simulation.checks.fall import FallLimits
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import CommandedController, independent_copy
from legged.simulation.rollouts.batch import CompiledBatch, InitialStates, MemberTemplate, RolloutBatch
from legged.simulation.rollouts.parameters import flatten, unflatten
from legged.simulation.stepping.observation import argument_names, observed

Array = np.ndarray
_OPERATIONS_PER_THREAD = 2_000_000
"""Operations for which a thread pays, about 50 us of work."""


class StepEngine(Protocol):
    """Time steps of all robots.

    Attributes:
        name: What runs, in words.
        command: Length of the command, nu; None if there is none.
        commands: Command of each robot, (N, nu), which `run` reads.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

    name: str
    command: int | None
    commands: Array
    intervals: Array

    def run(self, intervals: Array | None, threads: int) -> None:
        """Advance the robots in place.

        Args:
            intervals: [start, h, count, phase] of each interval, (N, P, 4); None for the attribute `intervals`.
            threads: Maximal number of threads.
        """
        ...

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set controllers, grounds, pushes and limits.

        Args:
            starts: All robots at the start; their states are not used.
            robots: Indices of those that have changed.
        """
        ...


class CompiledEngine:
    """Time steps in machine code.

    Args:
        template: The robots as functions of their numbers. starts: The robots at the start.
        members: States and outcomes, which `run` changes in place.
        rule: Name of a method of `ClosedLoop`. command: Length of the command; None without one.
    """

    def __init__(
        self, template: MemberTemplate, starts: InitialStates, members: Members, rule: str, command: int | None
    ):
        self.command, self._members = command, members
        self.compiled = CompiledBatch(template.batch, starts, rule, command, template)
        count, parameters = len(members.state), self.compiled.code.parameters
        lanes = llvm.vector_width() if count > 1 else 1
        self.name = f"compiled time steps, {lanes} lane{'s' * (lanes > 1)}"
        self.intervals, self._parameters = np.zeros((count, 1, 4)), np.zeros((count, parameters))
        self._own = parameters - (command or 0)
        self.commands = self._parameters[:, self._own :]
        self._parameters[:, : self._own] = self.compiled.parameters
        code = self.compiled.code
        self._run = code.prepared(members, self._parameters, Schedule(self.intervals, np.array([CODES_ONLY])))
        self._operations = count * max(code.graph.size, 1)

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the parameters of all robots; see `StepEngine.restart`."""
        del robots  # all are evaluated in one call
        self._parameters[:, : self._own] = self.compiled.loop_parameters(starts.numbers)

    def run(self, intervals: Array | None, threads: int) -> None:
        """Advance the robots in place; see `StepEngine.run`."""
        if intervals is None:
            count, run = self.intervals[0, 0, 2], self._run
        else:
            samples = np.full(intervals.shape[1], -1)
            samples[-1] = CODES_ONLY
            schedule = Schedule(np.ascontiguousarray(intervals), samples)
            count = intervals[..., 2].sum(axis=1).max()
            run = self.compiled.code.prepared(self._members, self._parameters, schedule)
        if threads > 1:
            threads = min(threads, max(int(count * self._operations / _OPERATIONS_PER_THREAD), 1))
        run(threads)


class PythonEngine:
    """Time steps of one robot after the other, with the controller in Python.

    Args:
        batch: The robots. starts: The robots at the start.
        members: States and outcomes, which `run` changes in place.
        rule: Name of a method of `ClosedLoop`. command: Length of the command; None without one.
        reason: Why the time step is not compiled.
    """

    def __init__(
        self, batch: RolloutBatch, starts: InitialStates, members: Members, rule: str, command: int | None, reason: str
    ):
        self.command, self._batch, self._members, self._rule = command, batch, members, rule
        self.name = f"one by one, controller in Python ({reason})"
        count = len(members.state)
        self.intervals, self.commands = np.zeros((count, 1, 4)), np.zeros((count, command or 0))
        self._steps: dict[ClosedLoop, tuple[Any, CommandedController]] = {}
        self._robots: list[tuple[ClosedLoop, Any, FallLimits | None]] = []
        self.restart(starts, range(count))

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the closed loops of some robots, each with its own copy of the controller; see `StepEngine.restart`."""
        self._robots += [None] * (len(starts.loops) - len(self._robots))  # type: ignore[list-item]
        first = self._batch.first.limits
        begin = starts.numbers.shape[1] - len(flatten(first)[0])
        for i in robots:
            limits = unflatten(first, iter(starts.numbers[i, begin:].tolist()))
            self._robots[i] = starts.loops[i], independent_copy(starts.loops[i].controller), limits
        used = set(starts.loops)
        self._steps = {loop: self._steps[loop] if loop in self._steps else self._step(loop) for loop in used}

    def _step(self, loop: ClosedLoop) -> tuple[Any, CommandedController]:
        """Return the function of a time step, and the part that holds controller and command of a robot."""
        current = CommandedController(loop.controller, None)
        nothing = np.zeros(0)  # the state is used by compiled backends alone
        backend = select_backend(replace(loop, controller=current), nothing, nothing, False)
        return backend.step_function(self._rule), current

    def run(self, intervals: Array | None, threads: int) -> None:
        """Advance the robots in place; see `StepEngine.run`."""
        del threads  # the controller runs in Python
        for i, pieces in enumerate((self.intervals if intervals is None else intervals).tolist()):
            if self._members.outcome[i, 0] == 0.0:
                self._advance(i, pieces)

    def _advance(self, i: int, pieces: list[list[float]]) -> None:
        """Advance a robot through its intervals; if a step has no solution, it keeps its state and has ended."""
        loop, controller, limits = self._robots[i]
        step, current = self._steps[loop]
        current.controller, current.command = controller, None if self.command is None else self.commands[i].copy()
        nq = loop.robot.nq
        q, s = self._members.state[i, :nq].copy(), self._members.state[i, nq:].copy()
        for start, h, count, phase in pieces:
            for k in range(int(count)):
                try:
                    q, s = step(start + k * h, h, phase, q, s)
                except (NotFiniteError, SingularError):
                    q = np.full(nq, np.nan)
                if not (np.isfinite(q).all() and np.isfinite(s).all()):
                    self._members.outcome[i, :2] = NOT_FINITE, start + k * h
                    return
                q = normalized(loop.robot, q)
        self._members.state[i] = np.concatenate([q, s])
        if limits is not None:
            self._members.outcome[i, 0] = float(limits.termination_code(loop.robot, loop.ground, q))


class Observer:
    """Observed functions of all robots' states, each compiled at its first use.

    Args:
        template: The robots as functions of their numbers. size: Length of the state [q; s] of a robot.
    """

    def __init__(self, template: MemberTemplate, size: int):
        self.template, self._size = template, size
        self._kernels: dict[Any, Kernel] = {}

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
        commands = np.zeros(0) if commands is None else commands
        return self._kernels[key](t, phase, numbers[..., self.template.varying], commands, states)

    def _traced(self, function: Callable[..., Any], command: int | None) -> Kernel:
        template, nq = self.template, self.template.batch.robot.nq
        names = argument_names(function)

        def values(t: Any, phase: Any, parameters: Any, command_: Any, state: Any) -> Any:
            loop, _ = template.member(parameters, None if command is None else command_)
            return observed(function, names, loop, t, phase, state[:nq], state[nq:], command_)

        shapes = {"t": (), "phase": (), "parameters": (len(template.varying),), "command": (command or 0,)}
        graph = simplify(record(values, {**shapes, "state": (self._size,)}))
        return Kernel(graph, getattr(function, "__name__", "observation"))
