"""Fixed-step integrators, for contact-rich runs: semi-implicit Euler, Runge-Kutta of order four, and time stepping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from legged.errors import DefinitionError, NotFiniteError, SingularError
from legged.simulation.system import Diverged, Segment, State, System

Array = np.ndarray
_ROUNDING = 1e-9  # of a step: a remainder below this is none


class Piece(NamedTuple):
    """Equal steps, one after the other.

    Attributes:
        phase: Number of the controller's switch times before them.
        start: When the first begins, [s]. h: Their length, [s]. count: How many.
        sample: The time of the sample that they end at, [s]; None if it is no sample.
    """

    phase: int
    start: float
    h: float
    count: int
    sample: float | None


@dataclass(frozen=True)
class FixedStep:
    """Common part: walk from sample to sample in equal steps.

    Between two samples (or switches) the step is the longest that fits a whole number of times and is at most `step`.

    Attributes:
        step: Longest step, [s].
    """

    step: float = 1e-4
    rule: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.step > 0.0:
            raise DefinitionError(f"a fixed step must be longer than 0 s, got {self.step}")

    def march(self, system: System, q: Array, s: Array, segments: Sequence[Segment]) -> Iterator[State]:
        """Yield the state at every sample time; see `Integrator`.

        A system with a method `repeat`, such as `Backend`, takes many steps in one call.
        """
        pieces, repeat = self.pieces(segments), getattr(system, "repeat", None)
        while repeat is not None and pieces:
            reached = repeat(self.rule, pieces, q, s)
            if reached is None:
                break
            states, done = reached
            for state in states:
                q, s = state.q, state.s
                yield state
            pieces = pieces[done:]
            if not done:  # a step has no answer; below it is taken again, and tells why
                break
        yield from self._walk(system, pieces, q, s)

    def pieces(self, segments: Sequence[Segment]) -> list[Piece]:
        """Return the equal steps between samples, switches and corners."""
        found = []
        for phase, start, end, samples in segments:
            for sample in samples.tolist():
                found.append(self._piece(phase, start, sample, True))
                start = sample
            if end > start:
                found.append(self._piece(phase, start, end, False))
        return found

    def _piece(self, phase: int, start: float, end: float, sampled: bool) -> Piece:
        count = int(np.ceil((end - start) / self.step - _ROUNDING))
        return Piece(phase, start, (end - start) / max(count, 1), count, end if sampled else None)

    def _walk(self, system: System, pieces: Sequence[Piece], q: Array, s: Array) -> Iterator[State]:
        """Yield the states one step after the other in Python."""
        still = np.zeros(system.nv)
        for phase, start, h, count, sample in pieces:
            step_on = system.stepper(self.rule)
            for i in range(count):
                try:
                    q, s = step_on(start + i * h, h, float(phase), q, s)
                except (NotFiniteError, SingularError) as error:
                    raise Diverged(start + i * h, str(error)) from error
            if sample is not None:
                q = system.configuration(q, still)
                yield State(sample, phase, q, s)


@dataclass(frozen=True)
class SemiImplicitEuler(FixedStep):
    """Velocities first, then positions with the new velocities: order 1, symplectic, one evaluation a step.

    Friction and stops of joints are implicit: they do not limit the step.
    """

    rule: ClassVar[str] = "semi_implicit"


@dataclass(frozen=True)
class RungeKutta4(FixedStep):
    """The classical method in a chart around each step's start: order 4, four evaluations a step."""

    rule: ClassVar[str] = "runge_kutta"


@dataclass(frozen=True)
class TimeStepping(FixedStep):
    """Steps with impulses, for a `Rigid` ground: order 1 at contacts, 2 in flight; see `rigid_loop`.

    Friction and stops of joints are implicit. Contacts do not limit the step; a controller's gains do.
    """

    step: float = 1e-3
    rule: ClassVar[str] = "time_stepping"
