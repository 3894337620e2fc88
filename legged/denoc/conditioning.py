"""The paper's diagnostic: how well the inertia that each module's joints meet can be inverted."""

from __future__ import annotations

import numpy as np

from legged.denoc.factors import articulated_modules
from legged.robot.robot import Robot
from legged.spatial import Array


def conditioning(robot: Robot, q: Array, *, scaled: bool = False) -> Array:
    """Return the condition number of I^^i, the articulated inertia of each module, (number of modules,).

    Forward dynamics divides by these matrices, and a simulation loses about log10 of the number in digits. A large
    one tells *which* module goes wrong, where the condition of the whole inertia matrix only tells that one does.
    Inf, or 1e15 and more, means a motion that meets no inertia: a gimbal-locked Euler base or joint, aligned axes with
    massless links between.

    The number depends on units where a module mixes angles and lengths (kg m^2 beside kg), as every free base does.
    With `scaled`, rows and columns are first divided by the square roots of the diagonal: that number does not depend
    on units and is within a factor of nv of the best that any choice of units gives; it is 1 for a single joint.

    Joints that follow others count as if they were free.

    Args:
        robot: The robot, any base. A fixed base inverts nothing and has 1.
        q: Configuration, (nq,).
        scaled: Whether to take units out.

    Raises:
        ShapeError, NotFiniteError: for a q that does not fit the robot.

    Source: Shah, Saha, Dutt 2012, Appendix A.1, after eq. (A.9); the scaling is van der Sluis's (1969).
    """
    return np.array([_condition(part.I_hat, scaled) for part in articulated_modules(robot, q)])


def _condition(I_hat: Array, scaled: bool) -> float:
    if not I_hat.size:
        return 1.0
    if scaled:
        size = np.sqrt(np.abs(np.diag(I_hat)))
        if not size.all():
            return float("inf")
        I_hat = I_hat / np.outer(size, size)
    return float(np.linalg.cond(I_hat))
