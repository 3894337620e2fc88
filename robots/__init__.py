"""Ready-made robots; the public names are listed in `__init__.pyi`, and each is imported at its first use."""

from typing import Any

from legged.lazy_names import LazyNames

_NAMES = LazyNames(__name__, __file__)
__all__ = sorted(_NAMES.modules)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name or a module of this package."""
    value = globals()[name] = _NAMES.get(name)
    return value


def __dir__() -> list[str]:
    """Return the public names and those of the modules imported so far."""
    return sorted({*globals(), *__all__})
