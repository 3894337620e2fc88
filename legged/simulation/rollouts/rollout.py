"""`rollout`: many simulations of one robot in one compiled kernel, and its members as runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from legged.arguments import Numbers
from legged.checked import checked
from legged.compiler import Members, Schedule, check_threads, default_threads, element_type
from legged.compiler import compile as compile_function
from legged.contact.rigid import FreeBody, Rigid, violation_message
from legged.errors import ArgumentError, SimulationError, SimulationInterrupt, SimulationWarning, warn_caller
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.chatter import chatter_of_members
from legged.simulation.checks.fall import Fall
from legged.simulation.checks.motion import controller_notice, motion_warnings
from legged.simulation.checks.overlap import OverlapCheck, overlap_warning, refuse_chosen
from legged.simulation.checks.stable_step import StiffStops, step_warning
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import FixedStep, Plan
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.contact_memory import ContactMemory
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.recording import record_run
from legged.simulation.results.records import ModelRecord
from legged.simulation.results.run import Run
from legged.simulation.rollouts.result import Rollouts
from legged.simulation.simulate import ProgressBar, sample_times
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.engines import CompiledEngine, StepEngine
from legged.simulation.stepping.python_engine import PythonEngine
from legged.simulation.stepping.starts import InitialStates
from legged.simulation.stepping.stepper import Stepper, select_integrator

Array = np.ndarray
INTERRUPTED = "interrupted"
"""Reason of the end of a member that an interrupt has ended."""

_NUMBERS = 1_000_000  # of states whose energies are computed together
_NAMED = 10  # members whose energies rise, beside the first one, that a warning names


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
    steps = select_integrator(integrator, ground, bodies, closed)
    assert isinstance(steps, FixedStep)
    setup, element = (controller, ground, pushes, bodies), element_type(dtype)
    batch = RolloutBatch.of(robot, setup, (q, v), vary=vary, fall=fall, element=element)
    batch.check_command()
    threads = default_threads() if threads is None else check_threads(threads)
    members = MemberRuns(batch, steps, times)
    with ProgressBar(batch.robot.name, until, progress) as bar:
        stepper, engine, overlap = _prepared(members, compiled)
        stepper.run(threads, bar.update)
    compiled_steps = engine.detached() if isinstance(engine, CompiledEngine) else None
    members = replace(members, backend=engine.name, compiled=compiled_steps)
    runs = _result(members, stepper.members, _warnings(stepper, overlap), stepper.reason)
    if INTERRUPTED in runs.reasons:
        raise _interrupted(runs)
    return runs


def _prepared(runs: MemberRuns, compiled: bool | None) -> tuple[Stepper, StepEngine, str]:
    """Start all members; return their stepper, its engine, and a warning about starts inside of the ground or "".

    Raises:
        StateError: Without given configurations, a member starts inside of the ground.
        SimulationInterrupt: Ctrl-C; `error.run` holds the initial states of the members that have started.
    """
    batch, count = runs.batch, runs.batch.sweep.count
    starts = batch.starts.of(compiled, range(count), *batch.given_states, is_partial=True)
    if len(starts.states) < count:
        raise _interrupted(_unfinished(runs, starts))
    stepper = Stepper(batch, runs.integrator, compiled, starts, runs.times)
    overlap = OverlapCheck().warning(stepper.template, starts, range(count), "member" if count > 1 else "")
    if batch.q is None:
        refuse_chosen(overlap)
    try:
        return stepper, stepper.prepare(), overlap
    except KeyboardInterrupt:
        raise _interrupted(_unfinished(runs, starts)) from None


def _interrupted(runs: Rollouts) -> SimulationInterrupt:
    """Return the error of rollouts that Ctrl-C has ended."""
    count = runs.reasons.count(INTERRUPTED)
    return SimulationInterrupt(f"{INTERRUPTED} before {count} of {len(runs)} members ended; see error.run", runs)


def _unfinished(runs: MemberRuns, starts: InitialStates) -> Rollouts:
    """Return the initial states of the members that had started when Ctrl-C came before the first time step."""
    batch, known = runs.batch, len(starts.states)
    states = np.full((batch.sweep.count, starts.states.shape[1]), np.nan)
    states[:known] = starts.states
    members = Members.at(states, len(runs.times), batch.element.dtype)
    members.stored[:, 0], members.outcome[:known, 2] = members.state, 1.0
    return _result(runs, members, tuple(batch.first.loop.notices.values()), lambda i: "")


def _warnings(stepper: Stepper, overlap: str) -> tuple[str, ...]:
    """Return the texts of all warnings after a run, and give those that have not been given."""
    batch, starts, members, engine = stepper.batch, stepper.starts, stepper.members, stepper.engine
    assert engine is not None and isinstance(stepper.integrator, FixedStep)
    first, robot = batch.first, batch.robot
    texts = [overlap, step_warning(first.loop, first.q, first.s, stepper.integrator)]
    if not stepper.interrupted:
        reached = members.stored[_are_stored(members)][:, : robot.nq]
        texts.append(StiffStops(robot, first.q, stepper.integrator).warning(reached))
        schedule = stepper.plan.schedule(stepper.integrator)
        texts.append(chatter_of_members(robot, engine.advance, schedule, members, stepper.plan.times))
    texts.append(_contact_warning(batch, members))
    if not (stepper.interrupted or any(texts)):
        texts.append(_energy_warning(stepper))
    texts.append(_notice(batch, members, stepper.plan.times))
    for text in filter(None, texts):
        warn_caller(text, SimulationWarning)
    for loop in starts.loops:
        first.loop.notices.update(loop.notices)  # which have been given
    return (*filter(None, texts), *first.loop.notices.values())


def _notice(batch: RolloutBatch, members: Members, times: Array) -> str:
    """Return the notice of the controller of the first member that has one at its last sample, or ""."""
    loop, nq = batch.first.loop, batch.robot.nq
    if getattr(loop.controller, "notice", None) is None:
        return ""
    last = np.maximum(members.outcome[:, 2].astype(int), 1) - 1
    texts = [
        controller_notice(loop, float(times[k]), rows[k, nq:]) for k, rows in zip(last, members.stored, strict=True)
    ]
    count, first = sum(map(bool, texts)), next((k for k, text in enumerate(texts) if text), 0)
    return f"{count} of {len(texts)} members, first member {first}: {texts[first]}" if count else ""


def _are_stored(members: Members) -> Array:
    """Return whether members have reached their samples, (B, T), dimensionless; other stored states are undefined."""
    return np.arange(members.stored.shape[1]) < members.outcome[:, 2, None]


def _contact_warning(batch: RolloutBatch, members: Members) -> str:
    """Return the warning about the member with the largest violation of the rigid contact law, or "".

    Raises:
        SimulationError: There is one, and the law is strict.
    """
    loop, nq = batch.first.loop, batch.robot.nq
    if not (isinstance(loop, RigidLoop) and isinstance(loop.ground, Rigid)):
        return ""
    known = ContactMemory.of(loop.split(members.stored[..., nq:]).ground_memory)
    worst = np.where(_are_stored(members), known.worst, 0.0).max(axis=1)
    text = violation_message(loop.ground, float(worst.max()), int(worst.argmax()))
    if text and loop.ground.strict:
        raise SimulationError(text)
    return text


def _energy_warning(stepper: Stepper) -> str:
    """Return the warning about the members whose energy balance rises at the samples, or "".

    Members that have fallen or diverged are left out, as in `motion_warnings`.
    """
    members = stepper.members
    if not stepper.knows_energies:
        return ""
    count, samples, size = members.stored.shape
    running = _are_stored(members) & (members.outcome[:, :1] == 0.0)
    block = max(_NUMBERS // (count * size), 1)
    for k in range(0, samples, block):
        part = slice(k, k + block)
        stepper.follow_energy(members.stored[:, part].swapaxes(0, 1), running[:, part].T)
    i, text = stepper.energy.warning()
    others = stepper.energy.rising[1:].tolist()
    named = ", ".join(map(str, others[:_NAMED])) + (f" and {len(others) - _NAMED} more" if len(others) > _NAMED else "")
    word = f"member {i}: " if count > 1 else ""
    return f"{word}{text}" + (f"; so do those of members {named}" if others else "") if text else ""


def _result(runs: MemberRuns, members: Members, warned: tuple[str, ...], reason: Callable[[int], str]) -> Rollouts:
    """Return the result of a rollout. `reason` returns why a member, given by its index, fell or diverged."""
    robot, times, sweep = runs.batch.robot, runs.times, runs.batch.sweep
    code, when, rows = members.outcome.T
    states = members.stored
    valid = _are_stored(members)
    states[~valid] = np.nan
    last = times[np.maximum(rows.astype(int), 1) - 1]
    unfinished = (code == 0.0) & (rows < len(times))
    when = np.where((code == 0.0) & ~unfinished, np.nan, np.where(code < 0.0, when, last))
    reasons = [INTERRUPTED if cut else reason(i) for i, cut in enumerate(unfinished.tolist())]
    q, v, rest = np.split(states, [robot.nq, robot.nq + robot.nv], axis=2)
    return Rollouts(
        robot=robot.name,
        backend=runs.backend,
        integrator=str(runs.integrator),
        times=times,
        q=q,
        v=v,
        rest=rest,
        base_position=_base_positions(robot, q, valid),
        fallen=code != 0.0,
        when=when,
        reasons=tuple(reasons),
        vary=dict(sweep.values),
        warnings=warned,
        model=ModelRecord.of(robot, runs.batch.first.loop.ground, sweep.nominal.bodies),
        _run=runs,
    )


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
        loop = self.batch.member(i).loop
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
        of_motion = motion_warnings(run, loop, first.q, self.integrator, states, advance, not (reason or known))
        return replace(run, warnings=(*known, *of_motion))

    def _equations(
        self, i: int, loop: ClosedLoop, members: Members
    ) -> tuple[Backend, Callable[[Members, Schedule], None]]:
        """Return the equations of member i, and the function that advances it from given states over a schedule."""
        if self.compiled is None:
            backend = select_backend(loop, members.state[0], members.state[0], False)
            backend.name = self.backend
            return backend, PythonEngine(members, self.integrator, "", system=backend).advance
        template = self.compiled.template
        numbers = self.compiled.starts.numbers[i, template.varying]

        def of_member(method: Callable[..., Any], **shapes: Any) -> Callable[..., Any]:
            return partial(template.method(method.__name__, **shapes), numbers)

        backend = Backend(loop, True, self.backend, of_member)
        return backend, partial(self.compiled.advance, threads=1, robots=slice(i, i + 1))
