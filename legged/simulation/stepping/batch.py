"""The members of a rollout: their setups, closed loops and initial states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from legged.compiler import FLOAT64, ElementType
from legged.compiler.ir import record
from legged.contact.rigid import FreeBody
from legged.errors import DefinitionError, LeggedError, TraceError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.configuration import integrate
from legged.robot.robot import Robot
from legged.simulation.backend import warn_of_python
from legged.simulation.checks.fall import Fall, FallLimits
from legged.simulation.controller import Controller, adapt
from legged.simulation.hidden_state import check_stateless, independent_copy
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.results.stick_figure import drawing_of
from legged.simulation.stepping.parameter_tree import Leaf, flatten
from legged.simulation.stepping.parameters import ParameterSweep, Setup
from legged.simulation.stepping.start import InitialStates, initial_state, new_loop, select_fall

Array = np.ndarray
_T = TypeVar("_T")


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


@dataclass(eq=False)
class _Start:
    """A started controller.

    Attributes:
        state: The state in which it has started, in bytes.
        loop: The closed loop. numbers: Numbers of robot, controller and ground. memory: Initial memory, (m,).
        is_free: Whether it is the same from other states; None as long as no member has needed to know.
    """

    state: bytes
    loop: ClosedLoop
    numbers: list[float]
    memory: Array
    is_free: bool | None = None


@dataclass(frozen=True, eq=False)
class RolloutBatch:
    """Robot, setups and initial states of all members.

    Attributes:
        robot: The robot.
        sweep: Setups of the members.
        q, v: Initial states as given: None, one for all members, (nq,) and (nv,), or one for each, (B, nq) and (B, nv).
        fall: When a member has fallen; None for never.
        closed: The robot with its closed kinematic loops, if it has any.
        element: Type of the numbers with which time steps are computed.
        time_constant: Time constant of the stabilization of closed loops, [s].
        is_run: Whether this is the one member of a run, whose controller is not copied: a user may read its attributes.

    Raises:
        DefinitionError: Parameters of a robot with closed loops vary.
    """

    robot: Robot
    sweep: ParameterSweep
    q: Any
    v: Any
    fall: Fall | None
    closed: ClosedRobot | None = None
    element: ElementType = FLOAT64
    time_constant: float = 0.05
    is_run: bool = False

    @classmethod
    def of(
        cls,
        robot: Robot | ClosedRobot,
        setup: tuple[Any, ...],
        state: tuple[Any, Any],
        *,
        vary: Mapping[str, Any] | None = None,
        fall: Fall | bool | None = None,
        count: int | None = None,
        element: ElementType = FLOAT64,
        **options: Any,
    ) -> RolloutBatch:
        """Return the members that the arguments of `rollout` and of `Simulation` describe; errors are those of these.

        Args:
            robot: The robot, or one with closed loops.
            setup: (controller, ground, pushes, bodies). state: (q, v) as given. vary, fall: As in `rollout`.
            count: Number of members, if it is known. element: Type of the numbers. options: The other attributes.
        """
        closed, tree = (robot, robot.robot) if isinstance(robot, ClosedRobot) else (None, robot)
        controller, ground, pushes, bodies = setup
        sizes = {"q": (state[0], tree.nq), "v": (state[1], tree.nv)}
        nominal = Setup(tree, controller, ground, tuple(pushes), tuple(bodies))
        sweep = ParameterSweep.of(nominal, vary or {}, sizes, count)
        return cls(tree, sweep, *state, select_fall(fall, tree, ground), closed, element, **options)

    def __post_init__(self) -> None:
        if self.closed is not None and self.sweep.robot_parameters.names:
            raise DefinitionError(f"robot {self.robot.name!r} has closed loops, whose parameters cannot vary")

    def member(self, i: int, nodes: Any = ()) -> RolloutMember:
        """Return member i at the start.

        Args:
            i: Index of the member. nodes: Points that `ClosedLoop.outputs` reports.
        """
        return self._member(i, *self._state(i, self.sweep.member(i)), nodes)

    def _member(self, i: int, q: Array, v: Array, nodes: Any = ()) -> RolloutMember:
        """Return member i at its start in a given state."""
        setup = self.sweep.member(i)
        controller, memory = self._started(setup, q, v)
        controller = controller if self.is_run else independent_copy(controller)  # members do not share its state
        loop = new_loop(self.closed or setup.robot, setup, controller, len(memory), q, list(nodes), self.time_constant)
        return RolloutMember(loop, q, loop.initial(v, memory), self._limits(setup, q))

    @cached_property
    def first(self) -> RolloutMember:
        """Member 0; of a run with the points that pictures show."""
        return self.member(0, drawing_of(self.robot).points if self.is_run else ())

    @cached_property
    def given_states(self) -> tuple[list[Array], list[Array]]:
        """Initial configurations, (nq,) each, and velocities, (nv,) each, of all members."""
        states: dict[bytes, tuple[Array, Array]] = {}
        q, v = [], []
        for i in range(self.sweep.count):
            given = (np.asarray(x, dtype=float)[i].tobytes() for x in (self.q, self.v) if np.ndim(x) == 2)
            key = self.sweep.key(i) + b"".join(given)
            if key not in states:
                states[key] = self._state(i, self.sweep.member(i))
            q.append(states[key][0])
            v.append(states[key][1])
        return q, v

    @cached_property
    def starts(self) -> InitialStates:
        """All members at the start.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        return self.started(range(self.sweep.count), *self.given_states)

    def starts_for(
        self,
        compiled: bool | None,
        members: Sequence[int],
        q: Sequence[Array],
        v: Sequence[Array],
        refused: str = "",
        is_partial: bool = False,
    ) -> InitialStates:
        """Return some members at the start, which may differ in more than numbers unless they have to be compiled.

        Args:
            compiled: As in `rollout`. members: Indices of the members.
            q: Their configurations, (nq,) each. v: Their velocities, (nv,) each.
            refused: Why other members differ in more than numbers, "" if they do not.
            is_partial: Whether Ctrl-C returns the members that have started, if any.

        Raises:
            TraceError: Members differ in more than numbers, although they have to be compiled.
        """
        if not refused:
            try:
                return self.started(members, q, v, is_partial)
            except TraceError as error:
                if compiled or self.element != FLOAT64:
                    raise TraceError(f"the members cannot be compiled together: {error}") from error
                refused = str(error)
                if compiled is None:
                    warn_of_python(self.first.loop, refused)
        each = (self._member(*given) for given in zip(members, q, v, strict=True))
        separate = _until_interrupt(each, is_partial)
        numbers = np.array([flatten(member.limits)[0] for member in separate]).reshape(len(separate), -1)
        states = np.array([np.concatenate([member.q, member.s]) for member in separate])
        return InitialStates(states, numbers, tuple(member.loop for member in separate), refused)

    def started(
        self, members: Sequence[int], q: Sequence[Array], v: Sequence[Array], is_partial: bool = False
    ) -> InitialStates:
        """Return some members at the start from given states; results that several members share are computed once.

        Args:
            members: Indices of the members. q: Their configurations, (nq,) each. v: Their velocities, (nv,) each.
            is_partial: As in `starts_for`.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        starts: dict[bytes, _Start] = {}
        limits: dict[bytes, list[float]] = {}
        each = (self._started_member(*given, starts, limits) for given in zip(members, q, v, strict=True))
        loops, numbers, rows = zip(*_until_interrupt(each, is_partial), strict=True)
        if len({(len(row), len(own)) for row, own in zip(rows, numbers, strict=True)}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        return InitialStates(np.array(rows), np.array(numbers).reshape(len(rows), -1), loops)

    def _started_member(
        self, i: int, q: Array, v: Array, starts: dict[bytes, _Start], limits: dict[bytes, list[float]]
    ) -> tuple[ClosedLoop, list[float], Array]:
        """Return closed loop, numbers and state [q; s], (n,), of a member, with starts and limits of members before."""
        setup, start = self.sweep.member(i), self._start(i, q, v, starts)
        key = self.sweep.key(i) + q.tobytes()
        if key not in limits:
            limits[key] = flatten(self._limits(setup, q))[0]
        self._check_bodies(i, setup)
        loop = start.loop if setup.pushes == start.loop.pushes else replace(start.loop, pushes=setup.pushes)
        numbers = start.numbers + flatten(setup.pushes)[0] + limits[key]
        return loop, numbers, np.concatenate([q, self.first.loop.initial(v, start.memory, setup.bodies)])

    def _start(self, i: int, q: Array, v: Array, starts: dict[bytes, _Start]) -> _Start:
        """Return the start of a member, shared by all members for which the start of the law is the same.

        Args:
            i: Index of the member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            starts: Starts that depend on the configuration, and receive new ones.
        """
        setup = self.sweep.key(i)
        at_q = setup + q.tobytes()
        shared = self._shared_start(self._starts, setup, {"q": q, "v": v}, i, q, v)
        shared = shared or self._shared_start(starts, at_q, {"v": v}, i, q, v)
        return shared or starts.setdefault(at_q + v.tobytes(), self._new_start(i, q, v))

    def _shared_start(
        self, starts: dict[bytes, _Start], key: bytes, free: dict[str, Array], i: int, q: Array, v: Array
    ) -> _Start | None:
        """Return the start of all members with a key; None if it depends on the states in which they differ."""
        if key not in starts:
            starts[key] = self._new_start(i, q, v)
        start, state = starts[key], q.tobytes() + v.tobytes()
        if start.state != state and start.is_free is None:
            start.is_free = self._is_free(start, free, i, q, v)
        return start if start.state == state or start.is_free else None

    @cached_property
    def _starts(self) -> dict[bytes, _Start]:
        """A start for each key of a member, whatever its state; first that of member 0."""
        first = self.first
        v, numbers = first.s[: self.robot.nv], flatten((first.loop.controller, first.loop.ground))[0]
        memory = first.loop.split(first.s).memory
        start = _Start(
            first.q.tobytes() + v.tobytes(), first.loop, [*self.sweep.robot_numbers(0).tolist(), *numbers], memory
        )
        return {self.sweep.key(0): start}

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
        return initial_state(self.closed or setup.robot, setup.controller, q, v)

    def _started(self, setup: Setup, q: Any, v: Any) -> tuple[Controller, Array]:
        return adapt(setup.controller).start(setup.robot, setup.ground, q, v)

    def limits(self, i: int, q: Array) -> FallLimits | None:
        """Return the limits beyond which a member has fallen; None without limits.

        Args:
            i: Index of the member. q: Its initial configuration, (nq,), mixed units.
        """
        return self._limits(self.sweep.member(i), q)

    @cached_property
    def varying_at_reset(self) -> list[int]:
        """Indices of the numbers of a member that depend on its initial state: limits, and parts of controllers."""
        first = self.first
        numbers = self.starts.numbers[0]
        limits = range(len(numbers) - len(flatten(first.limits)[0]), len(numbers))
        noise = 1e-2 * np.random.default_rng(0).standard_normal((2, self.robot.nv))
        q, v = integrate(self.robot, first.q, noise[0]), first.s[: self.robot.nv] + noise[1]
        try:
            moved = self.started([0], [q], [v]).numbers[0]
        except LeggedError:  # such as a state that the controller does not accept
            return [*limits]
        if len(moved) != len(numbers):
            return [*limits]
        return sorted({*limits, *np.flatnonzero(moved != numbers).tolist()})

    def _limits(self, setup: Setup, q: Array) -> FallLimits | None:
        return None if self.fall is None else self.fall.limits(setup.robot, setup.ground, q)

    def _new_start(self, i: int, q: Array, v: Array) -> _Start:
        """Start the controller of member i."""
        setup = self.sweep.member(i)
        controller, memory = self._started(setup, q, v)
        numbers, others = flatten((controller, setup.ground))
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        robots = setup.robot, self.first.loop.robot
        for leaf, first in zip(others, self._others, strict=True):
            replaced = leaf.is_declared and leaf.value is robots[0] and first.value is robots[1]
            if not replaced and not leaf.agrees(first):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {leaf.words}")
        own = {"robot": setup.robot, "controller": controller, "ground": setup.ground, "pushes": setup.pushes}
        loop = replace(self.first.loop, **own)
        return _Start(q.tobytes() + v.tobytes(), loop, [*self.sweep.robot_numbers(i).tolist(), *numbers], memory)

    @cached_property
    def _others(self) -> list[Leaf]:
        return flatten((self.first.loop.controller, self.first.loop.ground))[1]

    def _is_free(self, start: _Start, free: dict[str, Array], i: int, q: Array, v: Array) -> bool:
        """Return whether the controller of member i starts alike from any of some states, found by tracing its start.

        A law that suppresses the error of a number that is unknown, and goes on without it, is not recognized.

        Args:
            start: A start of the same controller. free: "q", "v" -> a state that is unknown in the trace.
            i: Index of the member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        setup, own = self.sweep.member(i), {"q": q, "v": v}

        def traced(*states: Array) -> Array:
            known = own | dict(zip(free, states, strict=True))
            controller, memory = self._started(setup, known["q"], known["v"])
            check_stateless((controller, setup.ground))
            numbers = [*self.sweep.robot_numbers(i).tolist(), *flatten((controller, setup.ground))[0]]
            if numbers != start.numbers or not np.array_equal(memory, start.memory):
                raise TraceError("the start depends on the state")
            return memory

        try:
            record(traced, {name: x.shape for name, x in free.items()})
        except Exception:  # tracing runs the user's code, which may raise anything
            return False
        return True


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
