"""The equations of any member of a compiled rollout, as kernels whose inputs are the member's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from legged.compiler import Kernel, Members, Schedule, trace
from legged.simulation.backend import Backend
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.stepping.compiled_batch import CompiledBatch

Array = np.ndarray


class MemberBackend(Backend):
    """The equations of one member.

    Args:
        kernels: Kernels by name of the function and links of the points, which all members of a rollout share.
        compiled: The time steps of all members. i: Index of the member.
        loop: Its closed loop, with the points that `outputs` reports. name: What computed the rollout.
    """

    def __init__(self, kernels: dict[Any, Kernel], compiled: CompiledBatch, i: int, loop: ClosedLoop, name: str):
        super().__init__(loop, True, name)
        self._kernels, self._compiled = kernels, compiled
        self._numbers = compiled.starts.numbers[i, compiled.template.varying]
        self._parameters = compiled.parameters[i : i + 1] if len(compiled.parameters) > 1 else compiled.parameters
        self._links = tuple(link for link, _ in loop.nodes)
        self._points = np.array([point for _, point in loop.nodes]).reshape(-1, 3)

    def _function(self, function: Callable[..., Any], **shapes: Any) -> Callable[..., Any]:
        """Return a function of the closed loop as a kernel of numbers and points of any member."""
        template, links, name = self._compiled.template, self._links, function.__name__

        def of_member(*arguments: Any) -> Any:
            *state, numbers, points = arguments
            loop = replace(template.member(numbers)[0], nodes=list(zip(links, points, strict=True)))
            return getattr(loop, name)(*state)

        if (name, links) not in self._kernels:
            given = {key: (size,) if isinstance(size, int) else size for key, size in shapes.items()}
            given |= {"numbers": self._numbers.shape, "points": self._points.shape}
            self._kernels[name, links] = Kernel(trace(of_member, given), name)
        kernel = self._kernels[name, links]
        return lambda *state: kernel(*state, self._numbers, self._points)

    def advance(self, members: Members, schedule: Schedule) -> None:
        """Advance copies of the member from other states, in place.

        Args:
            members: Their states. schedule: The intervals.
        """
        own = Members.at(members.state, members.stored.shape[1], self._compiled.code.element.dtype)
        own.outcome[:] = members.outcome
        self._compiled.code.run(own, self._parameters, schedule, threads=1)
        members.state[:], members.outcome[:], members.stored[:] = own.state, own.outcome, own.stored
