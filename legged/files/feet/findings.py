"""Problems of the feet of a robot file: feet whose shapes cannot be measured, and legs that walk along y."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from legged.files.audit import Finding, links_text
from legged.files.description import Tree
from legged.files.feet.detection import FootEntry

_ADVICE = "; put it there, or load with shapes=False"
_HORIZONTAL = 0.7
"""Least cosine between a joint axis and the x or y axis of the root link along which it counts."""

_MORE = 1.5
"""Ratio of joints about x to those about y above which the legs swing along y; roll joints turn about x in all legs."""


def feet_findings(tree: Tree, feet: Sequence[FootEntry], upright: bool) -> Iterator[Finding]:
    """Yield the problems of the feet of a robot.

    Args:
        tree: Tree of the robot. feet: Its feet. upright: Whether its base floats, and z points up.
    """
    unmeasured = [foot for foot in feet if foot.fault]
    if unmeasured:
        words = (
            f"contact points are assumed at the origins of links whose shapes cannot be measured, as of "
            f"{unmeasured[0].link!r}: {unmeasured[0].fault.removesuffix(_ADVICE)}; add the file, or pass "
            f"feet={{link: points}}"
        )
        yield Finding("suspicious", "feet", links_text([foot.link for foot in unmeasured]), words)
    if upright and len(feet) > 1:
        yield from _forward_findings(tree, feet)


def _forward_findings(tree: Tree, feet: Sequence[FootEntry]) -> Iterator[Finding]:
    """Yield a finding if the pitch joints, of which legs have more than of roll joints, turn about x instead of y.

    Legs as of insects, whose first axis is vertical, are left out, as are limbs whose axes are oblique.
    """
    pitch = roll = 0
    for foot in feet:
        heads = [head for head in reversed(tree.path(foot.link)) if head in tree.joint]
        axes = [tree.pose[tree.joint[head].child].rotation @ tree.joint[head].axis for head in heads]
        if axes and abs(axes[0][2]) > _HORIZONTAL and len(axes) < 4:
            return
        roll += sum(abs(axis[0]) > _HORIZONTAL for axis in axes)
        pitch += sum(abs(axis[1]) > _HORIZONTAL for axis in axes)
    if roll > _MORE * pitch:
        words = (
            f"{roll} joints of its legs turn about x and {pitch} about y, so that y or -y seems to point forward: x "
            f"points forward in robot files and in legged; rotate the robot about z by 90 or -90 degrees"
        )
        yield Finding("suspicious", "forward", f"link {tree.description.root!r}", words)
