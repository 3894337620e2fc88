"""Random problems of predictive control, and their dense form for general solvers of quadratic and conic programs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

import legged
from controllers.locomotion.forces.predictive import predictive_control
from controllers.locomotion.forces.rigid_body import Problem, Weights, suited_weights
from legged.spatial import skew

GRAVITY = 9.81  # [m/s^2]
OFFSETS = {
    "stance": (0.0, 0.0, 0.0, 0.0),
    "trot": (0.0, 0.5, 0.5, 0.0),
    "pace": (0.0, 0.5, 0.0, 0.5),
    "bound": (0.0, 0.0, 0.5, 0.5),
    "pronk": (0.0, 0.0, 0.0, 0.0),
}
"""Phases of front left, front right, hind left and hind right foot; contact points of index i belong to foot i % 4."""


def activity(gait: str, start: float, period: float, duty: float, n: int, N: int, h: float) -> np.ndarray:
    """Return the fraction of each step during which each contact point has contact, (N, n), dimensionless.

    Args:
        gait: One of `OFFSETS`.
        start: Phase at the begin of the horizon.
        period: Of the gait, [s].
        duty: Fraction of the period during which a foot has contact; 1 in `stance`.
        n: Number of contact points.
        N: Number of steps.
        h: Duration of a step, [s].
    """
    samples = (np.arange(N * 50) + 0.5) * h / 50
    offsets = np.array([OFFSETS[gait][i % 4] for i in range(n)])
    phases = (start + samples[:, None] / period + offsets) % 1.0
    contact = phases < (1.0 if gait == "stance" else duty)
    return contact.reshape(N, 50, n).mean(axis=1)


def random_problem(rng: np.random.Generator, gait: str, n: int, N: int, disturbance: float = 1.0) -> Problem:
    """Return a random robot on a random slope at a random velocity, with errors as after a push.

    Args:
        rng: Random numbers.
        gait: One of `OFFSETS`.
        n: Number of contact points, 2 to 8.
        N: Number of steps of 0.05 s.
        disturbance: Size of the initial errors; 1 means velocities of 0.15 sqrt(g l) in each direction.
    """
    length = np.exp(rng.uniform(np.log(0.2), np.log(1.0)))
    mass, speed, h = 100.0 * length**3 * rng.uniform(0.5, 2.0), np.sqrt(GRAVITY * length), 0.05
    turn = scipy.linalg.expm(skew(0.2 * rng.normal(size=3)))
    inertia = turn @ np.diag(mass * (length * np.array([0.25, 0.4, 0.45]) * rng.uniform(0.8, 1.2, 3)) ** 2) @ turn.T
    corners = length * np.array([[0.5, 0.3], [0.5, -0.3], [-0.5, 0.3], [-0.5, -0.3]]) * rng.uniform(0.6, 1.4, 2)
    slope = rng.uniform(-0.3, 0.3, 2)
    normal = np.array([*-slope, 1.0]) / np.sqrt(1.0 + slope @ slope)
    places = np.array([corners[i % 4] for i in range(n)]) + 0.08 * length * rng.normal(size=(N, n, 2))
    arms = np.concatenate([places, (places @ slope)[..., None] - length], axis=2)
    errors = disturbance * rng.normal(size=(4, 3)) * [[0.05 * length], [0.15 * speed], [0.1], [0.4 * speed / length]]
    velocity = np.array([*(0.3 * speed * rng.normal(size=2)), 0.0])
    period = rng.uniform(0.4, 0.7) * np.sqrt(length / 0.3)
    return Problem(
        position=errors[0],
        velocity=errors[1] + velocity,
        orientation=errors[2],
        angular_velocity=errors[3],
        positions=np.outer(h * np.arange(1, N + 1), velocity),
        velocities=np.tile(velocity, (N, 1)),
        orientations=np.zeros((N, 3)),
        angular_velocities=np.zeros((N, 3)),
        mass=mass,
        inertia=inertia,
        gravity=np.array([0.0, 0.0, -GRAVITY]),
        arms=arms,
        normals=np.tile(normal, (N, n, 1)),
        active=activity(gait, rng.uniform(), period, rng.uniform(0.35, 0.7), n, N, h),
        friction=rng.uniform(0.3, 0.9),
        most=rng.choice([1.0, 100.0]) * mass * GRAVITY,
        weights=suited_weights(mass, length, GRAVITY, n),
        time_step=h,
    )


def control_shapes(N: int, n: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arguments of `control`."""
    shapes = {"guess": (N, 6), "state": (4, 3), "goals": (4, N, 3), "inertia": (3, 3), "arms": (N, n, 3)}
    return {**shapes, "normals": (N, n, 3), "active": (N, n), "numbers": (4,), "weights": (13,)}


