"""Joint physics of a MuJoCo model as `JointPhysics`, and the elements of the model that are not converted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.robot.physics import JointPhysics
from legged.rotations import quaternion_log

FREE, BALL = 0, 1  # mjtJoint
_ON_JOINT = (0, 1)  # mjtTrn: joint, joint in parent
_EQUALITY_OF_JOINTS = 2  # mjtEq
_CONSTRAINT, _EQUALITY, _FRICTION, _LIMIT, _SPRING, _DAMPER, _GRAVITY = 1, 2, 4, 8, 32, 64, 128  # mjtDisableBit


@dataclass(frozen=True)
class Actuator:
    """An actuator on one joint.

    Attributes:
        joint: Index of the joint.
        gear: Joint force or torque per actuator force or torque.
        armature: Inertia on the actuator side of the gear, [kg m^2] or [kg].
        damping: Damping on the actuator side of the gear, [N m s/rad] or [N s/m].
        is_motor: Whether the force is proportional to the control input, without dynamics.
        strongest: Largest force on the actuator side, [N m] or [N]; infinite without a limit.
    """

    joint: int
    gear: float
    armature: float
    damping: float
    is_motor: bool
    strongest: float


def actuators(model: Any) -> tuple[Actuator, ...]:
    """Return the actuators that act on a joint directly."""
    count = len(model.actuator_trntype)
    return tuple(_actuator(model, i) for i in range(count) if model.actuator_trntype[i] in _ON_JOINT)


def _actuator(model: Any, i: int) -> Actuator:
    output = model.actuator_outadr[i] if hasattr(model, "actuator_outadr") else i  # older versions: one each
    command = model.actuator_ctrladr[i] if hasattr(model, "actuator_ctrladr") else i
    armature, damping = (
        float(getattr(model, name)[i]) if hasattr(model, name) else 0.0
        for name in ("actuator_armature", "actuator_damping")
    )
    kinds = (model.actuator_gaintype[i], model.actuator_biastype[i], model.actuator_dyntype[i])
    is_motor = not any(kinds)
    strongest = np.abs(model.actuator_forcerange[i]).max() if model.actuator_forcelimited[i] else np.inf
    if is_motor and model.actuator_ctrllimited[command]:
        strongest = min(strongest, abs(model.actuator_gainprm[i, 0]) * np.abs(model.actuator_ctrlrange[command]).max())
    gear = float(model.actuator_gear[output, 0])
    return Actuator(int(model.actuator_trnid[i, 0]), gear, armature, damping, is_motor, float(strongest))


class PhysicsReader:
    """Friction, springs, rotors and limits of the joints of a model, unless disabled by its flags."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.actuators = actuators(model)
        self.has_gravity = self._on(_GRAVITY)

    def _on(self, *bits: int) -> bool:
        return not any(self.model.opt.disableflags & bit for bit in bits)

    def couplings(self) -> list[int]:
        """Return the indices of the equalities that couple two joints linearly."""
        model = self.model
        if not self._on(_CONSTRAINT, _EQUALITY):
            return []
        return [
            i
            for i in range(model.neq)
            if model.eq_type[i] == _EQUALITY_OF_JOINTS
            and model.eq_active0[i]
            and model.eq_obj2id[i] >= 0
            and not model.eq_data[i, 2:5].any()
        ]

    def of(self, joint: int) -> JointPhysics:
        """Return the physics of a joint; of a free joint in the order of v of `legged.Free`, without a spring."""
        model, kind = self.model, int(self.model.jnt_type[joint])
        first = int(model.jnt_dofadr[joint])
        if kind == FREE:
            dofs = slice(first, first + 6)
            friction = model.dof_frictionloss[dofs] * self._on(_CONSTRAINT, _FRICTION)
            return JointPhysics(model.dof_damping[dofs] * self._on(_DAMPER), friction, model.dof_armature[dofs].copy())
        dofs = slice(first, first + 3) if kind == BALL else first
        own = [actuator for actuator in self.actuators if actuator.joint == joint]
        damping = model.dof_damping[dofs] + sum(a.gear**2 * a.damping for a in own)
        armature = model.dof_armature[dofs] + sum(a.gear**2 * a.armature for a in own)
        friction = model.dof_frictionloss[dofs] * self._on(_CONSTRAINT, _FRICTION)
        lower, upper = self._range(joint)
        stiffness, rest = self._spring(joint)
        effort = self._effort(joint, own)
        return JointPhysics(
            damping * self._on(_DAMPER), friction, armature, stiffness, rest, lower=lower, upper=upper, effort=effort
        )

    def _spring(self, joint: int) -> tuple[float, Any]:
        """Return (stiffness, rest position of the spring); the latter is a rotation vector for a ball joint."""
        stiffness, at = float(self.model.jnt_stiffness[joint]), int(self.model.jnt_qposadr[joint])
        if stiffness == 0.0 or not self._on(_SPRING):
            return 0.0, 0.0
        if self.model.jnt_type[joint] == BALL:
            return stiffness, quaternion_log(self.model.qpos_spring[at : at + 4])
        return stiffness, float(self.model.qpos_spring[at])

    def _range(self, joint: int) -> tuple[float, float]:
        limited = self.model.jnt_limited[joint] and self.model.jnt_type[joint] != BALL
        if not (limited and self._on(_CONSTRAINT, _LIMIT)):
            return -np.inf, np.inf
        lower, upper = self.model.jnt_range[joint]
        return float(lower), float(upper)

    def _effort(self, joint: int, own: Sequence[Actuator]) -> float:
        """Return the largest force on a joint: the sum over its actuators, bounded by the limit of the joint."""
        given = sum(abs(a.gear) * a.strongest for a in own if a.gear) if own else np.inf
        limited = self.model.jnt_actfrclimited[joint]
        return float(min(given, np.abs(self.model.jnt_actfrcrange[joint]).max() if limited else np.inf))


