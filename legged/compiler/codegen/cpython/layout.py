"""Memory layout of the CPython and NumPy objects that generated code reads, and the self-test that confirms it.

The entry point of a kernel (`entry_point`) reads fields of tuples, floats and arrays at the offsets defined here.
`is_confirmed` compares these offsets with objects of the running interpreter before any generated code runs. Where it
fails, and where LEGGED_CALLS=ctypes is set, kernels are called through ctypes with the same results.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from legged.compiler.codegen.element_type import ELEMENT_TYPES, ElementType
from legged.compiler.codegen.ir_writer import IRWriter, Value
from legged.compiler.ir.graph import Shape
from legged.errors import LeggedError

HEADER = 16
"""Size of the object header, a reference count and the type, [bytes]; all offsets below are in bytes as well."""
TYPE = HEADER - 8
LENGTH, ITEMS = HEADER, getattr(tuple, "__basicsize__", HEADER + 8)
"""Number of items of a tuple, and its first item."""
NUMBER = HEADER
"""Value of a float or of a NumPy float64."""
DATA, NDIM, DIMENSIONS, STRIDES, BASE, DESCR, FLAGS = (HEADER + offset for offset in (0, 8, 16, 24, 32, 40, 48))
"""Fields of NumPy's arrays (`PyArrayObject_fields` of its C interface)."""
C_CONTIGUOUS, F_CONTIGUOUS, OWNDATA, ALIGNED, WRITEABLE = 0x1, 0x2, 0x4, 0x100, 0x400
"""Bits of an array's flags."""

TABLE = "legged_object_table"
_OBJECTS = {
    "ndarray": np.ndarray,
    "float": float,
    "float64": np.float64,
    "tuple": tuple,
    "None": None,
    "out": sys.intern("out"),
}
_FUNCTIONS = (
    *("PyArray_New", "PyArray_Scalar", "PyTuple_New", "Py_IncRef", "Py_DecRef"),
    *("PyObject_Vectorcall", "PyLong_FromLongLong", "PyLong_AsLongLong"),
)
ENTRIES = ("dtype", *_OBJECTS, *_FUNCTIONS, "batch_loop", "batch_limit")
"""Entries of the table through which an entry point finds objects and functions of this process. The first is NumPy's
data type of the element type. The last two are the function for batches, null until it is loaded, and the largest batch
to run in the calling thread with the GIL held."""
_PYTHON_VERSIONS = ((3, 11), (3, 14))
"""First and last version of CPython with this layout."""
_NUMPY_ABI_VERSIONS = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface with this layout: those of NumPy 1 and NumPy 2."""
_NUMPY_TABLE = {"PyArray_GetNDArrayCVersion": 0, "PyArray_Scalar": 60, "PyArray_New": 93}
"""Indices in NumPy's table of C functions."""

_forced = False


class CallPathError(LeggedError, ValueError):
    """An unknown value of the environment variable LEGGED_CALLS."""


def is_enabled() -> bool:
    """Return whether new kernels get a built-in entry point; otherwise they are called through ctypes.

    The environment variable LEGGED_CALLS is "auto", the default, or "ctypes", which forces calls through ctypes.

    Raises:
        CallPathError: If LEGGED_CALLS has another value.
    """
    choice = os.environ.get("LEGGED_CALLS") or "auto"
    if choice not in ("auto", "ctypes"):
        raise CallPathError(f"LEGGED_CALLS must be 'auto' or 'ctypes', got {choice!r}")
    return choice == "auto" and not _forced and is_confirmed()


@contextmanager
def _ctypes_calls() -> Iterator[None]:
    """Give kernels that are created in this context no entry point, as LEGGED_CALLS=ctypes does; for tests."""
    global _forced
    before, _forced = _forced, True
    try:
        yield
    finally:
        _forced = before


@cache
def is_confirmed() -> bool:
    """Return whether the running CPython and NumPy have the layout defined in this module; takes about 1 ms.

    The first checks read attributes only. Fields are then read within the size of each object, and the pointer to an
    array's dimensions is followed only if every field beside it has the expected value.
    """
    try:
        return _is_known_build() and _numbers_match() and _tuples_match() and _arrays_match() and _functions_match()
    except (AttributeError, TypeError, ValueError, OSError):  # a function or an attribute is missing
        return False


