"""Arms that hold a body, rigidly or loosely: dynamics, motion and internal forces, and a control law for both.

A contact transmits forces along some directions and leaves the others free: rigid, line, soft finger, point, sliding.

Source: Rodriguez, Jain, Kreutz-Delgado 1991, sections 5.3 and 6, which names the contacts and the control problem and
refers to other papers for equations; the equations here are derived again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import solve_columns
from legged.algorithms.operators.dynamics import free_motion, tip_correction, tip_mobility
from legged.algorithms.operators.spatial_operators import Points, SpatialOperators
from legged.arguments import array, known_name, number
from legged.dynamics.arguments import finite, read
from legged.dynamics.inverse import inverse_dynamics
from legged.dynamics.kinematics import link_poses, point_jacobian, point_positions, point_twist_rates
from legged.elements import any_element
from legged.errors import ShapeError
from legged.moving_coordinates import cross_force
from legged.robot.inertia import Inertia
from legged.robot.placement import rotation3
from legged.robot.robot import Robot
from legged.spatial import Array, cross, factor_symmetric, join, mass_matrix, mirror, skew, solve_factored

CONTACTS: dict[str, tuple[int, ...]] = {
    "rigid": (0, 1, 2, 3, 4, 5),
    "line": (1, 2, 3, 4, 5),
    "soft finger": (2, 3, 4, 5),
    "point": (3, 4, 5),
    "sliding": (5,),
}
"""Components of [n; f] in contact axes that each contact transmits: z is the normal of the surface, x the line."""


@dataclass(frozen=True, eq=False)
class GraspedBody:
    """A rigid body that several tips hold.

    Attributes:
        inertia: Inertia in world axes at this instant, about `position`.
        position: Origin of its frame, (3,), [m], world axes.
        omega: Angular velocity, (3,), [rad/s], world axes.
        velocity: Velocity of its origin, (3,), [m/s], world axes; only sliding contacts need it.
    """

    inertia: Inertia
    position: Array
    omega: Array
    velocity: Array = field(default_factory=lambda: np.zeros(3))


@dataclass(frozen=True, eq=False)
class GraspContact:
    """The contact of a tip with the body.

    A line contact leaves the rotation about the line free, a soft finger transmits the moment about the normal besides
    the force, a point with friction the force alone, and a sliding contact the normal force alone. Contacts are
    two-sided here: the forces of the result show whether a contact presses and its friction suffices.

    Attributes:
        kind: "rigid", "line", "soft finger", "point" or "sliding".
        rotation: Contact axes to world axes, (3, 3): z is the normal of the surface, x the direction of the line.
    """

    kind: str = "rigid"
    rotation: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        known_name("contact", self.kind, CONTACTS)
        object.__setattr__(self, "rotation", rotation3(f"the rotation of a {self.kind} contact", self.rotation))

    @property
    def directions(self) -> Array:
        """Unit wrenches that the contact transmits, (r, 6), about the tip in world axes."""
        R, zero = np.asarray(self.rotation).T, np.zeros((3, 3))
        return np.block([[R, zero], [zero, R]])[list(CONTACTS[self.kind])]


class _Grasp(NamedTuple):
    """Kinematics of a grasp: H (alpha_tip - A alpha_o) = gamma in the r constrained directions, forces H^T lambda."""

    H: Array
    HA: Array
    gamma: Array
    M_o: Array
    b_o: Array


@any_element
def grasp(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    tips: Points,
    held: GraspedBody,
    contacts: Sequence[GraspContact] | None = None,
) -> tuple[Array, Array, Array]:
    """Return (vdot (nv,), tip forces (tips, 6), body acceleration (6,)) of arms that hold a body.

        (M_o + A* H* W^-1 H A) alpha_o = A* H* W^-1 (H alpha_f - gamma) - b_o,      W = H Omega H*
        lambda = W^-1 (H A alpha_o + gamma - H alpha_f),    f = H* lambda

    Along the directions H of the contacts the tips accelerate with the body; H is the identity in a rigid grasp. The
    matrix on the left is the effective inertia of body and arms. The cost is O(n) for the arms and O(r^3) for r
    constrained directions.

    Args:
        robot, q, v, tau: As in `legged.forward_dynamics`, of the arms as one tree.
        tips: (link, position (3,) [m] in link axes). held: The body, under the robot's gravity.
        contacts: The contact of each tip; by default all rigid.

    Returns:
        vdot; wrenches on the tips, [n; f] about each, world axes; [omega dot; acceleration] of the body's frame.

    Raises:
        ShapeError: If there is not one contact for each tip. SingularError: If the constrained directions of the tips
            are dependent, as at singular configurations of an arm.

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, sections 5.3 and 6; Rodriguez 1989.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    S, vdot_free, alpha, Omega = free_motion(robot, q, v, tau, tips)
    g = _constraints(robot, q, v, tips, held, contacts)
    W = factor_symmetric(mirror(g.H @ Omega @ g.H.T))
    W_inverse_A = solve_columns(W, g.HA)
    effective = factor_symmetric(mirror(g.M_o + g.HA.T @ W_inverse_A))
    alpha_o = solve_factored(effective, W_inverse_A.T @ (g.H @ alpha - g.gamma) - g.b_o)
    forces = g.H.T @ solve_factored(W, g.HA @ alpha_o + g.gamma - g.H @ alpha)
    vdot = finite(robot, "the arms that hold a body", vdot_free - tip_correction(S, tips, forces))
    return vdot, forces.reshape(-1, 6), alpha_o


