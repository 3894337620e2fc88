"""Legs of other lengths: the parameters of a robot for `legged.rollout`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import legged
from legged.spatial import Array


def scaled_legs(
    robot: legged.Robot, legs: Sequence[tuple[str, str, str, str]], thigh: Array, shank: Array
) -> dict[str, Array]:
    """Return the parameters of legs with other lengths, name -> (B, ...), with the same mass per length.

    Masses scale with the length of a link, centers of mass with it, and moments of inertia with its cube.

    Args:
        robot: The robot. legs: For each leg the names of thigh, shank and knee, and the parameter that holds the end of
            the shank, (3,), [m], link axes. thigh, shank: Lengths, (B,), [m].
    """
    known, values = robot.parameters(), dict[str, Array]()
    for upper, lower, knee, end in legs:
        for link, tip, lengths in ((upper, f"{knee}.at", thigh), (lower, end, shank)):
            place = np.asarray(known[tip], float)
            ratio = lengths / np.linalg.norm(place)
            values[f"robot.{tip}"] = ratio[:, None] * place
            values[f"robot.{link}.mass"] = ratio * float(known[f"{link}.mass"])
            values[f"robot.{link}.center"] = ratio[:, None] * np.asarray(known[f"{link}.center"], float)
            tensor = np.asarray(known[f"{link}.tensor"], float)
            values[f"robot.{link}.tensor"] = (ratio**3)[:, None, None] * tensor
    return values
