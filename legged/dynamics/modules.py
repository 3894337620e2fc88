"""Kinematic modules: twists, wrenches, and the operators A^(i,beta), N^i and M^i (sections 2 and 3 of the paper).

A module is a serial chain of links. The functions of the first part are those of a single link (intra-modular level,
section 2.1); the recursions run from link to link. The class `SerialChain` has the operators of a module
(inter-modular level, section 2.2): recursions along the chain, of which `dense` gives the matrix.

A module twist t^i or a module wrench w^i is a list with the twist or wrench of each link, (6,), about the link's
origin in its axes; a module-joint rate qd^i is a list with the rates of each joint. Links are the robot's bodies.

Source: Shah, Saha, Dutt 2012, sections 2 and 3, which write all vectors in world axes. Here A_(k,k-1) also rotates from
the axes of link k-1 to those of link k, so that p_k and M_k are constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.compiler.ir import item, module
from legged.dynamics.arguments import Wrenches, body_wrenches
from legged.dynamics.passive import rotor_forces, spring_forces, velocity_forces
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.robot.stages.moments import Moments
from legged.spatial import Array, Transform, angular_acceleration_tensor, cross, join

STEP_1 = "1 twists, rates, wrenches"
STEP_2 = "2 inward"
STEP_3 = "3 outward"

Vectors = list[Array]
"""One array per link of a module: twists or wrenches (6,), joint rates (nv of the joint,), mass matrices (6, 6)."""


def outward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies from the base outward, module by module, each module from its first link to its last."""
    return _labelled(robot, robot.bodies)


def inward(robot: Robot) -> Iterator[Body]:
    """Yield the bodies in the order opposite to `outward`, the base last."""
    return _labelled(robot, robot.bodies[::-1])


def _labelled(robot: Robot, bodies: Sequence[Body]) -> Iterator[Body]:
    of = {k: m.index for m in robot.modules for k in m.bodies}
    for body in bodies:
        with module(of[body.index]), item(body.index):
            yield body


# ---- section 2.1, intra-modular level: one link -------------------------------------------------------------------


