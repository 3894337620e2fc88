"""Conversion of the states of a simulation into a `Run`: outputs at every sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.contact.rigid import Rigid
from legged.errors import LeggedError
from legged.ground.ground import Ground
from legged.simulation.backend import Backend
from legged.simulation.checks.law import commanded_of, footsteps_of, reference_of
from legged.simulation.integrators import Integrator, StateSample
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.contact_memory import ContactHistory, ContactMemory
from legged.simulation.loop.results import Observation
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.accelerations import Accelerations
from legged.simulation.results.records import (
    GROUND,
    BaseRecord,
    BodyRecord,
    ContactRecord,
    EnergyRecord,
    JointRecord,
    ModelRecord,
)
from legged.simulation.results.run import Run
from legged.simulation.results.stick_figure import Picture

Array = np.ndarray


def record_run(backend: Backend, integrator: Integrator | str, states: list[StateSample], ended: str) -> Run:
    """Return the run that consists of the given states.

    Args:
        backend: Evaluates the equations of motion. integrator: The integrator of the states, or its name.
        states: The samples. ended: Why the run ended early, or "".
    """
    loop, robot = backend.loop, backend.loop.robot
    seen = backend.observe_all(states)
    outputs, rests = seen.outputs, np.array([state.s for state in states])
    parts = loop.split(rests)
    bodies = loop.bodies if isinstance(loop, RigidLoop) else ()
    times, q = (np.array(part) for part in ([state.t for state in states], [state.q for state in states]))
    body_q = _body_states(loop, rests, 0, 7)
    return Run(
        robot=robot.name,
        backend=backend.name,
        integrator=str(integrator),
        ended=ended,
        times=times,
        phases=np.array([state.phase for state in states]),
        q=q,
        v=parts.v,
        accelerations=Accelerations.of(backend.acceleration, q, parts.v, seen.tau, seen.wrenches),
        tau=seen.tau,
        memory=seen.memory,
        base=BaseRecord(position=outputs.base_position, rotation=outputs.base_rotation),
        joints=JointRecord.of(robot, _reference(loop.controller, states, robot.nj)),
        contacts=_contact_record(loop, times, seen, rests, parts.ground_memory),
        energy=EnergyRecord(outputs.kinetic, outputs.potential, *parts.works.T),
        bodies=BodyRecord(
            names=tuple(body.name for body in bodies),
            q=body_q,
            v=_body_states(loop, rests, 1, 6),
        ),
        picture=Picture(robot, q, loop.ground, bodies, body_q),
        model=ModelRecord.of(robot, loop.ground, bodies),
        footsteps=planned_footsteps(loop.controller, seen.memory),
        commanded=_commanded_velocities(loop.controller, times, seen.memory),
    )


def _contact_record(loop: ClosedLoop, times: Array, seen: Observation, states: Array, memory: Array) -> ContactRecord:
    """Return the contacts of a run with the rests of its states, (T, n), and the ground's memory, (T, g)."""
    forces, dt = seen.forces, np.diff(times)
    residual = worst = np.zeros(len(times))
    history = loop.contact_history(states)
    if not isinstance(loop.ground, (Ground, Rigid)):  # no forces
        m = forces.shape[1]
        history = ContactHistory(np.zeros((len(times), m, 3)), *(np.zeros((len(times), m)) for _ in range(3)))
    impulse = np.concatenate([0.0 * forces[:1], np.diff(history.impulse, axis=0)])
    if isinstance(loop, RigidLoop):
        known = ContactMemory.of(memory)
        residual, worst = np.append(0.0, np.diff(known.drift) / dt), known.worst
        forces = np.concatenate([forces[:1], impulse[1:] / dt[:, None, None]])
    first_touch, last_touch = (np.where(x[-1] > 0.0, x[-1], np.nan) for x in (history.touched, history.last))
    sides = loop.contact_names, *contact_sides(loop)
    return ContactRecord(
        *sides, seen.points, forces, impulse, history.peak, first_touch, last_touch, residual, worst, memory
    )


def contact_sides(loop: ClosedLoop) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the links or bodies that carry the contacts, and of those that they touch.

    Args:
        loop: The closed loop.
    """
    robot = loop.robot
    if not isinstance(loop, RigidLoop):
        on = tuple(robot.links[contact.link].name for contact in robot.contacts)
        return on, (GROUND,) * len(on)
    robots, candidates = loop.scene.robots, loop.scene.candidates
    on, against = (
        tuple(GROUND if side is None else robots[side.robot].links[side.link].name for side in sides)
        for sides in ([c.first for c in candidates], [c.second for c in candidates])
    )
    return on, against


def _body_states(loop: ClosedLoop, rests: Array, part: int, size: int) -> Array:
    """Return q (part 0) or v (part 1) of the free bodies, (T, bodies, size), from the rests of states, (T, n)."""
    bodies = loop.states(rests[:, :0], rests)[1:] if isinstance(loop, RigidLoop) else []
    return np.array([pair[part] for pair in bodies]).reshape(-1, len(rests), size).swapaxes(0, 1)


def planned_footsteps(controller: Any, memory: Array) -> Array:
    """Return the landing places that a controller plans, (T, n, 3), [m], world axes; see `Run.footsteps`.

    Args:
        controller: The started controller. memory: Its states, (T, m), mixed units.
    """
    planned = getattr(controller, "planned_footsteps", None)
    if planned is None or not len(memory):
        return np.zeros((len(memory), 0, 3))
    return np.array([footsteps_of(planned, planned(row)) for row in memory])


def _commanded_velocities(controller: Any, times: Array, memory: Array) -> Array:
    """Return the velocities that a controller is commanded, (T, 3) or (0, 3); see `Run.commanded`."""
    commanded = getattr(controller, "commanded_velocity", None)
    if commanded is None:
        return np.zeros((0, 3))
    rows = zip(times, memory, strict=True)
    return np.array([commanded_of(commanded, commanded(t, row)) for t, row in rows]).reshape(-1, 3)


def _reference(controller: Any, states: list[StateSample], nj: int) -> Array:
    """Return the joint positions that the controller tracks at each state, (T, nj), or (T, 0) without a reference."""
    reference = getattr(controller, "reference", None)
    if reference is None:
        return np.zeros((len(states), 0))
    try:
        values = [reference(state.t, state.phase) for state in states]
    except LeggedError:
        return np.zeros((len(states), 0))
    return np.array([reference_of(reference, value, nj) for value in values])
