"""The generalized inertia matrix (GIM) of composite modules, and its UDU^T factors from articulated modules.

The mass matrices M^i, M~^i and M^^i of a module are block diagonal, because A^(j,i) of a child has nonzero columns for
the last link alone. They are lists with one (6, 6) per link.

Source: Shah, Saha, Dutt 2012, Appendix A.1, with rotors of joints added, see `Body.rotor_momentum`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from legged.checked import checked
from legged.compiler.ir import item, stage
from legged.dynamics.arguments import read
from legged.dynamics.modules import (
    Operator,
    SerialChain,
    Vectors,
    by_module,
    congruence,
    dense,
    inward_modules,
    outward_modules,
    pairwise_sum,
    serial_chains,
)
from legged.robot.body import Body, with_joint_rows
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored


def mass_matrices(robot: Robot, masses: Mapping[int, Array] | None = None) -> list[Vectors]:
    """Return M^i of each module, eqs. (18), (19), from moments of mass as regrouped by `regroup`, with added inertia.

    Args:
        robot: The robot.
        masses: Inertia to add by the index of the body, (6, 6), [kg m^2, kg m, kg], about its origin in body axes.
    """
    M, masses = [body.regrouped.M for body in robot.bodies], masses or {}
    return by_module(robot, [M_k + masses[k] if k in masses else M_k for k, M_k in enumerate(M)])


def blocks_operator(blocks: Sequence[Array]) -> Operator:
    """Return a block-diagonal matrix as an operator, such as M^i of (18). blocks: (m, n) each, [any unit]."""
    return Operator(
        lambda x: [B @ x_k for B, x_k in zip(blocks, x, strict=True)],
        lambda w: [B.T @ w_k for B, w_k in zip(blocks, w, strict=True)],
        tuple(B.shape[1] for B in blocks),
    )


def composite_modules(chains: Sequence[SerialChain], M: list[Vectors]) -> tuple[list[Vectors], list[Vectors]]:
    """Return (M~^i of each composite module, mass matrix of each link and all links outward of it), (6, 6) per link.

        M~^i = M^i + sum over j in xi^i of (A^(j,i))^T M~^j A^(j,i)        (A.3)

    The second result is (A.3) link by link, also inside modules.

    Args:
        chains: The modules. M: M^i of each, one (6, 6) per link, [kg m^2, kg m, kg], link axes.
    """
    children: list[list[Array]] = [[] for _ in chains]
    M_tilde, accumulated = list(M), list(M)
    for chain in inward_modules(chains):
        i, beta = chain.index, chain.parent
        M_tilde[i] = added(chain, M[i], children[i])
        accumulated[i] = chain.composite_masses(M_tilde[i])
        if beta >= 0:
            with item(chain.bodies[0].index):
                children[beta].append(congruence(chain.A_k[0], accumulated[i][0]))
    return M_tilde, accumulated


def added(chain: SerialChain, own: Vectors, children: Vectors) -> Vectors:
    """Return vectors or matrices of links with terms of the children, (6,) or (6, 6), [any unit], added to the last."""
    if not children:
        return list(own)
    with item(chain.bodies[-1].index):
        return [*own[:-1], pairwise_sum([own[-1], *children])]


@checked
def inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return the generalized inertia matrix I (GIM), (nv, nv), [kg m^2, kg m, kg].

        I^(i,j) = (N^i)^T M~^i A^(i,j) N^j   for M_i in gamma^j, zero for other pairs        (A.2)

    It includes armature and rotors of the joints, see `Body.rotor_momentum`.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        ShapeError, NotFiniteError: For a configuration that does not fit the robot.
    """
    (q,) = read(robot, q=q)
    return augmented_inertia_matrix(robot, q, None)


