"""Compilation of LLVM IR to machine code for the processor of this computer, and loading of machine code."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from legged.compiler.codegen.elementary import library_symbol
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS
from legged.compiler.ir.pass_times import compiler_pass

_OPTIMIZATION_LEVEL = 2
_OPTION = "-enable-misched=false"
"""Disables LLVM's machine scheduler: with it a kernel of 30 000 operations takes three times as long to compile, most
others twice, and none runs faster. LLVM aborts the process at an unknown option, so the option is set only for versions
that have it."""
_OPTION_VERSIONS = range(20, 23)


@cache
def _initialize() -> None:
    """Initialize LLVM, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if llvm.llvm_version_info[0] in _OPTION_VERSIONS:
        llvm.set_option("legged", _OPTION)
    _add_symbols()


def _machine() -> llvm.TargetMachine:
    """Return a new target machine for this computer; an execution engine takes ownership of the one it receives."""
    _initialize()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    reloc = "static" if target.name in ("x86", "x86-64") else "default"
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        opt=_OPTIMIZATION_LEVEL,
        reloc=reloc,
        codemodel="jitdefault",
        jit=True,
    )


def _features() -> str:
    return llvm.get_host_cpu_features().flatten()


@cache
def vector_width() -> int:
    """Return the number of doubles in a vector of this processor."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


def _add_symbols() -> None:
    """Register the addresses of functions of the C library with the linker; they depend on the operating system."""
    windows = sys.platform == "win32"
    library = ctypes.CDLL("ucrtbase" if windows else None)
    for name in LIBRARY_FUNCTIONS.values():
        llvm.add_symbol(library_symbol(name), _address(getattr(library, name)))
    llvm.add_symbol("fma", _address(library.fma))  # for processors without the instruction
    llvm.add_symbol("legged_malloc", _address(library.malloc))
    llvm.add_symbol("legged_free", _address(library.free))
    if windows:  # called by functions with large stack frames
        llvm.add_symbol("__chkstk", _address(ctypes.CDLL("ntdll").__chkstk))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def target_description() -> str:
    """Return everything that machine code depends on besides the IR: the processor, LLVM's version and its options."""
    version = ".".join(map(str, llvm.llvm_version_info))
    processor = f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {_features()}"
    return f"{processor} LLVM {version} {_OPTIMIZATION_LEVEL} {_OPTION}"


def machine_code(ir: str) -> bytes:
    """Return an LLVM module in textual IR, compiled to an object file."""
    machine = _machine()
    module = _parsed(ir)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    return _object_file(machine, module)


@compiler_pass("parsing of LLVM IR")
def _parsed(ir: str) -> llvm.ModuleRef:
    return llvm.parse_assembly(ir)


@compiler_pass("code generation by LLVM")
def _object_file(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    return machine.emit_object(module)


class LoadedCode:
    """Machine code in memory.

    Attributes:
        dependency: Other machine code that this code calls; the reference keeps it loaded.
        tables: Arrays that this code reads; the references keep them in memory.
    """

    dependency: LoadedCode | None = None
    tables: Sequence[np.ndarray] = ()

    @compiler_pass("loading")
    def __init__(self, object_file: bytes):
        machine = _machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_file))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function or a global variable."""
        return self._engine.get_function_address(name) or self._engine.get_global_value_address(name)

    def function(self, name: str, *types: Any) -> Any:
        """Return a ctypes function with these argument types and an int64 result; a call releases the GIL."""
        return self._holding(ctypes.CFUNCTYPE(ctypes.c_int64, *types)(self.address(name)))

    def function_with_gil(self, name: str, *types: Any) -> Any:
        """Return the same for short functions; a call keeps the GIL, which is faster."""
        return self._holding(ctypes.PYFUNCTYPE(ctypes.c_int64, *types)(self.address(name)))

    def _holding(self, function: Any) -> Any:
        """Return a function that keeps this code in memory as long as it exists."""
        function.code = self
        return function
