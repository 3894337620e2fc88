"""Single-line changes of the numerical code for the mutation study `mutants`."""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PLACES = (
    "legged/spatial.py",
    "legged/rotations.py",
    "legged/moving_coordinates.py",
    "legged/taylor.py",
    "legged/robot",
    "legged/dynamics",
    "legged/denoc",
    "legged/algorithms",
    "legged/loops",
    "legged/ground",
    "legged/contact",
    "legged/simulation",
    "legged/sensors",
    "legged/conversions",
    "controllers",
)
"""Files and folders that are changed."""

SWAPS: dict[type, tuple[type, ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.MatMult: (),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
NAMES = {
    "sin": "cos",
    "cos": "sin",
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "zeros": "ones",
}
SKIPPED = ("raise ", "warn", "f'", 'f"', "__repr__", "import ", "assert ")


class Mutant(NamedTuple):
    """One change: where, the line before and after."""

    path: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}\n    - {self.before.strip()}\n    + {self.after.strip()}"


def mutants(root: Path, path: Path) -> Iterator[Mutant]:
    """Yield every change of one file: operators, comparisons, numbers, function names, signs, and dropped terms."""
    source = (root / path).read_text(encoding="utf-8")
    lines = source.splitlines()
    tree = ast.parse(source)
    strings = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or node.lineno in strings:
            continue
        text = lines[node.lineno - 1]
        heading = text.lstrip().startswith(("def ", "class ", "@")) or "->" in text
        if heading or any(word in text for word in SKIPPED):
            continue
        old = text.encode()[node.col_offset : node.end_col_offset].decode()
        for new in _variants(node):
            if new != old:
                before, after = text.encode()[: node.col_offset].decode(), text.encode()[node.end_col_offset :].decode()
                yield Mutant(path, node.lineno, text, before + new + after)


def _variants(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        for other in SWAPS.get(type(node.op), ()):
            yield f"({ast.unparse(ast.BinOp(node.left, other(), node.right))})"
        if isinstance(node.op, (ast.Add, ast.Sub)):
            yield f"({left})"
        if isinstance(node.op, ast.MatMult):
            yield f"(({left}) @ ({right}) * 1.001)"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in SWAPS.get(type(node.ops[0]), ()):
            yield f"({ast.unparse(ast.Compare(node.left, [other()], node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        for other in SWAPS.get(type(node.op), ()):
            yield f"({ast.unparse(ast.BoolOp(other(), node.values))})"
    elif (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield repr(node.value + 1)
        if isinstance(node.value, float) and node.value:
            yield repr(node.value * 1.01)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield f"{ast.unparse(node.value)}.{NAMES[node.attr]}"
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield NAMES[node.id]


def drawn(root: Path, number: int, seed: int, only: str) -> list[Mutant]:
    """Return changes drawn evenly over the packages by their numbers of lines."""
    found = []
    for place in PLACES:
        files = [root / place] if place.endswith(".py") else sorted((root / place).rglob("*.py"))
        for path in (file.relative_to(root) for file in files):
            if only in str(path):
                by_line: dict[int, list[Mutant]] = {}
                for mutant in mutants(root, path):
                    by_line.setdefault(mutant.line, []).append(mutant)
                found += by_line.values()
    rng = random.Random(seed)
    return [rng.choice(choices) for choices in rng.sample(found, min(number, len(found)))]


def names_around(path: Path, line: int) -> tuple[set[str], set[str]]:
    """Return the names of the functions and classes around a line, and those of the others in the file."""
    inside, others = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            (inside if node.lineno <= line <= (node.end_lineno or 0) else others).add(node.name)
    return inside, others


@contextmanager
def changed(copy: Path, mutant: Mutant) -> Iterator[None]:
    """Change one line of a copy of the checkout inside the context."""
    target = copy / mutant.path
    source, status = target.read_text(encoding="utf-8"), target.stat()
    lines = source.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.after + "\n"
    target.write_text("".join(lines), encoding="utf-8")
    try:
        yield
    finally:
        target.write_text(source, encoding="utf-8")
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
