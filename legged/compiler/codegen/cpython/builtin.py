"""A kernel as a built-in function of Python, whose body is machine code: the cheapest call that Python knows.

The function looks into NumPy's arrays itself. If every argument is an array of doubles of the right shape, C-contiguous
and aligned (or a float, for a number), with or without one leading axis, it makes the results' arrays, runs the code
and returns them, one by itself, several in the form that the traced function gave them. Anything else it leaves to
`Kernel`'s ordinary way, which it calls with the arguments it got: conversions, other leading axes, and errors in words.
Batches that are worth several threads go through `Batch`.

What is read of an array is what NumPy's C interface fixes (`PyArrayObject_fields`), the same in NumPy 1 and 2, and
what is called are functions of the two C interfaces. `available` tries it on a sample first. Elsewhere kernels are
called through ctypes, with the same results. The function itself is written in `call_assembly`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from legged.compiler.codegen.cpython import layout as layout
from legged.compiler.codegen.cpython.call import ENTRY, MOST
from legged.compiler.codegen.cpython.layout import CONTEXT, FUNCTIONS, NAMES, OBJECTS
from legged.compiler.codegen.llvm import Code
from legged.compiler.ir.graph import Graph

_VERSIONS = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface that this was written for."""
_GET_VERSION, _SCALAR, _NEW = 0, 60, 93
"""Places in NumPy's table of functions: PyArray_GetNDArrayCVersion, PyArray_Scalar, PyArray_New."""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FAST_WITH_KEYWORDS = 0x0080 | 0x0002


def suits(graph: Graph) -> bool:
    """Return whether there is a built-in function for the graph: if it has results, and not very many."""
    return 0 < len(graph.outputs) <= MOST


def make(
    name: str, code: Code, otherwise: Callable[..., Any], share: Callable[[int, int], int], form: Callable | None
) -> Any:
    """Return the built-in function.

    Args:
        name: What it is called.
        code: With the function of `call_assembly` in it.
        otherwise: Called with the same arguments when they are not the usual ones.
        share: Called with the number of states and the address of a description of the arrays to run a large batch.
        form: Makes the result of a tuple of arrays; None if it is that tuple, or a bare array.
    """
    table = _table(code)
    for k, value in enumerate(_context()):
        table[k] = value
    definition = _MethodDef(name.encode(), code.address(ENTRY), _FAST_WITH_KEYWORDS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # the function reads it even when it is deleted at exit
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return create(ctypes.addressof(definition), (otherwise, share, form), None)


def add_batch(code: Code, batch: Code, address: int, limit: int) -> None:
    """Let the built-in function of `code` run batches of up to `limit` states by the code for batches at an address."""
    table = _table(code)
    code.kept = batch
    table[NAMES.index("limit")] = limit
    table[NAMES.index("batch")] = address


def _table(code: Code) -> Any:
    return (ctypes.c_void_p * len(NAMES)).from_address(code.address(CONTEXT))


@cache
def _context() -> list[int]:
    """Return the addresses of `call_objects.OBJECTS` and `FUNCTIONS` in this process."""
    objects = (np.ndarray, np.dtype(float), float, np.float64, tuple, None, sys.intern("out"))
    own = "PyTuple_New Py_IncRef Py_DecRef PyObject_Vectorcall PyLong_FromLongLong PyLong_AsLongLong".split()  # noqa: SIM905
    functions = [ctypes.cast(getattr(ctypes.pythonapi, f), ctypes.c_void_p).value or 0 for f in own]
    found = [*map(id, objects), _numpy_function(_NEW), _numpy_function(_SCALAR), *functions]
    assert len(found) == len(OBJECTS) + len(FUNCTIONS)
    return found


def _numpy_function(place: int) -> int:
    core: Any = getattr(np, "_core", None) or np.core
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(core._multiarray_umath._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + 8 * place).value or 0


@cache
def available() -> bool:
    """Return whether this Python and this NumPy are built as assumed here: try it on an array."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        if ctypes.CFUNCTYPE(ctypes.c_uint)(_numpy_function(_GET_VERSION))() not in _VERSIONS:
            return False
        types = (ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        new = _prototype(*types, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_numpy_function(_NEW))
        shape = (ctypes.c_int64 * 2)(3, 5)
        made = new(np.ndarray, 2, ctypes.addressof(shape), layout.DOUBLE, None, None, 0, 0, None)
        number = _prototype(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(_numpy_function(_SCALAR))
        scalar = number(ctypes.addressof(ctypes.c_double(0.75)), np.dtype(float), None)
        if type(scalar) is not np.float64 or scalar != 0.75 or not _is_tuple_as_assumed(("out", None)):
            return False
        return _is_as_assumed(made) and _is_as_assumed(np.ones((3, 5))) and not _is_as_assumed(np.ones((5, 3)).T)
    except (AttributeError, TypeError, ValueError, OSError):
        return False


def _prototype(*types: Any) -> Any:
    return ctypes.PYFUNCTYPE(ctypes.py_object, *types)


def _is_tuple_as_assumed(pair: tuple[Any, Any]) -> bool:
    """Return whether a tuple of two looks, byte by byte, like one."""
    items = [ctypes.c_void_p.from_address(id(pair) + layout.ITEMS + 8 * k).value for k in range(2)]
    return items == [id(item) for item in pair] and ctypes.c_int64.from_address(id(pair) + layout.LENGTH).value == 2


def _is_as_assumed(array: Any) -> bool:
    """Return whether an array looks, byte by byte, like one of doubles of shape (3, 5) that is safe to write."""
    at = id(array)

    def number(offset: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(at + offset).value

    wanted = layout.CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE
    return (
        type(array) is np.ndarray
        and number(layout.HEADER - 8) == id(np.ndarray)
        and number(layout.ND, ctypes.c_int32) == 2
        and number(layout.DESCR) == id(np.dtype(float))
        and number(layout.DATA) == array.ctypes.data
        and list((ctypes.c_int64 * 2).from_address(number(layout.DIMENSIONS))) == [3, 5] == list(array.shape)
        and number(layout.FLAGS, ctypes.c_int32) & wanted == wanted
    )
