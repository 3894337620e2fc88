"""What MuJoCo knows of a joint besides its axis, as `JointPhysics`."""

from __future__ import annotations

from collections.abc import Sequence
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
        joint: Its number.
        gear: Force on the joint for one of the actuator's.
        armature, damping: Before the gear.
        is_motor: Whether its force is its command times a number, at once.
        strongest: Largest force before the gear.
    """

    joint: int
    gear: float
    armature: float
    damping: float
    is_motor: bool
    strongest: float


def actuators(model: Any) -> tuple[Actuator, ...]:
    """Return the actuators that act on a joint itself."""
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


class Physics:
    """Friction, springs, rotors and limits of a model's joints, as far as the model's flags leave them on."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.actuators = actuators(model)
        self.has_gravity = self._on(_GRAVITY)

    def _on(self, *bits: int) -> bool:
        return not any(self.model.opt.disableflags & bit for bit in bits)

    def couplings(self) -> list[int]:
        """Return the equalities by which one joint follows another linearly."""
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
        """Return those of a joint; nothing for a free one."""
        model, kind = self.model, int(self.model.jnt_type[joint])
        if kind == FREE:
            return JointPhysics()
        first = int(model.jnt_dofadr[joint])
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
        """Return (stiffness, where the spring is relaxed: a rotation vector for a ball joint)."""
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
        """Return the largest force on a joint: what its actuators give together, and what the joint lets through."""
        given = sum(abs(a.gear) * a.strongest for a in own if a.gear) if own else np.inf
        limited = self.model.jnt_actfrclimited[joint]
        return float(min(given, np.abs(self.model.jnt_actfrcrange[joint]).max() if limited else np.inf))
