"""Model simplification: dynamics of a robot without the terms that do not matter along given motions.

The terms are those of the module-level expressions as they run: the sums of the traced function, each of which belongs
to a stage of the algorithm and to a kinematic module. A term is dropped if what it contributes to the generalized
forces is small along all motions given.

    short = reduced_model(robot, q, v, vdot, tolerance=0.01)
    print(short.table())
    tau = short.kernel(q, v, vdot)                            # machine code, for one state or a batch
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import array, number
from legged.checked import checked
from legged.compiler import Counts, Dropping, Graph, Kernel, Term, run_passes, trace
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import ArgumentError, ShapeError
from legged.robot.robot import Robot
from legged.spatial import Array
from legged.table import Table


@dataclass(frozen=True, eq=False)
class ReducedModel:
    """A function of a robot without its smallest terms.

    Attributes:
        robot: The robot.
        graph: The traced function without the terms.
        before, after: Operations of the function, and of that without the terms.
        dropped: The terms that were dropped.
        largest: Largest generalized force of each coordinate along the motions, (nv,), [N m] or [N].
        errors: Largest error of each generalized force along the motions, (nv,), [N m] or [N].
    """

    robot: Robot
    graph: Graph
    before: Counts
    after: Counts
    dropped: tuple[Term, ...]
    largest: Array
    errors: Array

    @property
    def kernel(self) -> Kernel:
        """The function in machine code, with the arguments q, v, vdot; `kernel.to_c()` is its source in C."""
        return Kernel(self.graph, "reduced_model")

    @property
    def saved(self) -> float:
        """Part of the multiplications and additions that the dropped terms save, from 0 to 1."""
        return 1.0 - (self.after.M + self.after.A) / (self.before.M + self.before.A)

    @property
    def error(self) -> float:
        """Largest error of a generalized force along the motions, relative to the largest force of its coordinate."""
        return float((self.errors / scales(self.largest)).max(initial=0.0))

    def errors_along(self, q: Array, v: Array, vdot: Array) -> Array:
        """Return the largest error of each generalized force along another motion, (nv,), [N m] or [N].

        Args:
            q: Configurations, (samples, nq). v: Velocities, (samples, nv). vdot: Accelerations, (samples, nv).
        """
        exact = Kernel(_traced(self.robot), "inverse_dynamics")
        return np.abs(self.kernel(q, v, vdot) - exact(q, v, vdot)).max(axis=0)

    def table(self) -> Table:
        """Return operations and dropped terms by module."""
        counts = Counter(term.label.module for term in self.dropped)
        rows = []
        for module in self.robot.modules:
            before, after = (c.by_module.get(module.index, Counts()) for c in (self.before, self.after))
            cells = f"{before.M}, {before.A}", f"{after.M}, {after.A}", str(counts.get(module.index, 0))
            rows.append((f"M_{module.index}: {self.robot.bodies[module.bodies[-1]].name}", *cells))
        total = f"{self.before.M}, {self.before.A}", f"{self.after.M}, {self.after.A}", str(len(self.dropped))
        notes = (f"Saved: {100 * self.saved:.0f} %; error of the forces: {100 * self.error:.2g} % of their largest.",)
        header = ("module", "M, A of all terms", "M, A of the terms kept", "terms dropped")
        return Table(f"Reduced model of {self.robot.name}", header, (*rows, ("sum", *total)), notes, left=1)


@checked
def reduced_model(robot: Robot, q: Array, v: Array, vdot: Array, tolerance: float = 0.01) -> ReducedModel:
    """Return the inverse dynamics of a robot without the terms that contribute little along given motions.

    Terms are dropped in increasing order of their largest contribution to the generalized forces, until the error of
    some force reaches the tolerance. The error is that of the shortened function, measured at every sample. Between the
    samples and along other motions it may be larger, see `ReducedModel.errors_along`; base rows are included.

    Args:
        robot: The robot.
        q: Configurations along the motions, (samples, nq).
        v: Velocities, (samples, nv), [rad/s] and [m/s], joint axes.
        vdot: Accelerations, (samples, nv), [rad/s^2] and [m/s^2], joint axes.
        tolerance: Largest error of a generalized force, relative to the largest of this coordinate along the motions.

    Raises:
        ArgumentError: For a tolerance that is not between 0 and 1. ShapeError: For motions that do not fit the robot.

    Source: Saha, Shirinzadeh, Alici, "Dynamic model simplification of serial manipulators", ISRA 2006, which Shah,
    Saha, Dutt 2012 cite as an advantage of the DeNOC matrices; we know its title and this purpose alone. Which terms
    are candidates, and the measure of their contribution, are ours.
    """
    number("tolerance", tolerance, least=0.0, below=1.0)
    sizes = {"q": (q, robot.nq), "v": (v, robot.nv), "vdot": (vdot, robot.nv)}
    samples = [array(name, x, (None, size), "one row per sample") for name, (x, size) in sizes.items()]
    if len({len(x) for x in samples}) > 1 or not len(samples[0]):
        raise ShapeError(
            f"q, v and vdot must have the same number of rows, at least one, got {[len(x) for x in samples]}"
        )
    if any(x.dtype == object for x in samples):
        raise ArgumentError("the motions must be floats, since the terms to drop are chosen by their values")
    graph = _traced(robot)
    forces = Kernel(graph, "inverse_dynamics")(*samples)
    largest = np.abs(forces).max(axis=0)
    before = run_passes(graph, counted=True).counts
    reduced = run_passes(graph, dropping=Dropping(samples, scales(largest), tolerance), simplified=True, counted=True)
    return ReducedModel(robot, reduced.graph, before, reduced.counts, reduced.dropped, largest, reduced.errors)


def scales(largest: Array) -> Array:
    """Return the sizes to which errors of generalized forces are relative, (nv,), [N m] or [N].

    Args:
        largest: Largest force of each coordinate, (nv,), [N m] or [N]. Those that are rounding beside the others, as of
            a base that is not driven, have the size of a millionth of the largest.
    """
    return np.maximum(largest, 1e-6 * max(float(largest.max(initial=0.0)), 1e-6))


def _traced(robot: Robot) -> Graph:
    sizes = {"q": (robot.nq,), "v": (robot.nv,), "vdot": (robot.nv,)}
    function: Callable[..., Any] = inverse_dynamics
    return trace(function, sizes, [robot])
