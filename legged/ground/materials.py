"""Coefficients between two surfaces from their materials: one rule for rigid and compliant ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.arguments import known_name
from legged.checked import checked
from legged.compiler.ir import where
from legged.errors import DefinitionError
from legged.robot.shapes import Material, coefficients


def _harmonic_mean(a: Any, b: Any) -> Any:
    total = a + b
    return where(total > 0.0, 2.0 * a * b / where(total > 0.0, total, 1.0), 0.0)


COMBINATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": np.maximum,
    "minimum": np.minimum,
    "harmonic mean": _harmonic_mean,
    "declared": np.maximum,
}
"""Coefficient of two surfaces from those of both: as in MuJoCo, in Gazebo with ODE, and in Drake. With "declared", the
default, a `Material` that one surface declares determines its contacts with surfaces that declare none, whose
coefficients are a default for them; two that declare one have the larger coefficient. So a sole of ice slides on any
ground, and one of rubber sticks, without further arguments."""


@checked
@dataclass(frozen=True)
class MaterialPair:
    """Coefficients between the surfaces of two materials.

    Attributes:
        first, second: Names of the materials, see `Material.name` and `Rigid.material`; they may be equal.
        friction: Coulomb friction coefficient mu.
        restitution: Newton's coefficient of restitution, from 0 to 1.
    """

    first: str
    second: str
    friction: float
    restitution: float = 0.0

    def __post_init__(self) -> None:
        what = f"the materials {self.first!r} and {self.second!r}"
        for key, value in coefficients(what, self.friction, self.restitution).items():
            object.__setattr__(self, key, value)


def check_rule(combination: str, pairs: Sequence[MaterialPair]) -> None:
    """Raise an error for a rule of combination that does not exist, or a pair of materials that occurs twice.

    Args:
        combination: A key of `COMBINATIONS`. pairs: Coefficients of pairs of materials.
    """
    known_name("combination", combination, COMBINATIONS)
    names = [frozenset((pair.first, pair.second)) for pair in pairs]
    if len(set(names)) < len(names):
        raise DefinitionError("a pair of materials occurs twice in material_pairs; state each pair once")


def pair_coefficients(
    ground: Any, own: tuple[Any, Any], first: Material | None, second: Material | None
) -> tuple[Any, Any]:
    """Return the coefficients of friction and of restitution between two surfaces.

    Those of a pair in `material_pairs`, otherwise those of the material with the higher priority, otherwise of equal
    materials their own, and of different ones both combined, see `COMBINATIONS`.

    Args:
        ground: The ground, with `material`, `combination` and `material_pairs` as in `legged.Rigid`.
        own: Coefficients of friction and of restitution of the ground.
        first, second: The materials; None for that of the ground.
    """
    names = {ground.material if one is None else one.name for one in (first, second)}
    for pair in ground.material_pairs:
        if {pair.first, pair.second} == names:
            return pair.friction, pair.restitution
    one, other = (
        own if material is None else (material.friction, material.restitution) for material in (first, second)
    )
    higher, lower = (0 if material is None else material.priority for material in (first, second))
    if higher != lower or first is second:
        return one if higher >= lower else other
    if ground.combination == "declared" and (first is None or second is None):
        return other if first is None else one
    friction, restitution = (COMBINATIONS[ground.combination](a, b) for a, b in zip(one, other, strict=True))
    return friction, restitution
