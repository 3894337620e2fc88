"""The closed loops of a batch: one for each member in Python, and one in machine code for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.errors import NotFiniteError, SingularError, TraceError
from legged.robot.robot import Robot
from legged.simulation.chart import normalised
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import adapt
from legged.simulation.fall import Fall, Limits
from legged.simulation.leaves import numbers, same, with_numbers
from legged.simulation.simulate import _initial_state
from legged.simulation.steps import stepped
from legged.simulation.variation import Variation
from legged.trace.graph import Graph, record
from legged.trace.hoist import hoist
from legged.trace.kernel import Kernel
from legged.trace.repeat import Members, Repeat, Schedule
from legged.trace.simplify import simplify

Array = np.ndarray


class Member(NamedTuple):
    """One member at the start: its closed loop, its state, and what it is judged by (None for nothing)."""

    loop: ClosedLoop
    q: Array
    s: Array
    limits: Limits | None

    @property
    def parts(self) -> tuple[Any, ...]:
        """Everything in which members may differ."""
        return self.loop.controller, self.loop.ground, tuple(self.loop.pushes), self.limits


Corners = tuple[tuple[float, ...], tuple[float, ...]]
"""Times at which a controller switches, and other times at which steps begin anew, [s]."""


def corners(loop: ClosedLoop, until: float) -> Corners:
    """Return the corners of a loop's motion."""
    edges = tuple(float(edge) for push in loop.pushes for edge in push.edges)
    return tuple(float(t) for t in loop.controller.switches(until)), edges


class Starts(NamedTuple):
    """All members at the start: states [q; s] (B, n), the numbers in their parts (B, m), and their corners."""

    states: Array
    numbers: Array
    corners: tuple[Corners, ...]


