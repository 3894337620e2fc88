"""Materials of surfaces: coefficients of friction and restitution, with a name for tables of pairs."""

from __future__ import annotations

from dataclasses import dataclass

from legged.arguments import number, text
from legged.checked import checked
from legged.errors import DefinitionError


@checked
@dataclass(frozen=True)
class Material:
    """The material of a surface, for contact on rigid ground; see `legged.contact.Rigid.combination`.

    Attributes:
        name: For tables of pairs of materials, such as "rubber".
        friction: Coulomb friction coefficient mu on a surface of the same material.
        restitution: Newton's coefficient of restitution, from 0 to 1, on a surface of the same material.
        priority: Of two materials the one with the higher priority determines the coefficients, as in MJCF; for equal
            priorities they are combined. The ground has priority 0.
    """

    name: str
    friction: float
    restitution: float = 0.0
    priority: int = 0

    def __post_init__(self) -> None:
        if not text("the name of a material", self.name):
            raise DefinitionError("a material needs a name")
        for key, value in coefficients(f"material {self.name!r}", self.friction, self.restitution).items():
            object.__setattr__(self, key, value)


def coefficients(what: str, friction: float, restitution: float) -> dict[str, float]:
    """Return friction and restitution as floats by name, or raise an error if they are out of range.

    Args:
        what: Name of the surface in messages. friction: Coefficient mu. restitution: From 0 to 1.
    """
    return {
        "friction": number(f"friction of {what}", friction, least=0.0),
        "restitution": number(f"restitution of {what}", restitution, least=0.0, most=1.0),
    }
