"""Checks of the parameters of a robot: values that no robot can have raise an error."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from legged.errors import DefinitionError, InertiaError, NotFiniteError
from legged.robot.joint import Joint
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.spatial import Array

LARGEST = np.finfo(float).max
"""Largest value of all parameters: the largest number that is finite."""
_NOT_NEGATIVE = (
    *("mass", "damping", "friction", "armature", "rotor_inertia", "stiffness"),
    *("effort", "stop_stiffness", "restitution"),
)
LEAST = dict.fromkeys(_NOT_NEGATIVE, 0.0) | {"speed": np.nextafter(0.0, 1.0)}
"""Smallest values of parameters that have a range, by the last part of their names."""
_TOLERANCE = 1e-9  # relative, of inertia tensors, as in `Inertia`


def check_parameters(robot: Robot, values: Mapping[str, Array]) -> None:
    """Raise an error if a robot with these parameters could not be built. Traced values are not checked.

    A motion without inertia is not found here: the dynamics of such a robot raise SingularError.

    Args:
        robot: The robot. values: Name of a parameter -> values, (..., *shape), mixed units and frames; the
            leading axes broadcast.

    Raises:
        NotFiniteError: For a value that is not finite.
        InertiaError: For physically impossible inertial parameters.
        DefinitionError: For joint physics out of range.
    """
    plain = {name: value for name, value in values.items() if value.dtype != object}
    traced = values.keys() - plain.keys()
    for name, value in plain.items():
        if (wrong := ~np.isfinite(value)).any():
            raise NotFiniteError(f"{name} must be finite, got {value[wrong][0]}{_where(wrong)}")
        _check_range(name, value)
    for link in robot.links:
        _check_inertia(link, plain, traced)
    for connection in robot.connections:
        _check_stops(connection.joint, plain, traced)


def _check_stops(joint: Joint, plain: Mapping[str, Array], traced: Set[str]) -> None:
    """Check that the lower stop of a joint is below the upper one, if one of them changes and none is traced."""
    names = f"{joint.name}.lower", f"{joint.name}.upper"
    if not plain.keys() & names or traced & {*names}:
        return
    present = joint.physics.lower, joint.physics.upper
    lower, upper = (plain.get(name, np.asarray(x)) for name, x in zip(names, present, strict=True))
    if (wrong := lower > upper).any():
        raise DefinitionError(f"{names[0]} lies above {names[1]}{_where(wrong)}")


def _check_range(name: str, value: Array) -> None:
    """Check a value against `LEAST`, and that a coefficient of restitution is at most 1."""
    field = name.rpartition(".")[2]
    if (wrong := value < LEAST.get(field, -LARGEST)).any():
        error = InertiaError if field == "mass" else DefinitionError
        words = "be positive" if field == "speed" else "not be negative"
        raise error(f"{name} must {words}, got {value.min():.6g}{_where(wrong)}")
    if field == "restitution" and (wrong := value > 1.0).any():
        raise DefinitionError(f"{name} must lie between 0 and 1, got {value.max():.6g}{_where(wrong)}")


def _check_inertia(link: PlacedLink, plain: Mapping[str, Array], traced: Set[str]) -> None:
    """Check an inertia tensor that changes, and that a link without mass has none."""
    name, name_of_mass = f"{link.name}.tensor", f"{link.name}.mass"
    if name not in plain:
        return
    tensor = plain[name]
    largest = np.abs(tensor).max(axis=(-2, -1))
    scale = np.maximum(largest, np.finfo(float).tiny)
    if (wrong := np.abs(tensor - tensor.swapaxes(-1, -2)).max(axis=(-2, -1)) > _TOLERANCE * scale).any():
        raise InertiaError(f"{name} is not symmetric{_where(wrong)}")
    a, b, c = np.moveaxis(np.linalg.eigvalsh(tensor), -1, 0)  # principal inertias, the smallest first
    if (wrong := a < -_TOLERANCE * scale).any():
        raise InertiaError(f"{name} is not positive definite; no body has this{_where(wrong)}")
    if (wrong := c > (a + b) * (1.0 + _TOLERANCE)).any():
        raise InertiaError(f"the largest principal inertia of {name} exceeds the sum of the others{_where(wrong)}")
    if name_of_mass in traced:
        return
    mass = plain.get(name_of_mass, np.asarray(link.inertia.mass))
    if (wrong := (mass == 0.0) & (largest > 0)).any():
        raise InertiaError(f"{name} of a link without mass must be zero; give it a mass{_where(wrong)}")


def _where(wrong: Array) -> str:
    """Return the place of the first wrong entry of a batch in words, "" for a single value."""
    return f" (entry {', '.join(map(str, np.argwhere(wrong)[0].tolist()))})" if wrong.ndim else ""