@dataclass(frozen=True, eq=False)
class Batch:
    """What there is to simulate.

    Attributes:
        robot: The robot. variation: The settings of its members.
        q, v: Initial states as given: None, of one member, or a row for each.
        fall: When a member has fallen; None for never. until: End of the runs, [s].
    """

    robot: Robot
    variation: Variation
    q: Any
    v: Any
    fall: Fall | None
    until: float

    def member(self, i: int, nodes: Any = ()) -> Member:
        """Return member i at the start, its controller started."""
        setting = self.variation.member(i)
        q, v = (x[i] if np.ndim(x) == 2 else x for x in (self.q, self.v))
        q, v = _initial_state(self.robot, setting.controller, q, v)
        controller = adapt(setting.controller)
        memory = controller.start(self.robot, setting.ground, q, v)
        loop = ClosedLoop(self.robot, controller, setting.ground, len(memory), setting.pushes, list(nodes))
        limits = None if self.fall is None else self.fall.limits(self.robot, setting.ground, q)
        return Member(loop, q, loop.initial(v, memory), limits)

    @cached_property
    def starts(self) -> Starts:
        """All members at the start.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        rows: dict[bytes, tuple[Array, Array, Corners]] = {}
        keys = [self._key(i) for i in range(self.variation.count)]
        for i, key in enumerate(keys):
            if key not in rows:
                member = self.first if i == 0 else self.member(i)
                found, others = numbers(member.parts)
                self._compare(others, i)
                state = np.concatenate([member.q, member.s])
                rows[key] = state, np.array(found), corners(member.loop, self.until)
        if len({(len(state), len(found)) for state, found, _ in rows.values()}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        states, found, marks = zip(*[rows[key] for key in keys], strict=True)
        return Starts(np.array(states), np.array(found), marks)

    @cached_property
    def first(self) -> Member:
        """Member 0."""
        return self.member(0)

    @cached_property
    def _others(self) -> list[tuple[str, Any]]:
        return numbers(self.first.parts)[1]

    def _compare(self, others: list[tuple[str, Any]], i: int) -> None:
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        for (place, mine), (_, first) in zip(others, self._others, strict=True):
            if not same(mine, first):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {place}")

    def _key(self, i: int) -> bytes:
        rows = [np.asarray(x, dtype=float)[i].tobytes() for x in (self.q, self.v) if np.ndim(x) == 2]
        return b"".join([self.variation.key(i), *rows])


class BatchLoop:
    """The step of all members, traced once: numbers in which they differ are its parameters.

    What follows from the parameters alone is computed once for each member, before the loop.
    """

    def __init__(self, batch: Batch, starts: Starts, rule: str):
        self.batch, self.rule = batch, rule
        self.states, found = starts.states, starts.numbers
        self._varying = np.flatnonzero((found != found[0]).any(axis=0))
        self._template, parameters = found[0], found[:, self._varying]
        n = self.states.shape[1]
        shapes = {"clock": (3,), "parameters": (parameters.shape[1],), "state": (n,)}
        graph = simplify(record(self._step, shapes))
        self.code, self.parameters = _hoisted(graph, parameters)

    def _step(self, clock: Any, parameters: Any, state: Any) -> tuple[Array, Any]:
        first = self.batch.first
        parts = first.parts
        if len(self._varying):
            parts = with_numbers(parts, self._numbers(parameters))
        controller, ground, pushes, limits = parts
        loop = ClosedLoop(self.batch.robot, controller, ground, first.loop.memory, pushes)
        after = stepped(loop, self.rule, clock, state)
        return after, 0.0 if limits is None else limits.verdict(self.batch.robot, ground, after[: self.batch.robot.nq])

    def _numbers(self, parameters: Any) -> Iterator[Any]:
        """Yield the numbers of a member's parts: constants, and parameters where members differ."""
        varying = dict(zip(self._varying.tolist(), parameters, strict=True))
        for i, value in enumerate(self._template.tolist()):
            yield varying.get(i, value)

    def disagreement(self) -> float:
        """Return the largest relative difference between this step and the plain one, near the start of some members.

        Near it and not at it: feet that just touch make of rounding errors what the square root of some ground laws is.
        """
        rng, count, worst, h = np.random.default_rng(0), len(self.states), 0.0, 1e-4
        chosen = sorted({0, count // 2, count - 1})
        nq, times = self.batch.robot.nq, min(count, 2)  # the same code that the rollout runs, of one or of many
        for t in (0.0, 0.1, 0.37):
            states = self.states[chosen] + 1e-3 * rng.standard_normal((len(chosen), self.states.shape[1]))
            states[:, :nq] = [normalised(self.batch.robot, q) for q in states[:, :nq]]
            members = Members.at(np.repeat(states, times, axis=0), 1)
            schedule = Schedule(np.array([[[t, h, 1.0, 0.0]]]), np.array([0]))
            parameters = (
                self.parameters if len(self.parameters) == 1 else np.repeat(self.parameters[chosen], times, axis=0)
            )
            self.code.run(members, parameters, schedule, threads=1)
            for k, i in enumerate(chosen):
                loop = self.batch.member(i).loop
                plain = stepped(loop, self.rule, np.array([t, h, 0.0]), states[k])
                rate, other = ((y[nq:] - states[k, nq:]) / h for y in (members.stored[times * k, 0], plain))
                worst = max(worst, float(np.abs(rate - other).max() / (1.0 + np.abs(other).max())))
        return worst


def _hoisted(graph: Graph, parameters: Array) -> tuple[Repeat, Array]:
    """Return the loop over a step, and its parameters: those given, or what can be computed of them beforehand."""
    if not parameters.shape[1]:
        return Repeat(graph), np.zeros((1, 0))
    before, after = hoist(graph, {"parameters"})
    if before.output_size:
        try:
            return Repeat(after), np.asarray(Kernel(before, "parameters")(parameters))
        except (NotFiniteError, SingularError):  # of one member, or behind a choice that is never taken
            return Repeat(graph), parameters
    return Repeat(after), np.zeros((1, 0))
