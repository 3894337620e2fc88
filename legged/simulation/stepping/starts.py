"""The members of a batch at the start, where members share the results that are the same for them.

Starting a controller may take long, since it fits gains and plans motions. Members with equal parameters share one
start if tracing it with an unknown state shows that it does not use the state, and those with equal configurations if
it does not use the velocity; otherwise each member starts its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from legged.compiler import FLOAT64
from legged.compiler.ir import record
from legged.errors import LeggedError, TraceError
from legged.robot.configuration import integrate
from legged.simulation.backend import warn_of_python
from legged.simulation.checks.law import check_stateless
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.stepping.parameter_tree import are_equal, flatten

if TYPE_CHECKING:
    from legged.simulation.stepping.batch import RolloutBatch

Array = np.ndarray
_T = TypeVar("_T")


class InitialStates(NamedTuple):
    """Some members at the start.

    Attributes:
        states: States [q; s], (B, n).
        numbers: Numbers in robot, controller, ground, pushes and limits of each member, (B, m), in this order.
        loops: Closed loop of each member; members with equal loops share one.
        refused: Why numbers alone do not tell the members apart, so that one kernel cannot compute all of them; the
            numbers are then those of limits alone. "" if they do.
    """

    states: Array
    numbers: Array
    loops: tuple[ClosedLoop, ...]
    refused: str = ""

    def replaced(self, members: Array, others: InitialStates) -> InitialStates:
        """Return these members with the starts of some replaced, and the numbers of limits alone if others have these.

        Args:
            members: Their indices, (k,), dimensionless. others: Their new starts.
        """
        states, loops = self.states.copy(), list(self.loops)
        numbers = self.numbers[:, self.numbers.shape[1] - others.numbers.shape[1] :].copy()
        states[members], numbers[members] = others.states, others.numbers
        for i, loop in zip(members.tolist(), others.loops, strict=True):
            loops[i] = loop
        return InitialStates(states, numbers, tuple(loops), others.refused)

    def repeated(self, count: int) -> InitialStates:
        """Return the starts of `count` members: these, or the only one of these for all of them."""
        if len(self.loops) == count:
            return self
        states, numbers = (np.repeat(x, count, axis=0) for x in (self.states, self.numbers))
        return self._replace(states=states, numbers=numbers, loops=self.loops * count)


@dataclass(eq=False)
class _Start:
    """A started controller.

    Attributes:
        state: The state in which it has started, in bytes.
        loop: The closed loop. numbers: Numbers of robot, controller and ground. memory: Initial memory, (m,).
        ignores_state: Whether it is the same from other states; None as long as no member has needed to know.
    """

    state: bytes
    loop: ClosedLoop
    numbers: list[float]
    memory: Array
    ignores_state: bool | None = None


class MemberStarts:
    """The starts of the members of a batch: each distinct controller starts once if it does not use the state.

    Args:
        batch: The members.
    """

    def __init__(self, batch: RolloutBatch):
        self._batch, first = batch, batch.first
        numbers, self._others = flatten((first.loop.controller, first.loop.ground))
        state = first.q.tobytes() + first.s[: batch.robot.nv].tobytes()
        numbers = [*batch.sweep.robot_numbers(0).tolist(), *numbers]
        start = _Start(state, first.loop, numbers, first.loop.split(first.s).memory)
        self._starts = {batch.sweep.key(0): start}  # one for each key of a member, whatever its state
        self._bodies = [flatten((body.inertia, body.shapes))[0] for body in batch.sweep.member(0).bodies]

    def of(
        self,
        compiled: bool | None,
        members: Sequence[int],
        q: Array,
        v: Array,
        refused: str = "",
        is_partial: bool = False,
    ) -> InitialStates:
        """Return some members at the start, which may differ in more than numbers unless they have to be compiled.

        Args:
            compiled: As in `rollout`. members: Indices of the members. q, v: Their states, (k, nq) and (k, nv).
            refused: Why other members differ in more than numbers, "" if they do not.
            is_partial: Whether Ctrl-C returns the members that have started, if any.

        Raises:
            TraceError: Members differ in more than numbers, although they have to be compiled.
        """
        if not refused:
            try:
                return self.started(members, q, v, is_partial)
            except TraceError as error:
                if compiled or self._batch.element != FLOAT64:
                    raise TraceError(f"the members cannot be compiled together: {error}") from error
                refused = str(error)
                if compiled is None:
                    warn_of_python(self._batch.first.loop, refused)
        each = (self._batch.member_at(*given) for given in zip(members, q, v, strict=True))
        separate = _until_interrupt(each, is_partial)
        numbers = np.array([flatten(member.limits)[0] for member in separate]).reshape(len(separate), -1)
        states = np.array([np.concatenate([member.q, member.s]) for member in separate])
        return InitialStates(states, numbers, tuple(member.loop for member in separate), refused)

    def started(self, members: Sequence[int], q: Array, v: Array, is_partial: bool = False) -> InitialStates:
        """Return some members at the start from given states; results that several members share are computed once.

        Args:
            members, q, v, is_partial: As in `of`.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        batch, starts, limits = self._batch, dict[bytes, _Start](), dict[bytes, list[float]]()

        def member(i: int, q: Array, v: Array) -> tuple[ClosedLoop, list[float], Array]:
            setup, start, key = batch.sweep.member(i), self._start(i, q, v, starts), batch.sweep.key(i) + q.tobytes()
            if key not in limits:
                limits[key] = flatten(batch.limits(i, q))[0]
            for body, first in zip(setup.bodies, self._bodies, strict=True):
                if flatten((body.inertia, body.shapes))[0] != first:
                    raise TraceError(
                        f"body {body.name!r} of member {i} has another inertia or shape than that of member 0"
                    )
            loop = start.loop if setup.pushes == start.loop.pushes else replace(start.loop, pushes=setup.pushes)
            numbers = start.numbers + flatten(setup.pushes)[0] + limits[key]
            return loop, numbers, np.concatenate([q, batch.first.loop.initial(v, start.memory, setup.bodies)])

        each = (member(*given) for given in zip(members, q, v, strict=True))
        loops, numbers, rows = zip(*_until_interrupt(each, is_partial), strict=True)
        if len({(len(row), len(own)) for row, own in zip(rows, numbers, strict=True)}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        return InitialStates(np.array(rows), np.array(numbers).reshape(len(rows), -1), loops)

    def _start(self, i: int, q: Array, v: Array, starts: dict[bytes, _Start]) -> _Start:
        """Return the start of a member, shared by all members for which the start of the law is the same.

        Args:
            i: Index of the member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            starts: Starts that depend on the configuration, and receive new ones.
        """
        at_any, own = self._batch.sweep.key(i), q.tobytes() + v.tobytes()
        at_q = at_any + q.tobytes()
        for known, key, unknown in (self._starts, at_any, {"q": q, "v": v}), (starts, at_q, {"v": v}):
            start = known[key] = known.get(key) or self._new_start(i, q, v)
            if start.state != own and start.ignores_state is None:
                start.ignores_state = self._ignores_state(start, unknown, i, q, v)
            if start.state == own or start.ignores_state:
                return start
        return starts.setdefault(at_any + own, self._new_start(i, q, v))

    def _new_start(self, i: int, q: Array, v: Array) -> _Start:
        """Start the controller of member i."""
        setup = self._batch.sweep.member(i)
        controller, memory = self._batch.started(setup, q, v)
        numbers, others = flatten((controller, setup.ground))
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        robots = setup.robot, self._batch.first.loop.robot
        for leaf, first in zip(others, self._others, strict=True):
            replaced = leaf.is_declared and leaf.value is robots[0] and first.value is robots[1]
            if not replaced and not are_equal(leaf.value, first.value):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {leaf.words}")
        own = {"robot": setup.robot, "controller": controller, "ground": setup.ground, "pushes": setup.pushes}
        loop = replace(self._batch.first.loop, **own)
        return _Start(q.tobytes() + v.tobytes(), loop, [*self._batch.sweep.robot_numbers(i).tolist(), *numbers], memory)

    def _ignores_state(self, start: _Start, unknown: dict[str, Array], i: int, q: Array, v: Array) -> bool:
        """Return whether the controller of member i starts alike from any of some states, found by tracing its start.

        A law that suppresses the error of a number that is unknown, and goes on without it, is not recognized.

        Args:
            start: A start of the same controller. unknown: "q", "v" -> a state that is unknown in the trace.
            i: Index of the member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        setup, own = self._batch.sweep.member(i), {"q": q, "v": v}

        def traced(*states: Array) -> Array:
            known = own | dict(zip(unknown, states, strict=True))
            controller, memory = self._batch.started(setup, known["q"], known["v"])
            check_stateless((controller, setup.ground))
            numbers = [*self._batch.sweep.robot_numbers(i).tolist(), *flatten((controller, setup.ground))[0]]
            if numbers != start.numbers or not np.array_equal(memory, start.memory):
                raise TraceError("the start depends on the state")
            return memory

        try:
            record(traced, {name: x.shape for name, x in unknown.items()})
        except Exception:  # tracing runs the user's code, which may raise anything
            return False
        return True

    @cached_property
    def varying_at_reset(self) -> list[int]:
        """Indices of the numbers of a member that depend on its initial state: limits, and parts of controllers."""
        batch, first, (q, v) = self._batch, self._batch.first, self._batch.given_states
        numbers = self.started([0], q[:1], v[:1]).numbers[0]
        limits = range(len(numbers) - len(flatten(first.limits)[0]), len(numbers))
        noise = 1e-2 * np.random.default_rng(0).standard_normal((2, batch.robot.nv))
        q, v = integrate(batch.robot, first.q, noise[0]), first.s[: batch.robot.nv] + noise[1]
        try:
            moved = self.started([0], q[None], v[None]).numbers[0]
        except LeggedError:  # such as a state that the controller does not accept
            return [*limits]
        if len(moved) != len(numbers):
            return [*limits]
        return sorted({*limits, *np.flatnonzero(moved != numbers).tolist()})


def _until_interrupt(results: Iterator[_T], is_partial: bool) -> list[_T]:
    """Return results as a list; if `is_partial`, Ctrl-C ends it early unless it is empty."""
    known = list[_T]()
    try:
        for result in results:
            known.append(result)
    except KeyboardInterrupt:
        if not (is_partial and known):
            raise
    return known