def augmented_inertia_matrix(robot: Robot, q: Array, masses: Mapping[int, Array] | None) -> Array:
    """Return the inertia matrix of a robot with inertia added to its bodies, (nv, nv), [kg m^2, kg m, kg].

    Args:
        robot: The robot. q: Configuration, (nq,). masses: See `mass_matrices`.
    """
    with stage("1 transforms"):
        chains = serial_chains(robot, q)
    with stage("2 composite masses"):
        _, M_tilde = composite_modules(chains, mass_matrices(robot, masses))
    with stage("3 entries"):
        return _entries(robot, q, chains, M_tilde)


def _entries(robot: Robot, q: Array, chains: Sequence[SerialChain], M_tilde: list[Vectors]) -> Array:
    """Return the GIM column by column: (N^j)^T (A^(i,j))^T M~^i N^i along the path from link k of M_i to the base."""
    inertia = np.zeros((robot.nv, robot.nv), dtype=object if robot.is_traced or q.dtype == object else float)
    for chain in outward_modules(chains):
        for k in chain.outward():
            body, p = chain.bodies[k], chain.p_k[k]
            F = M_tilde[chain.index][k] @ p  # wrench per joint acceleration
            with item((body.index, body.index)):
                inertia[body.v, body.v] += mirror(p.T @ (F + body.rotor_momentum) + body.rotor_inertia)
            F = F + body.rotor_momentum
            for column in range(body.nv):
                _add_column(chains, chain.index, k, F[:, column], inertia, body.v.start + column)
    return inertia


def _add_column(chains: Sequence[SerialChain], i: int, k: int, F: Array, inertia: Array, column: int) -> None:
    """Add the entries that couple a joint rate with the joints between its link and the base; coupled joints add up.

    Link k of module i carries F, the wrench per acceleration of the joint rate with the index `column`, (6,).
    """
    own = chains[i].bodies[k].index
    while i > 0 or k > 0:
        with item((own, chains[i].bodies[k].index)):
            F = chains[i].A_k[k].T @ F
        i, k = (i, k - 1) if k else (chains[i].parent, len(chains[chains[i].parent].bodies) - 1)
        other = chains[i].bodies[k]
        with item((own, other.index)):
            block = chains[i].p_k[k].T @ F
            inertia[other.v, column] += block
            inertia[column, other.v] += block


class JointFactors(NamedTuple):
    """Factors of one joint: its columns of Psi and its block of D.

    Attributes:
        Psi: psi_k = psi^_k m^_k^-1 with psi^_k = M^_k p_k, (6, nv of the joint), body axes; (6, 0) for the base.
        I_hat: The articulated inertia m^_k = p_k^T psi^_k of the joint as factored by `factor_symmetric`.
    """

    Psi: Array
    I_hat: tuple


def eliminate(body: Body, M_hat: Array, rotor_inertia: Array) -> tuple[JointFactors, Array]:
    """Return the factors of a joint, and M^ - Psi^ Psi^T, (6, 6), [kg m^2, kg m, kg], for its parent.

        Psi^ = M^ P + H,   I^ = P^T Psi^ + H^T P + I_r,   Psi = Psi^ I^^-1

    The rows of M^ - Psi^ Psi^T along the joint are Psi (H^T P + I_r) - H, zero without rotors.

    Args:
        body: The body behind the joint.
        M_hat: Its articulated mass matrix M^, (6, 6), [kg m^2, kg m, kg], body axes.
        rotor_inertia: H^T P + I_r, (nv of the joint, nv of the joint), [kg m^2] or [kg], joint axes.

    Source: Shah, Saha, Dutt 2012, eqs. (A.6), (A.7), (A.9), for a module of one link.
    """
    P = body.P
    Psi_hat = M_hat @ P + body.rotor_momentum
    I_hat = factor_symmetric(P.T @ Psi_hat + rotor_inertia)
    Psi = np.stack([solve_factored(I_hat, row) for row in Psi_hat])
    remaining = mirror(M_hat - Psi_hat @ Psi.T)
    return JointFactors(Psi, I_hat), with_joint_rows(body, remaining, (Psi @ rotor_inertia - body.rotor_momentum).T)