@any_element
def internal_forces(
    tips: Array, held: GraspedBody, contacts: Sequence[GraspContact], forces: Array, length: float = 1.0
) -> tuple[Array, Array]:
    """Return (motion part, internal part) of contact forces on a body, both (tips, 6), [N m, N], world axes.

    The internal part has no resultant on the body: it squeezes it. The motion part has the whole resultant and least
    norm, moments divided by `length`; both are forces that the contacts can transmit.

        f = H* G+ G lambda + H* (1 - G+ G) lambda,    G = A* H*

    Args:
        tips: Positions of the tips, (tips, 3), [m], world axes. held: The body. contacts: The contact of each tip.
        forces: Wrenches of the tips on the body, (tips, 6), [n; f] about each tip, [N m] and [N], world axes;
            components that a contact cannot transmit are not read.
        length: Length that makes moments comparable with forces, [m].

    Raises:
        ShapeError: If the numbers of tips, contacts and forces differ.
    """
    tips = array("tips", tips, (None, 3))
    forces = array("forces", forces, (len(tips), 6), "one wrench per tip")
    H, A = _directions(contacts, len(tips)), _rigid_motions(tips, held)
    scale = _scales(contacts, length)
    scaled = (H @ A).T / scale  # moments over length
    x = scale * (H @ forces.reshape(-1))
    motion = np.linalg.pinv(scaled) @ (scaled @ x)
    return tuple((H.T @ (part / scale)).reshape(-1, 6) for part in (motion, x - motion))  # type: ignore[return-value]


@any_element
def grasp_control(
    robot: Robot,
    q: Array,
    v: Array,
    tips: Points,
    held: GraspedBody,
    contacts: Sequence[GraspContact],
    acceleration: Array,
    squeeze: Array,
    posture: Array | None = None,
    length: float = 1.0,
) -> Array:
    """Return the generalized forces, (nv,), that give a held body an acceleration and internal forces: linearization.

        lambda = - G+ (M_o alpha_o + b_o) - squeeze,    f = H* lambda
        vdot   = posture + M^-1 J* H* W^-1 (H A alpha_o + gamma - H alpha_p)
        tau    = M vdot + h - J* f

    alpha_p are the accelerations of the tips with the posture's. The law is exact: with it `grasp` returns the
    acceleration and these forces. M^-1, W and the last line are O(n) recursions.

    Args:
        robot, q, v: The arms and their state. tips, held, contacts: As in `grasp`.
        acceleration: Of the body, [omega dot; acceleration of its origin], (6,), [rad/s^2, m/s^2], world axes: that of
            the reference and its feedback.
        squeeze: Forces of the tips on the body, (tips, 6), [n; f] about each tip, [N m] and [N], world axes; their
            internal part is applied, see `internal_forces`.
        posture: Acceleration, (nv,), [rad/s^2] or [m/s^2], joint axes, of which the part that does not move the tips
            along the directions of the contacts remains; zero by default.
        length: As in `internal_forces`, [m].

    Raises:
        As `grasp`.

    Source: the problem is that of Rodriguez, Jain, Kreutz-Delgado 1991, section 6; Kreutz and Lokshin 1988.
    """
    posture = np.zeros(robot.nv) if posture is None else posture
    q, v, posture = read(robot, q=q, v=v, posture=posture)
    S = SpatialOperators(robot, q)
    g = _constraints(robot, q, v, tips, held, contacts)
    places = point_positions(robot, q, list(tips))
    needed = g.M_o @ acceleration + g.b_o
    scale = _scales(contacts, length)
    on_body = np.linalg.pinv(g.HA.T / scale) @ needed / scale
    _, squeezing = internal_forces(places, held, contacts, squeeze, length)
    forces = -(g.H.T @ on_body + squeezing.reshape(-1)).reshape(-1, 6)  # on the tips
    alpha = point_twist_rates(robot, q, v, posture, list(tips)).reshape(-1)
    W = factor_symmetric(mirror(g.H @ tip_mobility(S, tips) @ g.H.T))
    push = g.H.T @ solve_factored(W, g.HA @ acceleration + g.gamma - g.H @ alpha)
    vdot = finite(robot, "the control of the grasp", posture - tip_correction(S, tips, push))
    return inverse_dynamics(robot, q, v, vdot, _link_wrenches(robot, q, tips, places, forces))


