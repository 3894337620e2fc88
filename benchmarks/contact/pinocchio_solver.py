"""Motions of scenes with Pinocchio's contact solver, if it is installed.

Pinocchio has no simulator of contacts. Bodies, contact points and time steps are ours; the contact problem of a step,

    K  contains  p   _|_   G p + g + shift n  in  K*,      shift = mu |u_t|,

with the Delassus matrix G and the free velocities g less the targets of the contacts, is solved by Pinocchio's ADMM.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.contact.scenes import Motion, World, placed
from legged.contact import Rigid
from legged.contact.impulses.solver import Solution
from legged.contact.touching import TouchingSystem
from legged.rotations import quaternion_matrix
from legged.simulation.controller import adapt
from legged.simulation.many_contacts import SceneInParts
from legged.spatial import Array

ITERATIONS = 1000
"""Largest number of iterations of a step."""
TOLERANCE = 1e-9
"""Absolute tolerance of feasibility and complementarity, [m/s] and [N s], and their product."""


def has_solver() -> bool:
    """Return whether Pinocchio is installed in a version with contact solvers."""
    return find_spec("pinocchio") is not None and hasattr(import_module("pinocchio"), "ADMMConstraintSolver")


def admm(ground: Rigid, system: TouchingSystem, target: Array, guess: Array) -> Solution:
    """Return the solution of a contact problem by Pinocchio's ADMM; see `legged.contact.touching.newton_solution`.

    Args:
        ground: The contact law. system: The contacts and bodies.
        target: Normal velocities of closed contacts, (k,), [m/s], contact frames.
        guess: Initial impulses, (k, 3), [N s], contact frames.
    """
    library: Any = import_module("pinocchio")
    _, J = system.matrices()
    G, count = np.array([J.velocities(system.mobility @ row).ravel() for row in J.dense]), len(target)
    g = system.u_free - np.outer(target, [1.0, 0.0, 0.0])
    order = (3 * np.arange(count)[:, None] + [1, 2, 0]).ravel()  # Pinocchio's normals are the last axes
    model = library.Model()
    model.addJoint(0, library.JointModelFreeFlyer(), library.SE3.Identity(), "body")
    models, datas = library.StdVec_ConstraintModel(), library.StdVec_ConstraintData()
    for mu in system.mu.tolist():
        contact = library.PointContactConstraintModel(model, 1)
        contact.setFriction(mu)
        models.append(library.ConstraintModel(contact))
        datas.append(library.ConstraintModel(contact).createData())
    settings, result = library.ADMMSolverSettings(), library.ADMMSolverResult()
    settings.max_iterations = ITERATIONS
    settings.absolute_feasibility_tol = settings.absolute_complementarity_tol = TOLERANCE
    settings.relative_feasibility_tol = settings.relative_complementarity_tol = 0.0
    delassus = library.DelassusOperatorDense(G[np.ix_(order, order)])
    solver = library.ADMMConstraintSolver(3 * count)
    solver.solve(delassus, g.ravel()[order], models, datas, settings, result)
    p = np.zeros(3 * count)
    p[order] = result.retrieveConstraintImpulses()
    return system.solution(system, target, p.reshape(count, 3))


class _Scene(SceneInParts):
    """A scene whose contact problems Pinocchio solves."""

    solver = staticmethod(admm)


def pinocchio(world: World, until: float, step: float = 1e-3, sample: float = 0.01) -> Motion:
    """Return the motion with contact problems solved by Pinocchio.

    Args:
        world: The world. until: End time, [s]. step: Time step, [s]. sample: Interval of samples, [s].
    """
    robot, q, v, bodies, ground = placed(world)
    started, memory = adapt(None).start(robot, ground, q, v)
    loop = _Scene(robot, started, ground, len(memory), (), bodies)
    s, every = loop.initial(v, memory), max(round(sample / step), 1)
    times = np.arange(round(until / step) // every + 1) * every * step
    states = []
    for k in range(len(times)):
        for i in range(every if k else 0):
            q, s = loop.time_stepping(times[k - 1] + i * step, step, 0, q, s)
        states.append(loop.states(q, s))
    motion = Motion(times)
    for k, solid in enumerate(world.solids):
        x, w = (np.array([state[k][part] for state in states]) for part in range(2))
        R = np.array([quaternion_matrix(row[:4]) for row in x])
        motion.position[solid.name], motion.rotation[solid.name] = x[:, 4:7], R
        motion.velocity[solid.name] = np.einsum("tij,tj->ti", R, w[:, 3:6])
        motion.spin[solid.name] = np.einsum("tij,tj->ti", R, w[:, :3])
    return motion
