"""`Simulation`: one robot or many that are advanced step by step, with their states in place between calls.

    sim = legged.Simulation(robot, ground=ground, num=64)
    sim.reset(q, v)
    for _ in range(100):
        sim.step(torques, n=4)                     # four time steps with the same torques
        height = sim.observe(lambda q, contacts: q[6])
        sim.reset(where=sim.ended)

The time steps of all robots are one call of machine code. See docs/explanation/simulation.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.arguments import Numbers, array, instance, number, shown, whole
from legged.checked import checked, reads_arguments
from legged.compiler.codegen.element_type import element_type
from legged.compiler.codegen.time_loop import ENDED
from legged.compiler.ir.pytree import flatten as flatten_result
from legged.compiler.runtime.threads import check_threads, default_threads, thread_limit
from legged.compiler.runtime.time_loop import NOT_FINITE, Members
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import ArgumentError, DefinitionError, LeggedError, ShapeError, SimulationWarning, warn_caller
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.backend import Backend
from legged.simulation.checks.chatter import STEPS, amplitudes, message
from legged.simulation.checks.divergence import GAINED_ENERGY, DivergenceCheck, DivergenceMonitor
from legged.simulation.checks.fall import Fall
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.controller import ControllerLike
from legged.simulation.forces import Push
from legged.simulation.integrators import NEXT_NOT_FINITE, FixedStep, Integrator
from legged.simulation.results.recording import contact_names
from legged.simulation.stepping.batch import InitialStates, RolloutBatch
from legged.simulation.stepping.clock import Clock
from legged.simulation.stepping.compiled_batch import MemberTemplate, commanded
from legged.simulation.stepping.engines.compiled import CompiledEngine
from legged.simulation.stepping.engines.interface import StepEngine
from legged.simulation.stepping.engines.selection import new_engine
from legged.simulation.stepping.engines.solvers import PythonEngine
from legged.simulation.stepping.object_tree import flatten
from legged.simulation.stepping.observation import Contacts, Observer, argument_names, depends_on_command, observed
from legged.simulation.stepping.parameters import ParameterSweep, Setup, numbers_of
from legged.simulation.stepping.requests import check_command_shape, check_states, rows_of, selected_robots
from legged.simulation.stepping.start import (
    check_integrator,
    coarse_step_warning,
    default_fixed_step,
    select_fall,
    select_integrator,
)

Array = np.ndarray
_FLOAT = np.dtype(float)
_MOST_STEPS = 10**12
_CHECK_INTERVAL = 0.01  # [s], between checks of speeds and energies, the default sampling interval of `simulate`
_FIRST_PROBE, _MOST_BETWEEN_PROBES = 64, 4096  # time steps before and between probes for chatter, which take 12


@dataclass(frozen=True, eq=False)
class SimulationState:
    """A copy of everything that changes in a `Simulation`; assigned to `Simulation.state`, it restores it.

    The arrays have a leading axis (N,) in a simulation of N robots.

    Attributes:
        t: Time, [s].
        q: Configuration, (nq,). v: Velocity, (nv,).
        rest: Rest of the state, (n,): memories of controller and ground, work of actuators, contacts, pushes and joints
            [J], configuration (7,) and velocity (6,) of each free body.
        outcome: 0.0 for a robot that is simulated, negative if its motion diverged, 1.0 or 2.0 if it fell.
    """

    t: Array
    q: Array
    v: Array
    rest: Array
    outcome: Array
    _clock: Any
    _starts: InitialStates


@checked
class Simulation:
    """One robot, or N robots side by side, that `step` advances in place.

    Without a controller `step` takes the torques of the actuators. A controller that has an argument `command`, such as
    `law(t, q, v, wrenches, command)`, receives what `step` is given. Motor limits, stops, friction and falls are those
    of `simulate`, and so is the motion up to rounding. A robot that falls, or whose motion diverges by the bounds of
    `legged.simulation.checks.divergence`, stays at the state after the call, or at the state before it
    if the next one is not finite, until it is reset. The bounds are checked every 10 ms.

    Args:
        robot: The robot, or one with closed loops, `legged.loops.ClosedRobot`; q, v and torques are then those of the
            spanning tree.
        controller: As in `simulate`, or None: `step` takes torques.
        ground: A compliant `Ground`, a `Rigid` ground, or None for no ground.
        num: Number of robots, N; all arrays then have a leading axis of this length. None for one robot without it.
        q, v: Initial states, (nq,) and (nv,), or (N, nq) and (N, nv), mixed units; default as in `simulate`. They are
            the defaults of `reset`.
        integrator: An integrator with fixed steps, whose `step` is the time step, or `BDF(...)`, which starts anew at
            each call. By default `TimeStepping()` on rigid ground, `RungeKutta4(step=1e-3)` with closed loops, and
            else `SemiImplicitEuler()`.
        period: Time that a step advances, [s], for `BDF` only; 0.01 s by default.
        vary: Parameters that differ between robots, as in `rollout`.
        pushes: Pushes on links. bodies: Free bodies beside the robot, on a `Rigid` ground.
        fall: When a robot has fallen: a `Fall`, or False for never; default as in `simulate`.
        compiled: True requires machine code, False runs the controller in Python, None compiles if possible; see
            `backend`.
        threads: Number of threads; by default the number of processors, where it pays.
        dtype: Type of the numbers with which time steps are computed, of states and of observations, as in `rollout`.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: An argument has a wrong type or shape, or is not finite.
        DefinitionError: Ground, integrator, bodies and controller are incompatible.
        StateError: A joint is beyond its stop.
        TraceError: If compiled is True, or the type is float32, and the closed loop cannot be traced.
        PrecisionError: If dtype is another type.
    """

    def __init__(
        self,
        robot: Robot | ClosedRobot,
        controller: ControllerLike | Any = None,
        *,
        ground: Ground | Rigid | None = None,
        num: int | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        integrator: Integrator | None = None,
        period: float | None = None,
        vary: Mapping[str, Any] | None = None,
        pushes: Sequence[Push] = (),
        bodies: Sequence[FreeBody] = (),
        fall: Fall | bool | None = None,
        compiled: bool | None = None,
        threads: int | None = None,
        dtype: Any = None,
    ):
        closed, robot = (robot, robot.robot) if isinstance(robot, ClosedRobot) else (None, robot)
        count = 1 if num is None else whole("num", num, 1)
        self.integrator = select_integrator(integrator, ground, bodies, default_fixed_step(closed))
        self._grid = _grid(self.integrator, period)
        self.robot, self.num = robot, num
        self._compiled, self._threads = compiled, None if threads is None else check_threads(threads)
        setup = Setup(robot, controller, ground, tuple(pushes), tuple(bodies))
        sweep = ParameterSweep.of(setup, vary or {}, {"q": (q, robot.nq), "v": (v, robot.nv)}, count)
        condition, element = select_fall(fall, robot, ground), element_type(dtype)
        given = RolloutBatch(robot, sweep, q, v, condition, closed, element).starts.states
        self._initial = given[:, : robot.nq].copy(), given[:, robot.nq : robot.nq + robot.nv].copy()
        batch = RolloutBatch(robot, sweep, *self._initial, condition, closed, element)
        self._warnings: list[str] = []
        self._begin(batch, batch.starts)

    def _begin(self, batch: RolloutBatch, starts: InitialStates) -> None:
        """Start all robots at t = 0 with the controllers of a batch."""
        check_integrator(batch.first.loop, self.integrator)
        self._batch, self._starts, count = batch, starts, len(starts.states)
        self._takes_command = bool(getattr(batch.first.loop.controller, "takes_command", False))
        self._dtype = batch.element.dtype
        self._members = Members.at(self._starts.states, 1, self._dtype)
        self._members.stored[:] = 0.0
        self._outcome, self._ended = self._members.outcome[:, 0], np.zeros(count, dtype=bool)
        self._any_ended = False  # whether some robot may have ended
        self._clock = Clock(self._grid, self._starts.loops)
        self._check = DivergenceCheck.of(self._batch.first.loop, self.integrator)
        energies = Backend(self._batch.first.loop, False, "").energies
        self._monitor = DivergenceMonitor(self._check, energies, count)
        self._steps_per_check = max(round(_CHECK_INTERVAL / self._grid.step), 1)
        self._unchecked = 0  # time steps since the last check
        self._engine: StepEngine | None = None
        self._names: dict[Callable[..., Any], tuple[str, ...]] = {}
        self._commands: Array | None = None
        self._command_shape: tuple[int, ...] | None = None  # of the command in `step`
        self._steps, self._next_probe = 0, _FIRST_PROBE
        first = self._batch.first
        self._warn(coarse_step_warning(first.loop, first.q, first.s, self.integrator))
        self._originals: dict[str, Array] = {}  # values before `change` of the numbers that it has changed
        self._set_template()

    def __repr__(self) -> str:
        robots = "one robot" if self.num is None else f"{self.num} robots"
        return f"<Simulation of {self.robot.name!r}: {robots}, {self.integrator}, {self.backend}>"

    # State.

    @property
    def q(self) -> Array:
        """Configurations, (N, nq), mixed units; a copy."""
        return self._shown(self._members.state[:, : self.robot.nq].copy())

    @property
    def v(self) -> Array:
        """Velocities, (N, nv), mixed units; a copy."""
        return self._shown(self._members.state[:, self.robot.nq : self.robot.nq + self.robot.nv].copy())

    @property
    def t(self) -> Any:
        """Times since the reset of each robot, (N,), [s]."""
        return self._shown(self._clock.times)

    @property
    def fallen(self) -> Any:
        """Whether each robot has fallen, (N,), bool."""
        return self._shown(self._outcome > 0.0)

    @property
    def diverged(self) -> Any:
        """Whether the motion of each robot has diverged, (N,), bool."""
        return self._shown(self._outcome < 0.0)

    @property
    def ended(self) -> Any:
        """Whether each robot has fallen or diverged and therefore stays as it is, (N,), bool."""
        return self._shown(self._ended.copy())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each robot has ended, N texts; "" for robots that have not."""
        return tuple(self._reason(i, int(code)) if code else "" for i, code in enumerate(self._outcome))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the `SimulationWarning`s: a step too long for the ground, a joint that chatters; each given once."""
        return tuple(self._warnings)

    @property
    def parameters(self) -> dict[str, Any]:
        """Numbers that `change` takes: name -> present value for the first robot; see `rollout_parameters`."""
        return numbers_of(self._batch.sweep.member(0))

    @property
    def loop(self) -> ClosedLoop:
        """The closed loop of the first robot, with its controller, ground and free bodies."""
        return self._batch.first.loop

    @property
    def time_step(self) -> float:
        """Time by which `step` advances, [s]."""
        return self._grid.step

    @property
    def backend(self) -> str:
        """Description of the code that computes the time steps: compiled or Python."""
        return "no step yet" if self._engine is None else self._engine.name

    @property
    def state(self) -> SimulationState:
        """A copy of the state; assigning one, also of one robot to all N, restores it."""
        nq, nv = self.robot.nq, self.robot.nv
        t, outcome = self._shown(self._clock.times), self._shown(self._outcome.copy())
        q, v, rest = (self._shown(x) for x in np.split(self._members.state.copy(), [nq, nq + nv], axis=1))
        return SimulationState(t, q, v, rest, outcome, self._clock.snapshot(), self._starts)

    @state.setter
    def state(self, state: SimulationState) -> None:
        instance("state", state, SimulationState)
        count = len(self._members.state)
        rows = np.concatenate([np.atleast_2d(part) for part in (state.q, state.v, state.rest)], axis=1)
        if rows.shape[1] != self._members.state.shape[1] or len(rows) not in (1, count):
            raise ShapeError(
                f"the state of {len(rows)} robots with {rows.shape[1]} entries does not fit this simulation of {count} "
                f"robots with {self._members.state.shape[1]} entries"
            )
        self._members.state[:], self._outcome[:] = rows, state.outcome
        self._ended, self._any_ended = self._outcome != 0.0, True
        self._monitor.forget(slice(None))
        self._clock.restore(state._clock)
        if state._starts is not self._starts:
            self._restart(state._starts.repeated(count), np.arange(count))

    def reset(self, q: Numbers | None = None, v: Numbers | None = None, *, where: Any = None) -> None:
        """Start some or all robots again at t = 0, with the controllers' memories as at the start.

        Args:
            q: Configurations, (nq,) for all or (N, nq); by default those of the constructor.
            v: Velocities, (nv,) or (N, nv); by default zero with a given q, else those of the constructor.
            where: Mask of the robots to start again, (N,), bool, or their indices; by default all. Rows of q and v of
                other robots are ignored.

        Raises:
            ShapeError, NotFiniteError, StateError: A state has the wrong shape, is not finite or out of range.
        """
        robots = selected_robots(where, self.num)
        if not len(robots):
            return
        nq, nv = self.robot.nq, self.robot.nv
        v_default = self._initial[1] if q is None else np.zeros(nv)
        count = len(self._members.state)
        q = rows_of("q", self._initial[0] if q is None else q, count, nq)[robots]
        v = rows_of("v", v_default if v is None else v, count, nv)[robots]
        check_states(self.robot, self._batch.closed, q, v)
        starts = self._batch.started(robots.tolist(), q, v)
        self._members.state[robots], self._members.outcome[robots] = starts.states, 0.0
        self._ended[robots] = False
        self._monitor.forget(robots)
        self._clock.restart(robots.tolist(), starts.loops)
        self._restart(self._starts.replaced(robots, starts), robots)

    def change(self, values: Mapping[str, Any]) -> None:
        """Change numbers of robot, controller, ground or pushes while the robots go on.

            sim.change({"robot.trunk.mass": 4.5})  # [kg]

        The first change of a number compiles the time steps again; later changes replace the number in place. Entries
        of the controllers' memories that depend on a changed number at the start, such as a constant command, get the
        value that they have at the start; the others are kept.

        Args:
            values: Name as in `rollout_parameters` -> new value for all robots, (...), or for each, (N, ...), in the
                units of the number.

        Raises:
            UnknownNameError: A number does not exist. ShapeError, NotFiniteError: a value has a wrong shape or is not
                finite. DefinitionError: a number cannot change while the robots go on.
        """
        sweep, before = self._batch.sweep, self._starts
        batch, after = self._restarted(sweep.changed(values))
        if after.states.shape != before.states.shape:
            raise DefinitionError(f"{', '.join(values)} cannot change while the robots go on: make a new Simulation")
        self._originals = sweep.present(set(values) - set(self._originals)) | self._originals
        known = set(values) <= set(sweep.values) and self._template.covers(after.numbers)
        self._batch = batch
        changed = after.states != before.states
        self._members.state[changed] = after.states[changed]
        self._clock.follow(after.loops)
        if known:
            self._restart(after, np.arange(len(after.loops)))
        else:
            self._starts, self._engine = after, None
            self._set_template()

    def change_controller(self, controller: ControllerLike | Any) -> None:
        """Give the robots another controller while they go on, with its memory as at its start in the present states.

        Args:
            controller: As in the constructor.

        Raises:
            DefinitionError: Integrator or ground and controller are incompatible, or the controller the robot.
        """
        nominal, values = self._batch.sweep.nominal._replace(controller=controller), self._batch.sweep.values
        kept = {name: x for name, x in values.items() if name.split(".")[0] not in ("controller", "gait")}
        sweep = ParameterSweep(nominal, kept, self._batch.sweep.count)
        batch = replace(self._batch, sweep=sweep, q=self._initial[0], v=self._initial[1])
        old, times, state, outcome = self._starts, self._clock.times, self._members.state, self._outcome
        n = self.robot.nq + self.robot.nv
        everyone = np.arange(len(state))
        new = batch.started(everyone.tolist(), [*state[:, : self.robot.nq]], [*state[:, self.robot.nq : n]])
        memories = self.loop.memory, batch.first.loop.memory
        limits = len(flatten(batch.first.limits)[0])
        if limits:  # those of the first states
            new.numbers[:, -limits:] = old.numbers[:, -limits:]
        new.states[:, n + memories[1] :] = state[:, n + memories[0] :]
        self._begin(batch, new)
        self._outcome[:] = outcome
        self._ended = outcome != 0.0
        self._clock.set(everyone, times)

    # Motion.

    @reads_arguments
    def step(self, command: Any = None, n: int = 1) -> None:
        """Advance all robots that have not ended by n time steps, with the command held.

        Args:
            command: Without a controller the torques of the actuators, (nj,), or generalized forces, (nv,), [N m] or
                [N]; otherwise the command of the controller, (nu,), in its units. With leading axis (N,) one for each
                robot. None for zero torques, and for a controller that takes no command.
            n: Number of time steps.

        Raises:
            ShapeError: The command has another shape than in the first call, or is missing.
            NotFiniteError: The command is not finite. ArgumentError: the controller takes no command.
            TraceError: If `compiled` is True and the closed loop cannot be traced.
        """
        if type(n) is not int or not 0 < n < _MOST_STEPS:
            n = whole("n", n, 1, _MOST_STEPS)
        engine, clock = self._prepared(command), self._clock
        if n <= clock.free_steps:
            rows = clock.write(engine.intervals, n)
            result = engine.run(rows, self._thread_count())
        else:
            result = engine.run(clock.schedule(n), self._thread_count())
        self._any_ended = result == ENDED
        self._unchecked += n
        if self._any_ended:
            outcome = self._outcome
            clock.advance(n, ~self._ended & (outcome != NOT_FINITE), outcome == 0.0)
            if (self._ended != (outcome != 0.0)).any():
                self._unchecked = self._steps_per_check  # what seems to be a fall may be a divergence
        else:
            clock.advance(n)
        self._steps += n
        if self._steps >= self._next_probe:
            self._probe(engine)
        if self._unchecked >= self._steps_per_check:
            self._check_divergence(are_slow=result < 0)

    def advance(self, until: float, command: Any = None) -> None:
        """Advance all robots that have not ended to a time, with the command held.

        The steps divide the time that remains, between break times of the controller, evenly; they are at most the
        integrator's.

        Args:
            until: Time to reach, [s]; robots that have passed it stay.
            command: As in `step`.
        """
        until = number("until", until, "s")
        engine, clock = self._prepared(command), self._clock
        before = clock.times
        if not (before < until).any():
            return
        self._any_ended = engine.run(clock.until(until), self._thread_count()) == ENDED
        passed = np.flatnonzero(~self._ended & (self._outcome != NOT_FINITE) & (before < until))
        clock.set(passed, np.full(len(passed), until))
        self._check_divergence(are_slow=False)

    def _probe(self, engine: StepEngine) -> None:
        """Warn if a joint chatters in some further steps, after which the state is restored; see `chatter`.

        Controllers in Python may keep a state of their own and are not examined.
        """
        self._next_probe = self._steps + min(max(self._steps, _FIRST_PROBE), _MOST_BETWEEN_PROBES)
        if isinstance(engine, PythonEngine):
            return
        members, robot, phase, h = self._members, self.robot, self._clock.phase, self._grid.step
        state, outcome, intervals = members.state.copy(), members.outcome.copy(), engine.intervals.copy()
        velocities = [state[:, robot.nq : robot.nq + robot.nv]]
        for k in range(STEPS):
            engine.intervals[:, 0] = np.stack(np.broadcast_arrays(self._clock.times + k * h, h, 1.0, phase), axis=-1)
            engine.run(len(state), self._thread_count())
            velocities.append(members.state[:, robot.nq : robot.nq + robot.nv].copy())
        found = np.where((members.outcome[:, 0] == 0.0)[:, None], amplitudes(robot, np.array(velocities)), 0.0)
        members.state[:], members.outcome[:], engine.intervals[:] = state, outcome, intervals
        if found.any():
            i = int(found.any(axis=1).argmax())
            self._next_probe = math.inf
            self._warn(("" if self.num is None else f"robot {i}: ") + message(robot, self._clock.times[i], h, found[i]))

    def _warn(self, text: str) -> None:
        if text:
            self._warnings.append(text)
            warn_caller(text, SimulationWarning)

    # Observation.

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of `contacts`."""
        return contact_names(self._batch.first.loop)

    @property
    def contacts(self) -> Contacts:
        """Positions of the contacts and the forces on them, (N, n, 3), and whether they touch, (N, n), bool."""
        found = self.observe(_contacts)
        return found._replace(touching=found.touching > 0.0)

    @reads_arguments
    def observe(self, function: Callable[..., Any]) -> Any:
        """Return a function of the present states of all robots.

            height, forces = sim.observe(lambda q, contacts: (q[6], contacts.forces))

        The names of its arguments say what it is given, for one robot: `t` [s], `phase`, `q` (nq,), `v` (nv,),
        `contacts` (`Contacts`), `wrenches` of the contacts on the links (n_links, 6), `tau`, the generalized forces of
        the actuators (nv,), `memory` of the controller and `command` (nu,). It is traced at the first use, so give the
        same function object at every call.

        Args:
            function: Plain NumPy code that does not branch on values, except by `legged.where`.

        Returns:
            Its arrays with a leading axis (N,), in its own structure.

        Raises:
            UnknownNameError: An argument has another name. TraceError: the function cannot be traced.
            NotFiniteError, SingularError: A result is not finite.
            ArgumentError: It depends on the command, which no step has given yet.
        """
        if not callable(function) or isinstance(function, type):
            raise ArgumentError(f"function must be a function, got {shown(function)}")
        names = self._names.get(function)
        if names is None:
            names = self._names[function] = argument_names(function)
        commands = self._known_commands(names)
        if self._compiled is False or isinstance(self._engine, PythonEngine):
            return self._observed_in_python(function, names, commands)
        t, phase, numbers, states = self._clock.times, self._clock.phase, self._starts.numbers, self._members.state
        if len(states) == 1:
            commands = None if commands is None else commands[0]
            found = self._observer.observe(function, t.item(), phase.item(), numbers[0], commands, states[0])
            if self.num is None:
                return found
            arrays, rebuild = flatten_result(found)
            return rebuild(np.asarray(x, dtype=self._dtype)[None] for x in arrays)
        with thread_limit(self._thread_count()):
            return self._observer.observe(function, t, phase, numbers, commands, states)

    # Parts.

    def _shown(self, values: Array) -> Any:
        """Return values with a leading axis, or those of the only robot."""
        return values if self.num is not None else values[0]

    def _check_divergence(self, are_slow: bool) -> None:
        """End the robots whose motion has diverged, also those that have just fallen, if not all robots are slow."""
        self._unchecked, outcome = 0, self._outcome
        if are_slow and not self._check.has_bodies:
            self._monitor.forget(slice(None))
        else:
            running = ~self._ended & (outcome != NOT_FINITE)
            codes = self._monitor.codes(self._clock.times, self._members.state, running)
            found = codes != 0.0
            if found.any():
                outcome[found], self._any_ended = codes[found], True
        if self._any_ended:
            self._ended = outcome != 0.0

    def _reason(self, i: int, code: int) -> str:
        if code < 0:
            t, s = float(self._clock.times[i]), self._members.state[i, self.robot.nq :]
            gained = float(self._monitor.gained[i]) if code == GAINED_ENERGY else 0.0
            if code != NOT_FINITE:
                return self._check.message(t, s, gained)
            error = self._engine.failure(i) if self._engine is not None else None
            return self._check.message(t, s, reason=NEXT_NOT_FINITE if error is None else str(error))
        limits = self._batch.limits(i, self._starts.states[i, : self.robot.nq])
        assert limits is not None
        return limits.message(self.robot, code)

    def _thread_count(self) -> int:
        if len(self._members.state) == 1:
            return 1
        return default_threads() if self._threads is None else self._threads

    def _restart(self, starts: InitialStates, robots: Array) -> None:
        """Use other controllers and numbers of some robots from now on."""
        same = starts.numbers.shape == self._starts.numbers.shape and (starts.numbers == self._starts.numbers).all()
        self._starts = starts
        if not self._template.covers(starts.numbers):
            self._engine = None
            self._set_template()
        elif self._engine is not None and not (same and isinstance(self._engine, CompiledEngine)):
            try:
                self._engine.restart(starts, robots.tolist())
            except LeggedError:  # an expression of the numbers is not finite
                self._engine = None

    def _restarted(self, sweep: ParameterSweep) -> tuple[RolloutBatch, InitialStates]:
        """Return the robots with other numbers, from the states in which they have started."""
        batch = replace(self._batch, sweep=sweep, q=self._initial[0], v=self._initial[1])
        q, v, _ = np.split(self._starts.states, [self.robot.nq, self.robot.nq + self.robot.nv], axis=1)
        return batch, batch.started(range(len(q)), [*q], [*v])

    def _set_template(self) -> None:
        varying = list(self._batch.varying_at_reset)
        if self._originals:
            _, original = self._restarted(self._batch.sweep.changed(self._originals))
            varying += np.flatnonzero((original.numbers != self._starts.numbers).any(axis=0)).tolist()
        self._template = MemberTemplate(self._batch, self._starts.numbers, varying)
        self._observer = Observer(self._template, self._members.state.shape[1])

    def _prepared(self, command: Any) -> StepEngine:
        """Return the engine with the command of this call."""
        engine = self._engine
        if command is None:
            if self._takes_command and self._batch.sweep.nominal.controller is not None:
                raise ShapeError("the controller takes a command: step(command), an array (nu,), or (N, nu)")
            if engine is None:
                engine = self._engine = self._new_engine(None if self._commands is None else self._commands.shape[1])
            engine.commands[:] = 0.0
            return engine
        if type(command) is not np.ndarray or (command.dtype is not _FLOAT and command.dtype is not self._dtype):
            command = array("command", command)
        if command.shape != self._command_shape:
            self._check_command(command)
        numbers = command.ravel()
        if not math.isfinite(numbers.dot(numbers)):
            array("command", command)  # raises the error if an entry is not finite
        if engine is None or engine.command is None:
            engine = self._engine = self._new_engine(command.shape[-1])
        if engine.commands is not self._commands:
            self._commands = engine.commands
            self._command_shape = self._commands.shape if self.num is not None else self._commands.shape[1:]
        engine.commands[:] = command
        return engine

    def _check_command(self, command: Array) -> None:
        """Raise an error if the command has a wrong shape, or the controller takes none."""
        if not self._takes_command:
            raise ArgumentError(
                "the controller takes no command; give it an argument `command`, as in law(t, q, v, wrenches, command)"
            )
        has_controller = self._batch.sweep.nominal.controller is not None
        sizes: tuple[int, ...] = () if has_controller else (self.robot.nj, self.robot.nv)
        check_command_shape(command.shape, sizes if self._commands is None else self._commands.shape[1:], self.num)

    def _new_engine(self, command: int | None) -> StepEngine:
        starts = self._starts._replace(states=self._members.state.copy())
        return new_engine(self._template, starts, self._members, self.integrator, self._compiled, command)

    def _known_commands(self, names: tuple[str, ...]) -> Array | None:
        """Return the commands of the last step for a function of these quantities, None if it does not need them."""
        if not (depends_on_command(names) and self._takes_command):
            return None
        if self._commands is None and self._batch.sweep.nominal.controller is not None:
            raise ArgumentError("tau and command are known after the first step, which gives the command")
        return self._commands

    def _observed_in_python(self, function: Callable[..., Any], names: tuple[str, ...], commands: Array | None) -> Any:
        """Return an observed function, evaluated for one robot after the other."""
        rows, nq, rebuild = [], self.robot.nq, None
        for i, loop in enumerate(self._starts.loops):
            command = np.zeros(0) if commands is None else commands[i]
            own = loop if commands is None else commanded(loop, command)
            state, t, phase = self._members.state[i].copy(), float(self._clock.times[i]), int(self._clock.phase[i])
            found = observed(function, names, own, t, phase, state[:nq], state[nq:], command)
            arrays, rebuild = flatten_result(found)
            rows.append(arrays)
        assert rebuild is not None
        columns = (np.array([np.asarray(x, dtype=float) for x in column]) for column in zip(*rows, strict=True))
        return rebuild(self._shown(column) for column in columns)


def _grid(integrator: Integrator, period: float | None) -> FixedStep:
    """Return the time steps to which `step` advances."""
    if isinstance(integrator, FixedStep):
        if period is not None:
            raise DefinitionError(f"the period of {integrator} is its step; leave out period")
        return integrator
    return FixedStep(_CHECK_INTERVAL if period is None else number("period", period, "s", above=0))


def _contacts(contacts: Contacts) -> Contacts:
    return contacts
