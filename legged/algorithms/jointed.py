"""Bodies with inertia and the joints between them: what algorithms read that hold every body's own equation of motion.

A joint of several degrees of freedom is a chain of bodies here, massless ones between. Algorithms that invert inertias
cannot have these: they are taken out, and the joints on both sides become one with the columns of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.links import Links, base_bias, cross_force, cross_motion, links_at
from legged.algorithms.newton_euler import velocities
from legged.dynamics.arguments import Wrenches
from legged.dynamics.passive import friction_forces, spring_forces
from legged.dynamics.sweeps import outward
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, skew

_NOTHING = 1e-14  # [m^2] per mass, and of the largest principal moment: inertia that is rounding


@dataclass(frozen=True, eq=False)
class Jointed:
    """A body with inertia, and the joint between it and its parent: a_i = X a_p + h qdd + c.

    Attributes:
        index: Of the body, in `robot.bodies`.
        parent: Place in the list of these of the parent; -1 for the ground.
        X: From the parent's frame to the body's.
        h: Motion subspace, (6, d). c: Velocity part of the acceleration across the joint, (6,).
        I: Inertia, (6, 6). p: v x I v less external wrenches, (6,).
        tau: Force along the joint, (d,), less friction and springs. reflected: Armature and rotors, (d, d).
        v: Entries of the joint in v, one slice for each of its parts.
    """

    index: int
    parent: int
    X: Transform
    h: Array
    c: Array
    I: Array
    p: Array
    tau: Array
    reflected: Array
    v: tuple[slice, ...]


def jointed(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches,
    what: str,
    *,
    twists: Sequence[Array] | None = None,
    any_inertia: bool = False,
) -> tuple[list[Jointed], Array]:
    """Return (bodies with inertia, parent before child, acceleration of the ground (6,) in the base's coordinates).

    Each in its own coordinates. A fixed base is part of the ground.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`, read.
        what: The algorithm, for messages.
        twists: Of each body, (6,), in its axes; found by a sweep outward if not given.
        any_inertia: Whether bodies with mass may have no inertia about some axis.

    Raises:
        DefinitionError: for joints that follow others, gyroscopic rotors, and bodies that have no inertia about some
            axis; massless ones with one joint outward of them are taken out, others are not.
    """
    _refuse(robot, what, any_inertia)
    links = links_at(robot, q)
    t = velocities(links, v) if twists is None else twists
    outside = links.wrenches(wrenches)
    found: list[Jointed] = []
    place: dict[int, int] = {-1: -1}
    waiting: dict[int, Jointed] = {}
    for body in outward(robot):
        k = body.index
        drive = tau[body.v] - friction_forces(body, v) - spring_forces(body, q)
        own = _with_joint(links, body, v[body.v], drive, t[k], outside.get(k))
        if body.parent in waiting:
            own = _joined(waiting[body.parent], own)
        elif body.parent >= 0:
            own = replace(own, parent=place[body.parent])
        if k == 0 and body.nv == 0:
            place[k] = -1
        elif _massless(body):
            waiting[k] = own
        else:
            place[k] = len(found)
            found.append(own)
    return found, base_bias(links, q, v)


def _refuse(robot: Robot, what: str, any_inertia: bool) -> None:
    refuse_followers(robot, what)
    if any(body.rotor_momentum.any() for body in robot.bodies):
        raise DefinitionError(f"{what} knows no rotors that couple with the turning of their link")
    for body in robot.bodies:
        children = len(robot.children[body.index])
        if _massless(body) and (body.index > 0 or body.nv > 0) and children != 1:
            raise DefinitionError(f"{what} needs inertia in {body.name!r}, which has {children} joints outward of it")
        if not any_inertia and not _massless(body) and (body.index > 0 or body.nv > 0) and _turns_freely(body):
            raise DefinitionError(
                f"{what} inverts each body's own inertia, but {body.name!r} has none about some axis, as a thin rod; "
                f"give it a thickness, or use an algorithm that eliminates joints: legged.forward_dynamics"
            )


def _massless(body: Body) -> bool:
    return body.moments.mass == 0


def _turns_freely(body: Body) -> bool:
    """Tell whether a body with mass can turn about some axis through its center of mass without inertia."""
    mass, h, J = body.moments.mass, body.moments.h, body.moments.J
    central = J - np.outer(h, h) / mass
    moments = np.linalg.eigvalsh(np.trace(central) * np.eye(3) - central)
    return bool(moments[0] <= _NOTHING * mass + _NOTHING * moments[2])


def _with_joint(links: Links, body: Body, rates: Array, drive: Array, twist: Array, outside: Array | None) -> Jointed:
    """Return a body with the joint before it, as if it hung on the ground."""
    h = links.h[body.index]
    c = cross_motion(twist, h @ rates) if body.parent >= 0 and body.nv else np.zeros(6)
    p = cross_force(twist, body.M @ twist)
    p = p if outside is None else p - outside
    return Jointed(body.index, -1, links.X[body.index], h, c, body.M, p, drive, body.reflected_inertia, (body.v,))


def _joined(inner: Jointed, outer: Jointed) -> Jointed:
    """Return the outer body with the joints of both as one."""
    X, zeros = outer.X, np.zeros((inner.h.shape[1], outer.h.shape[1]))
    h = np.concatenate([carried(X, inner.h), outer.h], axis=1)
    reflected = np.block([[inner.reflected, zeros], [zeros.T, outer.reflected]])
    tau = np.concatenate([inner.tau, outer.tau])
    way = Transform((*inner.X.steps, *X.steps))
    return replace(
        outer,
        parent=inner.parent,
        X=way,
        h=h,
        c=X @ inner.c + outer.c,
        tau=tau,
        reflected=reflected,
        v=(*inner.v, *outer.v),
    )


def carried(X: Transform, motions: Array) -> Array:
    """Return X M for a matrix of motion vectors, (6, n)."""
    return np.array([X @ column for column in motions.T]).reshape(motions.shape[1], 6).T


def gathered(X: Transform, forces: Array) -> Array:
    """Return X^T F for a matrix of forces, (6, n)."""
    return np.array([X.T @ column for column in forces.T]).reshape(forces.shape[1], 6).T


def matrix(X: Transform) -> Array:
    """Return a transform as a matrix, (6, 6)."""
    R, r = X.child_pose(np.eye(3), np.zeros(3))
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ skew(r), R.T]])


def rates(robot: Robot, bodies: Sequence[Jointed], qdd: Sequence[Array]) -> Array:
    """Return the vector over v, (nv,), from each joint's rates."""
    parts = []
    for body, own in zip(bodies, qdd, strict=True):
        start = 0
        for where in body.v:
            size = where.stop - where.start
            parts.append((where, own[start : start + size]))
            start += size
    return scatter(robot.nv, parts)