def _constraints(
    robot: Robot, q: Array, v: Array, tips: Points, held: GraspedBody, contacts: Sequence[GraspContact] | None
) -> _Grasp:
    """Return the kinematics of a grasp; contact axes turn with the body, tips may turn and slide on it."""
    contacts = [GraspContact()] * len(tips) if contacts is None else contacts
    H = _directions(contacts, len(tips))
    places = point_positions(robot, q, list(tips))
    A = _rigid_motions(places, held)
    omega, centripetal = held.omega, []
    carried = (A @ join(omega, held.velocity)).reshape(-1, 6)
    for (link, point), place, own, contact in zip(tips, places, carried, contacts, strict=True):
        a = join(np.zeros(3), cross(omega, cross(omega, place - held.position)))
        constrained = CONTACTS[contact.kind]
        if len(constrained) < 6:
            slip = point_jacobian(robot, q, link, point) @ v - own
            slides = len(constrained) == 1  # only the motion along the normal is constrained
            a = a + join(cross(omega, slip[:3]), 2.0 * cross(omega, slip[3:]) if slides else np.zeros(3))
        centripetal.append(a)
    body = held.inertia
    M_o = mass_matrix(body.mass, body.mass * np.asarray(body.center), body.about_origin)
    spin = join(omega, np.zeros(3))
    b_o = cross_force(spin, M_o @ spin) - M_o @ join(np.zeros(3), robot.gravity)
    return _Grasp(H, H @ A, H @ np.concatenate(centripetal), M_o, b_o)


def _directions(contacts: Sequence[GraspContact], tips: int) -> Array:
    """Return H, (r, 6 tips): the constrained directions of all tips."""
    if len(contacts) != tips:
        raise ShapeError(f"contacts must be one per tip, {tips}, got {len(contacts)}")
    blocks = [contact.directions for contact in contacts]
    H, row = np.zeros((sum(map(len, blocks)), 6 * tips)), 0
    for k, block in enumerate(blocks):
        H[row : row + len(block), 6 * k : 6 * k + 6] = block
        row += len(block)
    return H


def _scales(contacts: Sequence[GraspContact], length: float) -> Array:
    """Return 1 / length for each constrained moment and 1 for each force, (r,), [1/m] or 1; check the length."""
    length = number("length", length, "m", above=0.0)
    return np.array([1.0 / length if i < 3 else 1.0 for contact in contacts for i in CONTACTS[contact.kind]])


def _rigid_motions(places: Array, held: GraspedBody) -> Array:
    """Return A, (6 tips, 6): the body's twist to that of its points at the tips."""
    return np.concatenate(
        [np.block([[np.eye(3), np.zeros((3, 3))], [-skew(r), np.eye(3)]]) for r in places - held.position]
    )


def _link_wrenches(robot: Robot, q: Array, tips: Points, places: Array, forces: Array) -> Array:
    """Return wrenches on the links, (n_links, 6), about their origins in link axes, of wrenches on the tips."""
    R, o = link_poses(robot, q)
    total = [np.zeros(6) for _ in robot.links]
    for (name, _), place, w in zip(tips, places, forces, strict=True):
        k = robot.link(name).index if isinstance(name, str) else name
        total[k] = total[k] + join(R[k].T @ (w[:3] + cross(place - o[k], w[3:])), R[k].T @ w[3:])
    return np.array(total)
