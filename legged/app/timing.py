"""Processor times of functions, the best of several alternating rounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def best_times(ways: Sequence[Callable[[], Any]], rounds: int = 7, least: float = 0.02) -> list[float]:
    """Return the best processor time of one call of each function, [s]; a round calls each for `least` seconds."""
    repeats = []
    for way in ways:
        way()
        repeats.append(max(1, int(least / max(_time(way, 1), 1e-9))))
    best = [np.inf] * len(ways)
    for _ in range(rounds):
        for k, (way, times) in enumerate(zip(ways, repeats, strict=True)):
            best[k] = min(best[k], _time(way, times) / times)
    return best


def _time(way: Callable[[], Any], times: int) -> float:
    begun = time.thread_time()
    for _ in range(times):
        way()
    return time.thread_time() - begun