class ArticulatedModule(Protocol):
    """One module and all modules outward of it with free joints: the intra-modular part of forward dynamics.

    Attributes:
        transmitted: (A^(i,beta))^T M^^(i,i) A^(i,beta) of equation (A.8), (6, 6), [kg m^2, kg m, kg]; not for the base.
    """

    transmitted: Array

    def inward(self, tau: Vectors, w: Vectors) -> tuple[Any, Array]:
        """Return (phi~^i in any form that `outward` reads, wrench on the last link of the parent module (6,)).

            phi^^i = tau^i - (N^i)^T w^i,   phi~^i = (I^^i)^-1 phi^^i,   (A^(i,beta))^T (w^i + Psi^i phi^^i)

        Args:
            tau: Forces of the joints, one (nv,) per link, [N m] or [N].
            w: Wrench w^i + eta~^i on each link, with that of the children, one (6,) per link, [N m, N], link axes.
        """
        ...

    def outward(self, phi: Any, mu: Array | None) -> tuple[Vectors, Array]:
        """Return (qdd^i, one (nv,) per link; mu of the last link, (6,)).

            mu~^i = A^(i,beta) mu^beta,   qdd^i = phi~^i - (Psi^i)^T mu~^i,   mu^i = mu~^i + N^i qdd^i

        Args:
            phi: The first result of `inward`.
            mu: mu of the last link of the parent module, (6,), [rad/s^2, m/s^2], link axes; None for the base.
        """
        ...


IntraModular = Callable[[SerialChain, Vectors, Vectors, frozenset[int]], ArticulatedModule]
"""A class of articulated modules; its arguments are those of `ArticulatedChain`."""


