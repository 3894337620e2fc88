"""`Simulation`: one robot or many that are advanced step by step, with their states in place between calls.

    sim = legged.Simulation(robot, ground=ground, num=64)
    sim.reset(q, v)
    for _ in range(100):
        sim.step(torques, n=4)                     # four time steps with the same torques
        height = sim.observe(height_of)                # a function that was made once: `def height_of(q): ...`
        sim.reset(where=sim.ended)

The time steps of all robots are one call of machine code. See docs/explanation/simulation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from legged.arguments import Numbers, instance, number, shown, whole
from legged.checked import checked, reads_arguments
from legged.compiler import ENDED, NOT_FINITE, check_threads, default_threads, element_type
from legged.contact.rigid import FreeBody, Rigid
from legged.errors import ArgumentError, DefinitionError, SimulationWarning, warn_caller
from legged.ground.ground import Ground
from legged.loops.closed_robot import ClosedRobot
from legged.robot.robot import Robot
from legged.simulation.checks.fall import Fall
from legged.simulation.checks.motion import MotionWarnings
from legged.simulation.checks.overlap import OverlapCheck, refuse_chosen
from legged.simulation.checks.stable_step import step_warning
from legged.simulation.controller import ControllerLike
from legged.simulation.integrators import FixedStep, Integrator
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.external_wrenches import ExternalWrench, Push
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.commands import check_states, rows_of, selected_robots
from legged.simulation.stepping.observation import Contacts, contacts_of
from legged.simulation.stepping.parameters import numbers_of
from legged.simulation.stepping.simulated_robots import SimulatedRobots, SimulationState
from legged.simulation.stepping.starts import InitialStates
from legged.simulation.stepping.stepper import select_integrator

Array = np.ndarray
_MOST_STEPS = 10**12
_PERIOD = 0.01  # [s], of a step with variable integration steps
_ControllerLike = ControllerLike | Callable[[Any, Array, Array, Array, Array], Array]  # the last argument is a command


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
        pushes: `Push`es and `ExternalWrench`es; times count from each reset. bodies: Free bodies, on a `Rigid` ground.
        fall: When a robot has fallen: a `Fall`, or False for never; default as in `simulate`.
        compiled: True requires machine code, False runs the controller in Python, None compiles if possible; see
            `backend`.
        threads: Number of threads; by default the number of processors, where it pays.
        dtype: Type of the numbers with which time steps are computed, of states and of observations, as in `rollout`.

    Raises:
        ArgumentError, ShapeError, NotFiniteError: An argument has a wrong type or shape, or is not finite.
        DefinitionError: Ground, integrator, bodies and controller are incompatible.
        StateError: A joint is beyond its stop. `step` raises it for a robot in a default state inside of the ground.
        TraceError: If compiled is True, or the type is float32, and the closed loop cannot be traced.
        PrecisionError: If dtype is another type.
    """

    def __init__(
        self,
        robot: Robot | ClosedRobot,
        controller: _ControllerLike = None,
        *,
        ground: Ground | Rigid | None = None,
        num: int | None = None,
        q: Numbers | None = None,
        v: Numbers | None = None,
        integrator: Integrator | None = None,
        period: float | None = None,
        vary: Mapping[str, Any] | None = None,
        pushes: Sequence[Push | ExternalWrench] = (),
        bodies: Sequence[FreeBody] = (),
        fall: Fall | bool | None = None,
        compiled: bool | None = None,
        threads: int | None = None,
        dtype: Any = None,
    ):
        closed = robot if isinstance(robot, ClosedRobot) else None
        count = 1 if num is None else whole("num", num, 1)
        self.integrator = select_integrator(integrator, ground, bodies, closed)
        fixed = self.integrator if isinstance(self.integrator, FixedStep) else None
        if fixed is not None and period is not None:
            raise DefinitionError(f"the period of {fixed} is its step; leave out period")
        self._grid = fixed or FixedStep(_PERIOD if period is None else number("period", period, "s", above=0))
        self.num, self._compiled = num, compiled
        threads = None if threads is None else check_threads(threads)
        self._threads = 1 if count == 1 else threads  # None for the default
        setup, options = (controller, ground, pushes, bodies), {"count": count, "element": element_type(dtype)}
        batch = RolloutBatch.of(robot, setup, (q, v), vary=vary, fall=fall, **options)
        self.robot, self._initial = batch.robot, batch.given_states
        batch = replace(batch, q=self._initial[0], v=self._initial[1])
        self._warnings: list[str] = []
        self._warn(self._begin(batch, batch.starts.of(compiled, range(count), *batch.given_states)))
        self._overlap, self._word = OverlapCheck(), "" if num is None else "robot"
        self._unchecked = set(range(count)) if q is None else None  # in default states, which `reset` often replaces
        if q is not None:
            self._check_starts(range(count))

    def _begin(self, batch: RolloutBatch, starts: InitialStates) -> str:
        """Start all robots at t = 0 with the controllers of a batch, and return a warning of the step, or ""."""
        loop, q, s, _ = batch.first
        robots = SimulatedRobots(batch, starts, self.num, self.integrator, self._grid, self._compiled)
        warning = step_warning(loop, q, s, self.integrator)
        self._robots, self._motion_warnings = robots, MotionWarnings(robots)
        return warning

    def __repr__(self) -> str:
        robots = "one robot" if self.num is None else f"{self.num} robots"
        return f"<Simulation of {self.robot.name!r}: {robots}, {self.integrator}, {self.backend}>"

    @property
    def q(self) -> Array:
        """Configurations, (N, nq), mixed units; a copy."""
        return self._robots.shown(self._robots.members.state[:, : self.robot.nq].copy())

    @property
    def v(self) -> Array:
        """Velocities, (N, nv), mixed units; a copy."""
        return self._robots.shown(self._robots.members.state[:, self.robot.nq : self.robot.nq + self.robot.nv].copy())

    @property
    def t(self) -> Any:
        """Times since the reset of each robot, (N,), [s]."""
        return self._robots.shown(self._robots.clock.times)

    @property
    def fallen(self) -> Any:
        """Whether each robot has fallen, (N,), bool."""
        return self._robots.shown(self._robots.outcome > 0.0)

    @property
    def diverged(self) -> Any:
        """Whether the motion of each robot has diverged, (N,), bool."""
        return self._robots.shown(self._robots.outcome < 0.0)

    @property
    def ended(self) -> Any:
        """Whether each robot has fallen or diverged and therefore stays as it is, (N,), bool."""
        return self._robots.shown(self._robots.ended.copy())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each robot has ended, N texts; "" for robots that have not."""
        return tuple(self._robots.reason(i) for i in range(len(self._robots.outcome)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """Texts of the `SimulationWarning`s, each given once: start inside the ground, long step, faults of motion."""
        return tuple(dict.fromkeys((*self._warnings, *self._robots.notices)))

    @property
    def parameters(self) -> dict[str, Any]:
        """Numbers that `change` takes: name -> present value for the first robot; see `rollout_parameters`."""
        return numbers_of(self._robots.batch.sweep.member(0))

    @property
    def loop(self) -> ClosedLoop:
        """The closed loop of the first robot, with its controller, ground and free bodies."""
        return self._robots.batch.first.loop

    @property
    def time_step(self) -> float:
        """Time by which `step` advances, [s]."""
        return self._grid.step

    @property
    def backend(self) -> str:
        """Description of the code that computes the time steps: compiled or Python."""
        return "no step yet" if self._robots.engine is None else self._robots.engine.name

    @property
    def state(self) -> SimulationState:
        """A copy of the state; assigning one, also of one robot to all N, restores it."""
        return self._robots.state

    @state.setter
    def state(self, state: SimulationState) -> None:
        instance("state", state, SimulationState)
        self._robots.restore(state)

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
        is_initial, v_default = q is None, self._initial[1] if q is None else np.zeros(nv)
        count = len(self._robots.outcome)
        q = rows_of("q", self._initial[0] if q is None else q, count, nq)[robots]
        v = rows_of("v", v_default if v is None else v, count, nv)[robots]
        check_states(self.robot, self._robots.batch.closed, q, v)
        self._robots.reset(robots, q, v)
        if not is_initial:
            self._check_starts(robots.tolist())
        elif self._unchecked is not None:
            self._unchecked |= set(robots)

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
        self._robots.change(values)

    def change_controller(self, controller: _ControllerLike) -> None:
        """Give the robots another controller while they go on, with its memory as at its start in the present states.

        Args:
            controller: As in the constructor.

        Raises:
            DefinitionError: Integrator or ground and controller are incompatible, or the controller the robot.
        """
        before, everyone = self._robots, np.arange(len(self._robots.outcome))
        warning = self._begin(*before.with_controller(controller))
        self._robots.outcome[:] = before.outcome
        self._robots.ended = before.outcome != 0.0
        self._robots.clock.set(everyone, before.clock.times)
        self._warn(warning)

    # Motion.

    @reads_arguments
    def step(self, command: Any = None, n: int = 1, *, wrenches: Any = None) -> None:
        """Advance all robots that have not ended by n time steps, with the command and external wrenches held.

            sim.step(torques, wrenches=legged.ExternalWrench("trunk", force=(0.0, 20.0, 0.0)))  # [N], world axes

        Args:
            command: Without a controller the torques of the actuators, (nj,), or generalized forces, (nv,), [N m] or
                [N]; otherwise the command of the controller, (nu,), in its units. With leading axis (N,) one for each
                robot. None for zero torques, and for a controller that takes no command.
            n: Number of time steps.
            wrenches: An `ExternalWrench`, or a list of them, that act in this call only, beside `pushes`; force and
                torque are (3,), or (N, 3) with one for each robot. The first wrench on a link in its frame compiles the
                time steps again; later ones, also at other points, do not.

        Raises:
            ShapeError: The command has another shape than in the first call, or is missing.
            NotFiniteError: The command is not finite; the robots and the previous command do not change.
            ArgumentError, UnknownNameError: The controller takes no command, a wrench changes with time or has no link.
            TraceError: If `compiled` is True and the closed loop cannot be traced.
        """
        if type(n) is not int or not 0 < n < _MOST_STEPS:
            n = whole("n", n, 1, _MOST_STEPS)
        if self._unchecked:
            self._check_defaults()
        robots = self._robots
        engine, clock = robots.engine_for(command, wrenches), robots.clock
        rows = clock.write(engine.intervals, n) if n <= clock.free_steps else clock.schedule(n)
        result = engine.run(rows, self._threads or default_threads())
        robots.left -= n
        if result != ENDED:
            clock.advance(n)
        else:
            outcome, ended = robots.outcome, robots.ended
            clock.advance(n, ~ended & (outcome != NOT_FINITE), outcome == 0.0)
            if (ended != (outcome != 0.0)).any():  # what seems to be a fall may be a divergence
                robots.examine()
        if robots.left <= 0:
            self._examine(result < 0)

    def advance(self, until: float, command: Any = None, *, wrenches: Any = None) -> None:
        """Advance all robots that have not ended to a time, with the command and external wrenches held.

        Between break times of the controller, the steps divide the remaining time evenly; they are at most as long as
        those of the integrator.

        Args:
            until: Time to reach, [s]; robots that have passed it stay. command, wrenches: As in `step`.
        """
        clock = self._robots.clock
        until = number("until", until, "s", most=_MOST_STEPS * clock.integrator.step)
        if self._unchecked:
            self._check_defaults()
        engine, before = self._robots.engine_for(command, wrenches), clock.times
        if not (before < until).any():
            return
        engine.run(clock.until(until, ~self._robots.ended), self._threads or default_threads())
        passed = np.flatnonzero(~self._robots.ended & (self._robots.outcome != NOT_FINITE) & (before < until))
        clock.set(passed, np.full(len(passed), until))
        self._examine()

    def _examine(self, are_slow: bool = False) -> None:
        """End the robots whose motion has diverged, and warn about others."""
        self._robots.examine(are_slow)
        i, text = self._motion_warnings.next(self._threads or default_threads(), bool(self._warnings))
        self._warn(text if self.num is None or not text else f"robot {i}: {text}")

    def _check_starts(self, robots: Sequence[int]) -> None:
        """Warn once if some robots in given states have started inside of the ground."""
        self._unchecked = self._unchecked and self._unchecked.difference(robots)
        self._warn(self._overlap.warning(self._robots.template, self._robots.starts, robots, self._word))

    def _check_defaults(self) -> None:
        """Raise StateError if robots that begin in default states, which the user has not given, are in the ground."""
        chosen = sorted(self._unchecked or ())
        refuse_chosen(OverlapCheck().warning(self._robots.template, self._robots.starts, chosen, self._word))
        self._unchecked = None

    def _warn(self, text: str) -> None:
        if text:
            self._warnings.append(text)
            warn_caller(text, SimulationWarning)

    # Observation.

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of `contacts`."""
        return self._robots.batch.first.loop.contact_names

    @property
    def contacts(self) -> Contacts:
        """The contacts of all robots: present positions and forces, and impulses in the last `step`."""
        contacts = self.observe(contacts_of)
        return contacts._replace(touching=contacts.touching > 0.0)

    @reads_arguments
    def observe(self, function: Callable[..., Any], *, running: bool = False) -> Any:
        """Return a function of the present states of all robots.

            height, forces = sim.observe(lambda q, contacts: (q[6], contacts.forces))

        The names of its arguments select the quantities of one robot that it receives: `t` [s], `phase`, `q` (nq,), `v`
        (nv,), `contacts` (`Contacts`), `wrenches` of the contacts on the links (n_links, 6), `tau`, the generalized
        forces of the actuators (nv,), `memory` of the controller and `command` (nu,). It is traced at the first use, so
        give the same function object at every call.

        Args:
            function: Plain NumPy code that does not branch on values, except by `legged.where`.
            running: Whether robots that have ended are left out, whose last states may be beyond the range of numbers:
                their rows are then those of their initial states.

        Returns:
            Its arrays with a leading axis (N,), in its own structure.

        Raises:
            UnknownNameError: An argument has another name. TraceError: the function cannot be traced.
            NotFiniteError, SingularError: A result is not finite.
            ArgumentError: It depends on the command, which no step has given yet.
        """
        if not callable(function) or isinstance(function, type):
            raise ArgumentError(f"function must be a function, got {shown(function)}")
        chosen = bool(instance("running", running, (bool, np.bool_), "True or False"))
        return self._robots.observe(function, self._threads or default_threads(), chosen)
