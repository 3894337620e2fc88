"""Distribution of work over threads."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
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


_RECHECK = 0.1
"""Time after which a caller looks again whether threads still help, in case an interrupt has taken the message, [s]."""


def _current_processor() -> Callable[[], int]:
    """Return a function that returns the number of the processor of the calling thread, or -1 if it is unknown."""
    if not hasattr(os, "sched_setaffinity"):
        return lambda: -1
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):  # a C library without it
        return lambda: -1


class _Pool:
    """Helper threads that wait for work and stay until the process ends.

    On Linux they run on other processors than the caller. The kernel may otherwise place a thread on the processor that
    wakes it, where it takes the place of the caller for milliseconds.
    """

    def __init__(self) -> None:
        self._tasks, self._lock, self._size = SimpleQueue[Callable[[], None]](), threading.Lock(), 0
        self._threads: list[threading.Thread] = []
        self._processor, self._allowed = _current_processor(), set[int]()

    def run(self, task: Callable[[], None], threads: int) -> None:
        """Let a number of helper threads call a function, each once, as soon as they are free."""
        if self._size < threads:
            self._grow(threads)
        self._avoid(self._processor())
        for _ in range(threads):
            self._tasks.put(task)

    def _avoid(self, processor: int) -> None:
        """Let the helpers run on all processors of the calling thread but one, if there is another one."""
        if processor < 0:
            return
        allowed = os.sched_getaffinity(0)
        allowed = allowed - {processor} or allowed
        if allowed != self._allowed:
            with suppress(OSError):  # not permitted: they stay where they are
                for thread in self._threads:
                    os.sched_setaffinity(thread.native_id or 0, allowed)
            self._allowed = allowed

    def _grow(self, threads: int) -> None:
        with self._lock:
            for k in range(self._size, threads):
                thread = threading.Thread(target=self._work, name=f"legged-{k}", daemon=True)
                thread.start()
                self._threads.append(thread)
            self._size, self._allowed = max(self._size, threads), set()

    def _work(self) -> None:
        while True:
            self._tasks.get()()


_pool = _Pool()


def _forget_pool() -> None:
    """Let a forked process start threads of its own, since it does not inherit those of its parent."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def chunks_of(count: int, threads: int, least: int = 1, multiple: int = 1) -> list[tuple[int, int]]:
    """Return the ranges (first, end) of equal size into which items are cut, four for each thread.

    Smaller chunks would let threads end closer together, but each chunk takes Python's interpreter lock, for which
    threads wait.

    Args:
        count: Number of items.
        threads: Number of threads.
        least: Smallest number of items in a chunk that is worth taking.
        multiple: The numbers of items are multiples of this one, except for the last chunk.
    """
    size = max(-(-count // (4 * threads)), least, 1)
    step = -(-size // multiple) * multiple
    return [(first, min(first + step, count)) for first in range(0, count, step)]


def run_chunks(chunks: Sequence[tuple[int, int]], threads: int, run: Callable[[int, int], int]) -> int:
    """Return the smallest nonnegative result of run(first, end) over all chunks, -1 if there is none.

    The calling thread works as well; each thread takes the next chunk when it has finished one. Helper threads that are
    not awake when the last chunk is taken are not waited for. After an exception, such as KeyboardInterrupt, no thread
    works on a chunk any more, and some chunks have not been run.
    """
    waiting, results = list(reversed(chunks)), []
    errors: list[BaseException] = []
    is_open, helping, ended = True, set[int](), SimpleQueue[None]()

    def work() -> None:
        while True:
            try:
                chunk = waiting.pop()  # atomic
            except IndexError:
                return
            results.append(run(*chunk))

    def help_to_work() -> None:
        # Either this thread finds that the caller has finished, or the caller finds this thread and waits for it.
        helping.add(threading.get_ident())
        try:
            if is_open:
                work()
        except BaseException as error:
            waiting.clear()
            errors.append(error)
        finally:
            helping.discard(threading.get_ident())
            ended.put(None)

    try:
        _pool.run(help_to_work, threads - 1)
        work()
    except BaseException as error:  # such as Ctrl-C: the other threads finish their chunks and take no more
        waiting.clear()
        errors.insert(0, error)
    while is_open or helping:
        try:
            is_open = False
            while helping:
                with suppress(Empty):
                    ended.get(timeout=_RECHECK)
        except BaseException as error:
            waiting.clear()
            errors.insert(0, error)
    if errors:
        raise errors[0]
    return min((result for result in results if result >= 0), default=-1)
