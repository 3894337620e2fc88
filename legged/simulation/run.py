"""`Run`: everything that a simulation produced."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from legged.errors import LeggedError, UnknownNameError
from legged.rotations import euler_angles, quaternion_matrix
from legged.simulation.histories import BodyHistory, ContactHistory, JointHistory
from legged.simulation.skeleton import FREE

Array = np.ndarray


GROUND = "ground"
"""What a contact is against that touches no link and no body."""


@dataclass(frozen=True, eq=False)
class Run:
    """A simulated motion, sampled at T times. World axes and SI units throughout.

    Attributes:
        robot, engine, integrator: Name of the robot, what evaluated the equations, and what stepped through time.
        ended: Why the run stopped early, in words; empty if it did not.
        times: (T,), [s].
        phases: Number of the controller's switch times that had passed, (T,).
        q, v: Configurations (T, nq) and velocities (T, nv).
        vdot: Accelerations under all that acted, (T, nv); NaN where a state had none.
        tau: Generalized forces of the controller as its motors give them, (T, nv), base rows first.
        reference: Joint positions that the controller wanted, (T, nj); (T, 0) if it does not tell.
        memory, ground_memory: States of controller (T, m) and ground (T, g).
        contact_points: Where the contact points were, (T, n, 3), [m].
        contact_forces: The forces on them, (T, n, 3), [N]; on rigid ground, means over the step that ended there.
        contact_residual: By how much the law of rigid contact was broken in that step, (T,), [m/s]; zeros on others.
        kinetic, potential: Energies, (T,), [J], those of free bodies among them.
        actuator_work, ground_work, push_work: Work done on robot and bodies since the start, (T,), [J]; the ground's is
            that of all contacts.
        joint_work: That of friction and stops in the joints.
        base_position: Of the base's origin, (T, 3), [m].
        base_rotation: Base axes to world axes, (T, 3, 3).
        joint_names, joint_q, joint_v: Joints, and where each one's entries of q and v begin and end, (joints, 2).
        contact_names: Of the contact points.
        contact_on, contact_against: The link or free body that each is on, and that it meets, or `GROUND`.
        skeleton: Nodes of the stick figure and behind them of free bodies, (T, k, 3), [m].
        edges: Pairs of nodes to join by lines, (e, 2).
        edge_modules: The module that each line belongs to, (e,), or `FREE`.
        ground_lines: Lines on the ground, (n, k, 3), [m], the first its profile along x; (0, k, 3) without ground.
        ground_normal: Unit normal of that ground on average, (3,).
        bodies: Names of the free bodies.
        body_q, body_v: Their configurations [quaternion, position], (T, bodies, 7), and velocities [angular; linear] in
            their own axes, (T, bodies, 6).
    """

    robot: str
    engine: str
    integrator: str
    ended: str
    times: Array
    phases: Array
    q: Array
    v: Array
    vdot: Array
    tau: Array
    reference: Array
    memory: Array
    ground_memory: Array
    contact_points: Array
    contact_forces: Array
    contact_residual: Array
    kinetic: Array
    potential: Array
    actuator_work: Array
    ground_work: Array
    push_work: Array
    joint_work: Array
    base_position: Array
    base_rotation: Array
    joint_names: tuple[str, ...]
    joint_q: Array
    joint_v: Array
    contact_names: tuple[str, ...]
    contact_on: tuple[str, ...]
    contact_against: tuple[str, ...]
    skeleton: Array
    edges: Array
    edge_modules: Array
    ground_lines: Array
    ground_normal: Array
    bodies: tuple[str, ...]
    body_q: Array
    body_v: Array

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        end = f", ended: {self.ended}" if self.ended else ""
        return f"<Run of {self.robot!r}: {self.duration:g} s, {len(self)} samples, {self.engine}{end}>"

    @property
    def duration(self) -> float:
        """Time from first to last sample, [s]."""
        return float(self.times[-1] - self.times[0]) if len(self) else 0.0

    @property
    def energy_sum(self) -> Array:
        """Kinetic and potential energy less all work done on the robot, (T,), [J]: constant in exact arithmetic."""
        work = self.actuator_work + self.ground_work + self.push_work + self.joint_work
        return self.kinetic + self.potential - work

    @property
    def energy_drift(self) -> float:
        """Largest departure of `energy_sum` from its start, [J]: the error of the integration."""
        return float(np.abs(self.energy_sum - self.energy_sum[0]).max())

    @property
    def joint_tau(self) -> Array:
        """Torques of the joints alone, (T, nj), [N m] or [N]."""
        return self.tau[:, self.tau.shape[1] - self._nj :]

    @property
    def joint_positions(self) -> Array:
        """Joint coordinates alone, (T, nq - base's)."""
        return self.q[:, self._first_joint :]

    @property
    def ground_force(self) -> Array:
        """Sum of the ground's forces on the robot, (T, 3), [N]."""
        return self.contact_forces[:, self._underfoot].sum(axis=1)

    @property
    def center_of_pressure(self) -> Array:
        """Mean of the robot's points on the ground weighted by normal forces, (T, 3), [m]; NaN in flight."""
        from legged.ground.ground import center_of_pressure

        feet = self._underfoot
        return center_of_pressure(self.contact_points[:, feet], self.contact_forces[:, feet], self.ground_normal)

    @property
    def mean_velocity(self) -> Array:
        """Of the base's origin over the run, (3,), [m/s]."""
        return (self.base_position[-1] - self.base_position[0]) / self.duration

    @property
    def figure(self) -> Array:
        """The nodes of the robot's own stick figure, (T, k, 3), [m]: the skeleton less that of free bodies."""
        free = self.edges[self.edge_modules == FREE]
        return self.skeleton[:, : free.min()] if free.size else self.skeleton

    def base_angles(self, sequence: str = "xyz") -> Array:
        """Return the base's intrinsic angles, (T, 3), [rad]: base axes to world is R_1 R_2 R_3 about these axes."""
        return np.array([euler_angles(sequence, R) for R in self.base_rotation]).reshape(-1, 3)

    def joint(self, name: str) -> JointHistory:
        """Return what a joint did: `.position`, `.velocity`, `.torque`, `.reference`; or raise UnknownNameError."""
        k = _index("joint", name, self.joint_names)
        in_q, in_v = slice(*self.joint_q[k]), slice(*self.joint_v[k])
        wanted = self.reference[:, in_q.start - self._first_joint : in_q.stop - self._first_joint]
        return JointHistory(
            _alone(self.q[:, in_q]),
            _alone(self.v[:, in_v]),
            _alone(self.tau[:, in_v]),
            _alone(wanted) if wanted.shape[1] else None,
        )

    def contact(self, name: str) -> ContactHistory:
        """Return where a contact point was and its force: `.position`, `.force`; or raise UnknownNameError."""
        k = _index("contact point", name, self.contact_names)
        return ContactHistory(self.contact_points[:, k], self.contact_forces[:, k])

    def body(self, name: str) -> BodyHistory:
        """Return how a free body moved: `.position`, `.rotation`, `.velocity`, `.spin`; or raise UnknownNameError."""
        k = _index("free body", name, self.bodies)
        q, v = self.body_q[:, k], self.body_v[:, k]
        R = np.array([quaternion_matrix(p) for p in q[:, :4]])
        return BodyHistory(q[:, 4:], R, *(np.einsum("tij,tj->ti", R, part) for part in (v[:, 3:], v[:, :3])))

    def at(self, t: float) -> int:
        """Return the index of the sample nearest to time t, [s]."""
        return int(np.abs(self.times - t).argmin())

    @property
    def _underfoot(self) -> list[int]:
        """The contacts of the robot with the ground."""
        sides = enumerate(zip(self.contact_on, self.contact_against, strict=True))
        return [k for k, (on, against) in sides if against == GROUND and on not in self.bodies]

    @property
    def _first_joint(self) -> int:
        return int(self.joint_q.min()) if len(self.joint_q) else self.q.shape[1]

    @property
    def _nj(self) -> int:
        return self.v.shape[1] - int(self.joint_v.min()) if len(self.joint_v) else 0

    def save(self, path: str | Path) -> Path:
        """Write everything to a compressed npz file and return its path."""
        path = Path(path).with_suffix(".npz")
        stored: dict[str, Any] = {f.name: _storable(getattr(self, f.name)) for f in fields(self)}
        np.savez_compressed(path, **stored)
        return path

    @staticmethod
    def load(path: str | Path) -> Run:
        """Return a run from a file that `save` wrote.

        Raises:
            LeggedError: If the file holds something else.
        """
        with np.load(Path(path), allow_pickle=False) as file:
            missing = {f.name for f in fields(Run)} - set(file.files)
            if missing:
                raise LeggedError(f"{path} is no saved run: it has no {', '.join(sorted(missing))}")
            return Run(**{f.name: _restored(file[f.name]) for f in fields(Run)})

    def to_csv(self, path: str | Path) -> Path:
        """Write a row per sample: time, q, v, torques, base pose, contact forces, bodies, energies; return the path."""
        path = Path(path)
        columns = dict(self._columns_by_name())
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*(map(repr, column.tolist()) for column in columns.values()), strict=True))
        return path

    def save_figures(self, folder: str | Path, prefix: str = "") -> list[Path]:
        """Write figures of trunk, joints, contact forces and energy into a folder; see `plots.save_figures`."""
        from legged.simulation.plots import save_figures

        return save_figures(self, folder, prefix)

    def animate(self, path: str | Path, *, fps: float = 20.0, speed: float = 1.0) -> Path:
        """Write a stick-figure animation, .gif or .html; see `animation.animate`."""
        from legged.simulation.animation import animate

        return animate(self, path, fps=fps, speed=speed)

    def _vectors(self) -> tuple[tuple[str, Array], ...]:
        return ("q", self.q), ("v", self.v), ("vdot", self.vdot), ("tau", self.tau), ("reference", self.reference)

    def _columns_by_name(self) -> Iterator[tuple[str, Array]]:
        yield "t", self.times
        yield "phase", self.phases
        for letter, array in self._vectors():
            yield from ((f"{letter}[{i}]", array[:, i]) for i in range(array.shape[1]))
        for i, axis in enumerate("xyz"):
            yield f"base_{axis}", self.base_position[:, i]
        for k, name in enumerate(self.contact_names):
            for i, axis in enumerate("xyz"):
                yield f"{name}_{axis}", self.contact_points[:, k, i]
                yield f"{name}_f{axis}", self.contact_forces[:, k, i]
        for k, name in enumerate(self.bodies):
            yield from ((f"{name}_q[{i}]", self.body_q[:, k, i]) for i in range(7))
            yield from ((f"{name}_v[{i}]", self.body_v[:, k, i]) for i in range(6))
        for name in ("kinetic", "potential", "actuator_work", "ground_work", "push_work", "joint_work"):
            yield name, getattr(self, name)


def _index(what: str, name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        raise UnknownNameError(what, name, names)
    return names.index(name)


def _alone(columns: Array) -> Array:
    return columns[:, 0] if columns.shape[1] == 1 else columns


def _storable(value: Any) -> Array:
    return np.asarray(value, dtype=str) if isinstance(value, tuple) else np.asarray(value)


def _restored(array: Array) -> Any:
    """Return a stored field as it was: text as str, a list of names as a tuple, all else as an array."""
    if array.dtype.kind != "U":
        return array
    return tuple(array.tolist()) if array.ndim else str(array)