def transforms(robot: Robot, q: Array) -> list[Transform]:
    """Return A_(k,k-1) of each body k from its parent, equation (2) with the rotation of axes; the base has 1.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    return [Transform(()) if body.is_base else body.transform(q) for body in outward(robot)]


def base_rate(robot: Robot, q: Array, v: Array, vdot: Array | None = None) -> tuple[Array, Array]:
    """Return the base's twist t_0 and its rate td_0, both (6,), base axes, with gravity as an upward acceleration.

        t_0 = P_0 qd_0        (4), (6), (7)

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        vdot: Acceleration, (nv,); None for zero, which gives the paper's t_0'.

    Source: Shah, Saha, Dutt 2012, eq. (7); gravity as in the authors' code.
    """
    base, n0 = robot.base, robot.base.nv
    R, _ = base.pose(q)
    P_0 = base.motion_matrix(q)
    t = P_0 @ v[:n0] if n0 else np.zeros(6)
    td = base.motion_bias(q, v) - join(np.zeros(3), R.T @ robot.gravity)
    if vdot is not None and n0:
        td = td + P_0 @ vdot[:n0]
    return t, td


def joint_rate(body: Body, q: Array, v: Array, vdot: Array | None, t: Array, td: Array) -> tuple[Array, Array]:
    """Return a body's twist t_k and its rate td_k, both (6,), body axes, from its parent's: equation (1) and its rate.

        t_k  = A t_p + p qd
        td_k = A td_p + p qdd + Ad t_p + pd qd,    Ad t_p + pd qd = [omega x p_1 qd; omega x (omega x r + 2 p_2 qd)]

    for p = [p_1; p_2] at the joint, r from the parent's origin to it, omega of the parent; 2 p_2 is the Coriolis term.

    Args:
        body: The body. q: Configuration of the robot, (nq,). v: Its velocity, (nv,).
        vdot: Its acceleration, (nv,); None for zero.
        t: The parent's twist, (6,), [rad/s, m/s], parent axes. td: Its rate, (6,), [rad/s^2, m/s^2], parent axes.
    """
    t, td = body.to_joint(q).twist_and_rate(t, td)
    p_qd = body.P @ v[body.v]
    td = td + join(cross(t[:3], p_qd[:3]), 2.0 * cross(t[:3], p_qd[3:]))
    if vdot is not None:
        td = td + body.P @ vdot[body.v]
    return body.from_joint().twist_and_rate(t + p_qd, td)


def newton_euler(moments: Moments, t: Array, td: Array) -> Array:
    """Return the wrench w = M td + Omega M E t, (6,), [N m, N], about the body's origin, body axes, equation (17).

    It is written with Phi = omegad~ + omega~ omega~, which the transforms use as well: a point r of the body has the
    acceleration ao + Phi r, and with the moments of mass m, h = m d, J = sum of m r r^T,

        f = m ao + Phi h,      n = h x ao + axial(Phi J),

    where axial(K) is the vector of K - K^T.

    Args:
        moments: Moments of mass about the body's origin, body axes.
        t: The body's twist, (6,), [rad/s, m/s], body axes. td: Its rate, (6,), [rad/s^2, m/s^2], body axes.

    Source: Shah, Saha, Dutt 2012, eqs. (17) to (19); the form is that of Balafoutis, Patel, Misra 1988.
    """
    Phi, ao = angular_acceleration_tensor(t[:3], td[:3]), td[3:]
    mass, h, J = moments.mass, moments.h, moments.J
    n = []
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        moment = J[j, j] * Phi[k, j] - J[k, k] * Phi[j, k] + J[j, k] * (Phi[k, k] - Phi[j, j])
        n.append(moment + (J[i, j] * Phi[k, i] - J[i, k] * Phi[j, i]))
    return join(np.array(n) + cross(h, ao), mass * ao + Phi @ h)


# ---- section 2.2, inter-modular level: one module -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SerialChain:
    """The links of a module M_i at a configuration, with the operators of the module.

    Attributes:
        index: i, the number of the module. parent: beta, that of its parent; -1 for the base module.
        parent_links: eta^beta, the number of links of the parent module; 0 for the base module.
        bodies: The links #1 to #eta of the module.
        A_k: A_(k,k-1) of each link, a `Transform` or (6, 6); that of #1 from the last link of the parent module.
        p_k: p_k of each joint, (6, nv of the joint); P_0 for the base.
        H_k: Momentum of each joint's rotor per joint rate, (6, nv of the joint), [kg m^2], see `Body.rotor_momentum`.
    """

    index: int
    parent: int
    parent_links: int
    bodies: tuple[Body, ...]
    A_k: tuple[Any, ...]
    p_k: tuple[Array, ...]
    H_k: tuple[Array, ...]

    def outward(self) -> Iterator[int]:
        """Yield the places of the links in the chain, from the first to the last."""
        for k in range(len(self.bodies)):
            with item(self.bodies[k].index):
                yield k

    def inward(self) -> Iterator[int]:
        """Yield the places of the links in the chain, from the last to the first."""
        for k in reversed(range(len(self.bodies))):
            with item(self.bodies[k].index):
                yield k

    @property
    def A(self) -> Operator:
        """A^(i,beta) of equation (9), (6 eta^i, 6 eta^beta): the module-twist propagation.

        It gives the twists of M_i if it were fixed to M_beta, [0 ... 0 A_(k,eta)] for each link k: only the columns of
        the last link of M_beta are nonzero. Its transpose gives the wrench on that link, (6,), of a module wrench w^i.
        """
        at_rest = [np.zeros(body.nv) for body in self.bodies]
        return Operator(
            lambda t_beta: self.twists(t_beta, at_rest),
            lambda w: self.A_k[0].T @ self.accumulated_wrenches(w)[0],
            (6,) * self.parent_links,
        )

    @property
    def N(self) -> Operator:
        """N^i of equation (5), (6 eta^i, DoF of M_i): the module-joint-rate propagation, the NOC of a serial chain.

        It gives the module twist relative to the parent module, t^i = N^i qd^i, equation (4), with (6) and (7) for the
        base. Its transpose gives the generalized forces of the joints, one (nv,) per link, of a module wrench w^i.
        """

        def forces(w: Vectors) -> Vectors:
            transmitted = self.accumulated_wrenches(w)
            return [self.p_k[k].T @ transmitted[k] for k in self.outward()]

        return Operator(lambda qd: self.twists([], qd), forces, tuple(p.shape[1] for p in self.p_k))

    def joint_entries(self, x: Array) -> Vectors:
        """Return qd^i, equation (3): the entries of each joint of the module.

        Args:
            x: One entry per joint rate of the robot, (nv,), [any unit].
        """
        return [x[body.v] for body in self.bodies]

    def twists(self, t_beta: Vectors, qd: Vectors) -> Vectors:
        """Return the module twist t^i = A^(i,beta) t^beta + N^i qd^i, equation (8), one (6,) per link.

        Link by link it is equation (1), t_k = A_(k,k-1) t_(k-1) + p_k qd_k.

        Args:
            t_beta: Twist of the parent module, one (6,) per link, [rad/s, m/s]; empty for none.
            qd: Joint rates of the module, one (nv of the joint,) per link, [rad/s] or [m/s].
        """
        t = t_beta[-1] if t_beta else None
        t_i = []
        for k in self.outward():
            relative = self.p_k[k] @ qd[k] if self.p_k[k].shape[1] else np.zeros(6)
            t = relative if t is None else self.A_k[k] @ t + relative
            t_i.append(t)
        return t_i

    def accumulated_wrenches(self, w: Vectors) -> Vectors:
        """Return the wrench that each joint transmits if the module carries w^i, one (6,) per link, [N m, N].

        Link by link it is w~_k = w_k + A_(k+1,k)^T w~_(k+1), the transpose of the propagation of twists.

        Args:
            w: Module wrench w^i, one (6,) per link, [N m, N].
        """
        w = list(w)
        for k in self.inward():
            if k:
                w[k - 1] = w[k - 1] + self.A_k[k].T @ w[k]
        return w

    def composite_masses(self, M: Vectors) -> Vectors:
        """Return the mass matrix of each link and everything outward of it, one (6, 6) per link, [kg m^2, kg m, kg].

        Link by link it is M~_k = M_k + A_(k+1,k)^T M~_(k+1) A_(k+1,k).

        Args:
            M: Diagonal blocks of the module's mass matrix, one (6, 6) per link, [kg m^2, kg m, kg].
        """
        M = list(M)
        for k in self.inward():
            if k:
                M[k - 1] = M[k - 1] + congruence(self.A_k[k], M[k])
        return M


@dataclass(frozen=True)
class Operator:
    """A linear map of one module that a recursion along its links evaluates.

    `product` takes and returns a list with one array per link, `transposed` takes a module wrench, and `sizes` are the
    numbers of columns for each array of the argument.
    """

    product: Callable[[Vectors], Any]
    transposed: Callable[[Vectors], Any]
    sizes: tuple[int, ...] = ()

    def __matmul__(self, x: Vectors) -> Any:
        return self.product(x)

    @property
    def T(self) -> Operator:
        """The transpose; its matrix is `dense(operator).T`."""
        return Operator(self.transposed, self.product)


def dense(operator: Operator) -> Array:
    """Return the matrix of an operator, such as N^i (6 eta, DoF of M_i), from its products with unit vectors."""
    ends = np.cumsum(operator.sizes)[:-1]
    zero = np.concatenate(operator @ [np.zeros(size) for size in operator.sizes])
    columns = [np.concatenate(operator @ np.split(unit, ends)) for unit in np.eye(sum(operator.sizes))]
    return np.array(columns).T if columns else np.zeros((len(zero), 0))


def congruence(A: Any, M: Array) -> Array:
    """Return A^T M A, (6, 6), [kg m^2, kg m, kg], about the origin of the inner link, in its axes.

    Args:
        A: Twist propagation of a link, a `Transform` or (6, 6). M: A mass matrix, (6, 6), [kg m^2, kg m, kg].
    """
    return A.transform_inertia(M) if isinstance(A, Transform) else A.T @ M @ A


def serial_chains(robot: Robot, q: Array) -> list[SerialChain]:
    """Return the modules of a robot at a configuration, M_0 first, in the axes of the bodies.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    X, P_0 = transforms(robot, q), robot.base.motion_matrix(q)
    chains = []
    for m in robot.modules:
        bodies = tuple(robot.bodies[k] for k in m.bodies)
        p_k = tuple(P_0 if body.is_base else body.P for body in bodies)
        H_k = tuple(body.rotor_momentum for body in bodies)
        parent_links = len(robot.modules[m.parent].bodies) if m.parent >= 0 else 0
        chains.append(SerialChain(m.index, m.parent, parent_links, bodies, tuple(X[k] for k in m.bodies), p_k, H_k))
    return chains


