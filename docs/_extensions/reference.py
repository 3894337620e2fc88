"""Pages of the reference, written from the public names of the packages, and docstrings as reStructuredText.

A page documents every public name that its package defines, under the shortest name by which users import it. A name
of the toolkit in backticks, in a page or in a docstring, becomes a link to its entry.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import legged

PACKAGES = (
    "legged.robot", "legged.dynamics", "legged.loops", "legged.algorithms", "legged.denoc", "legged.compiler",
    "legged.ground", "legged.contact", "legged.simulation", "controllers", "robots", "legged.sensors", "legged.files",
    "legged.conversions", "legged.verification", "legged.viewer", "legged.rotations", "legged.taylor",
    "legged.moving_coordinates", "legged.spatial", "legged.errors",
)  # fmt: skip
ONE_FIELD = re.compile(r"(?<=[.;]) (?=[A-Za-z]\w*(?:, \w+)*: \S)")
"""The place between two arguments that share a line of a docstring."""
ANNOTATED = re.compile(r"(?:~?typing\.|~?types\.)?\bAnnotated\[")
held: dict[str, list[str]] = {}
"""Docstrings of properties while napoleon runs: full name -> lines."""
SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Source):$")


def modules(package: ModuleType) -> list[ModuleType]:
    """Return a package without `__all__` as the list of its public modules, any other module as itself."""
    if hasattr(package, "__all__") or not hasattr(package, "__path__"):
        return [package]
    names = [item.name for item in pkgutil.iter_modules(package.__path__)]
    found = [importlib.import_module(f"{package.__name__}.{name}") for name in names]
    return [part for module in found for part in modules(module)]


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module offers: its `__all__`, or the functions and classes that it defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isroutine(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def entries(package: str) -> dict[str, dict[str, Any]]:
    """Return the public objects of a package: module name -> full public name -> object."""
    main = importlib.import_module(package)
    short = {id(getattr(legged, name)): f"legged.{name}" for name in legged.__all__}
    exported = {
        f"legged.{name}": getattr(legged, name)
        for name in legged.__all__
        if getattr(getattr(legged, name), "__module__", "").startswith(f"{package}.")
        or getattr(getattr(legged, name), "__module__", "") == package
    }
    found = {package: dict(sorted(exported.items()))} if package != "legged" else {}
    for module in modules(main):
        own = {f"{module.__name__}.{name}": getattr(module, name) for name in public_names(module)}
        new = {name: value for name, value in own.items() if id(value) not in short}
        found.setdefault(module.__name__, {}).update(new)
    return {module: names for module, names in found.items() if names or module == package}


def page(package: str, seen: set[int]) -> str:
    """Return the page of a package."""
    lines = [package, "=" * len(package), ""]
    for module, names in entries(package).items():
        if module != package:
            lines += [module, "-" * len(module), ""]
        lines += [f".. automodule:: {module}", "   :no-members:", ""]
        for name, value in names.items():
            if id(value) in seen and not isinstance(value, int | float | str | tuple):
                continue
            seen.add(id(value))
            kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else "data"
            if inspect.isclass(value) and issubclass(value, BaseException):
                kind = "exception"
            lines += [f".. auto{kind}:: {name}", *(["   :members:"] if kind in ("class", "exception") else []), ""]
    return "\n".join(lines)


def summary(value: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")


def write_pages(app: Sphinx) -> None:
    """Write one page for each package and a page of the names of `legged` to `reference/api`."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    there = [name for name in PACKAGES if _exists(name)]
    for path in folder.iterdir():
        if path.stem not in ("index", *there):
            path.unlink()
    seen: set[int] = set()
    for name in there:
        _write(folder / f"{name}.rst", page(name, seen))
    rows = [
        f"| `legged.{name}` | {summary(getattr(legged, name))} |"
        for name in sorted(legged.__all__, key=str.lower)
        if not name.startswith("_")
    ]
    lines = [
        "# Packages and functions", "", "Generated from the docstrings. A page for each package:", "",
        "```{toctree}", ":maxdepth: 1", *there, "```", "",
        "## Names of `legged`", "", "| name | meaning |", "| --- | --- |", *rows, "",
    ]  # fmt: skip
    _write(folder / "index.md", "\n".join(lines))


