"""Data, classes, and their instances."""

from __future__ import annotations

import hashlib
import itertools
import types
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.cache.fingerprint import known
from legged.compiler.cache.fingerprint.known import Unknown
from legged.compiler.cache.fingerprint.walk import PLAIN, Walk

_DATA = (object, tuple, list, dict, int, float, str, types.SimpleNamespace)
"""What the instances of a class may be besides their attributes."""
_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
_ABOUT_CLASSES = frozenset(
    "__module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __annotate__ __annotate_func__ "  # noqa: SIM905
    "__annotations_cache__ __dataclass_params__ __firstlineno__ __static_attributes__ __parameters__ __orig_bases__ "
    "_abc_impl".split()
)
"""Entries of classes that no computation looks at."""
_QUIET = ("builtins", "abc", "enum", "typing", "types")
_NUMPY_CALLS = frozenset(dir(np.ndarray)) | {name for name, value in vars(np).items() if isinstance(value, np.ufunc)}


def other(walk: Walk, x: Any) -> None:
    """Describe what has no kind of its own: by its name, as a class, or as an instance of one."""
    if name := known.by_name(x):
        walk.lines.append(f"known {name}")
        walk.looks_up |= known.looks_up(name)
    elif isinstance(x, type):
        _class(walk, x)
    else:
        _instance(walk, x)


# Data


def _items(walk: Walk, x: Any) -> None:
    walk.several(type(x).__name__, x)


def _set(walk: Walk, x: Any) -> None:
    """Describe a set: its order changes from process to process, so what is in it must be plain."""
    if any(type(item) not in PLAIN for item in x):
        raise Unknown("a set of things that have no order")
    walk.several(type(x).__name__, sorted(map(repr, x)))


def _mapping(walk: Walk, x: Any) -> None:
    walk.several(type(x).__name__, itertools.chain.from_iterable(x.items()))


def _array(walk: Walk, x: np.ndarray) -> None:
    if x.dtype.hasobject:
        walk.several(f"objects {x.shape}", x.ravel().tolist())
        return
    content = x.tobytes()
    digest = content.hex() if len(content) < 512 else hashlib.sha256(content).hexdigest()
    kind = x.dtype.str if x.dtype.names is None else repr(x.dtype)
    walk.lines.append(f"array {kind} {x.shape} {digest}")


def _slice(walk: Walk, x: slice) -> None:
    walk.several("slice", (x.start, x.stop, x.step))


def _field(walk: Walk, x: Any) -> None:
    """Describe a field of a named tuple."""
    walk.several("field", x.__reduce__()[1])


def _descriptor(walk: Walk, x: Any) -> None:
    """Describe a method in another language, of a known class."""
    if not known.by_name(x.__objclass__):
        raise Unknown(f"{x.__objclass__.__qualname__}.{x.__name__}")
    walk.several(f"method {x.__name__}", (x.__objclass__,))


# Classes


def _class(walk: Walk, x: type) -> None:
    """Describe a class: its kind, its bases, and what is in it as far as it is named."""
    if not _is_python(x):
        raise Unknown(f"{x.__qualname__} is written in another language")
    walk.lines.append(f"class {x.__module__}.{x.__qualname__}")
    walk.visit(type(x))
    walk.several("bases", x.__bases__)
    calls_back = _calls_back(x)
    for name, value in vars(x).items():
        if name in ("__dataclass_fields__", "__match_args__"):
            walk.name(value)
        if name == "__dataclass_fields__":
            walk.several("metadata", [(key, field.metadata) for key, field in value.items() if field.metadata])
        elif name not in _ABOUT_CLASSES and type(value) is not types.MemberDescriptorType:
            walk.offer(x, name, value, calls_back or _is_called(name))


def _is_python(kind: type) -> bool:
    """Return whether a class was written in Python, so that its instances hold nothing but attributes."""
    return not any(
        isinstance(value, types.BuiltinFunctionType if name == "__new__" else (*_METHODS, types.GetSetDescriptorType))
        and name not in ("__dict__", "__weakref__")
        for name, value in vars(kind).items()
        if getattr(value, "__objclass__", kind) is kind
    )


