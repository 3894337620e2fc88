"""Driving in the viewer: keys, gamepad and clicks on the ground become the velocity command of a live simulation.

The page `drive` of the viewer's server holds the scene in a frame, reads keys and gamepad in the browser, and sends
them 20 times a second. Values from the page are untrusted: they are numbers from -1 to 1, or the request is refused.
"""

from __future__ import annotations

import http
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import parse_qs

import numpy as np

from legged.arguments import number, rounded_array
from legged.checked import checked
from legged.contact.rigid import Rigid
from legged.errors import ArgumentError
from legged.ground.ground import Ground
from legged.ground.terrain import Terrain
from legged.output import write_table
from legged.robot.robot import Robot
from legged.simulation.results.run import Run

Array = np.ndarray
AXES = ("forward", "left", "turn")
SILENCE = 0.6
"""[s], time without news from the page after which the command is zero."""
ENTRIES = 5
"""Entries of the command of `controllers.Locomotion`, of which driving changes the first three."""
_DEAD = 0.08  # share of an axis of a gamepad that counts as zero
_NEAR = 0.15  # [m], distance from a waypoint that counts as reached
_MOST_SAMPLES = 200_000  # of a recording, about an hour
_REACH, _MARCH = 60.0, 0.02  # [m], length and step of a search along the ray of a click
_SLOW_DOWN = 0.6  # [m], distance from a waypoint within which the velocity decreases in proportion to it
_TURN_GAIN = 2.0  # [1/s], yaw rate for each radian between heading and waypoint


@checked
@dataclass(frozen=True)
class Drive:
    """How a user drives a live simulation, and where its recordings are written.

        drive = Drive(forward=0.8, turn=1.5)  # legged.view(simulation, drive=drive)

    Attributes:
        forward, left: Largest velocity forward and to the left, [m/s].
        turn: Largest yaw rate, [rad/s].
        folder: Folder of the recordings `drive-1.npz` and `drive-1.csv`, `drive-2.npz`, and so on.
    """

    forward: float = 0.5
    left: float = 0.25
    turn: float = 1.0
    folder: str | Path = "drives"

    def __post_init__(self) -> None:
        for name in AXES:
            number(name, getattr(self, name), least=0.0)

    @property
    def most(self) -> Array:
        """Largest velocities, (3,), [m/s], [m/s], [rad/s]."""
        return np.array([self.forward, self.left, self.turn])


class Driver:
    """The command of a simulation that is driven: by the page, or towards a waypoint.

    Attributes:
        drive: The limits. goal: World x and y of the waypoint, (2,), [m]; None without one.
        notice: Text that the page shows.
    """

    def __init__(self, drive: Drive, clock: Callable[[], float] = time.monotonic):
        self.drive, self._clock, self._lock = drive, clock, threading.Lock()
        self._axes, self._news = np.zeros(3), -np.inf
        self._last = np.zeros(3)
        self.goal: Array | None = None
        self.notice = ""

    def receive(self, query: str) -> tuple[int, str, str]:
        """Take the axes from a request of the page; return (HTTP status, content type, content).

        Args:
            query: Such as "forward=1&left=0&turn=-0.5", each from -1 to 1.
        """
        try:
            given = parse_qs(query, strict_parsing=True, max_num_fields=3)
            if set(given) != set(AXES) or any(len(texts) != 1 for texts in given.values()):
                raise ArgumentError(f"a command has {', '.join(AXES)}, each once")
            axes = np.array([number(name, float(given[name][0]), least=-1.0, most=1.0) for name in AXES])
        except ValueError as error:
            return http.HTTPStatus.BAD_REQUEST, "text/plain", f"{error}\n"
        axes[np.abs(axes) < _DEAD] = 0.0
        with self._lock:
            self._axes, self._news = axes, self._clock()
            if axes.any():
                self.goal = None
            answer = {"velocity": self._last.round(3).tolist(), "notice": self.notice}
        return http.HTTPStatus.OK, "application/json", json.dumps(answer)

    def go_to(self, place: Array) -> None:
        """Walk to a place until the page sends another command.

        Args:
            place: Position, (2,), [m], world axes.
        """
        with self._lock:
            self.goal = np.array(place, dtype=float)

    def velocity(self, position: Array, yaw: float) -> Array:
        """Return the commanded velocity forward and to the left, [m/s], and the yaw rate, [rad/s], (3,).

        Args:
            position: World x and y of the base, (2,), [m]. yaw: Heading of the base, [rad].
        """
        with self._lock:
            fresh = self._clock() - self._news < SILENCE
            command = self.drive.most * self._axes * fresh
            if self.goal is not None:
                if np.hypot(*(self.goal - position)) < _NEAR:
                    self.goal = None
                else:
                    command = towards(self.goal, position, yaw, self.drive.most)
            self._last = command
        return command

    def stop(self) -> None:
        """Forget the waypoint and the axes."""
        with self._lock:
            self.goal, self._axes = None, np.zeros(3)


