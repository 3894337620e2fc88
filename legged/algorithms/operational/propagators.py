"""The extended-force-propagator algorithm: the inverse inertia at several ends, spans of links in one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from legged.algorithms.articulated import Articulated, articulated_inertias, refuse_followers
from legged.algorithms.links import Links, links_at
from legged.compiler.ir.annotations import item, stage
from legged.dynamics.arguments import finite, read
from legged.dynamics.kinematics import motion, on_bodies
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew, solve_factored

Points = Sequence[tuple[str | int, Array]]


@dataclass(frozen=True)
class Span:
    """A run of links between a body where ways part, or an end, and the next such body inward.

    Attributes:
        inner: That body, or -1 for the ground.
        chi: Force propagator: from n forces at the outer side to the inner body, (6, n); n is 6 between partings.
        own: Mobility of the span's outer side when its inner one stands still, (n, n).
    """

    inner: int
    chi: Array
    own: Array


def by_propagators(robot: Robot, q: Array, points: Points) -> Array:
    """Return J M^-1 J^T, (6 points, 6 points), by the extended-force-propagator algorithm.

        chi_p      = X_k^T (1 - U D^-1 h^T) chi_k              a force, one joint farther inward
        own        = sum of (h^T chi_k)^T D^-1 h^T chi_k       over the joints of a span
        Omega      = own + chi^T Omega_inner chi               at an end, and where ways part
        block(i,j) = chi_i^T Omega chi_j                       at the body where the ways to i and j part

    A span of links is crossed once for all ends beyond it, so that no loop has both bodies and pairs of ends in it:
    O(n + m d + m^2) for m ends of a tree with d partings on a way.

    Args:
        robot: The robot. q: Configuration, (nq,).
        points: The ends, (link, position (3,) [m] in link axes); blocks are [angular; linear], world axes.

    Raises:
        DefinitionError: for joints that follow others.

    Source: Wensing, Featherstone, Orin, "A reduced-order recursive algorithm for the computation of the
    operational-space inertia matrix", International Conference on Robotics and Automation, 2012.
    """
    refuse_followers(robot, "the extended-force-propagator algorithm")
    (q,) = read(robot, q=q)
    links, ends = links_at(robot, q), end_maps(robot, q, points)
    with stage("1 articulated inertias"):
        parts = articulated_inertias(links)
    blocks = mobilities(links, parts, [(k, T.T) for k, T in ends])
    return finite(robot, "the operational-space inertia", mirror(np.block(blocks)))


def mobilities(links: Links, parts: Articulated, ends: Sequence[tuple[int, Array]]) -> list[list[Array]]:
    """Return the blocks of J M^-1 J^T, (n, n') each, those below the diagonal as zeros; see `by_propagators`.

    Args:
        links, parts: The robot's bodies, articulated.
        ends: (body, what takes n forces at the end to wrenches at the body's origin in its axes, (6, n)).
    """
    with stage("2 spans"):
        partings = _partings(links.robot, [k for k, _ in ends])
        between = {k: _span(links, parts, k, np.eye(6), partings - {k}) for k in sorted(partings)}
        outer = [_span(links, parts, k, chi, partings) for k, chi in ends]
    with stage("3 blocks"):
        Omega: dict[int, Array] = {-1: np.zeros((6, 6))}
        for k, span in between.items():
            Omega[k] = _mobility(span, Omega)
        return _blocks(between, outer, Omega)


def end_maps(robot: Robot, q: Array, points: Points) -> list[tuple[int, Array]]:
    """Return (body, T (6, 6)) of each point; T takes the body's twist, in its axes, to the point's, in world axes."""
    rotation = motion(robot, q).rotation
    found = []
    for k, r in on_bodies(robot, list(points)):
        R = rotation[k]
        found.append((k, np.block([[R, np.zeros((3, 3))], [-R @ skew(r), R]])))
    return found


def _partings(robot: Robot, ends: list[int]) -> set[int]:
    """Return the bodies where the ways to two ends part, those among them that carry one end or more included."""
    beyond: dict[int, set[int]] = {}
    for number, end in enumerate(ends):
        below = -1 - number
        for k in robot.ancestors(end):
            beyond.setdefault(k, set()).add(below)
            below = k
    return {k for k, ways in beyond.items() if len(ways) > 1}


def _span(links: Links, parts: Articulated, k: int, chi: Array, stops: set[int]) -> Span:
    """Return the span that begins with forces chi, (6, n), on body k and ends at the next body among `stops`."""
    n = chi.shape[1]
    own = np.zeros((n, n))
    while k >= 0 and k not in stops:
        with item(k):
            h, D, parent = links.h[k], parts.D[k], links.robot.bodies[k].parent
            g = h.T @ chi
            own = own + mirror(g.T @ np.array([solve_factored(D, column) for column in g.T]).reshape(n, -1).T)
            left = chi - parts.Psi[k] @ g
            chi, k = np.array([links.X[k].T @ column for column in left.T]).T, parent
    return Span(k, chi, own)


def _mobility(span: Span, Omega: dict[int, Array]) -> Array:
    return span.own if span.inner < 0 else mirror(span.own + span.chi.T @ Omega[span.inner] @ span.chi)


def _blocks(between: dict[int, Span], outer: list[Span], Omega: dict[int, Array]) -> list[list[Array]]:
    """Return the blocks of the matrix, those below the diagonal as zeros."""
    ways = [_way(between, span) for span in outer]
    blocks = [[np.zeros((a.own.shape[0], b.own.shape[0])) for b in outer] for a in outer]
    for i, span in enumerate(outer):
        blocks[i][i] = _mobility(span, Omega)
        felt = {k: chi.T @ Omega[k] for k, chi in ways[i].items()}
        for j in range(i + 1, len(outer)):
            parting = next((k for k in felt if k in ways[j]), None)
            if parting is not None:
                blocks[i][j] = felt[parting] @ ways[j][parting]
    return blocks


def _way(between: dict[int, Span], span: Span) -> dict[int, Array]:
    """Return the propagators from an end to each body where ways part, from the end inward."""
    found, chi = {}, span.chi
    while span.inner >= 0:
        found[span.inner] = chi
        span = between[span.inner]
        chi = span.chi @ chi
    return found
