"""The members of a batch: their setups, closed loops and initial states, and `MemberTemplate` for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import as_array
from legged.compiler import FLOAT64, ElementType, Kernel, trace
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.arguments import read
from legged.errors import DefinitionError, SimulationWarning, TraceError, warn_caller
from legged.ground.ground import Ground, refuse_round_feet
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import independent_first
from legged.loops.dynamics import Stabilization
from legged.robot.configuration import as_vector
from legged.robot.construction.singular import SINGULAR, singular_at
from legged.robot.robot import Robot
from legged.simulation.backend import energies
from legged.simulation.checks.fall import Fall, FallLimits, can_fall
from legged.simulation.checks.law import check_definition, independent_copy, state_of
from legged.simulation.controller import Controller, adapt, needs_command
from legged.simulation.forces import check_range
from legged.simulation.loop.closed_chains import ClosedChainLoop, ClosedRigidLoop, check_closed
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import External, check_wrenches
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.robot_controllers import RobotControllers
from legged.simulation.stepping.parameter_tree import unflatten
from legged.simulation.stepping.parameters import ParameterSweep, Setup
from legged.simulation.stepping.starts import MemberStarts

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
        is_run: Whether this is the one member of a run: its q and v come from `initial_state`, and its controller is
            not copied, since a user may read its attributes.

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
        q, v = (x if x is None else as_array(name, x) for name, x in zip("qv", state, strict=True))
        sizes = {"q": (q, tree.nq), "v": (v, tree.nv)}
        nominal = Setup(tree, controller, ground, tuple(pushes), tuple(bodies))
        sweep = ParameterSweep.of(nominal, vary or {}, sizes, count)
        return cls(tree, sweep, q, v, select_fall(fall, tree, ground), closed, element, **options)

    def __post_init__(self) -> None:
        if self.closed is not None and self.sweep.robot_parameters.names:
            raise DefinitionError(f"robot {self.robot.name!r} has closed loops, whose parameters cannot vary")

    def member(self, i: int) -> RolloutMember:
        """Return member i at the start."""
        return self.member_at(i, *self._state(i))

    def member_at(self, i: int, q: Array, v: Array) -> RolloutMember:
        """Return member i at its start in a given state.

        Args:
            i: Index of the member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        setup = self.sweep.member(i)
        controller, memory = self.started(setup, q, v)
        controller = controller if self.is_run else independent_copy(controller)  # members do not share its state
        parts = setup.robot, controller, setup.ground, len(memory), setup.pushes
        if self.closed is None:
            loop = closed_loop(*parts, setup.bodies)
        elif isinstance(setup.ground, Rigid):
            loop = ClosedRigidLoop(*parts, setup.bodies, closed=independent_first(self.closed, q))
        else:
            own = {"closed": independent_first(self.closed, q), "stabilization": Stabilization(self.time_constant)}
            loop = ClosedChainLoop(*parts, **own)
        return RolloutMember(loop, q, loop.initial(v, memory), self.limits(i, q))

    @cached_property
    def first(self) -> RolloutMember:
        """Member 0."""
        first = self.member(0)
        smallest, words = singular_at(first.loop.robot, first.q) if self.closed is None else (1.0, "")
        if words and smallest <= SINGULAR:
            raise DefinitionError(f"in the initial configuration {words}")
        if words:
            warn_caller(f"forces may need very short steps: {words}", SimulationWarning)
        return first

    @cached_property
    def given_states(self) -> tuple[Array, Array]:
        """Initial configurations, (B, nq), and velocities, (B, nv), of all members."""
        known: dict[bytes, tuple[Array, Array]] = {}
        keys = [self.sweep.key(i) for i in range(self.sweep.count)]
        for x in (self.q, self.v):
            if np.ndim(x) == 2:
                keys = [key + row.tobytes() for key, row in zip(keys, np.asarray(x, dtype=float), strict=True)]
        states = [known.get(key) or known.setdefault(key, self._state(i)) for i, key in enumerate(keys)]
        q, v = (np.array(column) for column in zip(*states, strict=True))
        return q, v

    @cached_property
    def starts(self) -> MemberStarts:
        """The starts of members from any states."""
        return MemberStarts(self)

    def started(self, setup: Setup, q: Any, v: Any) -> tuple[Controller, Array]:
        """Return the started controller of a member, and its memory, (m,).

        Args:
            setup: The member. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
        """
        return adapt(_on_closed(setup.controller, self.closed)).start(setup.robot, setup.ground, q, v)

    def limits(self, i: int, q: Array) -> FallLimits | None:
        """Return the limits beyond which member i has fallen, see `Fall.limits`; None without limits."""
        setup = self.sweep.member(i)
        return None if self.fall is None else self.fall.limits(setup.robot, setup.ground, q)

    def check_command(self) -> None:
        """Raise DefinitionError if the controller needs a command, which `simulate` and `rollout` do not give."""
        if needs_command(self.first.loop.controller):
            raise DefinitionError(
                "the controller takes a command, which Simulation.step gives: use legged.Simulation(...), a default "
                "value of the argument `command`, or controllers.CommandedLaw(law, command), whose command is a "
                "function of time"
            )

    def _state(self, i: int) -> tuple[Array, Array]:
        """Return the initial configuration, (nq,), and velocity, (nv,), of member i."""
        if self.is_run:
            return self.q, self.v
        setup, (q, v) = self.sweep.member(i), (x[i] if np.ndim(x) == 2 else x for x in (self.q, self.v))
        return initial_state(self.closed or setup.robot, setup.controller, q, v)


