"""Check of a run's energy balance: kinetic and potential energy minus all work must not rise.

Its rise, the largest one from an earlier sample to a later one, is compared with the energy that the run moves: the
largest kinetic energy plus the work of actuators, contacts, pushes and joints, without regard to signs, between all
samples. The error of a step is of first order where contacts and stops change velocities abruptly, so that the rise is
proportional to the step. Semi-implicit and linearly implicit steps are not judged, because the works of actuators and
contacts are left sums there, whose error says nothing about the motion.
"""

from __future__ import annotations

import numpy as np

from legged.simulation.integrators import FixedStep
from legged.simulation.loop.closed_loop import ClosedLoop
from legged.simulation.loop.rigid_loop import RigidLoop
from legged.simulation.results.records import LEAST_ENERGY, EnergyRecord

LARGEST_RISE = 0.1
"""Rise relative to the moved energy above which a run warns."""
GOAL = 0.01
"""Relative rise for which the warning computes the step to take."""
_LEFT_SUMS = ("semi_implicit", "linearly_implicit")


def energy_warning(energy: EnergyRecord, loop: ClosedLoop, integrator: object) -> str:
    """Return the warning that energy minus work rises, or "".

    Args:
        energy: Energies and works of the run, (T,) each, [J]. loop: The closed loop. integrator: The integrator.
    """
    balance = energy.balance
    if getattr(integrator, "rule", "") in _LEFT_SUMS or len(balance) < 2 or not np.isfinite(balance).all():
        return ""
    rise = float((balance - np.minimum.accumulate(balance)).max())
    moved = energy.moved
    bodies = loop.bodies if isinstance(loop, RigidLoop) else ()
    mass = loop.robot.mass + sum(body.inertia.mass for body in bodies)
    share = rise / max(moved, LEAST_ENERGY * mass)
    if not share > LARGEST_RISE:
        return ""
    remedy = "use smaller tolerances"
    if isinstance(integrator, FixedStep):
        remedy = f"take a step of {_rounded_down(integrator.step * GOAL / share):g} s instead of {integrator.step:g} s"
    return (
        f"kinetic and potential energy minus all work rise by {rise:.3g} J, {100.0 * share:.0f} % of the {moved:.3g} J "
        f"that the run moves, which is an error of the integration; {remedy}"
    )


def _rounded_down(step: float) -> float:
    """Return the largest number of one digit that is not above a step, [s]."""
    unit = 10.0 ** np.floor(np.log10(step))
    return float(np.floor(step / unit) * unit)