def address_of(name: str) -> int:
    """Return the address of a C function of CPython (Py...) or NumPy (PyArray...)."""
    if name not in _NUMPY_TABLE:
        return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
    core: Any = getattr(np, "_core", None) or np.core
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(address_of("PyCapsule_GetPointer"))
    table = pointer(core._multiarray_umath._ARRAY_API, None)
    return _read(table + 8 * _NUMPY_TABLE[name])


def _is_known_build() -> bool:
    """Return whether the interpreter and NumPy are builds with a known layout.

    Free-threaded builds are not: their objects have another header, and no lock protects an array while it is read.
    """
    first, last = _PYTHON_VERSIONS
    return (
        sys.implementation.name == "cpython"
        and first <= sys.version_info[:2] <= last
        and getattr(sys, "_is_gil_enabled", lambda: True)()
        and not (sys.version_info >= (3, 13) and sysconfig.get_config_var("Py_GIL_DISABLED"))
        and sys.byteorder == "little"
        and ctypes.sizeof(ctypes.c_void_p) == ctypes.sizeof(ctypes.c_ssize_t) == 8
        and object.__basicsize__ == HEADER
        and tuple.__itemsize__ == 8
        and float.__basicsize__ == np.float64.__basicsize__ == NUMBER + 8
        and np.ndarray.__basicsize__ >= FLAGS + 8
        and address_of("PyArray_GetNDArrayCVersion") != 0
        and _function("PyArray_GetNDArrayCVersion", ctypes.c_uint)() in _NUMPY_ABI_VERSIONS
    )


def _read(address: int, kind: Any = ctypes.c_void_p) -> Any:
    """Return the value at an address; 0 for a null pointer."""
    return kind.from_address(address).value or 0


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(result, *arguments)(address_of(name))


def _has_type(thing: Any) -> bool:
    return _read(id(thing) + TYPE) == id(type(thing))


def _numbers_match() -> bool:
    numbers = (0.75, -0.0, 5e-324, math.nan, np.float64(-1.5), np.float64(math.inf))
    return all(_has_type(x) and ctypes.string_at(id(x) + NUMBER, 8) == struct.pack("<d", x) for x in numbers)


def _tuples_match() -> bool:
    return all(_is_tuple_of(id(t), t) for t in ((), ("out",), (None, 2.5), ("q", 1, (), None)))


def _is_tuple_of(address: int, items: tuple[Any, ...]) -> bool:
    """Return whether the object at an address is a tuple with the items of a given tuple."""
    if _read(address + TYPE) != id(tuple) or _read(address + LENGTH, ctypes.c_ssize_t) != len(items):
        return False
    return [_read(address + ITEMS + 8 * k) for k in range(len(items))] == [id(item) for item in items]


class _Subclass(np.ndarray):
    """A type of arrays that the entry point must not take for `numpy.ndarray`."""


def _arrays_match() -> bool:
    plain = np.arange(15.0).reshape(3, 5)
    frozen = np.ones((2, 3, 4))
    frozen.flags.writeable = False
    unaligned = np.frombuffer(bytearray(8 * 6 + 1), dtype=float, offset=1).reshape(2, 3)
    views = (plain.T, plain[::2], plain[:, ::-2], plain[1], plain[1:, 1:2], np.broadcast_to(plain[0], (4, 5)))
    shapes = (np.array(1.5), np.empty(7), np.empty((0, 4)), np.ones((1, 1, 1, 1)), np.asfortranarray(frozen))
    types = (np.ones(3, dtype=np.float32), np.arange(4), np.ones((2, 2), dtype=">f8"), np.array(["a", None]))
    others = (frozen, frozen[0], unaligned, np.zeros(2, dtype=[("a", "f8"), ("b", "i4")]), plain.view(_Subclass))
    return all(map(_array_matches, (plain, *views, *shapes, *types, *others)))


