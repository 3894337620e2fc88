"""Stick figures of robots and free bodies, wireframes of their shapes, and lines on the ground beneath them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.kinematics import link_poses
from legged.ground.ground import Ground
from legged.ground.terrain import Flat, Slope, Stairs, Terrain
from legged.robot.base import FixedBase
from legged.robot.construction.group import WORLD_LINK
from legged.robot.inertia import Inertia
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.robot.shapes import Box, Capsule, Cylinder, Ellipsoid, Hull, Shape, Sphere
from legged.rotations import quaternion_matrix
from legged.simulation.results.records import FREE, GroundRecord, StickFigure

Array = np.ndarray
_MERGE_DISTANCE = 1e-6  # [m]: closer points are one node
GRID_SPACING = 0.25  # [m], between lines on the ground
_MAX_LINES = 60  # lines of the ground grid in one direction
_POINTS_PER_LINE = 300
_MOST_POINTS = 120  # of the surface of the ground in one direction
_LEAST_SPACING = 0.02  # [m], between these


class Drawing(NamedTuple):
    """The lines of a picture and the points of the links from which their nodes follow.

    Attributes:
        points: (link index, position (3,) [m] in link axes): the nodes of the stick figure, then four points of each
            link with shapes, its origin and the ends of its unit vectors, from which the nodes of the shapes follow.
        edges: Pairs of nodes joined by a line, (e, 2): the stick figure, shapes of links, shapes of free bodies.
        modules: Kinematic module of each edge, (e,), `FREE` for free bodies.
        is_shape: Whether an edge is part of a shape, (e,).
        shapes: Nodes of the shapes of each link that has some, (k, 3), [m], link axes.
        bodies: Nodes of the shapes of each free body, (k, 3), [m], body axes.
        fixed: Nodes of obstacles, (k, 3), [m], world axes.
    """

    points: list[tuple[int, Array]]
    edges: Array
    modules: Array
    is_shape: Array
    shapes: list[Array]
    bodies: list[Array]
    fixed: Array

    def nodes(self, points: Array, bodies: Array) -> Array:
        """Return the positions of all nodes, (T, k, 3), [m], world axes.

        Args:
            points: Positions of `points` over time, (T, n, 3), [m], world axes.
            bodies: Configurations of the free bodies, (T, b, 7); see `BodyRecord.q`.
        """
        first = len(self.points) - 4 * len(self.shapes)
        parts = [points[:, :first]]
        for i, corners in enumerate(self.shapes):
            frame = points[:, first + 4 * i : first + 4 * i + 4]
            parts.append(frame[:, :1] + corners @ (frame[:, 1:] - frame[:, :1]))
        R_transposed = quaternion_matrix(np.moveaxis(bodies[..., :4], -1, 0)).T if self.bodies else ()
        for i, corners in enumerate(self.bodies):
            parts.append(bodies[:, i, None, 4:] + corners @ R_transposed[i])
        parts.append(np.broadcast_to(self.fixed, (len(points), *self.fixed.shape)))
        return np.concatenate(parts, axis=1)


def drawing_of(robot: Robot, bodies: Sequence[FreeBody] = (), obstacles: Sequence[tuple[str, Shape]] = ()) -> Drawing:
    """Return the lines of a picture of a robot and free bodies: stick figure of the robot, wireframes of all shapes.

    Links fixed to each other are drawn as one: as a polygon through the joints and contact points on them, with lines
    to the joint that carries them. A rigid part that carries neither ends at twice the distance of its center of mass.
    A base with at most one joint or contact point away from its origin is also drawn as the rod with the same largest
    inertia.

    Args:
        robot: The robot. bodies: Free bodies, drawn by their shapes. obstacles: Fixed shapes, see `Rigid.obstacles`.
    """
    points: list[tuple[int, Array]] = []
    edges: list[tuple[int, int]] = []
    carriers: dict[tuple[int, str], list[PlacedLink]] = {}
    bases = _bases(robot)
    for link in robot.links:
        if link.name in bases:
            carriers.setdefault((link.body, bases[link.name]), []).append(link)
    poses = link_poses(robot, robot.neutral())
    for links in carriers.values():
        places, lines = _rigid_part(robot, links, poses, links[0].name in bases.values())
        edges += [(len(points) + a, len(points) + b) for a, b in lines]
        points += [(links[0].index, place) for place in places]
    module_of = {body: module.index for module in robot.modules for body in module.bodies}
    modules = [module_of[robot.links[points[b][0]].body] for _, b in edges]
    count, sticks = len(points), len(edges)
    shapes, drawn = [], []
    for link in robot.links:
        if link.shapes:
            points += [(link.index, place) for place in (np.zeros(3), *np.eye(3))]
            shapes.append((link.shapes, module_of[link.body]))
    fixed = [shape for _, shape in obstacles]
    for solids, module in [*shapes, *((body.shapes, FREE) for body in bodies), (fixed, FREE)]:
        corners, lines = wireframe(solids)
        edges += [(count + a, count + b) for a, b in lines]
        modules += [module] * len(lines)
        count += len(corners)
        drawn.append(corners)
    return Drawing(
        points,
        np.array(edges, dtype=int).reshape(-1, 2),
        np.array(modules, dtype=int),
        np.arange(len(edges)) >= sticks,
        drawn[: len(shapes)],
        drawn[len(shapes) : -1],
        drawn[-1],
    )


def _bases(robot: Robot) -> dict[str, str]:
    """Return the base link of the robot to which each link belongs, by name; the world link of a group is left out."""
    first = robot.links[0]
    is_world = first.name == WORLD_LINK and first.inertia.is_massless and isinstance(robot.base, FixedBase)
    own = {} if is_world else {first.name: first.name}
    for c in robot.connections:  # parent before child
        own[c.child] = own.get(c.parent, c.child)
    return own


def _rigid_part(
    robot: Robot, links: Sequence[PlacedLink], poses: tuple[Array, Array], is_base: bool
) -> tuple[list[Array], list[tuple[int, int]]]:
    """Return the nodes, (3,) each, [m], and lines of links that are fixed to each other, in the axes of the first.

    Args:
        robot: The robot. links: The links.
        poses: Rotations and origins of all links with all joints at zero.
        is_base: Whether the first link is the base of a robot.
    """
    rotations, origins = poses
    head = links[0].index
    own = {link.name: link.index for link in links}
    index_of = {link.name: link.index for link in robot.links}
    carried = [index_of[c.child] for name in own for c in robot.connections if c.parent == name and c.child not in own]
    places = [origins[child] for child in carried]
    places += [origins[c.link] + rotations[c.link] @ c.position for c in robot.contacts if c.link in own.values()]
    places = [rotations[head].T @ (place - origins[head]) for place in places]
    ends = _distinct(places)
    nodes = [np.zeros(3), *ends]
    if len(ends) >= 3:
        lines = _polygon(ends, list(range(1, len(nodes))))
        is_joint = not is_base or any(np.linalg.norm(place) <= _MERGE_DISTANCE for place in places)
        return nodes, lines + [(0, end) for end in range(1, len(nodes)) if is_joint]
    lines = [(0, end) for end in range(1, len(nodes))]
    if len(ends) == 2:
        lines.append((1, 2))
    inertia = reduce(add, [_inertia_in(link, rotations, origins, head) for link in links])
    center = np.asarray(inertia.center)
    if not ends and np.linalg.norm(center) > _MERGE_DISTANCE:
        nodes.append(2 * center)
        lines.append((0, 1))
    if len(ends) < 2 and is_base and inertia.mass:
        half = _half_rod(inertia)
        lines += [(0, len(nodes)), (0, len(nodes) + 1)]
        nodes += [center - half, center + half]
    return nodes, lines


def _inertia_in(link: PlacedLink, rotations: Array, origins: Array, head: int) -> Inertia:
    """Return the inertia of a link in the axes of link `head`, all joints at zero."""
    R, o = rotations[head].T, origins[link.index] - origins[head]
    return link.inertia.moved(R @ rotations[link.index], R @ o)


def figure_records(
    drawing: Drawing, points: Array, bodies: Array, ground: Ground | Rigid | None
) -> tuple[StickFigure, GroundRecord]:
    """Return the stick figures of a run and the shape of the ground beneath them.

    Args:
        drawing: Of the robot and the free bodies.
        points: Positions of `Drawing.points`, (T, n, 3), [m], world axes.
        bodies: Configurations of the free bodies, (T, b, 7); see `BodyRecord.q`.
        ground: The ground, or None.
    """
    nodes = drawing.nodes(points, bodies)
    figure = StickFigure(nodes, drawing.edges, drawing.modules, drawing.is_shape)
    return figure, GroundRecord(*ground_lines(ground, nodes), ground_surface(ground, nodes))


def ground_lines(ground: Ground | Rigid | None, nodes: Array) -> tuple[Array, Array]:
    """Return polylines on the ground around a motion, and the mean normal of the ground there.

    The first line is the profile along x below the middle of the motion. The others form a grid with lines at whole
    multiples of 0.25 m, or of 0.5 m, 1 m, ... for long runs. The grid on stairs follows their heading, with lines at
    the beginning and the end of each ramp, and all lines bend there.

    Args:
        ground: The ground; None gives no lines. nodes: Nodes of the stick figure over time, (T, k, 3), [m], world.

    Returns:
        Lines (n, 300, 3), [m], and the mean unit normal (3,); world axes.
    """
    if ground is None or not nodes.size:
        return np.zeros((0, _POINTS_PER_LINE, 3)), np.array([0.0, 0.0, 1.0])
    terrain = ground.terrain
    axes, ramps, low, high, margin = _extent(terrain, nodes)
    along, extent = axes[0], np.stack(_bounds(nodes))[:, :2]
    x, y = extent.mean(axis=0)
    spacing = GRID_SPACING * 2.0 ** np.ceil(np.log2(max((high - low).max() / (_MAX_LINES * GRID_SPACING), 1.0)))
    stations, offsets = (np.arange(np.ceil(low[i] / spacing), high[i] / spacing) * spacing for i in range(2))
    stations = np.concatenate([stations, ramps[(ramps > low[0]) & (ramps < high[0])]])
    reach = np.ptp(extent[:, 0]) / 2 + margin
    ends = [((x - reach, y), (x + reach, y))]
    ends += [(axes.T @ (low[0], v), axes.T @ (high[0], v)) for v in offsets]
    ends += [(axes.T @ (u, low[1]), axes.T @ (u, high[1])) for u in stations]
    flat = np.array([_line(np.array(start), np.array(end), along, ramps) for start, end in ends])
    heights = terrain.height(flat[..., 0], flat[..., 1])
    normal = terrain.normal(flat[..., 0], flat[..., 1]).reshape(-1, 3).mean(axis=0)
    return np.concatenate([flat, heights[..., None]], axis=-1), normal / np.linalg.norm(normal)


def ground_surface(ground: Ground | Rigid | None, nodes: Array) -> Array:
    """Return a grid of points on the ground around a motion, (a, b, 3), [m], world axes.

    The grid is that of `ground_lines` in extent and heading; a plane has its corners alone, stairs have the beginnings
    and ends of their ramps, other terrain has at most 120 points in a direction.

    Args:
        ground: The ground; None gives no points. nodes: Nodes of the stick figure over time, (T, k, 3), [m], world.
    """
    if ground is None or not nodes.size:
        return np.zeros((0, 0, 3))
    terrain = ground.terrain
    axes, ramps, low, high, _ = _extent(terrain, nodes)
    stations, offsets = (np.array([low[i], high[i]]) for i in range(2))
    if isinstance(terrain, Stairs):
        stations = np.sort(np.concatenate([stations, ramps[(ramps > low[0]) & (ramps < high[0])]]))
    elif not isinstance(terrain, Flat | Slope):
        spacing = max(float((high - low).max()) / (_MOST_POINTS - 1), _LEAST_SPACING)
        stations, offsets = (np.linspace(a, b, int((b - a) / spacing) + 1) for a, b in zip(low, high, strict=True))
    flat = stations[:, None, None] * axes[0] + offsets[:, None] * axes[1]
    return np.concatenate([flat, terrain.height(flat[..., 0], flat[..., 1])[..., None]], axis=-1)


def _extent(terrain: Terrain, nodes: Array) -> tuple[Array, Array, Array, Array, float]:
    """Return (axes, ramps, lower, upper, margin) of a grid on the ground around a motion.

    Args:
        terrain: The terrain. nodes: Nodes of the stick figure over time, (T, k, 3), [m], world.

    Returns:
        The horizontal unit vectors of the grid, (2, 2), world axes; positions of the beginnings and ends of ramps along
        the first, (n,), [m]; the lower and the upper ends of the grid, (2,) each, [m]; and its margin, [m].
    """
    heading, ramps = 0.0, np.zeros(0)
    if isinstance(terrain, Stairs):
        heading = terrain.heading
        ramps = np.array([edge + side * terrain.ramp / 2 for edge in terrain.edges for side in (-1.0, 1.0)])
    along = np.array([np.cos(heading), np.sin(heading)])
    axes = np.array([along, [-along[1], along[0]]])
    margin = 1.2 * float(np.linalg.norm(np.ptp(nodes[0], axis=0)))
    low, high = _bounds((nodes.reshape(-1, 3)[:, :2] @ axes.T).reshape(*nodes.shape[:2], 2))
    return axes, ramps, low - margin, high + margin, margin


def _bounds(points: Array) -> tuple[Array, Array]:
    """Return the least and the largest coordinates of points (T, k, n), (n,) each; over time first, which is faster."""
    return points.min(axis=0).min(axis=0), points.max(axis=0).max(axis=0)


def _line(start: Array, end: Array, along: Array, ramps: Array) -> Array:
    """Return points from start to end, (300, 2), [m], among them those at given positions.

    Args:
        start, end: (2,), [m], world x and y. along: Direction in which positions are measured, (2,).
        ramps: The positions, (n,), [m].
    """
    count = max(_POINTS_PER_LINE - len(ramps), 2)
    rate = (end - start) @ along
    bends = (ramps - start @ along) / rate if abs(rate) > _MERGE_DISTANCE else np.zeros(len(ramps))
    fractions = np.sort(np.concatenate([np.linspace(0.0, 1.0, count), np.clip(bends, 0.0, 1.0)]))
    return start + fractions[:_POINTS_PER_LINE, None] * (end - start)


def _half_rod(inertia: Inertia) -> Array:
    """Return half of the rod along the axis of least inertia that has the body's largest inertia, (3,), [m]."""
    moments, axes = np.linalg.eigh(np.asarray(inertia.tensor, dtype=float))
    return axes[:, 0] * np.sqrt(3.0 * moments[-1] / inertia.mass)


