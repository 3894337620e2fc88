"""Keys of content: equal functions, setups and samples have equal keys, in all processes and on all machines."""

from __future__ import annotations

import functools
import hashlib
import itertools
import platform
import struct
import sys
import sysconfig
from collections.abc import Mapping, Sequence, Set
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import llvmlite
import numpy as np

from legged.compiler import Kernel
from legged.errors import ArgumentError
from legged.version import __version__

_TOOLKIT = ("legged", "controllers", "robots")
_LIBRARIES = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of toolkit, Python and libraries, on which the digits of results depend.

    The version of the toolkit includes a checksum of its sources, since a checkout keeps its version over many changes.
    """
    sources = hashlib.blake2b(digest_size=6)
    for package in _TOOLKIT:
        folder = Path(__file__).parents[2] / package
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            sources.update(f"{path.relative_to(folder.parent).as_posix()} {len(content)}\n".encode() + content)
    python = ".".join(platform.python_version_tuple()[:2])
    legged = f"{__version__} {sources.hexdigest()}"
    return {"legged": legged, "python": python, "numpy": np.__version__, "llvmlite": llvmlite.__version__}


def content_key(*parts: Any) -> str:
    """Return the key of some objects, 32 hexadecimal digits.

    Numbers, arrays, texts and containers enter by value; functions and classes of the user by their bytecode, with the
    constants, functions and classes that it refers to; those of libraries by name and version; other objects by their
    class and attributes, without cached properties.

    Raises:
        ArgumentError: An object has no content that could be compared, such as a lock or an open file.
    """
    hasher = _Hasher()
    for part in parts:
        hasher.add(part)
    return hasher.digest.hexdigest()


def chunk_keys(setup: str, columns: Mapping[str, np.ndarray], order: np.ndarray, bounds: Sequence[int]) -> list[str]:
    """Return the keys of the chunks of one setup.

    Args:
        setup: Key of its content. columns: Samples, name -> (n,), any unit.
        order: Indices of the rows, (n,), dimensionless. bounds: As in `Description`.
    """
    names = list(columns)
    ordered = {name: x[order] for name, x in columns.items()}
    return [
        content_key(setup, names, [list(x[a:b]) if x.dtype.kind == "U" else x[a:b] for x in ordered.values()])
        for a, b in itertools.pairwise(bounds)
    ]


class _Hasher:
    """The state of one traversal; each object is visited once, and a cyclic reference enters by its depth."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=16)
        self._known: dict[int, bytes] = {}
        self._alive: list[Any] = []  # keeps the objects, so that no id is used twice

    def add(self, x: Any) -> None:
        """Add one object."""
        if x is None or (isinstance(x, bool | int | str | bytes | complex) and not isinstance(x, Enum)):
            text = x if isinstance(x, bytes) else repr(x).encode()
            self._write(type(x).__name__, text)
        elif isinstance(x, float):
            self._write("float", struct.pack("<d", x))
        elif isinstance(x, np.ndarray | np.generic) and not x.dtype.hasobject:
            array = np.ascontiguousarray(x)
            self._write(f"array {array.dtype.str} {array.shape}", array.tobytes())
        else:
            if id(x) not in self._known:
                self._known[id(x)] = b"cycle %d" % len(self._alive)
                self._alive.append(x)
                outer, self.digest = self.digest, hashlib.blake2b(digest_size=16)
                try:
                    self._parts(x)
                finally:
                    inner, self.digest = self.digest, outer
                self._known[id(x)] = inner.digest()
            self._write("object", self._known[id(x)])

    def _write(self, label: str, content: bytes = b"") -> None:
        self.digest.update(f"{label} {len(content)}\n".encode() + content)

    def _all(self, label: str, *parts: Any) -> None:
        self._write(f"{label} of {len(parts)}")
        for part in parts:
            self.add(part)

    def _parts(self, x: Any) -> None:
        """Add an object by its parts."""
        if isinstance(x, Enum):
            self._all("enum", type(x).__qualname__, x.name)
        elif isinstance(x, np.ndarray):
            self._all(f"objects {x.shape}", *x.ravel().tolist())
        elif isinstance(x, tuple | list):
            self._all(_name(type(x)), *x)
        elif isinstance(x, Mapping | Set):
            pairs = x.items() if isinstance(x, Mapping) else ((key,) for key in x)
            ordered = sorted((content_key(pair[0]), *pair) for pair in pairs) if _unordered(x) else pairs
            self._all(_name(type(x)), *(part for pair in ordered for part in pair))
        elif isinstance(x, Kernel):
            self._all("kernel", x.graph.digest)
        elif isinstance(x, ModuleType):
            self._all("module", x.__name__, getattr(x, "__version__", ""))
        elif isinstance(x, functools.partial):
            self._all("partial", x.func, x.args, x.keywords)
        elif isinstance(x, MethodType):
            self._all("method", x.__func__, x.__self__)
        elif isinstance(x, CodeType):
            self._code(x)
        elif isinstance(x, type | FunctionType | BuiltinFunctionType | np.ufunc):
            self._definition(x)
        else:
            self._object(x)

    def _definition(self, x: Any) -> None:
        """Add a function or class: of a library by its name, of the user by its content."""
        self._write(_name(x))
        if not _is_users(x):
            top = str(getattr(x, "__module__", "") or "").partition(".")[0]
            self.add(getattr(sys.modules.get(top), "__version__", "") if top not in _TOOLKIT else "")
        elif isinstance(x, type):
            hidden = ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__")
            own = {k: v for k, v in vars(x).items() if k not in hidden and not k.startswith("_abc_")}
            self._all("class", x.__bases__, {k: _plain(v) for k, v in own.items()})
        else:
            cells = [_content(cell) for cell in x.__closure__ or ()]
            names = _names(x.__code__)
            known = {name: x.__globals__[name] for name in names if name in x.__globals__}
            self._all("function", x.__code__, x.__defaults__, x.__kwdefaults__, cells, known)

    def _code(self, code: CodeType) -> None:
        sets = [sorted(map(repr, c)) for c in code.co_consts if isinstance(c, frozenset)]  # their order is random
        constants = [c for c in code.co_consts if not isinstance(c, frozenset)]
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags, code.co_argcount)
        self._all("code", code.co_code, names, constants, sets)

    def _object(self, x: Any) -> None:
        """Add an object by its class and its attributes, or by its reduction for `pickle`."""
        if hasattr(x, "__dict__") and not hasattr(type(x), "__slots__"):
            cached = {k for k in vars(x) if isinstance(getattr(type(x), k, None), functools.cached_property)}
            state: Any = {k: v for k, v in vars(x).items() if k not in cached}
        else:
            try:
                reduced = x.__reduce_ex__(4)
            except Exception as error:
                raise ArgumentError(
                    f"a {type(x).__name__} has no content that identifies a study ({error}); give the function or "
                    f"setup only numbers, arrays, functions and objects of these"
                ) from None
            state = reduced if isinstance(reduced, str) else [y for y in reduced[1:] if not isinstance(y, type)]
            state = state if isinstance(state, str) else [list(y) if hasattr(y, "__next__") else y for y in state]
        self._all("object", type(x), state)


