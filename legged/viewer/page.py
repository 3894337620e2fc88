"""Runs as one HTML file: scene, motion, curves, figures and modules, with the program that shows them in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import ArgumentError, MissingError
from legged.output import as_html, as_script, write_file
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import GRID_SPACING
from legged.viewer.curves import Plot, module_pictures, names_of_runs, plots_of_runs, tables_of_run
from legged.viewer.meshes import Mesh
from legged.viewer.motion import Motion, motion_of_run, quaternions
from legged.viewer.packing import Packer
from legged.viewer.scene import Scene, scene_of_run

Array = np.ndarray
MOST_SAMPLES = 20_000
"""Largest number of samples of a run on a page; a longer run is sampled at even spacing."""
_LENGTH, _ANGLE, _FORCE = 5e-5, 5e-5, 2e-4
"""Largest errors: of positions [m], of entries of quaternions, and of forces relative to the largest."""
_GHOST = 0.35  # opacity
_VIEW = (0.62, -0.85, 0.42)  # direction from the robot to the camera, world axes
_CURVE = 2e-5  # error of curves relative to their range


def page_of(
    runs: Sequence[Run], names: Sequence[str] | None = None, beside: float = 0.0, most: int = MOST_SAMPLES
) -> str:
    """Return the page of one or several runs.

    Args:
        runs: The runs; those after the first are drawn as ghosts in its place, or beside it.
        names: As in `names_of_runs`; used in the curves and tables.
        beside: Distance along y at which each run is drawn beside the one before, [m]; 0 for ghosts in one place.
        most: Largest number of samples of a run; a longer run is sampled at even spacing.

    Raises:
        ArgumentError: There is no run, one without samples, or a wrong number of names.
        MissingError: The program of the page has not been bundled.
    """
    if not runs or not all(isinstance(run, Run) and len(run) for run in runs):
        raise ArgumentError("a page shows runs with samples; give a Run, or a list of them")
    names = names_of_runs(runs, names)
    packer, meshes = Packer(), dict[int, dict[str, Any]]()
    scenes = [scene_of_run(run) for run in runs]
    shown = [
        _run(packer, meshes, scene, run, (0.0, -k * beside, 0.0), 1.0 if beside or not k else _GHOST, most)
        | {"label": names[k] if len(runs) > 1 else ""}
        for k, (scene, run) in enumerate(zip(scenes, runs, strict=True))
    ]
    plots = [_plot(packer, plot) for plot in plots_of_runs(runs, names)]
    tables = [
        {"title": name if len(runs) > 1 else table.title, "rows": table.rows}
        for name, run in zip(names, runs, strict=True)
        for table in tables_of_run(run)
    ]
    grounds, obstacles = _surroundings(packer, runs, scenes, beside)
    notes = list(dict.fromkeys(note for scene in scenes for note in scene.notes))
    data = {
        "title": " and ".join(dict.fromkeys(run.robot for run in runs)),
        "view": _VIEW,
        "runs": shown,
        "plots": plots,
        "tables": tables,
        "grounds": grounds,
        "obstacles": obstacles,
        "notes": notes,
        "arrays": packer.entries,
    }
    return _document(data, packer.text(), "".join(module_pictures(runs)))


def _surroundings(
    packer: Packer, runs: Sequence[Run], scenes: Sequence[Scene], beside: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the grounds and the obstacles of runs, each with its offset, [m].

    If the runs are not side by side, all move on the ground and among the obstacles of the first one.

    Args:
        packer: Receives the arrays. runs, beside: As in `page_of`. scenes: The scene of each run.
    """
    grounds, obstacles = list[dict[str, Any]](), list[dict[str, Any]]()
    for k, (scene, run) in enumerate(zip(scenes, runs, strict=True)):
        if k and not beside:
            break
        place, own = {"offset": (0.0, -k * beside, 0.0)}, run.ground
        level = own.surface.size and float(np.ptp(own.surface[..., 2])) == 0.0
        if level:  # so that the lines of grounds side by side coincide
            place = {"offset": (0.0, -round(k * beside / GRID_SPACING) * GRID_SPACING, 0.0)}
        if len(own.lines) or own.surface.size:
            arrays = {"surface": packer.add(own.surface, _LENGTH), "lines": packer.add(_thinned(own.lines), _LENGTH)}
            grounds.append(arrays | place)
        obstacles += [_mesh(packer, mesh) | {"offset": (0.0, -k * beside, 0.0)} for mesh in scene.obstacles]
    return grounds, obstacles


def _document(data: dict[str, Any], arrays: str, pictures: str) -> str:
    """Return the page with its data, its arrays as text and the pictures of modules; MissingError without a program."""
    web = files("legged.viewer") / "web"
    if not (web / "replay.js").is_file():
        raise MissingError(
            "the program of pages, legged/viewer/web/replay.js, has not been bundled: install legged from a wheel or a "
            "source distribution, or in a checkout run `make replay-page` with access to the npm registry"
        )
    return _TEMPLATE.format(
        title=as_html(data["title"]),
        style=(web / "replay.css").read_text(encoding="utf-8"),
        page=as_script(data),
        arrays=arrays,
        modules=f"<details><summary>Kinematic modules</summary>{pictures}</details>" if pictures else "",
        script=(web / "replay.js").read_text(encoding="utf-8"),
    )


