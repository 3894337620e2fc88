"""The warning that kinetic and potential energy minus all work rise."""

import re
import warnings

import numpy as np
import pytest

import legged
from legged.errors import SimulationWarning


def whip():
    """Return a chain of three rods on a fixed base."""
    builder, above = legged.RobotBuilder("whip", legged.Link("post"), base=legged.FixedBase()), "post"
    for k in range(3):
        link = legged.Link(f"rod{k}", legged.rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, -0.5)))
        builder.add(legged.Revolute(f"joint{k}", "y"), link, to=above, at=(0.0, 0.0, -0.5 if k else 0.0))
        above = link.name
    return builder.build()


def moved(step):
    """Return the run of a fast motion, and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = legged.simulate(
            whip(),
            q=[1.6, 0.0, 0.0],
            v=[0.0, 50.0, -80.0],
            until=0.5,
            ground=legged.Rigid(),
            integrator=legged.TimeStepping(step),
            compiled=False,
        )
    return run, [str(w.message) for w in caught if issubclass(w.category, SimulationWarning)]


def test_a_run_whose_energy_rises_warns_with_a_step_at_which_it_does_not():
    run, texts = moved(0.01)
    text = next(text for text in texts if "minus all work rise" in text)
    assert text in run.warnings
    share = float(re.search(r"(\d+) %", text)[1])
    assert share > 10.0
    balance = run.energy.balance
    rise = max(balance[k:].max() - balance[k] for k in range(len(balance)))
    assert float(re.search(r"rise by ([\d.e+-]+) J", text)[1]) == pytest.approx(rise, rel=5e-3)  # three digits
    step = float(re.search(r"step of ([\d.e-]+) s", text)[1])
    assert step <= 0.01 / share * 1.1  # of first order, for 1 %
    finer, texts = moved(step)
    assert not texts and not finer.warnings and np.isfinite(finer.q).all()
