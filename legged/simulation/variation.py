"""What differs between the members of a rollout: named fields of controller, gait, ground, pushes and free bodies."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from legged.contact.rigid import FreeBody, Rigid
from legged.errors import DefinitionError, LeggedError, NotFiniteError, ShapeError, UnknownNameError
from legged.ground.ground import Ground
from legged.simulation.disturbance import Push

Array = np.ndarray


class Setting(NamedTuple):
    """What one member runs with."""

    controller: Any
    ground: Ground | Rigid | None
    pushes: tuple[Push, ...]
    bodies: tuple[FreeBody, ...] = ()


@dataclass(frozen=True, eq=False)
class Variation:
    """The settings of all members.

    Attributes:
        given: What all have in common.
        values: Name of a field -> its value for each member, (B, ...).
        count: B.
    """

    given: Setting
    values: dict[str, Array]
    count: int

    @classmethod
    def of(cls, given: Setting, vary: Mapping[str, Any], states: Mapping[str, tuple[Any, int]]) -> Variation:
        """Return the settings for `vary`, after checking names and shapes.

        Args:
            given: What all have in common.
            vary: Name of a field, such as "gait.stride" -> (B, ...), its value for each member.
            states: "q", "v" -> (what was given for it, its length), which may tell B as well.

        Raises:
            UnknownNameError: There is no such field. ShapeError: Numbers of members or shapes of values do not fit.
            NotFiniteError: A value is NaN or infinite. DefinitionError: The field holds something else than numbers.
        """
        values = {name: _checked(name, value, _find(given, name)) for name, value in vary.items()}
        counts = {name: len(value) for name, value in values.items()}
        for name, (array, size) in states.items():
            shape = np.shape(array)
            if array is not None and (len(shape) not in (1, 2) or shape[-1] != size):
                raise ShapeError(f"{name} must be ({size},), or (B, {size}) with a row per member, got shape {shape}")
            if len(shape) == 2:
                counts[name] = shape[0]
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name} {n}" for name, n in counts.items())
            raise ShapeError(f"all that varies must have one entry per member; numbers of entries: {told}")
        if 0 in counts.values():
            raise ShapeError(f"a rollout needs at least one member, got none for {', '.join(counts)}")
        return cls(given, values, next(iter(counts.values()), 1))

    def member(self, i: int) -> Setting:
        """Return what member i runs with, made by the fields' own classes, which check their values."""
        setting = self.given
        for name, values in self.values.items():
            value = values[i].tolist() if values.ndim == 1 else tuple(map(float, values[i]))
            try:
                setting = _placed(setting, _path(name), value if values.ndim <= 2 else values[i].copy())
            except LeggedError as error:
                error.add_note(f"This is for {name!r} of member {i}.")
                raise
        return setting

    def key(self, i: int) -> bytes:
        """Return bytes that are the same for members that differ in nothing but pushes and free bodies."""
        own = (values for name, values in self.values.items() if name.split(".")[0] not in ("pushes", "bodies"))
        return b"".join(values[i].tobytes() for values in own)


def _path(name: str) -> list[str]:
    """Return the places along a name; a gait is the controller's."""
    parts = name.split(".")
    return ["controller", *parts] if parts[0] == "gait" else parts


def _find(setting: Setting, name: str) -> Any:
    """Return what is at a name."""
    found, seen = setting, []
    for part in _path(name):
        known = _known(found)
        if part not in known:
            if not seen:
                raise UnknownNameError("part of a rollout", part, [*setting._fields, "gait"])
            raise UnknownNameError(f"field of {'.'.join(seen)} ({_kind(found)})", part, known)
        found = found[int(part)] if isinstance(found, tuple | list) and part.isdecimal() else getattr(found, part)
        seen.append(part)
    return found


def _kind(x: Any) -> str:
    return "nothing" if x is None else type(x).__name__


def _known(x: Any) -> list[str]:
    if isinstance(x, Setting):
        return list(x._fields)
    if isinstance(x, tuple | list):
        return [str(i) for i in range(len(x))]
    if is_dataclass(x):
        return [f.name for f in fields(x) if f.init and not f.name.startswith("_")]
    return [name for name in getattr(x, "__dict__", {}) if not name.startswith("_")]


def _checked(name: str, value: Any, present: Any) -> Array:
    """Return the values of a field as floats, (B, *shape of the field)."""
    try:
        shape = np.asarray(present, dtype=float).shape
        if present is None:
            raise TypeError
    except (TypeError, ValueError):
        raise DefinitionError(
            f"{name!r} cannot vary: it holds {present!r}, not a number or numbers; give it a number first"
        ) from None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ShapeError(f"{name!r} must hold real numbers: {error}") from None
    if array.ndim == 0 or array.shape[1:] != shape:
        wanted = f"(B, {', '.join(map(str, shape))})" if shape else "(B,)"
        raise ShapeError(f"{name!r} must be {wanted}, a value per member, got shape {array.shape}")
    if not np.isfinite(array).all():
        worst = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise NotFiniteError(f"{name!r} must be finite, got {array[worst]} for member {worst}")
    return array


def _placed(x: Any, path: list[str], value: Any) -> Any:
    """Return x with a value at the end of a path, everything along it made anew."""
    if not path:
        return value
    name, rest = path[0], path[1:]
    if isinstance(x, tuple | list) and not hasattr(x, "_fields"):
        i = int(name)
        return type(x)([_placed(part, rest, value) if k == i else part for k, part in enumerate(x)])
    part = _placed(getattr(x, name), rest, value)
    if isinstance(x, Setting):
        return x._replace(**{name: part})
    if is_dataclass(x) and not isinstance(x, type):
        return replace(x, **{name: part})
    made = copy.copy(x)
    setattr(made, name, part)
    return made
