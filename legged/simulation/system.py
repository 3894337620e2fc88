"""What integrators integrate, and what they hand back: the seam between equations of motion and time stepping."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

Array = np.ndarray


class State(NamedTuple):
    """A moment of a run.

    Attributes:
        t: Time, [s].
        phase: Number of the controller's switch times that have passed.
        q: Configuration, (nq,).
        s: Everything else, (n,): velocity, memories, work done; see `ClosedLoop`.
    """

    t: float
    phase: int
    q: Array
    s: Array


class Segment(NamedTuple):
    """A stretch of time on which the equations are smooth in time.

    Attributes:
        phase: Number of the controller's switch times before it.
        start, end: [s].
        samples: Times in [start, end) at which the state is wanted, in [start, end] for the last segment.
    """

    phase: int
    start: float
    end: float
    samples: Array


class System(Protocol):
    """Equations of motion in a chart: y = [xi; s], q = integrate(q_ref, xi); see `chart`."""

    trouble: str
    """Why the last evaluation had no answer, in words."""

    @property
    def nv(self) -> int:
        """Length of xi."""
        ...

    def rate(self, t: float, phase: int, y: Array, q_ref: Array) -> Array:
        """Return the time derivative of y, (..., n), for states y, (..., n), around one q_ref; NaN where none is."""
        ...

    def stepper(self, rule: str) -> Callable[[float, float, float, Array, Array], tuple[Array, Array]]:
        """Return the function (t, h, phase, q, s) -> (q, s) of a rule, a method of `ClosedLoop`."""
        ...

    def configuration(self, q_ref: Array, xi: Array) -> Array:
        """Return q, (nq,), quaternions of length one."""
        ...

    def turn(self, xi: Array) -> float:
        """Return the longest rotation vector in xi, [rad]."""
        ...


class Diverged(Exception):
    """Raised by an integrator that cannot go on: at what time, and why."""

    def __init__(self, t: float, why: str):
        super().__init__(why)
        self.t = t


class Integrator(Protocol):
    """How a system is taken through time."""

    def march(self, system: System, q: Array, s: Array, segments: Sequence[Segment]) -> Iterator[State]:
        """Yield the state at every sample time, in order; raise Diverged where the solution ends.

        Args:
            system: What to integrate.
            q, s: The state at the start of the first segment.
            segments: One after the other; the integrator starts afresh at each.
        """
        ...


def segments(samples: Array, switches: Sequence[float], break_times: Sequence[float] = ()) -> list[Segment]:
    """Return the segments of a run.

    Args:
        samples: Growing times, [s]; the run lasts from the first to the last.
        switches: Times at which the controller's reference jumps; they count the phases.
        corners: Further times at which the integrator shall start afresh.
    """
    begin, until = float(samples[0]), float(samples[-1])
    inside = sorted({float(t) for t in (*switches, *break_times) if begin < t < until})
    bounds = np.array([begin, *inside, until])
    first = np.searchsorted(samples, bounds)
    first[-1] = len(samples)
    passed = np.searchsorted(sorted(float(t) for t in switches if t > begin), bounds, side="right")
    pieces = zip(pairwise(bounds.tolist()), pairwise(first.tolist()), passed.tolist(), strict=False)
    return [Segment(phase, start, end, samples[i:j]) for (start, end), (i, j), phase in pieces]
