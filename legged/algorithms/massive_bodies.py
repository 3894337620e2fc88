"""Bodies with mass and the joints between them: the data of algorithms that keep each body's own equation of motion.

In `robot.bodies`, a joint of several degrees of freedom is a chain of joints with massless bodies between them.
Algorithms that invert inertias cannot have these: they are removed, and the joints on both sides become one joint whose
motion subspace has the columns of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.links import Links, base_bias, links_at, transform_motions
from legged.algorithms.newton_euler import velocities
from legged.dynamics.arguments import Wrenches
from legged.dynamics.kinematics import Motion
from legged.dynamics.modules import outward
from legged.dynamics.passive import spring_forces, velocity_forces
from legged.elements import as_floats, to_float
from legged.errors import DefinitionError
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.body import Body
from legged.robot.configuration import scatter
from legged.robot.robot import Robot
from legged.spatial import Array, Rotation, Transform, Translation

_ROUNDING = 1e-14  # [m^2] per mass, and relative to the largest principal moment: an inertia that is rounding


@dataclass(frozen=True, eq=False)
class MassiveBody:
    """A body with mass and the joint between it and its parent, a_i = X a_p + h qdd + c, in the body's coordinates.

    Attributes:
        index: Index of the body in `robot.bodies`.
        parent: Position of the parent in the list of massive bodies; -1 for the ground.
        X: Transform from the parent's frame to the body's.
        h: Motion subspace of the joint, (6, d). c: Velocity-product acceleration across the joint, (6,).
        I: Spatial inertia, (6, 6). p: Bias force v x I v less external wrenches, (6,).
        tau: Force along the joint less friction and springs, (d,).
        reflected_inertia: Inertia of armature and rotors, (d, d).
        v: Entries of the joint in v, one slice for each of the joints that it consists of.
    """

    index: int
    parent: int
    X: Transform
    h: Array
    c: Array
    I: Array
    p: Array
    tau: Array
    reflected_inertia: Array
    v: tuple[slice, ...]


def massive_bodies(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches,
    algorithm: str,
    *,
    twists: Sequence[Array] | None = None,
    any_inertia: bool = False,
) -> tuple[list[MassiveBody], Array]:
    """Return (bodies with mass, parent before child; acceleration of the ground, (6,), in base coordinates).

    A fixed base belongs to the ground.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`, already read.
        algorithm: Name of the algorithm, for error messages.
        twists: Twist of each body, (6,), mixed units, in body axes; computed by a sweep outward if None.
        any_inertia: Accept bodies with mass whose rotational inertia is singular.

    Raises:
        DefinitionError: For joints that follow others, gyroscopic rotors, massless bodies that do not have exactly one
            child, and singular rotational inertias unless `any_inertia`.
    """
    _refuse(robot, algorithm, any_inertia)
    links = links_at(robot, q)
    t = velocities(links, v) if twists is None else twists
    external = links.wrenches(wrenches)
    bodies: list[MassiveBody] = []
    position: dict[int, int] = {-1: -1}
    massless: dict[int, MassiveBody] = {}
    for body in outward(robot):
        k = body.index
        drive = tau[body.v] - velocity_forces(body, v) - spring_forces(body, q)
        own = _with_joint(links, body, v[body.v], drive, t[k], external.get(k))
        if body.parent in massless:
            own = _combine_joints(massless[body.parent], own)
        elif body.parent >= 0:
            own = replace(own, parent=position[body.parent])
        if k == 0 and body.nv == 0:
            position[k] = -1
        elif is_massless(body):
            massless[k] = own
        else:
            position[k] = len(bodies)
            bodies.append(own)
    return bodies, base_bias(links, q, v)


def _refuse(robot: Robot, algorithm: str, any_inertia: bool) -> None:
    refuse_followers(robot, algorithm)
    if any(body.has_gyroscopic_rotor for body in robot.bodies):
        raise DefinitionError(f"{algorithm} does not support gyroscopic rotors")
    for body in robot.bodies:
        if body.index == 0 and body.nv == 0:
            continue  # a fixed base belongs to the ground
        children = len(robot.children[body.index])
        if is_massless(body) and children != 1:
            raise DefinitionError(
                f"{algorithm} needs inertia in {body.name!r}, which has {children} joints outward of it"
            )
        if not any_inertia and not is_massless(body) and _is_singular(body):
            raise DefinitionError(
                f"{algorithm} inverts each body's own inertia, but {body.name!r} has none about some axis, as a thin "
                f"rod; give it a thickness, or use an algorithm that eliminates joints: legged.forward_dynamics"
            )


def is_massless(body: Body) -> bool:
    """Return whether a body of `robot.bodies` has no mass."""
    return body.moments.mass == 0


def _is_singular(body: Body) -> bool:
    """Return whether a body with mass has no inertia about some axis through its center of mass."""
    mass, h, J = body.moments.mass, body.moments.h, body.moments.J
    central = J - np.outer(h, h) / mass
    moments = np.linalg.eigvalsh(as_floats(np.trace(central) * np.eye(3) - central))
    return bool(moments[0] <= _ROUNDING * to_float(mass) + _ROUNDING * moments[2])


def _with_joint(
    links: Links, body: Body, rates: Array, drive: Array, twist: Array, external: Array | None
) -> MassiveBody:
    """Return a body with its joint, its parent set to the ground."""
    h = links.h[body.index]
    c = cross_motion(twist, h @ rates) if body.parent >= 0 and body.nv else np.zeros(6)
    p = cross_force(twist, body.M @ twist)
    p = p if external is None else p - external
    return MassiveBody(body.index, -1, links.X[body.index], h, c, body.M, p, drive, body.reflected_inertia, (body.v,))


def _combine_joints(inner: MassiveBody, outer: MassiveBody) -> MassiveBody:
    """Return the outer body with the joints of both as one joint."""
    X, zeros = outer.X, np.zeros((inner.h.shape[1], outer.h.shape[1]))
    return replace(
        outer,
        parent=inner.parent,
        X=Transform((*inner.X.steps, *X.steps)),
        h=np.concatenate([transform_motions(X, inner.h), outer.h], axis=1),
        c=X @ inner.c + outer.c,
        tau=np.concatenate([inner.tau, outer.tau]),
        reflected_inertia=np.block([[inner.reflected_inertia, zeros], [zeros.T, outer.reflected_inertia]]),
        v=(*inner.v, *outer.v),
    )


def generalized_accelerations(robot: Robot, bodies: Sequence[MassiveBody], qdd: Sequence[Array]) -> Array:
    """Return vdot, (nv,), from the accelerations of the joints.

    Args:
        robot: The robot. bodies: Its massive bodies. qdd: Of each body's joint, (d,), [rad/s^2] or [m/s^2], joint axes.
    """
    parts = []
    for body, own in zip(bodies, qdd, strict=True):
        start = 0
        for entries in body.v:
            size = entries.stop - entries.start
            parts.append((entries, own[start : start + size]))
            start += size
    return scatter(robot.nv, parts)


def parallel_prefix_motion(links: Links, q: Array, v: Array) -> Motion:
    """Return pose and spatial velocity of each body by recursive doubling: v_i = X v_p + h qd in O(log n) depth.

    For each body, the twist relative to an ancestor and the transform from there are known, at first for its parent. In
    each iteration they are composed with those of the ancestor, which doubles the distance. O(n log n) operations.

    Args:
        links: In link coordinates. q: Configuration, (nq,). v: Velocity, (nv,).

    Source: parallel prefix for equation (3) of Featherstone and Orin 2000; Featherstone 1999 has the velocities
    computed so before the dynamics.
    """
    bodies = links.robot.bodies
    ancestor = [body.parent for body in bodies]
    X = list(links.X)
    t = [links.h[b.index] @ v[b.v] if b.nv else np.zeros(6) for b in bodies]
    while max(ancestor) >= 0:
        t = [t[k] if ancestor[k] < 0 else X[k] @ t[ancestor[k]] + t[k] for k in range(len(t))]
        X = [X[k] if ancestor[k] < 0 else _compose(X[ancestor[k]], X[k]) for k in range(len(t))]
        ancestor = [-1 if ancestor[k] < 0 else ancestor[ancestor[k]] for k in range(len(t))]
    poses = [to_body.child_pose(*links.robot.base.pose(q)) for to_body in X]
    return Motion([R for R, _ in poses], [o for _, o in poses], t)


def _compose(inner: Transform, outer: Transform) -> Transform:
    """Return two transforms as one shift and one rotation."""
    R, r = outer.child_pose(*inner.child_pose(np.eye(3), np.zeros(3)))
    return Transform((Translation(r), Rotation(R)))
