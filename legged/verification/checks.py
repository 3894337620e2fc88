"""`legged.verify`: the laws of a robot's dynamics as a table, which fails loudly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import DefinitionError, VerificationError
from legged.robot.robot import Robot
from legged.table import Table
from legged.verification import laws
from legged.verification.external import opened
from legged.verification.flight import DURATION, fly
from legged.verification.laws import Sample, sample

ROUNDING = 1e-9
"""Of sums of some hundred terms, in parts of the size of the terms: 1e-12 is usual, 1e-10 the worst on bad robots."""
FLIGHT = 1e-8
"""Of a solver asked for 1e-12 a step."""

LAWS: dict[str, Callable[[Sample], float]] = {
    "links are where the definitions put them": laws.poses_of_definitions,
    "inverse of forward dynamics: the torques": laws.inverse_of_forward,
    "forward of inverse dynamics: the acceleration": laws.forward_of_inverse,
    "floating inverse dynamics leaves the base undriven": laws.floating_base_undriven,
    "inertia matrix by unit accelerations": laws.inertia_by_unit_accelerations,
    "inertia matrix of the links and rotors as defined": laws.inertia_of_links,
    "inertia matrix of the dense theory": laws.inertia_of_dense_theory,
    "bias forces of the dense theory": laws.bias_of_dense_theory,
    "forward dynamics in the dense equations": laws.forward_of_dense_theory,
    "compiled forward dynamics": laws.compiled_forward,
    "compiled inverse dynamics": laws.compiled_inverse,
    "compiled inertia matrix": laws.compiled_inertia,
}


@dataclass(frozen=True)
class Check:
    """A law, how far the robot is from it (relative), and how far it may be."""

    law: str
    figure: float
    tolerance: float

    @property
    def passed(self) -> bool:
        return self.figure <= self.tolerance  # not so for NaN


@dataclass(frozen=True)
class Verification:
    """What came out for a robot."""

    robot: str
    states: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    def table(self) -> Table:
        """Return the figures and tolerances as a table."""
        rows = [(c.law, f"{c.figure:.1e}", f"{c.tolerance:.0e}", "" if c.passed else "FAILED") for c in self.checks]
        return Table(f"{self.robot}: the largest of {self.states} random states", _HEADER, tuple(rows))

    def __str__(self) -> str:
        return self.table().text()


_HEADER = ("law", "relative", "allowed", "")


def verify(
    robot: Robot, against: str | Sequence[str] = (), *, states: int = 3, seed: int = 0, show: bool = True
) -> Verification:
    """Print how well a robot's dynamics keep their laws, and return the figures.

    Args:
        robot: The robot.
        against: "pinocchio", "mujoco" or both: programs to compare with, if installed. They read the file that the
            robot was loaded from, if it is of their kind, or else the robot as exported.
        states: How many random states. seed: Of NumPy's generator.
        show: Print the table, which an error shows in any case.

    Raises:
        VerificationError: A law is broken; `error.verification` holds the figures.
        UnknownNameError: for another program. MissingError: for one that is not installed.
        DefinitionError: for a robot that cannot move.
    """
    if robot.nv == 0:
        raise DefinitionError(f"robot {robot.name!r} has no degree of freedom: there are no dynamics to verify")
    programs = [opened(name, robot) for name in ([against] if isinstance(against, str) else against)]
    functions = {"forward": forward_dynamics, "inverse": inverse_dynamics, "inertia": inertia_matrix}
    compiled = {name: compile_function(function, robot) for name, function in functions.items()}
    samples = [sample(robot, seed + k, compiled) for k in range(states)]
    flights = [fly(robot, s.q, s.v) for s in samples]
    checks = [_check(words, [law(s) for s in samples], ROUNDING) for words, law in LAWS.items()]
    checks.append(_check(f"energy in {DURATION:g} s without drive", [f.energy for f in flights], FLIGHT))
    if robot.base.nv:
        checks.append(_check("momentum in the same flight", [f.momentum for f in flights], FLIGHT))
    for program in programs:
        for words, law in program.laws.items():
            checks.append(_check(f"{words} of {program.name}", [law(s) for s in samples], ROUNDING))
    found = Verification(robot.name, states, tuple(checks))
    if not found.passed:
        raise VerificationError(f"the dynamics of robot {robot.name!r} break their laws\n{found}", found)
    if show:
        print(found)
    return found


def _check(law: str, figures: Sequence[float], tolerance: float) -> Check:
    return Check(law, float(np.max(figures)), tolerance)  # NaN if any is
