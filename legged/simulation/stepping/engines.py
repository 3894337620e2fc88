"""Step engines, which advance all robots: the interface, and one compiled time loop for all robots.

`legged.simulation.stepping.python_engine` has the engine that advances one robot after the other in Python.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

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
    TimeLoop,
    trace,
)
from legged.compiler import OPERATIONS_PER_CALL as OPERATIONS_OF_ONE
from legged.errors import DivergenceError, NotFiniteError, SimulationError, SingularError
from legged.robot.configuration import normalized
from legged.simulation.backend import Backend, advance
from legged.simulation.checks.divergence import SLOW
from legged.simulation.checks.law import check_stateless, independent_copy
from legged.simulation.controller import CommandedController
from legged.simulation.integrators import FixedStep, Plan
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.stepping.batch import MemberTemplate
from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray
_OPERATIONS_PER_THREAD = 1_000_000
"""Least operations for each of several threads: 60 us of work, twice the time to wake a thread."""
OPERATIONS_PER_CALL = 1.5e9
"""Operations of a batch between two examinations of its samples: some tenths of a second."""


def commanded(loop: ClosedLoop, command: Array) -> ClosedLoop:
    """Return a closed loop whose controller has a command.

    Args:
        loop: The closed loop. command: The command, (nu,), any unit.
    """
    return replace(loop, controller=CommandedController(loop.controller, command))


class StepInput(NamedTuple):
    """The input of each time step, a vector: the command, then the numbers of external wrenches.

    Attributes:
        command: Length of the command of the controller, nu; None if it takes none.
        wrenches: (link, frame) of each external wrench, see `StepWrench`.
    """

    command: int | None = None
    wrenches: tuple[tuple[str, str], ...] = ()

    @property
    def size(self) -> int:
        """Length of the vector."""
        return (self.command or 0) + LOAD * len(self.wrenches)

    def applied(self, loop: ClosedLoop, values: Array) -> ClosedLoop:
        """Return a closed loop whose controller receives the command in a vector, and with its external wrenches.

        Args:
            loop: The closed loop. values: The vector, (size,), mixed units; its wrenches may change in place.
        """
        n = self.command or 0
        if self.command is not None:
            loop = commanded(loop, values[:n])
        if not self.wrenches:
            return loop
        starts = range(n, self.size, LOAD)
        own = [StepWrench(*key, values[i : i + LOAD]) for key, i in zip(self.wrenches, starts, strict=True)]
        return replace(loop, pushes=(*loop.pushes, *own))


NO_INPUT = StepInput()


class StepEngine:
    """Base class of the objects that advance all robots in place.

    Args:
        members: States and outcomes of the robots. name: Description of the code that runs.
        given: The input of each time step: command and external wrenches.

    Attributes:
        is_compiled: Whether the code is machine code.
        commands: Input of each robot, (N, given.size), mixed units, which `run` reads; another array may replace it.
        intervals: Interval [start, h, count, phase] of each robot, (N, 1, 4), [s, s, -, -], which `run` reads.
    """

    is_compiled = False

    def __init__(self, members: Members, name: str, given: StepInput):
        count, dtype = len(members.state), members.state.dtype
        self._members, self.name, self.given = members, name, given
        self.commands, self.intervals = np.zeros((count, given.size), dtype), np.zeros((count, 1, 4), dtype)

    def motion(self, plan: Plan, threads: int) -> Iterator[None]:
        """Advance the robots from sample to sample; yield whenever new samples are stored."""
        raise NotImplementedError

    def run(self, schedule: Schedule | int, threads: int) -> int:
        """Advance the robots, store the states of samples, and end robots.

        Args:
            schedule: The intervals and samples; or the number of rows of the attribute `intervals` that hold them, N or
                1, after which robots that have fallen end.
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
        """Advance robots from other states and outcomes, in place, as `run` does from the present ones."""
        raise NotImplementedError

    def failure(self, i: int) -> SimulationError | None:
        """Return the error that ended the motion of robot i; None if its next state is not finite."""
        raise NotImplementedError

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set controllers, grounds, pushes and limits of the robots with these indices to those of the starts."""
        raise NotImplementedError


class CompiledEngine(StepEngine):
    """The time steps of all robots in machine code, traced once; numbers in which robots differ are its parameters.

    Args:
        template: The robots as functions of their numbers. starts: Their closed loops and states.
        members: As in `StepEngine`. integrator: The integrator. given: What each step is given.

    Attributes:
        code: The time loop; its parameters are those of a robot, and then what it is given.
        parameters: The former, (N, p), mixed units and frames, which `restart` replaces.

    Raises:
        Exception: Any, of the functions of users that are traced.
    """

    is_compiled = True

    def __init__(
        self,
        template: MemberTemplate,
        starts: InitialStates,
        members: Members,
        integrator: FixedStep,
        given: StepInput = NO_INPUT,
    ):
        self.template, self.starts, self._integrator = template, starts, integrator
        self._robot, self.given, element = template.batch.robot, given, template.batch.element
        shapes = {"clock": (3,), "parameters": (len(template.varying) + given.size,)}
        try:
            graph = trace(self._step, {**shapes, "state": (starts.states.shape[1],)})
        finally:
            check_stateless(template.loop.controller)
        self.code = code = TimeLoop(graph, element)
        count, kind = len(members.state), "" if element == FLOAT64 else f" of {element}"
        lanes = code.lanes(count)
        super().__init__(members, f"compiled time steps, {lanes} lane{'s' * (lanes > 1)}{kind}", given)
        self.parameters = np.zeros((count, len(template.varying)), element.dtype)
        self.parameters[:] = starts.numbers[:, template.varying]
        self._plan: Plan | None = None
        self._comparison = Comparison(self._robot.nq, self._robot.nv, SLOW)
        self._calls: dict[tuple[int, int], PreparedLoop] = {}
        self._last: tuple[int, Array | None, PreparedLoop | None] = 0, None, None  # rows, commands and call
        self._operations = float(count * max(code.graph.size, 1))

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without calls, which hold addresses of arrays."""
        kept = {name: value for name, value in vars(self).items() if name != "_trial"}
        return {**kept, "_calls": {}, "_last": (0, None, None)}

    def _step(self, clock: Any, parameters: Any, state: Any) -> tuple[Array, Any]:
        own = len(self.template.varying)
        loop, limits = self.template.member(parameters[:own])
        after = advance(self.given.applied(loop, parameters[own:]), self._integrator.rule, clock, state)
        q = after[: self._robot.nq]
        return after, 0.0 if limits is None else limits.termination_code(self._robot, loop.ground, q)

    def restart(self, starts: InitialStates, robots: Iterable[int]) -> None:
        """Set the parameters of all robots; see `StepEngine.restart`."""
        self.parameters[:] = starts.numbers[:, self.template.varying]

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
        """Advance the robots; see `StepEngine.run`."""
        rows, commands, call = self._last
        if call is None or rows != schedule or commands is not self.commands:
            if not isinstance(schedule, int):
                self.advance(self._members, schedule, self._used_threads(schedule.steps.sum(), threads))
                return self._result()
            key = schedule, id(self.commands)  # the call keeps the array, and so its id
            if key not in self._calls:
                intervals = Schedule(self.intervals[:schedule], np.array([CODES_ONLY]))
                arrays = self._members, self.parameters, intervals, self.commands
                self._calls[key] = self.code.prepared(*arrays, self._comparison)
            call = self._calls[key]
            self._last = schedule, self.commands, call
        return call.alone() if threads == 1 else call(self._used_threads(self.intervals[0, 0, 2], threads))

    def _used_threads(self, steps: float, threads: int) -> int:
        """Return the number of threads that save time for a number of steps, at most `threads`."""
        return min(threads, max(int(steps * self._operations / _OPERATIONS_PER_THREAD), 1))

    def advance(
        self, members: Members, schedule: Schedule, threads: int | None = None, robots: slice = slice(None)
    ) -> None:
        """Advance the robots, or some of them, from other states of any type; see `StepEngine.advance`."""
        with np.errstate(over="ignore", invalid="ignore"):  # of undefined stored states
            own = Members(*(x.astype(self.code.element.dtype, copy=False) for x in vars(members).values()))
            self.code.run(own, self.parameters[robots], schedule, threads, self.commands[robots])
            for x, y in zip(vars(members).values(), vars(own).values(), strict=True):
                if x is not y:
                    x[:] = y

    def failure(self, i: int) -> SimulationError | None:
        """Return the error of the steps after the last sample of a single robot, which are taken again one by one.

        Of many robots, and in `run`, which operation has no finite result is unknown.
        """
        if self._plan is None or len(self._members.state) > 1:
            return None
        loop, sequences = self.template.loop, self._integrator.step_sequences(self._plan.intervals[0])
        nq, state, reached = loop.robot.nq, self._members.stored[0], int(self._members.outcome[0, 2])
        begin = [k for k, sequence in enumerate(sequences) if sequence.sample is not None][reached - 1] + 1
        before = state[reached - 1].astype(float)
        try:
            for _ in self._integrator.take(Backend(loop, True, ""), before[:nq], before[nq:], sequences[begin:]):
                pass
        except DivergenceError as error:
            return error
        return None

    def updated(self, t: float, phase: float, q: Array, s: Array) -> Array | None:
        """Return s after the discrete update of the controller, (size,); None if a time step from there has no result.

        Its memory is that after the step, since it has no rate.

        Args:
            t: Time, [s]. phase: Number of switch times passed. q, s: The state of a single robot, (nq,) and (size,).
        """
        members, intervals, call = self._trial
        nq, begin = self._robot.nq, self._robot.nv
        end = begin + self.template.loop.memory
        members.state[0, :nq], members.state[0, nq:], members.outcome[:] = q, s, 0.0
        intervals[0, 0] = t, self._integrator.step, 1.0, phase
        call.alone()
        if members.outcome[0, 0]:
            return None
        return np.concatenate([s[:begin], members.state[0, nq + begin : nq + end], s[end:]])

    @cached_property
    def _trial(self) -> tuple[Members, Array, PreparedLoop]:
        """A state for one step, its interval, (1, 1, 4), and the call of the step."""
        dtype = self.code.element.dtype
        members, intervals = Members.at(self.starts.states[:1], 0, dtype), np.zeros((1, 1, 4), dtype)
        schedule = Schedule(intervals, np.array([CODES_ONLY]))
        return members, intervals, self.code.prepared(members, self.parameters, schedule)

    # Comparison with the same steps in Python.

    def largest_difference(self) -> float:
        """Return the largest relative difference between time steps of some robots in machine code and in Python.

        The steps start near the initial states, not at them: feet that just touch the ground make the result sensitive
        to rounding where a ground law takes the square root of the depth.
        """
        all_states, nq, size = self.starts.states, self._robot.nq, self.given.size
        rng, count, worst, h = np.random.default_rng(0), len(all_states), 0.0, 1e-4
        chosen = sorted({0, count // 2, count - 1})
        loops = [self._plain_loop(i) for i in chosen]  # with all times, to find controllers with a state
        dtype, times = self.template.batch.element.dtype, min(count, 2)  # the code of one robot, or of many
        for t in (0.0, 0.1, 0.37):
            noise = 1e-3 * rng.standard_normal((len(chosen), all_states.shape[1]))
            states = np.array([self._perturbed(*pair) for pair in zip(all_states[chosen], noise, strict=True)])
            states = states.astype(dtype).astype(float)
            members = Members.at(np.repeat(states, times, axis=0), 1, dtype)
            schedule = Schedule(np.array([[[t, h, 1.0, 0.0]]]), np.array([0]))
            parameters = np.pad(np.repeat(self.parameters[chosen], times, axis=0), ((0, 0), (0, size)))
            self.code.run(members, parameters, schedule, threads=1)
            for k in range(len(chosen)):
                plain = self._plain_step(loops[k], np.array([t, h, 0.0]), states[k])
                ended = members.outcome[times * k, 0] == NOT_FINITE
                if ended or not np.isfinite(plain).all():
                    worst = max(worst, 0.0 if ended and not np.isfinite(plain).all() else np.inf)
                    continue
                rate, other = ((y[nq:] - states[k, nq:]) / h for y in (members.stored[times * k, 0], plain))
                worst = max(worst, float(np.abs(rate - other).max() / (1.0 + np.abs(other).max())))
        return worst

    def _perturbed(self, state: Array, noise: Array) -> Array:
        """Return a state near another, (n,), with unit quaternions."""
        nq, loop = self._robot.nq, self.template.batch.first.loop
        q = normalized(self._robot, state[:nq] + noise[:nq])
        return np.concatenate([q, loop.perturbed(state[nq:], noise[nq:])])

    def _plain_loop(self, i: int) -> ClosedLoop:
        """Return the closed loop of robot i with a copy of its controller, whose input is zero."""
        loop = self.starts.loops[i]
        loop = replace(loop, controller=independent_copy(loop.controller), notices={"base forces": ""})
        return self.given.applied(loop, np.zeros(self.given.size))

    def _plain_step(self, loop: ClosedLoop, clock: Array, state: Array) -> Array:
        """Return the state of a closed loop after a time step in Python; NaN if its equations have no solution."""
        try:
            with np.errstate(all="ignore"):
                return advance(loop, self._integrator.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)

    # Runs of single members of a rollout.

    def detached(self) -> CompiledEngine:
        """Return a copy of the engine without the states of its robots, of which only `advance` can be called."""
        engine = copy.copy(self)
        del engine._members
        return engine
