"""Distribution of work over threads that stay: every chunk once, errors of all threads, no wait for idle threads."""

import os
import threading
import time

import pytest

from legged.compiler.runtime.threads import chunks_of, run_chunks


def helpers():
    return {thread for thread in threading.enumerate() if thread.name.startswith("legged-")}


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_every_chunk_is_run_once_and_the_smallest_result_is_returned(threads):
    for count in [*range(1, 9), 100]:
        ran = []

        def run(first, end, ran=ran):
            ran.append((first, end))
            return first if first in (5, 7, 60) else -1

        chunks = [(k, k + 1) for k in range(count)]
        assert run_chunks(chunks, threads, run) == (5 if count > 5 else -1)
        assert sorted(ran) == chunks


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("count", "least", "multiple"), [(0, 1, 1), (1, 1, 8), (64, 8, 8), (1003, 16, 8), (5000, 1, 1)]
)
def test_chunks_of_equal_size_cover_all_items_once(threads, count, least, multiple):
    chunks = chunks_of(count, threads, least, multiple)
    assert [item for first, end in chunks for item in range(first, end)] == list(range(count))
    sizes = [end - first for first, end in chunks]
    assert all(size % multiple == 0 and size >= least and size == sizes[0] for size in sizes[:-1])
    assert len(sizes) <= 4 * threads and (not sizes or 0 < sizes[-1] <= sizes[0])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="threads cannot be assigned to processors here")
def test_helpers_run_on_other_processors_than_the_caller():
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    try:
        for processor in sorted(allowed)[:2]:
            for mine in ({processor}, allowed):
                os.sched_setaffinity(0, mine)
                run_chunks([(0, 1), (1, 2)], 2, lambda first, end: -1)
                for helper in helpers():
                    others = os.sched_getaffinity(helper.native_id)
                    assert others <= mine and len(others) == max(len(mine) - 1, 1)
    finally:
        os.sched_setaffinity(0, allowed)


def test_threads_stay_and_work_at_the_same_time():
    together = threading.Barrier(4, timeout=20.0)

    def meet(first, end):
        together.wait()  # returns when four threads have arrived
        return -1

    for _ in range(3):
        run_chunks([(k, k + 1) for k in range(4)], 4, meet)
        before = helpers()
        assert len(before) >= 3
        run_chunks([(k, k + 1) for k in range(40)], 3, lambda first, end: -1)
        assert helpers() == before


def test_an_error_of_any_thread_is_raised_when_all_are_idle():
    for in_helper in (True, False):
        running, ran = [], []

        def run(first, end, in_helper=in_helper, running=running, ran=ran):
            running.append(first)
            ran.append(first)
            time.sleep(0.005)
            running.remove(first)
            if (threading.current_thread() in helpers()) == in_helper:
                raise ValueError("chunk")
            return -1

        with pytest.raises(ValueError, match="chunk"):
            run_chunks([(k, k + 1) for k in range(200)], 3, run)
        assert not running and len(ran) < 50


def test_helpers_that_are_busy_elsewhere_are_not_waited_for():
    """A call with more chunks than free threads ends when its chunks have been run."""
    release, entered = threading.Event(), threading.Semaphore(0)
    wanted = len(helpers()) + 1

    def block(first, end):
        entered.release()
        release.wait(20.0)
        return -1

    other = threading.Thread(target=run_chunks, args=([(k, k + 1) for k in range(wanted + 1)], wanted + 1, block))
    other.start()
    for _ in range(wanted + 1):
        assert entered.acquire(timeout=20.0)
    assert run_chunks([(0, 1), (1, 2)], 2, lambda first, end: 3) == 3
    assert not release.is_set()
    release.set()
    other.join()
