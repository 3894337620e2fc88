"""The closed loops of a batch: one for each member in Python, and one in machine code for all."""

from __future__ import annotations

from collections.abc import Iterator
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
from legged.simulation.chart import normalized
from legged.simulation.closed_loop import BreakTimes, ClosedLoop
from legged.simulation.controller import Controller, adapt
from legged.simulation.disturbance import edges
from legged.simulation.fall import Fall, Limits
from legged.simulation.leaves import numbers, same, with_numbers
from legged.simulation.rigid_loop import closed_loop
from legged.simulation.simulate import initial_state
from legged.simulation.steps import stepped
from legged.simulation.variation import Setting, Variation

Array = np.ndarray


class Member(NamedTuple):
    """One member at the start: its closed loop, its state, and what it is judged by (None for nothing)."""

    loop: ClosedLoop
    q: Array
    s: Array
    limits: Limits | None


class Starts(NamedTuple):
    """All members at the start: states [q; s] (B, n), the numbers in their parts (B, m), and their corners."""

    states: Array
    numbers: Array
    break_times: tuple[BreakTimes, ...]


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
        q, v = self._state(i, setting)
        controller, memory = self._started(setting, q, v)
        parts = controller, setting.ground, len(memory), setting.pushes, list(nodes), setting.bodies
        loop = closed_loop(self.robot, *parts)
        return Member(loop, q, loop.initial(v, memory), self._limits(setting, q))

    @cached_property
    def first(self) -> Member:
        """Member 0."""
        return self.member(0)

    @cached_property
    def starts(self) -> Starts:
        """All members at the start; what is the same for several of them is worked out once.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        steady, rows = self._starts_alike(), []
        states: dict[bytes, tuple[Array, Array]] = {}
        started: dict[bytes, tuple[list[float], Array, BreakTimes]] = {}
        limits: dict[bytes, list[float]] = {}
        for i in range(self.variation.count):
            setting, who = self.variation.member(i), self.variation.key(i)
            at = who + b"".join(np.asarray(x, dtype=float)[i].tobytes() for x in (self.q, self.v) if np.ndim(x) == 2)
            if at not in states:
                states[at] = self._state(i, setting)
            q, v = states[at]
            controller = who if steady else at
            if controller not in started:
                started[controller] = self._controller(i, setting, q, v)
            mine, memory, (switches, update_times) = started[controller]
            judged = who + q.tobytes()
            if judged not in limits:
                limits[judged] = numbers(self._limits(setting, q))[0]
            found = mine + numbers(setting.pushes)[0] + limits[judged]
            self._refuse_other_bodies(i, setting)
            state = np.concatenate([q, self.first.loop.initial(v, memory, setting.bodies)])
            rows.append((state, found, (switches, update_times + edges(setting.pushes))))
        if len({(len(state), len(found)) for state, found, _ in rows}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        found_states, found, break_times = zip(*rows, strict=True)
        return Starts(np.array(found_states), np.array(found), break_times)

    @cached_property
    def _first_bodies(self) -> tuple[FreeBody, ...]:
        return self.variation.member(0).bodies

    def _refuse_other_bodies(self, i: int, setting: Setting) -> None:
        """Raise TraceError if member i's bodies differ from those of member 0 in more than how they start."""
        for mine, other in zip(setting.bodies, self._first_bodies, strict=True):
            if numbers((mine.inertia, mine.shapes))[0] != numbers((other.inertia, other.shapes))[0]:
                raise TraceError(f"body {mine.name!r} of member {i} has another inertia or shape than that of member 0")

    def _state(self, i: int, setting: Setting) -> tuple[Array, Array]:
        q, v = (x[i] if np.ndim(x) == 2 else x for x in (self.q, self.v))
        return initial_state(self.robot, setting.controller, q, v)

    def _started(self, setting: Setting, q: Any, v: Any) -> tuple[Controller, Array]:
        return adapt(setting.controller).start(self.robot, setting.ground, q, v)

    def _limits(self, setting: Setting, q: Array) -> Limits | None:
        return None if self.fall is None else self.fall.limits(self.robot, setting.ground, q)

    def _controller(self, i: int, setting: Setting, q: Array, v: Array) -> tuple[list[float], Array, BreakTimes]:
        """Return (the numbers of member i's controller and ground, its memory, its switches and instants)."""
        controller, memory = self._started(setting, q, v)
        found, others = numbers((controller, setting.ground))
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        for (place, mine), (_, first) in zip(others, self._others, strict=True):
            if not same(mine, first):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {place}")
        return found, memory, replace(self.first.loop, controller=controller, pushes=()).break_times(self.until)

    @cached_property
    def _others(self) -> list[tuple[str, Any]]:
        return numbers((self.first.loop.controller, self.first.loop.ground))[1]

    def _starts_alike(self) -> bool:
        """Return whether controllers start alike from all the states given: tried on states that are not known."""

        def start(**states: Any) -> Any:
            setting = self.variation.member(0)
            q, v = self._state(0, setting)
            controller, memory = self._started(setting, states.get("q", q), states.get("v", v))
            for _, part in numbers((controller, setting.ground))[1]:
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
        own, limits = self.batch.first.loop, self.batch.first.limits
        values = self._numbers(parameters)
        controller, ground = with_numbers((own.controller, own.ground), values)
        pushes, limits = with_numbers(own.pushes, values), with_numbers(limits, values)
        loop = replace(own, controller=controller, ground=ground, pushes=pushes)
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
            noise = 1e-3 * rng.standard_normal((len(chosen), self.states.shape[1]))
            states = np.array([self._near(*pair) for pair in zip(self.states[chosen], noise, strict=True)])
            members = Members.at(np.repeat(states, times, axis=0), 1)
            schedule = Schedule(np.array([[[t, h, 1.0, 0.0]]]), np.array([0]))
            parameters = (
                self.parameters if len(self.parameters) == 1 else np.repeat(self.parameters[chosen], times, axis=0)
            )
            self.code.run(members, parameters, schedule, threads=1)
            for k, i in enumerate(chosen):
                plain = self._plain(i, np.array([t, h, 0.0]), states[k])
                ended = members.outcome[times * k, 0] == NOT_FINITE
                if ended or not np.isfinite(plain).all():
                    worst = max(worst, 0.0 if ended and not np.isfinite(plain).all() else np.inf)
                    continue
                rate, other = ((y[nq:] - states[k, nq:]) / h for y in (members.stored[times * k, 0], plain))
                worst = max(worst, float(np.abs(rate - other).max() / (1.0 + np.abs(other).max())))
        return worst

    def _near(self, state: Array, noise: Array) -> Array:
        """Return a state near another, (n,), its quaternions of length one."""
        robot, loop = self.batch.robot, self.batch.first.loop
        q = normalized(robot, state[: robot.nq] + noise[: robot.nq])
        return np.concatenate([q, loop.perturbed(state[robot.nq :], noise[robot.nq :])])

    def _plain(self, i: int, clock: Array, state: Array) -> Array:
        """Return member i's state after a step by the plain equations; NaN where it has none."""
        try:
            with np.errstate(all="ignore"):
                return stepped(self.batch.member(i).loop, self.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)


def _hoisted(graph: Graph, parameters: Array) -> tuple[TimeLoop, Array]:
    """Return the loop over a step, and its parameters: those given, or what can be computed of them beforehand."""
    if not parameters.shape[1]:
        return TimeLoop(graph), np.zeros((1, 0))
    preheader, body = hoist(graph, {"parameters"})
    if preheader.output_size:
        try:
            return TimeLoop(body), np.asarray(Kernel(preheader, "parameters")(parameters))
        except (NotFiniteError, SingularError):  # of one member, or behind a choice that is never taken
            return TimeLoop(graph), parameters
    return TimeLoop(body), np.zeros((1, 0))
