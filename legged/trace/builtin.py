"""A kernel as a built-in function of Python, whose body is machine code: the cheapest call that Python knows.

The function looks into NumPy's arrays itself. If every argument is an array of doubles of the right shape, C-contiguous
and aligned (or a float, for a number), it makes the result's array, runs the core and returns. Anything else it leaves
to `Kernel`'s ordinary way, which it calls with the arguments it got: conversions, batches, and errors in words.

What is read of an array is what NumPy's C interface fixes (`PyArrayObject_fields`), the same in NumPy 1 and 2, and
what is called are functions of the two C interfaces. `available` tries it on a sample first. Elsewhere kernels are
called through ctypes, with the same results.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from legged.trace.assembler import ATTRIBUTES, Value, Writer
from legged.trace.backend import Code
from legged.trace.graph import Graph
from legged.trace.lowering import CORE

ENTRY = "legged_call"
CONTEXT = "legged_context"

_HEADER = object.__basicsize__
"""Size of what every object begins with; its last field is the type."""
_DATA, _ND, _DIMENSIONS, _DESCR, _FLAGS = (_HEADER + offset for offset in (0, 8, 16, 40, 48))
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_DOUBLE = 12
_CONTEXT_NAMES = ("array", "double", "float", "scalar", "out", "new", "increment", "decrement", "vectorcall")

_VERSIONS = (0x01000009, 0x02000000)
"""Versions of NumPy's binary interface that this was written for."""
_GET_VERSION, _NEW = 0, 93
"""Places in NumPy's table of functions: PyArray_GetNDArrayCVersion, PyArray_New."""


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_FAST_WITH_KEYWORDS = 0x0080 | 0x0002
_definitions: list[_MethodDef] = []
"""Python keeps pointers to them, so they are kept for ever."""


def suits(graph: Graph) -> bool:
    """Return whether the graph has one array as its result, which is what can be a built-in function."""
    return graph.rebuild is next and graph.outputs[0] != ()


def make(name: str, code: Code, otherwise: Callable[..., Any]) -> Any:
    """Return the built-in function.

    Args:
        name: What it is called.
        code: With the function of `assembly` in it.
        otherwise: Called with the same arguments when they are not the usual ones.
    """
    values = _context()
    (ctypes.c_void_p * len(values)).from_address(code.address(CONTEXT))[:] = values
    _definitions.append(_MethodDef(name.encode(), code.address(ENTRY), _FAST_WITH_KEYWORDS, None))
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return create(ctypes.addressof(_definitions[-1]), otherwise, None)


@cache
def _context() -> list[int]:
    """Return the addresses of `_CONTEXT_NAMES` in this process."""
    functions = ("Py_IncRef", "Py_DecRef", "PyObject_Vectorcall")
    return [
        *(id(x) for x in (np.ndarray, np.dtype(float), float, np.float64, sys.intern("out"))),
        _numpy_function(_NEW),
        *(ctypes.cast(getattr(ctypes.pythonapi, f), ctypes.c_void_p).value or 0 for f in functions),
    ]


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
        new = ctypes.PYFUNCTYPE(ctypes.py_object, *types, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)(_context()[5])
        shape = (ctypes.c_int64 * 2)(3, 5)
        made = new(np.ndarray, 2, ctypes.addressof(shape), _DOUBLE, None, None, 0, 0, None)
        return _is_as_assumed(made) and _is_as_assumed(np.ones((3, 5))) and not _is_as_assumed(np.ones((5, 3)).T)
    except (AttributeError, TypeError, ValueError, OSError):
        return False


