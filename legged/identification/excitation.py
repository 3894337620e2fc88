"""Exciting trajectories: Fourier series of the joints with the largest determinant of the information matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from legged.algorithms.newton_euler import inverse_dynamics_regressor
from legged.arguments import number, rounded_array, whole
from legged.checked import checked
from legged.compiler import BatchKernel, jacobian
from legged.errors import ArgumentError, ShapeError, SingularError
from legged.identification.linear import base_parameters
from legged.identification.log import Log
from legged.identification.parameter import PerJoint
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.spatial import Array

_POINTS = 8  # instants for each harmonic, at which limits are imposed and the information is averaged
_MOST_INSTANTS = 1e7  # of the motion that is returned
_MARGIN = 0.02  # relative, of the limits, since the motion may exceed them between these instants
_FROM_STOPS = 0.1  # distance from stops, relative to half of the range, since joints overshoot their commands


@checked
@dataclass(frozen=True, eq=False)
class Excitation:
    """A periodic motion of the joints that begins and ends at rest.

    Attributes:
        robot: The robot. times: (T,), [s], one period.
        q: Joint positions, (T, n_joints), [rad] or [m]. v, vdot: Their rates and accelerations, (T, n_joints).
        log_determinant: log det of the mean of Y^T Y, the information matrix, with the regressor Y of base parameters,
            damping and dry friction.
        first_log_determinant: That of the random motion from which the optimization began.
        names: Names of these parameters.
    """

    robot: Robot
    times: Array
    q: Array
    v: Array
    vdot: Array
    log_determinant: float
    first_log_determinant: float
    names: tuple[str, ...]

    @property
    def log(self) -> Log:
        """The motion as a log for `Model.plan`: desired positions, which the positions and rates follow exactly."""
        return Log(self.times, tuple(joint.name for joint in self.robot.joints), self.q, rates=self.v, desired=self.q)


@checked
def excitation(
    robot: Robot,
    *,
    duration: float = 10.0,
    harmonics: int = 5,
    period: float = 0.005,
    lower: PerJoint | None = None,
    upper: PerJoint | None = None,
    speed: PerJoint | None = None,
    acceleration: PerJoint | None = None,
    iterations: int = 30,
    seed: int = 0,
) -> Excitation:
    """Return a motion of the joints that determines inertial parameters and friction well, with the base at rest.

        q_i(t) = c_i + sum over k of a_ik sin(k w t) + b_ik cos(k w t),      w = 2 pi / duration

    It maximizes log det of the mean of Y^T Y by sequential quadratic programming with exact derivatives, within the
    limits and with zero velocity and acceleration at start and end. The units of the parameters do not change the
    maximizer. The result is a local optimum.

    Args:
        robot: The robot, with joints of one degree of freedom.
        duration: Duration of a period, [s]. harmonics: Number of harmonics. period: Time between samples, [s].
        lower, upper: Limits of the joints, (n_joints,), [rad] or [m]; by default a twentieth of the range within the
            robot's stops, since a joint that overshoots its command must not reach a stop.
        speed: Largest joint rates, [rad/s] or [m/s]; by default those of the robot's motors.
        acceleration: Largest joint accelerations, [rad/s^2] or [m/s^2]; by default not limited.
        iterations: Largest number of steps. seed: Seed of the motion from which the optimization begins.

    Raises:
        ArgumentError: A joint has no finite limits of position and speed; give them. Limits are not positive or empty.
        SingularError: The motion determines no parameters.

    Source: Swevers, Ganseman, Tukel, De Schutter, Van Brussel 1997, "Optimal robot excitation and identification",
    with the limits as linear constraints at instants of the period.
    """
    n, count = len(robot.joints), whole("harmonics", harmonics, least=2)
    number("duration", duration, "s", above=0.0)
    number("period", period, "s", above=0.0)
    whole("seed", seed, least=0)
    if duration / period > _MOST_INSTANTS:
        raise ArgumentError(f"duration / period must be at most {_MOST_INSTANTS:g} instants, got {duration / period:g}")
    if any(joint.nv != 1 for joint in robot.joints):
        raise ArgumentError("an excitation needs joints of one degree of freedom")
    low, high = _limits(robot, "lower", lower), _limits(robot, "upper", upper)
    inset = _FROM_STOPS * (high - low) / 2
    low, high = low + (inset if lower is None else 0.0), high - (inset if upper is None else 0.0)
    fast = _limits(robot, "speed", speed)
    steep = np.full(n, np.inf) if acceleration is None else _per_joint(robot, "acceleration", acceleration)
    if (high <= low).any():
        raise ArgumentError("each upper limit must exceed the lower one")
    for name, most in (("speed", fast), ("acceleration", steep)):
        if (most <= 0.0).any():
            raise ArgumentError(f"limits of {name} must be positive, got {most.min():g}")
    series = _FourierSeries((low, high), fast, steep, duration, count)
    information = _Information(robot)
    times = period * np.arange(round(duration / period) + 1)
    best, value, first = _optimum(series, information, series.random(seed), iterations, _basis(times, duration, count))
    q, v, vdot = series.motion(best, _basis(times, duration, count))
    return Excitation(robot, times, q, v, vdot, value, first, information.names)


class _FourierSeries:
    """Motions of n joints as Fourier series with coefficients x, (n (1 + 2 harmonics),), in units of half of the range.

    Args:
        range: Lower and upper limits, (n,) each, [rad] or [m].
        speed, acceleration: Largest rates and accelerations, (n,), [rad/s] and [rad/s^2], or [m/s] and [m/s^2].
        duration: The period, [s]. harmonics: Number of harmonics.

    Attributes:
        basis: The functions of time with their rates and accelerations, at the instants at which limits are imposed.
        at_rest: Matrix R with R x = 0 where velocities and accelerations at the start are zero.
        slopes: Derivative of `margins` with respect to x, which is constant.
    """

    def __init__(self, range: tuple[Array, Array], speed: Array, acceleration: Array, duration: float, harmonics: int):
        low, high = range
        self.n, self.size = len(low), 1 + 2 * harmonics
        self.middle, self.half = (low + high) / 2, (high - low) / 2 * (1.0 - _MARGIN)
        self.limits = (high - low) / 2, speed, acceleration
        self._bounds = np.ones(self.n), *(most / self.half * (1.0 - _MARGIN) for most in (speed, acceleration))
        self.basis = _basis(duration * np.arange(_POINTS * harmonics) / (_POINTS * harmonics), duration, harmonics)
        self.at_rest = np.kron(np.eye(self.n), np.vstack([b[0] for b in self.basis[1:]]))
        self.at_zero = self.margins(np.zeros(self.n * self.size))
        self.slopes = np.stack([self.margins(e) - self.at_zero for e in np.eye(self.n * self.size)], axis=1)

    def motion(self, x: Array, basis: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return q, v and vdot of the joints, (T, n) each."""
        coefficients = (x.reshape(self.n, self.size) * self.half[:, None]).T
        return tuple(b @ coefficients + shift for b, shift in zip(basis, (self.middle, 0, 0), strict=True))

    def margins(self, x: Array) -> Array:
        """Return the distances to all limits, relative to these, at all instants."""
        coefficients = x.reshape(self.n, self.size)
        parts = [
            side * (coefficients[np.isfinite(most)] @ b.T) / most[np.isfinite(most), None]
            for b, most in zip(self.basis, self._bounds, strict=True)
            for side in (-1.0, 1.0)
        ]
        return 1.0 - np.concatenate([part.ravel() for part in parts])

    def random(self, seed: int) -> Array:
        """Return random coefficients of a motion that begins at rest and uses 0.9 of the limits."""
        projector = np.eye(self.n * self.size) - np.linalg.pinv(self.at_rest) @ self.at_rest
        amplitudes = np.random.default_rng(seed).normal(size=(self.n, self.size)) / np.arange(1, self.size + 1)
        x = projector @ amplitudes.ravel()
        return x * (0.9 / max(float((1.0 - self.margins(x)).max()), 1e-12))

    def scaled(self, x: Array, basis: tuple[Array, ...]) -> Array:
        """Return coefficients whose motion is within the limits at all samples of a basis."""
        q, v, vdot = self.motion(x, basis)
        parts = zip((q - self.middle, v, vdot), self.limits, strict=True)
        largest = max(float((np.abs(part) / most).max()) for part, most in parts)
        return x / max(largest * (1.0 + 1e-9), 1.0)


