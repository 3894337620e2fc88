"""Whether two functions, with all that they read, are the same: known before they are run, and between processes.

`fingerprint(function, robot, shapes)` follows everything that a call can reach from there: the bytecode of the
function, its defaults, what it closes over, the globals that it names, and of those the same again, down to every
number of every object. Calls with equal fingerprints do the same. Where that cannot be told there is none, and who asks
has to run the function to see what it does: if it meets a file, a clock, random numbers, warnings, what remembers
earlier results, or what is written in another language. This project's own code is taken to meet none of these.

    walk      from thing to thing, and by which names
    code      functions
    objects   data, classes, instances
    known     what is taken at its word
"""

from __future__ import annotations

import hashlib
from typing import Any

from legged.compiler.cache.fingerprint import code, objects
from legged.compiler.cache.fingerprint.known import Unknown
from legged.compiler.cache.fingerprint.walk import Walk


def description(*things: Any) -> list[str]:
    """Return everything that a computation with these things can depend on, in lines that read alike for no other.

    Raises:
        Unknown: If that cannot be told.
    """
    walk = Walk({**objects.KINDS, **code.KINDS}, objects.other)
    walk.visit(things)
    walk.read_named()
    return walk.lines


def fingerprint(*things: Any) -> str | None:
    """Return a digest of the description of these things, None if there is none."""
    try:
        lines = description(*things)
    except (Unknown, RecursionError):
        return None
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()
