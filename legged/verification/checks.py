"""`legged.verify`: check the dynamics of a robot against the laws of mechanics and against other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from legged.arguments import whole
from legged.checked import checked
from legged.compiler import compile as compile_function
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import inverse_dynamics
from legged.errors import DefinitionError, MismatchError, VerificationError
from legged.robot.robot import Robot
from legged.table import Table
from legged.verification import laws
from legged.verification.external import open_engine
from legged.verification.laws import DURATION, Sample, flight_drift, sample

ROUNDING_TOLERANCE = 1e-9
"""Relative rounding error of sums of some hundred terms: usually 1e-12, at most 1e-10 on ill-conditioned robots."""
INTEGRATION_TOLERANCE = 1e-8
"""Relative error of an integration with tolerance 1e-12 per step."""

LAWS: dict[str, Callable[[Sample], float]] = {
    "link poses follow from the joint definitions": laws.poses_of_definitions,
    "inverse dynamics of forward dynamics: forces": laws.inverse_of_forward,
    "forward dynamics of inverse dynamics: acceleration": laws.forward_of_inverse,
    "floating inverse dynamics: no force on the base": laws.floating_base_undriven,
    "inertia matrix from unit accelerations": laws.inertia_by_unit_accelerations,
    "inertia matrix from link and rotor inertias": laws.inertia_of_links,
    "inertia matrix of the dense DeNOC equations": laws.inertia_of_dense_theory,
    "bias forces of the dense DeNOC equations": laws.bias_of_dense_theory,
    "forward dynamics in the dense DeNOC equations": laws.forward_of_dense_theory,
    "compiled forward dynamics": laws.compiled_forward,
    "compiled inverse dynamics": laws.compiled_inverse,
    "compiled inertia matrix": laws.compiled_inertia,
}


@dataclass(frozen=True)
class Check:
    """Largest violation of a law over all states.

    Attributes:
        law: The law.
        error: Largest relative error, dimensionless.
        tolerance: Largest allowed error.
        refused: Why another program could not compare; empty for a comparison, which then has an error.
    """

    law: str
    error: float
    tolerance: float
    refused: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance, or there was no comparison; False for NaN."""
        return bool(self.refused) or self.error <= self.tolerance


@dataclass(frozen=True, repr=False)
class Verification:
    """Result of `verify`; its text is a table of all checks.

    Attributes:
        robot: Name of the robot.
        states: Number of random states.
        checks: The checks.
    """

    robot: str
    states: int
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all checks passed; a program that refused the robot made none."""
        return all(check.passed for check in self.checks)

    @property
    def refused(self) -> tuple[str, ...]:
        """Why programs could not compare, a sentence for each."""
        return tuple(check.refused for check in self.checks if check.refused)

    def table(self) -> Table:
        """Return the errors and tolerances as a table."""
        rows = [
            (c.law, "-", "-", f"not compared: {c.refused}")
            if c.refused
            else (c.law, f"{c.error:.1e}", f"{c.tolerance:.0e}", "" if c.passed else "FAILED")
            for c in self.checks
        ]
        title = f"{self.robot}: largest relative error over {self.states} random states"
        return Table(title, ("law", "error", "allowed", ""), tuple(rows))

    def __str__(self) -> str:
        return self.table().text()

    __repr__ = __str__


@checked
def verify(
    robot: Robot, against: str | Sequence[str] = (), *, states: int = 3, seed: int = 0, show: bool = False
) -> Verification:
    """Check the dynamics of a robot against the laws of mechanics, and return the errors; `print` shows a table.

    Args:
        robot: The robot.
        against: "pinocchio", "mujoco" or both: programs to compare with, if installed. They read the file of the robot
            if it has their format, otherwise the exported robot. A program that cannot read the robot gets a row with
            the reason.
        states: Number of random states.
        seed: Seed of the random states.
        show: Whether to print the table as well.

    Raises:
        VerificationError: A violated law; `error.verification` holds the errors, and the message shows the table.
        UnknownNameError: An unknown program. MissingError: A program that is not installed.
        DefinitionError: A robot without degrees of freedom.
    """
    states, seed = whole("states", states, least=1), whole("seed", seed, least=0)
    if robot.nv == 0:
        raise DefinitionError(f"robot {robot.name!r} has no degree of freedom: there are no dynamics to verify")
    engines, refused = [], []
    for name in [against] if isinstance(against, str) else against:
        try:
            engines.append(open_engine(name, robot))
        except MismatchError as error:
            refused.append(Check(f"dynamics of {name}", float("nan"), ROUNDING_TOLERANCE, str(error)))
    functions = {"forward": forward_dynamics, "inverse": inverse_dynamics, "inertia": inertia_matrix}
    compiled = {name: compile_function(function, robot) for name, function in functions.items()}
    samples = [sample(robot, seed + k, compiled) for k in range(states)]
    flights = [flight_drift(robot, s.q, s.v) for s in samples]
    checks = [_check(words, [law(s) for s in samples], ROUNDING_TOLERANCE) for words, law in LAWS.items()]
    checks.append(
        _check(f"energy in {DURATION:g} s of free motion", [f.energy for f in flights], INTEGRATION_TOLERANCE)
    )
    if robot.base.nv:
        checks.append(_check("momentum in the same motion", [f.momentum for f in flights], INTEGRATION_TOLERANCE))
    for engine in engines:
        for words, law in engine.laws.items():
            checks.append(_check(f"{words} of {engine.name}", [law(s) for s in samples], ROUNDING_TOLERANCE))
    verification = Verification(robot.name, states, (*checks, *refused))
    if not verification.passed:
        raise VerificationError(
            f"the dynamics of robot {robot.name!r} violate the laws of mechanics\n{verification}", verification
        )
    if show:
        print(verification)
    return verification


def _check(law: str, errors: Sequence[float], tolerance: float) -> Check:
    return Check(law, float(np.max(errors)), tolerance)  # NaN if any is
