"""What joints of ours have and URDF has no word for: an element <physics> in <joint>, which other readers pass over.

    <physics armature="0.01" stiffness="5" rest="0.2" rotor_inertia="1e-5" gear="9" gyroscopic="true"/>

Each is one number, or one for each degree of freedom; SI units, as in `JointPhysics`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.errors import DefinitionError, FileError
from legged.files.schema import LARGEST
from legged.robot.physics import JointPhysics, Rotor

FIELDS = ("damping", "friction", "armature", "stiffness", "rest", "effort", "speed")
_IN_URDF = ("damping", "friction", "effort", "speed")
ROTOR = ("rotor_inertia", "gear")
_NUMBERS = (*FIELDS, *ROTOR)


def beyond_urdf(physics: JointPhysics) -> dict[str, str]:
    """Return the attributes of <physics>: what <dynamics> and <limit> cannot hold."""
    found = {}
    for field in FIELDS:
        value = np.asarray(getattr(physics, field))
        fits = field in _IN_URDF and uniform(value) is not None
        if value.any() and not fits:
            found[field] = words(value)
    if physics.rotor is not None:
        rotor = physics.rotor
        found |= {"rotor_inertia": repr(float(rotor.inertia)), "gear": repr(float(rotor.gear))}
        found |= {"gyroscopic": "true"} if rotor.gyroscopic else {}
    return found


def uniform(value: Any) -> float | None:
    """Return the one number that all entries are, or None."""
    value = np.asarray(value, float)
    return float(value.flat[0]) if value.size and np.all(value == value.flat[0]) else None


def words(numbers: Any) -> str:
    """Return numbers as text that reads back to the last digit; all alike as one."""
    one = uniform(numbers)
    return " ".join(repr(float(x) + 0.0) for x in ([one] if one is not None else np.asarray(numbers)))


def read_beyond(root: Any, source: str) -> dict[str, dict[str, Any]]:
    """Return the fields of `JointPhysics` that the <physics> elements of a URDF (lxml) hold, by name of joint.

    Raises:
        FileError: for what is no field, no number, or a value that no joint has.
    """
    found = {}
    for element in root.iterfind("joint/physics"):
        where = f"<physics> of joint {element.getparent().get('name')!r} (line {element.sourceline})"
        known = (*_NUMBERS, "gyroscopic")
        unknown = sorted(set(element.attrib) - set(known))
        if unknown:
            raise FileError(source, f"{where} has {unknown}; it may have {', '.join(known)}")
        given = {name: _numbers(name, text, where, source) for name, text in element.attrib.items() if name in _NUMBERS}
        try:
            fields: dict[str, Any] = {name: value for name, value in given.items() if name in FIELDS}
            if "rotor_inertia" in given:
                is_gyroscopic = element.get("gyroscopic") == "true"
                fields["rotor"] = Rotor(given["rotor_inertia"], given.get("gear", 1.0), is_gyroscopic)
            JointPhysics(**fields)
        except DefinitionError as error:
            raise FileError(source, f"{where}: {error}") from error
        found[element.getparent().get("name")] = fields
    return found


def _numbers(name: str, text: str, where: str, source: str) -> Any:
    """Return one number, or an array of several where the field may have them."""
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    too_large = name not in ("effort", "speed") and np.abs(values).max(initial=0.0) > LARGEST
    if not values.size or too_large or (name in ROTOR and values.size > 1):
        raise FileError(
            source, f"{name!r} of {where} must be a number (or numbers) of at most {LARGEST:g}, got {text!r}"
        )
    return float(values[0]) if values.size == 1 else values
