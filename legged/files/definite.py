"""Refusing robots that some motion would let gain energy: inertias so impossible that dynamics diverge."""

from __future__ import annotations

import numpy as np

from legged.dynamics.inertia import inertia_matrix
from legged.errors import FileError
from legged.files.masses import weld_inertia
from legged.files.possible import fault_of
from legged.files.tree import Tree
from legged.robot.configuration import random_configuration
from legged.robot.robot import Robot

CONFIGURATIONS = 20


def refuse_indefinite(robot: Robot, tree: Tree) -> None:
    """Raise FileError if the inertia matrix is not positive definite at some of 20 random configurations.

    Only bodies with a negative mass or principal inertia can do that, so a robot without any passes unlooked at. One
    that has some and passes may still fail where no configuration was tried; the audit calls it suspicious.
    """
    culprits = [head for head in tree.welds if (fault := fault_of(weld_inertia(tree, head))) and fault.loses_energy]
    if not culprits or not robot.nv:
        return
    rng = np.random.default_rng(0)
    for _ in range(CONFIGURATIONS):
        inertia = inertia_matrix(robot, random_configuration(robot, rng))
        if np.linalg.eigvalsh(inertia)[0] <= 0.0:
            names = ", ".join(map(repr, culprits))
            raise FileError(
                tree.description.source,
                f"negative inertias of the links {names} let some motion gain energy, so that the dynamics diverge; "
                f"correct them, or load with repair='inertia'",
            )
