"""From the states of a run to its record: what the equations say of every sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import LeggedError
from legged.simulation.engine import Engine
from legged.simulation.rigid_loop import RigidLoop
from legged.simulation.run import GROUND, Run
from legged.simulation.skeleton import ground_under, stick_figure
from legged.simulation.system import Integrator, State

Array = np.ndarray


def recorded(engine: Engine, integrator: Integrator, controller: Any, states: list[State], ended: str) -> Run:
    """Return the record of a run.

    Args:
        engine: What evaluates the equations. integrator: What stepped through time.
        controller: As the user gave it. states: The samples. ended: Why the run ended early, or "".
    """
    loop, robot = engine.loop, engine.loop.robot
    seen = [engine.observe(*state) for state in states]
    parts = loop.split(np.array([state.s for state in states]))
    bodies = loop.bodies if isinstance(loop, RigidLoop) else ()
    _, edges, modules = stick_figure(robot, bodies)
    skeleton = np.array([o.outputs.skeleton for o in seen])
    lines, normal = ground_under(loop.ground, skeleton)
    names, on, against = _contacts(loop)
    return Run(
        robot=robot.name,
        engine=engine.name,
        integrator=str(integrator),
        ended=ended,
        times=np.array([state.t for state in states]),
        phases=np.array([state.phase for state in states]),
        q=np.array([state.q for state in states]),
        v=parts.v,
        vdot=np.array([engine.acceleration(state, o.memory) for state, o in zip(states, seen, strict=True)]),
        tau=np.array([o.tau for o in seen]),
        reference=_reference(controller, states),
        memory=np.array([o.memory for o in seen]),
        ground_memory=parts.ground_memory,
        contact_points=np.array([o.points for o in seen]),
        contact_forces=np.array([o.forces for o in seen]),
        contact_residual=parts.ground_memory[:, -1] if isinstance(loop, RigidLoop) else np.zeros(len(states)),
        kinetic=np.array([o.outputs.kinetic for o in seen]),
        potential=np.array([o.outputs.potential for o in seen]),
        actuator_work=parts.works[:, 0],
        ground_work=parts.works[:, 1],
        push_work=parts.works[:, 2],
        joint_work=parts.works[:, 3],
        base_position=np.array([o.outputs.base_position for o in seen]),
        base_rotation=np.array([o.outputs.base_rotation for o in seen]),
        joint_names=tuple(joint.name for joint in robot.joints),
        joint_q=np.array([(joint.q.start, joint.q.stop) for joint in robot.joints], dtype=int).reshape(-1, 2),
        joint_v=np.array([(joint.v.start, joint.v.stop) for joint in robot.joints], dtype=int).reshape(-1, 2),
        contact_names=names,
        contact_on=on,
        contact_against=against,
        skeleton=skeleton,
        edges=edges,
        edge_modules=modules,
        ground_lines=lines,
        ground_normal=normal,
        bodies=tuple(body.name for body in bodies),
        body_q=_of_bodies(loop, states, 0, 7),
        body_v=_of_bodies(loop, states, 1, 6),
    )


def _contacts(loop: Any) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names of the contacts, of what they are on, and of what they are against."""
    robot = loop.robot
    if not isinstance(loop, RigidLoop):
        on = tuple(robot.links[contact.link].name for contact in robot.contacts)
        return tuple(contact.name for contact in robot.contacts), on, (GROUND,) * len(on)
    sides = [(c.first, c.second) for c in loop.scene.candidates]
    on, against = (tuple(_side(loop, pair[k]) for pair in sides) for k in range(2))
    return tuple(c.name for c in loop.scene.candidates), on, against


def _side(loop: RigidLoop, side: Any) -> str:
    return GROUND if side is None else loop.scene.robots[side.robot].links[side.link].name


def _of_bodies(loop: Any, states: list[State], part: int, size: int) -> Array:
    """Return q (part 0) or v (part 1) of the free bodies, (T, bodies, size)."""
    bodies = loop.states if isinstance(loop, RigidLoop) else lambda q, s: [()]
    found = [[pair[part] for pair in bodies(state.q, state.s)[1:]] for state in states]
    return np.array(found, dtype=float).reshape(len(states), -1, size)


def _reference(controller: Any, states: list[State]) -> Array:
    """Return the joint positions that the controller wants at each state, (T, nj), or (T, 0) if it does not tell."""
    reference = getattr(controller, "reference", None)
    if reference is None:
        return np.zeros((len(states), 0))
    try:
        return np.array([reference(state.t, state.phase)[0] for state in states], dtype=float)
    except LeggedError:
        return np.zeros((len(states), 0))
