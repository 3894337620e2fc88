"""The stick figure of a robot, and the piece of ground that it moved over."""

from __future__ import annotations

import numpy as np

from legged.ground.ground import Ground
from legged.robot.robot import Robot

Array = np.ndarray
_SAME = 1e-6  # [m], closer points are one


class _Sketch:
    """Nodes (link, position in link axes) and lines between them."""

    def __init__(self) -> None:
        self.nodes: list[tuple[str | int, Array]] = []
        self.edges: list[tuple[int, int]] = []

    def node(self, link: int, position: Array) -> int:
        self.nodes.append((link, np.asarray(position, dtype=float)))
        return len(self.nodes) - 1

    def line(self, a: int, b: int) -> None:
        self.edges.append((a, b))


def stick_figure(robot: Robot) -> tuple[list[tuple[str | int, Array]], Array]:
    """Return (nodes, edges) of a robot's stick figure.

    A link is drawn from its own origin to the joints and contact points on it, or around them if there are three and
    more; a link with none, and a base with all its joints in one place, on through its centre of mass.

    Returns:
        nodes: (link index, position in link axes) each. edges: (e, 2), pairs of nodes.
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
        if len(marks) == 1 and link.index == 0:
            sketch.line(origins[0], sketch.node(0, 2 * center - sketch.nodes[marks[0]][1]))
    return sketch.nodes, np.array(sketch.edges, dtype=int).reshape(-1, 2)


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


def surface_under(ground: Ground | None, places: Array, margin: float = 0.5, most: int = 200) -> tuple[Array, Array]:
    """Return (mesh (a, b, 3), mean normal (3,)) of the ground around places (k, 3), [m], world."""
    if ground is None or not len(places):
        return np.zeros((0, 0, 3)), np.array([0.0, 0.0, 1.0])
    low, high = places.min(axis=0) - margin, places.max(axis=0) + margin
    n_x, n_y = (int(np.clip((high[i] - low[i]) / 0.02, 2, n)) for i, n in ((0, most), (1, 30)))
    x, y = np.meshgrid(np.linspace(low[0], high[0], n_x), np.linspace(low[1], high[1], n_y), indexing="ij")
    z = np.broadcast_to(ground.terrain.height(x, y), x.shape)
    normal = np.broadcast_to(ground.terrain.normal(x, y), (*x.shape, 3)).mean(axis=(0, 1))
    return np.stack([x, y, z], axis=-1), normal / np.linalg.norm(normal)
