"""Time steps from one node of a problem to the next: semi-implicit Euler, and explicit Runge-Kutta methods.

Runge-Kutta methods integrate the chart coordinates xi of the configuration and the velocity,

    xi_i = h sum_j a_ij r_j,     v_i = v + h sum_j a_ij vdot_j,     r_i = chart_rate(xi_i, v_i)


at the configurations integrate(q, xi_i), with the same controls in all stages of a step, so that the order holds on the
manifold, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged.compiler import jacobian, where
from legged.robot.base import FloatingBase
from legged.robot.configuration import difference, integrate
from legged.robot.robot import Robot
from legged.simulation.loop.chart import chart_rate
from legged.spatial import Array, cross


class RungeKutta(NamedTuple):
    """The coefficients of an explicit Runge-Kutta method.

    Attributes:
        inner: a_ij of each stage i, for j < i. outer: b_i.
    """

    inner: tuple[tuple[float, ...], ...]
    outer: tuple[float, ...]


INTEGRATORS: dict[str, RungeKutta | None] = {
    "semi-implicit Euler": None,
    "midpoint": RungeKutta(((), (0.5,)), (0.0, 1.0)),
    "RK4": RungeKutta(((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}
"""The integrators of problems by name: of orders 1, 2 and 4."""


def move(robot: Robot, q: Array, dq: Array) -> Array:
    """Return the configuration after a displacement at constant twist, (nq,).

    The pose of a floating base is multiplied by the exponential map of SE(3) of dq[0:6], in base axes. To first order
    in dq this is `legged.integrate`.

    Args:
        robot: The robot. q: Configuration, (nq,). dq: Velocity times duration, (nv,), [rad] and [m], base axes.
    """
    if not isinstance(robot.base, FloatingBase):
        return integrate(robot, q, dq)
    phi, d = dq[:3], dq[3:6]
    square = phi @ phi
    small = square < 1e-8
    angle = np.sqrt(where(small, 1.0, square))
    first = where(small, 0.5 - square / 24.0, (1.0 - np.cos(angle)) / where(small, 1.0, square))
    second = where(small, 1.0 / 6.0 - square / 120.0, (angle - np.sin(angle)) / (angle * where(small, 1.0, square)))
    turned = cross(phi, d)
    shift = d + first * turned + second * cross(phi, turned)
    return integrate(robot, q, np.concatenate([phi, shift, dq[6:]]))


def time_step(robot: Robot, q: Array, v: Array, a: Array, h: Any) -> tuple[Array, Array]:
    """Return the state (q, v), (nq,) and (nv,), after a semi-implicit Euler step.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). a: Acceleration, (nv,). h: Duration, [s].
    """
    after = v + h * a
    return move(robot, q, h * after), after


def position_derivatives(robot: Robot, q: Array, after: Array, h: Any, reference: Array) -> tuple[Array, Array]:
    """Return the derivatives, (nv, nv) each, of the next configuration by a displacement of q and by the new velocity.

    Displacements of the next configuration are those from a reference, `legged.difference(robot, reference, next)`.

    Args:
        robot, q, h: As in `time_step`. after: New velocity, (nv,), [rad/s] and [m/s], in the axes of v.
        reference: Configuration, (nq,), [rad], [m] and unit quaternions, joint axes.
    """

    def moved(dq: Array, after: Array, q: Array, h: Array, reference: Array) -> Array:
        return difference(robot, reference, move(robot, integrate(robot, q, dq), h * after))

    arguments = np.zeros(robot.nv), after, q, h, reference
    return jacobian(moved, "dq", "forward")(*arguments), jacobian(moved, "after", "forward")(*arguments)


def stage_points(
    robot: Robot, method: RungeKutta, v: Array, h: Any, acceleration: Callable[[int, Array, Array], Array]
) -> tuple[list[Array], list[Array], list[Array]]:
    """Return the chart coordinates xi_i, the velocities v_i and the chart rates r_i of the stages and of the end.

    The end of the step is the last entry of the first two lists; entries are (nv,).

    Args:
        robot: The robot. method: The coefficients. v: Velocity at the beginning, (nv,). h: Duration, [s].
        acceleration: Acceleration of a stage, (nv,), [rad/s^2] and [m/s^2], by its number, xi_i and v_i, axes of v.
    """
    points, velocities, rates, accelerations = list[Array](), list[Array](), list[Array](), list[Array]()
    for i, row in enumerate((*method.inner, method.outer)):
        zero = 0.0 * v
        points.append(h * sum((a * rate for a, rate in zip(row, rates, strict=True) if a), zero))
        velocities.append(v + h * sum((a * x for a, x in zip(row, accelerations, strict=True) if a), zero))
        if i < len(method.inner):
            accelerations.append(acceleration(i, points[i], velocities[i]))
            rates.append(chart_rate(robot, points[i], velocities[i]))
    return points, velocities, rates


def chart_derivatives(robot: Robot, q: Array, xi: Array, reference: Array) -> tuple[Array, Array]:
    """Return the derivatives of integrate(q, xi) by a displacement of q and by xi, (nv, nv) each.

    Args:
        robot: The robot. q: Configuration, (nq,). xi: Chart coordinates, (nv,), [rad] and [m], axes of q.
        reference: Configuration from which displacements of the result are measured, (nq,), mixed units, joint axes.
    """

    def moved(dq: Array, dxi: Array, q: Array, xi: Array, reference: Array) -> Array:
        return difference(robot, reference, integrate(robot, integrate(robot, q, dq), xi + dxi))

    zero = np.zeros(robot.nv)
    arguments = zero, zero, q, xi, reference
    return jacobian(moved, "dq", "forward")(*arguments), jacobian(moved, "dxi", "forward")(*arguments)


def rate_derivatives(robot: Robot, xi: Array, v: Array) -> tuple[Array, Array]:
    """Return the derivatives of `chart_rate` by xi and by v, (nv, nv) each.

    Args:
        robot: The robot. xi: Chart coordinates, (nv,). v: Velocity, (nv,).
    """

    def rate(xi: Array, v: Array) -> Array:
        return chart_rate(robot, xi, v)

    return jacobian(rate, "xi", "forward")(xi, v), jacobian(rate, "v", "forward")(xi, v)


class StageDerivatives(NamedTuple):
    """The linear model of a Runge-Kutta stage of all nodes, with leading axes (...).

    Attributes:
        acceleration: Derivatives of vdot_i by the displacement of q_i, v_i and u, (..., nv, 2 nv + nu).
        by_start, by_chart: Of q_i by displacements of q and by xi_i, (..., nv, nv).
        rate_xi, rate_v: Of r_i by xi_i and v_i, (..., nv, nv).
        a, rate: vdot_i and r_i, (..., nv).
    """

    acceleration: Array
    by_start: Array
    by_chart: Array
    rate_xi: Array
    rate_v: Array
    a: Array
    rate: Array


def runge_kutta_derivatives(
    method: RungeKutta, stages: Sequence[StageDerivatives], end: tuple[Array, Array], h: Array
) -> tuple[Array, Array]:
    """Return the derivatives of the next state by (x, u) and by the duration, (..., 2 nv, n) and (..., 2 nv).

    Args:
        method: The coefficients. stages: The linear models of the stages.
        end: Of the next configuration by displacements of q and by xi, (..., nv, nv) each. h: Durations, (...), [s].
    """
    nv, n = stages[0].a.shape[-1], stages[0].acceleration.shape[-1]
    length = h[..., None, None]
    rates, accelerations = list[Array](), list[Array]()  # derivatives by (x, u, h)
    eye = np.zeros((*h.shape, 2 * nv, n + 1))
    eye[..., range(2 * nv), range(2 * nv)] = 1.0
    for i, row in enumerate((*method.inner, method.outer)):
        xi, v = 0.0 * eye[..., :nv, :], eye[..., nv:, :].copy()
        for a, rate, acceleration, stage in zip(row, rates, accelerations, stages, strict=False):
            if a:
                xi += a * length * rate
                v += a * length * acceleration
                xi[..., -1] += a * stage.rate
                v[..., -1] += a * stage.a
        if i == len(method.inner):
            break
        stage = stages[i]
        x = np.concatenate([stage.by_start @ eye[..., :nv, :] + stage.by_chart @ xi, v], axis=-2)
        acceleration = stage.acceleration[..., : 2 * nv] @ x
        acceleration[..., 2 * nv : n] += stage.acceleration[..., 2 * nv :]
        accelerations.append(acceleration)
        rates.append(stage.rate_xi @ xi + stage.rate_v @ v)
    result = np.concatenate([end[0] @ eye[..., :nv, :] + end[1] @ xi, v], axis=-2)
    return result[..., :n], result[..., n]
