"""Read regular files of limited size, and parse XML of limited size without document types or external entities."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from legged.arguments import instance, shown
from legged.errors import ArgumentError, FileError

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
    if source.lstrip().startswith("<"):
        raise ArgumentError(
            f"path must be that of a file, got the text of one, {shown(source, 40)}; write it to a file"
        )
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
    The version in the XML declaration is ignored, as all readers of robot files do. So are comments with any content
    and in any encoding, and blank lines before the declaration. Prefixes without a declaration are accepted; names of
    the root's namespace have none in the result. libxml2 rejects nesting of more than 256 elements and texts of more
    than 10 MB.

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
    content, lines = _prepared(content)
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
        return _without_namespace(parser.close())
    except etree.XMLSyntaxError as error:
        is_end = error.position[0] >= content.rstrip().count(b"\n") + 1
        hint = "; is the file complete?" if is_end else ""
        if "encod" in error.msg or "UTF-8" in error.msg:
            hint = '; save the file as UTF-8, or state its encoding in the first line, <?xml ... encoding="gbk"?>'
        where = f" (line {error.position[0] + lines})" if lines else ""
        raise FileError(source, f"is not well-formed XML: {error.msg}{where}{hint}") from error


def _prepared(content: bytes) -> tuple[bytes, int]:
    """Return a document that libxml2 accepts, and the number of lines removed from its beginning."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.decode("utf-16", "replace").encode()
        content = _DECLARATION.sub(b"", content, count=1)
    stripped = content.removeprefix(_BOM).lstrip()
    lines = content.count(b"\n") - stripped.count(b"\n")
    content = _VERSION.sub(rb"\g<1>1.0\g<2>", stripped, count=1)
    if b"<![CDATA[" not in content:  # libxml2 rejects "--" and bytes of another encoding in comments
        content = _COMMENT.sub(lambda match: b"\n" * match[0].count(b"\n"), content)
    used = {match[1] for match in _PREFIX.finditer(content)}
    unknown = used - set(_DECLARED.findall(content)) - {b"xml", b"xmlns"}
    start = _ROOT.search(content)
    if unknown and start is not None and len(unknown) <= _MOST_PREFIXES:
        names = b"".join(b' xmlns:%b="undeclared:%b"' % (name, name) for name in sorted(unknown))
        content = content[: start.end()] + names + content[start.end() :]
    return content, lines


def _without_namespace(root: Any) -> Any:
    """Return the root element with the names of its own namespace reduced to their local parts."""
    if root is None or not isinstance(root.tag, str) or not root.tag.startswith("{"):
        return root
    own = root.tag[: root.tag.index("}") + 1]
    for element in root.iter():
        if isinstance(element.tag, str) and element.tag.startswith(own):
            element.tag = element.tag.removeprefix(own)
    _etree("").cleanup_namespaces(root)
    return root


def root_tag(content: bytes) -> str:
    """Return the name of the root element, found without an XML parser, or "" if there is none."""
    at = len(_BOM) if content.startswith(_BOM) else 0
    while True:
        space = _SPACE.match(content, at)
        at = space.end() if space else at
        end = next((end for start, end in _SKIPPED if content.startswith(start, at)), None)
        if end is None:
            tag = _TAG.match(content, at)
            return tag[1].decode() if tag else ""
        at = content.find(end, at) + len(end)
        if at < len(end):
            return ""


def foreign_format(content: bytes) -> str:
    """Return the format of a file other than URDF and MJCF in words, with the remedy; "" for a possible URDF or MJCF.

    Args:
        content: Content of the file.
    """
    start = content.removeprefix(_BOM).lstrip()
    for beginning, words in _BEGINNINGS.items():
        if start.startswith(beginning):
            return words
    if content[:8].count(b"\0") and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "a binary file, such as a compiled model of MuJoCo (.mjb)" + _SOURCE
    tag = "html" if start[:14].lower() == b"<!doctype html" else root_tag(content)
    if not tag and start[:1] != b"<" and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"no XML: it begins with {start[:20].decode(errors='replace')!r}"
    words = _ROOTS.get(tag.lower(), "")
    if tag == "robot" and b"<link" not in content and _SRDF.search(content):
        words = "an SRDF, which holds groups and postures of a robot: load the URDF, and read the postures of this file"
        return f"{words} with legged.conversions.postures(robot, path)"
    return words


_SOURCE = "; load the URDF or MJCF that it was made from"
_BEGINNINGS = {
    b"#usda": "a scene of USD in text (.usda)" + _SOURCE,
    b"PXR-USDC": "a scene of USD (.usd, .usdc)" + _SOURCE,
    b"PK\x03\x04": "a zip archive (also .usdz and .skel); unpack it and load the URDF or MJCF in it",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"{": "JSON" + _SOURCE,
    b"[": "JSON" + _SOURCE,
    b"#VRML": "VRML, as of Webots (.wbt, .proto)" + _SOURCE,
    b"version https://git-lfs": "a pointer of Git LFS in place of the file; fetch it with `git lfs pull`",
    b"solid ": "a mesh (.stl)" + _SOURCE,
    b"\x89PNG": "a picture",
}
_ROOTS = {
    "sdf": "an SDF; convert it to URDF",
    "model": "the model of an SDF; convert it to URDF",
    "world": "a world of SDF; convert its robot to URDF",
    "collada": "a mesh or scene of COLLADA (.dae)" + _SOURCE,
    "html": "a web page; download the raw file",
    "svg": "a picture",
    "package": "the description of a ROS package; give the path of its robot file",
    "launch": "a launch file of ROS; give the path of its robot file",
    "mujocoinclude": "a part that other MJCF files include; load the file that includes it",
    "kinbody": "a body of OpenRAVE; convert it to URDF",
    "environment": "an environment of OpenRAVE; convert its robot to URDF",
    "osim": "a model of OpenSim; convert it to MJCF",
    "opensimdocument": "a model of OpenSim; convert it to MJCF",
}
_SRDF = re.compile(rb"<(?:group|group_state|disable_collisions|end_effector)\b")
_DECLARATION = re.compile(rb"\A\s*(?:\xef\xbb\xbf)?<\?xml[^>]*\?>")
_ROOT = re.compile(rb"<[A-Za-z_][\w.:-]*")
_PREFIX = re.compile(rb"(?:</?|\s)([A-Za-z_][\w.-]*):[A-Za-z_][\w.-]*(?=[\s=/>])")
_DECLARED = re.compile(rb"\sxmlns:([A-Za-z_][\w.-]*)\s*=")
_MOST_PREFIXES = 64
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
        raise FileError(source, "reading it needs lxml: pip install 'legged[urdf]'") from error
    return etree
