"""`compile`, `count` and `depth` of a function of a robot and arrays; kernels with robot parameters as inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, overload

import numpy as np

from legged.arguments import instance, real_array, shown
from legged.compiler.ir.graph import Graph, Shape, record
from legged.compiler.ir.pass_times import CompilationReport
from legged.compiler.ir.tracer import gc_paused
from legged.compiler.layouts import layouts
from legged.compiler.passes.counting import Counts
from legged.compiler.passes.pipeline import run_passes, trace
from legged.compiler.runtime.kernel import Kernel
from legged.errors import ArgumentError, TraceError, UnknownNameError

PARAMETERS = "parameters"
"""Name of the last argument."""


class ParametricKernel(Kernel[..., Any]):
    """A kernel whose last argument `parameters` holds numbers of the robot, which are checked at each call.

    Args:
        graph, name, meanings, target, dtype: As in `Kernel`.
        parameters: The robot's parameters, a `legged.robot.construction.parameters.ParameterVector`.

    Attributes:
        parameters: The robot's parameters; `parameters.names` is the order of the entries of the last argument.

    Raises:
        InertiaError, DefinitionError, NotFiniteError: On a call with parameters that no robot has.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        meanings: Mapping[str, str] | None,
        parameters: Any,
        target: str | None = None,
        dtype: Any = None,
    ):
        self.parameters = parameters
        super().__init__(graph, name, meanings, target, dtype)
        self._unchecked = type(self).__call__ if self._has_entry_point else self.general
        # `Kernel` has put its entry point in place of `__call__`.
        object.__setattr__(self, "__class__", ParametricKernel)

    def __reduce__(self) -> tuple[Any, ...]:
        meanings = {a.name: a.meaning for a in self.arguments}
        arguments = self.graph, self.name, meanings, self.parameters, self.target, self.dtype.name
        return ParametricKernel, arguments, {"layouts": self.layouts}

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Return the result of the function; arguments as in `Kernel`.

        Args:
            arrays: The arguments, (..., *shape), any unit and frame. named: Arguments by name, `out` and `threads`.
        """
        numbers = arrays[-1] if len(arrays) == len(self.arguments) else named.get(PARAMETERS)
        if numbers is not None:
            values = real_array(PARAMETERS, numbers)
            if values.shape[-1:] == self.shapes[-1]:  # otherwise the kernel raises ShapeError
                self.parameters.check(values.astype(float))
        return self._unchecked(*arrays, **named)


Robot = TypeVar("Robot")
P = ParamSpec("P")
R = TypeVar("R")


class StandardArgument(NamedTuple):
    """An argument with a conventional name: its shape for a robot, and the meaning of its entries in words."""

    shape: Callable[[Any], Shape]
    meaning: str


_POSITION = StandardArgument(lambda robot: (robot.nq,), "one entry per position coordinate")
_MOTION = StandardArgument(lambda robot: (robot.nv,), "one entry per degree of freedom")
_JOINTS = StandardArgument(lambda robot: (robot.nv - robot.base.nv,), "one entry per joint coordinate")
_SCALAR = StandardArgument(lambda robot: (), "")

ARGUMENTS: dict[str, StandardArgument] = {
    **dict.fromkeys(("q", "start", "end"), _POSITION),
    **dict.fromkeys(("v", "qd", "vdot", "qdd", "acceleration", "tau", "force", "forces", "dq"), _MOTION),
    **dict.fromkeys(("joint_positions", "joint_rates", "joint_accelerations", "joint_torques"), _JOINTS),
    **dict.fromkeys(("t", "time", "phase"), _SCALAR),
    "wrenches": StandardArgument(lambda robot: (len(robot.links), 6), "one row [n; f] per link"),
}
"""Conventional names of arguments, whose shapes follow from the robot."""


@overload
def compile(
    function: Callable[P, R],
    robot: None = None,
    *,
    target: Any = None,
    dtype: Any = None,
    report: bool = False,
    **shapes: Any,
) -> Kernel[P, R]: ...
@overload
def compile(
    function: Callable[..., R],
    robot: Any,
    *,
    parameters: Sequence[str],
    target: Any = None,
    dtype: Any = None,
    report: bool = False,
    **shapes: Any,
) -> Kernel[..., R]: ...
@overload
def compile(
    function: Callable[Concatenate[Robot, P], R],
    robot: Robot,
    *,
    target: Any = None,
    dtype: Any = None,
    report: bool = False,
    **shapes: Any,
) -> Kernel[P, R]: ...
@gc_paused()
def compile(
    function: Callable[..., Any],
    robot: Any = None,
    *,
    parameters: Any = None,
    target: Any = None,
    dtype: Any = None,
    report: bool = False,
    **shapes: Any,
) -> Kernel:
    """Return function(robot, *arrays) compiled to machine code, as a kernel that is called with the arrays.

        forward = legged.compile(legged.forward_dynamics, robot)
        vdot = forward(q, v, tau)

    The function is called once, with traced values. The shapes of its arguments follow from conventional names, `q`,
    `v`, `tau` and the others in `ARGUMENTS`; shapes of other arguments are keywords, `gain=(12,)`. An argument with a
    default value keeps it unless its shape is given; `True` stands for the conventional shape: `wrenches=True`.
    Machine code is cached on disk (docs/explanation/caching.md).

    Numbers of the robot can be inputs too:

        forward = legged.compile(legged.forward_dynamics, robot, parameters=["trunk.mass", "trunk.center"])
        vdot = forward(q, v, tau, parameters=[12.0, 0.0, 0.0, 0.01])

    Args:
        function: Plain NumPy code that does not branch on values, except by `legged.where`.
        robot: Its first argument, a `legged.Robot` or `legged.loops.ClosedRobot`; None for a function of arrays alone.
        parameters: Names of numbers of the robot, see `Robot.parameters`. The kernel has a last argument `parameters`
            with their entries one after the other, (n,), and checks them at each call as the robot's definition does.
        target: Processor for which to compile: "sse2", "avx2" (with FMA), "avx512" or "neon", or "native" for all
            features of this one; by default what the environment variable LEGGED_TARGET names, or "native". Results of
            different targets agree up to rounding. Anything but a text is the shape of an argument of this name.
        dtype: Type of the numbers that the code computes with and returns: "float64", the default, or "float32", for
            batches of about twice the speed with 7 digits (docs/howto/speed.md). Arguments of another type are rounded
            to it, which takes a copy. Anything but a text or a type is the shape of an argument of this name.
        report: Print a table of the compiler's passes with their operations and processor times.
        shapes: Shapes that do not follow from names; () for a scalar, a number of entries for a vector.

    Raises:
        TraceError: If a shape is missing, or the function contains an operation that cannot be traced.
        UnknownNameError: If a shape is given for an argument that the function does not have, or for an unknown
            parameter.
        DefinitionError: If a parameter is given twice.
        TargetError: If the target is unknown, or this processor does not have it.
        PrecisionError: If the type is another one, or has too few digits for the index of a table of the function.
    """
    if dtype is not None and not isinstance(dtype, (str, type, np.dtype)):
        shapes, dtype = {**shapes, "dtype": dtype}, None
    if target is not None and not isinstance(target, str):
        shapes, target = {**shapes, "target": target}, None
    if instance("report", report, bool):
        with CompilationReport() as times:
            kernel = compile(function, robot, parameters=parameters, target=target, dtype=dtype, **shapes)
        print(times)
        return kernel
    kernel = _kernel(function, robot, parameters, target, dtype, shapes)
    _ = kernel.code  # compiled here, not at the first call
    return kernel


@gc_paused()
def compile_ahead(function: Callable[..., Any], robot: Any = None, **shapes: Any) -> Kernel:
    """Return the kernel of `compile`, which another thread compiles if a processor is free, else its first call.

    Args:
        function, robot, shapes: As in `compile`.
    """
    kernel = _kernel(function, robot, None, None, None, shapes)
    kernel.load_ahead()
    return kernel


def _kernel(
    function: Callable[..., Any], robot: Any, parameters: Any, target: Any, dtype: Any, shapes: dict[str, Any]
) -> Kernel:
    """Return the kernel of `compile` without its code."""
    names, shapes = _parameter_names(function, robot, parameters, shapes)
    shapes = _shapes(function, robot, shapes)
    vector = robot.parameter_vector(names) if names else None
    graph = _traced(trace, function, robot, shapes, vector)
    name, meanings = _name(function), _meanings(graph, robot)
    if vector is None:
        kernel = Kernel(graph, name, meanings, target, dtype)
    else:
        meanings[PARAMETERS] = f"the entries of {', '.join(names)}"
        kernel = ParametricKernel(graph, name, meanings, vector, target, dtype)
    if robot is not None:
        kernel.layouts |= layouts(robot, name, list(shapes), len(graph.outputs))
    return kernel


def _meanings(graph: Graph, robot: Any) -> dict[str, str]:
    return {name: ARGUMENTS[name].meaning for name, _ in graph.inputs if robot is not None and name in ARGUMENTS}


@gc_paused()
def count(function: Callable[..., Any], robot: Any = None, *, parameters: Any = None, **shapes: Any) -> Counts:
    """Return the operation counts of the compiled function(robot, *arrays); arguments as in `compile`."""
    names, shapes = _parameter_names(function, robot, parameters, shapes)
    vector = robot.parameter_vector(names) if names else None
    graph = _traced(record, function, robot, _shapes(function, robot, shapes), vector)
    return run_passes(graph, simplified=True, counted=True).counts


@gc_paused()
def depth(function: Callable[..., Any], robot: Any = None, **shapes: Any) -> int:
    """Return the length of the critical path of function(robot, *arrays), in operations; arguments as in `compile`.

    The critical path is the longest chain of operations each of which needs the result of the one before: a lower bound
    of the time on any number of processors. `count` returns the total number of operations.
    """
    return count_and_depth(function, robot, **shapes)[1]


@gc_paused()
def count_and_depth(function: Callable[..., Any], robot: Any = None, **shapes: Any) -> tuple[Counts, int]:
    """Return the results of `count` and `depth`, from one tracing."""
    graph = _traced(record, function, robot, _shapes(function, robot, shapes))
    passes = run_passes(graph, simplified=True, counted=True)
    return passes.counts, passes.graph.depth()


def _parameter_names(
    function: Callable[..., Any], robot: Any, parameters: Any, shapes: dict[str, Any]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of the robot's parameters, and the shapes with that of an argument called `parameters`."""
    if parameters is None:
        return (), shapes
    if not (isinstance(parameters, Sequence) and parameters and all(isinstance(name, str) for name in parameters)):
        return (), {**shapes, PARAMETERS: parameters}
    if not hasattr(robot, "parameter_vector"):
        raise ArgumentError(f"names of parameters need a legged.Robot to which they belong, got {shown(robot)}")
    if callable(function) and PARAMETERS in inspect.signature(function).parameters:
        raise TraceError(f"{_name(function)} has an argument {PARAMETERS!r} of its own; rename it")
    return ((parameters,) if isinstance(parameters, str) else tuple(parameters)), shapes


