"""Step engines: time steps of all robots in machine code, or one integrator per robot in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from legged.compiler.codegen.element_type import FLOAT32, FLOAT64
from legged.compiler.codegen.time_loop import CODES_ONLY, ENDED, EXCEEDED
from legged.compiler.runtime.time_loop import NOT_FINITE, Comparison, Members, PreparedLoop, Schedule, TimeLoop
from legged.compiler.runtime.time_loop import OPERATIONS_PER_CALL as OPERATIONS_OF_ONE
from legged.errors import DivergenceError, SimulationError, TraceError
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, advance, select_backend
from legged.simulation.checks.divergence import SLOW
from legged.simulation.checks.fall import FallLimits
from legged.simulation.closed_loop import BreakTimes, ClosedLoop
from legged.simulation.controller import CommandedController, independent_copy
from legged.simulation.integrators import (
    FixedStep,
    Integrator,
    SmoothInterval,
    StateSample,
    StepSequence,
    smooth_intervals,
)
from legged.simulation.stepping.batch import InitialStates, RolloutBatch
from legged.simulation.stepping.compiled_batch import CompiledBatch, MemberTemplate, aligned_schedule
from legged.simulation.stepping.object_tree import flatten, unflatten

Array = np.ndarray
_OPERATIONS_PER_THREAD = 2_000_000
"""Operations for which a thread pays, about 50 us of work."""
OPERATIONS_PER_CALL = 1.5e9
"""Operations of a batch between two examinations of its samples: some tenths of a second."""
_AGREEMENT = {FLOAT64: 1e-6, FLOAT32: 1e-2}
"""Relative difference of rates in compiled and plain steps of 0.1 ms, which differ by rounding of the states after a
step, or by a hidden state of the controller."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Sample times of all robots, and the smooth intervals between the break times of each.

    Attributes:
        times: Sample times, (T,), [s].
        intervals: The different lists of intervals. of: Index of the list of each robot, (N,).
    """

    times: Array
    intervals: Sequence[list[SmoothInterval]]
    of: Array

    @classmethod
    def of_break_times(cls, times: Array, break_times: Sequence[BreakTimes]) -> Plan:
        """Return the plan of robots.

        Args:
            times: Sample times, (T,), [s]. break_times: Switch times and other break times of each robot, [s].
        """
        different = {key: k for k, key in enumerate(dict.fromkeys(break_times))}
        intervals = [smooth_intervals(times, *key) for key in different]
        return cls(times, intervals, np.array([different[key] for key in break_times]))

    def schedule(self, integrator: FixedStep) -> Schedule:
        """Return the fixed time steps of all robots between the samples."""
        return aligned_schedule([integrator.step_sequences(x) for x in self.intervals], self.of)

    def states(self, members: Members, nq: int, i: int = 0) -> list[StateSample]:
        """Return the stored states of a robot.

        Args:
            members: All robots. nq: Length of a configuration. i: Index of the robot.
        """
        phases = (x.phase for x in self.intervals[self.of[i]] for _ in x.samples)
        rows = members.stored[i, : int(members.outcome[i, 2])]
        times = self.times[: len(rows)].tolist()
        return [StateSample(t, phase, y[:nq], y[nq:]) for t, phase, y in zip(times, phases, rows, strict=False)]


class StepEngine(Protocol):
    """Interface of the objects that advance all robots of a rollout or a `Simulation`.

    Attributes:
        name: Description of the code that runs.
        command: Length of the command, nu; None if there is none.
        commands: Command of each robot, (N, nu), which `run` reads.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

    name: str
    command: int | None
    commands: Array
    intervals: Array

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample in place; yield whenever new samples are stored.

        Args:
            plan: Samples and intervals. threads: Maximal number of threads.
        """
        ...

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots in place, store the states of samples, and end robots.

        Args:
            schedule: The intervals [start, h, count, phase], (N, P, 4) or (1, P, 4), and samples; or the number of rows
                of the attribute `intervals` that hold them, N or 1, after which robots that have fallen end.
            threads: Maximal number of threads.

        Returns:
            `ENDED` if any robot has ended, else -1 if joints and base are known to be slower than `SLOW`, else
            `EXCEEDED`.
        """
        ...

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states, as `run` does from the present ones.

        Args:
            members: States and outcomes, which change in place. schedule: As in `run`.
            threads: Maximal number of threads.
        """
        ...

    def failure(self, i: int) -> SimulationError | None:
        """Return the error that ended the motion of robot i; None if its next state is not finite."""
        ...

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set controllers, grounds, pushes and limits.

        Args:
            starts: All robots at the start; their states are not used.
            robots: Indices of those that have changed.
        """
        ...


