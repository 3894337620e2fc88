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

from legged.compiler.codegen.ir_writer import ATTRIBUTES, Value, Writer, constant
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


def sine_and_cosine(w: Writer, x: Value) -> tuple[tuple[Value, Value], Value]:
    """Return ((sin x, cos x), where they hold).

    x = k pi/2 + r by the method of Cody and Waite: k is small, so the first difference is exact. Without the third part
    of pi/2, sines near multiples of pi would lose their digits.
    """
    shifted = w.fma(x, w.number(2.0 / 3.141592653589793), w.number(_MAGIC))
    k = w.as_bits(shifted)
    minus_k = w.op("fsub", w.number(_MAGIC), shifted)
    r = x
    for part in _PI_2:
        r = w.fma(minus_k, w.number(part), r)
    z = w.op("fmul", r, r)
    sine = w.fma(w.op("fmul", r, z), w.horner(z, _SIN), r)
    cosine = w.fma(z, w.fma(z, w.horner(z, _COS), w.number(-0.5)), w.number(1.0))
    odd = w.let(f"icmp ne {w.whole} {w.bits('and', k, w.integer(1))}, {w.integer(0)}")
    s, c = w.choose(odd, cosine, sine), w.choose(odd, sine, cosine)
    half_turns = w.bits("shl", k, w.integer(62))  # the sign bit tells whether they are odd
    s, c = _flip(w, s, half_turns), _flip(w, c, w.bits("add", half_turns, w.integer(1 << 62)))
    near = w.compare("ole", w.call("fabs", x), w.number(FAR))
    return (s, c), near


def _flip(w: Writer, x: Value, sign: Value) -> Value:
    """Return x with its sign changed where `sign` has the sign bit set."""
    return w.as_number(w.bits("xor", w.as_bits(x), w.bits("and", sign, w.integer(-1 << 63))))


def exponential(w: Writer, x: Value) -> tuple[tuple[Value], None]:
    """Return exp x = 2^k exp(r) with x = k ln 2 + r; 2^k in two factors, so that small results round once."""
    x = w.choose(w.compare("olt", x, w.number(-746.0)), w.number(-746.0), x)
    x = w.choose(w.compare("ogt", x, w.number(710.0)), w.number(710.0), x)
    shifted = w.fma(x, w.number(1.0 / _LN_2[0]), w.number(_MAGIC))
    minus_k = w.op("fsub", w.number(_MAGIC), shifted)
    r = w.fma(minus_k, w.number(_LN_2[1]), w.fma(minus_k, w.number(_LN_2[0]), x))
    value = w.op("fadd", w.number(1.0), w.fma(w.op("fmul", r, r), w.estrin(r, _EXP), r))
    k = w.bits("sub", w.as_bits(shifted), w.integer(int.from_bytes(_bytes(_MAGIC), "little")))
    low = w.bits("ashr", k, w.integer(1))
    for part in (low, w.bits("sub", k, low)):
        power = w.bits("shl", w.bits("add", part, w.integer(1023)), w.integer(52))
        value = w.op("fmul", value, w.as_number(power))
    return (value,), None


def _bytes(x: float) -> bytes:
    return int(constant(x), 16).to_bytes(8, "little")


