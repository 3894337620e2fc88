"""A scene on the server of the viewer, with its contact forces and balance points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from legged.viewer.meshes import bytes_of, color_bytes, revolved, rotation_to
from legged.viewer.motion import Motion, quaternions
from legged.viewer.scene import Scene

Array = np.ndarray
FORCE, CONE, CENTER, CAPTURE, SUPPORT, PATH = "#d2452d", "#b08a1e", "#1b7f5c", "#e08a00", "#2f6db5", "#6f9fd0"
FOOTSTEP = "#8a3fb0"
OVERLAYS = {
    "forces": ("contact forces", True),
    "feet": ("contact points", False),
    "cones": ("friction cones", False),
    "center": ("center of mass", False),
    "capture": ("capture point", False),
    "support": ("support polygon", True),
    "footsteps": ("planned footsteps", False),
}
"""Overlays by name: their label, and whether they are shown at the start."""


class HasServer(Protocol):
    """A viewer, of which an actor needs the `viser.ViserServer`."""

    server: Any


class Actor:
    """A scene on the server, with its overlays.

    Args:
        viewer: The viewer. name: Unique name. scene: The geometry.
        offset: Displacement of the scene, (3,), [m], world axes. opacity: Below 1 for a ghost.
        normal: Normal of the ground, (3,), the axis of friction cones. obstacles: Whether to draw the obstacles.
    """

    def __init__(
        self,
        viewer: HasServer,
        name: str,
        scene: Scene,
        offset: Sequence[float] = (0.0, 0.0, 0.0),
        opacity: float = 1.0,
        normal: Array | None = None,
        obstacles: bool = True,
    ):
        self.scene, self._server, self._name = scene, viewer.server, f"/world/{name}"
        self._shown = {overlay: shown for overlay, (_, shown) in OVERLAYS.items()}
        self._last: Motion | None = None
        self._handles: dict[str, Any] = {}
        self._cones: list[Any] = []
        self._axis = quaternions(rotation_to(np.array([0.0, 0.0, 1.0]) if normal is None else normal))
        add = viewer.server.scene
        self.root = add.add_frame(self._name, show_axes=False, position=np.array(offset, float))
        self._frames = []
        for k, part in enumerate(scene.parts):
            self._frames.append(add.add_frame(f"{self._name}/{k}", show_axes=False))
            for i, placed in enumerate(part.geometry):
                add.add_mesh_simple(
                    f"{self._name}/{k}/{i}",
                    placed.mesh.vertices,
                    placed.mesh.faces,
                    color=bytes_of(placed.mesh.color),
                    opacity=None if opacity >= 1.0 else opacity,
                    flat_shading=True,
                    cast_shadow=opacity >= 1.0,
                    wxyz=quaternions(placed.rotation),
                    position=placed.position,
                )
        for k, mesh in enumerate(scene.obstacles if obstacles else ()):
            add.add_mesh_simple(
                f"{self._name}/obstacle {k}", mesh.vertices, mesh.faces, color=bytes_of(mesh.color), flat_shading=True
            )

    def sign(self, text: str) -> None:
        """Add a text over the base of the robot, which moves with it.

        Args:
            text: The text.
        """
        at, name = (0.0, 0.0, 0.4 * self.scene.size), f"{self._name}/0/name"
        self._server.scene.add_label(name, text, position=at, anchor="bottom-center")

    def toggle(self, overlay: str, shown: bool) -> None:
        """Show or hide an overlay.

        Args:
            overlay: Key of `OVERLAYS`. shown: Whether to show it.
        """
        self._shown[overlay] = shown
        if self._last is not None:
            with self._server.atomic():
                self._show_overlays(self._last)

    def show(self, motion: Motion) -> None:
        """Show the only sample of a motion.

        Args:
            motion: A motion of one sample.
        """
        with self._server.atomic():
            for frame, rotation, position in zip(self._frames, motion.rotations[0], motion.positions[0], strict=True):
                frame.wxyz, frame.position = rotation, position
            self._show_overlays(motion)
        self._last = motion

    def _show_overlays(self, motion: Motion) -> None:
        size, points, forces = self.scene.size, motion.points[0], motion.forces[0]
        lengths = np.linalg.norm(forces, axis=1) * 0.7 * size / (self.scene.weight or 1.0)
        loaded = lengths > 1e-3 * size
        ends = points + forces * 0.7 * size / (self.scene.weight or 1.0)
        arrows = np.stack([points, ends], axis=1)[loaded]
        self._set("forces", arrows if loaded.any() else None, self._new_arrows)
        self._set("feet", points if len(points) else None, self._new_points)
        self._show_cones(points, loaded)
        center, capture = motion.center_of_mass[0], motion.capture_point[0]
        self._set("center", None if np.isnan(center[0]) else center, self._new_center)
        self._set("capture", None if np.isnan(capture[0]) else capture, self._new_capture)
        corners = points[motion.support[0][motion.support[0] >= 0]]
        edges = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1) if len(corners) > 1 else None
        self._set("support", edges, self._new_support)
        planned = motion.footsteps[0][np.isfinite(motion.footsteps[0, :, 0])]
        self._set("footsteps", planned if len(planned) else None, self._new_footsteps)

    def _set(self, overlay: str, value: Array | None, new: Callable[[str, Array], Any]) -> None:
        """Move an overlay, or hide it; `new` creates it when it is shown for the first time."""
        visible = self._shown[overlay] and value is not None
        handle = self._handles.get(overlay)
        if not visible or value is None:
            if handle is not None and handle.visible:
                handle.visible = False
            return
        if handle is None:
            self._handles[overlay] = new(f"{self._name}/{overlay}", value)
            return
        if value.ndim == 1:
            handle.position = value
        else:
            handle.points = np.asarray(value, np.float32)
        if not handle.visible:
            handle.visible = True

    def _new_arrows(self, name: str, ends: Array) -> Any:
        size = self.scene.size
        shape: Any = {"shaft_radius": 0.012 * size, "head_radius": 0.032 * size, "head_length": 0.09 * size}
        return self._server.scene.add_arrows(name, ends, color_bytes(FORCE), **shape)

    def _new_points(self, name: str, points: Array) -> Any:
        size = 0.03 * self.scene.size
        return self._server.scene.add_point_cloud(
            name, points, color_bytes(FORCE), point_size=size, point_shape="circle"
        )

    def _new_center(self, name: str, center: Array) -> Any:
        radius = 0.035 * self.scene.size
        return self._server.scene.add_icosphere(name, radius, color=color_bytes(CENTER), position=tuple(center))

    def _new_capture(self, name: str, point: Array) -> Any:
        size = self.scene.size
        rim = [(0.035 * size, 0.004 * size), (0.05 * size, 0.004 * size), (0.05 * size, 0.0), (0.035 * size, 0.0)]
        vertices, faces = revolved([*rim, rim[0]])
        return self._server.scene.add_mesh_simple(
            name, vertices, faces, color=color_bytes(CAPTURE), side="double", position=tuple(point)
        )

    def _new_support(self, name: str, edges: Array) -> Any:
        return self._server.scene.add_line_segments(
            name, edges, color_bytes(SUPPORT), thickness=3.0, thickness_units="screen"
        )

    def _new_footsteps(self, name: str, points: Array) -> Any:
        return self._server.scene.add_point_cloud(
            name, points, color_bytes(FOOTSTEP), point_size=0.06 * self.scene.size, point_shape="circle"
        )

    def _show_cones(self, points: Array, loaded: Array) -> None:
        shown = self._shown["cones"] and self.scene.friction > 0.0
        if shown and not self._cones:
            height = 0.22 * self.scene.size
            vertices, faces = revolved([(self.scene.friction * height, height), (0.0, 0.0)])
            for k in range(len(points)):
                self._cones.append(
                    self._server.scene.add_mesh_simple(
                        f"{self._name}/cone {k}",
                        vertices,
                        faces,
                        color=color_bytes(CONE),
                        opacity=0.35,
                        side="double",
                        cast_shadow=False,
                        wxyz=self._axis,
                    )
                )
        for k, cone in enumerate(self._cones):
            visible = bool(shown and loaded[k])
            if cone.visible != visible:
                cone.visible = visible
            if visible:
                cone.position = points[k]
