"""Sine, cosine, exponential and arctangent in machine code, on as many numbers at once as the processor takes.

Each is a function of assembly that walks over numbers lying end to end: `void f(ptr x, ptr y, i64 n)`, with n a
multiple of the width. One state hands over all its angles together, a block of states those of all its lanes, so one
code serves both and gives every number the same result. Arguments out of the range of the fast formulas are passed to
the C library one by one; so are the functions that have no fast formula here. Errors are below 1.5 units in the last
place for sine and cosine, |x| < 1e5, and below 1 unit for the exponential, and for the arctangent of magnitudes between
1e-150 and 1e150.

The polynomials interpolate at Chebyshev points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from legged.compiler.codegen.ir_writer import ATTRIBUTES, IRWriter, Value, float_literal
from legged.compiler.ir.operations import LIBRARY_FUNCTIONS, VECTOR_FUNCTIONS

FAR = 1e5
"""Angles beyond it, [rad], go to the C library."""

_PI_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
"""pi/2 in three parts."""
_PI_4 = (0.7853981633974483, 3.061616997868383e-17)
_3_PI_4 = (2.356194490192345, 9.184850993605148e-17)
_LN_2 = (0.6931471805599453, 2.3190468138462996e-17)
_MAGIC = 6755399441055744.0
"""1.5 * 2^52: adding it rounds to a whole number, which then is the low bits."""
_TAN_PI_8 = 0.41421356237309503

_SIN = (
    *(-0.16666666666666666, 0.008333333333330948, -0.00019841269836756774),
    *(2.7557316101617874e-06, -2.505113165023518e-08, 1.5918115263265974e-10),
)
_COS = (
    *(0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05),
    *(-2.7557317271145144e-07, 2.087614614655861e-09, -1.1382623647474604e-11),
)
_EXP = (
    *(0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326112, 0.001388888888888373),
    *(0.0001984126987490126, 2.4801587325605324e-05, 2.7557255297969643e-06, 2.755727357010214e-07),
    *(2.5105259538448494e-08, 2.0914717341716378e-09),
)
_ATAN = (
    *(-0.3333333333333333, 0.1999999999999548, -0.14285714284657894, 0.11111111014561013, -0.09090904549884611),
    *(0.07692182535116648, -0.06664502215671447, 0.058580687568615106, -0.05085030492810941, 0.03921955253255129),
    -0.019162068915902573,
)


def sine_and_cosine(w: IRWriter, x: Value) -> tuple[tuple[Value, Value], Value]:
    """Return ((sin x, cos x), where they hold).

    x = k pi/2 + r by the method of Cody and Waite: k is small, so the first difference is exact. Without the third part
    of pi/2, sines near multiples of pi would lose their digits.
    """
    shifted = w.fma(x, w.float_constant(2.0 / 3.141592653589793), w.float_constant(_MAGIC))
    k = w.bitcast_to_int(shifted)
    minus_k = w.float_op("fsub", w.float_constant(_MAGIC), shifted)
    r = x
    for part in _PI_2:
        r = w.fma(minus_k, w.float_constant(part), r)
    z = w.float_op("fmul", r, r)
    sine = w.fma(w.float_op("fmul", r, z), w.horner(z, _SIN), r)
    cosine = w.fma(z, w.fma(z, w.horner(z, _COS), w.float_constant(-0.5)), w.float_constant(1.0))
    odd = w.assign(f"icmp ne {w.int_type} {w.int_op('and', k, w.int_constant(1))}, {w.int_constant(0)}")
    s, c = w.select(odd, cosine, sine), w.select(odd, sine, cosine)
    half_turns = w.int_op("shl", k, w.int_constant(62))  # the sign bit tells whether they are odd
    s, c = _flip(w, s, half_turns), _flip(w, c, w.int_op("add", half_turns, w.int_constant(1 << 62)))
    near = w.fcmp("ole", w.intrinsic("fabs", x), w.float_constant(FAR))
    return (s, c), near


def _flip(w: IRWriter, x: Value, sign: Value) -> Value:
    """Return x with its sign changed where `sign` has the sign bit set."""
    return w.bitcast_to_float(w.int_op("xor", w.bitcast_to_int(x), w.int_op("and", sign, w.int_constant(-1 << 63))))


def exponential(w: IRWriter, x: Value) -> tuple[tuple[Value], None]:
    """Return exp x = 2^k exp(r) with x = k ln 2 + r; 2^k in two factors, so that small results round once."""
    x = w.select(w.fcmp("olt", x, w.float_constant(-746.0)), w.float_constant(-746.0), x)
    x = w.select(w.fcmp("ogt", x, w.float_constant(710.0)), w.float_constant(710.0), x)
    shifted = w.fma(x, w.float_constant(1.0 / _LN_2[0]), w.float_constant(_MAGIC))
    minus_k = w.float_op("fsub", w.float_constant(_MAGIC), shifted)
    r = w.fma(minus_k, w.float_constant(_LN_2[1]), w.fma(minus_k, w.float_constant(_LN_2[0]), x))
    value = w.float_op("fadd", w.float_constant(1.0), w.fma(w.float_op("fmul", r, r), w.estrin(r, _EXP), r))
    k = w.int_op("sub", w.bitcast_to_int(shifted), w.int_constant(int.from_bytes(_bytes(_MAGIC), "little")))
    low = w.int_op("ashr", k, w.int_constant(1))
    for part in (low, w.int_op("sub", k, low)):
        power = w.int_op("shl", w.int_op("add", part, w.int_constant(1023)), w.int_constant(52))
        value = w.float_op("fmul", value, w.bitcast_to_float(power))
    return (value,), None


def _bytes(x: float) -> bytes:
    return int(float_literal(x), 16).to_bytes(8, "little")


def arctangent_2(w: IRWriter, y: Value, x: Value) -> tuple[tuple[Value], Value]:
    """Return (atan2(y, x), where it holds).

    The smaller magnitude over the larger is t in [0, 1]; above tan(pi/8) it is turned back by pi/4. The error of the
    quotient is found and carried along.
    """
    a, b = w.intrinsic("fabs", y), w.intrinsic("fabs", x)
    steep = w.fcmp("ogt", a, b)
    small, large = w.select(steep, b, a), w.select(steep, a, b)
    turned = w.fcmp("ogt", small, w.float_op("fmul", large, w.float_constant(_TAN_PI_8)))
    zero = w.float_constant(0.0)
    above, below = w.select(turned, w.float_op("fsub", small, large), small), w.select(turned, small, zero)
    under = w.float_op("fadd", large, below)
    # what rounding took from the two sums; in both, |large| >= |small|
    above_rest = w.select(turned, w.float_op("fsub", small, w.float_op("fadd", above, large)), zero)
    under_rest = w.float_op("fsub", below, w.float_op("fsub", under, large))
    t = w.float_op("fdiv", above, under)
    minus_t = w.assign(f"fneg {w.float_type} {t}")
    rest = w.fma(minus_t, under_rest, w.float_op("fadd", w.fma(minus_t, under, above), above_rest))
    rest = w.float_op("fdiv", rest, under)
    z = w.float_op("fmul", t, t)
    rest = w.fma(w.float_op("fmul", t, z), w.estrin(z, _ATAN), rest)
    # angle = offset + t + rest; then pi/2 - angle if steep, pi - angle if x is negative, each with its own low part
    high, low = w.select(turned, w.float_constant(_PI_4[0]), zero), w.select(turned, w.float_constant(_PI_4[1]), zero)
    left = w.assign(
        f"icmp slt {w.int_type} {w.bitcast_to_int(x)}, {w.int_constant(0) if w.width == 1 else 'zeroinitializer'}"
    )
    for condition, whole, tail in ((steep, *_PI_2[:2]), (left, 2.0 * _PI_2[0], 2.0 * _PI_2[1])):
        # 3/4 pi is no sum of the high parts without rounding
        back = w.float_op("fsub", w.float_constant(whole), high), w.float_op("fsub", w.float_constant(tail), low)
        if condition == left:
            back = tuple(w.select(turned, w.float_constant(p), b) for p, b in zip(_3_PI_4, back, strict=True))
        high, low = w.select(condition, back[0], high), w.select(condition, back[1], low)
        t = w.select(condition, w.assign(f"fneg {w.float_type} {t}"), t)
        rest = w.select(condition, w.assign(f"fneg {w.float_type} {rest}"), rest)
    total = w.float_op("fadd", high, t)
    lost = w.float_op("fsub", t, w.float_op("fsub", total, high))  # |high| >= |t| or high = 0, where nothing is lost
    angle = w.float_op("fadd", total, w.float_op("fadd", w.float_op("fadd", lost, low), rest))
    small_enough = w.fcmp("olt", large, w.float_constant(1e150))
    large_enough = w.fcmp("ogt", large, w.float_constant(1e-150))
    near = w.assign(f"and {w.bool_type} {small_enough}, {large_enough}")
    return (w.intrinsic("copysign", angle, y),), near


Formula = Callable[..., tuple[tuple[Value, ...], Value | None]]

FORMULAS: dict[str, tuple[Formula, int, tuple[str, ...]]] = {
    "sincos": (sine_and_cosine, 1, VECTOR_FUNCTIONS["sincos"]),
    "exp": (exponential, 1, VECTOR_FUNCTIONS["exp"]),
    "arctan2": (arctangent_2, 2, VECTOR_FUNCTIONS["arctan2"]),
}
"""Name -> formula, number of arguments, and what the results are called in graphs."""


def symbol(function: str) -> str:
    """Return the name under which machine code calls a function of the C library."""
    return f"legged_libm_{function}"


def functions(names: Iterable[str], width: int) -> Iterator[str]:
    """Yield the assembly of the functions of these names: formulas, and operations of the C library."""
    names = set(names)
    outer = {LIBRARY_FUNCTIONS[n] for n in names if n in LIBRARY_FUNCTIONS} | {
        LIBRARY_FUNCTIONS[r] for n in names & set(FORMULAS) for r in FORMULAS[n][2]
    }
    for name in sorted(outer):
        arguments = ", ".join(["double"] * (2 if name in ("atan2", "pow") else 1))
        yield f"declare double @{symbol(name)}({arguments}) nounwind willreturn memory(none)"
    for name in sorted(names):
        yield from _formula(name, width) if name in FORMULAS else _element_by_element(name)


def _formula(name: str, width: int) -> Iterator[str]:
    """Yield the function that applies a formula to n numbers, `width` at a time."""
    formula, takes, results = FORMULAS[name]
    w = IRWriter(width)
    inputs = [w.load(f"%x{i}", "%k") for i in range(takes)]
    values, near = formula(w, *inputs)
    slow = w.logical_not(near) if near else None
    for i, value in enumerate(values):
        w.store(value, f"%y{i}", "%k")
    if slow is not None:
        w.branch(w.any_lane(slow), "slow", "next")
        w.label("slow")
        mask = w.assign(f"zext i{width} {w.lane_mask(slow)} to i64")
        pointers = [f"ptr {w.gep(f'%{p}', '%k')}" for p in (*_names("x", takes), *_names("y", len(results)))]
        w.emit(f"call void @legged_{name}_slow({', '.join(pointers)}, i64 {mask})")
    w.jump("next")
    parameters = ", ".join(f"ptr noalias %{p}" for p in (*_names("x", takes), *_names("y", len(results))))
    yield f"define internal void @legged_{name}({parameters}, i64 %n) {ATTRIBUTES} {{"
    yield from _loop(w.lines, width)
    if slow is not None:
        yield f"define internal void @legged_{name}_slow({parameters}, i64 %mask) noinline {ATTRIBUTES} {{"
        w = IRWriter(1)
        w.emit("%bit = lshr i64 %mask, %k")
        w.emit("%is_slow = trunc i64 %bit to i1")
        w.branch("%is_slow", "do", "next")
        w.label("do")
        for i, result in enumerate(results):
            _call_library(w, result, takes, f"%y{i}")
        w.jump("next")
        yield from _loop(w.lines, 1, str(width))


def _element_by_element(operation: str) -> Iterator[str]:
    """Yield the function that applies an operation of the C library to n numbers."""
    takes = 2 if operation == "power" else 1
    parameters = ", ".join(f"ptr noalias %{p}" for p in (*_names("x", takes), "y0"))
    yield f"define internal void @legged_{operation}({parameters}, i64 %n) {ATTRIBUTES} {{"
    w = IRWriter(1)
    _call_library(w, operation, takes, "%y0")
    w.jump("next")
    yield from _loop(w.lines, 1)


def _call_library(w: IRWriter, operation: str, takes: int, out: Value) -> None:
    arguments = ", ".join(f"double {w.load(f'%x{i}', '%k')}" for i in range(takes))
    w.store(w.assign(f"call double @{symbol(LIBRARY_FUNCTIONS[operation])}({arguments})"), out, "%k")


def _names(letter: str, n: int) -> list[str]:
    return [f"{letter}{i}" for i in range(n)]


def _loop(body: list[str], step: int, end: Value = "%n") -> Iterator[str]:
    """Yield a function body that does `body`, which goes on to %next, for %k = 0, step, ... below end, end > 0."""
    yield "start:"
    yield "  br label %loop"
    yield "loop:"
    yield "  %k = phi i64 [0, %start], [%k_next, %next]"
    yield from body
    yield "next:"
    yield f"  %k_next = add i64 %k, {step}"
    yield f"  %more = icmp slt i64 %k_next, {end}"
    yield "  br i1 %more, label %loop, label %end"
    yield "end:"
    yield "  ret void"
    yield "}"
