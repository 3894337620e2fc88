"""Distribution of work over threads.

The calling thread and helper threads take chunks of a job in machine code, see `codegen.thread_pool`, which needs no
interpreter. Python starts the helpers, keeps the memory that they share with the caller, and handles signals.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from legged.compiler.cache import machine_code
from legged.compiler.codegen import llvm, thread_pool
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
    return _available_processors()


def _available_processors() -> int:
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


def _current_processor() -> Callable[[], int]:
    """Return a function that returns the number of the processor of the calling thread, or -1 if it is unknown."""
    if not hasattr(os, "sched_setaffinity"):
        return lambda: -1
    try:
        return ctypes.CDLL(None).sched_getcpu
    except (OSError, AttributeError):  # a C library without it
        return lambda: -1


_POLLING = 1e-4
"""Time for which a thread without work polls before it sleeps, [s]; it takes a fifth of it to wake a thread."""
_CHUNKS = 32
"""Number of chunks for each thread; a chunk takes some 10 ns besides its work."""


class _Code(NamedTuple):
    """The functions of `codegen.thread_pool`, and the number of rounds of polling that take `_POLLING`."""

    help: Callable[[int], int]
    run: Callable[[int, int], int]
    rounds: int


@cache
def _code() -> _Code:
    target = llvm.default_target()
    key = "thread pool", llvm.target_description(target)
    code = machine_code.load_module(key, lambda: thread_pool.assembly(llvm.processor_family()), target)
    _keep(code)  # a polling thread executes it while the interpreter ends
    pause = code.function(thread_pool.PAUSE, ctypes.c_int64)
    times = []
    for _ in range(3):
        start = time.perf_counter()
        pause(1000)
        times.append(time.perf_counter() - start)
    rounds = int(1000 * _POLLING / max(min(times), 1e-6))
    run = code.function(thread_pool.RUN, ctypes.c_void_p, ctypes.c_int64)
    return _Code(code.function(thread_pool.HELP, ctypes.c_void_p), run, rounds)


def _keep(thing: Any) -> None:
    """Keep an object in memory until the process ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _new_lock() -> int:
    """Return the address of a lock of CPython, which is held and stays in memory."""
    allocate, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    allocate.restype, acquire.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)
    lock = allocate()
    if not lock:
        raise MemoryError("no lock for threads can be allocated")
    acquire(lock, 1)
    return lock


class _Worker(ctypes.Structure):
    """The shared memory of a helper thread and its callers: `thread_pool.WORKER` has its fields."""

    _fields_ = tuple((name, ctypes.c_int64) for name in thread_pool.WORKER)


class _Pool:
    """Helper threads that wait for work in machine code and stay until the process ends.

    They poll for work during `_POLLING` before they sleep, unless there are more threads than processors. On Linux they
    run on other processors than the caller. The kernel may otherwise place a thread on the processor that wakes it,
    where it takes the place of the caller for milliseconds.
    """

    def __init__(self) -> None:
        self._lock, self._threads, self._workers = threading.Lock(), list[threading.Thread](), list[_Worker]()
        self._processor, self._allowed = _current_processor(), set[int]()

    def workers(self, count: int) -> int:
        """Return the address of the first worker, 0 if there is none, after an attempt to have at least `count`."""
        if len(self._threads) < count:
            self._grow(count)
        self._avoid(self._processor())
        return ctypes.addressof(self._workers[0]) if self._workers else 0

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

    def _grow(self, count: int) -> None:
        code = _code()
        with self._lock, suppress(RuntimeError):  # no thread can be started, such as while the interpreter ends
            for k in range(len(self._threads), count):
                rounds = code.rounds if k + 1 < _available_processors() else 0
                worker = _Worker(lock=_new_lock(), rounds=rounds)
                _keep(worker)
                thread = threading.Thread(
                    target=code.help, args=(ctypes.addressof(worker),), name=f"legged-{k}", daemon=True
                )
                thread.start()
                if self._workers:
                    self._workers[-1].next = ctypes.addressof(worker)
                self._workers.append(worker)
                self._threads.append(thread)
                self._allowed = set()


_pool = _Pool()


def _forget_pool() -> None:
    """Let a forked process start threads of its own, since it does not inherit those of its parent."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


class _Job(ctypes.Structure):
    """Work for several threads, see `codegen.thread_pool`, and their working memory."""

    _fields_ = tuple((name, ctypes.c_int64) for name in thread_pool.JOB)

    def __init__(self) -> None:
        super().__init__(lock=_new_lock(), rounds=_code().rounds if _available_processors() > 1 else 0)
        self._memory, self.address = np.empty(0, np.uint8), ctypes.addressof(self)
        _keep(self)

    def reserve(self, threads: int, size: int) -> None:
        """Provide working memory of a size for each thread, [bytes]; each begins at a cache line."""
        self.work_size = -(-size // 64) * 64
        if self._memory.size < threads * self.work_size + 64:
            self._memory = np.empty(threads * self.work_size + 64, np.uint8)
            self.work = -(-self._memory.ctypes.data // 64) * 64


_idle_jobs: list[_Job] = []


def chunk_size(count: int, threads: int, least: int = 1, multiple: int = 1) -> int:
    """Return the number of items of a chunk, a multiple of a number: `_CHUNKS` chunks for each thread.

    Args:
        count: Number of items.
        threads: Number of threads.
        least: Smallest number of items that is worth taking.
        multiple: The result is a multiple of this number.
    """
    size = max(-(-count // (_CHUNKS * threads)), least, 1)
    return -(-size // multiple) * multiple


def run_chunks(
    task: int, argument: int, count: int, size: int, threads: int, work_size: int, most: int | None = None
) -> int:
    """Return the smallest nonnegative result of a task over all chunks of items 0, ..., count - 1; -1 if there is none.

    The calling thread works as well; each thread takes the next chunk when it has finished one. Helper threads that
    have not begun when the last chunk is taken are not waited for. After an exception, such as KeyboardInterrupt, no
    thread works on a chunk any more, and some chunks have not been run.

    Args:
        task: Address of a function in machine code, `int64 task(int64 first, int64 end, void *argument, void *work)`.
        argument: Address that it receives.
        count: Number of items.
        size: Number of items of a chunk.
        threads: Maximal number of threads.
        work_size: Size of the working memory of each thread, [bytes].
        most: Number of items after which the caller handles signals, such as Ctrl-C; None for no such number.
    """
    threads = min(threads, max(-(-count // size), 1))
    try:
        job = _idle_jobs.pop()  # atomic; a signal handler that runs code of its own takes another one
    except IndexError:
        job = _Job()
    job.task, job.argument, job.count, job.step = task, argument, count, size
    job.workers, job.helpers = _pool.workers(threads - 1) if threads > 1 else 0, threads - 1
    job.is_posted, job.next, job.participants, job.result = 0, 0, 1, -1
    job.reserve(threads, work_size)
    run, chunks = _code().run, count if most is None else max(most // size, 1)
    result, errors = thread_pool.UNFINISHED, list[BaseException]()
    while result == thread_pool.UNFINISHED:
        try:
            result = run(job.address, max(chunks, 1))
        except BaseException as error:  # such as Ctrl-C: all threads finish their chunks and take no more
            job.next = count
            errors.append(error)
    _idle_jobs.append(job)
    if errors:
        raise errors[0]
    return result
