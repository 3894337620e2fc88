"""Kinematic modules: the partition of a robot's links by the paper's rules (section 2).

A module contains only serial links; it emerges from the last link of its parent module; a child bears a higher number
than its parent; M_0 is the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from legged.errors import ModuleError, UnknownNameError
from legged.spatial import Array


@dataclass(frozen=True, eq=False)
class Module:
    """A serial run of bodies.

    Attributes:
        index, parent: Module numbers; the base module M_0 has parent -1.
        bodies: Indices into `robot.bodies`, parent before child.
        links: Names of the links it holds.
        v: Where its bodies' joint rates stand in v, body by body, (module's DoF,); joints that follow others have
            these's places.
        kind: What its joints are, in order; modules of one kind repeat each other's computations.
    """

    index: int
    parent: int
    bodies: tuple[int, ...]
    links: tuple[str, ...]
    v: Array
    kind: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"M{self.index}"


def find_modules(root: str, children: dict[str, list[str]]) -> list[list[str]]:
    """Return the longest serial runs of names, depth first, the root's first and alone.

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
    """Return the user's partition, base first, or raise ModuleError telling which rule it breaks.

    Args:
        given: Modules as lists of link names; the base's own module [root] may be left out.
    """
    modules = [list(module) for module in given]
    if not modules or root not in modules[0]:
        modules.insert(0, [root])
    if modules[0] != [root]:
        raise ModuleError(f"the first module is the base alone, [{root!r}], got {modules[0]}")
    parent = {child: name for name, kids in children.items() for child in kids}
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
        raise ModuleError(f"no module holds link {missing[0]!r}; every link belongs to one")
    for number, module in enumerate(modules[1:], start=1):
        _check_serial(number, module, parent)
        _check_parent(number, parent[module[0]], owner, modules)
    return modules


def _check_serial(number: int, module: list[str], parent: dict[str, str]) -> None:
    for before, name in pairwise(module):
        if parent.get(name) != before:
            raise ModuleError(
                f"module {number} is not serial: {name!r} follows {before!r} in it, but hangs on {parent.get(name)!r}"
            )


def _check_parent(number: int, root: str, owner: dict[str, int], modules: list[list[str]]) -> None:
    above = owner[root]
    if above >= number:
        raise ModuleError(
            f"module {number} hangs on module {above}: a child must bear a higher number than its parent, reorder them"
        )
    if modules[above][-1] != root:
        raise ModuleError(
            f"module {number} emerges from {root!r}, the middle of module {above}; it must emerge from its last link "
            f"{modules[above][-1]!r}, so end module {above} at {root!r}"
        )
