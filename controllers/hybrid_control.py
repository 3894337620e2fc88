"""Hybrid motion and force control: a robot presses on faces with given forces while it moves along them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from controllers.operational_space import OperationalSpaceControl
from legged.algorithms.operational import ContactSpace, vertex_on_face
from legged.arguments import number
from legged.checked import checked
from legged.compiler import where
from legged.contact.rigid import Rigid
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.placement import Vector
from legged.robot.robot import Robot
from legged.spatial import Array


@checked
@dataclass(frozen=True)
class FaceContact:
    """A contact of a point of a link with a plane face of the environment.

    Attributes:
        link: Name of the link.
        point: The point, (3,), [m], link axes.
        normal: Unit normal of the face, towards the robot, (3,), world axes.
        force: Force of the face on the robot, [N], or a function of time [s].
    """

    link: str
    point: Vector
    normal: Vector
    force: float | Callable[[Any], Any]

    def __post_init__(self) -> None:
        length = np.linalg.norm(np.asarray(self.normal, float))
        if not abs(length - 1.0) < 1e-6:
            raise DefinitionError(f"the normal of a face must be a unit vector, got one of length {length:g}")
        if not callable(self.force):
            number("force", self.force, "N", least=0.0)  # a face presses

    def desired(self, t: Any) -> Any:
        """Return the desired force, [N].

        Args:
            t: Time, [s].
        """
        return self.force(t) if callable(self.force) else self.force


@checked
@dataclass(frozen=True, eq=False)
class HybridControl(OperationalSpaceControl):
    """Operational-space control of motions, and control of contact forces that does not disturb them:

        tau = h + (1 - P)(tau_m - h) + J^T (Lambda (a_n - Jd v) - f)

    tau_m are the forces for the tasks and the posture. P projects onto the contact forces J^T f, orthogonally by the
    inertia matrix, so that paths and forces need no common frame; see `legged.algorithms.operational.ContactSpace`. A
    task shall have a path that the contacts permit; the part of its acceleration against a contact is removed. The
    contacts are frictionless and held: a force has to press. Forces on standing feet balance those of the contacts.

    The motion in the subspace of motion is independent of the environment. The contact forces are f on an environment
    at rest; one that moves disturbs them, unless a_n, its acceleration along the normals, is measured.

    Attributes:
        contacts: The contacts with controlled forces.
        measured: Whether a_n is the mean acceleration of the points along the normals in the last time step, and not
            zero. It needs an integrator with fixed steps.

    Source:
        Featherstone 2004, reconstructed from the abstract; standing feet as in `OperationalSpaceControl`.
    """

    contacts: tuple[FaceContact, ...] = ()
    measured: bool = False

    def start(self, robot: Robot, ground: Ground | Rigid | None, q: Array, v: Array) -> tuple[Self, Array]:
        """Return (law, memory) for a robot; arguments and errors as in `OperationalSpaceControl.start`.

        With `measured` the memory is [time, velocities along the normals, their accelerations], (1 + 2 c,).

        Raises:
            DefinitionError: There are no contacts.
        """
        law, memory = super().start(robot, ground, q, v)
        if not self.contacts:
            raise DefinitionError("hybrid control needs a contact, or use OperationalSpaceControl")
        for contact in self.contacts:
            robot.link(contact.link)
        if self.measured:
            memory = np.concatenate([np.zeros(1), law._contact_space(q, v).J @ v, np.zeros(len(self.contacts))])
        return law, memory

    @property
    def has_update(self) -> bool:
        """Whether the memory changes at the start of each time step."""
        return self.measured

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), as in `GaitLaw.torque`; `wrenches` are not used."""
        space, c = self._contact_space(q, v, self._feet), len(self.contacts)
        a_n = memory[1 + c :] if self.measured else np.zeros(c)
        feet = -self.foot * (space.J[c:] @ v)
        forces = np.array([contact.desired(t) for contact in self.contacts] + [0.0] * len(feet))
        tau = space.hybrid_forces(v, self._motion_forces(t, phase, q, v), forces, np.concatenate([a_n, feet]))
        return self._supported(q, tau)

    def rate(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the time derivative of the memory, zero, (m,); arguments as in `torque`."""
        return 0.0 * memory

    def update(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the memory at the start of a time step, (1 + 2 c,); arguments as in `torque`."""
        velocities = self._contact_space(q, v).J @ v
        step = t - memory[0]
        moved = step > 0.0
        change = (velocities - memory[1 : 1 + len(velocities)]) / where(moved, step, 1.0)
        return np.concatenate([np.array([t]), velocities, np.array([where(moved, a, 0.0) for a in change])])

    def _contact_space(self, q: Array, v: Array, feet: tuple[tuple[int, Array], ...] = ()) -> ContactSpace:
        """Return the contact space of the contacts, and of feet that are held in all directions."""
        robot = self.robot
        held = [vertex_on_face(robot, q, v, at.link, at.point, at.normal) for at in self.contacts]
        for link, point in feet:
            held += [vertex_on_face(robot, q, v, robot.links[link].name, point, axis) for axis in np.eye(3)]
        return ContactSpace(robot, q, tuple(held))