class ArticulatedChain:
    """An articulated module by the recursion of a serial chain: I^^i = U_i D_i U_i^T joint by joint.

    Link by link, with M^_k = M^_k of the module and A_(k+1,k)^T (M^_(k+1) - psi^_(k+1) psi_(k+1)^T) A_(k+1,k) added,

        psi^_k = M^_k p_k,   m^_k = p_k^T psi^_k,   psi_k = psi^_k m^_k^-1

    The entries of U_i are p_l^T A_(k,l)^T psi_k, those of D_i are m^_k.

    Args:
        chain: The module.
        M_hat: M^^i, one (6, 6) per link, [kg m^2, kg m, kg], link axes.
        rotors: H^T P + I_r of each joint, (nv, nv), [kg m^2] or [kg]; rotors add H to psi^ and this to m^.
        prescribed: Indices of bodies whose joints are not eliminated: they transmit the whole M^_k, and their
            accelerations here are zero.

    Source: Shah, Saha, Dutt 2012, Appendix A.1 and Figure A.2, intra-modular steps; Saha 1997.
    """

    def __init__(
        self, chain: SerialChain, M_hat: Vectors, rotors: Vectors, prescribed: frozenset[int] = frozenset()
    ) -> None:
        self.chain, self.rotors, self.prescribed = chain, rotors, prescribed
        self.M = M_hat
        self.M_hat = list(M_hat)
        self.factors: list[JointFactors] = [JointFactors(np.zeros((6, 0)), ([], []))] * len(chain.bodies)
        for k in chain.inward():
            body, p = chain.bodies[k], chain.p_k[k]
            remaining = self.M_hat[k]
            if body.index in prescribed:
                self.factors[k] = JointFactors(np.zeros((6, body.nv)), ([], []))
            elif body.is_base:
                own = mirror(p.T @ remaining @ p + rotors[k])
                self.factors[k] = JointFactors(np.zeros((6, 0)), factor_symmetric(own))
            else:
                self.factors[k], remaining = eliminate(body, remaining, rotors[k])
            if k:
                self.M_hat[k - 1] = self.M_hat[k - 1] + congruence(chain.A_k[k], remaining)
            elif chain.parent >= 0:
                self.transmitted = congruence(chain.A_k[0], remaining)

    @property
    def Psi(self) -> Operator:
        """Psi^i = (M^^i N^i + H^i) (I^^i)^-1 of equation (A.7), (6 eta^i, DoF of M_i), without prescribed joints."""
        N, H, M = self.chain.N, blocks_operator(self.chain.H_k), blocks_operator(self.M)

        def product(phi: Vectors) -> Vectors:
            qdd = self.solve(phi)
            return [a + b for a, b in zip(M @ (N @ qdd), H @ qdd, strict=True)]

        def transposed(w: Vectors) -> Vectors:
            return self.solve([a + b for a, b in zip(N.T @ (M @ w), H.T @ w, strict=True)])

        return Operator(product, transposed, N.sizes)

    def solve(self, phi: Vectors) -> Vectors:
        """Return (I^^i)^-1 phi = U_i^-T D_i^-1 U_i^-1 phi, one (nv,) per link, for forces phi of the joints."""
        no_wrench = [np.zeros(6) for _ in self.chain.bodies]
        return self.outward(self.inward(phi, no_wrench)[0], None)[0]

    def inward(self, tau: Vectors, w: Vectors) -> tuple[Vectors, Array]:
        """Return (D_i^-1 U_i^-1 phi^^i, wrench on the parent's last link (6,)); see `ArticulatedModule.inward`.

        Link by link, phi^_k = tau_k - p_k^T w_k, phi~_k = m^_k^-1 phi^_k, and w_k + psi_k phi^_k goes to link k-1.
        """
        chain, w = self.chain, list(w)
        phi_tilde: Vectors = [np.zeros(body.nv) for body in chain.bodies]
        to_parent = np.zeros(6)
        for k in chain.inward():
            body, eta = chain.bodies[k], w[k]
            if body.index not in self.prescribed:
                phi_hat = tau[k] - chain.p_k[k].T @ w[k]
                phi_tilde[k] = solve_factored(self.factors[k].I_hat, phi_hat)
                if not body.is_base:
                    eta = w[k] + self.factors[k].Psi @ phi_hat  # wrench transmitted through the joint
                    along = tau[k] - self.rotors[k] @ phi_tilde[k]  # its components along the joint
                    eta = with_joint_rows(body, eta, along)
            if k:
                w[k - 1] = w[k - 1] + chain.A_k[k].T @ eta
            elif chain.parent >= 0:
                to_parent = chain.A_k[0].T @ eta
        return phi_tilde, to_parent

    def outward(self, phi: Vectors, mu: Array | None) -> tuple[Vectors, Array]:
        """Return (qdd^i, mu of the last link); see `ArticulatedModule.outward`.

        Link by link, mu~_k = A_(k,k-1) mu_(k-1), qdd_k = phi~_k - psi_k^T mu~_k, mu_k = mu~_k + p_k qdd_k.
        """
        chain, qdd = self.chain, []
        for k in chain.outward():
            if mu is None:
                qdd.append(phi[k])
                mu = chain.p_k[k] @ qdd[k] if chain.bodies[k].nv else np.zeros(6)
            else:
                mu_tilde = chain.A_k[k] @ mu
                qdd.append(phi[k] - self.factors[k].Psi.T @ mu_tilde)
                mu = mu_tilde + chain.p_k[k] @ qdd[k]
        return qdd, mu  # type: ignore[return-value]


