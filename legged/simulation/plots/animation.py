"""Stick-figure animations of a run: GIF files, or HTML pages that play, pause and rotate."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.animation import FFMpegWriter
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image

from legged.arguments import instance, number
from legged.errors import ArgumentError, FileError, LeggedError, MissingError
from legged.output import as_label, as_script, output_file, replaced
from legged.robot.modules import COLORS
from legged.simulation.results.records import FREE
from legged.simulation.results.run import Run

Array = np.ndarray
_BODY, _FORCE, _GROUND, _EARTH, _PATH = "#1f3d66", "#c8502d", "#b9b9b9", "#e9e6df", "#8fb3d9"
_FREE = "#8a6f4d"
_OTHERS = (_BODY, _FREE, _FORCE, _GROUND, _EARTH, _PATH, "black")
_FLAT = 1e-6  # [m]: a run with less extent along y is shown from the side
_MARGIN = 1.15  # of the picture around what it shows


def animate(run: Run, path: str | Path, *, fps: float = 20.0, speed: float = 1.0) -> Path:
    """Write a stick-figure animation of a run and return its path.

    Args:
        run: The run.
        path: A .gif file, an .mp4 file, which needs ffmpeg, or an .html file, which is self-contained and
            plays in any browser. A missing folder is created.
        fps: Frames per second. speed: Playback speed relative to real time.

    Raises:
        ArgumentError: The run has no samples, or a rate is not positive.
        LeggedError: The suffix is none of these.
        MissingError: ffmpeg is not installed.
        FileError: The file cannot be written.
    """
    fps, speed = number("fps", fps, "1/s", above=0), number("speed", speed, above=0)
    if not len(run):
        raise ArgumentError("an animation needs a run with samples")
    file = Path(instance("path", path, (str, Path), "a text or a path"))
    write = {".gif": _gif, ".mp4": _mp4, ".html": _html}.get(file.suffix.lower())
    if write is None:
        raise LeggedError(f"an animation is a .gif, an .mp4 or an .html file, not {file.name!r}")
    if write is _mp4 and not FFMpegWriter.isAvailable():
        _packaged_ffmpeg(file)
    file = output_file(file)
    with replaced(file) as draft:
        write(run, draft, fps, speed)
    return file


def snapshot(run: Run, t: float) -> Figure:
    """Return a picture of the sample of a run nearest to time t.

    Args:
        run: The run. t: Time, [s].
    """
    scene = _Scene(run)
    scene.show(run.at(t))
    return scene.figure


def _frame_indices(run: Run, fps: float, speed: float) -> list[int]:
    """Return the index of the sample that each frame shows."""
    return [run.at(t) for t in np.arange(run.times[0], run.times[-1] + 1e-9, speed / fps)]


def _edge_colors(run: Run) -> list[str]:
    """Return a color for each line: dark for the base, one for each module, one for all free bodies."""
    known = {0: _BODY, FREE: _FREE}
    modules = run.figure.modules.tolist()
    return [known[k] if k in known else COLORS[(k - 1) % len(COLORS)] for k in modules]


def _edge_widths(run: Run) -> Array:
    """Return the width of each line, (e,), [point]: lines of shapes are thin."""
    return np.where(run.figure.is_shape, 1.0, 3.0)


class _Scene:
    """A figure whose lines are updated from frame to frame; the view follows the robot and the bodies around it."""

    def __init__(self, run: Run, width: float = 6.4, height: float = 4.8):
        self.run, self.camera = run, camera_for(run)
        self.figure = Figure(figsize=(width, height), dpi=80)
        self.ax = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.ax.set_axis_off()
        centers, size = view_of(run)
        self.span, self.center = _MARGIN * size, self.camera.project(centers)
        self.aspect = width / height
        self.scale = force_scale(run)
        self._draw_ground()
        base = self.camera.project(run.base.position)
        self.ax.plot(base[:, 0], base[:, 1], color=_PATH, linewidth=0.8)
        self.links = LineCollection([], colors=_edge_colors(run), linewidths=_edge_widths(run), capstyle="round")
        self.forces = LineCollection([], colors=_FORCE, linewidths=1.6)
        self.ax.add_collection(self.forces)
        self.ax.add_collection(self.links)
        self.text = self.ax.text(0.02, 0.95, "", transform=self.ax.transAxes, family="monospace", fontsize=10)

    def _draw_ground(self) -> None:
        is_side_view = self.camera.side
        lines = [self.camera.project(line) for line in _visible_ground(self.run, self.camera)]
        if is_side_view and lines:
            self.ax.fill_between(lines[0][:, 0], lines[0][:, 1], lines[0][:, 1].min() - 10.0, color=_EARTH)
        self.ax.add_collection(LineCollection(lines, colors=_GROUND, linewidths=1.2 if is_side_view else 0.6))

    def show(self, k: int) -> None:
        """Show sample k."""
        run = self.run
        picture = self.camera.project(run.figure.nodes[k])
        self.links.set_segments(list(picture[run.figure.edges]))
        points = run.contacts.points[k]
        ends = self.camera.project(np.stack([points, points + self.scale * run.contacts.forces[k]], axis=1))
        self.forces.set_segments(list(ends.reshape(-1, 2, 2)))
        x, y = self.center[k]
        self.ax.set_xlim(x - self.span * self.aspect / 1.5, x + self.span * self.aspect / 1.5)
        self.ax.set_ylim(y - self.span / 1.5, y + self.span / 1.5)
        self.text.set_text(f"{as_label(run.robot)}   t = {run.times[k]:5.2f} s")


def _gif(run: Run, path: Path, fps: float, speed: float) -> None:
    scene = _Scene(run)
    canvas = FigureCanvasAgg(scene.figure)
    palette, pictures = _palette(), []
    for k in _frame_indices(run, fps, speed):
        scene.show(k)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        pictures.append(image.quantize(palette=palette, dither=Image.Dither.NONE))
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=round(1000 / fps), loop=0)


def _mp4(run: Run, path: Path, fps: float, speed: float) -> None:
    with rc_context({} if FFMpegWriter.isAvailable() else {"animation.ffmpeg_path": _packaged_ffmpeg(path)}):
        scene = _Scene(run)
        FigureCanvasAgg(scene.figure)
        writer = FFMpegWriter(fps=fps)  # pyright: ignore[reportArgumentType]
        try:
            with writer.saving(scene.figure, str(path), dpi=scene.figure.dpi):
                for k in _frame_indices(run, fps, speed):
                    scene.show(k)
                    writer.grab_frame()
        except subprocess.CalledProcessError as error:
            raise FileError(str(path), f"ffmpeg ended with status {error.returncode}; is the disk full?") from error


def _packaged_ffmpeg(path: Path) -> str:
    """Return the program of the package imageio-ffmpeg."""
    try:
        import imageio_ffmpeg  # type: ignore[import-not-found]
    except ImportError:
        raise MissingError(
            f"writing {path.name!r} needs the program ffmpeg: install it, or pip install imageio-ffmpeg, or write a "
            f".gif or .html file"
        ) from None
    return imageio_ffmpeg.get_ffmpeg_exe()


def _palette() -> Image.Image:
    """Return the palette of all frames: each color in shades to white."""
    shades = np.linspace(0.0, 1.0, 12)[:, None]
    rgb = [255 * ((1 - shades) * np.array(to_rgb(color)) + shades) for color in (*COLORS, *_OTHERS)]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.concatenate(rgb).round().astype(np.uint8).ravel().tolist())
    return palette


def _html(run: Run, path: Path, fps: float, speed: float) -> None:
    frames, camera, (centers, size) = _frame_indices(run, fps, speed), camera_for(run), view_of(run)
    data = {
        "title": run.robot,
        "side": camera.side,
        "interval": 1000.0 / fps,
        "times": np.round(run.times[frames], 4).tolist(),
        "nodes": np.round(run.figure.nodes[frames], 4).tolist(),
        "edges": run.figure.edges.tolist(),
        "colors": _edge_colors(run),
        "widths": _edge_widths(run).tolist(),
        "centers": np.round(centers[frames], 4).tolist(),
        "points": np.round(run.contacts.points[frames], 4).tolist(),
        "forces": np.round(run.contacts.forces[frames] * force_scale(run), 4).tolist(),
        "base": np.round(run.base.position[frames], 4).tolist(),
        "ground": [np.round(_without_straight_points(line), 4).tolist() for line in _visible_ground(run, camera)],
        "span": size,
    }
    path.write_text(_PAGE.replace("/*SCENE*/", as_script(data)), encoding="utf-8")


@dataclass(frozen=True)
class Camera:
    """A parallel projection onto the picture plane.

    Attributes:
        axes: Right and up axis of the picture, unit vectors in world axes, (2, 3).
        side: True for the view along +y, right x and up z.
    """

    axes: Array
    side: bool

    def project(self, points: Array) -> Array:
        """Return points projected onto the picture, (..., 2), [m].

        Args:
            points: Points, (..., 3), [m], world axes.
        """
        return points @ self.axes.T


def camera_for(run: Run, azimuth: float = -60.0, elevation: float = 18.0) -> Camera:
    """Return the side view for a run in a plane of constant y, otherwise a view from azimuth and elevation.

    Args:
        run: The run.
        azimuth: Direction of the viewer from +x towards +y, [degree]. elevation: Its angle above the ground, [degree].
    """
    if len(run) and np.ptp(run.figure.nodes[..., 1]) < _FLAT:
        return Camera(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]), True)
    a, e = np.radians(azimuth), np.radians(elevation)
    right = [-np.sin(a), np.cos(a), 0.0]
    up = [-np.sin(e) * np.cos(a), -np.sin(e) * np.sin(a), np.cos(e)]
    return Camera(np.array([right, up]), False)


def _visible_ground(run: Run, camera: Camera) -> list[Array]:
    """Return the lines of the ground to draw, (k, 3) each, [m], world: the profile in a side view, otherwise a grid."""
    return list(run.ground.lines[:1] if camera.side else run.ground.lines[1:])


def _without_straight_points(line: Array) -> Array:
    """Return a polyline, (k, 3), [m], without the points at which it continues straight."""
    steps = np.diff(line, axis=0)
    bend = np.linalg.norm(np.cross(steps[:-1], steps[1:]), axis=1)
    return line[np.r_[True, bend > 1e-9 * (np.abs(steps).max() or 1.0), True]]


def view_of(run: Run) -> tuple[Array, float]:
    """Return the centers of the view over time, (T, 3), [m], world axes, and its diameter, [m].

    The view contains the robot and the free bodies, except those that are farther away from the robot than twice the
    diagonal of the bounding box of all at the start. The center moves smoothly.

    Args:
        run: The run.
    """
    nodes, robot = run.figure.nodes, run.figure.robot_nodes
    least = max(_figure_size(run), 0.1)
    if not len(run):
        return np.zeros((0, 3)), least
    middle = (robot.min(axis=1) + robot.max(axis=1)) / 2
    reach = 2.0 * max(float(np.linalg.norm(np.ptp(nodes[0], axis=0))), least)
    near = (np.linalg.norm(nodes - middle[:, None], axis=2) < reach)[..., None]
    near[:, : robot.shape[1]] = True
    low, high = np.where(near, nodes, np.inf).min(axis=1), np.where(near, nodes, -np.inf).max(axis=1)
    n = max(1, len(run) // 20)
    padded = np.pad((low + high) / 2, ((n, n), (0, 0)), mode="edge")
    window = np.ones(2 * n + 1) / (2 * n + 1)
    centers = np.stack([np.convolve(padded[:, i], window, mode="valid") for i in range(3)], axis=1)
    distances = np.linalg.norm(nodes - centers[:, None], axis=2)
    return centers, max(least, 2.0 * float(np.where(near[..., 0], distances, 0.0).max()))


def _figure_size(run: Run) -> float:
    """Return the diagonal of the robot's bounding box at the start, [m]."""
    return float(np.linalg.norm(np.ptp(run.figure.robot_nodes[0], axis=0))) or 1.0


