"""Runs and rollouts in the viewer, with a timeline and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from legged.arguments import whole
from legged.checked import checked
from legged.output import as_html, distinct_labels, visible
from legged.simulation.results.run import Run
from legged.simulation.rollouts.result import Rollouts
from legged.viewer.actor import PATH, Actor
from legged.viewer.curves import Plot, decimated, module_pictures, names_of_runs, plots_of_runs, tables_of_run
from legged.viewer.meshes import color_bytes
from legged.viewer.motion import Motion, motion_of_run, motion_of_states
from legged.viewer.scene import scene_of_run
from legged.viewer.server import Viewer

Array = np.ndarray
SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "4")
MOST_GHOSTS = 12
"""Largest number of members of a batch that are drawn as robots; for the others, only the path of the base is drawn."""
_GHOST = 0.35  # opacity
_PLOT_POINTS = 500
_PLOT_PERIOD = 0.2  # [s] between updates of the cursor in the curves


@checked
class Timeline:
    """The time that a viewer shows: play, speed, step and loop.

    Args:
        viewer: The viewer. times: Times of the samples, (T,), [s].
        show: Called with a time, [s], to show it.
    """

    def __init__(self, viewer: Viewer, times: Array, show: Callable[[float], None]):
        self.times, self.time = times, float(times[0])
        self._show, self._changed = show, True
        gui, end = viewer.server.gui, float(times[-1])
        with gui.add_folder("Time", order=0.0):
            self._button = gui.add_button("play")
            self.playing = gui.add_checkbox("playing", False, visible=False)
            self.slider = gui.add_slider("time [s]", self.time, max(end, self.time + 1e-3), 1e-3, self.time)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            self.loop = gui.add_checkbox("loop", True)
            back, ahead = gui.add_button("one sample back"), gui.add_button("one sample on")
        self.slider.on_update(lambda event: self.seek(event.target.value) if event.client is not None else None)
        self._button.on_click(lambda _: self.play(not self.playing.value))
        back.on_click(lambda _: self.step(-1))
        ahead.on_click(lambda _: self.step(1))
        self._update(0.0)
        viewer.repeat(self._update)

    def play(self, on: bool = True) -> None:
        """Play the motion, or pause it; at its end it begins again.

        Args:
            on: Whether to play.
        """
        if on and self.time >= self.times[-1]:
            self.seek(float(self.times[0]))
        self.playing.value = on

    def seek(self, time: float) -> None:
        """Show a time, [s]; times beyond the samples are clipped to the first or last one."""
        self.time, self._changed = float(np.clip(time, self.times[0], self.times[-1])), True

    def step(self, count: int) -> None:
        """Pause, and move by a number of samples, which may be negative."""
        count = whole("count", count)
        self.playing.value = False
        k = int(np.searchsorted(self.times, self.time + 1e-9)) - 1
        self.seek(float(self.times[min(max(k + count, 0), len(self.times) - 1)]))

    def _update(self, passed: float) -> bool:
        words = "pause" if self.playing.value else "play"
        if self._button.label != words:
            self._button.label = words
        if self.playing.value:
            time = self.time + min(passed, 0.1) * float(self.speed.value)
            if time > self.times[-1]:
                self.playing.value = self.loop.value
                time = float(self.times[0 if self.loop.value else -1])
            self.time, self._changed = time, True
        if not self._changed:
            return False
        self._changed = False
        self.slider.value = round(self.time, 3)
        self._show(self.time)
        return True


class Curves:
    """One of the plots of a run, chosen by a list, with a cursor at the time of the timeline."""

    def __init__(self, viewer: Viewer, plots: Sequence[Plot]):
        labels = distinct_labels(plot.title for plot in plots)
        self._plots = dict(zip(labels, plots, strict=True))
        self._gui, self._handle, self._drawn, self._time = viewer.server.gui, None, -np.inf, 0.0
        with self._gui.add_folder("Curves", order=2.0) as self._folder:
            self._choice = self._gui.add_dropdown("plot", tuple(self._plots))
        self._choice.on_update(lambda _: self._draw())
        self._draw()

    def show(self, time: float) -> None:
        """Move the cursor to a time, [s], at most five times a second."""
        self._time, now = time, perf_counter()
        if now - self._drawn > _PLOT_PERIOD:
            self._drawn = now
            assert self._handle is not None
            self._handle.data = self._data()

    def _data(self) -> tuple[Array, ...]:
        """Return times and curves with two points at the cursor, between which it is drawn."""
        plot = self._plots[self._choice.value]
        times, values = decimated(plot.times, plot.values, _PLOT_POINTS)
        low, high = _limits(plot)
        at = int(np.searchsorted(times, self._time))
        here = np.array([np.interp(self._time, times, column) for column in values.T])
        values = np.insert(values, [at, at], [here, here], axis=0)
        cursor = np.full(len(values), np.nan)
        cursor[at : at + 2] = low, high
        return (np.insert(times, [at, at], self._time), *np.ascontiguousarray(values.T), cursor)

    def _draw(self) -> None:
        from viser import uplot

        from legged.simulation.plots.figures import COLORS

        if self._handle is not None:
            self._handle.remove()
        plot = self._plots[self._choice.value]
        series: list[Any] = [uplot.Series(label="t [s]")]
        for k, label in enumerate(plot.labels):
            dashed = label.startswith("reference")
            color = "#222222" if dashed else COLORS[k % len(COLORS)]
            style: dict[str, Any] = {"dash": (5.0, 4.0)} if dashed else {}
            series.append(uplot.Series(label=visible(label, 80), stroke=color, width=1.5, **style))
        series.append(uplot.Series(label="now", stroke="#d2452d", width=2.0))
        scales = {"x": uplot.Scale(time=False), "y": uplot.Scale(range=_limits(plot))}
        with self._folder:
            title = self._choice.value
            self._handle = self._gui.add_uplot(self._data(), tuple(series), title=title, scales=scales, aspect=1.6)


def view_runs(viewer: Viewer, runs: Sequence[Run], names: Sequence[str] | None, beside: float) -> Timeline:
    """Show runs with a timeline, curves and figures; those after the first are ghosts, or beside it.

    Args:
        viewer: The viewer. runs: The runs. names: A name for each, or None.
        beside: Distance along -y from each run to the next, [m]; 0 draws them in one place.
    """
    names = names_of_runs(runs, names)
    actors = []
    for k, run in enumerate(runs):
        offset, opacity = (0.0, -k * beside, 0.0), 1.0 if beside or not k else _GHOST
        own = bool(beside) or not k  # whether the run is drawn on a ground of its own
        actors.append(Actor(viewer, f"run {k}", scene_of_run(run), offset, opacity, run.ground.normal, own))
        _add_path(viewer, f"/world/run {k}/path", run.base.position)
        if len(runs) > 1:
            actors[-1].sign(visible(names[k], 80))
        if own:
            viewer.ground(run.ground.surface, run.ground.lines, offset)
    notes = dict.fromkeys(note for actor in actors for note in actor.scene.notes)
    if notes:
        with viewer.server.gui.add_folder(f"Notes ({len(notes)})", order=5.0, expand_by_default=False):
            viewer.note(*notes)
    for name, run in zip(names, runs, strict=True):
        for table in tables_of_run(run):
            with viewer.server.gui.add_folder(visible(name), order=3.0, expand_by_default=len(runs) == 1):
                rows = "".join(f"<tr><td>{as_html(a)}</td><td>{as_html(b)}</td></tr>" for a, b in table.rows)
                viewer.server.gui.add_html(f'<table style="font-size: 12px; margin: 6px 10px">{rows}</table>')
    viewer.modules(module_pictures(runs))
    curves = Curves(viewer, plots_of_runs(runs, names))
    viewer.overlay_boxes(actors)

    def show(time: float) -> None:
        for actor, run in zip(actors, runs, strict=True):
            k = int(np.clip(np.searchsorted(run.times, time + 1e-9) - 1, 0, len(run) - 1))
            actor.show(motion_of_run(actor.scene, run, slice(k, k + 1)))
            if actor is actors[0]:
                viewer.follow(run.base.position[k])
        curves.show(time)

    _aim(viewer, runs[0].base.position[0], actors)
    return Timeline(viewer, runs[int(np.argmax([run.times[-1] for run in runs]))].times, show)


def view_rollouts(viewer: Viewer, rollouts: Rollouts) -> Timeline:
    """Show the members of a batch: the path of each base, and a few members as robots.

    Args:
        viewer: The viewer. rollouts: The batch.
    """
    first = rollouts.run(0)
    scene, robot = scene_of_run(first), None if first.model is None else first.model.robot
    viewer.ground(first.ground.surface, first.ground.lines)
    for i, path in enumerate(rollouts.base_position):
        _add_path(viewer, f"/world/path {i}", path[np.isfinite(path).all(axis=1)], bool(rollouts.fallen[i]))
    chosen = np.unique(np.linspace(0, len(rollouts) - 1, MOST_GHOSTS).round().astype(int)) if robot else [0]
    actors = [
        Actor(viewer, f"member {i}", scene, opacity=1.0 if k == 0 else _GHOST, obstacles=k == 0)
        for k, i in enumerate(chosen)
    ]
    fell = int(rollouts.fallen.sum())
    viewer.note(f"{len(rollouts)} members, {fell} fell; {len(chosen)} are drawn as robots")

    def motion(i: int, k: int) -> Motion:
        if robot is None:
            k = min(k, len(first) - 1)
            return motion_of_run(scene, first, slice(k, k + 1))
        k = min(k, int(np.isfinite(rollouts.q[i]).all(axis=1).sum()) - 1)
        rows = slice(k, k + 1)
        return motion_of_states(scene, robot, rollouts.times[rows], rollouts.q[i, rows], rollouts.v[i, rows])

    def show(time: float) -> None:
        k = int(np.clip(np.searchsorted(rollouts.times, time + 1e-9) - 1, 0, len(rollouts.times) - 1))
        for actor, i in zip(actors, chosen, strict=True):
            actor.show(motion(int(i), k))
        viewer.follow(first.base.position[min(k, len(first) - 1)])

    _aim(viewer, first.base.position[0], actors)
    return Timeline(viewer, rollouts.times, show)


def _limits(plot: Plot) -> tuple[float, float]:
    """Return the range of the vertical axis of a plot, in the unit of the plot."""
    if plot.limits is not None:
        return plot.limits
    finite = plot.values[np.isfinite(plot.values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    margin = max(0.05 * (high - low), 1e-6)
    return low - margin, high + margin


def _aim(viewer: Viewer, target: Array, actors: Sequence[Actor]) -> None:
    """Place the camera so that it sees all actors."""
    places = np.array([actor.root.position for actor in actors])
    viewer.camera(target + places.mean(axis=0), actors[0].scene.size + float(np.ptp(places, axis=0).max()))


def _add_path(viewer: Viewer, name: str, path: Array, fell: bool = False) -> None:
    if len(path) > 1:
        step = max(len(path) // 1000, 1)
        thin = path[::step]
        color = (200, 80, 60) if fell else color_bytes(PATH)
        ends = np.stack([thin[:-1], thin[1:]], axis=1)
        viewer.server.scene.add_line_segments(name, ends, color, thickness=1.5, thickness_units="screen")
