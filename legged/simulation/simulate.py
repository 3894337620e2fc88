"""`simulate`: the motion of a robot under a controller on a ground, as a `Run`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from legged.arguments import Numbers
from legged.checked import checked
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.arguments import read
from legged.errors import (
    ArgumentError,
    DefinitionError,
    DivergenceError,
    NotFiniteError,
    SimulationError,
    SimulationInterrupt,
    SimulationWarning,
    warn_caller,
)
from legged.ground.ground import Ground
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import independent_first
from legged.loops.dynamics import Stabilization
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, select_backend
from legged.simulation.checks.chatter import chatter_of_run
from legged.simulation.checks.divergence import DivergenceCheck
from legged.simulation.checks.fall import Fall, Termination
from legged.simulation.checks.stable_step import largest_stable_step, stable_step_of_loop
from legged.simulation.closed_chains import ClosedChainLoop, check_closed
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import Controller, ControllerLike, adapt
from legged.simulation.forces import Push, check_range
from legged.simulation.integrators import (
    BDF,
    FixedStep,
    Integrator,
    RungeKutta4,
    SemiImplicitEuler,
    StateSample,
    TimeStepping,
    smooth_intervals,
)
from legged.simulation.results.recording import record_run
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import drawing_of
from legged.simulation.rigid_loop import RigidLoop, closed_loop

if TYPE_CHECKING:
    from rich.progress import Progress

Array = np.ndarray
_MOST_SAMPLES = 1e7  # states that a run can store
_MARGIN = 1.2  # of the estimated stable step, below which runs passed; see the table in docs/simulation.md
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
    pushes: Sequence[Push] = (),
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
            zero torques.
        until: End time, [s].
        ground: A compliant `Ground`, a `Rigid` ground, or None for no ground.
        q, v: Initial configuration (nq,) and velocity (nv,). Without q, the controller's `initial_state(robot)`, or
            the neutral configuration; without v, rest. The state must satisfy loop constraints; without q and
            `initial_state`, `legged.loops.assemble` finds a configuration near the neutral one.
        integrator: `BDF(...)`, `SemiImplicitEuler(step=...)` or `RungeKutta4(step=...)`; on a `Rigid` ground
            `TimeStepping(step=...)`. By default `TimeStepping()` on rigid ground, `RungeKutta4(step=1e-3)` with closed
            loops, `SemiImplicitEuler` with a stable step for a controller with a discrete update, and else `BDF()`;
            `Run.integrator` tells which and why. A fixed step too long for the ground, or at which a joint chatters,
            gives a `SimulationWarning`; see `Run.warnings`.
        sample: Time between stored states, [s].
        fall: Condition that ends the run: a `Fall`, a callable (t, q, v) that returns a message, or False for none. By
            default `Fall()` for a robot with a free base on a ground.
        pushes: Pushes on links.
        bodies: Free bodies beside the robot, on a `Rigid` ground.
        compiled: True requires one compiled kernel for the whole loop, False runs the controller in Python (for one
            with side effects), None compiles what can be compiled; see `Run.backend`.
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
        StateError: A joint is beyond its stop at the start.
        DefinitionError: Ground, integrator, bodies and controller are incompatible.
    """
    times = sample_times(until, sample)
    closed = robot if isinstance(robot, ClosedRobot) else None
    robot = robot.robot if isinstance(robot, ClosedRobot) else robot
    given = integrator
    integrator = select_integrator(integrator, ground, bodies, BDF() if closed is None else RungeKutta4(step=1e-3))
    adapted = adapt(controller)
    if closed is not None and q is None and not hasattr(controller, "initial_state"):
        q = assemble(closed, robot.neutral())
    q, v = initial_state(robot, controller, q, v)
    if closed is not None:
        check_closed(closed, q, v)
    adapted, memory = adapted.start(robot, ground, q, v)
    parts = adapted, ground, len(memory), tuple(pushes), drawing_of(robot).points
    if closed is None:
        loop = closed_loop(robot, *parts, tuple(bodies))
    else:
        constraints = {"closed": independent_first(closed, q), "stabilization": Stabilization(time_constant)}
        loop = ClosedChainLoop(robot, *parts, **constraints)
    s = loop.initial(v, memory)
    if given is None and adapted.has_update and not isinstance(integrator, FixedStep):
        integrator = SemiImplicitEuler(min(1e-4, 0.5 * largest_stable_step(robot, ground, q, SemiImplicitEuler)))
    warned = coarse_step_warning(loop, q, s, integrator)
    if warned:
        warn_caller(warned, SimulationWarning)
    backend = select_backend(loop, q, s, compiled)
    reason = "" if given is not None else f" (chosen for {_chosen_for(ground, closed, adapted)})"
    return simulate_loop(backend, q, s, times, integrator, fall, progress, reason, (warned,) if warned else ())


