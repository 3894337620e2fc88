"""Single-line changes of the numerical code for the mutation study `mutants`."""

from __future__ import annotations

import ast
import json
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
    "legged/files",
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
FIGURES = Path("legged/simulation/plots")
"""Folder that is not changed: its numbers are sizes of figures."""

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
    free = set(_free_choices(tree))
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno or node.lineno in strings or node in free:
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


def _free_choices(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield annotations, and the numbers for which other values are as correct.

    These are named tolerances and tuning parameters, default values other than 0 and 1, seeds, and the -1 in `reshape`,
    for which NumPy accepts any negative number. Empty arrays of zeros equal those of ones, and the numbers of items of
    a traced loop are labels.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node in tree.body:
            are_several = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            parts = node.value.elts if are_several else [node.value]  # type: ignore[attr-defined]
            yield from (part for part in parts if isinstance(part, ast.Constant))
        elif isinstance(node, ast.arguments):
            for value in (*node.defaults, *node.kw_defaults):
                yield from _tuned(value)
        elif isinstance(node, ast.AnnAssign):
            yield from ast.walk(node.annotation)
            is_seed = isinstance(node.target, ast.Name) and node.target.id == "seed"
            yield from ast.walk(node.value) if is_seed and node.value else _tuned(node.value)
        elif isinstance(node, ast.keyword) and node.arg == "seed":
            yield node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("reshape", "default_rng"):
            for value in node.args:
                number = value.operand if isinstance(value, ast.UnaryOp) else value
                if number is not value or node.func.attr == "default_rng":  # type: ignore[attr-defined]
                    yield from (value, number)
        elif isinstance(node, ast.withitem) and ast.unparse(node.context_expr).startswith("item("):
            yield from ast.walk(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "zeros":
            sizes = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else node.args[:1]
            if any(isinstance(size, ast.Constant) and size.value == 0 for size in sizes):
                yield node.func


def _tuned(value: ast.expr | None) -> Iterator[ast.AST]:
    """Yield the numbers of a default value other than 0 and 1."""
    for part in ast.walk(value) if value is not None else ():
        if isinstance(part, ast.Constant) and part.value not in (0, 1):
            yield part


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
    mutations = []
    for place in PLACES:
        files = [root / place] if place.endswith(".py") else sorted((root / place).rglob("*.py"))
        for path in (file.relative_to(root) for file in files):
            if only in str(path) and not path.is_relative_to(FIGURES):
                by_line: dict[int, list[Mutant]] = {}
                for mutant in mutants(root, path):
                    by_line.setdefault(mutant.line, []).append(mutant)
                mutations += by_line.values()
    rng = random.Random(seed)
    return [rng.choice(choices) for choices in rng.sample(mutations, min(number, len(mutations)))]


def mentions(path: Path, line: int) -> list[int]:
    """Return the lines inside functions that mention what a line outside functions defines: a constant or field, and
    for a line in the head of a function the lines of its body."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    names: set[str] = set()
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= line <= (node.end_lineno or 0):
            names |= {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and type(part.ctx) is ast.Store}
        if isinstance(node, ast.FunctionDef) and node.lineno <= line < node.body[0].lineno:
            lines |= {statement.lineno for statement in node.body}
    for function in functions:
        for part in ast.walk(function):
            if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part).rpartition(".")[2] in names:
                lines.add(part.lineno)
    return sorted(lines)


def function_around(path: Path, line: int) -> range:
    """Return the lines of the innermost function around a line, none outside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    around = [range(node.lineno, (node.end_lineno or 0) + 1) for node in functions]
    return min((lines for lines in around if line in lines), key=len, default=range(0))


@contextmanager
def changed(copy: Path, mutant: Mutant) -> Iterator[None]:
    """Change one line of a copy of the checkout inside the context; an earlier change that remained is undone first."""
    restore(copy)
    target = copy / mutant.path
    source, status = target.read_text(encoding="utf-8"), target.stat()
    original = json.dumps([str(mutant.path), source, status.st_atime_ns, status.st_mtime_ns])
    (copy / "original.draft").write_text(original, encoding="utf-8")
    (copy / "original.draft").replace(copy / "original.json")
    lines = source.splitlines(keepends=True)
    lines[mutant.line - 1] = mutant.after + "\n"
    target.write_text("".join(lines), encoding="utf-8")
    try:
        yield
    finally:
        restore(copy)


def restore(copy: Path) -> None:
    """Undo the change of a copy, which remains if a signal ends the study inside `changed`."""
    file = copy / "original.json"
    if file.exists():
        path, source, *times = json.loads(file.read_text(encoding="utf-8"))
        (copy / path).write_text(source, encoding="utf-8")
        os.utime(copy / path, ns=(times[0], times[1]))
        file.unlink()
