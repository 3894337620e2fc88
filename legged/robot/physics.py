"""What a joint has besides its axis: friction, springs, rotors, stops and the limits of its motor.

Dry friction is F tanh(v / v_s), with v_s = `CREEP`: a joint that is held by friction creeps, by less than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np

from legged.errors import DefinitionError
from legged.spatial import Array

PerFreedom = float | Array | tuple[float, ...] | list[float]
CREEP = 0.01
"""Speed below which dry friction gives way, [rad/s] or [m/s]."""
_UNLIMITED = {"lower": -np.inf, "upper": np.inf, "effort": np.inf, "speed": np.inf}


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

    The first five and the rotor act in inverse and forward dynamics, in every function. Stops and motor limits act in
    simulations only: the dynamics themselves answer for any state and any force.

    A ball joint with a quaternion turns alike about all axes: it has one armature, one stiffness, no stops; its `rest`
    is a rotation vector. A rotor needs a joint of one degree of freedom. A joint that follows another has no motor of
    its own, so that its `effort` and `speed` mean nothing; all else acts on it where it is.

    Attributes:
        damping: Viscous friction, [N m s/rad] or [N s/m].
        friction: Dry (Coulomb) friction, [N m] or [N].
        armature: Reflected inertia of rotors, [kg m^2] or [kg], added to that of `rotor`.
        stiffness: Of a spring, [N m/rad] or [N/m].
        rest: Where the spring is relaxed, [rad] or [m].
        lower, upper: Where the stops are, [rad] or [m].
        effort: Largest force of the motor, [N m] or [N].
        speed: Speed at which a motor of limited effort gives no more force, [rad/s] or [m/s].
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
        if np.any(np.asarray(self.speed) == 0.0):
            raise DefinitionError("a motor's speed must be positive: at zero speed it would never give any force")


def _check(name: str, value: Array) -> None:
    if not (np.isfinite(value) | (value == _UNLIMITED.get(name, 0.0))).all():
        raise DefinitionError(f"a joint's {name} must be finite, got {value}")
    if name not in ("rest", "lower", "upper") and (value < 0).any():
        raise DefinitionError(f"a joint's {name} must not be negative, got {value}")


class OneOrThree(Protocol):
    """What this module asks of a joint's stages."""

    @property
    def kind(self) -> str: ...
    @property
    def nv(self) -> int: ...


def by_stage(name: str, physics: JointPhysics, stages: Sequence[OneOrThree]) -> list[JointPhysics]:
    """Return the physics of each stage of a joint, one entry per degree of freedom.

    Args:
        name: The joint's. physics: As given. stages: The joint's.

    Raises:
        DefinitionError: for numbers that do not fit the joint.
    """
    nv = sum(stage.nv for stage in stages)
    if physics.rotor is not None and nv != 1:
        raise DefinitionError(
            f"joint {name!r} has {nv} degrees of freedom; a rotor needs one, give an armature instead"
        )
    given = {item.name: np.asarray(getattr(physics, item.name)) for item in fields(physics) if item.name != "rotor"}
    for field, value in given.items():
        if value.shape not in ((), (nv,)):
            raise DefinitionError(f"the {field} of joint {name!r} must be one number or {nv}, got shape {value.shape}")
    found, start = [], 0
    for stage in stages:
        own = {k: np.broadcast_to(value, nv)[start : start + stage.nv] for k, value in given.items()}
        if stage.kind == "ball":
            _check_ball(name, own)
        found.append(JointPhysics(**own, rotor=physics.rotor))
        start += stage.nv
    return found


def _check_ball(name: str, own: dict[str, Array]) -> None:
    for field in ("armature", "stiffness"):
        if np.ptp(own[field]) > 0.0:
            raise DefinitionError(f"ball joint {name!r} needs one {field} for all axes, got {own[field]}")
    if np.isfinite(own["lower"]).any() or np.isfinite(own["upper"]).any():
        raise DefinitionError(f"ball joint {name!r} cannot have stops: its q is a quaternion")
