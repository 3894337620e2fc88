"""The engine that advances robots, and the time loop of `simulate` and `rollout` from sample to sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from legged.compiler import FLOAT32, FLOAT64, NOT_FINITE, Members, Schedule
from legged.compiler.ir import gc_paused
from legged.errors import DivergenceError, SimulationError, SimulationInterrupt, TraceError
from legged.simulation.backend import Backend, has_parts, warn_of_python
from legged.simulation.checks.divergence import GAINED_ENERGY, DivergenceCheck, DivergenceMonitor
from legged.simulation.checks.fall import Termination
from legged.simulation.integrators import (
    NEXT_NOT_FINITE,
    FixedStep,
    Integrator,
    SmoothInterval,
    StateSample,
    smooth_intervals,
)
from legged.simulation.loop.results import BreakTimes
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.compiled_batch import (
    NO_INPUT,
    CompiledBatch,
    MemberTemplate,
    StepInput,
    aligned_schedule,
)
from legged.simulation.stepping.engines.compiled import CompiledEngine, StepEngine
from legged.simulation.stepping.engines.solvers import PythonEngine, SolverEngine
from legged.simulation.stepping.start import InitialStates

Array = np.ndarray
ENDED = 1.0
"""Termination code of a robot that the condition of a run has ended."""
FEW_ROBOTS = 16
"""Number of members up to which a scene with many contacts runs in parts, one member after the other."""
_AGREEMENT = {FLOAT64: 1e-6, FLOAT32: 1e-2}
"""Relative difference of rates in compiled and plain steps of 0.1 ms, which differ by rounding of the states after a
step, or by a hidden state of the controller."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Sample times of all robots, and the smooth intervals between the break times of each.

    Attributes:
        times: Sample times, (T,), [s].
        intervals: The different lists of intervals. of: Index of the list of each robot, (N,).
    """

    times: Array
    intervals: Sequence[list[SmoothInterval]]
    of: Array

    @classmethod
    def of_break_times(cls, times: Array, break_times: Sequence[BreakTimes]) -> Plan:
        """Return the plan of robots.

        Args:
            times: Sample times, (T,), [s]. break_times: Switch times and other break times of each robot, [s].
        """
        different = {key: k for k, key in enumerate(dict.fromkeys(break_times))}
        intervals = [smooth_intervals(times, *key) for key in different]
        return cls(times, intervals, np.array([different[key] for key in break_times]))

    def schedule(self, integrator: FixedStep) -> Schedule:
        """Return the fixed time steps of all robots between the samples."""
        return aligned_schedule([integrator.step_sequences(x) for x in self.intervals], self.of)

    def states(self, members: Members, nq: int, i: int = 0) -> list[StateSample]:
        """Return the stored states of a robot.

        Args:
            members: All robots. nq: Length of a configuration. i: Index of the robot.
        """
        phases = (x.phase for x in self.intervals[self.of[i]] for _ in x.samples)
        rows = members.stored[i, : int(members.outcome[i, 2])]
        times = self.times[: len(rows)].tolist()
        return [StateSample(t, phase, y[:nq], y[nq:]) for t, phase, y in zip(times, phases, rows, strict=False)]


class Motion:
    """Robots that an engine advances; at each sample divergence is judged, and then the condition that ends a run.

    Falls of batches are detected by the engine, at samples, too.

    Args:
        engine: Advances the robots. members: Their states, which the engine changes.
        check: Bounds of a motion that has not diverged.
        energies: Function (q, s) -> kinetic and potential energies, (..., 2), [J].
        termination: Condition that ends the motion of a single robot.

    Attributes:
        reasons: Index of a robot that has diverged, or that the condition has ended -> why.
        interrupted: Whether Ctrl-C has ended the motion early.
    """

    def __init__(
        self,
        engine: StepEngine,
        members: Members,
        check: DivergenceCheck,
        energies: Callable[[Array, Array], Array],
        termination: Termination | None = None,
    ):
        self.engine, self.members, self.check, self._termination = engine, members, check, termination
        self._monitor = DivergenceMonitor(check, energies, len(members.state))
        self.reasons: dict[int, str] = {}
        self.interrupted = False
        self._judged, self._time = 0, 0.0
        self._stalled: set[int] = set()  # robots that a solver has given up

    def run(self, plan: Plan, threads: int, update: Callable[[float], None]) -> None:
        """Advance the robots to the end, or to where Ctrl-C interrupts it.

        Args:
            plan: Samples and intervals. threads: Maximal number of threads.
            update: Called with the simulated time, [s], as it progresses.

        Raises:
            KeyboardInterrupt: Ctrl-C came when all robots had ended.
        """
        members = self.members
        try:
            for _ in self.engine.motion(plan, threads):
                self._judge(plan.times, update)
                if not members.live:
                    break
        except KeyboardInterrupt:
            self._judge(plan.times, update)
            if not members.live or members.outcome[:, 2].min() == len(plan.times):
                raise
            self.interrupted = True
        for i in np.flatnonzero(members.outcome[:, 0] == NOT_FINITE).tolist():
            if i not in self.reasons:
                self.reasons[i] = self._failure(i)

    def ending(self, i: int) -> tuple[str, type[SimulationError | SimulationInterrupt] | None]:
        """Return why and when the motion of robot i ended early, and the exception that says so; "" and None if not.

        Args:
            i: Index of the robot.
        """
        code, t, _ = self.members.outcome[i].tolist()
        if code == 0.0 and self.interrupted:
            return f"interrupted at t = {self._time:.3f} s", SimulationInterrupt
        if code > 0.0:
            return f"{self.reasons[i]} at t = {t:.3f} s", SimulationError
        if code == 0.0:
            return "", None
        return self.reasons[i], SimulationError if i in self._stalled else DivergenceError

    def _judge(self, times: Array, update: Callable[[float], None]) -> None:
        """End the robots that have diverged at a new sample, or that the condition ends there."""
        outcome, stored, nq = self.members.outcome, self.members.stored, self.check.loop.robot.nq
        reached = int(outcome[:, 2].max())
        for k in range(self._judged, reached):
            t, states = float(times[k]), stored[:, k]
            running = outcome[:, 2] > k
            codes = self._monitor.codes(np.full(len(states), t), states, running)
            for i in np.flatnonzero(codes).tolist():
                gained = float(self._monitor.gained[i]) if codes[i] == GAINED_ENERGY else 0.0
                self.reasons[i] = self.check.message(t, states[i, nq:], gained)
                outcome[i] = codes[i], t, max(k, 1)
            self._time = t
            update(t)
            if self._termination is not None and running[0] and not codes[0]:
                self._apply_termination(t, k)
        self._judged = reached

    def _apply_termination(self, t: float, k: int) -> None:
        robot, state = self.check.loop.robot, self.members.stored[0, k]
        assert self._termination is not None
        reason = self._termination(t, state[: robot.nq], state[robot.nq : robot.nq + robot.nv])
        if reason:
            self.reasons[0] = reason if isinstance(reason, str) else f"{robot.name} fell"
            self.members.outcome[0] = ENDED, t, k + 1

    def _failure(self, i: int) -> str:
        """Return why robot i ended without a next state."""
        error, (_, t, reached) = self.engine.failure(i), self.members.outcome[i].tolist()
        if error is not None and not isinstance(error, DivergenceError):
            self._stalled.add(i)
            return str(error)
        s = self.members.stored[i, max(int(reached), 1) - 1, self.check.loop.robot.nq :]
        if error is None:
            return self.check.message(t, s, reason=NEXT_NOT_FINITE)
        return self.check.message(error.t, s if error.state is None else error.state, reason=str(error))


@gc_paused()
def new_engine(
    template: MemberTemplate,
    starts: InitialStates,
    members: Members,
    integrator: Integrator,
    compiled: bool | None,
    given: StepInput = NO_INPUT,
    backend: Backend | None = None,
) -> StepEngine:
    """Return the fastest possible engine.

    Up to `FEW_ROBOTS` scenes with many contacts run in parts, since one kernel for their time step takes minutes to
    compile.

    Args:
        template: The robots as functions of their numbers. starts: The robots at the start.
        members: States and outcomes, which the engine changes in place. integrator: The integrator.
        compiled: As in `simulate`. given: What each step is given.
        backend: The equations of a single robot, which decide whether its time steps are compiled.

    Raises:
        TraceError: If compiled is True, or the numbers are not doubles, and the time step cannot be compiled.
    """
    if backend is not None:
        if not (backend.whole and isinstance(integrator, FixedStep)):
            return SolverEngine([backend], [None], members, integrator, backend.name)
        return CompiledEngine(
            CompiledBatch(template.batch, starts, integrator.rule, given, template), members, integrator
        )
    reason, element, loops = "as asked", template.batch.element, set(starts.loops)
    if starts.refused:
        reason = reason if compiled is False else starts.refused
    elif not isinstance(integrator, FixedStep):
        reason = "variable steps"
        if compiled:
            raise TraceError(f"{integrator} runs in Python; use fixed steps, or leave out compiled=True")
    elif compiled is None and element == FLOAT64 and len(starts.loops) <= FEW_ROBOTS and all(map(has_parts, loops)):
        reason = "parts of a scene with many contacts"
    elif compiled is not False:
        try:
            compiled_batch = CompiledBatch(template.batch, starts, integrator.rule, given, template)
            difference = compiled_batch.largest_difference()
            if difference < _AGREEMENT[element]:
                return CompiledEngine(compiled_batch, members, integrator)
            reason = f"compiled and in Python it differs by {difference:.1e}; does the controller keep a state?"
        except Exception as error:  # tracing runs the user's code, which may raise anything
            reason = f"{type(error).__name__}: {error}"
        if compiled:
            raise TraceError(f"the time step cannot be compiled: {reason}")
        if element == FLOAT64:
            warn_of_python(template.batch.first.loop, reason)
    if element != FLOAT64:
        raise TraceError(f"{element} needs compiled time steps: {reason}; use dtype='float64'")
    return PythonEngine(template.batch, starts, members, integrator, given, reason)


def new_motion(
    batch: RolloutBatch,
    starts: InitialStates,
    times: Array,
    integrator: Integrator,
    compiled: bool | None,
    backend: Backend | None = None,
    termination: Termination | None = None,
) -> tuple[Motion, Plan]:
    """Return the motion of all members of a batch from their initial states, and its plan.

    Args:
        batch: The members. starts: The members at the start.
        times: Sample times, (T,), [s]. integrator: The integrator.
        compiled: As in `simulate`. backend: The equations of a single robot.
        termination: Condition that ends the motion of a single robot.
    """
    members = Members.at(starts.states, len(times), batch.element.dtype)
    engine = new_engine(MemberTemplate(batch, starts.numbers), starts, members, integrator, compiled, backend=backend)
    loop = batch.first.loop
    energies = (backend or Backend(loop, False, "")).energies
    motion = Motion(engine, members, DivergenceCheck.of(loop, integrator), energies, termination)
    break_times = starts.break_times(float(times[-1]), not isinstance(integrator, FixedStep))
    return motion, Plan.of_break_times(times, break_times)
