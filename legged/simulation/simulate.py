"""`simulate`: a robot under a controller on a ground, from a state to a `Run`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.arguments import read
from legged.errors import DefinitionError, NotFiniteError, SimulationError
from legged.ground.ground import Ground
from legged.loops.assembly import assemble
from legged.loops.closed_robot import ClosedRobot
from legged.loops.constraints import independent_first
from legged.loops.dynamics import Stabilization
from legged.robot.robot import Robot
from legged.simulation.backend import Backend, select_backend
from legged.simulation.closed_chains import ClosedChainLoop, check_closed
from legged.simulation.controller import ControllerLike, adapt
from legged.simulation.disturbance import Push
from legged.simulation.fall import Fall, Watch
from legged.simulation.fixed import FixedStep, RungeKutta4, TimeStepping
from legged.simulation.limits import check_range
from legged.simulation.progress import ProgressBar
from legged.simulation.recording import record_run
from legged.simulation.rigid_loop import RigidLoop, closed_loop
from legged.simulation.run import Run
from legged.simulation.stick_figure import stick_figure
from legged.simulation.stiff import Stiff
from legged.simulation.system import Diverged, Integrator, State, segments

Array = np.ndarray


def simulate(
    robot: Robot | ClosedRobot,
    controller: ControllerLike | Any = None,
    *,
    until: float,
    ground: Ground | Rigid | None = None,
    q: Any = None,
    v: Any = None,
    integrator: Integrator | None = None,
    sample: float = 0.01,
    fall: Fall | Watch | bool | None = None,
    pushes: Sequence[Push] = (),
    bodies: Sequence[FreeBody] = (),
    compiled: bool | None = None,
    progress: bool | None = None,
    time_constant: float = 0.05,
) -> Run:
    """Return the motion of a robot from t = 0 to `until`.

    Motors give what the controller asks within their effort and speed, and joints have stops, where the robot's
    `JointPhysics` says so; see `limits`.

    For a robot with closed kinematic loops, the accelerations satisfy the loop constraints with Baumgarte
    stabilization, each fixed step is projected onto the constraints, and their rank is tested at every evaluation.
    `Stiff` relies on the stabilization alone. q, v and tau are those of the spanning tree.

    Args:
        robot: The robot, or one with closed loops, `legged.loops.ClosedRobot`.
        controller: A callable tau = controller(t, q, v, wrenches), an object as `Controller` describes, or None for
            no torques.
        until: End of the run, [s].
        ground: What the contact points meet, a `Ground` that gives or a `Rigid` one; None for none.
        q, v: Initial configuration (nq,) and velocity (nv,). Without q, the controller's `initial_state(robot)`, or
            the neutral configuration; without v, rest. The state must satisfy loop constraints; without q and
            `initial_state`, `legged.loops.assemble` finds a configuration near the neutral one.
        integrator: `Stiff(...)`, `SemiImplicitEuler(step=...)` or `RungeKutta4(step=...)`; on a `Rigid` ground
            `TimeStepping(step=...)`. Default: `Stiff()`, or `RungeKutta4(step=1e-3)` with closed loops.
        sample: Time between stored states, [s].
        fall: When to give up: a `Fall`, a callable (t, q, v) -> what happened or nothing, False for never. By default
            `Fall()` for a robot with a free base on a ground.
        pushes: Disturbances.
        bodies: Free bodies beside the robot, on a `Rigid` ground.
        compiled: True to insist on one compiled kernel for the whole loop, False to run the controller in Python
            (if it has side effects, say), None to compile what can be compiled; `run.backend` tells.
        progress: Show a progress bar; by default if the run is long and stderr is a terminal.
        time_constant: Of the Baumgarte stabilization of closed loops, [s]; see `legged.loops.Stabilization`.

    Raises:
        LoopError: The initial state does not satisfy the loop constraints.
        SimulationError: The robot fell, or the solution diverged; `error.run` is the run up to there.
        ShapeError, NotFiniteError: The initial state, a time or the controller's answer has no sense.
        StateError: A joint starts beyond its stop.
        DefinitionError: Ground, integrator, bodies and controller do not go together.
    """
    times = sample_times(until, sample)
    closed = robot if isinstance(robot, ClosedRobot) else None
    robot = robot.robot if isinstance(robot, ClosedRobot) else robot
    integrator = suited(integrator, ground, bodies, Stiff() if closed is None else RungeKutta4(step=1e-3))
    adapted = adapt(controller)
    if closed is not None and q is None and not hasattr(controller, "initial_state"):
        q = assemble(closed, robot.neutral())
    q, v = initial_state(robot, controller, q, v)
    if closed is not None:
        check_closed(closed, q, v)
    adapted, memory = adapted.start(robot, ground, q, v)
    parts = adapted, ground, len(memory), tuple(pushes), stick_figure(robot)[0]
    if closed is None:
        loop = closed_loop(robot, *parts, tuple(bodies))
    else:
        constraints = {"closed": independent_first(closed, q), "stabilization": Stabilization(time_constant)}
        loop = ClosedChainLoop(robot, *parts, **constraints)
    s = loop.initial(v, memory)
    backend = select_backend(loop, q, s, compiled)
    return follow(backend, adapted, q, s, times, integrator, fall, progress)


def suited(
    integrator: Integrator | None, ground: Ground | Rigid | None, bodies: Sequence[FreeBody], otherwise: Integrator
) -> Integrator:
    """Return the integrator, or the one that a ground has by default: `otherwise`, or `TimeStepping` if it is rigid.

    Raises:
        DefinitionError: They do not go together.
    """
    rigid = isinstance(ground, Rigid)
    if bodies and not rigid:
        raise DefinitionError("free bodies need a ground to touch them by: give ground=Rigid(...)")
    if integrator is None:
        return TimeStepping() if rigid else otherwise
    if rigid != isinstance(integrator, TimeStepping):
        wanted = "a Rigid ground needs TimeStepping(...)" if rigid else "TimeStepping(...) needs a Rigid ground"
        raise DefinitionError(f"{wanted}, got {integrator} on {type(ground).__name__ if ground else 'no ground'}")
    return integrator


def follow(
    backend: Backend,
    controller: Any,
    q: Array,
    s: Array,
    times: Array,
    integrator: Integrator,
    fall: Fall | Watch | bool | None,
    progress: bool | None,
) -> Run:
    """Return the motion of a closed loop that has been started, from (q, s), sampled at times; see `simulate`."""
    loop, until = backend.loop, float(times[-1])
    robot = loop.robot
    if isinstance(loop.ground, Rigid) and not isinstance(loop, RigidLoop):
        raise DefinitionError(
            f"robot {robot.name!r} has closed loops, which impulses of a Rigid ground do not know yet"
        )
    if loop.controller.has_update and not isinstance(integrator, FixedStep):
        raise DefinitionError(
            f"a controller with a clock of its own needs an integrator with fixed steps, got {integrator}"
        )
    watch = _watch(fall, robot, loop.ground, q)
    plan = segments(times, *loop.break_times(until))
    states, ended = _march(robot, integrator.march(backend, q, s, plan), watch, until, progress)
    run = record_run(backend, integrator, controller, states, ended)
    if ended:
        raise SimulationError(f"{ended}; the run up to there is in error.run", run)
    return run


def sample_times(until: float, sample: float) -> Array:
    """Return the times at which a run is stored, [s], from 0 to `until`."""
    if not (np.isfinite(until) and until > 0.0):
        raise NotFiniteError(f"until must be a positive number of seconds, got {until}")
    if not (np.isfinite(sample) and sample > 0.0):
        raise NotFiniteError(f"sample must be a positive number of seconds, got {sample}")
    n = int(np.floor(until / sample + 1e-9))
    times = np.arange(n + 1) * sample
    return np.append(times, until) if until - times[-1] > 1e-9 * until else np.append(times[:-1], until)


def initial_state(robot: Robot, controller: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the state at which a run starts, see `simulate`."""
    if q is None and hasattr(controller, "initial_state"):
        q, planned = controller.initial_state(robot)
        v = planned if v is None else v
    q = robot.neutral() if q is None else q
    v = np.zeros(robot.nv) if v is None else v
    q, v = read(robot, q=q, v=v)
    check_range(robot, q)
    return q, v


def _watch(fall: Fall | Watch | bool | None, robot: Robot, ground: Ground | Rigid | None, q: Array) -> Watch | None:
    if fall is None:
        fall = ground is not None and robot.base.kind != "fixed"
    if fall is True:
        fall = Fall()
    if isinstance(fall, Fall):
        return fall.watch(robot, ground, q)
    return fall or None


def _march(
    robot: Robot, states: Iterable[State], watch: Watch | None, until: float, progress: bool | None
) -> tuple[list[State], str]:
    """Return (the states up to the end of the run, why it ended early or "")."""
    kept: list[State] = []
    with ProgressBar(robot.name, until, progress) as bar:
        try:
            for state in states:
                kept.append(state)
                bar.reach(state.t)
                happened = watch(state.t, state.q, state.s[: robot.nv]) if watch else None
                if happened:
                    words = happened if isinstance(happened, str) else f"{robot.name} fell"
                    return kept, f"{words} at t = {state.t:.3f} s"
        except Diverged as error:
            return kept, f"the solution diverged at t = {error.t:.6g} s: {error}"
    return kept, ""
