"""Joint space of a robot in frictionless contact, split into dynamically decoupled subspaces of motion and force.

    contact = vertex_on_face(robot, q, v, "tool", tip, normal)
    space = ContactSpace(robot, q, (contact,))
    tau = space.hybrid_forces(v, motion_forces, contact_forces)

With J = N^T (J_link - J_other), the generalized forces of the contact are J^T lambda, and velocities obey J v = 0 in a
contact with a body at rest. The two subspaces are orthogonal with respect to the inertia matrix M:

    vdot = T alpha + M^-1 J^T beta,      tau - h = M T alpha + J^T (beta - lambda),      J T = 0,   T^T M T = 1

Contact forces lambda thus change beta alone, whatever the other body does, and T^T M vdot = T^T (tau - h) = alpha.

Source: as of `legged.algorithms.operational.contact`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from legged.algorithms.composite import inertia_matrix
from legged.algorithms.linear_algebra import factor_semidefinite, independent_rows, orthonormal_complement, solve_rows
from legged.algorithms.newton_euler import inverse_dynamics
from legged.algorithms.operational.contact import Normals, contact_normals, link_bias, link_jacobian
from legged.algorithms.operational.space import TaskSpace, weighted_pseudoinverse, whitened_jacobian
from legged.algorithms.sparse.sparsity import solve_lower
from legged.checked import checked
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.kinematics import link_poses, point_motion
from legged.elements import any_element
from legged.errors import ShapeError
from legged.robot.placement import Vector
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join, mirror


@checked
@dataclass(frozen=True, eq=False)
class LinkContact:
    """Frictionless contact of a link with another body.

    Attributes:
        link: Name of the link.
        normals: N, (6, c), [m] and 1: wrenches on the link per unit of the contact forces, world axes, about the
            world's origin.
        rates: Time derivative of N, (6, c); None for zero.
        other: Link of the same robot that is the other body; None for the environment.
    """

    link: str
    normals: Normals
    rates: Normals | None = None
    other: str | None = None

    def __post_init__(self) -> None:
        if self.rates is not None and np.shape(self.rates) != np.shape(self.normals):
            raise ShapeError(
                f"the rates of the normals must be {np.shape(self.normals)}, as the normals are, got shape "
                f"{np.shape(self.rates)}"
            )


@checked
def vertex_on_face(
    robot: Robot, q: Array, v: Array, link: str, point: Vector, normal: Vector, other: str | None = None
) -> LinkContact:
    """Return the contact of a point of a link with a plane face of another body.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        link: The link with the point. point: The point, (3,), [m], link axes.
        normal: Unit normal of the face, towards the point, (3,), axes of the other link, or world axes without one.
        other: The link with the face; None for a face that does not turn.
    """
    q, v = read(robot, q=q, v=v)
    (p,), (pd,) = point_motion(robot, q, v, [(link, np.asarray(point))])
    n, nd = np.asarray(normal), np.zeros(3)
    if other is not None:
        n = link_poses(robot, q)[0][robot.link(other).index] @ n
        nd = cross((link_jacobian(robot, q, other) @ v)[:3], n)
    rates = join(cross(pd, n) + cross(p, nd), nd)[:, None]
    return LinkContact(link, contact_normals(p[None], n[None]), rates, other)


@any_element
@checked
@dataclass(frozen=True, eq=False)
class ContactSpace(TaskSpace):
    """Subspaces of motion and force of a robot in frictionless contact with its environment or with itself.

    `J` is (c, nv), `inertia` Lambda = (J M^-1 J^T)^-1 that of the robot against the contact, `consistent_inverse`
    J_bar = M^-1 J^T Lambda, and `null_space_projector` 1 - J_bar J = T T^T M the projector of velocities and
    accelerations onto the subspace of motion. Forces of redundant normals are zero.

    Attributes:
        robot: The robot. q: Configuration, (nq,).
        contacts: The contacts; their normals follow each other in the rows of J.
    """

    contacts: tuple[LinkContact, ...]

    @cached_property
    def J(self) -> Array:
        """J = N^T (J_link - J_other), (c, nv); its transpose maps contact forces to generalized forces."""
        rows = [np.zeros((0, self.robot.nv))]
        for contact in self.contacts:
            rows.append(contact.normals.T @ self._relative(contact))
        return np.concatenate(rows)

    def bias_acceleration(self, v: Array) -> Array:
        """Return Jd v, (c,), [m/s^2], the accelerations along the normals at vdot = 0.

        Args:
            v: Velocity, (nv,).
        """
        parts = [np.zeros(0)]
        for contact in self.contacts:
            bias = link_bias(self.robot, self.q, v, contact.link)
            if contact.other is not None:
                bias = bias - link_bias(self.robot, self.q, v, contact.other)
            bias = contact.normals.T @ bias
            if contact.rates is not None:
                bias = bias + contact.rates.T @ (self._relative(contact) @ v)
            parts.append(bias)
        return np.concatenate(parts)

    @cached_property
    def motion_basis(self) -> Array:
        """T, (nv, nv - rank of J), with J T = 0 and T^T M T = 1: the subspace of motion.

        Dependent rows of J are detected for numbers and not for traced values.
        """
        J = independent_rows(self.J, np.zeros(len(self.J))).L
        K = orthonormal_complement(whitened_jacobian(J, self._L, self._tree).T)
        columns = np.array([solve_lower(self._L, self._tree, column) for column in K.T]).reshape(K.T.shape)
        return finite(self.robot, "the subspace of motion", self._tree.unpermute(columns.T))

    @cached_property
    def force_projector(self) -> Array:
        """P = J^T J_bar^T, (nv, nv): the projector of generalized forces onto those of the contact.

        1 - P projects onto the forces that cause no contact force, M T alpha.
        """
        return self.J.T @ self.consistent_inverse.T

    @cached_property
    def self_motion_projector(self) -> Array:
        """The projector, (nv, nv), of velocities onto those that do not move the links of the contacts.

        Together with the projectors onto the contact's motion, 1 - J_bar J less this one, and onto the force subspace,
        J_bar J, it resolves the joint space of a redundant robot into three subspaces that M makes orthogonal.
        """
        rows = np.concatenate([np.zeros((0, self.robot.nv)), *map(self._relative, self.contacts)])
        Y = whitened_jacobian(rows, self._L, self._tree)
        inertia = solve_rows(factor_semidefinite(mirror(Y @ Y.T)), np.eye(len(Y)))
        J_bar = self._tree.unpermute(weighted_pseudoinverse(self._L, Y, inertia, self._tree))
        return np.eye(self.robot.nv) - J_bar @ rows

    def motion_velocity(self, v: Array) -> Array:
        """Return T^T M v, (nv - rank of J,), the velocity in the subspace of motion, [kg^(1/2) m/s]: half its square is
        the kinetic energy of the motion.

        Args:
            v: Velocity, (nv,).
        """
        return self.motion_basis.T @ (inertia_matrix(self.robot, self.q) @ v)

    def contact_forces(
        self, v: Array, tau: Array, normal_acceleration: Array | None = None, wrenches: Wrenches = None
    ) -> Array:
        """Return lambda = Lambda (a_n - Jd v) - J_bar^T (tau - h), (c,), [N], on the links.

        Args:
            v: Velocity, (nv,), joint axes. tau: Generalized forces, (nv,), [N m] or [N], joint axes.
            normal_acceleration: a_n = J vdot + Jd v, (c,), [m/s^2], in the axes of the normals, the motion of the
                environment; None for zero.
            wrenches: Other wrenches on links, as in `legged.inverse_dynamics`.
        """
        h = inverse_dynamics(self.robot, self.q, v, np.zeros(self.robot.nv), wrenches)
        return self._normal_forces(v, normal_acceleration) - self.consistent_inverse.T @ (tau - h)

    def hybrid_forces(
        self,
        v: Array,
        tau: Array,
        contact_forces: Array,
        normal_acceleration: Array | None = None,
        wrenches: Wrenches = None,
    ) -> Array:
        """Return the generalized forces, (nv,), joint axes, for a motion and contact forces:

            h + (1 - P)(tau - h) + J^T (Lambda (a_n - Jd v) - lambda)

        The motion of any motion controller, whose forces are tau, remains in the subspace of motion: T^T M vdot =
        T^T (tau - h). If the environment moves with a_n, the contact forces are lambda. If it moves otherwise, contact
        forces and the motion along M^-1 J^T differ, and the motion in the subspace of motion remains the same.

        Args:
            v: Velocity, (nv,), joint axes. tau: Forces of a motion controller, (nv,), [N m] or [N], joint axes; for a
                desired acceleration those of inverse dynamics.
            contact_forces: Desired contact forces lambda, (c,), [N], in the axes of the normals.
            normal_acceleration: a_n, (c,), [m/s^2], in the axes of the normals, measured or predicted; None for an
                environment at rest.
            wrenches: Other wrenches on links, as in `legged.inverse_dynamics`.
        """
        h = inverse_dynamics(self.robot, self.q, v, np.zeros(self.robot.nv), wrenches)
        against = self.consistent_inverse.T @ (tau - h)
        return tau + self.J.T @ (self._normal_forces(v, normal_acceleration) - contact_forces - against)

    def _normal_forces(self, v: Array, normal_acceleration: Array | None) -> Array:
        """Return Lambda (a_n - Jd v), (c,), [N]."""
        a_n = np.zeros(len(self.J)) if normal_acceleration is None else np.asarray(normal_acceleration)
        return self.inertia @ (a_n - self.bias_acceleration(v))

    def _relative(self, contact: LinkContact) -> Array:
        """Return J_link - J_other, (6, nv), world axes, about the world's origin."""
        J = link_jacobian(self.robot, self.q, contact.link)
        return J if contact.other is None else J - link_jacobian(self.robot, self.q, contact.other)

    @cached_property
    def _factors(self) -> tuple:
        return factor_semidefinite(self.mobility)