def _unordered(x: Any) -> bool:
    return isinstance(x, Set) or all(isinstance(key, str) for key in x)


def _name(x: Any) -> str:
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", type(x).__name__)
    return name if _is_users(x) else f"{getattr(x, '__module__', '')}:{name}"  # a script may run under other names


def _plain(x: Any) -> Any:
    """Return the function of a property or of a class method, or another attribute of a class itself."""
    if isinstance(x, property):
        return ("property", x.fget, x.fset)
    if isinstance(x, functools.cached_property):
        return ("cached", x.func)
    if isinstance(x, classmethod | staticmethod):
        return (type(x).__name__, x.__func__)
    return None if type(x).__name__ in ("getset_descriptor", "member_descriptor", "_abc_data") else x


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not yet bound
        return None


def _names(code: CodeType) -> list[str]:
    """Return the global names that a function and the functions inside it may use."""
    inside = (name for c in code.co_consts if isinstance(c, CodeType) for name in _names(c))
    return sorted({*code.co_names, *inside})


def _is_users(x: Any) -> bool:
    """Return whether a function or class belongs neither to the toolkit nor to an installed library."""
    name = getattr(x, "__module__", None) or ""
    if name.partition(".")[0] in _TOOLKIT or name == "builtins" or not isinstance(x, type | FunctionType):
        return False
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None:  # the main module of an interactive session, or a module written in C
        return name.startswith("__main__") or isinstance(x, FunctionType) or module is None
    return not str(Path(file).resolve()).startswith(_LIBRARIES)
