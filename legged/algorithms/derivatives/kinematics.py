"""Motion of the joint axes under displacements, and derivatives of the motion of frames.

The motion subspace of a joint is a sequence of `MotionAxes` that move simultaneously, each fixed to the body that it
acts on: one for a joint of the tree or a floating base. A planar or an Euler-angle base is a chain of massless joints,
its slides first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from legged.algorithms.links import Links, links_at, transform_motions
from legged.compiler.ir import items
from legged.dynamics.arguments import read
from legged.dynamics.frames import Frame, ResolvedFrame, resolve_frame
from legged.dynamics.modules import outward
from legged.elements import any_element
from legged.moving_coordinates import cross_motion
from legged.robot.robot import Robot
from legged.spatial import Array, Rotation, Transform, Translation, cross, join

_BASE_AXES = {
    "fixed": (),
    "floating": (slice(0, 6),),
    "planar": (slice(1, 3), slice(0, 1)),
    "euler": (slice(3, 6), slice(0, 1), slice(1, 2), slice(2, 3)),
}


class MotionAxes(NamedTuple):
    """Axes that move simultaneously, in the coordinates of their body, (6, m) each.

    v_p and a_p are the spatial velocity and acceleration inward of the axes (gravity as an upward acceleration), and v
    is the velocity outward of them.

    Attributes:
        entries: Their entries of v.
        S: Motion subspace.
        Sd: Rate v x S.
        psid: v_p x S, the change of v by a displacement along S.
        psidd: a_p x S + v_p x psid, the change of a by a displacement along S, except for -v x psid of each body.
    """

    entries: slice
    S: Array
    Sd: Array
    psid: Array
    psidd: Array


class AxisMotion(NamedTuple):
    """The motion of every body: its axes, its spatial velocity t and acceleration a, (6,), gravity as an upward one."""

    axes: list[list[MotionAxes]]
    t: list[Array]
    a: list[Array]


def axis_motion(links: Links, q: Array, v: Array, vdot: Array, gravity: bool = True) -> AxisMotion:
    """Return the motion of all bodies and axes in the coordinates of the links.

    Args:
        links: The robot's bodies. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        gravity: Include gravity as an upward acceleration.

    Source: Singh, Russell, Wensing 2022, "Efficient analytical derivatives of rigid-body dynamics using spatial vector
    algebra", which also uses body-fixed axes, but expresses all vectors in one frame.
    """
    robot = links.robot
    motion = AxisMotion([], [], [])
    for body in outward(robot):
        k = body.index
        if body.parent < 0:
            t = np.zeros(6)
            a = join(np.zeros(3), -robot.base.pose(q)[0].T @ robot.gravity) if gravity else np.zeros(6)
            a = links.from_base @ a
        else:
            t, a = links.X[k] @ motion.t[body.parent], links.X[k] @ motion.a[body.parent]
        axes = []
        for entries in _BASE_AXES[robot.base.kind] if body.parent < 0 else (body.v,):
            S = links.h[k][:, entries.start - body.v.start : entries.stop - body.v.start]
            rate = S @ v[entries]
            psid = map_columns(cross_motion, t, S)
            psidd = map_columns(cross_motion, a, S) + map_columns(cross_motion, t, psid)
            t = t + rate
            a = a + S @ vdot[entries] + cross_motion(t, rate)
            axes.append(MotionAxes(entries, S, map_columns(cross_motion, t, S), psid, psidd))
        motion.axes.append(axes)
        motion.t.append(t)
        motion.a.append(a)
    return motion


def map_columns(operation: Callable[[Array, Array], Array], t: Array, S: Array) -> Array:
    """Return operation(t, s) of each column s of S, (6, m).

    Args:
        operation: Maps two vectors to one. t: (6,) or (3,), any unit. S: (6, m) or (3, m), any unit.
    """
    return np.stack([operation(t, column) for column in S.T], axis=1)


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


@any_element
def of_frame_motion(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> FrameDerivatives:
    """Return the derivatives of a frame's twist and acceleration by q, v and vdot.

    For every axis on the path to the base, with the spatial velocity t and acceleration a in axes fixed to the body,

        dt / dq = psid,    da / dq = psidd - t x psid,    dt / dv = S,    da / dv = psid + Sd - t x S

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        frame: Name of a link or of a contact point, or a `legged.Frame`.

    Raises:
        UnknownNameError: For another name.

    Source: Carpentier, Mansard 2018; the terms are those of `MotionAxes`.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    at, motion, X, t = _frame_motion(robot, q, v, vdot, frame)
    blocks = [np.zeros((6, robot.nv), dtype=np.result_type(v, t, motion.a[at.body])) for _ in range(4)]
    for axes in _axes_to_base(robot, motion, at):
        S, Sd, psid, psidd = (transform_motions(X, columns) for columns in axes[1:])
        a_q, a_v = psidd - map_columns(cross_motion, t, psid), psid + Sd - map_columns(cross_motion, t, S)
        derivatives = (psid, _classical(t, psid, a_q), _classical(t, S, a_v), S)
        for block, columns in zip(blocks, derivatives, strict=True):
            block[:, axes.entries] += columns
    return FrameDerivatives(*blocks)


@any_element
def jacobian_rate(robot: Robot, q: Array, v: Array, frame: str | Frame) -> Array:
    """Return the time derivative of `legged.frame_jacobian(robot, q, frame)`, world axes, (6, nv).

    The acceleration of the frame is J vdot + Jdot v.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        frame: Name of a link or of a contact point, or a `legged.Frame`.

    Raises:
        UnknownNameError: For another name.
    """
    q, v = read(robot, q=q, v=v)
    at, motion, X, _ = _frame_motion(robot, q, v, 0.0 * v, frame)
    p, t = X.steps[0].r, motion.t[at.body]  # type: ignore[union-attr]  # p is the origin of the frame
    pdot = t[3:] + cross(t[:3], p)
    rate = np.zeros((6, robot.nv), dtype=np.result_type(v, p, t))
    for axes in _axes_to_base(robot, motion, at):
        columns = [
            join(sd[:3], sd[3:] + cross(sd[:3], p) + cross(s[:3], pdot))
            for s, sd in zip(axes.S.T, axes.Sd.T, strict=True)
        ]
        rate[:, axes.entries] += np.stack(columns, axis=1)
    return rate


def _frame_motion(robot: Robot, q: Array, v: Array, vdot: Array, frame: str | Frame) -> tuple:
    """Return (body of the frame, motion in absolute coordinates, transform from the world to the frame, its twist)."""
    at, links = resolve_frame(robot, frame), links_at(robot, q, "absolute")
    motion = axis_motion(links, q, v, vdot, gravity=False)
    o, R = (step.r if isinstance(step, Translation) else step.R for step in links.to_link[at.body].steps)  # type: ignore
    X = Transform((Translation(o + R @ at.in_body.position), Rotation(R @ at.in_body.rotation)))
    return at, motion, X, X @ motion.t[at.body]


def _axes_to_base(robot: Robot, motion: AxisMotion, at: ResolvedFrame) -> Iterator[MotionAxes]:
    for k in items(robot.ancestors(at.body)):
        yield from motion.axes[k]


def _classical(t: Array, by_t: Array, by_a: Array) -> Array:
    """Return the derivatives, (6, m), of [omega dot; v dot + omega x v] from those of spatial velocity and rate."""
    linear = [cross(d[:3], t[3:]) + cross(t[:3], d[3:]) for d in by_t.T]
    return np.concatenate([by_a[:3], by_a[3:] + np.stack(linear, axis=1)])
