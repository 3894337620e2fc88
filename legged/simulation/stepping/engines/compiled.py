"""The base of step engines, and the one in machine code: all robots in one time loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.compiler import (
    CODES_ONLY,
    ENDED,
    EXCEEDED,
    FLOAT64,
    Comparison,
    Members,
    PreparedLoop,
    Schedule,
)
from legged.compiler import OPERATIONS_PER_CALL as OPERATIONS_OF_ONE
from legged.errors import DivergenceError, SimulationError
from legged.simulation.backend import Backend
from legged.simulation.checks.divergence import SLOW
from legged.simulation.integrators import FixedStep
from legged.simulation.stepping.compiled_batch import CompiledBatch, StepInput
from legged.simulation.stepping.start import InitialStates

if TYPE_CHECKING:
    from legged.simulation.stepping.motion import Plan

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
        name: Description of the code that runs.
        given: What each step is given: command and external wrenches.
        commands: This for each robot, (N, given.size), which `run` reads; another array may replace it.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), which `run` reads.
    """

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
        members: States and outcomes, which `run` changes in place. integrator: The integrator.
    """

    def __init__(self, compiled: CompiledBatch, members: Members, integrator: FixedStep):
        count, code, given = len(members.state), compiled.code, compiled.given
        lanes, kind = code.lanes(count), "" if code.element == FLOAT64 else f" of {code.element}"
        super().__init__(members, f"compiled time steps, {lanes} lane{'s' * (lanes > 1)}{kind}", given)
        self.compiled, self.code, self._integrator = compiled, code, integrator
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