class MemberTemplate:
    """The closed loop of any member as a function of the numbers in which members differ, which may be traced.

    Args:
        batch: The members. numbers: Numbers of all members, (B, m), mixed units and frames.
        varying: Indices of numbers that may differ later although they are equal now.

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
        self._methods: dict[str, Kernel] = {}

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
        """Return the closed loop of a member, and the limits beyond which it has fallen, from its varying numbers."""
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
        """Return the kernel of a function of the closed loop of a member; its first argument is the varying numbers.

        Args:
            function: Function of the closed loop and further arguments. name: Name of the kernel.
            dtype: Type of the numbers. shapes: Shape of each further argument.
        """
        graph = trace(
            lambda parameters, *others: function(self.member(parameters)[0], *others),
            {"parameters": (len(self.varying),), **shapes},
        )
        return Kernel(graph, name, dtype=dtype)

    def method(self, name: str, **shapes: int | tuple[int, ...]) -> Kernel:
        """Return the kernel of a method of the closed loop, see `kernel`; it is traced at the first call."""
        if name not in self._methods:
            own = {key: (shape,) if isinstance(shape, int) else shape for key, shape in shapes.items()}
            self._methods[name] = self.kernel(lambda loop, *state: getattr(loop, name)(*state), name, **own)
        return self._methods[name]

    def _numbers(self, parameters: Any) -> Iterator[Any]:
        """Yield the numbers of a member: constants, and parameters where members differ."""
        varying = dict(zip(self.varying.tolist(), parameters, strict=True))
        for i, value in enumerate(self._nominal.tolist()):
            yield varying.get(i, value)
        raise TraceError("the closed loop has more numbers than at its start; is one computed at its first use?")


def select_fall(fall: Fall | bool | None, robot: Robot, ground: Ground | Rigid | None) -> Fall | None:
    """Return when a robot has fallen, None for never; by default `Fall()` for a robot with a free base on a ground."""
    if fall is None:
        fall = can_fall(robot, ground)
    return fall if isinstance(fall, Fall) else Fall() if fall else None


def initial_state(robot: Robot | ClosedRobot, controller: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the initial configuration (nq,) and velocity (nv,) of a run, which satisfy the constraints of loops.

    Args:
        robot: The robot. controller: The controller, whose `initial_state(robot)` is the default.
        q: Configuration, (nq,), or None. v: Velocity, (nv,), or None for rest.

    Raises:
        LoopError: The state does not satisfy the loop constraints.
    """
    closed, tree = (robot, robot.robot) if isinstance(robot, ClosedRobot) else (None, robot)
    controller = RobotControllers(controller) if isinstance(controller, Mapping) else _on_closed(controller, closed)
    if q is None and hasattr(controller, "initial_state"):
        check_definition(controller)
        q, planned = state_of(controller, controller.initial_state(tree))
        v = planned if v is None else v
    elif q is None:
        q = tree.neutral() if closed is None else assemble(closed, tree.neutral())
    q, v = read(tree, q=q, v=np.zeros(tree.nv) if v is None else v)
    check_range(tree, q)
    if closed is not None:
        check_closed(closed, q, v)
    return q, v


def _on_closed(controller: Any, closed: ClosedRobot | None) -> Any:
    """Return the controller of a robot, which for one with closed loops may be another, see `Controller`."""
    return controller.on_closed_robot(closed) if closed and hasattr(controller, "on_closed_robot") else controller


def closed_loop(
    robot: Robot,
    controller: Controller,
    ground: Ground | Rigid | None,
    memory: int,
    pushes: Sequence[External],
    bodies: Sequence[FreeBody],
) -> ClosedLoop:
    """Return a `RigidLoop` on rigid ground, otherwise a `ClosedLoop`, of a robot without closed kinematic loops.

    Args:
        robot, controller, ground, pushes: Fields of the closed loop, see `ClosedLoop`.
        memory: Length of the controller's memory. bodies: Free bodies.

    Raises:
        UnknownNameError: An external wrench acts on no link or body.
    """
    if pushes:
        check_wrenches(pushes, robot, bodies)
    if isinstance(ground, Ground):
        refuse_round_feet(robot)
    parts = robot, controller, ground, memory, pushes
    return RigidLoop(*parts, bodies) if isinstance(ground, Rigid) else ClosedLoop(*parts)
