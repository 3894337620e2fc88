"""Stick-figure animations of a run: GIF pictures, or one HTML page that plays, pauses and turns."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from legged.errors import LeggedError
from legged.simulation.camera import Camera, camera_for, force_scale, stick_size, visible_ground
from legged.simulation.player import PAGE
from legged.simulation.run import Run
from legged.simulation.skeleton import FREE

Array = np.ndarray
_MODULES = ("#2f6db5", "#3f9a86", "#7a62b8", "#b08a1e", "#5b7f3a", "#a3567e")
_BODY, _FORCE, _GROUND, _EARTH, _PATH = "#1f3d66", "#c8502d", "#b9b9b9", "#e9e6df", "#8fb3d9"
_FREE = "#8a6f4d"
_OTHERS = (_BODY, _FREE, _FORCE, _GROUND, _EARTH, _PATH, "black")


def animate(run: Run, path: str | Path, *, fps: float = 20.0, speed: float = 1.0) -> Path:
    """Write an animation of a run and return its path.

    Args:
        run: What to show.
        path: A .gif file, or an .html file, which needs nothing else and plays in any browser.
        fps: Pictures per second. speed: How much faster than life.

    Raises:
        LeggedError: For another kind of file.
    """
    path = Path(path)
    if path.suffix == ".gif":
        return _gif(run, path, fps, speed)
    if path.suffix == ".html":
        return _html(run, path, fps, speed)
    raise LeggedError(f"an animation is a .gif or an .html file, not {path.name!r}")


def frame(run: Run, t: float) -> Figure:
    """Return one picture of a run, at the sample nearest to time t, [s]."""
    stage = _Stage(run)
    stage.show(run.at(t))
    return stage.figure


def _moments(run: Run, fps: float, speed: float) -> list[int]:
    """Return the samples to show."""
    return [run.at(t) for t in np.arange(run.times[0], run.times[-1] + 1e-9, speed / fps)]


def _edge_colors(run: Run) -> list[str]:
    """Return a color for each line: dark for the base, one for each module, one for all free bodies."""
    known = {0: _BODY, FREE: _FREE}
    modules = run.edge_modules.tolist()
    return [known[k] if k in known else _MODULES[(k - 1) % len(_MODULES)] for k in modules]


class _Stage:
    """A figure whose lines are moved from moment to moment; the view goes along with the base."""

    def __init__(self, run: Run, width: float = 6.4, height: float = 4.8):
        self.run, self.camera = run, camera_for(run)
        self.figure = Figure(figsize=(width, height), dpi=80)
        self.ax = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.ax.set_axis_off()
        self.span = 1.15 * max(stick_size(run), 0.1)
        self.aspect = width / height
        self.scale = force_scale(run)
        self._draw_ground(self.camera)
        base = self.camera.picture(run.base_position)
        self.ax.plot(base[:, 0], base[:, 1], color=_PATH, linewidth=0.8)
        self.links = LineCollection([], colors=_edge_colors(run), linewidths=3.0, capstyle="round")
        self.forces = LineCollection([], colors=_FORCE, linewidths=1.6)
        self.ax.add_collection(self.forces)
        self.ax.add_collection(self.links)
        self.text = self.ax.text(0.02, 0.95, "", transform=self.ax.transAxes, family="monospace", fontsize=10)
        self.middle = self._middle()

    def _draw_ground(self, camera: Camera) -> None:
        lines = [camera.picture(line) for line in visible_ground(self.run, camera)]
        if camera.side and lines:
            self.ax.fill_between(lines[0][:, 0], lines[0][:, 1], lines[0][:, 1].min() - 10.0, color=_EARTH)
        self.ax.add_collection(LineCollection(lines, colors=_GROUND, linewidths=1.2 if camera.side else 0.6))

    def _middle(self) -> Array:
        """Return where to look at each moment, (T, 2): the robot's middle, smoothed over time."""
        picture = self.camera.picture(self.run.figure)
        middle = (picture.min(axis=1) + picture.max(axis=1)) / 2
        n = max(1, len(self.run) // 20)
        padded = np.pad(middle, ((n, n), (0, 0)), mode="edge")
        window = np.ones(2 * n + 1) / (2 * n + 1)
        return np.stack([np.convolve(padded[:, i], window, mode="valid") for i in range(2)], axis=1)

    def show(self, k: int) -> None:
        """Show sample k."""
        run = self.run
        picture = self.camera.picture(run.skeleton[k])
        self.links.set_segments(list(picture[run.edges]))
        points = run.contact_points[k]
        ends = self.camera.picture(np.stack([points, points + self.scale * run.contact_forces[k]], axis=1))
        self.forces.set_segments(list(ends.reshape(-1, 2, 2)))
        x, y = self.middle[k]
        self.ax.set_xlim(x - self.span * self.aspect / 1.5, x + self.span * self.aspect / 1.5)
        self.ax.set_ylim(y - self.span / 1.5, y + self.span / 1.5)
        self.text.set_text(f"{run.robot}   t = {run.times[k]:5.2f} s")


def _gif(run: Run, path: Path, fps: float, speed: float) -> Path:
    stage = _Stage(run)
    canvas = FigureCanvasAgg(stage.figure)
    palette, pictures = _palette(), []
    for k in _moments(run, fps, speed):
        stage.show(k)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        pictures.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)
    return path


def _palette() -> Image.Image:
    """Return the colors of all pictures: those in use, each in steps to white."""
    shades = np.linspace(0.0, 1.0, 12)[:, None]
    rgb = [255 * ((1 - shades) * np.array(to_rgb(color)) + shades) for color in (*_MODULES, *_OTHERS)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.concatenate(rgb).round().astype(np.uint8).ravel().tolist())
    return palette


def _html(run: Run, path: Path, fps: float, speed: float) -> Path:
    moments, camera = _moments(run, fps, speed), camera_for(run)
    scene = {
        "title": run.robot,
        "side": camera.side,
        "interval": 1000.0 / fps,
        "times": np.round(run.times[moments], 4).tolist(),
        "nodes": np.round(run.skeleton[moments], 4).tolist(),
        "edges": run.edges.tolist(),
        "colors": _edge_colors(run),
        "points": np.round(run.contact_points[moments], 4).tolist(),
        "forces": np.round(run.contact_forces[moments] * force_scale(run), 4).tolist(),
        "base": np.round(run.base_position[moments], 4).tolist(),
        "ground": [np.round(line[:: 1 if camera.side else 6], 4).tolist() for line in visible_ground(run, camera)],
        "span": stick_size(run),
    }
    filled = PAGE.replace("/*SCENE*/", json.dumps(scene, separators=(",", ":")).replace("</", "<\\/"))
    path.write_text(filled, encoding="utf-8")
    return path
