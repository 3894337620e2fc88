"""Targets, compilation of LLVM IR to machine code for them, and loading of machine code."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numpy as np

from legged.arguments import shown
from legged.compiler import mechanisms
from legged.compiler.codegen import thread_pool
from legged.compiler.codegen.cpython import entry_point
from legged.compiler.codegen.element_type import ELEMENT_TYPES, FLOAT64, ElementType
from legged.compiler.codegen.elementary import library_symbol
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS
from legged.compiler.ir.pass_times import compiler_pass
from legged.errors import LeggedError

_OPTIMIZATION_LEVEL = 2
"""Level of LLVM's optimization of code that stays in use; see `cache.staged` for level 0."""
_OPTIONS = ("-enable-misched=false", "-disable-post-ra")
"""Disable LLVM's machine scheduler, and the one after register allocation, which LLVM runs for processors of AMD.

With the first a kernel of 30 000 operations takes three times as long to compile, most others twice; the second takes
an eighth to a quarter of the time of code generation. No kernel that was measured runs faster with them. LLVM aborts
the process at an unknown option, so the options are set only for versions that have them."""
_OPTION_VERSIONS = range(20, 23)


@cache
def _initialize() -> None:
    """Initialize LLVM, once."""
    with llvm.ffi.lib._lock:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        if llvm.llvm_version_info[0] in _OPTION_VERSIONS:
            for option in _OPTIONS:
                llvm.set_option("legged", option)
        _add_symbols()


class TargetError(LeggedError, ValueError):
    """A target that is unknown, or that this processor does not have."""


class Target(NamedTuple):
    """The processor for which machine code is compiled, and the numbers that the code computes with.

    Attributes:
        name: "native", or a key of `TARGETS`. cpu, features: The processor as LLVM names it.
        width: Number of numbers in a vector. element: Type of the numbers.
        is_narrow: Whether vectors are shorter than those of the processor, since a batch has few states.
    """

    name: str
    cpu: str
    features: str
    width: int
    element: ElementType = FLOAT64
    is_narrow: bool = False

    def with_element(self, element: ElementType) -> Target:
        """Return the same processor for numbers of another type, of which a vector of the same size holds more or less.

        Args:
            element: Type of the numbers.
        """
        width = self.width * self.element.size // element.size
        return self._replace(width=width, element=replace(element, has_fma=self._has_fma()))

    @property
    def vector_registers(self) -> int:
        """Number of vector registers."""
        is_arm = self.name == "neon" or processor_family() == "aarch64"
        return 32 if is_arm or self.width * self.element.size == 64 else 16

    def _has_fma(self) -> bool:
        if self.name == NATIVE and processor_family() == "x86":
            return "+fma" in self.features.split(",")
        return self.name != "sse2"


NATIVE = "native"
"""Name of the target with all features of this processor."""
TARGETS = {
    "sse2": (Target("sse2", "x86-64", "", 2), "x86", ("sse2",)),
    "avx2": (Target("avx2", "x86-64-v3", "+fast-gather", 4), "x86", ("avx2", "fma", "bmi2")),
    "avx512": (Target("avx512", "x86-64-v4", "", 8), "x86", ("avx512f", "avx512bw", "avx512dq", "avx512vl")),
    "neon": (Target("neon", "generic", "", 2), "aarch64", ()),
}
"""Targets by name, with their family of processors and the features that a processor must have."""


def target_named(name: str) -> Target:
    """Return a target of this processor.

    Args:
        name: "native", for all features of the processor, or a key of `TARGETS`.

    Raises:
        TargetError: The name is unknown, or the processor lacks a feature.
    """
    if name == NATIVE:
        return _native()
    if name not in TARGETS:
        raise TargetError(f"target must be one of {', '.join((NATIVE, *TARGETS))}, got {shown(name)}")
    target, family, needed = TARGETS[name]
    if family != processor_family():
        raise TargetError(f"target {name!r} needs {_FAMILIES[family]}; this is {llvm.get_process_triple()}")
    features = llvm.get_host_cpu_features()
    if missing := [feature for feature in needed if not features.get(feature)]:
        raise TargetError(f"target {name!r} needs the features {', '.join(missing)}, which this processor lacks")
    return target


@cache
def default_target() -> Target:
    """Return the target that the environment variable LEGGED_TARGET names, by default "native".

    Raises:
        TargetError: See `target_named`.
    """
    try:
        return target_named(os.environ.get("LEGGED_TARGET") or NATIVE)
    except TargetError as error:
        raise TargetError(f"LEGGED_TARGET: {error}") from None