def _chosen_for(ground: Any, closed: ClosedRobot | None, controller: Controller) -> str:
    """Return why an integrator was chosen, in words."""
    if isinstance(ground, Rigid):
        return "rigid ground"
    if closed is not None:
        return "closed loops"
    if controller.has_update:
        return "a controller with a discrete update"
    return "compliant ground and a continuous controller" if ground is not None else "smooth motion without ground"


def coarse_step_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    """Return the warning that a fixed step is too long for the stiffness and damping of the ground, or "".

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        integrator: The integrator.
    """
    if not isinstance(integrator, FixedStep) or integrator.rule == "time_stepping":
        return ""
    largest = stable_step_of_loop(loop, q, s, integrator)
    if integrator.step <= _MARGIN * largest:
        return ""
    return (
        f"a step of {integrator.step:g} s is too long for this ground: feet in contact are stable up to {largest:.2g} "
        f"s; take {0.5 * largest:.1g} s, a softer ground, or a legged.Rigid ground"
    )


def select_integrator(
    integrator: Integrator | None, ground: Ground | Rigid | None, bodies: Sequence[FreeBody], default: Integrator
) -> Integrator:
    """Return the integrator of a run, after a check that it fits the ground.

    Args:
        integrator: As the user gave it; None selects `TimeStepping` on rigid ground, otherwise the default.
        ground: The ground. bodies: Free bodies. default: Integrator without ground and on compliant ground.

    Raises:
        DefinitionError: Integrator, ground and bodies are incompatible.
    """
    rigid = isinstance(ground, Rigid)
    if bodies and not rigid:
        raise DefinitionError("free bodies need a rigid ground: give ground=Rigid(...)")
    if integrator is None:
        return TimeStepping() if rigid else default
    if rigid != isinstance(integrator, TimeStepping):
        wanted = "a Rigid ground needs TimeStepping(...)" if rigid else "TimeStepping(...) needs a Rigid ground"
        raise DefinitionError(f"{wanted}, got {integrator} on {type(ground).__name__ if ground else 'no ground'}")
    return integrator


def simulate_loop(
    backend: Backend,
    q: Array,
    s: Array,
    times: Array,
    integrator: Integrator,
    fall: Fall | Termination | bool | None,
    progress: bool | None,
    reason: str = "",
    warned: tuple[str, ...] = (),
) -> Run:
    """Return the motion of a closed loop with a started controller; see `simulate`.

    Args:
        backend: Evaluates the closed loop.
        q: Initial configuration, (nq,). s: Rest of the initial state, (n,). times: Sample times, (T,), [s].
        integrator, fall, progress: As in `simulate`. reason: Why this integrator was chosen, for `Run.integrator`.
        warned: Warnings about the run that were given before it.
    """
    loop, until = backend.loop, float(times[-1])
    robot = loop.robot
    if isinstance(loop.ground, Rigid) and not isinstance(loop, RigidLoop):
        raise DefinitionError(f"robot {robot.name!r} has closed loops, which a Rigid ground does not support")
    if loop.controller.has_update and not isinstance(integrator, FixedStep):
        raise DefinitionError(
            f"a controller with a discrete update needs an integrator with fixed steps, got {integrator}"
        )
    if fall is None:
        fall = loop.ground is not None and robot.base.kind != "fixed"
    if fall is True:
        fall = Fall()
    condition = fall.detector(robot, loop.ground, q) if isinstance(fall, Fall) else fall or None
    intervals = smooth_intervals(times, *loop.break_times(until))
    check = DivergenceCheck.of(loop, integrator)
    samples = _collect(backend, integrator.solve(backend, q, s, intervals), check, condition, until, progress)
    if samples.kind is SimulationInterrupt and not samples.states:
        raise SimulationInterrupt(samples.ended)
    run = record_run(backend, f"{integrator}{reason}", samples.states, samples.ended)
    chatter = chatter_of_run(backend, integrator, samples.states, run.vdot)
    if chatter:
        warn_caller(chatter, SimulationWarning)
    run = replace(run, warnings=(*warned, *([chatter] if chatter else [])))
    if samples.kind is not None:
        raise samples.kind(f"{samples.ended}; the run up to there is in error.run", run)
    return run


