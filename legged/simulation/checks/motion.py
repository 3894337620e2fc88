"""Warnings about a motion: of a run, which `simulate` gives and a member of `rollout` has, and of a `Simulation`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from legged.compiler import thread_limit
from legged.contact.rigid import Rigid, violation_message
from legged.simulation.checks.chatter import Advance, chatter_of_run, chatter_of_states
from legged.simulation.checks.energy import energy_warning
from legged.simulation.checks.stable_step import StiffStops
from legged.simulation.controller import is_passive
from legged.simulation.forces import base_force_text
from legged.simulation.integrators import Integrator, StateSample
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.results.run import Run

if TYPE_CHECKING:  # they import this package
    from legged.simulation.stepping.engines import StepEngine
    from legged.simulation.stepping.simulated_robots import SimulatedRobots

_FIRST_PROBE, _MOST_BETWEEN_PROBES = 64, 4096  # time steps before and between probes for chatter, which take 12
_FIRST_ENERGY, _BETWEEN_ENERGIES = 10, 20  # examinations before and between evaluations of the energy


def motion_warnings(
    run: Run,
    loop: ClosedLoop,
    q: np.ndarray,
    integrator: Integrator,
    states: Sequence[StateSample],
    advance: Advance,
    judges_energy: bool,
) -> tuple[str, ...]:
    """Return the warnings about the motion of a run: stops, joints that chatter, the contact law, and the energy.

    The last one is the notice of the controller, if it has one.

    A stop that is too stiff for the step makes its joint chatter, and all of these change the energy: only the cause is
    named.

    Args:
        run: The run. loop: Its closed loop. q: Configuration, (nq,), at which steps are judged, mixed units.
        integrator: The integrator. states: The samples. advance: Advances the robot from other states.
        judges_energy: Whether the energy is judged; False if the run ended early, or if a warning about its start
            explains an error of the energy.
    """
    unstable = StiffStops(loop.robot, q, integrator).warning(run.q)
    unstable = unstable or chatter_of_run(loop.robot, advance, integrator, states)
    worst = float(run.contacts.worst_residual[-1])
    violated = violation_message(loop.ground, worst) if isinstance(loop.ground, Rigid) else ""
    risen = energy_warning(run, loop, integrator) if judges_energy and not (unstable or violated) else ""
    noticed = controller_notice(loop, float(run.times[-1]), states[-1].s) if len(run.times) else ""
    return tuple(filter(None, (unstable, violated, risen, noticed)))


def controller_notice(loop: ClosedLoop, t: float, s: np.ndarray) -> str:
    """Return the notice of a controller, see `legged.simulation.controller.Controller`; "" for none.

    Args:
        loop: The closed loop. t: Time, [s]. s: Rest of the state, (n,), mixed units.
    """
    notice = getattr(loop.controller, "notice", None)
    return notice(t, loop.split(s).memory) if notice is not None and np.isfinite(s).all() else ""


class MotionWarnings:
    """Warnings about the motion of a `Simulation`, each once.

    Forces of a command for a base without motors come first, then a stop that is too stiff for the step, then joints
    that chatter, then an energy that rises without work. Controllers in Python may keep a state of their own and are
    not probed for chatter.

    Args:
        robots: The robots.
    """

    def __init__(self, robots: SimulatedRobots):
        self._robots, self._warned_of_base = robots, False
        self._next_probe = float(_FIRST_PROBE)  # number of time steps at the next probe
        self._between_probes = _FIRST_PROBE
        self._stops: StiffStops | None = StiffStops(robots.batch.robot, robots.batch.first.q, robots.integrator)
        self._to_energy = _FIRST_ENERGY  # examinations before the next evaluation of the energy
        self._noticed = False

    def next(self, threads: int, is_explained: bool) -> tuple[int, str]:
        """Return the index of a robot and the warning about it; "" if there is none, or no probe is due.

        Args:
            threads: Maximal number of threads. is_explained: Whether a warning before explains an error of the energy.
        """
        robots, engine = self._robots, self._robots.engine
        robot, states = robots.batch.robot, robots.members.state
        if engine is not None and engine.is_compiled and not self._warned_of_base:
            texts = self._of_base_commands(engine)
            self._warned_of_base = any(texts)
            if any(texts):
                return _first(texts)
        q = states[:, : robot.nq]
        if self._stops is not None and self._stops.warning(q):
            texts, self._stops = [self._stops.warning(row[None]) for row in q], None
            return _first(texts)
        i, text = self._chatter(engine, threads) if engine is not None and engine.is_compiled else (0, "")
        return (i, text) if text or is_explained else self._energy(threads)

    def _energy(self, threads: int) -> tuple[int, str]:
        """Return the warning about the energy if its evaluation is due."""
        robots, states = self._robots, self._robots.members.state
        self._to_energy -= 1
        if self._to_energy > 0:
            return 0, ""
        self._to_energy, running = _BETWEEN_ENERGIES, robots.outcome == 0.0
        i, text = self._notice(states, running)
        if text:
            return i, text
        if not (running.any() and robots.knows_energies):
            return 0, ""
        with thread_limit(threads):
            robots.follow_energy(states[None], running[None])
        i, text = robots.energy.warning()
        robots.energy.is_judged &= not text
        return i, text

    def _notice(self, states: np.ndarray, running: np.ndarray) -> tuple[int, str]:
        """Return the first notice of a controller, once."""
        loop, nq = self._robots.batch.first.loop, self._robots.batch.robot.nq
        if self._noticed or getattr(loop.controller, "notice", None) is None or not running.any():
            return 0, ""
        rows = zip(self._robots.clock.times, states, running, strict=True)
        texts = [controller_notice(loop, float(t), row[nq:]) if runs else "" for t, row, runs in rows]
        self._noticed = any(texts)
        return _first(texts) if self._noticed else (0, "")

    def _chatter(self, engine: StepEngine, threads: int) -> tuple[int, str]:
        """Return the warning about a joint that chatters if a probe is due."""
        robots = self._robots
        robot, states = robots.batch.robot, robots.members.state
        if robots.steps < self._next_probe:
            return 0, ""
        self._next_probe = float(robots.steps + self._between_probes)
        self._between_probes = min(2 * self._between_probes, _MOST_BETWEEN_PROBES)
        clock = robots.clock.times, robots.clock.integrator.step, robots.clock.phase
        advance = partial(engine.advance, threads=threads)
        i, text = chatter_of_states(robot, advance, states, robots.outcome == 0.0, *clock)
        if text:
            self._next_probe = math.inf
        return i, text

    def _of_base_commands(self, engine: StepEngine) -> list[str]:
        """Return a warning for each robot whose command has forces for its base, else ""."""
        batch = self._robots.batch
        if not is_passive(batch.first.loop.controller) or engine.given.command != batch.robot.nv:
            return []  # plain equations warn themselves, see `ClosedLoop.notices`
        return [base_force_text(batch.robot, row[: batch.robot.nv]) for row in engine.commands]


def _first(texts: list[str]) -> tuple[int, str]:
    """Return the first text that is not empty, and its index."""
    return next((i, text) for i, text in enumerate(texts) if text)
