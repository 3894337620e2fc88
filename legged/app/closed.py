"""What a robot with closed loops is made of, and what its dynamics cost."""

from __future__ import annotations

from functools import partial

import numpy as np

from legged import loops
from legged.compiler import count
from legged.errors import LoopError
from legged.loops import ClosedRobot
from legged.robot.configuration import random_configuration
from legged.spatial import Array
from legged.table import Table

TRIES = 50
"""Random configurations from which closed loops are looked for."""


def closed_configuration(closed: ClosedRobot, seed: int | None = None) -> tuple[Array, str]:
    """Return (a configuration in which the loops are closed, in words which); from zero, or else from random ones.

    Raises:
        LoopError: if none is found.
    """
    rng = np.random.default_rng(0 if seed is None else seed)
    error: LoopError | None = None
    for k in range(TRIES):
        from_zero = seed is None and k == 0
        start = closed.robot.neutral() if from_zero else random_configuration(closed.robot, rng)
        try:
            where = "zero" if from_zero else "a random configuration"
            return loops.assemble(closed, start), f"loops closed, found from {where}"
        except LoopError as failure:
            error = failure
    raise LoopError(
        f"no configuration that closes the loops of {closed.name!r} was found from {TRIES} starts; at last: {error}",
        error.residual if error is not None else 0.0,
    )


def loop_table(closed: ClosedRobot, q: Array) -> Table:
    """Return the closing joints, the links around each loop, and how many freedoms they leave at q, (nq,)."""
    rows = []
    for loop in closed.loops:
        kind = type(loop.joint).__name__.lower()
        around = ", ".join(closed.cycle(loop.name))
        rows.append((loop.name, kind, loop.parent or "world", loop.child, around, str(len(loop.rows))))
    header = ("joint", "kind", "parent", "child", "links around", "constraints")
    notes = (
        f"{loops.mobility(closed, q)}.",
        "The tables above are of the spanning tree, in whose entries q and v are.",
    )
    return Table("Joints that close loops", header, tuple(rows), notes, left=5)


def count_table(closed: ClosedRobot) -> Table:
    """Return what forward dynamics with loops cost, by stage: elimination, equation (21)."""
    robot = closed.robot
    counts = count(partial(loops.forward_dynamics, closed), None, q=robot.nq, v=robot.nv, tau=robot.nv)
    parts = sorted((str(part or "other"), c) for part, c in counts.by_stage.items())
    rows = [(name, str(c.M), str(c.A), str(c.trigonometric)) for name, c in (*parts, ("all", counts))]
    header = ("stage", "M", "A", "sines and cosines")
    title = f"{closed.name}: forward dynamics with closed loops, {len(closed.rows)} constraints"
    return Table(title, header, tuple(rows))
