"""Joints that follow others: belts, linkages, fingers that close together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from legged.errors import DefinitionError, UnknownNameError
from legged.robot.joint import Joint


@dataclass(frozen=True)
class Coupling:
    """One joint moves as another does, both of one degree of freedom: q_follower = ratio * q_master + offset.

    Attributes:
        follower, master: Names of joints.
        ratio: Of their rates; in the units of the two joints.
        offset: [rad] or [m].
    """

    follower: str
    master: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.ratio) and np.isfinite(self.offset)):
            raise DefinitionError(
                f"joint {self.follower!r} needs a finite ratio and offset, got {self.ratio} and {self.offset}"
            )
        if self.ratio == 0.0:
            raise DefinitionError(
                f"joint {self.follower!r} follows {self.master!r} with a ratio of zero: it does not move; use a fixed "
                f"joint"
            )

    def prefixed(self, prefix: str) -> Coupling:
        return replace(self, follower=prefix + self.follower, master=prefix + self.master)


def resolve(couplings: Sequence[Coupling], joints: Mapping[str, Joint]) -> dict[str, Coupling]:
    """Return each follower's coupling to the joint at the end of its chain, which follows none.

    Args:
        couplings: As given. joints: All joints by name.

    Raises:
        UnknownNameError: A joint is not there. DefinitionError: It has not one degree of freedom, follows two others,
            or follows itself around a cycle.
    """
    given: dict[str, Coupling] = {}
    for c in couplings:
        for name in (c.follower, c.master):
            if name not in joints:
                raise UnknownNameError("joint", name, joints)
            if joints[name].nv != 1:
                raise DefinitionError(
                    f"joint {name!r} has {joints[name].nv} degrees of freedom; only joints of one can be coupled"
                )
        if c.follower in given:
            raise DefinitionError(f"joint {c.follower!r} follows both {given[c.follower].master!r} and {c.master!r}")
        given[c.follower] = c
    return {name: _to_the_end(c, given) for name, c in given.items()}


def _to_the_end(c: Coupling, given: Mapping[str, Coupling]) -> Coupling:
    seen = {c.follower}
    while c.master in given:
        if c.master in seen:
            raise DefinitionError(f"the joints {', '.join(sorted(seen))} follow each other in a circle")
        seen.add(c.master)
        above = given[c.master]
        c = Coupling(c.follower, above.master, c.ratio * above.ratio, c.ratio * above.offset + c.offset)
    return c
