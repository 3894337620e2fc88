"""Feed-forward control: torques of a reference motion computed beside the robot, with or without feedback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.law import Gain, GaitLaw, per_joint
from legged.contact.rigid import Rigid
from legged.dynamics.inverse import floating_inverse_dynamics
from legged.errors import DefinitionError
from legged.ground.contact import contact_motion, contact_wrenches
from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray


@dataclass(eq=False)
class FeedForward(GaitLaw):
    """Torques of a reference motion, and linear feedback of the joints:

        tau_theta = tau_ID + K_p (q_d - q) + K_d (qd_d - qd)   (31)

    tau_ID is the inverse dynamics, eqs. (26) and (27), of a reference robot whose joints follow the gait exactly. Its
    base moves as that inverse dynamics says, on the same ground with contact forces of its own, and is integrated as
    this controller's memory, [q_0; v_0; memory of the ground]. It begins where the robot begins, and nothing that
    happens to the robot later reaches it.

    Attributes:
        gait: What to follow.
        kp: K_p, one number or one per joint coordinate, [N m/rad].
        kd: K_d, likewise, [N m s/rad].

    Source:
        Shah, Saha, Dutt 2012, section 4.3.1 and gains of 5.1.3; the separate reference base as in the authors'
        programs.
    """

    kp: Gain = 49.0
    kd: Gain = 14.0

    def _fit_gains(self, n: int) -> None:
        self._kp, self._kd = per_joint("kp", self.kp, n), per_joint("kd", self.kd, n)

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> Array:
        """Fit the law to the robot and return the memory: the reference base where the robot's own base is.

        Raises:
            DefinitionError: The ground does not give. Others as in `GaitLaw.start`.
        """
        super().start(robot, ground, q, v)
        if isinstance(ground, Rigid):
            raise DefinitionError("FeedForward predicts the forces of a ground that gives; a Rigid one has no such law")
        ground_memory = np.zeros(0) if ground is None else ground.memory(len(robot.contacts))
        return np.concatenate([q[: robot.base.nq], v[: robot.base.nv], ground_memory])

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        e, ed, _ = self._errors(t, phase, q, v)
        _, _, tau_id = self._reference_motion(t, phase, memory)
        return self._generalized(tau_id + self._kp * e + self._kd * ed)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        base_rate, ground_rate, _ = self._reference_motion(t, phase, memory)
        return np.concatenate([base_rate, ground_rate])

    def reference_state(self, t: Any, phase: Any, memory: Array) -> tuple[Array, Array]:
        """Return (q, v) of the reference robot, (nq,) and (nv,), from the memory."""
        base = self.robot.base
        q_0, v_0 = memory[: base.nq], memory[base.nq : base.nq + base.nv]
        if base.kind == "floating":  # integrated component by component, the quaternion's length drifts a little
            q_0 = np.concatenate([q_0[:4] / np.sqrt(q_0[:4] @ q_0[:4]), q_0[4:]])
        q_d, qd_d, _ = self.reference(t, phase)
        return np.concatenate([q_0, q_d]), np.concatenate([v_0, qd_d])

    def _reference_motion(self, t: Any, phase: Any, memory: Array) -> tuple[Array, Array, Array]:
        """Return the rates of the base's part and of the ground's part of the memory, and tau_ID, (nj,)."""
        robot, base = self.robot, self.robot.base
        q, v = self.reference_state(t, phase, memory)
        ground_memory = memory[base.nq + base.nv :]
        if not isinstance(self._ground, Ground) or not robot.contacts:
            ground_rate, wrenches = ground_memory, None
        else:
            forces, ground_rate = self._ground.forces(*contact_motion(robot, q, v), ground_memory)
            wrenches = contact_wrenches(robot, q, forces)
        _, _, qdd_d = self.reference(t, phase)
        vdot_0, tau_id = floating_inverse_dynamics(robot, q, v, qdd_d, wrenches)
        return np.concatenate([base.rate(q[: base.nq], v[: base.nv]), vdot_0]), ground_rate, tau_id


@dataclass(eq=False)
class OpenLoop(FeedForward):
    """The torques of the reference motion and nothing else: eq. (31) without gains.

    Exact torques in an exact model, and yet the robot leaves the gait, since nothing holds it there.

    Source:
        Shah, Saha, Dutt 2012, section 5.1.2 and Figure 12.
    """

    kp: Gain = 0.0
    kd: Gain = 0.0