def _array_matches(array: np.ndarray) -> bool:
    """Return whether the fields of an array are those that its attributes report."""
    at, ndim = id(array), array.ndim
    flags = {
        C_CONTIGUOUS: array.flags.c_contiguous,
        F_CONTIGUOUS: array.flags.f_contiguous,
        OWNDATA: array.flags.owndata,
        ALIGNED: array.flags.aligned,
        WRITEABLE: array.flags.writeable,
    }
    found = _read(at + FLAGS, ctypes.c_int)
    dimensions, strides = _read(at + DIMENSIONS), _read(at + STRIDES)
    if not (
        _has_type(array)
        and _read(at + NDIM, ctypes.c_int) == ndim
        and _read(at + DATA) == array.__array_interface__["data"][0]
        and _read(at + BASE) == (0 if array.base is None else id(array.base))
        and _read(at + DESCR) == id(array.dtype)
        and all(bool(found & bit) == value for bit, value in flags.items())
        and (ndim == 0 or (dimensions > 0 and dimensions % 8 == 0 and strides == dimensions + 8 * ndim))
    ):
        return False
    lengths = tuple(_read(dimensions + 8 * k, ctypes.c_ssize_t) for k in range(ndim))
    steps = tuple(_read(strides + 8 * k, ctypes.c_ssize_t) for k in range(ndim))
    return lengths == array.shape and steps == array.strides


def _functions_match() -> bool:
    """Return whether the C functions that generated code calls create objects as expected and count references."""
    size, pointer, thing = ctypes.c_ssize_t, ctypes.c_void_p, ctypes.py_object
    increment, decrement = (_function(name, None, pointer) for name in ("Py_IncRef", "Py_DecRef"))
    counted = object()
    counts = [sys.getrefcount(counted)]
    for change in (increment, decrement):
        change(id(counted))
        counts.append(sys.getrefcount(counted))
    once = counts[0]  # one reference, counted as the running version does
    if counts != [once, once + 1, once]:
        return False

    items = (counted, 2.5)
    address = _function("PyTuple_New", pointer, size)(2)
    if _read(address + TYPE) != id(tuple) or _read(address + LENGTH, size) != 2:
        return False
    for k, item in enumerate(items):
        if _read(address + ITEMS + 8 * k):
            return False
        increment(id(item))
        ctypes.c_void_p.from_address(address + ITEMS + 8 * k).value = id(item)
    filled = ctypes.cast(address, thing).value  # holds a second reference
    decrement(address)
    if filled != items or sys.getrefcount(filled) != once or not _is_tuple_of(id(filled), items):
        return False

    new_types = (pointer, ctypes.c_int, pointer, ctypes.c_int, pointer, pointer, ctypes.c_int, ctypes.c_int, pointer)
    new = _function("PyArray_New", thing, *new_types)
    for element in ELEMENT_TYPES.values():
        for shape in ((), (4,), (3, 5), (0, 2)):
            lengths, number = (size * 3)(*shape), element.type_number
            made = new(id(np.ndarray), len(shape), ctypes.addressof(lengths), number, None, None, 0, 0, None)
            if type(made) is not np.ndarray or (made.shape, made.dtype) != (shape, element.dtype):
                return False
            is_whole = made.flags.carray and made.flags.owndata
            if not (is_whole and sys.getrefcount(made) == once and _array_matches(made)):
                return False

        value = np.array([0.75], element.dtype)
        address = value.ctypes.data
        scalar = _function("PyArray_Scalar", thing, pointer, thing, pointer)(address, element.dtype, None)
        value[0] = 0.0
        if type(scalar) is not element.dtype.type or scalar != 0.75 or sys.getrefcount(scalar) != once:
            return False

    number = _function("PyLong_FromLongLong", thing, ctypes.c_longlong)(-(1 << 40))
    back = _function("PyLong_AsLongLong", ctypes.c_longlong, thing)(number)
    arguments = (pointer * 2)(id(counted), id(number))
    called = _function("PyObject_Vectorcall", thing, thing, pointer, ctypes.c_size_t, pointer)(
        lambda *given: given, ctypes.addressof(arguments), 2, None
    )
    return number == back == -(1 << 40) and called == (counted, number)


@cache
def table_entries(element: ElementType) -> list[int]:
    """Return the addresses of the table's objects and functions in this process."""
    return [id(element.dtype), *map(id, _OBJECTS.values()), *map(address_of, _FUNCTIONS)]


