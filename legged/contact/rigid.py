"""Rigid ground and free bodies: the definition of a scene with rigid contact, and its warning of large residuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from legged.checked import checked
from legged.errors import DefinitionError
from legged.ground.materials import MaterialPair, check_rule, pair_coefficients
from legged.ground.terrain import Flat, Terrain
from legged.robot.base import FloatingBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.graph import GRAVITY
from legged.robot.inertia import Inertia
from legged.robot.link import Link
from legged.robot.placement import Vector, vector3
from legged.robot.robot import Robot
from legged.robot.shapes import Material, Shape
from legged.spatial import Array


@checked
@dataclass(frozen=True)
class Rigid:
    """A rigid ground and rigid surfaces of bodies: impacts, resting contact and Coulomb friction as impulses.

    It replaces a compliant `legged.ground.Ground`. `docs/explanation/contact.md` describes the contact pairs and
    the contact law.

    Attributes:
        friction: Coulomb friction coefficient mu of the ground.
        restitution: Newton's coefficient of restitution of the ground, from 0 to 1.
        terrain: The surface.
        sweeps: Largest number of Gauss-Seidel sweeps over all contacts in a step, without and again with restitution;
            scenes in parts do not sweep.
        iterations: Largest number of Newton iterations in a step whose residual after the sweeps exceeds `tolerance`;
            0 for Gauss-Seidel alone, in one kernel for any number of contacts.
        tolerance: Violation of the contact law, [m/s], above which a step takes Newton iterations; see
            `legged.contact.impulses.solver.natural_map_residual`.
        threshold: Approach speed below which there is no restitution, [m/s].
        recovery: Largest speed at which penetrations are corrected, [m/s].
        residual_limit: Largest violation of the contact law in a time step, [m/s], without a `SimulationWarning`; see
            `legged.contact.impulses.solver.natural_map_residual`.
        strict: Whether a larger violation raises a `SimulationError` instead.
        pairs: Pairs of names that may collide: links, free bodies, "terrain"; None for the default pairs, see
            `legged.contact.scene`.
        self_collision: Whether the links of the robot that have shapes also collide with each other, except neighbors,
            which share a joint, and links that overlap with all joints at zero.
        obstacles: Fixed shapes by name, such as ramps and the steps of stairs, in world axes. By default the contact
            points of the robot and the shapes of free bodies collide with them.
        material: Name of the ground's material, which terrain, obstacles, bodies and contact points without a
            `Material` have.
        combination: How the coefficients of two surfaces of equal priority are combined, a key of
            `legged.ground.materials.COMBINATIONS`.
        material_pairs: Coefficients of pairs of materials, which replace the combined ones.
        balances_momentum: Whether steps keep the momentum of freely moving robots and bodies up to rounding, see
            `legged.simulation.loop.momentum`. None for scenes in which some of them may touch each other, and for those
            without contacts; not for a robot that touches fixed surfaces alone, whose momentum nothing keeps.
    """

    friction: float = 0.8
    restitution: float = 0.0
    terrain: Terrain = field(default_factory=Flat)
    sweeps: int = 10
    iterations: int = 200
    tolerance: float = 1e-5
    threshold: float = 0.05
    recovery: float = 0.05
    residual_limit: float = 0.01
    strict: bool = False
    pairs: tuple[tuple[str, str], ...] | None = None
    self_collision: bool = False
    obstacles: tuple[tuple[str, Shape], ...] = ()
    material: str = "ground"
    combination: str = "declared"
    material_pairs: tuple[MaterialPair, ...] = ()
    balances_momentum: bool | None = None

    def __post_init__(self) -> None:
        for name in ("friction", "restitution", "threshold", "recovery", "tolerance", "residual_limit"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("friction", "threshold", "recovery", "tolerance", "residual_limit"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise DefinitionError(f"the {name} of a rigid ground must be finite and not negative, got {value}")
        if not 0.0 <= self.restitution <= 1.0:
            raise DefinitionError(f"the restitution of a rigid ground must lie between 0 and 1, got {self.restitution}")
        if int(self.sweeps) != self.sweeps or self.sweeps < 1:
            raise DefinitionError(f"the solver needs a whole number of sweeps, 1 or more, got {self.sweeps}")
        if int(self.iterations) != self.iterations or self.iterations < 0:
            raise DefinitionError(f"the solver needs a whole number of iterations, 0 or more, got {self.iterations}")
        check_rule(self.combination, self.material_pairs)
        for pair in self.pairs or ():
            if isinstance(pair, str) or len(pair) != 2:
                raise DefinitionError(f"pairs must be two names each, as (('foot', 'terrain'),), got {pair!r}")

    def __str__(self) -> str:
        law = f"mu = {self.friction:g}, restitution {self.restitution:g}, up to {self.sweeps} sweeps"
        return f"rigid ground: {self.terrain}\n  {law}"

    def coefficients(self, first: Material | None, second: Material | None) -> tuple[Any, Any]:
        """Return the coefficients of friction and of restitution between two surfaces.

        Args:
            first, second: Their materials; None for that of the ground.
        """
        return pair_coefficients(self, (self.friction, self.restitution), first, second)

    def describe(self) -> str:
        """Return the terrain and the law in a few lines."""
        return str(self)


@checked
@dataclass(frozen=True, eq=False)
class FreeBody:
    """A free rigid body of a scene and its initial state.

    Attributes:
        name: Different from the names of the robot's links.
        inertia: Inertia, body axes.
        shapes: Collision shapes, body axes.
        position: Initial position of its origin, (3,), [m], world axes.
        quaternion: Initial rotation from body axes to world axes, (4,), w first, of norm one.
        velocity: Initial velocity of its origin, (3,), [m/s], world axes.
        spin: Initial angular velocity, (3,), [rad/s], world axes.
        material: Material of shapes that have none of their own; None for that of the ground.
    """

    name: str
    inertia: Inertia
    shapes: Sequence[Shape]
    position: Vector = (0.0, 0.0, 0.0)
    quaternion: Annotated[Sequence[float] | Array, (4,)] = (1.0, 0.0, 0.0, 0.0)
    velocity: Vector = (0.0, 0.0, 0.0)
    spin: Vector = field(default=(0.0, 0.0, 0.0))
    material: Material | None = None

    def __post_init__(self) -> None:
        for name in ("position", "velocity", "spin"):
            object.__setattr__(self, name, vector3(f"the {name} of body {self.name!r}", getattr(self, name)))
        p = np.asarray(self.quaternion, float)
        if p.shape != (4,) or not abs(np.linalg.norm(p) - 1.0) < 1e-6:
            raise DefinitionError(
                f"the quaternion of body {self.name!r} must be four numbers of norm 1, w first, got {self.quaternion}"
            )
        if self.inertia.is_massless:
            raise DefinitionError(f"the free body {self.name!r} has no mass; give it an inertia")
        object.__setattr__(self, "quaternion", p / np.linalg.norm(p))
        object.__setattr__(self, "shapes", tuple(self.shapes))

    def robot(self, gravity: Vector = GRAVITY) -> Robot:
        """Return the body as a robot of one link on a floating base.

        Args:
            gravity: (3,), [m/s^2], world axes.
        """
        link = Link(self.name, self.inertia, shapes=self.shapes, material=self.material)
        return RobotBuilder(self.name, link, gravity=gravity).build()

    def state(self) -> tuple[Array, Array]:
        """Return the initial (q (7,), v (6,)) of `robot`."""
        q = np.concatenate([self.quaternion, np.asarray(self.position)])
        return q, FloatingBase().velocity(q, np.asarray(self.spin), np.asarray(self.velocity))


def violation_message(ground: Rigid, worst: float, member: int | None = None) -> str:
    """Return the warning that the contact law was violated, or "" below `Rigid.residual_limit`.

    Args:
        ground: The ground. worst: Largest residual of a time step, [m/s]; see `ContactRecord.worst_residual`.
        member: Number of the member of a batch.
    """
    if worst <= ground.residual_limit:
        return ""
    where = "" if member is None else f" of member {member}"
    return (
        f"the contact solver left a residual of {worst:.2g} m/s in a time step{where}, more than the limit of "
        f"{ground.residual_limit:g} m/s: contacts creep, penetrate or slide by that velocity; take more iterations, "
        f"legged.Rigid(sweeps={4 * ground.sweeps}, iterations={max(2 * ground.iterations, 40)}), shorter steps, or "
        f"masses that differ less"
    )
