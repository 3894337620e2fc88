"""Built-in functions of Python whose body is the entry point of a kernel, and their tables of addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from legged.compiler.codegen.cpython.entry_point import ENTRY_POINT
from legged.compiler.codegen.cpython.layout import ENTRIES, TABLE, table_entries
from legged.compiler.codegen.element_type import ElementType
from legged.compiler.codegen.llvm import LoadedCode


class _MethodDef(ctypes.Structure):
    """PyMethodDef of CPython's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_METH_FASTCALL, _METH_KEYWORDS = 0x0080, 0x0002


def create(
    name: str,
    code: LoadedCode,
    element: ElementType,
    fallback: Callable[..., Any],
    run_batch: Callable[[int, int], int],
    rebuild: Callable[[tuple[Any, ...]], Any] | None,
    new_result: Callable[[int, int], Any],
) -> Any:
    """Return a built-in function that calls the entry point in loaded machine code.

    Args:
        name: Name of the function.
        code: Machine code that contains `entry_point.assembly`.
        element: Element type of the arrays.
        fallback: Receives the calls that the entry point does not handle.
        run_batch: Runs a large batch, given the number of states and the address of the array descriptors of
            `batch_loop`; returns the first state without a finite result, or -1.
        rebuild: Converts the tuple of results to the structure that the traced function returns; None if that is a
            tuple of arrays or a single array.
        new_result: Returns an array for a large result, given its number and the number of states.
    """
    table = _table(code)
    for k, address in enumerate(table_entries(element)):
        table[k] = address
    definition = _MethodDef(name.encode(), code.address(ENTRY_POINT), _METH_FASTCALL | _METH_KEYWORDS, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))  # read when the function is deleted at interpreter exit
    new_function = ctypes.pythonapi.PyCFunction_NewEx
    new_function.restype, new_function.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new_function(ctypes.addressof(definition), (fallback, run_batch, rebuild, new_result), None)


def attach_batch_loop(code: LoadedCode, batch: LoadedCode, address: int, limit: int) -> None:
    """Let the entry point in `code` run batches of up to `limit` states by the function at an address of `batch`."""
    table = _table(code)
    code.dependency = batch
    table[ENTRIES.index("batch_limit")] = limit
    table[ENTRIES.index("batch_loop")] = address


def _table(code: LoadedCode) -> Any:
    return (ctypes.c_void_p * len(ENTRIES)).from_address(code.address(TABLE))
