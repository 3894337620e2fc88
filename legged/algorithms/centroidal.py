"""Centroidal momentum matrix A, its time derivative, and centroidal dynamics, hdot = A vdot + Adot v.

h = [angular momentum about the center of mass; linear momentum], world axes, as in `legged.momentum`; hdot is the
external wrench about the center of mass, including gravity.

Source: Orin, Goswami, Lee 2013, "Centroidal dynamics of a humanoid robot"; Wensing, Orin 2016, "Improved computation of
the humanoid centroidal dynamics and application for whole-body control".
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from legged.algorithms.composite import composite_inertias
from legged.algorithms.derivatives.kinematics import AxisMotion, axis_motion, map_columns
from legged.algorithms.links import Links, links_at
from legged.checked import checked
from legged.compiler.ir import items
from legged.dynamics.arguments import read
from legged.dynamics.kinematics import center_of_mass
from legged.elements import any_element
from legged.moving_coordinates import cross_force
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join


class Centroidal(NamedTuple):
    """Centroidal dynamics.

    Attributes:
        momentum: h, (6,), [kg m^2/s] and [kg m/s], world axes.
        matrix: A, (6, nv), with h = A v. rate: Adot, (6, nv).
        bias: Adot v, (6,), [N m] and [N], world axes.
    """

    momentum: Array
    matrix: Array
    rate: Array
    bias: Array


@any_element
def momentum_matrix(robot: Robot, q: Array) -> Array:
    """Return the centroidal momentum matrix A, (6, nv), with `legged.momentum(robot, q, v)` = A v.

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    (q,) = read(robot, q=q)
    links, zero = _ungrouped_links(robot, q), np.zeros(robot.nv)
    A_o = _momenta(links, axis_motion(links, q, zero, zero), composite_inertias(links))
    return _about_point(center_of_mass(robot, q), A_o)


@any_element
def dynamics(robot: Robot, q: Array, v: Array) -> Centroidal:
    """Return the centroidal momentum, its matrix, and the time derivatives of both at constant v.

        A_i = I_i^C S_i + H_i,      Adot_i = (sum of t x I - I t x) S_i + I_i^C Sd_i + t x H_i

    about the world origin, with sums over the descendants of axis i, then about the center of mass.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    links = _ungrouped_links(robot, q)
    motion, inertia = axis_motion(links, q, v, 0.0 * v), composite_inertias(links)
    A_o, Adot_o = _momenta(links, motion, inertia), _momentum_rates(links, motion, inertia)
    c, cdot = center_of_mass(robot, q), A_o[3:] @ v / robot.mass
    A, Adot = _about_point(c, A_o), _about_point(c, Adot_o)
    Adot[:3] -= map_columns(cross, cdot, A_o[3:])
    return Centroidal(A @ v, A, Adot, Adot @ v)


def _ungrouped_links(robot: Robot, q: Array) -> Links:
    """Return the links in absolute coordinates with each body's own inertia, not regrouped to its parent."""
    links = links_at(robot, q, "absolute")
    return replace(links, I=[X.transform_inertia(body.M) for X, body in zip(links.to_link, robot.bodies, strict=True)])


def _momenta(links: Links, motion: AxisMotion, inertia: list[Array]) -> Array:
    """Return the momentum about the world origin per unit rate of each degree of freedom, (6, nv)."""
    A = np.zeros((6, links.robot.nv), dtype=np.result_type(*inertia, *links.h))
    for body in items(links.robot.bodies):
        for axes in motion.axes[body.index]:
            A[:, axes.entries] += inertia[body.index] @ axes.S
        A[:, body.v] += links.H[body.index]
    return A


def _momentum_rates(links: Links, motion: AxisMotion, inertia: list[Array]) -> Array:
    """Return the time derivative of `_momenta`, (6, nv)."""
    products = [map_columns(cross_force, t, I) for t, I in zip(motion.t, links.I, strict=True)]
    inertia_rates = [product + product.T for product in products]
    composite_rates = composite_inertias(replace(links, I=inertia_rates))
    Adot = np.zeros((6, links.robot.nv), dtype=np.result_type(*inertia, *links.h, *motion.t))
    for body in items(links.robot.bodies):
        k = body.index
        for axes in motion.axes[k]:
            Adot[:, axes.entries] += composite_rates[k] @ axes.S + inertia[k] @ axes.Sd
        if body.has_gyroscopic_rotor:
            Adot[:, body.v] += map_columns(cross_force, motion.t[k], links.H[k])
    return Adot


def _about_point(c: Array, wrenches: Array) -> Array:
    """Return wrenches about the world origin as wrenches about c, columns [n - c x f; f], (6, m)."""
    return np.stack([join(w[:3] - cross(c, w[3:]), w[3:]) for w in wrenches.T], axis=1)


@checked
def center_of_mass_jacobian(robot: Robot, q: Array) -> Array:
    """Return J, (3, nv), with velocity of the center of mass = J @ v, [m/s], world axes.

    Args:
        robot: The robot. q: Configuration, (nq,).

    Source: the linear rows of the centroidal momentum matrix over the mass; Orin, Goswami, Lee 2013.
    """
    return momentum_matrix(robot, q)[3:] / robot.mass
