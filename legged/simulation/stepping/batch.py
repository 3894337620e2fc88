"""The members of a rollout: one closed loop for each in Python, and one compiled time loop for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.codegen.element_type import FLOAT64, ElementType
from legged.compiler.ir.expression import Expression
from legged.compiler.ir.graph import Graph, record
from legged.compiler.passes.hoist import hoist
from legged.compiler.passes.simplify import simplify
from legged.compiler.runtime.kernel import Kernel
from legged.compiler.runtime.time_loop import NOT_FINITE, Members, Schedule, TimeLoop
from legged.contact.rigid import FreeBody
from legged.errors import DefinitionError, LeggedError, NotFiniteError, SingularError, TraceError
from legged.loops.closed_robot import ClosedRobot
from legged.robot.configuration import as_vector, integrate
from legged.robot.robot import Robot
from legged.simulation.backend import advance
from legged.simulation.chart import normalized
from legged.simulation.checks.fall import Fall, FallLimits
from legged.simulation.closed_loop import BreakTimes, ClosedLoop
from legged.simulation.controller import CommandedController, Controller, adapt, check_stateless, independent_copy
from legged.simulation.forces import push_times
from legged.simulation.integrators import StepSequence
from legged.simulation.stepping.parameters import ParameterSweep, Setup, equal_leaves, flatten, unflatten
from legged.simulation.stepping.start import initial_state, new_loop

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
    """Some members at the start.

    Attributes:
        states: States [q; s], (B, n).
        numbers: Numbers in robot, controller, ground, pushes and limits of each member, (B, m).
        loops: Closed loop of each member; members with equal loops share one.
    """

    states: Array
    numbers: Array
    loops: tuple[ClosedLoop, ...]

    def replaced(self, members: Array, others: InitialStates) -> InitialStates:
        """Return these members with the starts of some replaced.

        Args:
            members: Their indices, (k,), dimensionless. others: Their new starts.
        """
        states, numbers, loops = self.states.copy(), self.numbers.copy(), list(self.loops)
        states[members], numbers[members] = others.states, others.numbers
        for i, loop in zip(members.tolist(), others.loops, strict=True):
            loops[i] = loop
        return InitialStates(states, numbers, tuple(loops))

    def repeated(self, count: int) -> InitialStates:
        """Return the starts of `count` members: these, or the only one of these for all of them."""
        if len(self.loops) == count:
            return self
        states, numbers = (np.repeat(x, count, axis=0) for x in (self.states, self.numbers))
        return InitialStates(states, numbers, self.loops * count)

    def break_times(self, until: float) -> tuple[BreakTimes, ...]:
        """Return the break times of each member.

        Args:
            until: End time, [s].
        """
        found: dict[int, BreakTimes] = {}
        of_controllers: dict[int, BreakTimes] = {}
        for loop in self.loops:
            if id(loop) not in found:
                key = id(loop.controller)
                if key not in of_controllers:
                    of_controllers[key] = replace(loop, pushes=()).break_times(until)
                switches, others = of_controllers[key]
                found[id(loop)] = switches, others + push_times(loop.pushes)
        return tuple(found[id(loop)] for loop in self.loops)


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

    def __post_init__(self) -> None:
        if self.closed is not None and self.sweep.robot_parameters.names:
            raise DefinitionError(f"robot {self.robot.name!r} has closed loops, whose parameters cannot vary")

    def member(self, i: int, nodes: Any = ()) -> RolloutMember:
        """Return member i at the start.

        Args:
            i: Index of the member. nodes: Points that `ClosedLoop.outputs` reports.
        """
        setup = self.sweep.member(i)
        q, v = self._state(i, setup)
        controller, memory = self._started(setup, q, v)
        controller = independent_copy(controller)  # members do not share the state of a controller that keeps one
        loop = new_loop(self.closed or setup.robot, setup, controller, len(memory), q, list(nodes))
        return RolloutMember(loop, q, loop.initial(v, memory), self._limits(setup, q))

    @cached_property
    def first(self) -> RolloutMember:
        """Member 0."""
        return self.member(0)

    @cached_property
    def starts(self) -> InitialStates:
        """All members at the start.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        states: dict[bytes, tuple[Array, Array]] = {}
        q, v = [], []
        for i in range(self.sweep.count):
            given = (np.asarray(x, dtype=float)[i].tobytes() for x in (self.q, self.v) if np.ndim(x) == 2)
            key = self.sweep.key(i) + b"".join(given)
            if key not in states:
                states[key] = self._state(i, self.sweep.member(i))
            q.append(states[key][0])
            v.append(states[key][1])
        return self.started(range(self.sweep.count), q, v)

    @cached_property
    def separate_starts(self) -> InitialStates:
        """All members at the start, which may differ in more than numbers; the numbers are those of limits alone."""
        members = [self.member(i) for i in range(self.sweep.count)]
        numbers = np.array([flatten(member.limits)[0] for member in members]).reshape(len(members), -1)
        states = np.array([np.concatenate([member.q, member.s]) for member in members])
        return InitialStates(states, numbers, tuple(member.loop for member in members))

    def started(self, members: Sequence[int], q: Sequence[Array], v: Sequence[Array]) -> InitialStates:
        """Return some members at the start from given states; results that several members share are computed once.

        Args:
            members: Indices of the members. q: Their configurations, (nq,) each. v: Their velocities, (nv,) each.

        Raises:
            TraceError: Members differ in more than numbers.
        """
        loops, numbers, rows = [], [], []
        started = self._shared_starts if self._state_independent else {}
        limits: dict[bytes, list[float]] = {}
        for i, q_i, v_i in zip(members, q, v, strict=True):
            setup, setup_key = self.sweep.member(i), self.sweep.key(i)
            key = setup_key if self._state_independent else setup_key + q_i.tobytes() + v_i.tobytes()
            if key not in started:
                started[key] = self._controller(i, setup, q_i, v_i)
            loop, own, memory = started[key]
            limits_key = setup_key + q_i.tobytes()
            if limits_key not in limits:
                limits[limits_key] = flatten(self._limits(setup, q_i))[0]
            self._check_bodies(i, setup)
            loops.append(loop if setup.pushes == loop.pushes else replace(loop, pushes=setup.pushes))
            numbers.append(own + flatten(setup.pushes)[0] + limits[limits_key])
            rows.append(np.concatenate([q_i, self.first.loop.initial(v_i, memory, setup.bodies)]))
        if len({(len(row), len(own)) for row, own in zip(rows, numbers, strict=True)}) > 1:
            raise TraceError("the members' controllers hold different numbers of numbers")
        return InitialStates(np.array(rows), np.array(numbers).reshape(len(rows), -1), tuple(loops))

    @cached_property
    def _shared_starts(self) -> dict[bytes, tuple[ClosedLoop, list[float], Array]]:
        return {}

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
        if self._state_independent:
            return [*limits]
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

    def _controller(self, i: int, setup: Setup, q: Array, v: Array) -> tuple[ClosedLoop, list[float], Array]:
        """Return the closed loop of member i, the numbers of its robot, controller and ground, and its memory."""
        controller, memory = self._started(setup, q, v)
        numbers, others = flatten((controller, setup.ground))
        if len(others) != len(self._others):
            raise TraceError(f"the parts of member {i} have another shape than those of member 0")
        for (path, own), (_, first) in zip(others, self._others, strict=True):
            if not equal_leaves(own, first) and not (own is setup.robot and first is self.first.loop.robot):
                raise TraceError(f"member {i} differs from member 0 in more than numbers: {path}")
        own = {"robot": setup.robot, "controller": controller, "ground": setup.ground, "pushes": setup.pushes}
        return replace(self.first.loop, **own), [*self.sweep.robot_numbers(i).tolist(), *numbers], memory

    @cached_property
    def _others(self) -> list[tuple[str, Any]]:
        return flatten((self.first.loop.controller, self.first.loop.ground))[1]

    @cached_property
    def _state_independent(self) -> bool:
        """Whether the started controller is independent of the given states, found by tracing its start."""

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


