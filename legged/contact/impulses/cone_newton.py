"""Contact impulses by a sequence of convex problems, whose solutions Newton's method finds from any start.

Coulomb's law is a complementarity of cones: with the friction cone K of a contact, its dual K* and the velocity
u_bar = u + shift n - target n, shift = mu |u_t|,

    K  contains  p   _|_   u_bar  in  K*.

For a constant shift, M (v - v_free) = J^T p(v) with the projection p(v) = project_K(p_bar - u_bar / r) is the gradient
of a strictly convex function of v. Newton's method with a line search along it converges from any start, unlike that of
`newton`, which converges faster from a start near the solution. Then p_bar becomes p(v) and the shift mu |u_t|, and so
on; at p(v) = p_bar and shift = mu |u_t| the law holds exactly.

Source: De Saxce, Feng, "The bipotential method", Mathematical and Computer Modelling 28(4-8), 1998; the sequence of
convex problems: Acary, Cadoux, Lemarechal, Malick, "A formulation of the linear discrete Coulomb friction problem via
convex optimization", ZAMM 91(2), 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.compiler.ir import where
from legged.contact.impulses.solver import Solution, maximum_of
from legged.spatial import Array

STEP = 0.1
"""Step r of the projections, relative to the mobility of a contact."""
PROBLEM_ITERATIONS = 20
"""Largest number of Newton iterations for one convex problem."""
STEPS_ALONG = (0.0, *(0.5**k for k in range(10, 2, -1)), *(k / 8 for k in range(2, 9)))
"""Steps of the line search at which slopes are computed."""
FLAT = 0.1
"""Slope at the end of a whole step, relative to that at its start, up to which the step is taken."""
_ACCURACY = 0.1  # of the solution of a convex problem, relative to the change by it
_TINY = 1e-300  # avoids 0 / 0 without tangential impulse


def convex_newton(
    problem: Any, target: Sequence[Any], system: Any, start: Solution, iterations: int, goal: float
) -> Solution:
    """Return the solution with the smallest residual of the convex problems, or the start; numbers only.

    Args:
        problem: The contacts, with their coefficients of friction `mu`. target: As in `newton.proximal_newton`.
        system: The bodies, with the methods of `touching.TouchingSystem`.
        start: A first solution. iterations: Largest number of Newton iterations for all problems.
        goal: Residual at which to end, [m/s].
    """
    M, J = system.matrices()
    v_free, r = np.concatenate(system.v_free), STEP * system.mobilities(problem)
    v, p_bar, best, left = system.after(start.p), start.p, start, iterations
    u = J.velocities(v)
    shift = problem.mu * np.linalg.norm(u[:, 1:], axis=1)
    while left > 0 and best.residual > goal:
        aims = np.asarray(target) - shift
        p, slopes = system.cone_projected(p_bar, u, aims, r)
        for _ in range(min(left, PROBLEM_ITERATIONS)):
            left -= 1
            momentum = M @ (v - v_free)
            dv = system.direction(M, J, slopes, J.momentum(p) - momentum)
            du, rates = J.velocities(dv), (dv @ momentum, dv @ (M @ dv))
            step = system.cone_line_search(p_bar, aims, r, (u, du), rates)
            v, u = v + step * dv, u + step * du
            p, slopes = system.cone_projected(p_bar, u, aims, r)
            next_shift = problem.mu * np.linalg.norm(u[:, 1:], axis=1)
            changes = maximum_of(np.abs(p - p_bar) * r[:, None]), maximum_of(np.abs(next_shift - shift))
            if maximum_of(np.abs(J.velocities(system.after(p)) - u)) < max(_ACCURACY * max(changes), _ACCURACY * goal):
                break
        found = system.solution(problem, target, p)
        best = found if found.residual < best.residual else best
        p_bar, shift = p, problem.mu * np.linalg.norm(u[:, 1:], axis=1)
    return best


def least_step(slopes: Array) -> float:
    """Return the step, at most 1, at which a convex function along a line is least.

    Args:
        slopes: Its slope at each of `STEPS_ALONG`, (16,), [J].
    """
    if slopes[-1] <= FLAT * abs(slopes[0]):
        return 1.0
    after = int(np.argmax(slopes > 0.0))
    if after == 0:  # at the minimum but for rounding
        return STEPS_ALONG[1]
    before = after - 1
    fraction = slopes[before] / (slopes[before] - slopes[after])
    return float(STEPS_ALONG[before] + fraction * (STEPS_ALONG[after] - STEPS_ALONG[before]))


def cone_projection(p_bar: Array, u: Array, target: Any, r: Any, mu: Any) -> tuple[Array, Array]:
    """Return the impulse of a contact projected onto the friction cone, (3,), [N s], and -dp / du, (3, 3).

    Args:
        p_bar: Impulse from which the projection starts, (3,), [N s], contact frame.
        u: Velocity, (3,), [m/s], contact frame. target: Normal velocity of a closed contact without its shift, [m/s].
        r: Step of the projection, [1/kg]; zero for no impulse. mu: Coefficient of friction.
    """
    inverse = where(r > 0.0, 1.0 / where(r > 0.0, r, 1.0), 0.0)
    y, y_1, y_2 = p_bar[0] - inverse * (u[0] - target), p_bar[1] - inverse * u[1], p_bar[2] - inverse * u[2]
    size = np.sqrt(y_1 * y_1 + y_2 * y_2 + _TINY)
    t_1, t_2 = y_1 / size, y_2 / size
    inside, outside = size <= mu * y, y + mu * size <= 0.0
    scale = 1.0 / (1.0 + mu * mu)
    normal = scale * (y + mu * size)  # of the projection onto the surface of the cone
    p_n = where(r > 0.0, where(inside, y, where(outside, 0.0, normal)), 0.0)
    p_t = where(inside, size, where(outside, 0.0, mu * normal)) * where(r > 0.0, 1.0, 0.0)
    p = np.array([p_n, p_t * t_1, p_t * t_2])
    full, along = where(inside, inverse, 0.0), where(inside | outside, 0.0, inverse * scale)
    across = where(inside | outside, 0.0, inverse * mu * normal / size)
    m_1, m_2, radial = mu * t_1, mu * t_2, mu * mu * along - across
    slopes = [
        [full + along, along * m_1, along * m_2],
        [along * m_1, full + across + radial * t_1 * t_1, radial * t_1 * t_2],
        [along * m_2, radial * t_1 * t_2, full + across + radial * t_2 * t_2],
    ]
    return p, np.array(slopes)
