"""`SimulatedRobots`: the robots of a `Simulation`, whose states, numbers and controllers change in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from legged.arguments import array
from legged.compiler import NOT_FINITE, thread_limit
from legged.compiler.ir import flatten as flatten_result
from legged.errors import DefinitionError, LeggedError, ShapeError
from legged.simulation.checks.divergence import GAINED_ENERGY
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import NEXT_NOT_FINITE, FixedStep, Integrator
from legged.simulation.stepping.batch import MemberTemplate, RolloutBatch
from legged.simulation.stepping.clock import Clock
from legged.simulation.stepping.commands import Commands
from legged.simulation.stepping.engines import CompiledEngine, StepEngine
from legged.simulation.stepping.observation import Observer
from legged.simulation.stepping.parameter_tree import flatten
from legged.simulation.stepping.parameters import ParameterSweep
from legged.simulation.stepping.python_engine import PythonEngine
from legged.simulation.stepping.starts import InitialStates
from legged.simulation.stepping.stepper import Stepper

Array = np.ndarray
_INTERVAL = 0.01  # [s], between examinations, the default sampling interval of `simulate`


@dataclass(frozen=True, eq=False)
class SimulationState:
    """A copy of everything that changes in a `Simulation`; assigned to `Simulation.state`, it restores it.

    The arrays have a leading axis (N,) in a simulation of N robots.

    Attributes:
        t: Time, [s].
        q: Configuration, (nq,). v: Velocity, (nv,).
        rest: Rest of the state, (n,): memories of controller and ground, work of actuators, contacts, pushes and joints
            [J], configuration (7,) and velocity (6,) of each free body.
        outcome: 0.0 for a robot that is simulated, negative if its motion diverged, positive if it fell; see
            `FallLimits.termination_code`.
    """

    t: Array
    q: Array
    v: Array
    rest: Array
    outcome: Array
    _clock: Any
    _starts: InitialStates


class SimulatedRobots(Stepper):
    """The robots of a `Simulation`, whose numbers and controllers can change, with a time of its own for each.

    Args:
        batch: The robots, with the initial states q and v of each. starts: The robots at the start.
        num: Number of robots, N; None for one robot, whose arrays have no leading axis.
        integrator: The integrator. grid: The time steps to which `Simulation.step` advances.
        compiled: As in `Simulation`.

    Attributes:
        clock: Time and phase of each robot. commands: Commands and external wrenches that they receive.
        ended: Whether each robot has fallen or diverged, (N,), bool, as of the last examination.
        steps: Number of time steps up to the last examination. left: Number of time steps until the next one.
    """

    def __init__(
        self,
        batch: RolloutBatch,
        starts: InitialStates,
        num: int | None,
        integrator: Integrator,
        grid: FixedStep,
        compiled: bool | None,
    ):
        super().__init__(batch, integrator, compiled, starts)
        self.commands, self._num = Commands(batch, num), num
        self.members.stored[:] = 0.0
        self._history = self._view_of_history()
        self.clock = Clock(grid, starts.loops, edges=not isinstance(integrator, FixedStep))
        self.ended = np.zeros(len(starts.states), dtype=bool)
        self.steps, self._interval = 0, max(round(_INTERVAL / grid.step), 1)
        self.left = self._interval
        self._originals: dict[str, Array] = {}  # values before `change` of the numbers that it has changed
        self._set_template()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for `pickle` and `copy`, without views of arrays."""
        return {name: value for name, value in vars(self).items() if name not in ("outcome", "_history")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, outcome=state["members"].outcome[:, 0])
        self._history = self._view_of_history()

    # Examination of the motion.

    def examine(self, are_slow: bool = False) -> None:
        """End the robots whose motion has diverged, also those that have just fallen.

        Args:
            are_slow: Whether all joints and bases are known to be slow, which cannot have diverged.
        """
        self.steps, self.left = self.steps + self._interval - self.left, self._interval
        if are_slow and not self.check.has_bodies:
            self._monitor.forget(slice(None))
            return
        running = ~self.ended & (self.outcome != NOT_FINITE)
        codes = self._monitor.codes(self.clock.times, self.members.state, running)
        self.outcome[codes != 0.0] = codes[codes != 0.0]
        self.ended = self.outcome != 0.0

    def reason(self, i: int) -> str:
        """Return why robot i has ended, "" if it has not."""
        code = int(self.outcome[i])
        if code >= 0:
            return super().reason(i)
        t, nq = float(self.clock.times[i]), self.batch.robot.nq
        q, s = np.zeros((0, nq)), self.members.state[i, nq:]
        if code == NOT_FINITE:
            error = None if self.engine is None else self.engine.failure(i)
            return self.check.message(t, s, q, reason=NEXT_NOT_FINITE if error is None else str(error))
        return self.check.message(t, s, q, float(self._monitor.gained[i]) if code == GAINED_ENERGY else 0.0)

    def _view_of_history(self) -> Array | None:
        """Return the entries of the states that hold the history of contacts, (N, c); None without contacts."""
        at, nq = self.batch.first.loop.history_entries, self.batch.robot.nq
        return self.members.state[:, nq + at.start : nq + at.stop] if at.start < at.stop else None

    @property
    def notices(self) -> list[str]:
        """The warnings of the equations of motion, see `ClosedLoop.notices`."""
        loops = self.batch.first.loop, *self.starts.loops
        return [text for loop in loops for text in loop.notices.values()]

    def shown(self, values: Array) -> Any:
        """Return values of all robots, (N, ...), or of the only one without the leading axis; see `num`."""
        return values if self._num is not None else values[0]

    @property
    def state(self) -> SimulationState:
        """A copy of the state."""
        nq, nv = self.batch.robot.nq, self.batch.robot.nv
        t, outcome = self.shown(self.clock.times), self.shown(self.outcome.copy())
        q, v, rest = (self.shown(x) for x in np.split(self.members.state.copy(), [nq, nq + nv], axis=1))
        return SimulationState(t, q, v, rest, outcome, self.clock.snapshot(), self.starts)

    def restore(self, state: SimulationState) -> None:
        """Return to a state; see `Simulation.state`."""
        (count, size), nq, nv = self.members.state.shape, self.batch.robot.nq, self.batch.robot.nv
        sizes = {"q": nq, "v": nv, "rest": size - nq - nv}
        parts = [np.atleast_2d(array(f"{name} of the state", getattr(state, name))) for name in sizes]
        outcome = np.atleast_1d(array("outcome of the state", state.outcome))
        if [x.shape for x in (*parts, outcome)] not in [[*((k, n) for n in sizes.values()), (k,)] for k in (1, count)]:
            raise ShapeError(
                f"the state of {len(parts[0])} robots with {sum(x.shape[-1] for x in parts)} entries does not fit this "
                f"simulation of {count} robots with {size} entries"
            )
        shapes = [starts.numbers.shape[1:] for starts in (state._starts, self.starts) if not starts.refused]
        if self._originals and len(set(shapes)) == 2:
            raise DefinitionError(
                f"the state is older than the first change of {', '.join(self._originals)}, which it does not hold; "
                f"take a state after the change"
            )
        self.members.state[:], self.outcome[:] = np.concatenate(parts, axis=1), outcome
        self.clock.restore(*state._clock)
        if state._starts is not self.starts:
            self.restart(state._starts.repeated(count), np.arange(count))
        self.ended = self.outcome != 0.0
        self._forget(slice(None))

    def _forget(self, robots: Any) -> None:
        """Start the checks of divergence and energy of some robots, by indices or a slice, from the present states."""
        self._monitor.forget(robots)
        self.energy.forget(robots)

    def engine_for(self, command: Any, wrenches: Any) -> StepEngine:
        """Return the engine for a call of `Simulation.step` with these inputs, and clear the history of contacts."""
        engine, commands = self.engine, self.commands
        if wrenches is not None or commands.has_wrenches:
            given: Array | None = commands.hold_all(command, () if wrenches is None else wrenches)
            changes = engine is None or engine.given != commands.given
        else:
            given = commands.clear() if command is None else commands.hold(command)
            changes = engine is None or (given is None) != (engine.given.command is None)
        if engine is None or changes:
            engine = self.prepare(commands.given)
        if given is not None:
            engine.commands = given
        if self._history is not None:
            self._history.fill(0.0)
        return engine

    def reset(self, robots: Array, q: Array, v: Array) -> None:
        """Start some robots again.

        Args:
            robots: Their indices, (k,), dimensionless. q: Configurations, (k, nq), mixed units.
            v: Velocities, (k, nv), mixed units.
        """
        starts = self.batch.starts.of(self.compiled, robots.tolist(), q, v, self.starts.refused)
        self.members.state[robots], self.members.outcome[robots] = starts.states, 0.0
        self.ended[robots] = False
        self._forget(robots)
        self.clock.set(robots, 0.0, loops=starts.loops)
        self.restart(self.starts.replaced(robots, starts), robots)

    def restart(self, starts: InitialStates, robots: Array) -> None:
        """Use other controllers and numbers of some robots from now on.

        Args:
            starts: All robots at their starts. robots: Indices of those that differ, (k,), dimensionless.
        """
        same = starts.numbers.shape == self.starts.numbers.shape and (starts.numbers == self.starts.numbers).all()
        self.starts = starts
        if not self.template.covers(starts.numbers) or (starts.refused and isinstance(self.engine, CompiledEngine)):
            self.engine = None
            self._set_template()
        elif self.engine is not None and not (same and isinstance(self.engine, CompiledEngine)):
            try:
                self.engine.restart(starts, robots.tolist())
            except LeggedError:  # an expression of the numbers is not finite
                self.engine = None

    def change(self, values: Mapping[str, Any]) -> None:
        """Change numbers; see `Simulation.change`."""
        sweep, before = self.batch.sweep, self.starts
        batch, after = self._restarted(sweep.changed(values))
        if after.states.shape != before.states.shape:
            raise DefinitionError(f"{', '.join(values)} cannot change while the robots go on: make a new Simulation")
        self._originals = sweep.present(set(values) - set(self._originals)) | self._originals
        known = set(values) <= set(sweep.values) and self.template.covers(after.numbers)
        self.batch = batch
        self._forget(slice(None))
        changed = after.states != before.states
        self.members.state[changed] = after.states[changed]
        self.clock.set(np.arange(len(after.loops)), loops=after.loops)
        if known:
            self.restart(after, np.arange(len(after.loops)))
        else:
            self.starts, self.engine = after, None
            self._set_template()

    def with_controller(self, controller: ControllerLike | Any) -> tuple[RolloutBatch, InitialStates]:
        """Return the robots with another controller, started in their present states."""
        nominal, values = replace(self.batch.sweep.nominal, controller=controller), self.batch.sweep.values
        kept = {name: x for name, x in values.items() if name.split(".")[0] not in ("controller", "gait")}
        batch = replace(self.batch, sweep=ParameterSweep(nominal, kept, self.batch.sweep.count))
        states, robot = self.members.state, batch.robot
        n = robot.nq + robot.nv
        new = batch.starts.of(self.compiled, range(len(states)), states[:, : robot.nq], states[:, robot.nq : n])
        memories = self.batch.first.loop.memory, batch.first.loop.memory
        limits = len(flatten(batch.first.limits)[0])
        if limits:  # the limits of a fall stay those of the first states
            new.numbers[:, -limits:] = self.starts.numbers[:, -limits:]
        new.states[:, n + memories[1] :] = states[:, n + memories[0] :]
        return batch, new

    def observe(self, function: Callable[..., Any], threads: int, running: bool = False) -> Any:
        """Return a function of the present states; see `Simulation.observe`."""
        held = self.commands.known() if self._observer.depends_on_command(function) else None
        t, phase, numbers, states = self.clock.times, self.clock.phase, self.starts.numbers, self.members.state
        if running and self.ended.any():
            states = np.where(self.ended[:, None], self.starts.repeated(len(states)).states, states)
        if self.compiled is False or self.starts.refused or isinstance(self.engine, PythonEngine):
            columns, rebuild = self._observer.one_by_one(function, self.starts.loops, t, phase, states, held)
            return rebuild(self.shown(column) for column in columns)
        if len(states) == 1:
            held = None if held is None else held[0]
            observation = self._observer.observe(function, t.item(), phase.item(), numbers[0], held, states[0])
            if self._num is None:
                return observation
            arrays, rebuild = flatten_result(observation)
            return rebuild(np.asarray(x, dtype=states.dtype)[None] for x in arrays)
        with thread_limit(threads):
            return self._observer.observe(function, t, phase, numbers, held, states)

    def _restarted(self, sweep: ParameterSweep) -> tuple[RolloutBatch, InitialStates]:
        """Return the robots with other numbers, from the states in which they have started."""
        batch, nq, nv = replace(self.batch, sweep=sweep), self.batch.robot.nq, self.batch.robot.nv
        q, v, _ = np.split(self.starts.states, [nq, nq + nv], axis=1)
        return batch, batch.starts.of(self.compiled, range(len(q)), q, v, self.starts.refused)

    def _set_template(self) -> None:
        refused = self.starts.refused
        varying = [*range(self.starts.numbers.shape[1])] if refused else list(self.batch.starts.varying_at_reset)
        if self._originals and not refused:
            _, original = self._restarted(self.batch.sweep.changed(self._originals))
            varying += np.flatnonzero((original.numbers != self.starts.numbers).any(axis=0)).tolist()
        self.template = MemberTemplate(self.batch, self.starts.numbers, varying)
        self._observer = Observer(self.template, self.members.state.shape[1])
