"""Predictive control of a rigid body: contact forces over a horizon within friction cones, over any element.

The cost is the sum of the weighted squared errors at the ends of the steps and of the weighted squared differences of
the contact forces from their nominal values. Its minimum under the friction cones is found by Newton's method in the
costates of the motion (`costates`); the method is described in docs/explanation/predictive_control.md.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.costates import Iterate, ScaledProblem, contact_forces, iterate, wrench_of
from controllers.locomotion.forces.rigid_body import Problem
from legged.compiler.ir import item, repeat_while, where
from legged.spatial import Array, factor_symmetric, join, mirror, solve_factored, solve_symmetric

CONVERGED = 1e-4
"""Residual at which the iterations end: the largest difference between the wrench of the forces of a step and the one
that the predicted motion assumes, relative to the tolerated deviation of a contact force. Moments are divided by the
radius of gyration."""


class Plan(NamedTuple):
    """The optimal forces and the motion that they cause.

    Attributes:
        forces: Contact forces during each step, (N, n, 3), [N], world axes; within the friction cones.
        wrenches: Moments about the center of mass and forces on the body that the predicted motion assumes, (N, 6),
            [N m, N], world axes.
        costates: Change of the contact forces from their nominal values per unit of their effect, (N, 6), [N/m, N],
            world axes, see `costates`: the initial guess for the next call.
        acceleration: Of the center of mass while a point has contact in the first step, (3,), [m/s^2], world axes.
        angular_acceleration: At the same time, (3,), [rad/s^2], world axes: I^-1 times the moment.
        residual: Largest difference between the effect of the forces and the assumed wrenches, [m/s^2], as acceleration
            of the center of mass and of a point at the radius of gyration.
        iterations: Number of iterations.
    """

    forces: Array
    wrenches: Array
    costates: Array
    acceleration: Array
    angular_acceleration: Array
    residual: Any
    iterations: Any


def predictive_control(
    problem: Problem, guess: Array | None = None, iterations: int = 40, tolerance: float = CONVERGED
) -> Plan:
    """Return the plan with the least cost.

    The forces lie in the friction cones also where the iterations end early, and are zero where no point has contact.

    Args:
        problem: The body, its references and contact points.
        guess: Costates of the last plan, (N, 6), [N/m, N], world axes; None for zeros, that is, nominal forces.
        iterations: Largest number of iterations, at least 1.
        tolerance: See `CONVERGED`.
    """
    scaled = _scaled(problem)
    N, h2, m = len(problem.arms), problem.time_step * problem.time_step, problem.mass
    radius = np.sqrt((problem.inertia[0, 0] + problem.inertia[1, 1] + problem.inertia[2, 2]) / m)
    lengths = np.stack([1.0 / radius] * 3 + [0.0 * radius + 1.0] * 3)
    accuracy = tolerance * np.sqrt(scaled.unit)

    def step(state: Array) -> Array:
        now, error = iterate(scaled, Iterate.of(state[:-3]))
        residual = reduce(np.maximum, [reduce(np.maximum, np.abs(lengths * row)) for row in error])
        numbers = np.stack([residual, state[-2] + 1.0, where(residual > accuracy, 1.0, 0.0)])
        return np.concatenate([now.flat(), numbers])

    start = Iterate.start(np.zeros((N, 6)) + 0.0 * h2 if guess is None else h2 * guess).flat()
    state = repeat_while(step, np.concatenate([start, np.array([0.0, 0.0, 1.0])]), iterations)
    w, mu = Iterate.of(state[:-3]).point
    contacts = contact_forces(scaled, mu)
    inverse = 1.0 / h2
    forces = [
        [where(a > 0.0, inverse, 0.0) * x.f for a, x in zip(active, row, strict=True)]
        for active, row in zip(problem.active, contacts, strict=True)
    ]
    share = problem.supports[0]
    first = inverse / where(share > 0.0, share, 1.0) * wrench_of(scaled, 0, contacts[0])
    return Plan(
        np.array(forces),
        inverse * w,
        inverse * mu,
        first[3:] / m + problem.gravity,
        solve_symmetric(problem.inertia, first[:3]),
        inverse * state[-3] / m,
        state[-2],
    )


def _scaled(problem: Problem) -> ScaledProblem:
    """Return the problem in momentum coordinates, with the time step and the weight of forces 1."""
    h, m, inertia, weights = problem.time_step, problem.mass, problem.inertia, problem.weights
    h2 = h * h
    unit = h2 * h2 / weights.force
    factors = factor_symmetric(inertia)
    inverse = mirror(np.array([solve_factored(factors, e) for e in np.eye(3)]))

    def weight(angular: Array, linear: Array, scale: Any) -> Array:
        moments = mirror((inverse * angular) @ inverse) * scale
        return np.block([[moments, np.zeros((3, 3))], [np.zeros((3, 3)), np.eye(3) * (linear * scale / (m * m))]])

    def momentum(angular: Array, linear: Array) -> Array:
        return join(inertia @ angular, m * linear)

    Q_p = weight(weights.orientation, weights.position, unit)
    Q_r = weight(weights.angular_velocity, weights.velocity, unit / h2)
    goals = zip(problem.orientations, problem.positions, problem.angular_velocities, problem.velocities, strict=True)
    gradients = []
    for k, (theta, c, omega, v) in enumerate(goals):
        with item(("goal", k)):
            gradients.append((-(Q_p @ momentum(theta, c)), -(Q_r @ (h * momentum(omega, v)))))
    r = h * momentum(problem.angular_velocity, problem.velocity)
    return ScaledProblem(
        Q_p=Q_p,
        Q_r=Q_r,
        gradients=gradients,
        s=momentum(problem.orientation, problem.position) - 0.5 * r,
        r=r,
        fall=join(np.zeros(3), h2 * m * problem.gravity),
        nominal=h2 * problem.nominal_forces,
        arms=problem.arms,
        normals=problem.normals,
        active=problem.active,
        friction=problem.friction,
        most=h2 * problem.most,
        unit=unit,
    )
