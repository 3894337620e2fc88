"""Parameters with respect to which time steps are differentiated: their places among the numbers of a closed loop.

The numbers of a closed loop are all parameters of its robot, started controller, ground and pushes in one array, as
`legged.simulation.stepping.parameter_tree.flatten` lists them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import DefinitionError
from legged.simulation.stepping.batch import RolloutBatch
from legged.simulation.stepping.parameters import ROBOT, numbers_of
from legged.simulation.stepping.starts import InitialStates


def started(batch: RolloutBatch) -> InitialStates:
    """Return the only member of a batch with its started controller and its numbers."""
    return batch.starts.started(range(1), *batch.given_states)


def places(batch: RolloutBatch, setup: tuple[Any, ...], state: tuple[Any, Any]) -> list[int]:
    """Return the indices of the entries of the parameters among the numbers of a member, in the order of their names.

    The parameters of the robot are its first numbers. Those of controller and ground are found by a change of each
    parameter: exactly as many numbers as it has entries have to change, and to its new values.

    Args:
        batch: A batch of one member, whose varying fields are the parameters.
        setup: (controller, ground, pushes, bodies). state: (q, v) as the user gave them, or None.

    Raises:
        DefinitionError: A parameter changes other numbers too, or none.
    """
    values, numbers = batch.sweep.values, started(batch).numbers[0]
    robot = [name for name in values if name.startswith(ROBOT)]
    sizes = np.cumsum([0, *(values[name].size for name in robot)])
    places_of = {name: list(range(a, b)) for name, a, b in zip(robot, sizes[:-1], sizes[1:], strict=True)}
    for name, value in values.items():
        if name in places_of:
            continue
        other = np.where(value == 0.0, 1e-3, 0.999 * value)
        changed = RolloutBatch.of(batch.robot, setup, state, vary={**values, name: other}, fall=False, count=1)
        moved_numbers = started(changed).numbers[0]
        differs = np.flatnonzero(moved_numbers != numbers).tolist() if len(moved_numbers) == len(numbers) else []
        if len(differs) != value.size or not np.array_equal(moved_numbers[differs], other.ravel()):
            raise DefinitionError(
                f"{name!r} changes other numbers when the controller starts, or none at all; differentiate with "
                f"respect to one of {', '.join(sorted(numbers_of(batch.sweep.nominal)))}"
            )
        places_of[name] = differs
    return [place for name in values for place in places_of[name]]