def _exists(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def restructured(lines: list[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText: indented blocks are literal, other characters are text."""
    found: list[str] = []
    section, literal, previous = False, False, ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        margin = 4 if section else 0
        if header := SECTION.match(line):
            section, literal = True, False
            found += ["", ":returns:"] if header[1] == "Returns" else [line]
        elif not line.strip():
            found.append("")
        else:
            section = section and indent > 0
            margin = 4 if section else 0
            if indent <= margin:
                literal = False
            elif not previous.strip() and not literal and not section:
                literal = True
                found += ["::", ""]
            parts = ONE_FIELD.split(line) if section and not literal else [line]
            lines_of_fields = [parts[0], *(f"    {part}" for part in parts[1:])]
            found += lines_of_fields if literal else [escaped(part) for part in lines_of_fields]
        previous = line
    return found


def escaped(line: str) -> str:
    """Return a line of text with the characters escaped that are markup outside of backticks."""
    field = re.match(r"^ {4}[\w, *.]+: ", line)
    head, rest = (field[0], line[field.end() :]) if field else ("", line)
    bullet = re.match(r"^\s*[-*] ", rest)
    if bullet and not field:
        head, rest = bullet[0], rest[bullet.end() :]
    parts = re.split(r"(`[^`]*`)", rest)
    for k, part in enumerate(parts):
        if k % 2 == 0:
            part = part.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
            parts[k] = re.sub(r"(?<=[\w\])}])_(?!\w)", r"\\_", part)
        else:
            before, after = parts[k - 1][-1:], parts[k + 1][:1]
            parts[k] = ("\\ " if before.isalnum() else "") + f"`{part}`" + ("\\ " if after.isalnum() else "")
    return head + "".join(parts)


def convert_docstring(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines of a docstring by reStructuredText, before napoleon reads their sections.

    Napoleon would read the words before a colon in the docstring of a property as its type; it is given none.
    """
    inherited = what == "data" and "\n".join(lines).strip() == inspect.getdoc(type(value))
    lines[:] = [] if inherited else restructured(lines)
    if what in ("attribute", "data", "property"):
        held[name] = lines[:]
        lines.clear()


def restore_docstring(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Give the docstring of a property back, after napoleon."""
    lines[:] = held.pop(name, lines)


def readable(text: str) -> str:
    """Return a signature without `Annotated`: arrays of shape (3, 3) as `ArrayLike[3, 3]`, of any shape as `ArrayLike`.

    Of other annotations it shows the kind, or what the argument is read as if the kind is `Any`.
    """
    start = ANNOTATED.search(text)
    if start is None:
        return text
    depth, comma, end = 1, 0, start.end()
    while depth:
        letter = text[end]
        depth += (letter in "[(") - (letter in "])")
        comma = comma or (end if letter == "," and depth == 1 else 0)
        end += 1
    kind, read = text[start.end() : comma], text[comma + 1 : end - 1].strip()
    if read.startswith("("):
        shown = f"ArrayLike[{read.strip('(),')}]"
    elif read.endswith("ndarray"):
        shown = "ArrayLike"
    else:
        shown = read if kind.endswith("Any") else kind
    return readable(text[: start.start()] + shown + text[end:])


def shorten_signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Return the signature of an entry, which has to be valid Python, and its return annotation as `readable` text."""
    shown = signature and readable(signature.replace("<factory>", "..."))
    return shown, returned and readable(returned)


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out the entries that named tuples make for their fields."""
    return True if (getattr(value, "__doc__", None) or "").startswith("Alias for field number") else None


class NamesAreLinks(SphinxPostTransform):
    """Turn names of the toolkit in literal text into links to their entries in the reference."""

    default_priority = 100

    def run(self, **options: Any) -> None:
        domain = self.env.domains["py"]
        for node in list(self.document.findall(nodes.literal)):
            name = node.astext().partition("(")[0]
            entry = domain.objects.get(name)
            if entry is None or isinstance(node.parent, nodes.reference):
                continue
            link = make_refnode(self.app.builder, self.env.docname, entry.docname, entry.node_id, node.deepcopy(), name)
            node.replace_self(link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts of this extension to Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", convert_docstring, priority=100)
    app.connect("autodoc-process-docstring", restore_docstring, priority=900)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip)
    app.add_post_transform(NamesAreLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
