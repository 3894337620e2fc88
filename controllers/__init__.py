"""Control laws and gaits; the public names are listed in `__init__.pyi`, and each is imported at its first use."""

from legged.lazy_names import LazyNames

_NAMES = LazyNames(__name__, __file__)
__all__ = sorted(_NAMES.modules)  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = _NAMES.attached(globals())
