"""`Controller`, the interface of controllers, and `adapt`, which gives every object that users pass this interface.

Users give an object with a method `torque`, a definition with a method `start`, a callable, None, or a mapping for the
robots of a group (`ControllerLike`). `adapt` wraps it in an adapter, which has all methods: `_ControllerAdapter`,
`_FunctionController` for a callable, `_ZeroTorque` for None. `simulate`, `rollout` and `Simulation` call its `start`
at the beginning of a run; the adapter that this returns, around the started controller, is that of the closed loop.

`Simulation.step` can give a controller a *command*, an array of any meaning. It is the last argument of the methods
that take it, and `CommandedController` puts it there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from legged.arguments import shown
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError, ShapeError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.checks.law import check_definition, check_started, memory_of, of_memory, parts_of, times_of

Array = np.ndarray


class Controller(Protocol):
    """Generalized forces as a function of time, state and contact wrenches, with an optional memory.

    Only `torque` is required. The functions should be traceable: plain NumPy on arrays of floats or expressions.
    A controller with `update` needs an integrator with fixed steps. Seven more methods are optional:
    `initial_state(robot) -> (q, v)`, the start of runs without a given state;
    three that runs record: `reference(t, phase) -> (joint positions, velocities, accelerations)`, (nj,) each,
    `planned_footsteps(memory) -> places`, (n, 3), [m], world axes, NaN for feet that stand, and
    `commanded_velocity(t, memory) -> velocity`, (3,), forward and to the left, [m/s], and yaw rate, [rad/s];
    `notice(t, memory) -> text`, of which a run warns at its end, "" for nothing;
    `restart(t, q, v) -> memory`, (m,), that of a started controller that takes over; the arguments may be traced; and
    `on_closed_robot(closed) -> controller`, the definition that takes its place for a `legged.loops.ClosedRobot`.
    A controller that follows the command of `Simulation.step` has one more argument, `command`, in `torque`, and in
    `rate` and `update` if they need it; one that passes it to another controller has the property `takes_command`.

    The parameters that `rollout` and `Simulation` can vary are the fields of a dataclass, also of one inside another or
    in a tuple, list or dictionary; another class names the attributes that hold them in `parameter_names`.
    """

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Any:
        """Return (controller, memory): the controller of this run and its initial memory, (m,).

        A controller is a definition, which a run does not change. If it depends on the robot, `start` returns a new
        controller that is fitted to the robot. A controller that does not may return only the memory.

        Args:
            robot: The robot. ground: The ground, or None.
            q: Initial configuration, (nq,). v: Initial velocity, (nv,).
        """
        ...

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), or the joint forces alone, (nj,), [N m] or [N].

        Args:
            t: Time, [s]. phase: Number of `switches` that have passed.
            q: Configuration, (nq,). v: Velocity, (nv,).
            wrenches: Contact wrenches [n; f] on the links, (n_links, 6), [N m] and [N], about each link's origin in its
                axes.
            memory: State of the controller, (m,).
        """
        ...

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, (m,); arguments as in `torque`."""
        ...

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory after a discrete update, (m,); called at the start of each fixed time step.

        Arguments as in `torque`; the memory is that at the end of the last step.
        """
        ...

    def switches(self, until: float) -> Any:
        """Return the increasing times at which the reference jumps, [s], before the end of the run, `until`, [s]."""
        ...

    def update_times(self, until: float) -> Any:
        """Return the times besides `switches` at which a time step must start for `update`, [s], before `until`."""
        ...

    @property
    def has_update(self) -> bool:
        """Whether the controller has a discrete update; by default, whether it has the method `update`."""
        ...

    @property
    def takes_wrenches(self) -> bool:
        """Whether it may read the contact wrenches; a step of a scene in parts computes them for those that do."""
        ...

    @property
    def implicit_gains(self) -> tuple[Array, Array] | None:
        """Gains (K_p, K_d) of joint servos in the torques, (nj,) each, which fixed time steps integrate implicitly.

        [N m/rad] and [N m s/rad], or [N/m] and [N s/m]; optional. The torques must contain -K_p q - K_d v of the
        joints, and their reference may move. A controller that is sampled or delayed must not state gains.
        """
        ...


class TorqueLaw(Protocol):
    """An object with the one required method of `Controller`."""

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, /) -> Array:
        """Return the generalized forces, (nv,) or (nj,), [N m] or [N]; arguments as in `Controller.torque`."""
        ...


class LawDefinition(Protocol):
    """An object whose method `start` returns the controller for a robot."""

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array, /) -> Any:
        """Return (controller, memory), the memory (m,); arguments as in `Controller.start`."""
        ...