class CompiledSteps(Protocol):
    """Compiled time steps of several robots: `CompiledBatch` and `CompiledLoop`.

    Attributes:
        robot: The robot. code: The time loop.
        parameters: Parameters of the loop without the command, (N, p) or (1, p), mixed units and frames.
    """

    robot: Robot
    code: TimeLoop
    parameters: Array

    def loop_parameters(self, numbers: Array) -> Array:
        """Return the parameters for other numbers of the robots, (N, p) or (1, p), mixed units and frames.

        Args:
            numbers: Numbers of the robots, (N, m), mixed units and frames.
        """
        ...


class CompiledLoop:
    """Compiled time steps of a single closed loop without parameters; see `CompiledSteps`.

    Args:
        loop: The closed loop. rule: Name of a method of `ClosedLoop`.
    """

    def __init__(self, loop: ClosedLoop, rule: str):
        self.robot, self.parameters, size = loop.robot, np.zeros((1, 0)), loop.robot.nq + loop.size
        self.code = TimeLoop.of(lambda clock, parameters, state: (advance(loop, rule, clock, state), 0.0), 0, size)

    def loop_parameters(self, numbers: Array) -> Array:
        """Return the parameters, (1, 0).

        Args:
            numbers: Not used, (N, m), mixed units and frames.
        """
        return self.parameters


class CompiledEngine:
    """Time steps in machine code.

    Args:
        compiled: The time steps. members: States and outcomes, which `run` changes in place.
        integrator: The integrator. command: Length of the command; None without one.
    """

    def __init__(self, compiled: CompiledSteps, members: Members, integrator: FixedStep, command: int | None = None):
        self.compiled, self.command, self._members, self._integrator = compiled, command, members, integrator
        count, parameters = len(members.state), compiled.code.parameters
        lanes, element = compiled.code.lanes(count), compiled.code.element
        kind = "" if element == FLOAT64 else f" of {element}"
        self.name = f"compiled time steps, {lanes} lane{'s' * (lanes > 1)}{kind}"
        self.intervals = np.zeros((count, 1, 4), element.dtype)
        self._parameters = np.zeros((count, parameters), element.dtype)
        self._own = parameters - (command or 0)
        self.commands = self._parameters[:, self._own :]
        self._parameters[:, : self._own] = compiled.parameters
        self._comparison = Comparison(compiled.robot.nq, compiled.robot.nv, SLOW)
        self._calls: dict[int, PreparedLoop] = {}
        self._operations = float(count * max(compiled.code.graph.size, 1))

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the parameters of all robots; see `StepEngine.restart`."""
        del robots  # all are evaluated in one call
        self._parameters[:, : self._own] = self.compiled.loop_parameters(starts.numbers)

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample; see `StepEngine.motion`."""
        schedule = plan.schedule(self._integrator)
        costs = schedule.steps * self._operations
        ends = np.flatnonzero(schedule.samples >= 0) + 1  # calls end at samples, where falls are detected
        most = OPERATIONS_PER_CALL if len(self._members.state) > 1 else OPERATIONS_OF_ONE
        bounds = ends[:-1][np.diff(np.floor(np.cumsum(costs)[ends - 1] / most)) > 0]
        for begin, end in pairwise([0, *bounds.tolist(), len(costs)]):
            self.run(schedule.part(begin, end), threads)
            yield

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots in place; see `StepEngine.run`."""
        if threads > 1:
            steps = self.intervals[0, 0, 2] if isinstance(schedule, int) else schedule.steps.sum()
            threads = min(threads, max(int(steps * self._operations / _OPERATIONS_PER_THREAD), 1))
        if isinstance(schedule, int):
            if schedule not in self._calls:
                intervals = Schedule(self.intervals[:schedule], np.array([CODES_ONLY]))
                code, arrays = self.compiled.code, (self._members, self._parameters, intervals)
                self._calls[schedule] = code.prepared(*arrays, self._comparison)
            return self._calls[schedule](threads)
        self.advance(self._members, schedule, threads)
        return _result(self._members)

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states; see `StepEngine.advance`."""
        self.compiled.code.run(members, self._parameters, schedule, threads)

    def failure(self, i: int) -> SimulationError | None:
        """Return None: which operation has no finite result is unknown."""
        return None


def _result(members: Members) -> int:
    """Return the result of `StepEngine.run` if the speeds are not known."""
    return ENDED if members.outcome[:, 0].any() else EXCEEDED


