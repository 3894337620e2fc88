"""Forward dynamics by divide and conquer, in either version, of trees and of robots with closed loops."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from legged.algorithms.assemblies import grounded
from legged.algorithms.divide_and_conquer import inverse, pivoted
from legged.algorithms.divide_and_conquer.closing import Parts, groups_of
from legged.algorithms.jointed import jointed, rates
from legged.algorithms.links import links_at
from legged.algorithms.prefix import motions
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.errors import UnknownNameError
from legged.loops.loop import ClosedRobot
from legged.robot.robot import Robot
from legged.spatial import Array

WHAT = "the divide-and-conquer algorithm"
VERSIONS: dict[str, ModuleType] = {"inverse": inverse, "pivoted": pivoted}


def forward_dynamics(
    robot: Robot | ClosedRobot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    version: str = "pivoted",
) -> Array:
    """Return the acceleration under given forces, (nv,), by divide and conquer.

    Loops are closed in the first assembly that has both ends, those that share joints of the tree together. The depth
    is O(log n) for the tree, and O(m) for the m rows of such a group, whose equations are solved by elimination.

    Args:
        robot: The robot, or one with closed loops, whose superfluous rows are found as `legged.loops.solve` does.
        q, v, tau, wrenches: As in `legged.forward_dynamics`; q and v should fit the loops.
        version: "pivoted", more accurate on long chains, which takes thin rods, too; or "inverse", the first, with
            less depth.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, gyroscopic rotors, massless
        bodies where the robot branches or ends, and loops that end on such. UnknownNameError for another version.
    """
    if version not in VERSIONS:
        raise UnknownNameError("version", version, VERSIONS)
    form = VERSIONS[version]
    tree, closed = (robot.robot, robot) if isinstance(robot, ClosedRobot) else (robot, None)
    q, v, tau = read(tree, q=q, v=v, tau=tau)
    with stage("1 velocities and bodies"):
        moving = motions(links_at(tree, q), q, v)
        bodies, a_0 = jointed(tree, q, v, tau, wrenches, WHAT, twists=moving.twist, any_inertia=form.ANY_INERTIA)
        groups = groups_of(closed, q, moving, bodies) if closed is not None else []
    whole = grounded([body.parent for body in bodies], {g: group.ends for g, group in enumerate(groups)})
    with stage("2 assemblies"):
        joined: dict[int, Any] = {}
        form.assembled(whole, Parts(bodies, a_0, groups), joined)
    with stage("3 accelerations"):
        qdd: dict[int, Array] = {}
        form.released(whole, joined, qdd)
    return finite(tree, "the forward dynamics", rates(tree, bodies, [qdd[k] for k in range(len(bodies))]))
