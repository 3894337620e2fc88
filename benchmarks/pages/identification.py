"""Computed part of `docs/explanation/identification.md`: errors of fits of MuJoCo's logs without noise."""

from __future__ import annotations

from benchmarks.identification.simulated import LEG, errors_without_noise
from benchmarks.pages.parts import Part, table


def integrators() -> str:
    """Return the table of the integrators and time steps of MuJoCo."""
    # "robot.thigh_joint.damping" -> "thigh, damping", "robot.*.friction" -> "all, friction".
    heads = [f"{name.split('.')[1].removesuffix('_joint').replace('*', 'all')}, {name.split('.')[2]}" for name in LEG]
    rows = [
        [f"{integrator}, {step:g} ms", *(f"{100.0 * error:.2f}" for error in errors.values())]
        for (integrator, step), errors in errors_without_noise().items()
    ]
    return table(["integrator and time step of MuJoCo", *heads], rows)


# Versions of MuJoCo and processors differ by rounding errors, which friction amplifies.
PARTS = {"integrators": Part("explanation/identification.md", integrators, relative=0.1, absolute=0.1, slow=True)}
