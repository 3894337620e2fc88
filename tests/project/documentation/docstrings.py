"""Find public functions whose docstring does not give the shape, unit and frame of every array.

`python tests/project/documentation/docstrings.py legged/dynamics controllers` lists them with what is missing. An array
argument is one whose annotation names `Array` or `ndarray`. Its entry in the docstring (the text from `name:` to the
next argument) must hold a shape, such as (n, 3) or (nv,), and a unit in brackets, such as [m] or [N m], or one of
`UNITLESS`. An entry with a unit of `SPATIAL` must also name a frame by one of `FRAMES`. A returned array needs a
shape in the docstring. "As in `other`" refers to another docstring, and a method that overrides one of the same file
has that one's. Arguments in `CONVENTIONAL` mix units by convention (docs/reference/conventions.md) and need only a
shape.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
CONVENTIONAL = {"q", "v", "vdot", "tau", "wrenches", "memory", "state", "s", "y", "xi", "extra"}
UNITLESS = ("dimensionless", "unit vector", "unit quaternion", "quaternion", "rotation", "mixed units", "any unit")
FRAMES = (
    "axes",
    "axis",
    "world",
    "frame",
    "body",
    "link",
    "base",
    "joint",
    "ground",
    "terrain",
    "generalized",
    "scalar",
)
SPATIAL = ("[m]", "[m/s]", "[m/s^2]", "[N]", "[N m]", "[N s]", "[N m s]", "[rad/s]", "[rad/s^2]")
SHAPE = re.compile(r"\((?:\.\.\.|[\w +*/-]+)?(?:, ?(?:\.\.\.|[\w +*/-]+))*,?\)")
UNIT = re.compile(r"\[[^\]]+\]")


def is_array(annotation: ast.expr | None) -> bool:
    """Tell whether an annotation names an array type."""
    return annotation is not None and bool(re.search(r"\b(Array|ndarray|NDArray|ArrayLike)\b", ast.unparse(annotation)))


def lacks(text: str, name: str) -> str:
    """Return what an entry of a docstring lacks: words, "" if nothing."""
    if re.search(r"(?i)\b(as in|see|of) `", text):
        return ""
    if not SHAPE.search(text):
        return f"{name}: no shape"
    if name not in CONVENTIONAL and not UNIT.search(text) and not any(word in text for word in UNITLESS):
        return f"{name}: no unit"
    if any(unit in text for unit in SPATIAL) and len(SHAPE.findall(text)) and not any(word in text for word in FRAMES):
        return f"{name}: no frame"
    return ""


def entry(doc: str, name: str) -> str | None:
    """Return the text of an argument's entry: from `name:` or `name, other:` to the end of its paragraph."""
    match = re.search(rf"(?:^|[\s,(]){re.escape(name)}(?:, [\w, ]+)?:(.*?)(?=\n\s*\n|\n\s*[\w, ]+:\s|\Z)", doc, re.S)
    return match and match.group(1)


def findings(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (name, defects) of every public function of a file that takes or returns arrays."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    methods: dict[str, set[str]] = {}  # own and inherited methods of the classes of this file
    for c in tree.body:
        if isinstance(c, ast.ClassDef):
            bases = (methods.get(base.id, set()) for base in c.bases if isinstance(base, ast.Name))
            methods[c.name] = set().union({m.name for m in c.body if isinstance(m, ast.FunctionDef)}, *bases)

    def walk(body: list[ast.stmt], prefix: str, inherited: set[str] = frozenset()) -> Iterator[tuple[str, list[str]]]:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                yield from walk(node.body, f"{prefix}{node.name}.", set().union(*(methods.get(b, ()) for b in bases)))
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_") or node.name in inherited:
                continue
            if any(isinstance(name, ast.Name) and name.id == "overload" for name in node.decorator_list):
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            arrays = [a.arg for a in arguments if is_array(a.annotation)]
            if not arrays and not is_array(node.returns):
                continue
            doc, defects = ast.get_docstring(node) or "", []
            elsewhere = re.search(r"(?i)arguments? (?:as|of|are those)|as in `|see `", doc)
            for name in arrays:
                text = entry(doc, name)
                if text is None:
                    if not elsewhere:
                        defects.append(f"{name}: not described")
                else:
                    defects += [words for words in [lacks(text, name)] if words]
            if is_array(node.returns) and not SHAPE.search(doc):
                defects.append("return: no shape")
            yield f"{prefix}{node.name}", defects

    yield from walk(tree.body, "")


def main() -> None:
    """Print the defects of the files and folders named on the command line, and the share that has none."""
    good = bad = 0
    for name in sys.argv[1:] or ["legged", "controllers", "robots"]:
        root = ROOT / name
        for path in [root] if root.is_file() else sorted(root.rglob("*.py")):
            for function, defects in findings(path):
                good, bad = good + (not defects), bad + bool(defects)
                if defects:
                    print(f"{path.relative_to(ROOT)}: {function}: {'; '.join(defects)}")
    print(f"{good} of {good + bad} public functions give shape, unit and frame of every array")


if __name__ == "__main__":
    main()