def _traced(
    trace: Callable[..., Graph],
    function: Callable[..., Any],
    robot: Any,
    shapes: Mapping[str, Shape],
    vector: Any = None,
) -> Graph:
    """Return function(robot, *arrays) traced by `trace`, with the entries of `vector` as parameters of the robot."""
    signature = inspect.signature(function)
    every = shapes if vector is None else {**shapes, PARAMETERS: (vector.size,)}

    def traced(*arrays: Any) -> Any:
        own = robot if vector is None else vector.applied(arrays[-1])
        bound = signature.bind_partial(*(() if robot is None else (own,)))
        extra = {}
        for name, array in zip(shapes, arrays, strict=vector is None):
            (bound.arguments if name in signature.parameters else extra)[name] = array
        return function(*bound.args, **bound.kwargs, **extra)

    return trace(traced, every)


def _shapes(function: Callable[..., Any], robot: Any, given: Mapping[str, Any]) -> dict[str, Shape]:
    """Return name and shape of every argument to trace."""
    if not callable(function):
        raise ArgumentError(f"function must be a function of arrays, or of a robot and arrays, got {shown(function)}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise ArgumentError(f"the arguments of {shown(function)} are not known; pass a Python function") from None
    parameters = list(signature.parameters.values())[robot is not None :]
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = {p.name: p for p in parameters if p.kind not in variable}
    extra = [name for name in given if name not in named]
    if extra and not any(p.kind == inspect.Parameter.VAR_KEYWORD for p in parameters):
        raise UnknownNameError(f"argument of {_name(function)}", extra[0], named)
    shapes = {}
    for name, parameter in named.items():
        if name in given:
            shapes[name] = _given_shape(name, given[name], robot)
        elif parameter.default is inspect.Parameter.empty:
            shapes[name] = _standard_shape(name, robot)
    return shapes | {name: _given_shape(name, given[name], robot) for name in extra}


def _given_shape(name: str, shape: Any, robot: Any) -> Shape:
    if shape is True:
        return _standard_shape(name, robot)
    try:
        return (int(shape),) if isinstance(shape, int) else tuple(int(n) for n in shape)
    except (TypeError, ValueError):
        raise TraceError(f"the shape of {name} must be a tuple of integers, got {shape!r}") from None


def _standard_shape(name: str, robot: Any) -> Shape:
    robot = getattr(robot, "robot", robot)  # the spanning tree of a robot with closed loops
    if robot is not None and (isinstance(robot, type) or not hasattr(robot, "nq")):
        raise ArgumentError(f"robot must be a legged.Robot, a legged.loops.ClosedRobot or None, got {shown(robot)}")
    if robot is None and name == "robot":
        raise TraceError("the function takes a robot; give it as the argument after the function")
    if robot is None or name not in ARGUMENTS:
        follows = "" if robot is None else f" ({', '.join(ARGUMENTS)} have one)"
        raise TraceError(
            f"the shape of argument {name!r} does not follow from its name{follows}; give it by keyword, "
            f"for example {name}=(3,), or {name}=() for a scalar"
        )
    return ARGUMENTS[name].shape(robot)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)
