"""Public names of a package that are imported when they are used for the first time (PEP 562), from its stub.

lazy-loader is not used: it would be a dependency for twenty lines, and imports no module that the stub does not list.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


class LazyNames:
    """The public names in the stub of a package, `__init__.pyi`.

    Args:
        package: Name of the package. file: Its `__init__.py`.

    Attributes:
        modules: Public name -> module that defines it; the package itself for a module of this name.
    """

    def __init__(self, package: str, file: str | Path):
        tree = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        self._package = package
        self.modules = {alias.name: node.module or "" for node in imports for alias in node.names}

    def get(self, name: str) -> Any:
        """Return a public object, or a module of the package, after its import.

        Raises:
            AttributeError: The package has neither.
        """
        module = self.modules.get(name, self._package)
        if module != self._package:
            return getattr(import_module(module), name)
        try:
            if not name.startswith("_"):
                return import_module(f"{self._package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{self._package}.{name}":
                raise
        raise AttributeError(f"module {self._package!r} has no attribute {name!r}", name=name)

    def attached(self, namespace: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
        """Return the functions `__getattr__` and `__dir__` of the package.

        Args:
            namespace: Its globals, which keep what has been imported.
        """

        def get(name: str) -> Any:
            value = namespace[name] = self.get(name)
            return value

        return get, lambda: sorted({*namespace, *self.modules})