@checked
def towards(goal: Array, position: Array, yaw: float, most: Array) -> Array:
    """Return the velocity that leads to a waypoint, (3,), [m/s], [m/s], [rad/s]: turn to it, walk, slow down before it.

    Args:
        goal, position: Of the waypoint and of the robot, (2,), [m], world axes.
        yaw: Heading of the robot, [rad].
        most: Largest velocity forward and to the left of the heading, [m/s], and yaw rate, [rad/s], (3,), axes of the
            heading.
    """
    way = np.asarray(goal, dtype=float) - position
    bearing = np.arctan2(way[1], way[0]) - yaw
    bearing = np.arctan2(np.sin(bearing), np.cos(bearing))  # from -pi to pi
    forward = most[0] * min(float(np.hypot(*way)) / _SLOW_DOWN, 1.0) * max(float(np.cos(bearing)), 0.0) ** 2
    return np.array([forward, 0.0, np.clip(_TURN_GAIN * bearing, -most[2], most[2])])


def place_on_ground(terrain: Terrain | None, origin: Array, direction: Array) -> Array | None:
    """Return where a ray meets the ground, world x and y, (2,), [m]; None if it does not.

    Args:
        terrain: The terrain; None for a plane at z = 0.
        origin: Start of the ray, (3,), [m], world axes. direction: Its direction, (3,), dimensionless, world axes.
    """
    length = float(np.linalg.norm(direction))
    if not np.isfinite([*origin, *direction]).all() or length == 0.0:
        return None
    points = np.asarray(origin) + np.arange(0.0, _REACH, _MARCH)[:, None] * np.asarray(direction) / length
    heights = 0.0 if terrain is None else np.asarray(terrain.height(points[:, 0], points[:, 1]))
    below = np.flatnonzero(points[:, 2] <= heights)
    return points[below[0], :2] if len(below) and below[0] else None


class Recorder:
    """Samples of a driven session, which become runs.

    Attributes:
        is_on: Whether samples are kept.
    """

    def __init__(self, robot: Robot, ground: Ground | Rigid | None, folder: Path):
        self._robot, self._ground, self._folder = robot, ground, folder
        self.is_on = False
        self._rows: list[tuple[float, Array, Array, Array]] = []

    def add(self, t: float, q: Array, v: Array, command: Array) -> None:
        """Keep a sample if recording is on.

        Args:
            t: Time, [s]. q: Configuration, (nq,), mixed units. v: Velocity, (nv,), mixed units.
            command: Commanded velocity, (3,), [m/s], [m/s], [rad/s], axes of the heading.
        """
        if self.is_on and len(self._rows) < _MOST_SAMPLES and (not self._rows or t > self._rows[-1][0]):
            self._rows.append((t, q.copy(), v.copy(), command.copy()))

    def write(self) -> Path | None:
        """Write the samples kept so far as a run and their commands as a table, and begin again; None without any.

        Raises:
            FileError: A file cannot be written; the samples are kept.
        """
        if len(self._rows) < 2:
            self._rows.clear()
            return None
        t, q, v, commands = (np.array(column) for column in zip(*self._rows, strict=True))
        number_of_run = 1
        while (self._folder / f"drive-{number_of_run}.npz").exists():
            number_of_run += 1
        path = self._folder / f"drive-{number_of_run}"
        run = Run.from_motion(self._robot, t, q, v, ground=self._ground)
        written = run.save(path.with_suffix(".npz"))
        rows = np.column_stack([t, commands]).tolist()
        write_table(path.with_suffix(".csv"), ("t", "vx", "vy", "yaw_rate"), rows)
        self._rows.clear()
        return written


def drive_page(query: str) -> tuple[int, str, str]:
    """Return (HTTP status, content type, content) of the page that reads keys and gamepad.

    Args:
        query: Ignored.
    """
    page = resources.files("legged.viewer").joinpath("web", "drive.html").read_text(encoding="utf-8")
    return http.HTTPStatus.OK, "text/html; charset=utf-8", page


def heading(rotation: Array) -> float:
    """Return the heading of a base, [rad].

    Args:
        rotation: Rotation matrix from base to world axes, (3, 3), dimensionless.
    """
    return float(np.arctan2(*rounded_array("rotation", rotation, (3, 3))[[1, 0], 0]))
