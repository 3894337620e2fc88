"""The step engine that advances one robot after the other in Python: variable steps, and controllers in Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from legged.compiler import CODES_ONLY, NOT_FINITE, Members, Schedule
from legged.errors import DivergenceError, SimulationError
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.fall import FallLimits
from legged.simulation.checks.law import independent_copy
from legged.simulation.controller import CommandedController
from legged.simulation.integrators import FixedStep, Integrator, Plan, SmoothInterval, StateSample, StepSequence
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.many_contacts import SceneInParts
from legged.simulation.stepping.engines import NO_INPUT, StepEngine, StepInput
from legged.simulation.stepping.parameter_tree import flatten, unflatten
from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray


class PythonEngine(StepEngine):
    """Integration of one robot after the other by `Integrator.solve`: variable steps, and controllers in Python.

    Args:
        members, name, given: As in `StepEngine`. integrator: The integrator.
        system: The equations of motion of the only robot. Without them, `restart` sets those of all robots.
        limits: Limits of the first robot, beyond which it has fallen, for `restart`.
    """

    def __init__(
        self,
        members: Members,
        integrator: Integrator,
        name: str,
        given: StepInput = NO_INPUT,
        system: Backend | None = None,
        limits: FallLimits | None = None,
    ):
        super().__init__(members, name, given)
        self._integrator, self._first_limits = integrator, limits
        self._systems = {} if system is None else {0: system}
        self._backends: dict[ClosedLoop, Backend] = {}  # which several robots may share, each with its own controller
        self._controllers: dict[int, Any] = {}
        self._limits: dict[int, FallLimits | None] = {}
        self._failures: dict[int, SimulationError] = {}

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        members, solutions = self._members, {}
        for i in _live(members):
            solutions[i] = self._integrator.solve(self._system(i), *self._state(members, i), plan.intervals[plan.of[i]])
        for k in range(len(plan.times)):
            for i in _live(members):
                self._take(members, i, solutions[i], k)
            yield

    def run(self, schedule: Schedule | int, threads: int) -> int:
        if isinstance(schedule, int):
            schedule = Schedule(self.intervals[:schedule], np.array([CODES_ONLY]))
        self.advance(self._members, schedule, threads)
        return self._result()

    def advance(self, members: Members, schedule: Schedule, threads: int | None = None) -> None:
        for i in _live(members):
            solution = self._solution(i, members, schedule)
            for sample in schedule.samples[schedule.samples != -1].tolist():
                if members.outcome[i, 0] == 0.0:
                    self._take(members, i, solution, sample)

    @property
    def scene(self) -> SceneInParts | None:
        """The scene in parts, if all robots are in the same one."""
        loops = {system.loop for system in self._systems.values()}
        loop = loops.pop()
        return loop if isinstance(loop, SceneInParts) and not loops else None

    def failure(self, i: int) -> SimulationError | None:
        return self._failures.get(i)

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        known, begin = self._backends, starts.numbers.shape[1] - len(flatten(self._first_limits)[0])
        used = dict(zip(starts.loops, starts.states, strict=True))
        self._backends = {
            loop: known[loop] if loop in known else _in_python(loop, self.given, state) for loop, state in used.items()
        }
        for i in robots:
            self._systems[i] = self._backends[starts.loops[i]]
            self._controllers[i] = independent_copy(starts.loops[i].controller)  # robots do not share its state
            self._limits[i] = unflatten(self._first_limits, iter(starts.numbers[i, begin:].tolist()))

    def _system(self, i: int) -> Backend:
        """Return the equations of motion of robot i, with its own controller, command and external wrenches."""
        system = self._systems[i]
        if self._controllers:
            current: Any = system.loop.controller
            current.controller, n = self._controllers[i], self.given.command
            current.command = None if n is None else self.commands[i, :n].copy()
            rows = self.commands[i, n or 0 :].reshape(-1, LOAD)
            for push, numbers in zip(system.loop.pushes[len(system.loop.pushes) - len(rows) :], rows, strict=True):
                assert isinstance(push, StepWrench)
                push.numbers[:] = numbers
        return system

    def _solution(self, i: int, members: Members, schedule: Schedule) -> Iterator[StateSample]:
        """Yield the states of robot i at the ends of the intervals that have a sample."""
        intervals = schedule.intervals[i if len(schedule.intervals) > 1 else 0].tolist()
        sequences = [
            StepSequence(int(phase), start, h, int(count), start + h * count if sample != -1 else None)
            for (start, h, count, phase), sample in zip(intervals, schedule.samples.tolist(), strict=True)
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


def _live(members: Members) -> list[int]:
    """Return the indices of the robots that have not ended."""
    return [i for i, code in enumerate(members.outcome[:, 0].tolist()) if code == 0.0]


def _in_python(loop: ClosedLoop, given: StepInput, state: Array) -> Backend:
    """Return a closed loop with compiled parts, whose controller and inputs are those of one robot at a time.

    Args:
        loop: The closed loop. given: What steps are given. state: A state [q; s], (n,), mixed units.
    """
    plain = StepInput(None, given.wrenches).applied(loop, np.zeros(LOAD * len(given.wrenches)))
    plain = replace(plain, controller=CommandedController(loop.controller, None))
    q, s = np.split(state, [loop.robot.nq])
    return select_backend(plain, q, s, False)
