"""Formulas of elementary functions on vectors, as sequences of LLVM instructions.

The formulas of sine, cosine, exponential and arctangent are those of doubles and of floats alike; `Constants` holds
their numbers for each. In doubles, errors are below 1.5 units in the last place for sine and cosine with |x| < 1e5, and
below 1 unit for the exponential and for the arctangent of magnitudes between 1e-150 and 1e150. In floats they are below
1.5 units for sine and cosine with |x| < 1e4, for the exponential, and for the arctangent of magnitudes between 1e-15
and 1e15. The formulas of the other functions, for floats alone, err by less than 2 units. All polynomials interpolate
at Chebyshev points.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from legged.compiler.codegen.element_type import FLOAT32, FLOAT64, ElementType
from legged.compiler.codegen.ir_writer import IRWriter, Value


class Constants(NamedTuple):
    """Numbers of the formulas that depend on the element type.

    Attributes:
        max_angle: Larger angles, [rad], go to the C library.
        exp_range: Arguments beyond which exponentials are zero and infinite.
        atan2_range: Magnitudes outside of which the arguments of arctangents go to the C library.
        pi_2: pi/2 as a sum of three numbers of the type; the others are sums of two.
        pi_4, pi_3_4, ln_2: pi/4, 3 pi/4 and ln 2.
        sin: (sin x - x) / x^3 as a polynomial in x^2, up to pi/4.
        cos: (cos x - 1 + x^2/2) / x^4 as a polynomial in x^2, up to pi/4.
        exp: (e^x - 1 - x) / x^2 as a polynomial, up to ln 2 / 2.
        atan: (arctan x - x) / x^3 as a polynomial in x^2, up to pi/8.
    """

    max_angle: float
    exp_range: tuple[float, float]
    atan2_range: tuple[float, float]
    pi_2: tuple[float, float, float]
    pi_4: tuple[float, float]
    pi_3_4: tuple[float, float]
    ln_2: tuple[float, float]
    sin: tuple[float, ...]
    cos: tuple[float, ...]
    exp: tuple[float, ...]
    atan: tuple[float, ...]


CONSTANTS: dict[ElementType, Constants] = {
    FLOAT64: Constants(
        max_angle=1e5,
        exp_range=(-746.0, 710.0),
        atan2_range=(1e-150, 1e150),
        pi_2=(1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        pi_4=(0.7853981633974483, 3.061616997868383e-17),
        pi_3_4=(2.356194490192345, 9.184850993605148e-17),
        ln_2=(0.6931471805599453, 2.3190468138462996e-17),
        sin=(
            *(-0.16666666666666666, 0.008333333333330948, -0.00019841269836756774),
            *(2.7557316101617874e-06, -2.505113165023518e-08, 1.5918115263265974e-10),
        ),
        cos=(
            *(0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05),
            *(-2.7557317271145144e-07, 2.087614614655861e-09, -1.1382623647474604e-11),
        ),
        exp=(
            *(0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112, 0.001388888888888373),
            *(0.0001984126987490126, 2.4801587325605324e-05, 2.7557255297969643e-06, 2.755727357010214e-07),
            *(2.5105259538448494e-08, 2.0914717341716378e-09),
        ),
        atan=(
            *(-0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013),
            *(-0.09090904549884611, 0.07692182535116648, -0.06664502215671447, 0.058580687568615106),
            *(-0.05085030492810941, 0.03921955253255129, -0.019162068915902573),
        ),
    ),
    FLOAT32: Constants(
        max_angle=1e4,
        exp_range=(-104.0, 89.0),
        atan2_range=(1e-15, 1e15),
        pi_2=(1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
        pi_4=(0.7853981852531433, -2.1855694143368964e-08),
        pi_3_4=(2.356194496154785, -5.962440319251527e-09),
        ln_2=(0.6931471824645996, -1.9046542121259336e-09),
        sin=(-0.16666666663608304, 0.00833333177968258, -0.00019840035943066543, 2.724340926404085e-06),
        cos=(0.041666664528702296, -0.0013888277879640465, 2.454256397769355e-05),
        exp=(0.5, 0.16666576666119928, 0.04166655421298415, 0.008363232883682618, 0.0013926250831497611),
        atan=(
            *(-0.33333331761168317, 0.19999540483602304, -0.14263955596368047),
            *(0.10743731473318098, -0.06451928150211496),
        ),
    ),
}

_TAN_PI_8 = 0.41421356237309503
_SHORT = 36
"""Bits of a number whose product with an integer of 17 bits is exact in doubles."""


def _rounding(element: ElementType) -> float:
    """Return the number 1.5 * 2^m, m the bits of the significand.

    Adding it to a number rounds that to an integer, which is then in the low bits.
    """
    return 1.5 * 2.0**element.mantissa_bits


def sine_and_cosine(w: IRWriter, x: Value) -> tuple[tuple[Value, Value], Value]:
    """Return ((sin x, cos x), the lanes in which they are valid).

    Cody and Waite's argument reduction x = k pi/2 + r: k is small, so the first difference is exact. The third part of
    pi/2 keeps the relative error of sines small near multiples of pi.
    """
    constants, rounding = CONSTANTS[w.element], w.float_constant(_rounding(w.element))
    shifted = w.fmuladd(x, w.float_constant(2.0 / 3.141592653589793), rounding)
    k = w.bitcast_to_int(shifted)
    r = _reduced(w, x, w.float_op("fsub", rounding, shifted), constants.pi_2)
    z = w.float_op("fmul", r, r)
    sine = w.fmuladd(w.float_op("fmul", r, z), w.horner(z, constants.sin), r)
    sine = w.select(w.fcmp("oeq", x, w.float_constant(0.0)), x, sine)  # -0.0 for -0.0
    cosine = w.fmuladd(z, w.fmuladd(z, w.horner(z, constants.cos), w.float_constant(-0.5)), w.float_constant(1.0))
    is_odd = w.assign(f"icmp ne {w.int_type} {w.int_op('and', k, w.int_constant(1))}, {w.int_constant(0)}")
    s, c = w.select(is_odd, cosine, sine), w.select(is_odd, sine, cosine)
    below_sign = w.element.bits - 2
    half_turns = w.int_op("shl", k, w.int_constant(below_sign))  # the sign bit is set for an odd number
    s, c = _flip(w, s, half_turns), _flip(w, c, w.int_op("add", half_turns, w.int_constant(1 << below_sign)))
    is_valid = w.fcmp("ole", w.intrinsic("fabs", x), w.float_constant(constants.max_angle))
    return (s, c), is_valid


def _reduced(w: IRWriter, x: Value, minus_k: Value, parts: Sequence[float]) -> Value:
    """Return x - k c for an integer k and a constant c, the sum of `parts`, where the difference is small.

    With fused multiply-adds the differences are exact up to the last. Without them, c is the sum of numbers that are
    short enough for exact products with k; the rounding error of the second difference is computed. Floats are reduced
    in doubles.
    """
    if w.element.has_fma:
        for part in parts:
            x = w.intrinsic("fma", minus_k, w.float_constant(part), x)
        return x
    if w.element != FLOAT64:
        d = w.with_doubles()
        x, minus_k = (w.convert("fpext", value, d) for value in (x, minus_k))
        return d.convert("fptrunc", _reduced(d, x, minus_k, parts), w)
    rest, products = sum(map(Fraction, parts)), []
    for bits in (_SHORT, _SHORT, FLOAT64.mantissa_bits):
        significand, exponent = math.frexp(rest)
        part = math.ldexp(round(math.ldexp(significand, bits)), exponent - bits)
        products.append(w.float_op("fmul", minus_k, w.float_constant(part)))
        rest -= Fraction(part)
    first = w.float_op("fadd", x, products[0])
    second = w.float_op("fadd", first, products[1])
    error = w.float_op("fadd", w.float_op("fsub", first, second), products[1])
    return w.float_op("fadd", second, w.float_op("fadd", error, products[2]))


def _remainder(w: IRWriter, minus_a: Value, b: Value, c: Value) -> Value:
    """Return c - a b for the rounded quotient a of c and b, which is exact.

    Without fused multiply-adds, floats are multiplied in doubles, and doubles by Dekker's algorithm, which splits each
    factor into two numbers of 26 bits.
    """
    if w.element.has_fma:
        return w.intrinsic("fma", minus_a, b, c)
    if w.element != FLOAT64:
        d = w.with_doubles()
        minus_a, b, c = (w.convert("fpext", value, d) for value in (minus_a, b, c))
        return d.convert("fptrunc", d.float_op("fadd", c, d.float_op("fmul", minus_a, b)), w)
    halves = []
    for x in (minus_a, b):
        scaled = w.float_op("fmul", x, w.float_constant(2.0**27 + 1.0))
        high = w.float_op("fsub", scaled, w.float_op("fsub", scaled, x))
        halves.append((high, w.float_op("fsub", x, high)))
    product = w.float_op("fmul", minus_a, b)
    (a_high, a_low), (b_high, b_low) = halves
    error = w.float_op("fsub", w.float_op("fmul", a_high, b_high), product)
    for pair in ((a_high, b_low), (a_low, b_high), (a_low, b_low)):
        error = w.float_op("fadd", error, w.float_op("fmul", *pair))
    return w.float_op("fadd", w.float_op("fadd", c, product), error)


def _flip(w: IRWriter, x: Value, sign: Value) -> Value:
    """Return x with its sign changed where `sign` has the sign bit set."""
    sign_bit = w.int_constant(-1 << (w.element.bits - 1))
    return w.bitcast_to_float(w.int_op("xor", w.bitcast_to_int(x), w.int_op("and", sign, sign_bit)))


def exponential(w: IRWriter, x: Value) -> tuple[tuple[Value], None]:
    """Return exp x = 2^k exp(r) with x = k ln 2 + r, valid in all lanes.

    The power 2^k is multiplied in two factors, so that subnormal results are rounded once.
    """
    constants, rounding = CONSTANTS[w.element], w.float_constant(_rounding(w.element))
    lowest, highest = (w.float_constant(bound) for bound in constants.exp_range)
    x = w.select(w.fcmp("olt", x, lowest), lowest, x)
    x = w.select(w.fcmp("ogt", x, highest), highest, x)
    shifted = w.fmuladd(x, w.float_constant(1.0 / constants.ln_2[0]), rounding)
    r = _reduced(w, x, w.float_op("fsub", rounding, shifted), constants.ln_2)
    value = w.float_op(
        "fadd", w.float_constant(1.0), w.fmuladd(w.float_op("fmul", r, r), w.estrin(r, constants.exp), r)
    )
    rounding_bits = int.from_bytes(w.element.rounded([_rounding(w.element)]).tobytes(), sys.byteorder)
    k = w.int_op("sub", w.bitcast_to_int(shifted), w.int_constant(rounding_bits))
    low = w.int_op("ashr", k, w.int_constant(1))
    for part in (low, w.int_op("sub", k, low)):
        exponent = w.int_op("add", part, w.int_constant(w.element.exponent_bias))
        power = w.int_op("shl", exponent, w.int_constant(w.element.mantissa_bits))
        value = w.float_op("fmul", value, w.bitcast_to_float(power))
    return (value,), None


def arctangent_2(w: IRWriter, y: Value, x: Value) -> tuple[tuple[Value], Value]:
    """Return (atan2(y, x), the lanes in which it is valid).

    The quotient of the smaller and the larger magnitude is in [0, 1]; above tan(pi/8) it is reduced by a rotation
    through pi/4. The rounding errors of the quotient are computed and added at the end.
    """
    constants = CONSTANTS[w.element]
    a, b = w.intrinsic("fabs", y), w.intrinsic("fabs", x)
    is_steep = w.fcmp("ogt", a, b)
    small, large = w.select(is_steep, b, a), w.select(is_steep, a, b)
    is_reduced = w.fcmp("ogt", small, w.float_op("fmul", large, w.float_constant(_TAN_PI_8)))
    zero = w.float_constant(0.0)
    numerator = w.select(is_reduced, w.float_op("fsub", small, large), small)
    below = w.select(is_reduced, small, zero)
    denominator = w.float_op("fadd", large, below)
    # rounding errors of the two sums; in both, |large| >= |small|
    numerator_error = w.select(is_reduced, w.float_op("fsub", small, w.float_op("fadd", numerator, large)), zero)
    denominator_error = w.float_op("fsub", below, w.float_op("fsub", denominator, large))
    t = w.float_op("fdiv", numerator, denominator)
    minus_t = w.assign(f"fneg {w.float_type} {t}")
    residual = w.float_op("fadd", _remainder(w, minus_t, denominator, numerator), numerator_error)
    error = w.float_op("fdiv", w.fmuladd(minus_t, denominator_error, residual), denominator)
    z = w.float_op("fmul", t, t)
    error = w.fmuladd(w.float_op("fmul", t, z), w.estrin(z, constants.atan), error)
    pi_2 = constants.pi_2[:2]
    # angle = offset + t + error; then pi/2 - angle if |y| > |x|, pi - angle if x is negative; offset = high + low
    high, low = (w.select(is_reduced, w.float_constant(part), zero) for part in constants.pi_4)
    is_left = w.assign(
        f"icmp slt {w.int_type} {w.bitcast_to_int(x)}, {w.int_constant(0) if w.width == 1 else 'zeroinitializer'}"
    )
    for condition, whole, tail in ((is_steep, *pi_2), (is_left, 2.0 * pi_2[0], 2.0 * pi_2[1])):
        # pi - pi/4 is rounded in the high parts; its parts are constants
        reflected = w.float_op("fsub", w.float_constant(whole), high), w.float_op("fsub", w.float_constant(tail), low)
        if condition == is_left:
            parts = zip(constants.pi_3_4, reflected, strict=True)
            reflected = tuple(w.select(is_reduced, w.float_constant(part), other) for part, other in parts)
        high, low = w.select(condition, reflected[0], high), w.select(condition, reflected[1], low)
        t = w.select(condition, w.assign(f"fneg {w.float_type} {t}"), t)
        error = w.select(condition, w.assign(f"fneg {w.float_type} {error}"), error)
    total = w.float_op("fadd", high, t)
    sum_error = w.float_op("fsub", t, w.float_op("fsub", total, high))  # exact: |high| >= |t|, or high = 0
    angle = w.float_op("fadd", total, w.float_op("fadd", w.float_op("fadd", sum_error, low), error))
    smallest, largest = (w.float_constant(bound) for bound in constants.atan2_range)
    small_enough, large_enough = w.fcmp("olt", large, largest), w.fcmp("ogt", large, smallest)
    is_valid = w.assign(f"and {w.bool_type} {small_enough}, {large_enough}")
    return (w.intrinsic("copysign", angle, y),), is_valid


Formula = Callable[..., tuple[tuple[Value, ...], Value | None]]
"""A function of an IR writer and arguments; returns (results, the lanes in which they are valid, or None for all)."""

# Formulas for floats alone


_SINH = (0.16666666646842135, 0.00833333967591706, 0.00019838101968683888, 2.8062802582276946e-06)
"""(sinh x - x) / x^3 as a polynomial in x^2, up to 1."""
_TANH = (
    *(-0.3333332843331859, 0.13332718845589667, -0.053843263175278766, 0.020961329108563815),
    -0.0060451650965224,
)
"""(tanh x - x) / x^3 as a polynomial in x^2, up to `_TANH_END`."""
_TANH_END = 0.63
_LOG = (
    *(0.33333331180030046, -0.24999996957950882, 0.200007157488921, -0.16667802319501254, 0.1424905764569748),
    *(-0.12425687331451106, 0.1168541992348674, -0.11479733846637635, 0.06971611471451178),
)
"""(ln(1 + x) - x + x^2/2) / x^3 as a polynomial, for 1 + x between the square roots of 1/2 and 2."""


def arcsine(w: IRWriter, x: Value) -> tuple[tuple[Value], Value | None]:
    """Return (arcsin x = atan2(x, sqrt(1 - x^2)), the lanes in which it is valid)."""
    return arctangent_2(w, x, _cosine_of_arcsine(w, x))


def arccosine(w: IRWriter, x: Value) -> tuple[tuple[Value], Value | None]:
    """Return (arccos x = atan2(sqrt(1 - x^2), x), the lanes in which it is valid)."""
    return arctangent_2(w, _cosine_of_arcsine(w, x), x)


def _cosine_of_arcsine(w: IRWriter, x: Value) -> Value:
    one = w.float_constant(1.0)
    return w.intrinsic("sqrt", w.float_op("fmul", w.float_op("fsub", one, x), w.float_op("fadd", one, x)))


def hyperbolic_sine(w: IRWriter, x: Value) -> tuple[tuple[Value], Value]:
    """Return (sinh x, the lanes in which it is valid)."""
    halves, size, is_valid = _half_exponentials(w, x)
    z = w.float_op("fmul", x, x)
    small = w.intrinsic("copysign", w.fmuladd(w.float_op("fmul", x, z), w.horner(z, _SINH), x), x)
    large = w.intrinsic("copysign", w.float_op("fsub", *halves), x)
    return (w.select(w.fcmp("olt", size, w.float_constant(1.0)), small, large),), is_valid


def hyperbolic_cosine(w: IRWriter, x: Value) -> tuple[tuple[Value], Value]:
    """Return (cosh x, the lanes in which it is valid)."""
    halves, _, is_valid = _half_exponentials(w, x)
    return (w.float_op("fadd", *halves),), is_valid


def _half_exponentials(w: IRWriter, x: Value) -> tuple[tuple[Value, Value], Value, Value]:
    """Return (e^|x| / 2, e^-|x| / 2), |x|, and the lanes in which the first is finite."""
    size, half = w.intrinsic("fabs", x), w.float_constant(0.5)
    (power,), _ = exponential(w, size)
    halves = w.float_op("fmul", half, power), w.float_op("fdiv", half, power)
    return halves, size, w.fcmp("ole", size, w.float_constant(CONSTANTS[w.element].exp_range[1] - 1.0))


def hyperbolic_tangent(w: IRWriter, x: Value) -> tuple[tuple[Value], None]:
    """Return tanh x = 1 - 2 / (e^2x + 1), or a polynomial, valid in all lanes."""
    size, one = w.intrinsic("fabs", x), w.float_constant(1.0)
    (power,), _ = exponential(w, w.float_op("fadd", size, size))
    rest = w.float_op("fdiv", w.float_constant(2.0), w.float_op("fadd", power, one))
    large = w.intrinsic("copysign", w.float_op("fsub", one, rest), x)
    z = w.float_op("fmul", x, x)
    small = w.intrinsic("copysign", w.fmuladd(w.float_op("fmul", x, z), w.horner(z, _TANH), x), x)
    return (w.select(w.fcmp("olt", size, w.float_constant(_TANH_END)), small, large),), None


def logarithm(w: IRWriter, x: Value) -> tuple[tuple[Value], Value]:
    """Return (ln x = k ln 2 + ln(1 + f) with x = 2^k (1 + f), the lanes in which it is valid)."""
    bits, shift = w.bitcast_to_int(x), w.int_constant(w.element.mantissa_bits)
    root = int.from_bytes(w.element.rounded([0.5**0.5]).tobytes(), sys.byteorder)
    k = w.int_op("ashr", w.int_op("sub", bits, w.int_constant(root)), shift)
    one = w.float_constant(1.0)
    f = w.float_op("fsub", w.bitcast_to_float(w.int_op("sub", bits, w.int_op("shl", k, shift))), one)
    exponent = w.assign(f"sitofp {w.int_type} {k} to {w.float_type}")
    ln_2, ln_2_low = (w.float_constant(part) for part in CONSTANTS[w.element].ln_2)
    curve = w.fmuladd(f, w.estrin(f, _LOG), w.float_constant(-0.5))
    rest = w.fmuladd(w.float_op("fmul", f, f), curve, w.float_op("fmul", exponent, ln_2_low))
    value = w.fmuladd(exponent, ln_2, w.float_op("fadd", f, rest))
    # zero, subnormal and negative numbers go to the C library; infinity and NaN, too
    smallest, largest = w.float_constant(w.element.in_range(1e-300)), w.float_constant(w.element.in_range(1e300))
    in_range = w.fcmp("oge", x, smallest), w.fcmp("ole", x, largest)
    return (value,), w.assign(f"and {w.bool_type} {in_range[0]}, {in_range[1]}")


_FORMULAS: dict[str, tuple[Formula, int]] = {
    "sincos": (sine_and_cosine, 1),
    "exp": (exponential, 1),
    "arctan2": (arctangent_2, 2),
}
_FLOAT_FORMULAS: dict[str, tuple[Formula, int]] = {
    "arcsin": (arcsine, 1),
    "arccos": (arccosine, 1),
    "sinh": (hyperbolic_sine, 1),
    "cosh": (hyperbolic_cosine, 1),
    "tanh": (hyperbolic_tangent, 1),
    "log": (logarithm, 1),
}
FORMULAS = {FLOAT64: _FORMULAS, FLOAT32: {**_FORMULAS, **_FLOAT_FORMULAS}}
"""For each element type, formula and number of arguments of each function that has a formula."""
