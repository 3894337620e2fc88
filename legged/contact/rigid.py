"""`Rigid`: a ground that does not give."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from legged.errors import DefinitionError
from legged.ground.terrain import Flat, Terrain


@dataclass(frozen=True)
class Rigid:
    """A ground, and surfaces of bodies, that do not give: impacts, resting contact and Coulomb friction as impulses.

    It stands where a `legged.ground.Ground` does. What of a scene touches what, and the law, are in `docs/contact.md`.

    Attributes:
        friction: Coulomb's mu.
        restitution: Speed of parting over speed of approach, from 0 to 1.
        terrain: Where the surface is.
        sweeps: Rounds of the solver over all contacts, a fixed number; with restitution two or more.
        threshold: Speed of approach below which nothing bounces, [m/s].
        recovery: Greatest speed at which bodies that overlap are parted, [m/s].
        pairs: Names of what may touch, two by two: links, free bodies, "terrain"; None for what is usual, see
            `legged.contact.scene`.
    """

    friction: float = 0.8
    restitution: float = 0.0
    terrain: Terrain = field(default_factory=Flat)
    sweeps: int = 10
    threshold: float = 0.05
    recovery: float = 0.05
    pairs: tuple[tuple[str, str], ...] | None = None

    def __post_init__(self) -> None:
        for name in ("friction", "restitution", "threshold", "recovery"):
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("friction", "threshold", "recovery"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise DefinitionError(f"the {name} of a rigid ground must be finite and not negative, got {value}")
        if not 0.0 <= self.restitution <= 1.0:
            raise DefinitionError(f"the restitution of a rigid ground must lie between 0 and 1, got {self.restitution}")
        if int(self.sweeps) != self.sweeps or self.sweeps < 1:
            raise DefinitionError(f"the solver needs a whole number of sweeps, 1 or more, got {self.sweeps}")
        for pair in self.pairs or ():
            if isinstance(pair, str) or len(pair) != 2:
                raise DefinitionError(f"pairs must be two names each, as (('foot', 'terrain'),), got {pair!r}")

    def __str__(self) -> str:
        law = f"mu = {self.friction:g}, restitution {self.restitution:g}, {self.sweeps} sweeps"
        return f"rigid ground: {self.terrain}\n  {law}"

    def describe(self) -> str:
        """Return the terrain and the law in a few lines."""
        return str(self)
