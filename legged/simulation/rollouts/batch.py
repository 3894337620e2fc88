"""The members of a rollout: one closed loop for each in Python, and one compiled time loop for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, record
from legged.compiler.passes.hoist import hoist
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.kernel import Kernel
from legged.compiler.runtime.time_loop import NOT_FINITE, Members, Schedule, TimeLoop
from legged.contact.rigid import FreeBody
from legged.errors import NotFiniteError, SingularError, TraceError
from legged.robot.robot import Robot
from legged.simulation.backend import advance
from legged.simulation.chart import normalized
from legged.simulation.closed_loop import BreakTimes, ClosedLoop
from legged.simulation.controller import Controller, adapt, check_stateless, independent_copy
from legged.simulation.fall import Fall, FallLimits
from legged.simulation.forces import push_times
from legged.simulation.integrators import StepSequence
from legged.simulation.rigid_loop import closed_loop
from legged.simulation.rollouts.parameters import ParameterSweep, Setup, equal_leaves, flatten, unflatten
from legged.simulation.simulate import initial_state

Array = np.ndarray


class RolloutMember(NamedTuple):
    """One member at the start.

    Attributes:
        loop: Its closed loop, with a started controller.
        q: Configuration, (nq,).
        s: Rest of the state, (n,).
        limits: Limits beyond which it has fallen, or None.
    """

    loop: ClosedLoop
    q: Array
    s: Array
    limits: FallLimits | None


class InitialStates(NamedTuple):
    """All members at the start.

    Attributes:
        states: States [q; s], (B, n).
        numbers: Numbers in controller, ground, pushes and limits of each member, (B, m).
        break_times: Break times of each member.
    """

    states: Array
    numbers: Array
    break_times: tuple[BreakTimes, ...]


@dataclass(frozen=True, eq=False)
class RolloutBatch:
    """Robot, setups and initial states of all members.

    Attributes:
        robot: The robot.
        sweep: Setups of the members.
        q, v: Initial states as given: None, one for all members, (nq,) and (nv,), or one for each, (B, nq) and (B, nv).
        fall: When a member has fallen; None for never.
        until: End time, [s].
    """

    robot: Robot
    sweep: ParameterSweep
    q: Any
    v: Any
    fall: Fall | None
    until: float

    def member(self, i: int, nodes: Any = ()) -> RolloutMember:
        """Return member i at the start.

        Args:
            i: Index of the member. nodes: Points that `ClosedLoop.outputs` reports.
        """
        setup = self.sweep.member(i)
        q, v = self._state(i, setup)
        controller, memory = self._started(setup, q, v)
        controller = independent_copy(controller)  # members do not share the state of a controller that keeps one
        parts = controller, setup.ground, len(memory), setup.pushes, list(nodes), setup.bodies
        loop = closed_loop(self.robot, *parts)
        return RolloutMember(loop, q, loop.initial(v, memory), self._limits(setup, q))

    @cached_property
    def first(self) -> RolloutMember:
        """Member 0."""
        return self.member(0)

    @cached_property
    def starts(self) -> InitialStates:
        """All members at the start; results that several members share are computed once.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        state_independent, rows = self._starts_without_state(), []
        states: dict[bytes, tuple[Array, Array]] = {}
        started: dict[bytes, tuple[list[float], Array, BreakTimes]] = {}
        limits: dict[bytes, list[float]] = {}
        for i in range(self.sweep.count):
            setup, setup_key = self.sweep.member(i), self.sweep.key(i)
            given = (np.asarray(x, dtype=float)[i].tobytes() for x in (self.q, self.v) if np.ndim(x) == 2)
            state_key = setup_key + b"".join(given)
            if state_key not in states:
                states[state_key] = self._state(i, setup)
            q, v = states[state_key]
            key = setup_key if state_independent else state_key
            if key not in started:
                started[key] = self._controller(i, setup, q, v)
            own, memory, (switches, update_times) = started[key]
            limits_key = setup_key + q.tobytes()
            if limits_key not in limits:
                limits[limits_key] = flatten(self._limits(setup, q))[0]
            numbers = own + flatten(setup.pushes)[0] + limits[limits_key]
            self._check_bodies(i, setup)
            state = np.concatenate([q, self.first.loop.initial(v, memory, setup.bodies)])
            rows.append((state, numbers, (switches, update_times + push_times(setup.pushes))))
        if len({(len(state), len(numbers)) for state, numbers, _ in rows}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        all_states, all_numbers, break_times = zip(*rows, strict=True)
        return InitialStates(np.array(all_states), np.array(all_numbers), break_times)

    @cached_property
    def _first_bodies(self) -> tuple[FreeBody, ...]:
        return self.sweep.member(0).bodies

    def _check_bodies(self, i: int, setup: Setup) -> None:
        """Raise TraceError if the bodies of member i have other inertias or shapes than those of member 0."""
        for body, first in zip(setup.bodies, self._first_bodies, strict=True):
            if flatten((body.inertia, body.shapes))[0] != flatten((first.inertia, first.shapes))[0]:
                raise TraceError(f"body {body.name!r} of member {i} has another inertia or shape than that of member 0")

    def _state(self, i: int, setup: Setup) -> tuple[Array, Array]:
        q, v = (x[i] if np.ndim(x) == 2 else x for x in (self.q, self.v))
        return initial_state(self.robot, setup.controller, q, v)

    def _started(self, setup: Setup, q: Any, v: Any) -> tuple[Controller, Array]:
        return adapt(setup.controller).start(self.robot, setup.ground, q, v)

    def _limits(self, setup: Setup, q: Array) -> FallLimits | None:
        return None if self.fall is None else self.fall.limits(self.robot, setup.ground, q)

    def _controller(self, i: int, setup: Setup, q: Array, v: Array) -> tuple[list[float], Array, BreakTimes]:
        """Return the numbers of controller and ground of member i, its memory and its break times without pushes."""
        controller, memory = self._started(setup, q, v)
        numbers, others = flatten((controller, setup.ground))
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        for (path, own), (_, first) in zip(others, self._others, strict=True):
            if not equal_leaves(own, first):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {path}")
        return numbers, memory, replace(self.first.loop, controller=controller, pushes=()).break_times(self.until)

    @cached_property
    def _others(self) -> list[tuple[str, Any]]:
        return flatten((self.first.loop.controller, self.first.loop.ground))[1]

    def _starts_without_state(self) -> bool:
        """Return whether the started controller is independent of the given states, found by tracing its start."""

        def start(**states: Any) -> Any:
            setup = self.sweep.member(0)
            q, v = self._state(0, setup)
            controller, memory = self._started(setup, states.get("q", q), states.get("v", v))
            for _, part in flatten((controller, setup.ground))[1]:
                if isinstance(part, Expression) or (isinstance(part, np.ndarray) and part.dtype == object):
                    raise TraceError("it depends on the state")
            return memory

        given = {"q": (self.q, self.robot.nq), "v": (self.v, self.robot.nv)}
        shapes = {name: (size,) for name, (x, size) in given.items() if np.ndim(x) == 2}
        try:
            record(lambda *arrays: start(**dict(zip(shapes, arrays, strict=True))), shapes)
        except Exception:  # tracing runs the user's code, which may raise anything
            return False
        return True


class CompiledBatch:
    """The time step of all members, traced once; numbers that differ between members are its parameters.

    Expressions of the parameters alone are evaluated once for each member, before the time loop.
    """

    def __init__(self, batch: RolloutBatch, starts: InitialStates, rule: str):
        self.batch, self.rule = batch, rule
        self.states, numbers = starts.states, starts.numbers
        self._varying = np.flatnonzero((numbers != numbers[0]).any(axis=0))
        self._template, parameters = numbers[0], numbers[:, self._varying]
        n = self.states.shape[1]
        shapes = {"clock": (3,), "parameters": (parameters.shape[1],), "state": (n,)}
        try:
            graph = simplify(record(self._step, shapes))
        finally:
            check_stateless(batch.first.loop.controller)
        self.code, self.parameters = _hoisted(graph, parameters)

    def _step(self, clock: Any, parameters: Any, state: Any) -> tuple[Array, Any]:
        own, limits = self.batch.first.loop, self.batch.first.limits
        numbers = self._numbers(parameters)
        controller, ground = unflatten((own.controller, own.ground), numbers)
        pushes, limits = unflatten(own.pushes, numbers), unflatten(limits, numbers)
        loop = replace(own, controller=controller, ground=ground, pushes=pushes)
        after, robot = advance(loop, self.rule, clock, state), self.batch.robot
        return after, 0.0 if limits is None else limits.termination_code(robot, ground, after[: robot.nq])

    def _numbers(self, parameters: Any) -> Iterator[Any]:
        """Yield the numbers of a member: constants, and parameters where members differ."""
        varying = dict(zip(self._varying.tolist(), parameters, strict=True))
        for i, value in enumerate(self._template.tolist()):
            yield varying.get(i, value)

    def largest_difference(self) -> float:
        """Return the largest relative difference between compiled and plain time steps of some members.

        The steps start near the initial states, not at them: feet that just touch the ground make the result sensitive
        to rounding where a ground law takes the square root of the depth.
        """
        rng, count, worst, h = np.random.default_rng(0), len(self.states), 0.0, 1e-4
        chosen = sorted({0, count // 2, count - 1})
        loops = [self.batch.member(i).loop for i in chosen]  # each for all times, which shows a state of its controller
        nq, times = self.batch.robot.nq, min(count, 2)  # selects the code of the rollout: for one member, or for many
        for t in (0.0, 0.1, 0.37):
            noise = 1e-3 * rng.standard_normal((len(chosen), self.states.shape[1]))
            states = np.array([self._perturbed(*pair) for pair in zip(self.states[chosen], noise, strict=True)])
            members = Members.at(np.repeat(states, times, axis=0), 1)
            schedule = Schedule(np.array([[[t, h, 1.0, 0.0]]]), np.array([0]))
            parameters = (
                self.parameters if len(self.parameters) == 1 else np.repeat(self.parameters[chosen], times, axis=0)
            )
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

    def _plain_step(self, loop: ClosedLoop, clock: Array, state: Array) -> Array:
        """Return the state of a closed loop after a step of the plain equations; NaN if they have no solution."""
        try:
            with np.errstate(all="ignore"):
                return advance(loop, self.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)


def _hoisted(graph: Graph, parameters: Array) -> tuple[TimeLoop, Array]:
    """Return the time loop of a step and its parameters, with expressions of the parameters evaluated beforehand."""
    if not parameters.shape[1]:
        return TimeLoop(graph), np.zeros((1, 0))
    preheader, body = hoist(graph, {"parameters"})
    if preheader.output_size:
        try:
            return TimeLoop(body), np.asarray(Kernel(preheader, "parameters")(parameters))
        except (NotFiniteError, SingularError):  # for one member, or in a branch that is never selected
            return TimeLoop(graph), parameters
    return TimeLoop(body), np.zeros((1, 0))


def aligned_schedule(plans: Sequence[Sequence[StepSequence]], plan_of: Array) -> Schedule:
    """Return the schedule of a batch whose members have different step sequences between the same samples.

    A member without a break time where another member has one gets an empty sequence.

    Args:
        plans: The different lists of step sequences. plan_of: Index of the list of each member, (B,), dimensionless.
    """
    intervals = [_split_at_samples(plan) for plan in plans]
    most = np.max([[len(part) for part in parts] for parts in intervals], axis=0)
    ends = np.cumsum(most)
    pieces = np.zeros((len(plans), int(ends[-1]), 4))
    for k, parts in enumerate(intervals):
        for part, end in zip(parts, ends.tolist(), strict=True):
            rows = [(p.start, p.h, p.count, p.phase) for p in part]
            pieces[k, end - len(rows) : end] = rows
    rows = np.full(int(ends[-1]), -1)
    rows[ends - 1] = np.arange(len(ends))
    return Schedule(pieces if len(plans) == 1 else pieces[plan_of], rows)


def _split_at_samples(plan: Sequence[StepSequence]) -> list[list[StepSequence]]:
    """Return the step sequences up to each sample."""
    parts: list[list[StepSequence]] = [[]]
    for sequence in plan:
        parts[-1].append(sequence)
        if sequence.sample is not None:
            parts.append([])
    return parts[:-1]
