"""`Rollouts`: what a batch of runs produced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from legged.simulation.run import Run

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Motions of B members of a batch, sampled at T times. World axes and SI units throughout.

    Samples behind the end of a member that fell or diverged are NaN.

    Attributes:
        robot, backend, integrator: Name of the robot, what evaluated the equations, and what stepped through time.
        times: (T,), [s].
        q, v: Configurations (B, T, nq) and velocities (B, T, nv).
        rest: What else the state holds, (B, T, n): memories of controller and ground, work of actuators, ground,
            pushes and joints [J], configuration (7,) and velocity (6,) of each free body.
        base_position: Of the base's origin, (B, T, 3), [m].
        fallen: Which members did not reach the end, (B,), bool: they fell, or their next state was not finite.
        when: When they ended, (B,), [s]; NaN for those that did not.
        reasons: Why, in words, one for each member, "" for those that reached the end.
        vary: What was varied: name of a field -> (B, ...).
    """

    robot: str
    backend: str
    integrator: str
    times: Array
    q: Array
    v: Array
    rest: Array
    base_position: Array
    fallen: Array
    when: Array
    reasons: tuple[str, ...]
    vary: dict[str, Array]
    _run: Callable[[Rollouts, int], Run]

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        fell = int(self.fallen.sum())
        return f"<Rollouts of {self.robot!r}: {len(self)} members, {fell} fell, {self.times[-1]:g} s, {self.backend}>"

    def run(self, i: int) -> Run:
        """Return member i with everything that a `Run` holds: torques, contact forces, energies, figures."""
        if not -len(self) <= i < len(self):
            raise IndexError(f"there are {len(self)} members, no member {i}")
        return self._run(self, i % len(self))
