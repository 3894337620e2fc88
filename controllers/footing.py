"""Whether the feet that stand can hold a robot's base."""

from collections.abc import Sequence

import numpy as np

from legged.errors import DefinitionError
from legged.robot.robot import Robot

Array = np.ndarray
_RANK = 1e-6  # of the largest singular value: what the feet can hardly give is nothing


def check_footing(robot: Robot, names: Sequence[str], G: Array) -> None:
    """Raise DefinitionError if forces on the named feet cannot hold the base against any wrench.

    Args:
        robot: The robot. names: Of the feet, for the message.
        G: Generalized forces on the base, [N m] and [N] in the order of its v, per entry of what the feet give,
            (base.nv, k).
    """
    sizes = np.linalg.svd(G, compute_uv=False) if G.size else np.zeros(0)
    if np.sum(sizes > _RANK * max(sizes, default=0.0)) < robot.base.nv:
        raise DefinitionError(
            f"the base of robot {robot.name!r} moves in {robot.base.nv} ways, which forces on the feet {list(names)} "
            f"cannot hold; let more of them stand"
        )
