"""Output: writing of files, escaping of text in pages, panels, plots, tables and terminals, and functions from above.

`write_file` and `replaced` write files under a temporary name in their folder and then rename them, so that an error
leaves an existing file unchanged; `growing_file` is for logs, which are kept as far as they were written. Text that
comes from a robot file, a run file or a user's program (names, reasons, paths, messages) is escaped by `as_html`,
`as_markdown`, `as_script`, `as_label`, `as_cell`, `as_terminal` or `visible` where it enters a format that another
program interprets. `from_above` returns the functions that draw robots and runs.
"""

from __future__ import annotations

import contextlib
import csv
import html
import io
import itertools
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from legged.arguments import instance
from legged.errors import FileError

MOST_CHARACTERS = 400
"""Length above which a text is shortened in pages, panels and plots."""
_FORMATS = """
7z avi avif bag bib bin bmp bz2 c cc cfg conf cpp css csv dae dat db db3 doc docx dylib eps fbx feather gif glb gltf
gz h h5 hdf hdf5 hh hpp htm html ico ini ipynb jpeg jpg js json jsonl lock log lz4 m mat mcap md mjb mjcf mkv mov mp4
mpeg mpg msh npy npz o obj odf ods onnx parquet pdf pgm pickle pkl ply png ppm ps pt pth py pyc pyi rar rst
safetensors sdf sh skn so sqlite srdf stl svg tar tex tgz tif tiff toml tsv ttf txt urdf usd usda usdc usdz wasm wav
webm webp xacro xhtml xls xlsx xml xz yaml yml zip zst
"""
FORMATS = frozenset(_FORMATS.split())
"""Endings of the names of files by which other programs recognize a format."""


# Files


