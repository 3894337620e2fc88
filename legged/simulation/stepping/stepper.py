"""`Stepper`: the states of robots and the engine that advances them, for `simulate`, `rollout` and `Simulation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from legged.compiler import FLOAT32, FLOAT64, NOT_FINITE, Members
from legged.compiler.ir import gc_paused
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, DivergenceError, SimulationError, SimulationInterrupt, TraceError
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.simulation.backend import (
    Update,
    check_base_forces,
    has_parts,
    has_rates,
    python_backend,
    select_backend,
    warn_of_python,
)
from legged.simulation.checks.divergence import GAINED_ENERGY, DivergenceCheck, DivergenceMonitor
from legged.simulation.checks.energy import EnergyMonitor
from legged.simulation.checks.fall import Termination
from legged.simulation.integrators import (
    NEXT_NOT_FINITE,
    FixedStep,
    Integrator,
    LinearlyImplicitEuler,
    Plan,
    RungeKutta4,
    SemiImplicitEuler,
    StateSample,
    TimeStepping,
)
from legged.simulation.loop.closed_chains import ClosedChainLoop
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.joint_laws import JointLaws
from legged.simulation.many_contacts import SceneInParts
from legged.simulation.stepping.batch import MemberTemplate, RolloutBatch
from legged.simulation.stepping.engines import NO_INPUT, CompiledEngine, StepEngine, StepInput
from legged.simulation.stepping.python_engine import PythonEngine
from legged.simulation.stepping.starts import InitialStates
from legged.simulation.variable_step import BDF

Array = np.ndarray
ENDED = 1.0
"""Outcome of a robot whose motion the condition of a run has ended, see `Stepper.outcome`."""
FEW_ROBOTS = 16
"""Largest number of members with which a scene with many contacts runs in parts, one member after the other."""
_LAST_SAMPLES = 10  # before a divergence, at which joints are examined for gimbal lock
_AGREEMENT = {FLOAT64: 1e-6, FLOAT32: 1e-2}
"""Largest accepted difference of rates of the state between compiled steps of 0.1 ms and the same steps in Python,
relative to the rates. Rounding causes smaller differences; larger ones come from a hidden state of the controller."""


def select_integrator(
    integrator: Integrator | None,
    ground: Ground | Rigid | None,
    bodies: Sequence[FreeBody],
    closed: ClosedRobot | None,
    variable: bool = False,
) -> Integrator:
    """Return the integrator of a run, after a check that it fits the ground.

    Args:
        integrator: As the user gave it. None selects `TimeStepping` on rigid ground. Otherwise it selects `RungeKutta4`
            for a robot with closed loops but without stops and dry friction of joints, `BDF` for a robot without closed
            loops if `variable`, and `SemiImplicitEuler`, which takes stops and dry friction implicitly, in other cases.
        ground: The ground. bodies: Free bodies. closed: The robot with closed loops, None for one without.
        variable: Whether variable steps may be the default.

    Raises:
        DefinitionError: Integrator, ground and bodies are incompatible.
    """
    rigid = isinstance(ground, Rigid)
    if bodies and not rigid:
        raise DefinitionError("free bodies need a rigid ground: give ground=Rigid(...)")
    if integrator is None and rigid:
        return TimeStepping()
    if integrator is None:
        explicit = closed is not None and not JointLaws.of(closed.robot).rows
        if explicit:
            return RungeKutta4(step=1e-3)
        return BDF() if variable and closed is None else SemiImplicitEuler()
    if rigid != isinstance(integrator, TimeStepping):
        wanted = "a Rigid ground needs TimeStepping(...)" if rigid else "TimeStepping(...) needs a Rigid ground"
        raise DefinitionError(f"{wanted}, got {integrator} on {type(ground).__name__ if ground else 'no ground'}")
    return integrator


class Stepper:
    """The states of N robots, the engine that advances them, and the reasons why their motions have ended.

    `run` advances the robots from sample to sample and stores the states at the samples; `simulate` and `rollout` call
    it once. The subclass `SimulatedRobots`, which a `Simulation` uses, advances the robots as the caller asks.

    Args:
        batch: The robots with their controllers and parameters. integrator: The integrator. compiled: As in `simulate`.
        starts: The robots at the start; by default the only one of `batch.first`.
        times: Sample times of `run`, (T,), [s].

    Attributes:
        batch: The robots with their controllers and parameters. starts: The robots at the last start of each.
        members: Present states and outcomes, and the states at samples.
        outcome: Zero for a robot whose motion goes on, otherwise the reason of its end, (N,), dimensionless: negative
            if the motion diverged, positive if the robot fell or the condition of `run` held; see
            `FallLimits.termination_code`.
        engine: The step engine; None before `prepare`, and after a change for which it is not valid.
        backend: The evaluation of the closed loop of `simulate`, compiled or in Python; None for a rollout or a
            `Simulation`.
        check: Bounds within which a motion has not diverged. energy: The energy balance.
        interrupted: Whether Ctrl-C has ended `run` early.
    """

    def __init__(
        self,
        batch: RolloutBatch,
        integrator: Integrator,
        compiled: bool | None,
        starts: InitialStates | None = None,
        times: Array | None = None,
    ):
        loop, q, s, _ = batch.first
        _check_integrator(loop, integrator)
        check_base_forces(loop, q, s, compiled)
        self.batch, self.integrator, self.compiled = batch, integrator, compiled
        self.starts = starts or InitialStates(np.concatenate([q, s])[None], np.zeros((1, 0)), (loop,))
        self._times = np.zeros(1) if times is None else times
        self.members = Members.at(self.starts.states, len(self._times), batch.element.dtype)
        self.outcome = self.members.outcome[:, 0]
        self.check = DivergenceCheck.of(loop, integrator)
        self._monitor = DivergenceMonitor(self.check, self.energies, len(self.outcome))
        self.energy = EnergyMonitor(loop, integrator, len(self.outcome))
        self.engine: StepEngine | None = None
        self._reasons: dict[int, str] = {}  # by robot, for ends that are no falls beyond its limits
        self._stalled: set[int] = set()  # robots for which a solver failed without divergence
        self.interrupted, self._judged, self._time = False, 0, 0.0
        self._traced: CompiledEngine | None = None
        variable = not isinstance(integrator, FixedStep)
        self.backend = select_backend(loop, q, s, compiled, variable, self._trace_ahead) if batch.is_run else None

    # The engine.

    @cached_property
    def template(self) -> MemberTemplate:
        """The closed loop of a robot as a function of its parameters."""
        return MemberTemplate(self.batch, self.starts.numbers)

    @gc_paused()
    def prepare(self, given: StepInput = NO_INPUT) -> StepEngine:
        """Return a new engine for steps that are given some inputs: one of compiled time steps if possible.

        Up to `FEW_ROBOTS` scenes with many contacts run in parts, since one kernel for their time step takes minutes to
        compile.

        Raises:
            TraceError: If compiled is True, or the numbers are not doubles, and the time step cannot be compiled.
        """
        engine: StepEngine | None = None
        starts, reason = self.starts._replace(states=self.members.state.copy()), self._reason_for_python()
        if not reason:
            engine, reason = self._compiled_engine(starts, given)
        self._traced = None
        if engine is None and self.backend is not None:
            if self.backend.whole and isinstance(self.integrator, FixedStep):
                self.backend = python_backend(self.batch.first.loop, reason)
            engine = PythonEngine(self.members, self.integrator, self.backend.name, given, self.backend)
        elif engine is None:
            if self.batch.element != FLOAT64:
                raise TraceError(f"{self.batch.element} needs compiled time steps: {reason}; use dtype='float64'")
            name, limits = f"one by one, controller in Python ({reason})", self.batch.first.limits
            engine = PythonEngine(self.members, self.integrator, name, given, limits=limits)
            engine.restart(starts, range(len(starts.loops)))
        self.engine = engine
        return engine

    @gc_paused()
    def _trace_ahead(self) -> Update | None:
        """Trace the time steps for `prepare`, which traces them again and names the error where this fails."""
        if isinstance(self.integrator, FixedStep):
            with suppress(Exception):
                self._traced = CompiledEngine(self.template, self.starts, self.members, self.integrator)
                return self._traced.updated
        return None

    def _reason_for_python(self) -> str:
        """Return why the time steps are evaluated in Python without an attempt to trace them, "" for an attempt."""
        fixed, refused = isinstance(self.integrator, FixedStep), self.starts.refused
        if self.backend is not None:
            return "" if self.backend.whole and fixed else self.backend.name
        if refused:
            return "as asked" if self.compiled is False else refused
        if not fixed:
            if self.compiled:
                raise TraceError(f"{self.integrator} runs in Python; use fixed steps, or leave out compiled=True")
            return "variable steps"
        loops = self.starts.loops
        few = self.compiled is None and self.batch.element == FLOAT64 and len(loops) <= FEW_ROBOTS
        if few and all(map(has_parts, set(loops))):
            return "parts of a scene with many contacts"
        return "as asked" if self.compiled is False else ""

    def _compiled_engine(self, starts: InitialStates, given: StepInput) -> tuple[CompiledEngine | None, str]:
        """Return the engine of compiled time steps and "", or None and why they cannot be compiled."""
        assert isinstance(self.integrator, FixedStep)
        element, follows = self.batch.element, self.backend is not None and not has_rates(self.batch.first.loop)
        try:
            engine = self._traced if given == NO_INPUT else None
            engine = engine or CompiledEngine(self.template, starts, self.members, self.integrator, given)
            difference = 0.0 if follows else engine.largest_difference()  # `select_backend` has compared the outputs
            if difference < _AGREEMENT[element]:
                return engine, ""
            reason = f"compiled and in Python it differs by {difference:.1e}; does the controller keep a state?"
        except Exception as error:  # tracing runs the user's code, which may raise anything
            reason = f"{type(error).__name__}: {error}"
        if self.compiled:
            raise TraceError(f"the closed loop cannot be compiled: {reason}")
        if element == FLOAT64:
            warn_of_python(self.batch.first.loop, reason)
        return None, reason

    @property
    def knows_energies(self) -> bool:
        """Whether the energy balance is judged and `energies` holds for each robot, whose masses may differ."""
        differ = any(name.split(".")[0] in ("robot", "bodies") for name in self.batch.sweep.values)
        return self.energy.is_judged and not (self.starts.refused and differ)

    def energies(self, states: Array, robots: Any = slice(None)) -> Array:
        """Return kinetic and potential energy of robots and free bodies, (..., k, 2), [J].

        Args:
            states: States [q; s], (..., k, n), mixed units. robots: Indices of their robots, (k,), dimensionless.
        """
        nq, scene = self.batch.robot.nq, self._scene
        if scene is not None:
            return scene.energies(states[..., :nq], states[..., nq:])
        numbers = self.starts.numbers[robots][:, self.template.varying]
        if states.size == states.shape[-1]:  # one state, for which a call takes a tenth of the time
            return self.template.energies(numbers[0], states.ravel()).reshape(*states.shape[:-1], 2)
        return self.template.energies(numbers, states)

    @property
    def _scene(self) -> SceneInParts | None:
        """The scene in parts, if all robots are in the same one."""
        return self.engine.scene if isinstance(self.engine, PythonEngine) else None

    def follow_energy(self, states: Array, running: Array) -> None:
        """Take states at successive times into the energy balance.

        Args:
            states: States [q; s] of all robots, (T, N, n), mixed units.
            running: Whether robots have reached them and have not ended, (T, N), dimensionless.
        """
        if not running.any():
            return
        states = np.where(running[..., None], states, states[running][0])  # those of ended robots may have no energy
        works = self.batch.first.loop.split(states[..., self.batch.robot.nq :]).works
        self.energy.add(self.energies(states), works, running)

    # The motion from sample to sample.

    @cached_property
    def plan(self) -> Plan:
        """The samples of `run`, and the smooth intervals between them."""
        edges = not isinstance(self.integrator, FixedStep)
        return Plan.of_loops(self._times, self.starts.loops, edges)

    def run(self, threads: int, update: Callable[[float], None], condition: Termination | None = None) -> None:
        """Advance the robots to the last sample, or until Ctrl-C interrupts the run.

        At each sample divergence is checked, and then the condition. The engine checks the falls of batches there.

        Args:
            threads: Maximal number of threads. update: Called with the simulated time of each sample, [s].
            condition: Whether, or why, the motion of a single robot ends; see `Termination`.

        Raises:
            KeyboardInterrupt: Ctrl-C came when all robots had ended.
        """
        engine, members, scene = self.engine or self.prepare(), self.members, self._scene
        if scene is not None and self.knows_energies:
            scene.compile_energies()
        try:
            for _ in engine.motion(self.plan, threads):
                self._judge(update, condition)
                if not members.live:
                    break
        except KeyboardInterrupt:
            self._judge(update, condition)
            if not members.live or members.outcome[:, 2].min() == len(self._times):
                raise
            self.interrupted = True
        for i in np.flatnonzero(self.outcome == NOT_FINITE).tolist():
            if i not in self._reasons:
                self._reasons[i] = self._failure(i)

    def states(self, i: int = 0) -> list[StateSample]:
        """Return the states (t, phase, q, s) of robot i at the samples that it has reached."""
        return self.plan.states(self.members, self.batch.robot.nq, i)

    def reason(self, i: int) -> str:
        """Return why robot i has ended, "" if it has not."""
        code, known = int(self.outcome[i]), self._reasons.get(i, "")
        if known or not code:
            return known
        limits = self.batch.limits(i, self.starts.states[i, : self.batch.robot.nq])
        return "" if limits is None else limits.message(self.batch.robot, code)

    def ending(self, i: int = 0) -> tuple[str, type[SimulationError | SimulationInterrupt] | None]:
        """Return why and when the motion of robot i ended early, and the class of its exception; "" and None if not."""
        code, t, _ = self.members.outcome[i].tolist()
        if code == 0.0 and self.interrupted:
            return f"interrupted at t = {self._time:.3f} s", SimulationInterrupt
        if code == 0.0:
            return "", None
        if code > 0.0:
            return f"{self.reason(i)} at t = {t:.3f} s", SimulationError
        return self.reason(i), SimulationError if i in self._stalled else DivergenceError

    def _judge(self, update: Callable[[float], None], condition: Termination | None) -> None:
        """End the robots that have diverged at a new sample, or that the condition ends there."""
        outcome, stored, robot = self.members.outcome, self.members.stored, self.batch.robot
        nq, reached = robot.nq, int(outcome[:, 2].max())
        for k in range(self._judged, reached):
            t, states = float(self._times[k]), stored[:, k]
            running = outcome[:, 2] > k
            codes = self._monitor.codes(np.full(len(states), t), states, running)
            for i in np.flatnonzero(codes).tolist():
                gained = float(self._monitor.gained[i]) if codes[i] == GAINED_ENERGY else 0.0
                q = stored[i, max(k - _LAST_SAMPLES, 0) : k + 1, :nq]
                self._reasons[i] = self.check.message(t, states[i, nq:], q, gained)
                outcome[i] = codes[i], t, max(k, 1)
            self._time = t
            update(t)
            if condition is None or not running[0] or codes[0]:
                continue
            if reason := condition(t, states[0, :nq], states[0, nq : nq + robot.nv]):
                self._reasons[0] = reason if isinstance(reason, str) else f"{robot.name} fell"
                outcome[0] = ENDED, t, k + 1
        self._judged = reached

    def _failure(self, i: int) -> str:
        """Return why robot i ended without a next state."""
        assert self.engine is not None
        error, (_, t, reached) = self.engine.failure(i), self.members.outcome[i].tolist()
        if error is not None and not isinstance(error, DivergenceError):
            self._stalled.add(i)
            return str(error)
        nq, reached = self.batch.robot.nq, max(int(reached), 1)
        last = self.members.stored[i, max(reached - _LAST_SAMPLES, 0) : reached]
        q, s = last[:, :nq], last[-1, nq:]
        if error is None:
            return self.check.message(t, s, q, reason=NEXT_NOT_FINITE)
        return self.check.message(error.t, s if error.state is None else error.state, q, reason=str(error))


def _check_integrator(loop: ClosedLoop, integrator: Integrator) -> None:
    """Raise DefinitionError if an integrator cannot advance a closed loop."""
    if loop.controller.has_update and not isinstance(integrator, FixedStep):
        raise DefinitionError(
            f"a controller with a discrete update needs an integrator with fixed steps, got {integrator}"
        )
    if isinstance(loop, ClosedChainLoop) and isinstance(integrator, LinearlyImplicitEuler):
        raise DefinitionError(
            f"robot {loop.robot.name!r} has closed loops, which LinearlyImplicitEuler does not support; use "
            f"RungeKutta4 or SemiImplicitEuler"
        )
