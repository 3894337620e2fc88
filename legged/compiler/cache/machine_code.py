"""Machine code of graphs: in memory, on disk, or compiled."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from legged.compiler.cache import disk
from legged.compiler.codegen import llvm, tables
from legged.compiler.ir.graph import Graph
from legged.compiler.ir.tracer import gc_paused

_MAX_UNUSED = 32
"""Number of modules of machine code that stay in memory without a kernel that uses them, the most recent ones."""

_Key = tuple[str, ...]
_lock = threading.Lock()
_loaded: WeakValueDictionary[_Key, llvm.LoadedCode] = WeakValueDictionary()
_recent: OrderedDict[_Key, llvm.LoadedCode] = OrderedDict()


@gc_paused()
def load(graph: Graph, program: Callable[[Graph], str], target: llvm.Target) -> llvm.LoadedCode:
    """Return a graph's machine code: from memory, else from the cache folder, else compiled and stored there.

    Args:
        graph: What to compute.
        program: Writes the LLVM IR of the graph; called only if the graph has to be compiled.
        target: The processor and the type of the numbers.
    """
    key = (program.__name__, f"single array: {graph.is_bare}", graph.digest, llvm.target_description(target))
    with _lock:
        code = _loaded.get(key)
        if code is None:
            code = _loaded[key] = load_module(key, lambda: program(graph), target)
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
    file = disk.file_name(disk.CODE, *key)
    content = disk.read(file)
    if content is None:
        with llvm.target_context(target):
            content = llvm.machine_code(program())
        disk.write(file, content)
    return llvm.LoadedCode(content)


def unload() -> None:
    """Remove all machine code from memory except that of existing kernels."""
    with _lock:
        _recent.clear()
        _loaded.clear()
