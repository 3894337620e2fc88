"""Sharing pieces of work among threads: how many, and which."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from legged.errors import LeggedError


class ThreadsError(LeggedError, ValueError):
    """A number of threads that cannot be."""


class _Chosen(threading.local):
    """What this thread's current call asked for."""

    threads: int | None = None


_chosen = _Chosen()


def default_threads() -> int:
    """Return how many threads share a batch: what the call said, else LEGGED_THREADS, else the processors at hand."""
    if _chosen.threads is not None:
        return _chosen.threads
    if words := os.environ.get("LEGGED_THREADS"):
        return checked(int(words) if words.isdecimal() else words)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked(threads: Any) -> int:
    """Return a number of threads, or raise ThreadsError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ThreadsError(f"threads (or LEGGED_THREADS) must be a whole number from 1 on, got {threads!r}")
    return int(threads)


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """Let the calls inside share their work among so many threads."""
    before, _chosen.threads = _chosen.threads, checked(threads)
    try:
        yield
    finally:
        _chosen.threads = before


_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


@cache
def _renew_after_forks() -> None:
    """Let a forked process start threads of its own: its parent's are not there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    global _lock
    _pools.clear()
    _lock = threading.Lock()  # another thread of the parent may have held it


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of at least so many helping threads."""
    _renew_after_forks()
    with _lock:
        if not _pools or max(_pools) < threads:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="legged")
        return _pools[max(_pools)]


def share(chunks: Sequence[tuple[int, int]], threads: int, piece: Callable[[int, int], int]) -> int:
    """Return the smallest answer above -1 of all chunks, -1 if there is none; the calling thread works as well."""
    waiting, answers = list(reversed(chunks)), []

    def work() -> None:
        while True:
            try:
                chunk = waiting.pop()  # atomic
            except IndexError:
                return
            answers.append(piece(*chunk))

    helpers = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    work()
    for helper in helpers:
        helper.result()
    return min((a for a in answers if a >= 0), default=-1)
