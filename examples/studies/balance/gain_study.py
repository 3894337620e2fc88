"""Velocity gains as a design tool: link lengths and poses of a triple pendulum, a quadruped on two diagonal feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from controllers import PlanarBalance, home_of
from examples.studies.balance.planar_study import MOTION, OTHER, triple_pendulum
from legged.algorithms.velocity_gains import velocity_gains
from legged.compiler import compile as compile_function
from legged.dynamics.frames import frame_jacobian, frame_pose
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.simulation.plots import pages
from legged.spatial import Array, cross
from legged.table import Table

QUADRUPEDS = ("hyq_no_sensors.urdf", "go2.urdf")
"""Files of the package example-robot-data that are analyzed by default."""
HEIGHT, MASS = 1.0, 1.5  # [m], [kg], of the triple pendulum of the design study
SHORTEST = 0.1  # [m], shortest rod
UPRIGHT, CROUCHED = (0.0, 0.0), (2.0, -2.0)  # [rad], hip and neck
JOINTS = (MOTION, OTHER)


def quadruped_files() -> list[Path]:
    """Return the paths of `QUADRUPEDS`.

    Raises:
        DefinitionError: The package example-robot-data is not installed.
    """
    try:
        entries = files("example-robot-data") or []
    except PackageNotFoundError:
        raise DefinitionError(
            "the quadrupeds HyQ and Go2 are files of the package example-robot-data, which is not installed; run "
            "`pip install example-robot-data`, name URDF files of quadrupeds, or pass --no-quadrupeds"
        ) from None
    return [Path(str(entry.locate())) for name in QUADRUPEDS for entry in entries if entry.name == name]


class Design(NamedTuple):
    """Gains of balanced triple pendulums of equal length and mass in one posture.

    Attributes:
        posture: Angles of hip and neck, [rad].
        leg, trunk: Lengths of the two lower rods, (n,), [m]; the head has the rest of `HEIGHT`.
        gains: Linear gains in x of hip and neck, (n, n, 2), [m/s] per rad/s, by (trunk, leg); NaN where the head would
            be too short.
    """

    posture: tuple[float, float]
    leg: Array
    trunk: Array
    gains: Array

    def best(self, joint: int) -> tuple[float, float, float]:
        """Return (length of the leg, length of the trunk, gain) of the design with the largest absolute gain.

        Args:
            joint: 0 for the hip, 1 for the neck.
        """
        row, column = np.unravel_index(np.nanargmax(np.abs(self.gains[:, :, joint])), self.gains.shape[:2])
        return float(self.leg[column]), float(self.trunk[row]), float(self.gains[row, column, joint])


def design_study(posture: tuple[float, float] = UPRIGHT, number: int = 21) -> Design:
    """Return the gains of pendulums over the lengths of their links, balanced; rods of equal mass per length.

    Args:
        posture: Angles of hip and neck, [rad]. number: Number of lengths.
    """
    lengths = np.linspace(SHORTEST, HEIGHT - 2.0 * SHORTEST, number)
    gains = np.full((number, number, 2), np.nan)
    for i, trunk in enumerate(lengths):
        for j, leg in enumerate(lengths):
            rods = np.array([leg, trunk, HEIGHT - leg - trunk])
            if rods[2] > SHORTEST - 1e-9:
                robot = triple_pendulum(rods, MASS * rods / HEIGHT)
                q = PlanarBalance(robot, {MOTION: 1.0}).balanced(np.array(posture))
                gains[i, j] = velocity_gains(robot, q, passive=["pivot"]).linear[0]
    return Design(posture, lengths, lengths, gains)


class PoseMap(NamedTuple):
    """Gains of the triple pendulum over its balanced poses.

    Attributes:
        hip, neck: Joint angles, (n,), [rad]. gains: Linear gains in x of hip and neck, (n, n, 2), by (neck, hip).
    """

    hip: Array
    neck: Array
    gains: Array


def pose_map(number: int = 121) -> PoseMap:
    """Return the gains over balanced poses, computed by one compiled kernel.

    Args:
        number: Number of angles of each joint.
    """
    robot = triple_pendulum()
    model = PlanarBalance(robot, {MOTION: 1.0})
    angles = np.linspace(-np.pi, np.pi, number)

    def gains(robot: Robot, joints: Array) -> Array:
        return velocity_gains(robot, model.balanced(joints), passive=["pivot"]).linear[0]

    kernel = compile_function(gains, robot, joints=2)
    return PoseMap(angles, angles, np.array([[kernel(np.array([hip, neck])) for hip in angles] for neck in angles]))


@dataclass(frozen=True, eq=False)
class DiagonalStance:
    """A quadruped on two diagonal feet, front left and rear right.

    Attributes:
        robot: The robot, on a floating base. height: Height of the hips, [m]; None for the home posture.
    """

    robot: Robot
    height: float | None = None

    @cached_property
    def q(self) -> Array:
        """The configuration, (nq,)."""
        q = self.robot.neutral()
        q[self.robot.base.nq :] = self._home.angles
        return q

    @cached_property
    def _home(self) -> Any:
        home = home_of(self.robot, hip_height=self.height)
        if len(home.legs) != 4:
            raise DefinitionError(
                f"a stance on two diagonal feet needs a quadruped; robot {self.robot.name!r} has {len(home.legs)} legs"
            )
        return home

    @cached_property
    def standing(self) -> list[Any]:
        """The two legs that stand."""
        return [leg for leg in self._home.legs if leg.hip[0] * leg.hip[1] > 0.0]

    @cached_property
    def feet(self) -> list[str]:
        """Names of the two contact points."""
        return [leg.contacts[0] for leg in self.standing]

    @cached_property
    def axes(self) -> Array:
        """Unit vectors along the line of support and horizontally across it, (2, 3), world axes."""
        front, rear = (frame_pose(self.robot, self.q, foot).position for foot in self.feet)
        along = (front - rear) * [1.0, 1.0, 0.0]
        along = along / np.linalg.norm(along)
        return np.stack([along, cross(np.array([0.0, 0.0, 1.0]), along)])

    @cached_property
    def actions(self) -> dict[str, Array]:
        """Joint rates by action, (nj,): joints of the lifted legs, and motions of the trunk by the standing legs."""
        robot, first = self.robot, self.robot.base.nv
        J = np.concatenate([frame_jacobian(robot, self.q, foot)[3:] for foot in self.feet])
        columns = first + np.concatenate([leg.columns for leg in self.standing])
        lifted = [column for column in range(first, robot.nv) if column not in columns]
        names = {
            column: joint.name if joint.v.stop - joint.v.start == 1 else f"{joint.name}, axis {k + 1}"
            for joint in robot.joints
            for k, column in enumerate(range(joint.v.start, joint.v.stop))
        }
        actions = {names[column]: np.eye(robot.nv - first)[column - first] for column in lifted}
        along, across = self.axes
        zero = np.zeros(3)
        twists = {
            "trunk moves across the line": np.concatenate([zero, across]),
            "trunk moves up": np.concatenate([zero, [0.0, 0.0, 1.0]]),
            "trunk turns about the line": np.concatenate([along, zero]),
        }
        for name, twist in twists.items():
            rates = np.zeros(robot.nv - first)
            rates[columns - first] = np.linalg.solve(J[:, columns], -J[:, :first] @ twist)
            actions[name] = rates
        return actions

    def gains(self) -> dict[str, tuple[float, float]]:
        """Return (linear gain across the line, angular gain about the line) of each action.

        The units are [m/s] and [rad/s] per rad/s of a joint, or per m/s or rad/s of the trunk relative to the feet.
        """
        along, across = self.axes
        given = np.stack(list(self.actions.values()), axis=1)
        gains = velocity_gains(self.robot, self.q, self.feet, given)
        numbers = zip(self.actions, across @ gains.linear, along @ gains.angular, strict=True)
        return {name: (float(linear), float(angular)) for name, linear, angular in numbers}

    def table(self) -> Table:
        """Return the gains of all actions."""
        rows = tuple((name, f"{a:.4f}", f"{b:.4f}") for name, (a, b) in self.gains().items())
        feet = " and ".join(self.feet)
        return Table(f"Velocity gains of {self.robot.name} on {feet}", ("action", "linear", "angular"), rows)


def design_table(designs: Sequence[Design]) -> Table:
    """Return the designs with the largest gains.

    Args:
        designs: One study for each posture.
    """
    rows = []
    for design in designs:
        for k, joint in enumerate(JOINTS):
            leg, trunk, gain = design.best(k)
            lengths = (f"{x:.2f}" for x in (leg, trunk, HEIGHT - leg - trunk))
            rows.append((_words(design), joint, *lengths, f"{gain:.4f}"))
    header = "posture", "joint", "leg [m]", "trunk [m]", "head [m]", "largest gain [m/s per rad/s]"
    notes = (f"{HEIGHT:g} m, {MASS:g} kg, rods of equal mass per length, at least {SHORTEST:g} m long.",)
    return Table("Triple pendulum on a point: link lengths with the largest gains", header, tuple(rows), notes, left=2)


def _words(design: Design) -> str:
    hip, neck = design.posture
    return "upright" if hip == neck == 0.0 else f"hip {hip:g}, neck {neck:g} rad"


def design_figure(designs: Sequence[Design]) -> Figure:
    """Return the absolute gains of hip and neck over the lengths of leg and trunk, a row for each posture.

    Args:
        designs: One study for each posture.
    """
    made = pages.figure(len(designs), 2, width=9.0, height=3.7)
    panels = iter(made.axes)
    for design in designs:
        for k, joint in enumerate(JOINTS):
            ax, values = next(panels), np.abs(design.gains[:, :, k])
            ax.grid(False)
            mesh = ax.pcolormesh(design.leg, design.trunk, values, cmap="viridis", shading="nearest")
            ax.contour(design.leg, design.trunk, values, levels=8, colors="white", linewidths=0.6)
            leg, trunk, _ = design.best(k)
            ax.plot(leg, trunk, "*", color=pages.RED, markersize=12)
            made.colorbar(mesh, ax=ax, label="[m/s per rad/s]")
            pages.label(ax, f"{joint}, {_words(design)}; star: largest", "leg [m]", "trunk [m]")
    return made


def pose_figure(poses: PoseMap) -> Figure:
    """Return the gains over the balanced poses, with the lines of zero gain, where the joint cannot balance."""
    made = pages.figure(1, 2, width=9.0, height=3.9)
    for k, (ax, joint) in enumerate(zip(made.axes, JOINTS, strict=True)):
        values = poses.gains[:, :, k]
        most = float(np.abs(values).max())
        ax.grid(False)
        mesh = ax.pcolormesh(poses.hip, poses.neck, values, cmap="RdBu_r", vmin=-most, vmax=most, shading="nearest")
        ax.contour(poses.hip, poses.neck, values, levels=[0.0], colors="black", linewidths=1.4)
        made.colorbar(mesh, ax=ax, label="[m/s per rad/s]")
        pages.label(ax, f"gain of the {joint}; black: zero", "hip [rad]", "neck [rad]")
    return made


def height_figure(robots: Sequence[Robot], number: int = 6) -> Figure:
    """Return the angular gains of the actions over the height of the hips, one panel for each quadruped.

    Args:
        robots: Quadrupeds. number: Number of heights.
    """
    made = pages.figure(1, len(robots), width=4.8 * len(robots), height=4.0)
    for ax, robot in zip(made.axes, robots, strict=True):
        reach = min(leg.length for leg in home_of(robot).legs)
        heights = reach * np.linspace(0.5, 0.9, number)
        gains = [DiagonalStance(robot, height).gains() for height in heights]
        for name in gains[0]:
            style = "--" if name.startswith("trunk") else "-"
            ax.plot(heights, [pair[name][1] for pair in gains], style, linewidth=1.4, label=name)
        pages.label(ax, f"{robot.name}: angular gain about the line", "height of the hips [m]", "[rad/s] per unit")
        ax.legend(fontsize=6.5, frameon=False)
    return made


def write(designs: Sequence[Design], poses: PoseMap, robots: Sequence[Robot], folder: Path) -> list[Path]:
    """Write the figures and return the paths."""
    drawn = {"design": design_figure(designs), "poses": pose_figure(poses)}
    if robots:
        drawn["quadrupeds"] = height_figure(robots)
    return [pages.save(figure, folder / f"{name}.png") for name, figure in drawn.items()]