def _distinct(points: list[Array]) -> list[Array]:
    """Return the points that coincide neither with the origin nor with each other."""
    distinct = [np.zeros(3)]
    for p in points:
        if all(np.linalg.norm(p - other) > _MERGE_DISTANCE for other in distinct):
            distinct.append(p)
    return distinct[1:]


def _polygon(points: list[Array], nodes: list[int]) -> list[tuple[int, int]]:
    """Return the edges of a closed polygon through the nodes, sorted by angle around their mean in their plane."""
    rays = np.array(points) - np.mean(points, axis=0)
    plane = np.linalg.svd(rays)[2][:2]
    order = np.argsort(np.arctan2(rays @ plane[1], rays @ plane[0]))
    return [(nodes[a], nodes[b]) for a, b in zip(order, np.roll(order, -1), strict=True)]


_CIRCLE_POINTS = 16
_Lines = list[tuple[int, int]]


def wireframe(shapes: Sequence[Shape]) -> tuple[Array, _Lines]:
    """Return the points of a wireframe and the pairs of points to join.

    A sphere or ellipsoid has three ellipses, a cylinder two circles and four lines, and a capsule besides these four
    half circles.

    Args:
        shapes: The shapes of one link or body.

    Returns:
        Points (k, 3), [m], in the axes of the link or body, and pairs of their indices.
    """
    points: list[Array] = []
    lines: _Lines = []
    for shape in shapes:
        corners, own = _wireframe(shape)
        lines += [(len(points) + a, len(points) + b) for a, b in own]
        points += list(corners)
    return np.array(points).reshape(-1, 3), lines


