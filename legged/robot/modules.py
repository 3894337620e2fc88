"""Kinematic modules and the order of the joint coordinates.

The rules of the partition into modules (Shah, Saha, Dutt 2012, section 2): a module contains only serial links; it
starts from the last link of its parent module; a child has a higher number than its parent; M_0 is the base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from legged.errors import DefinitionError, ModuleError, UnknownNameError
from legged.robot.base import Base
from legged.robot.joint import Coupling, Joint
from legged.spatial import Array

COLORS = ("#2f6db5", "#3f9a86", "#7a62b8", "#b08a1e", "#5b7f3a", "#a3567e")
"""Colors of the modules M_1, M_2, ... in pictures, which repeat."""


@dataclass(frozen=True, eq=False)
class Module:
    """A serial chain of bodies.

    Attributes:
        index, parent: Module numbers; the base module M_0 has parent -1.
        bodies: Indices into `robot.bodies`, parent before child.
        links: Names of its links.
        v: Indices into v of its bodies' joint rates, body by body, (module's DoF,); a coupled joint has the index of
            its master.
        kind: Kinds of its joints, in order; modules of one kind have the same equations.
    """

    index: int
    parent: int
    bodies: tuple[int, ...]
    links: tuple[str, ...]
    v: Array
    kind: tuple[str, ...]

    @property
    def name(self) -> str:
        """The module's name in the paper, "M2"."""
        return f"M{self.index}"


def find_modules(root: str, children: dict[str, list[str]]) -> list[list[str]]:
    """Return the partition into the longest serial chains of links, depth first, the root alone in the first.

    Args:
        root: The base's name.
        children: Name -> names of its children.
    """
    modules = [[root]]
    waiting = children[root][::-1]
    while waiting:
        run = [waiting.pop()]
        while len(children[run[-1]]) == 1:
            run.append(children[run[-1]][0])
        modules.append(run)
        waiting += children[run[-1]][::-1]
    return modules


def check_modules(given: Sequence[Sequence[str]], root: str, children: dict[str, list[str]]) -> list[list[str]]:
    """Return the user's partition, base first, or raise ModuleError with the rule that it violates.

    Args:
        given: Modules as lists of link names; the base's own module [root] may be omitted.
        root: The base's name.
        children: Name -> names of its children.
    """
    modules = [list(module) for module in given]
    if not modules or root not in modules[0]:
        modules.insert(0, [root])
    if modules[0] != [root]:
        raise ModuleError(f"the first module is the base alone, [{root!r}], got {modules[0]}")
    parent = {child: name for name, names in children.items() for child in names}
    owner: dict[str, int] = {}
    for number, module in enumerate(modules):
        if not module:
            raise ModuleError(f"module {number} is empty")
        for name in module:
            if name not in children:
                raise UnknownNameError("link", name, children)
            if name in owner:
                raise ModuleError(f"link {name!r} is in module {owner[name]} and in module {number}; it must be in one")
            owner[name] = number
    missing = [name for name in children if name not in owner]
    if missing:
        raise ModuleError(f"no module contains link {missing[0]!r}; every link belongs to one")
    for number, module in enumerate(modules[1:], start=1):
        _check_serial(number, module, parent)
        _check_parent(number, parent[module[0]], owner, modules)
    return modules


def _check_serial(number: int, module: list[str], parent: dict[str, str]) -> None:
    for before, name in pairwise(module):
        if parent.get(name) != before:
            raise ModuleError(
                f"module {number} is not serial: {name!r} follows {before!r} in it, but its parent is "
                f"{parent.get(name)!r}"
            )


def _check_parent(number: int, root: str, owner: dict[str, int], modules: list[list[str]]) -> None:
    above = owner[root]
    if above >= number:
        raise ModuleError(
            f"the parent of module {number} is module {above}: a child must have a higher number than its parent, "
            f"reorder them"
        )
    if modules[above][-1] != root:
        raise ModuleError(
            f"module {number} emerges from {root!r}, the middle of module {above}; it must emerge from its last link "
            f"{modules[above][-1]!r}, so end module {above} at {root!r}"
        )


def resolve_couplings(couplings: Sequence[Coupling], joints: Mapping[str, Joint]) -> dict[str, Coupling]:
    """Return for each follower its coupling to the joint at the end of its chain of couplings.

    Args:
        couplings: As defined, one for each follower. joints: All joints by name.

    Raises:
        UnknownNameError: For an unknown joint.
        DefinitionError: For a joint without exactly one degree of freedom, or in a cycle.
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
        given[c.follower] = c
    return {name: _to_the_end(c, given) for name, c in given.items()}


def _to_the_end(c: Coupling, given: Mapping[str, Coupling]) -> Coupling:
    seen = {c.follower}
    while c.master in given:
        if c.master in seen:
            raise DefinitionError(f"the joints {', '.join(sorted(seen))} are coupled in a cycle")
        seen.add(c.master)
        above = given[c.master]
        c = Coupling(c.follower, above.master, c.ratio * above.ratio, c.ratio * above.offset + c.offset)
    return c


def first_entries(
    base: Base, joints: Sequence[Joint], order: Sequence[str] | None, couplings: Mapping[str, Coupling]
) -> dict[str, tuple[int, int]]:
    """Return joint name -> (index of its first entry in q, in v); a coupled joint has its master's.

    Args:
        base: Its entries come first.
        joints: The moving joints, module by module, parent before child, which is their order if `order` is None.
        order: Names of all moving joints that are not coupled to another.
        couplings: By the name of the follower.

    Raises:
        UnknownNameError, DefinitionError: For an order that does not contain each of these names once.
    """
    free = {joint.name: joint for joint in joints if joint.name not in couplings}
    names = list(free) if order is None else _checked_order(order, free, couplings)
    entries, nq, nv = {}, base.nq, base.nv
    for name in names:
        entries[name] = nq, nv
        nq, nv = nq + free[name].nq, nv + free[name].nv
    return entries | {name: entries[c.master] for name, c in couplings.items()}


def _checked_order(order: Sequence[str], free: Mapping[str, Joint], couplings: Mapping[str, Coupling]) -> list[str]:
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
            raise DefinitionError(f"joint {name!r} is in order twice")
    missing = [name for name in free if name not in order]
    if missing:
        raise DefinitionError(f"order must name every joint that moves; it lacks {', '.join(map(repr, missing))}")
    return list(order)