def _is_called(name: str) -> bool:
    """Return whether Python or NumPy call an attribute of that name by themselves."""
    return name in _NUMPY_CALLS or (name.startswith("_") and name.endswith("_"))


def _calls_back(kind: type) -> bool:
    """Return whether a base of Python's library may call methods of a class, by whatever names."""
    return any(c.__module__ not in _QUIET and known.is_known(c.__module__) for c in kind.__mro__)


# Instances


class _Layout(NamedTuple):
    """How the instances of a class are made.

    Attributes:
        data: Which of `_DATA` they are besides their attributes.
        slots: Attributes that have places of their own.
        kept: Attributes that are results which `cached_property` keeps.
        own: The class belongs to this project, where such results follow from the other attributes.
    """

    data: type
    slots: list[tuple[str, Any]]
    kept: frozenset[str]
    own: bool


def _layout(kind: type) -> _Layout:
    """Return how the instances of a class are made, if Python shows all that they hold."""
    items = [item for c in kind.__mro__ for item in vars(c).items()]
    slots = [item for item in items if isinstance(item[1], types.MemberDescriptorType)]
    kept = frozenset(name for name, value in items if isinstance(value, cached_property))
    data = kind
    while data not in _DATA:
        if not _is_python(data):
            raise Unknown(f"{kind.__qualname__} is written in another language")
        data = data.__base__ or object
    return _Layout(data, slots, kept, known.is_own(kind.__module__))


def _instance(walk: Walk, x: Any) -> None:
    """Describe an object by its class and its state, or by what it says stands for it."""
    kind = type(x)
    if known.traces(kind) and not issubclass(kind, tuple):
        if not hasattr(kind, "__fingerprint__"):
            raise Unknown(f"{kind.__qualname__}: something half traced or half compiled")
        walk.several("for", x.__fingerprint__())
        return
    walk.lines.append("instance")
    walk.visit(kind)
    if isinstance(x, np.generic) and known.by_name(kind):
        _array(walk, np.asarray(x))
    elif (isinstance(x, np.dtype) and known.by_name(kind)) or _is_annotation(kind):
        walk.lines.append(repr(x))
    else:
        layout = walk.cache.get(kind) or walk.cache.setdefault(kind, _layout(kind))
        _content(walk, x, layout.data)
        for name, value in itertools.chain(_in_slots(x, layout), getattr(x, "__dict__", {}).items()):
            if name not in layout.kept:
                walk.lines.append(name)
                walk.read(value)
            elif not (layout.own and _follows(value)):
                walk.offer(x, name, value)
        walk.lines.append("end")


def _is_annotation(kind: type) -> bool:
    """Return whether instances of a class only say what type something has."""
    return kind.__module__ == "typing" or kind in (types.GenericAlias, types.UnionType)


def _content(walk: Walk, x: Any, data: type) -> None:
    """Describe what an object holds besides its attributes."""
    if data in (tuple, list):
        walk.several(data.__name__, data.__iter__(x))
    elif data is dict:
        walk.several("dict", itertools.chain.from_iterable(dict.items(x)))
    elif data in PLAIN:
        walk.visit({int: int.__int__, float: float.__float__, str: str.__str__}[data](x))


def _in_slots(x: Any, layout: _Layout) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of an object that have places of their own."""
    for name, slot in layout.slots:
        try:
            yield name, slot.__get__(x)
        except AttributeError:
            yield f"no {name}", None


def _follows(value: Any) -> bool:
    """Return whether a result that an object of this project keeps is its own, and not a graph that users write on."""
    return type(value) in PLAIN or isinstance(value, tuple | list | np.ndarray) or known.is_own(type(value).__module__)


KINDS: dict[type, Callable[[Walk, Any], None]] = {
    tuple: _items,
    list: _items,
    set: _set,
    frozenset: _set,
    dict: _mapping,
    types.MappingProxyType: _mapping,
    np.ndarray: _array,
    slice: _slice,
    **dict.fromkeys(_METHODS, _descriptor),
    type(vars(namedtuple("_", "field"))["field"]): _field,
}
"""How to describe data of Python's and NumPy's own kinds."""