@cache
def _native() -> Target:
    features = llvm.get_host_cpu_features()
    width = 8 if features.get("avx512f") else 4 if features.get("avx") else 2
    return Target(NATIVE, llvm.get_host_cpu_name(), features.flatten(), width)


_FAMILIES = {"x86": "an x86-64 processor", "aarch64": "a 64-bit ARM processor"}


def processor_family() -> str:
    """Return the family of this processor: "x86", "aarch64", or LLVM's name of another one."""
    machine = llvm.get_process_triple().partition("-")[0]
    return {"x86_64": "x86", "amd64": "x86", "aarch64": "aarch64", "arm64": "aarch64"}.get(machine, machine)


class _Current(threading.local):
    """The target of the code that this thread writes."""

    target: Target | None = None


_current = _Current()


@contextmanager
def target_context(target: Target) -> Iterator[None]:
    """Write and compile code for a target inside the context.

    Args:
        target: The target.
    """
    before, _current.target = _current.target, target
    try:
        yield
    finally:
        _current.target = before


def current_target() -> Target:
    """Return the target of the code that this thread writes."""
    return _current.target or default_target()


def vector_width() -> int:
    """Return the number of numbers in a vector of the current target."""
    return current_target().width


_LINK_SPACE = "@legged_link_space = private global i64 0, align 4096"
"""A variable of each module with the small code model. Its alignment makes llvmlite reserve a page more than variables
need, which the linker fills with the addresses of functions outside of the module. llvmlite's own estimate omits them
where a call goes through a stub, and the process is aborted."""


def has_small_code_model(triple: str) -> bool:
    """Return whether machine code reads constants at a distance from the instruction, for an LLVM triple of a system.

    Instructions then contain the distance in four bytes; otherwise an instruction of ten bytes loads each address. The
    code and the constants of a module must lie within 2 GB, for which the memory manager of llvmlite reserves one block
    of memory for all of them. Where object files have another format than ELF, this is not tested.
    """
    return triple.startswith(("x86_64-", "amd64-")) and "-linux" in triple


def _machine(target: Target, triple: str = "", level: int = _OPTIMIZATION_LEVEL) -> llvm.TargetMachine:
    """Return a new target machine; an execution engine takes ownership of the one it receives."""
    _initialize()
    triple = triple or llvm.get_process_triple()
    llvm_target, is_small = llvm.Target.from_triple(triple), has_small_code_model(triple)
    return llvm_target.create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        reloc="pic" if is_small else "static" if llvm_target.name in ("x86", "x86-64") else "default",
        codemodel="small" if is_small else "jitdefault",
        jit=True,
    )


def _add_symbols() -> None:
    """Register the addresses of functions of the C library with the linker; they depend on the operating system."""
    windows = sys.platform == "win32"
    library = ctypes.CDLL("ucrtbase" if windows else None)
    for suffix in [element.library_suffix for element in ELEMENT_TYPES.values()]:
        for name in LIBRARY_FUNCTIONS.values():
            llvm.add_symbol(library_symbol(name + suffix), _address(getattr(library, name + suffix)))
    llvm.add_symbol("legged_malloc", _address(library.malloc))
    llvm.add_symbol("legged_free", _address(library.free))
    for name in (*thread_pool.SYMBOLS, *entry_point.CPYTHON):
        llvm.add_symbol(name, _address(getattr(ctypes.pythonapi, name)))
    for name, index in entry_point.NUMPY.items() if entry_point.is_supported() else ():
        llvm.add_symbol(name, entry_point.numpy_function(index))
    if windows:  # called by functions with large stack frames
        llvm.add_symbol("__chkstk", _address(ctypes.CDLL("ntdll").__chkstk))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def target_description(target: Target) -> str:
    """Return everything that machine code depends on besides the graph: processor, lanes, numbers and LLVM's options.

    Args:
        target: The target.
    """
    version, triple = ".".join(map(str, llvm.llvm_version_info)), llvm.get_process_triple()
    model = " small" if has_small_code_model(triple) else ""
    processor = f"{triple}{model} {target.cpu} {target.features} {target.width} {target.element}"
    off = sorted(mechanisms.switched_off() & mechanisms.OF_CODE)
    options = [*_OPTIONS, *(f"without {name}" for name in off)]
    return f"{processor} LLVM {version} {_OPTIMIZATION_LEVEL} {' '.join(options)}"