def outward_modules(chains: Sequence[SerialChain]) -> Iterator[SerialChain]:
    """Yield the modules from the base outward, parents before children."""
    for chain in chains:
        with module(chain.index):
            yield chain


def inward_modules(chains: Sequence[SerialChain]) -> Iterator[SerialChain]:
    """Yield the modules in the order opposite to `outward_modules`, the base last."""
    return outward_modules(chains[::-1])


def by_module(robot: Robot, values: Sequence[Any]) -> list[list[Any]]:
    """Return values of bodies, in the order of `robot.bodies`, as one list per module."""
    return [[values[k] for k in m.bodies] for m in robot.modules]


def by_body(values: Iterable[Sequence[Any]]) -> list[Any]:
    """Return values of modules, one per link, as one list in the order of `robot.bodies`."""
    return [value for of_module in values for value in of_module]


def pairwise_sum(terms: Sequence[Any]) -> Any:
    """Return the sum of at least one term, added in pairs, so that its depth is the logarithm of their number."""
    terms = list(terms)
    while len(terms) > 1:
        pairs = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)]
        terms = pairs + terms[len(pairs) * 2 :]
    return terms[0]


# ---- section 3 and step 1 of section 4: the Newton-Euler equations of the modules ---------------------------------


def module_rates(robot: Robot, q: Array, v: Array, vdot: Array | None) -> tuple[list[Vectors], list[Vectors]]:
    """Return the twist t^i of each module and its rate td^i, with gravity as an upward acceleration.

        t^i  = A^(i,beta) t^beta + N^i qd^i                                                  (8)
        td^i = A^(i,beta) td^beta + Ad^(i,beta) t^beta + N^i qdd^i + Nd^i qd^i

    Link by link they are equation (1) and its rate, see `joint_rate`. Without `vdot`, td is the paper's t'.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,); None for zero.
    """
    t: list[Vectors] = []
    td: list[Vectors] = []
    for m in robot.modules:
        t_i, td_i = [], []
        with module(m.index):
            for body in (robot.bodies[k] for k in m.bodies):
                with item(body.index):
                    if body.is_base:
                        t_k, td_k = base_rate(robot, q, v, vdot)
                    else:
                        before = (t_i[-1], td_i[-1]) if t_i else (t[m.parent][-1], td[m.parent][-1])
                        t_k, td_k = joint_rate(body, q, v, vdot, *before)
                t_i.append(t_k)
                td_i.append(td_k)
        t.append(t_i)
        td.append(td_i)
    return t, td


