"""The generalized inertia matrix from composite rigid bodies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from legged.checked import checked
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import read
from legged.dynamics.sweeps import inward, outward, transforms
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, mirror


@checked
def inertia_matrix(robot: Robot, q: Array) -> Array:
    """Return the generalized inertia matrix I (GIM), (nv, nv), [kg m^2, kg m, kg].

        I^(i,j) = P_i^T M~_i A_(i,j) P_j   for j on the path from i to the base, zero for other pairs

    It includes armature and rotors of the joints, see `Body.rotor_momentum`.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Raises:
        ShapeError, NotFiniteError: For a configuration that does not fit the robot.

    Source: Shah, Saha, Dutt 2012, eqs. (A.2), (A.3).
    """
    (q,) = read(robot, q=q)
    return augmented_inertia_matrix(robot, q, None)


def augmented_inertia_matrix(robot: Robot, q: Array, masses: Mapping[int, Array] | None) -> Array:
    """Return the inertia matrix of a robot with inertia added to its bodies, (nv, nv), [kg m^2, kg m, kg].

    Args:
        robot: The robot. q: Configuration, (nq,). masses: See `mass_matrices`.
    """
    with stage("1 transforms"):
        X = transforms(robot, q)
    with stage("2 composite masses"):
        M_tilde = composite_masses(robot, X, mass_matrices(robot, masses))
    with stage("3 entries"):
        return _entries(robot, q, X, M_tilde)


def mass_matrices(robot: Robot, masses: Mapping[int, Array] | None = None) -> list[Array]:
    """Return the regrouped mass matrix of each body with added inertia, (6, 6), [kg m^2, kg m, kg], body axes.

    Args:
        robot: The robot.
        masses: Inertia to add by the index of the body, (6, 6), [kg m^2, kg m, kg], about its origin in body axes.
    """
    M, masses = [body.regrouped.M for body in robot.bodies], masses or {}
    return [own + masses[k] if k in masses else own for k, own in enumerate(M)]


def _entries(robot: Robot, q: Array, X, M_tilde: list[Array]) -> Array:
    P_0 = robot.base.motion_matrix(q)
    inertia = np.zeros((robot.nv, robot.nv), dtype=object if robot.is_traced or q.dtype == object else float)
    for body in outward(robot):
        P_i = P_0 if body.kind == "base" else body.P
        F = M_tilde[body.index] @ P_i
        with item((body.index, body.index)):
            inertia[body.v, body.v] += mirror(P_i.T @ (F + body.rotor_momentum) + body.rotor_inertia)
            F = F + body.rotor_momentum
            F = [X[body.index].T @ F[:, i] for i in range(body.nv)] if body.parent >= 0 else []
        for column, F_i in enumerate(F, start=body.v.start):
            _add_ancestors(robot, body.index, P_0, X, F_i, inertia, column)
    return inertia


def _add_ancestors(robot: Robot, body: int, P_0: Array, X, F: Array, inertia: Array, column: int) -> None:
    """Add the entries that couple one joint rate with the joints between its body and the base; coupled joints add up.

    Args:
        F: Wrench on the body's parent per acceleration of the joint rate, (6,), parent axes. column: Index of the rate.
    """
    for j in robot.ancestors(body)[1:]:
        other = robot.bodies[j]
        with item((body, j)):
            block = (P_0 if other.kind == "base" else other.P).T @ F
            inertia[other.v, column] += block
            inertia[column, other.v] += block
            if other.kind != "base":
                F = X[j].T @ F


def composite_masses(robot: Robot, X: list[Transform], M: list[Array] | None = None) -> list[Array]:
    """Return the composite mass matrix M~ of each body and everything outward of it, (6, 6), body axes.

    Args:
        robot: The robot. X: Its transforms.
        M: Mass matrix of each body, (6, 6), [kg m^2, kg m, kg], body axes; by default the regrouped ones, which give
            the same p^T M~.

    Source: Shah, Saha, Dutt 2012, eq. (A.3), link by link.
    """
    M_tilde = mass_matrices(robot) if M is None else list(M)
    for body in inward(robot):
        if body.kind != "base":
            M_tilde[body.parent] = M_tilde[body.parent] + X[body.index].transform_inertia(M_tilde[body.index])
    return M_tilde
