"""`ParametricKernel`: a compiled function that has numbers of its robot as inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from legged.arguments import real_array
from legged.compiler.ir.graph import Graph
from legged.compiler.runtime.kernel import Kernel

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
        return ParametricKernel, (self.graph, self.name, meanings, self.parameters, self.target, self.dtype.name)

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Return the result of the function; arguments as in `Kernel`.

        Args:
            arrays: The arguments, (..., *shape), any unit and frame. named: Arguments by name, `out` and `threads`.
        """
        numbers = arrays[-1] if len(arrays) == len(self.arguments) else named.get(PARAMETERS)
        if numbers is not None:
            found = real_array(PARAMETERS, numbers)
            if found.shape[-1:] == self.shapes[-1]:  # otherwise the kernel raises ShapeError
                self.parameters.check(found.astype(float))
        return self._unchecked(*arrays, **named)
