"""The computational links that the recursions run over."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from legged.robot.coupling import Coupling
from legged.robot.moments import Moments
from legged.robot.physics import JointPhysics
from legged.rotations import quaternion_matrix
from legged.spatial import Array, AxisRotation, Rotation, Transform, Translation


@dataclass(frozen=True, eq=False)
class Body:
    """One body: a run of links welded together (or the massless middle of a joint), and the joint before it.

    The body's frame has its origin on the joint's axis and its z along it (a ball joint keeps the link's axes), so
    that the motion-propagation vector p of equation (2) is a unit vector; `legged.robot.frames` chooses the rest.

    Attributes:
        name: For messages.
        index, parent: Places in `robot.bodies`; parent is -1 for the base.
        kind: "base", "revolute", "prismatic" or "ball".
        q, v: Slices of the joint's own entries; a follower has its master's.
        P: (6, nv), columns p: joint rates to relative twist, body axes; a follower's holds its ratio.
        moments: Moments of mass about the body's origin, in body axes.
        regrouped: Those that the recursions use, regrouped; see `legged.robot.moments`.
        before_joint: Fixed steps from the parent body's frame to the joint.
        joint_offset: (cosine, sine) of the joint angle's offset: the body's frame at q = 0.
        after_joint: Fixed shift along the joint's axis from the joint to the body's origin, [m].
        coupling: What the joint follows, or None.
        physics: The joint's, one entry per degree of freedom.
    """

    name: str
    index: int
    parent: int
    kind: str
    q: slice
    v: slice
    P: Array
    moments: Moments
    regrouped: Moments
    before_joint: tuple[Translation | AxisRotation | Rotation, ...] = ()
    joint_offset: tuple[float, float] = (1.0, 0.0)
    after_joint: float = 0.0
    coupling: Coupling | None = None
    physics: JointPhysics = field(default_factory=JointPhysics)

    @property
    def M(self) -> Array:
        """Mass matrix about the body's origin, (6, 6), body axes, eq. (19)."""
        return self.moments.M

    @property
    def nv(self) -> int:
        return self.v.stop - self.v.start

    @property
    def follows(self) -> bool:
        """Whether the joint's entries of q and v are another's."""
        return self.coupling is not None

    @property
    def ratio(self) -> float:
        """Rate of the joint per entry of v."""
        return 1.0 if self.coupling is None else self.coupling.ratio

    @cached_property
    def has_friction(self) -> bool:
        """Whether the joint has friction."""
        return bool(np.any(self.physics.damping) or np.any(self.physics.friction))

    @cached_property
    def has_springs(self) -> bool:
        """Whether the joint has springs."""
        return bool(np.any(self.physics.stiffness))

    @cached_property
    def stops(self) -> tuple[float, float] | None:
        """The ends of the joint's range, [rad] or [m], one of them infinite if there is only one stop; None without."""
        if self.nv != 1:
            return None
        lower, upper = (float(np.ravel(end)[0]) for end in (self.physics.lower, self.physics.upper))
        return (lower, upper) if np.isfinite(lower) or np.isfinite(upper) else None

    @cached_property
    def motor_limits(self) -> tuple[tuple[int, float, float], ...]:
        """(entry of v, effort, speed) for each degree of freedom whose motor has a limited effort."""
        if self.follows or not np.isfinite(self.physics.effort).any():
            return ()
        efforts, speeds = (np.broadcast_to(np.asarray(x), self.nv) for x in (self.physics.effort, self.physics.speed))
        entries = zip(range(self.v.start, self.v.stop), efforts.tolist(), speeds.tolist(), strict=True)
        return tuple(entry for entry in entries if np.isfinite(entry[1]))

    @cached_property
    def rotor_momentum(self) -> Array:
        """H, (6, nv), [kg m^2], body axes: what a rotor on the parent adds to momentum by its spin, per joint rate.

        With it the joint's rotors have the kinetic energy v^T H^T t + v^T I_r v / 2, where t is this body's twist, not
        its parent's, and I_r is `reflected_inertia`. Zero unless the rotor is gyroscopic.
        """
        H, rotor = np.zeros((6, self.nv)), self.physics.rotor
        if rotor is not None and rotor.gyroscopic:
            H[2, 0] = self.ratio * rotor.gear * rotor.inertia
        return H

    @cached_property
    def reflected_inertia(self) -> Array:
        """I_r, (nv, nv), [kg m^2] or [kg]: armature and rotor inertia in the joint's rates alone; see `rotor_momentum`.

        The joint meets it and P^T H + H^T P: in all gear^2 times the rotor's inertia, with the armature.
        """
        rotor = self.physics.rotor
        own = np.broadcast_to(np.asarray(self.physics.armature), self.nv)
        own = own + (0.0 if rotor is None else rotor.gear**2 * rotor.inertia)
        shared = self.P.T @ self.rotor_momentum
        return self.ratio**2 * np.diag(own) - shared - shared.T

    @cached_property
    def rotor_inertia(self) -> Array:
        """H^T P + I_r, (nv, nv): joint force per joint acceleration that its rotors take; see `rotor_momentum`."""
        return self.rotor_momentum.T @ self.P + self.reflected_inertia

    def joint_position(self, q: Array) -> Array:
        """Return the joint's own coordinates, from all of the robot's q."""
        return q[self.q] if self.coupling is None else self.coupling.ratio * q[self.q] + self.coupling.offset

    def to_joint(self, q: Array) -> Transform:
        """Return the transform from the parent body to this joint, moved by q (all of the robot's q)."""
        return Transform((*self.before_joint, *self._joint_steps(self.joint_position(q))))

    def from_joint(self) -> Transform:
        """Return the fixed transform from this joint to the body's frame."""
        return Transform((Translation(np.array([0.0, 0.0, self.after_joint])),) if self.after_joint else ())

    def transform(self, q: Array) -> Transform:
        """Return the transform X from the parent body to this body at q."""
        return Transform(self.to_joint(q).steps + self.from_joint().steps)

    def transform_at_zero(self) -> Transform:
        """Return the transform from the parent body to this body with the joint at zero."""
        rest = {"revolute": np.zeros(1), "prismatic": np.zeros(1), "ball": np.array([1.0, 0.0, 0.0, 0.0])}[self.kind]
        return Transform((*self.before_joint, *self._joint_steps(rest), *self.from_joint().steps))

    def _joint_steps(self, q: Array) -> tuple[Translation | AxisRotation | Rotation, ...]:
        if self.kind == "revolute":
            return (AxisRotation(2, *self._cosine_and_sine(q[0])),)
        if self.kind == "prismatic":
            turn = () if self.joint_offset == (1.0, 0.0) else (AxisRotation(2, *self.joint_offset),)
            return (*turn, Translation(np.array([0.0, 0.0, q[0]])))
        return (Rotation(quaternion_matrix(q)),)

    def _cosine_and_sine(self, angle):
        c, s = self.joint_offset
        if c == 0.0 or s == 0.0:  # a quarter turn costs nothing
            cosine, sine = np.cos(angle), np.sin(angle)
            return cosine * c - sine * s, sine * c + cosine * s
        shifted = angle + np.arctan2(s, c)
        return np.cos(shifted), np.sin(shifted)
