"""Compliant ground: forces on the contact points of a robot and the wrenches they exert on its links.

`implicit_forces` returns contact forces at the end of a time step, linear in the change of the velocities.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from legged.arguments import Vector3, array, known_name
from legged.checked import checked, checked_arguments
from legged.compiler.ir import ExpressionArray, where
from legged.dynamics.kinematics import link_poses, on_bodies, point_motion
from legged.errors import DefinitionError, ShapeError
from legged.ground.friction import FrictionLaw, Frictionless
from legged.ground.materials import MaterialPair, check_rule, pair_coefficients
from legged.ground.normal import NormalLaw
from legged.ground.terrain import Flat, Terrain
from legged.robot.configuration import as_vector
from legged.robot.robot import Robot
from legged.robot.shapes import Material
from legged.spatial import cross, mirror, skew

Array = np.ndarray


@checked
@dataclass(frozen=True)
class Ground:
    """Compliant ground: contact forces as functions of the positions and velocities of contact points.

    The same equations of motion hold in flight, single support and double support (Shah, Saha, Dutt 2012, section 1:
    the configuration-independent approach).

    Attributes:
        normal: Law of the normal force.
        friction: Law of friction.
        terrain: Height and normal of the surface.
        note: Description of the choice of constants, part of `str(ground)`.
        material: Name of the ground's material, which contact points without a `Material` have.
        combination: How the coefficients of friction of ground and contact point are combined where they have equal
            priority, a key of `legged.ground.materials.COMBINATIONS`, as in `legged.Rigid`.
        material_pairs: Coefficients of pairs of materials, which replace the combined ones. Coefficients of
            restitution are not used: `normal` determines the rebound.
    """

    normal: NormalLaw
    friction: FrictionLaw
    terrain: Terrain = field(default_factory=Flat)
    note: str = ""
    material: str = "ground"
    combination: str = "declared"
    material_pairs: tuple[MaterialPair, ...] = ()

    def __post_init__(self) -> None:
        check_rule(self.combination, self.material_pairs)

    def under(self, robot: Robot) -> Ground:
        """Return the ground with the coefficient of friction of each contact point of a robot.

        It is the ground itself for a robot whose contact points have no material. In the result the law's `coefficient`
        is an array, (n,), in the order of `robot.contacts`, so that `forces` takes all of these points.

        Args:
            robot: The robot, whose links or feet may have a `Material`.

        Raises:
            DefinitionError: A contact point has a material, and the law of friction no attribute `coefficient`.
            UnknownNameError: `material_pairs` names a material that neither the ground nor a contact point has.
        """
        materials = [contact.material or robot.links[contact.link].material for contact in robot.contacts]
        known = sorted({self.material, *(m.name for m in materials if m is not None)})
        for name in (name for pair in self.material_pairs for name in (pair.first, pair.second)):
            known_name("material", name, known)
        if (all(m is None for m in materials) and not self.material_pairs) or isinstance(self.friction, Frictionless):
            return self
        law = copy.copy(self.friction)
        if not hasattr(law, "coefficient"):
            raise DefinitionError(
                f"friction law {type(law).__name__} has no attribute 'coefficient', which the materials of contact "
                f"points determine; give the law one, or the links no material"
            )
        own = law.coefficient, 0.0  # type: ignore[attr-defined]
        coefficients = [pair_coefficients(self, own, material, None)[0] for material in materials]
        object.__setattr__(law, "coefficient", as_vector(coefficients))
        ground = copy.copy(self)
        object.__setattr__(ground, "friction", law)
        return ground

    def coefficients(self, first: Material | None, second: Material | None) -> tuple[Any, Any]:
        """Return the coefficients of friction and of restitution, 0, between two surfaces, as `Rigid.coefficients`."""
        return pair_coefficients(self, (getattr(self.friction, "coefficient", 0.0), 0.0), first, second)

    def memory(self, n_points: int) -> Array:
        """Return the initial memory of contact points in the air, (m,), with `friction.memory` numbers per point."""
        return np.zeros(n_points * self.friction.memory)

    def forces(self, points: Array, velocities: Array, memory: Array | None = None) -> tuple[Array, Array]:
        """Return (forces of the ground on the points, time derivative of the memory).

        Args:
            points: Positions of the contact points, (..., n, 3), [m], world axes.
            velocities: Velocities of the contact points, (..., n, 3), [m/s], world axes.
            memory: State of the friction law, (..., m), with `friction.memory` numbers per point; zero by default.

        Returns:
            Forces, (..., n, 3), [N], world axes, and the time derivative of the memory, (..., m).
        """
        points, velocities = traceable(points), traceable(velocities)
        if points.ndim < 2:
            raise ShapeError(f"points must be (..., n, 3), got shape {points.shape}")
        lead, n, m = points.shape[:-2], points.shape[-2], self.friction.memory
        memory = np.zeros((*lead, n * m)) if memory is None else traceable(memory)
        _check("points", points, (*lead, n, 3))
        _check("velocities", velocities, (*lead, n, 3))
        _check("memory", memory, (*lead, n * m))
        normal = self.terrain.normal(points[..., 0], points[..., 1])
        t_1, t_2 = tangents(normal)
        f_n = self.normal.force(self.penetration(points), -_dot(normal, velocities))
        sliding = np.stack([_dot(t_1, velocities), _dot(t_2, velocities)], axis=-1)
        f_t, rate = self.friction.force(f_n, sliding, memory.reshape(*lead, n, m))
        forces = f_n[..., None] * normal + f_t[..., :1] * t_1 + f_t[..., 1:] * t_2
        return forces, rate.reshape(*lead, n * m)

    def penetration(self, points: Array) -> Any:
        """Return the penetration depths of points, (...), [m], positive inside the ground.

        The depth is measured along the normal of the surface above or below the point. It is exact on planes and of
        first order on other terrain.

        Args:
            points: Positions, (..., 3), [m], world axes.
        """
        if np.shape(points)[-1:] != (3,):
            raise ShapeError(f"points must be (..., 3), a position each, got shape {np.shape(points)}")
        x, y, z = points[..., 0], points[..., 1], points[..., 2]
        return (self.terrain.height(x, y) - z) * self.terrain.normal(x, y)[..., 2]

    def __str__(self) -> str:
        lines = [f"ground: {self.terrain}", f"  normal: {self.normal}", f"  friction: {self.friction}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.note.splitlines())])

    def describe(self) -> str:
        """Return a description of the terrain, the laws and the choice of their constants."""
        return str(self)


def traceable(values: Array) -> Array:
    """Return an array, (...), any unit and frame, whose entries can be compared, also if they are traced expressions.

    Args:
        values: Numbers or expressions, (...), any unit and frame.
    """
    array = np.asanyarray(values)
    return array.view(ExpressionArray) if array.dtype == object else array


def _check(what: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ShapeError(f"{what} must be {shape}, got shape {array.shape}")


def tangents(n: Array) -> tuple[Array, Array]:
    """Return two orthogonal unit tangents of a surface, (..., 3) each, world axes.

    The first tangent is in the world's x-z plane. On level ground they are +x and +y.

    Args:
        n: Unit normal, (..., 3), dimensionless, world axes, not along y.
    """
    n_x, n_y, n_z = n[..., 0], n[..., 1], n[..., 2]
    run = np.sqrt(n_x * n_x + n_z * n_z)
    c, s = n_z / run, n_x / run
    return np.stack([c, 0.0 * c, -s], axis=-1), np.stack([-n_y * s, run, -n_y * c], axis=-1)


def _dot(a: Array, b: Array) -> Any:
    return (a * b).sum(axis=-1)


@checked_arguments
def center_of_pressure(points: Array, forces: Array, normal: Vector3 = (0.0, 0.0, 1.0)) -> Array:
    """Return the center of pressure, (..., 3), [m], world axes; NaN where no point carries load.

        c = sum_i F_n,i r_i / sum_i F_n,i

    Args:
        points: Positions of the contact points, (..., n, 3), [m], world axes.
        forces: Forces of the ground on the points, (..., n, 3), [N], world axes.
        normal: Unit normal of the surface, (3,), dimensionless, world axes.
    """
    points, forces = array("points", points), array("forces", forces)
    if points.ndim < 2 or points.shape[-1] != 3 or points.shape != forces.shape:
        raise ShapeError(f"points and forces must both be (..., n, 3), got shapes {points.shape} and {forces.shape}")
    loads = forces @ np.asarray(normal, dtype=float)
    total = loads.sum(axis=-1)
    weighted = np.einsum("...i,...ij->...j", loads, points)
    return weighted / np.where(total > 0.0, total, np.nan)[..., None]


def refuse_round_feet(robot: Robot) -> None:
    """Raise DefinitionError for contact points with a radius, which only rigid ground supports."""
    for contact in robot.contacts:
        if contact.radius:
            raise DefinitionError(
                f"contact point {contact.name!r} is a ball of radius {contact.radius:g} m, which compliant ground does "
                f"not support; use a legged.Rigid ground, or a point"
            )


def contact_motion(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return (positions [m], velocities [m/s]) of the contact points, (n, 3) each, world axes, in robot order.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        v: Velocity, (nv,).
    """
    return point_motion(robot, q, v, [(contact.link, contact.position) for contact in robot.contacts])


