"""Centroidal momentum: its matrix A, the rate of that, and centroidal dynamics, hdot = A vdot + Adot v.

h = [angular momentum about the center of mass; linear momentum], world axes, as `legged.momentum` has it; hdot is the
outside wrench about the center of mass, gravity in it.

Source: Orin, Goswami, Lee 2013, "Centroidal dynamics of a humanoid robot"; Wensing, Orin 2016, "Improved computation of
the humanoid centroidal dynamics and application for whole-body control".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import composite_inertias
from legged.algorithms.derivatives.axes import Moving, columns, moving
from legged.algorithms.links import Links, cross_force, links_at
from legged.compiler.ir.annotations import items
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import center_of_mass
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


class Centroidal(NamedTuple):
    """Centroidal dynamics.

    Attributes:
        momentum: h, (6,), [kg m^2/s, kg m/s]. matrix: A, (6, nv), h = A v.
        rate: Adot, (6, nv). bias: Adot v, (6,), [N m], [N].
    """

    momentum: Array
    matrix: Array
    rate: Array
    bias: Array


def momentum_matrix(robot: Robot, q: Array) -> Array:
    """Return A, (6, nv), with `legged.momentum(robot, q, v)` = A v.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read(robot, q=q)
    links, still = _massive(robot, q), np.zeros(robot.nv)
    columns_of = _momenta(links, moving(links, q, still, still), composite_inertias(links))
    return _about(center_of_mass(robot, q), columns_of)


def dynamics(robot: Robot, q: Array, v: Array) -> Centroidal:
    """Return momentum, its matrix and the rates of both at constant v.

        A_i = I_i^C S_i + H_i,      Adot_i = (sum of t x I - I t x) S_i + I_i^C Sd_i + t x H_i

    about the world's origin, over all that axis i carries, then about the center of mass.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    links = _massive(robot, q)
    moves, inertia = moving(links, q, v, 0.0 * v), composite_inertias(links)
    A_o, Adot_o = _momenta(links, moves, inertia), _momentum_rates(links, moves, inertia)
    c, cdot = center_of_mass(robot, q), A_o[3:] @ v / robot.mass
    A, Adot = _about(c, A_o), _about(c, Adot_o)
    Adot[:3] -= columns(cross, cdot, A_o[3:])
    return Centroidal(A @ v, A, Adot, Adot @ v)


def _massive(robot: Robot, q: Array) -> Links:
    """Return the links in absolute coordinates with their own mass, which regrouping would move to their parents."""
    links = links_at(robot, q, "absolute")
    return replace(links, I=[X.transform_inertia(body.M) for X, body in zip(links.to_link, robot.bodies, strict=True)])


def _momenta(links: Links, moves: Moving, inertia: list[Array]) -> Array:
    """Return the momentum about the world's origin per rate of each freedom, (6, nv)."""
    A = np.zeros((6, links.robot.nv), dtype=np.result_type(*inertia, *links.h))
    for body in items(links.robot.bodies):
        for axes in moves.axes[body.index]:
            A[:, axes.where] += inertia[body.index] @ axes.S
        A[:, body.v] += links.H[body.index]
    return A


def _momentum_rates(links: Links, moves: Moving, inertia: list[Array]) -> Array:
    """Return the time derivative of `_momenta`, (6, nv)."""
    rates = [columns(cross_force, t, I) + columns(cross_force, t, I).T for t, I in zip(moves.t, links.I, strict=True)]
    changing = composite_inertias(replace(links, I=rates))
    Adot = np.zeros((6, links.robot.nv), dtype=np.result_type(*inertia, *links.h, *moves.t))
    for body in items(links.robot.bodies):
        k = body.index
        for axes in moves.axes[k]:
            Adot[:, axes.where] += changing[k] @ axes.S + inertia[k] @ axes.Sd
        if links.H[k].any():
            Adot[:, body.v] += columns(cross_force, moves.t[k], links.H[k])
    return Adot


def _about(c: Array, wrenches: Array) -> Array:
    """Return columns [n - c x f; f], (6, m)."""
    return np.stack([join(w[:3] - cross(c, w[3:]), w[3:]) for w in wrenches.T], axis=1)
