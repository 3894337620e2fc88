"""Saved runs: npz files with one array for each field of a `Run`, and a version of their layout.

The arrays of version 1 are named as in `_VERSION_1`, those of version 2 as the fields of a run; version 3 adds the
warnings, version 4 the lines that belong to shapes, version 5 impulses, peaks and times of contacts, which are NaN for
older files, version 6 the model and the surface of the ground, version 7 the planned footsteps, version 8 the last
times of contacts, and version 9 the commanded velocities. The array "version" states it; older files may lack it.
The header of each array is checked before memory is allocated for it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from legged.errors import FileError
from legged.files.meshes import check_members
from legged.files.reading import check_regular
from legged.output import output_file, replaced

Array = np.ndarray
VERSION = 9
"""Version of the layout of the files that `Run.save` writes."""
MAX_BYTES = 2**31
"""Largest size of a saved run, compressed and of its arrays together, [byte]."""
SMALL = 2**28
"""Size of the arrays of a run up to which the size of its file does not matter, [byte]."""
MAX_RATIO = 100
"""Largest size of larger arrays relative to their file; that of usual runs is 2 to 20."""
_HEADER = 10_000
"""Largest header of an array, [byte]."""
_VERSION_1 = (
    "robot engine integrator ended times steps q v vdot tau memory base_position base_rotation joint_names joint_q "
    "joint_v reference contact_names contact_on contact_against contact_points contact_forces contact_residual "
    "ground_memory kinetic potential actuator_work ground_work push_work joint_work bodies body_q body_v "
    "ground_lines ground_normal skeleton edges edge_modules"
)
"""Names of the arrays of version 1, in the order of the fields of a run."""


class FieldType(NamedTuple):
    """Type of a field of a run file.

    Attributes:
        word: Its name, for messages.
        codes: Codes of the types of its arrays, `np.dtype.kind`. An empty array may have another type.
        value: Function array -> value of the field; ValueError if the array holds none.
    """

    word: str
    codes: str
    value: Callable[[Array], Any]

    def accepts(self, array: Array) -> bool:
        """Return whether an array has this type.

        Args:
            array: The array, (...), any unit.
        """
        return array.dtype.kind in self.codes or not array.size


def _finite(array: Array) -> Array:
    if not np.isfinite(array).all():
        raise ValueError("holds a number that is not finite; save the run again")
    return array


def _not_infinite(array: Array) -> Array:
    _finite(array[~np.isnan(array)])
    return array


TEXT, NAMES = FieldType("text", "U", str), FieldType("names", "U", lambda array: tuple(array.tolist()))
WHOLE, FLAGS = FieldType("whole", "iu", np.asarray), FieldType("flags", "b", np.asarray)
REAL, REAL_OR_NAN = FieldType("real", "fiu", _finite), FieldType("real", "fiu", _not_infinite)


class FieldRule(NamedTuple):
    """Type and shape of a field of a run file.

    Attributes:
        type: Its type.
        shape: Lengths of the axes: a number, or a name for a length that is equal wherever the name occurs.
    """

    type: FieldType
    shape: tuple[int | str, ...] = ()


_TEXT, _TIMES = FieldRule(TEXT), FieldRule(REAL, ("T",))
FIELDS: dict[str, FieldRule] = {
    **dict.fromkeys(("robot", "backend", "integrator", "ended"), _TEXT),
    "times": _TIMES,
    "phases": FieldRule(WHOLE, ("T",)),
    "q": FieldRule(REAL, ("T", "nq")),
    "v": FieldRule(REAL, ("T", "nv")),
    "vdot": FieldRule(REAL_OR_NAN, ("T", "nv")),
    "tau": FieldRule(REAL_OR_NAN, ("T", "nv")),
    "memory": FieldRule(REAL, ("T", "memory")),
    "base.position": FieldRule(REAL, ("T", 3)),
    "base.rotation": FieldRule(REAL, ("T", 3, 3)),
    "joints.names": FieldRule(NAMES, ("joints",)),
    "joints.q_range": FieldRule(WHOLE, ("joints", 2)),
    "joints.v_range": FieldRule(WHOLE, ("joints", 2)),
    "joints.reference": FieldRule(REAL, ("T", "reference")),
    **{f"contacts.{name}": FieldRule(NAMES, ("contacts",)) for name in ("names", "on", "against")},
    **{f"contacts.{name}": FieldRule(REAL, ("T", "contacts", 3)) for name in ("points", "forces")},
    "contacts.residual": _TIMES,
    "contacts.memory": FieldRule(REAL, ("T", "ground memory")),
    **{f"energy.{name}": _TIMES for name in ("kinetic", "potential")},
    **{f"energy.{name}_work": FieldRule(REAL_OR_NAN, ("T",)) for name in ("actuator", "contact", "push", "joint")},
    "bodies.names": FieldRule(NAMES, ("bodies",)),
    "bodies.q": FieldRule(REAL, ("T", "bodies", 7)),
    "bodies.v": FieldRule(REAL, ("T", "bodies", 6)),
    "ground.lines": FieldRule(REAL, ("lines", "points", 3)),
    "ground.normal": FieldRule(REAL, (3,)),
    "figure.nodes": FieldRule(REAL, ("T", "nodes", 3)),
    "figure.edges": FieldRule(WHOLE, ("edges", 2)),
    "figure.modules": FieldRule(WHOLE, ("edges",)),
    "figure.is_shape": FieldRule(FLAGS, ("edges",)),
    "warnings": FieldRule(NAMES, ("warnings",)),
    "contacts.impulse": FieldRule(REAL_OR_NAN, ("T", "contacts", 3)),
    "contacts.peak": FieldRule(REAL_OR_NAN, ("T", "contacts")),
    "contacts.first_touch": FieldRule(REAL_OR_NAN, ("contacts",)),
    "contacts.worst_residual": FieldRule(REAL_OR_NAN, ("T",)),
    "model": _TEXT,
    "ground.surface": FieldRule(REAL, ("rows", "columns", 3)),
    "footsteps": FieldRule(REAL_OR_NAN, ("T", "planned feet", 3)),
    "contacts.last_touch": FieldRule(REAL_OR_NAN, ("contacts",)),
    "commanded": FieldRule(REAL, ("commands", 3)),
}
"""The fields of a run, in their order."""
_CONTACTS = tuple(f"contacts.{name}" for name in ("impulse", "peak", "first_touch", "worst_residual", "last_touch"))
_SINCE = {
    "warnings": 3,
    "figure.is_shape": 4,
    **dict.fromkeys(_CONTACTS, 5),
    "model": 6,
    "ground.surface": 6,
    "footsteps": 7,
    "contacts.last_touch": 8,
    "commanded": 9,
}
"""The version that added a field, for those that version 1 lacks."""


def save(run: Any, path: str | Path) -> Path:
    """Write the fields of a run, by the names of `FIELDS`, to an npz file and return its path."""
    path, arrays = output_file(path, ".npz"), dict[str, Any]()
    for name in FIELDS:
        arrays[name] = np.asarray(_stored(run, name))
    with replaced(path) as draft, draft.open("wb") as file:
        np.savez_compressed(file, version=np.array(VERSION), **arrays)
    return path


def _stored(run: Any, name: str) -> Any:
    """Return a field of a run or of one of its groups as it is stored."""
    value = attrgetter(name)(run)
    if name == "model":
        return "" if value is None else value.to_json()
    return np.asarray(value, dtype=str) if isinstance(value, tuple) else value


def load(path: str | Path, most: int | None = None) -> dict[str, Any]:
    """Return the fields of a saved run: texts, tuples of names, and arrays.

    Args:
        path: The file.
        most: Largest size of the arrays together, [byte]; by default `SMALL`, or `MAX_RATIO` times the size of the file
            if that is more, and at most `MAX_BYTES`.

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: The file is missing, damaged, too large, of a newer version of the toolkit, or no saved run.
    """
    with opened(path, most, "run") as (archive, source, limit):
        return _read(archive, source, limit)


@contextmanager
def opened(path: str | Path, most: int | None, what: str) -> Iterator[tuple[zipfile.ZipFile, str, int]]:
    """Give the archive of a saved run or of rollouts, its path, and the largest size of its arrays together, [byte].

    Args:
        path: The file. most: As in `load`. what: The kind of file, for messages: "run" or "rollouts".

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: The file is missing, too large or no archive, or reading it in this context fails.
    """
    source = check_regular(path, max(MAX_BYTES, most or 0), "saved runs")
    if most is None:
        most = min(max(SMALL, MAX_RATIO * os.stat(source).st_size), MAX_BYTES)
    if Path(source).suffix.lower() == ".csv":
        words = "is a table for other programs; read it with Run.from_csv, or load the .npz file that run.save wrote"
        raise FileError(source, words)
    try:
        with zipfile.ZipFile(source) as archive:
            check_members(archive, source)
            yield archive, source, most
    except zipfile.BadZipFile as error:
        raise FileError(source, f"is no saved {what}, or a damaged one: {error}; load what its save wrote") from error
    except FileError:
        raise
    except Exception as error:  # damaged archives and headers raise errors of a dozen classes
        words = f"is a damaged {what}: {type(error).__name__}: {' '.join(str(error).split())}"
        raise FileError(source, words) from error


def _read(archive: zipfile.ZipFile, source: str, most: int) -> dict[str, Any]:
    members = {name.removesuffix(".npy") for name in archive.namelist()}
    version = 1
    if "version" in members:
        stored = stored_array(archive, "version", source, 64, most)
        if stored.shape or stored.dtype.kind not in "iu":
            raise FileError(source, "is no saved run: its version is not a whole number")
        version = int(stored)
    if version > VERSION or version < 1:
        raise FileError(
            source,
            f"is a run of layout version {version}; this version of the toolkit reads 1 to {VERSION}: update it",
        )
    names = [name for name in FIELDS if _SINCE.get(name, 1) <= version]
    keys = _VERSION_1.split() if "skeleton" in members else names
    missing = [key for key in keys if key not in members]
    if missing and "kind" in members:
        raise FileError(source, "are saved rollouts; load them with legged.simulation.Rollouts.load")
    if missing:
        raise FileError(source, f"is no saved run: it has no {', '.join(missing)}")
    left, lengths, fields = most, dict[str, int](), dict[str, Any]()
    for name, key in zip(names, keys, strict=True):
        array = stored_array(archive, key, source, left, most)
        left -= array.nbytes
        fields[name] = checked_field(array, FIELDS[name], lengths, key, source)
    fields.setdefault("figure.is_shape", np.zeros(lengths["edges"], bool))
    for name in _CONTACTS:
        shape = [n if isinstance(n, int) else lengths[n] for n in FIELDS[name].shape]
        fields.setdefault(name, np.full(shape, np.nan))
    fields.setdefault("model", "")
    fields.setdefault("ground.surface", np.zeros((0, 0, 3)))
    fields.setdefault("footsteps", np.zeros((lengths["T"], 0, 3)))
    fields.setdefault("commanded", np.zeros((0, 3)))
    if len(fields["commanded"]) not in (0, lengths["T"]):
        words = f"'commanded' must have a row for each of the {lengths['T']} samples, or none"
        raise FileError(source, f"{words}, got {len(fields['commanded'])}")
    for name, size in (("joints.q_range", "nq"), ("joints.v_range", "nv")):
        _check_indices(fields[name], lengths[size] + 1, name, source)
    _check_indices(fields["figure.edges"], lengths["nodes"], "figure.edges", source)
    return fields


def stored_array(archive: zipfile.ZipFile, name: str, source: str, left: int, most: int) -> Array:
    """Return an array of an archive, (...), after its header was compared with the number of bytes that follow.

    Args:
        archive: The archive. name: Name of the array. source: Path, for messages.
        left: Largest size of the array, [byte]. most: Largest size of all arrays, for messages, [byte].

    Raises:
        FileError: The array is too large or damaged.
    """
    member = archive.getinfo(f"{name}.npy")
    if member.file_size > left + _HEADER:
        words = f"its arrays are larger than {most / 2**20:.3g} MiB; load it with most=, in bytes, if you trust it"
        raise FileError(source, words)
    with archive.open(member) as file:
        shape, is_fortran, dtype = _header(file)
        count = int(np.prod([float(n) for n in shape])) if shape else 1
        if dtype.hasobject or count * dtype.itemsize > member.file_size:
            raise FileError(source, f"the header of {name!r} announces {count:.3g} entries, more than the file has")
        content = file.read(count * dtype.itemsize)
        if len(content) < count * dtype.itemsize or file.read(1):
            raise FileError(source, f"{name!r} does not have the {count} entries that its header announces")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if is_fortran else "C").copy()


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first, and type in the header of an npy file."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(file, max_header_size=_HEADER)


def checked_field(array: Array, rule: FieldRule, lengths: dict[str, int], name: str, source: str) -> Any:
    """Return a field in its own type after checking it.

    Args:
        array: The array, (...), any unit. rule: Its type and shape.
        lengths: Lengths of axes by letter, to which those of the array are added.
        name: Its name, for messages. source: Path, for messages.

    Raises:
        FileError: The array has another type or shape, or numbers that are not finite.
    """
    if not rule.type.accepts(array):
        raise FileError(source, f"{name!r} must hold {rule.type.word} entries, got type {array.dtype}")
    wanted = [n if isinstance(n, int) else lengths.get(n, -1) for n in rule.shape]
    if array.ndim != len(wanted) or any(n not in (-1, m) for n, m in zip(wanted, array.shape, strict=True)):
        raise FileError(source, f"{name!r} must have the shape {_shape_words(rule, lengths)}, got {array.shape}")
    lengths.update({n: m for n, m in zip(rule.shape, array.shape, strict=True) if isinstance(n, str)})
    try:
        return rule.type.value(array)
    except ValueError as error:
        raise FileError(source, f"{name!r} {error}") from None


def _shape_words(rule: FieldRule, lengths: dict[str, int]) -> str:
    return f"({', '.join(str(lengths.get(n, n) if isinstance(n, str) else n) for n in rule.shape)})"


def _check_indices(indices: Array, count: int, name: str, source: str) -> None:
    if indices.size and not (indices.min() >= 0 and indices.max() < count):
        raise FileError(source, f"{name!r} must hold indices from 0 to {count - 1}")
