"""Mutations of a URDF, each a function of (random generator, text as bytes) that returns the mutated bytes."""

import copy
from collections.abc import Callable

import numpy as np
from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

Mutation = Callable[[np.random.Generator, bytes], bytes]
NUMBERS = (
    "nan", "inf", "-inf", "1e400", "1e308", "-1e308", "1e9", "1e-9", "1e-320", "-1", "0", "", " ", "abc", "1 2", "0x10",
    "1_0", "１", "1,5", "--1", "1e", "None", "1" * 500,
)  # fmt: skip
WORDS = ("", " ", "trunk", "left_hip", "open", "world", "nobody", "a" * 5000, "\u00e9", "x/y", "universe", "0")
KINDS = (
    "ball",
    "universal",
    "screw",
    "REVOLUTE",
    "",
    "revolute ",
    "floating",
    "planar",
    "prismatic",
    "fixed",
    "spherical",
)
TAGS = ("link", "joint", "robot", "inertial", "origin", "mass", "inertia", "parent", "child", "axis", "limit", "mimic",
        "collision", "geometry", "sphere", "nonsense", "transmission", "dynamics")  # fmt: skip
BOMB = (
    b'<!DOCTYPE robot [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">'
    b'<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;">]>'
)


def truncated(rng: np.random.Generator, text: bytes) -> bytes:
    return text[: int(rng.integers(len(text)))]


def flipped(rng: np.random.Generator, text: bytes) -> bytes:
    changed = bytearray(text)
    for place in rng.integers(len(text), size=int(rng.integers(1, 6))):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def cut(rng: np.random.Generator, text: bytes) -> bytes:
    start, stop = np.sort(rng.integers(len(text), size=2))
    return text[:start] + text[stop:]


def repeated(rng: np.random.Generator, text: bytes) -> bytes:
    start, stop = np.sort(rng.integers(len(text), size=2))
    return text[:stop] + text[start:]


def stuffed(rng: np.random.Generator, text: bytes) -> bytes:
    place = int(rng.integers(len(text)))
    return text[:place] + rng.bytes(int(rng.integers(1, 50))) + text[place:]


def renumbered(rng: np.random.Generator, text: bytes) -> bytes:
    """Replace a number, or one of several in an attribute, by another text."""
    root = etree.fromstring(text)
    numbers = [(e, name) for e in root.iter() for name in e.attrib if _is_number(e.get(name).split()[0])]
    element, name = numbers[int(rng.integers(len(numbers)))]
    words = element.get(name).split()
    words[int(rng.integers(len(words)))] = str(rng.choice(NUMBERS))
    element.set(name, " ".join(words))
    return etree.tostring(root)


def renamed(rng: np.random.Generator, text: bytes) -> bytes:
    """Replace a name by another one of the file, or by an unusual one."""
    root = etree.fromstring(text)
    named = [(e, name) for e in root.iter() for name in e.attrib if name in ("name", "link", "joint")]
    element, name = named[int(rng.integers(len(named)))]
    others = [e.get(n) for e, n in named]
    element.set(name, str(rng.choice(others + list(WORDS))))
    return etree.tostring(root)


def retyped(rng: np.random.Generator, text: bytes) -> bytes:
    root = etree.fromstring(text)
    joints = root.findall("joint")
    joints[int(rng.integers(len(joints)))].set("type", str(rng.choice(KINDS)))
    return etree.tostring(root)


def duplicated(rng: np.random.Generator, text: bytes) -> bytes:
    root, element = _any(rng, text)
    element.getparent().append(copy.deepcopy(element))
    return etree.tostring(root)


def removed(rng: np.random.Generator, text: bytes) -> bytes:
    root, element = _any(rng, text)
    if rng.uniform() < 0.5 and element.attrib:
        del element.attrib[str(rng.choice(list(element.attrib)))]
    else:
        element.getparent().remove(element)
    return etree.tostring(root)


