"""Hybrid motion and force control in three scenes: tables, figures and animations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from examples.studies.balance import hybrid_scenes as scenes
from legged import RungeKutta4, frame_pose, inertia_matrix, link_poses, loops, point_jacobian, simulate
from legged.algorithms.operational import ContactSpace, vertex_on_face
from legged.loops import ClosedRobot
from legged.rotations import euler_angles
from legged.simulation import Run
from legged.simulation.plots import animate, pages
from legged.spatial import Array
from legged.table import Table
from robots import spatial_quadruped

STEPS = (1e-3, 2.5e-4)
"""Time steps with measured accelerations, [s]."""


@dataclass(frozen=True, eq=False)
class HybridStudy:
    """Runs of the arm on two faces, of the gantry on a vibrating plate, and of the quadruped at a wall.

    Attributes:
        duration: Duration of the runs of the arm and of the quadruped, [s].
    """

    duration: float = 3.0

    @cached_property
    def arm(self) -> tuple[ClosedRobot, Run]:
        """The arm on two fixed faces, and its run."""
        closed = scenes.arm_on_faces(scenes.six_axis_arm())
        start = scenes.first_configuration()
        law, integrator = scenes.tool_control(), RungeKutta4(1e-3)
        return closed, simulate(closed, law, until=self.duration, q=start, v=np.zeros(6), integrator=integrator)

    @cached_property
    def gantry(self) -> dict[str, tuple[ClosedRobot, Run]]:
        """Runs of the gantry on the shaken plate by their names."""
        made = {"unknown vibration": scenes.gantry_run()}
        for step in STEPS:
            made[f"measured, steps of {1e3 * step:g} ms"] = scenes.gantry_run(True, step)
        return made

    @cached_property
    def motion_changes(self) -> dict[str, Array]:
        """Changes of the motion of each run of the gantry from that on a plate at rest, (T,), [kg m]."""
        still = {step: gantry_motion(scenes.gantry_run(step=step, shaking=0.0)[1]) for step in STEPS}
        steps = dict(zip(self.gantry, (STEPS[0], *STEPS), strict=True))
        return {
            name: np.abs(gantry_motion(run) - still[steps[name]]).max(axis=1) for name, (_, run) in self.gantry.items()
        }

    @cached_property
    def wall(self) -> Run:
        """The run of the quadruped."""
        return scenes.quadruped_run(self.duration)

    def tables(self) -> list[Table]:
        """Return the tables of the three scenes."""
        return [self._arm_table(), self._gantry_table(), self._wall_table()]

    def _arm_table(self) -> Table:
        closed, run = self.arm
        forces, desired = contact_forces(closed, run), _desired_forces(run.times)
        errors = np.abs(forces - desired).max(axis=0)
        motion, force = decoupling(run.q[0])
        pose = np.abs(self.tool_motion - _desired_motion(run.times)).max(axis=0)
        rows = [
            (f"force of the {name}, {desired[:, k].min():.0f} to {desired[:, k].max():.0f} N", f"{errors[k]:.1e} N")
            for k, name in enumerate(("floor", "wall"))
        ]
        rows += [
            ("position of the tool", f"{pose[:3].max():.1e} m"),
            ("orientation of the tool", f"{pose[3:].max():.1e} rad"),
            ("acceleration caused by a force command of 20 N", f"{motion:.1e} rad/s^2"),
            ("contact force caused by a motion command of 1 rad/s^2", f"{force:.1e} N"),
        ]
        return Table(
            "An arm turns its tool with two vertices on two faces", ("quantity", "largest error"), tuple(rows), left=1
        )

    def _gantry_table(self) -> Table:
        rows = []
        for name, (closed, run) in self.gantry.items():
            error = np.abs(contact_forces(closed, run) - scenes.GANTRY_FORCE)[20:].max()
            moved = self.motion_changes[name].max()
            plate = np.ptp(run.q[20:, 3])
            rows.append((name, f"{1e3 * plate:.1f}", f"{moved:.0e}", f"{error:.1e}"))
        header = "plate", "its motion [mm]", "change of the motion [kg m]", "force error [N]"
        notes = ("Motion: T^T M q, against a run on a plate at rest. Force errors after 0.1 s.",)
        return Table("A gantry on a plate that a motor shakes", header, tuple(rows), notes, left=1)

    def _wall_table(self) -> Table:
        run = self.wall
        late = run.times > 1.5
        force = -run.contact(scenes.PRESSING).force[late, 0]
        errors = np.abs(self.trunk_motion - _desired_trunk(run.times))[late].max(axis=0)
        sway = np.ptp(self.trunk_motion[late], axis=0)
        slip = max(np.ptp(run.contact(name).position[late], axis=0)[:2].max() for name in scenes.STANDING)
        load = min(run.contact(name).force[late, 2].min() for name in scenes.STANDING)
        rows = (
            ("force on the wall", f"{force.min():.4f} to {force.max():.4f} N"),
            ("sway of the trunk", f"{1e3 * sway[:3].max():.0f} mm, {1e3 * sway[3:].max():.0f} mrad"),
            ("error of the trunk", f"{1e3 * errors[:3].max():.1f} mm, {1e3 * errors[3:].max():.1f} mrad"),
            ("least load of a standing foot", f"{load:.1f} N"),
            ("slip of the standing feet", f"{1e3 * slip:.2f} mm"),
        )
        return Table("A quadruped presses on a wall with 20 N, after 1.5 s", ("quantity", "value"), rows, left=2)

    @cached_property
    def tool_motion(self) -> Array:
        """Position, [m], and roll, pitch and yaw of the tool, [rad], (T, 6)."""
        closed, run = self.arm
        poses = [frame_pose(closed.robot, q, "tool") for q in run.q]
        return np.array([[*pose.position, *euler_angles("zyx", pose.rotation)[::-1]] for pose in poses])

    @cached_property
    def trunk_motion(self) -> Array:
        """Position, [m], and roll, pitch and yaw of the trunk, [rad], (T, 6)."""
        robot = spatial_quadruped()
        poses = [link_poses(robot, q) for q in self.wall.q]
        return np.array([[*o[0], *euler_angles("zyx", R[0])[::-1]] for R, o in poses])

    def arm_figure(self) -> Figure:
        """Return contact forces, and position and orientation of the tool, over time."""
        closed, run = self.arm
        made = pages.figure(3, 1, height=1.9, sharex=True)
        forces, t = contact_forces(closed, run), run.times
        for k, name in enumerate(("floor", "wall")):
            made.axes[0].plot(t, forces[:, k], color=(pages.BLUE, pages.ORANGE)[k], label=name)
        made.axes[0].plot(t, _desired_forces(t), "k:", linewidth=1.0)
        for k, (name, color) in enumerate(zip("xyz", _COLORS, strict=True)):
            made.axes[1].plot(t, 1e3 * (self.tool_motion[:, k] - self.tool_motion[0, k]), color=color, label=name)
        for k, (name, color) in enumerate(zip(("roll", "pitch", "yaw"), _COLORS, strict=True)):
            made.axes[2].plot(t, self.tool_motion[:, 3 + k], color=color, label=name)
        for ax, words in zip(made.axes, ("contact force [N]", "position [mm]", "angle [rad]"), strict=True):
            pages.label(ax, "", "", words)
            ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        pages.label(made.axes[0], "Two vertices of a tool on two faces; desired forces dotted", "", "contact force [N]")
        made.axes[-1].set_xlabel("time [s]", fontsize=9)
        return made

    def gantry_figure(self) -> Figure:
        """Return the motion of plate and tip, the change of the motion in its subspace, and the force error."""
        made = pages.figure(3, 1, height=1.9, sharex=True)
        for (name, (closed, run)), color in zip(self.gantry.items(), _COLORS, strict=True):
            t = run.times
            made.axes[0].plot(t, 1e3 * run.q[:, 3], color=color, label=name)
            made.axes[1].semilogy(t[1:], np.maximum(self.motion_changes[name][1:], 1e-18), color=color)
            error = np.abs(contact_forces(closed, run)[:, 0] - scenes.GANTRY_FORCE)
            made.axes[2].semilogy(t[1:], error[1:], color=color)
        made.axes[1].set_ylim(1e-18, 1e-2)
        words = "plate [mm]", "change of the\nmotion [kg m]", "force error [N]"
        for ax, word in zip(made.axes, words, strict=True):
            pages.label(ax, "", "", word)
        pages.label(made.axes[0], "A gantry presses with 12 N on a plate that a motor shakes", "", words[0])
        made.axes[-1].set_xlabel("time [s]", fontsize=9)
        return pages.legend(made, columns=3)

    def wall_figure(self) -> Figure:
        """Return the force on the wall, the sway of the trunk and the loads of the standing feet."""
        run, t = self.wall, self.wall.times
        made = pages.figure(4, 1, height=1.7, sharex=True)
        force, position, angles, loads = made.axes
        force.plot(t, -run.contact(scenes.PRESSING).force[:, 0], color=pages.BLUE, label="wall")
        force.plot(t, [scenes.pressing_force(x) for x in t], "k:", linewidth=1.0, label="desired")
        for k, color in enumerate(_COLORS):
            motion = self.trunk_motion
            position.plot(t, 1e3 * (motion[:, k] - motion[0, k]), color=color, label="xyz"[k])
            angles.plot(t, 1e3 * motion[:, 3 + k], color=color, label=("roll", "pitch", "yaw")[k])
            name = scenes.STANDING[k]
            loads.plot(
                t, run.contact(name).force[:, 2], color=color, label=name.replace("_foot", "").replace("leg", "leg ")
            )
        words = "force [N]", "trunk [mm]", "trunk [mrad]", "load [N]"
        for ax, word in zip(made.axes, words, strict=True):
            pages.label(ax, "", "", word)
            ax.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        pages.label(force, "A quadruped on three feet presses with the fourth on a wall", "", words[0])
        made.axes[-1].set_xlabel("time [s]", fontsize=9)
        return made


_COLORS = (pages.BLUE, pages.ORANGE, pages.GREEN)


def contact_forces(closed: ClosedRobot, run: Run) -> Array:
    """Return the forces of the closing joints of a run, (T, c), [N], along their normals.

    Args:
        closed: The robot with its contacts. run: The run.
    """
    states = zip(run.q, run.v, run.tau, strict=True)
    return np.array([loops.solve(closed, *state).multipliers for state in states])


def gantry_motion(run: Run) -> Array:
    """Return the coordinates T^T M q of the gantry's motion, (T, 2), [kg m], joint axes, with orthonormal T.

    Args:
        run: A run of `hybrid_scenes.gantry_run`.
    """
    robot, zero = scenes.gantry(), np.zeros(3)
    T = np.linalg.svd(point_jacobian(robot, zero, "tip")[5:])[2][1:].T
    return run.q[:, :3] @ inertia_matrix(robot, zero) @ T


def decoupling(q: Array) -> tuple[float, float]:
    """Return the largest acceleration due to commands of force, and the largest contact force due to those of motion.

    Args:
        q: Configuration of the arm on two faces at rest, (6,), [rad].

    Returns:
        The acceleration under forces of 20 N, [rad/s^2], and the force under 1 rad/s^2 of all joints, [N].
    """
    robot, v = scenes.six_axis_arm(), np.zeros(6)
    faces = ((scenes.FLOOR_TIP, (0.0, 0.0, 1.0)), (scenes.WALL_TIP, (-1.0, 0.0, 0.0)))
    space = ContactSpace(robot, q, tuple(vertex_on_face(robot, q, v, "tool", tip, n) for tip, n in faces))
    M, J = inertia_matrix(robot, q), space.J
    forces = -J.T @ np.array([20.0, 20.0])
    motion = (np.eye(6) - space.force_projector) @ M @ np.ones(6)
    system = np.block([[M, -J.T], [J, np.zeros((2, 2))]])
    by_force, by_motion = (np.linalg.solve(system, np.concatenate([tau, np.zeros(2)])) for tau in (forces, motion))
    return float(np.abs(by_force[:6]).max()), float(np.abs(by_motion[6:]).max())


def _desired_forces(times: Array) -> Array:
    return np.stack([scenes.floor_force(times), scenes.wall_force(times)], axis=1)


def _desired_motion(times: Array) -> Array:
    return np.array([[*scenes.tool_position(t), *scenes.tool_angles(t)] for t in times])


def _desired_trunk(times: Array) -> Array:
    return np.array([[*scenes.trunk_position(t), *scenes.trunk_angles(t)] for t in times])


def write(study: HybridStudy, folder: Path) -> list[Path]:
    """Write the figures, and animations of the arm and the quadruped, and return the paths."""
    made = {"arm": study.arm_figure(), "gantry": study.gantry_figure(), "wall": study.wall_figure()}
    paths = [pages.save(figure, folder / f"{name}.png") for name, figure in made.items()]
    for name, run in (("arm", study.arm[1]), ("wall", study.wall)):
        paths += [animate(run, folder / f"{name}.{kind}", fps=15.0) for kind in ("gif", "html")]
    return paths
