"""Fields of runs of recorded motions: times and configurations in arrays, or in a table of comma-separated values."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from legged.arguments import array, instance, known_name, shown, text
from legged.compiler import compile as compile_function
from legged.contact.rigid import Rigid
from legged.dynamics.kinematics import kinetic_energy, potential_energy
from legged.errors import ArgumentError, FileError, LeggedError, NotFiniteError, ShapeError
from legged.files.reading import check_regular
from legged.ground.ground import Ground
from legged.robot.configuration import difference, read
from legged.robot.robot import Robot
from legged.simulation.results.accelerations import RecordedAccelerations
from legged.simulation.results.records import (
    BaseRecord,
    BodyRecord,
    ContactRecord,
    EnergyRecord,
    JointRecord,
    ModelRecord,
)
from legged.simulation.results.stick_figure import Picture
from legged.simulation.results.tables import BASE, Column, coordinates, distinct_names

Array = np.ndarray
BACKEND = "recorded motion"
"""`Run.backend` of a recorded motion."""
MAX_BYTES = 2**30
"""Largest table, [byte]."""


def fields_of_motion(
    robot: Robot, t: Any, q: Any, v: Any = None, tau: Any = None, ground: Ground | Rigid | None = None
) -> dict[str, Any]:
    """Return the fields of the run of a recorded motion; see `Run.from_motion`."""
    instance("robot", robot, Robot, "a legged.Robot")
    instance("ground", ground, (Ground, Rigid, type(None)), "a Ground, a Rigid or None")
    times = array("t", t, (None,), "one time per sample")
    if not len(times) or not (np.diff(times) > 0.0).all():
        raise ArgumentError("t must hold one time at least, and each must be later than the one before")
    count = len(times)
    q = _samples("q", q, count, robot.nq)
    for k, row in enumerate(q):
        try:
            read(robot, q=row)
        except LeggedError as error:
            raise ArgumentError(f"q of sample {k}: {error}") from error
    v = velocities(robot, times, q) if v is None else _samples("v", v, count, robot.nv)
    tau = np.full((count, robot.nv), np.nan) if tau is None else _samples("tau", tau, count, robot.nv)
    rotation, position, kinetic, potential = compile_function(_base_and_energies, robot)(q, v)
    none, nothing, unknown = np.zeros((count, 0, 3)), np.zeros((count, 0)), np.full(count, np.nan)
    contacts = ContactRecord(
        names=(),
        on=(),
        against=(),
        points=none,
        forces=none,
        impulse=none,
        peak=nothing,
        first_touch=np.zeros(0),
        last_touch=np.zeros(0),
        residual=np.zeros(count),
        worst_residual=np.zeros(count),
        memory=nothing,
    )
    return {
        "robot": robot.name,
        "backend": BACKEND,
        "integrator": "none",
        "ended": "",
        "times": times,
        "phases": np.zeros(count, dtype=int),
        "q": q,
        "v": v,
        "accelerations": RecordedAccelerations(np.gradient(v, times, axis=0) if count > 1 else np.zeros_like(v)),
        "tau": tau,
        "memory": nothing,
        "base": BaseRecord(position, rotation),
        "joints": JointRecord.of(robot, nothing),
        "contacts": contacts,
        "energy": EnergyRecord(kinetic, potential, *(unknown.copy() for _ in range(4))),
        "bodies": BodyRecord((), np.zeros((count, 0, 7)), np.zeros((count, 0, 6))),
        "picture": Picture(robot, q, ground, (), np.zeros((count, 0, 7))),
        "model": ModelRecord.of(robot, ground),
        "footsteps": none,
        "commanded": np.zeros((0, 3)),
    }


def velocities(robot: Robot, times: Array, q: Array) -> Array:
    """Return velocities of a motion, (T, nv), as v: differences of second order, at both ends of first order.

    Args:
        robot: The robot. times: Times, (T,), [s]. q: Configurations, (T, nq), mixed units.
    """
    v, h = np.zeros((len(times), robot.nv)), np.diff(times)
    for k in range(len(times)):
        slopes, weights = [], []
        if k:
            slopes.append(-difference(robot, q[k], q[k - 1]) / h[k - 1])
            weights.append(h[k] if k < len(h) else 1.0)
        if k < len(h):
            slopes.append(difference(robot, q[k], q[k + 1]) / h[k])
            weights.append(h[k - 1] if k else 1.0)
        if slopes:
            v[k] = np.average(slopes, axis=0, weights=weights)
    return v


def fields_of_table(
    robot: Robot, path: str | Path, columns: Mapping[str, str] | None, ground: Ground | Rigid | None
) -> dict[str, Any]:
    """Return the fields of the run in a table; see `Run.from_csv`."""
    instance("robot", robot, Robot, "a legged.Robot")
    renamed = {} if columns is None else dict(instance("columns", columns, Mapping, "a mapping of names"))
    wanted = _names(robot)
    for own, other in renamed.items():
        known_name("column", own, ("t", *wanted["q"], *wanted["v"], *wanted["tau"]))
        text(f"the column for {own!r}", other)
    source = check_regular(path, MAX_BYTES, "tables")
    with open(source, encoding="utf-8-sig", newline="") as file:
        try:
            rows = _rows(csv.reader(file), source)
            header, table = next(rows), np.array(list(rows))
        except (csv.Error, UnicodeDecodeError) as error:
            raise FileError(source, f"is no table of comma-separated values in UTF-8: {error}") from error
    places = {name: k for k, name in enumerate(header)}
    arrays = dict[str, Array]()
    for letter, names in {"t": ["t"], **wanted}.items():
        theirs = [renamed.get(name, name) for name in names]
        missing = [name for name in theirs if name not in places]
        if letter in ("v", "tau") and len(missing) == len(theirs):
            continue  # without these
        if missing or not len(table):
            words = f"has no column {shown(missing[0], 80)}" if missing else "has no rows"
            hint = "; name other columns by columns={...}, see Run.from_csv" if missing else ""
            raise FileError(source, words + hint)
        values = table[:, [places[name] for name in theirs]]
        if letter != "tau" or not np.isnan(values).all():  # unknown, in the table of another recorded motion
            arrays[letter] = values
    try:
        return fields_of_motion(robot, arrays["t"][:, 0], arrays["q"], arrays.get("v"), arrays.get("tau"), ground)
    except (ArgumentError, NotFiniteError, ShapeError) as error:
        raise FileError(source, str(error)) from error


def _rows(lines: Iterator[list[str]], source: str) -> Iterator[Any]:
    """Yield the header of a table, and the numbers of each row."""
    header = next((line for line in lines if line), [])
    if len(set(header)) < len(header):
        raise FileError(source, "has two columns of the same name")
    yield header
    for number, line in enumerate(lines, 2):
        if not line:
            continue
        try:
            values = [float(word) if word else np.nan for word in line]
        except ValueError:
            values = []
        if len(values) != len(header):
            raise FileError(source, f"row {number} does not hold {len(header)} numbers, as many as there are columns")
        yield values


def _names(robot: Robot) -> dict[str, list[str]]:
    """Return the names of the columns of q, v and tau, as in the table of a run."""
    columns, letters, none = [Column(BASE, 0, "t", np.zeros(0))], list[str](), np.zeros(0)
    joints = tuple(joint.name for joint in robot.joints)
    for letter in ("q", "v", "vdot", "tau"):
        parts = [joint.q if letter == "q" else joint.v for joint in robot.joints]
        ranges = np.array([(part.start, part.stop) for part in parts], dtype=int).reshape(-1, 2)
        size = robot.nq if letter == "q" else robot.nv
        columns_of_letter = [Column(*at[:3], none) for at in coordinates(joints, ranges, letter, size)]
        columns += columns_of_letter
        letters += [letter] * len(columns_of_letter)
    names = distinct_names(columns)[1:]
    return {letter: [n for n, own in zip(names, letters, strict=True) if own == letter] for letter in ("q", "v", "tau")}


def _base_and_energies(robot: Robot, q: Array, v: Array) -> tuple[Any, ...]:
    """Return rotation (3, 3) and position (3,) [m] of the base, kinetic and potential energy [J]."""
    rotation, position = robot.base.pose(q[: robot.base.nq])
    return np.asarray(rotation), np.asarray(position), kinetic_energy(robot, q, v), potential_energy(robot, q)


def _samples(name: str, value: Any, count: int, size: int) -> Array:
    """Return an array with a row per sample, (T, n), of real finite numbers."""
    samples = array(name, value, (None, size), "one row per sample")
    if len(samples) != count:
        raise ShapeError(f"{name} must have one row per time of t, {count}, got {len(samples)}")
    return np.array(samples, float)