def twists_and_rates(robot: Robot, q: Array, v: Array, vdot: Array | None) -> tuple[Vectors, Vectors]:
    """Return the twist t and its rate td of each body, (6,), body axes; arguments as in `module_rates`."""
    t, td = module_rates(robot, q, v, vdot)
    return by_body(t), by_body(td)


def module_wrenches(
    robot: Robot, q: Array, v: Array, vdot: Array | None, wrenches: Wrenches
) -> tuple[list[Vectors], list[Vectors]]:
    """Return the wrenches w^i of each module, and the passive forces f^i of its joints: step 1.

        w^i = M^i td^i + Omega^i M^i E^i t^i - w^F        (17)

    w^i has one (6,) per link, [N m, N], about the body's origin in body axes, with the moment of the joint's rotor;
    f^i has one (nv of the joint,) per link, [N m] or [N], the force that overcomes friction, springs and rotor inertia.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,); None for zero.
        wrenches: External wrenches on links, as in `inverse_dynamics`.
    """
    w_F = body_wrenches(robot, wrenches)
    t, td = twists_and_rates(robot, q, v, vdot)
    w, f = [], []
    for body in outward(robot):
        k = body.index
        moment, force = rotor_forces(body, v, vdot, t[k], td[k])
        w_k = newton_euler(body.regrouped, t[k], td[k]) + join(moment, np.zeros(3))
        w.append(w_k - w_F[k] if k in w_F else w_k)
        f.append(force + velocity_forces(body, v) + spring_forces(body, q))
    return by_module(robot, w), by_module(robot, f)