class SolverEngine:
    """Integration of one robot after the other by `Integrator.solve`.

    Args:
        systems: The equations of motion of each robot. limits: Limits beyond which each has fallen, or None.
        members: States and outcomes, which `run` changes in place. integrator: The integrator. name: What runs.
    """

    def __init__(
        self,
        systems: Sequence[Backend],
        limits: Sequence[FallLimits | None],
        members: Members,
        integrator: Integrator,
        name: str,
        command: int | None = None,
    ):
        self._systems, self._limits, self._members, self._integrator = list(systems), list(limits), members, integrator
        self.name, self.command = name, command
        self.intervals, self.commands = (
            np.zeros((len(members.state), 1, 4)),
            np.zeros((len(members.state), command or 0)),
        )
        self._failures: dict[int, SimulationError] = {}

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Raise an error: the robots are fixed."""
        raise NotImplementedError

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample; see `StepEngine.motion`."""
        del threads  # Python code
        members, solutions = self._members, {}
        for i in self._live(members):
            solutions[i] = self._integrator.solve(self._system(i), *self._state(members, i), plan.intervals[plan.of[i]])
        for k in range(len(plan.times)):
            for i in self._live(members):
                self._take(members, i, solutions[i], k)
            yield

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots in place; see `StepEngine.run`."""
        if isinstance(schedule, int):
            schedule = Schedule(self.intervals[:schedule], np.array([CODES_ONLY]))
        self.advance(self._members, schedule, threads)
        return _result(self._members)

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states; see `StepEngine.advance`."""
        del threads  # Python code
        for i in self._live(members):
            intervals = schedule.intervals[i if len(schedule.intervals) > 1 else 0].tolist()
            solution = self._solution(i, members, intervals, schedule.samples.tolist())
            for sample in schedule.samples[schedule.samples != -1].tolist():
                if members.outcome[i, 0] == 0.0:
                    self._take(members, i, solution, sample)

    def failure(self, i: int) -> SimulationError | None:
        """Return the error that ended the motion of robot i; see `StepEngine.failure`."""
        return self._failures.get(i)

    def _system(self, i: int) -> Backend:
        """Return the equations of motion of robot i, with its own controller and command."""
        return self._systems[i]

    def _solution(
        self, i: int, members: Members, intervals: list[list[float]], samples: list[int]
    ) -> Iterator[StateSample]:
        """Yield the states of robot i at the ends of the intervals that have a sample."""
        parts = zip(intervals, samples, strict=True)
        found = [
            StepSequence(int(phase), start, h, int(count), start + h * count if sample != -1 else None)
            for (start, h, count, phase), sample in parts
        ]
        system, state = self._system(i), self._state(members, i)
        if isinstance(self._integrator, FixedStep):
            return self._integrator.take(system, *state, found)
        smooth = [
            SmoothInterval(p.phase, p.start, p.start + p.h * p.count, np.array([] if p.sample is None else [p.sample]))
            for p in found
            if p.count
        ]
        return self._integrator.solve(system, *state, smooth)

    def _take(self, members: Members, i: int, solution: Iterator[StateSample], sample: int) -> None:
        """Advance robot i to the next sample; if there is none, it has ended in the state before."""
        self._system(i)
        try:
            state = next(solution)
        except SimulationError as error:
            self._failures[i] = error
            members.outcome[i, 0] = NOT_FINITE
            if isinstance(error, DivergenceError):
                members.outcome[i, 1] = error.t
                if error.state is not None:
                    members.state[i, -len(error.state) :] = error.state
            return
        has_moved = (members.state[i] != (row := np.concatenate([state.q, state.s]))).any()
        members.state[i] = row
        if sample >= 0:
            members.stored[i, sample], members.outcome[i, 2] = row, sample + 1
        if self._limits[i] is not None and has_moved:
            loop = self._systems[i].loop
            members.outcome[i, 0] = float(self._limits[i].termination_code(loop.robot, loop.ground, state.q))

    def _state(self, members: Members, i: int) -> tuple[Array, Array]:
        nq = self._systems[i].loop.robot.nq
        return members.state[i, :nq].copy(), members.state[i, nq:].copy()

    @staticmethod
    def _live(members: Members) -> list[int]:
        return np.flatnonzero(members.outcome[:, 0] == 0.0).tolist()