def force_scale(run: Run) -> float:
    """Return the length of an arrow per newton, [m/N]: the median ground force is a third of the robot's size.

    Args:
        run: The run.
    """
    total = np.linalg.norm(run.ground_force, axis=1) if run.contacts.forces.size else np.zeros(1)
    typical = float(np.median(total[total > 0.0])) if np.any(total > 0.0) else 0.0
    return _figure_size(run) / (3.0 * typical) if typical else 0.0


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>legged: run</title>
<style>
  body { margin: 0; font: 14px system-ui, sans-serif; color: #222; background: #fff; }
  canvas { display: block; width: 100vw; height: calc(100vh - 48px); touch-action: none; }
  #bar { display: flex; gap: 12px; align-items: center; height: 48px; padding: 0 14px; box-sizing: border-box; }
  #bar input { flex: 1; }
  #clock { font-family: monospace; white-space: pre; }
</style>
<canvas id="view"></canvas>
<div id="bar">
  <button id="play">pause</button><input id="at" type="range" min="0" value="0"><span id="clock"></span>
</div>
<script>
const scene = /*SCENE*/;
const view = document.getElementById("view"), at = document.getElementById("at");
const play = document.getElementById("play"), clock = document.getElementById("clock");
let k = 0, playing = true, azimuth = -60, elevation = 18, zoom = 1, last = 0;
at.max = scene.times.length - 1;
document.title = scene.title;

function axes() {
  if (scene.side) return [[1, 0, 0], [0, 0, 1]];
  const a = azimuth * Math.PI / 180, e = elevation * Math.PI / 180;
  return [[-Math.sin(a), Math.cos(a), 0],
          [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)]];
}