def contact_wrenches(robot: Robot, q: Array, forces: Array) -> Array:
    """Return the wrenches [n; f] of contact forces on all links, (n_links, 6), [N m] and [N].

    Wrenches are about each link's origin in its axes, in the order of `robot.links`:

        w = sum over the contact points of the link of [r x R^T f; R^T f]

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        forces: Forces on the contact points, (n, 3), [N], world axes, in the order of `robot.contacts`.
    """
    rotations, _ = link_poses(robot, q)
    wrenches = [np.zeros(6) for _ in robot.links]
    for contact, force in zip(robot.contacts, forces, strict=True):
        f = rotations[contact.link].T @ force
        wrenches[contact.link] = wrenches[contact.link] + np.concatenate([cross(contact.position, f), f])
    return np.stack(wrenches)


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
    inertias: dict[int, Array] = {}
    at = on_bodies(robot, [(contact.link, contact.position) for contact in robot.contacts])
    for contact, (k, r), mass in zip(robot.contacts, at, masses, strict=True):
        to_world = poses[contact.link] @ robot.links[contact.link].rotation.T  # from body axes
        inner = mirror(to_world.T @ mass @ to_world)
        arm = skew(r)
        moment = arm @ inner
        added = np.block([[mirror(-moment @ arm), moment], [moment.T, inner]])
        inertias[k] = inertias[k] + added if k in inertias else added
    return inertias
