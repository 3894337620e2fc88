"""Contacts at one moment, and what robots make of impulses there, over any element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from legged.contact.delassus import End, mobilities_at, turned
from legged.contact.pairs import Side
from legged.contact.solver import Blocks
from legged.dynamics.forward import velocity_jump
from legged.dynamics.kinematics import Motion, motion
from legged.robot.robot import Robot
from legged.spatial import Array, mirror, skew, sum_of
from legged.trace.expression import Expression
from legged.trace.labels import items

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

    def _at_ends(self, n: int) -> dict[tuple[int, int], Array]:
        """Return robot n's part in the blocks (i, j), j not before i, of the inertia."""
        ends = self._ends(n)
        robot, q, extra = self.robots[n], self.qs[n], self.extra[n]
        mobility = mobilities_at(robot, q, extra, [end for end, _ in ends]) if ends else []
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

        A seat with one contact is held there, three rows; one with several at its body's origin, six.
        """
        ends = []
        for number, (r, k, T) in enumerate(self.seats):
            on = [(i, C) for i, sides in enumerate(self.handles) for seat, C in sides if seat == number]
            if r == n and len(on) > 1:
                ends.append((End(k, T), on))
            elif r == n:
                ((i, C),) = on
                ends.append((End(k, C @ T), [(i, np.eye(3))]))
        return ends


def _block(mobility: list[list[Array]], a: int, b: int) -> Array:
    return mobility[a][b] if a <= b else mobility[b][a].T


def _identity(x: Any) -> Any:
    """Return what tells equal entries of frames: a number itself, a traced value by its identity."""
    return id(x) if isinstance(x, Expression) else float(x)
