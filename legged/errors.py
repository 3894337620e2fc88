"""Exceptions of the toolkit.

Each message names the argument or object, says what is wrong with it and how to correct it. Every class derives from
`LeggedError` and from the built-in exception that callers expect.
"""

from __future__ import annotations

import difflib
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


class LeggedError(Exception):
    """Base class of the toolkit's exceptions."""


class ArgumentError(LeggedError, TypeError, ValueError):
    """An argument of the wrong type, or a number outside its range."""


class DefinitionError(LeggedError, ValueError):
    """An invalid definition of a robot, joint or link."""


class InertiaError(DefinitionError):
    """A mass or inertia that is physically impossible."""


class ModuleError(DefinitionError):
    """A partition into modules that violates the rules of Shah, Saha, Dutt 2012, section 2."""


class UnknownNameError(LeggedError, KeyError):
    """An unknown name; `name` holds it and `known` the existing names."""

    def __init__(self, what: str, name: str, known: Iterable[str]):
        self.what, self.name, self.known = what, name, tuple(known)
        close = difflib.get_close_matches(str(name), map(str, self.known), n=1)
        listed = map(repr, self.known) if any("," in str(other) for other in self.known) else map(str, self.known)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(listed) or 'none'}"
        super().__init__(f"there is no {what} named {name!r}{hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class FileError(LeggedError, ValueError):
    """A file that cannot be read or written, or that defines an invalid robot; `source` holds its path."""

    def __init__(self, source: str, message: str):
        words = f"{source}: {message}"
        if not words.isprintable():  # names in files and paths cannot control a terminal
            words = "".join(x if x.isprintable() or x == "\n" else x.encode("unicode_escape").decode() for x in words)
        super().__init__(words)
        self.source = source


class FileWarning(UserWarning):
    """Parts of a robot that the format of a written file cannot represent."""


class ShapeError(LeggedError, ValueError):
    """An array of the wrong shape."""


class NotFiniteError(LeggedError, ValueError):
    """NaN or infinity where a finite number is required."""


class StateError(LeggedError, ValueError):
    """A pose or velocity that the robot's base or joints cannot have."""


class MismatchError(LeggedError, ValueError):
    """A robot that does not match a message, or its model in another program."""


class SingularError(LeggedError, ArithmeticError):
    """Singular dynamics: the inertia of some motion of the robot is zero."""


class IntervalError(LeggedError, ArithmeticError):
    """A branch that depends on a comparison of intervals that overlap."""


class TraceError(LeggedError, TypeError):
    """A function that cannot be traced; the message gives the reason."""


class ReachError(LeggedError, ValueError):
    """A foot position that a leg cannot reach. Attributes in [m]; None if unknown.

    Attributes:
        distance: From the hip to the desired ankle position.
        shortest, longest: Limits of the leg's reach.
        residual: Largest distance from a foot to its target after a numerical solution.
    """

    def __init__(
        self,
        message: str,
        distance: float | None = None,
        shortest: float | None = None,
        longest: float | None = None,
        residual: float | None = None,
    ):
        super().__init__(message)
        self.distance, self.shortest, self.longest, self.residual = distance, shortest, longest, residual


class LoopError(LeggedError, ValueError):
    """Violated loop constraints; `residual` holds the largest constraint residual, [m] or 1, or its rate."""

    def __init__(self, message: str, residual: float):
        super().__init__(message)
        self.residual = residual


class MissingError(LeggedError, ImportError):
    """A required program or library that is not installed."""


class VerificationError(LeggedError, AssertionError):
    """A robot whose dynamics fail a verification; `verification` holds its results."""

    def __init__(self, message: str, verification: Any = None):
        super().__init__(message)
        self.verification = verification


class SimulationError(LeggedError, RuntimeError):
    """A simulation that ended early; `run` holds its results up to that time."""

    def __init__(self, message: str, run: Any = None):
        super().__init__(message)
        self.run = run


class DivergenceError(SimulationError):
    """A simulation whose solution diverged: its numbers no longer describe a motion.

    Attributes:
        run: The run up to the last valid sample.
        t: Time of the end, [s].
        state: Last finite state of the closed loop without q, (n,), or None if unknown.
    """

    def __init__(self, message: str, run: Any = None, t: float = float("nan"), state: Any = None):
        super().__init__(message, run)
        self.t, self.state = t, state


class SimulationInterrupt(KeyboardInterrupt):
    """A `KeyboardInterrupt` during a simulation; `run` is the `Run` or `Rollouts` up to the interrupt, or None."""

    def __init__(self, message: str, run: Any = None):
        super().__init__(message)
        self.run = run


class SimulationWarning(UserWarning):
    """A simulation whose settings make its result doubtful."""


_OWN = ("legged", "controllers", "robots", "numpy")


def line_of_user(error: BaseException) -> str:
    """Return the innermost line outside of this distribution and NumPy that an error has passed, or "".

    Args:
        error: The error, while it is handled.
    """
    words, trace = "", error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__name__", "").partition(".")[0] not in _OWN:
            path, name = frame.f_code.co_filename, frame.f_code.co_name
            source = linecache.getline(path, trace.tb_lineno).strip()[:80]
            where = f"line {trace.tb_lineno} of {os.path.basename(path)}, in {name}"
            words = f"{where}: {source}" if source else where
        trace = trace.tb_next
    return words


def warn_caller(text: str, category: type[Warning]) -> None:
    """Emit a warning that names the line outside of this distribution from which it was called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OWN[:-1]:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def deprecated_names(module: str, moved: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that serves old public names for one release, with a `DeprecationWarning`.

        __getattr__ = deprecated_names(__name__, {"Steps": "legged.ground.Stairs"})

    Args:
        module: Name of the module.
        moved: Old name -> the module and name of the object that replaces it.
    """

    def get(name: str) -> Any:
        if name not in moved:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_caller(f"{module}.{name} disappears with the next release; use {moved[name]}", DeprecationWarning)
        place, _, new_name = moved[name].rpartition(".")
        return getattr(import_module(place), new_name)

    return get