def control(
    guess: Any, state: Any, goals: Any, inertia: Any, arms: Any, normals: Any, active: Any, numbers: Any, weights: Any
) -> tuple[Any, ...]:
    """Return the plan of a problem of which every number is an argument; see `control_arguments`."""
    mass, friction, most, time_step = numbers
    own = Weights(weights[:3], weights[3:6], weights[6:9], weights[9:12], weights[12])
    body = mass, inertia, np.array([0.0, 0.0, -GRAVITY])
    problem = Problem(*state, *goals, *body, arms, normals, active, friction, most, own, time_step)
    return tuple(predictive_control(problem, guess))


def control_kernel(N: int, n: int) -> legged.Kernel:
    """Return `control` as a kernel."""
    return legged.compile(control, **control_shapes(N, n))


def control_arguments(problem: Problem, guess: np.ndarray) -> list[np.ndarray]:
    """Return the arguments of `control`.

    Args:
        problem: The problem. guess: Initial wrenches, (N, 6), [N m, N], world axes.
    """
    state = [problem.position, problem.velocity, problem.orientation, problem.angular_velocity]
    goals = [problem.positions, problem.velocities, problem.orientations, problem.angular_velocities]
    numbers = [problem.mass, problem.friction, problem.most, problem.time_step]
    own = problem.weights
    weights = [*own.position, *own.velocity, *own.orientation, *own.angular_velocity, own.force]
    lists = state, goals, problem.inertia, problem.arms, problem.normals, problem.active, numbers, weights
    return [guess, *map(np.array, lists)]


