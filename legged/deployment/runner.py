"""A loop at a fixed rate between a robot and a law, with deadlines, a watchdog, limits, and a safe stop."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import number
from legged.checked import checked
from legged.deployment.interface import JointCommand, Measurement, RobotInterface
from legged.deployment.log import LoopLog, Recorder
from legged.deployment.safety import SafetyLimits
from legged.spatial import Array

_DAMPING_COMMANDS = 50
"""Number of damping commands after a stop, so that the robot gets one although packets are lost."""


@dataclass(frozen=True, eq=False)
class Operation:
    """Timing statistics, end and log of a control loop.

    Attributes:
        reason: Why the loop ended; "the time is over" for a regular end.
        periods: Times between the beginnings of successive periods, (n,), [s], of the interface's clock.
        durations: Times from reading to writing in the periods with a measurement, (m,), [s], of the same clock.
        missed: Number of periods that began late by more than a tenth of the period.
        silent: Number of periods without a new measurement, in which the last command was repeated.
        log: Measurements, commands and estimates.
    """

    reason: str
    periods: Array
    durations: Array
    missed: int
    silent: int
    log: LoopLog

    @property
    def stopped(self) -> bool:
        """Whether a safe stop ended the loop before its time."""
        return self.reason != _OVER

    def __str__(self) -> str:
        if not len(self.periods):
            return f"no evaluation: {self.reason}"
        low, middle, high, most = np.percentile(self.periods, [1, 50, 99, 100]) * 1e3
        longest = 1e3 * max(self.durations, default=0.0)
        return (
            f"{len(self.periods)} evaluations, {self.reason}; period {middle:.3f} ms ({low:.3f} to {high:.3f}, 98 % of "
            f"them), at most {most:.3f} ms; longest evaluation {longest:.3f} ms, "
            f"{self.missed} late, {self.silent} without a measurement"
        )


_OVER = "the time is over"


@checked
class Runner:
    """Runs a law on a robot at a fixed rate; `docs/howto/deploy.md` has an example.

    In every period it reads the newest measurement, evaluates the law, limits the command and writes it. Without a new
    measurement it repeats the last command.

    The loop ends at the end of its time, `watchdog` seconds after the last measurement, when a joint or the base is
    beyond a limit, after an exception in the law or the interface, and when numbers of the law or the readings are not
    finite. It then writes commands that damp all joints, and returns. It raises no exception because of the robot or
    the law. The log grows with every evaluation.

    Args:
        interface: The robot; its `close` is left to the caller.
        law: Function (t, memory, reading, command) -> (memory, torques (nj,) or a `JointCommand`, q), with q the
            estimate of the configuration, (nq,), or an empty array.
        memory: Its initial memory, (m,), mixed units.
        rate: Evaluations per second, [1/s].
        limits: Limits of torques, positions, velocities and tilt; by default those of `SafetyLimits()`.
        watchdog: Longest time without a measurement, [s].
        command: Function of the time since the first measurement, [s], that returns the command of the law, (nc,), such
            as a `LiveVelocity`; by default the command is empty.
    """

    def __init__(
        self,
        interface: RobotInterface,
        law: Callable[..., Any],
        memory: Any,
        *,
        rate: float = 500.0,
        limits: SafetyLimits | None = None,
        watchdog: float = 0.05,
        command: Callable[[float], Any] | None = None,
    ):
        self.interface, self.law, self.memory = interface, law, np.asarray(memory, dtype=float)
        self.period = 1.0 / number("rate", rate, "1/s", above=0.0)
        self.watchdog = number("watchdog", watchdog, "s", above=0.0)
        self._limits = SafetyLimits() if limits is None else limits
        self._command = command or (lambda t: np.zeros(0))
        self._lock, self._stop = threading.Lock(), ""

    def change(self, *, limits: SafetyLimits | None = None, law: Any = None, command: Any = None) -> None:
        """Change limits, law or command while the loop runs; the next evaluation uses them.

        Args:
            limits: New limits. law: A law with the same memory. command: A function of time. All as in `Runner`.
        """
        with self._lock:
            self._limits = self._limits if limits is None else limits
            self.law = self.law if law is None else law
            self._command = self._command if command is None else command

    def stop(self, reason: str = "a stop was requested") -> None:
        """End the loop in a safe stop; callable from another thread.

        Args:
            reason: Why, for `Operation.reason`.
        """
        self._stop = reason or "a stop was requested"

    def run(self, duration: float) -> Operation:
        """Run the control loop, and return its timing statistics and log; it ends in a safe stop.

        Args:
            duration: Time of the loop, [s], of the interface's clock.
        """
        recorder, self._stop = Recorder(), ""
        state = _State(self.interface.clock())
        reason = _OVER
        try:
            reason = self._loop(duration, state, recorder)
        except KeyboardInterrupt:
            reason = "interrupted from the keyboard"
        except Exception as error:  # whatever a law or a driver raises ends in damping
            reason = f"{type(error).__name__}: {error}"
        self._damp(state)
        periods, durations = np.diff(state.begins), np.array(state.durations)
        return Operation(reason, periods, durations, state.missed, state.silent, recorder.log())

    def _loop(self, duration: float, state: _State, recorder: Recorder) -> str:
        interface, start = self.interface, state.last_time
        for k in range(round(duration / self.period)):
            due = start + k * self.period
            interface.sleep_until(due)
            now = interface.clock()
            state.begins.append(now)
            state.missed += now - due > 0.1 * self.period
            if self._stop:
                return self._stop
            measured = interface.read()
            if measured is None:
                state.silent += 1
                if now - state.last_time > self.watchdog:
                    return f"no measurement for {1e3 * (now - state.last_time):.0f} ms"
                if state.last is not None:
                    interface.write(state.last)
                continue
            state.last_time = now
            if reason := self._evaluate(measured, state, recorder):
                return reason
            state.durations.append(interface.clock() - now)
        return _OVER

    def _evaluate(self, measured: Measurement, state: _State, recorder: Recorder) -> str:
        """Evaluate the law, write its command, and return the reason for a stop, "" for none."""
        with self._lock:
            limits, law, source = self._limits, self.law, self._command
        state.nj = len(measured.reading.joints)
        if state.first is None:
            state.first = measured.time
        t = measured.time - state.first
        wanted = np.asarray(source(t), dtype=float)
        memory, output, q = law(t, self.memory, measured.reading, wanted)
        command = output if isinstance(output, JointCommand) else JointCommand.of_torques(output)
        q = np.asarray(q, dtype=float)
        if not (np.isfinite(command.flat()).all() and np.isfinite(q).all()):
            return "the law returned numbers that are not finite"
        if reason := limits.violation(measured.reading, q):
            return reason
        before = np.zeros(state.nj) if state.torques is None else state.torques
        command, state.torques = limits.limited(command, measured.reading, before, self.period)
        self.memory, state.last = memory, command
        self.interface.write(command)
        recorder.add(t, measured, command, q, wanted)
        return ""

    def _damp(self, state: _State) -> None:
        """Write damping commands; a failure of the interface ends it."""
        if not state.nj:  # there was no measurement, and so no command
            return
        try:
            now = self.interface.clock()
            for k in range(_DAMPING_COMMANDS):
                self.interface.write(JointCommand.damping(state.nj, self._limits.damping))
                self.interface.sleep_until(now + (k + 1) * self.period)
        except Exception:  # the interface is gone; the robot's own watchdog has to act
            return


class _State:
    """Times and last values of a loop: `last_time` is the time of the last measurement, or of the start."""

    def __init__(self, now: float):
        self.last_time, self.nj, self.missed, self.silent = now, 0, 0, 0
        self.begins: list[float] = []
        self.durations: list[float] = []
        self.last: JointCommand | None = None
        self.torques: Array | None = None
        self.first: float | None = None
