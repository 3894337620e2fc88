"""Distribution of work over threads."""

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
    """An invalid number of threads."""


class _Limit(threading.local):
    """The number of threads that the current call of this thread requests."""

    threads: int | None = None


_limit = _Limit()


def default_threads() -> int:
    """Return the number of threads for a batch: the number given in the call, else LEGGED_THREADS, else the number of
    available processors."""
    if _limit.threads is not None:
        return _limit.threads
    if words := os.environ.get("LEGGED_THREADS"):
        return check_threads(int(words) if words.isdecimal() else words)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: Any) -> int:
    """Return a number of threads as an int, or raise ThreadsError."""
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise ThreadsError(f"threads (or LEGGED_THREADS) must be a positive integer, got {threads!r}")
    return int(threads)


@contextmanager
def thread_limit(threads: int) -> Iterator[None]:
    """Limit the number of threads of all calls inside the context."""
    before, _limit.threads = _limit.threads, check_threads(threads)
    try:
        yield
    finally:
        _limit.threads = before


_pools: dict[int, ThreadPoolExecutor] = {}
_lock = threading.Lock()


@cache
def _register_fork_handler() -> None:
    """Let a forked process start threads of its own, since it does not inherit those of its parent."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_pools)


def _forget_pools() -> None:
    global _lock
    _pools.clear()
    _lock = threading.Lock()  # another thread of the parent may have held it


def _pool(threads: int) -> ThreadPoolExecutor:
    """Return a pool of at least this many helper threads."""
    _register_fork_handler()
    with _lock:
        if not _pools or max(_pools) < threads:
            _pools[threads] = ThreadPoolExecutor(threads, thread_name_prefix="legged")
        return _pools[max(_pools)]


def run_chunks(chunks: Sequence[tuple[int, int]], threads: int, run: Callable[[int, int], int]) -> int:
    """Return the smallest nonnegative result of run(first, end) over all chunks, -1 if there is none.

    The calling thread works as well; each thread takes the next chunk when it has finished one. After an exception,
    such as KeyboardInterrupt, all threads are idle, and some chunks have not been run.
    """
    waiting, results = list(reversed(chunks)), []

    def work() -> None:
        while True:
            try:
                chunk = waiting.pop()  # atomic
            except IndexError:
                return
            results.append(run(*chunk))

    helpers = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
        for helper in helpers:
            helper.result()
    except BaseException:  # such as Ctrl-C: the other threads finish their chunks and take no more
        waiting.clear()
        for helper in helpers:
            helper.exception()
        raise
    return min((result for result in results if result >= 0), default=-1)
