"""The equations of motion of the whole robot as matrices: incidence matrix, factors of the mass matrix, projection.

Composite vectors hold six numbers for each body, in the order of `robot.bodies`. In absolute coordinates the incidence
matrix has blocks 1 and -1; in link coordinates the transform from parent to child replaces the 1 of the parent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.algorithms.links import Links, base_bias, links_at
from legged.algorithms.newton_euler import velocities
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.modules import outward
from legged.dynamics.passive import spring_forces, velocity_forces
from legged.elements import any_element
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.configuration import scatter_add
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, mirror, skew, solve_symmetric


@dataclass(frozen=True, eq=False)
class GlobalForm:
    """The matrices of a robot with n bodies, the base included, at a configuration.

    Attributes:
        P: Incidence matrix, (6n, 6n): P a holds the acceleration across each joint, (29).
        H: Motion subspaces, (6n, nv); block-diagonal up to the order of v.
        I: Spatial inertias, block-diagonal, (6n, 6n).
        rotor_momentum: Momentum per joint rate of the rotors, (6n, nv); zero in the paper.
        reflected_inertia: Inertia of armature and rotors, (nv, nv); zero in the paper.

    Source: Featherstone, Orin 2000, section 3.5.
    """

    P: Array
    H: Array
    I: Array
    rotor_momentum: Array
    reflected_inertia: Array

    @property
    def S(self) -> Array:
        """S = P^-1 H, (6n, nv), equation (24): joint rates to the bodies' velocities; by substitution outward."""
        return _solve_outward(self.P, self.H)

    @property
    def mass(self) -> Array:
        """M = H^T P^-T I P^-1 H, (nv, nv), and the terms of the rotors."""
        S = self.S
        shared = S.T @ self.rotor_momentum
        return mirror(S.T @ self.I @ S + shared + shared.T + self.reflected_inertia)


@any_element
def global_form(robot: Robot, q: Array, *, coordinates: str = "absolute") -> GlobalForm:
    """Return the matrices of the whole robot.

    Args:
        robot, q: As in `legged.inertia_matrix`. coordinates: "link" or "absolute", see `links_at`.
    """
    (q,) = read(robot, q=q)
    return _matrices(links_at(robot, q, coordinates))


@any_element
def global_projection(robot: Robot, q: Array, v: Array, tau: Array, wrenches: Wrenches = None) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by projecting the equations of all bodies; O(n^3).

        f = I a + v x I v                                                (23)
        a = a_0 + S qdd                                                  (24)
        S^T I S qdd = S^T (f_a - I a_0 - v x I v)                        (26)

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.

    Source: Featherstone, Orin 2000, equations (23) to (26).
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    links = links_at(robot, q, "absolute")
    form = _matrices(links)
    with stage("2 right side"):
        a_0, bias = _bias(links, form, q, v, wrenches)
        passive = scatter_add(robot, [velocity_forces(body, v) + spring_forces(body, q) for body in robot.bodies])
        right_side = tau - passive - form.rotor_momentum.T @ a_0 - form.S.T @ (form.I @ a_0 + bias)
    with stage("3 solution"):
        return finite(robot, "the forward dynamics", solve_symmetric(form.mass, right_side))


forward_dynamics = global_projection
"""The name of the task, which is the same in the modules of all algorithms."""


def _matrices(links: Links) -> GlobalForm:
    robot = links.robot
    n, nv, dtype = len(robot.bodies), robot.nv, np.result_type(*links.I, *links.h)
    P, H, I, spin = (np.zeros((6 * n, m), dtype=dtype) for m in (6 * n, nv, 6 * n, nv))
    reflected = np.zeros((nv, nv), dtype=np.result_type(*(body.reflected_inertia for body in robot.bodies)))
    for body in outward(robot):
        k = slice(6 * body.index, 6 * body.index + 6)
        P[k, k] = np.eye(6)
        if body.parent >= 0:
            P[k, 6 * body.parent : 6 * body.parent + 6] = -_matrix(links.X[body.index])
        H[k, body.v], spin[k, body.v] = links.h[body.index], links.H[body.index]
        I[k, k] = links.I[body.index]
        reflected[body.v, body.v] += body.reflected_inertia
    return GlobalForm(P, H, I, spin, reflected)


def _matrix(X: Transform) -> Array:
    """Return a transform as a matrix, (6, 6)."""
    R, r = X.child_pose(np.eye(3), np.zeros(3))
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(r), R.T]])


def _solve_outward(P: Array, B: Array) -> Array:
    """Return P^-1 B for a lower triangular P with ones on the diagonal, block by block."""
    X = B.astype(np.result_type(P, B))
    for k in range(0, len(P), 6):
        for j in range(0, k, 6):
            if np.any(P[k : k + 6, j : j + 6] != 0):
                X[k : k + 6] = X[k : k + 6] - P[k : k + 6, j : j + 6] @ X[j : j + 6]
    return X


def _bias(links: Links, form: GlobalForm, q: Array, v: Array, wrenches: Wrenches) -> tuple[Array, Array]:
    """Return (a_0, v x I v less external forces), composite vectors."""
    robot, t, external = links.robot, velocities(links, v), links.wrenches(wrenches)
    Hd_qd, p = [], []
    for body in outward(robot):
        k = body.index
        moves = body.parent >= 0 and body.nv
        Hd_qd.append(cross_motion(t[k], links.h[k] @ v[body.v]) if moves else np.zeros(6))
        momentum = links.I[k] @ t[k] + (links.H[k] @ v[body.v] if body.nv else 0.0)
        p.append(cross_force(t[k], momentum) - external.get(k, np.zeros(6)))
    Hd_qd[0] = base_bias(links, q, v)
    a_0 = _solve_outward(form.P, np.concatenate(Hd_qd)[:, None])[:, 0]
    return a_0, np.concatenate(p)
