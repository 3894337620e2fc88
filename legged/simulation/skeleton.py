"""The stick figure of a robot, the bodies around it, and the piece of ground that they moved over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from legged.contact.free_body import FreeBody
from legged.contact.rigid import Rigid
from legged.ground.ground import Ground
from legged.robot.inertia import Inertia
from legged.robot.link import Box, Shape
from legged.robot.robot import Robot

Array = np.ndarray
_SAME = 1e-6  # [m], closer points are one
_GRID = 0.25  # [m], between lines on the ground
_MOST_LINES = 60  # in one direction
_ON_LINE = 300  # points
_AROUND = 16  # points of a circle
FREE = -1
"""The number of the module that lines of free bodies belong to."""


class _Sketch:
    """Nodes (link, position in link axes) and lines between them."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, Array]] = []
        self.edges: list[tuple[int, int]] = []

    def node(self, link: int, position: Array) -> int:
        self.nodes.append((link, np.asarray(position, dtype=float)))
        return len(self.nodes) - 1

    def line(self, a: int, b: int) -> None:
        self.edges.append((a, b))


def stick_figure(robot: Robot, bodies: Sequence[FreeBody] = ()) -> tuple[list[tuple[int, Array]], Array, Array]:
    """Return (nodes, edges, modules) of a robot's stick figure, and of free bodies beside it.

    A link is drawn from its own origin to the joints and contact points on it, or around them if there are three and
    more; a link with none, on through its center of mass; a base with all its joints in one place, as the rod that has
    its largest inertia. Shapes are drawn as their outlines.

    Returns:
        nodes: (link index, position in link axes) of each of the robot's; behind these come the bodies', see `outline`.
        edges: (e, 2), pairs of nodes. modules: (e,), the module that each edge belongs to, `FREE` for bodies.
    """
    sketch = _Sketch()
    origins = [sketch.node(link.index, np.zeros(3)) for link in robot.links]
    for link in robot.links:
        ends = _joints_on(robot, link.index)
        ends += [contact.position for contact in robot.contacts if contact.link == link.index]
        marks = [sketch.node(link.index, p) for p in _distinct(ends)]
        if len(marks) >= 3:
            _outline(sketch, marks)
            if link.index:
                sketch.line(origins[link.index], marks[0])
            continue
        for mark in marks:
            sketch.line(origins[link.index], mark)
        center = np.asarray(link.inertia.center)
        if not marks and np.linalg.norm(center) > _SAME:
            sketch.line(origins[link.index], sketch.node(link.index, 2 * center))
        if len(marks) < 2 and link.index == 0 and link.inertia.mass:
            ends = [sketch.node(0, center + side * _half_rod(link.inertia)) for side in (-1.0, 1.0)]
            sketch.line(origins[0], ends[0])
            sketch.line(origins[0], ends[1])
    for link in robot.links:
        points, lines = outline(link.shapes)
        marks = [sketch.node(link.index, point) for point in points]
        for a, b in lines:
            sketch.line(marks[a], marks[b])
    module_of = {body: module.index for module in robot.modules for body in module.bodies}
    modules = [module_of[robot.links[sketch.nodes[b][0]].body] for _, b in sketch.edges]
    edges, behind = sketch.edges, len(sketch.nodes)
    for body in bodies:
        points, lines = outline(body.shapes)
        edges = edges + [(behind + a, behind + b) for a, b in lines]
        modules += [FREE] * len(lines)
        behind += len(points)
    return sketch.nodes, np.array(edges, dtype=int).reshape(-1, 2), np.array(modules, dtype=int)


