"""Axes of motion and what their displacement brings: the rates psid, psidd and Sd of the columns S.

A joint is a run of `Axes` that move at once, body-fixed where they act: one for a joint of the tree or a floating base.
The rates of a planar or an Euler-angle base are those of a chain of joints without mass, its slides first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from legged.algorithms.links import Links, cross_motion
from legged.dynamics.sweeps import outward
from legged.robot.body import Body
from legged.robot.robot import Robot
from legged.spatial import Array, join

_BASE_CHAINS = {
    "fixed": (),
    "floating": (slice(0, 6),),
    "planar": (slice(1, 3), slice(0, 1)),
    "euler": (slice(3, 6), slice(0, 1), slice(1, 2), slice(2, 3)),
}


class Axes(NamedTuple):
    """Axes that move at once, in the coordinates of their body, (6, m) each.

    With v_p and a_p of what carries them, gravity as an upward acceleration, and v behind them:

    Attributes:
        where: Their entries of v.
        S: The axes.
        Sd: v x S, their rate.
        psid: v_p x S, by which a displacement along S changes v.
        psidd: a_p x S + v_p x psid, by which it changes a, but for -v x psid of each body.
    """

    where: slice
    S: Array
    Sd: Array
    psid: Array
    psidd: Array


class Moving(NamedTuple):
    """How every body moves: its axes, spatial velocity t and spatial acceleration a, (6,), gravity as an upward one."""

    axes: list[list[Axes]]
    t: list[Array]
    a: list[Array]


def moving(links: Links, q: Array, v: Array, vdot: Array, gravity: bool = True) -> Moving:
    """Return how every body moves, in the coordinates of the links; without gravity if it is not wanted.

    Source: Singh, Russell, Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics using spatial vector
    algebra", where v is that of body-fixed axes too, but all is written in one frame.
    """
    robot = links.robot
    found = Moving([], [], [])
    for body in outward(robot):
        k = body.index
        if body.parent < 0:
            t = np.zeros(6)
            a = join(np.zeros(3), -robot.base.pose(q)[0].T @ robot.gravity) if gravity else np.zeros(6)
            a = links.from_base @ a
        else:
            t, a = links.X[k] @ found.t[body.parent], links.X[k] @ found.a[body.parent]
        own = []
        for where in _slices(robot, body):
            S = links.h[k][:, where.start - body.v.start : where.stop - body.v.start]
            rate = S @ v[where]
            psid = columns(cross_motion, t, S)
            psidd = columns(cross_motion, a, S) + columns(cross_motion, t, psid)
            t = t + rate
            a = a + S @ vdot[where] + cross_motion(t, rate)
            own.append(Axes(where, S, columns(cross_motion, t, S), psid, psidd))
        found.axes.append(own)
        found.t.append(t)
        found.a.append(a)
    return found


def _slices(robot: Robot, body: Body) -> Sequence[slice]:
    return _BASE_CHAINS[robot.base.kind] if body.parent < 0 else (body.v,)


def columns(operation: Callable[[Array, Array], Array], v: Array, S: Array) -> Array:
    """Return the operation of v, (6,), on each column of S, (6, m)."""
    return np.stack([operation(v, column) for column in S.T], axis=1)
