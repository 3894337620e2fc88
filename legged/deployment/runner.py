"""A loop at a fixed rate between a robot and a law, with deadlines, a watchdog, limits, and a safe stop."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import known_name, number, rounded_array, whole
from legged.checked import checked
from legged.deployment.interface import JointCommand, Measurement, RobotInterface, float_array
from legged.deployment.log import LoopLog, Recorder
from legged.deployment.row_file import ROWS
from legged.deployment.safety import SafetyLimits
from legged.errors import ShapeError
from legged.estimation.readings import Reading
from legged.output import output_file
from legged.spatial import Array

_DAMPING_COMMANDS = 50
"""Number of damping commands after a stop, so that the robot gets one although packets are lost."""
_CLOCK_ERROR = 1e-3
"""Time by which a clock may go back, [s]: the rounding of its numbers, and corrections of a synchronized clock."""


@dataclass(frozen=True, eq=False)
class Operation:
    """Timing statistics, end and log of a control loop.

    Attributes:
        reason: Why the loop ended; "the time is over" for a regular end.
        periods: Times between the beginnings of successive periods, (n,), [s], of the interface's clock; the last ones.
        durations: Times from reading to writing in the periods with a measurement, (m,), [s], of the same clock; the
            last ones.
        longest_period, longest_duration: The longest ones of the whole operation, [s].
        missed: Number of periods that began late by more than a tenth of the period, or were left out.
        silent: Number of periods without a new measurement, in which the last command was repeated.
        log: Measurements, commands and estimates; the last ones.
        path: File with all rows of the log, for `legged.deployment.LoopLog.load`; None if there is none.
    """

    reason: str
    periods: Array
    durations: Array
    longest_period: float
    longest_duration: float
    missed: int
    silent: int
    log: LoopLog
    path: Path | None

    @property
    def stopped(self) -> bool:
        """Whether a safe stop ended the loop before its time."""
        return self.reason != _OVER

    def __str__(self) -> str:
        if not len(self.periods):
            return f"no evaluation: {self.reason}"
        low, middle, high = np.percentile(self.periods, [1, 50, 99]) * 1e3
        most, longest = 1e3 * self.longest_period, 1e3 * self.longest_duration
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
    measurement it repeats the last command. Periods that a busy computer has missed are left out.

    The loop ends at the end of its time, `watchdog` seconds after the last measurement or the last period, when the
    clock of the robot goes back, when a joint or the base is beyond a limit, after an exception in the law, the
    interface or the log, when numbers of the law or the readings are not finite, and by the signals SIGINT (Ctrl-C) and
    SIGTERM. It then writes commands that damp all joints, and returns. It raises no exception because of the robot or
    the law. A measurement whose time does not exceed that of the one before is no new measurement.

    Args:
        interface: The robot; its `close` is left to the caller.
        law: Function (t, memory, reading, command) -> (memory, torques (nj,) or a `JointCommand`, q), with q the
            estimate of the configuration, (nq,), or an empty array; its fifth argument are the live parameters if there
            are any.
        memory: Its initial memory, (m,), mixed units.
        rate: Evaluations per second, [1/s].
        limits: Limits of torques, positions, velocities and tilt; by default those of `SafetyLimits()`.
        watchdog: Longest time without a measurement, and between two periods, [s].
        command: Function of the time since the first measurement, [s], that returns the command of the law, (nc,), such
            as a `LiveVelocity`; by default the command is empty.
        parameters: Name -> value of parameters that `change` may change while the loop runs, such as those of
            `controllers.Estimated.live_parameters`; the law receives all values one after the other, (np,), in their
            units.
        log: File for all rows of the log, with the suffix .rows, which grows while the loop runs and is kept if the
            process is killed; None for none. An existing file is not changed: the new one then has a number.
        kept: Number of evaluations whose rows and times are kept in memory.

    Raises:
        FileError: The file of the log cannot be written.
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
        parameters: Mapping[str, Any] | None = None,
        log: str | Path | None = None,
        kept: int = 100_000,
    ):
        self.interface, self.law, self.memory = interface, law, np.asarray(memory, dtype=float)
        self.period = 1.0 / number("rate", rate, "1/s", above=0.0)
        self.watchdog = number("watchdog", watchdog, "s", above=0.0)
        self._limits = SafetyLimits() if limits is None else limits
        self._command = command or (lambda t: np.zeros(0))
        self._parameters = {name: rounded_array(name, value) for name, value in (parameters or {}).items()}
        self._log, self._kept = None if log is None else output_file(log, ROWS), whole("kept", kept, 2)
        self._lock, self._stop = threading.Lock(), ""

    def change(
        self,
        *,
        limits: SafetyLimits | None = None,
        law: Any = None,
        command: Any = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """Change limits, law, command or parameters while the loop runs; the next evaluation uses all of the changes.

        Args:
            limits: New limits. law: A law with the same memory. command: A function of time. All as in `Runner`.
            parameters: Name -> new value of some of the live parameters; a number stands for all entries of an array.

        Raises:
            UnknownNameError: There is no such live parameter. ShapeError: The value has another shape.
            NotFiniteError: The value is NaN or infinite.
        """
        changed = {}
        for name, value in (parameters or {}).items():
            present = self._parameters[known_name("live parameter", name, self._parameters)]
            new = rounded_array(name, value)
            if new.ndim and new.shape != present.shape:
                raise ShapeError(f"{name} must be a number or have the shape {present.shape}, got shape {new.shape}")
            changed[name] = np.broadcast_to(new, present.shape)
        with self._lock:
            self._limits = self._limits if limits is None else limits
            self.law = self.law if law is None else law
            self._command = self._command if command is None else command
            self._parameters = {**self._parameters, **changed}

    @property
    def parameters(self) -> dict[str, Array]:
        """Name -> present value of the live parameters, (...), in their units."""
        return dict(self._parameters)

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
        recorder, self._stop = Recorder(self._kept, self._log), ""
        reason, state = _OVER, _State(self._kept)
        with _terminated_as_interrupted():
            try:
                reason = self._loop(duration, state, recorder)
            except KeyboardInterrupt:
                reason = "interrupted from the keyboard or by a signal"
            except (Exception, SystemExit) as error:  # whatever a law or a driver raises ends in damping
                reason = f"{type(error).__name__}: {error}"
            self._damp(state)
        periods, durations = np.diff(state.begins), np.array(state.durations)
        longest = state.longest_period, state.longest_duration
        return Operation(
            reason, periods, durations, *longest, state.missed, state.silent, recorder.log(), recorder.path
        )

    def _loop(self, duration: float, state: _State, recorder: Recorder) -> str:
        interface, k = self.interface, 0
        start = heard = interface.clock()
        while k < round(duration / self.period):
            due = start + k * self.period
            if (back := due - self.period - interface.clock()) > _CLOCK_ERROR:  # sleep_until would wait for long
                return f"the clock of the robot went back by {1e3 * back:.0f} ms"
            interface.sleep_until(due)
            now = interface.clock()
            pause = state.begin(now)
            state.missed += now - due > 0.1 * self.period
            if self._stop:
                return self._stop
            if pause > self.watchdog:
                return f"the loop paused for {1e3 * pause:.0f} ms"
            measured = interface.read()
            if measured is not None and state.is_new(measured):
                heard = now
                if reason := self._evaluate(measured, state, recorder):
                    return reason
                state.end(interface.clock() - now)
            else:
                state.silent += 1
                if now - heard > self.watchdog:
                    return f"no measurement for {1e3 * (now - heard):.0f} ms"
                if state.last is not None:
                    interface.write(state.last)
            following = max(k + 1, int((interface.clock() - start) / self.period))
            state.missed += following - k - 1
            k = following
        return _OVER

    def _evaluate(self, measured: Measurement, state: _State, recorder: Recorder) -> str:
        """Evaluate the law, write its command, and return the reason for a stop, "" for none."""
        with self._lock:
            limits, law, source, parameters = self._limits, self.law, self._command, self._parameters
        reading = Reading(*(float_array(name, value) for name, value in measured.reading._asdict().items()))
        measured = measured._replace(reading=reading)
        state.nj = len(reading.joints)
        for name, value in reading._asdict().items():
            if not np.isfinite(value).all():
                return f"the reading {name!r} is not finite"
        if state.first is None:
            state.first = measured.time
        t = measured.time - state.first
        wanted = np.asarray(source(t), dtype=float)
        values = np.concatenate([np.zeros(0), *map(np.ravel, parameters.values())])
        memory, output, q = law(t, self.memory, measured.reading, wanted, *([values] if parameters else []))
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
        recorder.add(t, measured, command.flat(), q, wanted, values)
        return ""

    def _damp(self, state: _State) -> None:
        """Write damping commands; a failure of the interface ends it, and further signals do not."""
        for _ in range(_DAMPING_COMMANDS if state.nj else 0):  # zero if there was no measurement, and so no command
            try:
                now = self.interface.clock()
                self.interface.write(JointCommand.damping(state.nj, self._limits.damping))
                self.interface.sleep_until(now + self.period)
            except KeyboardInterrupt:
                continue
            except (Exception, SystemExit):  # the interface is gone; the robot's own watchdog has to act
                return


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Context manager: SIGTERM raises KeyboardInterrupt, as SIGINT does; without effect in other threads."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


class _State:
    """Times and last values of a loop; `kept` is the number of times that are kept."""

    def __init__(self, kept: int):
        self.nj, self.missed, self.silent = 0, 0, 0
        self.longest_period, self.longest_duration = 0.0, 0.0
        self.begins: deque[float] = deque(maxlen=kept)
        self.durations: deque[float] = deque(maxlen=kept)
        self.last: JointCommand | None = None
        self.torques: Array | None = None
        self.first: float | None = None
        self.newest = -np.inf

    def is_new(self, measured: Measurement) -> bool:
        """Return whether a measurement is later than the last one, and record its time."""
        is_new = measured.time > self.newest
        self.newest = max(self.newest, measured.time)  # in this order NaN changes nothing
        return is_new

    def begin(self, now: float) -> float:
        """Record the beginning of a period at a time, [s], and return the time since the beginning before, [s]."""
        pause = now - self.begins[-1] if self.begins else 0.0
        self.begins.append(now)
        self.longest_period = max(self.longest_period, pause)
        return pause

    def end(self, duration: float) -> None:
        """Record the duration of an evaluation, [s]."""
        self.durations.append(duration)
        self.longest_duration = max(self.longest_duration, duration)
