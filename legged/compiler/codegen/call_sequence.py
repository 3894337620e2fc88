"""Machine code that executes a list of calls, with loops, copies, sums and a banded solution between kernels.

All functions have the type of the loop over a batch, see `batches.batch_loop`: they take items first, ..., end - 1,
receive the address of their argument and working memory, and return -1, or another number if they stop.

    int64 legged_sequence(int64 first, int64 end, const Call *calls, void *work)     calls first, ..., end - 1
    int64 legged_while_loop(int64 first, int64 end, const While *argument, void *work)
                                                              the same calls up to `end` times
    int64 legged_each(int64 first, int64 end, const Each *argument, void *work)
                                                              items first, ..., end - 1 of each call in turn
    int64 legged_copy(..., const Vectors *, ...)              y[k] = x[k]
    int64 legged_scatter1, 3, 9(..., const Vectors *, ...)    y[offsets[k]] = x[k] for runs of numbers
    int64 legged_scatter_add1, 3, 4, 6(..., const Vectors *, ...)   y[offsets[k]] += x[k] for runs of numbers
    int64 legged_scatter_entries(..., const Entries *, ...)   y[k][places[j]] = x[k][j] or += for all j
    int64 legged_scatter_max(..., const Vectors *, ...)       y[offsets[k]] = max(y[offsets[k]], x[k])
    int64 legged_reduce_max_abs(..., const Vectors *, ...)    y[0] = largest |x[k]|, or zero
    int64 legged_solve_banded(..., const Band *, ...)         solves a system of equations with a banded matrix

The names are those of JAX (copy, scatter, scatter_add, scatter_max, while_loop, reduce_max, abs) and of SciPy
(solve_banded).

A sequence stops at the first call that stops, and returns its number. A loop goes on while `flag` exceeds `bound`.
`legged_each` returns the smallest result of its calls as unsigned numbers; the entry `count` of a call is zero, or -1
if its result does not count. The rows of entries are pairs of addresses, of x[k] and of y[k].

The banded matrix has `width` diagonals on both sides, a multiple of `LANES`, and is stored column by column, in each
from the uppermost diagonal to the lowest one, with `width` more columns of zeros. The right side, which receives the
solution, has `width` more numbers before and after it. The matrix is replaced by its factors L and U, without
pivoting, with the inverses of the pivots on the diagonal; entries of U that are zero are skipped. The function stops at
a pivot that is zero or not a number.

The LLVM IR below has abbreviations, which `assembly` replaces: those of `ir_writer.with_entries`, and `SPLAT %x`, which
fills a VECTOR of LANES numbers.
"""

from __future__ import annotations

import re

from legged.compiler.codegen.ir_writer import ATTRIBUTES, with_entries

SEQUENCE, WHILE_LOOP, EACH, COPY = (f"legged_{name}" for name in ("sequence", "while_loop", "each", "copy"))
SCATTER_MAX, SCATTER_ENTRIES = "legged_scatter_max", "legged_scatter_entries"
REDUCE_MAX_ABS, SOLVE_BANDED = "legged_reduce_max_abs", "legged_solve_banded"
SCATTER_ADD = {size: f"legged_scatter_add{size}" for size in (1, 3, 4, 6)}
"""Names of the functions that add runs of a number of entries."""
SCATTER = {size: f"legged_scatter{size}" for size in (1, 3, 9)}
"""Names of the functions that write runs of a number of entries."""
CALL = ("function", "count", "argument")
"""Entries of a call, 64-bit integers: the function, the number of its items, and its argument."""
STRUCTURES = {
    "Call": CALL,
    "While": ("calls", "count", "flag", "bound"),
    "Each": ("calls", "count"),
    "Vectors": ("x", "y", "offsets"),
    "Entries": ("rows", "places", "count", "is_added"),
    "Band": ("matrix", "right", "width"),
}
"""Entries of the arguments, 64-bit integers: addresses, numbers, and offsets in [bytes]."""
LANES = 4
"""Numbers of a vector in `legged_solve_banded`."""

