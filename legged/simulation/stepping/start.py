"""The start of a simulation: its integrator, its initial state and its closed loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.dynamics.arguments import read
from legged.errors import DefinitionError
from legged.ground.ground import Ground
from legged.robot.robot import Robot
from legged.simulation.checks.stable_step import stable_step_of_loop
from legged.simulation.closed_loop import ClosedLoop
from legged.simulation.forces import check_range
from legged.simulation.integrators import FixedStep, Integrator, TimeStepping
from legged.simulation.rigid_loop import RigidLoop

Array = np.ndarray
_MARGIN = 1.2  # of the estimated stable step, below which runs passed; see the table in docs/simulation.md


def coarse_step_warning(loop: ClosedLoop, q: Array, s: Array, integrator: Any) -> str:
    """Return the warning that a fixed step is too long for the stiffness and damping of the ground, or "".

    Args:
        loop: The closed loop. q: Initial configuration, (nq,). s: Rest of the initial state, (n,).
        integrator: The integrator.
    """
    if not isinstance(integrator, FixedStep) or integrator.rule == "time_stepping":
        return ""
    largest = stable_step_of_loop(loop, q, s, integrator)
    if integrator.step <= _MARGIN * largest:
        return ""
    return (
        f"a step of {integrator.step:g} s is too long for this ground: feet in contact are stable up to {largest:.2g} "
        f"s; take {0.5 * largest:.1g} s, a softer ground, or a legged.Rigid ground"
    )


def select_integrator(
    integrator: Integrator | None, ground: Ground | Rigid | None, bodies: Sequence[FreeBody], default: Integrator
) -> Integrator:
    """Return the integrator of a run, after a check that it fits the ground.

    Args:
        integrator: As the user gave it; None selects `TimeStepping` on rigid ground, otherwise the default.
        ground: The ground. bodies: Free bodies. default: Integrator without ground and on compliant ground.

    Raises:
        DefinitionError: Integrator, ground and bodies are incompatible.
    """
    rigid = isinstance(ground, Rigid)
    if bodies and not rigid:
        raise DefinitionError("free bodies need a rigid ground: give ground=Rigid(...)")
    if integrator is None:
        return TimeStepping() if rigid else default
    if rigid != isinstance(integrator, TimeStepping):
        wanted = "a Rigid ground needs TimeStepping(...)" if rigid else "TimeStepping(...) needs a Rigid ground"
        raise DefinitionError(f"{wanted}, got {integrator} on {type(ground).__name__ if ground else 'no ground'}")
    return integrator


def initial_state(robot: Robot, controller: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the initial configuration (nq,) and velocity (nv,) of a run.

    Args:
        robot: The robot. controller: The controller, whose `initial_state(robot)` is the default.
        q: Configuration, (nq,), or None. v: Velocity, (nv,), or None for rest.
    """
    if q is None and hasattr(controller, "initial_state"):
        q, planned = controller.initial_state(robot)
        v = planned if v is None else v
    q = robot.neutral() if q is None else q
    v = np.zeros(robot.nv) if v is None else v
    q, v = read(robot, q=q, v=v)
    check_range(robot, q)
    return q, v


def check_integrator(loop: ClosedLoop, integrator: Integrator) -> None:
    """Raise DefinitionError if an integrator cannot advance a closed loop.

    Args:
        loop: The closed loop. integrator: The integrator.
    """
    if isinstance(loop.ground, Rigid) and not isinstance(loop, RigidLoop):
        raise DefinitionError(f"robot {loop.robot.name!r} has closed loops, which a Rigid ground does not support")
    if loop.controller.has_update and not isinstance(integrator, FixedStep):
        raise DefinitionError(
            f"a controller with a discrete update needs an integrator with fixed steps, got {integrator}"
        )
