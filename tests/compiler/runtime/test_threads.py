"""Distribution of work over threads that stay: every chunk once, no wait for idle threads, interrupts, forks."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import legged
import robots
from legged.compiler.runtime import threads
from legged.compiler.runtime.threads import chunk_size, run_chunks, thread_limit

TASK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


def helpers():
    return {thread for thread in threading.enumerate() if thread.name.startswith("legged-")}


def run(function, count, most_threads, size=1, **options):
    """Run a function in Python, of the first item, the end and the address of the working memory."""
    task = TASK(lambda first, end, argument, work: function(first, end, work))
    return run_chunks(ctypes.cast(task, ctypes.c_void_p).value, 0, count, size, most_threads, 100, **options)


@pytest.mark.parametrize("count_of_threads", [1, 2, 3, 5])
@pytest.mark.parametrize("most", [None, 1, 7])
def test_every_chunk_is_run_once_and_the_smallest_result_is_returned(count_of_threads, most):
    for count, size in [*((n, 1) for n in range(1, 9)), (100, 1), (100, 8), (5, 8)]:
        ran = []

        def task(first, end, work, ran=ran):
            ran.append((first, end))
            assert work % 64 == 0
            return next((k for k in range(first, end) if k in (5, 7, 60)), -1)

        assert run(task, count, count_of_threads, size, most=most) == (5 if count > 5 else -1)
        assert sorted(ran) == [(k, min(k + size, count)) for k in range(0, count, size)]


@pytest.mark.parametrize("count_of_threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("count", "least", "multiple"), [(0, 1, 1), (1, 1, 8), (64, 8, 8), (1003, 16, 8), (5000, 1, 1)]
)
def test_chunks_are_large_enough(count_of_threads, count, least, multiple):
    size = chunk_size(count, count_of_threads, least, multiple)
    assert size % multiple == 0 and size >= least
    assert size < least + multiple or size * (count_of_threads * 32 - 1) < count + count_of_threads * 32 * multiple


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be assigned to processors here")
def test_helpers_run_on_other_processors_than_the_caller():
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    try:
        for processor in sorted(allowed)[:2]:
            for mine in ({processor}, allowed):
                os.sched_setaffinity(0, mine)
                run(lambda first, end, work: -1, 2, 2)
                for helper in helpers():
                    others = os.sched_getaffinity(helper.native_id)
                    assert others <= mine and len(others) == max(len(mine) - 1, 1)
    finally:
        os.sched_setaffinity(0, allowed)


def test_threads_stay_and_work_at_the_same_time():
    together, memory = threading.Barrier(4, timeout=20.0), set()

    def meet(first, end, work):
        together.wait()  # returns when four threads have arrived
        memory.add(work)
        return -1

    for _ in range(3):
        memory.clear()
        run(meet, 4, 4)
        assert len(memory) == 4 and not together.broken
        before = helpers()
        assert len(before) >= 3
        run(lambda first, end, work: -1, 40, 3)
        assert helpers() == before


def test_helpers_that_are_busy_elsewhere_are_not_waited_for():
    """A call with more chunks than free threads ends when its chunks have been run."""
    release, entered = threading.Event(), threading.Semaphore(0)
    wanted = len(helpers()) + 1

    def block(first, end, work):
        entered.release()
        release.wait(20.0)
        return -1

    other = threading.Thread(target=run, args=(block, wanted + 1, wanted + 1))
    other.start()
    for _ in range(wanted + 1):
        assert entered.acquire(timeout=20.0)
    assert run(lambda first, end, work: 3, 2, 2) == 3
    assert not release.is_set()
    release.set()
    other.join()


def test_calls_inside_a_chunk_and_of_several_threads_at_once():
    """Jobs do not mix: chunks of a job run other jobs, and several threads call at the same time."""
    total, lock = [0], threading.Lock()

    def inner(first, end, work):
        with lock:
            total[0] += end - first
        return -1

    def outer(first, end, work):
        if first % 5 == 0:
            time.sleep(0.0005)
        return run(inner, 3, 2)

    def call():
        for _ in range(20):
            assert run(outer, 10, 3) == -1

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60.0)
    assert total[0] == 4 * 20 * 10 * 3


def test_results_of_many_callers_equal_those_of_one_thread():
    """The same bits from any number of threads, while several threads call and helpers fall asleep and wake."""
    robot = robots.spatial_quadruped()
    kernel = legged.compile(legged.forward_dynamics, robot)
    random = np.random.default_rng(0)
    arrays = [np.tile(robot.neutral(), (6000, 1)), *(random.standard_normal((2, 6000, robot.nv)))]
    with thread_limit(1):
        expected = kernel(*arrays)
    wrong = []

    def call(seed):
        pauses = np.random.default_rng(seed)
        for _ in range(60):
            with thread_limit(int(pauses.integers(2, 5))):
                wrong.append(not np.array_equal(kernel(*arrays), expected))
            time.sleep(float(pauses.choice([0.0, 1e-4, 1e-3])))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120.0)
    assert len(wrong) == 180 and not any(wrong)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no usleep")
def test_threads_are_idle_after_an_interrupt():
    """After an interrupt of the caller all threads finish their chunks and take no more."""
    usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value  # takes the number of the first item
    main, before = threading.main_thread().ident, signal.signal(signal.SIGINT, signal.default_int_handler)
    start = time.monotonic()
    try:
        threading.Timer(0.05, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            run_chunks(usleep, 0, 1_000_000_000, 20_000, 3, 0, most=1)
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 10.0 and all(worker.mailbox == 0 for worker in threads._pool._workers)
    assert run(lambda first, end, work: 7, 5, 3) == 7


ALONE = """
import os, sys, threading, time
import numpy as np
import legged, robots
from legged.compiler.runtime.threads import thread_limit

robot = robots.planar_hopper()
kernel = legged.compile(legged.inertia_matrix, robot)
q = np.random.default_rng(0).standard_normal((200_000, robot.nq))

def check():
    with thread_limit(1):
        expected = kernel(q)
    for _ in range(5):
        with thread_limit(3):
            assert np.array_equal(kernel(q), expected)
"""
FORK = """
check()
pid = os.fork()
check()
if pid:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
else:
    sys.stdout.flush()
    os._exit(0)
"""
EXIT = """
check()
def call():
    with thread_limit(3):
        while True:
            kernel(q)
threading.Thread(target=call, daemon=True).start()
check()
time.sleep(0.05)
"""


@pytest.mark.parametrize(
    "program",
    [pytest.param(FORK, marks=pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")), "check()\n", EXIT],
    ids=["fork", "exit", "exit while threads work"],
)
def test_processes_end(program):
    """Helpers neither keep a process from ending nor crash it, and a forked process starts its own."""
    done = subprocess.run([sys.executable, "-c", ALONE + program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
