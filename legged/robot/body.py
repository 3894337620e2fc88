"""Bodies: the rigid units that the recursions run over, their joints and their moments of mass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from legged.robot.base import Base
from legged.robot.inertia import Inertia
from legged.robot.joint import Coupling
from legged.robot.physics import NUMBERS, JointPhysics, PerFreedom
from legged.robot.placement import IDENTITY, Placement
from legged.robot.stages.moments import Moments
from legged.robot.stages.motion import MOTIONS, StageMotion
from legged.spatial import (
    Array,
    ElementaryTransform,
    Transform,
    Translation,
    is_finite,
    is_zero,
)


@dataclass(frozen=True, eq=False)
class Body:
    """A body: links joined rigidly (or a massless body between the stages of a joint), and the joint to its parent.

    The body's frame has its origin on the joint's axis and its z along it (with a ball joint it has the link's axes),
    so that the motion-propagation vector p of equation (2) is a unit vector; see `legged.robot.placement`.

    Attributes:
        name: For messages.
        index, parent: Indices in `robot.bodies`; parent is -1 for the base.
        kind: "base", or the kind of the joint's stage: "revolute", "prismatic", "screw" or "ball".
        q, v: Slices of the joint's entries; a coupled joint has its master's.
        P: (6, nv), columns p: joint rates to relative twist, body axes; includes the ratio of a coupled joint.
        moments: Moments of mass about the body's origin, in body axes.
        regrouped: Regrouped moments of mass, which the recursions use; see `regroup`.
        before_joint: Constant transforms from the parent body's frame to the joint.
        joint_offset: (cosine, sine) of the joint angle at q = 0.
        after_joint: Translation along the joint's axis from the joint to the body's origin, [m].
        coupling: Coupling of the joint to its master, of the joint to itself where a stage repeats the coordinate of an
            earlier one, or None.
        physics: Friction, springs, rotors and limits of the joint, one entry per degree of freedom; of the base, its
            armature and damping.
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
    before_joint: tuple[ElementaryTransform, ...] = ()
    joint_offset: tuple[float, float] = (1.0, 0.0)
    after_joint: float = 0.0
    coupling: Coupling | None = None
    physics: JointPhysics = field(default_factory=JointPhysics)

    @property
    def is_base(self) -> bool:
        """Whether it is the base, whose joint to the world is `robot.base`."""
        return self.parent < 0

    @property
    def motion(self) -> StageMotion:
        """The motion of its joint; the base has none."""
        return MOTIONS[self.kind]

    @property
    def has_quaternion(self) -> bool:
        """Whether the coordinates of its joint are a unit quaternion; for the base see `robot.base`."""
        return not self.is_base and self.motion.has_quaternion

    def motion_matrix(self, base: Base, q: Array) -> Array:
        """Return P of the joint or P_0 of the base, (6, nv): v to the relative twist, body axes.

        Args:
            base: The robot's base. q: Configuration of the robot, (nq,).
        """
        return base.motion_matrix(q) if self.is_base else self.P

    @property
    def M(self) -> Array:
        """Mass matrix about the body's origin, (6, 6), [kg m^2, kg m, kg], body axes, eq. (19)."""
        return self.moments.M

    @property
    def nv(self) -> int:
        """Number of degrees of freedom of the joint."""
        return self.v.stop - self.v.start

    @property
    def is_traced(self) -> bool:
        """Whether some of its numbers are traced scalars."""
        steps = [step.r for step in self.before_joint if isinstance(step, Translation)]
        rotor = self.physics.rotor
        physics = [np.asarray(getattr(self.physics, name)) for name in NUMBERS]
        physics += [] if rotor is None else [np.asarray(rotor.inertia), np.asarray(rotor.gear)]
        moments = [x for m in (self.moments, self.regrouped) for x in (np.asarray(m.mass), m.h, m.J)]
        return any(x.dtype == object for x in (*steps, *physics, *moments))

    @property
    def follows(self) -> bool:
        """Whether the body shares the entries of q and v of another: of the master's, or of an earlier stage's."""
        return self.coupling is not None

    @property
    def ratio(self) -> float:
        """Rate of the joint per entry of v."""
        return 1.0 if self.coupling is None else self.coupling.ratio

    @cached_property
    def has_friction(self) -> bool:
        """Whether the joint has friction."""
        return not (_all_zero(self.physics.damping) and _all_zero(self.physics.friction))

    @cached_property
    def has_springs(self) -> bool:
        """Whether the joint has springs."""
        return not _all_zero(self.physics.stiffness)

    @cached_property
    def stops(self) -> tuple[float, float] | None:
        """Lower and upper joint limit, [rad] or [m], one infinite if there is only one stop; None without stops."""
        if self.nv != 1:
            return None
        lower, upper = (np.ravel(end).tolist()[0] for end in (self.physics.lower, self.physics.upper))
        return (lower, upper) if is_finite(lower) or is_finite(upper) else None

    @cached_property
    def motor_limits(self) -> tuple[tuple[int, float, float], ...]:
        """(entry of v, effort, speed) for each degree of freedom whose motor has a limited effort."""
        if self.follows:
            return ()
        efforts, speeds = (np.broadcast_to(np.asarray(x), self.nv) for x in (self.physics.effort, self.physics.speed))
        entries = zip(range(self.v.start, self.v.stop), efforts.tolist(), speeds.tolist(), strict=True)
        return tuple(entry for entry in entries if is_finite(entry[1]))

    @cached_property
    def rotor_momentum(self) -> Array:
        """H, (6, nv), [kg m^2], body axes: momentum of the spinning rotor on the parent per joint rate.

        The kinetic energy of the joint's rotors is v^T H^T t + v^T I_r v / 2, where t is this body's twist, not its
        parent's, and I_r is `reflected_inertia`. H is zero unless the rotor is gyroscopic.
        """
        rotor = self.physics.rotor
        if rotor is None or not rotor.gyroscopic:
            return np.zeros((6, self.nv))
        spin = np.asarray(self.ratio * rotor.gear * rotor.inertia)
        H = np.zeros((6, self.nv), spin.dtype)
        H[2, 0] = spin[()]
        return H

    @cached_property
    def has_gyroscopic_rotor(self) -> bool:
        """Whether `rotor_momentum` is not zero."""
        return not _all_zero(self.rotor_momentum)

    @cached_property
    def has_turning_armature(self) -> bool:
        """Whether the axes of its armature turn with the body, as those of a `FloatingBase` with armature do.

        The coordinates of the other bases, and of joints, are integrals of v, of which there are as many.
        """
        is_twist = self.is_base and self.q.stop - self.q.start > self.nv
        return is_twist and not _all_zero(self.physics.armature)

    @cached_property
    def reflected_inertia(self) -> Array:
        """I_r, (nv, nv), [kg m^2] or [kg]: inertia of armature and rotor in the joint rates alone.

        The joint inertia gains it and P^T H + H^T P: in total gear^2 times the rotor's inertia, and the armature.
        """
        rotor = self.physics.rotor
        own = np.broadcast_to(np.asarray(self.physics.armature), self.nv)
        own = own + (0.0 if rotor is None else rotor.gear**2 * rotor.inertia)
        shared = self.P.T @ self.rotor_momentum
        return self.ratio**2 * np.diag(own) - shared - shared.T

    @cached_property
    def rotor_inertia(self) -> Array:
        """H^T P + I_r, (nv, nv), [kg m^2] or [kg]: part of the joint force per joint acceleration, see `eliminate`."""
        return self.rotor_momentum.T @ self.P + self.reflected_inertia

    def joint_position(self, q: Array) -> Array:
        """Return the joint's coordinates, (nq of the joint,), [rad], [m] or a quaternion.

        Args:
            q: Configuration of the robot, (nq,).
        """
        return q[self.q] if self.coupling is None else self.coupling.ratio * q[self.q] + self.coupling.offset

    def to_joint(self, q: Array) -> Transform:
        """Return the transform from the parent body to the frame after this joint's motion.

        Args:
            q: Configuration of the robot, (nq,).
        """
        return Transform((*self.before_joint, *self._joint_transforms(self.joint_position(q))))

    def from_joint(self) -> Transform:
        """Return the constant transform from the frame after the joint's motion to the body's frame."""
        return Transform((Translation(np.array([0.0, 0.0, self.after_joint])),) if self.after_joint else ())

    def transform(self, q: Array) -> Transform:
        """Return the transform X from the parent body to this body.

        Args:
            q: Configuration of the robot, (nq,).
        """
        return Transform(self.to_joint(q).steps + self.from_joint().steps)

    def transform_at_zero(self) -> Transform:
        """Return the transform from the parent body to this body at zero joint position."""
        moved = self._joint_transforms(self.motion.neutral())
        return Transform((*self.before_joint, *moved, *self.from_joint().steps))

    def _joint_transforms(self, q: Array) -> tuple[ElementaryTransform, ...]:
        return self.motion.transforms(q, self.joint_offset, self.P)


def _all_zero(x: PerFreedom) -> bool:
    return all(is_zero(entry) for entry in np.ravel(x).tolist())


def with_joint_rows(body: Body, x: Array, rows: Array) -> Array:
    """Return x with its entries or rows and columns along the joint's motion replaced.

    The rows P^T x often have a shorter expression than the general product, which then replaces the entries of x. The
    motion of a screw is not along an axis of the body, so that x is returned unchanged.

    Args:
        body: The body behind the joint.
        x: A wrench (6,) or a symmetric matrix (6, 6), [any unit], body axes.
        rows: P^T x, (nv of the joint,) or (nv of the joint, 6), [any unit].
    """
    if not body.motion.has_unit_columns:
        return x
    x = x.astype(np.result_type(x, rows))
    for column, row in zip(body.P.T, rows, strict=True):
        i = int(np.abs(column).argmax())
        x[i] = row
        x[..., i] = row
    return x


def moments_of(inertia: Inertia, link_in_body: Placement) -> Moments:
    """Return the moments of mass of a link about its body's origin, in body axes."""
    center, tensor = np.asarray(inertia.center), np.asarray(inertia.tensor)
    if object in (center.dtype, tensor.dtype, np.asarray(inertia.mass).dtype):  # numbers that a definition cannot hold
        J = np.trace(tensor) / 2 * np.eye(3) - tensor + inertia.mass * np.outer(center, center)
        return Moments(inertia.mass, inertia.mass * center, J).moved(link_in_body)
    moved = inertia.moved(link_in_body.rotation, link_in_body.position)
    about_origin = moved.about_origin
    second = np.trace(about_origin) / 2 * np.eye(3) - about_origin
    return Moments(moved.mass, moved.mass * np.asarray(moved.center), second).snapped()


def regroup(bodies: Sequence[Body]) -> list[Moments]:
    """Return the regrouped moments of mass of each body: fewer nonzero numbers, the same dynamics.

    A joint does not move part of its body's mass distribution relative to the parent: mass along a revolute axis (m,
    h_z and J_zz), a point mass at the center of a ball joint, the second moment of mass beyond a prismatic joint, J_zz
    beyond a screw. This part is assigned to the parent, from the outermost bodies to the base, so that a revolute link
    has seven constants instead of ten. Joint forces, accelerations and the generalized inertia matrix are unchanged;
    wrenches inside joints are not.

    Source: base inertial parameters of Mayeda, Yoshida, Osuka 1990, and Khalil, Bennis, Gautier 1990.
    """
    regrouped = [body.moments for body in bodies]
    for index in range(len(bodies) - 1, 0, -1):
        body = bodies[index]
        shared = body.motion.moments_shared_with_parent(regrouped[index])
        regrouped[index] = regrouped[index] - shared
        pose = Placement(*body.transform_at_zero().child_pose(IDENTITY.rotation, IDENTITY.position))
        regrouped[body.parent] = regrouped[body.parent] + shared.moved(pose)
    return [moments.snapped() for moments in regrouped]
