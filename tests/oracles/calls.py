"""The number of function calls as a measure of work that does not depend on the load of the computer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(function: Callable[[], Any]) -> int:
    """Return the number of calls of functions, those in C included, that a call makes."""
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
