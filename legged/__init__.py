"""Modeling, analyzing, simulating and controlling legged robots.

The public names are listed in `__init__.pyi`, and each is imported when it is used for the first time.
"""

from pathlib import Path
from typing import Any

from legged.lazy_names import LazyNames
from legged.version import __version__ as __version__

_NAMES = LazyNames(__name__, __file__)
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
__all__ = sorted(_NAMES.modules)  # pyright: ignore[reportUnsupportedDunderAll]
_imported, __dir__ = _NAMES.attached(globals())


def __getattr__(name: str) -> Any:
    """Import a public name or a module of this package."""
    try:
        return _imported(name)
    except AttributeError as error:
        if error.name != name or error.obj is not None:
            raise
    here = f"{__name__}.{_ELSEWHERE[name]}" if name in _ELSEWHERE else _found_elsewhere(name)
    if here:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: its name here is {here}", name=name)
    from legged.errors import deprecated_names

    return deprecated_names(__name__, _MOVED)(name)


def _found_elsewhere(name: str) -> str:
    """Return the full name of a public object of another package, by the texts of these, or ""."""
    folder = Path(__file__).parent
    for package in folder.glob("*/__init__.py"):
        if not name.startswith("_") and f'    "{name}",' in package.read_text(encoding="utf-8"):
            return f"{__name__}.{package.parent.name}.{name}"
    for beside in _BESIDE:
        package = folder.parent / beside / "__init__.py"
        if package.is_file() and name in LazyNames(beside, package).modules:
            return f"{beside}.{name}"
    return ""
