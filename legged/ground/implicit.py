"""Contact forces at the end of a time step, linear in the change of the velocities of the contact points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.kinematics import link_poses, on_bodies
from legged.errors import DefinitionError
from legged.ground.ground import Array, Ground, tangents, traceable
from legged.robot.robot import Robot
from legged.spatial import mirror, skew

_INCREMENT = 1e-5  # [m/s] at rest, relative above 1 m/s: increment of the difference quotient of the normal force
_SMALL_SPEED = 1e-9  # [m/s], at which a friction law without memory has its slope at rest


class ImplicitForces(NamedTuple):
    """Contact forces f - B (u_next - u) at the end of a time step, with the velocities u of the points at its start.

    Attributes:
        forces: f, forces at the end of a step with constant velocities, (n, 3), [N], world axes.
        damping: B, (n, 3, 3), [N s/m], world axes: symmetric, without negative eigenvalues.
    """

    forces: Array
    damping: Array


def implicit_forces(ground: Ground, points: Array, velocities: Array, memory: Array, h: Any) -> ImplicitForces:
    """Return the contact forces at the end of a time step.

    The normal force F(p + h pdot, pdot) decreases by its slope with respect to pdot, so that the stiffness acts as the
    damping h K. A friction law without memory decreases by |force| / |velocity| along each tangent: the sliding
    velocity falls to zero without a change of sign. A law with memory needs a method `implicit`, see
    `BristleFriction.implicit`. The frame of each contact is that at the start of the step.

    Args:
        ground: The ground. points: Positions, (n, 3), [m], world axes.
        velocities: Velocities, (n, 3), [m/s], world axes. memory: State of the friction law, (m,). h: Time step, [s].

    Raises:
        DefinitionError: The friction law has a memory and no method `implicit`.
    """
    points, velocities, memory = traceable(points), traceable(velocities), traceable(memory)
    law, n = ground.friction, len(points)
    normal = ground.terrain.normal(points[:, 0], points[:, 1])
    t_1, t_2 = tangents(normal)
    rate = -(normal * velocities).sum(axis=-1)
    sliding = np.stack([(t * velocities).sum(axis=-1) for t in (t_1, t_2)], axis=-1)
    depth = ground.penetration(points)
    increment = _INCREMENT * (1.0 + np.abs(rate))
    less, same, more = (ground.normal.force(depth + h * x, x) for x in (rate - increment, rate, rate + increment))
    slope = np.maximum((more - less) / (2.0 * increment), 0.0)
    of_step = getattr(law, "implicit", None)
    if of_step is not None:
        f_t, d_t = of_step(same, sliding, memory.reshape(n, law.memory), h)
    elif law.memory:
        kind = type(law).__name__
        raise DefinitionError(f"friction law {kind} has a memory: LinearlyImplicitEuler needs its method `implicit`")
    else:
        nonzero = where(np.abs(sliding) < _SMALL_SPEED, _SMALL_SPEED, sliding)
        f_t, _ = law.force(same, nonzero, memory.reshape(n, 0))
        d_t = -f_t / nonzero
    axes = normal, t_1, t_2
    sizes, slopes = (same, f_t[:, 0], f_t[:, 1]), (slope, d_t[:, 0], d_t[:, 1])
    forces = sum(size[:, None] * axis for size, axis in zip(sizes, axes, strict=True))
    damping = sum(d[:, None, None] * axis[:, :, None] * axis[:, None, :] for d, axis in zip(slopes, axes, strict=True))
    return ImplicitForces(np.asanyarray(forces), np.asanyarray(damping))


def contact_masses(robot: Robot, q: Array, masses: Array) -> dict[int, Array]:
    """Return the inertia of masses at the contact points by the index of the body, (6, 6), [kg m^2, kg m, kg].

    It is that about the body's origin in body axes, see `accelerations`.

    Args:
        robot: The robot. q: Configuration, (nq,).
        masses: Mass of each point, which may differ between directions, (n, 3, 3), [kg], world axes.
    """
    poses = link_poses(robot, q)[0]
    found: dict[int, Array] = {}
    at = on_bodies(robot, [(contact.link, contact.position) for contact in robot.contacts])
    for contact, (k, r), mass in zip(robot.contacts, at, masses, strict=True):
        to_world = poses[contact.link] @ robot.links[contact.link].rotation.T  # from body axes
        inner = mirror(to_world.T @ mass @ to_world)
        arm = skew(r)
        moment = arm @ inner
        added = np.block([[mirror(-moment @ arm), moment], [moment.T, inner]])
        found[k] = found[k] + added if k in found else added
    return found