def _optimum(
    series: _FourierSeries, information: _Information, x: Array, iterations: int, samples: tuple[Array, ...]
) -> tuple[Array, float, float]:
    """Return the coefficients with the largest information that were found, their log det, and that of the first ones.

    Args:
        series: The motions. information: log det of their information. x: The first coefficients.
        iterations: Largest number of steps. samples: Basis at the samples at which the result is within the limits.
    """
    count = len(information.names)

    def objective(x: Array) -> tuple[float, Array]:
        value, *slopes = information(*series.motion(x, series.basis))
        gradient = sum((b.T @ by).T * series.half[:, None] for b, by in zip(series.basis, slopes, strict=True))
        return -value / count, -np.asarray(gradient).ravel() / count

    first = -objective(x)[0] * count
    optimum = minimize(
        objective,
        x,
        jac=True,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda x: series.at_zero + series.slopes @ x, "jac": lambda x: series.slopes},
            {"type": "eq", "fun": lambda x: series.at_rest @ x, "jac": lambda x: series.at_rest},
        ],
        options={"maxiter": iterations, "ftol": 1e-5},
    )
    scaled = series.scaled(optimum.x, samples)
    value = -objective(scaled)[0] * count
    return (scaled, value, first) if value > first else (x, first, first)


def _basis(times: Array, duration: float, harmonics: int) -> tuple[Array, Array, Array]:
    """Return the functions of time, their rates and accelerations, (T, 1 + 2 harmonics) each: 1, sines, cosines."""
    w = 2 * np.pi / duration * np.arange(1, harmonics + 1)
    s, c = np.sin(np.outer(times, w)), np.cos(np.outer(times, w))
    one = np.ones((len(times), 1))
    return np.hstack([one, s, c]), np.hstack([0 * one, w * c, -w * s]), np.hstack([0 * one, -(w**2) * s, -(w**2) * c])


