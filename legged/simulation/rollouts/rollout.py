"""`rollout`: many simulations of one robot in one compiled kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from legged.arguments import Numbers
from legged.checked import checked
from legged.compiler import Kernel, Members, Schedule, check_threads, default_threads, element_type
from legged.compiler import compile as compile_function
from legged.contact.rigid import FreeBody, Rigid, violation_message
from legged.errors import ArgumentError, SimulationError, SimulationInterrupt, SimulationWarning, warn_caller
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.chatter import chatter_of_members, chatter_of_run
from legged.simulation.checks.energy import energy_warning
from legged.simulation.checks.fall import Fall
from legged.simulation.checks.overlap import OverlapCheck, overlap_warning
from legged.simulation.checks.stable_step import StiffStops
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import FixedStep
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.contact_memory import ContactMemory
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.recording import record_run
from legged.simulation.results.records import ModelRecord
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import drawing_of
from legged.simulation.rollouts.members import MemberBackend
from legged.simulation.rollouts.result import Rollouts
from legged.simulation.simulate import ProgressBar, sample_times
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_batch import CompiledBatch, MemberTemplate
from legged.simulation.stepping.engines.compiled import CompiledEngine, StepEngine
from legged.simulation.stepping.engines.solvers import SolverEngine
from legged.simulation.stepping.motion import Motion, Plan, new_motion
from legged.simulation.stepping.start import (
    InitialStates,
    check_base_forces,
    check_command,
    check_integrator,
    default_fixed_step,
    select_integrator,
    step_warning,
)

Array = np.ndarray
INTERRUPTED = "interrupted"
"""Reason of the end of a member that an interrupt has ended."""


@checked
def rollout(
    robot: Robot | ClosedRobot,
    controller: ControllerLike = None,
    *,
    until: float,
    ground: Ground | Rigid | None = None,
    q: Numbers | None = None,
    v: Numbers | None = None,
    vary: Mapping[str, Any] | None = None,
    pushes: Sequence[Push | ExternalWrench] = (),
    bodies: Sequence[FreeBody] = (),
    integrator: FixedStep | None = None,
    sample: float = 0.01,
    fall: Fall | bool | None = None,
    compiled: bool | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    dtype: Any = None,
) -> Rollouts:
    """Return the motions of one robot from different initial states and with different parameters.

        pushes = [legged.Push("trunk", (0.0, 0.0, 0.0), at=1.0)]
        runs = legged.rollout(robot, law, ground=ground, until=3.0, pushes=pushes,
                              vary={"pushes.0.impulse": impulses, "gait.stride": strides})

    Robot, controller, ground, integrator and time loop run in machine code. Members run side by side in SIMD lanes,
    groups of them in threads. Up to 16 members of a scene with many contacts run in parts, one after the other, because
    its kernel takes minutes to compile. The motion of a member is independent of the others and equals that of
    `simulate` with the same integrator up to rounding.

    Args:
        robot, controller, ground, pushes, bodies, until, sample: As in `simulate`. The parameters of a robot with
            closed loops cannot vary.
        q, v: Initial states, (nq,) and (nv,) for all members or (B, nq) and (B, nv); default as in `simulate`.
        vary: Parameters of the members: name of a field of "robot", "controller", "gait" (that of the controller),
            "ground", "pushes" or "bodies" -> a value per member, (B,), or (B, ...) for a field that holds an array, in
            the units of the field; `rollout_parameters` lists them. Examples: "robot.trunk.mass", "controller.kp",
            "gait.period", "ground.friction.coefficient", "pushes.0.impulse" (B, 3), "bodies.0.velocity" (B, 3). The
            controller of each member is started for the robot of that member.
        integrator: `SemiImplicitEuler(...)` by default, or `RungeKutta4(...)`, the default with closed loops; on a
            `Rigid` ground `TimeStepping(...)`.
        fall: When a member has fallen: a `Fall`, or False for never; default as in `simulate`.
        compiled: True requires one kernel, False runs each member with its controller in Python, None uses the kernel
            if possible, except for few members of a scene with many contacts; see `Rollouts.backend`.
        threads: Number of threads; by default the number of processors.
        progress: As in `simulate`.
        dtype: Type of the numbers with which time steps are computed and of the results: "float64", the default, or
            "float32", which is about twice as fast and less accurate; see docs/howto/speed.md. Controllers, robots and
            grounds are started with float64 numbers.

    Raises:
        UnknownNameError: A name in `vary` does not exist.
        ShapeError: The numbers of members or the shapes of values disagree.
        NotFiniteError: A state, a value or a time is not finite.
        DefinitionError: A value is not valid for its field.
        PrecisionError: dtype is another type.
        TraceError: The time steps cannot be compiled, although `compiled` or `dtype` requires it.
        SimulationInterrupt: Ctrl-C, a KeyboardInterrupt; `error.run` holds the `Rollouts` up to there, where the reason
            of unfinished members is "interrupted".
    """
    times = sample_times(until, sample)
    closed = robot if isinstance(robot, ClosedRobot) else None
    steps = select_integrator(integrator, ground, bodies, default_fixed_step(closed))
    assert isinstance(steps, FixedStep)
    setup, element = (controller, ground, pushes, bodies), element_type(dtype)
    batch = RolloutBatch.of(robot, setup, (q, v), vary=vary, fall=fall, element=element)
    task = RolloutTask(batch, steps, times)
    check_command(task.batch.first.loop.controller)
    check_integrator(task.batch.first.loop, steps)
    with ProgressBar(batch.robot.name, until, progress) as bar:
        runs = task.simulate(compiled, threads, bar.update)
    if INTERRUPTED in runs.reasons:
        count = runs.reasons.count(INTERRUPTED)
        raise SimulationInterrupt(f"{INTERRUPTED} before {count} of {len(runs)} members ended; see error.run", runs)
    return runs


@dataclass(frozen=True, eq=False)
class RolloutTask:
    """A batch with its integrator and sample times.

    Attributes:
        batch: The members. integrator: The integrator. times: Sample times, (T,), [s].
    """

    batch: RolloutBatch
    integrator: FixedStep
    times: Array

    def simulate(self, compiled: bool | None, threads: int | None, update: Callable[[float], None]) -> Rollouts:
        """Return the result of the rollout.

        Args:
            compiled, threads: As in `rollout`. update: Called with the simulated time, [s], as it progresses.
        """
        batch, first = self.batch, self.batch.first
        count = batch.sweep.count
        starts = batch.starts_for(compiled, range(count), *batch.given_states, is_partial=True)
        if len(starts.states) < count:
            return self._unfinished(starts)
        try:
            motion, plan = new_motion(batch, starts, self.times, self.integrator, compiled)
        except KeyboardInterrupt:
            return self._unfinished(starts)
        check_base_forces(first.loop, first.q, first.s, compiled)
        engine = motion.engine
        motion.run(plan, default_threads() if threads is None else check_threads(threads), update)
        warned = self._warnings(motion, plan, starts)
        return self.result(motion.members, motion.reasons, warned, engine.name, _compiled_members(engine))

    def _unfinished(self, starts: InitialStates) -> Rollouts:
        """Return the initial states of the members that had started when Ctrl-C came before the first time step."""
        states = np.full((self.batch.sweep.count, starts.states.shape[1]), np.nan)
        known = len(starts.states)
        states[:known] = starts.states
        members = Members.at(states, len(self.times), self.batch.element.dtype)
        members.stored[:, 0], members.outcome[:known, 2] = members.state, 1.0
        return self.result(members, {}, tuple(self.batch.first.loop.notices.values()), "none: no time step was taken")

    def _warnings(self, motion: Motion, plan: Plan, starts: InitialStates) -> tuple[str, ...]:
        """Return the texts of all warnings, and give those that have not been given."""
        first, robot, members = self.batch.first, self.batch.robot, motion.members
        word = "member" if len(starts.loops) > 1 else ""
        template = MemberTemplate(self.batch, starts.numbers)
        texts = [OverlapCheck().warning(template, starts, range(len(starts.loops)), word)]
        texts.append(step_warning(first.loop, first.q, first.s, self.integrator))
        if not motion.interrupted:
            reached = members.stored[..., : robot.nq].reshape(-1, robot.nq)
            texts.append(StiffStops(robot, first.q, self.integrator).warning(reached))
            schedule = plan.schedule(self.integrator)
            texts.append(chatter_of_members(robot, motion.engine.advance, schedule, members, self.times))
        texts.append(self._contact_warning(members))
        for text in filter(None, texts):
            warn_caller(text, SimulationWarning)
        for loop in starts.loops:
            first.loop.notices.update(loop.notices)  # which have been given
        return (*filter(None, texts), *first.loop.notices.values())

    def result(
        self,
        members: Members,
        known: Mapping[int, str],
        warned: tuple[str, ...],
        backend: str,
        compiled: CompiledBatch | None = None,
    ) -> Rollouts:
        """Return the result of the rollout.

        Args:
            members: The members at the end. known: Index of a member -> why it ended, if its limits do not tell.
            warned: Texts of warnings. backend: Name of what has advanced the members. compiled: Their time steps.
        """
        robot = self.batch.robot
        code, when, rows = members.outcome.T
        states = members.stored
        after_end = np.arange(len(self.times)) >= rows[:, None]
        states[after_end] = np.nan
        last = self.times[np.maximum(rows.astype(int), 1) - 1]
        unfinished = (code == 0.0) & (rows < len(self.times))
        when = np.where((code == 0.0) & ~unfinished, np.nan, np.where(code < 0.0, when, last))
        reasons = [known.get(i) or self._reason(i, c, states[i, 0]) for i, c in enumerate(code.tolist())]
        reasons = [INTERRUPTED if cut else reason for reason, cut in zip(reasons, unfinished, strict=True)]
        q, v, rest = np.split(states, [robot.nq, robot.nq + robot.nv], axis=2)
        return Rollouts(
            robot=robot.name,
            backend=backend,
            integrator=str(self.integrator),
            times=self.times,
            q=q,
            v=v,
            rest=rest,
            base_position=_base_positions(robot, q, ~after_end),
            fallen=code != 0.0,
            when=when,
            reasons=tuple(reasons),
            vary=dict(self.batch.sweep.values),
            warnings=warned,
            model=ModelRecord.of(robot, self.batch.first.loop.ground, self.batch.sweep.nominal.bodies),
            _run=partial(self.run, compiled, backend),
        )

    def _contact_warning(self, members: Members) -> str:
        """Return the warning about the member with the largest violation of the rigid contact law, or "".

        Raises:
            SimulationError: There is one, and the law is strict.
        """
        loop, nq = self.batch.first.loop, self.batch.robot.nq
        if not (isinstance(loop, RigidLoop) and isinstance(loop.ground, Rigid)):
            return ""
        known = ContactMemory.of(loop.split(members.stored[..., nq:]).ground_memory)
        valid = np.arange(len(self.times)) < members.outcome[:, 2, None]
        worst = np.where(valid, known.worst, 0.0).max(axis=1)
        text = violation_message(loop.ground, float(worst.max()), int(worst.argmax()))
        if text and loop.ground.strict:
            raise SimulationError(text)
        return text

    def _reason(self, i: int, code: float, start: Array) -> str:
        """Return why member i has fallen, or "" if it has not."""
        limits = self.batch.limits(i, start[: self.batch.robot.nq]) if code else None
        return limits.message(self.batch.robot, int(code)) if limits else ""

    def run(self, compiled: CompiledBatch | None, backend: str, runs: Rollouts, i: int) -> Run:
        """Return member i as a run; its outputs are computed by kernels that all members share, if they are compiled.

        Args:
            compiled: The time steps of all members; None if they are not compiled. backend: Name of what took them.
            runs: The result of the rollout. i: Index of the member.

        Raises:
            ArgumentError: Ctrl-C came before the member had started.
        """
        if not np.isfinite(runs.q[i, 0]).all():
            raise ArgumentError(f"member {i} has no states: Ctrl-C came before it had started")
        loop = self.batch.member(i, drawing_of(self.batch.sweep.robot(i)).points).loop
        plan = Plan.of_break_times(self.times, [loop.break_times(float(self.times[-1]))])
        rows = np.concatenate([runs.q[i], runs.v[i], runs.rest[i]], axis=1, dtype=float)
        reached = int(np.isfinite(rows).all(axis=1).sum())
        members = Members(rows[:1], np.array([[0.0, 0.0, reached]]), rows[None])
        states = plan.states(members, self.batch.robot.nq)
        reason, when = runs.reasons[i], f" at t = {runs.when[i]:.3f} s"
        ended = reason + ("" if " at t = " in reason else when) if reason else ""
        equations, advance = self._member_backend(compiled, backend, i, loop, members)
        run = record_run(equations, self.integrator, states, ended)
        first = self.batch.first
        texts = (
            overlap_warning(loop, states[0].q, states[0].s) if states else "",
            step_warning(first.loop, first.q, first.s, self.integrator),
            *first.loop.notices.values(),
            StiffStops(self.batch.robot, first.q, self.integrator).warning(run.q),
            chatter_of_run(self.batch.robot, advance, self.integrator, states, run.vdot),
            violation_message(loop.ground, float(run.contacts.worst_residual[-1])),
        )
        texts = tuple(filter(None, texts))
        risen = "" if reason or texts else energy_warning(run.energy, loop, self.integrator)
        return replace(run, warnings=(*texts, *filter(None, (risen,))))

    def _member_backend(
        self, compiled: CompiledBatch | None, name: str, i: int, loop: ClosedLoop, members: Members
    ) -> tuple[Backend, Callable[[Members, Schedule], None]]:
        """Return the backend of member i, and the function that advances it from given states over a schedule."""
        if compiled is not None:
            backend = MemberBackend(self._kernels, compiled, i, loop, name)
            return backend, backend.advance
        backend = select_backend(loop, members.state[0], members.state[0], False)
        backend.name = name
        return backend, SolverEngine([backend], [None], members, self.integrator, "").advance

    @cached_property
    def _kernels(self) -> dict[Any, Kernel]:
        """Kernels of the members' outputs, see `MemberBackend`."""
        return {}


def _compiled_members(engine: StepEngine) -> CompiledBatch | None:
    """Return the compiled time steps of an engine; None if it takes them one member after the other."""
    return engine.compiled if isinstance(engine, CompiledEngine) else None


def _base_positions(robot: Robot, q: Array, valid: Array) -> Array:
    """Return the positions of the base origin in the world, (B, T, 3), [m]; NaN where a state is not valid."""
    n = robot.base.nq
    positions = np.full((*valid.shape, 3), np.nan, q.dtype)
    if not n:
        positions[valid] = robot.base.pose(np.zeros(0))[1]
    else:
        position = compile_function(lambda base: robot.base.pose(base)[1], None, base=n, dtype=q.dtype)
        positions[valid] = position(q[valid][:, :n])
    return positions
