"""A running simulation in the viewer, with controls for commands, gains, pushes, pause, single steps and reset."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from legged.arguments import Vector3, known_name
from legged.checked import checked
from legged.output import distinct_labels, paragraphs, visible
from legged.robot.diagram.drawing import svg_element
from legged.simulation.loop.external_wrenches import ExternalWrench
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.recording import contact_sides, planned_footsteps
from legged.simulation.results.records import GROUND, ModelRecord
from legged.simulation.results.stick_figure import ground_lines, ground_surface
from legged.simulation.stepping.simulation import Simulation
from legged.viewer.actor import Actor
from legged.viewer.driving.drive import Drive, heading
from legged.viewer.driving.driven import DrivenSimulation
from legged.viewer.motion import Motion, capture_of, quaternions, states, support_of
from legged.viewer.scene import scene_of
from legged.viewer.server import RATE, Viewer

Array = np.ndarray
MOST_ROBOTS = 9
"""Largest number of robots of a batch that are shown."""
SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1")
_PUSH = {"+x": (1.0, 0.0, 0.0), "-x": (-1.0, 0.0, 0.0), "+y": (0.0, 1.0, 0.0), "-y": (0.0, -1.0, 0.0)}
_PUSH |= {"+z": (0.0, 0.0, 1.0)}
MOST_GAINS = 12
"""Largest number of sliders for numbers of a controller if no parameters are named."""
_REACH = 12.0  # extent of the ground that is drawn, in sizes of the robot


@checked
class Live:
    """A simulation that a viewer advances in real time or slower.

    Attributes:
        simulation: The simulation, which a thread of the viewer advances; set `pause` before other code uses it.
        command: Command of the next step, (nu,), in the units of the controller; None without one.
        pause: Check box that stops the motion.
        speed: Choice of the speed relative to real time.
        sliders: Slider of each entry of the command, by name.
        gains: Slider of each number of the controller, or of the parameters that were named, by name.
        status: Text with the time, the speed reached, and the reasons for which robots have ended.
        driver: The velocity command of a simulation that is driven; None for others.
    """

    def __init__(
        self,
        viewer: Viewer,
        simulation: Simulation,
        commands: Mapping[str, tuple[float, float, float]] | None,
        parameters: Mapping[str, tuple[float, float]] | None,
        controllers: Mapping[str, Any] | None,
        drive: Drive | None = None,
    ):
        self.simulation, self._viewer, self._lock = simulation, viewer, threading.Lock()
        self._lag, self._clock, self._simulated = 0.0, 0.0, 0.0
        self._pushes: list[ExternalWrench] = []
        loop, robot = simulation.loop, simulation.robot
        bodies = loop.bodies if isinstance(loop, RigidLoop) else ()
        scene = self._scene = scene_of(ModelRecord.of(robot, loop.ground, bodies))
        names, sides = {link.name for link in robot.links}, zip(*contact_sides(loop), strict=True)
        self._own = np.array([on in names and against == GROUND for on, against in sides], bool)
        base = states(robot)(*(np.atleast_2d(x) for x in (simulation.q, simulation.v))).origins[0, 0]
        count = len(np.atleast_1d(simulation.t)[:MOST_ROBOTS])
        width = _REACH if count == 1 else 1.5
        around = base + np.array([[[-_REACH, -width, 0.0], [_REACH, width, 0.0]]]) * scene.size / 2.0
        lines, self._normal = ground_lines(loop.ground, around)
        offsets = [(0.0, 1.5 * scene.size * (k - (count - 1) / 2), 0.0) for k in range(count)]
        self._actors = [Actor(viewer, f"robot {k}", scene, at, 1.0, self._normal) for k, at in enumerate(offsets)]
        for offset in offsets:
            viewer.ground(ground_surface(loop.ground, around), lines, offset)
        self._add_controls(commands)
        self.driver = None if drive is None else DrivenSimulation(viewer, simulation, drive)
        self.gains = self._add_gains(parameters)
        if controllers:
            with viewer.server.gui.add_folder("Controller", order=0.4):
                by_label = distinct_labels(controllers)
                choice = viewer.server.gui.add_dropdown("controller", tuple(by_label))
            choice.on_update(lambda event: self.change_controller(controllers[by_label[event.target.value]]))
        viewer.overlay_boxes(self._actors)
        viewer.modules([svg_element(robot)])
        for note in scene.notes:
            viewer.note(note)
        self._show()
        viewer.camera(base, scene.size * (1.0 + 0.8 * (count - 1)))
        viewer.repeat(self._update)

    def push(self, link: str, impulse: Vector3) -> None:
        """Push all robots at the origin of a link in the next time step, by an external wrench that lasts one step.

        The first push on a link compiles the time steps again, see `Simulation.step`.

        Args:
            link: Name of the link. impulse: Integral of the force over time, (3,), [N s], world axes.

        Raises:
            UnknownNameError: There is no such link.
        """
        with self._lock:
            self.simulation.robot.link(link)
            force = np.asarray(impulse, float) / self.simulation.time_step
            self._pushes.append(ExternalWrench(link, force=tuple(force)))

    def change(self, name: str, value: float) -> None:
        """Change a number of robot, controller or ground of all robots.

        Args:
            name: As in `Simulation.parameters`. value: The new value, in its unit.
        """
        with self._lock:
            self.simulation.change({name: value})

    def change_controller(self, controller: Any) -> None:
        """Give all robots another controller; see `Simulation.change_controller`.

        Args:
            controller: The controller.
        """
        with self._lock:
            self.simulation.change_controller(controller)

    def step(self) -> None:
        """Pause, and advance all robots by one time step."""
        self.pause.value = True
        with self._lock:
            self._advance(1)
            self._show()

    def reset(self) -> None:
        """Start all robots again."""
        with self._lock:
            self._pushes.clear()
            if self.driver is not None:
                self.driver.end_of_motion()
            self.simulation.reset()
            self._show()

    def _add_controls(self, commands: Mapping[str, tuple[float, float, float]] | None) -> None:
        gui, robot = self._viewer.server.gui, self.simulation.robot
        self.status = gui.add_markdown("", order=-1.0)
        with gui.add_folder("Time", order=0.0):
            self.pause = gui.add_checkbox("pause", False)
            self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
            gui.add_button("single step").on_click(lambda _: self.step())
            gui.add_button("reset").on_click(lambda _: self.reset())
        self.sliders: dict[str, Any] = {}
        self.command: Array | None = None
        if commands:
            self.command = np.array([start for _, _, start in commands.values()], float)
            with gui.add_folder("Command", order=0.5):
                for k, (name, (low, high, start)) in enumerate(commands.items()):
                    slider = self.sliders[name] = gui.add_slider(visible(name), low, high, (high - low) / 200.0, start)
                    slider.on_update(lambda event, k=k: self._set_command(k, event.target.value))
        with gui.add_folder("Push", order=0.8):
            links = distinct_labels(link.name for link in robot.links)
            link = gui.add_dropdown("link", tuple(links))
            direction = gui.add_dropdown("direction", tuple(_PUSH), initial_value="+y")
            typical = float(f"{0.3 * robot.mass:.2g}")
            size = gui.add_slider("impulse [N s]", 0.0, 5.0 * typical, typical / 20.0, typical)
            button = gui.add_button("push")
        button.on_click(lambda _: self.push(links[link.value], size.value * np.array(_PUSH[direction.value])))

    def _add_gains(self, ranges: Mapping[str, tuple[float, float]] | None) -> dict[str, Any]:
        """Add sliders for named parameters, by default for numbers of the controller from 0 to twice their values."""
        gui, present, sliders = self._viewer.server.gui, self.simulation.parameters, dict[str, Any]()
        if ranges is None:
            own = [n for n, x in present.items() if n.startswith(("controller.", "gait.")) and not np.ndim(x)]
            low_high = {name: (2.0 * min(present[name], 0.0), 2.0 * max(present[name], 0.0)) for name in own}
            ranges = {name: pair if any(pair) else (-1.0, 1.0) for name, pair in low_high.items()}
            ranges = dict(list(ranges.items())[:MOST_GAINS])
        if not ranges:
            return {}
        with gui.add_folder("Parameters", order=0.6, expand_by_default=False):
            for name, (low, high) in ranges.items():
                value = float(present[known_name("parameter", name, present)])
                label = visible(name.removeprefix("controller."))
                slider = sliders[name] = gui.add_slider(label, low, high, (high - low) / 200.0, value)
                slider.on_update(lambda event, name=name: self.change(name, event.target.value))
        return sliders

    def _set_command(self, entry: int, value: float) -> None:
        assert self.command is not None
        self.command[entry] = value

    def _update(self, passed: float) -> bool:
        """Advance by the time since the last call, [s], show the robots, and return whether they have moved."""
        if self.driver is not None and np.all(self.simulation.ended) and self.driver.has_waited(passed):
            self.reset()
        if self.pause.value or np.all(self.simulation.ended):
            self._lag = 0.0
            return False
        with self._lock:
            h = self.simulation.time_step
            self._lag = min(self._lag + passed * float(self.speed.value), 4.0 / RATE)
            count = int(self._lag / h)
            if not count:
                return False
            self._lag -= count * h
            self._advance(count)
            self._show()
        self._clock, self._simulated = self._clock + passed, self._simulated + count * h
        if self._clock > 0.5:
            self._report()
        return True

    def _advance(self, count: int) -> None:
        """Advance all robots by a number of time steps; pushes since the last call act in the first."""
        command = self.command if self.driver is None else self.driver.command(self.command)
        if self._pushes:
            pushes, self._pushes = self._pushes, []
            self.simulation.step(command, wrenches=pushes)
            count -= 1
        if count:
            self.simulation.step(command, n=count)
        if self.driver is not None:
            self.driver.record()

    def _report(self) -> None:
        t, reasons = float(np.max(self.simulation.t)), [text for text in self.simulation.reasons if text]
        words = f"t = {t:.2f} s, {self._simulated / max(self._clock, 1e-9):.2f} of real time"
        self.status.content = paragraphs(words, *reasons[:3])
        self._clock = self._simulated = 0.0

    def _show(self) -> None:
        motions = self._motions()
        for actor, motion in zip(self._actors, motions, strict=True):
            actor.show(motion)
        self._viewer.follow(motions[0].base[0])
        if np.any(self.simulation.ended):
            self._report()

    def _motions(self) -> list[Motion]:
        """Return the present poses, contacts and balance points of each robot, one sample each."""
        simulation, robot, scene = self.simulation, self.simulation.robot, self._scene
        state, contacts = simulation.state, simulation.contacts
        q, v, rest = (np.atleast_2d(x)[:MOST_ROBOTS] for x in (state.q, state.v, state.rest))
        present = states(robot)(q, v)
        if self.driver is not None:
            self.driver.place = present.origins[0, 0]
            self.driver.yaw = heading(present.rotations[0, 0])
        batch = (x if simulation.num is not None else x[None] for x in (contacts.positions, contacts.forces))
        points, forces = (x[:MOST_ROBOTS] for x in batch)
        rotations, positions = quaternions(present.rotations[:, scene.links]), present.origins[:, scene.links]
        if isinstance(simulation.loop, RigidLoop) and simulation.loop.bodies:
            rows = zip(q, np.concatenate([v, rest], axis=1), strict=True)
            bodies = np.array([[p for p, _ in simulation.loop.states(*row)[1:]] for row in rows])
            rotations = np.concatenate([rotations, bodies[..., :4]], axis=1)
            positions = np.concatenate([positions, bodies[..., 4:]], axis=1)
        support = support_of(points, forces @ self._normal, self._own, scene.weight)
        capture = capture_of(robot, present.center, present.velocity, points, support, self._normal)
        base, times = present.origins[:, 0], np.zeros(len(q))
        memory = np.atleast_2d(simulation.observe(_memory))[:MOST_ROBOTS]
        steps = planned_footsteps(simulation.loop.controller, memory)
        parts = (times, rotations, positions, base, points, forces, present.center, capture, support, steps)
        return [Motion(*(x[k : k + 1] for x in parts)) for k in range(len(q))]


def _memory(memory: Array) -> Array:
    """Return the memory of the controller, as `Simulation.observe` passes it."""
    return memory