def machine_code(ir: str, level: int = _OPTIMIZATION_LEVEL) -> bytes:
    """Return an LLVM module in textual IR, compiled to an object file for the current target.

    Several threads can compile modules at the same time.

    Args:
        ir: The module. level: Level of optimization, 0 or 2.
    """
    machine, triple = _machine(current_target(), level=level), llvm.get_process_triple()
    module = _parsed(f"{ir}\n{_LINK_SPACE}" if has_small_code_model(triple) else ir)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return _object_file(machine, module)


def foreign_machine_code(ir: str, target: Target, triple: str) -> bytes:
    """Return an LLVM module in textual IR, compiled to an object file for another family of processors.

    Args:
        ir: The module. target: The target. triple: LLVM's triple of the system, such as "aarch64-linux-gnu".
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine, module = _machine(target, triple), _parsed(ir)
    module.triple, module.data_layout = triple, str(machine.target_data)
    return _object_file(machine, module)


@compiler_pass("parsing of LLVM IR")
def _parsed(ir: str) -> llvm.ModuleRef:
    return llvm.parse_assembly(ir, llvm.create_context())  # threads cannot share a context


@compiler_pass("code generation by LLVM")
def _object_file(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """Return the object file of a module, without llvmlite's lock, so that other threads can use LLVM."""
    error, emit = llvm.ffi.OutputString(), _emit_function()
    with error, _emission():
        buffer = emit(machine, module, 1, error)
        if not buffer:
            raise RuntimeError(f"LLVM cannot compile the module: {error}")
    library = llvm.ffi.lib
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


_free = threading.Condition()
"""Held while `_emitting` changes, and during a fork."""
_emitting: set[int] = set()
"""Threads that generate code without llvmlite's lock."""


@contextmanager
def _emission() -> Iterator[None]:
    """Generate code: no process is forked meanwhile by another thread."""
    thread = threading.get_ident()
    with _free:
        _emitting.add(thread)
    try:
        yield
    finally:
        with _free:
            _emitting.discard(thread)
            _free.notify_all()


def _before_fork() -> None:
    """Wait until no other thread is inside LLVM, whose locks a forked process inherits in the state that they have.

    Generation of code for a large graph takes seconds, so that a fork can wait as long.
    """
    _free.acquire()
    _free.wait_for(lambda: not _emitting - {threading.get_ident()})
    llvm.ffi.lib._lock.__enter__()


def _after_fork() -> None:
    """Let threads use LLVM again: in the forked process that of the fork, which holds the locks there too."""
    llvm.ffi.lib._lock.__exit__(None, None, None)
    _free.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@cache
def _emit_function() -> Any:
    """Return LLVM's function that generates code; the one of llvmlite holds a lock that all its functions need."""
    locked = llvm.ffi.lib.LLVMPY_TargetMachineEmitToMemory
    function = ctypes.CDLL(llvm.ffi.lib._name).LLVMPY_TargetMachineEmitToMemory
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


class LoadedCode:
    """Machine code in memory, from object files, each of which may call functions of those after it.

    The memory of the files may be far apart. Calls of a file after it go through stubs, those of one before it do not:
    LLVM would abort the process if they were longer than 2 GB.

    Attributes:
        dependency: Other machine code that this code calls; the reference keeps it loaded.
        tables: Arrays that this code reads; the references keep them in memory.
    """

    dependency: LoadedCode | None = None
    tables: Sequence[np.ndarray] = ()

    @compiler_pass("loading")
    def __init__(self, *object_files: bytes):
        machine = _machine(default_target())
        one_block = True if has_small_code_model(llvm.get_process_triple()) else None  # None: llvmlite's default
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, one_block)
        for file in object_files:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(file))
        self._engine.finalize_object()
        self._targets: list[LoadedCode] = []

    def address(self, name: str) -> int:
        """Return the address of a function or a global variable, of this code or the first one of its jumps; or 0."""
        own = self._engine.get_function_address(name) or self._engine.get_global_value_address(name)
        return self._targets[0].address(name) if not own and self._targets else own

    def redirect(self, other: LoadedCode, variables: Mapping[str, str]) -> None:
        """Let functions of this code, whose addresses stay, jump to those of other code from now on.

        Code that they jumped to before stays in memory, as threads may execute it. `variables` are those of this code
        with the addresses, by the names of the functions.
        """
        for name, variable in variables.items():
            if address := other.address(name):
                ctypes.c_void_p.from_address(self.address(variable)).value = address
        self._targets.append(other)

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
