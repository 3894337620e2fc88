"""Fixed-step integrators, for contact-rich runs: semi-implicit Euler and Runge-Kutta of order four."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from legged.errors import DefinitionError, NotFiniteError, SingularError
from legged.simulation.system import Diverged, Segment, State, System

Array = np.ndarray
_ROUNDING = 1e-9  # of a step: a remainder below this is none


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
        """Yield the state at every sample time; see `Integrator`."""
        still = np.zeros(system.nv)
        for number, start, end, samples in segments:
            t = start
            for sample in samples.tolist():
                q, s = self._walk(system, number, t, sample, q, s)
                q, t = system.configuration(q, still), sample
                yield State(t, number, q, s)
            q, s = self._walk(system, number, t, end, q, s)

    def _walk(self, system: System, number: int, start: float, end: float, q: Array, s: Array) -> tuple[Array, Array]:
        step_on = system.stepper(self.rule)
        n = int(np.ceil((end - start) / self.step - _ROUNDING))
        h = (end - start) / max(n, 1)
        for i in range(n):
            try:
                q, s = step_on(start + i * h, h, float(number), q, s)
            except (NotFiniteError, SingularError) as error:
                raise Diverged(start + i * h, str(error)) from error
        return q, s


@dataclass(frozen=True)
class SemiImplicitEuler(FixedStep):
    """Velocities first, then positions with the new velocities: order 1, symplectic, one evaluation a step."""

    rule: ClassVar[str] = "semi_implicit"


@dataclass(frozen=True)
class RungeKutta4(FixedStep):
    """The classical method in a chart around each step's start: order 4, four evaluations a step."""

    rule: ClassVar[str] = "runge_kutta"