class DenseForm(NamedTuple):
    """The cost 1/2 x^T H x + g^T x of the forces x of contact points that are active, and the cones of each force.

    Attributes:
        H, g: (3 m, 3 m) and (3 m,), per [N^2] and [N].
        at: Step and contact point of each force, m pairs.
        normals: Normal of the ground of each force, unit vectors (m, 3), world axes.
        friction, most: As in `Problem`.
        unit: The weight of the body, [N].
    """

    H: np.ndarray
    g: np.ndarray
    at: list[tuple[int, int]]
    normals: np.ndarray
    friction: float
    most: float
    unit: float

    def forces(self, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Return x as forces of all contact points, (N, n, 3), [N], world axes."""
        forces = np.zeros(shape)
        for pair, f in zip(self.at, x.reshape(-1, 3), strict=True):
            forces[pair] = f
        return forces

    def cone_rows(self) -> scipy.sparse.csc_matrix:
        """Return A of -A x + b in the cones: most - n . f >= 0 and |tangents . f| <= mu n . f, for each force."""
        rows = []
        for n in self.normals:
            tangents = scipy.linalg.null_space(n[None]).T
            rows.append(np.vstack([-n, self.friction * n, tangents]))
        return scipy.sparse.csc_matrix(scipy.linalg.block_diag(*rows)) if rows else scipy.sparse.csc_matrix((0, 0))

    def pyramid_rows(self) -> tuple[scipy.sparse.csc_matrix, np.ndarray]:
        """Return (A, b) of A x <= b: a pyramid of four faces within each cone, and the largest normal force."""
        rows = []
        for n in self.normals:
            tangents = scipy.linalg.null_space(n[None]).T
            faces = [sign * t - self.friction / np.sqrt(2.0) * n for t in tangents for sign in (1.0, -1.0)]
            rows.append(np.vstack([*faces, n]))
        bounds = np.tile([0.0, 0.0, 0.0, 0.0, self.most], len(rows))
        return scipy.sparse.csc_matrix(scipy.linalg.block_diag(*rows)), bounds


def dense_form(problem: Problem) -> DenseForm:
    """Return the dense form; the motion is that of double integrators, written with powers of their matrices."""
    N, h, weights, m = len(problem.arms), problem.time_step, problem.weights, problem.mass
    at = [(k, i) for k, row in enumerate(problem.active) for i, a in enumerate(row) if a > 0.0]
    inverse = np.linalg.inv(problem.inertia)
    B = np.zeros((N, 6, 3 * len(at)))  # accelerations of each step, angular first
    for j, (k, i) in enumerate(at):
        a = problem.active[k, i]
        B[k, :, 3 * j : 3 * j + 3] = a * np.vstack([inverse @ skew(problem.arms[k, i]), np.eye(3) / m])
    p = np.concatenate([problem.orientation, problem.position])
    v = np.concatenate([problem.angular_velocity, problem.velocity])
    fall = np.concatenate([np.zeros(3), problem.gravity])
    by_p, by_v = np.zeros((6, 3 * len(at))), np.zeros((6, 3 * len(at)))
    W_p = np.concatenate([weights.orientation, weights.position])
    W_v = np.concatenate([weights.angular_velocity, weights.velocity])
    shares = np.repeat([problem.active[pair] for pair in at], 3) * weights.force
    nominal = np.array([problem.nominal_forces[pair] for pair in at]).reshape(-1)
    H, g = np.diag(shares), -shares * nominal
    for k in range(N):
        p, by_p = p + h * v + 0.5 * h * h * fall, by_p + h * by_v + 0.5 * h * h * B[k]
        v, by_v = v + h * fall, by_v + h * B[k]
        e_p = p - np.concatenate([problem.orientations[k], problem.positions[k]])
        e_v = v - np.concatenate([problem.angular_velocities[k], problem.velocities[k]])
        H = H + by_p.T @ (W_p[:, None] * by_p) + by_v.T @ (W_v[:, None] * by_v)
        g = g + by_p.T @ (W_p * e_p) + by_v.T @ (W_v * e_v)
    normals = np.array([problem.normals[pair] for pair in at]).reshape(-1, 3)
    return DenseForm(H, g, at, normals, problem.friction, problem.most, problem.mass * GRAVITY)


def clarabel_forces(problem: Problem) -> np.ndarray:
    """Return the optimal forces, (N, n, 3), [N], world axes, by the interior-point method of Clarabel with cones."""
    form, shape = dense_form(problem), np.shape(problem.arms)
    return form.forces(clarabel_solver(form, 1e-11)(), shape) if form.at else np.zeros(shape)


def clarabel_solver(form: DenseForm, tolerance: float = 1e-8) -> Callable[[], np.ndarray]:
    """Return a function that solves a problem by Clarabel and returns the forces x, [N]."""
    clarabel: Any = importlib.import_module("clarabel")
    count = len(form.at)
    b = np.zeros(4 * count)
    b[::4] = form.most / form.unit
    cones = [cone for _ in range(count) for cone in (clarabel.NonnegativeConeT(1), clarabel.SecondOrderConeT(3))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    H = scipy.sparse.csc_matrix(np.triu(form.H * form.unit**2))  # forces relative to the weight
    data = H, form.g * form.unit, scipy.sparse.csc_matrix(-form.cone_rows()), b, cones, settings
    return lambda: np.array(clarabel.DefaultSolver(*data).solve().x) * form.unit
