"""`where`, the branch that can be traced."""

from __future__ import annotations

from typing import Any

import numpy as np

from legged.compiler.ir.expression import Expression, truth
from legged.compiler.ir.object_arrays import where_arrays


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where the condition holds and `b` elsewhere, as np.where does, on numbers and on traced values.

    Both sides are computed whatever the condition: guard divisions and roots inside them.

    Args:
        condition: A truth value, or an array of them; combine several with &, | and ~.
        a: Number or array.
        b: Number or array; the three broadcast.

    Returns:
        An array, or a scalar if all three are scalars. An element type with a method `__where__(condition, a, b)` of
        its own, such as `legged.taylor.Taylor`, answers for itself.
    """
    for x in (a, b):
        choose = getattr(type(x), "__where__", None)
        if choose is not None:
            return choose(condition, a, b)
    if isinstance(condition, int):
        condition = truth(condition)
    if any(isinstance(x, Expression) or np.asarray(x).dtype == object for x in (condition, a, b)):
        return where_arrays(condition, a, b)
    result = np.where(condition, a, b)
    return result if result.ndim else result[()]
