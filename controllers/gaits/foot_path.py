"""Paths of a swinging foot: how far it has come and how high it is, from how much of the swing is over.

A path is a function of the fraction s of the swing, 0 at lift-off and 1 at touch-down, that returns (advance, lift),
each from 0 to 1: the foot is then at start + advance * length and lift * clearance. Any function of that kind can be
given to a gait.

| name | horizontal | vertical | at lift-off and touch-down |
| --- | --- | --- | --- |
| cosine | (1 - cos pi s) / 2 | (1 - cos 2 pi s) / 2 | at rest; accelerations jump |
| printed | (1 - cos pi s) / 2 | (1 - cos pi s) / 2 | ends at the full clearance, in the air |
| cycloid | s - sin(2 pi s) / 2 pi | (1 - cos 2 pi s) / 2 | at rest; the vertical acceleration jumps |
| smooth | 10 s^3 - 15 s^4 + 6 s^5 | 64 s^3 (1 - s)^3 | at rest, no acceleration |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from legged.errors import UnknownNameError

Path = Callable[[Any], tuple[Any, Any]]


def cosine(s: Any) -> tuple[Any, Any]:
    """Return the paper's path in the reading that lands.

    Source:
        Shah, Saha, Dutt 2012, eq. (B.2), with 2 pi t / T in the height, as the authors' programs have it.
    """
    return (1 - np.cos(np.pi * s)) / 2, (1 - np.cos(2 * np.pi * s)) / 2


def printed(s: Any) -> tuple[Any, Any]:
    """Return the paper's path as printed: it ends in the air. Source: Shah, Saha, Dutt 2012, eq. (B.2)."""
    rise = (1 - np.cos(np.pi * s)) / 2
    return rise, rise


def cycloid(s: Any) -> tuple[Any, Any]:
    """Return a cycloid: no velocity at either end, and no horizontal acceleration."""
    return s - np.sin(2 * np.pi * s) / (2 * np.pi), (1 - np.cos(2 * np.pi * s)) / 2


def smooth(s: Any) -> tuple[Any, Any]:
    """Return polynomials of least degree that have neither velocity nor acceleration at either end."""
    return blend(s), 64 * (s * (1 - s)) ** 3


def blend(s: Any) -> Any:
    """Return 10 s^3 - 15 s^4 + 6 s^5, from 0 to 1 with two derivatives zero at both ends."""
    return s**3 * (10 + s * (6 * s - 15))


PATHS: dict[str, Path] = {"cosine": cosine, "printed": printed, "cycloid": cycloid, "smooth": smooth}


def path_named(path: str | Path) -> Path:
    """Return the path of that name, or the function given; raises UnknownNameError."""
    if callable(path):
        return path
    if path not in PATHS:
        raise UnknownNameError("foot path", path, PATHS)
    return PATHS[path]


def swing_foot(t: Any, period: float, stride: float, clearance: float, path: str | Path = "cosine") -> tuple[Any, Any]:
    """Return (x, z) of the swinging ankle, [m], at time `t` inside a step, over any element.

        x = stride (2 advance - 1),   z = clearance * lift

    x is measured from the support ankle: while the hip advances by one stride, the foot travels two.

    Args:
        t: Time since lift-off, [s].
        period: Duration of the swing, [s].
        stride: What the hip advances in a step, [m].
        clearance: Largest height, [m].
        path: A name from `PATHS`, or a function of the fraction of the swing.
    """
    advance, lift = path_named(path)(t / period)
    return stride * (2 * advance - 1), clearance * lift
