"""The equations and outputs of any member of a compiled rollout, as kernels whose inputs are the member's numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import Kernel, Members, Schedule, trace
from legged.simulation.backend import NO_SOLUTION, Backend
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.results import Observation
from legged.simulation.stepping.compiled_batch import CompiledBatch, MemberTemplate

Array = np.ndarray
Point = tuple[int, Array]


class MemberKernels:
    """Kernels that all members of a rollout share.

    Args:
        template: The members as functions of their numbers. links: Link of each point that `outputs` reports.
    """

    def __init__(self, template: MemberTemplate, links: tuple[int, ...]):
        self._template, self._links = template, links

    @cached_property
    def observe(self) -> Callable[..., Observation]:
        """Function (t, phase, q, s, numbers, points) -> `Observation`."""

        def observe(t: Any, phase: Any, q: Array, s: Array, numbers: Array, points: Array) -> Observation:
            loop, _ = self._template.member(numbers)
            return replace(loop, nodes=list(zip(self._links, points, strict=True))).observe(t, phase, q, s)

        return self._kernel(
            observe, q=(self._nq,), s=(self._size,), numbers=self._numbers, points=(len(self._links), 3)
        )

    @cached_property
    def rate(self) -> Callable[..., Array]:
        """Function (t, phase, y, q_ref, numbers) -> time derivative of y, as `ClosedLoop.rate`."""

        def rate(t: Any, phase: Any, y: Array, q_ref: Array, numbers: Array) -> Array:
            return self._template.member(numbers)[0].rate(t, phase, y, q_ref)

        size = self._template.batch.robot.nv + self._size
        return self._kernel(rate, y=(size,), q_ref=(self._nq,), numbers=self._numbers)

    @property
    def _nq(self) -> int:
        return self._template.batch.robot.nq

    @property
    def _numbers(self) -> tuple[int]:
        return (len(self._template.varying),)

    @property
    def _size(self) -> int:
        return self._template.batch.first.loop.size

    def _kernel(self, function: Callable[..., Any], **shapes: Any) -> Any:
        return Kernel(trace(function, {"t": (), "phase": (), **shapes}), function.__name__)


class MemberBackend(Backend):
    """The equations of one member.

    Args:
        kernels: Kernels of all members. compiled: The time steps of all members. i: Index of the member.
        loop: Its closed loop, with the points that `outputs` reports. name: What computed the rollout.
    """

    def __init__(self, kernels: MemberKernels, compiled: CompiledBatch, i: int, loop: ClosedLoop, name: str):
        super().__init__(loop, True, name)
        self._kernels, self._compiled = kernels, compiled
        self._numbers = compiled.starts.numbers[i, compiled.template.varying]
        self._parameters = compiled.parameters[i : i + 1] if len(compiled.parameters) > 1 else compiled.parameters
        self._points = np.array([point for _, point in loop.nodes]).reshape(-1, 3)

    def observe(self, t: float, phase: int, q: Array, s: Array) -> Observation:
        """Return the outputs of one state; see `Backend.observe`."""
        return self._kernels.observe(float(t), float(phase), q, s, self._numbers, self._points)

    def rate(self, t: float, phase: int, y: Array, q_ref: Array, loads: Array | None = None) -> Array:
        """Return the time derivative of a state, (n,), under the loads at t; see `Backend.rate`."""
        del loads  # the numbers of the member determine them
        try:
            return self._kernels.rate(float(t), float(phase), y, q_ref, self._numbers)
        except NO_SOLUTION as error:
            self.failure = str(error)
            return np.full_like(y, np.nan)

    def advance(self, members: Members, schedule: Schedule) -> None:
        """Advance copies of the member from other states, in place.

        Args:
            members: Their states. schedule: The intervals.
        """
        own = Members.at(members.state, members.stored.shape[1], self._compiled.code.element.dtype)
        own.outcome[:] = members.outcome
        self._compiled.code.run(own, self._parameters, schedule, threads=1)
        members.state[:], members.outcome[:], members.stored[:] = own.state, own.outcome, own.stored