class PythonEngine(SolverEngine):
    """Integration of one robot after the other with the controllers in Python.

    Args:
        batch: The robots. starts: The robots at the start.
        members: States and outcomes, which `run` changes in place.
        integrator: The integrator. command: Length of the command; None without one.
        reason: Why the controllers are in Python.
    """

    def __init__(
        self,
        batch: RolloutBatch,
        starts: InitialStates,
        members: Members,
        integrator: Integrator,
        command: int | None,
        reason: str,
    ):
        count = len(members.state)
        super().__init__(
            [None] * count,  # type: ignore[list-item]  # set below
            [None] * count,
            members,
            integrator,
            f"one by one, controller in Python ({reason})",
            command,
        )
        self._batch = batch
        self._backends: dict[ClosedLoop, Backend] = {}
        self._controllers: list[Any] = [None] * count
        self.restart(starts, range(count))

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the closed loops of some robots, each with its own copy of the controller; see `StepEngine.restart`."""
        first, used = self._batch.first.limits, set(starts.loops)
        begin = starts.numbers.shape[1] - len(flatten(first)[0])
        self._backends = {loop: self._backends[loop] if loop in self._backends else _in_python(loop) for loop in used}
        for i in robots:
            self._limits[i] = unflatten(first, iter(starts.numbers[i, begin:].tolist()))
            self._systems[i] = self._backends[starts.loops[i]]
            self._controllers[i] = independent_copy(starts.loops[i].controller)

    def _system(self, i: int) -> Backend:
        system = self._systems[i]
        current: Any = system.loop.controller
        current.controller = self._controllers[i]
        current.command = None if self.command is None else self.commands[i].copy()
        return system


def _in_python(loop: ClosedLoop) -> Backend:
    """Return a closed loop with compiled parts, whose controller and command are those of one robot at a time."""
    nothing = np.zeros(0)  # the state is used by compiled backends alone
    return select_backend(replace(loop, controller=CommandedController(loop.controller, None)), nothing, nothing, False)


class LoopEngine(CompiledEngine):
    """Time steps of a single closed loop in machine code.

    Args:
        backend: The closed loop, compiled as a whole. members: Its state. integrator: The integrator.
    """

    def __init__(self, backend: Backend, members: Members, integrator: FixedStep):
        super().__init__(CompiledLoop(backend.loop, integrator.rule), members, integrator)
        self._backend, self._plan = backend, None

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robot from sample to sample; see `StepEngine.motion`."""
        self._plan = plan
        return super().motion(plan, threads)

    def failure(self, i: int) -> SimulationError | None:
        """Return the error of the steps after the last sample, which are taken again one by one."""
        nq, state = self._backend.loop.robot.nq, self._members.stored[0]
        sequences = self._integrator.step_sequences(self._plan.intervals[0])
        reached = int(self._members.outcome[0, 2])
        begin = [k for k, sequence in enumerate(sequences) if sequence.sample is not None][reached - 1] + 1
        try:
            for _ in self._integrator.take(
                self._backend, state[reached - 1, :nq], state[reached - 1, nq:], sequences[begin:]
            ):
                pass
        except DivergenceError as error:
            return error
        return None


def engine_of_backend(backend: Backend, members: Members, integrator: Integrator) -> StepEngine:
    """Return the engine of a single robot.

    Args:
        backend: Its closed loop. members: Its state. integrator: The integrator.
    """
    if backend.whole and isinstance(integrator, FixedStep):
        return LoopEngine(backend, members, integrator)
    return SolverEngine([backend], [None], members, integrator, backend.name)


def new_engine(
    template: MemberTemplate,
    starts: InitialStates,
    members: Members,
    integrator: Integrator,
    compiled: bool | None,
    command: int | None = None,
) -> StepEngine:
    """Return the fastest possible engine.

    Args:
        template: The robots as functions of their numbers. starts: The robots at the start.
        members: States and outcomes, which the engine changes in place. integrator: The integrator.
        compiled: As in `simulate`. command: Length of the command; None without one.

    Raises:
        TraceError: If compiled is True, or the numbers are not doubles, and the time step cannot be compiled.
    """
    reason, element = "as asked", template.batch.element
    if not isinstance(integrator, FixedStep):
        reason = "variable steps"
        if compiled:
            raise TraceError(f"{integrator} runs in Python; use fixed steps, or leave out compiled=True")
    elif compiled is not False:
        try:
            compiled_batch = CompiledBatch(template.batch, starts, integrator.rule, command, template)
            difference = compiled_batch.largest_difference()
            if difference < _AGREEMENT[element]:
                return CompiledEngine(compiled_batch, members, integrator, command)
            reason = f"compiled and in Python it differs by {difference:.1e}; does the controller keep a state?"
        except Exception as error:  # tracing runs the user's code, which may raise anything
            reason = f"{type(error).__name__}: {error}"
        if compiled:
            raise TraceError(f"the time step cannot be compiled: {reason}")
    if element != FLOAT64:
        raise TraceError(f"{element} needs compiled time steps: {reason}; use dtype='float64'")
    return PythonEngine(template.batch, starts, members, integrator, command, reason)
