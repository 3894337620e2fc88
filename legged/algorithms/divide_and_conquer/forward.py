"""Forward dynamics and inverse inertias by divide and conquer, in either version.

Inverse inertias are those of the joints, and of bodies that are handles of the whole robot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from legged.algorithms.divide_and_conquer import inverse, pivoted
from legged.algorithms.divide_and_conquer.assemblies import GROUND, BodyConstraints, MultibodySystem, assembly_tree
from legged.algorithms.links import links_at
from legged.algorithms.massive_bodies import (
    MassiveBody,
    generalized_accelerations,
    massive_bodies,
    parallel_prefix_motion,
)
from legged.compiler.ir import stage
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.kinematics import Motion
from legged.elements import any_element
from legged.errors import UnknownNameError
from legged.robot.robot import Robot
from legged.spatial import Array, mirror

ALGORITHM = "the divide-and-conquer algorithm"
VERSIONS: dict[str, ModuleType] = {"inverse": inverse, "pivoted": pivoted}


@any_element
def divide_and_conquer(
    robot: Robot,
    q: Array,
    v: Array,
    tau: Array,
    wrenches: Wrenches = None,
    *,
    version: str = "pivoted",
    constraints: Callable[[Motion], Sequence[BodyConstraints]] | None = None,
) -> Array:
    """Return the acceleration under given generalized forces, (nv,), by divide and conquer.

    The depth is O(log n) for n bodies, and O(m) for the m rows of a group of constraints, which are solved by
    elimination.

    Args:
        robot, q, v, tau, wrenches: As in `legged.forward_dynamics`.
        version: "pivoted", more accurate on long chains and applicable to thin rods; or "inverse", with less depth.
        constraints: Function from the bodies' poses and velocities to constraints on their accelerations, by index in
            `robot.bodies`; constrained bodies must have mass. See `legged.loops.divide_and_conquer`.

    Raises:
        As `legged.forward_dynamics`; DefinitionError for joints that follow others, gyroscopic rotors, and massless
        bodies where the robot branches or ends. UnknownNameError for another version.
    """
    form = version_module(version)
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    with stage("1 velocities and bodies"):
        motion = parallel_prefix_motion(links_at(robot, q), q, v)
        bodies, a_0 = massive_bodies(
            robot, q, v, tau, wrenches, ALGORITHM, twists=motion.twist, any_inertia=form.ACCEPTS_SINGULAR_INERTIA
        )
        position = {GROUND: GROUND} | {body.index: k for k, body in enumerate(bodies)}
        groups = [_renumbered(group, position) for group in (constraints(motion) if constraints else ())]
    whole = assembly_tree([body.parent for body in bodies], {g: group.bodies for g, group in enumerate(groups)})
    with stage("2 assemblies"):
        factors: dict[int, Any] = {}
        form.assemble(whole, MultibodySystem(bodies, a_0, groups), factors)
    with stage("3 accelerations"):
        qdd: dict[int, Array] = {}
        form.disassemble(whole, factors, qdd)
    vdot = generalized_accelerations(robot, bodies, [qdd[k] for k in range(len(bodies))])
    return finite(robot, "the forward dynamics", vdot)


forward_dynamics = divide_and_conquer
"""The name of the task, which is the same in the modules of all algorithms."""


def version_module(version: str) -> ModuleType:
    """Return the module of a version by its name.

    Raises:
        UnknownNameError: For another version.
    """
    if version not in VERSIONS:
        raise UnknownNameError("version", version, VERSIONS)
    return VERSIONS[version]


def _renumbered(group: BodyConstraints, position: dict[int, int]) -> BodyConstraints:
    """Return constraints by position in the list of massive bodies instead of index in `robot.bodies`."""
    N = {position[k]: rows for k, rows in group.N.items()}
    return BodyConstraints(N, group.c, frozenset(position[k] for k in group.bodies))


@any_element
def inverse_inertia_matrix(robot: Robot, q: Array, *, version: str = "pivoted") -> Array:
    """Return M^-1, (nv, nv), in the unit of 1 / `legged.inertia_matrix`.

    The columns are the accelerations under a unit force at each joint. The assemblies are the same for all columns, and
    the depth is O(log n).

    Args:
        robot: The robot. q: Configuration, (nq,). version: As in `divide_and_conquer`.

    Raises:
        DefinitionError, UnknownNameError: As `divide_and_conquer`.
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


@any_element
def inverse_inertia_of_handles(
    robot: Robot, q: Array, handles: Collection[int], version: str
) -> dict[tuple[int, int], Array]:
    """Return the acceleration of each body by the wrench on each, (6, 6), mixed units, body axes, by pair of bodies.

    Args:
        robot: The robot. q: Configuration, (nq,).
        handles: Indices of moving bodies with mass in `robot.bodies`.
        version: As in `divide_and_conquer`.

    Raises:
        DefinitionError, UnknownNameError: As `divide_and_conquer`.
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
