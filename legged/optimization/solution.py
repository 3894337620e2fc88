"""Results of optimal control: a trajectory with feedback, and the history of the iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from legged.spatial import Array


@dataclass
class Iterations:
    """The history of a solution, one entry per iteration.

    Attributes:
        cost: Sum of the costs, penalties of constraints included.
        gap: Largest entry of the gaps between nodes, [rad], [m], [rad/s] and [m/s].
        violation: Largest violation of a constraint or of its complementarity condition, over its scale.
        improvement: Decrease of the cost by a full step according to the quadratic model.
        step: Accepted step length, or 0. regularization: Number added to the diagonal of Q_uu.
        time: Time since the call, [s].
    """

    cost: list[float] = field(default_factory=list)
    gap: list[float] = field(default_factory=list)
    violation: list[float] = field(default_factory=list)
    improvement: list[float] = field(default_factory=list)
    step: list[float] = field(default_factory=list)
    regularization: list[float] = field(default_factory=list)
    time: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.time)

    def __str__(self) -> str:
        lines = ["iteration          cost      gap  violation  improvement   step  regularization  time [s]"]
        for k in range(len(self)):
            lines.append(
                f"{k:9d}  {self.cost[k]:12.6g}  {self.gap[k]:7.1e}    {self.violation[k]:7.1e}      "
                f"{self.improvement[k]:7.1e}  {self.step[k]:5.3f}         {self.regularization[k]:7.1e}  "
                f"{self.time[k]:8.3f}"
            )
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Solution:
    """A trajectory with its feedback.

    Attributes:
        converged: Whether it met all tolerances. message: Why the iterations ended; if they did not converge, also the
            node with the largest gap and the constraint with the largest violation; and contacts that are redundant or
            whose force pulls without a term that limits it.
        cost: Sum of the costs without penalties of constraints.
        t: Times of the nodes and of the end, (nodes + 1,), [s]; those of an impact and of the node after it are equal.
        q, v: States, (nodes + 1, nq) and (nodes + 1, nv). u: Controls, (nodes, nu), [N m] or [N]; zero at impacts.
        forces: By the name of the contact: (nodes, 3), [N], or wrench [n; f], (nodes, 6), [N m] and [N], world axes;
            impulses at impacts.
        gain: Feedback K, (nodes, nu, 2 nv): u = u_k + K_k [difference(q_k, q); v - v_k].
        log: History of the iterations.
        duration_factors: Factor of the durations of each phase, by its name, dimensionless.
    """

    converged: bool
    message: str
    cost: float
    t: Array
    q: Array
    v: Array
    u: Array
    forces: Mapping[str, Array]
    gain: Array
    log: Iterations
    duration_factors: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Solution of {len(self.u)} nodes, cost {self.cost:.6g}: {self.message}>"

    @property
    def active(self) -> Array:
        """Whether each node is a stage, (nodes,), and not an impact."""
        return np.diff(self.t) > 0.0
