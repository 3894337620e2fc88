"""The viser server of the viewer, with the ground, the camera and the check boxes of overlays."""

from __future__ import annotations

import contextlib
import io
import secrets
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from legged.errors import MissingError
from legged.output import as_html, paragraphs
from legged.simulation.results.stick_figure import GRID_SPACING
from legged.viewer.actor import OVERLAYS, Actor
from legged.viewer.gate import Gate, Page, check_host, guarded
from legged.viewer.meshes import grid_faces

Array = np.ndarray
_BACKGROUND = (222, 229, 238)  # darker than pale robots; red, green and blue
_AMBIENT = 0.25  # intensity of the light from the surroundings; at viser's 1.0 pale robots are white
_NARROW = 600  # [pixel], width of a page whose lower part is covered by the panel
RATE = 60.0
"""Largest number of pictures per second."""
_ORBIT = 0.3
"""[rad/s], speed of a camera that orbits."""


class Viewer:
    """A server whose page shows a scene; it runs until `stop`, or until the process ends.

    Attributes:
        address: Address of the page, with the token in its path. Whoever has it can see and control what is shown.
        server: The `viser.ViserServer`, for further elements.
        frames: Number of pictures sent so far.
        content: The `Timeline`, `Poser` or `Live` object that the controls of the page belong to.
        overlays: Check box of each overlay, by its name in `OVERLAYS`.
    """

    content: Any = None

    def __init__(self, port: int, host: str, token: str | None = None):
        check_host(host)
        try:
            import viser
        except ImportError as error:
            raise MissingError(
                "viewing in the browser needs viser: pip install 'legged[view]'; run.save_html(path) needs nothing"
            ) from error
        token = secrets.token_urlsafe(12) if token is None else token
        self._gate = Gate(host, token)
        with guarded(self._gate), contextlib.redirect_stdout(io.StringIO()):  # its address lacks the token
            self.server = viser.ViserServer(host=host, port=port, verbose=False)
        self.server.scene.set_up_direction("+z")
        self.server.gui.main_panel.dock_right()
        self.server.on_client_connect(self._aim_on_phone)
        self.server.scene.configure_environment_map(environment_intensity=_AMBIENT)
        self.server.scene.set_background_image(np.full((2, 2, 3), _BACKGROUND, np.uint8))
        name = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{self.server.get_port()}" + (f"/{token}/" if token else "")
        self.frames, self._grounds = 0, 0
        self._world = self.server.scene.add_frame("/world", show_axes=False)
        self.overlays: dict[str, Any] = {}
        self._follow: Any = None
        self._orbit: Any = None
        self._seen = time.perf_counter()
        self._start, self._followed, self._size = np.zeros(3), np.zeros(3), 1.0
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def __repr__(self) -> str:
        return f"<Viewer at {self.address}{', stopped' if self._stopped.is_set() else ''}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{as_html(self.address)}" style="width: 100%; height: 560px; border: 0"></iframe>'

    def note(self, *texts: str, **options: Any) -> Any:
        """Add a panel with texts, one paragraph each, and return its handle.

        Args:
            texts: The texts, none of which is read as Markdown or HTML. options: As in viser's `add_markdown`.
        """
        return self.server.gui.add_markdown(paragraphs(*texts), **options)

    def serve(self, name: str, page: Page) -> str:
        """Serve a page beside that of the scene, and return its address.

        Args:
            name: Last part of the address. page: As in `Gate.pages`.
        """
        self._gate.pages[f"/{name}"] = page
        return f"{self.address.rstrip('/')}/{name}"

    def stop(self) -> None:
        """End the server and the motion."""
        self._stopped.set()
        self._gate.is_closed = True
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(5.0)
        self.server.stop()

    def wait(self) -> None:
        """Return when the viewer is stopped, or after Ctrl-C, which stops it."""
        try:
            while not self._stopped.wait(0.2):
                pass
        except KeyboardInterrupt:
            self.stop()

    def repeat(self, update: Callable[[float], bool]) -> None:
        """Call a function at most `RATE` times a second in a thread, until the viewer is stopped.

        Args:
            update: Takes the time since the last call, [s], and returns whether it has shown another picture.
        """

        def run() -> None:
            last = due = time.perf_counter()
            while not self._stopped.is_set():
                now = time.perf_counter()
                self.frames += update(now - last)
                last, due = now, max(due, now - 1.0 / RATE) + 1.0 / RATE
                self._stopped.wait(max(due - time.perf_counter(), 1e-4))

        self._threads.append(threading.Thread(target=run, name="legged viewer", daemon=True))
        self._threads[-1].start()

    def camera(self, target: Array, size: float) -> None:
        """Place the camera beside a point on the pages that are opened from now on.

        Args:
            target: Position of the point, (3,), [m], world axes. size: Extent of the visible scene, [m].
        """
        self._start, self._size = np.array(target, float), size
        self._followed = self._start
        self.server.initial_camera.position = tuple(target + 1.7 * size * np.array([0.7, -1.0, 0.45]))
        self.server.initial_camera.look_at = tuple(target)

    def _aim_on_phone(self, client: Any) -> None:
        """Place the camera of a page as narrow as a phone so that the scene is above the panel of controls."""
        if client.camera.image_width < _NARROW:
            away, down = np.array([0.45, -0.64, 0.62]), np.array([0.36, -0.51, -0.78])  # down in the picture
            look_at = self._start + 0.9 * self._size * down
            client.camera.position = look_at + 3.0 * self._size * away
            client.camera.look_at = look_at

    def modules(self, pictures: Sequence[str]) -> None:
        """Add a folder with pictures of kinematic modules, closed at the start.

        Args:
            pictures: HTML elements, as from `legged.robot.diagram.drawing.svg_element`.
        """
        if pictures:
            with self.server.gui.add_folder("Kinematic modules", order=4.0, expand_by_default=False):
                self.server.gui.add_html("".join(pictures))

    def follow(self, target: Array) -> None:
        """Move the world so that a point stays before the camera, if the box "follow the robot" is checked.

        The world stands still while it is not checked, and moves on from there afterwards. With the box "orbit" the
        cameras of all pages turn about the place that they look at.

        Args:
            target: Position of the point, (3,), [m], world axes; its height is ignored.
        """
        if self._follow is not None and self._follow.value:
            self._world.position = tuple(self.displacement - (target - self._followed) * (1.0, 1.0, 0.0))
        self._followed = np.array(target, float)
        now = time.perf_counter()
        angle, self._seen = _ORBIT * min(now - self._seen, 1.0 / RATE * 4.0), now
        if self._orbit is not None and self._orbit.value:
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            for client in self.server.get_clients().values():
                center = np.asarray(client.camera.look_at)
                client.camera.position = center + turn @ (np.asarray(client.camera.position) - center)

    @property
    def displacement(self) -> Array:
        """Position of the world's origin in the scene that the pages show, (3,), [m]; see `follow`."""
        return np.array(self._world.position, dtype=float)

    def ground(self, surface: Array, lines: Array, offset: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Draw a ground in addition to those drawn before.

        Args:
            surface: Grid of points, (a, b, 3), [m], world axes. lines: Polylines, (n, k, 3), [m], world axes.
            offset: Displacement of the ground, (3,), [m], world axes.
        """
        scene, self._grounds = self.server.scene, self._grounds + 1
        name, place = f"/world/ground {self._grounds}", np.array(offset, float)
        if surface.size and float(np.ptp(surface[..., 2])) == 0.0:  # lines of grounds side by side coincide
            place[:2] = np.round(place[:2] / GRID_SPACING) * GRID_SPACING
        scene.add_frame(name, show_axes=False, position=place)
        if surface.size:
            faces = grid_faces(*surface.shape[:2])
            scene.add_mesh_simple(
                f"{name}/surface",
                surface.reshape(-1, 3),
                faces,
                color=(205, 201, 192),
                side="double",
                cast_shadow=False,
            )
        if lines.size:
            ends = np.stack([lines[:, :-1], lines[:, 1:]], axis=2).reshape(-1, 2, 3)
            ends[..., 2] += 2e-3  # [m], above the surface
            kept = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) > 0.0
            scene.add_line_segments(
                f"{name}/lines", ends[kept], (150, 145, 135), thickness=1.0, thickness_units="screen"
            )

    def overlay_boxes(self, actors: Sequence[Actor]) -> None:
        """Add a check box for each overlay.

        Args:
            actors: The scenes that have the overlays.
        """
        with self.server.gui.add_folder("Show", order=1.0):
            self._follow = self.server.gui.add_checkbox("follow the robot", True)
            self._orbit = self.server.gui.add_checkbox("orbit", False)
            for name, (label, shown) in OVERLAYS.items():
                box = self.overlays[name] = self.server.gui.add_checkbox(label, shown)

                @box.on_update
                def _(event: Any, name: str = name) -> None:
                    for actor in actors:
                        actor.toggle(name, event.target.value)


def is_interactive() -> bool:
    """Return whether Python reads further statements after this one: a prompt or a notebook."""
    return hasattr(sys, "ps1") or "ipykernel" in sys.modules
