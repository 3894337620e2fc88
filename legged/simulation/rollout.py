"""`rollout`: many runs at once, inside one compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from legged.compiler import compile as compile_function
from legged.compiler.codegen import llvm
from legged.compiler.runtime.time_loop import NOT_FINITE, Members, Schedule
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, TraceError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, select_backend
from legged.simulation.batch import Batch, BatchLoop
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import ControllerLike
from legged.simulation.disturbance import Push
from legged.simulation.fall import Fall
from legged.simulation.fixed import FixedStep, SemiImplicitEuler
from legged.simulation.plans import aligned
from legged.simulation.progress import ProgressBar
from legged.simulation.recording import record_run
from legged.simulation.rollouts import Rollouts
from legged.simulation.run import Run
from legged.simulation.simulate import sample_times, suited
from legged.simulation.stick_figure import stick_figure
from legged.simulation.system import Diverged, Segment, State, segments
from legged.simulation.variation import Setting, Variation

Array = np.ndarray
_AGREEMENT = 1e-6  # relative; a step compiled and not differs by rounding, or by a state that a controller hides
_AT_ONCE = 3e9  # operations in one call, about a second: the user may want to interrupt, or to see progress


def rollout(
    robot: Robot,
    controller: ControllerLike | Any = None,
    *,
    until: float,
    ground: Ground | Rigid | None = None,
    q: Any = None,
    v: Any = None,
    vary: Mapping[str, Any] | None = None,
    pushes: Sequence[Push] = (),
    bodies: Sequence[FreeBody] = (),
    integrator: FixedStep | None = None,
    sample: float = 0.01,
    fall: Fall | bool | None = None,
    compiled: bool | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> Rollouts:
    """Return the motions of many members: one robot from different states, with different settings.

        pushes = [legged.Push("trunk", (0.0, 0.0, 0.0), at=1.0)]
        runs = legged.rollout(robot, law, ground=ground, until=3.0, pushes=pushes,
                              vary={"pushes.0.impulse": impulses, "gait.stride": strides})

    Robot, controller, ground, integrator and time loop run in machine code, members side by side in the lanes of the
    processor's vectors, groups of them in threads. A member's motion does not depend on the others; it is that of
    `simulate` with the same integrator, but for rounding.

    Args:
        robot, controller, ground, pushes, bodies, until, sample: As in `simulate`.
        q, v: Initial state, (nq,) and (nv,) for all or (B, nq) and (B, nv); as in `simulate` if left out.
        vary: What differs between members: the name of a number in "controller", "gait" (the controller's), "ground",
            "pushes" or "bodies" -> a value per member, (B,), or (B, ...) for a field that holds an array. For example
            "controller.kp", "gait.period", "ground.friction.coefficient", "pushes.0.impulse" (B, 3), "pushes.0.at",
            "bodies.0.velocity" (B, 3).
        integrator: `SemiImplicitEuler(...)` by default, or `RungeKutta4(...)`; on a `Rigid` ground `TimeStepping(...)`.
        fall: When a member has fallen: a `Fall`, or False for never; as in `simulate` if left out.
        compiled: True to insist on one kernel, False to run every member by itself with its controller in Python,
            None for the kernel if it is possible; see `Rollouts.backend`.
        threads: How many threads share the members; by default as many as there are processors.
        progress: As in `simulate`.

    Raises:
        UnknownNameError: A name in `vary` is that of nothing. ShapeError: Numbers of members, or shapes, do not fit.
        NotFiniteError: A state, a value or a time is not finite. DefinitionError: A value that its field cannot have.
    """
    times = sample_times(until, sample)
    steps = suited(integrator, ground, bodies, SemiImplicitEuler())
    if not isinstance(steps, FixedStep):
        raise DefinitionError(f"a rollout needs an integrator with a fixed step, got {steps}")
    given = Setting(controller, ground, tuple(pushes), tuple(bodies))
    variation = Variation.of(given, vary or {}, {"q": (q, robot.nq), "v": (v, robot.nv)})
    if fall is None:
        fall = ground is not None and robot.base.kind != "fixed"
    judge = fall if isinstance(fall, Fall) else Fall() if fall else None
    task = Task(Batch(robot, variation, q, v, judge, until), steps, times)
    with ProgressBar(robot.name, until, progress) as bar:
        name, members = task.simulated(compiled, threads, bar.reach)
    return task.result(name, members)


@dataclass(frozen=True, eq=False)
class Task:
    """A batch, and how it is to be taken through time."""

    batch: Batch
    integrator: FixedStep
    times: Array

    def simulated(
        self, compiled: bool | None, threads: int | None, reach: Callable[[float], None]
    ) -> tuple[str, Members]:
        """Return (what ran, in words, the members at the end)."""
        reason = "as asked"
        if compiled is not False:
            loop, reason = self._traced()
            if loop is not None:
                lanes = llvm.vector_width() if self.batch.variation.count > 1 else 1
                return f"compiled rollout, {lanes} lane{'s' * (lanes > 1)}", self.compiled(loop, threads, reach)
            if compiled:
                raise TraceError(f"the rollout cannot be compiled: {reason}")
        return f"one by one, controller in Python ({reason})", self._in_python(reach)

    def _traced(self) -> tuple[BatchLoop | None, str]:
        """Return (the loop in machine code, "") or (None, why there is none)."""
        try:
            starts = self.batch.starts
        except TraceError as error:
            return None, str(error)
        try:
            loop = BatchLoop(self.batch, starts, self.integrator.rule)
            difference = loop.disagreement()
        except Exception as error:  # tracing runs the user's code, which may raise anything
            return None, f"{type(error).__name__}: {error}"
        if difference < _AGREEMENT:
            return loop, ""
        return (
            None,
            f"compiled and in Python it differs by {difference:.1e} relative; does the controller keep a state?",
        )

    def compiled(self, loop: BatchLoop, threads: int | None, reach: Callable[[float], None]) -> Members:
        """Return the members at the end of the loop in machine code; `reach` is told how far it has come."""
        schedule = self._schedule()
        members = Members.at(loop.states, len(self.times))
        costs = schedule.intervals[..., 2].max(axis=0) * len(loop.states) * max(len(loop.code.graph.nodes), 1)
        ends = np.flatnonzero(schedule.samples >= 0) + 1  # calls end at samples, where states are judged
        bounds = ends[:-1][np.diff(np.floor(np.cumsum(costs)[ends - 1] / _AT_ONCE)) > 0]
        for begin, end in pairwise([0, *bounds.tolist(), len(costs)]):
            loop.code.run(members, loop.parameters, schedule.part(begin, end), threads)
            if not members.live:
                break
            reach(float(self.times[int(members.outcome[:, 2].max()) - 1]))
        return members

    def _schedule(self) -> Schedule:
        break_times = self.batch.starts.break_times
        different = {key: k for k, key in enumerate(dict.fromkeys(break_times))}
        plans = [self.integrator.pieces(segments(self.times, *key)) for key in different]
        return aligned(plans, np.array([different[key] for key in break_times]))

    def _in_python(self, reach: Callable[[float], None]) -> Members:
        """Return the members, simulated one after the other."""
        every = []
        for i in range(self.batch.variation.count):
            loop, q, s, limits = self.batch.member(i)
            backend = select_backend(loop, q, s, False)
            rows, code, when = [], 0.0, 0.0
            try:
                for state in self.integrator.march(backend, q, s, self._segments(loop)):
                    rows.append(np.concatenate([state.q, state.s]))
                    code = float(limits.verdict(loop.robot, loop.ground, state.q)) if limits else 0.0
                    if code:
                        break
            except Diverged as error:
                code, when = NOT_FINITE, error.t
            every.append((rows, [code, when, len(rows)]))
            reach(float(self.times[-1]) * (i + 1) / self.batch.variation.count)
        stored = np.zeros((len(every), len(self.times), max(len(rows[0]) for rows, _ in every)))
        for i, (rows, _) in enumerate(every):
            stored[i, : len(rows)] = rows
        return Members(stored[:, -1], np.array([outcome for _, outcome in every]), stored)

    def _segments(self, loop: ClosedLoop) -> list[Segment]:
        return segments(self.times, *loop.break_times(float(self.times[-1])))

    def result(self, name: str, members: Members) -> Rollouts:
        """Return the record of the members at the end."""
        robot, (code, when, rows) = self.batch.robot, members.outcome.T
        states = members.stored
        behind = np.arange(len(self.times)) >= rows[:, None]
        states[behind] = np.nan
        fell = self.times[np.maximum(rows.astype(int), 1) - 1]
        when = np.where(code == 0.0, np.nan, np.where(code == NOT_FINITE, when, fell))
        q, v, rest = np.split(states, [robot.nq, robot.nq + robot.nv], axis=2)
        return Rollouts(
            robot=robot.name,
            backend=name,
            integrator=str(self.integrator),
            times=self.times,
            q=q,
            v=v,
            rest=rest,
            base_position=_base_positions(robot, q, ~behind),
            fallen=code != 0.0,
            when=when,
            reasons=tuple(self._reason(i, c) if c else "" for i, c in enumerate(code.tolist())),
            vary=dict(self.batch.variation.values),
            _run=self.run,
        )

    def _reason(self, i: int, code: float) -> str:
        if code == NOT_FINITE:
            return "the solution diverged"
        limits = self.batch.first.limits
        assert limits is not None
        return limits.words(self.batch.robot, int(code))

    def run(self, runs: Rollouts, i: int) -> Run:
        """Return member i as a run, seen by the plain equations."""
        loop = self.batch.member(i, stick_figure(self.batch.robot)[0]).loop
        phases = {p.sample: p.phase for p in self.integrator.pieces(self._segments(loop))}
        here = np.isfinite(runs.q[i]).all(axis=1)
        states = [
            State(t, phases[t], q, np.concatenate([v, rest]))
            for t, q, v, rest in zip(
                self.times[here].tolist(), *(x[i][here] for x in (runs.q, runs.v, runs.rest)), strict=True
            )
        ]
        ended = f"{runs.reasons[i]} at t = {runs.when[i]:.3f} s" if runs.fallen[i] else ""
        controller = getattr(loop.controller, "given", loop.controller)
        return record_run(Backend(loop, False, runs.backend), self.integrator, controller, states, ended)


def _base_positions(robot: Robot, q: Array, known: Array) -> Array:
    """Return the base's origin in the world, (B, T, 3), [m], NaN where a state is not known."""
    n = robot.base.nq
    positions = np.full((*known.shape, 3), np.nan)
    if not n:
        positions[known] = robot.base.pose(np.zeros(0))[1]
    else:
        positions[known] = compile_function(lambda base: robot.base.pose(base)[1], None, base=n)(q[known][:, :n])
    return positions