def outline(shapes: Sequence[Shape]) -> tuple[Array, list[tuple[int, int]]]:
    """Return (points (k, 3), [m], in the shapes' axes; pairs of them to join): edges of boxes, circles of spheres."""
    points: list[Array] = []
    lines: list[tuple[int, int]] = []
    for shape in shapes:
        first = len(points)
        if isinstance(shape, Box):
            points += list(shape.corners)
            lines += [(first + i, first + i + bit) for bit in (1, 2, 4) for i in range(8) if not i & bit]
            continue
        angles = np.arange(_AROUND) * (2.0 * np.pi / _AROUND)
        for axis in range(3):
            circle = np.roll(np.array([np.cos(angles), np.sin(angles), 0.0 * angles]), axis, axis=0).T
            begin = len(points)
            points += list(shape.center + shape.radius * circle)
            lines += [(begin + i, begin + (i + 1) % _AROUND) for i in range(_AROUND)]
    return np.array(points).reshape(-1, 3), lines


def _half_rod(inertia: Inertia) -> Array:
    """Return half of a rod, (3,), [m], along a body's axis of least inertia, with the body's largest inertia."""
    moments, axes = np.linalg.eigh(np.asarray(inertia.tensor, dtype=float))
    return axes[:, 0] * np.sqrt(3.0 * moments[-1] / inertia.mass)


def _joints_on(robot: Robot, link: int) -> list[Array]:
    """Return where the children of a link are joined to it, in its axes, all joints at zero."""
    from legged.dynamics.kinematics import link_poses

    R, o = link_poses(robot, robot.neutral())
    names = [other.name for other in robot.links]
    children = [names.index(child) for child in robot.graph.successors(names[link])]
    return [R[link].T @ (o[child] - o[link]) for child in children]


def _distinct(points: list[Array]) -> list[Array]:
    kept: list[Array] = []
    for p in points:
        if all(np.linalg.norm(p - other) > _SAME for other in kept) and np.linalg.norm(p) > _SAME:
            kept.append(p)
    return kept


def _outline(sketch: _Sketch, marks: list[int]) -> None:
    """Join the marks to a closed line around their middle, in the plane they lie in."""
    points = np.array([sketch.nodes[mark][1] for mark in marks])
    rays = points - points.mean(axis=0)
    plane = np.linalg.svd(rays)[2][:2]
    order = np.argsort(np.arctan2(rays @ plane[1], rays @ plane[0]))
    for a, b in zip(order, np.roll(order, -1), strict=True):
        sketch.line(marks[a], marks[b])


def ground_under(ground: Ground | Rigid | None, skeleton: Array) -> tuple[Array, Array]:
    """Return (lines (n, k, 3) [m], mean unit normal (3,)) of the ground around a moving stick figure, world axes.

    The first line is the profile along x under the middle of the motion; the others are a grid with lines at whole
    multiples of 0.25 m (or 0.5 m, 1 m, ... under long runs).

    Args:
        ground: None gives no lines. skeleton: The figure's nodes over time, (T, k, 3), [m].
    """
    if ground is None or not skeleton.size:
        return np.zeros((0, _ON_LINE, 3)), np.array([0.0, 0.0, 1.0])
    margin = 1.2 * float(np.linalg.norm(np.ptp(skeleton[0], axis=0)))
    places = skeleton.reshape(-1, 3)[:, :2]
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    spacing = _GRID * 2.0 ** np.ceil(np.log2(max((high - low).max() / (_MOST_LINES * _GRID), 1.0)))
    along = [np.linspace(low[i], high[i], _ON_LINE) for i in range(2)]
    middle = (places.min(axis=0) + places.max(axis=0))[1] / 2
    xy = [np.stack([along[0], np.full(_ON_LINE, middle)], axis=-1)]
    for y in np.arange(np.ceil(low[1] / spacing), high[1] / spacing) * spacing:
        xy.append(np.stack([along[0], np.full(_ON_LINE, y)], axis=-1))
    for x in np.arange(np.ceil(low[0] / spacing), high[0] / spacing) * spacing:
        xy.append(np.stack([np.full(_ON_LINE, x), along[1]], axis=-1))
    flat = np.array(xy)
    heights = ground.terrain.height(flat[..., 0], flat[..., 1])
    normal = ground.terrain.normal(flat[..., 0], flat[..., 1]).reshape(-1, 3).mean(axis=0)
    return np.concatenate([flat, heights[..., None]], axis=-1), normal / np.linalg.norm(normal)
