"""One compiled time loop for all robots, as a function of the numbers in which they differ."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np

from legged.compiler import (
    CODES_ONLY,
    FLOAT64,
    NOT_FINITE,
    Comparison,
    Kernel,
    Members,
    PreparedLoop,
    Schedule,
    TimeLoop,
    trace,
)
from legged.compiler import OPERATIONS_PER_CALL as OPERATIONS_OF_ONE
from legged.compiler.ir import Graph
from legged.errors import DivergenceError, NotFiniteError, SimulationError, SingularError, TraceError
from legged.robot.configuration import as_vector, normalized
from legged.simulation.backend import Backend, advance, energies
from legged.simulation.checks.divergence import SLOW
from legged.simulation.checks.fall import FallLimits
from legged.simulation.hidden_state import check_stateless, independent_copy
from legged.simulation.integrators import FixedStep, Plan
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.engines import NO_INPUT, StepEngine, StepInput
from legged.simulation.stepping.parameter_tree import unflatten
from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray
_OPERATIONS_PER_THREAD = 1_000_000
"""Operations for each thread from which several threads pay: 60 us of work, twice the time to wake one."""
OPERATIONS_PER_CALL = 1.5e9
"""Operations of a batch between two examinations of its samples: some tenths of a second."""


class MemberTemplate:
    """The closed loop of any member as a function of the numbers in which members differ, which may be traced.

    Args:
        batch: The members. numbers: Numbers of all members, (B, m), mixed units and frames.
        varying: Indices of numbers that may differ later.

    Attributes:
        varying: Indices of the numbers that differ, or may.
        loop: The closed loop of the first member with a copy of its controller, which is traced.
    """

    def __init__(self, batch: RolloutBatch, numbers: Array, varying: Sequence[int] = ()):
        differs = (numbers != numbers[0]).any(axis=0)
        differs[list(varying)] = True
        self.batch, self.varying, self._nominal = batch, np.flatnonzero(differs), numbers[0]
        first = batch.first.loop  # a controller that keeps a state is not changed by a trace
        self.loop = replace(first, controller=independent_copy(first.controller))

    def covers(self, numbers: Array) -> bool:
        """Return whether members with these numbers, (k, m), mixed units, differ from the first in `varying` alone.

        Args:
            numbers: Numbers of some members, (k, m), mixed units and frames.
        """
        if numbers.shape[1:] != self._nominal.shape:
            return False
        differs = (numbers != self._nominal).any(axis=0)
        differs[self.varying] = False
        return not differs.any()

    def member(self, parameters: Any) -> tuple[ClosedLoop, FallLimits | None]:
        """Return the closed loop of a member with these varying numbers, and the limits beyond which it has fallen."""
        own, limits = self.loop, self.batch.first.limits
        if not len(self.varying):
            return own, limits
        numbers = self._numbers(parameters)
        vector = self.batch.sweep.robot_parameters
        robot = own.robot
        if vector.names:
            robot = vector.applied(as_vector(list(islice(numbers, vector.size))))
        controller, ground = unflatten((own.controller, own.ground), numbers, [(own.robot, robot)])
        pushes, limits = unflatten(own.pushes, numbers), unflatten(limits, numbers)
        return replace(own, robot=robot, controller=controller, ground=ground, pushes=pushes), limits

    @cached_property
    def energies(self) -> Kernel:
        """Kinetic and potential energies, (..., 2), [J], of the varying numbers, (..., p), and states [q; s]."""
        return self.kernel(energies, "energies", state=(len(self.batch.first.q) + len(self.batch.first.s),))

    def kernel(
        self, function: Callable[..., Any], name: str, dtype: Any = None, **shapes: tuple[int, ...]
    ) -> Kernel[..., Any]:
        """Return a function of the closed loop of a member as a kernel, whose first argument are its varying numbers.

        Args:
            function: Function of the closed loop and further arguments. name: Name of the kernel.
            dtype: Type of the numbers. shapes: Shape of each further argument.
        """
        graph = trace(
            lambda parameters, *others: function(self.member(parameters)[0], *others),
            {"parameters": (len(self.varying),), **shapes},
        )
        return Kernel(graph, name, dtype=dtype)

    def _numbers(self, parameters: Any) -> Iterator[Any]:
        """Yield the numbers of a member: constants, and parameters where members differ."""
        varying = dict(zip(self.varying.tolist(), parameters, strict=True))
        for i, value in enumerate(self._nominal.tolist()):
            yield varying.get(i, value)
        raise TraceError("the closed loop has more numbers than at its start; is one computed at its first use?")


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
        shapes = {"clock": (3,), "parameters": (len(template.varying),), "command": (given.size,)}
        try:
            graph = trace(self._step, {**shapes, "state": (starts.states.shape[1],)})
        finally:
            check_stateless(template.loop.controller)
        self.code = code = TimeLoop(_merged(graph), element)
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
        return {**vars(self), "_calls": {}, "_last": (0, None, None)}

    def _step(self, clock: Any, parameters: Any, command: Any, state: Any) -> tuple[Array, Any]:
        loop, limits = self.template.member(parameters)
        after = advance(self.given.applied(loop, command), self._integrator.rule, clock, state)
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
        """Return the number of threads that pay for a number of steps."""
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

    # Comparison with the same steps in Python.

    def largest_difference(self) -> float:
        """Return the largest relative difference between compiled and plain time steps of some robots.

        The steps start near the initial states, not at them: feet that just touch the ground make the result sensitive
        to rounding where a ground law takes the square root of the depth.
        """
        all_states, nq, size = self.starts.states, self._robot.nq, self.given.size
        rng, count, worst, h = np.random.default_rng(0), len(all_states), 0.0, 1e-4
        chosen = sorted({0, count // 2, count - 1})
        loops = [self._plain_loop(i) for i in chosen]  # each for all times, which shows a state of its controller
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
        """Return the closed loop of robot i with a copy of its controller, given zeros."""
        loop = self.starts.loops[i]
        loop = replace(loop, controller=independent_copy(loop.controller), notices={"base forces": ""})
        return self.given.applied(loop, np.zeros(self.given.size))

    def _plain_step(self, loop: ClosedLoop, clock: Array, state: Array) -> Array:
        """Return the state of a closed loop after a step of the plain equations; NaN if they have no solution."""
        try:
            with np.errstate(all="ignore"):
                return advance(loop, self._integrator.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)

    # One of the robots, for the runs of a rollout.

    def detached(self) -> CompiledEngine:
        """Return the engine without its robots' states, for `advance` alone."""
        engine = copy.copy(self)
        del engine._members
        return engine


def _merged(graph: Graph) -> Graph:
    """Return the graph of a step with the command as the last of its parameters."""
    clock, (_, (parameters,)), (_, (command,)), state = graph.inputs
    return replace(graph, inputs=(clock, ("parameters", (parameters + command,)), state))
