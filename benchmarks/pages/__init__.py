"""Numbers that pages of the documentation state and programs compute."""

from __future__ import annotations

from benchmarks.contact import derivatives
from benchmarks.optimization.derivatives import accuracy_and_time
from benchmarks.pages import algorithms, balance, deployment, estimation, identification, others, sizes, terms, walks
from benchmarks.pages.parts import Part

_PAGE = "explanation/contact_derivatives.md"
_DERIVATIVES = {
    "contact-derivatives-accuracy": Part(_PAGE, derivatives.accuracy, 0.95, slow=True),
    "constrained-derivatives": Part("howto/optimal_control.md", accuracy_and_time, 0.95, 1e-9, slow=True),
    "contact-derivatives-in-continuous-time": Part(_PAGE, derivatives.continuous, 0.1, slow=True),
}
PARTS: dict[str, Part] = {
    **algorithms.PARTS,
    **balance.PARTS,
    **deployment.PARTS,
    **estimation.PARTS,
    **identification.PARTS,
    **others.PARTS,
    **sizes.PARTS,
    **terms.PARTS,
    **walks.PARTS,
    **_DERIVATIVES,
}
"""All computed parts of the documentation by name."""
