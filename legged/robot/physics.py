"""What a joint has besides its axis: friction, springs, rotors, stops and the limits of its motor."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from legged.errors import DefinitionError
from legged.spatial import Array

PerFreedom = float | Array | tuple[float, ...] | list[float]


@dataclass(frozen=True, eq=False)
class Rotor:
    """A spinning part of a joint's motor, mounted on the parent link, its axis along the joint's.

    Attributes:
        inertia: About its axis, [kg m^2].
        gear: Turns of the rotor for one turn of the joint; negative if they turn opposite ways.
        gyroscopic: Whether its spin also couples with the turning of the parent link; otherwise only the reflected
            inertia gear^2 * inertia is felt, as Pinocchio and MuJoCo have it.
    """

    inertia: float
    gear: float = 1.0
    gyroscopic: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.inertia) and self.inertia >= 0.0 and np.isfinite(self.gear)):
            raise DefinitionError(
                f"a rotor needs a finite inertia that is not negative and a finite gear ratio, got {self.inertia} "
                f"kg m^2 and {self.gear}"
            )


@dataclass(frozen=True, eq=False)
class JointPhysics:
    """Forces and limits of a joint; each is one number, or one per degree of freedom of the joint.

    The first five act in inverse and forward dynamics, in every function. Stops and motor limits act in simulations
    only: the dynamics themselves answer for any state and any force.

    Attributes:
        damping: Viscous friction, [N m s/rad] or [N s/m].
        friction: Dry (Coulomb) friction, [N m] or [N].
        armature: Reflected inertia of rotors, [kg m^2] or [kg], added to that of `rotor`.
        stiffness: Of a spring, [N m/rad] or [N/m].
        rest: Where the spring is relaxed, [rad] or [m].
        lower, upper: Where the stops are, [rad] or [m].
        effort: Largest force of the motor, [N m] or [N].
        speed: Speed at which the motor gives no more force, [rad/s] or [m/s].
        rotor: The motor's rotor, if it is known in detail.
    """

    damping: PerFreedom = 0.0
    friction: PerFreedom = 0.0
    armature: PerFreedom = 0.0
    stiffness: PerFreedom = 0.0
    rest: PerFreedom = 0.0
    lower: PerFreedom = -np.inf
    upper: PerFreedom = np.inf
    effort: PerFreedom = np.inf
    speed: PerFreedom = np.inf
    rotor: Rotor | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.name == "rotor":
                continue
            value = np.asarray(getattr(self, item.name), float)
            object.__setattr__(self, item.name, value)
            _check(item.name, value)
        if np.any(np.asarray(self.lower) > np.asarray(self.upper)):
            raise DefinitionError(f"the lower limit {self.lower} lies above the upper limit {self.upper}; swap them")


def _check(name: str, value: Array) -> None:
    unlimited = name in ("lower", "upper", "effort", "speed")
    if np.isnan(value).any() or (not unlimited and not np.isfinite(value).all()):
        raise DefinitionError(f"a joint's {name} must be finite, got {value}")
    if name not in ("rest", "lower", "upper") and (value < 0).any():
        raise DefinitionError(f"a joint's {name} must not be negative, got {value}")
