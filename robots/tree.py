"""A tree of n similar links with a constant branching factor: a chain, a binary tree or a star."""

import numpy as np

from legged import Base, Link, Revolute, Robot, RobotBuilder, cylinder_inertia, rpy
from legged.arguments import MOST_LINKS, number, whole
from legged.checked import checked


@checked
def tree(
    n: int, *, branching: float = 1, taper: float = 1.0, twist: float = np.pi / 2, base: Base | None = None
) -> Robot:
    """Return a tree of n links, each connected to the end of its parent by a revolute joint.

    The base is link 0, and the parent of link k is link floor((k - 1) / branching). A branching factor of 1 gives a
    chain, 2 a binary tree, n a star.

    Args:
        n: Number of links without the base.
        branching: Children per link; 1.5 gives one and two alternately.
        taper: Ratio of a link's length and radius to its parent's; the mass ratio is its third power.
        twist: Angle from one joint axis to the next, [rad].
        base: Base type; floating with a quaternion by default.

    Source:
        Such trees are the subject of Featherstone, "An empirical study of the joint space inertia matrix",
        International Journal of Robotics Research 23(9), 2004.
    """
    whole("n", n, least=1, most=MOST_LINKS)
    number("branching", branching, least=1)
    number("taper", taper, above=0)
    builder = RobotBuilder(f"tree of {n} links, branching {branching:g}", _link("link0", 1.0), base=base)
    depth = {0: 0}
    for k in range(1, n + 1):
        parent = int((k - 1) / branching)
        depth[k] = depth[parent] + 1
        at = (0.0, 0.0, taper ** depth[parent])
        turn = rpy(0.0, 0.0, twist)
        joint = Revolute(f"joint{k}", "x")
        builder.add(joint, _link(f"link{k}", taper ** depth[k]), to=f"link{parent}", at=at, rotation=turn)
    return builder.build()


def _link(name: str, size: float) -> Link:
    """Return a cylinder of length `size` and mass size^3 along z."""
    return Link(name, cylinder_inertia(size**3, 0.05 * size, (0, 0, 0), (0, 0, size)))