def sample_times(until: float, sample: float) -> Array:
    """Return the times at which a run is stored, (T,), [s], from 0 to `until`.

    Args:
        until: End time, [s]. sample: Time between samples, [s]; the last interval may be shorter.
    """
    if not (np.isfinite(until) and until > 0.0):
        raise NotFiniteError(f"until must be a positive number of seconds, got {until}")
    if not (np.isfinite(sample) and sample > 0.0):
        raise NotFiniteError(f"sample must be a positive number of seconds, got {sample}")
    if until / sample > _MOST_SAMPLES:
        raise ArgumentError(f"until / sample must be at most {_MOST_SAMPLES:g} samples, got {until / sample:.3g}")
    n = int(np.floor(until / sample + 1e-9))
    times = np.arange(n + 1) * sample
    return np.append(times, until) if until - times[-1] > 1e-9 * until else np.append(times[:-1], until)


def initial_state(robot: Robot, controller: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the initial configuration (nq,) and velocity (nv,) of a run.

    Args:
        robot: The robot. controller: The controller, whose `initial_state(robot)` is the default.
        q: Configuration, (nq,), or None. v: Velocity, (nv,), or None for rest.
    """
    if q is None and hasattr(controller, "initial_state"):
        q, planned = controller.initial_state(robot)
        v = planned if v is None else v
    q = robot.neutral() if q is None else q
    v = np.zeros(robot.nv) if v is None else v
    q, v = read(robot, q=q, v=v)
    check_range(robot, q)
    return q, v


class _Samples(NamedTuple):
    """The states of a run, and why it ended early or "", with the exception that says so or None."""

    states: list[StateSample]
    ended: str = ""
    kind: type[SimulationError | SimulationInterrupt] | None = None


def _collect(
    backend: Backend,
    states: Iterable[StateSample],
    check: DivergenceCheck,
    condition: Termination | None,
    until: float,
    progress: bool | None,
) -> _Samples:
    """Return the states up to the end of the run; a divergence is detected before a fall."""
    robot = backend.loop.robot
    collected: list[StateSample] = []
    with ProgressBar(robot.name, until, progress) as bar:
        try:
            for state in states:
                diverged = _diverged(backend, check, [*collected[-2:], state])
                if diverged and collected:
                    return _Samples(collected, diverged, DivergenceError)
                collected.append(state)
                if diverged:
                    return _Samples(collected, diverged, DivergenceError)
                bar.update(state.t)
                reason = condition(state.t, state.q, state.s[: robot.nv]) if condition else None
                if reason:
                    message = reason if isinstance(reason, str) else f"{robot.name} fell"
                    return _Samples(collected, f"{message} at t = {state.t:.3f} s", SimulationError)
        except DivergenceError as error:
            return _Samples(collected, check.message(error.t, error.state, reason=str(error)), DivergenceError)
        except SimulationError as error:
            return _Samples(collected, str(error), SimulationError)
        except KeyboardInterrupt:
            t = collected[-1].t if collected else 0.0
            return _Samples(collected, f"interrupted at t = {t:.3f} s", SimulationInterrupt)
    return _Samples(collected)


def _diverged(backend: Backend, check: DivergenceCheck, samples: Sequence[StateSample]) -> str:
    """Return why the last sample has diverged, or ""; up to two samples before it are given."""
    t, _, _, s = samples[-1]
    if check.too_fast(s):
        return check.message(t, s)
    if len(samples) < 3 or check.too_slow_to_judge(s):
        return ""
    gained = 0.0
    for before, after in ((samples[1], samples[2]), (samples[0], samples[1])):
        energies = [backend.energies(state.q, state.s) for state in (before, after)]
        found = float(check.unexplained(energies[0], energies[1], before.s, after.s, np.array(after.t - before.t)))
        if not found:
            return ""
        gained += found
    return check.message(t, s, gained)


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
        """Show the simulated time.

        Args:
            t: Time that the run has reached, [s].
        """
        if not self.shown or time.monotonic() - self.started < PROGRESS_DELAY:
            return
        if self._bar is None:
            self._bar = _progress()
            self._task = self._bar.add_task(self.title, total=self.until)
            self._bar.start()
        self._bar.update(self._task, completed=t)


def _progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    times = TextColumn("{task.completed:.2f} of {task.total:g} s")
    console = Console(stderr=True, force_terminal=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), times, TimeRemainingColumn(), console=console, transient=True
    )
