"""Numbers that pages of the documentation state and programs compute."""

from __future__ import annotations

from benchmarks.pages import algorithms, balance, others, sizes, terms
from benchmarks.pages.parts import Part

PARTS: dict[str, Part] = {**algorithms.PARTS, **balance.PARTS, **others.PARTS, **sizes.PARTS, **terms.PARTS}
"""All computed parts of the documentation by name."""