def output_file(path: str | Path, *suffixes: str) -> Path:
    """Return the path of a file that is to be written, after creating its folder where it is missing.

    The first suffix is appended to a name that ends in none of the suffixes: "kp_0.5" becomes "kp_0.5.npz". A name that
    ends in the suffix of another format, such as "run.csv" for a run, is refused.

    Args:
        path: The file. suffixes: The suffixes that the format may have, such as ".npz"; none accepts any name.

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: The path is no name of a file, has the suffix of another format, names something that is no regular
            file or that must not be written, or its folder cannot be created.
    """
    text, example = str(instance("path", path, (str, Path), "a text or a path")), (suffixes or (".npz",))[0]
    target = Path(text)
    if not target.name or target.name == ".." or "\0" in text or text.endswith(_SEPARATORS):
        raise FileError(text, f"is no name of a file; give one such as run{example}")
    if suffixes and target.suffix.lower() not in suffixes:
        if target.suffix[1:].lower() in FORMATS:
            words = f"has the suffix of another format; this is written to {' or '.join(suffixes)} files"
            raise FileError(text, f"{words}: name it {target.with_suffix(example).name!r}")
        target = target.with_name(target.name + example)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileError(str(target.parent), f"cannot be created: {_reason(error)}; give another folder") from error
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError) as error:
        raise FileError(str(target), f"cannot be written: {_reason(error)}; give another name") from error
    if not stat.S_ISREG(mode):
        raise FileError(str(target), "cannot be written: a folder, pipe or device has this name; give another one")
    if not os.access(target, os.W_OK):
        raise FileError(str(target), "cannot be written: the file that is there is protected; give another name")
    return target


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Context manager: yield the path of a temporary file, which replaces `path` at the end of the context.

    The temporary file is in the same folder and has the same suffix. If the context ends with an exception, or if the
    file cannot be written completely, the temporary file is deleted and an existing file `path` is unchanged.

    Args:
        path: As returned by `output_file`.

    Raises:
        FileError: The file cannot be written, for example because the disk is full.
    """
    place = path.resolve() if path.is_symlink() else path
    draft = place.with_name(f".legged-{secrets.token_hex(8)}{place.suffix}")
    try:
        with draft.open("xb"):  # with the permissions of any new file
            pass
        with contextlib.suppress(FileNotFoundError):
            os.chmod(draft, stat.S_IMODE(place.stat().st_mode))
        yield draft
        with draft.open("r+b") as file:
            os.fsync(file.fileno())  # some file systems report a full disk only here
        os.replace(draft, place)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
            raise
        unchanged = "; the file that was there is unchanged" if place.exists() else ""
        raise FileError(str(path), f"cannot be written: {_reason(error)}{unchanged}") from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)


def growing_file(path: str | Path, suffix: str) -> tuple[Path, Any]:
    """Return (path, file): a new file, open for bytes without a buffer, that grows while a program runs.

    What was written to it stays if the program ends. An existing file is never changed: the name of the new one is then
    the first free one of NAME-2, NAME-3, ...

    Args:
        path: The file; the suffix is appended where it is missing. suffix: As in `output_file`.

    Raises:
        ArgumentError, FileError: As in `output_file`.
    """
    target = output_file(path, suffix)
    numbered = (target.with_name(f"{target.stem}-{k}{target.suffix}") for k in itertools.count(2))
    for each in itertools.chain([target], numbered):
        try:
            return each, each.open("xb", buffering=0)
        except FileExistsError:
            continue
        except OSError as error:
            raise FileError(str(each), f"cannot be written: {_reason(error)}") from error
    raise AssertionError("there is always a free name")


def write_file(path: str | Path, content: str | bytes | memoryview, *suffixes: str) -> Path:
    """Write a file, texts as UTF-8, and return its path.

    Args:
        path: The file. A missing folder is created. content: All of its content.
        suffixes: As in `output_file`.

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: As in `output_file` and `replaced`.
    """
    path = output_file(path, *suffixes)
    with replaced(path) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_table(path: str | Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> Path:
    """Write a table of comma-separated values in UTF-8, and return its path.

    Args:
        path: The file; ".csv" is appended where it is missing. A missing folder is created.
        header: Names of the columns. rows: Cells; numbers are written in full, texts as by `as_cell`.

    Raises:
        ArgumentError, FileError: As in `write_file`.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(as_cell, header))
    writer.writerows([as_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return write_file(path, text.getvalue(), ".csv")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split())


_SEPARATORS = tuple({"/", os.sep, os.altsep or "/"})


# Texts


def visible(text: Any, most: int | None = MOST_CHARACTERS) -> str:
    r"""Return a text on one line without invisible characters.

    White space becomes single spaces. Control characters, lone surrogates, and marks that change the direction of
    writing become escapes such as \x1b and \u202e.

    Args:
        text: The text. most: Length above which the middle is left out; None for none.
    """
    words = printable(" ".join(str(text).split()))
    if most is None or len(words) <= most:
        return words
    return f"{words[: most - most // 4 - 5]} ... {words[-(most // 4) :]}"


def printable(text: str) -> str:
    """Return a text with the escapes of `visible`, of any length and with all of its spaces."""
    return _HIDDEN.sub(lambda match: _escape(match[0]), text)


def as_terminal(text: str) -> str:
    """Return a text of several lines for a terminal, with control characters as escapes."""
    return "\n".join(map(printable, text.split("\n")))


def as_html(text: Any) -> str:
    """Return a text escaped for the content of an element, or of a quoted attribute, of HTML."""
    return html.escape(visible(text), quote=True)


def as_markdown(text: Any) -> str:
    """Return a text for Markdown: ASCII punctuation becomes character references, which have no effect as markup."""
    return "".join(c if c.isalnum() or c == " " or not c.isascii() else f"&#{ord(c)};" for c in visible(text))


def as_script(data: Any) -> str:
    """Return plain data as JSON for the content of a <script> element, with its texts as by `visible`."""
    return json.dumps(_visible_texts(data), separators=(",", ":")).replace("<", "\\u003c")


def as_label(text: Any, most: int = 80) -> str:
    """Return a text for Matplotlib, which shows dollar signs and a leading underscore as they are.

    Dollar signs are escaped, since they would begin a formula. A space precedes an underscore at the beginning, since
    legends leave out labels that begin with one.

    Args:
        text: The text. most: As in `visible`.
    """
    words = visible(text, most).replace("$", r"\$")
    return f" {words}" if words.startswith("_") else words


def as_cell(text: Any) -> str:
    """Return a text for a cell of a table; an apostrophe precedes texts that a spreadsheet would evaluate."""
    words = visible(text, None)
    return f"'{words}" if words.startswith(("=", "+", "-", "@")) else words


def _visible_texts(data: Any) -> Any:
    if isinstance(data, str):
        return visible(data)
    if isinstance(data, dict):
        return {name: _visible_texts(value) for name, value in data.items()}
    return [_visible_texts(value) for value in data] if isinstance(data, list | tuple) else data


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


_HIDDEN = re.compile(
    "[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


_MOST_LABEL = 60  # characters


def paragraphs(*texts: str) -> str:
    """Return the Markdown of paragraphs.

    Args:
        texts: The texts, none of which is read as Markdown or HTML.
    """
    return "\n\n".join(map(as_markdown, texts))


def distinct_labels(names: Iterable[str]) -> dict[str, str]:
    """Return label -> name for elements of the page, which tells them apart by their labels.

    Args:
        names: The names.
    """
    names_by_label: dict[str, str] = {}
    for name in names:
        label, count = visible(name, _MOST_LABEL), 1
        while label in names_by_label:
            count += 1
            label = f"{visible(name, _MOST_LABEL)} ({count})"
        names_by_label[label] = name
    return names_by_label


# Functions from packages above

FROM_ABOVE = {
    "RobotView": "legged.viewer.show",
    "draw": "legged.robot.diagram.drawing",
    "figures": "legged.simulation.plots.figures",
    "frame": "legged.viewer.show",
    "run_table": "legged.simulation.results.run_table",
    "save_html": "legged.viewer.show",
    "snapshot": "legged.simulation.plots.animation",
}
"""Name of a function -> the module that defines it: all of them draw or list what they are given."""


def from_above(name: str) -> Callable[..., Any]:
    """Return a function of a package above its caller, such as one that draws a robot or a run.

    Pictures import what they show, never the reverse. A method such as `Run.plot` therefore names its picture, and the
    module that draws it is imported at the first call. This table is the only way from a package to one above it.

    Args:
        name: Name of the function, a key of `FROM_ABOVE`.
    """
    return getattr(import_module(FROM_ABOVE[name]), name)
