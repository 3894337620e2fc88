"""Step engines in Python: one integrator per robot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.compiler import CODES_ONLY, NOT_FINITE, Members, Schedule
from legged.errors import DivergenceError, SimulationError
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.fall import FallLimits
from legged.simulation.controller import CommandedController
from legged.simulation.hidden_state import independent_copy
from legged.simulation.integrators import (
    FixedStep,
    Integrator,
    SmoothInterval,
    StateSample,
    StepSequence,
)
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_batch import NO_INPUT, StepInput
from legged.simulation.stepping.engines.compiled import StepEngine
from legged.simulation.stepping.parameter_tree import flatten, unflatten
from legged.simulation.stepping.start import InitialStates

if TYPE_CHECKING:
    from legged.simulation.stepping.motion import Plan

Array = np.ndarray


class SolverEngine(StepEngine):
    """Integration of one robot after the other by `Integrator.solve`.

    Args:
        systems: The equations of motion of each robot. limits: Limits beyond which each has fallen, or None.
        members: States and outcomes, which `run` changes in place. integrator: The integrator.
        name: Description of the code that runs. given: What each step is given.
    """

    def __init__(
        self,
        systems: Sequence[Backend],
        limits: Sequence[FallLimits | None],
        members: Members,
        integrator: Integrator,
        name: str,
        given: StepInput = NO_INPUT,
    ):
        super().__init__(members, name, given)
        self._systems, self._limits, self._integrator = list(systems), list(limits), integrator
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
        """Advance robot i to the next sample; if there is none, it has ended in the state before."""
        self._system(i)
        try:
            state = next(solution)
        except SimulationError as error:
            self._fail(members, i, error)
            return
        self._move(members, i, state.q, state.s)
        if sample >= 0:
            members.stored[i, sample], members.outcome[i, 2] = members.state[i], sample + 1

    def _fail(self, members: Members, i: int, error: SimulationError) -> None:
        """End robot i, whose next state does not exist."""
        self._failures[i] = error
        members.outcome[i, 0] = NOT_FINITE
        if isinstance(error, DivergenceError):
            members.outcome[i, 1] = error.t
            if error.state is not None:
                members.state[i, -len(error.state) :] = error.state

    def _move(self, members: Members, i: int, q: Array, s: Array) -> None:
        """Set the state of robot i, and end it if it has fallen."""
        row, nq, limits = members.state[i], len(q), self._limits[i]
        has_moved = limits is not None and not (np.array_equal(row[:nq], q) and np.array_equal(row[nq:], s))
        row[:nq], row[nq:] = q, s
        if has_moved:
            loop = self._systems[i].loop
            members.outcome[i, 0] = float(limits.termination_code(loop.robot, loop.ground, q))

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
        count = len(members.state)
        super().__init__(
            [None] * count,  # type: ignore[list-item]  # set below
            [None] * count,
            members,
            integrator,
            f"one by one, controller in Python ({reason})",
            given,
        )
        self._batch = batch
        self._backends: dict[ClosedLoop, Backend] = {}
        self._controllers: list[Any] = [None] * count
        self.restart(starts, range(count))

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
