"""Rotors from a URDF's transmissions: the gear ratio, and the rotor's inertia where the file has it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from legged.errors import FileError
from legged.robot.physics import Rotor

RATIOS = ("mechanicalReduction", "mechanical_reduction", "gear_ratio")
INERTIAS = ("rotor_inertia", "rotorInertia", "motorInertia", "motor_inertia")


def rotors(root: Any, source: str) -> tuple[dict[str, Rotor], Counter[str]]:
    """Return the rotors of joints by name, and what was lost: transmissions without an inertia or of several joints.

    URDF knows a transmission's reduction but no rotor inertia. Files that have one write `rotor_inertia` (Drake's
    name) or `motorInertia` beside the reduction, in the text or as attribute `value`.
    """
    found: dict[str, Rotor] = {}
    lost: Counter[str] = Counter()
    names = {joint.get("name") for joint in root.findall("joint")}
    for element in root.findall("transmission"):
        joints = [joint.get("name") for joint in element.findall("joint")]
        inertia = _number(element, INERTIAS, source)
        if inertia is None:
            lost["<transmission> without rotor inertia"] += 1
        elif len(joints) != 1 or joints[0] not in names or joints[0] in found:
            lost["<transmission> of no joint, of several, or a second one of a joint"] += 1
        else:
            ratio = _number(element, RATIOS, source)
            if inertia < 0:
                raise FileError(source, f"the rotor of joint {joints[0]!r} has the inertia {inertia:g}; it is positive")
            found[joints[0]] = Rotor(inertia, 1.0 if ratio is None else ratio)
    return found, lost


def _number(transmission: Any, names: tuple[str, ...], source: str) -> float | None:
    for element in transmission.iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in names:
            text = element.get("value") or element.text or ""
            try:
                value = float(text)
            except ValueError:
                value = np.nan
            if not np.isfinite(value):
                raise FileError(
                    source, f"<{element.tag}> on line {element.sourceline} must be a finite number, got {text!r}"
                )
            return value
    return None
