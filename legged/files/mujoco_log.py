"""MuJoCo's warnings, which it writes to a file in the current folder if nobody takes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def kept_warnings(mujoco: Any) -> Iterator[list[str]]:
    """Give a list that takes the warnings of the module `mujoco` for the time being."""
    words: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(words.append)
    try:
        yield words
    finally:
        mujoco.set_mju_user_warning(before)
