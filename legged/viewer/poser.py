"""A robot in the viewer: sliders of its joints within their limits, and handles that drag its feet."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.algorithms.inverse_kinematics import InverseKinematics
from legged.arguments import Vector3, known_name
from legged.checked import checked
from legged.output import visible
from legged.robot.configuration import read
from legged.robot.diagram.drawing import svg_element
from legged.robot.joint import PlacedJoint, Prismatic, Revolute, Universal
from legged.robot.robot import Robot
from legged.simulation.results.records import ModelRecord
from legged.viewer.actor import Actor
from legged.viewer.motion import motion_of_states, states
from legged.viewer.scene import scene_of
from legged.viewer.server import Viewer

Array = np.ndarray
_ANGLE, _LENGTH = np.pi, 1.0  # [rad], [m]: largest positions on the sliders of joints without limits
_ITERATIONS = 20  # of inverse kinematics for each movement of a handle


@checked
class Poser:
    """The configuration that a viewer shows; sliders and handles change it.

    Attributes:
        robot: The robot.
        q: Configuration, (nq,), mixed units.
        sliders: Slider of each entry of q that has one, by the name of its joint, with "[k]" for several entries.
        handles: Handle of each foot by the name of its contact point or link.
    """

    def __init__(self, viewer: Viewer, robot: Robot, q: Array | None = None):
        self.robot, self._viewer = robot, viewer
        self.q = _within_limits(robot) if q is None else np.array(read(robot, q=q)[0], float)
        scene = scene_of(ModelRecord.of(robot))
        self._actor = Actor(viewer, "robot", scene)
        self._solvers: dict[str, InverseKinematics] = {}
        self._entries: dict[str, int] = {}
        self._unlimited: list[int] = []  # entries of q that are angles without limits
        self.sliders: dict[str, Any] = {}
        gui = viewer.server.gui
        for note in scene.notes:
            viewer.note(note)
        with gui.add_folder("Show"):
            show_handles = gui.add_checkbox("handles of the feet", True)
            show_center = gui.add_checkbox("center of mass", False)
        with gui.add_folder("Joints"):
            gui.add_button("reset").on_click(lambda _: self.move(start))
            for joint in robot.joints:
                self._add_sliders(joint)
        viewer.modules([svg_element(robot)])
        start = self.q.copy()
        self.handles = {name: self._add_handle(k, name) for k, name in enumerate(_feet(robot))}
        show_handles.on_update(lambda event: self._show_handles(event.target.value))
        show_center.on_update(lambda event: self._actor.toggle("center", event.target.value))
        self._draw()
        base = self._points(list(self.handles)) if self.handles else np.zeros((1, 3))
        height, size = float(base[:, 2].min()), scene.size
        viewer.server.scene.add_grid(
            "/world/grid",
            8.0 * size,
            8.0 * size,
            cell_size=size / 4,
            section_size=8.0 * size,
            position=(0.0, 0.0, height),
        )
        viewer.camera(states(robot)(self.q, np.zeros(robot.nv)).center, size)

    def move(self, q: Array) -> None:
        """Show a configuration.

        Args:
            q: Configuration, (nq,), mixed units.
        """
        self.q = np.array(read(self.robot, q=q)[0], float)
        for name, slider in self.sliders.items():
            value = float(np.clip(self.q[self._entries[name]], slider.min, slider.max))
            if slider.value != value:
                slider.value = value
        self._place_handles()
        self._draw()

    def drag(self, name: str, position: Vector3) -> bool:
        """Move a foot as near to a position as the limits of the joints allow; return whether it reaches the position.

        Args:
            name: Key of `handles`. position: Desired position, (3,), [m], world axes.
        """
        if known_name("handle", name, self.handles) not in self._solvers:
            hold = ("base",) if self.robot.base.nq else ()
            self._solvers[name] = InverseKinematics(self.robot, {name: "position"}, hold=hold)
        wanted = {name: np.asarray(position, float)}
        solution = self._solvers[name].solve(self.q, wanted, 1e-4, _ITERATIONS, partial=True)
        solution.q[self._unlimited] -= 2.0 * np.pi * np.round(solution.q[self._unlimited] / (2.0 * np.pi))
        self.move(solution.q)
        return solution.converged

    def _add_sliders(self, joint: PlacedJoint) -> None:
        """Add a slider for each coordinate of a joint that is an angle or a length."""
        if joint.nq != joint.nv:
            return  # a quaternion
        physics, free = joint.definition.physics, _LENGTH if isinstance(joint.definition, Prismatic) else _ANGLE
        lower, upper = (np.broadcast_to(limit, joint.nv) for limit in (physics.lower, physics.upper))
        for k in range(joint.nv):
            name = joint.name if joint.nv == 1 else f"{joint.name}[{k}]"
            low = float(lower[k]) if np.isfinite(lower[k]) else -free
            high = float(upper[k]) if np.isfinite(upper[k]) else free
            entry = self._entries[name] = joint.q.start + k
            if isinstance(joint.definition, Revolute | Universal) and not np.isfinite([lower[k], upper[k]]).any():
                self._unlimited.append(entry)
            value = float(np.clip(self.q[entry], low, high))
            step = (high - low) / 1000.0
            self.sliders[name] = self._viewer.server.gui.add_slider(visible(name), low, high, step, value)
            self.sliders[name].on_update(lambda event, entry=entry: self._slider_moved(entry, event))

    def _slider_moved(self, entry: int, event: Any) -> None:
        if event.client is not None:  # not a change by `move`
            self.q[entry] = event.target.value
            self._place_handles()
            self._draw()

    def _add_handle(self, k: int, name: str) -> Any:
        scale = 0.25 * self._actor.scene.size
        place = tuple(self._points([name])[0])
        handle = self._viewer.server.scene.add_transform_controls(
            f"/world/handles/{k}",
            scale,
            disable_rotations=True,
            disable_sliders=True,
            depth_test=False,
            position=place,
        )

        @handle.on_update
        def _(event: Any) -> None:
            if event.client is not None:
                self.drag(name, event.target.position)

        return handle

    def _show_handles(self, shown: bool) -> None:
        for handle in self.handles.values():
            handle.visible = shown

    def _place_handles(self) -> None:
        for handle, place in zip(self.handles.values(), self._points(list(self.handles)), strict=True):
            handle.position = tuple(place)

    def _points(self, names: list[str]) -> Array:
        """Return the positions of contact points or links by name, (n, 3), [m], world axes."""
        at = states(self.robot)(self.q, np.zeros(self.robot.nv))
        places, contacts = [], {contact.name: contact for contact in self.robot.contacts}
        for name in names:
            contact = contacts.get(name)
            link = self.robot.link(name).index if contact is None else contact.link
            inside = np.zeros(3) if contact is None else contact.position
            places.append(at.origins[link] + at.rotations[link] @ inside)
        return np.array(places).reshape(-1, 3)

    def _draw(self) -> None:
        self._actor.show(motion_of_states(self._actor.scene, self.robot, np.zeros(1), self.q[None]))


def _feet(robot: Robot) -> list[str]:
    """Return the names of a contact point of each link with contacts; without contacts, of the links at the ends."""
    if robot.contacts:
        first = {contact.link: contact.name for contact in reversed(robot.contacts)}
        return list(reversed(first.values()))
    ends = {module.links[-1] for module in robot.modules[1:]}
    parents = {c.parent for c in robot.connections}
    return [link.name for link in robot.links if link.name in ends - parents]


def _within_limits(robot: Robot) -> Array:
    """Return the neutral configuration with the joints moved to the nearest position within their limits, (nq,)."""
    q = robot.neutral()
    for joint in robot.joints:
        if joint.nq == joint.nv:
            q[joint.q] = np.clip(q[joint.q], joint.definition.physics.lower, joint.definition.physics.upper)
    return q
