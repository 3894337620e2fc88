"""Step engines: all robots in one time loop of machine code, or one integrator per robot in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from legged.compiler import (
    CODES_ONLY,
    ENDED,
    EXCEEDED,
    FLOAT64,
    NOT_FINITE,
    Comparison,
    Members,
    PreparedLoop,
    Schedule,
)
from legged.compiler import OPERATIONS_PER_CALL as OPERATIONS_OF_ONE
from legged.errors import DivergenceError, SimulationError
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.divergence import SLOW
from legged.simulation.checks.fall import FallLimits
from legged.simulation.controller import CommandedController
from legged.simulation.hidden_state import independent_copy
from legged.simulation.integrators import (
    FixedStep,
    Integrator,
    Plan,
    SmoothInterval,
    StateSample,
    StepSequence,
)
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_batch import NO_INPUT, CompiledBatch, StepInput
from legged.simulation.stepping.parameter_tree import flatten, unflatten
from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray
_OPERATIONS_PER_THREAD = 1_000_000
"""Operations for each thread from which several threads pay: 60 us of work, twice the time to wake one."""
OPERATIONS_PER_CALL = 1.5e9
"""Operations of a batch between two examinations of its samples: some tenths of a second."""


class StepEngine:
    """Base class of the objects that advance all robots of a run, a rollout or a `Simulation`.

    Args:
        members: States and outcomes, which `run` changes in place.

    Attributes:
        name: Description of the code that runs. is_compiled: Whether it is machine code.
        given: What each step is given: command and external wrenches.
        commands: This for each robot, (N, given.size), which `run` reads; another array may replace it.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

    is_compiled = False

    def __init__(self, members: Members, name: str, given: StepInput):
        count, dtype = len(members.state), members.state.dtype
        self._members, self.name, self.given = members, name, given
        self.commands, self.intervals = np.zeros((count, given.size), dtype), np.zeros((count, 1, 4), dtype)

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample in place; yield whenever new samples are stored.

        Args:
            plan: Samples and intervals. threads: Maximal number of threads.
        """
        raise NotImplementedError

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
        raise NotImplementedError

    def _result(self) -> int:
        """Return the result of `run` if the speeds are not known."""
        return ENDED if self._members.outcome[:, 0].any() else EXCEEDED

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states, as `run` does from the present ones.

        Args:
            members: States and outcomes, which change in place. schedule: As in `run`.
            threads: Maximal number of threads.
        """
        raise NotImplementedError

    def failure(self, i: int) -> SimulationError | None:
        """Return the error that ended the motion of robot i; None if its next state is not finite.

        Args:
            i: Index of the robot.
        """
        raise NotImplementedError

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set controllers, grounds, pushes and limits.

        Args:
            starts: All robots at the start; their states are not used.
            robots: Indices of those that have changed.
        """
        raise NotImplementedError


class CompiledEngine(StepEngine):
    """Time steps of all robots in machine code.

    Args:
        compiled: The time steps, and their parameters, which `restart` replaces.
        members: States and outcomes, which `run` changes in place.
    """

    is_compiled = True

    def __init__(self, compiled: CompiledBatch, members: Members):
        count, code, given = len(members.state), compiled.code, compiled.given
        lanes, kind = code.lanes(count), "" if code.element == FLOAT64 else f" of {code.element}"
        super().__init__(members, f"compiled time steps, {lanes} lane{'s' * (lanes > 1)}{kind}", given)
        self.compiled, self.code, self._integrator = compiled, code, compiled.integrator
        self._parameters = np.zeros((count, code.parameters - given.size), code.element.dtype)
        self._parameters[:] = compiled.parameters
        self._plan: Plan | None = None
        self._comparison = Comparison(compiled.robot.nq, compiled.robot.nv, SLOW)
        self._calls: dict[tuple[int, int], PreparedLoop] = {}
        self._last: tuple[int, Array | None, PreparedLoop | None] = 0, None, None  # rows, commands and call
        self._operations = float(count * max(code.graph.size, 1))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without calls, which hold addresses of arrays."""
        return {**vars(self), "_calls": {}, "_last": (0, None, None)}

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the parameters of all robots; see `StepEngine.restart`."""
        del robots  # all are evaluated in one call
        self._parameters[:] = self.compiled.loop_parameters(starts.numbers)

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample; see `StepEngine.motion`."""
        self._plan, schedule = plan, plan.schedule(self._integrator)
        costs = schedule.steps * self._operations
        most = OPERATIONS_PER_CALL if len(self._members.state) > 1 else OPERATIONS_OF_ONE
        if costs.sum() < most:
            self.run(schedule, threads)
            yield
            return
        ends = np.flatnonzero(schedule.samples >= 0) + 1  # calls end at samples, where falls are detected
        bounds = ends[:-1][np.diff(np.floor(np.cumsum(costs)[ends - 1] / most)) > 0]
        for begin, end in pairwise([0, *bounds.tolist(), len(costs)]):
            self.run(schedule.part(begin, end), threads)
            yield

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots in place; see `StepEngine.run`."""
        rows, commands, call = self._last
        if call is None or rows != schedule or commands is not self.commands:
            if not isinstance(schedule, int):
                self.advance(self._members, schedule, self._used_threads(schedule.steps.sum(), threads))
                return self._result()
            call = self._calls.get((schedule, id(self.commands))) or self._prepared(schedule)
            self._last = schedule, self.commands, call
        return call.alone() if threads == 1 else call(self._used_threads(self.intervals[0, 0, 2], threads))

    def _used_threads(self, steps: float, threads: int) -> int:
        """Return the number of threads that pay for a number of steps."""
        return min(threads, max(int(steps * self._operations / _OPERATIONS_PER_THREAD), 1))

    def _prepared(self, rows: int) -> PreparedLoop:
        """Return the call for a number of rows of `intervals`, which keeps the array of the commands and so its id."""
        intervals = Schedule(self.intervals[:rows], np.array([CODES_ONLY]))
        arrays = self._members, self._parameters, intervals, self.commands
        call = self._calls[rows, id(self.commands)] = self.code.prepared(*arrays, self._comparison)
        return call

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        """Advance the robots from other states; see `StepEngine.advance`."""
        self.code.run(members, self._parameters, schedule, threads, self.commands)

    def failure(self, i: int) -> SimulationError | None:
        """Return the error of the steps after the last sample of a single robot, which are taken again one by one.

        Of many robots, and in `run`, which operation has no finite result is unknown.
        """
        if self._plan is None or len(self._members.state) > 1:
            return None
        loop, sequences = self.compiled.template.loop, self._integrator.step_sequences(self._plan.intervals[0])
        nq, state, reached = loop.robot.nq, self._members.stored[0], int(self._members.outcome[0, 2])
        begin = [k for k, sequence in enumerate(sequences) if sequence.sample is not None][reached - 1] + 1
        before = state[reached - 1].astype(float)
        try:
            for _ in self._integrator.take(Backend(loop, True, ""), before[:nq], before[nq:], sequences[begin:]):
                pass
        except DivergenceError as error:
            return error
        return None


class SolverEngine(StepEngine):
    """Integration of one robot after the other by `Integrator.solve`.

    Args:
        systems: The equations of motion of each robot.
        members: States and outcomes, which `run` changes in place. integrator: The integrator.
        name: Description of the code that runs. given: What each step is given.
    """

    def __init__(
        self,
        systems: Sequence[Backend],
        members: Members,
        integrator: Integrator,
        name: str,
        given: StepInput = NO_INPUT,
    ):
        super().__init__(members, name, given)
        self._systems, self._integrator = dict(enumerate(systems)), integrator
        self._limits: dict[int, FallLimits | None] = {}  # beyond which robots have fallen
        self._failures: dict[int, SimulationError] = {}

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
        return self._result()

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
        sequences = [
            StepSequence(int(phase), start, h, int(count), start + h * count if sample != -1 else None)
            for (start, h, count, phase), sample in parts
        ]
        system, state = self._system(i), self._state(members, i)
        if isinstance(self._integrator, FixedStep):
            return self._integrator.take(system, *state, sequences)
        smooth = [
            SmoothInterval(p.phase, p.start, p.start + p.h * p.count, np.array([] if p.sample is None else [p.sample]))
            for p in sequences
            if p.count
        ]
        return self._integrator.solve(system, *state, smooth)

    def _take(self, members: Members, i: int, solution: Iterator[StateSample], sample: int) -> None:
        """Advance robot i to the next sample, and end it if it has fallen, or in the state before if there is none."""
        system, row, limits = self._system(i), members.state[i], self._limits.get(i)
        try:
            _, _, q, s = next(solution)
        except SimulationError as error:
            self._failures[i] = error
            members.outcome[i, 0] = NOT_FINITE
            if isinstance(error, DivergenceError):
                members.outcome[i, 1] = error.t
                if error.state is not None:
                    row[-len(error.state) :] = error.state
            return
        after = np.concatenate([q, s])
        if limits is not None and not np.array_equal(row, after):  # it has moved
            members.outcome[i, 0] = float(limits.termination_code(system.loop.robot, system.loop.ground, q))
        row[:] = after
        if sample >= 0:
            members.stored[i, sample], members.outcome[i, 2] = row, sample + 1

    def _state(self, members: Members, i: int) -> tuple[Array, Array]:
        nq = self._systems[i].loop.robot.nq
        return members.state[i, :nq].copy(), members.state[i, nq:].copy()

    @staticmethod
    def _live(members: Members) -> list[int]:
        return [i for i, code in enumerate(members.outcome[:, 0].tolist()) if code == 0.0]


class PythonEngine(SolverEngine):
    """Integration of one robot after the other with the controllers in Python.

    Args:
        batch: The robots. starts: The robots at the start.
        members: States and outcomes, which `run` changes in place.
        integrator: The integrator. given: What each step is given.
        reason: Why the controllers are in Python.
    """

    def __init__(
        self,
        batch: RolloutBatch,
        starts: InitialStates,
        members: Members,
        integrator: Integrator,
        given: StepInput,
        reason: str,
    ):
        super().__init__([], members, integrator, f"one by one, controller in Python ({reason})", given)
        self._batch = batch
        self._backends: dict[ClosedLoop, Backend] = {}
        self._controllers: dict[int, Any] = {}
        self.restart(starts, range(len(members.state)))

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the closed loops of some robots, each with its own copy of the controller; see `StepEngine.restart`."""
        first, used = self._batch.first.limits, set(starts.loops)
        begin = starts.numbers.shape[1] - len(flatten(first)[0])
        known = self._backends
        self._backends = {loop: known[loop] if loop in known else _in_python(loop, self.given) for loop in used}
        for i in robots:
            self._limits[i] = unflatten(first, iter(starts.numbers[i, begin:].tolist()))
            self._systems[i] = self._backends[starts.loops[i]]
            self._controllers[i] = independent_copy(starts.loops[i].controller)

    def _system(self, i: int) -> Backend:
        system = self._systems[i]
        current: Any = system.loop.controller
        current.controller = self._controllers[i]
        n = self.given.command
        current.command = None if n is None else self.commands[i, :n].copy()
        rows = self.commands[i, n or 0 :].reshape(-1, LOAD)
        for push, numbers in zip(system.loop.pushes[len(system.loop.pushes) - len(rows) :], rows, strict=True):
            assert isinstance(push, StepWrench)
            push.numbers[:] = numbers
        return system


def _in_python(loop: ClosedLoop, given: StepInput) -> Backend:
    """Return a closed loop with compiled parts, whose controller and inputs are those of one robot at a time."""
    plain = StepInput(None, given.wrenches).applied(loop, np.zeros(LOAD * len(given.wrenches)))
    plain = replace(plain, controller=CommandedController(loop.controller, None))
    v, memory = np.zeros(loop.robot.nv), np.zeros(loop.memory)
    return select_backend(plain, loop.robot.neutral(), loop.initial(v, memory), False)
