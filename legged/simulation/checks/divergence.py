"""Detection of a solution that has diverged, which is not a fall: the numbers no longer describe a motion.

A state is judged by two bounds, both far beyond the motion of robots:

- Speed. No generalized velocity may exceed `ANGULAR_SPEED` or `LINEAR_SPEED`.
- Energy. Kinetic energy comes from a loss of potential energy and from the work of actuators, contacts, pushes and
  joints, all of which a simulation computes. If it exceeds the energy of a fall from 5 m, and in two consecutive
  intervals between samples each step produces more than all of it without such a source, the integration does. In an
  accurate solution a step adds a mean error of (omega h)^2 / 2 of the kinetic energy, for motions of frequency omega
  and steps h, whatever the speed; an unstable one adds several times the kinetic energy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.contact.rigid import FreeBody
from legged.simulation.checks.gimbal_lock import gimbal_lock_text
from legged.simulation.integrators import FixedStep
from legged.simulation.loop.rigid_loop import RigidLoop

if TYPE_CHECKING:
    from legged.simulation.integrators import Integrator
    from legged.simulation.loop.closed_loop import ClosedLoop

Array = np.ndarray
ANGULAR_SPEED = 1e5
"""[rad/s], a million revolutions per minute: twice the speed of the fastest electric motors."""
LINEAR_SPEED = 1e4
"""[m/s], reached after 1000 s of free fall; a body this fast leaves the earth, and gravity is not constant."""
ENERGY_PER_MASS = 50.0
"""[J/kg], kinetic energy at 10 m/s, below which the source of kinetic energy is not checked."""
UNEXPLAINED_SHARE = 1.0
"""Share of the kinetic energy that appears without a source in each step of a solution that has diverged."""
SLOW = 5.0
"""[rad/s] or [m/s]: states without a faster coordinate are not checked for their energy, and begin no interval."""
TOO_FAST, GAINED_ENERGY = -2.0, -3.0
"""Termination codes of a robot beyond one of the two bounds."""
_ROUNDING = 1e-6  # of a step
_BODY_STATE = 13  # entries of s for a free body


@dataclass(frozen=True, eq=False)
class DivergenceCheck:
    """The bounds of one closed loop.

    Attributes:
        loop: The closed loop.
        step: Time step, [s]; infinite for variable steps.
        advice: What to do about a divergence.
    """

    loop: ClosedLoop
    step: float
    advice: str

    @classmethod
    def of(cls, loop: ClosedLoop, integrator: Integrator) -> DivergenceCheck:
        """Return the bounds of a run.

        Args:
            loop: The closed loop. integrator: The integrator, which the advice names.
        """
        if isinstance(integrator, FixedStep):
            return cls(
                loop, integrator.step, f"use a smaller step than {integrator.step:g} s, lower gains or a softer ground"
            )
        return cls(loop, np.inf, "check the signs and sizes of gains and forces, or use smaller tolerances")

    def speeds(self, s: Array) -> Array:
        """Return the speed of each coordinate of the robot and of the free bodies, (..., n), [rad/s] or [m/s].

        Args:
            s: Rests of states, (..., size).
        """
        speeds, bodies = [s[..., : self.loop.robot.nv]], len(self._bodies)
        for k in range(bodies):  # each has a q of 7 and a v of 6 entries at the end of s
            end = s.shape[-1] - _BODY_STATE * (bodies - 1 - k)
            speeds.append(s[..., end - 6 : end])
        return np.abs(np.concatenate(speeds, axis=-1))

    def too_fast(self, s: Array) -> Array:
        """Return whether a speed exceeds its bound or is not a number, (...), bool.

        Args:
            s: Rests of states, (..., size).
        """
        return np.any(~(self.speeds(s) <= self._bounds), axis=-1)

    def too_slow_to_judge(self, s: Array) -> Array:
        """Return whether states are so slow that their energy need not be computed, (...), bool.

        Args:
            s: Rests of states, (..., size).
        """
        return self.speeds(s).max(axis=-1, initial=0.0) <= SLOW

    def unexplained(self, before: Array, after: Array, s_before: Array, s_after: Array, duration: Array) -> Array:
        """Return the kinetic energy without a source where it exceeds the bounds, 0.0 elsewhere, (...), [J].

        Args:
            before, after: Kinetic and potential energy at consecutive samples, (..., 2), [J].
            s_before, s_after: Rests of the states, (..., size), with the works, mixed units.
            duration: Time between the samples, (...), [s].
        """
        works = (self.loop.split(s_after).works - self.loop.split(s_before).works).sum(axis=-1)
        gained = (after - before).sum(axis=-1) - works
        kinetic = np.maximum(before[..., 0], after[..., 0])
        share = UNEXPLAINED_SHARE * np.maximum(np.ceil(duration / self.step - _ROUNDING), 1.0)
        return np.where(self.is_energetic(after) & ~(gained <= share * kinetic), gained, 0.0)

    def is_energetic(self, energies: Array) -> Array:
        """Return whether the kinetic energy is so large that its source is checked, (...), bool.

        Args:
            energies: Kinetic and potential energies, (..., 2), [J].
        """
        return np.asarray(energies[..., 0] > ENERGY_PER_MASS * self._mass)

    def message(self, t: float, s: Array, q: Array, gained: float = 0.0, reason: str = "") -> str:
        """Return the message for a run that diverged: time, fastest joint or body, and remedy.

        Args:
            t: Time, [s]. s: Rest of the state, (size,). q: Last configurations, (k, nq), mixed units,
                (0, nq) if they are not known.
            gained: Kinetic energy without a source, [J]. reason: Why the integrator cannot continue.
        """
        reasons, advice = [reason] if reason else [], self.advice
        if gained:
            reasons.append(f"{gained:.3g} J of kinetic energy come from no actuator, contact, push or loss of height")
        speeds = self.speeds(s)
        if speeds.any():
            k = int(np.nan_to_num(speeds / self._bounds, nan=np.inf).argmax())
            name, bound = self._coordinates[k]
            motion = "turns at {:.3g} rad/s" if bound == ANGULAR_SPEED else "moves at {:.3g} m/s"
            reasons.append(f"{name} {motion.format(float(speeds[k]))}")
            if locked := gimbal_lock_text(self.loop.robot, q, k):
                advice = locked if len(q) else f"{advice}; {locked}"
        return f"the solution diverged at t = {t:.6g} s: {', '.join(reasons)}; {advice}"

    @property
    def has_bodies(self) -> bool:
        """Whether there are free bodies beside the robot."""
        return bool(self._bodies)

    @property
    def _bodies(self) -> Sequence[FreeBody]:
        return self.loop.bodies if isinstance(self.loop, RigidLoop) else ()

    @cached_property
    def _mass(self) -> float:
        return self.loop.robot.mass + sum(body.inertia.mass for body in self._bodies)

    @cached_property
    def _bounds(self) -> Array:
        return np.array([bound for _, bound in self._coordinates])

    @cached_property
    def _coordinates(self) -> list[tuple[str, float]]:
        """Name of the joint and bound of each coordinate of the robot and of the free bodies."""
        robot = self.loop.robot
        names, bounds = ["the base"] * robot.nv, np.full(robot.nv, ANGULAR_SPEED)
        for joint in robot.joints:
            names[joint.v] = [f"joint {joint.name!r}"] * joint.nv
        motions = [(slice(0, robot.base.nv), robot.base.motion_matrix(robot.base.neutral()))]
        for columns, motion in motions + [(body.v, body.P) for body in robot.bodies[1:]]:
            bounds[columns][~motion[:3].any(axis=0)] = LINEAR_SPEED
        bounds_of = list(zip(names, bounds.tolist(), strict=True))
        for body in self._bodies:
            bounds_of += [(f"body {body.name!r}", bound) for bound in (*[ANGULAR_SPEED] * 3, *[LINEAR_SPEED] * 3)]
        return bounds_of


class DivergenceMonitor:
    """Judges the states of several robots at times some milliseconds apart.

    Args:
        check: The bounds. count: Number of robots, N.
        energies: Function of some states [q; s], (k, n), and the indices of their robots, (k,), that returns their
            kinetic and potential energies, (k, 2), [J].

    Attributes:
        gained: Kinetic energy of each robot that came from no source when it was found, (N,), [J].
    """

    def __init__(self, check: DivergenceCheck, energies: Callable[[Array, Array], Array], count: int):
        self._check, self._energies, self._nq = check, energies, check.loop.robot.nq
        self.gained = np.zeros(count)
        self._fast_states = np.zeros(count, dtype=int)  # number of successive stored states in which each robot is fast
        self._samples: list[tuple[Array, Array]] = []
        self._speeds = np.zeros((count, check.loop.robot.nv))  # working memory

    def forget(self, robots: Any) -> None:
        """Begin again for some robots.

        Args:
            robots: Their indices, or a slice.
        """
        self._fast_states[robots] = 0

    def all_are_slow(self, states: Array) -> bool:
        """Return whether all robots are so slow that `codes` is zero and needs no call; much faster than `codes`.

        Args:
            states: Present states [q; s], (N, n), mixed units.
        """
        if self._check.has_bodies:
            return False
        speeds = self._speeds  # contiguous, which is faster to read than rows of a few numbers
        np.copyto(speeds, states[:, self._nq : self._nq + speeds.shape[1]])
        np.absolute(speeds, out=speeds)
        if not np.maximum.reduce(speeds.ravel(), initial=0.0) <= SLOW:
            return False
        self._fast_states.fill(0)
        return True

    def codes(self, t: Array, states: Array, running: Array) -> Array:
        """Return `TOO_FAST` or `GAINED_ENERGY` for each robot whose motion has diverged, 0.0 for others, (N,).

        Args:
            t: Present times, (N,), [s]. states: Present states [q; s], (N, n), mixed units.
            running: Whether robots have not ended, (N,), dimensionless; others are not judged.
        """
        check, nq, codes = self._check, self._nq, np.zeros(len(states))
        if self.all_are_slow(states):
            return codes
        self._store(t, states)
        self._fast_states += 1
        fast = running & ~check.too_slow_to_judge(states[:, nq:])
        codes[fast & check.too_fast(states[:, nq:])] = TOO_FAST
        fast &= codes == 0.0
        self._fast_states[~fast] = 0
        robots = np.flatnonzero(self._fast_states > 2)
        if len(robots):
            robots = robots[check.is_energetic(self._energies(states[robots], robots))]
        if len(robots):
            self.gained[robots] = self._gained(robots)
            codes[robots[self.gained[robots] != 0.0]] = GAINED_ENERGY
        return codes

    def _store(self, t: Array, states: Array) -> None:
        """Store the present states, (N, n), in place of those before the last two."""
        oldest = self._samples.pop(0)[1] if len(self._samples) == 3 else np.empty_like(states, order="C")
        np.copyto(oldest, states)
        self._samples.append((t, oldest))

    def _gained(self, robots: Array) -> Array:
        """Return the kinetic energy that came from no source in both of the last two intervals, (k,), [J]."""
        nq, gains = self._nq, []
        for (t, before), (t_next, after) in pairwise([(t[robots], states[robots]) for t, states in self._samples]):
            energies = [self._energies(x, robots) for x in (before, after)]
            gains.append(self._check.unexplained(energies[0], energies[1], before[:, nq:], after[:, nq:], t_next - t))
        return np.where((gains[0] != 0.0) & (gains[1] != 0.0), gains[0] + gains[1], 0.0)
