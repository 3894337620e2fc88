"""Stick figures of robots and free bodies, and lines on the ground beneath them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.kinematics import link_poses
from legged.ground.ground import Ground
from legged.robot.inertia import Inertia
from legged.robot.link import Box, Shape
from legged.robot.robot import Robot
from legged.simulation.results.records import FREE

Array = np.ndarray
_MERGE_DISTANCE = 1e-6  # [m]: closer points are one node
_GRID_SPACING = 0.25  # [m], between lines on the ground
_MAX_LINES = 60  # lines of the ground grid in one direction
_POINTS_PER_LINE = 300
_CIRCLE_POINTS = 16


def stick_figure(robot: Robot, bodies: Sequence[FreeBody] = ()) -> tuple[list[tuple[int, Array]], Array, Array]:
    """Return (nodes, edges, modules) of the stick figure of a robot, followed by those of free bodies.

    A link is drawn as lines from its origin to the joints and contact points on it, or as a polygon through them if
    there are three or more. A link without any is drawn through its center of mass. A base with all joints in one
    place is drawn as the rod with the same largest inertia. Shapes are drawn as wireframes.

    Args:
        robot: The robot. bodies: Free bodies, drawn by their shapes.

    Returns:
        nodes: (link index, position (3,) [m] in link axes) of the robot; the nodes of bodies, which follow, are not
            listed, see `wireframe`.
        edges: Pairs of nodes joined by a line, (e, 2).
        modules: Kinematic module of each edge, (e,), `FREE` for free bodies.
    """
    nodes: list[tuple[int, Array]] = []
    edges: list[tuple[int, int]] = []

    def node(link: int, position: Any) -> int:
        nodes.append((link, np.asarray(position, dtype=float)))
        return len(nodes) - 1

    origins = [node(link.index, np.zeros(3)) for link in robot.links]
    for link in robot.links:
        points = _child_joints(robot, link.index)
        points += [contact.position for contact in robot.contacts if contact.link == link.index]
        ends = [node(link.index, p) for p in _distinct(points)]
        if len(ends) >= 3:
            edges += _polygon([nodes[end][1] for end in ends], ends)
            if link.index:
                edges.append((origins[link.index], ends[0]))
            continue
        edges += [(origins[link.index], end) for end in ends]
        center = np.asarray(link.inertia.center)
        if not ends and np.linalg.norm(center) > _MERGE_DISTANCE:
            edges.append((origins[link.index], node(link.index, 2 * center)))
        if len(ends) < 2 and link.index == 0 and link.inertia.mass:
            half = _half_rod(link.inertia)
            edges += [(origins[0], end) for end in (node(0, center - half), node(0, center + half))]
    for link in robot.links:
        corners, lines = wireframe(link.shapes)
        ends = [node(link.index, corner) for corner in corners]
        edges += [(ends[a], ends[b]) for a, b in lines]
    module_of = {body: module.index for module in robot.modules for body in module.bodies}
    modules = [module_of[robot.links[nodes[b][0]].body] for _, b in edges]
    first = len(nodes)
    for body in bodies:
        corners, lines = wireframe(body.shapes)
        edges += [(first + a, first + b) for a, b in lines]
        modules += [FREE] * len(lines)
        first += len(corners)
    return nodes, np.array(edges, dtype=int).reshape(-1, 2), np.array(modules, dtype=int)


def wireframe(shapes: Sequence[Shape]) -> tuple[Array, list[tuple[int, int]]]:
    """Return the points of a wireframe and the pairs of points to join: edges of boxes, three circles per sphere.

    Args:
        shapes: Boxes and spheres of one link or body.

    Returns:
        Points (k, 3), [m], in the axes of the link or body, and pairs of their indices.
    """
    points: list[Array] = []
    lines: list[tuple[int, int]] = []
    for shape in shapes:
        first = len(points)
        if isinstance(shape, Box):
            points += list(shape.corners)
            lines += [(first + i, first + i + bit) for bit in (1, 2, 4) for i in range(8) if not i & bit]
            continue
        angles = np.arange(_CIRCLE_POINTS) * (2.0 * np.pi / _CIRCLE_POINTS)
        for axis in range(3):
            circle = np.roll(np.array([np.cos(angles), np.sin(angles), 0.0 * angles]), axis, axis=0).T
            begin = len(points)
            points += list(shape.center + shape.radius * circle)
            lines += [(begin + i, begin + (i + 1) % _CIRCLE_POINTS) for i in range(_CIRCLE_POINTS)]
    return np.array(points).reshape(-1, 3), lines


def ground_lines(ground: Ground | Rigid | None, nodes: Array) -> tuple[Array, Array]:
    """Return polylines on the ground around a motion, and the mean normal of the ground there.

    The first line is the profile along x below the middle of the motion. The others form a grid with lines at whole
    multiples of 0.25 m, or of 0.5 m, 1 m, ... for long runs.

    Args:
        ground: The ground; None gives no lines. nodes: Nodes of the stick figure over time, (T, k, 3), [m], world.

    Returns:
        Lines (n, 300, 3), [m], and the mean unit normal (3,); world axes.
    """
    if ground is None or not nodes.size:
        return np.zeros((0, _POINTS_PER_LINE, 3)), np.array([0.0, 0.0, 1.0])
    margin = 1.2 * float(np.linalg.norm(np.ptp(nodes[0], axis=0)))
    places = nodes.reshape(-1, 3)[:, :2]
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    spacing = _GRID_SPACING * 2.0 ** np.ceil(np.log2(max((high - low).max() / (_MAX_LINES * _GRID_SPACING), 1.0)))
    x, y = (np.linspace(low[i], high[i], _POINTS_PER_LINE) for i in range(2))
    grid_x, grid_y = (np.arange(np.ceil(low[i] / spacing), high[i] / spacing) * spacing for i in range(2))
    middle = (places.min(axis=0) + places.max(axis=0))[1] / 2
    lines = [np.stack([x, np.full(_POINTS_PER_LINE, fixed)], axis=-1) for fixed in (middle, *grid_y)]
    lines += [np.stack([np.full(_POINTS_PER_LINE, fixed), y], axis=-1) for fixed in grid_x]
    flat = np.array(lines)
    heights = ground.terrain.height(flat[..., 0], flat[..., 1])
    normal = ground.terrain.normal(flat[..., 0], flat[..., 1]).reshape(-1, 3).mean(axis=0)
    return np.concatenate([flat, heights[..., None]], axis=-1), normal / np.linalg.norm(normal)


def _half_rod(inertia: Inertia) -> Array:
    """Return half of the rod along the axis of least inertia that has the body's largest inertia, (3,), [m]."""
    moments, axes = np.linalg.eigh(np.asarray(inertia.tensor, dtype=float))
    return axes[:, 0] * np.sqrt(3.0 * moments[-1] / inertia.mass)


def _child_joints(robot: Robot, link: int) -> list[Array]:
    """Return the origins of the children of a link in its axes, (3,) each, [m], with all joints at zero."""
    R, o = link_poses(robot, robot.neutral())
    names = [other.name for other in robot.links]
    children = [names.index(child) for child in robot.graph.successors(names[link])]
    return [R[link].T @ (o[child] - o[link]) for child in children]


def _distinct(points: list[Array]) -> list[Array]:
    """Return the points that coincide neither with the origin nor with each other."""
    found = [np.zeros(3)]
    for p in points:
        if all(np.linalg.norm(p - other) > _MERGE_DISTANCE for other in found):
            found.append(p)
    return found[1:]


def _polygon(points: list[Array], nodes: list[int]) -> list[tuple[int, int]]:
    """Return the edges of a closed polygon through the nodes, sorted by angle around their mean in their plane."""
    rays = np.array(points) - np.mean(points, axis=0)
    plane = np.linalg.svd(rays)[2][:2]
    order = np.argsort(np.arctan2(rays @ plane[1], rays @ plane[0]))
    return [(nodes[a], nodes[b]) for a, b in zip(order, np.roll(order, -1), strict=True)]
