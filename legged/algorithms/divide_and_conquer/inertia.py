"""Inverse inertias by divide and conquer: of the joints, and of bodies that are handles of the whole robot."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from legged.algorithms.divide_and_conquer.assemblies import MultibodySystem, assembly_tree
from legged.algorithms.divide_and_conquer.forward import ALGORITHM, version_module
from legged.algorithms.massive_bodies import MassiveBody, generalized_accelerations, massive_bodies
from legged.compiler.ir.annotations import stage
from legged.dynamics.arguments import finite, read
from legged.robot.robot import Robot
from legged.spatial import Array, mirror


def inverse_inertia_matrix(robot: Robot, q: Array, *, version: str = "pivoted") -> Array:
    """Return M^-1, (nv, nv), in the unit of 1 / `legged.inertia_matrix`.

    The columns are the accelerations under a unit force at each joint. The assemblies are the same for all columns, and
    the depth is O(log n).

    Args:
        robot: The robot. q: Configuration, (nq,). version: As in `forward_dynamics`.

    Raises:
        DefinitionError, UnknownNameError: as `forward_dynamics`.
    """
    form = version_module(version)
    (q,) = read(robot, q=q)
    nv = robot.nv
    bodies = []
    for body in _resting_bodies(robot, q, form.ACCEPTS_SINGULAR_INERTIA):
        entries = [i for part in body.v for i in range(part.start, part.stop)]
        bodies.append(replace(body, p=np.zeros((6, nv)), c=np.zeros((6, nv)), tau=np.eye(nv)[entries]))
    whole = assembly_tree([body.parent for body in bodies], {})
    factors: dict[int, Any] = {}
    with stage("2 assemblies"):
        form.assemble(whole, MultibodySystem(bodies, np.zeros((6, nv)), ()), factors)
    qdd: dict[int, Array] = {}
    with stage("3 accelerations"):
        form.disassemble(whole, factors, qdd)
    M_inverse = generalized_accelerations(robot, bodies, [qdd[k] for k in range(len(bodies))])
    return finite(robot, "the inverse inertia matrix", mirror(M_inverse).reshape(nv, nv))


def inverse_inertia_of_handles(
    robot: Robot, q: Array, handles: Collection[int], version: str
) -> dict[tuple[int, int], Array]:
    """Return the acceleration of each body by the wrench on each, (6, 6), mixed units, body axes, by pair of bodies.

    Args:
        robot: The robot. q: Configuration, (nq,).
        handles: Indices of moving bodies with mass in `robot.bodies`.
        version: As in `forward_dynamics`.

    Raises:
        DefinitionError, UnknownNameError: as `forward_dynamics`.
    """
    form = version_module(version)
    bodies = _resting_bodies(robot, q, form.ACCEPTS_SINGULAR_INERTIA)
    position = {body.index: k for k, body in enumerate(bodies)}
    whole = assembly_tree([body.parent for body in bodies], {}, {position[k] for k in handles})
    with stage("2 assemblies"):
        Phi = form.assemble(whole, MultibodySystem(bodies, np.zeros(6), ()), {}).Phi
    return {(a, b): Phi[position[a], position[b]] for a in handles for b in handles}


def _resting_bodies(robot: Robot, q: Array, any_inertia: bool) -> list[MassiveBody]:
    """Return the bodies with mass without velocities and forces."""
    still = np.zeros(robot.nv)
    return massive_bodies(robot, q, still, still, None, ALGORITHM, any_inertia=any_inertia)[0]
