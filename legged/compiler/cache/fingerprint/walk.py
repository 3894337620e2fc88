"""The way from thing to thing."""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from legged.compiler.cache.fingerprint import known

_Named = tuple[int, str, Any, bool]
"""What has a name: the place of its owner among the things met, the name, what it is, whether the owner is a module."""

PLAIN: dict[type, Callable[[Any], str]] = {
    int: "int {:x}".format,
    **{kind: f"{kind.__name__} {{!r}}".format for kind in (float, complex, str, bytes, bool, range)},
    **{type(x): "{!r}".format for x in (None, ..., NotImplemented)},
}
"""What is all said in a line, and how."""


FOREIGN = "foreign "
"""Put before names that only count in code that is not this project's."""


class Walk:
    """One way through everything that can be reached; what is met twice is described once.

    Modules and classes are read as far as what is in them is named: in code that was found, or by a string anywhere.

    Attributes:
        lines: The description.
        kinds: How to describe things, by their class; `other` describes the rest.
        names: Every name in the code that was found, and every string.
        waiting: What modules, classes and objects hold under names not met so far.
        named: What is to be described.
        modules: Modules were found that are not known.
        looks_up: Things are looked up under names that the code does not spell out.
        cache: Room for what is worked out about classes.
    """

    def __init__(self, kinds: Mapping[type, Callable[[Walk, Any], None]], other: Callable[[Walk, Any], None]) -> None:
        self.kinds, self.other = kinds, other
        self.lines: list[str] = []
        self.places: dict[int, int] = {}
        self.met: list[Any] = []  # kept, so that no id is used again
        self.names: set[str] = set()
        self.waiting: dict[str, list[_Named]] = {}
        self.named: deque[_Named] = deque()
        self.modules = self.looks_up = False
        self.cache: dict[type, Any] = {}

    def visit(self, x: Any) -> None:
        """Describe a thing and what it leads to."""
        kind = type(x)
        if kind in PLAIN:
            self.lines.append(PLAIN[kind](x))
            if kind is str:
                self.name((x,))
        elif id(x) in self.places:
            self.lines.append(f"again {self.places[id(x)]}")
        else:
            self.places[id(x)] = len(self.met)
            self.met.append(x)
            self.kinds.get(kind, self.other)(self, x)

    def several(self, what: str, things: Iterable[Any]) -> None:
        """Describe things one after the other."""
        self.lines.append(what)
        for thing in things:
            self.visit(thing)
        self.lines.append("end")

    def read(self, x: Any) -> None:
        """Describe a thing, a module as far as it is named."""
        if not isinstance(x, types.ModuleType) or id(x) in self.places:
            self.visit(x)
            return
        self.lines.append(f"module {x.__name__}")
        self.places[id(x)] = len(self.met)
        self.met.append(x)
        self.modules |= not known.is_known(x.__name__)
        foreign = known.is_known(x.__name__)
        for name, value in vars(x).items():
            word = FOREIGN + name if foreign and name in known.DOUBTFUL else name
            self.offer(x, word, value, name in ("__getattr__", "__version__"))

    def name(self, names: Iterable[str]) -> None:
        """Take note of names."""
        new = [name for name in names if name not in self.names]
        self.names.update(new)
        for name in new:
            self.named.extend(self.waiting.pop(name, ()))

    def offer(self, owner: Any, name: str, value: Any, now: bool = False) -> None:
        """Describe later what a thing has under a name: in any case, or if that name is met."""
        entry = self.places[id(owner)], name, value, isinstance(owner, types.ModuleType)
        if now or name in self.names:
            self.named.append(entry)
        else:
            self.waiting.setdefault(name, []).append(entry)

    def read_named(self) -> None:
        """Describe everything that was offered and is named."""
        while self.named:
            place, name, value, _ = self.named.popleft()
            self.lines.append(f"{place}.{name}")
            met = len(self.met)
            try:
                self.read(value)
            except known.Unknown:
                if not known.is_ours(self.met[place]):
                    raise
                self.forget(met)
            if self.looks_up and not self.named:
                if self.modules:
                    raise known.Unknown("names in modules that are made while the function runs")
                waiting, self.waiting = self.waiting, {}
                self.named.extend(entry for entries in waiting.values() for entry in entries if not entry[3])

    def forget(self, met: int) -> None:
        """Take it that what was met since may be met again, and is described then."""
        self.lines.append("ours")
        for thing in self.met[met:]:
            self.places.pop(id(thing), None)
