"""Built-in functions of Python whose body is the entry point of kernels, see `codegen.cpython.entry_point`."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm
from legged.compiler.codegen.cpython import entry_point
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.ir.graph import Graph


class _MethodDef(ctypes.Structure):
    """PyMethodDef of CPython's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_FASTCALL, _METH_KEYWORDS = 0x0080, 0x0002
_OUT = sys.intern("out")


def create(
    graph: Graph,
    element: ElementType,
    fallback: Callable[..., Any],
    rebuild: Callable[[tuple[Any, ...]], Any] | None,
) -> tuple[Any, np.ndarray]:
    """Return a built-in function that calls machine code, and the numbers (n,) of `entry_point.KERNEL` that it reads.

    The first number is the address of the code for one state, which the caller sets once it is loaded. Before that, all
    calls go to the fallback.

    Args:
        graph: What the code computes.
        element: Element type of the arrays.
        fallback: Receives the calls that the entry point does not handle.
        rebuild: Converts the tuple of results to the structure that the traced function returns; None if that is a
            tuple of arrays or a single array.
    """
    inputs = [shape for _, shape in graph.inputs]
    shapes = [np.array(shape, dtype=np.int64) for shape in (*inputs, *graph.outputs)]
    rows = [(s.size, s[0] if s.size else 0, s.prod(), s.ctypes.data) for s in shapes]
    arrays, dtype = np.array(rows, dtype=np.int64), element.dtype
    objects = dtype, np.ndarray, float, np.float64, _OUT, fallback
    numbers = (
        _entry_code().address(entry_point.NOT_LOADED),
        len(inputs),
        len(graph.outputs),
        graph.is_bare,
        element.type_number,
        element.size,
    )
    converter = 0 if rebuild is None else id(rebuild)
    kernel = np.array([*numbers, *map(id, objects), converter, arrays.ctypes.data, *[0] * 5], dtype=np.int64)
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype, new_function.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    memory = kernel.ctypes.data, objects, rebuild, kernel, arrays, shapes  # the function keeps them alive
    return new_function(ctypes.addressof(_definition()), memory, None), kernel


@cache
def _entry_code() -> llvm.LoadedCode:
    target = llvm.default_target()
    return machine_code.load_module(("entry point", llvm.target_description(target)), entry_point.assembly, target)


@cache
def _definition() -> _MethodDef:
    code = _entry_code()
    address = code.address(entry_point.ENTRY_POINT)
    definition = _MethodDef(b"kernel", address, _METH_FASTCALL | _METH_KEYWORDS, None)
    for thing in (code, definition):  # used when functions are deleted at the exit of the interpreter
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return definition
