"""`Run`: the sampled trajectory of one simulation, with saving, loading and CSV export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import Numbers, known_name, number, whole
from legged.contact.rigid import Rigid
from legged.errors import MissingError
from legged.ground.ground import Ground, center_of_pressure
from legged.output import as_html, from_above, visible, write_table
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.simulation.results import recorded_motion, run_files
from legged.simulation.results.accelerations import Accelerations, RecordedAccelerations
from legged.simulation.results.records import (
    GROUND,
    GROUPS,
    BaseRecord,
    BodyHistory,
    BodyRecord,
    ContactHistory,
    ContactRecord,
    EnergyRecord,
    GroundRecord,
    JointHistory,
    JointRecord,
    ModelRecord,
    RecordedPicture,
    StickFigure,
)
from legged.simulation.results.stick_figure import Picture
from legged.simulation.results.tables import table_columns
from legged.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Run:
    """A simulated motion, sampled at T times.

    Attributes:
        robot: Name of the robot.
        backend: Description of the code that evaluated the equations of motion.
        integrator: The integrator and its settings.
        ended: Why the run ended early; empty if it reached its end time.
        times: Sample times, (T,), [s].
        phases: Number of the controller's switch times passed, (T,).
        q, v: Configurations (T, nq) and velocities (T, nv).
        accelerations: `vdot`, which is computed when it is read.
        tau: Generalized forces of the actuators, (T, nv), base entries first, [N m] or [N]; NaN if they are unknown.
        memory: State of the controller, (T, m).
        base: Pose of the base.
        joints: Names of the joints, their entries of q and v, and the reference of the controller.
        contacts: Contact points and forces.
        energy: Energies and work.
        bodies: Free bodies.
        picture: `figure` and `ground`, which are computed when they are read.
        warnings: Texts of the `SimulationWarning`s about this run, such as joints that chatter.
        model: The robot and its surroundings; None in files of older versions, and in files of runs of a robot that
            plain data cannot contain (`Robot.describe`).
        footsteps: Landing places of the n feet that the controller plans, (T, n, 3), [m], world axes; NaN for feet that
            stand. n is 0 for controllers without `planned_footsteps`.
        commanded: Commanded velocities forward and to the left, [m/s], and yaw rates, [rad/s], (T, 3); (0, 3) for
            controllers without `commanded_velocity`.
    """

    robot: str
    backend: str
    integrator: str
    ended: str
    times: Array
    phases: Array
    q: Array
    v: Array
    accelerations: Accelerations | RecordedAccelerations
    tau: Array
    memory: Array
    base: BaseRecord
    joints: JointRecord
    contacts: ContactRecord
    energy: EnergyRecord
    bodies: BodyRecord
    picture: Picture | RecordedPicture
    warnings: tuple[str, ...] = ()
    model: ModelRecord | None = None
    footsteps: Array = field(default_factory=lambda: np.zeros((0, 0, 3)))
    commanded: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        end = f", ended: {visible(self.ended)}" if self.ended else ""
        return f"<Run of {self.robot!r}: {self.duration:g} s, {len(self)} samples, {visible(self.backend)}{end}>"

    def _repr_html_(self) -> str:
        return from_above("frame")(self) if len(self) else f"<pre>{as_html(repr(self))}</pre>"

    @property
    def figure(self) -> StickFigure:
        """Stick figures of robot and free bodies."""
        return self.picture.figure

    @property
    def ground(self) -> GroundRecord:
        """Shape of the ground around the motion."""
        return self.picture.ground

    @property
    def vdot(self) -> Array:
        """Accelerations under all forces, (T, nv); NaN where the equations have no solution."""
        return self.accelerations.vdot

    @property
    def duration(self) -> float:
        """Time from the first to the last sample, [s]."""
        return float(self.times[-1] - self.times[0]) if len(self) else 0.0

    @property
    def energy_drift(self) -> float:
        """Largest change of energy minus work, [J]: the error of the integration; see `EnergyRecord.balance`."""
        return self.energy.drift

    @property
    def mean_velocity(self) -> Array:
        """Mean velocity of the base origin over the run, (3,), [m/s], world axes; zero for a run of one sample."""
        moved = self.base.position[-1] - self.base.position[0]
        return moved / self.duration if self.duration else moved

    @property
    def cost_of_transport(self) -> float:
        """Positive mechanical work of the motors over weight and horizontal distance, dimensionless, from the samples.

        C = integral of sum max(tau v, 0) dt / (m g d), by the trapezoidal rule; NaN without distance, gravity or model.
        """
        way = float(np.linalg.norm((self.base.position[-1] - self.base.position[0])[:2]))
        robot = None if self.model is None else self.model.robot
        weight = 0.0 if robot is None else robot.mass * float(np.linalg.norm(robot.gravity))
        power = np.maximum(self.joint_tau * self.v[:, self.v.shape[1] - self.joint_tau.shape[1] :], 0.0).sum(axis=1)
        work = float(np.trapezoid(power, self.times))
        return work / (weight * way) if weight * way > 0.0 else float("nan")

    @property
    def joint_positions(self) -> Array:
        """Joint coordinates, (T, n) without the n_base entries of the base, [rad] or [m]."""
        return self.q[:, self._first_joint :]

    @property
    def joint_tau(self) -> Array:
        """Generalized forces of the joints, (T, nj), [N m] or [N]."""
        first = int(self.joints.v_range.min()) if len(self.joints.names) else self.v.shape[1]
        return self.tau[:, first:]

    @property
    def ground_force(self) -> Array:
        """Sum of the contact forces of the ground on the robot, (T, 3), [N], world axes."""
        return self.contacts.forces[:, self._ground_contacts].sum(axis=1)

    @property
    def center_of_pressure(self) -> Array:
        """Center of pressure of the ground on the robot, (T, 3), [m], world; NaN in flight."""
        feet = self._ground_contacts
        return center_of_pressure(self.contacts.points[:, feet], self.contacts.forces[:, feet], self.ground.normal)

    def at(self, t: float) -> int:
        """Return the index of the sample nearest to time t.

        Args:
            t: Time, [s].
        """
        return int(np.abs(self.times - number("t", t, "s")).argmin())

    def joint(self, name: str) -> JointHistory:
        """Return the position, velocity, torque and reference of one joint over time.

        Args:
            name: Name of the joint.

        Raises:
            UnknownNameError: No joint has this name.
        """
        k = _index("joint", name, self.joints.names)
        in_q, in_v = slice(*self.joints.q_range[k]), slice(*self.joints.v_range[k])
        reference = self.joints.reference[:, in_q.start - self._first_joint : in_q.stop - self._first_joint]
        return JointHistory(
            _squeezed(self.q[:, in_q]),
            _squeezed(self.v[:, in_v]),
            _squeezed(self.tau[:, in_v]),
            _squeezed(reference) if reference.shape[1] else None,
        )

    def contact(self, name: str) -> ContactHistory:
        """Return the position of one contact point and the forces on it over time.

        Args:
            name: Name of the contact.

        Raises:
            UnknownNameError: No contact has this name.
        """
        k, at = _index("contact point", name, self.contacts.names), self.contacts
        touches = float(at.first_touch[k]), float(at.last_touch[k])
        return ContactHistory(at.points[:, k], at.forces[:, k], at.impulse[:, k], at.peak[:, k], *touches)

    def body(self, name: str) -> BodyHistory:
        """Return the pose and velocity of one free body over time, world axes.

        Args:
            name: Name of the body.

        Raises:
            UnknownNameError: No free body has this name.
        """
        k = _index("free body", name, self.bodies.names)
        q, v = self.bodies.q[:, k], self.bodies.v[:, k]
        R = np.array([quaternion_matrix(p) for p in q[:, :4]])
        return BodyHistory(q[:, 4:], R, *(np.einsum("tij,tj->ti", R, part) for part in (v[:, 3:], v[:, :3])))

    def save(self, path: str | Path) -> Path:
        """Write all arrays to a compressed npz file and return its path.

        Args:
            path: The file; the suffix .npz is appended where it is missing. A missing folder is created.

        Raises:
            FileError: The path has the suffix of another format, or the file cannot be written.
        """
        return run_files.save(self, path)

    @staticmethod
    def load(path: str | Path, most: int | None = None) -> Run:
        """Return a run from a file that `save` wrote, also with an older version of the toolkit.

        Args:
            path: The file.
            most: Largest size of the arrays of the run together, [byte]; by default 256 MiB, or 100 times the size of
                the file if that is more, and at most 2 GiB. A small file can expand to a thousand times its size.

        Raises:
            ArgumentError: The path is neither text nor a `Path`.
            FileError: The file is missing, damaged, too large, of a newer version of the toolkit, or no saved run.
        """
        stored = run_files.load(path, None if most is None else whole("most", most, 1))
        stored["model"] = ModelRecord.from_json(stored["model"], path)
        groups = {
            group: kind(**{f.name: stored.pop(f"{group}.{f.name}") for f in fields(kind)})
            for group, kind in GROUPS.items()
        }
        vdot = RecordedAccelerations(stored.pop("vdot"))
        picture = RecordedPicture(groups.pop("figure"), groups.pop("ground"))
        return Run(**stored, accelerations=vdot, picture=picture, **groups)

    @staticmethod
    def from_motion(
        robot: Robot,
        t: Numbers,
        q: Numbers,
        v: Numbers | None = None,
        tau: Numbers | None = None,
        ground: Ground | Rigid | None = None,
    ) -> Run:
        """Return a recorded motion as a run, which can be viewed, plotted, saved and written as a page or table.

        It has no contacts. Its accelerations are differences of the velocities, of second order. The work of all
        forces is unknown, NaN, and so are the actuators' forces if `tau` is not given.

        Args:
            robot: The robot.
            t: Times in increasing order, (T,), [s].
            q: Configurations, (T, nq), mixed units, as in all of the toolkit: for a floating base the quaternion, w
                first, and the position come first. `legged.conversions` converts those of other programs.
            v: Velocities, (T, nv), mixed units; differences of q, of second order, by default.
            tau: Generalized forces of the actuators, (T, nv), [N m] or [N], zeros for the base.
            ground: The ground that is drawn.

        Raises:
            ShapeError: The arrays do not have one row per time, or rows of another length.
            NotFiniteError: A number is not finite.
            ArgumentError: The times do not increase, or a quaternion does not have norm 1.
        """
        return Run(**recorded_motion.fields_of_motion(robot, t, q, v, tau, ground))

    @staticmethod
    def from_csv(
        robot: Robot,
        path: str | Path,
        columns: Mapping[str, str] | None = None,
        ground: Ground | Rigid | None = None,
    ) -> Run:
        """Return the motion in a table of comma-separated values as a run; see `from_motion`.

        Args:
            robot: The robot.
            path: A file in UTF-8 with a header and one row per sample. The columns are those of `to_csv`: t, and q of
                the base and of all joints, such as "base_q[0]" and "knee_q"; also v and tau, if they are there. Other
                columns are ignored.
            columns: Name of a column here -> its name in the file, such as {"t": "time", "knee_q": "LF_KFE"}.
            ground: The ground that is drawn.

        Raises:
            UnknownNameError: A name in `columns` is none of a column of this robot.
            FileError: The file is missing or no such table, lacks a column, or holds an invalid motion.
        """
        return Run(**recorded_motion.fields_of_table(robot, path, columns, ground))

    def to_csv(self, path: str | Path) -> Path:
        """Write one row per sample and return the path.

        The columns are those of `to_pandas`; the text is UTF-8.

        Args:
            path: The file; the suffix .csv is appended where it is missing. A missing folder is created.

        Raises:
            FileError: The path has the suffix of another format, or the file cannot be written.
        """
        columns = table_columns(self)
        return write_table(path, columns, zip(*(column.tolist() for column in columns.values()), strict=True))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row per sample.

        The columns are t and phase; q, v, vdot, tau and reference with the names of the joints, such as "knee_q", or
        "hip_q[0]" for a joint with several coordinates, and "base_q[0]" for the base; position "base_x" [m] and
        intrinsic angles "base_angle_x" [rad] of the base, continuous over time as `BaseRecord.angles`; contact points
        "foot_x" and forces "foot_fx"; states of free bodies; energies and work [J]. The columns of a joint, contact
        point or free body of which one would have the name of an earlier column begin with "joint_", "contact_" or
        "body_", as in "contact_base_x". A name that begins with = + - @ gets an apostrophe before it, so that
        spreadsheets do not evaluate it.

        Raises:
            MissingError: pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-not-found]
        except ImportError as error:
            raise MissingError("run.to_pandas() needs pandas: pip install pandas; or use run.to_csv(path)") from error
        return pandas.DataFrame(table_columns(self))

    def table(self, command: Sequence[float] | None = None) -> Table:
        """Return the main figures of the run as a table, which can be printed, and written as CSV and LaTeX.

            print(run.table().text())

        Args:
            command: Commanded velocity forward and to the left, [m/s], and yaw rate, [rad/s], (3,), which is shown
                beside the velocity reached at the end; by default the mean of `commanded` over this time, if any.

        Raises:
            ArgumentError: A command that is not three finite numbers.
        """
        return from_above("run_table")(self, command=command)

    def plot(self) -> dict[str, Figure]:
        """Return Matplotlib figures of the trunk, the joints, the energy and the contact forces, by name.

        `legged.simulation.plots` has functions with options for each of them, and animations.
        """
        return from_above("figures")(self)

    def save_html(self, path: str | Path, **options: Any) -> Path:
        """Write a page that plays the run in any browser, without a network, and return its path.

        Args:
            path: The file; the suffix .html is appended where it is missing. options: As in `legged.save_html`.
        """
        return from_above("save_html")(self, path, **options)

    @property
    def _ground_contacts(self) -> list[int]:
        """Indices of the contacts between robot and ground."""
        contacts = enumerate(zip(self.contacts.on, self.contacts.against, strict=True))
        return [k for k, (on, against) in contacts if against == GROUND and on not in self.bodies.names]

    @property
    def _first_joint(self) -> int:
        """Index of the first joint coordinate in q."""
        return int(self.joints.q_range.min()) if len(self.joints.names) else self.q.shape[1]


def _index(what: str, name: str, names: tuple[str, ...]) -> int:
    return names.index(known_name(what, name, names))


def _squeezed(columns: Array) -> Array:
    """Return (T,) for a single column, or the columns."""
    return columns[:, 0] if columns.shape[1] == 1 else columns
