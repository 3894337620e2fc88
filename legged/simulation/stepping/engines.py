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
from legged.errors import NotFiniteError, SingularError, TraceError
from legged.simulation.backend import select_backend
from legged.simulation.chart import normalized
from legged.simulation.checks.fall import FallLimits
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import CommandedController, independent_copy
from legged.simulation.integrators import FixedStep
from legged.simulation.stepping.batch import CompiledBatch, InitialStates, MemberTemplate, RolloutBatch
from legged.simulation.stepping.observation import argument_names, observed
from legged.simulation.stepping.parameters import flatten, unflatten

Array = np.ndarray
_OPERATIONS_PER_THREAD = 2_000_000
"""Operations for which a thread pays, about 50 us of work."""
_OPERATIONS_IN_PYTHON = 1e10
"""Operations of machine code in the time of a step in Python, rather too many: calls end at each sample."""
_AGREEMENT = 1e-6  # relative: compiled and plain steps differ by rounding, or by a hidden state of the controller


class StepEngine(Protocol):
    """Time steps of all robots.

    Attributes:
        name: What runs, in words.
        operations: Number of operations of a time step of all robots; for Python a large number.
        command: Length of the command, nu; None if there is none.
        commands: Command of each robot, (N, nu), which `run` reads.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

    name: str
    operations: float
    command: int | None
    commands: Array
    intervals: Array

    def run(self, schedule: Schedule | None, threads: int) -> None:
        """Advance the robots in place, store the states of samples, and end robots.

        Args:
            schedule: The intervals [start, h, count, phase], (N, P, 4) or (1, P, 4), and samples; None for the
                attribute `intervals`, after which robots that have fallen end.
            threads: Maximal number of threads.
        """
        ...

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states, as `run` does from the present ones.

        Args:
            members: States and outcomes, which change in place. schedule: As in `run`.
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
        self.operations = float(count * max(code.graph.size, 1))

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the parameters of all robots; see `StepEngine.restart`."""
        del robots  # all are evaluated in one call
        self._parameters[:, : self._own] = self.compiled.loop_parameters(starts.numbers)

    def run(self, schedule: Schedule | None, threads: int) -> None:
        """Advance the robots in place; see `StepEngine.run`."""
        if threads > 1:
            steps = self.intervals[0, 0, 2] if schedule is None else schedule.steps.sum()
            threads = min(threads, max(int(steps * self.operations / _OPERATIONS_PER_THREAD), 1))
        if schedule is None:
            self._run(threads)
        else:
            self.advance(self._members, schedule, threads)

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states; see `StepEngine.advance`."""
        self.compiled.code.run(members, self._parameters, schedule, threads)


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
        self.operations = _OPERATIONS_IN_PYTHON
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

    def run(self, schedule: Schedule | None, threads: int) -> None:
        """Advance the robots in place; see `StepEngine.run`."""
        own = Schedule(self.intervals, np.array([CODES_ONLY])) if schedule is None else schedule
        self.advance(self._members, own, threads)

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states; see `StepEngine.advance`."""
        del threads  # the controller runs in Python
        intervals, samples = schedule
        for i in np.flatnonzero(members.outcome[:, 0] == 0.0).tolist():
            self._advance(members, i, intervals[i if len(intervals) > 1 else 0].tolist(), samples.tolist())

    def _advance(self, members: Members, i: int, intervals: list[list[float]], samples: list[int]) -> None:
        """Advance a robot through its intervals; if a step has no solution, it keeps its state and has ended."""
        loop, controller, limits = self._robots[i]
        step, current = self._steps[loop]
        current.controller, current.command = controller, None if self.command is None else self.commands[i].copy()
        nq, has_moved = loop.robot.nq, False
        q, s = members.state[i, :nq].copy(), members.state[i, nq:].copy()
        for (start, h, count, phase), sample in zip(intervals, samples, strict=True):
            for k in range(int(count)):
                try:
                    q, s = step(start + k * h, h, phase, q, s)
                except (NotFiniteError, SingularError):
                    q = np.full(nq, np.nan)
                if not (np.isfinite(q).all() and np.isfinite(s).all()):
                    members.outcome[i, :2] = NOT_FINITE, start + k * h
                    return
                q, has_moved = normalized(loop.robot, q), True
            if sample == -1:
                continue
            members.state[i] = np.concatenate([q, s])
            if sample >= 0:
                members.stored[i, sample], members.outcome[i, 2] = members.state[i], sample + 1
            if limits is not None and has_moved:
                members.outcome[i, 0] = float(limits.termination_code(loop.robot, loop.ground, q))
                if members.outcome[i, 0]:
                    return


def new_engine(
    template: MemberTemplate,
    starts: InitialStates,
    members: Members,
    integrator: FixedStep,
    compiled: bool | None,
    command: int | None = None,
) -> StepEngine:
    """Return the fastest possible engine.

    Args:
        template: The robots as functions of their numbers. starts: The robots at the start.
        members: States and outcomes, which the engine changes in place. integrator: The integrator.
        compiled: As in `simulate`. command: Length of the command; None without one.

    Raises:
        TraceError: If compiled is True and the time step cannot be compiled.
    """
    parts, reason = (starts, members, integrator.rule, command), "as asked"
    if compiled is not False:
        try:
            engine = CompiledEngine(template, *parts)
            difference = engine.compiled.largest_difference()
            if difference < _AGREEMENT:
                return engine
            reason = f"compiled and in Python it differs by {difference:.1e}; does the controller keep a state?"
        except Exception as error:  # tracing runs the user's code, which may raise anything
            reason = f"{type(error).__name__}: {error}"
        if compiled:
            raise TraceError(f"the time step cannot be compiled: {reason}")
    return PythonEngine(template.batch, *parts, reason)


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
