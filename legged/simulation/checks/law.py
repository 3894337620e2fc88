"""Checks of control laws: the arguments and results of their methods, and state that is not in their memory.

A law may keep a state of its own, such as the attributes of a filter. `independent_copy` separates it, and a trace may
leave expressions in it, which `check_stateless` finds.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from legged.arguments import array, real_array, shown
from legged.compiler import Expression, Kernel
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError, ShapeError, TraceError
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray
_OF_STATE = ("t", "phase", "q", "v", "wrenches", "memory")
_ARGUMENTS = {
    "start": ("robot", "ground", "q", "v"),
    "torque": _OF_STATE,
    "rate": _OF_STATE,
    "update": _OF_STATE,
    "switches": ("until",),
    "update_times": ("until",),
    "initial_state": ("robot",),
    "reference": ("t", "phase"),
    "planned_footsteps": ("memory",),
    "commanded_velocity": ("t", "memory"),
    "notice": ("t", "memory"),
}


def check_definition(law: Any) -> None:
    """Raise an error if a law cannot be started with the arguments of `Controller`, or is a class.

    Args:
        law: The law.

    Raises:
        ArgumentError: A method takes other arguments; `parameter_names` names an attribute that the law has not.
    """
    if isinstance(law, type):
        raise ArgumentError(f"a controller must be an object, got the class {law.__name__}: write {law.__name__}(...)")
    _check_methods(law, ("start", "initial_state"))
    kind = type(law)
    names = getattr(kind, "parameter_names", ())
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"{kind.__name__}.parameter_names must be names of attributes, as in ('kp',), got {shown(names)}"
        )
    for name in names:
        if not hasattr(law, name):
            raise ArgumentError(f"{kind.__name__}.parameter_names names {name!r}, an attribute that the law has not")


def check_started(law: Any, memory: Array) -> None:
    """Raise an error if a method of a started law cannot be called with the arguments of `Controller`.

    The methods `torque`, `rate` and `update` may have one more argument, `command`.

    Args:
        law: The law. memory: Its initial memory, (m,), any unit.

    Raises:
        ArgumentError: A method takes other arguments, or `torque` is missing.
    """
    if not hasattr(law, "torque"):
        raise ArgumentError(
            f"{type(law).__name__} needs a method `torque`, or a method `start` that returns (controller, memory) with "
            "a controller that has one"
        )
    _check_methods(law, [name for name in _ARGUMENTS if name != "start" and (name != "rate" or len(memory))])


def _check_methods(law: Any, names: Iterable[str]) -> None:
    for name in names:
        if (method := getattr(law, name, None)) is not None:
            _check_method(law, name, method, _ARGUMENTS[name])


def _check_method(law: Any, name: str, method: Any, arguments: tuple[str, ...]) -> None:
    words = f"{type(law).__name__}.{name}"
    if not callable(method):
        raise ArgumentError(f"{words} must be a method {name}({', '.join(arguments)}), got {shown(method)}")
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # of a function without a signature, such as one of an extension module
        return
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "command"]
    if name == "torque" and len(own) == len(signature.parameters) and _declares_command(law):
        arguments = (*arguments, "command")
    try:
        signature.replace(parameters=own).bind(*arguments)
    except TypeError as error:
        raise ArgumentError(
            f"{words} must be callable as {name}({', '.join(arguments)}): {error}; it takes {signature}"
        ) from None


def _declares_command(law: Any) -> bool:
    """Return whether a law says that it takes a command, although no function of it may have such an argument."""
    if not getattr(law, "takes_command", False):
        return False
    functions = [getattr(law, name, None) for name in ("rate", "update")]
    return not any(callable(f) and "command" in inspect.signature(f).parameters for f in functions)


def memory_of(law: Any, memory: Any) -> Array:
    """Return the initial memory of a law, (m,), any unit.

    Args:
        law: The law. memory: What `start` has returned as the memory, or None.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: It is no array of finite numbers (m,).
    """
    if memory is None:
        return np.zeros(0)
    name = f"{type(law).__name__}.start must return its memory or (controller, memory); the memory"
    return np.asarray(array(name, memory, (None,)), dtype=float)


def of_memory(law: Any, method: str, value: Any, memory: Array) -> Array:
    """Check the result of `rate` or `update` of a law, and return it as an array, (m,), any unit.

    Args:
        law: The law. method: Name of the method. value: What it returned. memory: The memory, (m,), any unit.

    Raises:
        ArgumentError, ShapeError: It is no array as long as the memory.
    """
    value = value if isinstance(value, np.ndarray) else _as_array(f"{type(law).__name__}.{method}", value)
    if value.shape != memory.shape:
        raise ShapeError(
            f"{type(law).__name__}.{method} must return an array {memory.shape}, as long as the memory that `start` "
            f"returns, got shape {value.shape}"
        )
    return value


def times_of(law: Any, method: str, value: Any) -> tuple[float, ...]:
    """Check the result of `switches` or `update_times` of a law, and return the times, [s].

    Args:
        law: The law. method: Name of the method. value: What it returned.

    Raises:
        ArgumentError, ShapeError: It is no list of increasing times.
    """
    name = f"the times of {type(law).__name__}.{method}"
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise ArgumentError(f"{name} must be a list of times, () for none, got {shown(value)}")
    times = real_array(name, list(value))
    if times.ndim != 1 or not (np.diff(times) >= 0.0).all() or np.isnan(times).any():
        raise ArgumentError(f"{name} must increase, a list (n,), got {shown(value)}")
    return tuple(times.tolist())


def state_of(law: Any, value: Any) -> tuple[Any, Any]:
    """Check that `initial_state` of a law has returned a pair (q, v), and return it, (nq,) and (nv,), mixed units.

    Args:
        law: The law. value: What it returned.

    Raises:
        ArgumentError: It is no pair.
    """
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{type(law).__name__}.initial_state must return (q, v), got {shown(value)}")
    return value[0], value[1]


def reference_of(reference: Any, value: Any, nj: int) -> Array:
    """Check the result of `reference` of a law, and return its joint positions, (nj,), [rad] or [m].

    Args:
        reference: The method. value: What it returned. nj: Number of joint coordinates.

    Raises:
        ArgumentError, ShapeError: It does not begin with an array (nj,).
    """
    name = f"{type(getattr(reference, '__self__', reference)).__name__}.reference"
    if not isinstance(value, tuple | list | np.ndarray) or not len(value):
        raise ArgumentError(f"{name} must return (joint positions, velocities, accelerations), got {shown(value)}")
    positions = real_array(f"the joint positions of {name}", value[0])
    if positions.shape != (nj,):
        raise ShapeError(f"the joint positions of {name} must be ({nj},), got shape {positions.shape}")
    return positions


def footsteps_of(planned: Any, value: Any) -> Array:
    """Check the result of `planned_footsteps` of a law, and return it as an array, (n, 3), [m], world axes.

    Args:
        planned: The method. value: What it returned.

    Raises:
        ArgumentError, ShapeError: It is no array of places.
    """
    name = f"{type(getattr(planned, '__self__', planned)).__name__}.planned_footsteps"
    places = real_array(f"the places of {name}", value)
    if places.ndim != 2 or places.shape[1] != 3:
        raise ShapeError(f"the places of {name} must be (n, 3), got shape {places.shape}")
    return places


def commanded_of(commanded: Any, value: Any) -> Array:
    """Check the result of `commanded_velocity` of a law, and return it: [m/s], [m/s] and [rad/s], (3,), heading axes.

    Args:
        commanded: The method. value: What it returned.

    Raises:
        ArgumentError, ShapeError: It is no array (3,) of finite numbers.
    """
    name = f"{type(getattr(commanded, '__self__', commanded)).__name__}.commanded_velocity"
    velocity = real_array(f"the velocity of {name}", value)
    if velocity.shape != (3,):
        raise ShapeError(f"the velocity of {name} must be (3,), got shape {velocity.shape}")
    if not np.isfinite(velocity).all():
        raise ArgumentError(f"the velocity of {name} must be finite, got {velocity}")
    return velocity


def gains_of(value: Any, sizes: tuple[int, int]) -> tuple[Array, Array]:
    """Check the `implicit_gains` of a law, and return them, (K_p, K_d), each of one of the shapes (nj,) and (nv,).

    Args:
        value: What the law states. sizes: nj and nv.

    Raises:
        ArgumentError, ShapeError: It is no pair of such arrays.
    """
    name = "implicit_gains of a law"
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ArgumentError(f"{name} must be a pair of arrays (K_p, K_d), got {shown(value)}")
    gains = [gain if isinstance(gain, np.ndarray) else _as_array(name, gain) for gain in value]
    for gain in gains:
        if gain.shape not in [(size,) for size in sizes]:
            raise ShapeError(f"{name} must be arrays ({sizes[0]},), one entry per joint, got shape {gain.shape}")
    return gains[0], gains[1]


def _as_array(name: str, value: Any) -> Array:
    try:
        return np.asanyarray(array(f"the result of {name}", value))
    except (ArgumentError, ShapeError):
        raise ArgumentError(f"{name} must return an array of numbers, got {shown(value)}") from None


def independent_copy(controller: Any) -> Any:
    """Return a copy of a controller whose own state, such as a filter's attributes, is separate from the original's.

    Robots, grounds, terrains and compiled kernels are shared. Functions and the variables that they have captured are
    not copied. A controller that cannot be copied is returned itself.

    Args:
        controller: Any controller.
    """
    kinds = (Robot, Kernel, Ground, Rigid)
    shared = {id(part): part for part in parts_of(controller) if isinstance(part, kinds) or _is_terrain(part)}
    try:
        return copy.deepcopy(controller, shared)
    except Exception:  # a user's class may refuse to be copied in any way
        return controller


def _is_terrain(part: Any) -> bool:
    """Return whether an object has the interface of `legged.ground.Terrain`."""
    return not isinstance(part, type) and all(callable(getattr(part, name, None)) for name in ("height", "normal"))


def check_stateless(controller: Any) -> None:
    """Raise TraceError if a controller that has been traced has stored expressions of the trace in its own state.

    Args:
        controller: Any controller.
    """
    if any(isinstance(part, Expression) for part in parts_of(controller)):
        raise TraceError("the controller changes a state of its own, not only its memory")


def parts_of(controller: Any) -> Iterator[Any]:
    """Yield all objects in a controller: attributes, entries, and variables that functions have captured.

    Args:
        controller: Any controller.
    """
    visited: dict[int, Any] = {}
    pending = [controller]
    while pending:
        part = pending.pop()
        if id(part) in visited:
            continue
        visited[id(part)] = part
        yield part
        if isinstance(part, (list, tuple)):
            pending.extend(part)
        elif isinstance(part, np.ndarray) and part.dtype == object:
            pending.extend(part.ravel().tolist())
        elif isinstance(part, dict):
            pending.extend(part.values())
        elif isinstance(part, FunctionType):
            pending.extend(cell.cell_contents for cell in part.__closure__ or () if _is_filled(cell))
        elif isinstance(part, MethodType):
            pending.append(part.__self__)
        elif not isinstance(part, (type, ModuleType, Robot, Kernel, Expression)):
            pending.extend(getattr(part, "__dict__", {}).values())


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # the variable has no value yet
        return False
    return True
