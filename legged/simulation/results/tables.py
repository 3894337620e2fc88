"""The columns of a run as a table, and motions from tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from legged.output import as_cell

if TYPE_CHECKING:
    from legged.simulation.results.run import Run

Array = np.ndarray
BASE, JOINT, CONTACT, BODY = "base", "joint", "contact", "body"


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        kind: `BASE`, `JOINT`, `CONTACT` or `BODY`: what it belongs to.
        number: Index among the joints, contact points or free bodies; 0 for the base.
        name: Plain name of the column, which another column may have as well.
        values: (T,), in the unit of the quantity.
    """

    kind: str
    number: int
    name: str
    values: Array


def table_columns(run: Run) -> dict[str, Array]:
    """Return the columns of a run by name, (T,) each; see `Run.to_pandas`.

    Args:
        run: The run.
    """
    columns = list(_columns(run))
    names = distinct_names(columns)
    return dict(zip(names, (column.values for column in columns), strict=True))


def distinct_names(columns: list[Column]) -> list[str]:
    """Return a name for each column, no two equal: those of the base first, then of joints, contacts and bodies.

    If a name of a joint, contact point or body is taken, all of its columns begin with its kind.

    Args:
        columns: The columns.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for k, column in enumerate(columns):
        groups.setdefault((column.kind, column.number), []).append(k)
    names, taken = [""] * len(columns), set[str]()
    order = (BASE, JOINT, CONTACT, BODY)
    for (kind, _), own in sorted(groups.items(), key=lambda group: (order.index(group[0][0]), group[0][1])):
        prefix, count = "", 1
        while taken & {as_cell(prefix + columns[k].name) for k in own}:
            prefix, count = f"{kind}{'' if count == 1 else count}_", count + 1
        for k in own:
            names[k] = as_cell(prefix + columns[k].name)
        taken.update(names[k] for k in own)
    return names


def _columns(run: Run) -> Iterator[Column]:
    yield Column(BASE, 0, "t", run.times)
    yield Column(BASE, 0, "phase", run.phases)
    vectors = {"q": run.q, "v": run.v, "vdot": run.vdot, "tau": run.tau, "reference": run.joints.reference}
    first_joint = run.q.shape[1] - run.joint_positions.shape[1]
    for letter, array in vectors.items():
        first = first_joint if letter == "reference" else 0
        ranges = (run.joints.q_range if letter in ("q", "reference") else run.joints.v_range) - first
        for kind, number, name, entry in coordinates(run.joints.names, ranges, letter, array.shape[1]):
            yield Column(kind, number, name, array[:, entry])
    angles = run.base.angles()
    for name, array in (("base", run.base.position), ("base_angle", angles)):
        yield from (Column(BASE, 0, f"{name}_{axis}", array[:, i]) for i, axis in enumerate("xyz"))
    for k, name in enumerate(run.contacts.names):
        for i, axis in enumerate("xyz"):
            yield Column(CONTACT, k, f"{name}_{axis}", run.contacts.points[:, k, i])
            yield Column(CONTACT, k, f"{name}_f{axis}", run.contacts.forces[:, k, i])
    for k, name in enumerate(run.bodies.names):
        yield from (Column(BODY, k, f"{name}_q[{i}]", run.bodies.q[:, k, i]) for i in range(7))
        yield from (Column(BODY, k, f"{name}_v[{i}]", run.bodies.v[:, k, i]) for i in range(6))
    for f in fields(run.energy):
        yield Column(BASE, 0, f.name, getattr(run.energy, f.name))


def coordinates(names: tuple[str, ...], ranges: Array, letter: str, size: int) -> list[tuple[str, int, str, int]]:
    """Return (kind, number, plain name, entry) of the entries of q, v, vdot, tau or the reference, in their order.

    Args:
        names: Names of the joints.
        ranges: First entry of each joint and the entry after its last, (joints, 2), dimensionless.
        letter: Name of the vector, such as "q". size: Number of its entries.
    """
    columns = [(BASE, 0, f"base_{letter}[{i}]", i) for i in range(size)]
    for number, (joint, (start, stop)) in enumerate(zip(names, ranges.tolist(), strict=True)):
        for k in range(start, min(stop, size)):
            name = f"{joint}_{letter}" + (f"[{k - start}]" if stop - start > 1 else "")
            columns[k] = JOINT, number, name, k
    return columns
