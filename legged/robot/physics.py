"""Joint physics: friction, springs, rotors, stops and motor limits.

In functions of the dynamics dry friction is regularized as F tanh(v / v_s) with v_s = `TRANSITION_SPEED`: a joint that
friction holds under load creeps at a speed of the order of v_s or less. Implicit time steps of simulations have
Coulomb's law itself, see `legged.simulation.loop.joint_laws`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError
from legged.spatial import Array, is_finite

if TYPE_CHECKING:
    from legged.robot.stages.stage import Stage

PerFreedom = float | Array | tuple[float, ...] | list[float]
TRANSITION_SPEED = 0.01
"""v_s, the speed over which regularized dry friction builds up, [rad/s] or [m/s]."""
NUMBERS = (
    *("damping", "friction", "armature", "stiffness", "rest", "lower", "upper", "effort", "speed"),
    *("stop_stiffness", "restitution"),
)
"""Names of the attributes of `JointPhysics` that are numbers: all but the rotor."""
UNLIMITED = {"lower": -np.inf, "upper": np.inf, "effort": np.inf, "speed": np.inf}
"""Values of the limits that are no limit."""


@checked
@dataclass(frozen=True, eq=False)
class Rotor:
    """Rotor of a joint's motor, mounted on the parent link with its axis along the joint's.

    Attributes:
        inertia: Moment of inertia about its axis, [kg m^2].
        gear: Gear ratio, rotor speed over joint speed; negative for opposite directions.
        gyroscopic: Whether the gyroscopic coupling of its spin with the parent link's rotation is modeled; otherwise
            only the reflected inertia gear^2 * inertia is, as in Pinocchio and MuJoCo.
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
        object.__setattr__(self, "inertia", float(self.inertia))
        object.__setattr__(self, "gear", float(self.gear))