def _is_as_assumed(array: Any) -> bool:
    """Return whether an array looks, byte by byte, like one of doubles of shape (3, 5) that is safe to write."""
    at = id(array)

    def number(offset: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(at + offset).value

    wanted = _CONTIGUOUS | _ALIGNED | _WRITEABLE
    return (
        type(array) is np.ndarray
        and number(_HEADER - 8) == id(np.ndarray)
        and number(_ND, ctypes.c_int32) == 2
        and number(_DESCR) == id(np.dtype(float))
        and number(_DATA) == array.ctypes.data
        and list((ctypes.c_int64 * 2).from_address(number(_DIMENSIONS))) == [3, 5] == list(array.shape)
        and number(_FLAGS, ctypes.c_int32) & wanted == wanted
    )


def assembly(graph: Graph) -> Iterator[str]:
    """Yield the assembly of the function; the core comes from `lowering`."""
    w = Writer(1)
    n = len(graph.inputs)
    w.label("start")
    w.let(f"alloca [{n + 1} x ptr], align 8", "%table")
    context = {name: w.let(f"load ptr, ptr {w.at(f'@{CONTEXT}', k, 'ptr')}") for k, name in enumerate(_CONTEXT_NAMES)}
    w.line(f"br i1 {w.let(f'icmp eq i64 %nargs, {n}')}, label %argument0, label %otherwise")
    for k, (_, shape) in enumerate(graph.inputs):
        w.label(f"argument{k}")
        given = w.let(f"load ptr, ptr {w.at('%args', k, 'ptr')}")
        if shape:
            data = _array(w, given, shape, context, f"argument{k}", _CONTIGUOUS | _ALIGNED)
        else:
            kind = _field(w, given, _HEADER - 8)
            either = [w.let(f"icmp eq ptr {kind}, {context[name]}") for name in ("float", "scalar")]
            _go_on(w, w.let(f"or i1 {either[0]}, {either[1]}"), f"argument{k}_is_a_number")
            data = w.at(given, _HEADER, "i8")
        w.line(f"store ptr {data}, ptr {w.at('%table', k, 'ptr')}")
        w.line(f"br label %argument{k + 1}")
    w.label(f"argument{n}")
    last = w.at("%table", n, "ptr")
    w.line(f"br i1 {w.let('icmp eq ptr %names, null')}, label %fresh, label %named")
    w.label("named")
    _go_on(w, w.let(f"icmp eq i64 {_field(w, '%names', _HEADER, 'i64')}, 1"), "named_once")
    _go_on(w, w.let(f"icmp eq ptr {_field(w, '%names', _HEADER + 8)}, {context['out']}"), "given")
    target = w.let(f"load ptr, ptr {w.at('%args', n, 'ptr')}")
    data = _array(w, target, graph.outputs[0], context, "given", _CONTIGUOUS | _ALIGNED | _WRITEABLE)
    w.line(f"store ptr {data}, ptr {last}")
    w.line(f"br i1 {w.let(f'icmp eq i64 {_run(w)}, 0')}, label %give_back, label %otherwise")
    w.label("give_back")
    w.line(f"call void {context['increment']}(ptr {target})")
    w.line(f"ret ptr {target}")
    w.label("fresh")
    size = f"ptr {context['array']}, i32 {len(graph.outputs[0])}, ptr @shape, i32 {_DOUBLE}"
    made = w.let(f"call ptr {context['new']}({size}, ptr null, ptr null, i32 0, i32 0, ptr null)")
    w.line(f"br i1 {w.let(f'icmp eq ptr {made}, null')}, label %no_memory, label %made")
    w.label("no_memory")
    w.line("ret ptr null")
    w.label("made")
    w.line(f"store ptr {_field(w, made, _DATA)}, ptr {last}")
    w.line(f"br i1 {w.let(f'icmp eq i64 {_run(w)}, 0')}, label %done, label %drop")
    w.label("done")
    w.line(f"ret ptr {made}")
    w.label("drop")
    w.line(f"call void {context['decrement']}(ptr {made})")
    w.line("br label %otherwise")
    w.label("otherwise")
    result = w.let(f"call ptr {context['vectorcall']}(ptr %self, ptr %args, i64 %nargs, ptr %names)")
    w.line(f"ret ptr {result}")
    dimensions = ", ".join(f"i64 {size}" for size in graph.outputs[0])
    yield f"@shape = internal constant [{len(graph.outputs[0])} x i64] [{dimensions}]"
    yield f"@{CONTEXT} = global [{len(_CONTEXT_NAMES)} x ptr] zeroinitializer, align 8"
    yield f"define ptr @{ENTRY}(ptr %self, ptr %args, i64 %nargs, ptr %names) {ATTRIBUTES} {{"
    yield from w.lines
    yield "}"


def _run(w: Writer) -> Value:
    return w.let(f"call i64 @{CORE}(ptr %table)")


def _field(w: Writer, thing: Value, offset: int, kind: str = "ptr") -> Value:
    return w.let(f"load {kind}, ptr {w.at(thing, offset, 'i8')}")


def _go_on(w: Writer, condition: Value, label: str) -> None:
    """Go on at a new block if the condition holds, leave the call to the ordinary way if not."""
    w.line(f"br i1 {condition}, label %{label}, label %otherwise")
    w.label(label)


def _array(
    w: Writer, given: Value, shape: tuple[int, ...], context: dict[str, Value], label: str, wanted: int
) -> Value:
    """Return where the numbers of an array are, after checking that it has the shape, the type and the flags."""
    _go_on(w, w.let(f"icmp eq ptr {_field(w, given, _HEADER - 8)}, {context['array']}"), f"{label}_is_an_array")
    flags = w.let(f"and i32 {_field(w, given, _FLAGS, 'i32')}, {wanted}")
    checks = [
        w.let(f"icmp eq i32 {flags}, {wanted}"),
        w.let(f"icmp eq ptr {_field(w, given, _DESCR)}, {context['double']}"),
        w.let(f"icmp eq i32 {_field(w, given, _ND, 'i32')}, {len(shape)}"),
    ]
    _go_on(w, _all(w, checks), f"{label}_fits")
    sizes = _field(w, given, _DIMENSIONS)
    checks = [w.let(f"icmp eq i64 {_field(w, sizes, 8 * i, 'i64')}, {n}") for i, n in enumerate(shape)]
    _go_on(w, _all(w, checks), f"{label}_has_the_shape")
    return _field(w, given, _DATA)


def _all(w: Writer, checks: list[Value]) -> Value:
    total = checks[0]
    for check in checks[1:]:
        total = w.let(f"and i1 {total}, {check}")
    return total
