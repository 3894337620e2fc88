"""`simulate`: the motion of a robot under a controller on a ground, as a `Run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from legged.arguments import Numbers
from legged.checked import checked
from legged.contact.rigid import FreeBody, Rigid, violation_message
from legged.errors import (
    ArgumentError,
    NotFiniteError,
    SimulationError,
    SimulationInterrupt,
    SimulationWarning,
    warn_caller,
)
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.checks.fall import Fall, Termination
from legged.simulation.checks.motion import motion_warnings
from legged.simulation.checks.overlap import overlap_warning, refuse_chosen
from legged.simulation.checks.stable_step import largest_stable_step, step_warning
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import Integrator, SemiImplicitEuler
from legged.simulation.loop.closed_chains import ClosedChainLoop
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.results.recording import record_run
from legged.simulation.results.run import Run
from legged.simulation.stepping.batch import RolloutBatch, RolloutMember, initial_state, select_fall
from legged.simulation.stepping.stepper import Stepper, select_integrator

if TYPE_CHECKING:
    from rich.progress import Progress

Array = np.ndarray
_MOST_SAMPLES = 1e7  # states that a run can store
_TIMES = "{task.completed:.2f} of {task.total:g} s"  # format of the progress bar
PROGRESS_DELAY = 1.0
"""Computing time before a progress bar appears, [s]."""


@checked
def simulate(
    robot: Robot | ClosedRobot,
    controller: ControllerLike = None,
    *,
    until: float,
    ground: Ground | Rigid | None = None,
    q: Numbers | None = None,
    v: Numbers | None = None,
    integrator: Integrator | None = None,
    sample: float = 0.01,
    fall: Fall | Termination | bool | None = None,
    pushes: Sequence[Push | ExternalWrench] = (),
    bodies: Sequence[FreeBody] = (),
    compiled: bool | None = None,
    progress: bool | None = None,
    time_constant: float = 0.05,
) -> Run:
    """Return the motion of a robot from t = 0 to `until`.

    Actuator forces are limited by effort and speed and joints have stops where the robot's `JointPhysics` has them; see
    `forces`.

    For a robot with closed kinematic loops, the accelerations satisfy the loop constraints with Baumgarte
    stabilization, the state is projected onto the constraints after each fixed step, and the rank of the constraints is
    tested at every evaluation. `BDF` relies on the stabilization alone. q, v and tau are those of the spanning tree.

    Args:
        robot: The robot, or one with closed loops, `legged.loops.ClosedRobot`.
        controller: A callable tau = controller(t, q, v, wrenches), an object as `Controller` describes, or None for
            zero torques; for a group of robots also a mapping from names of robots to controllers, see
            `legged.combine`.
        until: End time, [s].
        ground: A compliant `Ground`, a `Rigid` ground, or None for no ground.
        q, v: Initial configuration (nq,) and velocity (nv,). Without q, the controller's `initial_state(robot)`, or
            the neutral configuration; without v, rest. The state must satisfy loop constraints; without q and
            `initial_state`, `legged.loops.assemble` finds a configuration near the neutral one.
        integrator: `BDF(...)`, `SemiImplicitEuler(step=...)` or `RungeKutta4(step=...)`; on a `Rigid` ground
            `TimeStepping(step=...)`. By default `TimeStepping()` on rigid ground, `SemiImplicitEuler` with a stable
            step for joints with dry friction, for closed loops with joint stops and for a controller with a discrete
            update, `RungeKutta4(step=1e-3)` for other closed loops, and else `BDF()`; `Run.integrator` states which
            one and why. A fixed step that is too long for the ground, for friction or a stop that is reached, or at
            which a joint chatters, gives a `SimulationWarning`; see `Run.warnings`.
        sample: Time between stored states, [s].
        fall: Condition that ends the run: a `Fall`, a callable (t, q, v) that returns a message, or False for none. By
            default `Fall()` for a robot with a free base on a ground.
        pushes: `Push`es and `ExternalWrench`es on links and free bodies.
        bodies: Free bodies beside the robot, on a `Rigid` ground.
        compiled: True requires one compiled kernel for the whole loop, False runs the controller in Python (for one
            with side effects), None compiles what can be compiled; `Run.backend` and a warning state why the whole
            loop cannot be.
        progress: Whether to show a progress bar; by default for long runs if stderr is a terminal.
        time_constant: Time constant of the Baumgarte stabilization of closed loops, [s]; see
            `legged.loops.Stabilization`.

    Raises:
        LoopError: The initial state does not satisfy the loop constraints.
        SimulationError: The robot fell; `error.run` is the run up to that time.
        DivergenceError: The solution diverged, see `legged.simulation.checks.divergence`; `error.run` is the run up
            to the last sample before.
        SimulationInterrupt: Ctrl-C, a KeyboardInterrupt; `error.run` is the run up to that time.
        ShapeError, NotFiniteError: The initial state, a time or the controller's result has a wrong shape or is not
            finite.
        StateError: A joint is beyond its stop at the start, or without q a contact is inside of the ground.
        DefinitionError: Ground, integrator, bodies and controller are incompatible.
    """
    times = sample_times(until, sample)
    closed = robot if isinstance(robot, ClosedRobot) else None
    chosen = select_integrator(integrator, ground, bodies, closed, variable=True)
    setup, state = (controller, ground, pushes, bodies), initial_state(robot, controller, q, v)
    batch = RolloutBatch.of(robot, setup, state, fall=False, time_constant=time_constant, is_run=True)
    batch.check_command()
    overlap, reason = overlap_warning(*batch.first[:3]), ""
    if q is None:
        refuse_chosen(overlap)
    if integrator is None:
        chosen, why = _suited(chosen, batch.first)
        reason = f" (chosen for {why})"
    loop, q, s, _ = batch.first
    warned = _warned(overlap, step_warning(loop, q, s, chosen))
    condition, stepper = _condition(fall, loop, q), Stepper(batch, chosen, compiled, times=times)
    stepper.prepare()
    with ProgressBar(loop.robot.name, until, progress) as bar:
        stepper.run(1, bar.update, condition)
    return _recorded(stepper, f"{chosen}{reason}", warned)


def _recorded(stepper: Stepper, integrator: str, warned: tuple[str, ...]) -> Run:
    """Return the motion of a stepper as a run, and give the warnings about it.

    Args:
        stepper: The stepper of one robot, after its motion. integrator: Description of the integrator.
        warned: The warnings that have been given about the start.

    Raises:
        SimulationError, DivergenceError, SimulationInterrupt: The motion has ended early, see `simulate`.
        SimulationError: A strict `Rigid` ground, and the contact law was violated.
    """
    (loop, q, _, _), engine, backend = stepper.batch.first, stepper.engine, stepper.backend
    assert engine is not None and backend is not None
    states, ended, kind = stepper.states(), *stepper.ending()
    if kind is SimulationInterrupt and not states:
        raise SimulationInterrupt(ended)
    run = record_run(backend, integrator, states, ended)
    judges_energy = kind is None and not warned
    of_motion = motion_warnings(run, loop, q, stepper.integrator, states, engine.advance, judges_energy)
    run = replace(run, warnings=(*warned, *loop.notices.values(), *of_motion))
    if kind is None and isinstance(loop.ground, Rigid) and loop.ground.strict:
        violated = violation_message(loop.ground, float(run.contacts.worst_residual[-1]))
        if violated:
            raise SimulationError(f"{violated}; the run is in error.run", run)
    _warned(*of_motion)
    if kind is not None:
        raise kind(f"{ended}; the run up to there is in error.run", run)
    return run


def _suited(default: Integrator, start: RolloutMember) -> tuple[Integrator, str]:
    """Return the default integrator, with fixed steps where the controller or dry friction needs them, and why."""
    loop, has_update = start.loop, start.loop.controller.has_update
    if isinstance(loop.ground, Rigid):
        return default, "rigid ground"
    if isinstance(loop, ClosedChainLoop):
        return default, "closed loops"
    if has_update or loop.joint_laws.has_friction:
        limit = largest_stable_step(loop.robot, loop.ground, start.q, SemiImplicitEuler)
        why = "a controller with a discrete update" if has_update else "dry friction of joints"
        return SemiImplicitEuler(min(1e-4, 0.5 * limit)), why
    words = "smooth motion without ground" if loop.ground is None else "compliant ground and a continuous controller"
    return default, words


def _warned(*texts: str) -> tuple[str, ...]:
    """Give the warnings that are not empty, and return them."""
    given = tuple(filter(None, texts))
    for text in given:
        warn_caller(text, SimulationWarning)
    return given


def _condition(fall: Fall | Termination | bool | None, loop: ClosedLoop, q: Array) -> Termination | None:
    """Return the condition that ends a run, None for none."""
    if callable(fall) and not isinstance(fall, Fall):
        return fall
    limits = select_fall(fall, loop.robot, loop.ground)
    return None if limits is None else limits.detector(loop.robot, loop.ground, q)


def sample_times(until: float, sample: float) -> Array:
    """Return the times at which a run is stored, (T,), [s]; the last interval may be shorter than `sample`."""
    if not (np.isfinite(until) and until > 0.0):
        raise NotFiniteError(f"until must be a positive number of seconds, got {until}")
    if not (np.isfinite(sample) and sample > 0.0):
        raise NotFiniteError(f"sample must be a positive number of seconds, got {sample}")
    if until / sample > _MOST_SAMPLES:
        raise ArgumentError(f"until / sample must be at most {_MOST_SAMPLES:g} samples, got {until / sample:.3g}")
    n = int(np.floor(until / sample + 1e-9))
    times = np.arange(n + 1) * sample
    return np.append(times, until) if until - times[-1] > 1e-9 * until else np.append(times[:-1], until)


class ProgressBar:
    """Shows the simulated time on stderr if a run takes more than a second and stderr is a terminal."""

    def __init__(self, title: str, until: float, shown: bool | None = None):
        self.title, self.until = title, until
        self.shown = sys.stderr.isatty() if shown is None else shown
        self.started = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, t: float) -> None:
        """Show the simulated time, [s]."""
        if not self.shown or time.monotonic() - self.started < PROGRESS_DELAY:
            return
        if self._bar is None:
            from rich.console import Console  # rich loads slowly
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = TextColumn("{task.description}"), BarColumn(), TextColumn(_TIMES), TimeRemainingColumn()
            console = Console(stderr=True, force_terminal=True)
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task(self.title, total=self.until)
            self._bar.start()
        self._bar.update(self._task, completed=t)
