"""Machine code of graphs: in memory, on disk, or compiled."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakValueDictionary

from legged.compiler.cache import disk
from legged.compiler.codegen import llvm, selection, tables
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.pass_times import CompilationReport, add_times
from legged.compiler.ir.tracer import gc_paused

_MAX_UNUSED = 32
"""Number of modules of machine code that stay in memory without a kernel that uses them, the most recent ones."""

_Key = tuple[str, ...]
_lock = threading.Lock()
_loaded: WeakValueDictionary[_Key, llvm.LoadedCode] = WeakValueDictionary()
_recent: OrderedDict[_Key, llvm.LoadedCode] = OrderedDict()


@gc_paused()
def load(graph: Graph, program: Callable[[Graph], str], target: llvm.Target, width: int = 1) -> llvm.LoadedCode:
    """Return a graph's machine code: from memory, else from the cache folder, else compiled and stored there.

    The loops of the graph are modules of their own, which other graphs with the same loops use as well. They are
    compiled by other threads, while this one writes and compiles the rest.

    Args:
        graph: What to compute.
        program: Writes the LLVM IR of the graph; called only if the graph has to be compiled.
        target: The processor and the type of the numbers.
        width: Number of states that the program computes together.
    """
    processor = llvm.target_description(target)
    key = (program.__name__, f"single array: {graph.is_bare}", graph.digest, processor)
    with _lock:
        code = _loaded.get(key)
        if code is None:
            modules = [
                _Module((loop, str(width), processor), partial(selection.loop_module, loop, width), target)
                for loop in graph.loops
            ]
            own = _Module(key, lambda: program(graph), target, in_background=False)
            code = _loaded[key] = llvm.LoadedCode(*(module.content() for module in (own, *modules)))
            tables.bind(code, graph, target.element)
        _recent[key] = code
        _recent.move_to_end(key)
        if len(_recent) > _MAX_UNUSED:
            _recent.popitem(last=False)
    return code


def load_module(key: Sequence[str], program: Callable[[], str], target: llvm.Target) -> llvm.LoadedCode:
    """Return the machine code of a module: from the cache folder, else compiled and stored there.

    Args:
        key: Everything that the code depends on besides the version of this package.
        program: Writes the LLVM IR.
        target: The processor and the type of the numbers.
    """
    return llvm.LoadedCode(_Module(key, program, target, in_background=False).content())


class _Module:
    """The object file of a module: read from the cache folder, or else compiled, in the background or at once.

    Args:
        key, program, target: As in `load_module`. in_background: Whether to compile in a thread of its own.
    """

    def __init__(self, key: Sequence[str], program: Callable[[], str], target: llvm.Target, in_background: bool = True):
        self._file, self._target = disk.file_name(disk.CODE, *key), target
        self._content = disk.read(self._file)
        self._error: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._times = CompilationReport()
        if self._content is not None:
            self._file = None
            return
        with llvm.target_context(target):
            ir = program()
        if in_background:
            self._thread = threading.Thread(target=self._compile_in_background, args=(ir,))
            self._thread.start()
        else:
            self._compile(ir)

    def content(self) -> bytes:
        """Return the object file, which is now in the cache folder."""
        if self._thread is not None:
            self._thread.join()
            add_times(self._times)
        if self._error is not None:
            raise self._error
        assert self._content is not None
        disk.write(self._file, self._content)
        return self._content

    def _compile(self, ir: str) -> None:
        with llvm.target_context(self._target):
            self._content = llvm.machine_code(ir)

    def _compile_in_background(self, ir: str) -> None:
        try:
            with self._times:
                self._compile(ir)
        except BaseException as error:  # raised in the thread that needs the module
            self._error = error


def unload() -> None:
    """Remove all machine code from memory except that of existing kernels."""
    with _lock:
        _recent.clear()
        _loaded.clear()
