"""Evaluation of the named functions of a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.compiler import stage
from legged.environments.draws import Draws
from legged.environments.state import State
from legged.robot.configuration import as_vector

if TYPE_CHECKING:
    from legged.environments.task import Observation

Array = np.ndarray


def observed(terms: Mapping[str, Observation], s: State, group: str, random: Draws | None = None) -> Array:
    """Return the observation of a group, (k,), as scaled.

    Args:
        terms: Name -> part. s: The state. group: Name of the group, for messages.
        random: Random numbers of the noise; None for no noise.
    """
    parts = []
    for name, term in terms.items():
        value = as_vector([*np.atleast_1d(called(f"observation {group}.{name}", term.function, s))])
        if random is not None and np.any(term.noise):
            value = value + random.uniform(-1.0, 1.0, len(value)) * term.noise
        parts.append(np.minimum(np.maximum(value * term.scale, -term.limit), term.limit))
    return np.concatenate(parts)


def called(what: str, function: Callable[[State], Any], s: State) -> Any:
    """Return the result of a function of a task; errors name it.

    Args:
        what: The function in words. function: The function. s: The state.
    """
    try:
        with stage(what):
            return function(s)
    except Exception as error:
        error.add_note(f"This is in the {what} of the task.")
        raise
