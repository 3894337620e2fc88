"""The crawl: one leg at a time, with the center of mass over the triangle of the other three."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from controllers.gaits.foot_path import Path, blend, path_named
from controllers.gaits.gait import Gait, level_state
from controllers.gaits.leg import Leg
from controllers.gaits.paper_legs import paper_quadruped
from legged import taylor
from legged.dynamics.kinematics import center_of_mass
from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class Crawl(Gait):
    """A statically stable gait: in every step the base first shifts with all feet down, then one leg swings.

    The order is hind then fore leg of the right side, then of the left. Shift and swing begin and end at rest and
    without acceleration, so that nothing jumps. A foot swings forward by as many strides as there are legs.

    Attributes:
        shifting: The part of a step that the shift takes, between 0 and 1.
        lean: How far the center of mass goes from the middle of all feet (0) to the middle of the supporting ones (1).
        mass_offset: From the base's origin to the robot's center of mass while the leg in turn swings, one (x, y) per
            step of the cycle, [m]; without it, measured on the robot by `on`.
    """

    period: float = 2.0
    stride: float = 0.05
    clearance: float = 0.05
    hip_height: float = 0.45
    path: str | Path = "smooth"
    shifting: float = 0.5
    lean: float = 0.5
    mass_offset: tuple[tuple[float, float], ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.shifting < 1:
            raise DefinitionError(f"shifting must be between 0 and 1, got {self.shifting}")
        if not 0 <= self.lean <= 1:
            raise DefinitionError(f"lean must be from 0 to 1, got {self.lean}")

    def default_legs(self) -> tuple[Leg, ...]:
        return paper_quadruped()

    @property
    def cycle(self) -> int:
        return len(self.geometry)

    @property
    def breaks(self) -> tuple[float, ...]:
        return (self.shifting,)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Indices of the legs in the order in which they swing."""
        stances = [leg.stance for leg in self.geometry]
        return tuple(sorted(range(len(stances)), key=lambda i: (stances[i][1] > 0, stances[i][0])))

    def plan(self, t: Any, phase: Any) -> tuple[list[Any], list[list[Any]]]:
        n = self.cycle
        cycle_phase = phase % n
        share = t / self.period
        shift = blend(_clipped(share / self.shifting))
        advance, lift = path_named(self.path)(_clipped((share - self.shifting) / (1 - self.shifting)))
        targets = self._targets
        came_from = np.roll(targets, 1, axis=0) - [self.stride, 0.0]  # the axes have moved on by a stride
        base = []
        for axis in (0, 1):
            a, b = _choose(cycle_phase, came_from[:, axis]), _choose(cycle_phase, targets[:, axis])
            base.append(a + (b - a) * shift)
        feet = []
        for leg in range(n):
            turn = self.order.index(leg)
            swings = (cycle_phase > turn - 0.5) & (cycle_phase < turn + 0.5)
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
        """Return the names of the legs that carry the robot while the leg in turn swings."""
        swinging = self.order[phase % len(self.order)]
        return tuple(leg.name for i, leg in enumerate(self.geometry) if i != swinging)

    def support(self, t: float) -> tuple[str, ...]:
        phase = int(self.phase_at(t))
        shifts = t / self.period - phase < self.shifting
        return tuple(leg.name for leg in self.geometry) if shifts else self.supporting(phase)

    def on(self, robot: Robot) -> Crawl:
        """Return this gait for a robot: its legs, and where its center of mass lies in the middle of each swing."""
        fitted = super().on(robot)
        if self.mass_offset is not None:
            return fitted
        fitted = replace(fitted, mass_offset=((0.0, 0.0),) * len(fitted.order))
        for _ in range(3):  # the offset moves the base, which moves the legs, which weigh less than all: it converges
            fitted = replace(fitted, mass_offset=tuple(fitted._measured(robot, k) for k in range(len(fitted.order))))
        fitted.check()
        return fitted

    def _measured(self, robot: Robot, phase: int) -> tuple[float, float]:
        """Return where the center of mass is, (x, y), [m], relative to the base, in the middle of a swing."""
        t = (phase + self.shifting + 0.5 * (1 - self.shifting)) * self.period
        position, _, _ = self.base(t, phase)
        angles, rates, _ = self.reference(t, phase)
        q, _ = level_state(robot, position, np.zeros(3), angles, rates)
        q_base = np.asarray(position) if robot.base.nv else np.zeros(3)
        x, y, _ = center_of_mass(robot, q) - q_base
        return float(x), float(y)

    @cached_property
    def _lift_off(self) -> Array:
        """Displacement of each foot along x at the start of each step of the cycle, (steps, legs), [m].

        Each foot is as far ahead of its stance when it lands as it is behind when it lifts off.
        """
        n = len(self.order)
        rows = np.zeros((n, n))
        for cycle_phase in range(n):
            for turn, leg in enumerate(self.order):
                landed = n if turn < cycle_phase else 0
                rows[cycle_phase, leg] = self.stride * (landed - cycle_phase + turn - (n - 1) / 2)
        return rows

    @cached_property
    def _targets(self) -> Array:
        """Where the base's origin is while the leg in turn swings, (steps, 2), [m]."""
        n = len(self.order)
        offsets = np.array(self.mass_offset or ((0.0, 0.0),) * n)
        stances = np.array([leg.stance for leg in self.geometry])
        rows = []
        for cycle_phase, swinging in enumerate(self.order):
            feet = stances + np.column_stack([self._lift_off[cycle_phase], np.zeros(n)])
            carrying = np.delete(feet, swinging, axis=0).mean(axis=0)
            rows.append((1 - self.lean) * feet.mean(axis=0) + self.lean * carrying - offsets[cycle_phase])
        return np.array(rows)


def _choose(cycle_phase: Any, numbers: Array) -> Any:
    """Return the number of the current phase, as a constant of time."""
    entries = numbers.tolist()
    chosen: Any = taylor.lift(entries[-1])
    for k in reversed(range(len(entries) - 1)):
        chosen = taylor.where(cycle_phase < k + 0.5, entries[k], chosen)
    return chosen


def _clipped(share: Any) -> Any:
    return taylor.where(share < 0, 0.0, taylor.where(share < 1, share, 1.0))