class DenseArticulation:
    """An articulated module with the matrices of the theory, (A.6) to (A.9); eta links, n joint rates.

    Arguments as in `ArticulatedChain`, without prescribed joints.

    Attributes:
        M_hat: M^^i, (6 eta, 6 eta), [kg m^2, kg m, kg].
        Psi_hat: Psi^^i = M^^i N^i + H^i, (6 eta, n).
        I_hat: I^^i, (n, n), the articulated inertia of the module's joints.
        Psi: Psi^i, (6 eta, n).
        M_hat_hat: M^^(i,i), (6 eta, 6 eta).
        transmitted: (A^(i,beta))^T M^^(i,i) A^(i,beta), (6, 6), about the origin of the parent's last link.
    """

    def __init__(
        self, chain: SerialChain, M_hat: Vectors, rotors: Vectors, prescribed: frozenset[int] = frozenset()
    ) -> None:
        assert not prescribed.intersection(body.index for body in chain.bodies)
        self.ends = np.cumsum([p.shape[1] for p in chain.p_k])[:-1]
        self.N = N = dense(chain.N)
        H = dense(blocks_operator(chain.H_k))
        I_r = dense(blocks_operator([r - H_k.T @ p for r, H_k, p in zip(rotors, chain.H_k, chain.p_k, strict=True)]))
        self.M_hat = dense(blocks_operator(M_hat))
        self.Psi_hat = self.M_hat @ N + H  # (A.7)
        self.I_hat = mirror(N.T @ self.Psi_hat + H.T @ N + I_r)  # (A.6)
        self.inverse = self.inverted(self.I_hat)
        self.Psi = self.Psi_hat @ self.inverse  # (A.7)
        self.M_hat_hat = self.M_hat - self.Psi_hat @ self.Psi.T  # (A.9)
        self.A = dense(chain.A)[:, -6:]  # the columns of the last link of M_beta; none for the base
        self.transmitted = self.A.T @ self.M_hat_hat @ self.A  # (A.8)

    @staticmethod
    def inverted(I_hat: Array) -> Array:
        """Return (I^^i)^-1, (n, n), NaN for a singular one; I_hat: (n, n), [kg m^2] or [kg]."""
        factors = factor_symmetric(I_hat)
        return np.array([solve_factored(factors, unit) for unit in np.eye(len(I_hat))]).reshape(I_hat.shape)

    def inward(self, tau: Vectors, w: Vectors) -> tuple[Array, Array]:
        """Return (phi~^i (n,), wrench on the parent's last link (6,)); see `ArticulatedModule.inward`."""
        w_i = np.concatenate(w)
        phi_hat = np.concatenate(tau) - self.N.T @ w_i
        eta = w_i + self.Psi @ phi_hat
        return self.inverse @ phi_hat, self.A.T @ eta

    def outward(self, phi: Array, mu: Array | None) -> tuple[Vectors, Array]:
        """Return (qdd^i, one (nv,) per link; mu of the last link, (6,)); see `ArticulatedModule.outward`."""
        mu_tilde = self.A @ mu if mu is not None else np.zeros(len(self.N))
        qdd = phi - self.Psi.T @ mu_tilde
        mu_i = mu_tilde + self.N @ qdd
        return np.split(qdd, self.ends), mu_i[-6:]


def articulate(
    chains: Sequence[SerialChain],
    M: list[Vectors],
    rotors: list[Vectors],
    prescribed: frozenset[int] = frozenset(),
    intra_modular: Mapping[int, IntraModular] | None = None,
) -> list[Any]:
    """Return the articulated modules, M_0 first.

        M^^i = M^i + sum over j in xi^i of (A^(j,i))^T M^^(j,j) A^(j,i)        (A.8)

    Args:
        chains: The modules.
        M: M^i of each, one (6, 6) per link, [kg m^2, kg m, kg], link axes.
        rotors: H^T P + I_r of each joint, by module and link, (nv, nv), [kg m^2] or [kg].
        prescribed: Indices of bodies whose joints are not eliminated, see `ArticulatedChain`.
        intra_modular: By the number of a module, the class for its intra-modular part; `ArticulatedChain` for others.
    """
    children: list[list[Array]] = [[] for _ in chains]
    articulated: dict[int, Any] = {}
    for chain in inward_modules(chains):
        i = chain.index
        algorithm = (intra_modular or {}).get(i, ArticulatedChain)
        articulated[i] = algorithm(chain, added(chain, M[i], children[i]), rotors[i], prescribed)
        if chain.parent >= 0:
            children[chain.parent].append(articulated[i].transmitted)
    return [articulated[chain.index] for chain in chains]