_HEAD = "(i64 %first, i64 %end, ptr %argument, ptr %work) ATTRIBUTES {"
_CODE = f"""
define i64 @legged_sequence{_HEAD}
start:
  br label %next
next:
  %k = phi i64 [%first, %start], [%k_next, %done]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %take, label %end_of_calls
take:
  %position = mul i64 %k, 3
  %call = getelementptr i64, ptr %argument, i64 %position
  %function = POINTER %call Call.function
  %count = LOAD %call Call.count
  %own = POINTER %call Call.argument
  %result = call i64 %function(i64 0, i64 %count, ptr %own, ptr %work)
  %goes_on = icmp slt i64 %result, 0
  br i1 %goes_on, label %done, label %stop
done:
  %k_next = add i64 %k, 1
  br label %next
stop:
  ret i64 %k
end_of_calls:
  ret i64 -1
}}

define i64 @legged_while_loop{_HEAD}
start:
  %calls = POINTER %argument While.calls
  %count = LOAD %argument While.count
  %flag = POINTER %argument While.flag
  %bound = POINTER %argument While.bound
  br label %next
next:
  %k = phi i64 [%first, %start], [%k_next, %repeat]
  %is_left = icmp slt i64 %k, %end
  %value = load double, ptr %flag, align 8
  %least = load double, ptr %bound, align 8
  %is_set = fcmp ogt double %value, %least
  %goes_on = and i1 %is_left, %is_set
  br i1 %goes_on, label %repeat, label %finish
repeat:
  %result = call i64 @legged_sequence(i64 0, i64 %count, ptr %calls, ptr %work)
  %k_next = add i64 %k, 1
  %is_done = icmp slt i64 %result, 0
  br i1 %is_done, label %next, label %stop
stop:
  ret i64 %result
finish:
  ret i64 -1
}}

define i64 @legged_each{_HEAD}
start:
  %calls = POINTER %argument Each.calls
  %count = LOAD %argument Each.count
  br label %next
next:
  %k = phi i64 [0, %start], [%k_next, %take]
  %least = phi i64 [-1, %start], [%least_next, %take]
  %is_left = icmp slt i64 %k, %count
  br i1 %is_left, label %take, label %finish
take:
  %position = mul i64 %k, 3
  %call = getelementptr i64, ptr %calls, i64 %position
  %function = POINTER %call Call.function
  %ignored = LOAD %call Call.count
  %own = POINTER %call Call.argument
  %result = call i64 %function(i64 %first, i64 %end, ptr %own, ptr %work)
  %counted = or i64 %result, %ignored
  %least_next = call i64 @llvm.umin.i64(i64 %counted, i64 %least)
  %k_next = add i64 %k, 1
  br label %next
finish:
  ret i64 %least
}}

define i64 @legged_copy{_HEAD}
start:
  %x = POINTER %argument Vectors.x
  %y = POINTER %argument Vectors.y
  %last_group = sub i64 %end, 8
  br label %group
group:
  %g = phi i64 [%first, %start], [%g_next, %move]
  %is_whole = icmp sle i64 %g, %last_group
  br i1 %is_whole, label %move, label %next
move:
  %from = getelementptr double, ptr %x, i64 %g
  %to = getelementptr double, ptr %y, i64 %g
  %values = load <8 x double>, ptr %from, align 8
  store <8 x double> %values, ptr %to, align 8
  %g_next = add i64 %g, 8
  br label %group
next:
  %k = phi i64 [%g, %group], [%k_next, %move_one]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %move_one, label %finish
move_one:
  %from_one = getelementptr double, ptr %x, i64 %k
  %to_one = getelementptr double, ptr %y, i64 %k
  %value = load double, ptr %from_one, align 8
  store double %value, ptr %to_one, align 8
  %k_next = add i64 %k, 1
  br label %next
finish:
  ret i64 -1
}}

define i64 @legged_reduce_max_abs{_HEAD}
start:
  %x = POINTER %argument Vectors.x
  %y = POINTER %argument Vectors.y
  br label %next
next:
  %k = phi i64 [%first, %start], [%k_next, %compare]
  %most = phi double [0.0, %start], [%most_next, %compare]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %compare, label %finish
compare:
  %from = getelementptr double, ptr %x, i64 %k
  %value = load double, ptr %from, align 8
  %size = call double @llvm.fabs.f64(double %value)
  %is_larger = fcmp ogt double %size, %most
  %most_next = select i1 %is_larger, double %size, double %most
  %k_next = add i64 %k, 1
  br label %next
finish:
  store double %most, ptr %y, align 8
  ret i64 -1
}}

define i64 @legged_solve_banded{_HEAD}
start:
  %a = POINTER %argument Band.matrix
  %b = POINTER %argument Band.right
  %width = LOAD %argument Band.width
  %twice = shl i64 %width, 1
  %stride = add i64 %twice, 1
  br label %column
column:
  %k = phi i64 [0, %start], [%k_next, %eliminated]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %pivot, label %back
pivot:
  %column_k = mul i64 %k, %stride
  %diagonal = add i64 %column_k, %width
  %pivot_at = getelementptr double, ptr %a, i64 %diagonal
  %pivot_value = load double, ptr %pivot_at, align 8
  %is_regular = fcmp one double %pivot_value, 0.0
  br i1 %is_regular, label %regular, label %singular
singular:
  ret i64 %k
regular:
  %inverse = fdiv double 1.0, %pivot_value
  store double %inverse, ptr %pivot_at, align 8
  %below = add i64 %diagonal, 1
  %lower = getelementptr double, ptr %a, i64 %below
  %inverses = SPLAT %inverse
  br label %scale
scale:
  %i = phi i64 [0, %regular], [%i_next, %scale]
  %l_at = getelementptr double, ptr %lower, i64 %i
  %l_old = load VECTOR, ptr %l_at, align 8
  %l_new = fmul VECTOR %l_old, %inverses
  store VECTOR %l_new, ptr %l_at, align 8
  %i_next = add i64 %i, LANES
  %i_left = icmp slt i64 %i_next, %width
  br i1 %i_left, label %scale, label %right_side
right_side:
  %b_k = getelementptr double, ptr %b, i64 %k
  br label %other
other:
  %j = phi i64 [0, %right_side], [%j_next, %updated]
  %shift = mul i64 %j, %twice
  %to_right = getelementptr double, ptr %pivot_at, i64 %shift
  %is_right = icmp eq i64 %j, 0
  %factor_at = select i1 %is_right, ptr %b_k, ptr %to_right
  %factor = load double, ptr %factor_at, align 8
  %is_zero = fcmp oeq double %factor, 0.0
  br i1 %is_zero, label %updated, label %update
update:
  %factors = SPLAT %factor
  br label %rows
rows:
  %r = phi i64 [0, %update], [%r_next, %rows]
  %r_below = add i64 %r, 1
  %u_at = getelementptr double, ptr %factor_at, i64 %r_below
  %m_at = getelementptr double, ptr %lower, i64 %r
  %m = load VECTOR, ptr %m_at, align 8
  %u_old = load VECTOR, ptr %u_at, align 8
  %m_negative = fneg VECTOR %m
  %u_new = call VECTOR @llvm.fma.vLANESf64(VECTOR %m_negative, VECTOR %factors, VECTOR %u_old)
  store VECTOR %u_new, ptr %u_at, align 8
  %r_next = add i64 %r, LANES
  %r_left = icmp slt i64 %r_next, %width
  br i1 %r_left, label %rows, label %updated
updated:
  %j_next = add i64 %j, 1
  %j_left = icmp sle i64 %j_next, %width
  br i1 %j_left, label %other, label %eliminated
eliminated:
  %k_next = add i64 %k, 1
  br label %column
back:
  %n = phi i64 [%end, %column], [%n_next, %solved]
  %n_next = sub i64 %n, 1
  %n_left = icmp sge i64 %n_next, 0
  br i1 %n_left, label %unknown, label %finish
unknown:
  %column_n = mul i64 %n_next, %stride
  %upper = getelementptr double, ptr %a, i64 %column_n
  %inverse_at = getelementptr double, ptr %upper, i64 %width
  %inverse_n = load double, ptr %inverse_at, align 8
  %b_n = getelementptr double, ptr %b, i64 %n_next
  %rest = load double, ptr %b_n, align 8
  %solution = fmul double %rest, %inverse_n
  store double %solution, ptr %b_n, align 8
  %solutions = SPLAT %solution
  %above = sub i64 %n_next, %width
  %b_above = getelementptr double, ptr %b, i64 %above
  br label %substitute
substitute:
  %s = phi i64 [0, %unknown], [%s_next, %substitute]
  %c_at = getelementptr double, ptr %upper, i64 %s
  %d_at = getelementptr double, ptr %b_above, i64 %s
  %c = load VECTOR, ptr %c_at, align 8
  %d_old = load VECTOR, ptr %d_at, align 8
  %c_negative = fneg VECTOR %c
  %d_new = call VECTOR @llvm.fma.vLANESf64(VECTOR %c_negative, VECTOR %solutions, VECTOR %d_old)
  store VECTOR %d_new, ptr %d_at, align 8
  %s_next = add i64 %s, LANES
  %s_left = icmp slt i64 %s_next, %width
  br i1 %s_left, label %substitute, label %solved
solved:
  br label %back
finish:
  ret i64 -1
}}

define i64 @{SCATTER_ENTRIES}{_HEAD}
start:
  %rows = POINTER %argument Entries.rows
  %places = POINTER %argument Entries.places
  %count = LOAD %argument Entries.count
  %added = LOAD %argument Entries.is_added
  %is_added = icmp ne i64 %added, 0
  br label %next
next:
  %k = phi i64 [%first, %start], [%k_next, %entry]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %take, label %finish
take:
  %from_at = getelementptr [2 x ptr], ptr %rows, i64 %k
  %from_row = load ptr, ptr %from_at, align 8
  %to_at = getelementptr ptr, ptr %from_at, i64 1
  %to_row = load ptr, ptr %to_at, align 8
  %k_next = add i64 %k, 1
  br label %entry
entry:
  %j = phi i64 [0, %take], [%j_next, %move]
  %entry_left = icmp slt i64 %j, %count
  br i1 %entry_left, label %move, label %next
move:
  %place_at = getelementptr i64, ptr %places, i64 %j
  %place = load i64, ptr %place_at, align 8
  %from = getelementptr double, ptr %from_row, i64 %j
  %to = getelementptr i8, ptr %to_row, i64 %place
  %value = load double, ptr %from, align 8
  %old = load double, ptr %to, align 8
  %base = select i1 %is_added, double %old, double -0.0
  %new = fadd double %base, %value
  store double %new, ptr %to, align 8
  %j_next = add i64 %j, 1
  br label %entry
finish:
  ret i64 -1
}}

declare double @llvm.fabs.f64(double)
declare i64 @llvm.umin.i64(i64, i64)
declare VECTOR @llvm.fma.vLANESf64(VECTOR, VECTOR, VECTOR)
"""

