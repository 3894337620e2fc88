"""Derivatives of how frames move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from legged.algorithms.derivatives.axes import Axes, Moving, columns, moving
from legged.algorithms.links import cross_motion, links_at
from legged.compiler.ir.annotations import items
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, ResolvedFrame, resolve_frame
from legged.robot.robot import Robot
from legged.spatial import Array, Rotation, Transform, Translation, cross, join


class FrameDerivatives(NamedTuple):
    """Derivatives of a frame's twist and acceleration in its own axes, (6, nv) each, angular rows first.

    Attributes:
        twist_q: Of `frame_twist(..., axes="local")` by a displacement along the manifold.
        acceleration_q, acceleration_v: Of `frame_acceleration(..., axes="local")`.
        jacobian: Of the twist by v, and of the acceleration by vdot.
    """

    twist_q: Array
    acceleration_q: Array
    acceleration_v: Array
    jacobian: Array


def of_frame_motion(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> FrameDerivatives:
    """Return the derivatives of a frame's twist and acceleration, by q, v and vdot.

    For every axis on the way to the base, of spatial velocity t and acceleration a in axes that move with the body,

        dt / dq = psid,    da / dq = psidd - t x psid,    dt / dv = S,    da / dv = psid + Sd - t x S

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        frame: Name of a link or of a contact point, or a `legged.Frame`.

    Raises:
        UnknownNameError: for another name.

    Source: Carpentier, Mansard 2018; the terms are those of `legged.algorithms.derivatives.axes`.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at, moves, X, t = _frame_motion(robot, q, v, vdot, frame)
    parts = [np.zeros((6, robot.nv), dtype=np.result_type(v, t, moves.a[at.body])) for _ in range(4)]
    for axes in _way(robot, moves, at):
        S, Sd, psid, psidd = (np.stack([X @ column for column in c.T], axis=1) for c in axes[1:])
        a_q, a_v = psidd - columns(cross_motion, t, psid), psid + Sd - columns(cross_motion, t, S)
        found = (psid, _classical(t, psid, a_q), _classical(t, S, a_v), S)
        for part, own in zip(parts, found, strict=True):
            part[:, axes.where] += own
    return FrameDerivatives(*parts)


def jacobian_rate(robot: Robot, q: Array, v: Array, frame: str | Frame) -> Array:
    """Return the time derivative of `legged.frame_jacobian(robot, q, frame)`, world axes, (6, nv).

    The frame accelerates by J vdot + Jdot v.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        frame: Name of a link or of a contact point, or a `legged.Frame`.

    Raises:
        UnknownNameError: for another name.
    """
    q, v = read(robot, q=q, v=v)
    at, moves, X, _ = _frame_motion(robot, q, v, 0.0 * v, frame)
    p, t = X.steps[0].r, moves.t[at.body]  # type: ignore[union-attr]
    pdot = t[3:] + cross(t[:3], p)
    rate = np.zeros((6, robot.nv), dtype=np.result_type(v, p, t))
    for axes in _way(robot, moves, at):
        own = [
            join(sd[:3], sd[3:] + cross(sd[:3], p) + cross(s[:3], pdot))
            for s, sd in zip(axes.S.T, axes.Sd.T, strict=True)
        ]
        rate[:, axes.where] += np.stack(own, axis=1)
    return rate


def _frame_motion(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> tuple:
    """Return where the frame is fixed, how all moves in absolute coordinates, the way to the frame, and its twist."""
    at, links = resolve_frame(robot, frame), links_at(robot, q, "absolute")
    moves = moving(links, q, v, vdot, gravity=False)
    o, R = (step.r if isinstance(step, Translation) else step.R for step in links.to_link[at.body].steps)  # type: ignore
    X = Transform((Translation(o + R @ at.in_body.position), Rotation(R @ at.in_body.rotation)))
    return at, moves, X, X @ moves.t[at.body]


def _way(robot: Robot, moves: Moving, at: ResolvedFrame) -> Iterator[Axes]:
    for k in items(robot.ancestors(at.body)):
        yield from moves.axes[k]


def _classical(t: Array, by_t: Array, by_a: Array) -> Array:
    """Return the derivatives, (6, m), of [omega dot; v dot + omega x v] from those of spatial velocity and rate."""
    linear = [cross(d[:3], t[3:]) + cross(t[:3], d[3:]) for d in by_t.T]
    return np.concatenate([by_a[:3], by_a[3:] + np.stack(linear, axis=1)])
