"""From a robot's state to its contact points, and from forces on them to wrenches on its links, over any element."""

from __future__ import annotations

import numpy as np

from legged.dynamics.kinematics import link_poses, point_motion
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import cross

Array = np.ndarray


def refuse_round_feet(robot: Robot) -> None:
    """Raise DefinitionError for contact points with a radius, which only a rigid ground knows."""
    for contact in robot.contacts:
        if contact.radius:
            raise DefinitionError(
                f"contact point {contact.name!r} is a ball of radius {contact.radius:g} m, and a compliant ground "
                f"knows points alone; take a legged.Rigid ground, or a point"
            )


def contact_motion(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return (positions, velocities) of the contact points, (n, 3) each, [m], [m/s], world, as in `robot.contacts`.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    return point_motion(robot, q, v, [(contact.link, contact.position) for contact in robot.contacts])


def contact_wrenches(robot: Robot, q: Array, forces: Array) -> Array:
    """Return the wrenches on all links that forces on the contact points make, (n_links, 6).

        w = [r x R^T f; R^T f], summed over the points of a link

    Args:
        robot: The robot. q: Configuration, (nq,).
        forces: On the points of `robot.contacts`, (n, 3), [N], world.

    Returns:
        [n; f] about each link's origin, in that link's axes, in the order of `robot.links`, [N m], [N].
    """
    rotations, _ = link_poses(robot, q)
    wrenches = [np.zeros(6) for _ in robot.links]
    for contact, force in zip(robot.contacts, forces, strict=True):
        f = rotations[contact.link].T @ force
        wrenches[contact.link] = wrenches[contact.link] + np.concatenate([cross(contact.position, f), f])
    return np.stack(wrenches)