@checked
@dataclass(frozen=True, eq=False)
class JointPhysics:
    """Forces and limits of a joint; each is one number, or one per degree of freedom of the joint.

    The first five and the rotor act in every function of the dynamics. Stops and motor limits act only in simulations:
    the dynamics are defined for any state and any force.

    A quaternion ball joint has one armature and one stiffness for all axes and no stops; its `rest` is a rotation
    vector. A rotor requires a joint of one degree of freedom. A coupled joint has no motor of its own: its `effort` and
    `speed` are ignored; the other parameters act at the joint itself.

    Attributes:
        damping: Viscous friction, [N m s/rad] or [N s/m].
        friction: Dry (Coulomb) friction, [N m] or [N].
        armature: Reflected inertia of rotors, [kg m^2] or [kg], added to that of `rotor`.
        stiffness: Spring stiffness, [N m/rad] or [N/m].
        rest: Joint position at which the spring is relaxed, [rad] or [m].
        lower, upper: Joint positions of the stops, [rad] or [m].
        effort: Maximum force of the motor, [N m] or [N].
        speed: No-load speed of a motor of limited effort, [rad/s] or [m/s].
        rotor: The motor's rotor, if it is to be modeled in detail.
        stop_stiffness: Stiffness of the stops on compliant ground and without ground, [N m/rad] or [N/m]; 0 for one
            that holds the whole effort, see `legged.simulation.forces`. On rigid ground the stops are rigid.
        restitution: Newton's coefficient of restitution of the stops on rigid ground, from 0 to 1.
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
    stop_stiffness: PerFreedom = 0.0
    restitution: PerFreedom = 0.0

    def __post_init__(self) -> None:
        for name in NUMBERS:
            value = np.asarray(getattr(self, name), float)
            object.__setattr__(self, name, value)
            _check(name, value)
        shapes = {np.shape(getattr(self, name)) for name in NUMBERS} - {()}
        if len(shapes) > 1 or any(len(shape) > 1 for shape in shapes):
            given = ", ".join(
                f"{name} {np.shape(getattr(self, name))}" for name in NUMBERS if np.ndim(getattr(self, name))
            )
            raise DefinitionError(f"give one number, or one per degree of freedom of the joint, got shapes {given}")
        if np.any(np.asarray(self.lower) > np.asarray(self.upper)):
            raise DefinitionError(f"the lower limit {self.lower} lies above the upper limit {self.upper}; swap them")
        if np.any(np.asarray(self.speed) == 0.0):
            raise DefinitionError("a motor's speed must be positive: with a no-load speed of zero it gives no force")


def _check(name: str, value: Array) -> None:
    if not (np.isfinite(value) | (value == UNLIMITED.get(name, 0.0))).all():
        raise DefinitionError(f"a joint's {name} must be finite, got {value}")
    if name not in ("rest", "lower", "upper") and (value < 0).any():
        raise DefinitionError(f"a joint's {name} must not be negative, got {value}")
    if name == "restitution" and (value > 1.0).any():
        raise DefinitionError(f"a joint's restitution must lie between 0 and 1, got {value}")


def motor_force(effort: Any, speed: Any, rate: Any) -> Any:
    """Return the largest force or torque of a motor in a direction, [N m] or [N].

        effort * (1 - rate / speed), from 0 to effort

    It gives its whole effort at rest and against the motion, and nothing at its no-load speed and beyond.

    Args:
        effort: Largest force at rest, [N m] or [N]; infinite for no limit.
        speed: No-load speed, [rad/s] or [m/s]; infinite for no limit.
        rate: Velocity in this direction, [rad/s] or [m/s].
    """
    if not (is_finite(effort) and is_finite(speed)):
        return effort
    return effort * np.minimum(np.maximum(1.0 - rate / speed, 0.0), 1.0)


def by_stage(name: str, physics: JointPhysics, stages: Sequence[Stage]) -> list[JointPhysics]:
    """Return the physics of each stage of a joint; a stage that repeats another has the default values.

    Args:
        name: Name of the joint, for messages. physics: Physics of the whole joint. stages: The joint's stages.

    Raises:
        DefinitionError: For numbers that do not fit the joint.
    """
    nv = sum(stage.nv for stage in stages)
    if physics.rotor is not None and nv != 1:
        raise DefinitionError(
            f"joint {name!r} has {nv} degrees of freedom; a rotor needs one, give an armature instead"
        )
    given = {field: np.asarray(getattr(physics, field)) for field in NUMBERS}
    for field, value in given.items():
        if value.shape not in ((), (nv,)):
            raise DefinitionError(f"the {field} of joint {name!r} must be one number or {nv}, got shape {value.shape}")
    parts, start = [], 0
    for stage in stages:
        if stage.repeats is not None:  # the physics acts at the stage that has the coordinate
            parts.append(JointPhysics())
            continue
        own = {k: np.broadcast_to(value, nv)[start : start + stage.nv] for k, value in given.items()}
        if stage.motion.has_quaternion:
            _check_ball(name, own)
        parts.append(JointPhysics(**own, rotor=physics.rotor))
        start += stage.nv
    return parts


def _check_ball(name: str, own: dict[str, Array]) -> None:
    for field in ("armature", "stiffness"):
        if np.ptp(own[field]) > 0.0:
            raise DefinitionError(f"ball joint {name!r} needs one {field} for all axes, got {own[field]}")
    if np.isfinite(own["lower"]).any() or np.isfinite(own["upper"]).any():
        raise DefinitionError(f"ball joint {name!r} cannot have stops: its q is a quaternion")


Definition = TypeVar("Definition")


def unchecked(definition: Definition, **fields: Any) -> Definition:
    """Return a copy of a frozen object with other fields, without its checks, which are for floats.

    Args:
        definition: The object. fields: Its fields, which may be traced or numbers of another type.
    """
    changed = copy.copy(definition)
    for name, value in fields.items():
        object.__setattr__(changed, name, value)
    return changed
