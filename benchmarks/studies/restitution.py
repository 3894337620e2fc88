"""Restitution over impact speed of the normal laws: `python -m benchmarks.studies.restitution`, some seconds.

A mass strikes the ground without gravity. The loss 1 - e of the viscoelastic sphere (`AzadFeatherstone`) grows with the
fifth root of the impact speed, that of `HuntCrossley` with the speed; that of `KelvinVoigt`, and of rigid ground with
Newton's restitution, is constant.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.special import beta

from legged.ground import AzadFeatherstone, HuntCrossley, KelvinVoigt, NormalLaw, coefficient_of_restitution
from legged.simulation.plots import pages
from legged.spatial import Array

MASS, STIFFNESS = 0.1, 2e6
"""Of the mass, [kg], and of Hertz's spring, [N/m^(3/2)]."""
SPEEDS = np.geomspace(1e-3, 3.0, 15)
"""Impact speeds, [m/s]."""


def small_loss(law: NormalLaw, mass: float, speed: Array) -> Array:
    """Return the first-order loss 1 - e, (n,), of `HuntCrossley` or `AzadFeatherstone`.

    Args:
        law: Law of the normal force. mass: [kg]. speed: Impact speeds, (n,), [m/s].
    """
    if isinstance(law, HuntCrossley):
        return law.dissipation * speed
    assert isinstance(law, AzadFeatherstone)
    size = 0.8 * beta(0.6, 1.5) * law.damping / mass * (1.25 * mass / law.stiffness) ** 0.6
    return size * speed**0.2


def losses(law: NormalLaw) -> Array:
    """Return 1 - e, (n,), at `SPEEDS`."""
    return np.array([1.0 - coefficient_of_restitution(law, MASS, u) for u in SPEEDS])


def restitution_figure() -> pages.Figure:
    """Return restitution, and its loss in logarithmic axes, over the impact speed."""
    made = pages.figure(1, 2, width=10.0, height=4.0)
    plain, logarithmic = made.axes
    laws: list[tuple[NormalLaw, str, str, str]] = [
        (AzadFeatherstone(STIFFNESS, 20.0), "Azad-Featherstone, D = 20", pages.BLUE, "-"),
        (AzadFeatherstone(STIFFNESS, 500.0), "Azad-Featherstone, D = 500", pages.BLUE, "--"),
        (HuntCrossley(STIFFNESS, 0.02), "Hunt-Crossley, a = 0.02", pages.ORANGE, "-"),
        (HuntCrossley(STIFFNESS, 0.3), "Hunt-Crossley, a = 0.3", pages.ORANGE, "--"),
        (KelvinVoigt(5e4, 5.0), "Kelvin-Voigt, D = 5", pages.GREY, "-"),
    ]
    for law, words, color, style in laws:
        loss = losses(law)
        plain.plot(SPEEDS, 1.0 - loss, style, color=color, linewidth=1.5, label=words)
        logarithmic.plot(SPEEDS, loss, style, color=color, linewidth=1.5)
        if not isinstance(law, KelvinVoigt):
            logarithmic.plot(SPEEDS, small_loss(law, MASS, SPEEDS), ":", color="black", linewidth=1.0)
    logarithmic.set_xscale("log")
    logarithmic.set_yscale("log")
    pages.label(plain, f"A mass of {MASS:g} kg on the ground", "impact speed u [m/s]", "restitution e")
    pages.label(logarithmic, "Dotted: first order, u^(1/5) and u", "impact speed u [m/s]", "1 - e")
    plain.set_ylim(0.0, 1.02)
    return pages.legend(made, columns=3)


def main() -> None:
    """Write the figure, and print the fitted exponents of small losses."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.restitution", description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("results/restitution.png"), metavar="FILE")
    path = pages.save(restitution_figure(), parser.parse_args().output)
    for law in (AzadFeatherstone(STIFFNESS, 20.0), HuntCrossley(STIFFNESS, 0.02)):
        slope = np.polyfit(np.log(SPEEDS), np.log(losses(law)), 1)[0]
        print(f"{law}: 1 - e grows with u^{slope:.3f}")
    print(path)


if __name__ == "__main__":
    main()
