"""Pictures of a motion: stick figures of robots and free bodies, with their shapes, and lines on the ground beneath."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import compile as compile_function
from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.kinematics import link_poses
from legged.ground.ground import Ground
from legged.ground.terrain import Flat, Slope, Stairs, Terrain
from legged.robot.base import FixedBase
from legged.robot.construction.group import WORLD_LINK
from legged.robot.inertia import Inertia
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.robot.shapes import Shape
from legged.rotations import quaternion_matrix
from legged.simulation.results.records import FREE, GroundRecord, RecordedPicture, StickFigure
from legged.simulation.results.wireframe import wireframe

Array = np.ndarray
_MERGE_DISTANCE = 1e-6  # [m]: closer points are one node
GRID_SPACING = 0.25  # [m], between lines on the ground
_MAX_LINES = 60  # lines of the ground grid in one direction
_POINTS_PER_LINE = 300
_MOST_POINTS = 120  # of the surface of the ground in one direction
_LEAST_SPACING = 0.02  # [m], between these


@dataclass(frozen=True, eq=False)
class Picture:
    """The stick figures of a motion and the ground beneath them, computed when they are read.

    Attributes:
        robot: The robot. q: Its configurations, (T, nq), mixed units.
        surface: The ground; None without ground. bodies: Free bodies.
        body_q: Configurations of the free bodies, (T, b, 7), mixed units; see `BodyRecord.q`.
    """

    robot: Robot
    q: Array
    surface: Ground | Rigid | None
    bodies: Sequence[FreeBody]
    body_q: Array

    @cached_property
    def figure(self) -> StickFigure:
        """Stick figures of robot and free bodies, and the shapes of these and of obstacles."""
        obstacles = self.surface.obstacles if isinstance(self.surface, Rigid) else ()
        drawing = drawing_of(self.robot, self.bodies, obstacles)
        nodes = drawing.nodes(*compile_function(link_poses, self.robot)(self.q), self.body_q)
        return StickFigure(nodes, drawing.edges, drawing.modules, drawing.is_shape)

    @cached_property
    def ground(self) -> GroundRecord:
        """Shape of the ground around the motion."""
        nodes = self.figure.nodes
        return GroundRecord(*ground_lines(self.surface, nodes), ground_surface(self.surface, nodes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a `RecordedPicture` for `pickle` and `copy`: a ground may hold functions, which cannot be pickled."""
        return RecordedPicture, (self.figure, self.ground)


class Drawing(NamedTuple):
    """The line segments of a picture, with end points (nodes) in the axes of the link or body that carries them.

    Attributes:
        sticks: Stick figure: (link index, nodes (k, 3) [m] in link axes) of each rigid part.
        shapes: Shapes of links: (link index, nodes (k, 3) [m] in link axes) of each link that has some.
        edges: Pairs of nodes joined by a line, (e, 2): the stick figure, shapes of links, shapes of free bodies.
        modules: Kinematic module of each edge, (e,), `FREE` for free bodies.
        is_shape: Whether an edge is part of a shape, (e,).
        bodies: Nodes of the shapes of each free body, (k, 3), [m], body axes.
        fixed: Nodes of obstacles, (k, 3), [m], world axes.
    """

    sticks: list[tuple[int, Array]]
    shapes: list[tuple[int, Array]]
    edges: Array
    modules: Array
    is_shape: Array
    bodies: list[Array]
    fixed: Array

    def nodes(self, rotations: Array, origins: Array, bodies: Array) -> Array:
        """Return the positions of all nodes, (T, k, 3), [m], world axes, in the order of the attributes.

        Args:
            rotations, origins: Poses of the links over time, (T, n_links, 3, 3) and (T, n_links, 3), [m]; see
                `link_poses`.
            bodies: Configurations of the free bodies, (T, b, 7); see `BodyRecord.q`.
        """
        own = (*self.sticks, *self.shapes)
        parts = [origins[:, i, None] + places @ rotations[:, i].swapaxes(1, 2) for i, places in own]
        R_transposed = quaternion_matrix(np.moveaxis(bodies[..., :4], -1, 0)).T if self.bodies else ()
        for i, corners in enumerate(self.bodies):
            parts.append(bodies[:, i, None, 4:] + corners @ R_transposed[i])
        parts.append(np.broadcast_to(self.fixed, (len(origins), *self.fixed.shape)))
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
    sticks: list[tuple[int, Array]] = []
    edges: list[tuple[int, int]] = []
    modules: list[int] = []
    count = 0  # of nodes
    module_of = {body: module.index for module in robot.modules for body in module.bodies}
    carriers: dict[tuple[int, str], list[PlacedLink]] = {}
    bases = _bases(robot)
    for link in robot.links:
        if link.name in bases:
            carriers.setdefault((link.body, bases[link.name]), []).append(link)
    poses = link_poses(robot, robot.neutral())
    for links in carriers.values():
        places, lines = _rigid_part(robot, links, poses, links[0].name in bases.values())
        edges += [(count + a, count + b) for a, b in lines]
        modules += [module_of[links[0].body]] * len(lines)
        sticks.append((links[0].index, np.array(places)))
        count += len(places)
    first, drawn = len(edges), []
    shown = [link for link in robot.links if link.shapes]
    solids = [*((link.shapes, module_of[link.body]) for link in shown), *((body.shapes, FREE) for body in bodies)]
    for shapes, module in [*solids, ([shape for _, shape in obstacles], FREE)]:
        corners, lines = wireframe(shapes)
        edges += [(count + a, count + b) for a, b in lines]
        modules += [module] * len(lines)
        count += len(corners)
        drawn.append(corners)
    return Drawing(
        sticks,
        [(link.index, corners) for link, corners in zip(shown, drawn, strict=False)],
        np.array(edges, dtype=int).reshape(-1, 2),
        np.array(modules, dtype=int),
        np.arange(len(edges)) >= first,
        drawn[len(shown) : -1],
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
