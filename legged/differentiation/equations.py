"""A time step as an explicit function of the impulses of its contact problem, and the equations that these satisfy.

`RigidLoop.time_stepping` calls an `ImpulseSolver` for the impulses. `RecordedSolver` solves for them and stores them.
`GivenSolver` returns given impulses and stores the residuals of their equations, the natural map of the contact law,
whose derivative is that of the active mode of each contact and joint row (a joint with stops or dry friction, see
`legged.contact.impulses.joint_rows`). The code of the step is the same for both.

In the shapes m is the number of contact candidates, r that of joint rows, and a state is [q; s] as in `ClosedLoop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.compiler import where
from legged.contact.impulses.impulse_solver import ImpulseSolver
from legged.contact.impulses.joint_rows import JointedSolution, JointedSystem
from legged.contact.impulses.newton import GeneralizedSystem
from legged.contact.impulses.solver import MIN_MOBILITY, ContactProblem, Solution, natural_map, spread, velocities
from legged.contact.rigid import Rigid
from legged.robot.configuration import difference, integrate
from legged.simulation.loop.contact_memory import ContactMemory
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.spatial import Array

FREE, STICKING, SLIDING = 0.0, 1.0, 2.0
"""Modes of a contact: without impulse, and closed without and with a tangential velocity."""


class RecordedSolver(ImpulseSolver):
    """The solver of a time step, with a record of its solutions.

    Attributes:
        unknowns: Impulses of each solution, (k,) each, [N s] and [N m s], and fractions of restitution, (1,) each,
            dimensionless, in the order of the calls.
        modes: Modes of the contacts and joint rows of the last solution, (m + r,), dimensionless; see `FREE`. A joint
            row is `STICKING` where a stop or dry friction determines its velocity, otherwise `SLIDING`.
        targets: Target velocities of the contacts in each solution, (m,) each, [m/s], along the normal.
    """

    def __init__(self) -> None:
        self.unknowns: list[Array] = []
        self.modes = np.zeros(0)
        self.targets: list[Array] = []

    def contacts(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem | None,
        target: list[Any],
        guess: Array,
        needed: Any = True,
    ) -> Solution:
        """Return and store the impulses of contacts, (m, 3), [N s]; arguments as in `ImpulseSolver.contacts`."""
        solution = super().contacts(ground, problem, system, target, guess, needed)
        self.unknowns.append(solution.p.reshape(-1))
        self.modes = _modes(problem, target, solution.p, solution.u)
        self.targets.append(np.stack(target))
        return solution

    def with_joints(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem,
        jointed: JointedSystem,
        target: list[Any],
        start: JointedSolution | None = None,
        needed: Any = np.True_,
    ) -> JointedSolution:
        """Return and store the impulses of contacts and joints; arguments as in `ImpulseSolver.with_joints`."""
        solution = super().with_joints(ground, problem, system, jointed, target, start, needed)
        (p, p_joints), (u, u_joints) = jointed.split(solution.p), jointed.split(solution.u)
        moves = jointed.rows.projected(p_joints, u_joints, jointed.rows.mobility)[1]
        self.unknowns.append(solution.p)
        self.modes = np.concatenate([_modes(problem, target, p, u), where(moves, SLIDING, STICKING)])
        self.targets.append(np.stack(target))
        return solution

    def restitution_fraction(self, p: Array, twice_mean: Array, dp: Array, du: Array, rate: Any) -> Any:
        """Return and store the fraction of restitution; arguments as in `ImpulseSolver.restitution_fraction`."""
        fraction = super().restitution_fraction(p, twice_mean, dp, du, rate)
        self.unknowns.append(np.stack([fraction]))
        return fraction


class GivenSolver(ImpulseSolver):
    """Given solutions of a time step, with the residuals of the equations that they have to satisfy.

    Args:
        unknowns: Impulses and fractions in the order of `RecordedSolver.unknowns`, (k,), mixed units.

    Attributes:
        equations: Residuals of the equations, one for each unknown after the step, [m/s], [rad/s] or [J].
        scales: Mobility of each impulse, [1/kg] or [1/(kg m^2)], zero for a fraction: the size of the derivative of an
            equation with respect to its own unknown.
    """

    def __init__(self, unknowns: Array):
        self._unknowns, self._at = unknowns, 0
        self.equations: list[Any] = []
        self.scales: list[Any] = []

    def _take(self, count: int) -> Array:
        self._at += count
        return self._unknowns[self._at - count : self._at]

    def contacts(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem | None,
        target: list[Any],
        guess: Array,
        needed: Any = True,
    ) -> Solution:
        """Return the given impulses of contacts, (m, 3), [N s]; arguments as in `ImpulseSolver.contacts`."""
        p = self._take(guess.size).reshape(guess.shape)
        u = velocities(problem, p)
        self._add_contacts(problem, target, p, u)
        return Solution(spread(problem, p), u, 0.0)  # the same impulses, with the derivatives of their distribution

    def with_joints(
        self,
        ground: Rigid,
        problem: ContactProblem,
        system: GeneralizedSystem,
        jointed: JointedSystem,
        target: list[Any],
        start: JointedSolution | None = None,
        needed: Any = np.True_,
    ) -> JointedSolution:
        """Return the given impulses of contacts and joints; arguments as in `ImpulseSolver.with_joints`."""
        p = self._take(jointed.present.size)
        solution, rows = jointed.at(problem, target, p, jointed.after(p)), jointed.rows
        (p_contacts, p_joints), (u_contacts, u_joints) = jointed.split(solution.p), jointed.split(solution.u)
        self._add_contacts(problem, target, p_contacts, u_contacts)
        projected = rows.projected(p_joints, u_joints, rows.mobility)[0]
        self.equations.extend(rows.mobility * (p_joints - projected))
        self.scales.extend(rows.mobility)
        return solution

    def restitution_fraction(self, p: Array, twice_mean: Array, dp: Array, du: Array, rate: Any) -> Any:
        """Return the given fraction; arguments as in `ImpulseSolver.restitution_fraction`, (k,), mixed units.

        The equation is fraction = 1 if the whole restitution is possible, otherwise that its impulses do no work.
        """
        fraction = self._take(1)[0]
        work, quadratic = -0.5 * (p * twice_mean).sum(), 0.5 * (dp * du).sum()
        is_full = quadratic + rate <= np.maximum(work, 0.0)
        self.equations.append(where(is_full, fraction - 1.0, (quadratic * fraction + rate) * fraction - work))
        self.scales.append(0.0)
        return fraction

    def _add_contacts(self, problem: ContactProblem, target: Sequence[Any], p: Array, u: Array) -> None:
        for i, velocity in enumerate(u):
            A = problem.A[i][i]
            assert A is not None
            self.equations.extend(natural_map(velocity, A, target[i], p[i], problem.mu[i]))
            mobilities = A[0, 0], *[0.5 * (A[1, 1] + A[2, 2])] * 2
            self.scales.extend(where(a > MIN_MOBILITY, a, 1.0) for a in mobilities)


def _modes(problem: ContactProblem, target: Sequence[Any], p: Array, u: Array) -> Array:
    """Return the mode of each contact, (m,): the branch of the natural map."""
    contact_modes = []
    for i, velocity in enumerate(u):
        A, impulse = problem.A[i][i], p[i]
        assert A is not None
        a = 0.5 * (A[1, 1] + A[2, 2])
        x, y, radius = *(a * impulse[1:] - velocity[1:]), a * problem.mu[i] * impulse[0]
        pressed = velocity[0] - target[i] < A[0, 0] * impulse[0]
        contact_modes.append(where(pressed, where(x * x + y * y <= radius * radius, STICKING, SLIDING), FREE))
    return np.stack(contact_modes)


# Deviations: the coordinates in which states are differentiated.


def tangent_size(loop: RigidLoop) -> int:
    """Return nx, the number of entries of a deviation; see `moved`.

    Args:
        loop: The closed loop.
    """
    robots = loop.scene.robots
    return loop.memory + 3 * len(loop.scene.candidates) + sum(2 * robot.nv for robot in robots)


def moved(loop: RigidLoop, state: Array, deviation: Array) -> Array:
    """Return the state [q; s] at a deviation from another one, (n,), mixed units.

    Args:
        loop: The closed loop. state: The state from which it deviates, (n,), mixed units.
        deviation: [dq; dv; change of the memory; change of the contact forces] of the robot and [dq; dv] of each free
            body, (nx,), mixed units; dq as in `legged.integrate`, contact forces of the last step in contact frames,
            [N].
    """
    robot, m = loop.robot, 3 * len(loop.scene.candidates)
    nq, nv, at = robot.nq, robot.nv, 2 * robot.nv
    s, held = state[nq:], loop.memory + m
    begin = [integrate(robot, state[:nq], deviation[:nv]), s[:nv] + deviation[nv:at]]
    changed = s[nv : nv + held] + deviation[at : at + held]  # the memory of the ground begins with the forces
    parts, own, at = [*begin, changed], nv + held, at + held
    bodies = loop.scene.robots[1:]
    end = len(s) - sum(body.nq + body.nv for body in bodies)
    parts.append(s[own:end])
    for body in bodies:
        q, v, end = s[end : end + body.nq], s[end + body.nq : end + body.nq + body.nv], end + body.nq + body.nv
        parts += [integrate(body, q, deviation[at : at + body.nv]), v + deviation[at + body.nv : at + 2 * body.nv]]
        at += 2 * body.nv
    return np.concatenate(parts)


def deviation(loop: RigidLoop, reference: Array, state: Array) -> Array:
    """Return the deviation of a state from a reference, (nx,), mixed units: the inverse of `moved`.

    Args:
        loop: The closed loop. reference, state: States, (n,), mixed units.
    """
    robot = loop.robot
    nq, held = robot.nq, loop.memory + 3 * len(loop.scene.candidates) + robot.nv
    parts = [difference(robot, reference[:nq], state[:nq]), state[nq : nq + held] - reference[nq : nq + held]]
    bodies = loop.scene.robots[1:]
    at = len(state) - sum(body.nq + body.nv for body in bodies)
    for body in bodies:
        q = slice(at, at + body.nq)
        v = slice(q.stop, q.stop + body.nv)
        parts += [difference(body, reference[q], state[q]), state[v] - reference[v]]
        at = v.stop
    return np.concatenate(parts)


def contact_forces(loop: RigidLoop, state: Array) -> Array:
    """Return the contact forces of the last step, (..., m, 3), [N], contact frames.

    Args:
        loop: The closed loop. state: States, (..., n), mixed units.
    """
    return ContactMemory.of(loop.split(state[..., loop.robot.nq :]).ground_memory).forces
