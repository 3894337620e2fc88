"""First derivatives of inverse dynamics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import composite_inertias
from legged.algorithms.derivatives.axes import Axes, Moving, columns, moving
from legged.algorithms.derivatives.coriolis import Coriolis, coriolis
from legged.algorithms.derivatives.passive import friction_tangents, spring_tangent
from legged.algorithms.links import Links, cross_force, links_at
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.sweeps import inward, newton_euler
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


class InverseDerivatives(NamedTuple):
    """Derivatives of the generalized forces, (nv, nv) each, row i for tau[i].

    Attributes:
        q: By a displacement along the manifold, as `legged.integrate` takes it. v: By the velocity.
        vdot: By the acceleration: the inertia matrix.
    """

    q: Array
    v: Array
    vdot: Array


def of_inverse_dynamics(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> InverseDerivatives:
    """Return the derivatives of `legged.inverse_dynamics` by q, v and vdot.

    With composite inertias I, Coriolis matrices B and forces f of bodies, and the columns of `Axes`, for every axis j
    on the way from axis i to the base,

        dtau_j / dq_i = S_j^T (B psid_i + I psidd_i + S_i x f)      dtau_i / dq_j = S_i^T (B psid_j + I psidd_j)
        dtau_j / dv_i = S_j^T (B S_i + I (psid_i + Sd_i))           dtau_i / dv_j = S_i^T (B S_j + I (psid_j + Sd_j))

    I, B and f are those of axis i's body. The wrenches stay as they are in their links' axes.

    Args:
        robot, q, v, vdot, wrenches: As in `legged.inverse_dynamics`.

    Raises:
        As `legged.inverse_dynamics`.

    Source: Singh, Russell, Wensing 2022, in link coordinates; Carpentier, Mansard 2018, "Analytical derivatives of
    rigid body dynamics algorithms", has the same in another arrangement.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    found, shift = inverse_derivatives(robot, q, v, vdot, wrenches)
    if shift is None:
        return found
    for d, part in zip((found.q, found.v), shift, strict=True):
        d[:, :6] += found.vdot[:, :6] @ part
    return found


def inverse_derivatives(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches
) -> tuple[InverseDerivatives, tuple[Array, Array] | None]:
    """Return the derivatives, and for a floating base what its own columns lack: M[:, :6] times two (6, 6) matrices.

    A displaced floating base sees gravity turned and its own twist change as if it accelerated: (psidd, Sd). Forward
    dynamics needs no solution for that. Other bases lack nothing.
    """
    links = links_at(robot, q)
    with stage("1 motion of the axes"):
        moves = moving(links, q, v, vdot)
    shift = None
    if robot.base.kind == "floating":
        (own,) = moves.axes[0]
        shift, none = (own.psidd, own.Sd), np.zeros((6, 6))
        moves.axes[0] = [own._replace(Sd=none, psidd=none)]
    with stage("2 composite bodies"):
        inertia, B = composite_inertias(links), coriolis(links, moves.t, v)
        f = _forces(links, moves, v, vdot, wrenches)
    with stage("3 entries"):
        found = _Entries(links, moves, q, v)
        for body in inward(robot):
            for place in reversed(range(len(moves.axes[body.index]))):
                found.column(body.index, place, inertia[body.index], B[body.index], f[body.index])
    return InverseDerivatives(found.q, found.v, found.vdot), shift


def _forces(links: Links, moves: Moving, v: Array, vdot: Array, wrenches: Wrenches) -> list[Array]:
    """Return the force of each body and all that it carries, (6,)."""
    outside, f = links.wrenches(wrenches), []
    for body, t, a in zip(links.robot.bodies, moves.t, moves.a, strict=True):
        own = newton_euler(body, t, join(a[:3], a[3:] + cross(t[:3], t[3:])))
        if body.rotor_momentum.any():
            own = own + body.rotor_momentum @ vdot[body.v] + cross_force(t, body.rotor_momentum @ v[body.v])
        f.append(own - outside[body.index] if body.index in outside else own)
    for body in inward(links.robot):
        if body.parent >= 0:
            f[body.parent] = f[body.parent] + links.X[body.index].T @ f[body.index]
    return f


class _Forces(NamedTuple):
    """What an axis i brings to axes inward of it, (6, m) each: I S, B S + I (psid + Sd), the brackets of dtau_j / dq_i,
    and B^T S."""

    by_vdot: Array
    by_v: Array
    by_q: Array
    turned: Array

    def seen(self, links: Links, k: int) -> _Forces:
        """Return them in the coordinates of the parent of body k."""
        return _Forces(*(np.stack([links.X[k].T @ column for column in F.T], axis=1) for F in self))


class _Entries:
    """The three matrices, column by column."""

    def __init__(self, links: Links, moves: Moving, q: Array, v: Array):
        self.links, self.moves = links, moves
        kind = np.result_type(q, v, *moves.a)
        self.q, self.v, self.vdot = (np.zeros((len(v), len(v)), dtype=kind) for _ in range(3))
        for body in links.robot.bodies[1:]:
            self.q[body.v, body.v] += spring_tangent(body, q)
            self.v[body.v, body.v] += np.diag(friction_tangents(body, v))
            self.vdot[body.v, body.v] += body.rotor_inertia

    def column(self, k: int, place: int, inertia: Array, B: Coriolis, f: Array) -> None:
        """Add what axes of body k share with themselves and with those inward of them."""
        axes = self.moves.axes[k][place]
        forces = self._forces(k, axes, inertia, B, f)
        self.vdot[axes.where, axes.where] += axes.S.T @ forces.by_vdot
        self._lower(axes.where, forces, axes)
        for other in self.moves.axes[k][:place]:
            self._pair(axes.where, forces, other)
        for parent in self.links.robot.ancestors(k)[1:]:
            with item((k, parent)):
                forces, k = forces.seen(self.links, k), parent
                for other in self.moves.axes[parent]:
                    self._pair(axes.where, forces, other)

    def _forces(self, k: int, axes: Axes, inertia: Array, B: Coriolis, f: Array) -> _Forces:
        S, H = axes.S, self.links.H[k]
        by_vdot = inertia @ S
        by_v = _each(B.of, S) + inertia @ (axes.psid + axes.Sd)
        by_q = _each(B.of, axes.psid) + inertia @ axes.psidd + _each(lambda s: cross_force(s, f), S)
        turned = _each(B.transposed, S)
        if H.any():
            spun = columns(cross_force, self.moves.t[k], H)
            by_vdot, by_v, turned = by_vdot + H, by_v + spun, turned + spun
        return _Forces(by_vdot, by_v, by_q, turned)

    def _lower(self, i: slice, forces: _Forces, j: Axes) -> None:
        """Add the forces of axes i under motions of axes j, inward of them or the same."""
        self.q[i, j.where] += forces.by_vdot.T @ j.psidd + forces.turned.T @ j.psid
        self.v[i, j.where] += forces.by_vdot.T @ (j.psid + j.Sd) + forces.turned.T @ j.S

    def _pair(self, i: slice, forces: _Forces, j: Axes) -> None:
        self._lower(i, forces, j)
        block = j.S.T @ forces.by_vdot
        self.q[j.where, i] += j.S.T @ forces.by_q
        self.v[j.where, i] += j.S.T @ forces.by_v
        self.vdot[j.where, i] += block
        self.vdot[i, j.where] += block.T


def _each(operation, S: Array) -> Array:
    return np.stack([operation(column) for column in S.T], axis=1)
