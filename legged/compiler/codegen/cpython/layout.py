"""Assembly that looks into objects of Python and NumPy: where their fields are, and the checks made of them."""

from __future__ import annotations

from legged.compiler.codegen.ir_writer import IRWriter, Value
from legged.compiler.ir.graph import Shape

HEADER = object.__basicsize__
"""Size of what every object begins with; its last field is the type."""
DATA, ND, DIMENSIONS, DESCR, FLAGS = (HEADER + offset for offset in (0, 8, 16, 40, 48))
"""Where the fields of NumPy's arrays are."""
LENGTH, ITEMS = HEADER, tuple.__basicsize__
"""Where a tuple's number of items is, and where they begin."""
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
DOUBLE = 12
"""NumPy's number of the type."""

CONTEXT = "legged_context"
OBJECTS = ("array", "double", "float", "scalar", "tuple", "none", "out")
FUNCTIONS = ("new", "number", "pack", "increment", "decrement", "vectorcall", "whole", "value")
NAMES = (*OBJECTS, *FUNCTIONS, "batch", "limit")
"""What the table `legged_context` holds: objects and functions of this process, the code for batches if it is loaded,
and how many states it may do while Python's lock is held."""


class Objects:
    """A function under construction that reads and makes objects.

    Attributes:
        w: Its text.
        context: What was loaded of the table.
    """

    def __init__(self) -> None:
        self.w = IRWriter(1)
        self.context: dict[str, Value] = {}

    def load_context(self) -> None:
        """Load the table."""
        w = self.w
        for k, name in enumerate(NAMES):
            kind = "i64" if name == "limit" else "ptr"
            self.context[name] = w.assign(f"load {kind}, ptr {w.gep(f'@{CONTEXT}', k, 'ptr')}")

    def field(self, thing: Value, offset: int, kind: str = "ptr") -> Value:
        """Return a field of an object."""
        return self.w.assign(f"load {kind}, ptr {self.w.gep(thing, offset, 'i8')}")

    def call(self, name: str, arguments: str, answer: str = "ptr") -> Value:
        """Return what a function of the table answers."""
        return self.w.assign(f"call {answer} {self.context[name]}({arguments})")

    def increment(self, thing: Value) -> None:
        """Count one more reference."""
        self.w.emit(f"call void {self.context['increment']}(ptr {thing})")

    def decrement(self, thing: Value) -> None:
        """Count one reference less."""
        self.w.emit(f"call void {self.context['decrement']}(ptr {thing})")

    def check(self, condition: Value, label: str, otherwise: str = "otherwise") -> None:
        """Go on at a new block if the condition holds, somewhere else if not."""
        self.w.branch(condition, f"{label}", f"{otherwise}")
        self.w.label(label)

    def is_there(self, thing: Value, label: str, otherwise: str) -> None:
        """Go on at a new block if an object could be made, somewhere else if not."""
        self.check(self.w.assign(f"icmp ne ptr {thing}, null"), label, otherwise)

    def all(self, checks: list[Value]) -> Value:
        """Return whether all of the checks hold."""
        total = checks[0] if checks else "true"
        for check in checks[1:]:
            total = self.w.assign(f"and i1 {total}, {check}")
        return total

    def is_kind(self, thing: Value, kind: str) -> Value:
        """Return whether the class of an object is one of the table's."""
        return self.w.assign(f"icmp eq ptr {self.field(thing, HEADER - 8)}, {self.context[kind]}")

    def is_array(self, given: Value, label: str, flags: int) -> Value:
        """Check that an object is an array of doubles with these flags; return its number of axes."""
        w = self.w
        self.check(self.is_kind(given, "array"), f"{label}_array")
        found = w.assign(f"and i32 {self.field(given, FLAGS, 'i32')}, {flags}")
        right = w.assign(f"icmp eq i32 {found}, {flags}")
        double = w.assign(f"icmp eq ptr {self.field(given, DESCR)}, {self.context['double']}")
        self.check(self.all([right, double]), f"{label}_double")
        return self.field(given, ND, "i32")

    def sizes(self, given: Value, shape: Shape, skip: int) -> Value:
        """Return whether the axes of an array, but for the first `skip`, are as long as they should be."""
        sizes = self.field(given, DIMENSIONS)
        return self.all(
            [self.w.assign(f"icmp eq i64 {self.field(sizes, 8 * (i + skip), 'i64')}, {n}") for i, n in enumerate(shape)]
        )

    def length(self, given: Value) -> Value:
        """Return the length of an array's first axis."""
        return self.field(self.field(given, DIMENSIONS), 0, "i64")

    def new_array(self, shape: Shape, lead: int, count: Value) -> Value:
        """Return a new array, null if there is no room; `%shape` is used for its axes."""
        w = self.w
        for i, n in enumerate((count, *shape) if lead else shape):
            w.emit(f"store i64 {n}, ptr {w.gep('%shape', i, 'i64')}")
        size = f"ptr {self.context['array']}, i32 {len(shape) + lead}, ptr %shape, i32 {DOUBLE}"
        return self.call("new", f"{size}, ptr null, ptr null, i32 0, i32 0, ptr null")

    def put(self, item: Value, pack: Value, k: int) -> None:
        """Make a new object an item of a new tuple, which takes the reference."""
        self.w.emit(f"store ptr {item}, ptr {self.w.gep(pack, ITEMS + 8 * k, 'i8')}")
