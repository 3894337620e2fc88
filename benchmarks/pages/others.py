"""Computed parts of `docs/explanation/hybrid_control.md`, `contact.md`, `mechanisms.md` and `simulation.md`."""

from __future__ import annotations

from functools import cache

from benchmarks import step_sizes
from benchmarks.balance import step_costs
from benchmarks.pages import mechanisms
from benchmarks.pages.parts import Part, spaced, table
from examples.studies.balance.hybrid_study import HybridStudy

HYBRID, CONTACT = "explanation/hybrid_control.md", "explanation/contact.md"
MECHANISMS, SIMULATION = "explanation/mechanisms.md", "explanation/simulation.md"


@cache
def _hybrid() -> HybridStudy:
    return HybridStudy()


def hybrid_arm() -> str:
    """Return the errors of an arm on two faces."""
    arm = _hybrid().tables()[0]
    return table(("", arm.header[1]), arm.rows)


def hybrid_gantry() -> str:
    """Return the errors of a gantry on a plate that vibrates."""
    gantry = _hybrid().tables()[1]
    return table(("plate", "its motion [mm]", "change of T^T M q [kg m]", "force error after 0.1 s [N]"), gantry.rows)


def hybrid_wall() -> str:
    """Return the results of a quadruped that presses on a wall."""
    return table(("after 1.5 s", ""), _hybrid().tables()[2].rows)


def contact_steps() -> str:
    """Return the operations of time steps of the biped in several scenes."""
    rows = [
        (scene, str(contacts), spaced(every), spaced(solver))
        for scene, (contacts, every, solver) in step_costs().items()
    ]
    return table(("scene", "contacts", "operations", "in the solver"), rows)


def gains() -> str:
    """Return the gains of the optional mechanisms of the compiler."""
    return table(("mechanism", "benchmark", "time [us]", "without / with"), list(mechanisms.rows()))


PARTS = {
    "hybrid-arm": Part(HYBRID, hybrid_arm, 0.95, 1e-13, slow=True),
    "hybrid-gantry": Part(HYBRID, hybrid_gantry, 0.05, 1e-13, slow=True),
    "hybrid-wall": Part(HYBRID, hybrid_wall, 0.02, slow=True),
    "contact-steps": Part(CONTACT, contact_steps, slow=True),
    "walking-steps": Part(SIMULATION, step_sizes.walking_table, 0.3, slow=True),
    "standing-steps": Part(SIMULATION, step_sizes.standing_table, 0.3, slow=True),
    "implicit-steps": Part(SIMULATION, step_sizes.implicit_table, 0.3, slow=True),
    "mechanisms": Part(MECHANISMS, gains, 0.9, slow=True),
}
