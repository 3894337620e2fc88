"""Paths of a swinging foot: horizontal advance and height as functions of the fraction of the swing.

A path maps the fraction s of the swing, 0 at lift-off and 1 at touch-down, to (advance, lift), each from 0 to 1. The
foot is then at start + advance * length, at the height lift * clearance. Gaits accept any such function.

| name | advance | lift | at lift-off and touch-down |
| --- | --- | --- | --- |
| cosine | (1 - cos pi s) / 2 | (1 - cos 2 pi s) / 2 | zero velocity, accelerations jump |
| printed | (1 - cos pi s) / 2 | (1 - cos pi s) / 2 | ends at the full clearance, in the air |
| cycloid | s - sin(2 pi s) / 2 pi | (1 - cos 2 pi s) / 2 | zero velocity, the vertical acceleration jumps |
| smooth | 10 s^3 - 15 s^4 + 6 s^5 | 64 s^3 (1 - s)^3 | zero velocity and acceleration |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.arguments import Numbers, list_as_array, number, shown
from legged.checked import checked
from legged.errors import ArgumentError, UnknownNameError

Path = Callable[[Any], tuple[Any, Any]]


def cosine(s: Any) -> tuple[Any, Any]:
    """Return (advance, lift) of the paper's path, with a height that returns to zero.

    Source:
        Shah, Saha, Dutt 2012, eq. (B.2), with 2 pi t / T in the height, as in the authors' programs.
    """
    return (1 - np.cos(np.pi * s)) / 2, (1 - np.cos(2 * np.pi * s)) / 2


def printed(s: Any) -> tuple[Any, Any]:
    """Return (advance, lift) of the paper's path as printed: it ends in the air.

    Source:
        Shah, Saha, Dutt 2012, eq. (B.2).
    """
    rise = (1 - np.cos(np.pi * s)) / 2
    return rise, rise


def cycloid(s: Any) -> tuple[Any, Any]:
    """Return (advance, lift) of a cycloid: zero velocity and zero horizontal acceleration at both ends."""
    return s - np.sin(2 * np.pi * s) / (2 * np.pi), (1 - np.cos(2 * np.pi * s)) / 2


def smooth(s: Any) -> tuple[Any, Any]:
    """Return (advance, lift), polynomials of least degree with zero velocity and acceleration at both ends."""
    return blend(s), 64 * (s * (1 - s)) ** 3


def blend(s: Any) -> Any:
    """Return 10 s^3 - 15 s^4 + 6 s^5, which rises from 0 to 1 with two zero derivatives at both ends."""
    return s**3 * (10 + s * (6 * s - 15))


PATHS: dict[str, Path] = {"cosine": cosine, "printed": printed, "cycloid": cycloid, "smooth": smooth}


def path_named(path: str | Path) -> Path:
    """Return the path with a name, or the function if one is passed; raise UnknownNameError for other names."""
    if callable(path):
        return path
    if path not in PATHS:
        raise UnknownNameError("foot path", path, PATHS)
    return PATHS[path]


@checked
def swing_foot(
    t: Numbers, period: float, stride: float, clearance: float, path: str | Path = "cosine"
) -> tuple[Any, Any]:
    """Return (x, z), position of the swinging ankle at time `t` of a phase, [m].

        x = stride (2 advance - 1),   z = clearance * lift

    x is relative to the supporting ankle: while the hip advances by one stride, the foot moves by two.

    Args:
        t: Time since lift-off, [s].
        period: Duration of the swing, [s].
        stride: Length by which the hip advances in a phase, [m].
        clearance: Largest height of the foot, [m].
        path: A name in `PATHS`, or a function of the fraction of the swing.
    """
    number("period", period, "s", above=0)
    s = list_as_array(t) / period
    try:
        advance, lift = path_named(path)(s)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"a foot path must return (advance, lift) of a fraction of the swing, got {shown(path)}"
        ) from None
    return stride * (2 * advance - 1), clearance * lift
