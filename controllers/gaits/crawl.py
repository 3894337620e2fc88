"""The crawl gait: one leg swings at a time, with the center of mass over the other feet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from controllers.gaits.foot_path import Path, blend, path_named
from controllers.gaits.gait import Gait, level_state
from controllers.gaits.leg import Leg, paper_quadruped
from legged import taylor
from legged.checked import checked
from legged.dynamics.kinematics import center_of_mass
from legged.errors import DefinitionError, ShapeError
from legged.robot.robot import Robot

Array = np.ndarray


@checked
@dataclass(frozen=True, kw_only=True)
class Crawl(Gait):
    """A statically stable gait: in every phase the base shifts over the supporting feet, then one leg swings.

    The legs swing in the order hind right, fore right, hind left, fore left. Shift and swing begin and end with zero
    velocity and acceleration, so accelerations have no jumps. A foot swings by as many strides as there are legs.

    Attributes:
        shift_fraction: Fraction of a phase that the shift takes, between 0 and 1.
        lean: Position of the center of mass during the swing, from the middle of all feet (0) to the middle of the
            supporting feet (1).
        mass_offset: Position (x, y) of the robot's center of mass relative to the base's origin during each swing of
            the cycle, [m], base axes; by default, `on` computes it from the robot.
    """

    period: float = 2.0
    stride: float = 0.05
    clearance: float = 0.05
    height_fraction: ClassVar[float] = 0.75
    path: str | Path = "smooth"
    shift_fraction: float = 0.5
    lean: float = 0.5
    mass_offset: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.shift_fraction < 1:
            raise DefinitionError(f"shift_fraction must be between 0 and 1, got {self.shift_fraction}")
        if not 0 <= self.lean <= 1:
            raise DefinitionError(f"lean must be from 0 to 1, got {self.lean}")

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_quadruped()

    @property
    def cycle(self) -> int:
        return len(self.geometry)

    @property
    def breaks(self) -> tuple[float, ...]:
        return (self.shift_fraction,)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Indices of the legs in the order in which they swing.

        Raises:
            DefinitionError: The legs that do not swing are too few to support the robot: 3 of a robot in space, 2 in a
                plane.
        """
        stances = [leg.stance for leg in self.geometry]
        needed = 3 if len({y for _, y in stances}) == 1 else 4
        if len(stances) < needed:
            raise DefinitionError(
                f"Crawl needs {needed} legs or more, so that the robot stands on the others while one leg swings, got "
                f"{len(stances)}"
            )
        return tuple(sorted(range(len(stances)), key=lambda i: (stances[i][1] > 0, stances[i][0])))

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        n = self.cycle
        cycle_phase = phase % n
        s = t / self.period
        shift = blend(_clip(s / self.shift_fraction))
        advance, lift = path_named(self.path)(_clip((s - self.shift_fraction) / (1 - self.shift_fraction)))
        targets = self._targets
        previous = np.roll(targets, 1, axis=0) - [self.stride, 0.0]  # the axes move by a stride per phase
        base = []
        for axis in (0, 1):
            a, b = _choose(cycle_phase, previous[:, axis]), _choose(cycle_phase, targets[:, axis])
            base.append(a + (b - a) * shift)
        feet = []
        for leg in range(n):
            position = self.order.index(leg)
            swings = (cycle_phase > position - 0.5) & (cycle_phase < position + 0.5)
            x = _choose(cycle_phase, self._lift_off[:, leg])
            feet.append(
                [
                    taylor.where(swings, x + advance * (n * self.stride), x),
                    0.0,
                    taylor.where(swings, lift * self.clearance, 0.0),
                ]
            )
        return [*base, self.base_height], feet

    def supporting(self, phase: int) -> tuple[str, ...]:
        """Return the names of the legs that carry the robot while the leg of this phase swings."""
        swinging = self.order[phase % len(self.order)]
        return tuple(leg.name for i, leg in enumerate(self.geometry) if i != swinging)

    def support(self, t: float) -> tuple[str, ...]:
        phase = int(self.phase_at(t))
        shifts = t / self.period - phase < self.shift_fraction
        return tuple(leg.name for leg in self.geometry) if shifts else self.supporting(phase)

    def on(self, robot: Robot) -> Crawl:
        """Return this gait for a robot: with its legs, and its center of mass in the middle of each swing."""
        fitted = super().on(robot)
        if self.mass_offset is not None:
            return fitted
        fitted = replace(fitted, mass_offset=((0.0, 0.0),) * len(fitted.order))
        for _ in range(3):  # a contraction: the offset moves the base and the legs, whose mass is part of the whole
            offsets = tuple(fitted._center_of_mass(robot, k) for k in range(len(fitted.order)))
            fitted = replace(fitted, mass_offset=offsets, hip_height=self.hip_height)
        fitted = replace(fitted, hip_height=fitted.height)
        fitted.check()
        return fitted

    def _center_of_mass(self, robot: Robot, phase: int) -> tuple[float, float]:
        """Return (x, y) of the center of mass relative to the base's origin in the middle of a swing, [m]."""
        t = (phase + self.shift_fraction + 0.5 * (1 - self.shift_fraction)) * self.period
        position, _, _ = self.base(t, phase)
        angles, rates, _ = self.reference(t, phase)
        q, _ = level_state(robot, position, np.zeros(3), angles, rates)
        q_base = np.asarray(position) if robot.base.nv else np.zeros(3)
        x, y, _ = center_of_mass(robot, q) - q_base
        return float(x), float(y)

    @cached_property
    def _lift_off(self) -> Array:
        """Displacement of each foot along x at the start of each phase of the cycle, (phases, legs), [m].

        Each foot lands as far ahead of its stance position as it is behind it at lift-off.
        """
        n = len(self.order)
        rows = np.zeros((n, n))
        for cycle_phase in range(n):
            for position, leg in enumerate(self.order):
                landed = n if position < cycle_phase else 0
                rows[cycle_phase, leg] = self.stride * (landed - cycle_phase + position - (n - 1) / 2)
        return rows

    @cached_property
    def _targets(self) -> Array:
        """Position of the base's origin during the swing of each phase of the cycle, (phases, 2), [m]."""
        n = len(self.order)
        offsets = np.array(self.mass_offset or ((0.0, 0.0),) * n)
        if offsets.shape != (n, 2):
            raise ShapeError(f"mass_offset must be ({n}, 2), one (x, y) for each leg, got shape {offsets.shape}")
        stances = np.array([leg.stance for leg in self.geometry])
        rows = []
        for cycle_phase, swinging in enumerate(self.order):
            feet = stances + np.column_stack([self._lift_off[cycle_phase], np.zeros(n)])
            supporting = np.delete(feet, swinging, axis=0).mean(axis=0)
            rows.append((1 - self.lean) * feet.mean(axis=0) + self.lean * supporting - offsets[cycle_phase])
        return np.array(rows)


def _choose(cycle_phase: Any, numbers: Array) -> Any:
    """Return the entry of the current phase, as a constant `Taylor` series."""
    entries = numbers.tolist()
    chosen: Any = taylor.lift(entries[-1])
    for k in reversed(range(len(entries) - 1)):
        chosen = taylor.where(cycle_phase < k + 0.5, entries[k], chosen)
    return chosen


def _clip(s: Any) -> Any:
    return taylor.where(s < 0, 0.0, taylor.where(s < 1, s, 1.0))
