"""`Scene`: the geometry of a robot, free bodies and obstacles, which all viewers draw in the poses that they compute.

`scene_of` makes it from a robot, `scene_of_run` from a run. A part moves as one body: it is a group of links fixed to
each other, or a free body. The geometry of a group of links is, in this order of preference,

1. the visual meshes of the robot file, simplified if all of them together have too many triangles,
2. the shapes of the links,
3. capsules along the lines of the stick figure, or a ball with the inertia of a link without lines.

It is given in the axes of the first link of the group, its *head*.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from legged.dynamics.kinematics import link_poses
from legged.errors import FileError, LeggedError
from legged.files.description import SOLIDS
from legged.files.visuals import Visual, opened_mesh, visuals_of
from legged.robot.link import PlacedLink
from legged.robot.modules import COLORS
from legged.robot.robot import Robot
from legged.robot.shapes import Sphere
from legged.simulation.results.records import ModelRecord
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import Drawing, drawing_of
from legged.viewer.meshes import Color, Mesh, Placed, capsule_between, mesh_of

Array = np.ndarray
BASE, FREE_BODY, OBSTACLE, METAL = (0.16, 0.25, 0.40), (0.60, 0.47, 0.32), (0.70, 0.68, 0.64), (0.72, 0.73, 0.75)
"""Colors: of the base without visual meshes, of free bodies and obstacles, and of meshes without a color."""
MODULES: tuple[Color, ...] = tuple(
    (int(color[1:3], 16) / 255, int(color[3:5], 16) / 255, int(color[5:], 16) / 255) for color in COLORS
)
"""Colors of kinematic modules without visual meshes."""
MOST_FACES = 60_000
"""Number of triangles of a scene above which meshes are simplified."""
_ROD = 0.022  # radius of the capsules of a stick figure relative to its size


@dataclass(frozen=True, eq=False)
class Part:
    """Geometry that moves as one body.

    Attributes:
        name: Name of the link or free body whose axes the geometry refers to.
        geometry: Meshes with their poses.
    """

    name: str
    geometry: tuple[Placed, ...]


@dataclass(frozen=True, eq=False)
class Scene:
    """The geometry that a viewer draws: parts of the robot, free bodies and obstacles, without poses.

    Attributes:
        name: Title.
        parts: Parts of the robot, then those of the free bodies.
        links: Index in `robot.links` of the link of each part of the robot, (p,); empty without a robot.
        obstacles: Fixed shapes, world axes.
        size: Extent of the robot at its neutral configuration, [m].
        weight: Weight of the robot, [N], which scales the arrows of forces; 0 if it is unknown.
        friction: Coulomb friction coefficient of the ground, 0 if it is unknown.
        notes: Differences from the robot file, such as missing meshes, one sentence each.
    """

    name: str
    parts: tuple[Part, ...]
    links: Array
    obstacles: tuple[Mesh, ...]
    size: float
    weight: float
    friction: float
    notes: tuple[str, ...] = ()


def scene_of(model: ModelRecord, faces: int = MOST_FACES) -> Scene:
    """Return the geometry of a robot, free bodies and obstacles.

    Args:
        model: The robot, free bodies and obstacles.
        faces: Number of triangles above which the meshes of the robot's file are simplified.
    """
    robot = model.robot
    drawing = drawing_of(robot)
    visuals, notes = _visuals(model)
    rotations, origins = link_poses(robot, robot.neutral())
    nodes = drawing.nodes(rotations[None], origins[None], np.zeros((1, 0, 7)))[0]
    sticks = _sticks(robot, drawing, nodes)
    links_of: dict[int, list[PlacedLink]] = {}  # by body
    for link in robot.links:
        links_of.setdefault(link.body, []).append(link)
    parts, heads = list[Part](), list[int]()
    budget = _budget(visuals, faces)
    for body, links in links_of.items():
        geometry = [placed for link in links for placed in _visual_geometry(link, links[0], visuals, budget, notes)]
        color = _module_color(robot, body)
        if not geometry:
            geometry = [_placed(mesh_of(s, color), link, links[0]) for link in links for s in link.shapes]
        # Beside links with visual meshes, those without are not meant to be seen; missing meshes are replaced.
        if not geometry and (not visuals or any(link.name in visuals for link in links)):
            lines = [_placed(mesh, link, links[0]) for link in links for mesh in sticks.get(link.index, ())]
            geometry = lines or [_placed(_ball(link), link, links[0]) for link in links if link.inertia.mass]
        if geometry:
            parts.append(Part(links[0].name, tuple(geometry)))
            heads.append(links[0].index)
    bodies = (
        Part(name, tuple(Placed(mesh_of(s, FREE_BODY), np.eye(3), np.zeros(3)) for s in shapes))
        for name, shapes in model.bodies.items()
    )
    size = float(np.linalg.norm(np.ptp(nodes, axis=0))) or _extent(parts)
    return Scene(
        robot.name,
        (*parts, *bodies),
        np.array(heads, dtype=int),
        tuple(mesh_of(shape, OBSTACLE) for shape in model.obstacles),
        size,
        float(robot.mass * np.linalg.norm(robot.gravity)),
        model.friction,
        tuple(dict.fromkeys(notes)),
    )


def scene_of_run(run: Run, faces: int = MOST_FACES) -> Scene:
    """Return the geometry of a run; capsules along the lines of its stick figure if the run has no model.

    Args:
        run: The run. faces: As in `scene_of`.
    """
    if run.model is not None:
        return scene_of(run.model, faces)
    nodes, edges = run.figure.nodes[0], run.figure.edges
    size, parts = float(np.linalg.norm(np.ptp(run.figure.robot_nodes[0], axis=0))), []
    for k, (a, b) in enumerate(edges.tolist()):
        thickness = (0.3 if run.figure.is_shape[k] else 1.0) * _ROD * size
        color = MODULES[int(run.figure.modules[k]) % len(MODULES)]
        half = np.array([0.0, 0.0, float(np.linalg.norm(nodes[b] - nodes[a])) / 2.0])
        mesh = capsule_between(-half, half, thickness, color)
        parts.append(Part(f"line {k}", (Placed(mesh, np.eye(3), np.zeros(3)),)))
    notes = ("the run has no model of the robot; its stick figure is shown",)
    return Scene(run.robot, tuple(parts), np.zeros(0, int), (), size, 0.0, 0.0, notes)


# Visual meshes of the robot's file


def _visuals(model: ModelRecord) -> tuple[dict[str, list[Visual]], list[str]]:
    """Return (visual shapes by link name, messages about missing files) of the robot file."""
    if not model.source:
        return {}, []
    if not os.path.isfile(model.source):  # false for names that no file can have
        return {}, [f"the file {model.source!r} of the robot is not there; its visual meshes are not shown"]
    try:
        return visuals_of(model.robot, model.source), []
    except FileError as error:
        return {}, [f"the visual meshes are not shown: {error}"]


def _visual_geometry(
    link: PlacedLink, head: PlacedLink, visuals: dict[str, list[Visual]], budget: float, notes: list[str]
) -> list[Placed]:
    """Return the visual meshes of a link in the axes of the head of its part, and add messages to the notes.

    Args:
        link, head: The link and the head. visuals: Visual shapes by link name.
        budget: Largest number of triangles of a mesh. notes: Receives a message for each shape that is not shown.
    """
    geometry = []
    for visual in visuals.get(link.name, ()):
        shape = visual.shape
        try:
            meshes = _meshes(visual, budget)
        except LeggedError as error:
            notes.append(f"a visual shape of link {link.name!r} is not shown: {error}")
            continue
        for mesh in meshes:
            placed = _placed(mesh, link, head)
            rotation, position = placed.rotation @ shape.rotation, placed.rotation @ shape.position + placed.position
            geometry.append(Placed(mesh, rotation, position))
    return geometry


def _meshes(visual: Visual, budget: float) -> list[Mesh]:
    """Return the meshes of a visual shape, in its own axes.

    Raises:
        FileError: The file of a mesh is missing or damaged, or trimesh is not installed.
        DefinitionError: A size is not positive.
    """
    shape, color = visual.shape, visual.color
    if shape.vertices is not None:
        assert visual.faces is not None
        return [Mesh(*_simplified(shape.vertices, visual.faces, budget), color or METAL)]
    if not shape.is_mesh:
        return [mesh_of(SOLIDS[shape.kind].make(shape.size, np.zeros(3), np.eye(3)), color or METAL)]
    if not shape.mesh:
        raise FileError(visual.named, "the visual mesh was not found; put it there, or set ROS_PACKAGE_PATH")
    return list(_file_meshes(shape.mesh, shape.scale, color, budget))


@lru_cache(maxsize=256)
def _file_meshes(path: str, scale: tuple[float, ...], color: Color | None, budget: float) -> tuple[Mesh, ...]:
    """Return the meshes of a file; a color of the robot file other than white replaces those of the meshes."""
    meshes = []
    has_color = color is not None and min(color) <= 0.99
    for vertices, faces, color_of_mesh in _opened(path):
        vertices, faces = _simplified(vertices, faces, budget)
        if np.prod(scale) < 0.0:  # a reflection turns faces inside out
            faces = faces[:, ::-1]
        chosen = color if has_color else color_of_mesh or color
        meshes.append(Mesh(vertices * scale, faces, chosen or METAL))
    return tuple(meshes)


@lru_cache(maxsize=256)
def _opened(path: str) -> list[tuple[Array, Array, Color | None]]:
    return opened_mesh(path)


def _budget(visuals: dict[str, list[Visual]], most: int) -> float:
    """Return the number of triangles to which each mesh is limited, so that all meshes together have at most `most`.

    Meshes that have no more than an equal share of the triangles keep all of theirs; the larger ones get equal shares
    of the rest, at least 32. A mesh that several links show is counted once. The limit is infinite if none is needed.
    """
    counts: dict[object, int] = {}
    for visual in (visual for shapes in visuals.values() for visual in shapes):
        if visual.faces is not None:
            counts[id(visual.faces)] = len(visual.faces)
        elif visual.shape.mesh:
            try:
                parts = _opened(visual.shape.mesh)
            except FileError:
                continue
            for k, (_, faces, _) in enumerate(parts):
                counts[visual.shape.mesh, k] = len(faces)
    ordered, left = sorted(counts.values()), float(most)
    for k, count in enumerate(ordered):
        if count * (len(ordered) - k) > left:
            return max(left / (len(ordered) - k), 32.0)
        left -= count
    return np.inf


def _simplified(vertices: Array, faces: Array, most: float) -> tuple[Array, Array]:
    """Return a mesh with at most about `most` triangles, by quadric error decimation."""
    if len(faces) <= most:
        return vertices, faces
    try:
        import fast_simplification
    except ImportError as error:
        words = f"a mesh of {len(faces)} triangles needs fast-simplification: pip install 'legged[view]'"
        raise FileError("visual meshes", words) from error
    simplified = fast_simplification.simplify(vertices.astype(float), faces.astype(np.int32), target_count=int(most))
    return np.asarray(simplified[0], float), np.asarray(simplified[1])


# Shapes and stick figures


def _placed(mesh: Mesh, link: PlacedLink, head: PlacedLink) -> Placed:
    """Return a mesh in link axes, placed in the axes of another link of the same body."""
    rotation = head.rotation.T @ link.rotation
    return Placed(mesh, rotation, head.rotation.T @ (link.position - head.position))


def _ball(link: PlacedLink) -> Mesh:
    """Return the solid ball with the mass and the largest moment of inertia of a link, in link axes."""
    inertia = link.inertia
    moment = float(np.linalg.eigvalsh(np.asarray(inertia.tensor, float))[-1])
    radius = max(np.sqrt(2.5 * moment / float(inertia.mass)), 0.01)  # [m]
    return mesh_of(Sphere(radius, np.asarray(inertia.center, float)), METAL)


def _extent(parts: list[Part]) -> float:
    """Return the size of the largest mesh, [m]; 1 m without meshes."""
    sizes = [np.linalg.norm(np.ptp(placed.mesh.vertices, axis=0)) for part in parts for placed in part.geometry]
    return float(max(sizes, default=1.0))


def _module_color(robot: Robot, body: int) -> Color:
    module = next(module.index for module in robot.modules if body in module.bodies)
    return BASE if module == 0 else MODULES[(module - 1) % len(MODULES)]


def _sticks(robot: Robot, drawing: Drawing, nodes: Array) -> dict[int, list[Mesh]]:
    """Return the capsules of the stick figure of each link, by its index, in link axes; contact points are spheres.

    Args:
        robot: The robot. drawing: Its stick figure. nodes: Nodes of the figure, (k, 3), [m], those of sticks first.
    """
    points = [(link, place) for link, places in drawing.sticks for place in places]
    size = float(np.linalg.norm(np.ptp(nodes[: len(points)], axis=0)))
    meshes: dict[int, list[Mesh]] = {}
    for (a, b), module, is_shape in zip(drawing.edges.tolist(), drawing.modules, drawing.is_shape, strict=True):
        if not is_shape:
            (link, start), (_, end) = points[a], points[b]
            color = BASE if module == 0 else MODULES[(int(module) - 1) % len(MODULES)]
            meshes.setdefault(link, []).append(capsule_between(start, end, _ROD * size, color))
    for contact in robot.contacts:
        foot = Sphere(max(contact.radius, 1.4 * _ROD * size), contact.position)
        meshes.setdefault(contact.link, []).append(mesh_of(foot, METAL))
    return meshes
