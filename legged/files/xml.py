"""Reading XML that may be broken or hostile: nothing outside the file is fetched, nothing inside it is expanded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from legged.errors import FileError

LARGEST = 64 * 2**20
"""Bytes that a robot's file may have; the largest public ones have a few million."""


def read_bytes(path: str | Path) -> bytes:
    """Return what a file holds, or raise FileError: not there, not readable, empty or larger than `LARGEST`."""
    source = str(path)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise FileError(source, f"cannot be read: {reason}") from error
    if not content.strip():
        raise FileError(source, "the file is empty")
    if len(content) > LARGEST:
        raise FileError(source, f"the file is larger than {LARGEST // 2**20} MiB, which no robot's description is")
    return content


def parse(content: bytes, source: str) -> Any:
    """Return the root element (of lxml) of a document without comments, or raise FileError.

    Document types are refused, since they are what entity bombs are made of and robots need none. Nesting of more than
    256 elements, and texts of more than 10 MB, are refused by libxml2 itself.
    """
    etree = _etree(source)
    safe = etree.XMLParser(
        resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        root = etree.fromstring(content, safe)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FileError(source, f"is not well-formed XML: {error}; is the file complete?") from error
    if root.getroottree().docinfo.doctype:
        raise FileError(source, "declares a document type (<!DOCTYPE ...>), which a robot needs none of; remove it")
    return root


def text(root: Any) -> bytes:
    """Return an element as a document."""
    return _etree("").tostring(root)


def outermost(content: bytes) -> str:
    """Return the name of a document's outermost element, as far as it can be told without reading it as XML, or ""."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    while True:
        space = _SPACE.match(content, at)
        at = space.end() if space else at
        end = next((end for start, end in _ASIDES if content.startswith(start, at)), None)
        if end is None:
            found = _TAG.match(content, at)
            return found[1].decode() if found else ""
        at = content.find(end, at) + len(end)
        if at < len(end):
            return ""


_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"\s*")
_ASIDES = ((b"<!--", b"-->"), (b"<?", b"?>"))
_TAG = re.compile(rb"<([A-Za-z_][\w.:-]*)")


def _etree(source: str) -> Any:
    try:
        from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise FileError(source, "reading it needs lxml and yourdfpy: pip install 'legged[urdf]'") from error
    return etree