def arctangent_2(w: Writer, y: Value, x: Value) -> tuple[tuple[Value], Value]:
    """Return (atan2(y, x), where it holds).

    The smaller magnitude over the larger is t in [0, 1]; above tan(pi/8) it is turned back by pi/4. The error of the
    quotient is found and carried along.
    """
    a, b = w.call("fabs", y), w.call("fabs", x)
    steep = w.compare("ogt", a, b)
    small, large = w.choose(steep, b, a), w.choose(steep, a, b)
    turned = w.compare("ogt", small, w.op("fmul", large, w.number(_TAN_PI_8)))
    zero = w.number(0.0)
    above, below = w.choose(turned, w.op("fsub", small, large), small), w.choose(turned, small, zero)
    under = w.op("fadd", large, below)
    # what rounding took from the two sums; in both, |large| >= |small|
    above_rest = w.choose(turned, w.op("fsub", small, w.op("fadd", above, large)), zero)
    under_rest = w.op("fsub", below, w.op("fsub", under, large))
    t = w.op("fdiv", above, under)
    minus_t = w.let(f"fneg {w.real} {t}")
    rest = w.fma(minus_t, under_rest, w.op("fadd", w.fma(minus_t, under, above), above_rest))
    rest = w.op("fdiv", rest, under)
    z = w.op("fmul", t, t)
    rest = w.fma(w.op("fmul", t, z), w.estrin(z, _ATAN), rest)
    # angle = offset + t + rest; then pi/2 - angle if steep, pi - angle if x is negative, each with its own low part
    high, low = w.choose(turned, w.number(_PI_4[0]), zero), w.choose(turned, w.number(_PI_4[1]), zero)
    left = w.let(f"icmp slt {w.whole} {w.as_bits(x)}, {w.integer(0) if w.width == 1 else 'zeroinitializer'}")
    for condition, whole, tail in ((steep, *_PI_2[:2]), (left, 2.0 * _PI_2[0], 2.0 * _PI_2[1])):
        # 3/4 pi is no sum of the high parts without rounding
        back = w.op("fsub", w.number(whole), high), w.op("fsub", w.number(tail), low)
        if condition == left:
            back = tuple(w.choose(turned, w.number(p), b) for p, b in zip(_3_PI_4, back, strict=True))
        high, low = w.choose(condition, back[0], high), w.choose(condition, back[1], low)
        t = w.choose(condition, w.let(f"fneg {w.real} {t}"), t)
        rest = w.choose(condition, w.let(f"fneg {w.real} {rest}"), rest)
    total = w.op("fadd", high, t)
    lost = w.op("fsub", t, w.op("fsub", total, high))  # |high| >= |t| or high = 0, where nothing is lost
    angle = w.op("fadd", total, w.op("fadd", w.op("fadd", lost, low), rest))
    near = w.let(
        f"and {w.truth} {w.compare('olt', large, w.number(1e150))}, {w.compare('ogt', large, w.number(1e-150))}"
    )
    return (w.call("copysign", angle, y),), near


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
    w = Writer(width)
    inputs = [w.load(f"%x{i}", "%k") for i in range(takes)]
    values, near = formula(w, *inputs)
    slow = w.negation(near) if near else None
    for i, value in enumerate(values):
        w.store(value, f"%y{i}", "%k")
    if slow is not None:
        w.line(f"br i1 {w.any(slow)}, label %slow, label %next")
        w.label("slow")
        mask = w.let(f"zext i{width} {w.mask(slow)} to i64")
        pointers = [f"ptr {w.at(f'%{p}', '%k')}" for p in (*_names("x", takes), *_names("y", len(results)))]
        w.line(f"call void @legged_{name}_slow({', '.join(pointers)}, i64 {mask})")
    w.line("br label %next")
    parameters = ", ".join(f"ptr noalias %{p}" for p in (*_names("x", takes), *_names("y", len(results))))
    yield f"define internal void @legged_{name}({parameters}, i64 %n) {ATTRIBUTES} {{"
    yield from _loop(w.lines, width)
    if slow is not None:
        yield f"define internal void @legged_{name}_slow({parameters}, i64 %mask) noinline {ATTRIBUTES} {{"
        w = Writer(1)
        w.line("%bit = lshr i64 %mask, %k")
        w.line("%is_slow = trunc i64 %bit to i1")
        w.line("br i1 %is_slow, label %do, label %next")
        w.label("do")
        for i, result in enumerate(results):
            _call_library(w, result, takes, f"%y{i}")
        w.line("br label %next")
        yield from _loop(w.lines, 1, str(width))


def _element_by_element(operation: str) -> Iterator[str]:
    """Yield the function that applies an operation of the C library to n numbers."""
    takes = 2 if operation == "power" else 1
    parameters = ", ".join(f"ptr noalias %{p}" for p in (*_names("x", takes), "y0"))
    yield f"define internal void @legged_{operation}({parameters}, i64 %n) {ATTRIBUTES} {{"
    w = Writer(1)
    _call_library(w, operation, takes, "%y0")
    w.line("br label %next")
    yield from _loop(w.lines, 1)


def _call_library(w: Writer, operation: str, takes: int, out: Value) -> None:
    arguments = ", ".join(f"double {w.load(f'%x{i}', '%k')}" for i in range(takes))
    w.store(w.let(f"call double @{symbol(LIBRARY_FUNCTIONS[operation])}({arguments})"), out, "%k")


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
