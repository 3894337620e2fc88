"""Operation counts of the dynamics of robots with closed loops, by method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import robots
from legged import loops
from legged.compiler import count
from legged.loops import ClosedRobot
from legged.loops.assembly import closed_configuration
from legged.spatial import Array
from legged.table import Table

CLOSED_ROBOTS = {
    "four_bar": ("crank joint",),
    "five_bar_leg": ("front_hip", "rear_hip"),
    "delta": ("a_shoulder", "b_shoulder", "c_shoulder"),
    "five_bar_quadruped": tuple(f"{leg}_{side}_hip" for leg in ("FL", "FR", "RL", "RR") for side in ("front", "rear")),
}
"""Ready-made robots with closed loops, and the names of their joints with actuators."""


def closed_count_table(chosen: Mapping[str, ClosedRobot], actuated: Mapping[str, Sequence[str]] | None = None) -> Table:
    """Return the operation counts of dynamics with closed loops by method, one column per robot.

    Args:
        chosen: Robots by name.
        actuated: Name of a robot -> its joints with actuators; None omits inverse dynamics.
    """
    forward: dict[str, Callable[[ClosedRobot], Callable[..., Array]]] = {
        f"forward, {method}": lambda closed, method=method: partial(loops.forward_dynamics, closed, method=method)
        for method in ("elimination", "subsystems")
    }
    forward["forward, divide and conquer"] = lambda closed: partial(loops.divide_and_conquer.forward_dynamics, closed)
    rows = []
    for name, function in forward.items():
        rows.append((name, *(_operations(function(closed), closed) for closed in chosen.values())))
    if actuated is not None:
        cells = []
        for name, closed in chosen.items():
            independent = loops.independent_only(closed, closed_configuration(closed)[0])
            function = partial(loops.inverse_dynamics, independent, actuated=actuated[name])
            cells.append(_operations(lambda q, v, vdot, function=function: function(q, v, vdot).tau, closed))
        rows.append(("inverse, subsystems", *cells))
    header = ("method", *(f"{name}, {closed.robot.nv} DoF" for name, closed in chosen.items()))
    notes = (
        "M + A of the traced graph: multiplications and divisions, additions and subtractions. Methods `direct` and",
        "`projection` use matrix functions for numbers, and are not traced.",
    )
    return Table("Dynamics with closed loops: operations, M + A", header, tuple(rows), notes)


def ready_made_table() -> Table:
    """Return the operation counts of the ready-made robots with closed loops, inverse dynamics included."""
    return closed_count_table({name: getattr(robots, name)() for name in CLOSED_ROBOTS}, CLOSED_ROBOTS)


def _operations(function: Callable[..., Array], closed: ClosedRobot) -> str:
    """Return "M + A" of a function of q and two vectors of the size of v."""
    names = list(inspect.signature(function).parameters)[:3]
    sizes = dict(zip(names, (closed.robot.nq, closed.robot.nv, closed.robot.nv), strict=True))
    counts = count(function, None, **sizes)
    return f"{counts.M} + {counts.A}"
