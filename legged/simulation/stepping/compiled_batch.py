"""One compiled time loop for all members of a rollout, as a function of the numbers in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import NOT_FINITE, Kernel, Members, Schedule, TimeLoop, trace
from legged.compiler.ir import Graph
from legged.errors import NotFiniteError, SingularError, TraceError
from legged.robot.configuration import as_vector, normalized
from legged.simulation.backend import advance, energies
from legged.simulation.checks.fall import FallLimits
from legged.simulation.controller import CommandedController
from legged.simulation.hidden_state import check_stateless, independent_copy
from legged.simulation.integrators import FixedStep
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import LOAD, StepWrench
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.parameter_tree import unflatten
from legged.simulation.stepping.starts import InitialStates

Array = np.ndarray


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
        """Return whether members with these numbers differ from the first one in `varying` alone.

        Args:
            numbers: Numbers of some members, (k, m), mixed units and frames.
        """
        if numbers.shape[1:] != self._nominal.shape:
            return False
        differs = (numbers != self._nominal).any(axis=0)
        differs[self.varying] = False
        return not differs.any()

    def member(self, parameters: Any) -> tuple[ClosedLoop, FallLimits | None]:
        """Return the closed loop of a member and the limits beyond which it has fallen.

        Args:
            parameters: Its varying numbers, (p,), mixed units and frames.
        """
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
        """Function of the varying numbers, (..., p), and states [q; s], (..., n), compiled at its first use.

        It returns kinetic and potential energies, (..., 2), [J].
        """
        first = self.batch.first
        shapes = {"parameters": (len(self.varying),), "state": (len(first.q) + len(first.s),)}
        graph = trace(lambda parameters, state: energies(self.member(parameters)[0], state), shapes)
        return Kernel(graph, "energies")

    def _numbers(self, parameters: Any) -> Iterator[Any]:
        """Yield the numbers of a member: constants, and parameters where members differ."""
        varying = dict(zip(self.varying.tolist(), parameters, strict=True))
        for i, value in enumerate(self._nominal.tolist()):
            yield varying.get(i, value)
        raise TraceError("the closed loop has more numbers than at its start; is one computed at its first use?")


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
        """Return a closed loop that is given a vector.

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


class CompiledBatch:
    """The time step of all members, traced once; numbers that differ between members are its parameters.

    Args:
        template: The members as functions of their numbers. starts: Their closed loops and states.
        integrator: The integrator. given: What the robots are given at each call.

    Attributes:
        robot: The robot. code: The time loop; its parameters are those of the member, and then what it is given.
        parameters: Parameters of the time loop without the latter, (B, p), or (1, 0), mixed units and frames.
    """

    def __init__(
        self,
        template: MemberTemplate,
        starts: InitialStates,
        integrator: FixedStep,
        given: StepInput = NO_INPUT,
    ):
        self.template, self.batch, self.robot = template, template.batch, template.batch.robot
        self.starts, self.integrator, self.given = starts, integrator, given
        own, size = starts.numbers[:, self.template.varying], starts.states.shape[1]
        shapes = {"clock": (3,), "parameters": own.shape[1:], "command": (given.size,), "state": (size,)}
        try:
            graph = trace(self._step, shapes)
        finally:
            check_stateless(self.template.loop.controller)
        self.parameters = own if own.shape[1] else np.zeros((1, 0))
        self.code = TimeLoop(_merged(graph), self.batch.element)

    def loop_parameters(self, numbers: Array) -> Array:
        """Return the parameters of the time loop for other numbers of the members, (B, p), or (1, 0).

        Args:
            numbers: Numbers of all members, (B, m), mixed units and frames.
        """
        own = numbers[:, self.template.varying]
        return own if own.shape[1] else self.parameters

    def _step(self, clock: Any, parameters: Any, command: Any, state: Any) -> tuple[Array, Any]:
        loop, limits = self.template.member(parameters)
        after, robot = advance(self.given.applied(loop, command), self.integrator.rule, clock, state), self.batch.robot
        return after, 0.0 if limits is None else limits.termination_code(robot, loop.ground, after[: robot.nq])

    def largest_difference(self) -> float:
        """Return the largest relative difference between compiled and plain time steps of some members.

        The steps start near the initial states, not at them: feet that just touch the ground make the result sensitive
        to rounding where a ground law takes the square root of the depth.
        """
        all_states, size = self.starts.states, self.given.size
        rng, count, worst, h = np.random.default_rng(0), len(all_states), 0.0, 1e-4
        chosen = sorted({0, count // 2, count - 1})
        loops = [self._plain_loop(i) for i in chosen]  # each for all times, which shows a state of its controller
        dtype = self.batch.element.dtype
        nq, times = self.batch.robot.nq, min(count, 2)  # selects the code of the rollout: for one member, or for many
        for t in (0.0, 0.1, 0.37):
            noise = 1e-3 * rng.standard_normal((len(chosen), all_states.shape[1]))
            states = np.array([self._perturbed(*pair) for pair in zip(all_states[chosen], noise, strict=True)])
            states = states.astype(dtype).astype(float)
            members = Members.at(np.repeat(states, times, axis=0), 1, dtype)
            schedule = Schedule(np.array([[[t, h, 1.0, 0.0]]]), np.array([0]))
            own = self.parameters if len(self.parameters) == 1 else np.repeat(self.parameters[chosen], times, axis=0)
            parameters = np.pad(own, ((0, 0), (0, size)))
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
        robot, loop = self.batch.robot, self.batch.first.loop
        q = normalized(robot, state[: robot.nq] + noise[: robot.nq])
        return np.concatenate([q, loop.perturbed(state[robot.nq :], noise[robot.nq :])])

    def _plain_loop(self, i: int) -> ClosedLoop:
        """Return the closed loop of member i with a copy of its controller, given zeros."""
        loop = self.starts.loops[i]
        loop = replace(loop, controller=independent_copy(loop.controller), notices={"base forces": ""})
        return self.given.applied(loop, np.zeros(self.given.size))

    def _plain_step(self, loop: ClosedLoop, clock: Array, state: Array) -> Array:
        """Return the state of a closed loop after a step of the plain equations; NaN if they have no solution."""
        try:
            with np.errstate(all="ignore"):
                return advance(loop, self.integrator.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)


def _merged(graph: Graph) -> Graph:
    """Return the graph of a step with the command as the last of its parameters."""
    clock, (_, (parameters,)), (_, (command,)), state = graph.inputs
    return replace(graph, inputs=(clock, ("parameters", (parameters + command,)), state))
