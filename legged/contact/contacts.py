"""Contacts at one moment, and what robots make of impulses there, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir.annotations import items
from legged.compiler.ir.expression import Expression
from legged.contact.delassus import End, mobilities_at, turned
from legged.contact.groups import Arm, Blocks, Groups
from legged.contact.pairs import Side
from legged.dynamics.forward import velocity_jump
from legged.dynamics.kinematics import Motion, motion
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew, sum_of

Sides = tuple[Side, Side | None]


class Seat(NamedTuple):
    """A body as contacts of one frame see it.

    Attributes:
        robot, body: Who.
        T: From the body's twist, in its axes, to its twist in the contacts' axes, at the same origin, (6, 6).
    """

    robot: int
    body: int
    T: Array


class Handle(NamedTuple):
    """One side of a contact: its seat's number, and C, (3, 6), from the seat's twist to the contact's velocity."""

    seat: int
    C: Array


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts at one moment.

    Attributes:
        robots: The scene's. qs: Their configurations, (nq,). extra: Added to their joints' own inertia, (nv,).
        poses: Where their bodies are.
        seats: Bodies with contacts, once for each contact frame on them.
        handles: For each contact its sides, the second with the opposite sign; none for the terrain.
    """

    robots: Sequence[Robot]
    qs: Sequence[Array]
    extra: Sequence[Array]
    poses: list[Motion]
    seats: list[Seat]
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
        seats: dict[Any, Seat] = {}
        handles: list[list[Handle]] = []
        for both, frame, point in zip(sides, frames, points, strict=True):
            handles.append([])
            for side, sign in zip(both, (1.0, -1.0), strict=True):
                if side is not None:
                    at, k = poses[side.robot], side.body
                    key = side.robot, k, *map(_identity, frame.ravel())
                    if key not in seats:
                        seats[key] = Seat(side.robot, k, turned(frame @ at.rotation[k]))
                    arm = frame @ (point - at.origin[k])
                    handles[-1].append(Handle(list(seats).index(key), sign * np.hstack([-skew(arm), np.eye(3)])))
        return cls(robots, qs, extra, poses, list(seats.values()), handles)

    def velocities(self, vs: Sequence[Array]) -> Array:
        """Return the contacts' velocities in their frames, (m, 3), [m/s], of robots that move by vs, (nv,) each."""
        twists = [motion(robot, q, v).twist for robot, q, v in zip(self.robots, self.qs, vs, strict=True)]
        seated = [seat.T @ twists[seat.robot][seat.body] for seat in self.seats]
        found = [sum_of(handle.C @ seated[handle.seat] for handle in sides) for sides in items(self.handles)]
        return np.array(found).reshape(-1, 3)

    def inertia(self) -> tuple[Blocks, Groups]:
        """Return A = J (I + diag(extra))^-1 J^T in two parts, [1/kg].

        Blocks (3, 3) between contacts of a group, None between others, and what groups feel of each other.
        """
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, sides in enumerate(self.handles):
            groups.setdefault(tuple(seat for seat, _ in sides), []).append(i)
        ends, arms = self._ends(list(groups.values()))
        mobility = self._mobility(ends)
        m = len(self.handles)
        near: Blocks = [[None] * m for _ in range(m)]
        for group in groups.values():
            self._couple(near, group, arms, mobility)
        for group in groups.values():
            for (a, _), (b, _) in product(arms[group[0]], repeat=2):
                mobility[a][b] = None
        return near, Groups(list(groups.values()), arms, mobility)

    def after(self, v_free: Sequence[Array], p: Array) -> list[Array]:
        """Return the velocities of each robot, (nv,), with impulses p, (m, 3), on top of v_free."""
        felt: list[Any] = [0.0] * len(self.seats)
        for sides, impulse in zip(self.handles, p, strict=True):
            for seat, C in sides:
                felt[seat] = felt[seat] + C.T @ impulse
        wrenches: list[dict[int, Array]] = [{} for _ in self.robots]
        for (r, k, T), w in zip(self.seats, felt, strict=True):
            wrenches[r][k] = wrenches[r].get(k, 0.0) + T.T @ w
        return [
            v + velocity_jump(robot, q, w, extra) if w else v
            for robot, q, extra, v, w in zip(self.robots, self.qs, self.extra, v_free, wrenches, strict=True)
        ]

    def _ends(self, groups: list[list[int]]) -> tuple[list[tuple[int, End]], list[list[Arm]]]:
        """Return where groups hold bodies, (robot, end), and the arms of each contact; see `Groups`.

        A group of several contacts holds a seat at its body's origin, six rows; one contact at its point, three.
        """
        ends: list[tuple[int, End]] = []
        arms: list[list[Arm]] = [[] for _ in self.handles]
        for group in groups:
            for held in zip(*(self.handles[i] for i in group), strict=True):
                robot, body, T = self.seats[held[0].seat]
                alone = len(group) == 1
                for i, (_, C) in zip(group, held, strict=True):
                    arms[i].append((len(ends), np.eye(3) if alone else C))
                ends.append((robot, End(body, held[0].C @ T if alone else T)))
        return ends, arms

    def _mobility(self, ends: list[tuple[int, End]]) -> Blocks:
        """Return the twists of ends per wrench on ends, blocks (n, n'); None between robots."""
        found: Blocks = [[None] * len(ends) for _ in ends]
        for n, (robot, q, extra) in enumerate(zip(self.robots, self.qs, self.extra, strict=True)):
            own = [number for number, (r, _) in enumerate(ends) if r == n]
            blocks = mobilities_at(robot, q, extra, [ends[number][1] for number in own]) if own else []
            for i, a in enumerate(own):
                for j, b in enumerate(own[i:], i):
                    found[a][b] = blocks[i][j]
                    found[b][a] = blocks[i][j].T if i < j else blocks[i][i]
        return found

    def _couple(self, near: Blocks, group: list[int], arms: list[list[Arm]], mobility: Blocks) -> None:
        """Set the blocks between the contacts of a group."""
        for at, j in items(enumerate(group)):
            felt = {a: sum_of(M @ C.T for b, C in arms[j] if (M := mobility[a][b]) is not None) for a, _ in arms[j]}
            for i in group[: at + 1]:
                block = sum_of(C @ felt[a] for a, C in arms[i])
                near[i][j] = mirror(block) if i == j else block
                near[j][i] = near[i][j].T  # type: ignore[union-attr]


def _identity(x: Any) -> Any:
    """Return what tells equal entries of frames: a number itself, a traced value by its identity."""
    return id(x) if isinstance(x, Expression) else float(x)
