"""The problem of predictive control: a rigid body under contact forces over a horizon, over any element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import ShapeError
from legged.spatial import Array, sum_of

_LARGEST_SHARE = 3.0
"""Largest nominal force of all contacts together, relative to the weight, when most of the horizon is flight."""


@checked
@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of the squared errors at the end of each step and of the squared contact forces; see `suited_weights`.

    Attributes:
        position: Of the center of mass, (3,), [1/m^2], world axes.
        velocity: Of the velocity of the center of mass, (3,), [s^2/m^2], world axes.
        orientation: Of the rotation vector, (3,), [1/rad^2], world axes.
        angular_velocity: (3,), [s^2/rad^2], world axes.
        force: Of the difference of each contact force from its nominal value, [1/N^2], positive.
    """

    position: Array
    velocity: Array
    orientation: Array
    angular_velocity: Array
    force: Any


def suited_weights(
    mass: Any,
    length: Any,
    gravity: Any,
    contacts: int,
    position: Any = 0.15,
    velocity: Any = 0.3,
    orientation: Any = 0.25,
    angular_velocity: Any = 1.0,
    force: Any = 1.0,
) -> Weights:
    """Return weights with which each squared error counts 1 where the error has its tolerated size.

    Lengths are relative to the legs, times to sqrt(length / gravity) and forces to the weight, so that robots of all
    sizes move alike. The tolerated force is shared by the contacts: all together may deviate by `force` weights.

    Args:
        mass: [kg].
        length: Height of the center of mass over the ground, [m].
        gravity: Magnitude, [m/s^2].
        contacts: Number of contact points.
        position: Tolerated error of the position, relative to the length.
        velocity: Of the velocity, relative to sqrt(gravity length).
        orientation: Of the orientation, [rad].
        angular_velocity: Of the angular velocity, relative to sqrt(gravity / length).
        force: Of the sum of the contact forces, relative to the weight.

    Source: Bryson, Ho, "Applied Optimal Control", 1975, section 5.2: weights are inverse squares of tolerated errors.
    """
    ones = np.ones(3)
    return Weights(
        ones / (position * length) ** 2,
        ones / (velocity * velocity * gravity * length),
        ones / (orientation * orientation),
        ones * length / (angular_velocity * angular_velocity * gravity),
        contacts / (force * mass * gravity) ** 2,
    )


@checked
@dataclass(frozen=True, eq=False)
class Problem:
    """A problem of predictive control with N steps and n contact points; every number may be traced.

    The forces f_i of the contact points at r_i from the center of mass c are constant during each step. With the
    rotation vector theta from the reference orientation at the time of the call,

        m c'' = sum of f_i + m g,      (I theta)'' = sum of r_i x f_i,

    so that (I theta)' is the angular momentum. References are those at the ends of the steps.

    Attributes:
        position: Of the center of mass, (3,), [m], world axes.
        velocity: Of the center of mass, (3,), [m/s], world axes.
        orientation: Rotation vector of the body from its reference orientation, (3,), [rad], world axes.
        angular_velocity: Of the body, (3,), [rad/s], world axes.
        positions: Reference positions of the center of mass, (N, 3), [m], world axes.
        velocities: Reference velocities of the center of mass, (N, 3), [m/s], world axes.
        orientations: Reference rotation vectors from the same orientation, (N, 3), [rad], world axes.
        angular_velocities: Reference angular velocities, (N, 3), [rad/s], world axes.
        mass: m, [kg].
        inertia: I about the center of mass, (3, 3), [kg m^2], world axes.
        gravity: g, (3,), [m/s^2], world axes.
        arms: r_i, contact points minus the predicted center of mass, (N, n, 3), [m], world axes.
        normals: Normals of the ground at the contact points, unit vectors, (N, n, 3), world axes.
        active: Fraction of the step during which a point has contact, 0 to 1, (N, n), dimensionless.
        friction: Coefficient of friction.
        most: Largest normal force of a contact point, [N]; it may be infinite.
        weights: Of the errors and forces.
        time_step: Duration of a step, [s].
        supported: Fraction of the step during which any point has contact, 0 to 1, (N,), dimensionless; None for the
            sum of the fractions of the points, at most 1.

    Raises:
        ShapeError: The arrays do not fit together.
    """

    position: Array
    velocity: Array
    orientation: Array
    angular_velocity: Array
    positions: Array
    velocities: Array
    orientations: Array
    angular_velocities: Array
    mass: Any
    inertia: Array
    gravity: Array
    arms: Array
    normals: Array
    active: Array
    friction: Any
    most: Any
    weights: Weights
    time_step: Any
    supported: Array | None = None

    def __post_init__(self) -> None:
        if len(np.shape(self.active)) != 2:
            raise ShapeError(
                f"active must be (N, n), one entry per step and contact, got shape {np.shape(self.active)}"
            )
        N, n = np.shape(self.active)
        shapes = {
            **dict.fromkeys(("position", "velocity", "orientation", "angular_velocity", "gravity"), (3,)),
            **dict.fromkeys(("positions", "velocities", "orientations", "angular_velocities"), (N, 3)),
            **dict.fromkeys(("arms", "normals"), (N, n, 3)),
            "inertia": (3, 3),
        }
        if self.supported is not None:
            shapes["supported"] = (N,)
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                raise ShapeError(
                    f"{name} must be {shape} for {N} steps and {n} contact points, got shape "
                    f"{np.shape(getattr(self, name))}"
                )

    @property
    def supports(self) -> list[Any]:
        """Fraction of each step during which any point has contact, (N,), dimensionless."""
        if self.supported is not None:
            return list(self.supported)
        return [np.minimum(sum_of(row), 1.0) for row in self.active]

    @property
    def nominal_forces(self) -> Array:
        """Forces without cost, (N, n, 3), [N], world axes.

        The contact points share the weight, divided by the fraction of the horizon in which any of them has contact.
        """
        supports = self.supports
        carried = self.mass / np.maximum(sum_of(supports) / len(supports), 1.0 / _LARGEST_SHARE)
        forces = []
        for row, supported in zip(self.active, supports, strict=True):
            share = sum_of(row)
            each = carried * supported / where(share > 0.0, share, 1.0)
            forces.append([[-(where(a > 0.0, each, 0.0) * g) for g in self.gravity] for a in row])
        return np.array(forces)
