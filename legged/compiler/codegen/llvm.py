"""Machine code from LLVM assembly, for this computer's processor."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from legged.compiler.codegen.elementary import symbol
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS

_LEVEL = 2
_OPTION = "-enable-misched=false"
"""Leave out LLVM's scheduler after instruction selection: with it a kernel of 30 000 operations takes three times as
long to compile, most others twice, and none of them runs faster. LLVM ends the process at an option that it does not
know, so it is set only for versions that are known to have it."""
_OPTION_VERSIONS = range(20, 23)


@cache
def _prepare() -> None:
    """Start LLVM, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if llvm.llvm_version_info[0] in _OPTION_VERSIONS:
        llvm.set_option("legged", _OPTION)
    _add_symbols()


def _machine() -> llvm.TargetMachine:
    """Return a new description of this computer; an execution engine takes the one it gets for its own."""
    _prepare()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    reloc = "static" if target.name in ("x86", "x86-64") else "default"
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=_features(),
        opt=_LEVEL,
        reloc=reloc,
        codemodel="jitdefault",
        jit=True,
    )


def _features() -> str:
    return llvm.get_host_cpu_features().flatten()


@cache
def width() -> int:
    """Return how many numbers this processor's vectors hold."""
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


def _add_symbols() -> None:
    """Tell the linker where the C library's functions are, which each system keeps elsewhere."""
    windows = sys.platform == "win32"
    library = ctypes.CDLL("ucrtbase" if windows else None)
    for name in LIBRARY_FUNCTIONS.values():
        llvm.add_symbol(symbol(name), _address(getattr(library, name)))
    llvm.add_symbol("fma", _address(library.fma))  # for processors without the instruction
    llvm.add_symbol("legged_allocate", _address(library.malloc))
    llvm.add_symbol("legged_release", _address(library.free))
    if windows:  # functions with large stack frames call it
        llvm.add_symbol("__chkstk", _address(ctypes.CDLL("ntdll").__chkstk))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def target_name() -> str:
    """Return what machine code depends on besides the graph: processor, its features, LLVM's version and options."""
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {_features()} LLVM {version} {_LEVEL} {_OPTION}"


def machine_code(text: str) -> bytes:
    """Return LLVM assembly as an object file of machine code."""
    machine = _machine()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


class Code:
    """Machine code in memory, loaded from an object file.

    Attributes:
        kept: Other code that this one calls, which must live as long.
    """

    kept: Code | None = None

    def __init__(self, content: bytes):
        machine = _machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return where a function is, or a global variable."""
        return self._engine.get_function_address(name) or self._engine.get_global_value_address(name)

    def function(self, name: str, *types: Any) -> Any:
        """Return a function that takes such arguments and returns an integer; other threads go on meanwhile."""
        return ctypes.CFUNCTYPE(ctypes.c_int64, *types)(self.address(name))

    def short_function(self, name: str, *types: Any) -> Any:
        """Return the same for short runs: quicker to call, but other threads wait."""
        return ctypes.PYFUNCTYPE(ctypes.c_int64, *types)(self.address(name))
