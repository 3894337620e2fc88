"""Where each joint's entries of q and v begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from legged.errors import DefinitionError, UnknownNameError
from legged.robot.base import Base
from legged.robot.coupling import Coupling
from legged.robot.joint import Joint


def numbered(
    base: Base, joints: Sequence[Joint], order: Sequence[str] | None, couplings: Mapping[str, Coupling]
) -> dict[str, tuple[int, int]]:
    """Return joint name -> (its first entry of q, of v); a follower has its master's.

    Args:
        base: Its entries come first.
        joints: The joints that move, module by module, parent before child: their order when `order` is None.
        order: Names of all joints that move and follow no other.
        couplings: By the name of the follower.

    Raises:
        UnknownNameError, DefinitionError: for an order that has not each of these names once.
    """
    free = {joint.name: joint for joint in joints if joint.name not in couplings}
    names = list(free) if order is None else _checked(order, free, couplings)
    entries, nq, nv = {}, base.nq, base.nv
    for name in names:
        entries[name] = nq, nv
        nq, nv = nq + free[name].nq, nv + free[name].nv
    return entries | {name: entries[c.master] for name, c in couplings.items()}


def _checked(order: Sequence[str], free: Mapping[str, Joint], couplings: Mapping[str, Coupling]) -> list[str]:
    if isinstance(order, str):
        raise DefinitionError(f"order must be a list of names of joints, got the text {order!r}")
    for name in order:
        if name in couplings:
            raise DefinitionError(
                f"joint {name!r} follows {couplings[name].master!r} and has no entry of its own: leave it out of order"
            )
        if name not in free:
            raise UnknownNameError("joint that moves", name, free)
        if list(order).count(name) > 1:
            raise DefinitionError(f"joint {name!r} stands in order twice")
    missing = [name for name in free if name not in order]
    if missing:
        raise DefinitionError(f"order must name every joint that moves; it lacks {', '.join(map(repr, missing))}")
    return list(order)
