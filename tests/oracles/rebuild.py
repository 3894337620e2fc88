"""Definition of a robot again from its graph, with a change that must not affect its dynamics."""

from collections.abc import Callable, Sequence

import numpy as np

import legged
from legged.spatial import Array


def rebuild(
    robot: legged.Robot,
    *,
    base: legged.Base | None = None,
    gravity: Array | None = None,
    shuffle: np.random.Generator | None = None,
    modules: Sequence[Sequence[str]] | None = None,
    joint: Callable[[legged.Joint], legged.Joint] = lambda joint: joint,
    split: bool = False,
) -> legged.Robot:
    """Return a robot with the same links and joints.

    Args:
        robot: The original.
        base, gravity: Others than the original's.
        shuffle: Define links and joints in this generator's order.
        modules: A given partition.
        joint: What to put in a joint's place.
        split: Make each link two, with a third of its inertia on a link of its own, fixed to it off its origin.
    """
    links = {link.name: link for link in robot.links}
    root, *others = (link.name for link in robot.links)
    edges = list(robot.graph.edges(data=True))
    if shuffle is not None:
        others, edges = list(shuffle.permutation(others)), [edges[i] for i in shuffle.permutation(len(edges))]
    share = 2 / 3 if split else 1.0
    builder = legged.RobotBuilder(
        robot.name,
        part(links[root], share),
        base=robot.base if base is None else base,
        gravity=robot.gravity if gravity is None else gravity,
    )
    for name in others:
        builder.link(part(links[name], share))
    for parent, child, edge in edges:
        there = {"at": edge["at"], "rotation": edge["rotation"]}
        builder.joint(joint(edge["definition"]), parent=parent, child=child, **there)
    for link in robot.links if split else ():
        R, at = legged.rpy(0.3, -0.7, 1.1), np.array([0.2, -0.1, 0.4])
        i = link.inertia
        rest = legged.Inertia(i.mass / 3, R.T @ (i.center - at), R.T @ i.tensor @ R / 3)
        half = legged.Link(f"{link.name} (rest)", rest)
        builder.add(legged.Fixed(f"weld {link.name}"), half, to=link.name, at=at, rotation=R)
    return builder.build(modules)


def part(link, share: float) -> legged.Link:
    i = link.inertia
    return legged.Link(link.name, legged.Inertia(i.mass * share, i.center, np.asarray(i.tensor) * share))


def renumbering(robot: legged.Robot, other: legged.Robot) -> tuple[Array, Array]:
    """Return (of q, of v): q_other = q[of q] and v_other = v[of v], joints being matched by name."""
    of_q, of_v = list(range(robot.base.nq)), list(range(robot.base.nv))
    for joint in other.joints:
        same = robot.joint(joint.name)
        of_q += range(same.q.start, same.q.stop)
        of_v += range(same.v.start, same.v.stop)
    return np.array(of_q, dtype=int), np.array(of_v, dtype=int)
