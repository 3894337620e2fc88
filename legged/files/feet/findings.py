"""Problems of the feet of a robot file: shapes that cannot be measured, and axes of the root other than usual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from legged.files.audit import Finding, links_text
from legged.files.description import Tree
from legged.files.feet.detection import FootEntry

_ADVICE = "; put it there, or load with shapes=False"
_HORIZONTAL = 0.7
"""Least cosine between a joint axis and the x or y axis of the root link along which it counts."""

_UPRIGHT = 2.0
"""Ratio of the mean displacement from hips to feet along -y to that along x or z above which y seems to point up."""

_MORE = 1.5
"""Ratio of joints about x to those about the other horizontal axis above which legs swing along that axis; roll joints
turn about x in all legs."""


def feet_findings(tree: Tree, feet: Sequence[FootEntry], floats: bool) -> Iterator[Finding]:
    """Yield the problems of the feet of a robot.

    Args:
        tree: Tree of the robot. feet: Its feet. floats: Whether its base floats.
    """
    unmeasured = [foot for foot in feet if foot.fault]
    if unmeasured:
        words = (
            f"contact points are assumed at the origins of links whose shapes cannot be measured, as of "
            f"{unmeasured[0].link!r}: {unmeasured[0].fault.removesuffix(_ADVICE)}; add the file, or pass "
            f"feet={{link: points}}"
        )
        yield Finding("suspicious", "feet", links_text([foot.link for foot in unmeasured]), words)
    if floats and len(feet) > 1:
        yield from _axes_findings(tree, feet)


def _axes_findings(tree: Tree, feet: Sequence[FootEntry]) -> Iterator[Finding]:
    """Yield a finding if y seems to point up, or else if y seems to point forward.

    Left and right legs mirror each other, so that the mean displacement from hips to feet is along -z, and along -y in
    files of programs whose y axis points up. Legs have more pitch joints than roll joints, and pitch axes point to the
    side.
    Legs as of insects, whose first axis is vertical, and limbs with oblique axes do not determine the forward axis.
    """
    limbs = [[head for head in reversed(tree.path(foot.link)) if head in tree.joint] for foot in feet]
    ends = [(tree.pose[heads[0]], tree.pose[foot.link]) for foot, heads in zip(feet, limbs, strict=True) if heads]
    ways = [foot.position - hip.position for hip, foot in ends] or [np.zeros(3)]
    x, y, z = np.round(np.mean(ways, axis=0), 9)  # [m]; horizontal legs to all sides have rounding errors alone
    up = 1 if -y > _UPRIGHT * max(abs(x), abs(z)) else 2
    turns, other = np.zeros(3, dtype=int), 3 - up  # up is y or z; x and the other one are horizontal
    for heads in limbs:
        axes = np.abs([tree.pose[tree.joint[head].child].rotation @ tree.joint[head].axis for head in heads])
        if len(axes) and (len(axes) > 3 or axes[0, up] < _HORIZONTAL):
            turns += np.sum(axes > _HORIZONTAL, axis=0)
    crosswise = bool(turns[0] > _MORE * turns[other])  # pitch joints turn about x
    forward = "xyz"[other if crosswise else 0]
    advice = f"load with axes=({forward!r}, {'xyz'[up]!r}), or {'-' + forward!r} if that points forward"
    where = f"link {tree.description.root!r}"
    if up == 1:
        words = f"its legs extend along -y, by {-y:.3g} m on average, so that y seems to point up: {advice}"
        yield Finding("suspicious", "up", where, words)
    elif crosswise:
        words = (
            f"{turns[0]} joints of its legs turn about x and {turns[1]} about y, so that y or -y seems to point "
            f"forward, as x does in legged: {advice}"
        )
        yield Finding("suspicious", "forward", where, words)
