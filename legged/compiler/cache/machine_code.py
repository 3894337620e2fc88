"""Machine code of graphs: in memory, on disk, or compiled."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, cached_property, partial
from weakref import WeakValueDictionary, ref

from legged.compiler import mechanisms
from legged.compiler.cache import disk, staged
from legged.compiler.codegen import llvm, selection, tables
from legged.compiler.codegen.selection import Stage
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import Loop, nested_loops
from legged.compiler.ir.pass_times import CompilationReport, add_times
from legged.compiler.ir.tracer import gc_paused

_MAX_UNUSED = 32
"""Number of modules of machine code that stay in memory without a kernel that uses them, the most recent ones."""

_PACKAGES = "legged", "controllers", "robots"
_VARIABLES = {name: selection.code_variable(name) for name in selection.ENTRIES}
_Key = tuple[str, ...]
_lock = threading.RLock()
_loaded: WeakValueDictionary[_Key, llvm.LoadedCode] = WeakValueDictionary()
_modules: dict[_Key, llvm.LoadedCode] = {}
_recent: OrderedDict[_Key, llvm.LoadedCode] = OrderedDict()
_ahead: dict[_Key, _ObjectFiles] = {}
"""The object files of code that `load_ahead` has begun, and `load` takes."""


@gc_paused()
def load_ahead(
    graph: Graph,
    program: Callable[[Graph], str],
    target: llvm.Target,
    width: int = 1,
    shared: Sequence[Callable[[], str]] = (),
) -> None:
    """Write the modules of a graph now, for a later call of `load`; another thread compiles each of them meanwhile.

    Do nothing without a free processor.

    Args:
        graph, program, target, width, shared: As in `load`.
    """
    key = _key(graph, program, target)
    with _lock, suppress(Exception):  # the later call raises the same error
        if key not in _loaded and key not in _ahead and _has_free_processor():
            _ahead[key] = _begun(graph, key, program, target, width, shared, is_ahead=True)


def _key(graph: Graph, program: Callable[[Graph], str], target: llvm.Target) -> _Key:
    """Return everything that code for one or several states depends on, the description of the processor last."""
    return program.__name__, f"single array: {graph.is_bare}", graph.digest, llvm.target_description(target)


@gc_paused()
def load(
    graph: Graph,
    program: Callable[[Graph], str],
    target: llvm.Target,
    width: int = 1,
    shared: Sequence[Callable[[], str]] = (),
) -> llvm.LoadedCode:
    """Return a graph's machine code: from memory, else from the cache folder, else compiled and stored there.

    The loops of the graph are modules of their own, which other graphs with the same loops use as well.

    Args:
        graph: What to compute.
        program: Writes the LLVM IR of the graph; called only if the graph has to be compiled.
        target: The processor and the type of the numbers.
        width: Number of states that the program computes together.
        shared: Write modules that the program calls and that do not depend on the graph.
    """
    key = _key(graph, program, target)
    with _lock:
        code = _loaded.get(key)
        if code is None:
            begun = _ahead.pop(key, None) or _begun(graph, key, program, target, width, shared)
            code = _loaded[key] = _in_stages(graph, key, begun, target)
        _recent[key] = code
        _recent.move_to_end(key)
        if len(_recent) > _MAX_UNUSED:
            _recent.popitem(last=False)
    return code


def _begun(
    graph: Graph,
    key: _Key,
    program: Callable[[Graph], str],
    target: llvm.Target,
    width: int,
    shared: Sequence[Callable[[], str]],
    is_ahead: bool = False,
) -> _ObjectFiles:
    """Return the object files of the modules of a graph, whose compilation begins; arguments as in `load`."""
    modules: dict[_Key, Callable[[], str]] = {(write.__name__, key[-1]): write for write in shared}
    modules |= _modules_of(graph, key, program, width)
    return _ObjectFiles(modules, target, staged.is_possible(), is_ahead)


def _modules_of(graph: Graph, key: _Key, program: Callable[[Graph], str], width: int) -> dict[_Key, Callable[[], str]]:
    """Return the writers of the modules of a graph, in the order of their compilation, see `_ObjectFiles`.

    Short loops come first, which are compiled while the program is written. The program comes before long loops: only
    the last of these is then compiled at the same time as other code, as LLVM needs much memory for all of them.

    Args:
        graph, program, width: As in `load`. key: Key of the program.
    """

    def written(loops: Iterable[Loop]) -> dict[_Key, Callable[[], str]]:
        return {(loop, str(width), key[-1]): partial(selection.loop_module, loop, width) for loop in loops}

    loops = sorted(nested_loops(graph), key=lambda loop: len(loop.body.nodes))
    count = sum(len(loop.body.nodes) <= selection.OUTLINE_NODES for loop in loops)
    return {**written(loops[:count]), key: partial(program, graph), **written(reversed(loops[count:]))}


def _bound(graph: Graph, key: _Key, objects: Mapping[_Key, bytes], target: llvm.Target) -> llvm.LoadedCode:
    """Return the loaded code of a graph, given the object files of its modules; that of `key` calls the others."""
    code = llvm.LoadedCode(objects[key], *(content for other, content in objects.items() if other != key))
    tables.bind(code, graph, target.element)
    return code


def _in_stages(graph: Graph, key: _Key, files: _ObjectFiles, target: llvm.Target) -> llvm.LoadedCode:
    """Return the loaded code of a graph, which is replaced when another process has optimized it, if a module is long.

    Args:
        graph: What it computes. key: The key of the module that calls the others. files: Of its modules.
        target: The processor and the type of the numbers.
    """
    code = _bound(graph, key, files.contents(), target)
    if not files.unoptimized:
        return code
    jumps = (selection.replaceable_module.__name__, llvm.target_description(target))
    entry = llvm.LoadedCode(*_ObjectFiles({jumps: selection.replaceable_module}, target).contents().values())
    entry.redirect(code, _VARIABLES)
    reference, keys = ref(entry), [*files.modules]

    def replace() -> None:
        read = {module: disk.read(disk.file_name(disk.CODE, *module)) for module in keys}
        objects = {module: content for module, content in read.items() if content is not None}
        entry = reference()
        if entry is not None and len(objects) == len(read):
            entry.redirect(_bound(graph, key, objects, target), _VARIABLES)

    try:
        staged.optimize(files.unoptimized, target, replace)
    except OSError:  # no other process can be started
        return _bound(graph, key, _ObjectFiles(files.modules, target).contents(), target)
    return entry


def load_module(key: Sequence[str], program: Callable[[], str], target: llvm.Target) -> llvm.LoadedCode:
    """Return the machine code of a module: from memory, where it stays, else from the cache folder, else compiled.

    Args:
        key: Everything that the code depends on besides the version of this package.
        program: Writes the LLVM IR.
        target: The processor and the type of the numbers.
    """
    with _lock:  # threads that use it for the first time get the same code
        if tuple(key) not in _modules:
            _modules[tuple(key)] = llvm.LoadedCode(*_ObjectFiles({tuple(key): program}, target).contents().values())
        return _modules[tuple(key)]


class _ObjectFiles:
    """The object files of modules: from the cache folder, or else compiled and stored there.

    If a processor is free, another thread compiles the modules in their order while this one writes the next ones;
    `contents` compiles those that the thread has not begun.

    Args:
        modules: Writers of the modules in LLVM IR, by their keys. target: The processor and the type of the numbers.
        in_stages: Whether long modules are compiled without optimization first.
        is_ahead: Whether the caller has other work before it calls `contents`.

    Attributes:
        modules, in_stages: The arguments.
        unoptimized: The modules that are compiled without optimization, now or for another graph, and not stored, by
            the names of their files.
    """

    def __init__(
        self,
        modules: Mapping[_Key, Callable[[], str]],
        target: llvm.Target,
        in_stages: bool = False,
        is_ahead: bool = False,
    ):
        self.modules, self.in_stages, self._new = modules, in_stages, dict[_Key, _Compilation]()
        self.unoptimized = dict[str, staged.Module]()
        self._files = {key: disk.file_name(disk.CODE, *key) for key in modules}
        self._known = {key: disk.read(file) for key, file in self._files.items()}
        for key, file in self._files.items() if in_stages else ():
            module = staged.in_work(file)
            if module is not None and file is not None and self._known[key] is None:
                self._known[key], self.unoptimized[file] = module.code, module
        begun = dict(pair for files in _ahead.values() if files.in_stages == in_stages for pair in files._new.items())
        missing = [key for key in modules if self._known[key] is None]
        with llvm.target_context(target), selection.stage(Stage.FIRST if in_stages else Stage.ONCE):
            for key in missing:
                waits = is_ahead or key != missing[-1]
                self._new[key] = begun.get(key) or _Compilation(modules[key], target, in_stages, waits)

    def contents(self) -> dict[_Key, bytes]:
        """Return the object files of all modules by their keys; raise an error of LLVM in the other thread."""
        new = [*self._new.values()]
        for compilation in (*new[-1:], *new):
            compilation.begin()
        for key, compilation in self._new.items():
            file, code = self._files[key], compilation.code()
            if compilation.module is None or file is None:
                disk.write(file, code)
            else:
                compilation.module.code, self.unoptimized[file] = code, compilation.module
            self._known[key] = code
        return {key: content or b"" for key, content in self._known.items()}


class _Compilation:
    """A module that is written, and compiled by another thread if a processor is free, or here.

    Args:
        write: Writes it. target: The processor and the type of the numbers.
        in_stages: Whether it is compiled without optimization if it is long.
        waits: Whether this thread has other work before it needs the code.

    Attributes:
        module: The module if it is compiled without optimization.
    """

    def __init__(self, write: Callable[[], str], target: llvm.Target, in_stages: bool, waits: bool):
        self._ir, self._target, self._times = write(), target, CompilationReport()
        self.module = staged.Module(self._ir, write) if in_stages and staged.is_staged(self._ir) else None
        self._code: bytes | None = None
        # Two threads that share a processor take longer together than one.
        is_alone = not waits or not _has_free_processor()
        self._future = None if is_alone else _other_thread().submit(self._in_other_thread)
        if is_alone and waits:
            self.begin()

    def begin(self) -> None:
        """Compile it here if the other thread has not begun."""
        if self._code is None and (self._future is None or self._future.cancel()):
            self._code = self._compiled()

    def code(self) -> bytes:
        """Return the object file, for which the caller waits."""
        if self._code is None:
            assert self._future is not None
            self._code = self._future.result()
            add_times(self._times)
        return self._code

    def _in_other_thread(self) -> bytes:
        with self._times:
            return self._compiled()

    def _compiled(self) -> bytes:
        with llvm.target_context(self._target):
            code = llvm.machine_code(self._ir, 2 if self.module is None else 0)
        self._ir = ""
        return code


@cache
def _other_thread() -> ThreadPoolExecutor:
    """Return the executor whose thread compiles modules one after the other."""
    return ThreadPoolExecutor(1, "legged_compiler")


def _has_free_processor() -> bool:
    """Return whether other programs leave a processor to a second thread, by the load of the last minute.

    It is False without the mechanism, background compilation.
    """
    if not mechanisms.is_on(mechanisms.BACKGROUND):
        return False
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):  # Windows
        load = 0.0
    return load < (os.cpu_count() or 1) - 0.5


def unload() -> None:
    """Remove all machine code from memory except that of existing kernels."""
    with _lock:
        _recent.clear()
        _loaded.clear()
        _ahead.clear()


def _renew_locks() -> None:
    """Give a forked process locks that no thread of its parent holds, and no compilations of other threads."""
    global _lock
    _lock = threading.RLock()
    _ahead.clear()
    _other_thread.cache_clear()
    if sys.version_info < (3, 12):  # in which a property that a thread computes is locked in all objects of the class
        for module in [m for name, m in sys.modules.items() if name.partition(".")[0] in _PACKAGES]:
            classes = [x for x in vars(module).values() if isinstance(x, type)]
            for value in [x for owner in classes for x in vars(owner).values() if isinstance(x, cached_property)]:
                value.lock = threading.RLock()  # pyright: ignore[reportAttributeAccessIssue]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
