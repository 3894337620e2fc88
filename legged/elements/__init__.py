"""Numbers of other types than float64 as elements of the algorithms: extended precision, rationals, intervals.

Algorithms are plain NumPy, and arrays of objects may take the place of arrays of floats. The numbers of other libraries
cannot be used directly: NumPy calls `x.cos()` on the entries of an array of objects, and numbers of mpmath have no such
method; `0.5 * Fraction(1, 3)` is a float; `[0, 1] < [0, 1]` of intervals is None, which counts as false. An `Element`
wraps such a number: floats in operations with it are converted exactly, elementary functions are those of the number's
library, and the comparison of overlapping intervals is `Undecided`.

Elements are internal. Functions with the decorator `any_element`, and those with `legged.checked.checked` that take
a robot, read numbers of other types as elements and return numbers of this type:

    energy = legged.kinetic_energy(robot, q.astype(np.longdouble), v.astype(np.longdouble))  # a long double

Any type that is registered as `numbers.Real`, and `decimal.Decimal`, can be used. Its constructor must accept a float
and an int without rounding more than its own precision does. An elementary function is found as method of the number,
as function of the number's context (mpmath) or as function of the module that defines the type (NumPy, gmpy2).
"""

from legged.elements.boundary import accepts_any_element, any_element, drop, lift, lift_with
from legged.elements.element import Element, as_floats, has_elements, is_singular, to_float
from legged.elements.fields import Field, Undecided, field_of, is_foreign

__all__ = [
    "Element",
    "Field",
    "Undecided",
    "accepts_any_element",
    "any_element",
    "as_floats",
    "drop",
    "field_of",
    "has_elements",
    "is_foreign",
    "is_singular",
    "lift",
    "lift_with",
    "to_float",
]
