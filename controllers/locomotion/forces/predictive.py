"""Predictive control of a rigid body: contact forces over a horizon within friction cones, over any element.

The cost is the sum of the weighted squared errors at the ends of the steps and of the weighted squared differences of
the contact forces from their nominal values. Its minimum under the friction cones is found by Newton's method in the
costates of the motion (`costates`); the method is described in docs/explanation/predictive_control.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.costates import ScaledProblem, contact_forces, costates_of, iterate, wrench_of
from controllers.locomotion.forces.rigid_body import Problem
from legged.compiler.ir import item, repeat_while, where
from legged.spatial import Array, cross, factor_symmetric, join, mirror, solve_factored, solve_symmetric, sum_of

CONVERGED = 1e-2
"""Square root of the Newton decrement at which the iterations end. It estimates the distance from the optimum, where an
error of 1 has its tolerated size; the last iteration reduces it to about 1e-4."""


class Plan(NamedTuple):
    """The optimal forces and the motion that they cause.

    Attributes:
        forces: Contact forces during each step, (N, n, 3), [N], world axes; within the friction cones.
        wrenches: Moments about the center of mass and forces on the body that the predicted motion assumes, (N, 6),
            [N m, N], world axes: the initial guess for the next call.
        acceleration: Of the center of mass in the first step, (3,), [m/s^2], world axes.
        angular_acceleration: In the first step, (3,), [rad/s^2], world axes: I^-1 times the moment.
        residual: Largest difference between the effect of the forces and the assumed wrenches, [m/s^2], as acceleration
            of the center of mass and of a point at the radius of gyration.
        iterations: Number of iterations.
    """

    forces: Array
    wrenches: Array
    acceleration: Array
    angular_acceleration: Array
    residual: Any
    iterations: Any


def predictive_control(problem: Problem, guess: Array, iterations: int = 20, tolerance: float = CONVERGED) -> Plan:
    """Return the plan with the least cost.

    The forces lie in the friction cones also where the iterations end early, and are zero where no point has contact.

    Args:
        problem: The body, its references and contact points.
        guess: Initial wrenches, (N, 6), [N m, N], world axes: those of the last plan or `nominal_wrenches`.
        iterations: Largest number of iterations, at least 1.
        tolerance: See `CONVERGED`.
    """
    scaled = _scaled(problem)
    N, h2 = len(problem.arms), problem.time_step * problem.time_step

    def step(state: Array) -> Array:
        w, mu = state[:-2].reshape(2, N, 6)
        w, mu, decrement = iterate(scaled, w, mu)
        numbers = np.stack([state[-2] + 1.0, where(decrement > scaled.unit * tolerance**2, 1.0, 0.0)])
        return np.concatenate([w.reshape(-1), mu.reshape(-1), numbers])

    begin = [(h2 * guess).reshape(-1), costates_of(scaled, h2 * guess).reshape(-1), np.array([0.0, 1.0])]
    state = repeat_while(step, np.concatenate(begin), iterations)
    w, mu = state[:-2].reshape(2, N, 6)
    contacts = contact_forces(scaled, mu)
    wrenches = [wrench_of(scaled, k, row) / h2 for k, row in enumerate(contacts)]
    inverse = 1.0 / h2
    forces = [
        [where(a > 0.0, inverse, 0.0) * x.f for a, x in zip(active, row, strict=True)]
        for active, row in zip(problem.active, contacts, strict=True)
    ]
    first, m = wrenches[0], problem.mass
    return Plan(
        np.array(forces),
        w / h2,
        first[3:] / m + problem.gravity,
        solve_symmetric(problem.inertia, first[:3]),
        _residual(problem, wrenches, w / h2),
        state[-2],
    )


def nominal_wrenches(problem: Problem) -> Array:
    """Return the wrenches of the nominal forces, (N, 6), [N m, N], world axes: an initial guess without a last plan.

    Args:
        problem: The body, its references and contact points.
    """
    rows = zip(problem.arms, problem.active, problem.nominal_forces, strict=True)
    return np.array([sum_of(a * join(cross(r, f), f) for r, a, f in zip(*row, strict=True)) for row in rows])


def _residual(problem: Problem, forces: list[Array], assumed: Array) -> Any:
    """Return the largest difference of wrenches, [m/s^2], see `Plan`."""
    m = problem.mass
    radius = np.sqrt((problem.inertia[0, 0] + problem.inertia[1, 1] + problem.inertia[2, 2]) / m)
    scale = np.array([1.0 / (m * radius)] * 3 + [1.0 / m] * 3)
    largest: Any = 0.0
    for difference in (np.abs(a - b) * scale for a, b in zip(forces, assumed, strict=True)):
        for x in difference:
            largest = np.maximum(largest, x)
    return largest


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