_LOOP = f"""
define i64 @NAME{_HEAD}
start:
  %x = POINTER %argument Vectors.x
  %y = POINTER %argument Vectors.y
  %offsets = POINTER %argument Vectors.offsets
  br label %next
next:
  %k = phi i64 [%first, %start], [%k_next, %goes_on]
  %is_left = icmp slt i64 %k, %end
  br i1 %is_left, label %take, label %finish
take:
  %from = getelementptr [SIZE x double], ptr %x, i64 %k
  %value = load RUN, ptr %from, align 8
BODY
goes_on:
  %k_next = add i64 %k, 1
  br label %next
finish:
  ret i64 -1
}}
"""
_TO = """  %offset_at = getelementptr i64, ptr %offsets, i64 %k
  %offset = load i64, ptr %offset_at, align 8
  %to = getelementptr i8, ptr %y, i64 %offset
"""
_OLD = "  %old = load RUN, ptr %to, align 8\n"
_STORE = "  store RUN %new, ptr %to, align 8\n  br label %goes_on"
_LOOPS = {
    **{name: (size, f"{_TO}{_OLD}  %new = fadd RUN %old, %value\n{_STORE}") for size, name in SCATTER_ADD.items()},
    **{name: (size, f"{_TO}{_STORE}".replace("%new", "%value")) for size, name in SCATTER.items()},
    SCATTER_MAX: (
        1,
        f"{_TO}{_OLD}  %is_more = fcmp ogt RUN %value, %old\n"
        f"  %new = select <1 x i1> %is_more, RUN %value, RUN %old\n{_STORE}",
    ),
}
"""Of each function with the loop `_LOOP`: number of entries that an iteration reads, and what it does with them."""


def assembly() -> str:
    """Return the LLVM IR of the module, without the abbreviations of `_CODE` and `_LOOP`."""
    code = _CODE
    for name, (size, body) in _LOOPS.items():
        run = f"<{size} x double>"
        code += _LOOP.replace("NAME", name).replace("BODY", body).replace("RUN", run).replace("SIZE", str(size))
    code = with_entries(code, STRUCTURES)
    splat = r"\1.one = insertelement VECTOR poison, double \2, i64 0\n  " + (
        r"\1 = shufflevector VECTOR \1.one, VECTOR poison, <LANES x i32> zeroinitializer"
    )
    code = re.sub(r"(%\w+) = SPLAT (%\w+)", splat, code)
    code = code.replace("VECTOR", f"<{LANES} x double>").replace("LANES", str(LANES))
    return code.replace("ATTRIBUTES", ATTRIBUTES)