ControllerLike = TorqueLaw | LawDefinition | Callable[[Any, Array, Array, Array], Array] | Mapping[str, Any] | None
"""Controllers that `simulate` and `rollout` accept; `adapt` converts them to a `Controller`."""
CommandedFunction = Callable[[Any, Array, Array, Array, Any], Array]
"""A function (t, q, v, wrenches, command) -> torques, which `Simulation` takes as a controller."""


def _optional(name: str) -> Any:
    """Return the property of an adapter that is an attribute of its controller, or None."""
    return property(lambda adapter: getattr(adapter.controller, name, None))


class _ControllerAdapter:
    """A controller with all methods from an object with some of them.

    The methods take the command of a time step as a last argument if `takes_command`.

    Args:
        controller: The object of the user, or what its `start` has returned.
    """

    parameter_names = ("controller",)

    def __init__(self, controller: Any):
        self.controller = controller

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Controller, Array]:
        start = getattr(self.controller, "start", None)
        started = None if start is None else start(robot, ground, q, v)
        if isinstance(started, tuple) and len(started) == 2 and hasattr(started[0], "torque"):
            controller, memory = started
        else:  # `start` may return the memory alone
            controller, memory = self.controller, started
        memory = memory_of(controller, memory)
        if type(self) is _ControllerAdapter:  # subclasses are for functions and for no controller
            check_started(controller, memory)
        return type(self)(controller), memory

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        accepted = command if command and self.takes_command else ()
        declares_it = bool(getattr(self.controller, "takes_command", False))
        return _called(self.controller.torque, (t, phase, q, v, wrenches, memory), accepted, declares_it)

    @property
    def restarts(self) -> bool:
        """Whether the controller has the method `restart`."""
        return hasattr(self.controller, "restart")

    def restart(self, t: Any, q: Array, v: Array) -> Array:
        return self.controller.restart(t, q, v)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        rate: Any = getattr(self.controller, "rate", None)
        if rate is None or not len(memory):
            return 0.0 * memory
        value = _called(rate, (t, phase, q, v, wrenches, memory), command)
        return of_memory(self.controller, "rate", value, memory)

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        if not self.has_update:
            return memory
        value = _called(self.controller.update, (t, phase, q, v, wrenches, memory), command)
        return of_memory(self.controller, "update", value, memory)

    def switches(self, until: float) -> Any:
        switches = getattr(self.controller, "switches", None)
        return () if switches is None else times_of(self.controller, "switches", switches(until))

    def update_times(self, until: float) -> Any:
        update_times = getattr(self.controller, "update_times", None)
        return () if update_times is None else times_of(self.controller, "update_times", update_times(until))

    @property
    def has_update(self) -> bool:
        return bool(getattr(self.controller, "has_update", hasattr(self.controller, "update")))

    @property
    def has_clock(self) -> bool:
        """Whether `update` must run at times of its own, also if a zero-order hold around it holds the torques."""
        return bool(getattr(self.controller, "has_clock", False))

    @property
    def takes_command(self) -> bool:
        declared = getattr(self.controller, "takes_command", None)
        return any(map(takes_command, self._functions)) if declared is None else bool(declared)

    @property
    def _functions(self) -> list[Callable[..., Any]]:
        """The functions that may take a command."""
        functions = [getattr(self.controller, name, None) for name in ("torque", "rate", "update")]
        return [function for function in functions if callable(function)]

    def requires_command(self) -> bool:
        """Return whether a function of the controller has an argument `command` without a default value."""
        return any(takes_command(function, required=True) for function in self._functions)

    @property
    def takes_wrenches(self) -> bool:
        """Whether the controller may read the contact wrenches."""
        return True

    @property
    def implicit_gains(self) -> tuple[Array, Array] | None:
        return getattr(self.controller, "implicit_gains", None)

    # Methods whose results runs record or state; None where the controller lacks one.
    reference, planned_footsteps = _optional("reference"), _optional("planned_footsteps")
    commanded_velocity = _optional("commanded_velocity")
    notice = _optional("notice")


class _FunctionController(_ControllerAdapter):
    """A controller from a callable tau = controller(t, q, v, wrenches), or with a fifth argument `command`."""

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        return _called(self.controller, (t, q, v, wrenches), command)

    @property
    def _functions(self) -> list[Callable[..., Any]]:
        return [self.controller]


class _ZeroTorque(_ControllerAdapter):
    """The controller whose forces are its command, or zero without a command."""

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array, *command: Array) -> Array:
        return command[0] if command else np.zeros(len(v))

    @property
    def takes_command(self) -> bool:
        return True

    @property
    def takes_wrenches(self) -> bool:
        return False


