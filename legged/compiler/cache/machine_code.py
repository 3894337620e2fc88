"""Machine code of graphs: in memory, on disk, or compiled."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import NamedTuple
from weakref import WeakValueDictionary, ref

from legged.compiler import mechanisms
from legged.compiler.cache import disk, staged
from legged.compiler.codegen import llvm, selection, tables
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.operations import Loop
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


class _Ahead(NamedTuple):
    """A thread that loads or compiles code ahead of its use, and the report of its passes."""

    thread: threading.Thread
    times: CompilationReport


_ahead: dict[_Key, _Ahead] = {}
"""The threads that `load` waits for, by the keys of their code."""


def load_ahead(graph: Graph, program: Callable[[Graph], str], target: llvm.Target) -> None:
    """Begin to `load` code in another thread if a processor is free; a later call of `load` waits for it.

    Args:
        graph, program, target: As in `load`.
    """
    key, times = _key(graph, program, target), CompilationReport()

    def run() -> None:
        with suppress(Exception), times:  # the later call raises the same error
            load(graph, program, target)

    if key not in _loaded and key not in _ahead and _has_free_processor():
        _ahead[key] = _Ahead(threading.Thread(target=run, name="legged-ahead"), times)
        _ahead[key].thread.start()


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
    ahead = _ahead.get(key)
    if ahead is not None and ahead.thread is not threading.current_thread():
        ahead.thread.join()
        if _ahead.pop(key, None) is not None:
            add_times(ahead.times)
    processor = key[-1]
    with _lock:
        code = _loaded.get(key)
        if code is None:
            modules: dict[_Key, Callable[[], str]] = {(write.__name__, processor): write for write in shared}
            modules |= _modules_of(graph, key, program, width)
            if staged.is_possible():
                code = _in_stages(graph, key, modules, target)
            else:
                code = _bound(graph, key, _object_files(modules, target), target)
            _loaded[key] = code
        _recent[key] = code
        _recent.move_to_end(key)
        if len(_recent) > _MAX_UNUSED:
            _recent.popitem(last=False)
    return code


def _modules_of(graph: Graph, key: _Key, program: Callable[[Graph], str], width: int) -> dict[_Key, Callable[[], str]]:
    """Return the writers of the modules of a graph, in the order of their compilation, see `_object_files`.

    Short loops come first, which are compiled while the program is written. The program comes before long loops: only
    the last of these is then compiled at the same time as other code, as LLVM needs much memory for all of them.

    Args:
        graph, program, width: As in `load`. key: Key of the program.
    """

    def written(loops: Iterable[Loop]) -> dict[_Key, Callable[[], str]]:
        return {(loop, str(width), key[-1]): partial(selection.loop_module, loop, width) for loop in loops}

    loops = sorted(graph.loops, key=lambda loop: len(loop.body.nodes))
    count = sum(len(loop.body.nodes) <= selection.OUTLINE_NODES for loop in loops)
    return {**written(loops[:count]), key: partial(program, graph), **written(reversed(loops[count:]))}


def _bound(graph: Graph, key: _Key, objects: Mapping[_Key, bytes], target: llvm.Target) -> llvm.LoadedCode:
    """Return the loaded code of a graph, given the object files of its modules; that of `key` calls the others."""
    code = llvm.LoadedCode(objects[key], *(content for other, content in objects.items() if other != key))
    tables.bind(code, graph, target.element)
    return code


def _in_stages(
    graph: Graph, key: _Key, modules: Mapping[_Key, Callable[[], str]], target: llvm.Target
) -> llvm.LoadedCode:
    """Return the loaded code of a graph, which is replaced when another process has optimized it, if a module is long.

    Args:
        graph: What it computes. key: The key of the module that calls the others. modules: As for `_object_files`.
        target: The processor and the type of the numbers.
    """
    unoptimized = dict[str, staged.Module]()
    code = _bound(graph, key, _object_files(modules, target, unoptimized), target)
    if not unoptimized:
        return code
    jumps = (selection.replaceable_module.__name__, llvm.target_description(target))
    entry = llvm.LoadedCode(*_object_files({jumps: selection.replaceable_module}, target).values())
    entry.redirect(code, _VARIABLES)
    reference = ref(entry)

    def replace() -> None:
        read = {module: disk.read(disk.file_name(disk.CODE, *module)) for module in modules}
        objects = {module: content for module, content in read.items() if content is not None}
        entry = reference()
        if entry is not None and len(objects) == len(read):
            entry.redirect(_bound(graph, key, objects, target), _VARIABLES)

    try:
        staged.optimize(unoptimized, target, replace)
    except OSError:  # no other process can be started
        return _bound(graph, key, _object_files(modules, target), target)
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
            _modules[tuple(key)] = llvm.LoadedCode(*_object_files({tuple(key): program}, target).values())
        return _modules[tuple(key)]


def _object_files(
    modules: Mapping[_Key, Callable[[], str]],
    target: llvm.Target,
    unoptimized: dict[str, staged.Module] | None = None,
) -> dict[_Key, bytes]:
    """Return the object files of modules by their keys: from the cache folder, or else compiled and stored there.

    If a processor is free, another thread compiles the modules in their order while this one writes the next ones;
    then both compile what is left.

    Args:
        modules: Writers of the modules in LLVM IR, by their keys. target: The processor and the type of the numbers.
        unoptimized: Receives the modules that are compiled without optimization, now or for another graph, and not
            stored, by the names of their files; None to optimize all.
    """
    files = [disk.file_name(disk.CODE, *key) for key in modules]
    contents = dict(enumerate(map(disk.read, files)))
    if unoptimized is not None:
        shared = {file: module for file in files if file is not None and (module := staged.in_work(file)) is not None}
        unoptimized |= {file: shared[file] for k, file in enumerate(files) if contents[k] is None and file in shared}
        contents |= {k: unoptimized[file].code for k, file in enumerate(files) if file in unoptimized}
    missing = [k for k, content in contents.items() if content is None]
    stage = selection.Stage.ONCE if unoptimized is None else selection.Stage.FIRST
    with llvm.target_context(target), selection.stage(stage), _Background(target) as background:
        for k, write in enumerate(modules.values()):
            if k in missing:
                ir, file, level = write(), files[k], 2
                if unoptimized is not None and file is not None and staged.is_staged(ir):
                    unoptimized[file], level = staged.Module(ir, write), 0
                if k == missing[-1]:
                    contents[k] = llvm.machine_code(ir, level)
                else:
                    background.compile(k, ir, level)
        background.compile_rest()
    contents |= background.result()
    objects = {key: contents[k] or b"" for k, key in enumerate(modules)}
    for k, key in enumerate(modules):
        file = files[k]
        if unoptimized is not None and file in unoptimized:
            unoptimized[file].code = objects[key]
        elif k in missing:
            disk.write(file, objects[key])
    return objects


class _Background:
    """A thread that compiles modules one after the other, from the first module to the end of the context."""

    def __init__(self, target: llvm.Target):
        self._target, self._times = target, CompilationReport()
        self._modules: SimpleQueue[tuple[int, str, int] | None] = SimpleQueue()
        self._objects: dict[int, bytes] = {}
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> _Background:
        return self

    def __exit__(self, *error: object) -> None:
        self._modules.put(None)

    def compile(self, number: int, ir: str, level: int) -> None:
        """Compile a module after those before; `result` returns its object file under this number.

        Without a free processor the caller compiles it, as two threads that share one take longer together.
        """
        if self._thread is None and not _has_free_processor():
            self._objects[number] = llvm.machine_code(ir, level)
            return
        self._modules.put((number, ir, level))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run)
            self._thread.start()

    def compile_rest(self) -> None:
        """Compile modules that the thread has not begun."""
        with suppress(Empty):
            while module := self._modules.get_nowait():
                self._objects[module[0]] = llvm.machine_code(*module[1:])

    def result(self) -> dict[int, bytes]:
        """Return the object files of all modules, after the context; raise an error of LLVM in that thread."""
        if self._thread is not None:
            self._thread.join()
            add_times(self._times)
        if self._error is not None:
            raise self._error
        return self._objects

    def _run(self) -> None:
        try:
            with self._times, llvm.target_context(self._target):
                while (module := self._modules.get()) is not None:
                    self._objects[module[0]] = llvm.machine_code(*module[1:])
        except BaseException as error:  # raised in the thread that needs the modules
            self._error = error


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


def _renew_locks() -> None:
    """Give a forked process locks that no thread of its parent holds."""
    global _lock
    _lock = threading.RLock()
    if sys.version_info < (3, 12):  # in which a property that a thread computes is locked in all objects of the class
        for module in [m for name, m in sys.modules.items() if name.partition(".")[0] in _PACKAGES]:
            classes = [x for x in vars(module).values() if isinstance(x, type)]
            for value in [x for owner in classes for x in vars(owner).values() if isinstance(x, cached_property)]:
                value.lock = threading.RLock()  # pyright: ignore[reportAttributeAccessIssue]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)
