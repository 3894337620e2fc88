"""Contacts at one moment, and what robots make of impulses there, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from legged.contact.delassus import End, mobilities_at, turned
from legged.contact.pairs import Side
from legged.contact.solver import Blocks
from legged.dynamics.forward import velocity_jump
from legged.dynamics.kinematics import Motion, motion
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join, mirror, sum_of
from legged.trace.labels import items

Sides = tuple[Side, Side | None]


class Handle(NamedTuple):
    """One side of a contact.

    Attributes:
        robot, body: Who.
        G: From the body's twist, at its origin in world axes, to the velocity that this side adds to the contact's, in
            the contact's frame, (3, 6).
    """

    robot: int
    body: int
    G: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts at one moment.

    Attributes:
        robots: The scene's. qs: Their configurations, (nq,). extra: Added to their joints' own inertia, (nv,).
        poses: Where their bodies are.
        handles: For each contact its sides, the second with the opposite sign; none for the terrain.
    """

    robots: Sequence[Robot]
    qs: Sequence[Array]
    extra: Sequence[Array]
    poses: list[Motion]
    handles: list[list[Handle]]

    @classmethod
    def of(
        cls,
        robots: Sequence[Robot],
        sides: Sequence[Sides],
        qs: Sequence[Array],
        extra: Sequence[Array],
        frames: Array,
        points: Array,
    ) -> Contacts:
        """Return the contacts between given sides with given frames (m, 3, 3) and points (m, 3)."""
        poses = [motion(robot, q) for robot, q in zip(robots, qs, strict=True)]
        handles = []
        for (first, second), frame, point in zip(sides, frames, points, strict=True):
            one = [_handle(poses, first, frame, point)]
            handles.append(one if second is None else [*one, _handle(poses, second, -frame, point)])
        return cls(robots, qs, extra, poses, handles)

    def velocities(self, vs: Sequence[Array]) -> Array:
        """Return the contacts' velocities in their frames, (m, 3), [m/s], of robots that move by vs, (nv,) each."""
        twists = [motion(robot, q, v).twist for robot, q, v in zip(self.robots, self.qs, vs, strict=True)]
        return np.array(
            [
                sum_of(G @ (turned(self.poses[r].rotation[k]) @ twists[r][k]) for r, k, G in sides)
                for sides in items(self.handles)
            ]
        ).reshape(-1, 3)

    def inertia(self) -> Blocks:
        """Return A = J (I + diag(extra))^-1 J^T, blocks (3, 3), [1/kg]; None for contacts that share no robot."""
        at = [self._at_ends(n) for n in range(len(self.robots))]
        m = len(self.handles)
        blocks: Blocks = [[None] * m for _ in range(m)]
        for i in items(range(m)):
            for j in range(i, m):
                parts = [found[i, j] for found in at if (i, j) in found]
                if parts:
                    block = sum_of(parts)
                    blocks[i][j] = mirror(block) if i == j else block
                    blocks[j][i] = blocks[i][j].T  # type: ignore[union-attr]
        return blocks

    def after(self, v_free: Sequence[Array], p: Array) -> list[Array]:
        """Return the velocities of each robot, (nv,), with impulses p, (m, 3), on top of v_free."""
        wrenches: list[dict[int, Array]] = [{} for _ in self.robots]
        for sides, impulse in zip(self.handles, p, strict=True):
            for r, k, G in sides:
                w = turned(self.poses[r].rotation[k].T) @ (G.T @ impulse)
                wrenches[r][k] = wrenches[r][k] + w if k in wrenches[r] else w
        return [
            v + velocity_jump(robot, q, w, extra) if w else v
            for robot, q, extra, v, w in zip(self.robots, self.qs, self.extra, v_free, wrenches, strict=True)
        ]

    def _at_ends(self, n: int) -> dict[tuple[int, int], Array]:
        """Return robot n's part in the blocks (i, j), j not before i, of the inertia."""
        ends = self._ends(n)
        robot, q, extra, poses = self.robots[n], self.qs[n], self.extra[n], self.poses[n]
        mobility = mobilities_at(robot, q, poses, extra, [end for end, _ in ends]) if ends else []
        held = [(i, a, C) for a, (_, contacts) in enumerate(ends) for i, C in contacts]
        found: dict[tuple[int, int], Array] = {}
        for j, b, C_j in items(held):
            felt = [_block(mobility, a, b) @ C_j.T for a in range(len(ends))]
            for i, a, C_i in held:
                if i <= j:
                    part = C_i @ felt[a]
                    found[i, j] = found[i, j] + part if (i, j) in found else part
        return found

    def _ends(self, n: int) -> list[tuple[End, list[tuple[int, Array]]]]:
        """Return robot n's ends, each with its contacts and what takes the end's motion to the contact, (3, rows).

        A body with one contact is held there, three rows; one with several at its origin, six.
        """
        on: dict[int, list[tuple[int, Array]]] = {}
        for i, sides in enumerate(self.handles):
            for r, k, G in sides:
                if r == n:
                    on.setdefault(k, []).append((i, G))
        ends = []
        for k, contacts in sorted(on.items()):
            if len(contacts) > 1:
                ends.append((End(k, np.eye(6)), contacts))
            else:
                ((i, G),) = contacts
                ends.append((End(k, G), [(i, np.eye(3))]))
        return ends


def _block(mobility: list[list[Array]], a: int, b: int) -> Array:
    return mobility[a][b] if a <= b else mobility[b][a].T


def _handle(poses: list[Motion], side: Side, frame: Array, point: Array) -> Handle:
    arm = point - poses[side.robot].origin[side.body]
    return Handle(side.robot, side.body, np.array([join(cross(arm, d), d) for d in frame]))