class MemberTemplate:
    """The closed loop of any member as a function of the numbers in which members differ, which may be traced.

    Args:
        batch: The members. numbers: Numbers of all members, (B, m), mixed units and frames.
        varying: Indices of numbers that may differ later.

    Attributes:
        varying: Indices of the numbers that differ, or may.
    """

    def __init__(self, batch: RolloutBatch, numbers: Array, varying: Sequence[int] = ()):
        differs = (numbers != numbers[0]).any(axis=0)
        differs[list(varying)] = True
        self.batch, self.varying, self._nominal = batch, np.flatnonzero(differs), numbers[0]

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

    def member(self, parameters: Any, command: Any = None) -> tuple[ClosedLoop, FallLimits | None]:
        """Return the closed loop of a member and the limits beyond which it has fallen.

        Args:
            parameters: Its varying numbers, (p,), mixed units and frames.
            command: The command of its controller, (nu,), any unit; None without one.
        """
        own, limits = self.batch.first.loop, self.batch.first.limits
        numbers = self._numbers(parameters)
        vector = self.batch.sweep.robot_parameters
        robot = own.robot
        if vector.names:
            robot = vector.applied(as_vector(list(islice(numbers, vector.size))))
        controller, ground = unflatten((own.controller, own.ground), numbers, [(own.robot, robot)])
        pushes, limits = unflatten(own.pushes, numbers), unflatten(limits, numbers)
        loop = replace(own, robot=robot, controller=controller, ground=ground, pushes=pushes)
        return loop if command is None else commanded(loop, command), limits

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