class CommandedController:
    """A started controller together with the command of the present time step.

    Attributes:
        controller: The controller.
        command: The command, (nu,), any unit; None for a controller that takes none.
    """

    def __init__(self, controller: Any, command: Array | None):
        self.controller, self.command = controller, command

    @property
    def _commands(self) -> tuple[Array, ...]:
        return () if self.command is None else (self.command,)

    def torque(self, *arguments: Any) -> Array:
        """Return the torques under the command, (nv,) or (nj,); arguments as in `Controller.torque`."""
        return self.controller.torque(*arguments, *self._commands)

    def rate(self, *arguments: Any) -> Array:
        """Return the rate of the memory under the command, (m,); arguments as in `Controller.rate`."""
        return self.controller.rate(*arguments, *self._commands)

    def update(self, *arguments: Any) -> Array:
        """Return the memory after an update under the command, (m,); arguments as in `Controller.update`."""
        return self.controller.update(*arguments, *self._commands)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the controller."""
        if name == "controller":  # while the object is copied
            raise AttributeError(name)
        return getattr(self.controller, name)


def is_passive(controller: Any) -> bool:
    """Return whether the forces of a started controller, possibly a `CommandedController`, are zero in a time step."""
    if isinstance(controller, CommandedController):
        return controller.command is None and is_passive(controller.controller)
    return isinstance(controller, _ZeroTorque)


def _command_parameter(function: Callable[..., Any]) -> inspect.Parameter | None:
    """Return the argument `command`, or `*command`, of a function; None if it has none."""
    try:
        return inspect.signature(function).parameters.get("command")
    except (TypeError, ValueError):
        return None


def takes_command(function: Callable[..., Any], required: bool = False) -> bool:
    """Return whether a function has an argument `command`.

    Args:
        function: A controller's callable or method.
        required: Whether one that may be left out does not count: with a default value, or `*command`.
    """
    parameter = _command_parameter(function)
    if parameter is None:
        return False
    is_optional = parameter.default is not parameter.empty or parameter.kind is parameter.VAR_POSITIONAL
    return not (required and is_optional)


def _called(
    function: Callable[..., Any], arguments: tuple[Any, ...], command: tuple[Array, ...], declares_it: bool = False
) -> Any:
    """Return the result of a function of a controller, which receives the command if it takes one.

    Args:
        function: The function. arguments: Its arguments without the command. command: The command, (nu,), or none.
        declares_it: Whether it takes a command although none of its arguments has this name, as the `torque` of a
            controller with the property `takes_command` may.
    """
    parameter = _command_parameter(function) if command else None
    if parameter is None:
        return function(*arguments, *(command if declares_it else ()))
    if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
        return function(*arguments, command=command[0])
    return function(*arguments, *command)


def needs_command(controller: Any) -> bool:
    """Return whether a started controller, or one inside of it, cannot be evaluated without a command.

    Args:
        controller: An adapted controller, possibly a `CommandedController`.
    """
    if is_passive(controller) or isinstance(controller, CommandedController) or not controller.takes_command:
        return False
    return any(part.requires_command() for part in parts_of(controller) if isinstance(part, _ControllerAdapter))


def adapt(controller: Any) -> Controller:
    """Return a controller with all methods.

    Args:
        controller: An object with a method `torque` or `start`, a callable tau = controller(t, q, v, wrenches), or None
            for zero forces; for a group of robots, a mapping from the names of robots to controllers.
    """
    if controller is None:
        return _ZeroTorque(None)
    if isinstance(controller, Mapping):
        from legged.simulation.robot_controllers import RobotControllers  # needs this module

        return _ControllerAdapter(RobotControllers(controller))
    if hasattr(controller, "torque") or hasattr(controller, "start"):
        check_definition(controller)
        return _ControllerAdapter(controller)
    if callable(controller):
        return _FunctionController(controller)
    raise ArgumentError(
        "a controller is a callable (t, q, v, wrenches) -> torques or an object with a method `torque` or `start`, "
        f"got {shown(controller)}"
    )


def full_torque(robot: Robot, torque: Any) -> Array:
    """Return generalized forces (nv,), [N m] or [N], with zeros for the base if only joint forces are given.

    Args:
        robot: The robot. torque: Result of a controller, (nv,) or (nj,), [N m] or [N].

    Raises:
        ShapeError: The controller returned another shape.
    """
    try:
        torque = np.asanyarray(torque)
    except ValueError:
        torque = np.asanyarray(shown(torque))
    if torque.shape == (robot.nv,):
        return torque
    if torque.shape != (robot.nj,):
        raise ShapeError(
            f"a controller of {robot.name!r} must return ({robot.nj},) joint torques or ({robot.nv},) generalized "
            f"forces, got {f'shape {torque.shape}' if torque.ndim else shown(torque.item())}"
        )
    return np.concatenate([np.zeros(robot.base.nv), torque])
