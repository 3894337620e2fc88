"""Parts of the state of a closed loop, and the results of the methods of `ClosedLoop`."""

from __future__ import annotations

from typing import Any, NamedTuple

from legged.spatial import Array

BreakTimes = tuple[tuple[float, ...], tuple[float, ...]]
"""Switch times of a controller, and other times at which the integrator restarts, [s]."""


class StateParts(NamedTuple):
    """Parts of s, the state of a `ClosedLoop` without q.

    Attributes:
        v: Velocity, (nv,).
        memory: Memory of the controller, (m,).
        ground_memory: Memory of the ground, (g,).
        history: `ContactHistory` on compliant ground, (c,); rigid ground keeps it in its memory.
        works: Work of actuators, contacts, pushes and joints since the start, (4,), [J].
    """

    v: Array
    memory: Array
    ground_memory: Array
    history: Array
    works: Array


class ExternalForces(NamedTuple):
    """Forces of the ground on the robot.

    Attributes:
        contact: Contact wrenches [n; f] on the links, (n_links, 6), about each link's origin in its axes.
        points, forces: Contact points and the forces on them, (n, 3) each, [m], [N], world axes.
        memory_rate: Time derivative of the ground's memory, (g,).
        power: Power of contacts, [W].
    """

    contact: Array
    points: Array
    forces: Array
    memory_rate: Array
    power: Any


class Outputs(NamedTuple):
    """Energies and pose of a robot, in world axes.

    Attributes:
        kinetic, potential: Kinetic and potential energy, [J]; with those of free bodies on rigid ground.
        base_rotation: Rotation matrix from base axes to world axes, (3, 3).
        base_position: Position of the base origin, (3,), [m].
    """

    kinetic: Any
    potential: Any
    base_rotation: Array
    base_position: Array


class Observation(NamedTuple):
    """The outputs of a state that a run stores besides q and v.

    Attributes:
        tau: Generalized forces of the actuators, (nv,), [N m] or [N].
        points, forces: Contact points and the forces on them, (n, 3) each, [m], [N], world axes.
        memory: Memory of the controller after its discrete update, (m,).
        wrenches: Wrenches of contacts and pushes on the links, (n_links, 6), [N m] and [N], link axes.
        outputs: Energies and pose.
    """

    tau: Array
    points: Array
    forces: Array
    memory: Array
    wrenches: Array
    outputs: Outputs


class StepActuation(NamedTuple):
    """Actuation of one time step.

    Attributes:
        tau: Generalized forces of the actuators within the motor limits, (nv,), for a velocity that stays.
        damping: Decrease of tau per change of the velocity in the step, (nv,), [N m s/rad] or [N s/m].
        memory_rate: Time derivative of the controller's memory, (m,).
    """

    tau: Array
    damping: Array
    memory_rate: Array


class Step(NamedTuple):
    """Result of a time step.

    Attributes:
        q: Configuration after the step, (nq,). v: Velocity after it, (nv,).
        joint_work: Work of joint friction and stops in it, [J].
    """

    q: Array
    v: Array
    joint_work: Any


class ContactStep(NamedTuple):
    """Motion and contact forces of a time step on compliant ground.

    Attributes:
        q, v, joint_work: As in `Step`, (nq,), (nv,) and [J].
        memory_rate: Mean time derivative of the ground's memory, (g,).
        power: Mean power of the contact forces, [W].
        forces: Mean contact forces, (n, 3), [N], world axes.
    """

    q: Array
    v: Array
    joint_work: Any
    memory_rate: Array
    power: Any
    forces: Array