class CompiledBatch:
    """The time step of all members, traced once; numbers that differ between members are its parameters.

    Expressions of the parameters alone are evaluated once for each member, before the time loop.

    Args:
        batch: The members. starts: Their closed loops and states. rule: Name of a method of `ClosedLoop`.
        command: Length of the command that the controller takes at each call, nu; None if it takes none.
        template: The members as functions of their numbers; by default of those in which they differ now.

    Attributes:
        code: The time loop; its parameters are those of the member, and then the command.
        parameters: Parameters of the time loop without command, (B, p), or (1, 0), mixed units and frames.
    """

    def __init__(
        self,
        batch: RolloutBatch,
        starts: InitialStates,
        rule: str,
        command: int | None = None,
        template: MemberTemplate | None = None,
    ):
        self.batch, self.starts, self.rule, self.command = batch, starts, rule, command
        self.template = template or MemberTemplate(batch, starts.numbers)
        own, size = starts.numbers[:, self.template.varying], starts.states.shape[1]
        shapes = {"clock": (3,), "parameters": own.shape[1:], "command": (command or 0,), "state": (size,)}
        try:
            graph = simplify(record(self._step, shapes))
        finally:
            check_stateless(batch.first.loop.controller)
        self._preheader: Kernel | None = None
        self.code, self.parameters = TimeLoop(_merged(graph), batch.element), own if own.shape[1] else np.zeros((1, 0))
        if own.shape[1]:
            preheader, body = hoist(graph, {"parameters"})
            try:
                hoisted = Kernel(preheader, "parameters") if preheader.output_size else None
                parameters = np.zeros((1, 0)) if hoisted is None else np.asarray(hoisted(own))
            except (NotFiniteError, SingularError):  # for one member, or in a branch that is never selected
                return
            self.code, self._preheader = TimeLoop(_merged(body), batch.element), hoisted
            self.parameters = parameters

    def loop_parameters(self, numbers: Array) -> Array:
        """Return the parameters of the time loop for other numbers of the members, (B, p), or (1, 0).

        Args:
            numbers: Numbers of all members, (B, m), mixed units and frames.

        Raises:
            NotFiniteError, SingularError: An expression of the parameters is not finite for a member.
        """
        if self._preheader is not None:
            return np.asarray(self._preheader(numbers[:, self.template.varying]))
        return numbers[:, self.template.varying] if self.parameters.shape[1] else self.parameters

    def _step(self, clock: Any, parameters: Any, command: Any, state: Any) -> tuple[Array, Any]:
        loop, limits = self.template.member(parameters, None if self.command is None else command)
        after, robot = advance(loop, self.rule, clock, state), self.batch.robot
        return after, 0.0 if limits is None else limits.termination_code(robot, loop.ground, after[: robot.nq])

    def largest_difference(self) -> float:
        """Return the largest relative difference between compiled and plain time steps of some members.

        The steps start near the initial states, not at them: feet that just touch the ground make the result sensitive
        to rounding where a ground law takes the square root of the depth.
        """
        all_states, size = self.starts.states, self.command or 0
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
        """Return the closed loop of member i with a copy of its controller, and a command of zeros."""
        loop = replace(self.starts.loops[i], controller=independent_copy(self.starts.loops[i].controller))
        return loop if self.command is None else commanded(loop, np.zeros(self.command))

    def _plain_step(self, loop: ClosedLoop, clock: Array, state: Array) -> Array:
        """Return the state of a closed loop after a step of the plain equations; NaN if they have no solution."""
        try:
            with np.errstate(all="ignore"):
                return advance(loop, self.rule, clock, state)
        except (NotFiniteError, SingularError):
            return np.full_like(state, np.nan)


def _merged(graph: Graph) -> Graph:
    """Return the graph of a step with the command as the last of its parameters."""
    clock, (_, (parameters,)), (_, (command,)), state = graph.inputs
    return replace(graph, inputs=(clock, ("parameters", (parameters + command,)), state))


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
