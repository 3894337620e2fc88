"""The claims of Featherstone 2005 on branch-induced sparsity beside counts of the same algorithms here.

The claims are those of the abstract of "Efficient factorization of the joint-space inertia matrix for branched
kinematic trees", International Journal of Robotics Research 24(6), 2005, the only part that we know. They are ratios
of costs of forward dynamics: an O(n^3) algorithm that exploits the zeros of the inertia matrix against an O(n)
algorithm, for a humanoid of 30 degrees of freedom and for a chain of the same size. The humanoid of the paper is
unknown.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import robots
from legged.algorithms import articulated
from legged.algorithms.sparse import sparsity
from legged.compiler import count
from legged.dynamics.forward import forward_dynamics
from legged.robot.base import Base, FixedBase, FloatingBase
from legged.robot.construction.builder import RobotBuilder, rpy
from legged.robot.inertia import Inertia
from legged.robot.joint import Revolute
from legged.robot.link import Link
from legged.robot.robot import Robot
from legged.table import Table

CLAIMS = {"humanoid, L^T D L / O(n)": 1.15, "chain, L^T D L / O(n)": 2.6, "L^T D L, chain / humanoid": 2.2}
"""Ratios of costs in the abstract: 15 % slower, 2.6 times slower, 2.2 times faster."""
ALGORITHMS = {
    "L^T D L": sparsity.forward_dynamics,
    "articulated bodies": articulated.forward_dynamics,
    "modular": forward_dynamics,
}
_LIMBS = {"floating": ((2, 2), (4, 4), (6, 6)), "fixed": ((2, 2), (7, 7), (6, 6))}
"""Joints of (trunk, head), of the two arms, and of the two legs: 30 on a fixed pelvis, 24 on a floating one."""


class Ratios(NamedTuple):
    """Ratios of the operations, M + A, of forward dynamics, in the order of `CLAIMS`.

    Attributes:
        humanoid: L^T D L over the O(n) algorithm for the humanoid. chain: The same for the chain.
        branches: L^T D L for the chain over that for the humanoid.
    """

    humanoid: float
    chain: float
    branches: float


def parents(base: str) -> list[int]:
    """Return the parent of each link of the humanoid, in the order of the links; 0 is the pelvis.

    Args:
        base: "fixed" or "floating".
    """
    (trunk, head), arms, legs = _LIMBS[base]
    parents_of_links: list[int] = []

    def limb(joints: int, root: int) -> int:
        for k in range(joints):
            parents_of_links.append(root if k == 0 else len(parents_of_links))
        return len(parents_of_links)

    chest = limb(trunk, 0)
    for joints, root in ((head, chest), *((n, chest) for n in arms), *((n, 0) for n in legs)):
        limb(joints, root)
    return parents_of_links


@cache
def equal_links(base: str, branched: bool) -> Robot:
    """Return a humanoid or a chain of 30 degrees of freedom with equal links in general position.

    Each link has full inertia, and each joint axis is skew to the one before, so that no term of an algorithm vanishes
    but those of the tree.

    Args:
        base: "fixed" or "floating". branched: Whether it is the humanoid.
    """
    inertia = Inertia(1.0, (0.11, 0.07, 0.05), [[0.03, 0.002, 0.003], [0.002, 0.04, 0.004], [0.003, 0.004, 0.05]])
    tree = parents(base)
    bases: dict[str, Base] = {"fixed": FixedBase(), "floating": FloatingBase()}
    name = f"{'humanoid' if branched else 'chain'} of 30 degrees of freedom"
    builder = RobotBuilder(name, Link("link0", inertia), base=bases[base])
    for k, parent in enumerate(tree, 1):
        to = parent if branched else k - 1
        turn = rpy(0.7, 0.4, 0.3)
        builder.add(
            Revolute(f"joint{k}", "z"), Link(f"link{k}", inertia), to=f"link{to}", at=(0.2, 0.1, 0.3), rotation=turn
        )
    return builder.build()


@cache
def operations(base: str, branched: bool, algorithm: str) -> int:
    """Return M + A of forward dynamics by an algorithm of `ALGORITHMS`."""
    counts = count(ALGORITHMS[algorithm], equal_links(base, branched))
    return counts.M + counts.A


def ratios(base: str, linear: str) -> Ratios:
    """Return the ratios of the claims, counted here.

    Args:
        base: "fixed" or "floating". linear: Name of the O(n) algorithm in `ALGORITHMS`.
    """
    cubic = {branched: operations(base, branched, "L^T D L") for branched in (True, False)}
    humanoid, chain = (cubic[branched] / operations(base, branched, linear) for branched in (True, False))
    return Ratios(humanoid, chain, cubic[False] / cubic[True])


def branches_table() -> Table:
    """Return the claims beside the counts, with sentences on where they differ."""
    columns = [(base, linear) for base in _LIMBS for linear in ("articulated bodies", "modular")]
    measured = [ratios(base, linear) for base, linear in columns]
    rows = tuple(
        (name, f"{claim:.2f}", *(f"{each[k]:.2f}" for each in measured))
        for k, (name, claim) in enumerate(CLAIMS.items())
    )
    header = ("ratio of costs", "abstract of 2005", *(f"{base} base, {linear}" for base, linear in columns))
    return Table("Branch-induced sparsity of a humanoid", header, rows, tuple(sentences()), left=1)


def sentences() -> list[str]:
    """Return sentences that compare the counts with the claims of the abstract."""
    ready = robots.humanoid()
    own = count(sparsity.forward_dynamics, ready).total / count(articulated.forward_dynamics, ready).total
    here, fixed = ratios("floating", "articulated bodies"), ratios("fixed", "articulated bodies")
    modular = ratios("floating", "modular")
    return [
        "Operations are multiplications, divisions and additions of the traced functions; the abstract does not say "
        "whether its costs are operations or times, nor which base and which links its humanoid has.",
        f"With a floating base and 24 joints, L^T D L costs {_share(here.humanoid)} than articulated bodies for the "
        f"humanoid (abstract: 15 % more) and {here.chain:.2f} times as much for the chain (abstract: 2.6), and "
        f"{here.branches:.2f} times as much for the chain as for the humanoid (abstract: 2.2).",
        f"With a fixed base and 30 joints it costs {_share(fixed.humanoid)} for the humanoid and "
        f"{fixed.branches:.2f} times as much for the chain: without the dense rows of a floating base, "
        f"{zeros('fixed'):.0f} % of the inertia matrix are zeros instead of {zeros('floating'):.0f} %. So the claim "
        f"that the O(n) algorithm is faster for a humanoid depends on the base.",
        f"Against the modular algorithm, the O(n) algorithm of this toolkit, L^T D L costs {modular.humanoid:.2f} and "
        f"{modular.chain:.2f} times as much with a floating base.",
        f"For the humanoid of this toolkit, with {ready.nv} degrees of freedom and joint axes at right angles, it "
        f"costs {_share(own)} than articulated bodies.",
    ]


def _share(ratio: float) -> str:
    """Return a ratio of costs in words: "15 % more" or "7 % less"."""
    return f"{100 * abs(ratio - 1):.0f} % {'more' if ratio > 1 else 'less'}"


def zeros(base: str) -> float:
    """Return the percentage of zeros in the inertia matrix of the humanoid."""
    tree = sparsity.DofTree.of(equal_links(base, True))
    n = len(tree.parent)
    return 100.0 * (1.0 - (n + 2 * tree.nonzeros) / n**2)
