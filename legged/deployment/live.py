"""Live commands: a velocity from the keyboard of the terminal or from a gamepad, while a loop runs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from legged.arguments import number, real_array
from legged.checked import checked
from legged.errors import MissingError, ShapeError
from legged.spatial import Array

KEYS = {"w": (0, 1.0), "s": (0, -1.0), "a": (1, 1.0), "d": (1, -1.0), "q": (2, 1.0), "e": (2, -1.0)}
"""Entry of the command that a key changes, and the sign of the change."""


@checked
class LiveVelocity:
    """A command (vx, vy, yaw rate, height, pitch) as a function of time, whose velocities keys and gamepads change.

    Entries and axes are those of `controllers.Command`; height and pitch are zero.

    Args:
        speed: Largest magnitude of vx and vy, [m/s]. turning: Largest yaw rate, [rad/s].
        steps: Number of key presses from zero to the largest values.
        stop: Called when the space bar or the first button is pressed, such as `Runner.stop`.
        notice: Called with a text when a source of commands is lost or found again; by default it is printed to the
            error output.

    The velocity returns to zero when the gamepad is unplugged or when the terminal of the keyboard is closed.
    """

    def __init__(
        self,
        speed: float = 0.5,
        turning: float = 0.5,
        steps: int = 5,
        stop: Callable[[], Any] | None = None,
        notice: Callable[[str], Any] | None = None,
    ):
        self._most = np.array([number("speed", speed), number("speed", speed), number("turning", turning)])
        self._steps, self._stop = int(number("steps", steps, least=1)), stop
        self._velocity, self._lock = np.zeros(3), threading.Lock()
        self._notice = notice or (lambda text: print(text, file=sys.stderr))

    def __call__(self, t: float) -> Array:
        """Return the command, (5,), [m/s], [m/s], [rad/s], [m], [rad]; the time has no effect."""
        with self._lock:
            return np.concatenate([self._velocity, np.zeros(2)])

    def press(self, key: str) -> None:
        """Change the command by a key: w, s, a, d, q, e move and turn, x halts, and the space bar stops the loop.

        Args:
            key: One character; others have no effect.
        """
        with self._lock:
            if key == "x":
                self._velocity[:] = 0.0
            elif key in KEYS:
                entry, sign = KEYS[key]
                step = sign * self._most[entry] / self._steps
                self._velocity[entry] = np.clip(self._velocity[entry] + step, -self._most[entry], self._most[entry])
        if key == " " and self._stop is not None:
            self._stop()

    def move(self, axes: Any) -> None:
        """Set the command by the axes of a gamepad.

        Args:
            axes: Forward, left and turning to the left, (3,), dimensionless, from -1 to 1; magnitudes below 0.1 and NaN
                count as zero.
        """
        given = real_array("axes", axes)
        if given.shape != (3,):
            raise ShapeError(f"axes must be (3,): forward, left and turning to the left, got shape {given.shape}")
        axes = np.clip(np.nan_to_num(given.astype(float)), -1.0, 1.0)
        with self._lock:
            self._velocity = self._most * np.where(np.abs(axes) < 0.1, 0.0, axes)

    def lose(self, source: str) -> None:
        """Return the velocity to zero and give notice, since a source of commands does not answer any more.

        Args:
            source: The source and what happened to it, such as "the gamepad was unplugged".
        """
        self.move(np.zeros(3))
        self._notice(f"{source}: the commanded velocity is now zero")

    def watch_keyboard(self) -> threading.Thread:
        """Return the started thread that reads keys of the terminal until the program or the terminal ends."""
        return self._watch("the keyboard", self._read_keys)

    def _watch(self, source: str, read: Callable[[], str]) -> threading.Thread:
        """Return the started thread that reads a source; the velocity is zero after its end, which `read` explains."""

        def watched() -> None:
            try:
                reason = read()
            except Exception as error:  # whatever a driver raises
                reason = f"failed ({type(error).__name__}: {error})"
            self.lose(f"{source} {reason}")

        thread = threading.Thread(target=watched, daemon=True)
        thread.start()
        return thread

    def _read_keys(self) -> str:
        if os.name == "nt":
            read: Any = import_module("msvcrt").getwch
            while True:
                self.press(read())
        termios, tty = import_module("termios"), import_module("tty")
        try:
            before = termios.tcgetattr(sys.stdin)
        except (termios.error, ValueError, OSError):
            return "is not available: the input is no terminal"
        try:
            tty.setcbreak(sys.stdin)
            while key := sys.stdin.read(1):
                self.press(key)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        return "was closed"

    def watch_gamepad(self, index: int = 0) -> threading.Thread:
        """Return the started thread that reads a gamepad by pygame until the program ends, also after a reconnection.

        Args:
            index: Number of the gamepad.

        Raises:
            MissingError: pygame is not installed, or there is no such gamepad.
        """
        try:
            pygame: Any = import_module("pygame")
        except ImportError as error:
            raise MissingError("pygame is not installed: pip install pygame") from error
        pygame.init()
        if pygame.joystick.get_count() <= index:
            raise MissingError(f"there is no gamepad {index}")
        pad = pygame.joystick.Joystick(index)
        return self._watch("the gamepad", lambda: self._read_gamepad(pygame, pad))

    def _read_gamepad(self, pygame: Any, pad: Any) -> str:
        while True:
            for event in pygame.event.get():
                if event.type == pygame.QUIT:
                    return "is not read any more"
                if event.type == pygame.JOYDEVICEREMOVED and pad and event.instance_id == pad.get_instance_id():
                    pad = None
                    self.lose("the gamepad was unplugged")
                elif event.type == pygame.JOYDEVICEADDED and pad is None:
                    pad = pygame.joystick.Joystick(event.device_index)
                    self._notice("a gamepad was connected: it commands the velocity")
            if pad is not None:
                self.move([-pad.get_axis(1), -pad.get_axis(0), -pad.get_axis(3)])
                if pad.get_button(0) and self._stop is not None:
                    self._stop()
            pygame.time.wait(10)