def save_page(path: str | Path, runs: Sequence[Run], **options: Any) -> Path:
    """Write the page of runs to a file and return its path.

    Args:
        path: The file; the suffix .html is appended where it is missing. A missing folder is created.
        runs, options: As in `page_of`.

    Raises:
        FileError: The path is no name of a page, or the file cannot be written.
    """
    return write_file(path, page_of(runs, **options), ".html", ".htm")


def framed(page: str, height: int = 560) -> str:
    """Return an element that shows a page inside another, such as a notebook.

    Args:
        page: The page. height: [pixel].
    """
    source = page.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return f'<iframe srcdoc="{source}" style="width: 100%; height: {height}px; border: 0"></iframe>'


def _run(
    packer: Packer,
    meshes: dict[int, dict[str, Any]],
    scene: Scene,
    run: Run,
    offset: tuple[float, float, float],
    opacity: float,
    most: int,
) -> dict[str, Any]:
    """Return the data of one run; meshes that several parts share are added once."""
    rows: Any = slice(None)
    if len(run) > most:
        rows = np.unique(np.linspace(0, len(run) - 1, most).round().astype(int))
    motion, own = motion_of_run(scene, run, rows), list[dict[str, Any]]()
    numbers: dict[int, int] = {}
    parts = []
    for part in scene.parts:
        geometry = []
        for placed in part.geometry:
            key = id(placed.mesh)
            if key not in meshes:
                meshes[key] = _mesh(packer, placed.mesh)
            if key not in numbers:
                numbers[key] = len(own)
                own.append(meshes[key])
            rotation = [round(float(x), 7) for x in quaternions(placed.rotation)]
            place = {"rotation": rotation, "position": [round(float(x), 6) for x in placed.position]}
            geometry.append({"mesh": numbers[key], **place})
        parts.append({"name": part.name, "geometry": geometry})
    return {
        "name": run.robot,
        "parts": parts,
        "meshes": own,
        "motion": _motion(packer, motion),
        "size": scene.size,
        "weight": scene.weight or float(np.abs(motion.forces).max(initial=0.0)),
        "friction": scene.friction,
        "normal": run.ground.normal.tolist(),
        "offset": offset,
        "opacity": opacity,
    }


def _motion(packer: Packer, motion: Motion) -> dict[str, int]:
    """Return the numbers of the arrays of a motion; positions of parts are relative to the base."""
    largest = float(np.abs(motion.forces).max(initial=0.0))
    return {
        "times": packer.add(motion.times),
        "rotations": packer.add(_continuous(motion.rotations), _ANGLE),
        "positions": packer.add(motion.positions - motion.base[:, None], _LENGTH),
        "base": packer.add(motion.base, _LENGTH),
        "points": packer.add(motion.points, _LENGTH),
        "forces": packer.add(motion.forces, _FORCE * largest),
        "center": packer.add(motion.center_of_mass, _LENGTH),
        "capture": packer.add(motion.capture_point, _LENGTH),
        "support": packer.add(motion.support, 1.0),
        "footsteps": packer.add(motion.footsteps, _LENGTH),
    }


def _mesh(packer: Packer, mesh: Mesh) -> dict[str, Any]:
    color = [round(float(x), 3) for x in mesh.color]
    return {"vertices": packer.add(mesh.vertices, _LENGTH), "faces": packer.add(mesh.faces), "color": color}


def _plot(packer: Packer, plot: Plot) -> dict[str, Any]:
    values = plot.values
    spread = np.nanmax(values) - np.nanmin(values) if np.isfinite(values).any() else 0.0
    return {
        "title": plot.title,
        "labels": plot.labels,
        "times": packer.add(plot.times, _CURVE * float(np.ptp(plot.times))),
        "values": packer.add(values, _CURVE * float(spread)),
        "range": plot.limits,
    }


def _continuous(rotations: Array) -> Array:
    """Return unit quaternions with the signs that make them continuous over time, (T, p, 4)."""
    flips = (rotations[1:] * rotations[:-1]).sum(axis=-1) < 0.0
    signs = np.where(np.cumsum(flips, axis=0) % 2, -1.0, 1.0)
    return rotations * np.concatenate([np.ones((1, rotations.shape[1])), signs])[..., None]


def _thinned(lines: Array) -> Array:
    """Return polylines, (n, k, 3), [m], without the points at which all of them are straight."""
    if lines.shape[1] < 3:
        return lines
    bends = np.abs(np.diff(lines, 2, axis=1)).max(axis=(0, 2), initial=0.0) > 1e-5
    return lines[:, np.concatenate([[True], bends, [True]])]


_TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="view"><canvas id="canvas"></canvas><h1 id="title"></h1><details id="overlays"><summary>show</summary></details>
<div id="notes"></div></div>
<div id="bar">
<button id="back" title="one sample back (left arrow)">&#9664;&#9664;</button>
<button id="play" title="play (space)">&#9654;</button>
<button id="next" title="one sample on (right arrow)">&#9654;&#9654;</button>
<input id="timeline" type="range" aria-label="time">
<span id="clock"></span>
<button id="record" title="record a video from start to end, at this speed (mp4 or webm)">&#9679;</button>
<label>speed <select id="speed"></select></label>
<label><input id="loop" type="checkbox" checked> loop</label>
</div>
<div id="side"><div id="tables"></div><div id="plots"></div>{modules}</div>
<script type="application/json" id="page">{page}</script>
<script type="text/plain" id="arrays">{arrays}</script>
<script>{script}</script>
</body>
</html>
"""
