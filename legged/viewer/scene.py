"""The geometry of a robot and its surroundings, which all viewers draw: rigid parts, contacts and the ground.

A part moves as one body: it is a group of links fixed to each other, or a free body. Its geometry consists of the
visual meshes of the robot file, or else of the shapes of its links, or else of capsules along the lines of the stick
figure.
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
    heads: dict[int, list[PlacedLink]] = {}
    for link in robot.links:
        heads.setdefault(link.body, []).append(link)
    rotations, origins = link_poses(robot, robot.neutral())
    nodes = drawing.nodes(rotations[None], origins[None], np.zeros((1, 0, 7)))[0]
    sticks = _sticks(robot, drawing, nodes)
    parts, links = list[Part](), list[int]()
    budget = _budget(visuals, faces)
    for body, fixed in heads.items():
        geometry = [placed for link in fixed for placed in _visual_geometry(link, fixed[0], visuals, budget, notes)]
        color = _module_color(robot, body)
        if not geometry:
            geometry = [_placed(mesh_of(s, color), link, fixed[0]) for link in fixed for s in link.shapes]
        if not geometry and (not visuals or any(link.name in visuals for link in fixed)):
            lines = [_placed(mesh, link, fixed[0]) for link in fixed for mesh in sticks.get(link.index, ())]
            geometry = lines or [_placed(_ball(link), link, fixed[0]) for link in fixed if link.inertia.mass]
        if geometry:
            parts.append(Part(fixed[0].name, tuple(geometry)))
            links.append(fixed[0].index)
    bodies = (
        Part(name, tuple(Placed(mesh_of(s, FREE_BODY), np.eye(3), np.zeros(3)) for s in shapes))
        for name, shapes in model.bodies.items()
    )
    size = float(np.linalg.norm(np.ptp(nodes, axis=0))) or _extent(parts)
    return Scene(
        robot.name,
        (*parts, *bodies),
        np.array(links, dtype=int),
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
    """Return the visual meshes of a link in the axes of the first link of its part, and add messages to the notes."""
    pieces = []
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
            pieces.append(Placed(mesh, rotation, position))
    return pieces


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
    for vertices, faces, own in _opened(path):
        vertices, faces = _simplified(vertices, faces, budget)
        if np.prod(scale) < 0.0:
            faces = faces[:, ::-1]
        white = color is None or min(color) > 0.99
        meshes.append(Mesh(vertices * scale, faces, (own or color or METAL) if white else color or METAL))
    return tuple(meshes)


@lru_cache(maxsize=256)
def _opened(path: str) -> list[tuple[Array, Array, Color | None]]:
    return opened_mesh(path)


def _budget(visuals: dict[str, list[Visual]], most: int) -> float:
    """Return the number of triangles to which each mesh is limited, so that all meshes together have at most `most`."""
    counts: dict[object, int] = {}
    for visual in (visual for own in visuals.values() for visual in own):
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
    """Return the capsules of the stick figure of each link that carries some, by its index, in link axes."""
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
