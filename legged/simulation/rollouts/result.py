"""`Rollouts`, the result of a batch of simulations, and their files: states of all members, without code."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import shown, whole
from legged.errors import FileError, MissingError
from legged.output import output_file, replaced, visible, write_table
from legged.simulation.results.records import GroundRecord, JointRecord, ModelRecord, RecordedPicture
from legged.simulation.results.run import Run
from legged.simulation.results.run_files import (
    FLAGS,
    NAMES,
    REAL,
    REAL_OR_NAN,
    TEXT,
    FieldRule,
    checked_field,
    opened,
    stored_array,
)
from legged.simulation.results.tables import BASE, Column, coordinates, distinct_names

Array = np.ndarray
KIND = "legged rollouts"
"""Value of the array "kind", which distinguishes these files from runs."""
VERSION = 1
"""Version of the layout of the files."""
_MEMBERS = ("B", "T")
FIELDS = {
    **dict.fromkeys(("robot", "backend", "integrator", "model"), FieldRule(TEXT)),
    "times": FieldRule(REAL, ("T",)),
    "q": FieldRule(REAL_OR_NAN, (*_MEMBERS, "nq")),
    "v": FieldRule(REAL_OR_NAN, (*_MEMBERS, "nv")),
    "rest": FieldRule(REAL_OR_NAN, (*_MEMBERS, "n")),
    "base_position": FieldRule(REAL_OR_NAN, (*_MEMBERS, 3)),
    "fallen": FieldRule(FLAGS, ("B",)),
    "when": FieldRule(REAL_OR_NAN, ("B",)),
    "reasons": FieldRule(NAMES, ("B",)),
    "warnings": FieldRule(NAMES, ("warnings",)),
    "names": FieldRule(NAMES, ("varied",)),
    "ground.lines": FieldRule(REAL, ("lines", "points", 3)),
    "ground.normal": FieldRule(REAL, (3,)),
    "ground.surface": FieldRule(REAL, ("rows", "columns", 3)),
}
"""The fields of a file besides the varied values, "vary 0", "vary 1", ..., (B, ...) each."""


@dataclass(frozen=True, eq=False)
class Rollouts:
    """Motions of B members of a batch, sampled at T times; NaN after the end of a member that fell or diverged.

    Attributes:
        robot: Name of the robot.
        backend: Description of the code that evaluated the equations of motion.
        integrator: The integrator and its settings.
        times: Sample times, (T,), [s].
        q, v: Configurations (B, T, nq) and velocities (B, T, nv), of the type `dtype`.
        rest: Rest of the states, (B, T, n): memories of controller and ground, work of actuators, contacts, pushes and
            joints [J], configuration (7,) and velocity (6,) of each free body.
        base_position: Positions of the base origin, (B, T, 3), [m], world axes.
        fallen: Whether a member ended early, (B,), bool: it fell, or its solution diverged.
        when: Time at which it ended or was interrupted, (B,), [s]; NaN for members that reached the end time.
        reasons: Why it ended early, one for each member; "" for members that reached the end time.
        vary: Name of a varied field -> its values, (B, ...), in the units of the field.
        warnings: Texts of the `SimulationWarning`s: a step too long for the ground, the first member with a joint that
            chatters, the members whose energy rises without work.
        model: The robot, before parameters of it vary, and its surroundings; None in files of robots that plain data
            cannot contain.
    """

    robot: str
    backend: str
    integrator: str
    times: Array
    q: Array
    v: Array
    rest: Array
    base_position: Array
    fallen: Array
    when: Array
    reasons: tuple[str, ...]
    vary: dict[str, Array]
    warnings: tuple[str, ...]
    model: ModelRecord | None
    _run: Callable[[Rollouts, int], Run]

    def __reduce__(self) -> tuple[Any, ...]:
        """Let `pickle` and `copy` leave out the controller if it cannot be copied, such as one inside a function."""
        state = dict(vars(self))
        try:
            state["_run"] = pickle.dumps(self._run)
        except Exception as error:  # the classes of users raise anything
            why = f"its controller cannot be pickled: {shown(str(error), 200)}"
            state["_run"] = RecordedMembers(None, why)
        return _restored, (state,)

    def __len__(self) -> int:
        return len(self.q)

    def __repr__(self) -> str:
        count, backend = f"{len(self)} members, {int(self.fallen.sum())} fell", visible(self.backend)
        return f"<Rollouts of {self.robot!r}: {count}, {self.times[-1]:g} s, {backend}>"

    def run(self, i: int) -> Run:
        """Return member i as a `Run`, with torques, contact forces, energies and stick figures.

        Args:
            i: Index of the member; negative indices count from the end.
        """
        return self._run(self, whole("i, the index of a member,", i, -len(self), len(self) - 1) % len(self))

    def save(self, path: str | Path) -> Path:
        """Write the states of all members to a compressed npz file and return its path.

        A file contains no code: of `load(path)`, `run(i)` returns the recorded motion of a member without torques and
        contacts; see `Run.from_motion`. Save `run(i)` where these matter, or pickle the rollouts.

        Args:
            path: The file; the suffix .npz is appended where it is missing. A missing folder is created.

        Raises:
            FileError: The path has the suffix of another format, or the file cannot be written.
        """
        path = output_file(path, ".npz")
        arrays = {name: getattr(self, name) for name in FIELDS if "." not in name and name not in ("model", "names")}
        arrays |= {name: np.asarray(arrays[name], dtype=str) for name in ("reasons", "warnings")}
        arrays["model"] = "" if self.model is None else self.model.to_json()
        arrays["names"] = np.asarray(list(self.vary), dtype=str)
        arrays |= {f"vary {k}": np.asarray(values) for k, values in enumerate(self.vary.values())}
        ground = self.run(0).ground
        arrays |= {f"ground.{f.name}": getattr(ground, f.name) for f in fields(ground)}
        with replaced(path) as draft, draft.open("wb") as file:
            np.savez_compressed(file, kind=np.array(KIND), version=np.array(VERSION), **arrays)
        return path

    def to_pandas(self, last: bool = False) -> Any:
        """Return a pandas DataFrame with one row per member and sample, without those after the end of a member.

        The columns are member; the varied values, such as "controller.kp", or "pushes.0.impulse[0]" of an array;
        fallen, when [s] and reason of the member; t [s]; q and v, and the position "base_x" [m] of the base, with the
        names of `Run.to_pandas`.

        Args:
            last: Whether to return the last state of each member alone, one row per member.

        Raises:
            MissingError: pandas is not installed.
        """
        try:
            import pandas  # type: ignore[import-not-found]
        except ImportError as error:
            raise MissingError("to_pandas() needs pandas: pip install pandas; or use runs.to_csv(path)") from error
        return pandas.DataFrame(_table(self, last))

    def to_csv(self, path: str | Path, last: bool = False) -> Path:
        """Write the table of `to_pandas` in UTF-8 and return the path.

        Args:
            path: The file; the suffix .csv is appended where it is missing. A missing folder is created.
            last: Whether to write the last state of each member alone.

        Raises:
            FileError: The path has the suffix of another format, or the file cannot be written.
        """
        columns = _table(self, last)
        return write_table(path, columns, zip(*(column.tolist() for column in columns.values()), strict=True))

    @staticmethod
    def load(path: str | Path, most: int | None = None) -> Rollouts:
        """Return rollouts from a file that `save` wrote.

        Args:
            path: The file. most: Largest size of the arrays together, [byte]; default as in `Run.load`.

        Raises:
            ArgumentError: The path is neither text nor a `Path`.
            FileError: The file is missing, damaged, too large, or no saved rollouts.
        """
        with opened(path, None if most is None else whole("most", most, 1), "rollouts") as (archive, source, limit):
            fields_by_name = _read(archive, source, limit)
        fields_by_name["model"] = ModelRecord.from_json(fields_by_name["model"], path)
        return Rollouts(**fields_by_name)


def _table(runs: Rollouts, last: bool) -> dict[str, Array]:
    """Return the columns of `Rollouts.to_pandas` by name."""
    valid = np.asarray(np.isfinite(runs.q).all(axis=2))
    if last:
        valid &= np.cumsum(valid[:, ::-1], axis=1)[:, ::-1] == 1
    members, samples = np.nonzero(valid)
    columns = [Column(BASE, 0, "member", members)]
    for name, values in runs.vary.items():
        for place in np.ndindex(values.shape[1:]):
            entry = f"[{', '.join(map(str, place))}]" if place else ""
            columns.append(Column(BASE, 0, name + entry, values[(members, *place)]))
    for name in ("fallen", "when", "reasons"):
        columns.append(Column(BASE, 0, name.removesuffix("s"), np.asarray(getattr(runs, name))[members]))
    columns.append(Column(BASE, 0, "t", runs.times[samples]))
    none = np.zeros((0, 2), dtype=int)
    joints = JointRecord((), none, none, none) if runs.model is None else JointRecord.of(runs.model.robot, none)
    for letter, ranges in (("q", joints.q_range), ("v", joints.v_range)):
        array = getattr(runs, letter)[members, samples]
        for kind, number, name, entry in coordinates(joints.names, ranges, letter, array.shape[1]):
            columns.append(Column(kind, number, name, array[:, entry]))
    places = runs.base_position[members, samples]
    columns += [Column(BASE, 0, f"base_{axis}", places[:, i]) for i, axis in enumerate("xyz")]
    return dict(zip(distinct_names(columns), (column.values for column in columns), strict=True))


def _restored(state: dict[str, Any]) -> Rollouts:
    """Return rollouts from the state that `Rollouts.__reduce__` returns."""
    run = state["_run"]
    return Rollouts(**state | {"_run": pickle.loads(run) if isinstance(run, bytes) else run})


class RecordedMembers(NamedTuple):
    """The function (rollouts, i) -> `Run` of members whose controller is not known: their recorded motion.

    Attributes:
        ground: Shape of the ground; None if it is unknown. why: Why the controller is not known.
    """

    ground: GroundRecord | None
    why: str

    def __call__(self, runs: Rollouts, i: int) -> Run:
        """Return member i as a recorded motion, with a warning that names the missing records.

        Args:
            runs: The rollouts. i: Index of the member.

        Raises:
            MissingError: The robot has joints or a base of a user's own class, which a file cannot describe.
        """
        if runs.model is None:
            raise MissingError(f"the robot of these rollouts is unknown, since {self.why}; use the arrays q and v")
        own = {name.removeprefix("robot."): x[i] for name, x in runs.vary.items() if name.startswith("robot.")}
        robot = runs.model.robot.with_parameters(own) if own else runs.model.robot
        valid = int(np.isfinite(runs.q[i]).all(axis=1).sum())
        run = Run.from_motion(robot, runs.times[:valid], runs.q[i, :valid], runs.v[i, :valid])
        picture = run.picture if self.ground is None else RecordedPicture(run.figure, self.ground)
        words = f"torques, contacts and work are unknown, since {self.why}"
        model = replace(runs.model, robot=robot, bodies={})
        return replace(
            run, integrator=runs.integrator, ended=runs.reasons[i], picture=picture, warnings=(words,), model=model
        )


def _read(archive: zipfile.ZipFile, source: str, most: int) -> dict[str, Any]:
    """Return the arguments of `Rollouts`, with the model as text, from a file of at most `most` bytes."""
    members = {name.removesuffix(".npy") for name in archive.namelist()}
    if "kind" not in members or str(stored_array(archive, "kind", source, 1000, most)) != KIND:
        hint = "; load it with legged.Run.load" if {"times", "tau"} <= members else ""
        raise FileError(source, f"is no saved rollouts{hint}")
    version = stored_array(archive, "version", source, 64, most)
    if version.shape or version.dtype.kind not in "iu" or int(version) != VERSION:
        raise FileError(source, f"are rollouts of layout version {version}; this version reads {VERSION}: update it")
    left, lengths, fields_by_name = most, dict[str, int](), dict[str, Any]()
    for name, rule in FIELDS.items():
        if name not in members:
            raise FileError(source, f"is no saved rollouts: it has no {name}")
        array = stored_array(archive, name, source, left, most)
        left -= array.nbytes
        fields_by_name[name] = checked_field(array, rule, lengths, name, source)
    values = dict[str, Array]()
    for k, name in enumerate(fields_by_name.pop("names")):
        if f"vary {k}" not in members:
            raise FileError(source, f"is no saved rollouts: it has no vary {k}")
        values[name] = stored_array(archive, f"vary {k}", source, left, most)
        left -= values[name].nbytes
        if values[name].dtype.kind not in "fiub" or values[name].shape[:1] != (lengths["B"],):
            raise FileError(source, f"'vary {k}' must hold numbers, one entry for each of the {lengths['B']} members")
    ground = GroundRecord(*(fields_by_name.pop(f"ground.{name}") for name in ("lines", "normal", "surface")))
    return {**fields_by_name, "vary": values, "_run": RecordedMembers(ground, "a file does not contain the controller")}
