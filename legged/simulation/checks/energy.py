"""Check of the energy balance of a motion: kinetic and potential energy minus all work must not rise.

Its rise, the largest one from an earlier sample to a later one, is compared with the energy that the motion moves: the
largest kinetic energy plus the work of actuators, contacts, pushes and joints, without regard to signs, between all
samples. The error of a step is of first order where contacts and stops change velocities abruptly, so that the rise is
proportional to the step, and the warning names the step to take. In semi-implicit and linearly implicit steps the work
of contacts contains the error of their forces. It is left out of the balance, since contacts return at most the energy
that they have taken. Positive work of friction and stops is left out as well. The energy is then compared with the
lowest one before the first contact.

`energy_warning` judges a finished run of `simulate`; `rollout` and `Simulation` add states to an `EnergyMonitor` by
`Stepper.follow_energy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.simulation.checks.gimbal_lock import gimbal_lock_text
from legged.simulation.integrators import FixedStep
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.equations import WORKS
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.records import LEAST_ENERGY
from legged.simulation.results.run import Run

Array = np.ndarray
LARGEST_RISE = 0.1
"""Rise relative to the moved energy above which there is a warning."""
GOAL = 0.01
"""Relative rise for which the warning computes the step to take."""
_LEFT_OUT = ("semi_implicit", "linearly_implicit")
"""Rules of fixed steps, `FixedStep.rule`, whose work of contacts is left out."""


class EnergyMonitor:
    """The energy balance of several robots over their states at successive times.

    Args:
        loop: The closed loop of the first robot. integrator: The integrator. count: Number of robots, N.

    Attributes:
        is_judged: Whether the balance is judged, until the warning has been given.
    """

    def __init__(self, loop: ClosedLoop, integrator: object, count: int = 1):
        bodies = loop.bodies if isinstance(loop, RigidLoop) else ()
        self._least = LEAST_ENERGY * (loop.robot.mass + sum(body.inertia.mass for body in bodies))
        self._integrator, self.is_judged = integrator, True
        self._leaves_out_contacts = getattr(integrator, "rule", "") in _LEFT_OUT
        self._lowest = np.full(count, np.inf)  # least balance so far, [J]
        self._works = np.full((count, WORKS), np.nan)  # works at the last time, NaN before the first one, [J]
        # Largest rise above the lowest balance, largest kinetic energy, and sum of absolute changes of works, [J].
        self._rise, self._kinetic, self._work = np.zeros((3, count))

    def forget(self, robots: Any) -> None:
        """Begin again for some robots.

        Args:
            robots: Their indices, or a slice.
        """
        self._lowest[robots], self._works[robots] = np.inf, np.nan
        self._rise[robots] = self._kinetic[robots] = self._work[robots] = 0.0

    def add(self, energies: Array, works: Array, running: Array) -> None:
        """Take states at successive times into account.

        Args:
            energies: Kinetic and potential energies, (T, N, 2), [J].
            works: Work of actuators, contacts, pushes and joints, (T, N, 4), [J].
            running: Whether robots have reached the states and have not ended, (T, N), dimensionless.
        """
        is_reference = running
        if self._leaves_out_contacts:
            is_reference = running & (works[..., 1] == 0.0)
            works = np.minimum(works, (np.inf, np.inf, np.inf, 0.0)) * (1.0, 0.0, 1.0, 1.0)
        balance = energies.sum(axis=-1) - works.sum(axis=-1)
        lowest = np.minimum.accumulate(np.concatenate([self._lowest[None], np.where(is_reference, balance, np.inf)]))
        rises = balance - lowest[:-1]  # above the lowest balance before
        changes = np.abs(np.diff(np.concatenate([self._works[None], works]), axis=0)).sum(axis=-1)
        self._work += np.where(running & np.isfinite(changes), changes, 0.0).sum(axis=0)
        for largest, values in ((self._kinetic, energies[..., 0]), (self._rise, rises)):
            np.maximum(largest, np.where(running, values, 0.0).max(axis=0), out=largest)
        self._lowest, self._works = lowest[-1], works[-1].copy()

    @property
    def _moved(self) -> Array:
        """Energy that the motion of each robot has moved, (N,), [J]."""
        return self._kinetic + self._work

    @property
    def _relative_rises(self) -> Array:
        """Rise of the balance of each robot, (N,), relative to the energy that its motion has moved."""
        return self._rise / np.maximum(self._moved, self._least)

    @property
    def rising(self) -> Array:
        """Indices of the robots whose balance rises, (k,), the largest relative rise first."""
        return self._rising(LARGEST_RISE)

    def _rising(self, allowed: float) -> Array:
        """Return the indices of the robots whose relative rise is larger than allowed, the largest one first."""
        relative = self._relative_rises
        order = np.argsort(-relative, kind="stable")
        return order[(relative[order] > allowed) & (relative[order] < np.inf)] if self.is_judged else order[:0]

    def warning(self, allowed: float = LARGEST_RISE) -> tuple[int, str]:
        """Return the robot with the largest relative rise of its balance, and the warning about it, "" if it is small.

        Its step is that for a rise of `GOAL`.

        Args:
            allowed: Relative rise above which there is a warning, dimensionless.
        """
        rising = self._rising(allowed).tolist()
        if not rising:
            return 0, ""
        i, moved = rising[0], self._moved
        relative = float(self._relative_rises[i])
        remedy = "use smaller tolerances"
        if isinstance(self._integrator, FixedStep):
            step = self._integrator.step
            remedy = f"take a step of {_rounded_down(step * GOAL / relative):g} s instead of {step:g} s"
        work = "the work of motors and pushes and the loss in joints" if self._leaves_out_contacts else "all work"
        return i, (
            f"kinetic and potential energy minus {work} rise by {self._rise[i]:.3g} J, {100.0 * relative:.0f} % of "
            f"the {moved[i]:.3g} J that the motion has moved, which is an error of the integration; {remedy}"
        )


def energy_warning(run: Run, loop: ClosedLoop, integrator: object) -> str:
    """Return the warning that the energy balance of a run rises, or "".

    A relative rise of more than `LARGEST_RISE` is reported, and one of more than `GOAL` if the largest rise between two
    samples happens near gimbal lock.

    Args:
        run: The run. loop: Its closed loop. integrator: The integrator.
    """
    monitor, energy = EnergyMonitor(loop, integrator), run.energy
    energies = np.stack([energy.kinetic, energy.potential], axis=-1)
    works = np.stack([energy.actuator_work, energy.contact_work, energy.push_work, energy.joint_work], axis=-1)
    monitor.add(energies[:, None], works[:, None], np.ones((len(works), 1), dtype=bool))
    text = monitor.warning(GOAL)[1]
    if not text:
        return ""
    k = int(np.diff(energy.balance).argmax())
    locked = gimbal_lock_text(loop.robot, run.q[max(k - 1, 0) : k + 3])
    return f"{text}; {locked}" if locked else monitor.warning(LARGEST_RISE)[1]


def _rounded_down(step: float) -> float:
    """Return the largest number of one digit that is not above a step, [s]."""
    unit = 10.0 ** np.floor(np.log10(step))
    return float(np.floor(step / unit) * unit)
