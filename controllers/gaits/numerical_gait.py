"""Gaits of robots whose legs have no closed-form inverse kinematics: Chebyshev polynomials fitted to its solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev

from controllers.gaits.crawl import Crawl
from controllers.gaits.gait import Gait, level_state
from controllers.gaits.leg import FittedLeg
from legged import taylor
from legged.algorithms.legs.foot_kinematics import FootKinematics
from legged.algorithms.legs.leg_chains import LegChain, leg_chains
from legged.algorithms.legs.standing import home_of
from legged.arguments import Number, Numbers
from legged.checked import checked
from legged.dynamics.kinematics import center_of_mass
from legged.errors import DefinitionError, ReachError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray
_SOLVED = 1e-13  # [m], tolerance of the inverse kinematics
_CURVATURE = 1e-3  # [rad/s^2], largest contribution of the last terms of the series to an acceleration


@checked
class NumericalGait:
    """Any `Gait` on any robot: the gait's motion of base and feet, by numerical inverse kinematics.

    Inverse kinematics is solved at the Chebyshev points of each smooth piece of the gait's cycle. The joints follow the
    interpolating polynomials, so references are formulas of time, which can be traced, and their rates are exact
    derivatives. The feet deviate from the plan by at most `deviation`. The base keeps the height that `home` gives it.

    Args:
        gait: The gait; its `legs` are not used.
        robot: The robot.
        home: Joint positions of a standing posture with bent legs, (nj,), [rad] or [m]. It defines the stance position
            of each foot and the hip height. By default that of `home_of` for the gait's hip height, if it has one.
        hold: Names of joints that stay at their positions in `home`.
        tolerance: Largest deviation of a contact point from the plan, [m].

    Attributes:
        robot, home: As given.
        gait: The gait with the robot's legs and hip height.
        period: Duration of a phase, [s].
        base_height: Height of the base's origin over the ground, [m].
        deviation: Largest deviation of a contact point from the plan at nine times in each piece, [m].

    Raises:
        ReachError: The legs cannot follow the gait, or polynomials of degree 96 miss the tolerance or
            do not have smooth accelerations.
    """

    parameter_names = ("robot", "home", "gait", "period", "base_height", "deviation", "_pieces", "_places", "_fits")
    parameter_names += ("_kinematics", "_tolerance")

    def __init__(
        self,
        gait: Gait,
        robot: Robot,
        home: Sequence[float] | Array | None = None,
        hold: Sequence[str] = (),
        tolerance: float = 1e-9,
    ):
        legs = leg_chains(robot)
        owners = [row for row, leg in enumerate(legs) for _ in leg.contacts]
        self._kinematics = FootKinematics(robot, [point for leg in legs for point in leg.contacts], hold)
        self.robot, self._hold, self._tolerance = robot, tuple(hold), tolerance
        self.home = home_of(robot, gait.hip_height).angles if home is None else np.array(home, dtype=float)
        if self.home.shape != (robot.nj,):
            raise ShapeError(f"home must be ({robot.nj},), one entry per joint coordinate, got {self.home.shape}")
        self._owners = owners
        self._places = self._kinematics.positions(self.home)
        soles = [self._places[[owner == row for owner in owners]] for row in range(len(legs))]
        lowest = [float(points[:, 2].min()) for points in soles]
        self.base_height = -min(lowest)
        self._places[:, 2] -= [lowest[row] for row in owners]  # heights over the ground, every foot on it
        self.gait = self._fitted(gait, legs, [points.mean(axis=0) for points in soles])
        self.period = gait.period
        self._pieces = list(pairwise((0.0, *self.gait.breaks, 1.0)))
        self.deviation = 0.0
        fits = [[self._fit(k, a, b) for a, b in self._pieces] for k in range(self.gait.cycle)]
        size = max(fit.shape[1] for row in fits for fit in row)
        self._fits = [[np.pad(fit, ((0, 0), (0, size - fit.shape[1]))) for fit in row] for row in fits]

    def __replace__(self, **changes: Any) -> NumericalGait:
        """Return the gait fitted anew with another `gait`, for `copy.replace` and parameters that vary.

        Raises:
            DefinitionError: Another attribute changes; the others follow from the gait and the robot.
            ReachError: The legs cannot follow the gait.
        """
        if others := sorted(changes.keys() - {"gait"}):
            raise DefinitionError(
                f"{', '.join(others)} of a NumericalGait cannot change: it follows from gait, robot and posture"
            )
        return NumericalGait(changes.get("gait", self.gait), self.robot, self.home, self._hold, self._tolerance)

    def reference(self, t: Numbers, phase: Number | None = None) -> tuple[Array, Array, Array]:
        """Return joint positions, velocities and accelerations, (nj,) each; see `Gait.reference`."""
        if isinstance(t, (list, tuple)) or getattr(t, "shape", ()):
            if not len(t):
                raise ShapeError("t must hold at least one time, got an empty array")
            rows = [self.reference(x, phase) for x in t]
            position, velocity, acceleration = (np.array(part) for part in zip(*rows, strict=True))
            return position, velocity, acceleration
        passed: Any = self.gait.phase_at(t) if phase is None else phase
        share = (t - passed * self.period) / self.period
        parts = self._piece(share, passed, len(self._pieces) - 1)
        for k in reversed(range(len(self._pieces) - 1)):
            before = self._piece(share, passed, k)
            parts = [taylor.where(share < self._pieces[k][1], x, y) for x, y in zip(before, parts, strict=True)]
        return parts[0], parts[1], parts[2]

    def base(self, t: Numbers, phase: Number | None = None) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration of the base's origin, (3,) each; see `Gait.base`."""
        return self.gait.base(t, phase)

    def support(self, t: float) -> tuple[str, ...]:
        """Return the names of the legs that carry the robot at time `t`, [s]."""
        return self.gait.support(t)

    def switches(self, until: float) -> Array:
        """Return the times before `until` at which accelerations jump, (n,), [s]."""
        return self.gait.switches(until)

    def on(self, robot: Robot) -> NumericalGait:
        """Return this gait, which belongs to one robot.

        Raises:
            DefinitionError: The robot is another one.
        """
        if robot is not self.robot and (robot.name, robot.nj) != (self.robot.name, self.robot.nj):
            raise DefinitionError(f"this gait was solved for robot {self.robot.name!r}, not for {robot.name!r}")
        return self

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0, (nq,) and (nv,); see `Gait.initial_state`."""
        position, velocity, _ = self.on(robot).base(0.0, 0)
        angles, rates, _ = self.reference(0.0, 0)
        return level_state(robot, position, velocity, angles, rates)

    def _fitted(self, gait: Gait, chains: Sequence[LegChain], soles: Sequence[Array]) -> Gait:
        """Return the gait with these legs, and with the base height of the standing posture."""
        legs = tuple(
            FittedLeg(leg.name, (float(x), float(y), float(leg.hip[2])), leg.length, leg.columns, len(leg.contacts) > 1)
            for leg, (x, y, _) in zip(chains, soles, strict=True)
        )
        if isinstance(gait, Crawl) and gait.mass_offset is None:
            x, y, _ = center_of_mass(self.robot, np.concatenate([self.robot.base.neutral(), self.home]))
            gait = replace(gait, mass_offset=((float(x), float(y)),) * len(legs))
        return replace(gait, legs=legs, hip_height=self.base_height + legs[0].hip[2], joints=self.robot.nj)

    def _targets(self, phase: int, t: float) -> Array:
        """Return the planned positions of the contact points, (points, 3), [m], base axes, at time t of a phase."""
        base, feet = self.gait.plan(taylor.time(t), phase)
        moved, _, _ = taylor.derivatives([[foot[i] - base[i] for i in range(3)] for foot in feet])
        return self._places + moved[self._owners]

    def _fit(self, phase: int, a: float, b: float) -> Array:
        """Return Chebyshev coefficients, (joints, degree + 1), of the joints over a piece of a phase."""
        deviation, curvature, tolerance = np.inf, np.inf, self._tolerance
        for degree in (0, 12, 24, 36, 48, 64, 96):  # degree 0 for a stand, so that it is also valid beyond its period
            nodes, angles, solutions = np.sort(chebyshev.chebpts1(degree + 1)), self.home, []
            for u in nodes:
                angles = self._kinematics.solve(self._targets(phase, self._time(u, a, b)), angles, _SOLVED)
                solutions.append(angles)
            fit = chebyshev.chebfit(nodes, np.array(solutions), degree)
            deviation = max(self._deviation(fit, phase, u, a, b) for u in np.linspace(-1, 1, 9))
            # The second derivative of a Chebyshev polynomial reaches about degree^4 / 3 at the ends.
            curvature = np.abs(fit[-3:]).max() * degree**4 / 3 * (2 / ((b - a) * self.period)) ** 2
            if deviation < tolerance and curvature < _CURVATURE:
                self.deviation = max(self.deviation, deviation)
                return fit.T
        if deviation < tolerance:
            reason = (
                f"with smooth accelerations: polynomials of degree {degree} deviate by {deviation:.3g} m, within the "
                f"{tolerance:g} m that are allowed, but their accelerations err by {curvature:.3g} of at most "
                f"{_CURVATURE:g} rad/s^2"
            )
        else:
            reason = f"within {tolerance:g} m: polynomials of degree {degree} deviate by {deviation:.3g} m"
        raise ReachError(
            f"the legs cannot follow phase {phase} of the gait {reason}; use a shorter stride or a smaller hip height "
            f"if a leg is nearly straight, and a smooth foot path",
            residual=deviation,
        )

    def _time(self, u: float, a: float, b: float) -> float:
        return self.period * (a + (b - a) * (u + 1) / 2)

    def _deviation(self, fit: Array, phase: int, u: float, a: float, b: float) -> float:
        places = self._kinematics.positions(np.asarray(chebyshev.chebval(u, fit)))
        return float(np.abs(places - self._targets(phase, self._time(u, a, b))).max())

    def _piece(self, share: Any, phase: Any, piece: int) -> list[Array]:
        """Return positions, velocities and accelerations of the joints, (nj,) each, from one piece's polynomials."""
        a, b = self._pieces[piece]
        u = (taylor.Taylor(share, 1 / self.period) - a) * (2 / (b - a)) - 1
        fits, cycle_phase = [row[piece] for row in self._fits], phase % self.gait.cycle
        chosen = fits[-1]
        for k in reversed(range(len(fits) - 1)):
            chosen = taylor.where(cycle_phase < k + 0.5, fits[k], chosen)
        basis = [taylor.lift(1.0), u]
        while len(basis) < fits[0].shape[1]:
            basis.append(2 * u * basis[-1] - basis[-2])
        return [chosen @ part for part in taylor.derivatives(basis[: fits[0].shape[1]])]
