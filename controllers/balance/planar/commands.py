"""Commands of the balancing motion, and filters of their future values (preview) and of their past values (lag)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np

from legged import arguments, taylor
from legged.arguments import Number, Numbers, list_as_array
from legged.checked import checked
from legged.compiler import where
from legged.errors import ArgumentError

Command = Callable[[Any], Any]
"""The commanded balancing motion: q2 in rad or m as a function of time in s; it may be traced."""

_PANELS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)  # of Gauss-Legendre quadrature of exp(-x) f(x)


def _quadrature() -> list[tuple[float, float]]:
    """Return (node, weight) of the integral of exp(-x) f(x) over x > 0, exact for a constant f."""
    points, weights = np.polynomial.legendre.leggauss(8)
    pairs = [
        (x, w * np.exp(-x))
        for start, end in pairwise(_PANELS)
        for x, w in zip((end - start) / 2 * points + (start + end) / 2, (end - start) / 2 * weights, strict=True)
    ]
    total = sum(w for _, w in pairs)
    return [(float(x), float(w / total)) for x, w in pairs]


_QUADRATURE = _quadrature()


@checked
@dataclass(frozen=True)
class StepCommand:
    """A piecewise constant command: the value `values[i]` from the time `times[i]` on, and `start` before.

    Attributes:
        times: Increasing, [s]. values: As many, [rad] or [m].
        start: Value before the first step.
    """

    times: Sequence[float]
    values: Sequence[float]
    start: float = 0.0

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values) or any(np.diff(self.times) <= 0):
            raise ArgumentError("times must increase, and values must have one entry for each of them")

    def __call__(self, t: Any) -> Any:
        """Return the value at a time t, [s]."""
        return self.sum_of(t, lambda x: where(x >= 0.0, 1.0, 0.0))

    def previewed(self, t: Numbers, time_constant: Number) -> Any:
        """Return the command through the reverse-time filter: steps act early, as exp((t - t_i) / T_c).

        Args:
            t: Time, [s]. time_constant: T_c, [s].
        """
        t = list_as_array(t)
        return self.sum_of(t, lambda x: np.exp(np.minimum(x / time_constant, 0.0)))

    def sum_of(self, t: Numbers, response: Callable[[Any], Any]) -> Any:
        """Return the sum of the responses to all steps, [rad] or [m].

        Args:
            t: Time, [s]. response: Response to a unit step as a function of the time since it, [s].
        """
        t, before = list_as_array(t), (self.start, *self.values)
        value = self.start + 0.0 * t
        for at, old, new in zip(self.times, before, self.values, strict=False):
            value = value + (new - old) * response(t - at)
        return value


@checked
@dataclass(frozen=True)
class SmoothCommand:
    """Steps through the third-order lag 1 / (1 + T s)^3: a command with a continuous second derivative.

    Attributes:
        steps: The steps.
        time_constant: T, [s].
    """

    steps: StepCommand
    time_constant: float

    def __post_init__(self) -> None:
        arguments.number("time_constant", self.time_constant, "s", above=0.0)

    def __call__(self, t: Any) -> Any:
        """Return the value at a time t, [s]."""

        def response(since: Any) -> Any:
            x = since / self.time_constant
            return where(x > 0.0, 1.0 - np.exp(-np.abs(x)) * (1.0 + x + 0.5 * x * x), 0.0 * x)

        return self.steps.sum_of(t, response)


def previewed(command: Command, t: Any, time_constant: Any) -> Any:
    """Return a command through the reverse-time filter 1 / (1 - T_c s), which uses future values, [rad] or [m].

    Args:
        command: The command. t: Time, [s]. time_constant: T_c, [s].
    """
    if isinstance(command, StepCommand):
        return command.previewed(t, time_constant)
    return sum(w * cast(Any, command(t + time_constant * x)) for x, w in _QUADRATURE)


def lagged(command: Command, t: Any, time_constant: Any) -> Any:
    """Return a command through the filter 1 / (1 + T_c s), [rad] or [m].

    Args:
        command: The command, also for times before 0. t: Time, [s]. time_constant: T_c, [s].
    """
    return sum(w * cast(Any, command(t - time_constant * x)) for x, w in _QUADRATURE)


def derivatives(command: Command | float, t: Any) -> tuple[Any, Any, Any]:
    """Return a command and its first and second time derivative.

    Args:
        command: The command, or a constant. t: Time, [s].
    """
    if not callable(command):
        return command, 0.0, 0.0
    value = command(taylor.time(t))
    return (value.value, value.first, value.second) if isinstance(value, taylor.Taylor) else (value, 0.0, 0.0)