def moved(rng: np.random.Generator, text: bytes) -> bytes:
    """Move an element to another place in the tree."""
    root, element = _any(rng, text)
    where = list(root.iter("*"))
    target = where[int(rng.integers(len(where)))]
    if element not in target.iterancestors() and element is not target:
        target.append(element)
    return etree.tostring(root)


def retagged(rng: np.random.Generator, text: bytes) -> bytes:
    root, element = _any(rng, text)
    element.tag = str(rng.choice(TAGS))
    return etree.tostring(root)


def crossed(rng: np.random.Generator, text: bytes) -> bytes:
    """Exchange parents and children of joints: cycles, several parents, several roots."""
    root = etree.fromstring(text)
    ends = root.findall("joint/parent") + root.findall("joint/child")
    for _ in range(int(rng.integers(1, 3))):
        a, b = rng.integers(len(ends), size=2)
        first, second = ends[a].get("link"), ends[b].get("link")
        ends[a].set("link", second)
        ends[b].set("link", first)
    return etree.tostring(root)


def followed(rng: np.random.Generator, text: bytes) -> bytes:
    """Add mimic elements, also in cycles."""
    root = etree.fromstring(text)
    joints = root.findall("joint")
    for _ in range(int(rng.integers(1, 4))):
        a, b = rng.integers(len(joints), size=2)
        values = {"joint": joints[b].get("name"), "multiplier": str(rng.choice(NUMBERS[:12])), "offset": "0.1"}
        joints[a].append(etree.Element("mimic", values))
    return etree.tostring(root)


def nested(rng: np.random.Generator, text: bytes) -> bytes:
    depth, place = int(rng.choice([10, 255, 300, 5000, 100000])), text.index(b"<link")
    return text[:place] + b"<a>" * depth + b"</a>" * depth + text[place:]


def bombed(rng: np.random.Generator, text: bytes) -> bytes:
    """Insert XML entities: in a text, in an attribute, external ones, of other encodings."""
    start = text.index(b"<robot")
    outside = b'<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    plain = b"<!DOCTYPE robot>"
    head = (BOMB, outside, plain)[int(rng.integers(3))]
    name = b"&e;" if head is BOMB else b"&x;" if head is outside else b"biped"
    body = text[start:].replace(b'name="trunk"', b'name="' + name + b'"', 1).replace(b"<type>", b"<type>" + name, 1)
    whole = head + body
    return whole.decode().encode("utf-16") if rng.uniform() < 0.2 else whole


def recoded(rng: np.random.Generator, text: bytes) -> bytes:
    start = text.index(b"<robot")
    body = text[start:].decode()
    kinds = ("utf-16", "utf-32", "utf-7", "latin-1", "ascii", "ebcdic-cp-us", "no-such-code", "utf-8-sig")
    kind = str(rng.choice(kinds))
    try:
        body = body.encode(kind)
    except LookupError:
        body = body.encode()
    return f'<?xml version="1.0" encoding="{kind}"?>'.encode() + body


def emptied(rng: np.random.Generator, text: bytes) -> bytes:
    kinds = b"", b" ", b"\n\n", b"<robot/>", b"<robot name='a'/>", b"\0" * 9, b"<sdf/>", b"<mujoco/>", b"<?xml?>", b"<"
    return kinds[int(rng.integers(len(kinds)))]


def _any(rng: np.random.Generator, text: bytes):
    """Return (root, an element that is not the root)."""
    root = etree.fromstring(text)
    elements = list(root.iter("*"))[1:]
    return root, elements[int(rng.integers(len(elements)))]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


MUTATIONS: tuple[Mutation, ...] = (
    truncated, flipped, cut, repeated, stuffed, renumbered, renumbered, renumbered, renamed, retyped, duplicated,
    removed, moved, retagged, crossed, followed, nested, bombed, recoded, emptied,
)  # fmt: skip
