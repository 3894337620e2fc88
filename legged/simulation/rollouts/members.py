"""The members of a rollout as runs, whose equations are kernels with the numbers of a member as inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from legged.compiler import Kernel, Members, Schedule, trace
from legged.errors import ArgumentError
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.motion import motion_warnings
from legged.simulation.checks.overlap import overlap_warning
from legged.simulation.checks.stable_step import step_warning
from legged.simulation.integrators import FixedStep, Plan
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.results.recording import record_run
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import drawing_of
from legged.simulation.rollouts.result import Rollouts
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_engine import CompiledEngine
from legged.simulation.stepping.engines import PythonEngine

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class MemberRuns:
    """Callable (rollouts, i) -> `Run` that computes the motion of one member with all outputs of a run.

    Attributes:
        batch: The members. integrator: The integrator. times: Sample times, (T,), [s].
        backend: Description of the code that has advanced the members.
        compiled: The time steps of all members; None if they are not compiled.
    """

    batch: RolloutBatch
    integrator: FixedStep
    times: Array
    backend: str = "none: no time step was taken"
    compiled: CompiledEngine | None = None

    def __call__(self, runs: Rollouts, i: int) -> Run:
        """Return member i as a run; its outputs are computed by kernels that all members share, if they are compiled.

        Args:
            runs: The result of the rollout. i: Index of the member.

        Raises:
            ArgumentError: Ctrl-C came before the member had started.
        """
        if not np.isfinite(runs.q[i, 0]).all():
            raise ArgumentError(f"member {i} has no states: Ctrl-C came before it had started")
        loop = self.batch.member(i, drawing_of(self.batch.sweep.robot(i)).points).loop
        plan = Plan.of_loops(self.times, [loop])
        rows = np.concatenate([runs.q[i], runs.v[i], runs.rest[i]], axis=1, dtype=float)
        reached = int(np.isfinite(rows).all(axis=1).sum())
        members = Members(rows[:1], np.array([[0.0, 0.0, reached]]), rows[None])
        states = plan.states(members, self.batch.robot.nq)
        reason, when = runs.reasons[i], f" at t = {runs.when[i]:.3f} s"
        ended = reason + ("" if " at t = " in reason else when) if reason else ""
        equations, advance = self._equations(i, loop, members)
        run = record_run(equations, self.integrator, states, ended)
        first = self.batch.first
        overlap = overlap_warning(loop, states[0].q, states[0].s) if states else ""
        step = step_warning(first.loop, first.q, first.s, self.integrator)
        known = tuple(filter(None, (overlap, step, *first.loop.notices.values())))
        of_motion = motion_warnings(run, loop, first.q, self.integrator, states, advance, bool(reason or known))
        return replace(run, warnings=(*known, *of_motion))

    def _equations(
        self, i: int, loop: ClosedLoop, members: Members
    ) -> tuple[Backend, Callable[[Members, Schedule], None]]:
        """Return the equations of member i, and the function that advances it from given states over a schedule."""
        if self.compiled is not None:
            return _MemberBackend(self._kernels, self.compiled, i, loop, self.backend), partial(
                self.compiled.advance_one, i
            )
        backend = select_backend(loop, members.state[0], members.state[0], False)
        backend.name = self.backend
        return backend, PythonEngine(members, self.integrator, "", system=backend).advance

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        """Kernels of the members' outputs, which all of them share."""
        return {}


class _MemberBackend(Backend):
    """The equations of one member.

    Args:
        kernels: Kernels by name of the function and links of the points, which all members of a rollout share.
        compiled: The time steps of all members. i: Index of the member.
        loop: Its closed loop, with the points that `outputs` reports. name: What computed the rollout.
    """

    def __init__(self, kernels: dict[Any, Kernel], compiled: CompiledEngine, i: int, loop: ClosedLoop, name: str):
        super().__init__(loop, True, name)
        self._kernels, self._compiled = kernels, compiled
        self._numbers = compiled.starts.numbers[i, compiled.template.varying]
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