def _per_joint(robot: Robot, name: str, given: PerJoint) -> Array:
    """Return one number for each joint, (n_joints,), or ShapeError."""
    values, n = rounded_array(name, given), len(robot.joints)
    if values.shape not in ((), (1,), (n,)):
        raise ShapeError(f"{name} must be a number or ({n},), one entry per joint, got shape {values.shape}")
    return np.broadcast_to(values, n).astype(float)


def _limits(robot: Robot, name: str, given: PerJoint | None) -> Array:
    """Return limits of the joints, (n_joints,)."""
    if given is not None:
        return _per_joint(robot, name, given)
    values = np.array([float(np.ravel(getattr(joint.definition.physics, name))[0]) for joint in robot.joints])
    if not np.isfinite(values).all():
        joint = robot.joints[int(np.argmin(np.isfinite(values)))].name
        raise ArgumentError(f"joint {joint!r} has no finite limit {name!r}; give {name}=...")
    return values


class _Information:
    """log det of the information of a motion on base parameters, damping and friction, and its gradient."""

    def __init__(self, robot: Robot):
        self.robot, self.base = robot, base_parameters(robot)
        joints = [joint.name for joint in robot.joints]
        self.names = (*self.base.names, *(f"{j}.damping" for j in joints), *(f"{j}.friction" for j in joints))
        columns = self.base.independent
        moving = [joint.v.start for joint in robot.joints]
        first_q, first_v = robot.base.nq, robot.base.nv
        neutral = robot.neutral()

        def regressor(q: Array, v: Array, vdot: Array) -> Array:
            full = [np.concatenate([np.zeros(first_v), x]) for x in (v, vdot)]
            Y = inverse_dynamics_regressor(robot, np.concatenate([neutral[:first_q], q]), *full)[:, columns]
            return np.concatenate([Y[moving], np.diag(v), np.diag(np.tanh(v / TRANSITION_SPEED))], axis=1)

        def weighted(q: Array, v: Array, vdot: Array, G: Array) -> Array:
            return np.stack([(G * regressor(q, v, vdot)).sum()])

        def gradients(q: Array, v: Array, vdot: Array, G: Array) -> tuple[Array, ...]:
            return tuple(jacobian(weighted, name, "reverse")(q, v, vdot, G)[0] for name in ("q", "v", "vdot"))

        n = len(joints)
        shapes = {"q": (n,), "v": (n,), "vdot": (n,)}
        self._regressor = BatchKernel(regressor, shapes)
        self._gradients = BatchKernel(gradients, {**shapes, "G": (n, len(self.names))})

    def __call__(self, q: Array, v: Array, vdot: Array) -> tuple[float, Array, Array, Array]:
        """Return log det of the mean of Y^T Y and its derivatives by q, v and vdot, (T, n) each."""
        Y = self._regressor(q, v, vdot)
        M = np.einsum("tij,tik->jk", Y, Y) / len(Y)
        scale = 1.0 / np.sqrt(np.maximum(np.diag(M), 1e-300))
        values, vectors = np.linalg.eigh(M * np.outer(scale, scale))
        if values[0] <= 1e-14:
            raise SingularError("the motion leaves some base parameters without influence; use more harmonics")
        inverse = (vectors / values) @ vectors.T * np.outer(scale, scale)
        return (
            float(np.log(values).sum() - 2.0 * np.log(scale).sum()),
            *self._gradients(q, v, vdot, 2.0 * Y @ inverse / len(Y)),
        )