_EQUALITIES = {0: "connect", 1: "weld", 2: "joint", 3: "tendon", 7: "distance"}  # mjtEq
_NO_SHAPE = {1: "hfield", 8: "sdf"}  # mjtGeom
_COUNTED = {
    "ntendon": "tendons: their springs, dampers, limits and couplings",
    "nflex": "flexible bodies",
    "nskin": "skins",
    "nmocap": "motion-capture bodies, treated as fixed",
    "nplugin": "plugins",
    "nexclude": "pairs of bodies that do not collide",
    "npair": "contact pairs",
    "nsensor": "sensors",
    "nkey": "keyframes (legged.conversions.postures reads them)",
}


def unconverted_elements(model: Any, physics: PhysicsReader, root: int, joint_names: list[str]) -> Iterator[str]:
    """Yield the elements that are not converted, one sentence each; `root` is the root body, 0 for the world."""
    if root:
        yield from _scenery(model, root)
    yield from _equalities(model, physics, joint_names)
    yield from _actuators(model, physics)
    for joint, name in enumerate(joint_names):
        yield from _of_joint(model, joint, name, root)
    for field, words in _COUNTED.items():
        if getattr(model, field, 0):
            yield f"{words} ({getattr(model, field)})"
    compensated = np.count_nonzero(model.body_gravcomp)
    if compensated:
        yield f"gravity compensation of bodies ({compensated})"
    if model.opt.density or model.opt.viscosity:
        yield f"the surrounding fluid: density {model.opt.density:g} kg/m^3, viscosity {model.opt.viscosity:g} Pa s"
    for kind, word in _NO_SHAPE.items():
        count = int(np.count_nonzero((model.geom_type == kind) & ((model.geom_contype | model.geom_conaffinity) != 0)))
        if count:
            yield f"collision shapes of type {word} ({count})"


def _scenery(model: Any, root: int) -> Iterator[str]:
    if model.body_geomnum[0]:
        yield f"shapes of the world, such as floor and scenery ({model.body_geomnum[0]})"
    moving = {int(model.body_rootid[body]) for body in model.jnt_bodyid}
    others = [i for i in range(1, model.nbody) if model.body_rootid[i] not in moving]
    if others:
        yield f"fixed bodies of the world ({len(others)})"


def _equalities(model: Any, physics: PhysicsReader, joint_names: list[str]) -> Iterator[str]:
    converted = set(physics.couplings())
    for i in range(model.neq):
        if i in converted or not model.eq_active0[i]:
            continue
        kind, name = int(model.eq_type[i]), model.equality(i).name or f"number {i}"
        if _EQUALITIES.get(kind) != "joint":
            hint = " (legged.loops.load converts it to a loop)" if kind in (0, 1) else ""
            yield f"equality {name!r} of type {_EQUALITIES.get(kind, 'flex')}{hint}"
        elif model.eq_obj2id[i] < 0:
            yield f"equality {name!r}, which fixes the position of joint {joint_names[model.eq_obj1id[i]]!r}"
        else:
            yield f"equality {name!r} of two joints, not linear"


def _actuators(model: Any, physics: PhysicsReader) -> Iterator[str]:
    elsewhere = len(model.actuator_trntype) - len(physics.actuators)
    if elsewhere:
        yield f"actuators on tendons, sites, bodies and orientations ({elsewhere})"
    servos = sum(not actuator.is_motor for actuator in physics.actuators)
    if servos:
        yield f"gains and dynamics of actuators other than motors ({servos})"
    ranges = [model.actuator_forcerange[i] for i in np.flatnonzero(model.actuator_forcelimited)]
    ranges += [model.jnt_actfrcrange[i] for i in np.flatnonzero(model.jnt_actfrclimited)]
    asymmetric = sum(abs(low + high) > 1e-9 * abs(high) for low, high in ranges)
    if asymmetric:
        yield f"asymmetric force limits, of which the larger is used ({asymmetric})"


def _of_joint(model: Any, joint: int, name: str, root: int) -> Iterator[str]:
    kind, first = int(model.jnt_type[joint]), int(model.jnt_dofadr[joint])
    dofs = slice(first, first + (6 if kind == FREE else 3 if kind == BALL else 1))
    is_base = kind == FREE and model.jnt_bodyid[joint] == root
    if is_base and model.dof_frictionloss[dofs].any():
        yield (
            f"dry friction of free joint {name!r}, which a floating base does not have (load with root='world' for a "
            f"free joint on a fixed base, which has it)"
        )
    if kind == FREE and model.jnt_stiffness[joint]:
        yield f"the spring of free joint {name!r}"
    if kind == BALL and model.jnt_limited[joint]:
        yield f"the stop of ball joint {name!r}"
    for field, words in (("jnt_stiffnesspoly", "spring"), ("dof_dampingpoly", "damper")):
        which = joint if field.startswith("jnt") else dofs
        if hasattr(model, field) and getattr(model, field)[which].any():
            yield f"the nonlinear part of the {words} of joint {name!r}"
    if hasattr(model, "jnt_springyield") and np.any(model.jnt_plasticadr[joint] >= 0):
        yield f"the plastic deformation of the spring of joint {name!r}"
