"""Read regular files of limited size, and parse XML of limited size without document types or external entities."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from legged.arguments import instance
from legged.errors import FileError

MAX_BYTES = 16 * 2**20
"""Largest size of a robot file, [byte]; the largest public ones have a few million."""
MOST_ELEMENTS = 100_000
"""Largest number of XML elements in a robot file; the largest public ones have some thousand."""
_CHUNK = 2**16


def check_regular(path: str | Path, most: int = MAX_BYTES, what: str = "robot files") -> str:
    """Return the path of a regular file as text.

    Pipes and devices are rejected without opening them, which might block.

    Args:
        path: The path.
        most: Largest size of the file, [byte].
        what: The kind of files that this limit is for, for messages.

    Raises:
        ArgumentError: The path is neither text nor a `Path`; an integer would open a file descriptor.
        FileError: The file is missing, larger than `most`, or no regular file.
    """
    source = os.fspath(instance("path", path, (str, Path), "a text or a path"))
    try:
        status = os.stat(source)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise FileError(source, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not stat.S_ISREG(status.st_mode):
        kinds = {"a directory": stat.S_ISDIR, "a pipe": stat.S_ISFIFO, "a socket": stat.S_ISSOCK}
        kind = next((words for words, test in kinds.items() if test(status.st_mode)), "a device")
        raise FileError(source, f"cannot be read: it is {kind}; give the path of a regular file")
    if status.st_size > most:
        raise FileError(source, f"the file is larger than {most // 2**20} MiB, the limit for {what}")
    return source


def read_regular(path: str | Path, most: int = MAX_BYTES, what: str = "robot files") -> bytes:
    """Return the content of a regular file.

    Args:
        path, most, what: As in `check_regular`.

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: The file is missing, unreadable, larger than `most`, or no regular file.
    """
    source = check_regular(path, most, what)
    try:  # some files of the system count as regular and wait for content; another file may have taken the place
        handle = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise FileError(source, "cannot be read: it is no regular file")
            content = bytearray()
            while len(content) <= most and (piece := file.read(_CHUNK)):
                content += piece
    except OSError as error:
        raise FileError(source, f"cannot be read: {error.strerror or error}") from error
    if len(content) > most:  # it has grown meanwhile, or its size is unknown
        raise FileError(source, f"the file is larger than {most // 2**20} MiB, the limit for {what}")
    return bytes(content)


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a robot file.

    Raises:
        ArgumentError: The path is neither text nor a `Path`.
        FileError: The file is missing, unreadable, empty, larger than `MAX_BYTES`, or no regular file.
    """
    content = read_regular(path)
    if not content.strip():
        raise FileError(str(path), "the file is empty")
    return content


def parse(content: bytes, source: str, lenient: bool = False) -> Any:
    """Return the root element (lxml) of a document, without its comments and processing instructions.

    The document is parsed piece by piece, so that one of too many elements is rejected before it fills the memory.
    The version in the XML declaration is ignored, as all readers of robot files do. libxml2 rejects nesting of more
    than 256 elements and texts of more than 10 MB.

    Args:
        content: The document.
        source: Path, for messages.
        lenient: Whether to read on after errors, and to allow nesting of 2048 elements, for documents that another
            program reads afterwards. The root is None if nothing could be read.

    Raises:
        FileError: The document is not well-formed, has more than `MOST_ELEMENTS` elements, or declares a document type,
            which would allow entity expansion attacks.
    """
    etree = _etree(source)
    parser = etree.XMLPullParser(
        events=("start",),
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=lenient,
        recover=lenient,
        remove_comments=True,
        remove_pis=True,
    )
    content = _VERSION.sub(rb"\g<1>1.0\g<2>", content, count=1)
    if lenient:
        content = _COMMENT.sub(b"", content)  # libxml2 rejects "--" in comments
    count = 0
    try:
        for start in range(0, len(content), _CHUNK):
            parser.feed(content[start : start + _CHUNK])
            for _, element in parser.read_events():
                if not count and element.getroottree().docinfo.doctype:
                    words = "declares a document type (<!DOCTYPE ...>), which robot files do not need; remove it"
                    raise FileError(source, words)
                count += 1
            if count > MOST_ELEMENTS:
                raise FileError(source, f"has more than {MOST_ELEMENTS} XML elements, the limit for robot files")
        return parser.close()
    except etree.XMLSyntaxError as error:
        is_end = error.position[0] >= content.rstrip().count(b"\n") + 1
        hint = "; is the file complete?" if is_end else ""
        raise FileError(source, f"is not well-formed XML: {error.msg}{hint}") from error


def serialize(root: Any) -> bytes:
    """Return an element as an XML document."""
    return _etree("").tostring(root)


def root_tag(content: bytes) -> str:
    """Return the name of the root element, found without an XML parser, or "" if there is none."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    while True:
        space = _SPACE.match(content, at)
        at = space.end() if space else at
        end = next((end for start, end in _SKIPPED if content.startswith(start, at)), None)
        if end is None:
            found = _TAG.match(content, at)
            return found[1].decode() if found else ""
        at = content.find(end, at) + len(end)
        if at < len(end):
            return ""


_BOM = b"\xef\xbb\xbf"
_VERSION = re.compile(rb"""\A((?:\xef\xbb\xbf)?<\?xml\s+version\s*=\s*["'])[0-9.]+(["'])""")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_SPACE = re.compile(rb"\s*")
_SKIPPED = ((b"<!--", b"-->"), (b"<?", b"?>"))
_TAG = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def _etree(source: str) -> Any:
    try:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise FileError(source, "reading it needs lxml and yourdfpy: pip install 'legged[urdf]'") from error
    return etree
