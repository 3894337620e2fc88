"""The errors of the toolkit: what, what was wrong with it, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LeggedError(Exception):
    """Base of every error that this package raises."""


class ArgumentError(LeggedError, TypeError, ValueError):
    """An argument of the wrong type, or a number outside its range."""


class DefinitionError(LeggedError, ValueError):
    """A robot, joint or link that cannot exist as it was defined."""


class InertiaError(DefinitionError):
    """A mass or an inertia that no body has."""


class ModuleError(DefinitionError):
    """A partition into modules that breaks the paper's rules."""


class UnknownNameError(LeggedError, KeyError):
    """A name that is not there; `name` and `known` hold what was asked and what exists."""

    def __init__(self, what: str, name: str, known: Iterable[str]):
        self.what, self.name, self.known = what, name, tuple(known)
        close = difflib.get_close_matches(name, self.known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are: {', '.join(self.known) or 'none'}"
        super().__init__(f"there is no {what} named {name!r}{hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class FileError(LeggedError, ValueError):
    """A robot's file that cannot be read, or whose robot cannot be; `source` holds its path."""

    def __init__(self, source: str, message: str):
        super().__init__(f"{source}: {message}")
        self.source = source


class ShapeError(LeggedError, ValueError):
    """An array of the wrong shape."""


class NotFiniteError(LeggedError, ValueError):
    """NaN or infinity where a number is needed."""


class StateError(LeggedError, ValueError):
    """A pose or a velocity that a robot cannot have."""


class MismatchError(LeggedError, ValueError):
    """A robot and a model of it in another program, or in a message, that do not fit together."""


class SingularError(LeggedError, ArithmeticError):
    """Dynamics without an answer: some motion of the robot meets no inertia."""


class TraceError(LeggedError, TypeError):
    """A function that cannot be traced, and why."""


class ReachError(LeggedError, ValueError):
    """A foot position that a leg cannot reach; holds what is known of these, [m], or None.

    Attributes:
        distance: From the hip to the wanted ankle.
        shortest, longest: The distances that the leg can do.
        residual: What a numerical solution was left with, the largest distance from a foot to its target.
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
    """Loops that do not close; `residual` holds the largest row that is left, [m] or 1, or its rate."""

    def __init__(self, message: str, residual: float):
        super().__init__(message)
        self.residual = residual


class MissingError(LeggedError, ImportError):
    """A program that is needed and not installed."""


class VerificationError(LeggedError, AssertionError):
    """A robot whose dynamics break their laws; `verification` holds the figures."""

    def __init__(self, message: str, verification: object = None):
        super().__init__(message)
        self.verification = verification


class SimulationError(LeggedError, RuntimeError):
    """A run that ended early; `run` holds everything up to there."""

    def __init__(self, message: str, run: object = None):
        super().__init__(message)
        self.run = run