def _wireframe(shape: Shape) -> tuple[Array, _Lines]:
    if isinstance(shape, Box):
        return shape.corners, [(i, i + bit) for bit in (1, 2, 4) for i in range(8) if not i & bit]
    if isinstance(shape, Hull):
        return shape.vertices, list(shape.edges)
    if isinstance(shape, Sphere):
        return _ellipses(np.full(3, shape.radius)) + np.asarray(shape.center), _closed(3)
    if isinstance(shape, Ellipsoid):
        points, lines = _ellipses(np.asarray(shape.radii)), _closed(3)
    else:
        points, lines = _axial(shape)
    return np.asarray(shape.center) + points @ np.asarray(shape.rotation).T, lines


def _circle() -> Array:
    """Return points of the unit circle in the plane of x and y, (`_CIRCLE_POINTS`, 3)."""
    angles = np.arange(_CIRCLE_POINTS) * (2.0 * np.pi / _CIRCLE_POINTS)
    return np.stack([np.cos(angles), np.sin(angles), np.zeros(_CIRCLE_POINTS)], axis=1)


def _ellipses(radii: Array) -> Array:
    """Return points of the ellipses in the three planes of an ellipsoid, (k, 3), [m], its own axes."""
    return np.concatenate([np.roll(_circle(), axis, axis=1) * radii for axis in range(3)])


def _closed(count: int) -> _Lines:
    """Return the lines of closed polygons of `_CIRCLE_POINTS` points each."""
    n = _CIRCLE_POINTS
    return [(k * n + i, k * n + (i + 1) % n) for k in range(count) for i in range(n)]


def _axial(shape: Cylinder | Capsule) -> tuple[Array, _Lines]:
    """Return points and lines of a cylinder or capsule in its own axes."""
    n, up = _CIRCLE_POINTS, np.array([0.0, 0.0, shape.length / 2])
    rim = shape.radius * _circle()
    points, lines = [*(rim - up), *(rim + up)], _closed(2)
    lines += [(i, n + i) for i in range(0, n, n // 4)]
    if isinstance(shape, Capsule):
        for side, first in ((-1.0, 0), (1.0, n)):
            for start in (0, n // 4):
                across, at = rim[start] / shape.radius, first + start
                for k in range(1, n // 2):
                    angle = 2.0 * np.pi * k / n
                    ray = np.cos(angle) * across + np.array([0.0, 0.0, side * np.sin(angle)])
                    points.append(side * up + shape.radius * ray)
                    lines.append((at, len(points) - 1))
                    at = len(points) - 1
                lines.append((at, first + start + n // 2))
    return np.array(points), lines