class ObjectWriter:
    """Writes code that reads and creates objects of Python.

    Attributes:
        w: Writer of the function.
        element: Element type of the arrays.
        table: Entries of the object table, loaded at the beginning of the function.
    """

    def __init__(self, element: ElementType) -> None:
        self.w, self.element = IRWriter(1, element), element
        self.table: dict[str, Value] = {}

    def load_table(self) -> None:
        """Load the object table."""
        w = self.w
        for k, name in enumerate(ENTRIES):
            kind = "i64" if name == "batch_limit" else "ptr"
            self.table[name] = w.assign(f"load {kind}, ptr {w.gep(f'@{TABLE}', k, 'ptr')}")

    def field(self, thing: Value, offset: int, kind: str = "ptr") -> Value:
        """Return a field of an object."""
        return self.w.assign(f"load {kind}, ptr {self.w.gep(thing, offset, 'i8')}")

    def call(self, function: str, arguments: str, result: str = "ptr") -> Value:
        """Return the result of a function of the table."""
        return self.w.assign(f"call {result} {self.table[function]}({arguments})")

    def increment(self, thing: Value) -> None:
        """Increment a reference count."""
        self.w.emit(f"call void {self.table['Py_IncRef']}(ptr {thing})")

    def decrement(self, thing: Value) -> None:
        """Decrement a reference count."""
        self.w.emit(f"call void {self.table['Py_DecRef']}(ptr {thing})")

    def require(self, condition: Value, label: str, otherwise: str = "fallback") -> None:
        """Continue in a new basic block if a condition holds; branch to `otherwise` if not."""
        self.w.branch(condition, label, otherwise)
        self.w.label(label)

    def require_object(self, thing: Value, label: str, otherwise: str) -> None:
        """Continue in a new basic block if an object was created; branch to `otherwise` if memory is exhausted."""
        self.require(self.w.assign(f"icmp ne ptr {thing}, null"), label, otherwise)

    def all(self, conditions: list[Value]) -> Value:
        """Return the conjunction of conditions."""
        total = conditions[0] if conditions else "true"
        for condition in conditions[1:]:
            total = self.w.assign(f"and i1 {total}, {condition}")
        return total

    def has_type(self, thing: Value, name: str) -> Value:
        """Return whether the type of an object is exactly one of the table."""
        return self.w.assign(f"icmp eq ptr {self.field(thing, TYPE)}, {self.table[name]}")

    def require_array(self, thing: Value, label: str, flags: int) -> Value:
        """Require an object to be an array of the element type with these flags set; return its number of axes."""
        w = self.w
        self.require(self.has_type(thing, "ndarray"), f"{label}_array")
        found = w.assign(f"and i32 {self.field(thing, FLAGS, 'i32')}, {flags}")
        has_flags = w.assign(f"icmp eq i32 {found}, {flags}")
        has_type = w.assign(f"icmp eq ptr {self.field(thing, DESCR)}, {self.table['dtype']}")
        self.require(self.all([has_flags, has_type]), f"{label}_type")
        return self.field(thing, NDIM, "i32")

    def has_shape(self, array: Value, shape: Shape, skip: int) -> Value:
        """Return whether the axes of an array after the first `skip` have the lengths of a shape."""
        dimensions = self.field(array, DIMENSIONS)
        return self.all(
            [
                self.w.assign(f"icmp eq i64 {self.field(dimensions, 8 * (i + skip), 'i64')}, {n}")
                for i, n in enumerate(shape)
            ]
        )

    def first_length(self, array: Value) -> Value:
        """Return the length of an array's first axis."""
        return self.field(self.field(array, DIMENSIONS), 0, "i64")

    def new_array(self, shape: Shape, leading_axes: int, count: Value) -> Value:
        """Return a new array of the element type, null if memory is exhausted. Overwrites `%shape`."""
        w = self.w
        for i, n in enumerate((count, *shape) if leading_axes else shape):
            w.emit(f"store i64 {n}, ptr {w.gep('%shape', i, 'i64')}")
        lengths = f"i32 {len(shape) + leading_axes}, ptr %shape, i32 {self.element.type_number}"
        options = "ptr null, ptr null, i32 0, i32 0, ptr null"
        return self.call("PyArray_New", f"ptr {self.table['ndarray']}, {lengths}, {options}")

    def set_item(self, items: Value, k: int, item: Value) -> None:
        """Store an item of a new tuple, which takes over the reference."""
        self.w.emit(f"store ptr {item}, ptr {self.w.gep(items, ITEMS + 8 * k, 'i8')}")
