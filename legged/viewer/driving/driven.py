"""A live simulation that is driven: its command, recordings, waypoints, and the page that reads keys and gamepad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import FileError
from legged.output import visible
from legged.simulation.stepping.simulation import Simulation
from legged.viewer.driving.drive import ENTRIES, Drive, Driver, Recorder, drive_page, place_on_ground
from legged.viewer.server import Viewer

Array = np.ndarray
WAIT = 1.5
"""[s], time after a fall until the robots start again."""
_WAYPOINT = (142, 36, 170)  # color


class DrivenSimulation:
    """Connects a simulation with its driver, its recorder and the controls of the page.

    Attributes:
        address: Address of the page that reads keys and gamepad.
        driver: The commanded velocity. recorder: The recording.
        place: Position of the first robot's base, (3,), [m], world axes. yaw: Its heading, [rad].
    """

    def __init__(self, viewer: Viewer, simulation: Simulation, drive: Drive):
        self._viewer, self._simulation = viewer, simulation
        self.driver = Driver(drive)
        loop = simulation.loop
        self.recorder = Recorder(simulation.robot, loop.ground, Path(drive.folder))
        self.place, self.yaw = np.zeros(3), 0.0
        self._command, self._waited, self._mark = np.zeros(3), 0.0, None
        self.address = viewer.serve("drive", drive_page)
        viewer.serve("command", self.driver.receive)
        gui = viewer.server.gui
        with gui.add_folder("Drive", order=0.1):
            self._record = gui.add_checkbox("record", False)
            self._record.on_update(lambda event: self.set_recording(event.target.value))
            self._files = gui.add_markdown("")
        viewer.server.scene.on_click()(self._clicked)

    def command(self, others: Array | None) -> Array:
        """Return the command of the next steps, (nu,), whose first three entries are the driven velocity.

        Args:
            others: Command of the sliders, (nu,), any unit; None for zeros.
        """
        command = np.zeros(ENTRIES) if others is None else others.copy()
        self._command = self.driver.velocity(self.place[:2], self.yaw)
        command[:3] = self._command
        if self._mark is not None and self.driver.goal is None:
            self._mark.remove()
            self._mark = None
        return command

    def record(self) -> None:
        """Keep the present state of the first robot if recording is on."""
        state = self._simulation.state
        t, q, v = (np.atleast_1d(self._simulation.t)[0], np.atleast_2d(state.q)[0], np.atleast_2d(state.v)[0])
        self.recorder.add(float(t), q, v, self._command)

    def set_recording(self, on: bool) -> None:
        """Begin a recording, or end it and write its files.

        Args:
            on: Whether to record from now on.
        """
        self.recorder.is_on = on
        if not on:
            self._write()

    def has_waited(self, passed: float) -> bool:
        """Return whether robots that have fallen may start again.

        Args:
            passed: Time since the last call, [s].
        """
        self._waited += passed
        reasons = [text for text in self._simulation.reasons if text]
        self.driver.notice = f"{visible(reasons[0])}; starts again" if reasons else ""
        return self._waited > WAIT

    def end_of_motion(self) -> None:
        """Write the recording, which ends with the motion, and stop."""
        self._waited, self.driver.notice = 0.0, ""
        self.driver.stop()
        self._write()

    def _write(self) -> None:
        try:
            path = self.recorder.write()
        except FileError as error:
            self._files.content = visible(error)
            return
        if path is not None:
            self._files.content = f"saved {visible(path)}"

    def _clicked(self, event: Any) -> None:
        """Walk to the place of the ground that was clicked."""
        ground, shift = self._simulation.loop.ground, self._viewer.displacement
        terrain = None if ground is None else ground.terrain
        place = place_on_ground(terrain, np.asarray(event.ray_origin) - shift, np.asarray(event.ray_direction))
        if place is None:
            return
        self.driver.go_to(place)
        z = 0.0 if terrain is None else float(terrain.height(*place))
        if self._mark is None:
            self._mark = self._viewer.server.scene.add_icosphere("/world/waypoint", 0.05, color=_WAYPOINT)
        self._mark.position = (*place, z)
