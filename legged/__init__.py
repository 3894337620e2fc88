"""Modeling, analyzing, simulating and controlling legged robots.

The public names are listed in `__init__.pyi`, and each is imported when it is used for the first time (PEP 562).
lazy-loader is not used: it would be a dependency for twenty lines, and imports no module that the stub does not list.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

from legged.version import __version__ as __version__

_STUB = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
_MODULES = {
    alias.name: node.module or "" for node in _STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names
}
_MOVED: dict[str, str] = {}
"""Old public name -> the module and name of the object that replaces it, for one release."""
_ELSEWHERE = {
    "Ball": "Spherical",
    "Free": "FloatingBase",
    "FreeFlyer": "FloatingBase",
    "FreeJoint": "FloatingBase",
    "Hinge": "Revolute",
    "Model": "Robot",
    "Slide": "Prismatic",
    "Weld": "Fixed",
}
"""Name in MuJoCo, Drake or Pinocchio -> public name of the same thing here."""
_BESIDE = ("controllers", "robots")
"""Packages beside this one in which a name is looked up, too."""
__all__ = sorted(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name or a module of this package."""
    module = _MODULES.get(name, __name__)
    if module != __name__:
        value = globals()[name] = getattr(import_module(module), name)
        return value
    try:
        if not name.startswith("_"):
            return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
    here = f"{__name__}.{_ELSEWHERE[name]}" if name in _ELSEWHERE else _found_elsewhere(name)
    if here:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: its name here is {here}", name=name)
    from legged.errors import deprecated_names

    return deprecated_names(__name__, _MOVED)(name)


def _found_elsewhere(name: str) -> str:
    """Return the full name of a public object of another package, by the texts of these, or ""."""
    folder = Path(__file__).parent
    for package in (*folder.glob("*/__init__.py"), *(folder.parent / name / "__init__.py" for name in _BESIDE)):
        if not name.startswith("_") and package.is_file() and f'    "{name}",' in package.read_text(encoding="utf-8"):
            return ".".join((*([__name__] if package.parents[1] == folder else []), package.parent.name, name))
    return ""


def __dir__() -> list[str]:
    """Return the public names and those of the modules imported so far."""
    return sorted({*globals(), *__all__})