function draw() {
  const pen = view.getContext("2d"), scale = window.devicePixelRatio || 1;
  view.width = view.clientWidth * scale; view.height = view.clientHeight * scale;
  const [right, up] = axes(), nodes = scene.nodes[k];
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const middle = scene.centers[k];
  const unit = zoom * 0.55 * Math.min(view.width, view.height) / scene.span;
  const place = p => [view.width / 2 + unit * (dot(right, p) - dot(right, middle)),
                      view.height / 2 - unit * (dot(up, p) - dot(up, middle))];
  const line = (points, color, width) => {
    pen.strokeStyle = color; pen.lineWidth = width * scale; pen.lineCap = "round"; pen.beginPath();
    points.forEach((p, i) => { const [x, y] = place(p); i ? pen.lineTo(x, y) : pen.moveTo(x, y); });
    pen.stroke();
  };
  scene.ground.forEach(points => line(points, "#b9b9b9", scene.side ? 2 : 1));
  line(scene.base, "#8fb3d9", 1);
  scene.points[k].forEach((p, i) => line([p, p.map((x, j) => x + scene.forces[k][i][j])], "#c8502d", 2));
  scene.edges.forEach(([a, b], i) => line([nodes[a], nodes[b]], scene.colors[i], 4 / 3 * scene.widths[i]));
  clock.textContent = scene.title + "   t = " + scene.times[k].toFixed(2).padStart(6) + " s";
  at.value = k;
}

function tick(now) {
  if (playing && now - last >= scene.interval) { last = now; k = (k + 1) % scene.times.length; draw(); }
  requestAnimationFrame(tick);
}
play.onclick = () => { playing = !playing; play.textContent = playing ? "pause" : "play"; };
at.oninput = () => { k = +at.value; playing = false; play.textContent = "play"; draw(); };
view.onpointermove = event => {
  if (!event.buttons) return;
  azimuth -= event.movementX / 3; elevation = Math.max(-10, Math.min(90, elevation + event.movementY / 3)); draw();
};
view.onwheel = event => { event.preventDefault(); zoom *= Math.exp(-event.deltaY / 800); draw(); };
window.onresize = draw;
draw(); requestAnimationFrame(tick);
</script>
</html>
"""
"""The HTML page of an animation; the scene is inserted as JSON. It needs no other file and no network."""
